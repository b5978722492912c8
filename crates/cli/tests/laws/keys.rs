//! Keys of small config files: how a story changes them, and how the oracle sees them.
//!
//! To the oracle each key is a name of its own, `k.toml:one`, beside the file, which is what is left without its keys. So one
//! law serves both: whoever writes a key answers for that name, whoever writes the file for all of them. A file that is no
//! config any more is one name, with all its text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use backout_drivers::config::{ConfigEdit, ConfigRequest, NewValue};
use backout_drivers::file::{Expect, FileRequest, Source};
use backout_model::ports::Request;

/// The files, and the keys that each may have.
pub(crate) const CONFIGS: [&str; 3] = ["k.toml", "k.json", "k.yaml"];
pub(crate) const KEYS: [&str; 3] = ["one", "two", "three"];

/// A change of a config file; `tag` makes its values unlike any other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyEdit {
    Set {
        at: &'static str,
        key: &'static str,
        tag: usize,
    },
    Unset {
        at: &'static str,
        key: &'static str,
    },
    /// The whole file is written.
    Whole {
        at: &'static str,
        tag: usize,
    },
    /// The whole file goes.
    Gone {
        at: &'static str,
    },
}

type Values = BTreeMap<String, usize>;

/// Writes a config file down.
fn written(at: &str, values: &Values) -> String {
    let lines = |sign: &str| {
        let lines = values
            .iter()
            .map(|(key, value)| format!("{key}{sign}{value}\n"));
        format!("# of a story\n\n{}", lines.collect::<String>())
    };
    match at {
        "k.toml" => lines(" = "),
        "k.yaml" => lines(": "),
        _ => serde_json::to_string_pretty(values).unwrap() + "\n",
    }
}

/// Reads the values of a config file; none if it is something else by now.
fn values(at: &str, text: &str) -> Option<Values> {
    let sign = match at {
        "k.toml" => " = ",
        "k.yaml" => ": ",
        _ => return serde_json::from_str(text).ok(),
    };
    let lines = text.lines().filter(|line| !line.is_empty());
    let lines = lines.filter(|line| *line != "# of a story");
    let pair = |line: &str| {
        let (key, value) = line.split_once(sign)?;
        Some((key.to_owned(), value.parse().ok()?))
    };
    lines.map(pair).collect()
}

/// Gives the content of each key; none if the file is no config, or not any more.
pub(crate) fn apart(name: &str, text: &str) -> Option<Vec<(String, String)>> {
    let is_config = CONFIGS.contains(&name);
    let values = is_config.then(|| values(name, text)).flatten()?;
    let each = values.into_iter();
    Some(
        each.map(|(key, value)| (format!("{name}:{key}"), value.to_string()))
            .collect(),
    )
}

/// Names every key that a config file may have.
pub(crate) fn all_keys(name: &str) -> Vec<String> {
    let is_config = CONFIGS.contains(&name);
    let keys = KEYS.iter().filter(|_| is_config);
    keys.map(|key| format!("{name}:{key}")).collect()
}

fn of_tag(tag: usize) -> Values {
    let keys = KEYS.iter().zip(0..);
    keys.map(|(key, place): (_, usize)| ((*key).to_owned(), 10 * tag + place))
        .collect()
}

/// Writes the files with which every story begins.
pub(crate) fn begin(root: &Path) {
    for (at, tag) in CONFIGS.iter().zip(9000..) {
        fs::write(root.join(at), written(at, &of_tag(tag))).unwrap();
    }
}

impl KeyEdit {
    pub(crate) fn request(self, root: &Path) -> Box<dyn Request> {
        let config = |at: &str, edit| {
            let path = root.join(at);
            let format = None;
            Box::new(ConfigRequest { path, format, edit })
        };
        match self {
            Self::Set { at, key, tag } => {
                let key = key.parse().unwrap();
                let value = NewValue::Plain((10 * tag).to_string());
                config(at, ConfigEdit::Set { key, value })
            }
            Self::Unset { at, key } => {
                let key = key.parse().unwrap();
                config(at, ConfigEdit::Unset { key })
            }
            Self::Whole { at, tag } => Box::new(FileRequest::Write {
                path: root.join(at),
                source: Source::Bytes(written(at, &of_tag(tag)).into_bytes()),
                expect: Expect::Anything,
                parents: false,
                mode: None,
            }),
            Self::Gone { at } => Box::new(FileRequest::Remove {
                path: root.join(at),
                recursive: false,
            }),
        }
    }

    /// Somebody does it, past everything; what does not work is left.
    pub(crate) fn by_somebody(self, root: &Path) {
        let change = |at: &str, change: &dyn Fn(&mut Values)| {
            let path = root.join(at);
            let text = fs::read_to_string(&path).ok();
            if let Some(mut values) = text.and_then(|text| values(at, &text)) {
                change(&mut values);
                fs::write(path, written(at, &values)).unwrap();
            }
        };
        match self {
            Self::Set { at, key, tag } => change(at, &|values| {
                values.insert(key.to_owned(), 10 * tag + 5);
            }),
            Self::Unset { at, key } => change(at, &|values| {
                values.remove(key);
            }),
            Self::Whole { at, tag } => {
                fs::write(root.join(at), written(at, &of_tag(tag + 1000))).unwrap();
            }
            Self::Gone { at } => drop(fs::remove_file(root.join(at))),
        }
    }
}
