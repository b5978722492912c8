//! Ways to hurt a store: every page of every file, five ways.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::story::Story;

const PAGE: usize = 4096;
/// The log has a header, and one before each page.
const LOG_HEADER: usize = 32;
const FRAME: usize = PAGE + 24;

/// A file of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Journal,
    Log,
    Index,
    Head,
    Lock,
    Pack(usize),
    /// What the operation of this number keeps as a whole inode.
    Kept(usize),
}

/// What is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Truncate,
    FlipHead,
    FlipBody,
    Zero,
    Splice,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) which: Which,
    pub(crate) how: How,
    /// Where the page begins.
    pub(crate) at: usize,
}

impl Which {
    pub(crate) fn path(self, story: &Story) -> Option<PathBuf> {
        let state = story.world.state();
        let listed = |part: &str| {
            let entries = fs::read_dir(state.join(part))
                .into_iter()
                .flatten()
                .flatten();
            let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            paths.sort();
            paths
        };
        let path = match self {
            Self::Journal => state.join("journal.sqlite"),
            Self::Log => state.join("journal.sqlite-wal"),
            Self::Index => state.join("journal.sqlite-shm"),
            Self::Head => state.join("head"),
            Self::Lock => state.join("lock"),
            Self::Pack(number) => listed("contents").into_iter().nth(number)?,
            Self::Kept(number) => {
                let id = story.told.get(number)?.id.to_string();
                let is_its = |path: &PathBuf| path.to_string_lossy().contains(&id);
                listed("depot").into_iter().find(is_its)?
            }
        };
        path.exists().then_some(path)
    }
}

impl Damage {
    /// Lists every damage of a store like this one.
    pub(crate) fn all(story: &Story) -> Vec<Self> {
        let files = [
            Which::Journal,
            Which::Log,
            Which::Index,
            Which::Head,
            Which::Lock,
        ];
        let packs = (0..4).map(Which::Pack);
        let kept = (0..story.told.len()).map(Which::Kept);
        let mut all = Vec::new();
        for which in files.into_iter().chain(packs).chain(kept) {
            let Some(path) = which.path(story) else {
                continue;
            };
            all.push(Self {
                which,
                how: How::Delete,
                at: 0,
            });
            // A tree goes as a whole; an inode with another name is part of the world, not only of the store.
            let found = fs::metadata(&path).unwrap();
            if found.is_dir() || found.nlink() > 1 {
                continue;
            }
            let length = usize::try_from(found.len()).unwrap();
            let (first, step) = match which {
                Which::Log => (LOG_HEADER, FRAME),
                Which::Journal
                | Which::Index
                | Which::Head
                | Which::Lock
                | Which::Pack(_)
                | Which::Kept(_) => (0, PAGE),
            };
            let places = (first..length).step_by(step);
            // The log's own header is a place as well.
            for at in (first > 0).then_some(0).into_iter().chain(places) {
                for how in [
                    How::Truncate,
                    How::FlipHead,
                    How::FlipBody,
                    How::Zero,
                    How::Splice,
                ] {
                    all.push(Self { which, how, at });
                }
            }
        }
        all
    }

    /// Does it.
    pub(crate) fn inflict(self, story: &Story) {
        let Some(path) = self.which.path(story) else {
            return;
        };
        if self.how == How::Delete {
            if path.is_dir() {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
            return;
        }
        self.change(&path);
    }

    fn change(self, path: &Path) {
        let mut bytes = fs::read(path).unwrap();
        let end = (self.at + PAGE).min(bytes.len());
        if self.at >= end {
            return;
        }
        match self.how {
            How::Truncate => bytes.truncate(self.at),
            How::FlipHead => bytes[(self.at + 4).min(end - 1)] ^= 0x10,
            How::FlipBody => {
                // The middle of what is used: pages fill from their end, and are padded with zeros or spaces.
                let page = &mut bytes[self.at..end];
                let used: Vec<usize> = (8..page.len()).filter(|i| page[*i] != 0).collect();
                let middle = used.get(used.len() / 2).copied().unwrap_or(0);
                page[middle] ^= 0x01;
            }
            How::Zero => bytes[self.at..end].fill(0),
            How::Splice => {
                let from = if self.at >= FRAME {
                    self.at - FRAME
                } else {
                    self.at + FRAME
                };
                let from = from.min(bytes.len().saturating_sub(end - self.at));
                bytes.copy_within(from..from + (end - self.at), self.at);
            }
            How::Delete => {}
        }
        fs::write(path, bytes).unwrap();
    }
}
