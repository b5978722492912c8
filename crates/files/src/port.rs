//! The port of what keeps files: what they were, what they are, and the requests that make them so again.

use std::fmt;
use std::fs::File;

use backout_model::ports::{Driver, DriverError, Request, Staged};
use backout_model::{Digest, Effect, TargetPath};
use std::sync::Arc;

use crate::inode::Identity;
use crate::{Commands, Directories, FileChange, LayerEntry, Past, Shown, Was};

/// What is there to carry out requests and recipes. Whoever opens an engine decides.
#[derive(Debug)]
pub struct Drivers {
    /// Every driver that a request or a recipe may name.
    pub all: Vec<Arc<dyn Driver>>,
    /// The one that keeps files: `try`, `restore` and comparing files go by it.
    pub files: Arc<dyn Files>,
    /// What keeps whole directories, for checkpoints.
    pub directories: Arc<dyn Directories>,
    /// What records commands.
    pub commands: Arc<dyn Commands>,
}

/// What taking an effect back needs and that is not kept any more, or is damaged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lacking {
    /// Bytes that are known by their digest: something else may have them.
    pub digests: Vec<Digest>,
    /// A name that was kept as it was, and of whose bytes nothing is known.
    pub unknown: Option<TargetPath>,
    /// A name of which nothing was kept from the beginning.
    pub unkept: Option<TargetPath>,
}

/// Keeps files. All of it looks only.
pub trait Files: fmt::Debug + Send + Sync {
    /// Lists what an effect changed, name by name, trees with all that is in them.
    fn changes(&self, effect: &Effect) -> Result<Vec<FileChange>, DriverError>;

    /// Lists every name that an effect changed, once, with what others saw before and after it.
    fn sides(&self, effect: &Effect) -> Result<Vec<FileChange>, DriverError>;

    /// The same, with what was in directories that were moved.
    fn sides_with_moved(&self, effect: &Effect) -> Result<Vec<FileChange>, DriverError>;

    /// Lists what an effect moved, in its order: old names with new ones. Nothing is looked at.
    fn moves(&self, effect: &Effect) -> Result<Vec<(TargetPath, TargetPath)>, DriverError>;

    /// Tells which inode an effect left under a name, if it noted that. Nothing is looked at.
    fn left_inode(
        &self,
        effect: &Effect,
        path: &TargetPath,
    ) -> Result<Option<Identity>, DriverError>;

    /// Shows what an effect did as gates see it.
    fn happened(
        self: Arc<Self>,
        effect: &Effect,
        through: Vec<(TargetPath, TargetPath)>,
    ) -> Result<Box<dyn Staged>, DriverError>;

    /// Describes what a name stands for now; none if it is nothing.
    fn now(&self, path: &TargetPath) -> Result<Option<Was>, DriverError>;

    /// Describes what is in a directory now, with all below.
    fn below(&self, path: &TargetPath) -> Result<Vec<Past>, DriverError>;

    /// Tells whether a name stands for what is described, or for a file with its bytes.
    fn is_there(&self, path: &TargetPath, was: &Was) -> Result<bool, DriverError>;

    /// Tells whether the bytes that a file had can be had.
    fn is_at_hand(&self, was: &Was) -> Result<bool, DriverError>;

    /// Names the bytes that a file had, if they can be had.
    fn digest(&self, was: &Was) -> Result<Option<Digest>, DriverError>;

    /// Reads the bytes that a file had, if they are not more than `bytes_max`.
    fn read(&self, was: &Was, bytes_max: u64) -> Result<Shown, DriverError>;

    /// Tells whether one description is of the same bytes as another that can be had.
    fn is_same(&self, was: &Was, other: &Was) -> Result<bool, DriverError>;

    /// Lists the bytes that those of a file can be made from, if they are told as a change of something that is not in the
    /// store.
    fn bases(&self, was: &Was) -> Result<Vec<Digest>, DriverError>;

    /// Tells which of some bytes a description is of, if they can be had.
    fn has_one_of(&self, bytes: &[Digest], was: &Was) -> Result<Option<Digest>, DriverError>;

    /// Tells what taking an effect back lacks.
    fn lacking(&self, effect: &Effect) -> Result<Lacking, DriverError>;

    /// Opens a file with these bytes that an effect knows of: one that it keeps, or one that it wrote or replaced and that is
    /// as it was then.
    fn elsewhere(&self, effect: &Effect, digest: &Digest) -> Result<Option<File>, DriverError>;

    /// Makes a request that makes names what they were. They come in their order, so that what lies in a directory follows
    /// it.
    fn restoring(&self, summary: String, names: Vec<Past>) -> Box<dyn Request>;

    /// Makes a request that makes real what a layer holds, all or nothing. Paths are absolute and come in the order of their
    /// names.
    fn layering(&self, summary: String, entries: Vec<LayerEntry>) -> Box<dyn Request>;

    /// Tells how many syncs were made, of files, directories and file systems.
    fn sync_count(&self) -> u64;
}
