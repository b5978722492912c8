//! What the names of a step will be when its turn comes: newer steps of the plan are taken back first, and bring back what
//! they found. Somebody else may have written between the two.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;

use backout_files::{FileChange, Was};
use backout_model::ports::Examined;
use backout_model::{Key, Reach, Target, TargetPath};

use super::after_newer::{InTheWay, Past, is_gone_again, is_stuck};
use super::by_then::{Made, after_moves, displaced, homes, without_home};
use super::preview::{touches, way_of};
use super::work::Work;
use crate::{Engine, EngineError, PlannedStep, TakeBack};

/// What is said of a name that is not there any more.
pub(super) const REMOVED: &str = "somebody else removed it";

/// What is said of a name that was not there.
pub(super) const MADE: &str = "somebody else made it";

/// What is said of a name that is something else.
pub(super) const CHANGED: &str = "somebody else changed it";

/// A name of which it is not known yet what it will be.
struct Open {
    /// What the step left there.
    left: FileChange,
    /// What newer steps did to its mode and owner only, the nearest first: they say nothing of its bytes.
    dress: Vec<FileChange>,
}

impl Open {
    const fn new(left: FileChange) -> Self {
        Self {
            left,
            dress: Vec::new(),
        }
    }

    /// Gives what a name will be when the mode and owner are put back, too.
    fn undressed(&self, found: Was) -> Was {
        let newest_first = self.dress.iter().rev();
        newest_first.fold(found, |found, dress| dress.put_back_looks(found))
    }
}

/// What a name will be when its turn comes.
struct ByThen {
    open: Open,
    found: Option<Was>,
    when: String,
}

