//! What the names of a step will be when its turn comes: newer steps of the plan are taken back first, and bring back what
//! they found. Somebody else may have written between the two.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;

use backout_files::said::names_shown;
use backout_files::{FileChange, Was};
use backout_model::ports::Examined;
use backout_model::{Key, Reach, Target, TargetPath};

use super::preview::touches;
use super::work::Work;
use crate::{Engine, EngineError};

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

impl Engine {
    /// Finds the targets that will not be what an operation left when its turn comes: somebody else wrote between it and
    /// the newer step that is taken back first, which brings back what that somebody wrote.
    pub(super) fn between(
        &self,
        work: &Work<'_>,
        newer: &[Work<'_>],
        examined: &[Examined],
    ) -> Result<HashMap<Key, String>, EngineError> {
        let mut between = HashMap::new();
        let driver = self.driver_of(&work.effect)?;
        // What is told in parts stands for itself, whatever happened to the rest of the file.
        let whole = driver.values(&work.effect)?.is_none();
        let Some(effect) = driver.as_files(&work.effect)?.filter(|_| whole) else {
            return Ok(between);
        };
        let mut left = HashMap::new();
        for change in self.sides(work)? {
            left.insert(change.path.clone(), change);
        }
        // What is in a directory that was moved, or goes as one, goes with it.
        let changes = self.files.changes(&effect)?;
        let moves = || {
            changes
                .iter()
                .filter_map(|it| Some((it, it.from.as_ref()?)))
        };
        if moves().next().is_none() && changes.iter().all(|change| !change.is_as_now) {
            let come = driver.outline(&work.effect)?.come;
            between.extend(filled(&left, &come, self.brought_by(newer)?));
        }
        let shared = |path: &TargetPath| {
            let of = |it: &&Examined| it.shared.is_some() && it.target.file() == Some(path);
            examined.iter().find(of).and_then(|it| it.shared.clone())
        };
        let mut note = |open: &Open, found: Option<Was>, when: &str| {
            let left = &open.left;
            let found = found.map(|found| open.undressed(found));
            let why = self.in_the_way(left, found.as_ref(), when)?;
            let is_other = self.unlike(left.before.as_ref(), found.as_ref())?.is_some();
            let why = why.or_else(|| shared(&left.path).filter(|_| is_other));
            between.extend(why.map(|why| (left.path.clone().into(), why)));
            Ok::<_, EngineError>(())
        };
        let open = left.into_iter().map(|(path, left)| (path, Open::new(left)));
        let mut open: HashMap<TargetPath, Open> = open.collect();
        // The nearest step is the last to write before this one's turn.
        for newer in newer.iter().rev() {
            let mut dressed = HashSet::new();
            for change in self.sides_and_below(newer)? {
                let Some(mut it) = open.remove(&change.path) else {
                    continue;
                };
                if change.before.as_ref().is_some_and(Was::is_dress) {
                    let path = change.path.clone();
                    it.dress.push(change);
                    dressed.insert(path.clone());
                    open.insert(path, it);
                } else {
                    let when = format!("before {}", newer.operation.id.short());
                    note(&it, change.before, &when)?;
                }
            }
            // What is in a tree comes and goes with it; steps before that know nothing of it.
            let is_inside = |path: &TargetPath| touches(&newer.step, &Target::node(path.clone()));
            open.retain(|path, _| dressed.contains(path) || !is_inside(path));
        }
        // What no step brings back is as it is now, if it has no other name by which it could be written. A name that something
        // went from is free, or somebody has it. What is in a directory that this step moves is not there any more by then.
        open.retain(|path, _| {
            !moves().any(|(to, from)| path.is_below(&to.path) || path.is_below(from))
        });
        for (path, it) in open {
            let is_left = it.dress.is_empty() && it.left.after.is_none();
            if is_left || !it.dress.is_empty() && is_alone(&path) {
                note(&it, self.files.now(&path)?, "since")?;
            }
        }
        Ok(between)
    }

    /// Says what stands in the way of a step that left a name so and finds it so.
    fn in_the_way(
        &self,
        left: &FileChange,
        found: Option<&Was>,
        when: &str,
    ) -> Result<Option<String>, EngineError> {
        if left.is_as_now {
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
            (Some(_), None) => return Ok(Some("somebody else removed it")),
            (None, Some(_)) => return Ok(Some("somebody else made it")),
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
                _ => false,
            };
        Ok(is_other.then_some("somebody else changed it"))
    }

    /// Gives what a step does to each of the names that are meant.
    fn sides(&self, work: &Work<'_>) -> Result<Vec<FileChange>, EngineError> {
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

    /// Names what is there when some steps have been taken back, of all that they touch.
    fn brought_by(&self, works: &[Work<'_>]) -> Result<BTreeSet<TargetPath>, EngineError> {
        let mut there = BTreeSet::new();
        for work in works {
            for change in self.sides(work)? {
                if change.before.is_some() {
                    there.insert(change.path);
                } else {
                    there.remove(&change.path);
                }
            }
        }
        Ok(there)
    }
}

/// Tells whether what has a name has no other.
fn is_alone(path: &TargetPath) -> bool {
    let now = path.as_path().symlink_metadata();
    now.is_ok_and(|now| now.is_dir() || now.nlink() == 1)
}

/// Finds the directories that a step made and that will not be empty when its turn comes. What came as one goes as one.
fn filled(
    left: &HashMap<TargetPath, FileChange>,
    come: &BTreeSet<Key>,
    there: BTreeSet<TargetPath>,
) -> HashMap<Key, String> {
    let mut inside: HashMap<TargetPath, Vec<OsString>> = HashMap::new();
    for path in there {
        let is_made = |path: &TargetPath| {
            left.get(path).is_some_and(|it| it.before.is_none())
                && !come.contains(&Key::from(path.clone()))
        };
        let above = path.parent().filter(is_made);
        if let Some((above, name)) = above.zip(path.as_path().file_name())
            && !is_made(&path)
        {
            inside.entry(above).or_default().push(name.to_owned());
        }
    }
    let why = |names: Vec<OsString>| format!("the directory is not empty: {}", names_shown(&names));
    let filled = inside.into_iter();
    filled
        .map(|(path, names)| (path.into(), why(names)))
        .collect()
}
