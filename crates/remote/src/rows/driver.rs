//! The driver: what is staged is an open transaction, and applying is its commit.

use std::fmt;
use std::sync::Mutex;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use backout_crashpoint::crash_point;
use backout_model::ports::{
    Applied, Driver, DriverError, Durability, Examined, How, Outline, Prepared, PreparedUndo,
    Request, Scope, Staged, State, ValueChange, Watch,
};
use backout_model::{
    Armed, Completion, DriverName, Effect, JsonText, Key, OperationId, OperationKind, OutcomeKind,
    Reach, Strategy, Target, TargetOutcome,
};

use super::Place;
use super::body::Body;
use super::error::RowsError;
use super::request::{Act, RowsRequest, SecretUrl};
use super::schema;
use super::server::Server;
use super::undo::{SeenTable, fill, look, take_back, targets};

/// How long a transaction whose client is gone may take to end.
const END_WAIT: Duration = Duration::from_secs(10);

/// How often it is asked whether somebody wants it to stop.
const LISTENS: Duration = Duration::from_millis(50);

/// How long a connection is kept that holds what a large transaction changed.
const KEPT_FOR: Duration = Duration::from_mins(1);

/// The driver of all enrolled databases of one kind of server.
pub struct RowsDriver<S> {
    kept: Mutex<Option<Kept<S>>>,
    watch: Watch,
}

/// A connection whose temporary table holds what a large transaction changed: a plan and the undo that follows it look at the
/// same rows, and what the transaction did to them stays what it is.
struct Kept<S> {
    server: S,
    database: String,
    xact: String,
    since: Instant,
}

impl<S> fmt::Debug for RowsDriver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowsDriver")
    }
}

impl<S> Default for RowsDriver<S> {
    fn default() -> Self {
        let (kept, watch) = (Mutex::new(None), Watch::default());
        Self { kept, watch }
    }
}

/// A transaction that was begun and not ended. Dropping it rolls it back.
struct Open<S: Server> {
    connection: Option<S>,
    /// The URL as it was given, in case somebody has to be asked how the commit ended.
    url: Option<SecretUrl>,
    body: Body,
}

impl<S: Server> fmt::Debug for Open<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Open({})", self.body.xact)
    }
}

impl<S: Server> Staged for Open<S> {}

impl<S: Server> Drop for Open<S> {
    fn drop(&mut self) {
        // Its locks are gone when this returns. If the server cannot be told, it ends it itself.
        if let Some(connection) = &mut self.connection {
            let _ended = connection.run("ROLLBACK");
        }
    }
}

impl<S: Server> Open<S> {
    fn prepared(mut self, notes: Vec<String>) -> Result<Prepared, DriverError> {
        // What does nothing holds no lock.
        if self.body.tables.is_empty()
            && self.body.schema.is_empty()
            && let Some(mut connection) = self.connection.take()
        {
            connection.run("ROLLBACK")?;
        }
        let recipe = self.body.recipe(S::DRIVER)?;
        let mut prepared = Prepared::plain(recipe, self.body.targets()?, self);
        prepared.notes = notes;
        Ok(prepared.boxed())
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Committed,
    RolledBack,
}

impl<S: Server> RowsDriver<S> {
    /// Connects to the database of a recipe, with settings under which rows read as the log has them.
    fn connect(&self, body: &Body) -> Result<S, RowsError> {
        let kept = self.kept.lock().ok().and_then(|mut kept| kept.take());
        let is_it = |it: &Kept<S>| {
            it.database == body.place.id && it.xact == body.xact && it.since.elapsed() < KEPT_FOR
        };
        if let Some(mut kept) = kept.filter(is_it)
            && kept.server.run("ROLLBACK").is_ok()
        {
            return Ok(kept.server);
        }
        let mut connection = S::to(&body.place, None)?;
        connection.set_exact()?;
        Ok(connection)
    }

    /// Keeps a connection for the next look at the same transaction, if finding out what that did is much work.
    fn keep(&self, mut server: S, body: &Body, seen: &[SeenTable]) {
        let is_large = seen.iter().any(|it| it.rows.is_none());
        // What came back with the schema, and what is in the net of it, goes with this transaction.
        if !is_large || !body.schema.is_empty() || server.run("ROLLBACK").is_err() {
            return;
        }
        if let Ok(mut kept) = self.kept.lock() {
            *kept = Some(Kept {
                server,
                database: body.place.id.clone(),
                xact: body.xact.clone(),
                since: Instant::now(),
            });
        }
    }

