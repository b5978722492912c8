//! What newer steps make of names: where what they moved is now, and what is in the directories that a step made when its turn
//! comes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;

use backout_files::FileChange;
use backout_files::said::names_shown;
use backout_model::{Key, Target, TargetPath};

use super::after_newer::{is_stuck, said_of_home};
use super::work::Work;
use crate::{Engine, EngineError, PlannedStep};

/// Old names with new ones, in the order in which they were given.
pub(super) type Moves = Vec<(TargetPath, TargetPath)>;

/// The directories that a step made, and all that it left.
pub(super) struct Made<'l> {
    left: &'l HashMap<TargetPath, FileChange>,
    /// Trees that came as one, and go as one.
    come: &'l BTreeSet<Key>,
    /// What was moved takes along what is in it.
    moved: HashSet<TargetPath>,
}

impl<'l> Made<'l> {
    pub(super) fn of(
        left: &'l HashMap<TargetPath, FileChange>,
        changes: &[FileChange],
        come: &'l BTreeSet<Key>,
    ) -> Self {
        let moved = changes.iter().filter(|it| it.from.is_some());
        Self {
            left,
            come,
            moved: moved.map(|it| it.path.clone()).collect(),
        }
    }

    /// Tells whether it was the step that made this, entry by entry.
    fn has(&self, path: &TargetPath) -> bool {
        let is_come = |path: TargetPath| self.come.contains(&Key::from(path));
        let is_new = |left: &FileChange| left.before.is_none() && !left.is_as_now;
        self.left.get(path).is_some_and(is_new)
            && !is_come(path.clone())
            && !path.ancestors().any(is_come)
    }

    /// Tells whether it is a directory that can only go when it is empty.
    fn has_directory(&self, path: &TargetPath) -> bool {
        self.has(path) && !self.moved.contains(path)
    }
}

impl Engine {
    /// Finds the directories that a step made and that will not be empty when its turn comes. Each has the name that it has
    /// `now`.
    pub(super) fn filled(
        &self,
        made: &Made<'_>,
        now: &HashMap<TargetPath, TargetPath>,
        newer: (&[Work<'_>], &[PlannedStep]),
    ) -> Result<HashMap<Key, String>, EngineError> {
        let mut inside: HashMap<TargetPath, Vec<OsString>> = HashMap::new();
        for path in self.there_by_then(made, now, newer)? {
            let above = path.parent().filter(|above| made.has_directory(above));
            if let Some((above, name)) = above.zip(path.as_path().file_name())
                && !made.has(&path)
            {
                inside.entry(above).or_default().push(name.to_owned());
            }
        }
        let why =
            |names: Vec<OsString>| format!("the directory is not empty: {}", names_shown(&names));
        let filled = inside.into_iter();
        Ok(filled
            .map(|(path, names)| (path.into(), why(names)))
            .collect())
    }

    /// Names what is in the directories that a step made, and what newer steps touch, when those have been taken back.
    fn there_by_then(
        &self,
        made: &Made<'_>,
        now: &HashMap<TargetPath, TargetPath>,
        (newer, steps): (&[Work<'_>], &[PlannedStep]),
    ) -> Result<BTreeSet<TargetPath>, EngineError> {
        let mut there = BTreeSet::new();
        for (path, name) in now {
            if made.has_directory(path)
                && let Ok(entries) = fs::read_dir(name.as_path())
            {
                let entries = entries.filter_map(Result::ok);
                there.extend(entries.map(|entry| name.join(&entry.file_name())));
            }
        }
        for work in newer {
            for change in self.sides(work)? {
                if is_stuck(steps, work, &change.path) {
                    continue;
                }
                if change.before.is_some() {
                    there.insert(change.path);
                } else {
                    there.remove(&change.path);
                }
            }
            let moves = self.moves(work)?;
            let back = there.into_iter();
            there = back.map(|path| before_moves(path, &moves)).collect();
        }
        Ok(there)
    }

    /// Lists what a step moved of what is meant.
    pub(super) fn moves(&self, work: &Work<'_>) -> Result<Moves, EngineError> {
        let Some(effect) = self.as_files(&work.effect)? else {
            return Ok(Moves::new());
        };
        let mut moves = self.files.moves(&effect)?;
        let is_meant = |path: &TargetPath| {
            let is_it = |target: &Target| target.file() == Some(path);
            work.step.targets.iter().any(is_it)
        };
        moves.retain(|(from, to)| is_meant(from) || is_meant(to));
        Ok(moves)
    }
}

/// Gives the name that something has after it was moved, or what it is in was; none if it was not.
pub(crate) fn after_moves(
    first: &TargetPath,
    moves: &[(TargetPath, TargetPath)],
) -> Option<TargetPath> {
    let step = |name: Option<TargetPath>, (from, to): &(TargetPath, TargetPath)| {
        let at = name.as_ref().unwrap_or(first);
        at.rebase(from, to).or(name)
    };
    moves.iter().fold(None, step)
}

/// Gives the name that something had before that.
fn before_moves(name: TargetPath, moves: &Moves) -> TargetPath {
    moves.iter().rev().fold(name, |name, (from, to)| {
        name.rebase(to, from).unwrap_or(name)
    })
}

/// Lists the names of which a step moved the directory afterwards, or moved another one into its place: they tell nothing of
/// what is there.
pub(super) fn displaced(changes: &[FileChange]) -> HashSet<TargetPath> {
    let mut moved: HashMap<&TargetPath, usize> = HashMap::new();
    for (at, change) in changes.iter().enumerate() {
        for name in change
            .from
            .iter()
            .chain(change.from.is_some().then_some(&change.path))
        {
            moved.insert(name, at);
        }
    }
    let mut displaced = HashSet::new();
    if moved.is_empty() {
        return displaced;
    }
    for (at, change) in changes.iter().enumerate() {
        let names = [Some(&change.path), change.from.as_ref()];
        for name in names.into_iter().flatten() {
            let mut above = name.ancestors();
            if above.any(|above| moved.get(&above).is_some_and(|later| *later > at)) {
                displaced.insert(name.clone());
            } else {
                displaced.remove(name);
            }
        }
    }
    displaced
}

/// Lists the directories that a step needs for what comes back, and does not bring back itself. Of a redo, those of what goes
/// again, too: its own undo needs them.
pub(super) fn homes(left: &HashMap<TargetPath, FileChange>, is_redo: bool) -> HashSet<TargetPath> {
    let comes_back = left.values().filter(|it| is_redo || it.before.is_some());
    let homes = comes_back.filter_map(|it| it.path.parent());
    homes.filter(|home| !left.contains_key(home)).collect()
}

/// Says of what comes back that the directory it was in is not there.
pub(super) fn without_home(
    left: &HashMap<TargetPath, FileChange>,
    gone: &HashSet<TargetPath>,
) -> HashMap<Key, String> {
    let comes_back = left.values().filter(|it| it.before.is_some());
    let homeless = comes_back.filter_map(|it| {
        let home = it.path.parent().filter(|home| gone.contains(home))?;
        Some((it.path.clone().into(), said_of_home(&home)))
    });
    homeless.collect()
}
