//! Where names are by now: a directory that was moved took along all that older operations tell of.
//!
//! Operations are asked newest first, so the moves after an operation are known when it is asked. A move that was taken back counts with
//! the move back; if somebody else had moved the directory back before, none of the two was made, and neither counts.

use backout_model::{Key, Lsn, Operation, Reach, Status, TargetPath, Verb};

use crate::Engine;

/// More places than these are not followed back: a look at everything sees them.
const PLACES_MAX: usize = 1_000;

/// What was moved, newest first.
#[derive(Debug, Default)]
pub(super) struct Moves(Vec<Moved>);

#[derive(Debug)]
struct Moved {
    from: TargetPath,
    to: TargetPath,
    lsn: Lsn,
}

impl Moves {
    /// Notes what an operation moved, which is older than all that is known.
    pub(super) fn add(&mut self, operation: &Operation, moves: Vec<(TargetPath, TargetPath)>) {
        for (from, to) in moves.into_iter().rev() {
            let has_way_back = |it: &Moved| it.from == to && it.to == from;
            if is_taken_back(operation, &to) && !self.0.iter().any(has_way_back) {
                continue;
            }
            let lsn = operation.lsn;
            self.0.push(Moved { from, to, lsn });
        }
    }

    /// Gives the name that a path has now which an operation at a place of the journal told; none if nothing is left of it.
    pub(super) fn now(&self, path: &TargetPath, told: Lsn) -> Option<TargetPath> {
        let mut now = path.clone();
        for it in self.0.iter().rev().filter(|it| it.lsn > told) {
            if let Some(moved) = now.rebase(&it.from, &it.to) {
                now = moved;
            } else if now == it.to || now.is_below(&it.to) {
                // What was moved there has its place.
                return None;
            }
        }
        Some(now)
    }

    /// The same of anything: a part goes with its file.
    pub(super) fn key_now(&self, key: &Key, told: Lsn) -> Option<Key> {
        let Some(path) = key.file() else {
            return Some(key.clone());
        };
        let now = Key::from(self.now(path, told)?);
        key.parts()
            .iter()
            .try_fold(now, |now, part| now.part(part))
            .ok()
    }
}

/// Gives places with those that they had before directories were moved there. `moves` tells what was moved at or around a place.
pub(super) fn with_older_names(
    places: &[Key],
    mut moves: impl FnMut(&Key) -> Result<Vec<(TargetPath, TargetPath)>, crate::EngineError>,
) -> Result<Vec<Key>, crate::EngineError> {
    let mut all = places.to_vec();
    let mut next = 0;
    while let Some(place) = all.get(next).cloned() {
        next += 1;
        for (from, to) in moves(&place)? {
            let older = place.file().and_then(|path| before(path, &from, &to));
            if let Some(older) = older.map(Key::from)
                && !all.contains(&older)
                && all.len() < PLACES_MAX
            {
                all.push(older);
            }
        }
    }
    Ok(all)
}

/// Gives where to look for what is at a path, before something was moved there.
fn before(path: &TargetPath, from: &TargetPath, to: &TargetPath) -> Option<TargetPath> {
    let is_inside = || to.is_below(path).then(|| from.clone());
    path.rebase(to, from).or_else(is_inside)
}

fn is_taken_back(operation: &Operation, to: &TargetPath) -> bool {
    let mut targets = operation.targets.iter();
    let own = targets.find(|it| it.target.file() == Some(to));
    operation.status == Status::Undone || own.is_some_and(|it| !it.is_in_effect())
}

impl Engine {
    /// Lists the directories that an operation moved, in its order.
    pub(crate) fn moves_of(&self, operation: &Operation) -> Vec<(TargetPath, TargetPath)> {
        let is_tree = |key: &TargetPath| {
            let mut targets = operation.targets.iter().map(|it| &it.target);
            targets.any(|it| it.reach() == Reach::Tree && it.file() == Some(key))
        };
        if !may_move(operation) {
            return Vec::new();
        }
        let effect = self.store.effect(operation.id).ok();
        let files = effect.and_then(|it| self.as_files(&it).ok().flatten());
        let moves = files.and_then(|it| self.files.moves(&it).ok());
        let mut moves = moves.unwrap_or_default();
        moves.retain(|(from, to)| is_tree(from) && is_tree(to));
        moves
    }
}

/// Tells whether an operation may have moved a directory, by what is known without its recipe.
fn may_move(operation: &Operation) -> bool {
    let is_tree = |it: &&backout_model::Standing| {
        it.target.reach() == Reach::Tree && it.target.file().is_some()
    };
    let has_happened = match operation.status {
        Status::Applied | Status::Committed | Status::Undone => true,
        Status::Armed
        | Status::Interrupted
        | Status::InDoubt
        | Status::Failed
        | Status::Proposed
        | Status::Refused
        | Status::Aborted => false,
    };
    let moves = match operation.verb {
        Verb::Move
        | Verb::Restore
        | Verb::Batch
        | Verb::Run
        | Verb::Undo
        | Verb::Redo
        | Verb::Recover => true,
        Verb::Write
        | Verb::Edit
        | Verb::Append
        | Verb::Remove
        | Verb::Copy
        | Verb::Mkdir
        | Verb::Link
        | Verb::Chmod
        | Verb::Chown => false,
    };
    has_happened && moves && operation.targets.iter().filter(is_tree).count() > 1
}
