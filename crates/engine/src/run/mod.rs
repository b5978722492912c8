//! Running a command so that all it does to files can be taken back.
//!
//! ```text
//! ARM (where the log is) ─► start ─► asked before each call ─► ends ─► settle ─► CAPTURED, applied, COMMIT
//!                                                               │
//!                                              processes that go on: an operation of their own, in the background
//! ```
//!
//! - The operation is armed before the command starts: whatever dies, the log tells a recovery what to take back.
//! - Its place in the journal is where it ended. What others wrote meanwhile came before that.

mod back;
mod dead;
mod desk;
mod gated;
mod neighbours;
mod part;
mod request;
mod signals;
mod start;
mod watch;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use backout_capture::live::{SpawnError, Variables, spawn};
use backout_crashpoint::crash_point;
use backout_files::{Claim, CommandLog, Limits, Recorder, Settled};
use backout_model::ports::{Durability, Entry};
use backout_model::{
    Asked, CaptureLevel, CaptureMode, Captured, CommandEnd, CommandStart, Dependency,
    DependencyReason, Digest, DriverName, Event, Intent, JsonText, OperationId, Recipe, Status,
    Target, TargetPath, any_path, arm,
};
use serde::{Deserialize, Serialize};

use crate::calls::ArmedCall;
use crate::{Engine, EngineError};
pub(crate) use dead::DeadCommand;
use neighbours::Neighbours;
pub use request::{COPY_BYTES_MAX, Capture, Ran, RunReport, RunRequest};
use start::{mode_of, opened, roots_of, start_of, summary_of, variables_of, watching_of};
pub use watch::Watch;
use watch::Writing;

/// The variable that tells a command which operation it is: what it asks us to do is part of it.
pub const RUN_VARIABLE: &str = "BACKOUT_RUN";

/// The variable that tells a command where the store is.
pub const STATE_VARIABLE: &str = "BACKOUT_STATE_DIR";

/// The version of the body of an unsettled command's recipe.
const RECIPE_VERSION: u16 = 1;

/// The body of the recipe of a command that is not settled: where its log is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Unsettled {
    #[serde(with = "any_path")]
    pub(crate) log: PathBuf,
    /// The command that left it running, by whose name its processes are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<OperationId>,
    /// The call of an agent's tool that it is, if it is no command at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<ArmedCall>,
}

/// Which part of a command's life is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The command itself.
    Command {
        /// Whether its words say that it writes nothing.
        is_read_only: bool,
    },
    /// What it left running.
    Background,
}

/// A command that is armed and not settled.
#[derive(Debug)]
struct ArmedCommand {
    id: OperationId,
    summary: String,
    mode: CaptureMode,
    recorder: Box<dyn Recorder>,
    began: Instant,
    /// Why it is not watched as well as it could be.
    lacks: Option<String>,
    /// Names that are not part of it.
    left_out: Vec<PathBuf>,
    /// What people are shown instead of its words, if whoever asked for it said so.
    shown: Option<String>,
}

