//! Bringing back what the graph was: as new versions, and without touching what tells of the past.
//!
//! What happened, was decided and said (traces, confirmations, dialogs) stays as it is. So does a node that such a one tells of, although it was not there
//! then: it is told as kept.

use std::collections::BTreeSet;

use backout_model::Lsn;

use super::change::Draft;
use super::{Graph, Refusal, Update};
use crate::NodeKind;

/// What brings a graph back.
#[derive(Debug, Clone)]
pub struct Restored {
    /// It makes new versions and removes none.
    pub update: Update,
    /// Nodes that were not there then, and stay because something that stays tells of them.
    pub kept: Vec<String>,
}

impl Graph {
    /// Decides what makes this graph what it was at another place of the journal. Terminal nodes may change here: each gets a new version.
    pub fn restored_to(&self, then: &Self, place: Lsn) -> Result<Restored, Refusal> {
        let mut draft = Draft {
            before: self,
            after: self.clone(),
            touched: BTreeSet::new(),
            notes: Vec::new(),
            restores: Some(place),
        };
        let told_of = self.told_of();
        let mut kept = Vec::new();
        for (id, node, _) in self.objects() {
            if node.kind.is_history() || then.object(id).is_some() {
                continue;
            }
            if told_of.contains(id) {
                kept.push(id.to_owned());
                continue;
            }
            draft.write(id, node.kind, None);
        }
        for (id, node, object) in then.objects() {
            if node.kind.is_history() || self.object(id).is_some_and(|(_, now)| now == object) {
                continue;
            }
            draft.write(id, node.kind, Some(object.clone()));
        }
        let sources: BTreeSet<&String> = self.produced.keys().chain(then.produced.keys()).collect();
        for from in sources {
            let to = then.produced.get(from).map(|it| it.to.clone());
            let to = to.unwrap_or_default();
            let is_there = |id: &String| draft.after.kind_of(id).is_some();
            let to: Vec<String> = to.into_iter().filter(is_there).collect();
            draft.produce(from.clone(), to);
        }
        draft.after.check_edges()?;
        let written = draft.written();
        Ok(Restored {
            update: draft.counted(written),
            kept,
        })
    }

    /// Gives the nodes that a trace, a confirmation or a dialog names, and what those belong to.
    fn told_of(&self) -> BTreeSet<String> {
        let edges = self.edges();
        let is_history = |id: &str| self.kind_of(id).is_some_and(NodeKind::is_history);
        let mut named: BTreeSet<String> = BTreeSet::new();
        let mut open: Vec<&str> = edges
            .iter()
            .filter(|edge| is_history(&edge.from))
            .map(|edge| edge.to.as_str())
            .collect();
        let mut from: std::collections::BTreeMap<&str, Vec<&str>> =
            std::collections::BTreeMap::new();
        for edge in &edges {
            from.entry(&edge.from).or_default().push(&edge.to);
        }
        while let Some(id) = open.pop() {
            if named.insert(id.to_owned()) {
                open.extend(from.get(id).into_iter().flatten());
            }
        }
        named
    }
}
