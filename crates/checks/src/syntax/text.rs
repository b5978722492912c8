//! From bytes to a text: what every format asks of its bytes.

use std::borrow::Cow;

use super::Format;
use crate::{Finding, Place};

/// Gives the text without a byte order mark. What is no text at all is refused.
pub(super) fn of(format: Format, content: &[u8]) -> Result<Cow<'_, str>, Finding> {
    if content.starts_with(&[0xff, 0xfe]) || content.starts_with(&[0xfe, 0xff]) {
        let start = Place { line: 1, column: 1 };
        let finding = Finding::new("is UTF-16").at(start);
        return Err(finding.mended_by("save it as UTF-8"));
    }
    let text = decoded(format, content)?;
    if let Some(at) = text.find('\0') {
        let finding = Finding::new("holds a zero byte").at(Place::of(&text, at));
        return Err(finding.mended_by("remove it, or do not check this file as text"));
    }
    if !text.starts_with('\u{feff}') {
        return Ok(text);
    }
    if minds_mark(format) {
        let found = "begins with a byte order mark, at which readers stumble";
        let finding = Finding::new(found).at(Place { line: 1, column: 1 });
        return Err(finding.mended_by("save it as UTF-8 without a byte order mark"));
    }
    Ok(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_start_matches('\u{feff}')),
        Cow::Owned(text) => Cow::Owned(text.trim_start_matches('\u{feff}').to_owned()),
    })
}

fn decoded(format: Format, content: &[u8]) -> Result<Cow<'_, str>, Finding> {
    let error = match str::from_utf8(content) {
        Ok(text) => return Ok(Cow::Borrowed(text)),
        Err(error) => error,
    };
    if takes_other_encodings(format, content) {
        return Ok(String::from_utf8_lossy(content));
    }
    let good = content.get(..error.valid_up_to()).unwrap_or_default();
    let good = String::from_utf8_lossy(good);
    let byte = content
        .get(error.valid_up_to())
        .copied()
        .unwrap_or_default();
    let finding = Finding::new(format!("is not UTF-8: the byte 0x{byte:02x} stands here"));
    Err(finding
        .at(Place::of(&good, good.len()))
        .mended_by("save it as UTF-8"))
}

/// Whether readers of the format take bytes that are not UTF-8. What is special to them is ASCII all the same.
fn takes_other_encodings(format: Format, content: &[u8]) -> bool {
    let head = content.get(..content.len().min(256)).unwrap_or_default();
    match format {
        Format::Ini | Format::Env | Format::Shell | Format::Sql | Format::C => true,
        Format::Xml => head
            .split(|byte| *byte == b'>')
            .next()
            .is_some_and(|declaration| {
                declaration.starts_with(b"<?xml") && names_other(declaration)
            }),
        Format::Python => head
            .split(|byte| *byte == b'\n')
            .take(2)
            .any(|line| line.starts_with(b"#") && names_other(line)),
        Format::Json
        | Format::JsonWithComments
        | Format::Yaml
        | Format::Toml
        | Format::Hcl
        | Format::Dockerfile
        | Format::JavaScript
        | Format::TypeScript
        | Format::Tsx
        | Format::Rust
        | Format::Go => false,
    }
}

/// Whether a line names an encoding other than UTF-8.
fn names_other(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line).to_ascii_lowercase();
    let named = line.split_once("coding").map(|(_, name)| name.to_owned());
    named.is_some_and(|name| !name.contains("utf"))
}

/// Whether readers of the format stumble over a byte order mark.
const fn minds_mark(format: Format) -> bool {
    match format {
        Format::Json | Format::Env | Format::Shell => true,
        Format::JsonWithComments
        | Format::Yaml
        | Format::Toml
        | Format::Xml
        | Format::Ini
        | Format::Sql
        | Format::Hcl
        | Format::Dockerfile
        | Format::Python
        | Format::JavaScript
        | Format::TypeScript
        | Format::Tsx
        | Format::Rust
        | Format::Go
        | Format::C => false,
    }
}
