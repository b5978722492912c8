//! One table for each format: texts that must pass, and texts that must not, with the place and the sentence.

mod dockerfile;
mod env;
mod hcl;
mod ini;
mod json;
mod jsonc;
mod shell;
mod sql;
mod toml;
mod xml;
mod yaml;

#[cfg(feature = "code")]
mod c;
#[cfg(feature = "code")]
mod go;
#[cfg(feature = "code")]
mod javascript;
#[cfg(feature = "code")]
mod python;
#[cfg(feature = "code")]
mod rust_code;
#[cfg(feature = "code")]
mod tsx;
#[cfg(feature = "code")]
mod typescript;

use backout_checks::syntax::{Format, check};
use backout_checks::{Finding, Place};

/// A text with the line, the column and the words of its first finding.
type Bad = (&'static str, u32, u32, &'static str);

fn good(format: Format, texts: &[&str]) {
    for text in texts {
        assert_eq!(
            check(format, text.as_bytes()),
            Vec::<Finding>::new(),
            "{text:?}"
        );
    }
}

fn bad(format: Format, rows: &[Bad]) {
    for (text, line, column, found) in rows {
        let findings = check(format, text.as_bytes());
        let first = findings
            .first()
            .map(|finding| (finding.place, finding.found.as_str()));
        let place = Place {
            line: *line,
            column: *column,
        };
        assert_eq!(first, Some((Some(place), *found)), "{text:?}");
    }
}
