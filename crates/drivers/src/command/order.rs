//! The order of changes: as if a careful hand had made them one by one.
//!
//! A directory comes before what comes to be in it and goes after what was in it has gone; a name is free before
//! something else takes it. Things that moved in a circle have no such order: they are given
//! back.

use std::collections::{BTreeSet, HashMap, VecDeque};

use backout_model::TargetPath;

use crate::file::recipe::Change;

/// Changes in order, and those that have none.
pub(crate) struct Ordered {
    pub(crate) sorted: Vec<Change>,
    /// Those that wait for each other.
    pub(crate) circular: Vec<Change>,
    /// Those that wait for them.
    pub(crate) behind: Vec<Change>,
}

/// Puts changes in order.
pub(crate) fn in_order(changes: Vec<Change>) -> Ordered {
    let graph = Graph::of(&changes);
    let all = graph.followers.clone();
    let order = graph.sorted();
    let mut slots: Vec<Option<Change>> = changes.into_iter().map(Some).collect();
    let mut take = |order: Vec<usize>| -> Vec<Change> {
        let taken = order.into_iter();
        taken
            .filter_map(|index| slots.get_mut(index).and_then(Option::take))
            .collect()
    };
    let behind = without_followers(&all, &order);
    let (sorted, behind) = (take(order), take(behind));
    Ordered {
        sorted,
        circular: slots.into_iter().flatten().collect(),
        behind,
    }
}

/// Finds, among those that have no order, the ones that nothing else among them waits for.
fn without_followers(followers: &[Vec<usize>], sorted: &[usize]) -> Vec<usize> {
    let mut open: BTreeSet<usize> = (0..followers.len()).collect();
    for index in sorted {
        open.remove(index);
    }
    let mut found = Vec::new();
    loop {
        let is_last = |index: &&usize| {
            let mut others = followers.get(**index).into_iter().flatten();
            !others.any(|other| open.contains(other))
        };
        let last: Vec<usize> = open.iter().filter(is_last).copied().collect();
        if last.is_empty() {
            // What must come first comes first.
            found.reverse();
            return found;
        }
        for index in &last {
            open.remove(index);
        }
        found.extend(last);
    }
}

/// Who must wait for whom.
struct Graph {
    waits_for: Vec<usize>,
    followers: Vec<Vec<usize>>,
}

impl Graph {
    fn of(changes: &[Change]) -> Self {
        let mut comes: HashMap<&TargetPath, usize> = HashMap::new();
        let mut leaves: HashMap<&TargetPath, usize> = HashMap::new();
        let mut goes: HashMap<&TargetPath, usize> = HashMap::new();
        for (index, change) in changes.iter().enumerate() {
            match change {
                Change::Set {
                    path,
                    before,
                    after,
                } => {
                    if after.is_directory() && !before.is_directory() {
                        comes.insert(path, index);
                    }
                    if before.is_directory() && !after.is_directory() {
                        goes.insert(path, index);
                    }
                }
                Change::Move { from, to, .. } => {
                    leaves.insert(from, index);
                    comes.insert(to, index);
                }
                Change::Retouch { .. } | Change::Rewrite { .. } => {}
            }
        }
        let mut graph = Self {
            waits_for: vec![0; changes.len()],
            followers: vec![Vec::new(); changes.len()],
        };
        for (index, change) in changes.iter().enumerate() {
            let (made, taken) = made_and_taken(change);
            if let Some(path) = made {
                // Its directory, and whoever has the name.
                let parent = path.parent();
                graph.after(index, parent.as_ref().and_then(|parent| comes.get(parent)));
                graph.after(index, leaves.get(path));
                graph.after(index, goes.get(path));
            }
            if let Some(path) = taken
                && let Some(parent) = path.parent()
                && let Some(directory) = goes.get(&parent)
            {
                graph.after(*directory, Some(&index));
            }
        }
        graph
    }

    /// Lets one change wait for another.
    fn after(&mut self, index: usize, other: Option<&usize>) {
        let Some(other) = other.filter(|other| **other != index) else {
            return;
        };
        if let (Some(waits), Some(followers)) = (
            self.waits_for.get_mut(index),
            self.followers.get_mut(*other),
        ) {
            *waits += 1;
            followers.push(index);
        }
    }

    fn sorted(mut self) -> Vec<usize> {
        let numbered = self.waits_for.iter().enumerate();
        let mut ready: VecDeque<usize> = numbered
            .filter(|(_, waits)| **waits == 0)
            .map(|(index, _)| index)
            .collect();
        let mut order = Vec::with_capacity(self.waits_for.len());
        while let Some(index) = ready.pop_front() {
            order.push(index);
            let followers = self.followers.get_mut(index).map(std::mem::take);
            for follower in followers.unwrap_or_default() {
                if let Some(waits) = self.waits_for.get_mut(follower) {
                    *waits -= 1;
                    if *waits == 0 {
                        ready.push_back(follower);
                    }
                }
            }
        }
        order
    }
}

/// Names what a change makes and what it takes away.
fn made_and_taken(change: &Change) -> (Option<&TargetPath>, Option<&TargetPath>) {
    match change {
        Change::Set {
            path,
            before,
            after,
        } => (
            (!after.is_absent()).then_some(path),
            (!(before.is_absent() || before.is_directory() && after.is_directory()))
                .then_some(path),
        ),
        Change::Move { from, to, .. } => (Some(to), Some(from)),
        Change::Retouch { .. } | Change::Rewrite { .. } => (None, None),
    }
}
