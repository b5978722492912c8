//! A member as it stood in its text: its bytes, the comment behind it, and between which others.
//!
//! A patch knows the bytes around a place. When those are not what they were, a slip still brings a member back with its own indent and
//! comment, to a place between the names that stood around it; and it tells whether somebody wrote a comment on the member since.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::lines;
use crate::tree::{Form, Kind, Node, Way};

/// How many names are kept on either side.
const NAMES_MAX: usize = 16;

/// A member as it stood. `Debug` does not show it, for it may be a secret.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Slip {
    /// Name and value.
    pub body: String,
    /// The blanks before it, if it begins its line.
    pub indent: Option<String>,
    /// The comment behind it, with the blanks before that.
    pub behind: String,
    /// Whether it stood in lines, not between brackets.
    pub in_lines: bool,
    /// The names before it, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<String>,
    /// The names behind it, the nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<String>,
    /// Its index, if it is an item of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<usize>,
}

impl fmt::Debug for Slip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slip({} bytes)", self.body.len())
    }
}

/// Where a member belongs among those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The index of the one before it.
    pub(crate) left: Option<usize>,
    /// Whether no other place would do as well.
    pub(crate) is_sure: bool,
}

impl Slip {
    /// The last member of a way; nothing if it does not stand in one place.
    pub(crate) fn of(document: &Document<'_>, way: &Way<'_>) -> Option<Self> {
        let (text, parent) = (document.text(), way.parent());
        let member = *way.members.last()?;
        let whole = member.whole?;
        let members = parent.members();
        let index = members.iter().position(|m| std::ptr::eq(m, member))?;
        let is_list = matches!(parent.kind, Kind::List(_));
        let names = |near: &mut dyn Iterator<Item = &crate::tree::Member>| -> Vec<String> {
            let names = near.take(NAMES_MAX).map(|m| m.name.to_string());
            names.filter(|_| !is_list).collect()
        };
        Some(Self {
            body: whole.of(text).to_owned(),
            indent: lines::begins_line(text, whole.start())
                .then(|| lines::indent(text, whole.start()).to_owned()),
            behind: document.dialect().behind(document, way),
            in_lines: parent.form != Form::Plain,
            above: names(&mut members.iter().take(index).rev()),
            below: names(&mut members.iter().skip(index + 1)),
            item: is_list.then_some(index),
        })
    }

    /// Keeps the comment only: the member itself stays.
    pub(crate) fn remark_only(self) -> Self {
        Self {
            behind: self.behind,
            in_lines: self.in_lines,
            body: String::new(),
            indent: None,
            above: Vec::new(),
            below: Vec::new(),
            item: None,
        }
    }

    /// Finds the place between the names that stood around it.
    pub(crate) fn spot(&self, parent: &Node) -> Spot {
        let members = parent.members();
        if let Some(item) = self.item {
            return Spot {
                left: item.min(members.len()).checked_sub(1),
                is_sure: item <= members.len(),
            };
        }
        let find = |names: &[String]| {
            let mut found = names.iter();
            found.find_map(|name| members.iter().position(|m| *m.name == **name))
        };
        let (left, right) = (find(&self.above), find(&self.below));
        // Where nothing is left of what stood on one side, the edge stands for it.
        let from = left.map_or(0, |left| left + 1);
        let to = right.unwrap_or(members.len());
        Spot {
            // One that came since mostly came behind the others.
            left: match (left, right) {
                (Some(left), _) => Some(left),
                (None, Some(right)) => right.checked_sub(1),
                (None, None) => members.len().checked_sub(1),
            },
            is_sure: from == to,
        }
    }
}
