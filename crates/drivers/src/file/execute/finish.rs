//! Phase E: times, syncs, and what only the effect could tell.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backout_model::TargetPath;
use backout_model::wide::Wide;

use super::{Happened, Run, SINGLE_SYNCS_MAX};
use crate::file::compare::{BELIEVED_BYTES_MIN, Current};
use crate::file::error::FileError;
use crate::file::recipe::{Change, FileCompletion, Identity, Image, ParentTimes, Times};
use crate::file::sys::{Dir, meta};

/// The coarsest clock tick by which kernels stamp inodes.
const TICK: Duration = Duration::from_millis(10);

impl Run<'_> {
    /// Reads the times of every directory that a step may touch, for the case that it fails.
    pub(super) fn times_of_all(&self) -> Vec<(TargetPath, Times)> {
        let mut paths = BTreeSet::new();
        for step in self.steps {
            paths.extend(step.change.path().parent());
            if let Change::Move { from, .. } = &step.change {
                paths.extend(from.parent());
            }
        }
        let read = |path: &TargetPath| Dir::open(path).ok()?.node().ok();
        let with = paths
            .into_iter()
            .filter_map(|path| Some((read(&path)?.times, path)));
        with.map(|(times, path)| (path, times)).collect()
    }

    /// Gives directories the times they shall have.
    pub(super) fn finish_times(
        &self,
        parents: &[ParentTimes],
        before: &[Option<Times>],
    ) -> Result<(), FileError> {
        for step in self.steps.iter().rev() {
            if let Change::Set {
                path,
                after: Image::Directory { meta },
                ..
            } = &step.change
                && let Some(times) = meta.times
            {
                meta::write_times(Dir::of(path)?.handle()?, times, path)?;
            }
        }
        for (parent, was) in std::iter::zip(parents, before) {
            let is_ours = was.is_some_and(|was| was.mtime == parent.before.mtime);
            if let (Some(times), true) = (parent.after, is_ours) {
                set_times(&parent.path, times)?;
            }
        }
        self.context.reach("file.times")
    }

    /// Makes every touched directory durable: depots first, so that no kept inode is ever nameless.
    pub(super) fn sync_all(&self) -> Result<(), FileError> {
        for depot in &self.depots {
            self.context.syncs.dir(&*Dir::open(depot)?, "depot.link")?;
            self.context.reach("file.depot-synced")?;
        }
        if self.touched.len() > SINGLE_SYNCS_MAX {
            return self.sync_file_systems();
        }
        for path in &self.touched {
            // A directory that this very operation removed or moved is in its parent's sync.
            match Dir::open(path) {
                Ok(dir) => self.context.syncs.dir(&dir, self.sync_name(false))?,
                Err(error) if error.leads_nowhere() => {}
                Err(error) => return Err(error),
            }
            self.context.reach("file.dir-synced")?;
        }
        Ok(())
    }

    /// Tells what the effect left behind.
    pub(super) fn complete(&self, parents: &[ParentTimes]) -> Result<Happened, FileError> {
        let mut nodes = Vec::with_capacity(self.steps.len());
        for step in self.steps {
            nodes.push(Current::at(step.change.path())?.node);
        }
        let unlike = self.unlike(&nodes);
        let identities: Vec<_> = nodes
            .into_iter()
            .map(|node| node.map(|node| node.identity))
            .collect();
        wait_out_the_tick(&identities);
        let after = times_of(parents)
            .into_iter()
            .map(|times| times.map(|times| Wide(times.mtime)));
        let completion = FileCompletion {
            identities,
            parents: after.collect(),
        };
        Ok(Happened { completion, unlike })
    }
}

/// Reads the times of the directories whose entries are about to change.
pub(super) fn times_of(parents: &[ParentTimes]) -> Vec<Option<Times>> {
    let read = |parent: &ParentTimes| Dir::open(&parent.path).ok()?.node().ok();
    parents
        .iter()
        .map(|parent| read(parent).map(|node| node.times))
        .collect()
}

/// Gives a directory its times, if they are ours to set.
pub(super) fn set_times(path: &TargetPath, times: Times) -> Result<(), FileError> {
    let dir = Dir::open(path)?;
    match meta::write_times(&*dir, times, path) {
        Err(_) if !meta::may_set_times(&dir.node()?) => Ok(()),
        result => result,
    }
}

/// A large file is later believed by its stamps, so nobody may be able to change it within the same tick
/// of the clock that stamped it.
fn wait_out_the_tick(identities: &[Option<Identity>]) {
    let large = identities
        .iter()
        .flatten()
        .filter(|left| left.size >= BELIEVED_BYTES_MIN);
    let Some(newest) = large.map(|left| left.ctime).max() else {
        return;
    };
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let stamped = Duration::from_nanos(u64::try_from(newest).unwrap_or(0));
    if let Some(rest) = (stamped + TICK).checked_sub(now) {
        std::thread::sleep(rest.min(TICK));
    }
}
