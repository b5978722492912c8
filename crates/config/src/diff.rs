//! The keys in which two texts differ.

use crate::change::KeyChange;
use crate::document::Document;
use crate::error::ConfigError;
use crate::format::Format;
use crate::key::{KeyPath, Segment};
use crate::tree::{Kind, Member, Node, Way};

/// Tells which keys differ in what they mean. A list of another length differs as a whole.
pub fn diff(format: Format, before: &str, after: &str) -> Result<Vec<KeyChange>, ConfigError> {
    let before = Document::parse(format, before)?;
    let after = Document::parse(format, after)?;
    // Both must have each key once, or a key would not say which.
    before.keys()?;
    after.keys()?;
    let mut differ = Differ {
        before: &before,
        after: &after,
        changes: Vec::new(),
    };
    let (one, two) = (side(before.root()), side(after.root()));
    differ.compare(&KeyPath::default(), Some(one), Some(two));
    Ok(differ.changes)
}

struct Differ<'d, 't> {
    before: &'d Document<'t>,
    after: &'d Document<'t>,
    changes: Vec<KeyChange>,
}

/// A value, and the member that holds it unless it is the root.
#[derive(Clone, Copy)]
struct Side<'d> {
    node: &'d Node,
    member: Option<&'d Member>,
}

fn side(node: &Node) -> Side<'_> {
    Side { node, member: None }
}

fn of(member: &Member) -> Side<'_> {
    Side {
        node: &member.node,
        member: Some(member),
    }
}

impl<'d> Differ<'d, '_> {
    fn compare(&mut self, key: &KeyPath, one: Option<Side<'d>>, two: Option<Side<'d>>) {
        let kinds = (
            one.map(|side| &side.node.kind),
            two.map(|side| &side.node.kind),
        );
        match kinds {
            (Some(Kind::Map(x)), Some(Kind::Map(y))) => self.tables(key, x, y),
            (Some(Kind::Map(x)), None) if !x.is_empty() => self.tables(key, x, &[]),
            (None, Some(Kind::Map(y))) if !y.is_empty() => self.tables(key, &[], y),
            (Some(Kind::List(x)), Some(Kind::List(y))) if x.len() == y.len() => {
                for (index, (x, y)) in x.iter().zip(y).enumerate() {
                    self.compare(&key.child(Segment::Index(index)), Some(of(x)), Some(of(y)));
                }
            }
            _ => self.leaf(key, one, two),
        }
    }

    fn tables(&mut self, key: &KeyPath, x: &'d [Member], y: &'d [Member]) {
        let index = |members: &'d [Member]| -> std::collections::HashMap<&'d str, &'d Member> {
            members
                .iter()
                .map(|member| (&*member.name, member))
                .collect()
        };
        let (in_x, in_y) = (index(x), index(y));
        for member in x {
            let key = key.child(Segment::Name(member.name.to_string()));
            let other = in_y.get(&*member.name).map(|member| of(member));
            self.compare(&key, Some(of(member)), other);
        }
        for member in y.iter().filter(|member| !in_x.contains_key(&*member.name)) {
            let key = key.child(Segment::Name(member.name.to_string()));
            self.compare(&key, None, Some(of(member)));
        }
    }

    fn leaf(&mut self, key: &KeyPath, one: Option<Side<'d>>, two: Option<Side<'d>>) {
        let before = one.map(|side| self.before.piece(&way(self.before, side)));
        let after = two.map(|side| self.after.piece(&way(self.after, side)));
        let same = match (&before, &after) {
            (Some(before), Some(after)) => before.value.means(&after.value),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !same {
            self.changes.push(KeyChange {
                key: key.clone(),
                witnesses: crate::change::witnesses(self.before, key),
                before,
                after,
                patch: None,
                slip: None,
                made: 0,
                hollow: false,
            });
        }
    }
}

fn way<'d>(document: &'d Document<'_>, side: Side<'d>) -> Way<'d> {
    Way {
        root: if side.member.is_some() {
            document.root()
        } else {
            side.node
        },
        members: side.member.into_iter().collect(),
    }
}
