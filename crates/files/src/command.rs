//! The port of what records commands: what a process tree does to files, while it runs and when it is over.
//!
//! ```text
//! arm ─► Commands::record ─► a Recorder, asked before each call ─► Recorder::settle ─► a recipe
//!                                    │
//!                      death ────────┴─► Commands::settle_log, by whoever recovers
//! ```

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use backout_capture::live::{Answer, Observer, Touch};
use backout_model::ports::{DriverError, NewContent};
use backout_model::{Armed, Completion, Digest, JsonText, OperationId, Recipe, Target, TargetPath};
use serde::{Deserialize, Serialize};

use crate::Claim;
use crate::Past;
use crate::Was;
use crate::inode::Identity;

/// Where the log of a command is, as its recipe says.
#[derive(Debug)]
pub struct CommandLog(pub PathBuf);

/// What to do with a file that would have to be copied and is above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverLimit {
    /// The call fails.
    #[default]
    Refuse,
    /// The call goes on, and the record says that this cannot be undone.
    Mark,
}

/// What may be kept, and how safely.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest file that is copied before it is written in place.
    pub copy_bytes_max: u64,
    /// What to do above.
    pub over_limit: OverLimit,
    /// Whether what was kept must survive loss of power before the call goes on.
    pub syncs: bool,
}

/// Is asked whether a file above the limit may be written without an undo.
pub type Ask = Box<dyn FnMut(&TargetPath, u64) -> bool + Send>;

/// What stood at some names before somebody wrote them unwatched, as the recipe of an operation keeps it.
#[derive(Debug)]
pub struct Looked {
    /// What was found, for [`Commands::settle_looked`].
    pub found: JsonText,
    /// The names that were looked at.
    pub paths: Vec<TargetPath>,
    /// The images that must become durable with the recipe.
    pub contents: Vec<NewContent>,
    /// All contents that the recipe needs.
    pub digests: Vec<Digest>,
}

/// What others recorded of a name since somebody looked at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Since {
    /// The name.
    pub path: TargetPath,
    /// What the first of them found there; none where nobody told.
    pub found: Option<Past>,
    /// What the last of them left.
    pub left: Left,
}

/// What was left of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// What is there now.
    Stands,
    /// This, or nothing, and something else is there now.
    Was(Option<Box<Was>>),
}

/// A database in files that a command wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// The file that it is named by.
    pub main: PathBuf,
    /// All its files, logs beside it too, whether they are there or not.
    pub files: Vec<PathBuf>,
}

/// What a command is about to do to a name.
#[derive(Debug, Clone, Copy)]
pub struct Writing<'w> {
    /// The name.
    pub path: &'w Path,
    /// Where it moves, if it does.
    pub to: Option<&'w Path>,
    /// Whether it is the file itself that changes, and that has other names as well.
    pub has_other_names: bool,
}

/// Says why a path may not be written, if it may not.
pub type Forbids = Box<dyn Fn(Writing<'_>) -> Option<String>>;

/// What a command has done to some names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Share {
    /// It has not touched any of them.
    Nothing,
    /// This, and it can be told by itself.
    Part(Part),
    /// Something that hangs together with what cannot be told yet.
    Stuck,
}

/// The part of a command that is told by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// What it did to these names.
    Names(Vec<TargetPath>),
    /// All that it did so far.
    All,
}

/// How many names changed, and how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Names that were not there before.
    pub created: u64,
    /// Names that stand for something else now.
    pub changed: u64,
    /// Names that are gone.
    pub deleted: u64,
}

/// A file that a command read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    /// Its name.
    pub path: TargetPath,
    /// Which inode it was when the command first opened it. The log of a dead watcher does not say.
    pub identity: Option<Identity>,
}

/// What a command did.
#[derive(Debug)]
pub struct Settled {
    /// How to take it back.
    pub recipe: Recipe,
    /// What it wrote.
    pub targets: Vec<Target>,
    /// The images that must become durable with the recipe.
    pub contents: Vec<NewContent>,
    /// Which inodes it left.
    pub completion: Completion,
    /// How many names changed.
    pub counts: Counts,
    /// The files that it read, if that was recorded.
    pub reads: Vec<FileRead>,
    /// Those of the recorder's notes that tell what the command was let do and nobody kept.
    pub lasting: Vec<String>,
    /// Whether nothing changed at all.
    pub is_nothing: bool,
    /// What a log that is not whole leaves unknown.
    pub doubts: Vec<String>,
}

/// How the log of a dead supervisor is taken.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Whether the machine went down since, so that its end may be cut off.
    pub may_be_cut: bool,
    /// Whether to settle it although something that was kept is out of reach.
    pub anyway: bool,
}

/// Records what commands do to files.
pub trait Commands: fmt::Debug + Send + Sync {
    /// Begins to record what a command does to files, in the log that was armed with it. Nothing can be watched without a
    /// recorder, so nothing starts before its undo is durable.
    fn record(
        &self,
        armed: Armed<CommandLog>,
        limits: Limits,
    ) -> Result<Box<dyn Recorder>, DriverError>;

    /// Says what a command did, by the log that its dead watcher left. Parts of it count as told if `is_recorded`.
    fn settle_log(
        &self,
        id: OperationId,
        log: &Path,
        is_recorded: &dyn Fn(OperationId) -> bool,
        reading: Reading,
    ) -> Result<Settled, DriverError>;

