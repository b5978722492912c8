//! What a command asks others about before it touches it.

use std::path::PathBuf;

use backout_model::{Target, TargetPath};

/// What a call is about to touch for the first time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// The names.
    pub targets: Vec<Target>,
    /// Files among them that have other names, by device and number.
    pub numbers: Vec<(u64, u64)>,
}

impl Claim {
    /// Claims files that were open before.
    pub fn of_opened(paths: &[PathBuf]) -> Self {
        let targets = paths.iter().filter_map(|path| TargetPath::new(path).ok());
        Self {
            targets: targets.map(Target::node).collect(),
            numbers: Vec::new(),
        }
    }

    /// Tells whether nothing is claimed.
    pub const fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Tells whether two cannot be at work at the same moment.
    pub fn meets(&self, other: &Self) -> bool {
        let mut own = self.targets.iter();
        let is_theirs = |target: &Target| {
            let mut theirs = other.targets.iter();
            theirs.any(|other| target.overlap(other).is_some() || is_above(target, other))
        };
        let mut numbers = self.numbers.iter();
        own.any(is_theirs) || numbers.any(|number| other.numbers.contains(number))
    }
}

/// Tells whether one name lies below the other: a directory may be about to go, or to come to be.
fn is_above(one: &Target, other: &Target) -> bool {
    let both = one.file().zip(other.file());
    both.is_some_and(|(one, other)| one.is_below(other) || other.is_below(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(path: &str) -> Target {
        Target::node(TargetPath::new(path).unwrap())
    }

    fn claim(targets: &[Target]) -> Claim {
        Claim {
            targets: targets.to_vec(),
            numbers: Vec::new(),
        }
    }

    #[test]
    fn claims_meet_at_a_name_above_it_below_it_and_by_number() {
        let one = claim(&[node("/a/b"), node("/c")]);
        assert!(one.meets(&claim(&[node("/c")])));
        assert!(one.meets(&claim(&[node("/a")])));
        assert!(one.meets(&claim(&[node("/a/b/c")])));
        assert!(!one.meets(&claim(&[node("/a/bc")])));
        let linked = Claim {
            numbers: vec![(1, 2)],
            ..claim(&[node("/x")])
        };
        let other = Claim {
            numbers: vec![(1, 2)],
            ..claim(&[node("/y")])
        };
        assert!(linked.meets(&other) && !linked.meets(&one));
    }
}
