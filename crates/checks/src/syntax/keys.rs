//! The way to a key, written as `backout set` would name it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

/// One step on the way to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step<'t> {
    /// A name in a table.
    Name(Cow<'t, str>),
    /// A place in a list, from 0.
    Index(usize),
}

/// Writes the way.
pub(super) fn shown<'s, 't: 's>(steps: impl IntoIterator<Item = &'s Step<'t>>) -> String {
    let mut out = String::new();
    for step in steps {
        // Writing into a string cannot fail.
        let _ = match step {
            Step::Index(index) => write!(out, "[{index}]"),
            Step::Name(name) => {
                if !out.is_empty() {
                    out.push('.');
                }
                write!(out, "{}", name_shown(name))
            }
        };
    }
    out
}

/// A name, in quotes if it needs them.
fn name_shown(name: &str) -> Cow<'_, str> {
    let is_bare = |c: char| {
        c.is_ascii_alphanumeric()
            || "_-/@$+:*".contains(c)
            || (!c.is_ascii() && !c.is_whitespace() && !c.is_control() && c != '\u{feff}')
    };
    if !name.is_empty() && name.chars().all(is_bare) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(serde_json::Value::from(name).to_string())
    }
}

/// Up to this many names are looked through one by one, which is faster than a map of them.
const FEW: usize = 16;

/// The names of one table, with their places.
#[derive(Debug, Default)]
pub(super) struct Names<'t> {
    few: Vec<(Cow<'t, str>, usize)>,
    many: HashMap<Cow<'t, str>, usize>,
}

impl<'t> Names<'t> {
    /// Adds a name. Gives its place if it is there already.
    pub(super) fn add(&mut self, name: Cow<'t, str>, at: usize) -> Option<usize> {
        if !self.many.is_empty() {
            return self.many.insert(name, at);
        }
        let known = self.few.iter().find(|(known, _)| *known == name);
        if let Some((_, first)) = known {
            return Some(*first);
        }
        self.few.push((name, at));
        if self.few.len() > FEW {
            self.many.extend(self.few.drain(..));
        }
        None
    }
}