impl Engine {
    /// Finds the targets that will not be what an operation left when its turn comes: somebody else wrote between it and
    /// the newer step that is taken back first, which brings back what that somebody wrote.
    pub(super) fn between(
        &self,
        work: &Work<'_>,
        (newer, steps): (&[Work<'_>], &[PlannedStep]),
        examined: &[Examined],
        is_partial: bool,
    ) -> Result<HashMap<Key, InTheWay>, EngineError> {
        let mut between = HashMap::new();
        let driver = self.driver_of(&work.effect)?;
        // What is told in parts stands for itself, whatever happened to the rest of the file.
        if let Some(left) = driver.values(&work.effect)? {
            return self.between_values(work, left, (newer, steps), is_partial);
        }
        let Some(effect) = driver.as_files(&work.effect)? else {
            return Ok(between);
        };
        let changes = self.files.changes(&effect)?;
        // What is in a directory that this step moved afterwards went with it.
        let displaced = displaced(&changes);
        let mut left = HashMap::new();
        for change in self.sides(work)? {
            if !displaced.contains(&change.path) {
                left.insert(change.path.clone(), change);
            }
        }
        let come = driver.outline(&work.effect)?.come;
        let made = Made::of(&left, &changes, &come);
        let is_redo = way_of(work.operation) == TakeBack::Redo;
        let mut open = all_open(&left, is_redo);
        let mut by_then = Vec::new();
        // The nearest step is the last to write before this one's turn.
        for newer in newer.iter().rev() {
            // Where only a part is done, what is stuck stays as it is now.
            let stays = |path: &TargetPath| is_partial && is_stuck(steps, newer, path);
            self.told_by_newer((newer, &stays), &mut open, &mut by_then)?;
        }
        let now: HashMap<TargetPath, TargetPath> = open
            .iter()
            .map(|(name, open)| (open.left.path.clone(), name.clone()))
            .collect();
        let filled = self.filled(&made, &now, (newer, steps))?.into_iter();
        between.extend(filled.map(|(key, why)| (key, InTheWay::new(why, Past::Merge))));
        // What no step brings back is as it is now, if it has no other name by which it could be written. A name that something
        // went from is free, or somebody has it.
        for (name, open) in open {
            let is_left = open.dress.is_empty() && open.left.after.is_none();
            let found = self.files.now(&name)?;
            if is_left || found.is_none() || is_alone(&name) {
                let when = "since".to_owned();
                by_then.push(ByThen { open, found, when });
            }
        }
        between.extend(self.in_their_way(work, &left, by_then, examined)?);
        Ok(between)
    }

    /// Says of what a step left so, and of what will be there when its turn comes, what stands in the way.
    fn in_their_way(
        &self,
        work: &Work<'_>,
        left: &HashMap<TargetPath, FileChange>,
        by_then: Vec<ByThen>,
        examined: &[Examined],
    ) -> Result<HashMap<Key, InTheWay>, EngineError> {
        let shared = |path: &TargetPath| {
            let of = |it: &&Examined| it.shared.is_some() && it.target.file() == Some(path);
            examined.iter().find(of).and_then(|it| it.shared.clone())
        };
        let is_own = |it: &ByThen| left.contains_key(&it.open.left.path);
        let (own, homes): (Vec<_>, Vec<_>) = by_then.into_iter().partition(is_own);
        let is_gone = |it: &ByThen| !it.found.as_ref().is_some_and(Was::is_directory);
        let gone = homes.into_iter().filter(is_gone);
        let gone = gone.map(|it| it.open.left.path).collect();
        let homeless = without_home(left, &gone).into_iter();
        let homeless = homeless.map(|(key, why)| (key, InTheWay::new(why, Past::Force)));
        let mut in_the_way: HashMap<Key, InTheWay> = homeless.collect();
        for ByThen { open, found, when } in own {
            let left = &open.left;
            let found = found.map(|found| open.undressed(found));
            let is_homeless = left.path.parent().is_some_and(|home| gone.contains(&home));
            let is_redo = way_of(work.operation) == TakeBack::Redo;
            let it = if is_redo && is_gone_again(left, found.as_ref()) {
                let why = self.gone_for_good(work, &left.path, is_homeless)?;
                why.map(|why| InTheWay::new(format!("{REMOVED} {when}; {why}"), Past::Nothing))
            } else {
                let is_other = self.unlike(left.before.as_ref(), found.as_ref())?.is_some();
                let shared = || shared(&left.path).filter(|_| is_other);
                let why = self
                    .in_the_way(left, found.as_ref(), &when)?
                    .or_else(shared);
                // What is not there, then or now, is no text that merges.
                let past = if left.after.is_none() || found.is_none() {
                    Past::Force
                } else {
                    Past::Merge
                };
                why.map(|why| InTheWay::new(why, past))
            };
            in_the_way.extend(it.map(|it| (left.path.clone().into(), it)));
        }
        Ok(in_the_way)
    }

    /// Takes the names out that a newer step tells of, and follows those that it moved.
    fn told_by_newer(
        &self,
        (newer, stays): (&Work<'_>, &dyn Fn(&TargetPath) -> bool),
        open: &mut HashMap<TargetPath, Open>,
        by_then: &mut Vec<ByThen>,
    ) -> Result<(), EngineError> {
        let mut moves = self.moves(newer)?;
        moves.retain(|(from, to)| !stays(from) && !stays(to));
        // What is moved stays what it is, unless the step changed it, too.
        let is_new = |path: &TargetPath| moves.iter().any(|(_, to)| to == path);
        let (mut carried, mut rest) = (HashMap::new(), HashMap::new());
        for (name, it) in std::mem::take(open) {
            match after_moves(&name, &moves) {
                Some(name) => carried.insert(name, it),
                None => rest.insert(name, it),
            };
        }
        let mut dressed = HashSet::new();
        for change in self.sides_and_below(newer)? {
            let (name, before) = (&change.path, &change.before);
            if stays(name) {
                dressed.insert(name.clone());
                continue;
            }
            if before.as_ref().is_some_and(Was::is_dress) {
                dressed.insert(name.clone());
                let dressed = [carried.get_mut(name), rest.get_mut(name)];
                let dressed = dressed.into_iter().flatten();
                dressed.for_each(|it: &mut Open| it.dress.push(change.clone()));
                continue;
            }
            let of_carried = if is_new(name) {
                None
            } else {
                carried.remove(name)
            };
            let told = rest.remove(name).into_iter().chain(of_carried);
            by_then.extend(told.map(|open| ByThen {
                open,
                found: before.clone(),
                when: format!("before {}", newer.operation.id.short()),
            }));
        }
        // What is in a tree comes and goes with it; steps before that know nothing of it.
        let is_inside = |path: &TargetPath| touches(&newer.step, &Target::node(path.clone()));
        rest.retain(|path, _| dressed.contains(path) || !is_inside(path));
        open.extend(rest);
        open.extend(carried);
        Ok(())
    }

    /// Says what stands in the way of a step that left a name so and finds it so.
    fn in_the_way(
        &self,
        left: &FileChange,
        found: Option<&Was>,
        when: &str,
    ) -> Result<Option<String>, EngineError> {
        // What is gone, and was not there before, is as before.
        if left.is_as_now || left.before.is_none() && found.is_none() {
            return Ok(None);
        }
        let what = self.unlike(left.after.as_ref(), found)?;
        let looks = || found.and_then(|found| left.differs_in_looks(found));
        Ok(what.map(|what| format!("{what} {when}")).or_else(looks))
    }

    /// Says what somebody did to a name that was left as the first and found as the second, as far as both are known.
    fn unlike(
        &self,
        left: Option<&Was>,
        found: Option<&Was>,
    ) -> Result<Option<&'static str>, EngineError> {
        let (left, found) = match (left, found) {
            (None, None) => return Ok(None),
            (Some(_), None) => return Ok(Some(REMOVED)),
            (None, Some(_)) => return Ok(Some(MADE)),
            (Some(left), Some(found)) => (left, found),
        };
        // By its other name a file may have been written without that being told of this one, and what it is is told there, too.
        if left.same_as().or(found.same_as()).is_some() {
            return Ok(None);
        }
        let sizes = left.size().zip(found.size());
        let links = left.points_to().zip(found.points_to());
        let is_other = left.word() != found.word()
            || links.is_some_and(|(left, found)| left != found)
            || sizes.is_some_and(|(left, found)| left != found)
            || match (self.files.digest(left)?, self.files.digest(found)?) {
                (Some(left), Some(found)) => left != found,
                // What is known as the inode that it was is told by its time.
                _ => is_known_as_inode(left) && written_at(left) != written_at(found),
            };
        Ok(is_other.then_some(CHANGED))
    }

    /// Gives what a step does to each of the names that are meant.
    pub(super) fn sides(&self, work: &Work<'_>) -> Result<Vec<FileChange>, EngineError> {
        let is_meant = |change: &FileChange| {
            let is_it = |target: &Target| target.file() == Some(&change.path);
            work.step.targets.iter().any(is_it)
        };
        let sides = self.sides_of(&work.effect)?;
        Ok(sides.into_iter().filter(is_meant).collect())
    }

    /// The same, with what is in trees that a step brings back as one.
    fn sides_and_below(&self, work: &Work<'_>) -> Result<Vec<FileChange>, EngineError> {
        let is_meant = |change: &FileChange| {
            let is_in = |target: &Target| {
                let Some(path) = target.file() else {
                    return false;
                };
                let is_below = || change.path.is_below(path) && !change.is_as_now;
                change.path == *path || (target.reach() == Reach::Tree && is_below())
            };
            work.step.targets.iter().any(is_in)
        };
        let sides = self.sides_of(&work.effect)?;
        Ok(sides.into_iter().filter(is_meant).collect())
    }
}

/// Lists the names that a step left, and the directories that they need.
fn all_open(left: &HashMap<TargetPath, FileChange>, is_redo: bool) -> HashMap<TargetPath, Open> {
    let homes = homes(left, is_redo).into_iter();
    let homes = homes.map(|home| FileChange::new(home, None, None));
    let open = left.values().cloned().chain(homes);
    open.map(|left| (left.path.clone(), Open::new(left)))
        .collect()
}

/// Tells whether what has a name has no other.
fn is_alone(path: &TargetPath) -> bool {
    let now = path.as_path().symlink_metadata();
    now.is_ok_and(|now| now.is_dir() || now.nlink() == 1)
}

/// Tells when a file was last written, if it is known as an inode.
fn written_at(was: &Was) -> Option<i128> {
    let times = || was.meta.as_ref()?.times.map(|times| times.mtime);
    was.identity.map(|it| it.mtime).or_else(times)
}

/// Tells whether nothing is known of the bytes of a file but which inode has them.
fn is_known_as_inode(was: &Was) -> bool {
    was.is_file() && !was.is_dress() && was.identity.is_some() && was.digest().is_none()
}