impl Engine {
    /// Runs a command. What it leaves running is given back, so that it stays under watch.
    pub fn run(&self, mut request: RunRequest) -> Result<Ran, EngineError> {
        self.tell_begins();
        self.recover_the_dead()?;
        let context = self.context.clone();
        self.check_task(&context)?;
        self.settle_beside(context.prompt.as_ref())?;
        let limits = Limits {
            copy_bytes_max: request.copy_bytes_max,
            over_limit: request.over_limit,
            syncs: request.level == CaptureLevel::Power,
        };
        let (mode, lacks) = mode_of(request.capture);
        let roots = roots_of(&request, mode)?;
        let start = start_of(&request, mode)?;
        let mut armed = self.arm_request(&mut request, &start, limits)?;
        armed.lacks = lacks;
        if let Some(ask) = request.ask.take() {
            armed.recorder.ask(ask);
        }
        let mut neighbours = Neighbours::new(armed.id);
        self.keep_opened(&mut armed, &mut neighbours);
        self.scan(&mut armed, &roots)?;
        let watching = watching_of(mode, request.reads);
        let variables = variables_of(&request, armed.id, mode);
        let variables = Variables {
            base: request.base.as_deref(),
            set: &variables,
        };
        let spawned = match spawn(&request.words, watching, variables) {
            Ok(spawned) => spawned,
            Err(error) => return Err(self.not_started(&armed, &request.words, error)),
        };
        let mut watch = Watch::new(start, limits, spawned, (request.back, neighbours));
        watch.open_desk(&self.store.capture_desk(armed.id));
        let command = (armed.id, armed.summary.clone());
        let mut on_part = |recorder: &mut dyn Recorder, writing: Writing<'_>| {
            self.record_part((command.0, &command.1), recorder, writing)
        };
        let recorder = &mut *armed.recorder;
        let ended = match watch.until_end(self, recorder, request.timeout, &mut on_part) {
            Ok(Ok(ended)) => ended,
            Ok(Err(errno)) => {
                let error = std::io::Error::from_raw_os_error(errno);
                return Err(self.not_started(&armed, &request.words, SpawnError::Io(error)));
            }
            Err(source) => {
                let action = "watch the command";
                return Err(not_settled(armed.id)(EngineError::Io { action, source }));
            }
        };
        let not_settled = not_settled(armed.id);
        let survivors = survivors_of(&mut watch).map_err(&not_settled)?;
        let end = ended.told(millis(armed.began), survivors.clone());
        if !survivors.is_empty() {
            // Before this one is settled: what they write by what they have open belongs to one of the two.
            let left = self.arm_survivors(&watch, &armed, &survivors);
            let left = left.map_err(&not_settled)?;
            armed.recorder.ends_where_begins(&*left.recorder);
            watch.next = Some(left);
        }
        let part = Part::Command {
            is_read_only: request.is_read_only,
        };
        let report = self.finish_command(armed, end, part, &mut watch);
        let report = report.map_err(not_settled)?;
        let report = report.ok_or_else(|| EngineError::Io {
            action: "record the command",
            source: std::io::Error::other("it has no record"),
        })?;
        let back = watch.take_back();
        let left = (!survivors.is_empty()).then_some(watch);
        Ok(Ran { report, left, back })
    }

    /// Keeps what the command can write by descriptors that it is born with. Others that wrote there are told first.
    fn keep_opened(&self, armed: &mut ArmedCommand, neighbours: &mut Neighbours) {
        let opened = opened();
        if opened.is_empty() {
            return;
        }
        neighbours.look(self);
        let recorder = &mut *armed.recorder;
        // Nobody can ask this one yet.
        let mut on_part = |_: &mut dyn Recorder, _: Writing<'_>| false;
        let claim = Claim::of_opened(&opened);
        neighbours.ask(self, recorder, &mut on_part, (None, claim));
        for path in &opened {
            recorder.opened_before(path);
        }
        if neighbours.takes_shared() {
            recorder.shares(&Claim::of_opened(&opened).targets);
        }
    }

    /// Arms a command as it was asked for. A call of an agent that was told before has its operation already.
    fn arm_request(
        &self,
        request: &mut RunRequest,
        start: &CommandStart,
        limits: Limits,
    ) -> Result<ArmedCommand, EngineError> {
        let summary = match &request.shown {
            Some(shown) => format!("run {shown}"),
            None => summary_of(&request.words),
        };
        let call = request.call.take();
        let call = call.filter(|key| matches!(self.store.answer_to(key), Ok(None)));
        let call = call.map(|key| Asked::new(key, Digest::of(summary.as_bytes())));
        let mut armed = self.arm_command((summary, call), None, start, limits)?;
        armed.left_out.clone_from(&request.left_out);
        armed.shown.clone_from(&request.shown);
        Ok(armed)
    }

    /// Keeps what is below some directories before the command.
    fn scan(&self, armed: &mut ArmedCommand, roots: &[TargetPath]) -> Result<(), EngineError> {
        if roots.is_empty() {
            return Ok(());
        }
        let index = self.store.scan_index();
        if let Err(error) = armed.recorder.scan(roots, &index) {
            self.give_up(armed.id, &error.to_string());
            return Err(error.into());
        }
        crash_point("run.scanned");
        Ok(())
    }

    /// Watches what a command left running, until it ends. What it does is an operation of its own.
    /// None if it changed nothing: then there is nothing to take back either.
    pub fn watch_on(&self, mut watch: Watch) -> Result<Option<RunReport>, EngineError> {
        self.watch_rest(&mut watch)
    }

    fn watch_rest(&self, watch: &mut Watch) -> Result<Option<RunReport>, EngineError> {
        // Armed when the command ended, since it left something running.
        let Some(mut armed) = watch.next.take() else {
            return Ok(None);
        };
        watch.goes_on_as(armed.id);
        watch.open_desk(&self.store.capture_desk(armed.id));
        let command = (armed.id, armed.summary.clone());
        let mut on_part = |recorder: &mut dyn Recorder, writing: Writing<'_>| {
            self.record_part((command.0, &command.1), recorder, writing)
        };
        watch
            .until_quiet(self, &mut *armed.recorder, &mut on_part)
            .map_err(|source| EngineError::Io {
                action: "watch what the command left running",
                source,
            })?;
        let end = CommandEnd {
            duration_ms: millis(armed.began),
            ..CommandEnd::default()
        };
        let id = armed.id;
        self.finish_command(armed, end, Part::Background, watch)
            .map_err(not_settled(id))
    }

    /// Begins the operation of what a command leaves running, with all that it can write without being asked about.
    fn arm_survivors(
        &self,
        watch: &Watch,
        of: &ArmedCommand,
        names: &[String],
    ) -> Result<ArmedCommand, EngineError> {
        let words = || watch.start.words.join(" ");
        let words = of.shown.clone().unwrap_or_else(words);
        let summary = format!("left running by {words}: {}", names.join(", "));
        let (of, left_out) = (of.id, of.left_out.clone());
        let mut armed = self.arm_command((summary, None), Some(of), &watch.start, watch.limits)?;
        armed.left_out = left_out;
        watch::keep_open_files(&mut *armed.recorder);
        crash_point("run.survivors-armed");
        Ok(armed)
    }

    /// Makes the place of the log durable, before anything can happen that it would tell of.
    fn arm_command(
        &self,
        (summary, call): (String, Option<Asked>),
        of: Option<OperationId>,
        start: &CommandStart,
        limits: Limits,
    ) -> Result<ArmedCommand, EngineError> {
        // Others take part: what watches it, and whatever it starts.
        self.store.check_room()?;
        self.store
            .make_room(&self.settings.retention, self.now(), 0)?;
        let id = self.next_id();
        let mode = start.mode;
        let log = self.store.capture_log(id);
        let body = JsonText::of(&Unsettled {
            log: log.clone(),
            of,
            call: None,
        });
        let recipe = Recipe {
            driver: DriverName::COMMAND,
            version: RECIPE_VERSION,
            contents: Vec::new(),
            slots: Vec::new(),
            body: body.map_err(|error| EngineError::Io {
                action: "write the recipe",
                source: error.into(),
            })?,
        };
        let intent = Intent {
            depends_on: self.depends_on(id, &self.context, &[], &[])?,
            command: Some(start.clone()),
            call,
            ..self.intent_of_a_run(id, summary.clone(), recipe)
        };
        let armed = arm(&*self.store, intent, Vec::new(), CommandLog(log));
        let armed = armed.map_err(EngineError::NotArmed)?;
        crash_point("run.armed");
        let recorder = self.commands.record(armed, limits);
        let mut recorder = recorder.map_err(|error| self.give_up(id, &error.to_string()))?;
        if !self.settings.gates.is_empty() {
            let (gates, agent) = (self.settings.gates.clone(), self.context.agent.clone());
            recorder.forbid_by(Box::new(move |writing| {
                let reason = gates.iter().find_map(|gate| {
                    let others = || gate.forbids_by_other_names(writing.path);
                    let reason = gate.forbids(agent.as_ref(), writing.path, writing.to);
                    reason.or_else(|| writing.has_other_names.then(others).flatten())
                });
                reason.map(|reason| reason.to_string())
            }));
        }
        for directory in self.store.own_directories() {
            recorder.forbid(&directory);
        }
        for link in self.store.links_to_it() {
            recorder.forbid_link(link);
        }
        if let Some(logs) = self.store.capture_log(id).parent() {
            recorder.hear_of_neighbours(logs);
        }
        Ok(ArmedCommand {
            id,
            summary,
            mode,
            recorder,
            began: Instant::now(),
            lacks: None,
            left_out: Vec::new(),
            shown: None,
        })
    }

    /// Settles and records what a command did.
    fn finish_command(
        &self,
        mut armed: ArmedCommand,
        mut end: CommandEnd,
        part: Part,
        watch: &mut Watch,
    ) -> Result<Option<RunReport>, EngineError> {
        let id = armed.id;
        let mut notes = armed.recorder.notes();
        let split = armed.recorder.split().clone();
        armed.recorder.sync().map_err(|source| EngineError::Io {
            action: "sync what was kept",
            source,
        })?;
        crash_point("run.ended");
        armed.recorder.leave_out(&armed.left_out);
        let databases = self.record_rows(
            (id, &armed.summary),
            &mut *armed.recorder,
            (&*watch, part, &end),
        );
        crash_point("run.rows");
        let through = armed.recorder.through();
        let settled = armed.recorder.settle()?;
        // What settling touched was touched by us: if this cannot be recorded, whoever recovers must know.
        self.touch_log(id);
        crash_point("run.settled");
        if settled.is_nothing && part == Part::Background {
            self.give_up(id, "it changed nothing");
            return Ok(None);
        }
        (end.created, end.changed, end.deleted) = (
            settled.counts.created,
            settled.counts.changed + databases,
            settled.counts.deleted,
        );
        notes.extend(armed.lacks);
        notes.extend(split_notes(&settled.targets, &split));
        notes.extend(background_note(&end));
        notes.extend(drift_note(&end, part));
        let durability = if settled.is_nothing {
            Durability::Process
        } else {
            Durability::Power
        };
        // Until the verdict is carried out nobody writes over what it is about.
        let _closed = self
            .is_gated(&settled)
            .then(|| watch.close_desk(&settled.targets));
        let gated = self.ask_about(&armed.summary, &settled, through, (watch, part, &end))?;
        notes.extend(gated.warnings.iter().cloned());
        let (completion, targets) = (settled.completion.clone(), settled.targets.clone());
        let recorded = [notes.clone(), gated.recorded()].concat();
        let (captured, contents) = self.captured(id, settled, recorded, end.clone())?;
        let report = RunReport {
            id,
            summary: armed.summary,
            status: self.status_when_done(),
            mode: armed.mode,
            end,
            notes,
            undone: None,
            reasons: Vec::new(),
            is_stopped: false,
        };
        if !gated.is_done() {
            let what = (captured, contents);
            let did = (completion, targets.as_slice());
            let report = self.record_gated(report, gated, what, did, watch)?;
            return Ok(Some(report));
        }
        let mut events = vec![captured, Event::Applied { id, completion }];
        if report.status == Status::Committed {
            events.push(Event::Commit { id });
        }
        self.store.append(&Entry { events, contents }, durability)?;
        crash_point("run.committed");
        self.forget_log(id);
        Ok(Some(report))
    }

    /// What an operation is when it is done: its task has the last word.
    pub(crate) fn status_when_done(&self) -> Status {
        match self.context.task {
            Some(_) => Status::Applied,
            None => Status::Committed,
        }
    }

    /// Says what a command did, as a record.
    pub(crate) fn captured(
        &self,
        id: OperationId,
        settled: Settled,
        mut notes: Vec<String>,
        end: CommandEnd,
    ) -> Result<(Event, Vec<backout_model::ports::NewContent>), EngineError> {
        let mut depends_on = self.store.dependencies(&settled.targets)?;
        let mut reads = self.reads_of(&settled)?;
        reads.retain(|read| read.on != id);
        let read: BTreeSet<OperationId> = reads.iter().map(|read| read.on).collect();
        depends_on.extend(read.into_iter().map(|on| Dependency {
            on,
            reason: DependencyReason::Read,
        }));
        depends_on.retain(|dependency| dependency.on != id);
        notes.dedup();
        let captured = Captured {
            id,
            targets: settled.targets,
            depends_on,
            reads,
            notes,
            lasting: settled.lasting,
            end,
            recipe: settled.recipe,
        };
        Ok((Event::Captured(Box::new(captured)), settled.contents))
    }

    /// Records that a command never began.
    fn not_started(
        &self,
        armed: &ArmedCommand,
        words: &[OsString],
        error: SpawnError,
    ) -> EngineError {
        let why = crate::lifecycle::with_causes(&error);
        self.give_up(armed.id, &why);
        let source = match error {
            SpawnError::NoListener(source) => return EngineError::NoCapture { source },
            SpawnError::Io(source) => source,
            SpawnError::ZeroByte => std::io::ErrorKind::InvalidInput.into(),
        };
        let program = words.first().map(|word| word.to_string_lossy());
        EngineError::NotStarted {
            program: program.unwrap_or_default().into_owned(),
            source,
        }
    }

    pub(crate) fn give_up(&self, id: OperationId, why: &str) -> EngineError {
        let event = Event::Abort {
            id,
            why: why.to_owned(),
            outcomes: Vec::new(),
            trigger: None,
        };
        self.forget_log(id);
        let recorded = self
            .store
            .append(&Entry::of(vec![event]), Durability::Process);
        match recorded {
            Ok(_) => EngineError::Io {
                action: "begin the record of the command",
                source: std::io::Error::other(why.to_owned()),
            },
            Err(error) => error.into(),
        }
    }
}

