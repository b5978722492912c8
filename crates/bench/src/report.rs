//! The document that people read, `docs/benchmarks.md`: each kind of measurement rewrites its own section and no other.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::{Failure, root};

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    /// What was done.
    pub(crate) work: String,
    /// What was measured.
    pub(crate) measured: String,
    /// What the design promises.
    pub(crate) promise: String,
    /// Whether it was kept; none where nothing is promised.
    pub(crate) kept: Option<bool>,
}

/// All lines.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
}

const HEAD: &str = "\
Written by `cargo xtask bench`. Ratios come from interleaved runs on one machine; absolute times are only a hint, since
machines differ and are shared. *Bare* is what careful software does without us: write a temporary file, fsync, rename,
fsync the directory.

| work | measured | promise | kept |
| --- | --- | --- | --- |
";

impl Report {
    pub(crate) fn to_markdown(&self) -> String {
        let mut text = HEAD.to_owned();
        for row in &self.rows {
            let kept = match row.kept {
                Some(true) => "yes",
                Some(false) => "**no**",
                None => "",
            };
            // Writing to a string cannot fail.
            let _written = writeln!(
                text,
                "| {} | {} | {} | {kept} |",
                row.work, row.measured, row.promise
            );
        }
        text
    }
}

/// The sections, in the order of the document.
const SECTIONS: [(&str, &str); 6] = [
    ("promises", "What is promised"),
    ("commands", "Commands"),
    ("rows", "Rows"),
    ("race", "The race"),
    ("serve", "Many agents at one server"),
    ("long", "A long life"),
];

/// Replaces one section of the document.
pub(crate) fn write_section(name: &str, body: &str) -> Result<(), Failure> {
    let path = root().join("docs/benchmarks.md");
    let document = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, with_section(&document, name, body))?;
    Ok(())
}

/// The document with this section replaced, or added if it had none.
fn with_section(document: &str, name: &str, body: &str) -> String {
    let mut text = "# Benchmarks\n".to_owned();
    for (section, title) in SECTIONS {
        let kept = section_of(document, section);
        let body = if section == name {
            Some(body.trim())
        } else {
            kept
        };
        if let Some(body) = body {
            // Writing to a string cannot fail.
            let _written = write!(text, "\n## {title}\n\n{body}\n");
        }
    }
    text
}

/// What a section holds now, without its title.
fn section_of<'d>(document: &'d str, name: &str) -> Option<&'d str> {
    let (_, title) = SECTIONS.iter().find(|(section, _)| *section == name)?;
    let (_, rest) = document.split_once(&format!("\n## {title}\n"))?;
    let end = rest.find("\n## ").unwrap_or(rest.len());
    rest.get(..end).map(str::trim)
}

/// Says something to the person at the terminal.
pub(crate) fn say(text: &str) {
    let _written = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::{section_of, with_section};

    #[test]
    fn a_section_is_replaced_and_the_others_stay() {
        let first = with_section("", "race", "who won\n");
        let second = with_section(&first, "promises", "| kept |\n");
        assert!(
            second.starts_with("# Benchmarks\n\n## What is promised\n\n| kept |\n\n## The race\n")
        );
        let third = with_section(&second, "race", "somebody else");
        assert_eq!(section_of(&third, "race"), Some("somebody else"));
        assert_eq!(section_of(&third, "promises"), Some("| kept |"));
        assert_eq!(section_of(&third, "long"), None);
    }
}
