//! The engine: an open store, a driver per kind of target, and the door through which commands come.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backout_files::{Commands, Directories, Drivers, Files};
use backout_model::ports::{
    Clock, Driver, Escalation, Gate, Ids, Probe, Progress, StorageError, Store, Triggers, Watch,
};
use backout_model::{DriverName, Effect, Ladder, OperationId, Retention, Timestamp};
use backout_storage::Store as SqliteStore;

use crate::heart::Heart;
use crate::sources::sources;
use crate::{ActLeft, Command, Context, EngineError, RecoverWhat, Recovered, Reply};
use crate::{RedoWhat, UndoOptions, UndoWhat};

/// How long a write waits for somebody else's write of the same target.
const LEASE_WAIT_MS: u64 = 10_000;

/// Makes the drivers for a store. `backout_drivers::local` makes those for what is on this machine.
pub type MakeDrivers = fn(&Arc<dyn Store>) -> Drivers;

/// What an engine is opened with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the state is kept.
    pub state_dir: PathBuf,
    /// How long a write waits for somebody else's write of the same target.
    pub lease_wait_ms: u64,
    /// How long images are kept.
    pub retention: Retention,
    /// What stands between staged and armed.
    pub gates: Vec<Arc<dyn Gate>>,
    /// What follows an undo that fails, by severity.
    pub ladder: Ladder,
    /// What lies outside and may help then.
    pub escalation: Option<Arc<dyn Escalation>>,
    /// What looks at the world between two waves of a rollout.
    pub probe: Option<Arc<dyn Probe>>,
    /// What each kind of trigger does, and when a checkpoint is due; none takes everything back, and every tenth operation.
    pub triggers: Option<Arc<dyn Triggers>>,
    /// Who is told how far long work is.
    pub progress: Option<Arc<dyn Progress>>,
}

impl Settings {
    /// The defaults, for a state directory.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            lease_wait_ms: LEASE_WAIT_MS,
            retention: Retention::standard(),
            gates: Vec::new(),
            ladder: Ladder::default(),
            escalation: None,
            probe: None,
            triggers: None,
            progress: None,
        }
    }
}

/// An open store with the drivers that understand its recipes, in the hands of one caller.
///
/// All that callers share lies behind pointers: [`Engine::for_caller`] gives another handle on the same store, for another
/// agent or task or for another thread, and costs next to nothing. What was recovered on the way is told to the caller on whose way it was.
#[derive(Debug)]
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    /// Who asks, and in what connection.
    pub(crate) context: Context,
    /// Every driver, by its name.
    drivers: Arc<BTreeMap<DriverName, Arc<dyn Driver>>>,
    /// What keeps files, for what is a matter of files by its nature: `try`, `restore`, comparing files.
    pub(crate) files: Arc<dyn Files>,
    /// What keeps whole directories, for checkpoints.
    pub(crate) directories: Arc<dyn Directories>,
    /// What records commands.
    pub(crate) commands: Arc<dyn Commands>,
    /// Whom every driver tells how far long work is, and who may stop it.
    pub(crate) watch: Watch,
    pub(crate) settings: Arc<Settings>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    /// What was recovered on the way to something else, until somebody asks.
    recovered: Mutex<Vec<Recovered>>,
    /// What was found to be left half-way on the way to something else, until somebody asks.
    acts_left: Mutex<Vec<ActLeft>>,
    /// Operations of this process that nobody answers for any more.
    abandoned: Arc<Mutex<HashSet<OperationId>>>,
    /// Leases under which a verdict is carried out: what takes something back for it works in their place.
    verdicts: Mutex<Vec<OperationId>>,
    /// Says that this process is at work, where somebody has to hear that.
    heart: Option<Arc<Heart>>,
}

impl Engine {
    /// Opens the state directory, making it if it is not there, with drivers that are made for its store.
    pub fn open(settings: Settings, drivers: MakeDrivers) -> Result<Self, EngineError> {
        Self::with(settings, drivers, SqliteStore::open)
    }

    /// Opens the state directory for somebody who only looks: if it is not there it is not made, and everything is answered as
    /// an empty store would.
    pub fn open_to_look(settings: Settings, drivers: MakeDrivers) -> Result<Self, EngineError> {
        Self::with(settings, drivers, SqliteStore::open_to_look)
    }

    fn with(
        settings: Settings,
        drivers: MakeDrivers,
        open: fn(&Path, Arc<dyn Clock>) -> Result<SqliteStore, StorageError>,
    ) -> Result<Self, EngineError> {
        let (clock, ids) = sources();
        let store = open(&settings.state_dir, Arc::clone(&clock))?;
        Self::with_store(settings, Arc::new(store), drivers, (clock, ids))
    }