fn survivors_of(watch: &mut Watch) -> Result<Vec<String>, EngineError> {
    let action = "see what the command left running";
    let found = watch.survivors();
    found.map_err(|source| EngineError::Io { action, source })
}

/// Says that a command ran, whatever went wrong after that.
fn not_settled(id: OperationId) -> impl Fn(EngineError) -> EngineError {
    move |cause| EngineError::NotSettled {
        id,
        cause: Box::new(cause),
    }
}

fn background_note(end: &CommandEnd) -> Option<String> {
    (!end.survivors.is_empty()).then(|| {
        format!(
            "still running when the command ended: {}; what they do is recorded as another operation",
            end.survivors.join(", ")
        )
    })
}

/// What had several names and comes back as files of their own.
fn split_notes(targets: &[Target], split: &BTreeSet<TargetPath>) -> Vec<String> {
    const TOLD_MAX: usize = 10;
    let mut changed = targets.iter().filter_map(Target::file);
    let mut told: Vec<String> = changed
        .by_ref()
        .filter(|path| split.contains(path))
        .take(TOLD_MAX)
        .map(|path| {
            format!(
                "`{path}` had other names; an undo brings back what was in it, as a file of its own"
            )
        })
        .collect();
    let more = changed.filter(|path| split.contains(path)).count();
    if more > 0 {
        told.push(format!("and {more} more files that had other names"));
    }
    told
}

/// What was read as harmless and was not.
fn drift_note(end: &CommandEnd, part: Part) -> Option<String> {
    let changed = end.created + end.changed + end.deleted;
    let is_surprise = part == Part::Command { is_read_only: true } && changed > 0;
    is_surprise.then(|| {
        format!("drift: by its words it only reads, but it changed {changed} names; see `backout classify`")
    })
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