    /// Finds the names that a path as given stands for: itself, and what it leads to if it is a link.
    fn names(&self, given: &Path) -> Result<Vec<TargetPath>, DriverError>;

    /// Keeps what stands at names that somebody else is about to write, unwatched.
    fn look(&self, id: OperationId, paths: &[TargetPath]) -> Result<Looked, DriverError>;

    /// Says what was done to names since they were looked at.
    fn settle_looked(&self, id: OperationId, found: &JsonText) -> Result<Settled, DriverError>;

    /// Writes down what was recorded of names, as if somebody had looked then, for [`Commands::settle_looked`]. Of what nobody kept that is said.
    fn believe(&self, names: &[Past]) -> Result<JsonText, DriverError>;

    /// Names what somebody said that he would write, of what was found then; directories that were missing above do not count.
    fn names_looked_at(&self, found: &JsonText) -> Result<Vec<TargetPath>, DriverError>;

    /// Brings what was found up to what others recorded of some names since. A name of which the first of them found something
    /// else stays as it was found: somebody wrote it before.
    fn found_since(&self, found: &JsonText, since: &[Since]) -> Result<JsonText, DriverError>;

    /// Tells what a command did to a database in rows, if it can be told so; none if it stays files.
    fn in_rows(
        &self,
        id: OperationId,
        main: &Path,
        settled: &Settled,
    ) -> Result<Option<Settled>, DriverError>;
}

/// Records one command: it is asked before each call, and lets that go on only when what it changes is kept.
pub trait Recorder: Observer + Any + fmt::Debug {
    /// Has somebody asked before a file above the limit is refused.
    fn ask(&mut self, ask: Ask);

    /// Forbids what somebody says.
    fn forbid_by(&mut self, forbids: Forbids);

    /// Hears of commands that begin or end, by the directory that their logs are in.
    fn hear_of_neighbours(&mut self, logs: &Path);

    /// Tells whether others may have begun or ended since this was last asked.
    fn has_new_neighbours(&mut self) -> bool;

    /// Names what a call that was prepared is about to touch, and the command has not touched yet.
    fn claim(&self, touch: &Touch) -> Claim;

    /// Tells whether the command touched a file of several names by any of them, and gives the name that it is known by.
    fn touched_number(&self, number: (u64, u64)) -> Option<TargetPath>;

    /// Tells whether another part may be told because a command beside this one is about to write.
    fn has_part_left(&self) -> bool;

    /// Counts a part that was told for that.
    fn count_part(&mut self);

    /// Says of names that the command has touched that what is there now is not its alone.
    fn shares(&mut self, targets: &[Target]);

    /// Says of what lies in directories that are compared that others write it.
    fn spares(&mut self, targets: &[Target]);

    /// Forbids everything directly in a directory, by whatever path it is reached.
    fn forbid(&mut self, dir: &Path);

    /// Forbids to take away a symbolic link, or to rename what is above it.
    fn forbid_link(&mut self, link: &Path);

    /// Keeps a file that the command can write by a descriptor it has already: once for each of them.
    fn opened_before(&mut self, path: &Path);

    /// Keeps everything below some directories before the command. `index` remembers what need not be read again. Gives how
    /// many files were read.
    fn scan(&mut self, roots: &[TargetPath], index: &Path) -> Result<u64, DriverError>;

    /// Looks around before a call, and answers it if nothing has to be kept for it.
    fn prepare(&mut self, touch: &mut Touch) -> Option<Answer>;

    /// Keeps what a call changes for which all is prepared.
    fn proceed(&mut self, touch: &mut Touch) -> Answer;

    /// Gives the files of several names of which only the bytes are kept: an undo makes each a file of its own.
    fn split(&self) -> &BTreeSet<TargetPath>;

    /// Names what a call is about to take from others: what they made of something that the command had touched, or put into
    /// a directory of its own.
    fn taken_from_others(&mut self, touch: &Touch) -> Option<Target>;

    /// Says that the command is watched at this moment.
    fn beat(&self);

    /// Has the disk keep what was noted, while the command goes on.
    fn keep_notes(&mut self);

    /// Gives what is worth knowing.
    fn notes(&self) -> Vec<String>;

    /// Makes everything that was kept durable.
    fn sync(&mut self) -> io::Result<()>;

    /// Tells which part the command has in some targets.
    fn share(&self, targets: &[Target]) -> Share;

    /// Says what a part of the command has done so far, as the operation `id`. With that part it begins anew; it goes on with
    /// the files that its processes have `open` for writing.
    fn settle_part(
        &mut self,
        id: OperationId,
        part: Part,
        open: &[PathBuf],
    ) -> Result<Settled, DriverError>;

    /// Takes back that a part was told as the operation `id`: it was not recorded.
    fn uncut(&mut self, id: OperationId);

    /// The command ends, and processes of it go on, recorded by `next`: what that one found in a file is what this one left.
    fn ends_where_begins(&mut self, next: &dyn Recorder);

    /// Names the databases that the command has written and that were there before.
    fn databases(&self) -> Vec<Database>;

    /// Leaves names out of what the command did, whatever it did to them.
    fn leave_out(&mut self, paths: &[PathBuf]);

    /// Lists the links by which files were written, each with what it led to.
    fn through(&self) -> Vec<(TargetPath, TargetPath)>;

    /// Says what the command did: the net effect, and how to take it back.
    fn settle(self: Box<Self>) -> Result<Settled, DriverError>;
}