    /// Works on a store that somebody else opened, with a clock and ids of theirs. The state directory of the settings is
    /// not looked at: the store has its own.
    pub fn with_store(
        settings: Settings,
        store: Arc<dyn Store>,
        drivers: MakeDrivers,
        (clock, ids): (Arc<dyn Clock>, Arc<dyn Ids>),
    ) -> Result<Self, EngineError> {
        let heart = Heart::begin(&store)?;
        let Drivers {
            all,
            files,
            directories,
            commands,
        } = drivers(&store);
        let progress = settings.progress.clone();
        let mut engine = Self {
            store,
            context: Context::default(),
            drivers: Arc::default(),
            commands,
            directories,
            files,
            watch: progress.map_or_else(Watch::default, Watch::of),
            settings: Arc::new(settings),
            clock,
            ids,
            recovered: Mutex::default(),
            acts_left: Mutex::default(),
            abandoned: Arc::default(),
            verdicts: Mutex::default(),
            heart: heart.map(Arc::new),
        };
        for driver in all {
            engine.register(driver)?;
        }
        Ok(engine)
    }

    /// Gives a handle on the same store for somebody else, or for the same one in another connection.
    #[must_use]
    pub fn for_caller(&self, context: Context) -> Self {
        Self {
            store: Arc::clone(&self.store),
            context,
            drivers: Arc::clone(&self.drivers),
            files: Arc::clone(&self.files),
            directories: Arc::clone(&self.directories),
            commands: Arc::clone(&self.commands),
            watch: self.watch.clone(),
            settings: Arc::clone(&self.settings),
            clock: Arc::clone(&self.clock),
            ids: Arc::clone(&self.ids),
            recovered: Mutex::default(),
            acts_left: Mutex::default(),
            abandoned: Arc::clone(&self.abandoned),
            verdicts: Mutex::default(),
            heart: self.heart.clone(),
        }
    }

    /// Adds a driver for requests and recipes that name it, and has it watched with the others. Handles that were given out before do not know it.
    pub fn register(&mut self, driver: Arc<dyn Driver>) -> Result<(), EngineError> {
        let name = driver.name();
        if name == DriverName::COMMAND || self.drivers.contains_key(&name) {
            return Err(EngineError::DriverTaken { name });
        }
        if let Some(watch) = driver.watch() {
            watch.join(&self.watch);
        }
        self.store.know_driver(name.clone());
        Arc::make_mut(&mut self.drivers).insert(name, driver);
        Ok(())
    }

    /// Finds a driver by its name.
    pub(crate) fn driver(&self, name: &DriverName) -> Result<&dyn Driver, EngineError> {
        let found = self.drivers.get(name).map(|driver| &**driver);
        found.ok_or_else(|| EngineError::NoDriver { name: name.clone() })
    }

    /// Finds the driver that a recorded effect belongs to.
    pub(crate) fn driver_of(&self, effect: &Effect) -> Result<&dyn Driver, EngineError> {
        self.driver(&effect.recipe.driver)
    }

    /// Says what an effect did to whole files; none if it wrote none.
    pub(crate) fn as_files(&self, effect: &Effect) -> Result<Option<Effect>, EngineError> {
        Ok(self.driver_of(effect)?.as_files(effect)?)
    }

    /// Carries out one command.
    pub fn execute(&self, command: Command) -> Result<Reply, EngineError> {
        self.tell_begins();
        // A history without its end would be a lie to whoever asks anything else.
        if !matches!(command, Command::Verify | Command::Doctor { .. }) {
            self.store.check_end()?;
        }
        let answer = self.obey(command);
        self.notice_drift_in(&answer);
        answer
    }

