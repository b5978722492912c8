//! The second look: reads an edited text and compares it with the one before.
//!
//! Invariant: no text leaves this crate in which another key than the edited one reads differently.

use crate::dialect::Edit;
use crate::document::Document;
use crate::error::ConfigError;
use crate::key::{KeyPath, Segment};
use crate::tree::{Kind, Member, Node};
use crate::value::Value;

/// What the key must be afterwards.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Want<'v> {
    Absent,
    Present,
    Means(&'v Value),
}

/// Carries out an edit, reads the new text, and gives it away only if the key is as wanted and nothing else changed.
pub(crate) fn checked<R>(
    document: &Document<'_>,
    key: &KeyPath,
    edit: &Edit,
    want: Want<'_>,
    then: impl FnOnce(&Document<'_>) -> Result<R, ConfigError>,
) -> Result<(String, R), ConfigError> {
    let text = edit.applied(document.text());
    let disturbs = || ConfigError::Disturbs { key: key.clone() };
    let now = Document::parse(document.format(), &text).map_err(|error| {
        if matches!(error, ConfigError::OverLimit { .. }) {
            error
        } else {
            disturbs()
        }
    })?;
    let same = same_but(document, document.root(), &now, now.root(), key.segments());
    let found = now.get(key).ok().flatten().map(|found| found.value);
    let right = match (want, &found) {
        (Want::Absent, _) => {
            found.is_none() || matches!(key.segments().last(), Some(Segment::Index(_)))
        }
        (Want::Present, found) => found.is_some(),
        (Want::Means(wanted), Some(found)) => wanted.means(found),
        (Want::Means(_), None) => false,
    };
    if !same || !right {
        return Err(disturbs());
    }
    let result = then(&now)?;
    Ok((text, result))
}

/// Whether two values read the same, text for text.
fn same(one: &Document<'_>, a: &Node, two: &Document<'_>, b: &Node) -> bool {
    match (&a.kind, &b.kind) {
        (Kind::Scalar(x), Kind::Scalar(y)) => {
            x == y && a.span.of(one.text()) == b.span.of(two.text())
        }
        (Kind::Alias, Kind::Alias) => a.span.of(one.text()) == b.span.of(two.text()),
        (Kind::List(x), Kind::List(y)) => {
            x.len() == y.len()
                && x.iter()
                    .zip(y)
                    .all(|(x, y)| same(one, &x.node, two, &y.node))
        }
        (Kind::Map(x), Kind::Map(y)) => {
            same_members(one, x.iter().collect(), two, y.iter().collect())
        }
        (Kind::Scalar(_) | Kind::Alias | Kind::List(_) | Kind::Map(_), _) => false,
    }
}

/// Compares members by name; those of the same name in their order.
fn same_members(
    one: &Document<'_>,
    mut x: Vec<&Member>,
    two: &Document<'_>,
    mut y: Vec<&Member>,
) -> bool {
    x.sort_by(|a, b| a.name.cmp(&b.name));
    y.sort_by(|a, b| a.name.cmp(&b.name));
    x.len() == y.len()
        && x.iter()
            .zip(&y)
            .all(|(a, b)| a.name == b.name && same(one, &a.node, two, &b.node))
}

/// Whether two values read the same but for one key below them.
fn same_but(one: &Document<'_>, a: &Node, two: &Document<'_>, b: &Node, key: &[Segment]) -> bool {
    let Some((segment, below)) = key.split_first() else {
        return true;
    };
    match (segment, &a.kind, &b.kind) {
        (Segment::Name(name), Kind::Map(x), Kind::Map(y)) => {
            let part = |members: &'_ [Member], on: bool| -> Vec<usize> {
                let bears = |i: &usize| members.get(*i).is_some_and(|m| *m.name == **name);
                (0..members.len()).filter(|i| bears(i) == on).collect()
            };
            let (off_x, off_y) = (refs(x, &part(x, false)), refs(y, &part(y, false)));
            let (on_x, on_y) = (refs(x, &part(x, true)), refs(y, &part(y, true)));
            same_members(one, off_x, two, off_y) && same_on_way(one, &on_x, two, &on_y, below)
        }
        (Segment::Index(index), Kind::List(x), Kind::List(y)) => {
            if x.len() == y.len() {
                let mut pairs = x.iter().zip(y).enumerate();
                return pairs.all(|(i, (x, y))| {
                    if i == *index {
                        same_but(one, &x.node, two, &y.node, below)
                    } else {
                        same(one, &x.node, two, &y.node)
                    }
                });
            }
            let without = |items: &[Member], longer: bool| -> Vec<usize> {
                (0..items.len()).filter(|i| !longer || i != index).collect()
            };
            let (keep_x, keep_y) = (without(x, x.len() > y.len()), without(y, y.len() > x.len()));
            let (x, y) = (refs(x, &keep_x), refs(y, &keep_y));
            x.len() == y.len()
                && x.iter()
                    .zip(&y)
                    .all(|(x, y)| same(one, &x.node, two, &y.node))
        }
        _ => (a.is_absent() && is_chain(b, key)) || (b.is_absent() && is_chain(a, key)),
    }
}

fn refs<'m>(members: &'m [Member], which: &[usize]) -> Vec<&'m Member> {
    which.iter().filter_map(|i| members.get(*i)).collect()
}

/// The members that bear the next name of the key.
fn same_on_way(
    one: &Document<'_>,
    x: &[&Member],
    two: &Document<'_>,
    y: &[&Member],
    below: &[Segment],
) -> bool {
    match (x, y) {
        ([], []) => true,
        ([x], [y]) => same_but(one, &x.node, two, &y.node, below),
        ([member], []) | ([], [member]) => is_chain(&member.node, below),
        // Sections of the same name: one of them may differ, at the key.
        (x, y) if x.len() == y.len() => {
            let pairs = || x.iter().zip(y);
            let changed = pairs().filter(|(x, y)| !same(one, &x.node, two, &y.node));
            changed.count() <= 1
                && pairs().all(|(x, y)| same_but(one, &x.node, two, &y.node, below))
        }
        _ => false,
    }
}

/// Whether a value holds nothing but the way to the key.
pub(crate) fn is_chain(node: &Node, key: &[Segment]) -> bool {
    match (key.split_first(), node.members()) {
        (None, _) => true,
        (Some((Segment::Name(name), below)), [member]) => {
            *member.name == **name && is_chain(&member.node, below)
        }
        (Some((Segment::Index(0) | Segment::Append, below)), [item]) => is_chain(&item.node, below),
        (Some(_), _) => false,
    }
}
