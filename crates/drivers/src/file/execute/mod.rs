//! Making a list of changes happen, all or nothing.
//!
//! ```text
//! A  make     everything new stands under a temporary name beside its target, complete and synced
//! B  swap     names change, each in one step: a free name is taken, a taken one exchanged for the new;
//!             what is exchanged out is checked to be what was captured, else it goes straight back;
//!             a file with several names that a command wrote into is written into (`rewrite.rs`)
//! C  check    a second look at every name: what is there is what was meant; an undo reads every byte back
//! D  dispose  what was exchanged out moves into its slot or goes away
//! E  settle   times of directories, then one sync per touched directory
//! ```
//!
//! - New directories are built whole under one temporary name and appear with all their entries.
//! - If a step fails, [`reverse`] takes back what was done, newest first; temporary names never stay. What somebody else
//!   has changed meanwhile stays as it is: their work is not ours to take back.
//! - After a crash, [`tidy`] finds the temporary names by the recipe alone.

mod check;
mod closed;
mod finish;
mod make;
mod reverse;
mod rewrite;
mod secure;
mod swap;
pub(crate) mod tidy;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;

use backout_model::{OperationId, TargetOutcome, TargetPath};

use super::context::FileContext;
use super::error::FileError;
use super::recipe::{Change, FileCompletion, Image, Numbers, ParentTimes};
use super::stage::{Material, Staged};
use super::sys::{Nearby, Node};
use closed::Opened;
pub(crate) use closed::{is_closed, opened};

pub(crate) use secure::secure;

/// Above this many files one sync of the file system is cheaper than one of each file.
pub(crate) const SINGLE_SYNCS_MAX: usize = 64;

/// What a name was when it was captured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seen {
    /// Nothing, or it will be nothing when its turn comes.
    Absent,
    /// This.
    There(Node),
}

/// A change with what it needs to happen.
#[derive(Debug)]
pub(crate) struct Step {
    /// Its place in the recipe; the temporary name is made of it.
    pub(crate) number: usize,
    pub(crate) change: Change,
    pub(crate) material: Material,
    pub(crate) seen: Seen,
    /// For a move, what the new name was when it was captured.
    pub(crate) seen_at_new: Seen,
}

impl Step {
    /// Makes a step that finds nothing at its name.
    pub(crate) const fn new(number: usize, change: Change, material: Material) -> Self {
        Self {
            number,
            change,
            material,
            seen: Seen::Absent,
            seen_at_new: Seen::Absent,
        }
    }
}

/// Why steps are made to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// An operation.
    Apply,
    /// The undo of one: what is put in place is read back whole.
    Undo,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Happened {
    /// What only the effect could tell.
    pub(crate) completion: FileCompletion,
    /// Targets that somebody else changed between the second look and the end.
    pub(crate) unlike: Vec<TargetOutcome>,
}

/// What has been done so far, in order.
#[derive(Debug)]
enum Done {
    /// The new thing stands under its temporary name.
    Made(usize),
    /// A kept inode was taken out of its slot and has the temporary name.
    Taken(usize),
    /// The temporary name became the real one.
    Placed(usize),
    /// The temporary and the real name were exchanged.
    Exchanged(usize),
    /// The real name became the temporary one.
    Withdrawn(usize),
    /// A file or tree has its new name; true if the replaced file now has the old one.
    Moved(usize, bool),
    /// Metadata was changed in place.
    Retouched(usize),
    /// Bytes were changed in place, or some of them.
    Rewritten(usize),
    /// What was exchanged out moved into its slot.
    Parked(usize),
    /// What was exchanged out is gone; its image is in the store.
    Dropped(usize),
}

/// One execution of a list of steps.
struct Run<'a> {
    context: &'a FileContext,
    steps: &'a [Step],
    /// Per step, the temporary path.
    stages: Vec<TargetPath>,
    /// Per step, whether it arrives inside a new directory.
    carried: Vec<bool>,
    /// The last step that takes each path away.
    taken_away: HashMap<TargetPath, usize>,
    done: Vec<Done>,
    touched: BTreeSet<TargetPath>,
    depots: BTreeSet<TargetPath>,
    purpose: Purpose,
    /// Inodes of several names that a step has touched by one of them.
    shared: HashSet<u64>,
    /// Inodes that a step has changed in place, and that other steps may know by another name.
    rewritten: Numbers,
    gaps: Vec<(TargetPath, String)>,
    /// New files by their numbers, as they were right after their bytes were written, or put under their names: whose stamps
    /// are the same has these bytes.
    made: HashMap<u64, Node>,
    /// The directories that names were changed in last, and that was read last.
    near: Nearby,
    from: Nearby,
    /// Per step, what stood under the name right after it was put there.
    placed: HashMap<usize, Node>,
    /// Per step, what the second look found; none if a later step has the last word.
    found: Vec<Option<Node>>,
    /// Steps whose name somebody else has changed since.
    by_others: HashSet<usize>,
    /// Directories that may be opened.
    own: &'a BTreeSet<TargetPath>,
    /// Directories that are open only as long as this runs.
    opened: Opened,
}