    /// Tells whether an operation's transaction was committed: its marker says so. While the server is still at it, waits.
    fn ended(connection: &mut S, body: &Body) -> Result<Ended, RowsError> {
        let until = Instant::now() + END_WAIT;
        // The marker of what is adopted comes with a transaction of its own.
        while !body.is_adopted && connection.is_busy(body)? {
            if Instant::now() >= until {
                let why = "the server is still busy with its transaction".to_owned();
                return Err(RowsError::Refused {
                    why,
                    code: "55P03".to_owned(),
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Self::look_for_mark(connection, body)
    }

    /// Tells whether an operation's transaction is in the world now.
    fn look_for_mark(connection: &mut S, body: &Body) -> Result<Ended, RowsError> {
        Ok(if connection.is_marked(body)? {
            Ended::Committed
        } else {
            Ended::RolledBack
        })
    }

    fn whole(place: &Place) -> Result<Target, DriverError> {
        Ok(Target::new(
            Key::in_space(&place.space(), &[])?,
            Reach::Tree,
        ))
    }

    /// Does something that the server may take long for. If somebody wants it to stop, the server is told to.
    fn interruptible<T>(
        &self,
        server: &mut S,
        work: impl FnOnce(&mut S) -> Result<T, RowsError>,
    ) -> Result<T, RowsError> {
        let interrupt = server.interrupter()?;
        let watch = &self.watch;
        let (over, is_over) = std::sync::mpsc::channel::<()>();
        let done = std::thread::scope(|scope| {
            scope.spawn(move || {
                while is_over.recv_timeout(LISTENS) == Err(RecvTimeoutError::Timeout) {
                    if watch.is_stopped() {
                        interrupt();
                    }
                }
            });
            let done = work(server);
            drop(over);
            done
        });
        match done {
            Err(error) if error.is_interrupted() && watch.is_stopped() => Err(RowsError::Stopped),
            done => done,
        }
    }

    /// Finds out what an undo of few rows would meet beside the rows themselves: a value that must be unique and is taken, a
    /// reference. It is tried and rolled back, where nothing but ours notices.
    fn foresee(
        connection: &mut S,
        body: &Body,
        examined: &mut [Examined],
    ) -> Result<(), RowsError> {
        let is_clean = |it: &Examined| !matches!(it.state, State::Other { .. });
        let is_small =
            body.schema.is_empty() && body.tables.iter().all(|it| it.change.rows.is_some());
        if !is_small || !examined.iter().all(is_clean) || !connection.undo_notes()?.is_empty() {
            return Ok(());
        }
        let (outcomes, _) = take_back(connection, body, How::default())?;
        for outcome in outcomes {
            let OutcomeKind::Conflict { why } = outcome.kind else {
                continue;
            };
            let mut each = examined.iter_mut();
            if let Some(found) = each.find(|it| it.target == outcome.target) {
                found.state = State::Other { why };
            }
        }
        Ok(())
    }

    fn run(
        &self,
        id: OperationId,
        request: &RowsRequest,
        text: &str,
        agent: Option<&str>,
    ) -> Result<Prepared, DriverError> {
        let url = request.url.as_ref().map(|url| url.0.as_str());
        let mut connection = S::to(&request.place, url)?;
        let xact = connection.begin(id, agent)?;
        self.interruptible(&mut connection, |connection| {
            connection.statements(text, &xact, &request.answers)
        })?;
        crash_point("rows.ran");
        let tables = connection.changes(&xact)?;
        let body = Body {
            place: request.place.clone(),
            operation: id,
            xact,
            is_adopted: false,
            tables,
            schema: connection.schema(),
        };
        let (connection, url) = (Some(connection), request.url.clone());
        Open {
            connection,
            url,
            body,
        }
        .prepared(Vec::new())
    }

    fn adopt(id: OperationId, request: &RowsRequest, xact: &str) -> Result<Prepared, DriverError> {
        let url = request.url.as_ref().map(|url| url.0.as_str());
        let mut connection = S::to(&request.place, url)?;
        connection.set_exact()?;
        connection.run("BEGIN")?;
        let Some(notes) = connection.noted(xact)? else {
            let name = request.place.name.clone();
            let xact = xact.to_owned();
            return Err(RowsError::NoLog { name, xact }.into());
        };
        let tables = connection.changes(xact)?;
        let body = Body {
            place: request.place.clone(),
            operation: id,
            xact: xact.to_owned(),
            is_adopted: true,
            tables,
            schema: Vec::new(),
        };
        let (connection, url) = (Some(connection), request.url.clone());
        Open {
            connection,
            url,
            body,
        }
        .prepared(notes)
    }

    /// Commits, and finds out how that ended if the connection broke over it.
    fn commit(mut connection: S, url: Option<&SecretUrl>, body: &Body) -> Result<(), DriverError> {
        let marked = connection.mark(body);
        crash_point("rows.marked");
        let done = marked.and_then(|()| {
            let sent = connection.run("COMMIT");
            crash_point("rows.committed");
            sent
        });
        let error = match done {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if !error.is_cut() {
            return Err(error.into());
        }
        drop(connection);
        let url = url.map(|url| url.0.as_str());
        let asked = S::to(&body.place, url).and_then(|mut again| Self::ended(&mut again, body));
        match asked {
            Ok(Ended::Committed) => Ok(()),
            Ok(Ended::RolledBack) => Err(error.into()),
            Err(why) => {
                let why = format!("{error}; {why}");
                Err(RowsError::InDoubt { why }.into())
            }
        }
    }

    /// Says of each target of an effect that it is as before.
    fn as_before(body: &Body) -> Result<Vec<Examined>, DriverError> {
        let targets = body.targets()?.into_iter().enumerate();
        let each = targets.map(|(index, target)| Examined::new(index, target, State::Before));
        Ok(each.collect())
    }

    /// Makes an undo that does nothing.
    fn nothing(
        id: OperationId,
        body: &Body,
        outcomes: Vec<TargetOutcome>,
    ) -> Result<PreparedUndo, DriverError> {
        let body = Body {
            operation: id,
            tables: Vec::new(),
            schema: Vec::new(),
            ..body.clone()
        };
        let prepared = Open::<S> {
            connection: None,
            url: None,
            body,
        }
        .prepared(Vec::new())?;
        Ok(PreparedUndo { prepared, outcomes })
    }
}

impl<S: Server> Driver for RowsDriver<S> {
    fn name(&self) -> DriverName {
        S::DRIVER
    }

    fn watch(&self) -> Option<&Watch> {
        Some(&self.watch)
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        let request: &RowsRequest = request.as_a()?;
        let targets = vec![Self::whole(&request.place)?];
        Ok(Scope::of(targets, OperationKind::DatabaseWrite))
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        Ok(Box::new(text.read::<RowsRequest>()?))
    }

    fn prepare(
        &self,
        id: OperationId,
        request: &dyn Request,
        _strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        let request: &RowsRequest = request.as_a()?;
        match &request.act {
            Act::Run { text, agent } => self.run(id, request, text, agent.as_deref()),
            Act::Adopt { xact, .. } => Self::adopt(id, request, xact),
        }
    }

    fn fingerprint(
        &self,
        recipe: &backout_model::Recipe,
    ) -> Result<backout_model::Digest, DriverError> {
        // Whoever approves it approves these rows; which transaction shows them is another one each time.
        let body = Body::of(recipe)?;
        Ok(backout_model::Digest::of(&serde_json::to_vec(&(
            &body.tables,
            &body.schema,
        ))?))
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (_, _, staged) = armed.into_parts();
        let mut open: Open<S> = staged.take()?;
        if let Some(connection) = open.connection.take() {
            Self::commit(connection, open.url.as_ref(), &open.body)?;
        }
        Ok(Applied {
            completion: Completion::default(),
            durability: Durability::Process,
            unlike: Vec::new(),
            is_idle: false,
        })
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let body = Body::of(&effect.recipe)?;
        let mut connection = self.connect(&body)?;
        let is_there = Self::ended(&mut connection, &body)? == Ended::Committed;
        if is_there && body.is_adopted && how.is_unfinished {
            // It was not ours to begin with: it is taken up another time.
            connection.let_go(&body.operation.to_string())?;
        }
        if !is_there || body.is_adopted && how.is_unfinished {
            let targets = body
                .targets()?
                .into_iter()
                .filter(|target| how.means(target));
            let gone = |target| TargetOutcome::new(target, OutcomeKind::AlreadyGone);
            return Self::nothing(id, &body, targets.map(gone).collect());
        }
        let xact = connection.begin(id, None)?;
        let (outcomes, schema) = self.interruptible(&mut connection, |connection| {
            take_back(connection, &body, how)
        })?;
        crash_point("rows.taken-back");
        if outcomes.is_empty() && !body.tables.is_empty() && how.only.is_none() {
            let name = body.place.name.clone();
            let xact = body.xact.clone();
            return Err(RowsError::NoLog { name, xact }.into());
        }
        let tables = connection.changes(&xact)?;
        let undo = Body {
            operation: id,
            xact,
            is_adopted: false,
            tables,
            schema,
            place: body.place,
        };
        let notes = connection.undo_notes()?;
        let connection = Some(connection);
        let prepared = Open {
            connection,
            url: None,
            body: undo,
        }
        .prepared(notes)?;
        Ok(PreparedUndo { prepared, outcomes })
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        Ok(Outline::of(Body::of(&effect.recipe)?.targets()?))
    }

    fn examine(&self, effect: &Effect, to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        let body = Body::of(&effect.recipe)?;
        let mut connection = self.connect(&body)?;
        if Self::look_for_mark(&mut connection, &body)? == Ended::RolledBack {
            return Self::as_before(&body);
        }
        if body.schema.is_empty() {
            // Outside of the transaction, so that it outlives it.
            fill(&mut connection, &body)?;
        }
        connection.run("BEGIN")?;
        let seen = look(&mut connection, &body, false)?;
        let mut states: Vec<(State, bool)> = Vec::new();
        for it in &seen {
            match &it.rows {
                Some(rows) => states.extend(
                    rows.iter()
                        .map(|row| (row.state.clone(), row.before.is_none())),
                ),
                None => states.push((of_table(it.counts), false)),
            }
        }
        let all = targets(&seen, &body.place.space());
        let each = all.into_iter().zip(states).enumerate();
        let each = each.map(|(index, ((_, _, target), (state, goes)))| Examined {
            goes,
            ..Examined::new(index, target, state)
        });
        let mut examined: Vec<Examined> = each.collect();
        for (change, target, state) in
            schema::look(&mut connection, &body.schema, &body.place.space())?
        {
            if !examined.iter().any(|it| it.target == target) {
                let goes = change.came;
                let index = examined.len();
                examined.push(Examined {
                    goes,
                    ..Examined::new(index, target, state)
                });
            }
        }
        if !to_the_end {
            // What cannot be tried is found out by the undo itself.
            let _foreseen = Self::foresee(&mut connection, &body, &mut examined);
        }
        self.keep(connection, &body, &seen);
        let missing = body
            .targets()?
            .into_iter()
            .filter(|target| !examined.iter().any(|it| it.target == *target));
        let lost = "it is not in the log of the database any more";
        let missing: Vec<Examined> = missing
            .map(|target| Examined {
                lost: Some(lost.to_owned()),
                ..Examined::new(
                    usize::MAX,
                    target,
                    State::Other {
                        why: lost.to_owned(),
                    },
                )
            })
            .collect();
        Ok(examined.into_iter().chain(missing).collect())
    }

    fn values(&self, effect: &Effect) -> Result<Option<Vec<ValueChange>>, DriverError> {
        let body = Body::of(&effect.recipe)?;
        // A table of many rows is told as one, and what is no row has no value.
        if !body.schema.is_empty() || body.tables.iter().any(|it| it.change.rows.is_none()) {
            return Ok(None);
        }
        let mut connection = self.connect(&body)?;
        connection.run("BEGIN")?;
        let seen = look(&mut connection, &body, false)?;
        let all = targets(&seen, &body.place.space());
        let rows = seen.iter().flat_map(|it| it.rows.iter().flatten());
        let few = all.iter().filter(|(_, key, _)| key.is_some());
        let values = few.zip(rows).map(|((_, _, target), row)| ValueChange {
            key: target.key().clone(),
            before: row.before.clone(),
            after: row.after.clone(),
            now: Ok(row.now.clone()),
        });
        Ok(Some(values.collect()))
    }
}

/// Says how a table stands, all in all.
fn of_table([after, before, other]: [u64; 3]) -> State {
    match (after, before, other) {
        (_, 0, 0) => State::After,
        (0, _, 0) => State::Before,
        _ => State::Other {
            why: format!(
                "{} of {} rows are not as it left them",
                before + other,
                after + before + other
            ),
        },
    }
}
