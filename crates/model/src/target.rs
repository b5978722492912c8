//! What an operation writes, and when two targets overlap.
//!
//! Leases and dependencies both ask the same question, *could these two writes touch the same thing?*,
//! so it is answered once, here.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::TargetPath;

/// How far below its path a write reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// The name itself: a file's bytes, a mode, a symbolic link.
    Node,
    /// The name and everything below it: a tree that is removed, moved, copied or newly made.
    Tree,
}

/// One thing that an operation writes. Kinds of target arrive with their drivers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Target {
    /// A name in the file system.
    Path {
        /// Where it is.
        path: TargetPath,
        /// How far below it the write reaches.
        reach: Reach,
    },
}

/// How two targets touch the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// They are the same name.
    Same,
    /// The first lies inside the tree of the second.
    Inside,
    /// The first is a tree that holds the second.
    Holds,
}

impl Target {
    /// Makes a target of one name.
    pub const fn node(path: TargetPath) -> Self {
        Self::Path {
            path,
            reach: Reach::Node,
        }
    }

    /// Makes a target of a whole tree.
    pub const fn tree(path: TargetPath) -> Self {
        Self::Path {
            path,
            reach: Reach::Tree,
        }
    }

    /// Gives the path.
    pub const fn path(&self) -> &TargetPath {
        match self {
            Self::Path { path, .. } => path,
        }
    }

    /// Gives the reach.
    pub const fn reach(&self) -> Reach {
        match self {
            Self::Path { reach, .. } => *reach,
        }
    }

    /// Tells how this target and `other` touch the same thing, if they do.
    pub fn overlap(&self, other: &Self) -> Option<Overlap> {
        if self.path() == other.path() {
            Some(Overlap::Same)
        } else if other.reach() == Reach::Tree && self.path().is_below(other.path()) {
            Some(Overlap::Inside)
        } else if self.reach() == Reach::Tree && other.path().is_below(self.path()) {
            Some(Overlap::Holds)
        } else {
            None
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(path: &str) -> Target {
        Target::node(TargetPath::new(path).unwrap())
    }

    fn tree(path: &str) -> Target {
        Target::tree(TargetPath::new(path).unwrap())
    }

    #[test]
    fn overlap_is_decided_by_reach() {
        assert_eq!(node("/a").overlap(&node("/a")), Some(Overlap::Same));
        assert_eq!(node("/a/b").overlap(&node("/a")), None);
        assert_eq!(node("/a/b").overlap(&tree("/a")), Some(Overlap::Inside));
        assert_eq!(tree("/a").overlap(&node("/a/b")), Some(Overlap::Holds));
        assert_eq!(tree("/a/b").overlap(&tree("/a")), Some(Overlap::Inside));
        assert_eq!(tree("/a").overlap(&tree("/ab")), None);
    }
}
