//! A look at the world: what the newest operation on each target left there, and what is there.
//!
//! Operations are asked newest first, undos and redos among them: an undo's own recipe tells what it left. Each is asked only about names that
//! no newer one told of ([`Claims`]), so each target is looked at once, and an operation of which nothing is left costs no look at all.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

use backout_model::ports::{Aspect, Compare, Differing};
use backout_model::{
    Key, Lsn, Operation, OperationId, Standing as TargetStanding, Status, TargetPath, Timestamp,
};
use backout_storage::Filter;

use super::claims::{Claims, Told};
use super::index::StatIndex;
use super::notes::Standing;
use crate::{Engine, EngineError};

/// How many operations are read at once.
const PAGE: usize = 256;

/// Something that differs, and who left what was expected.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) differing: Differing,
    pub(super) by: OperationId,
    pub(super) lsn: Lsn,
    pub(super) at: Timestamp,
}

/// What a look found.
#[derive(Debug, Default)]
pub(super) struct Swept {
    pub(super) candidates: Vec<Candidate>,
    /// The operations that left what differs.
    pub(super) operations: BTreeMap<OperationId, Operation>,
    /// How many targets were compared.
    pub(super) targets: usize,
    /// What could not be looked at, and why.
    pub(super) unanswered: Vec<(OperationId, String)>,
    /// How many names are recorded at or below a directory.
    pub(super) claims: Claims,
    /// Directories that hold what was recorded.
    pub(super) directories: HashSet<PathBuf>,
    /// When a command began that is under way: what changed since may be its work.
    pub(super) under_way: Option<Timestamp>,
    /// What differs and may be the work of a command under way.
    pub(super) deferred: BTreeSet<Key>,
}

/// What to look at.
#[derive(Debug, Default)]
pub(super) struct Extent<'x> {
    /// Only at or below these; none means everything.
    pub(super) below: &'x [Key],
    /// What was found to be as recorded, by its stamps.
    pub(super) index: Option<&'x RefCell<StatIndex>>,
    /// Whether to gather the directories that hold what was recorded.
    pub(super) with_directories: bool,
}

impl Extent<'_> {
    pub(super) fn holds(&self, key: &Key) -> bool {
        self.below.is_empty() || self.below.iter().any(|it| key.is_at_or_below(it))
    }
}

impl Engine {
    /// Looks at all that was recorded, or at a part of it.
    pub(super) fn sweep(
        &self,
        extent: &Extent<'_>,
        standing: &Standing,
    ) -> Result<Swept, EngineError> {
        let mut swept = Swept {
            under_way: self.command_under_way()?,
            ..Swept::default()
        };
        let claims = RefCell::new(Claims::default());
        let mut wholes: BTreeMap<Key, OperationId> = BTreeMap::new();
        let mut parted: BTreeMap<TargetPath, OperationId> = BTreeMap::new();
        self.each_operation(extent, &mut |operation| {
            if !is_settled(operation.status) {
                return Ok(());
            }
            let asked = Asking {
                engine: self,
                extent,
                standing,
                operation,
                claims: &claims,
                wholes: RefCell::new(Vec::new()),
                directories: RefCell::new(HashSet::new()),
                stopped: not_held(operation),
            };
            let differing = asked.differing();
            swept.directories.extend(asked.directories.into_inner());
            for whole in asked.wholes.into_inner() {
                if let Some(by) = whole.file().and_then(|file| parted.get(file)) {
                    wholes.entry(whole).or_insert(*by);
                }
            }
            for standing in operation.in_effect().filter(|it| it.held_by.is_none()) {
                let key = standing.target.key();
                if let (Some(file), false) = (key.file(), key.parts().is_empty()) {
                    parted.entry(file.clone()).or_insert(operation.id);
                }
                claims.borrow_mut().tree(&standing.target);
            }
            match differing {
                Ok(differing) => swept.take(operation, differing),
                // Who does not answer says nothing, and does not hold up the rest.
                Err(error) if error.is_stop() => return Err(error),
                Err(error) => {
                    let why = crate::lifecycle::with_causes(&error);
                    swept.unanswered.push((operation.id, why));
                }
            }
            Ok(())
        })?;
        self.look_at_wholes(wholes, &mut swept)?;
        swept.claims = claims.into_inner();
        swept.targets = swept.claims.len();
        Ok(swept)
    }

    /// Compares files of which older operations told all and newer ones a part: the newest part knows the whole file.
    fn look_at_wholes(
        &self,
        wholes: BTreeMap<Key, OperationId>,
        swept: &mut Swept,
    ) -> Result<(), EngineError> {
        for (key, by) in wholes {
            let is_told = |it: &Candidate| it.differing.target.key().is_at_or_below(&key);
            if swept.candidates.iter().any(is_told) {
                continue;
            }
            let Ok(effect) = self.store.effect(by) else {
                continue;
            };
            let files = self.driver_of(&effect).and_then(|_| self.as_files(&effect));
            let (Ok(Some(files)), Some(operation)) = (files, self.store.operation(by)?) else {
                continue;
            };
            let only = |it: &Key, aspect: Aspect| match aspect {
                Aspect::Whole if *it == key => Compare::All,
                _ => Compare::Nothing,
            };
            let differing = self.driver_of(&files)?.differing(&files, &only);
            swept.take(&operation, differing.unwrap_or_default());
        }
        Ok(())
    }

