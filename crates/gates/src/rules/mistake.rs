//! What is wrong with a `backout.toml`, and where.

use std::fmt;

use backout_checks::Place;
use serde::Serialize;
use toml_edit::{Item, TableLike, Value};

use super::spec::{FILE, Key, Kind, SEVERITIES, VALUE, VERSION};
use super::units;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// In words for people, with what would mend it.
    pub what: String,
    /// Where, if it is at one place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "{place}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Collects mistakes on a walk over a file.
#[derive(Debug)]
pub(crate) struct Mistakes<'t> {
    text: &'t str,
    pub(crate) found: Vec<Mistake>,
}

impl<'t> Mistakes<'t> {
    /// Begins with none.
    pub(crate) const fn new(text: &'t str) -> Self {
        let found = Vec::new();
        Self { text, found }
    }

    /// Notes one at a place of the text.
    pub(crate) fn note(&mut self, span: Option<std::ops::Range<usize>>, what: String) {
        let place = self.place_of(span);
        self.found.push(Mistake { what, place });
    }

    /// Gives the place of a part of the text.
    pub(crate) fn place_of(&self, span: Option<std::ops::Range<usize>>) -> Option<Place> {
        span.map(|span| Place::of(self.text, span.start))
    }

    /// Tells whether something within a part of the text is noted already.
    pub(crate) fn is_any_in(&self, span: Option<std::ops::Range<usize>>) -> bool {
        let Some(span) = span else {
            return false;
        };
        let (from, to) = (
            Place::of(self.text, span.start),
            Place::of(self.text, span.end),
        );
        let mut places = self.found.iter().filter_map(|mistake| mistake.place);
        places.any(|at| from <= at && at <= to)
    }

    /// Walks over a whole file. Says whether it is worth reading on: one of another version is not.
    pub(crate) fn look(&mut self, table: &dyn TableLike) -> bool {
        let newer = table.get("version").and_then(Item::as_integer);
        if let Some(version) = newer.filter(|version| *version > VERSION) {
            let span = table.get("version").and_then(Item::span);
            let what = format!(
                "the file is of version {version}, and this program reads version {VERSION}; update Backout"
            );
            self.note(span, what);
            return false;
        }
        self.table(table, FILE, "");
        true
    }

    fn table(&mut self, table: &dyn TableLike, keys: &[Key], prefix: &str) {
        for (name, item) in table.iter() {
            if let Some(key) = keys.iter().find(|key| key.name == name) {
                self.item(item, key.kind, &format!("{prefix}{name}"));
                continue;
            }
            let span = table.key(name).and_then(toml_edit::Key::span);
            let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
            let nearest = nearest(name, &names);
            self.note(
                span.or_else(|| item.span()),
                format!("`{prefix}{name}` is not known; {nearest}"),
            );
        }
    }

    fn item(&mut self, item: &Item, kind: Kind, name: &str) {
        match kind {
            Kind::Table(keys) => match item.as_table_like() {
                Some(table) => self.table(table, keys, &format!("{name}.")),
                None => self.wanted(item, name, "a table", &format!("[{name}]")),
            },
            Kind::Tables(keys) => self.tables(item, keys, name),
            Kind::BySeverity(keys) => self.by_severity(item, keys, name),
            Kind::Values => self.values(item, name),
            kind @ (Kind::Bool
            | Kind::Text
            | Kind::Time { .. }
            | Kind::Size
            | Kind::Count { .. }
            | Kind::Word(_)
            | Kind::Words(_)
            | Kind::Patterns
            | Kind::Command
            | Kind::Formats
            | Kind::Texts
            | Kind::Any) => {
                if let Err((what, example)) = plain(item, kind) {
                    self.wanted(item, name, &what, &example);
                }
            }
        }
    }

    fn tables(&mut self, item: &Item, keys: &[Key], name: &str) {
        if let Some(tables) = item.as_array_of_tables() {
            for table in tables {
                self.table(table, keys, &format!("{name}."));
            }
        } else if let Some(list) = item.as_array() {
            for value in list {
                match value.as_inline_table() {
                    Some(table) => self.table(table, keys, &format!("{name}.")),
                    None => self.note(value.span(), format!("`{name}` holds tables only")),
                }
            }
        } else {
            self.wanted(item, name, "a list of tables", &format!("[[{name}]]"));
        }
    }

    fn by_severity(&mut self, item: &Item, keys: &[Key], name: &str) {
        let Some(table) = item.as_table_like() else {
            return self.wanted(item, name, "a table", &format!("[{name}.high]"));
        };
        for (severity, item) in table.iter() {
            if !SEVERITIES.contains(&severity) {
                let span = table.key(severity).and_then(toml_edit::Key::span);
                let nearest = nearest(severity, SEVERITIES);
                self.note(span, format!("`{name}.{severity}` is not known; {nearest}"));
            } else if let Some(table) = item.as_table_like() {
                self.table(table, keys, &format!("{name}.{severity}."));
            } else {
                self.wanted(item, &format!("{name}.{severity}"), "a table", "");
            }
        }
    }