    fn obey(&self, command: Command) -> Result<Reply, EngineError> {
        match command {
            Command::Write { request } => self.write(&*self.typed(request)?).map(Reply::Finished),
            Command::Run(request) => self.run(*request).map(Box::new).map(Reply::Ran),
            Command::Try(command) => self.trial(command),
            Command::Sandbox(command) => self.sandbox(command),
            Command::Proposal(command) => self.proposals(command),
            Command::Rollout(command) => self.rollout(command),
            Command::Graph(command) => self.look_after_graph(command),
            Command::Undo {
                what,
                options,
                is_dry_run,
            } => self.undo_or_show(&what, &options, is_dry_run),
            Command::Redo {
                what,
                options,
                is_dry_run,
            } => self.redo_or_show(&what, &options, is_dry_run),
            Command::Failed(command) => self.look_after_failed(command),
            Command::Drift(command) => self.drift(command),
            Command::Task(command) => self.task(command),
            Command::Checkpoint(command) => self.checkpoint(command),
            Command::Resume(what) => self.resume(&what).map(Box::new).map(Reply::Resumed),
            Command::Stage(command) => self.look_after_stages(command),
            Command::Log(filter) => self
                .log(&filter)
                .map(|operations| Reply::Log { operations }),
            Command::Prompts(filter) => {
                let prompts = self.prompts(&filter)?;
                Ok(Reply::Prompts { prompts })
            }
            Command::Show(reference) => self
                .show(&reference)
                .map(|shown| Reply::Shown(Box::new(shown))),
            Command::Diff {
                operation,
                selection,
                is_brief,
            } => self.diff(&operation, &selection, is_brief).map(Reply::Diff),
            Command::Restore {
                paths,
                targets,
                from,
                is_after,
            } => self.restore_all(&paths, targets, &from, is_after),
            Command::Status => self.status().map(Reply::Status),
            Command::Recover(RecoverWhat::All { from }) => self.recover(from).map(Reply::Recovered),
            Command::Recover(RecoverWhat::ByHand { operations, decide }) => {
                self.decide(&operations, decide).map(Reply::Recovered)
            }
            Command::Verify => self.verify().map(Reply::Verified),
            Command::VerifyEvidence { directory } => self.check_evidence(&directory),
            Command::Gc {
                is_dry_run,
                compact,
            } => self.gc(is_dry_run, compact).map(Reply::Collected),
            Command::Doctor { directory, repair } => {
                self.doctor(&directory, repair).map(Reply::Doctor)
            }
            Command::Export { to, from } => self.export(to, from),
        }
    }

    fn undo_or_show(
        &self,
        what: &UndoWhat,
        options: &UndoOptions,
        is_dry_run: bool,
    ) -> Result<Reply, EngineError> {
        if is_dry_run {
            return self.preview_rollback(what, options).map(Reply::Plan);
        }
        let undone = self.rollback(what, options, "somebody asked for it");
        undone.map(Reply::Undone)
    }

    fn redo_or_show(
        &self,
        what: &RedoWhat,
        options: &UndoOptions,
        is_dry_run: bool,
    ) -> Result<Reply, EngineError> {
        if is_dry_run {
            return self.preview_redo(what, options).map(Reply::Plan);
        }
        self.redo(what, options).map(Reply::Undone)
    }

    /// Gives what the engine was opened with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Tells who asks.
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// Gives the store, for those who embed the engine and want to look deeper.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Gives the store to keep, for drivers that read and keep contents.
    pub fn shared_store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Tells how many syncs were made of files, directories and file systems.
    pub fn sync_count(&self) -> u64 {
        self.files.sync_count()
    }

    /// Tells the time by the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Gives what names operations.
    pub fn ids(&self) -> Arc<dyn Ids> {
        Arc::clone(&self.ids)
    }

    /// Has the operations of this handle, and of those made from it, named by somebody else: for one who wants to know which they are
    /// before they are in the journal.
    #[must_use]
    pub fn named_by(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = ids;
        self
    }

    /// Gives the clock, for a store of its own.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Gives what was recovered on the way, once: whoever ran the command must be told.
    pub fn take_recovered(&self) -> Vec<Recovered> {
        std::mem::take(&mut held(&self.recovered))
    }

    pub(crate) fn note_recovered(&self, recovered: Recovered) {
        held(&self.recovered).push(recovered);
    }

    /// Gives what was found to be left half-way on the way, once: whoever ran the command must be told.
    pub fn take_acts_left(&self) -> Vec<ActLeft> {
        std::mem::take(&mut held(&self.acts_left))
    }

    pub(crate) fn note_act_left(&self, left: ActLeft) {
        held(&self.acts_left).push(left);
    }

    /// Says that this process does not answer for an operation any more.
    pub(crate) fn abandon(&self, id: OperationId) {
        held(&self.abandoned).insert(id);
    }

    /// Lists the leases under which a verdict is carried out.
    pub(crate) fn verdicts(&self) -> MutexGuard<'_, Vec<OperationId>> {
        held(&self.verdicts)
    }

    pub(crate) fn is_abandoned(&self, id: OperationId) -> bool {
        held(&self.abandoned).contains(&id)
    }

    /// Tells whether somebody wants the work to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        let progress = self.settings.progress.as_ref();
        progress.is_some_and(|progress| progress.is_stopped())
    }

    pub(crate) fn next_id(&self) -> OperationId {
        self.ids.next()
    }
}

/// Locks a list that is never left half-changed.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
