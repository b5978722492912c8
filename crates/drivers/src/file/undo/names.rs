//! The way back of a move and of changed permissions.

use backout_files::inode::put_back_changed;
use backout_model::ports::OnConflict;
use backout_model::{OutcomeKind, TargetOutcome, TargetPath};

use super::homes::without_directory;
use super::prepare::Undo;
use super::rights::{gap_of, only_root};
use super::stamps::written_below;
use crate::file::before_image::meta_of_moved;
use crate::file::compare::{Current, differs_in_kind};
use crate::file::error::FileError;
use crate::file::execute::{Seen, Step};
use crate::file::judge::{State, not_what_was_moved};
use crate::file::listing::ENTRIES_MAX;
use crate::file::recipe::{Change, Identity, Image, Kind, Meta};
use crate::file::stage::Material;
use crate::file::sys::{Node, Place};

impl Undo<'_> {
    pub(super) fn take_back_retouch(
        &mut self,
        (path, kind): (&TargetPath, Option<Kind>),
        before: &Meta,
        after: &Meta,
        state: State,
    ) -> Result<OutcomeKind, FileError> {
        let outcome = match (state, self.is_forced()) {
            (State::Before, _) => return Ok(OutcomeKind::AlreadyGone),
            (State::Other { why }, false) => return Ok(OutcomeKind::Conflict { why }),
            (State::Other { why }, true) => OutcomeKind::Overwritten { why },
            (State::After, _) => OutcomeKind::Restored,
        };
        let current = Current::at(path)?;
        let (Some(place), Some(node)) = (&current.place, &current.node) else {
            return Ok(OutcomeKind::Conflict {
                why: "it is gone".to_owned(),
            });
        };
        // Only its permissions were kept: they are nothing for something else.
        if let Some(why) = kind.and_then(|kind| differs_in_kind(node, kind)) {
            return Ok(OutcomeKind::Conflict { why });
        }
        let mut now = current.meta_like(place, node, after)?.into_owned();
        if !before.changes_times_to(after) {
            now.times = None;
        }
        let wanted = put_back_changed(&now, before, after);
        if let Some(gap) = gap_of(node, &wanted) {
            let why = only_root(&gap);
            return Ok(OutcomeKind::Failed { why });
        }
        let change = Change::Retouch {
            path: path.clone(),
            before: now,
            after: wanted,
            node: Some(node.kind),
        };
        let step = Step::new(0, change, Material::Image);
        self.steps.push(Step {
            seen: Seen::There(*node),
            ..step
        });
        Ok(outcome)
    }

    pub(super) fn take_back_move(
        &mut self,
        (from, to): (&TargetPath, &TargetPath),
        (kind, identity): (Kind, &Identity),
        replaced: &Image,
        state: State,
    ) -> Result<OutcomeKind, FileError> {
        let (old, new) = (Current::at(from)?, Current::at(to)?);
        let outcome = outcome_of_move(state, self.how.on_conflict, old.node.is_none());
        if matches!(
            outcome,
            OutcomeKind::AlreadyGone | OutcomeKind::Conflict { .. }
        ) {
            return Ok(outcome);
        }
        if new.node.is_none() && self.how.is_unfinished && !replaced.is_absent() {
            return self.put_replaced(&new, replaced);
        }
        if self.is_forced() && new.node.is_some() && !self.has_directory(&old) {
            let _else_a_conflict = self.make_home(from)?;
        }
        let Some(node) = new.node.filter(|node| node.kind == kind) else {
            let why = not_what_was_moved(to, kind, new.node.as_ref());
            return Ok(OutcomeKind::Conflict { why });
        };
        if !self.has_directory(&old) {
            let why = without_directory(from);
            return Ok(OutcomeKind::Conflict { why });
        }
        let obtained = match self.obtain(to, replaced)? {
            Ok(obtained) => obtained,
            Err(why) => return Ok(OutcomeKind::Failed { why }),
        };
        let (there, seen_at_new) = match (self.withdrawn(from), &old.place, &old.node) {
            (Some(withdrawn), _, _) => withdrawn,
            (None, Some(_), Some(_)) if self.is_cleared(from) => (Image::Absent, Seen::Absent),
            (None, Some(place), Some(node)) if node.kind == Kind::Directory => {
                let why = format!("`{from}` is a directory now");
                if !self.is_forced() || !self.make_room(from, to, (place, node))? {
                    return Ok(OutcomeKind::Conflict { why });
                }
                (Image::Absent, Seen::Absent)
            }
            // Nothing of this undo takes it away, so it is somebody else's.
            (None, Some(_), Some(_)) if !self.is_forced() => {
                return Ok(OutcomeKind::Conflict {
                    why: format!("`{from}` is something else now"),
                });
            }
            (None, Some(place), Some(_)) => {
                let (image, node) = self.keeper.keep(place)?;
                (image, Seen::There(node))
            }
            (None, _, _) => (Image::Absent, Seen::Absent),
        };
        self.note_written_below((from, to), kind, identity);
        let change = Change::Move {
            from: to.clone(),
            to: from.clone(),
            node: node.kind,
            identity: node.identity,
            replaced: there,
            meta: new
                .place
                .as_ref()
                .map_or(Ok(None), |place| meta_of_moved(place, &node))?,
        };
        let step = Step::new(0, change, Material::Image);
        self.steps.push(Step {
            seen: Seen::There(node),
            seen_at_new,
            ..step
        });
        if !obtained.image.is_absent() {
            self.put(&new, (Image::Absent, Seen::Absent), obtained)?;
        }
        Ok(outcome)
    }

    /// Notes that somebody wrote in a directory after it was moved: that stays. What the effect itself did in it is told apart.
    fn note_written_below(
        &mut self,
        (from, to): (&TargetPath, &TargetPath),
        kind: Kind,
        identity: &Identity,
    ) {
        let is_inside =
            |change: &Change| change.path().is_below(to) || change.path().is_below(from);
        if kind != Kind::Directory || self.changes.iter().any(is_inside) {
            return;
        }
        let moved_at = to.parent().and_then(|above| self.left_at.get(&above));
        let moved = (identity, moved_at.copied());
        if let Some(at) = written_below(to.as_path(), moved, ENTRIES_MAX) {
            self.keeper.notes.push(format!(
                "what is in `{from}` was changed after the move, {at}, and stays so"
            ));
        }
    }

    /// Plans to put somebody's directory away, whole, that has the old name of a move. Gives false if it cannot be: nothing
    /// could keep it, or it holds what is to come back.
    fn make_room(
        &mut self,
        from: &TargetPath,
        to: &TargetPath,
        (place, node): (&Place, &Node),
    ) -> Result<bool, FileError> {
        let is_inside = |path: &TargetPath| path.is_below(from);
        let is_used = is_inside(to) || self.steps.iter().any(|step| is_inside(step.change.path()));
        if is_used {
            return Ok(false);
        }
        let Some(image) = self.park_whole(place, node)? else {
            return Ok(false);
        };
        let change = Change::Set {
            path: from.clone(),
            before: image,
            after: Image::Absent,
        };
        self.steps.push(Step {
            seen: Seen::There(*node),
            ..Step::new(0, change, Material::Image)
        });
        Ok(true)
    }

    /// What was to make room for a move that does not go back stays where it is: nothing would come in its place.
    pub(super) fn keep_room(&mut self, from: &TargetPath, outcomes: &mut [TargetOutcome]) {
        let is_whole = self.whole.contains_key(from);
        let is_room = |path: &TargetPath| path == from || is_whole && path.is_below(from);
        let planned = self.steps.len();
        self.steps.retain(|step| match &step.change {
            Change::Set { path, after, .. } => !(is_room(path) && after.is_absent()),
            Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => true,
        });
        if self.steps.len() == planned {
            return;
        }
        let room = outcomes
            .iter_mut()
            .filter(|it| it.target.file().is_some_and(is_room));
        for outcome in room.filter(|outcome| outcome.kind.is_taken_back()) {
            let why = "what belongs there cannot come back".to_owned();
            outcome.kind = OutcomeKind::Conflict { why };
        }
    }

    /// Puts back what a move had replaced that is already under its old name again.
    fn put_replaced(&mut self, at: &Current, replaced: &Image) -> Result<OutcomeKind, FileError> {
        match self.obtain(&at.path, replaced)? {
            Ok(obtained) => self.put(at, (Image::Absent, Seen::Absent), obtained),
            Err(why) => Ok(OutcomeKind::Failed { why }),
        }
    }

    /// Tells whether a step so far takes a directory away from under a name, or from above it.
    fn is_cleared(&self, path: &TargetPath) -> bool {
        let is_part = |other: &TargetPath| path == other || path.is_below(other);
        self.steps.iter().any(|step| match &step.change {
            Change::Set {
                path: other, after, ..
            } => is_part(other) && after.is_absent(),
            Change::Move { from, .. } => is_part(from),
            Change::Retouch { .. } | Change::Rewrite { .. } => false,
        })
    }

    /// Tells whether a step so far moves what has a name away.
    pub(super) fn is_moved_away(&self, path: &TargetPath) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| matches!(&step.change, Change::Move { from, .. } if from == path))
    }

    /// Takes out the step that only makes room under a name, so that a move can replace what is there in
    /// one step.
    fn withdrawn(&mut self, path: &TargetPath) -> Option<(Image, Seen)> {
        let makes_room = |step: &Step| match &step.change {
            Change::Set {
                path: other,
                after,
                before,
            } => other == path && after.is_absent() && !before.is_directory(),
            Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => false,
        };
        let index = self.steps.iter().position(makes_room)?;
        let step = self.steps.remove(index);
        match step.change {
            Change::Set { before, .. } => Some((before, step.seen)),
            Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => None,
        }
    }
}

/// Says what becomes of something that was moved. If its old name is free, only the name was ours to change: with that taken
/// back, everybody's changes stay.
fn outcome_of_move(state: State, on_conflict: OnConflict, is_free: bool) -> OutcomeKind {
    match (state, on_conflict) {
        (State::Before, _) => OutcomeKind::AlreadyGone,
        (State::Other { .. }, OnConflict::Merge | OnConflict::Force) if is_free => {
            OutcomeKind::Merged
        }
        (State::Other { why }, OnConflict::Refuse | OnConflict::Merge) => {
            OutcomeKind::Conflict { why }
        }
        (State::Other { why }, OnConflict::Force) => OutcomeKind::Overwritten { why },
        (State::After, _) => OutcomeKind::Restored,
    }
}
