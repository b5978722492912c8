//! From a request to a list of steps and the recipe that takes them back. Looks and stages; changes nothing.
//!
//! The planner sees the file system through what is already planned, so that a later entry of a batch
//! builds on earlier ones. Two entries about one name become one step: the recipe knows each name once.

mod base;
mod content;
mod copy;
mod layer;
mod metadata;
mod names;
mod patch;
mod prepared;
mod restore;
mod steps;
mod targets;
mod tree;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use backout_model::ports::Prepared;
use backout_model::{OperationId, Strategy, TargetPath};

use super::before_image::Keeper;
use super::context::FileContext;
use super::error::FileError;
use super::execute::{Seen, Step};
use super::locks::Locks;
use super::recipe::{Change, Image, Kind};
use super::request::FileRequest;
use super::resolve::{Last, directory};
use super::stage::{Material, Staged};
use super::sys::{Dir, Nearby, Node, Place};

use super::reversed::NOT_A_FILE;
pub(crate) use prepared::{parents_of, prepared, targets_of};
pub(crate) use targets::{source, targets};

/// Plans a request.
pub(crate) fn plan(
    context: &FileContext,
    id: OperationId,
    request: &FileRequest,
    strategy: Strategy,
) -> Result<Prepared<Staged>, FileError> {
    let mut planner = Planner::new(context, id, strategy);
    planner.add(request, false)?;
    planner.finish()
}

/// What a name stands for, given what is planned.
enum View {
    /// Nothing.
    Absent,
    /// What is there now.
    Real(Place, Node),
    /// What step number so and so will put there.
    Planned(usize),
}

/// The number of an inode, with that of its file system.
type Number = (u64, u64);

pub(super) struct Planner<'t> {
    context: &'t FileContext,
    id: OperationId,
    /// How what is replaced is to be taken back.
    strategy: Strategy,
    keeper: Keeper<'t>,
    steps: Vec<Step>,
    /// Which step sets a name, and which retouches it.
    sets: HashMap<TargetPath, usize>,
    retouches: HashMap<TargetPath, usize>,
    /// Which step moves something away from a name, and which to it.
    moved_from: HashMap<TargetPath, usize>,
    moved_to: HashMap<TargetPath, usize>,
    /// Which step retouches an inode, whichever of its names is meant.
    retouched: HashMap<Number, usize>,
    /// Inodes that the request at hand has retouched already, by another of their names.
    retouched_now: HashSet<Number>,
    /// Names whose reverse change is logged.
    logged: HashSet<TargetPath>,
    /// Whether the request at hand is one of several.
    in_batch: bool,
    /// Whether the request at hand makes names what they were, times and all.
    is_restoring: bool,
    /// The directory that no path may lead out of.
    within: Option<TargetPath>,
    /// Names that were used and led elsewhere, each with where.
    through: Vec<(TargetPath, TargetPath)>,
    open: usize,
    /// How many bytes of new files wait in memory.
    held: u64,
    /// Names of a layer that were seen not to be there.
    absent: HashSet<PathBuf>,
    /// Directories of a layer's names that no link leads to, by their paths.
    straight: HashMap<PathBuf, TargetPath>,
    /// The directory in the layer that was read last.
    layer: Nearby,
}

