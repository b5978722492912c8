//! One contender's own place: a tree, a store beside it, and the new content that the agent will write.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree;
use crate::Failure;
use crate::process::run_well;

/// What the agent does to the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Writes new content over a file, or over every file of a directory.
    Write(PathBuf),
    /// Removes a file or a directory with all that is in it.
    Remove(PathBuf),
}

impl Step {
    /// The one path it touches, relative to the tree.
    pub(crate) fn at(&self) -> &Path {
        match self {
            Self::Write(at) | Self::Remove(at) => at,
        }
    }
}

/// Where a contender works.
#[derive(Debug)]
pub(crate) struct World {
    /// What is protected.
    pub(crate) tree: PathBuf,
    /// What the contender may fill.
    pub(crate) store: PathBuf,
    /// New content, at the same paths as in the tree.
    pub(crate) staged: PathBuf,
    /// Seconds after which a program is stopped; 0 is never. Some read a FIFO and wait for ever.
    patience: u32,
    /// Whether a write makes a new file and renames it into place, as editors do, instead of filling the old one.
    pub(crate) is_replacing: bool,
}

impl World {
    /// Makes an empty world at `root`.
    pub(crate) fn new(root: &Path) -> Result<Self, Failure> {
        let world = Self {
            tree: root.join("tree"),
            store: root.join("store"),
            staged: root.join("staged"),
            patience: 0,
            is_replacing: false,
        };
        for directory in [&world.tree, &world.store, &world.staged] {
            fs::create_dir_all(directory)?;
        }
        Ok(world)
    }

    /// A world in which programs that hang are stopped and writes replace files.
    pub(crate) fn new_for_corners(root: &Path) -> Result<Self, Failure> {
        let mut world = Self::new(root)?;
        (world.patience, world.is_replacing) = (30, true);
        Ok(world)
    }

    /// A program that works in the tree and knows no settings of the user.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = if self.patience == 0 {
            Command::new(program)
        } else {
            let mut command = Command::new("timeout");
            command.arg(self.patience.to_string()).arg(program);
            command
        };
        let home = self.store.join("home");
        command
            .current_dir(&self.tree)
            .env("HOME", &home)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CACHE_HOME");
        command
    }

    /// Puts new content beside the tree for what `step` will write, and a batch for who takes one.
    pub(crate) fn stage(&self, step: &Step, version: u64) -> Result<(), Failure> {
        let Step::Write(at) = step else {
            return Ok(());
        };
        fs::remove_dir_all(&self.staged)?;
        let paths = if self.tree.join(at).is_dir() {
            let inside = tree::files_below(&self.tree.join(at))?;
            inside.into_iter().map(|path| at.join(path)).collect()
        } else {
            vec![at.clone()]
        };
        let mut changes = Vec::new();
        for (number, path) in paths.iter().enumerate() {
            let content = tree::content(number as u64, version);
            let new = self.staged.join(path);
            fs::create_dir_all(new.parent().ok_or("a file has a directory")?)?;
            fs::write(&new, &content)?;
            let text = String::from_utf8_lossy(&content).into_owned();
            changes.push(serde_json::json!({"write": {"path": path, "text": text}}));
        }
        if paths.len() > 1 {
            let batch = serde_json::json!({ "changes": changes });
            fs::write(self.batch(), serde_json::to_vec(&batch)?)?;
        }
        Ok(())
    }

    /// The staged changes as JSON.
    pub(crate) fn batch(&self) -> PathBuf {
        self.staged.with_extension("json")
    }

    /// The command with which an agent makes the change.
    pub(crate) fn agent_words(&self, step: &Step) -> Vec<String> {
        let at = self.tree.join(step.at());
        let path = |path: &Path| path.display().to_string();
        let mut words: Vec<String> = Vec::new();
        match step {
            Step::Remove(_) => words.extend(["rm".into(), "-rf".into(), path(&at)]),
            Step::Write(staged) => {
                words.push("cp".into());
                if self.is_replacing {
                    words.push("--remove-destination".into());
                }
                let staged = self.staged.join(staged);
                if at.is_dir() {
                    words.extend(["-r".into(), path(&staged.join(".")), path(&at)]);
                } else {
                    words.extend([path(&staged), path(&at)]);
                }
            }
        }
        words
    }

    /// The agent makes the change, with no protection of its own.
    pub(crate) fn agent(&self, step: &Step) -> Result<(), Failure> {
        let words = self.agent_words(step);
        let (program, arguments) = words.split_first().ok_or("a command has a program")?;
        run_well(self.command(program).args(arguments))?;
        Ok(())
    }

    /// The bytes on disk below these places; a file with two names counts once.
    pub(crate) fn bytes_below(places: &[PathBuf]) -> Result<u64, Failure> {
        let mut seen = std::collections::HashSet::new();
        let mut bytes = 0;
        let mut open: Vec<PathBuf> = places.to_vec();
        while let Some(path) = open.pop() {
            let Ok(status) = fs::symlink_metadata(&path) else {
                continue;
            };
            if seen.insert((status.dev(), status.ino())) {
                bytes += status.blocks() * 512;
            }
            if status.is_dir() {
                for entry in fs::read_dir(&path)? {
                    open.push(entry?.path());
                }
            }
        }
        Ok(bytes)
    }
}