    fn values(&mut self, item: &Item, name: &str) {
        let Some(list) = item.as_array() else {
            let example = "[{ key = \"port\", min = 1 }]";
            return self.wanted(item, name, "a list of rules", example);
        };
        for value in list {
            let Some(table) = value.as_inline_table() else {
                self.note(value.span(), format!("`{name}` holds tables only"));
                continue;
            };
            if table.get("key").and_then(Value::as_str).is_none() {
                self.note(value.span(), format!("a rule in `{name}` needs a `key`"));
            }
            let names: Vec<&str> = VALUE.iter().map(|key| key.name).collect();
            for (word, item) in table {
                if !names.contains(&word) {
                    let nearest = nearest(word, &names);
                    self.note(
                        item.span(),
                        format!("`{name}.{word}` is not known; {nearest}"),
                    );
                } else if let Some(wanted) = wanted_of(word, item) {
                    self.note(item.span(), format!("`{name}.{word}` must be {wanted}"));
                }
            }
        }
    }

    fn wanted(&mut self, item: &Item, name: &str, what: &str, example: &str) {
        let like = if example.is_empty() {
            String::new()
        } else {
            format!(", like {example}")
        };
        self.note(item.span(), format!("`{name}` must be {what}{like}"));
    }
}

/// Says what a word of a rule about values wants, if it has something else.
fn wanted_of(word: &str, value: &Value) -> Option<&'static str> {
    let (is_good, wanted) = match word {
        "min" | "max" => (value.is_integer() || value.is_float(), "a number"),
        "required" | "exists" | "unique" => (value.is_bool(), "true or false"),
        "one-of" => (value.is_array(), "a list"),
        _ => (value.is_str(), "a text"),
    };
    (!is_good).then_some(wanted)
}

/// Checks what is no table. The error says what is wanted, with an example.
fn plain(item: &Item, kind: Kind) -> Result<(), (String, String)> {
    let wrong = |what: &str, example: &str| Err((what.to_owned(), example.to_owned()));
    let one_of = |words: &[&str]| {
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        quoted.join(", ")
    };
    match kind {
        Kind::Bool if item.as_bool().is_none() => wrong("true or false", ""),
        Kind::Text if item.as_str().is_none() => wrong("a text", "\"...\""),
        Kind::Time { never, nothing } => match item.as_str() {
            Some("never") if never => Ok(()),
            Some(text) if units::time(text).is_some_and(|it| nothing || !it.is_zero()) => Ok(()),
            Some(text) if units::time(text).is_some() => {
                wrong("more than nothing", "\"500ms\" or \"30s\"")
            }
            _ if never => wrong("a time, or \"never\"", "\"30s\", \"24h\" or \"7d\""),
            _ => wrong("a time", "\"500ms\", \"30s\" or \"1h\""),
        },
        Kind::Size if units::size_of(item).is_none() => wrong("a size", "\"10KB\" or \"1MiB\""),
        Kind::Count { min, max } => match item.as_integer() {
            Some(number) if (min..=max).contains(&number) => Ok(()),
            _ => wrong(&format!("a whole number from {min} to {max}"), ""),
        },
        Kind::Word(words) => match item.as_str() {
            Some(word) if words.contains(&word) => Ok(()),
            Some(word) => {
                let nearest = nearest(word, words);
                let more = if nearest.starts_with("known") {
                    format!(", not \"{word}\"")
                } else {
                    format!(": {nearest}")
                };
                Err((format!("one of {}{more}", one_of(words)), String::new()))
            }
            None => Err((format!("one of {}", one_of(words)), String::new())),
        },
        Kind::Words(words) => match texts(item) {
            Some(list) => match list.iter().find(|word| !words.contains(word)) {
                Some(word) => {
                    let nearest = nearest(word, words);
                    Err((
                        format!("a list of known names, and `{word}` is none: {nearest}"),
                        String::new(),
                    ))
                }
                None => Ok(()),
            },
            None => Err((
                "a list".to_owned(),
                format!("[\"{}\"]", words.first().unwrap_or(&"")),
            )),
        },
        Kind::Patterns if texts(item).is_none() => wrong("a list of patterns", "[\"secrets/**\"]"),
        Kind::Command => match texts(item) {
            Some(words) if words.first().is_some_and(|word| !word.is_empty()) => Ok(()),
            _ => wrong("a program and its arguments", "[\"nginx\", \"-t\"]"),
        },
        Kind::Formats => match item.as_table_like() {
            Some(table) if table.iter().all(|(_, item)| item.as_str().is_some()) => Ok(()),
            _ => wrong("a table of formats", "{ \"*.tmpl\" = \"yaml\" }"),
        },
        Kind::Texts => match item.as_table_like() {
            Some(table) if table.iter().all(|(_, item)| item.as_str().is_some()) => Ok(()),
            _ => wrong("a table of texts", "{ Accept = \"application/json\" }"),
        },
        Kind::Bool
        | Kind::Any
        | Kind::Text
        | Kind::Size
        | Kind::Patterns
        | Kind::Table(_)
        | Kind::Tables(_)
        | Kind::BySeverity(_)
        | Kind::Values => Ok(()),
    }
}

fn texts(item: &Item) -> Option<Vec<&str>> {
    let list = item.as_array()?;
    list.iter().map(Value::as_str).collect()
}

/// Says which name was probably meant; if none, all that there are.
pub(crate) fn nearest(name: &str, names: &[&str]) -> String {
    match backout_checks::nearest(name, names.iter().copied()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("known are {}", names.join(", ")),
    }
}