    /// Calls `each` with every operation that may have told of what is looked at, newest first.
    fn each_operation(
        &self,
        extent: &Extent<'_>,
        each: &mut dyn FnMut(&Operation) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        if !extent.below.is_empty() {
            let mut all = Vec::new();
            for key in extent.below {
                // Whoever writes the whole of something writes each part.
                let key = whole_of(key);
                for (at, within) in [(Some(key.clone()), None), (None, Some(key.clone()))] {
                    all.extend(self.store.operations(&Filter {
                        at,
                        within,
                        ..Filter::default()
                    })?);
                }
            }
            all.sort_by_key(|operation| std::cmp::Reverse(operation.lsn));
            all.dedup_by_key(|operation| operation.id);
            return all.iter().try_for_each(each);
        }
        let mut before = None;
        loop {
            let page = self.store.operations(&Filter {
                before,
                limit: Some(PAGE),
                ..Filter::default()
            })?;
            before = page.last().map(|operation| operation.lsn);
            page.iter().try_for_each(&mut *each)?;
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Tells when the first of the commands under way began: nobody knows yet what they write.
    fn command_under_way(&self) -> Result<Option<Timestamp>, EngineError> {
        let armed = self.store.armed()?.into_iter();
        let alive = armed.filter(|operation| self.store.is_alive(&operation.owner));
        Ok(alive.map(|operation| operation.at).min())
    }
}

/// Asks one operation what differs from what it left.
struct Asking<'a> {
    engine: &'a Engine,
    extent: &'a Extent<'a>,
    standing: &'a Standing,
    operation: &'a Operation,
    claims: &'a RefCell<Claims>,
    /// Files that this operation tells all of, and newer ones parts.
    wholes: RefCell<Vec<Key>>,
    directories: RefCell<HashSet<PathBuf>>,
    /// Targets that it does not hold any more.
    stopped: BTreeSet<Key>,
}

impl Asking<'_> {
    fn differing(&self) -> Result<Vec<Differing>, EngineError> {
        let is_over = |it: &TargetStanding| self.claims.borrow().told(it.target.key()) == Told::All;
        let mut held = self.operation.in_effect().filter(|it| it.held_by.is_none());
        if held.all(is_over) {
            return Ok(Vec::new());
        }
        let Ok(effect) = self.engine.store.effect(self.operation.id) else {
            return Ok(Vec::new());
        };
        let driver = self.engine.driver_of(&effect)?;
        let wanted = |key: &Key, aspect: Aspect| self.wanted(key, aspect);
        Ok(driver.differing(&effect, &wanted)?)
    }

    /// Says what is to be compared of a name, and notes that this operation tells of it.
    fn wanted(&self, key: &Key, aspect: Aspect) -> Compare {
        let is_meant = self.extent.holds(key);
        let is_above = || self.extent.below.iter().any(|it| it.is_at_or_below(key));
        if self.is_stopped(key) || !is_meant && !is_above() {
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

impl Swept {
    fn take(&mut self, operation: &Operation, differing: Vec<Differing>) {
        if differing.is_empty() {
            return;
        }
        self.operations.insert(operation.id, operation.clone());
        for it in differing {
            let is_new = self
                .under_way
                .is_some_and(|began| it.changed.is_none_or(|changed| changed.0 >= began.0));
            if is_new && it.target.file().is_some() {
                self.deferred.insert(it.target.key().clone());
                continue;
            }
            self.candidates.push(Candidate {
                differing: it,
                by: operation.id,
                lsn: operation.lsn,
                at: operation.at,
            });
        }
    }
}

/// Gives what a key is a part of.
fn whole_of(key: &Key) -> Key {
    if let Some(file) = key.file() {
        return file.clone().into();
    }
    let names: Vec<&str> = key.names().iter().map(String::as_str).collect();
    let whole = key.space().map(|space| Key::in_space(space, &names));
    whole.and_then(Result::ok).unwrap_or_else(|| key.clone())
}

/// Tells whether it is known what an operation left.
const fn is_settled(status: Status) -> bool {
    match status {
        Status::Applied | Status::Committed => true,
        Status::Armed
        | Status::Interrupted
        | Status::InDoubt
        | Status::Failed
        | Status::Proposed
        | Status::Refused
        | Status::Aborted
        | Status::Undone => false,
    }
}

/// Lists the targets that an operation does not hold: they were taken back, or a redo brought them.
fn not_held(operation: &Operation) -> BTreeSet<Key> {
    let gone = operation
        .targets
        .iter()
        .filter(|it| !it.is_in_effect() || it.held_by.is_some());
    gone.map(|it| it.target.key().clone()).collect()
}
