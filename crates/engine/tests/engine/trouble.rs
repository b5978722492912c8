//! A world whose undos fail as a test wants, with hooks that a test gives.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use backout_driver_example::{PutRows, Rows, Table};
use backout_engine::{Engine, EngineError, Settings, UndoReport, UndoWhat};
use backout_model::ports::{
    Applied, Driver, DriverError, Escalation, Examined, Fault, How, Outline, Prepared,
    PreparedUndo, Request, Scope, State,
};
use backout_model::{
    Armed, DriverName, Effect, Escalated, Event, Failure, JsonText, Ladder, OperationId, Rungs,
    Strategy,
};
use backout_storage::OperationRef;

use crate::world::{World, committed, written};

/// It never gets better by itself.
pub(crate) const FOR_EVER: usize = usize::MAX;

/// A driver of rows whose undo fails so many times, unless there is nothing to do.
#[derive(Debug)]
struct Moody {
    rows: Rows,
    fails: Arc<AtomicUsize>,
    may_pass: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the database does not answer")]
struct NoAnswer {
    may_pass: bool,
}

impl Fault for NoAnswer {
    fn may_pass(&self) -> bool {
        self.may_pass
    }
}

impl Driver for Moody {
    fn name(&self) -> DriverName {
        self.rows.name()
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        self.rows.scope(request)
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        self.rows.read_request(text)
    }

    fn prepare(
        &self,
        id: OperationId,
        request: &dyn Request,
        strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        self.rows.prepare(id, request, strategy)
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        self.rows.apply(armed)
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let examined = self.rows.examine(effect, false)?;
        let is_work = examined.iter().any(|it| it.state == State::After);
        let left = self.fails.load(Ordering::SeqCst);
        if is_work && left > 0 {
            if left != FOR_EVER {
                self.fails.store(left - 1, Ordering::SeqCst);
            }
            let may_pass = self.may_pass;
            return Err(DriverError::new(NoAnswer { may_pass }));
        }
        self.rows.prepare_undo(id, effect, how)
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        self.rows.outline(effect)
    }

    fn examine(&self, effect: &Effect, to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        self.rows.examine(effect, to_the_end)
    }
}

pub(crate) type Hook = Box<dyn Fn(&Failure) -> Result<(), String> + Send + Sync>;

/// Hooks of a test, and what they were told.
pub(crate) struct Hooks {
    restore: Option<Hook>,
    pub(crate) told: Mutex<Vec<Failure>>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooks")
    }
}

impl Escalation for Hooks {
    fn restores(&self, _failure: &Failure) -> bool {
        self.restore.is_some()
    }

    fn restore(&self, failure: &Failure) -> Result<(), String> {
        self.restore.as_ref().map_or(Ok(()), |hook| hook(failure))
    }

    fn alert(&self, failure: &Failure) -> Result<(), String> {
        self.told.lock().unwrap().push(failure.clone());
        Ok(())
    }
}

/// A world with rows whose undo fails, and an engine with hooks.
pub(crate) struct Trouble {
    pub(crate) world: World,
    pub(crate) engine: Engine,
    pub(crate) table: Table,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) fails: Arc<AtomicUsize>,
}

/// Rungs that wait for nobody.
fn quick() -> Ladder {
    let rungs = Rungs {
        backoff_ms: 1,
        backoff_max_ms: 1,
        ..Rungs::default()
    };
    Ladder {
        low: rungs,
        medium: rungs,
        high: rungs,
        critical: rungs,
    }
}

impl Trouble {
    pub(crate) fn new(fails: usize, may_pass: bool, restore: Option<Hook>) -> Self {
        Self::with(fails, may_pass, restore, |_| {})
    }

    pub(crate) fn with(
        fails: usize,
        may_pass: bool,
        restore: Option<Hook>,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let world = World::new();
        let table = Table::new(world.path("table"));
        let hooks = Arc::new(Hooks {
            restore,
            told: Mutex::default(),
        });
        let mut engine = world.with(|settings| {
            settings.ladder = quick();
            settings.escalation = Some(Arc::clone(&hooks) as _);
            change(settings);
        });
        let fails = Arc::new(AtomicUsize::new(fails));
        let moody = Moody {
            rows: Rows::new(table.clone()),
            fails: Arc::clone(&fails),
            may_pass,
        };
        engine.register(Arc::new(moody)).unwrap();
        Self {
            world,
            engine,
            table,
            hooks,
            fails,
        }
    }

    pub(crate) fn row(&self, name: &str, value: &str) -> OperationId {
        let rows = PutRows([(name.to_owned(), Some(value.to_owned()))].into());
        written(&self.engine.write(&rows).unwrap())
    }

    pub(crate) fn undo(&self, ids: &[OperationId]) -> Result<UndoReport, EngineError> {
        let ids = ids.iter().map(|id| reference(*id)).collect();
        self.engine.undo(&UndoWhat::Operations(ids), &committed())
    }

    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.table.rows().unwrap().remove(name)
    }

    pub(crate) fn failed(&self) -> Vec<OperationId> {
        let failed = self.engine.failed_undos().unwrap();
        failed.into_iter().map(|it| it.id).collect()
    }

    /// The rungs that are in the journal for an operation.
    pub(crate) fn rungs(&self, id: OperationId) -> Vec<Escalated> {
        let records = self.engine.store().records_of(id).unwrap().into_iter();
        let rungs = records.filter_map(|record| {
            if let Event::Escalated(escalated) = record.event {
                Some(*escalated)
            } else {
                None
            }
        });
        rungs.collect()
    }
}

pub(crate) fn reference(id: OperationId) -> OperationRef {
    id.to_string().parse().unwrap()
}
