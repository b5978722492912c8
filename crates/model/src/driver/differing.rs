//! What is not as an effect left it, whatever an undo would make of that.

use super::{Examined, State, ValueChange};
use crate::drift::DriftKind;
use crate::{Digest, Key, Target, TargetPath, Timestamp};

/// What an effect tells of a target that is about to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// What it is, its bytes and its looks.
    Whole,
    /// Its mode, owner or attributes, and nothing else.
    Looks,
    /// What is in a directory, as one: nobody has a list.
    Tree,
    /// Which directory it is, whatever is in it.
    Which,
    /// That it is not there: it lies in a directory that the effect made, and is not the effect's.
    Stranger,
}

/// What is to be compared of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// It need not be looked at.
    Nothing,
    /// All that the effect tells.
    All,
    /// All but mode, owner and attributes.
    NotLooks,
}

/// What somebody who looks for differences wants to know.
#[derive(Clone, Copy)]
pub struct Looking<'l> {
    /// Says what is to be compared of a target, by the name that it has now. It is asked before anything is compared.
    pub wanted: &'l dyn Fn(&Key, Aspect) -> Compare,
    /// Gives the name that a path has now: a directory that holds it may have been moved since. None if nothing is left of it.
    pub now: &'l dyn Fn(&TargetPath) -> Option<TargetPath>,
    /// Says what is to be compared of a file of several names, by its device and number: a newer effect may have told of it by another
    /// name.
    pub by_number: &'l dyn Fn((u64, u64), Aspect) -> Compare,
}

impl Looking<'_> {
    /// Says what is to be compared of a target.
    pub fn wanted(&self, key: &Key, aspect: Aspect) -> Compare {
        (self.wanted)(key, aspect)
    }
}

impl std::fmt::Debug for Looking<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Looking")
    }
}

/// A target that is not what an effect left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// What was to be as the effect left it.
    pub target: Target,
    /// The name that the effect tells it by, if that is another one: it was moved with its directory since.
    pub told_as: Option<TargetPath>,
    /// What kind of difference.
    pub kind: DriftKind,
    /// What the effect left, in words and without values.
    pub expected: String,
    /// What is there, in words and without values.
    pub found: String,
    /// Tells two findings apart.
    pub mark: Digest,
    /// When what is there says that it changed.
    pub changed: Option<Timestamp>,
}

/// Says what differs by what an undo would find, and by the values that are there.
pub(super) fn differing_by_look(examined: Vec<Examined>, values: &[ValueChange]) -> Vec<Differing> {
    let mut differing = Vec::new();
    for it in examined {
        let key = it.target.key();
        let mut now = values.iter().filter(|value| value.key.is_at_or_below(key));
        let why = match &it.state {
            State::After => continue,
            State::Before => "as it was before",
            State::Other { why } => why,
        };
        let mut mark = why.as_bytes().to_vec();
        let (mut is_told, mut is_there) = (false, false);
        for value in now.by_ref() {
            // Nobody can tell: that is no difference.
            let Ok(now) = &value.now else {
                continue;
            };
            is_told = true;
            is_there |= now.is_some();
            mark.push(0);
            mark.extend(now.as_deref().unwrap_or_default().as_bytes());
        }
        let is_gone = if is_told {
            !is_there
        } else {
            it.goes && it.state == State::Before
        };
        let (kind, found) = match (&it.state, is_gone) {
            (_, true) => (DriftKind::Gone, "nothing"),
            (State::Before, false) => (DriftKind::Changed, "what it was before"),
            (State::After | State::Other { .. }, false) => (DriftKind::Changed, "something else"),
        };
        differing.push(Differing {
            kind,
            expected: "what the operation left".to_owned(),
            found: found.to_owned(),
            mark: Digest::of(&mark),
            changed: None,
            told_as: None,
            target: it.target,
        });
    }
    differing
}
