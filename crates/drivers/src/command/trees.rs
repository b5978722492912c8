//! Trees that moved: told as a move where nothing in them was touched, else entry by entry.

use std::collections::BTreeMap;

use backout_model::TargetPath;

use super::settle::{Before, Settling};
use super::tracker::{Known, Standing};
use crate::file::error::FileError;
use crate::file::recipe::{Image, Kind};

impl Settling<'_> {
    /// Something of before has another name now.
    pub(super) fn moved(
        &mut self,
        origin: &TargetPath,
        now: &TargetPath,
        names: &BTreeMap<TargetPath, Standing>,
    ) -> Result<(), FileError> {
        self.look_at.insert(now.clone());
        if matches!(
            self.known.get(origin),
            Some(Known::Absent | Known::Whole(_))
        ) {
            return self.walk_new(now, names); // all of it is known
        }
        let Some(node) = self.node(now)? else {
            return Ok(());
        };
        let is_directory = node.kind == Kind::Directory;
        if node.is_shared {
            let to = Before::MovedTo(now.clone());
            self.before.insert(origin.clone(), to);
            return Ok(());
        }
        let has_its_time = self.has_its_times(origin, now)?;
        let is_touched = |path: &TargetPath| path.is_below(origin);
        let is_simple = !self.known.keys().any(is_touched)
            && !names.keys().any(|path| path.is_below(now))
            && !self.known.contains_key(origin)
            && has_its_time
            && (is_directory || self.node(origin)?.is_none());
        if is_simple {
            let to = Before::MovedTo(now.clone());
            self.before.insert(origin.clone(), to);
            return Ok(());
        }
        if is_directory {
            return self.flatten(origin, now, names);
        }
        // Its metadata was touched, or something else has its name: its content is kept now.
        let image = self.kept_now(now, self.known.get(origin).cloned())?;
        self.before.insert(origin.clone(), Before::Image(image));
        Ok(())
    }

    /// Tells whether a thing that moved, and each directory in it, has the time that it had.
    fn has_its_times(&mut self, origin: &TargetPath, now: &TargetPath) -> Result<bool, FileError> {
        let noted = self.tracker.parents.iter();
        let noted: Vec<_> = noted
            .filter(|(path, _)| *path == origin || path.is_below(origin))
            .filter_map(|(path, times)| Some((path.rebase(origin, now)?, times.mtime)))
            .collect();
        for (path, mtime) in noted {
            if self
                .node(&path)?
                .is_some_and(|node| node.times.mtime != mtime)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes a moved directory apart whose entries changed as well: each entry is told by itself.
    fn flatten(
        &mut self,
        origin: &TargetPath,
        now: &TargetPath,
        names: &BTreeMap<TargetPath, Standing>,
    ) -> Result<(), FileError> {
        let dressed = self.known.get(origin).cloned();
        let mut image = self.kept_now(now, dressed)?;
        if let (Image::Directory { meta }, Some(times)) =
            (&mut image, self.tracker.parents.get(origin))
        {
            meta.times = Some(*times);
        }
        self.before.insert(origin.clone(), Before::Image(image));
        self.look_at.insert(now.clone());
        for name in self.names_in(now)? {
            let (there, here) = (origin.join(&name), now.join(&name));
            if names.contains_key(&here) {
                continue;
            }
            let node = self.node(&here)?;
            let is_directory = node.is_some_and(|node| node.kind == Kind::Directory);
            let is_shared = node.is_some_and(|node| node.is_shared);
            let is_taken = self.node(&there)?.is_some();
            match self.known.get(&there) {
                Some(Known::Absent | Known::Whole(_)) => self.walk_new(&here, names)?,
                _ if is_directory => self.flatten(&there, &here, names)?,
                _ if is_shared => {
                    self.look_at.insert(here.clone());
                    self.before.insert(there, Before::MovedTo(here));
                }
                Some(dressed @ Known::Dressed { .. }) => {
                    let image = self.kept_now(&here, Some(dressed.clone()))?;
                    self.before.insert(there, Before::Image(image));
                    self.look_at.insert(here);
                }
                None if is_taken => {
                    let image = self.kept_now(&here, None)?;
                    self.before.insert(there, Before::Image(image));
                    self.look_at.insert(here);
                }
                None => {
                    self.look_at.insert(here.clone());
                    self.before.insert(there, Before::MovedTo(here));
                }
            }
        }
        Ok(())
    }

    /// Notes a name that the command made, and all that is below it.
    pub(super) fn walk_new(
        &mut self,
        path: &TargetPath,
        names: &BTreeMap<TargetPath, Standing>,
    ) -> Result<(), FileError> {
        let Some(node) = self.node(path)? else {
            return Ok(());
        };
        self.look_at.insert(path.clone());
        // What is in a directory that somebody else put there is theirs.
        if node.kind == Kind::Directory && !self.tracker.strangers.contains(path) {
            for name in self.names_in(path)? {
                let below = path.join(&name);
                if !names.contains_key(&below) && !self.tracker.strangers.contains(&below) {
                    self.walk_new(&below, names)?;
                }
            }
        }
        Ok(())
    }
}
