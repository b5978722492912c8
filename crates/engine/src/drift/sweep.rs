//! A look at the world: what the newest operation on each target left there, and what is there.
//!
//! Operations are asked newest first, undos and redos among them: an undo's own recipe tells what it left. Each is asked only about names that
//! no newer one told of ([`Claims`]), so each target is looked at once, and an operation of which nothing is left costs no look at all.
//!
//! - What lies in a directory that was moved since is looked at by the name that it has now ([`Moves`]).
//! - What made the record true again and was taken back leaves no record of its own: the older one counts again.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use backout_capture::witness::Witness;
use backout_model::drift::DriftKind;
use backout_model::ports::{Aspect, Compare, Differing, Looking};
use backout_model::{
    Digest, Key, Lsn, Operation, OperationId, Reach, Status, TargetPath, Timestamp, Verb,
};
use backout_storage::Filter;

use super::asking::Asking;
use super::claims::Claims;
use super::index::StatIndex;
use super::moves::{Moves, with_older_names};
use super::notes::{Ended, Standing};
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
    /// Who may have seen the process that made a difference.
    pub(super) witness: Option<&'x Witness>,
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
        let mut sweep = Sweep {
            engine: self,
            extent,
            standing,
            claims: RefCell::default(),
            moves: Moves::default(),
            ended: OnceCell::new(),
            wholes: BTreeMap::new(),
            parted: BTreeMap::new(),
            swept: Swept {
                under_way: self.command_under_way()?,
                ..Swept::default()
            },
        };
        self.each_operation(extent, &mut |operation| sweep.ask(operation))?;
        let mut swept = sweep.swept;
        self.look_at_wholes(sweep.wholes, &sweep.moves, &mut swept)?;
        swept.claims = sweep.claims.into_inner();
        swept.targets = swept.claims.len();
        self.leave_out_told_by_other_names(extent, standing, &mut swept)?;
        Ok(swept)
    }

    /// Leaves out files of several names that are as recorded by another of them: a look at a part does not ask who tells of that.
    fn leave_out_told_by_other_names(
        &self,
        extent: &Extent<'_>,
        standing: &Standing,
        swept: &mut Swept,
    ) -> Result<(), EngineError> {
        let is_meant = |it: &Candidate| {
            let is_file = it.differing.target.file().is_some_and(has_other_names);
            is_file && matches!(it.differing.kind, DriftKind::Changed | DriftKind::Looks)
        };
        if extent.below.is_empty() || !swept.candidates.iter().any(is_meant) {
            return Ok(());
        }
        let all = self.sweep(&Extent::default(), standing)?;
        let is_told = |it: &Candidate| {
            let mut told = all.candidates.iter().map(|it| &it.differing);
            told.any(|told| told.target == it.differing.target)
        };
        swept.candidates.retain(|it| !is_meant(it) || is_told(it));
        Ok(())
    }

    /// Compares files of which older operations told all and newer ones a part: the newest part knows the whole file.
    fn look_at_wholes(
        &self,
        wholes: BTreeMap<Key, OperationId>,
        moves: &Moves,
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
            let looking = Looking {
                wanted: &|it: &Key, aspect: Aspect| match aspect {
                    Aspect::Whole if *it == key => Compare::All,
                    Aspect::Whole
                    | Aspect::Looks
                    | Aspect::Tree
                    | Aspect::Which
                    | Aspect::Stranger => Compare::Nothing,
                },
                now: &|path| moves.now(path, operation.lsn),
                by_number: &|_, _| Compare::All,
            };
            let differing = self.driver_of(&files)?.differing(&files, &looking);
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
            // Whoever writes the whole of something writes each part.
            let places: Vec<Key> = extent.below.iter().map(whole_of).collect();
            with_older_names(&places, |key| {
                let mut moves = Vec::new();
                for (at, within) in [(Some(key.clone()), None), (None, Some(key.clone()))] {
                    let found = self.store.operations(&Filter {
                        at,
                        within,
                        ..Filter::default()
                    })?;
                    moves.extend(found.iter().flat_map(|it| self.moves_of(it)));
                    all.extend(found);
                }
                Ok(moves)
            })?;
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

/// A look under way.
struct Sweep<'a> {
    engine: &'a Engine,
    extent: &'a Extent<'a>,
    standing: &'a Standing,
    claims: RefCell<Claims>,
    moves: Moves,
    /// The drift that operations ended, once somebody asked.
    ended: OnceCell<Ended>,
    /// Files that are told in parts, and by older operations as a whole, with the newest who told a part.
    wholes: BTreeMap<Key, OperationId>,
    parted: BTreeMap<TargetPath, OperationId>,
    swept: Swept,
}