/// Makes the steps happen, or nothing.
pub(crate) fn run(
    context: &FileContext,
    id: OperationId,
    ready: &Staged,
) -> Result<Happened, FileError> {
    let (steps, parents, own) = (&*ready.steps, &*ready.parents, &ready.own);
    let purpose = if ready.is_undo {
        Purpose::Undo
    } else {
        Purpose::Apply
    };
    let (stages, carried) = stage_paths(id, steps);
    let mut run = Run {
        context,
        steps,
        stages,
        carried,
        taken_away: taken_away(steps),
        done: Vec::new(),
        touched: BTreeSet::new(),
        depots: BTreeSet::new(),
        purpose,
        shared: HashSet::new(),
        rewritten: Numbers::new(),
        gaps: Vec::new(),
        made: HashMap::new(),
        near: Nearby::default(),
        from: Nearby::default(),
        placed: HashMap::new(),
        found: Vec::new(),
        by_others: HashSet::new(),
        own,
        opened: closed::open(steps, purpose, own),
    };
    // An undo has told how much there is when it began to judge.
    if purpose != Purpose::Undo {
        context.watch.total(steps.len() as u64 * 2);
    }
    let times = finish::times_of(parents);
    let all_times = run.times_of_all();
    let before = run.opened.clone();
    match run.all(parents, &times) {
        Ok(happened) => Ok(happened),
        Err(cause) if context.is_abandoned() => Err(cause),
        Err(cause) => {
            let cause = cause.speaking_of(&|path| run.target_of(path));
            let again = closed::open(steps, purpose, own);
            let error = context.going_back(|| run.reverse(cause, &all_times));
            closed::close(&again);
            closed::close(&before);
            Err(error)
        }
    }
}

impl Run<'_> {
    fn all(
        &mut self,
        parents: &[ParentTimes],
        times: &[Option<super::recipe::Times>],
    ) -> Result<Happened, FileError> {
        self.make_all()?;
        for index in 0..self.steps.len() {
            self.swap(index)?;
            self.keep_open(index);
            self.context.watch.advance(1);
        }
        self.near.forget();
        closed::close(&self.opened);
        self.check_all()?;
        let again = closed::open(self.steps, self.purpose, self.own);
        self.dispose_all()?;
        closed::close(&again);
        self.finish_times(parents, times)?;
        self.sync_all()?;
        self.context.reach("file.applied")?;
        self.complete(parents)
    }

    /// Names the target that a temporary name or a slot is for.
    fn target_of(&self, path: &str) -> Option<String> {
        let slot_of = |step: &Step| {
            let images = step.change.images().into_iter();
            let mut slots = images.filter_map(Image::slot);
            slots.any(|slot| slot.path().to_string() == path)
        };
        let mut pairs = std::iter::zip(self.steps, &self.stages);
        let is_its =
            |(step, stage): &(&Step, &TargetPath)| stage.to_string() == path || slot_of(step);
        let (step, _) = pairs.find(is_its)?;
        Some(step.change.path().to_string())
    }

    fn sync_name(&self, of_file: bool) -> &'static str {
        match (self.purpose, of_file) {
            (Purpose::Apply, true) => "stage.file",
            (Purpose::Apply, false) => "apply.dir",
            (Purpose::Undo, true) => "undo.file",
            (Purpose::Undo, false) => "undo.dir",
        }
    }

    fn touch(&mut self, path: &TargetPath) {
        self.touched.extend(path.parent());
    }
}

/// Finds the paths that stop being directories, each with the last step that does it.
fn taken_away(steps: &[Step]) -> HashMap<TargetPath, usize> {
    let numbered = steps.iter().enumerate();
    let paths = numbered.filter_map(|(index, step)| match &step.change {
        Change::Set { path, before, .. } => before.is_directory().then(|| (path.clone(), index)),
        Change::Move { from, .. } => Some((from.clone(), index)),
        Change::Retouch { .. } | Change::Rewrite { .. } => None,
    });
    paths.collect()
}

/// Gives the temporary name of a change.
pub(crate) fn temporary_name(id: OperationId, number: usize) -> OsString {
    OsString::from(format!(".backout-{id}-{number}"))
}

/// Gives each step its temporary path, and tells which arrive inside a new directory of the same
/// operation.
fn stage_paths(id: OperationId, steps: &[Step]) -> (Vec<TargetPath>, Vec<bool>) {
    let changes = steps.iter().map(|step| (step.number, &step.change));
    let stages = temporary_paths(id, changes);
    let own = |step: &Step| {
        let parent = step.change.path().parent();
        parent.map(|parent| parent.join(&temporary_name(id, step.number)))
    };
    let carried = std::iter::zip(steps, &stages).map(|(step, at)| own(step).as_ref() != Some(at));
    let carried = carried.collect();
    (stages, carried)
}

/// Gives the temporary path of each change: beside its target, or inside the new directory it is part of.
fn temporary_paths<'c>(
    id: OperationId,
    changes: impl Iterator<Item = (usize, &'c Change)>,
) -> Vec<TargetPath> {
    let mut roots: HashMap<TargetPath, TargetPath> = HashMap::new();
    let mut stages = Vec::new();
    for (number, change) in changes {
        let path = change.path();
        let above = path
            .ancestors()
            .filter(|above| roots.contains_key(above))
            .last();
        let is_part = matches!(
            change,
            Change::Set {
                before: Image::Absent,
                ..
            }
        );
        let inside = above.filter(|_| is_part).and_then(|root| {
            let stage = roots.get(&root)?;
            path.rebase(&root, stage)
        });
        let beside = || {
            let parent = path.parent().unwrap_or_else(|| path.clone());
            parent.join(&temporary_name(id, number))
        };
        let is_root = inside.is_none() && change.is_new_directory();
        let stage = inside.unwrap_or_else(beside);
        if is_root {
            roots.insert(path.clone(), stage.clone());
        }
        stages.push(stage);
    }
    stages
}
