//! The table that people read.

use std::fmt::Write as _;
use std::io::Write as _;

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

const HEAD: &str = "# Benchmarks

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

/// Says something to the person at the terminal.
pub(crate) fn say(text: &str) {
    let _written = writeln!(std::io::stderr(), "{text}");
}