impl<'t> Planner<'t> {
    fn new(context: &'t FileContext, id: OperationId, strategy: Strategy) -> Self {
        Self {
            context,
            id,
            strategy,
            keeper: Keeper::new(context, id),
            steps: Vec::new(),
            sets: HashMap::new(),
            retouches: HashMap::new(),
            moved_from: HashMap::new(),
            moved_to: HashMap::new(),
            retouched: HashMap::new(),
            retouched_now: HashSet::new(),
            logged: HashSet::new(),
            in_batch: false,
            is_restoring: false,
            within: None,
            through: Vec::new(),
            open: 0,
            held: 0,
            absent: HashSet::new(),
            straight: HashMap::new(),
            layer: Nearby::default(),
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm per kind of request")]
    fn add(&mut self, request: &FileRequest, in_batch: bool) -> Result<(), FileError> {
        self.in_batch = in_batch;
        self.retouched_now.clear();
        self.is_restoring = false;
        match request {
            FileRequest::Write {
                path,
                source,
                expect,
                parents,
                mode,
            } => {
                let path = self.resolve(path, Last::Followed)?;
                self.write(&path, source, *expect, *parents, *mode)
            }
            FileRequest::Append { path, source } => {
                let path = self.resolve(path, Last::Followed)?;
                self.append(&path, source)
            }
            FileRequest::Edit {
                path,
                search,
                replacement,
                occurrence,
            } => {
                let path = self.resolve(path, Last::Followed)?;
                self.edit(&path, search, replacement, *occurrence)
            }
            FileRequest::Patch { base, patch } => self.patch(base, patch),
            FileRequest::Remove { path, recursive } => {
                let path = self.resolve(path, Last::Itself)?;
                self.remove(&path, *recursive)
            }
            FileRequest::Move { from, to, replace } => {
                let from = self.resolve(from, Last::Itself)?;
                let to = self.resolve(to, Last::Itself)?;
                self.rename(&from, &to, *replace)
            }
            FileRequest::Copy {
                from,
                to,
                recursive,
                replace,
            } => {
                let from = self.resolve(from, Last::Itself)?;
                let to = self.resolve(to, Last::Itself)?;
                self.copy(&from, &to, *recursive, *replace)
            }
            FileRequest::Mkdir {
                path,
                parents,
                mode,
            } => {
                let path = self.resolve(path, Last::Itself)?;
                self.mkdir(&path, *parents, *mode)
            }
            FileRequest::Symlink { path, to, replace } => {
                let path = self.resolve(path, Last::Itself)?;
                self.symlink(&path, to, *replace)
            }
            FileRequest::HardLink { path, to } => {
                let path = self.resolve(path, Last::Itself)?;
                let to = self.resolve(to, Last::Itself)?;
                self.hard_link(&path, &to)
            }
            FileRequest::Chmod {
                path,
                mode,
                recursive,
            } => {
                let path = self.resolve(path, Last::Followed)?;
                self.chmod(&path, mode, *recursive)
            }
            FileRequest::Chown {
                path,
                uid,
                gid,
                recursive,
            } => {
                let path = self.resolve(path, Last::Itself)?;
                self.chown(&path, *uid, *gid, *recursive)
            }
            FileRequest::Layer { entries, .. } => self.layer(entries),
            FileRequest::Restore { names, .. } => self.restore(names),
            FileRequest::Batch(requests) => requests
                .iter()
                .try_for_each(|request| self.add(request, true)),
            FileRequest::Within { base, requests } => {
                self.within = Some(directory(base)?);
                let mut requests = requests.iter();
                requests.try_for_each(|request| self.add(request, true))
            }
        }
    }

    /// Turns the planned move of a file into a copy and a removal, because a later entry of the batch
    /// writes to its new name.
    fn untangle(&mut self, path: &TargetPath) -> Result<(), FileError> {
        if !self.moved_to.contains_key(path) {
            return Ok(());
        }
        let is_it = |step: &Step| match &step.change {
            Change::Move { to, node, .. } => to == path && *node == Kind::File,
            Change::Set { .. } | Change::Retouch { .. } | Change::Rewrite { .. } => false,
        };
        let Some(index) = self.steps.iter().position(is_it) else {
            return Ok(());
        };
        // A copy would have only one of the names.
        let step = self.take_out(index, path)?;
        let Change::Move { from, to, .. } = step.change else {
            return Ok(());
        };
        // What was put at the old name since must not be what is copied.
        let is_replaced = self.sets.remove(&from).is_some();
        self.copy(&from, &to, false, true)?;
        self.index_again();
        if is_replaced {
            self.replace_what_is_there(&from)
        } else {
            self.remove(&from, false)
        }
    }

    /// Lets the planned step of a name replace what is there now, which it took for gone.
    fn replace_what_is_there(&mut self, path: &TargetPath) -> Result<(), FileError> {
        let (image, node) = self.keeper.keep(&Dir::of(path)?)?;
        if let Some(index) = self.sets.get(path)
            && let Some(step) = self.steps.get_mut(*index)
            && let Change::Set { before, .. } = &mut step.change
        {
            *before = image;
            step.seen = Seen::There(node);
        }
        Ok(())
    }

    /// Looks at a name through what is planned.
    fn view(&self, path: &TargetPath) -> Result<View, FileError> {
        if let Some(index) = self.sets.get(path) {
            let is_absent = self.after(*index).is_none_or(Image::is_absent);
            return Ok(if is_absent {
                View::Absent
            } else {
                View::Planned(*index)
            });
        }
        let entangled = || {
            Err(FileError::Entangled {
                path: path.to_string(),
            })
        };
        for above in std::iter::once(path.clone()).chain(path.ancestors()) {
            if self.moved_to.contains_key(&above) {
                return entangled();
            }
            if self.moved_from.contains_key(&above) {
                return Ok(View::Absent);
            }
            match self.sets.get(&above).and_then(|index| self.after(*index)) {
                None => {}
                Some(Image::Absent) => return Ok(View::Absent),
                Some(image) if image.is_directory() => return Ok(View::Absent),
                Some(_) => {
                    return Err(FileError::NotADirectory {
                        path: above.to_string(),
                    });
                }
            }
        }
        if self.absent.contains(path.as_path()) {
            return Ok(View::Absent);
        }
        match Dir::of(path) {
            Ok(place) => Ok(match place.node()? {
                Some(node) => View::Real(place, node),
                None => View::Absent,
            }),
            Err(FileError::NotFound { .. }) => Ok(View::Absent),
            Err(error) => Err(error),
        }
    }

    /// Plans that a name shall stand for something else. The caller has looked at the name.
    fn set(
        &mut self,
        path: &TargetPath,
        after: Image,
        material: Material,
    ) -> Result<(), FileError> {
        self.refuse_named(path)?;
        self.drop_retouch(path)?;
        if let Image::Directory { meta } = &after
            && self.revive_directory(path, meta)
        {
            return Ok(());
        }
        if let Some(index) = self.sets.get(path)
            && let Some(step) = self.steps.get_mut(*index)
            && let Change::Set { after: planned, .. } = &mut step.change
        {
            *planned = after;
            step.material = material;
            return Ok(());
        }
        let (before, seen) = match self.view(path)? {
            View::Real(place, node) => {
                self.refuse_shared(path, &node)?;
                let is_logged = self.strategy == Strategy::Transaction
                    && node.kind == Kind::File
                    && matches!(after, Image::File { .. });
                let (image, node) = if is_logged {
                    let logged = Keeper::log(&place)?;
                    logged.map_err(|why| self.not_prepared(path, why))?
                } else {
                    self.keeper.keep(&place)?
                };
                self.logged.extend(is_logged.then(|| path.clone()));
                (image, Seen::There(node))
            }
            View::Absent | View::Planned(_) => (Image::Absent, Seen::Absent),
        };
        self.push_set(path, (before, seen), after, material);
        Ok(())
    }

    fn after(&self, index: usize) -> Option<&Image> {
        match self.steps.get(index).map(|step| &step.change) {
            Some(Change::Set { after, .. }) => Some(after),
            Some(Change::Move { .. } | Change::Retouch { .. } | Change::Rewrite { .. }) | None => {
                None
            }
        }
    }

    /// Checks that the directory of a name is there or planned, and plans it if wanted.
    fn need_parent(&mut self, path: &TargetPath, make: bool) -> Result<(), FileError> {
        let unusable = || FileError::Unusable {
            path: path.to_string(),
        };
        let parent = path.parent().ok_or_else(unusable)?;
        if parent.parent().is_none() {
            return Ok(());
        }
        match self.view(&parent)? {
            View::Real(_, node) if node.kind == Kind::Directory => Ok(()),
            View::Planned(index) if self.after(index).is_some_and(Image::is_directory) => Ok(()),
            View::Real(..) | View::Planned(_) => Err(FileError::NotADirectory {
                path: parent.to_string(),
            }),
            View::Absent if make => self.mkdir(&parent, true, None),
            View::Absent => Err(FileError::NotFound {
                path: parent.to_string(),
            }),
        }
    }

    fn finish(mut self) -> Result<Prepared<Staged>, FileError> {
        self.steps.retain(|step| match &step.change {
            Change::Set { before, after, .. } => !(before.is_absent() && after.is_absent()),
            Change::Retouch { before, after, .. } => before != after,
            Change::Move { .. } | Change::Rewrite { .. } => true,
        });
        for (number, step) in self.steps.iter_mut().enumerate() {
            step.number = number;
        }
        self.log_changes()?;
        let mut locks = Locks::default();
        for step in &self.steps {
            locks.refuse(&step.change)?;
        }
        let parents = parents_of(self.steps.iter().map(|step| &step.change))?;
        self.context.reach("file.prepared")?;
        prepared(
            self.context,
            self.id,
            self.keeper,
            self.steps,
            parents,
            None,
        )
        .map(|mut prepared| {
            prepared.staged.through = self.through;
            Prepared {
                strategy: self.strategy,
                ..prepared
            }
        })
    }

    /// Logs the reverse changes, now that it is known what each name becomes.
    fn log_changes(&mut self) -> Result<(), FileError> {
        for path in std::mem::take(&mut self.logged) {
            let index = self.sets.get(&path).copied();
            let step = index.and_then(|index| self.steps.get(index));
            let told = match step.map(|step| (&step.change, &step.seen, &step.material)) {
                Some((Change::Set { before, after, .. }, Seen::There(node), material)) => {
                    let images = (before, after);
                    self.keeper
                        .reverse(&Dir::of(&path)?, node, images, material)?
                }
                Some(_) | None => Err(NOT_A_FILE.to_owned()),
            };
            told.map_err(|why| self.not_prepared(&path, why))?;
        }
        Ok(())
    }

    fn not_prepared(&self, path: &TargetPath, why: String) -> FileError {
        FileError::NotPrepared {
            path: path.to_string(),
            strategy: self.strategy,
            why,
        }
    }
}

/// Opens the nearest directory above a name that exists already.
fn near(path: &TargetPath) -> Result<Arc<Dir>, FileError> {
    let mut last = FileError::Unusable {
        path: path.to_string(),
    };
    for above in path.ancestors() {
        match Dir::open(&above) {
            Ok(dir) => return Ok(dir),
            // A file or a link that is there still may have to make room for a directory.
            Err(error) if error.leads_nowhere() => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

const fn number_of(node: &Node) -> Number {
    (node.identity.dev, node.identity.ino)
}