impl Sweep<'_> {
    fn ask(&mut self, operation: &Operation) -> Result<(), EngineError> {
        let moved = self.engine.moves_of(operation);
        if !is_settled(operation.status) {
            self.moves.add(operation, moved);
            return Ok(());
        }
        let asked = Asking {
            engine: self.engine,
            extent: self.extent,
            standing: self.standing,
            operation,
            claims: &self.claims,
            moves: &self.moves,
            numbers: RefCell::new(Vec::new()),
            wholes: RefCell::new(Vec::new()),
            directories: RefCell::new(HashSet::new()),
            stopped: self.not_told(operation)?,
            on_the_way: self.on_the_way(operation)?,
        };
        let differing = asked.differing();
        let told = asked.told();
        let not_moved = self.not_moved(operation, &moved)?;
        self.swept
            .directories
            .extend(asked.directories.into_inner());
        let numbers = asked.numbers.into_inner();
        for whole in asked.wholes.into_inner() {
            if let Some(by) = whole.file().and_then(|file| self.parted.get(file)) {
                self.wholes.entry(whole).or_insert(*by);
            }
        }
        for (target, now) in told {
            if let (Some(file), false) = (now.file(), now.parts().is_empty()) {
                self.parted.entry(file.clone()).or_insert(operation.id);
            }
            if may_replace(operation.verb) {
                self.claims.borrow_mut().inside(&now);
            }
            // What was in a directory that was moved is told by its new names.
            let is_moved = |(from, to): &(TargetPath, TargetPath)| {
                target.file() == Some(from) || target.file() == Some(to)
            };
            // What went from the place of a directory that was moved there is not what is in it now.
            let is_inside = |(_, to): &(TargetPath, TargetPath)| {
                target.file().is_some_and(|path| path.is_below(to))
            };
            let moved = || moved.iter().chain(&not_moved);
            let is_moved = moved().any(is_moved) || moved().any(is_inside);
            if target.reach() == Reach::Tree && !is_moved {
                self.claims.borrow_mut().tree(&now);
            }
        }
        self.moves.add(operation, moved);
        let mut claims = self.claims.borrow_mut();
        for (number, told) in numbers {
            claims.number(number, told);
        }
        drop(claims);
        let why = match differing {
            Ok(Some(differing)) => {
                self.swept.take(operation, differing);
                return Ok(());
            }
            Err(error) if error.is_stop() => return Err(error),
            // Who does not answer says nothing, and does not hold up the rest.
            Ok(None) => "a directory that holds it was moved since".to_owned(),
            Err(error) => crate::lifecycle::with_causes(&error),
        };
        self.swept.unanswered.push((operation.id, why));
        Ok(())
    }

    /// Lists what an undo would have moved back, and somebody else had before: it tells nothing of what is in there.
    fn not_moved(
        &self,
        operation: &Operation,
        moved: &[(TargetPath, TargetPath)],
    ) -> Result<Vec<(TargetPath, TargetPath)>, EngineError> {
        let undone = operation.undoes.filter(|_| moved.is_empty());
        let undone = undone
            .map(|id| self.engine.store.operation(id))
            .transpose()?;
        let undone = undone.flatten();
        Ok(undone.map_or_else(Vec::new, |it| self.engine.moves_of(&it)))
    }

    /// Lists the targets of which an operation tells nothing: it does not hold them, or it took back what had ended their drift.
    fn not_told(&self, operation: &Operation) -> Result<BTreeSet<Key>, EngineError> {
        let mut stopped = not_held(operation);
        if operation.undoes.is_some() && operation.verb == Verb::Undo {
            let origin = self.origin(operation)?;
            let ended = self.ended()?;
            let keys = ended.all.get(&origin);
            stopped.extend(keys.into_iter().flatten().cloned());
            // What a restore had to make on its way goes with it.
            if ended.restored.contains_key(&origin) {
                let keys = operation.targets.iter().map(|it| it.target.key());
                stopped.extend(keys.cloned());
            }
        }
        Ok(stopped)
    }

    /// Lists the directories that a restore of a part of a drift had to make on its way: older operations tell what belongs there.
    fn on_the_way(&self, operation: &Operation) -> Result<BTreeSet<Key>, EngineError> {
        if !matches!(operation.verb, Verb::Restore | Verb::Redo) {
            return Ok(BTreeSet::new());
        }
        let origin = self.origin(operation)?;
        let Some(restored) = self.ended()?.restored.get(&origin) else {
            return Ok(BTreeSet::new());
        };
        let keys = operation.targets.iter().map(|it| it.target.key());
        let other = keys.filter(|key| !restored.iter().any(|it| key.is_at_or_below(it)));
        Ok(other.cloned().collect())
    }

    /// Finds what was taken back or brought back in the end: what an undo of a redo takes back is what the redo brought.
    fn origin(&self, operation: &Operation) -> Result<OperationId, EngineError> {
        let (mut origin, mut older) = (operation.id, operation.undoes);
        while let Some(id) = older {
            origin = id;
            older = self.engine.store.operation(id)?.and_then(|it| it.undoes);
        }
        Ok(origin)
    }

    fn ended(&self) -> Result<&Ended, EngineError> {
        if self.ended.get().is_none() {
            let _first = self.ended.set(self.engine.drift_ended_by()?);
        }
        let Some(ended) = self.ended.get() else {
            unreachable!("it was set");
        };
        Ok(ended)
    }
}

impl Swept {
    fn take(&mut self, operation: &Operation, differing: Vec<Differing>) {
        if differing.is_empty() {
            return;
        }
        self.operations.insert(operation.id, operation.clone());
        for it in differing {
            let it = with_file_gone(it);
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

/// Says of a part whose file is gone that it is gone as well.
fn with_file_gone(it: Differing) -> Differing {
    let key = it.target.key();
    let file = key.file().filter(|_| !key.parts().is_empty());
    let is_gone = |file: &TargetPath| match file.as_path().symlink_metadata() {
        Ok(_) => false,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !file.is_some_and(is_gone) {
        return it;
    }
    let found = "nothing: the file is gone".to_owned();
    Differing {
        kind: DriftKind::Gone,
        mark: Digest::of(found.as_bytes()),
        found,
        ..it
    }
}

/// Tells whether a file has other names.
fn has_other_names(path: &TargetPath) -> bool {
    let found = path.as_path().symlink_metadata();
    found.is_ok_and(|found| found.is_file() && found.nlink() > 1)
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

/// Tells whether it may have put one directory in the place of another, and tells so only by the names in them.
const fn may_replace(verb: Verb) -> bool {
    matches!(verb, Verb::Run | Verb::Undo | Verb::Redo | Verb::Recover)
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
