//! Rights without a limit: policies of AWS, roles of Kubernetes, bindings of Google Cloud, role definitions of Azure.
//!
//! They are found wherever they stand in a tree: as a document of its own, in a template of AWS, in Terraform's JSON, in a list of Kubernetes objects, or as
//! JSON in a text. What counts:
//!
//! - AWS: `Allow` with the action `*` or `service:*` on the resource `*`; `Allow` with `NotAction`; the principal `*` without a condition. A policy that
//!   sits on a resource and names its principals may say `*` of that resource: this is how policies of keys are written.
//! - Kubernetes: a rule of a (cluster) role with `*` for verbs and resources, or for groups and resources with verbs that change something; a binding of
//!   `cluster-admin`, or of anything to those who are not logged in.
//! - Google Cloud: members `allUsers` and `allAuthenticatedUsers`, the role of the owner.
//! - Azure: a role definition with the action `*`.

mod aws;
mod others;

use backout_config::Segment;

use crate::finding::Finding;
use crate::value::{FINDINGS_MAX, Format, Kind, Node, Tree, key_of};

/// How often JSON may stand in a text in JSON.
const NESTED_MAX: usize = 3;

/// Words without one of which nothing is found, but for `*`. Names of keys are read in any case.
const WORDS: [&[u8]; 4] = [
    b"allUsers",
    b"allAuthenticatedUsers",
    b"roles/owner",
    b"rbac.authorization.k8s.io",
];

/// Tells whether a text can hold anything that [`check`] finds. It is read to its end, and not parsed; what is escaped may be
/// anything.
pub fn may_be_in(text: &[u8]) -> bool {
    let is_name = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        // Most letters like it begin something else.
        if !matches!(rest.get(1), Some(b'o' | b'O')) {
            return false;
        }
        let begins = |word: &[u8]| {
            let head = rest.get(..word.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(word))
        };
        begins(b"NotAction") || begins(b"not_action")
    };
    // Other encodings have zeros.
    memchr::memchr3(b'*', b'\\', 0, text).is_some()
        || memchr::memchr2_iter(b'n', b'N', text).any(is_name)
        || WORDS
            .iter()
            .any(|word| memchr::memmem::find(text, word).is_some())
}

/// Finds rights without a limit.
pub fn check(tree: &Tree<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (mut way, root) in tree.documents() {
        walk(root, &mut way, 0, &mut found);
    }
    let told = |alarm: Alarm<'_>| {
        Finding::new(alarm.found)
            .at(tree.place_of(alarm.node))
            .of_key(key_of(&alarm.way))
            .mended_by(alarm.remedy)
    };
    found.into_iter().take(FINDINGS_MAX).map(told).collect()
}

/// A right without a limit, and the value that gives it.
struct Alarm<'n> {
    node: &'n Node,
    way: Vec<Segment>,
    found: String,
    remedy: &'static str,
}

/// Collects what is found in one table.
struct Alarms<'w, 'n> {
    way: &'w [Segment],
    found: Vec<Alarm<'n>>,
}

impl<'n> Alarms<'_, 'n> {
    /// Adds a finding about a value below the table, whose way from there is given by name.
    fn add(&mut self, name: &str, node: &'n Node, found: impl Into<String>, remedy: &'static str) {
        let mut way = self.way.to_vec();
        if !name.is_empty() {
            way.push(Segment::Name(name.to_owned()));
        }
        self.found.push(Alarm {
            node,
            way,
            found: found.into(),
            remedy,
        });
    }
}

fn walk<'n>(node: &'n Node, way: &mut Vec<Segment>, nested: usize, found: &mut Vec<Alarm<'n>>) {
    if found.len() >= FINDINGS_MAX {
        return;
    }
    match &node.kind {
        Kind::Map(members) => {
            let mut alarms = Alarms {
                way,
                found: Vec::new(),
            };
            aws::statement(node, &mut alarms);
            others::kubernetes(node, &mut alarms);
            others::google(node, &mut alarms);
            others::azure(node, &mut alarms);
            found.append(&mut alarms.found);
            for (name, member) in members {
                way.push(Segment::Name(name.to_string()));
                walk(member, way, nested, found);
                way.pop();
            }
        }
        Kind::List(items) => {
            for (index, item) in items.iter().enumerate() {
                way.push(Segment::Index(index));
                walk(item, way, nested, found);
                way.pop();
            }
        }
        Kind::Text(text) => embedded(node, text, way, nested, found),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
    }
}

/// A policy as JSON in a text. What is found is told of the text as a whole.
fn embedded<'n>(
    node: &'n Node,
    text: &str,
    way: &[Segment],
    nested: usize,
    found: &mut Vec<Alarm<'n>>,
) {
    let is_policy = text.trim_start().starts_with('{')
        && (text.contains("\"Statement\"") || text.contains("\"bindings\""));
    if !is_policy || nested == NESTED_MAX {
        return;
    }
    let Ok(tree) = Tree::read(Format::Json, text.as_bytes()) else {
        return;
    };
    for (mut inner, root) in tree.documents() {
        let mut alarms = Vec::new();
        walk(root, &mut inner, nested + 1, &mut alarms);
        found.extend(alarms.into_iter().map(|alarm| Alarm {
            node,
            way: way.to_vec(),
            found: alarm.found,
            remedy: alarm.remedy,
        }));
    }
}

/// The member of this name, whatever its case.
fn member<'n>(node: &'n Node, name: &str) -> Option<(&'n str, &'n Node)> {
    match &node.kind {
        Kind::Map(members) => members
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(known, node)| (&**known, node)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => None,
    }
}

/// The texts of a value that is one or a list of them.
fn texts(node: &Node) -> Vec<&str> {
    match &node.kind {
        Kind::Text(text) => vec![text],
        Kind::List(items) => items.iter().filter_map(Node::as_text).collect(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Map(_) => Vec::new(),
    }
}

/// The first text of a value that passes a test.
fn any(node: &Node, test: impl Fn(&str) -> bool) -> Option<&str> {
    texts(node).into_iter().find(|text| test(text))
}

#[cfg(test)]
mod tests;
