//! Asking one operation what differs from what it left.
//!
//! Each question notes that the operation tells of the name, so that no older one is asked about it.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use backout_model::ports::{Aspect, Compare, Differing, Looking};
use backout_model::{Key, Operation, Target};
use backout_storage::Filter;

use super::claims::{Claims, Told};
use super::moves::Moves;
use super::notes::Standing;
use super::sweep::Extent;
use crate::{Engine, EngineError};

/// Asks one operation what differs from what it left.
pub(super) struct Asking<'a> {
    pub(super) engine: &'a Engine,
    pub(super) extent: &'a Extent<'a>,
    pub(super) standing: &'a Standing,
    pub(super) operation: &'a Operation,
    pub(super) claims: &'a RefCell<Claims>,
    pub(super) moves: &'a Moves,
    /// Files of several names that this operation tells of, and what of them.
    pub(super) numbers: RefCell<Vec<((u64, u64), Told)>>,
    /// Files that this operation tells all of, and newer ones parts.
    pub(super) wholes: RefCell<Vec<Key>>,
    pub(super) directories: RefCell<HashSet<PathBuf>>,
    /// Targets of which it tells nothing, nor of what is in them.
    pub(super) stopped: BTreeSet<Key>,
    /// Directories of which it tells nothing.
    pub(super) on_the_way: BTreeSet<Key>,
}

impl Asking<'_> {
    /// Lists the targets that it tells of, with the names that they have now.
    pub(super) fn told(&self) -> Vec<(Target, Key)> {
        let held = self.operation.in_effect().filter(|it| it.held_by.is_none());
        let held = held.filter(|it| {
            let key = it.target.key();
            !self.is_stopped(key) && !self.on_the_way.contains(key)
        });
        let told = held.filter_map(|it| {
            let now = self.moves.key_now(it.target.key(), self.operation.lsn)?;
            Some((it.target.clone(), now))
        });
        told.collect()
    }

    /// Lists what differs; none if nobody can tell.
    pub(super) fn differing(&self) -> Result<Option<Vec<Differing>>, EngineError> {
        let told = self.told();
        let is_over = |(_, now): &(Target, Key)| self.claims.borrow().told(now) == Told::All;
        if told.iter().all(is_over) {
            return Ok(Some(Vec::new()));
        }
        let Ok(mut effect) = self.engine.store.effect(self.operation.id) else {
            return Ok(Some(Vec::new()));
        };
        // Who tells of parts of a file knows it by its old name; what is known of the whole file is compared then.
        if told.iter().any(|(target, now)| target.key() != now) {
            match self.engine.as_files(&effect)? {
                Some(files) => effect = files,
                None => return Ok(None),
            }
        }
        let driver = self.engine.driver_of(&effect)?;
        let looking = Looking {
            wanted: &|key: &Key, aspect: Aspect| self.wanted(key, aspect),
            now: &|path| {
                let is_stopped = self.is_stopped(&path.clone().into());
                let now = || self.moves.now(path, self.operation.lsn);
                (!is_stopped).then(now).flatten()
            },
            by_number: &|number, aspect| self.by_number(number, aspect),
        };
        Ok(Some(driver.differing(&effect, &looking)?))
    }

    /// Says what is to be compared of a name, and notes that this operation tells of it.
    fn wanted(&self, key: &Key, aspect: Aspect) -> Compare {
        let is_meant = self.extent.holds(key);
        let is_above = || self.extent.below.iter().any(|it| it.is_at_or_below(key));
        let is_silent = self.is_stopped(key) || self.on_the_way.contains(key);
        if is_silent || !is_meant && !is_above() {
            return Compare::Nothing;
        }
        let told = self.claims.borrow().told(key);
        let compare = self.claimed(key, aspect, told);
        if is_meant { compare } else { Compare::Nothing }
    }

    fn claimed(&self, key: &Key, aspect: Aspect, told: Told) -> Compare {
        match (aspect, told) {
            (Aspect::Stranger, Told::Nothing) => self.wanted_stranger(key),
            (Aspect::Tree, _) => self.wanted_tree(key),
            // A command tells a directory that it put in the place of another by the names in it.
            (Aspect::Which, _) if self.claims.borrow().has_inside(key) => Compare::Nothing,
            (Aspect::Which, _) => Compare::All,
            (Aspect::Whole, Told::Nothing) => {
                self.claims.borrow_mut().whole(key);
                self.unless_known(key, Compare::All)
            }
            (Aspect::Whole, Told::Looks) => {
                self.claims.borrow_mut().whole(key);
                self.unless_known(key, Compare::NotLooks)
            }
            (Aspect::Whole, Told::Parts) => {
                self.claims.borrow_mut().whole(key);
                self.wholes.borrow_mut().push(key.clone());
                Compare::Nothing
            }
            (Aspect::Looks, Told::Nothing | Told::Parts) => {
                self.claims.borrow_mut().looks(key);
                // The bytes are another operation's to tell, so its stamps are not noted here.
                Compare::All
            }
            (Aspect::Stranger | Aspect::Whole | Aspect::Looks, _) => Compare::Nothing,
        }
    }

    /// Says what is to be compared of a file of several names, and notes that this operation tells of it.
    fn by_number(&self, number: (u64, u64), aspect: Aspect) -> Compare {
        let told = if aspect == Aspect::Looks {
            Told::Looks
        } else {
            Told::All
        };
        self.numbers.borrow_mut().push((number, told));
        match (self.claims.borrow().told_by_number(number), told) {
            (Told::All, _) | (Told::Looks, Told::Looks) => Compare::Nothing,
            (Told::Looks, _) => Compare::NotLooks,
            (Told::Nothing | Told::Parts, _) => Compare::All,
        }
    }

    fn is_stopped(&self, key: &Key) -> bool {
        !self.stopped.is_empty()
            && (self.stopped.contains(key)
                || key
                    .ancestors()
                    .iter()
                    .any(|above| self.stopped.contains(above)))
    }

    /// A name that nobody tells of, and that is not our own.
    fn wanted_stranger(&self, key: &Key) -> Compare {
        let is_ours = key.file().is_some_and(|path| {
            let store = &self.engine.store;
            store.is_ours(path) || store.is_above_ours(path)
        });
        if is_ours || self.standing.ignored_by(key).is_some() {
            Compare::Nothing
        } else {
            Compare::All
        }
    }

    /// A directory that came as one: once somebody wrote in it, nobody knows any more what belongs there.
    fn wanted_tree(&self, key: &Key) -> Compare {
        let newer = self.engine.store.operations(&Filter {
            at: Some(key.clone()),
            after: Some(self.operation.lsn),
            limit: Some(1),
            ..Filter::default()
        });
        match newer {
            Ok(newer) if newer.is_empty() => Compare::All,
            _ => Compare::Nothing,
        }
    }

    /// Leaves out what has the stamps that it had when it was found to be as recorded.
    fn unless_known(&self, key: &Key, compare: Compare) -> Compare {
        let Some(path) = key.file() else {
            return compare;
        };
        if self.extent.with_directories
            && let Some(parent) = path.as_path().parent()
        {
            let mut directories = self.directories.borrow_mut();
            if !directories.contains(parent) {
                directories.insert(parent.to_owned());
            }
        }
        let Some(index) = self.extent.index.filter(|_| key.parts().is_empty()) else {
            return compare;
        };
        if index.borrow_mut().is_known(path, self.operation.id) {
            Compare::Nothing
        } else {
            compare
        }
    }
}
