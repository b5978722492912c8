//! Whether a text is what its format allows: the first look at whatever is to be written.
//!
//! - [`Format::of`] tells a format by name, ending and first line, and says nothing when in doubt.
//! - [`check`] reads the text and gives what is wrong. No finding means that a reader of this format can read it.
//! - Nothing is expanded, included or run. Every reader is bounded in size, depth and work, so that a hostile text
//!   costs little: what nests deeper or is larger than the limits below is a finding.
//! - A false alarm holds up good work. Where readers of a format differ, what one of them takes is taken here.
//!
//! Config formats are read to the letter. Source code is read by grammars that recover from errors (`code`), and what
//! a macro could make right is let pass.

mod cursor;
mod dockerfile;
mod env;
mod fault;
mod format;
mod hcl;
mod ini;
mod json;
mod keys;
mod shell;
mod sql;
mod text;
mod toml;
mod xml;
mod yaml;

#[cfg(feature = "code")]
mod code;

pub use format::{Format, UnknownFormat};

use crate::Finding;

/// The largest text that is read, in bytes.
pub const BYTES_MAX: usize = 64 << 20;
/// The same for source code, shell, SQL and TOML, whose readers need more time or memory.
pub const CODE_BYTES_MAX: usize = 16 << 20;
/// The deepest nesting that is read.
pub const DEPTH_MAX: usize = 256;
/// The most that is told of one text.
pub const FINDINGS_MAX: usize = 20;

/// Tells what is wrong with a text of this format. Nothing means that it is good.
pub fn check(format: Format, content: &[u8]) -> Vec<Finding> {
    if content.len() > bytes_max(format) {
        let size = content.len();
        let finding = Finding::new(format!("is too large to be checked ({size} bytes)"))
            .mended_by("check it by hand, or leave it out of the check");
        return vec![finding];
    }
    let text = match text::of(format, content) {
        Ok(text) => text,
        Err(finding) => return vec![finding],
    };
    let mut findings = match format {
        Format::Json => json::check(&text, json::Comments::Refused),
        Format::JsonWithComments => json::check(&text, json::Comments::Allowed),
        Format::Yaml => yaml::check(&text),
        Format::Toml => toml::check(&text),
        Format::Xml => xml::check(&text),
        Format::Ini => ini::check(&text),
        Format::Env => env::check(&text),
        Format::Shell => shell::check(&text),
        Format::Sql => sql::check(&text),
        Format::Hcl => hcl::check(&text),
        Format::Dockerfile => dockerfile::check(&text),
        Format::Python
        | Format::JavaScript
        | Format::TypeScript
        | Format::Tsx
        | Format::Rust
        | Format::Go
        | Format::C => of_code(format, &text),
    };
    findings.truncate(FINDINGS_MAX);
    findings
}

#[cfg(feature = "code")]
fn of_code(format: Format, text: &str) -> Vec<Finding> {
    code::check(format, text)
}

#[cfg(not(feature = "code"))]
fn of_code(format: Format, _text: &str) -> Vec<Finding> {
    let found =
        format!("cannot be checked: this program was built without the grammar of {format}");
    vec![Finding::new(found).mended_by("build it with the feature `code`")]
}

const fn bytes_max(format: Format) -> usize {
    match format {
        Format::Json
        | Format::JsonWithComments
        | Format::Yaml
        | Format::Xml
        | Format::Ini
        | Format::Env
        | Format::Hcl
        | Format::Dockerfile => BYTES_MAX,
        Format::Toml
        | Format::Shell
        | Format::Sql
        | Format::Python
        | Format::JavaScript
        | Format::TypeScript
        | Format::Tsx
        | Format::Rust
        | Format::Go
        | Format::C => CODE_BYTES_MAX,
    }
}
