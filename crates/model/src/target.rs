//! What an operation writes, and when two targets overlap.
//!
//! Leases and dependencies both ask the same question, *could these two writes touch the same thing?*,
//! so it is answered once, here.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Below, Key, KeyError, TargetPath};

/// How far below its key a write reaches. Parts are always within reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// The thing itself: a file's bytes, a mode, a symbolic link, a row.
    Node,
    /// It and everything below it: a tree that is removed, moved, copied or newly made.
    Tree,
}

/// One thing that an operation writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Target {
    key: Key,
    reach: Reach,
}

/// How two targets touch the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// They are the same.
    Same,
    /// The first lies inside the tree of the second.
    Inside,
    /// The first is a tree that holds the second.
    Holds,
    /// The first is a part of the second.
    Part,
    /// The second is a part of the first.
    Whole,
}

impl Target {
    /// Makes a target.
    pub const fn new(key: Key, reach: Reach) -> Self {
        Self { key, reach }
    }

    /// Makes a target of one name in the file system.
    pub fn node(path: TargetPath) -> Self {
        Self::new(path.into(), Reach::Node)
    }

    /// Makes a target of a whole tree in the file system.
    pub fn tree(path: TargetPath) -> Self {
        Self::new(path.into(), Reach::Tree)
    }

    /// Tells where it is.
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// Gives the file that it is or lies in; none if it is not in the file system.
    pub const fn file(&self) -> Option<&TargetPath> {
        self.key.file()
    }

    /// Gives the reach.
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// Tells how this target and `other` touch the same thing, if they do.
    pub fn overlap(&self, other: &Self) -> Option<Overlap> {
        if self.key == other.key {
            return Some(Overlap::Same);
        }
        let inside = |inner: &Self, outer: &Self| match inner.key.below(&outer.key)? {
            Below::Name if outer.reach == Reach::Node => None,
            below @ (Below::Name | Below::Part) => Some(below),
        };
        match (inside(self, other), inside(other, self)) {
            (Some(Below::Name), _) => Some(Overlap::Inside),
            (Some(Below::Part), _) => Some(Overlap::Part),
            (None, Some(Below::Name)) => Some(Overlap::Holds),
            (None, Some(Below::Part)) => Some(Overlap::Whole),
            (None, None) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

impl From<Target> for Key {
    fn from(target: Target) -> Self {
        target.key
    }
}

impl From<Key> for Target {
    fn from(key: Key) -> Self {
        Self::new(key, Reach::Tree)
    }
}

/// A target in JSON. A plain file is as it always was.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Wire {
    /// In the file system.
    Path {
        path: TargetPath,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<String>,
        reach: Reach,
    },
    /// In another space.
    Key {
        space: String,
        names: Vec<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<String>,
        reach: Reach,
    },
}

impl From<Target> for Wire {
    fn from(target: Target) -> Self {
        let Target { key, reach } = target;
        let parts = key.parts().to_vec();
        match (key.file(), key.space()) {
            (Some(path), _) => Self::Path {
                path: path.clone(),
                parts,
                reach,
            },
            (None, space) => Self::Key {
                space: space.unwrap_or_default().to_owned(),
                names: key.names().to_vec(),
                parts,
                reach,
            },
        }
    }
}

impl TryFrom<Wire> for Target {
    type Error = KeyError;

    fn try_from(wire: Wire) -> Result<Self, KeyError> {
        let (key, parts, reach) = match wire {
            Wire::Path { path, parts, reach } => (Key::from(path), parts, reach),
            Wire::Key {
                space,
                names,
                parts,
                reach,
            } => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                (Key::in_space(&space, &names)?, parts, reach)
            }
        };
        let key = parts.iter().try_fold(key, |key, part| key.part(part))?;
        Ok(Self::new(key, reach))
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

    fn part(path: &str, parts: &[&str]) -> Target {
        let key = Key::from(TargetPath::new(path).unwrap());
        let key = parts.iter().fold(key, |key, part| key.part(part).unwrap());
        Target::new(key, Reach::Node)
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

    #[test]
    fn a_part_and_its_whole_see_each_other() {
        let port = part("/a/b", &["server", "port"]);
        assert_eq!(port.overlap(&node("/a/b")), Some(Overlap::Part));
        assert_eq!(node("/a/b").overlap(&port), Some(Overlap::Whole));
        assert_eq!(
            part("/a/b", &["server"]).overlap(&port),
            Some(Overlap::Whole)
        );
        assert_eq!(port.overlap(&part("/a/b", &["server", "host"])), None);
        assert_eq!(port.overlap(&node("/a")), None);
        assert_eq!(port.overlap(&tree("/a")), Some(Overlap::Inside));
        assert_eq!(tree("/").overlap(&port), Some(Overlap::Holds));
    }

    #[test]
    fn a_plain_file_is_told_as_it_always_was() {
        let told = serde_json::to_string(&node("/a/b")).unwrap();
        assert_eq!(told, r#"{"kind":"path","path":"/a/b","reach":"node"}"#);
        let row = Key::in_space("db:shop", &["public", "orders"]).unwrap();
        let row = Target::new(row.part("7").unwrap(), Reach::Node);
        for target in [tree("/a"), part("/a/b", &["x", "y.z"]), row] {
            let told = serde_json::to_string(&target).unwrap();
            assert_eq!(serde_json::from_str::<Target>(&told).unwrap(), target);
        }
        let nowhere = r#"{"kind":"key","space":"","names":[],"reach":"node"}"#;
        assert!(serde_json::from_str::<Target>(nowhere).is_err());
    }
}
