//! The dependency graph: which operation was built on which, and why.
//!
//! An edge points from the later operation to the earlier one it depends on. An observed read *may* count: only if the plan
//! changes the bytes that were read. Whoever makes the plan has to look (`Permission::same_reads`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Operation, OperationId, Overlap, Target};

/// Why one operation depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DependencyReason {
    /// It wrote the same target again.
    SameTarget,
    /// It wrote inside a directory that the other made, moved or removed.
    InsideDirectory,
    /// It moved or removed a directory in which the other had written.
    HoldsTarget,
    /// It wrote a part of what the other had written as a whole.
    PartOfTarget,
    /// It wrote the whole of which the other had written a part.
    WholeOfTarget,
    /// The agent said so.
    Declared,
    /// It copied what the other had written.
    Copied,
    /// It was done by a command while that ran.
    Within,
    /// It read what the other had written.
    Read,
}

impl DependencyReason {
    /// Tells whether the dependency is one of targets that overlap.
    pub const fn is_of_targets(self) -> bool {
        match self {
            Self::SameTarget
            | Self::InsideDirectory
            | Self::HoldsTarget
            | Self::PartOfTarget
            | Self::WholeOfTarget => true,
            Self::Declared | Self::Copied | Self::Within | Self::Read => false,
        }
    }

    /// Gives the reason why a later write of `later` depends on an earlier write of `earlier`.
    pub fn between(later: &Target, earlier: &Target) -> Option<Self> {
        later.overlap(earlier).map(|overlap| match overlap {
            Overlap::Same => Self::SameTarget,
            Overlap::Inside => Self::InsideDirectory,
            Overlap::Holds => Self::HoldsTarget,
            Overlap::Part => Self::PartOfTarget,
            Overlap::Whole => Self::WholeOfTarget,
        })
    }
}

impl fmt::Display for DependencyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameTarget => "writes the same target",
            Self::InsideDirectory => "writes inside its directory",
            Self::HoldsTarget => "moves or removes its directory",
            Self::PartOfTarget => "writes a part of its target",
            Self::WholeOfTarget => "writes the whole of which it wrote a part",
            Self::Declared => "was declared to depend on it",
            Self::Copied => "copied what it wrote",
            Self::Within => "was done while it ran",
            Self::Read => "read what it wrote",
        })
    }
}

/// One edge: what an operation was built on, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dependency {
    /// The earlier operation.
    pub on: OperationId,
    /// What makes the later one depend on it.
    pub reason: DependencyReason,
}

/// The operations a plan has to know, by id, with their edges in both directions.
#[derive(Debug, Clone, Default)]
pub struct History {
    operations: BTreeMap<OperationId, Operation>,
    dependents: BTreeMap<OperationId, BTreeSet<(OperationId, DependencyReason)>>,
}

impl History {
    /// Gathers operations. An edge to an operation that is not among them is kept but leads nowhere.
    pub fn new(operations: impl IntoIterator<Item = Operation>) -> Self {
        let operations: BTreeMap<_, _> = operations.into_iter().map(|op| (op.id, op)).collect();
        let mut dependents: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for operation in operations.values() {
            for dependency in &operation.depends_on {
                let edge = (operation.id, dependency.reason);
                dependents.entry(dependency.on).or_default().insert(edge);
            }
        }
        Self {
            operations,
            dependents,
        }
    }

    /// Finds an operation.
    pub fn get(&self, id: OperationId) -> Option<&Operation> {
        self.operations.get(&id)
    }

    /// Lists all operations, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.operations.values()
    }

    /// Lists what was built directly on `id`.
    pub fn dependents(
        &self,
        id: OperationId,
    ) -> impl Iterator<Item = (&Operation, DependencyReason)> {
        let edges = self.dependents.get(&id).into_iter().flatten();
        edges.filter_map(|(from, reason)| Some((self.operations.get(from)?, *reason)))
    }

    /// Lists what `id` was directly built on.
    pub fn dependencies(
        &self,
        id: OperationId,
    ) -> impl Iterator<Item = (&Operation, DependencyReason)> {
        let edges = self
            .operations
            .get(&id)
            .into_iter()
            .flat_map(|op| &op.depends_on);
        edges.filter_map(|edge| Some((self.operations.get(&edge.on)?, edge.reason)))
    }
}
