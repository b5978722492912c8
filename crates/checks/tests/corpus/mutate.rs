//! Ways to break a text. Each is a slip that people and programs make.

use backout_checks::syntax::Format;

/// What was done, and the text that came of it.
pub(crate) type Mutant = (&'static str, String);

/// Breaks a text in every way that it has room for.
pub(crate) fn all(format: Format, text: &str) -> Vec<Mutant> {
    let slips: [(&'static str, Option<String>); 9] = [
        (
            "a closing bracket is gone",
            without(text, &[')', ']', '}', '>']),
        ),
        (
            "an opening bracket is gone",
            without(text, &['(', '[', '{', '<']),
        ),
        ("a quote is gone", without(text, &['"', '\''])),
        ("a colon or a sign is gone", without(text, &[':', '='])),
        ("a comma or a semicolon is gone", without(text, &[',', ';'])),
        ("the text is cut in the middle", cut(text)),
        (
            "a closing bracket too many",
            Some(with_closer(format, text)),
        ),
        (
            "a line stands twice",
            with_line(text, |line| format!("{line}{line}")),
        ),
        (
            "a line is not indented",
            with_line(text, |line| line.trim_start_matches([' ', '\t']).to_owned()),
        ),
    ];
    slips
        .into_iter()
        .filter_map(|(what, mutant)| Some((what, mutant?)))
        .filter(|(_, mutant)| mutant != text)
        .collect()
}

/// Removes the middle one of all places with one of these characters.
fn without(text: &str, wanted: &[char]) -> Option<String> {
    let places: Vec<usize> = text.match_indices(wanted).map(|(at, _)| at).collect();
    let at = *places.get(places.len() / 2)?;
    Some(format!("{}{}", &text[..at], &text[at + 1..]))
}

fn cut(text: &str) -> Option<String> {
    let middle = text.floor_char_boundary(text.len() / 2);
    (middle > 0).then(|| text[..middle].to_owned())
}

/// Puts a bracket that closes nothing at the end of a line in the middle.
fn with_closer(format: Format, text: &str) -> String {
    let middle = text.floor_char_boundary(text.len() / 2);
    let at = middle + text[middle..].find('\n').unwrap_or(text.len() - middle);
    let closer = match format {
        Format::Xml => "</closer>",
        Format::Ini => "\n[closer",
        Format::Json
        | Format::JsonWithComments
        | Format::Yaml
        | Format::Toml
        | Format::Env
        | Format::Shell
        | Format::Sql
        | Format::Hcl
        | Format::Dockerfile
        | Format::Python
        | Format::JavaScript
        | Format::TypeScript
        | Format::Tsx
        | Format::Rust
        | Format::Go
        | Format::C => "}",
    };
    format!("{}{closer}{}", &text[..at], &text[at..])
}

/// Changes a line in the middle that has more than a bracket on it.
fn with_line(text: &str, change: impl Fn(&str) -> String) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let middle = lines.len() / 2;
    let wanted =
        |line: &&str| line.len() > 8 && line.ends_with('\n') && line.starts_with([' ', '\t', '"']);
    let index = middle + lines[middle..].iter().position(wanted)?;
    let line = change(lines[index]);
    Some(format!(
        "{}{line}{}",
        lines[..index].concat(),
        lines[index + 1..].concat()
    ))
}
