//! Directories of an ordinary user that are closed to himself: they are opened while their entries change.
//!
//! A command can open a directory and write in it. Taking that back must open it, too, or keep it open to the end. What mode a
//! directory has in the end is what its own step says, or what it was. Root needs none of this.

use std::collections::{BTreeMap, BTreeSet};

use backout_model::TargetPath;
use rustix::fs::Mode;

use super::{Purpose, Run, Step};
use crate::file::recipe::{Change, Image, Kind};
use crate::file::sys::{Dir, Node, meta};

/// What an owner needs to change entries.
const OPEN: u32 = 0o300;

/// What a mode has beside the kind of inode.
const MODE: u32 = 0o7777;

/// Directories that were opened, with the mode that they are to have.
pub(super) type Opened = BTreeMap<TargetPath, u32>;

/// Tells whether a directory is closed to its owner, and its owner is who we are.
pub(crate) fn is_closed(node: &Node) -> bool {
    let user = rustix::process::geteuid();
    !user.is_root() && user.as_raw() == node.uid && node.mode & OPEN != OPEN
}

/// Opens the directories that steps change entries of, where the mode is part of what is taken back, or is its `own`. A
/// directory that somebody else closed stays closed, and so does every one for what is written anew.
pub(super) fn open(steps: &[Step], purpose: Purpose, own: &BTreeSet<TargetPath>) -> Opened {
    let mut opened = Opened::new();
    if rustix::process::geteuid().is_root() || purpose != Purpose::Undo {
        return opened;
    }
    let paths = steps.iter().flat_map(|step| match &step.change {
        Change::Set { path, .. } => vec![path.parent(), Some(path.clone())],
        // A directory that moves has another one above it: that is written into itself.
        Change::Move { from, to, .. } => vec![from.parent(), to.parent(), Some(from.clone())],
        Change::Retouch { .. } | Change::Rewrite { .. } => Vec::new(),
    });
    // From above: what is below a closed directory cannot be reached.
    let mut paths: Vec<TargetPath> = paths.flatten().collect();
    paths.sort();
    paths.dedup();
    let changed: BTreeSet<&TargetPath> = steps
        .iter()
        .filter(|step| !matches!(step.change, Change::Move { .. } | Change::Rewrite { .. }))
        .map(|step| step.change.path())
        .collect();
    let may_open = |path: &TargetPath| changed.contains(path) || own.contains(path);
    for path in paths.into_iter().filter(may_open) {
        open_one(&path, &mut opened);
    }
    opened
}

/// Names the directories that steps need open and that only their recipe can say so of: none of the steps gives them a mode.
pub(crate) fn opened(steps: &[Step], own: &BTreeSet<TargetPath>) -> BTreeSet<TargetPath> {
    let parents = steps.iter().flat_map(|step| match &step.change {
        Change::Set { path, .. } => vec![path.parent()],
        Change::Move { from, to, .. } => vec![from.parent(), to.parent()],
        Change::Retouch { .. } | Change::Rewrite { .. } => Vec::new(),
    });
    let is_named = |path: &TargetPath| steps.iter().any(|step| step.change.path() == path);
    let is_needed = |path: &TargetPath| {
        own.contains(path) && node_of(path).is_some_and(|node| is_closed(&node)) && !is_named(path)
    };
    parents.flatten().filter(is_needed).collect()
}

fn open_one(path: &TargetPath, opened: &mut Opened) {
    let Some(node) = node_of(path).filter(is_closed) else {
        return;
    };
    let mode = node.mode & MODE;
    if set_mode(path, mode | OPEN) {
        opened.entry(path.clone()).or_insert(mode);
    }
}

fn node_of(path: &TargetPath) -> Option<Node> {
    let node = Dir::of(path).ok()?.node().ok()??;
    (node.kind == Kind::Directory).then_some(node)
}

fn set_mode(path: &TargetPath, mode: u32) -> bool {
    let handle = Dir::of(path).and_then(|place| place.handle());
    let Ok(handle) = handle else {
        return false;
    };
    let path = meta::proc_path(rustix::fd::AsFd::as_fd(&handle));
    rustix::fs::chmod(path, Mode::from_raw_mode(mode)).is_ok()
}

/// Gives directories the mode that they are to have. One that is gone, or was made anew, has it.
pub(super) fn close(opened: &Opened) {
    for (path, mode) in opened.iter().rev() {
        if node_of(path).is_some_and(|now| now.mode & MODE == mode | OPEN) {
            set_mode(path, *mode);
        }
    }
}

impl Run<'_> {
    /// Opens a directory again that a step has closed.
    pub(super) fn keep_open(&mut self, index: usize) {
        let Some(step) = self.steps.get(index) else {
            return;
        };
        let (Change::Retouch {
            path, after: meta, ..
        }
        | Change::Set {
            path,
            after: Image::Directory { meta },
            ..
        }) = &step.change
        else {
            return;
        };
        let mode = meta.mode;
        let is_needless = rustix::process::geteuid().is_root() || self.purpose != Purpose::Undo;
        if is_needless || node_of(path).is_none() {
            return;
        }
        self.opened.remove(path);
        if mode & OPEN != OPEN {
            open_one(path, &mut self.opened);
        }
    }
}
