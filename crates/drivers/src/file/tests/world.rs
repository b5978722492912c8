//! A small real directory with a driver, and a way to see everything in it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backout_files::Files as _;
use backout_model::ports::{Driver, How, OnConflict, Prepared, PreparedUndo, Request};
use backout_model::{
    Armed, Digest, Effect, OperationId, Recipe, Strategy, TargetOutcome, TargetPath, Verb,
};

use crate::file::{FileDriver, FileError, FileRequest, Shown, Staged, Was};
use backout_testkit::driver::Harness;
use backout_testkit::fakes::{DirDepots, MemoryContents, MemoryJournal};
use backout_testkit::world::{Tree, memory};

pub(super) struct World {
    _home: Option<tempfile::TempDir>,
    pub(super) root: PathBuf,
    pub(super) driver: FileDriver,
    pub(super) contents: Arc<MemoryContents>,
    pub(super) depots: Arc<DirDepots>,
    pub(super) journal: MemoryJournal,
    ids: AtomicU64,
    pub(super) request: Option<fn(&Path) -> FileRequest>,
    pub(super) drift: Option<fn(&Path)>,
    pub(super) strategy: Strategy,
}

impl World {
    /// In memory where possible: the suite crashes thousands of operations, each with its syncs.
    pub(super) fn new() -> Self {
        Self::at(in_memory(), true)
    }

    pub(super) fn without_depot() -> Self {
        Self::at(in_memory(), false)
    }

    /// Every file that stays a file is logged.
    pub(super) fn logging(mut self) -> Self {
        self.strategy = Strategy::Transaction;
        self
    }

    pub(super) fn on_disk() -> Self {
        Self::at(tempfile::tempdir().unwrap(), true)
    }

    pub(super) fn at(home: tempfile::TempDir, has_depot: bool) -> Self {
        let base = home.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("world")).unwrap();
        Self {
            _home: Some(home),
            ..Self::over(&base, has_depot)
        }
    }

    /// Takes over a world that another process has made.
    pub(super) fn existing(base: &Path) -> Self {
        Self::over(base, true)
    }

    fn over(base: &Path, has_depot: bool) -> Self {
        let root = base.join("world");
        let contents = Arc::new(MemoryContents::default());
        let depots = Arc::new(DirDepots::new(&base.join("state"), has_depot).unwrap());
        let driver = FileDriver::new(contents.clone(), contents.clone(), depots.clone());
        let journal = MemoryJournal::new(contents.clone());
        let ids = AtomicU64::new(0x1000);
        let (request, drift) = (None, None);
        Self {
            _home: None,
            root,
            driver,
            contents,
            depots,
            journal,
            ids,
            request,
            drift,
            strategy: Strategy::Snapshot,
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn target(&self, name: &str) -> TargetPath {
        TargetPath::new(self.path(name)).unwrap()
    }

    pub(super) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(super) fn dir(self, name: &str) -> Self {
        std::fs::create_dir_all(self.path(name)).unwrap();
        self
    }

    pub(super) fn mode(self, name: &str, mode: u32) -> Self {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(name), permissions).unwrap();
        self
    }

    pub(super) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The bytes of one side of a change.
    pub(super) fn bytes(&self, side: Option<&Was>) -> Vec<u8> {
        match self.driver.read(side.unwrap(), u64::MAX).unwrap() {
            Shown::Bytes(bytes) => bytes,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn link(self, name: &str, to: &str) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, path).unwrap();
        self
    }

    pub(super) fn id(&self) -> OperationId {
        OperationId::from_bits(self.ids.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn prepare(&self, request: &FileRequest) -> Result<Prepared<Staged>, FileError> {
        self.driver.prepare(self.id(), request, self.strategy)
    }

    pub(super) fn apply(&self, request: &FileRequest) -> Result<Effect, FileError> {
        let id = self.id();
        let prepared = self.driver.prepare(id, request, self.strategy)?;
        let recipe = prepared.recipe.clone();
        let armed = self.journal.arm(id, request.verb(), prepared);
        let applied = self.driver.apply(armed)?;
        Ok(Effect {
            recipe,
            completion: Some(applied.completion),
        })
    }

    pub(super) fn plan_undo(
        &self,
        effect: &Effect,
        on_conflict: OnConflict,
    ) -> PreparedUndo<Staged> {
        self.driver
            .prepare_undo(self.id(), effect, on_conflict.into())
            .unwrap()
    }

    pub(super) fn undo(
        &self,
        effect: &Effect,
        on_conflict: OnConflict,
    ) -> (Effect, Vec<TargetOutcome>) {
        let id = self.id();
        let undo = self
            .driver
            .prepare_undo(id, effect, on_conflict.into())
            .unwrap();
        self.carry_out(id, undo)
    }

    /// Takes back what a crash left, as an operation like any other.
    pub(super) fn recover(&self, effect: &Effect) -> (Effect, Vec<TargetOutcome>) {
        let id = self.id();
        let undo = self
            .driver
            .prepare_undo(id, effect, How::unfinished())
            .unwrap();
        self.carry_out(id, undo)
    }

    fn carry_out(
        &self,
        id: OperationId,
        undo: PreparedUndo<Staged>,
    ) -> (Effect, Vec<TargetOutcome>) {
        let recipe = undo.prepared.recipe.clone();
        let armed = self.journal.arm(id, Verb::Undo, undo.prepared);
        let applied = self.driver.apply(armed).unwrap();
        assert!(applied.unlike.is_empty(), "{:?}", applied.unlike);
        (
            Effect {
                recipe,
                completion: Some(applied.completion),
            },
            undo.outcomes,
        )
    }

    pub(super) fn see(&self) -> Tree {
        snapshot(&self.root, true)
    }

    /// Lists what is in the depot.
    pub(super) fn kept(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.depots.depot().as_path()).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

impl Harness for World {
    type Snapshot = Tree;

    fn driver(&self) -> &dyn Driver {
        &self.driver
    }

    fn request(&self) -> Box<dyn Request> {
        Box::new((self.request.as_ref().unwrap())(&self.root))
    }

    fn strategy(&self) -> Strategy {
        self.strategy
    }

    fn snapshot(&self, exactly: bool) -> Tree {
        snapshot(&self.root, exactly)
    }

    fn contents(&self, snapshot: &Tree) -> BTreeSet<String> {
        let is_ours = |path: &Path| path.to_string_lossy().contains(".backout-");
        let lasting = snapshot.iter().filter(|(path, _)| !is_ours(path));
        lasting
            .map(|(_, seen)| {
                let content = Digest::of(&seen.content);
                format!("{} {:o} {content}", seen.kind, seen.mode)
            })
            .collect()
    }

    fn arm(&self, id: OperationId, prepared: Prepared) -> Armed {
        self.journal.arm(id, Verb::Write, prepared)
    }

    fn release(&self, recipe: &Recipe) {
        self.contents.release(recipe);
    }

    fn drift(&self) -> bool {
        self.drift.as_ref().map(|drift| drift(&self.root)).is_some()
    }

    fn fail_at_step(&self, at: Option<usize>, abandons: bool) {
        self.driver.fail_at_step(at, abandons);
    }

    fn steps_passed(&self) -> usize {
        self.driver.steps_passed()
    }
}

fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in(memory()).unwrap()
}

/// Looks at everything below a directory. The times of directories are only exact where asked.
pub(super) fn snapshot(root: &Path, exactly: bool) -> Tree {
    let seen = Tree::of(root);
    if exactly {
        seen
    } else {
        seen.without_directory_times()
    }
}
