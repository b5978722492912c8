//! The rules of one `backout.toml`, read and checked.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml_edit::{Document, Item, TableLike};

use crate::patterns::{Patterns, Roots};

/// How long a proposal waits unless somebody says otherwise.
const EXPIRES: Duration = Duration::from_hours(24);

/// The rules of one file, about paths.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The file that they are in.
    pub(crate) file: PathBuf,
    deny: Patterns,
    ask: Patterns,
    /// How long a proposal waits; none for ever.
    pub(crate) expires: Option<Duration>,
}

/// What is wrong with a file of rules, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// What is wrong.
    pub(crate) what: String,
    /// Line and column, from 1, if it is at one place.
    pub(crate) at: Option<(usize, usize)>,
}

impl Rules {
    /// Reads the rules of a file.
    pub(crate) fn read(file: &Path, text: &str, roots: &Roots<'_>) -> Result<Self, Wrong> {
        let document: Document<String> = text.parse().map_err(|error: toml_edit::TomlError| {
            let at = error.span().map(|span| place_of(text, span.start));
            let what = error.message().to_owned();
            Wrong { what, at }
        })?;
        let wrong = |item: &Item, what: String| Wrong {
            what,
            at: item.span().map(|span| place_of(text, span.start)),
        };
        let mut rules = Self {
            file: file.to_owned(),
            deny: Patterns::default(),
            ask: Patterns::default(),
            expires: Some(EXPIRES),
        };
        for (name, item) in document.as_table() {
            if name != "protect" {
                return Err(wrong(item, format!("`{name}` is not known; `protect` is")));
            }
            let not_table = || wrong(item, "`protect` must be a table".to_owned());
            let table: &dyn TableLike = item.as_table_like().ok_or_else(not_table)?;
            for (key, value) in table.iter() {
                let failed = |what| wrong(value, what);
                match key {
                    "deny" => rules.deny = patterns(value, roots).map_err(failed)?,
                    "ask" => rules.ask = patterns(value, roots).map_err(failed)?,
                    "expires" => rules.expires = duration(value).map_err(failed)?,
                    _ => {
                        let known = "`deny`, `ask` and `expires` are";
                        return Err(failed(format!("`protect.{key}` is not known; {known}")));
                    }
                }
            }
        }
        Ok(rules)
    }

    /// Gives the pattern by which nobody may write a path.
    pub(crate) fn denies(&self, path: &Path) -> Option<&str> {
        self.deny.matched(path)
    }

    /// Gives the pattern by which somebody must approve a write of a path.
    pub(crate) fn asks(&self, path: &Path) -> Option<&str> {
        self.ask.matched(path)
    }

    /// Gives the path that a rule names, of which this file is another name.
    pub(crate) fn other_name(&self, file: &std::fs::Metadata) -> Option<&Path> {
        let named = self.deny.named().chain(self.ask.named());
        named
            .filter(|path| path.symlink_metadata().is_ok_and(|it| is_same(&it, file)))
            .find(|path| self.denies(path).is_some() || self.asks(path).is_some())
    }
}

fn patterns(item: &Item, roots: &Roots<'_>) -> Result<Patterns, String> {
    let not_list = || "a list of patterns is wanted, like [\"secrets/**\"]".to_owned();
    let list = item.as_array().ok_or_else(not_list)?;
    let texts = list.iter().map(|value| value.as_str().map(str::to_owned));
    let written: Vec<String> = texts.collect::<Option<_>>().ok_or_else(not_list)?;
    Patterns::new(&written, roots)
}

fn is_same(one: &std::fs::Metadata, other: &std::fs::Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn duration(item: &Item) -> Result<Option<Duration>, String> {
    let wanted = || "a time is wanted, like \"30m\", \"24h\" or \"7d\", or \"never\"".to_owned();
    let text = item.as_str().ok_or_else(wanted)?;
    if text == "never" {
        return Ok(None);
    }
    let span: jiff::Span = text.parse().map_err(|_| wanted())?;
    let days = jiff::SpanRelativeTo::days_are_24_hours();
    let found = span.to_duration(days).map_err(|_| wanted())?;
    Duration::try_from(found).map(Some).map_err(|_| wanted())
}

/// Gives line and column of a place in a text, both from 1.
fn place_of(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Rules, Wrong> {
        let roots = Roots {
            base: Path::new("/p"),
            home: Some(Path::new("/home/u")),
            is_own: false,
        };
        Rules::read(Path::new("/p/backout.toml"), text, &roots)
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, what, at) in [
            ("[protect]\ndeny = 'x'", "a list of patterns", (2, 8)),
            ("[protect]\ndeny = [1]", "a list of patterns", (2, 8)),
            (
                "[protect]\n  dny = []",
                "`protect.dny` is not known",
                (2, 9),
            ),
            ("[other]\n", "`other` is not known", (1, 1)),
            ("protect = 1", "must be a table", (1, 11)),
            ("[protect]\nexpires = 'soon'", "a time is wanted", (2, 11)),
            ("[protect]\nexpires = '-1h'", "a time is wanted", (2, 11)),
            (
                "[protect]\ndeny = ['a[']",
                "unclosed character class",
                (2, 8),
            ),
            ("[protect]\ndeny = ['']", "must not be empty", (2, 8)),
            ("[protect]\ndeny = ['../q']", "can match nothing", (2, 8)),
            ("[protect\n", "", (1, 9)),
        ] {
            let wrong = read(text).unwrap_err();
            assert!(wrong.what.contains(what), "{text}: {wrong:?}");
            assert_eq!(wrong.at, Some(at), "{text}");
        }
    }

    #[test]
    fn a_time_is_a_day_unless_somebody_says_otherwise() {
        assert_eq!(read("").unwrap().expires, Some(EXPIRES));
        let rules = read("[protect]\nexpires = '7d'").unwrap();
        assert_eq!(rules.expires, Some(7 * EXPIRES));
        let rules = read("[protect]\nexpires = 'never'").unwrap();
        assert_eq!(rules.expires, None);
    }
}
