//! One run of the command: who asks, where the state is, and how the answer is shown.

use std::path::PathBuf;
use std::sync::Arc;

use backout_capture::live::Guest;
use backout_drivers::config::ConfigRequest;
use backout_drivers::file::{FileError, FileRequest};
use backout_drivers::local;
use backout_engine::{
    Call, Command, Context, Engine, EngineError, ErrorCode, Forebear, Reply, Report, Settings,
    SystemClock, Typed, UndoReport, WriteRequest,
};
use backout_gates::{
    Content, Hooks, Irreversible, Keeper, Paths, Watches, WaveProbe, Within, Written,
};
use backout_model::ports::{Clock as _, Progress};
use backout_model::{AgentId, Digest, OperationId, Retention, Strategy, TaskId, Timestamp};
use backout_storage::OperationRef;

use crate::advice;
use crate::args::GlobalArgs;
use crate::commands::gc::parse_size;
use crate::drivers;
use crate::env_vars;
use crate::failure::Failure;
use crate::lineage;
use crate::paths::Here;
use crate::programs::Programs;
use crate::show;
use crate::show::undo::Asked;
use crate::state_dir::{home, own_rules, state_dir};
use crate::ui::{Bar, Ui};
use crate::words::Words;

/// One run.
#[derive(Debug)]
pub(crate) struct Session {
    /// Where words go.
    pub(crate) ui: Ui,
    /// What every command takes.
    pub(crate) global: GlobalArgs,
    /// Who asks: what was typed, or what the environment says.
    pub(crate) agent: Option<AgentId>,
    /// The task: what was typed, or what the environment says.
    pub(crate) task: Option<TaskId>,
    /// How much the store may hold, if anybody said.
    pub(crate) cap: Option<u64>,
    /// Where we are.
    pub(crate) here: Here,
    /// How long images are kept.
    pub(crate) retention: Retention,
    /// Whether a store that is not there is not made.
    pub(crate) needs_no_store: bool,
    /// What is asked under a key, for a command whose request depends on what it finds.
    words: Option<Digest>,
    /// The running command that we are part of.
    within: Option<OperationId>,
    /// Whom we descend from, if that is asked for.
    forebears: Vec<Forebear>,
    /// The only directories that may be written in; empty for everywhere.
    pub(crate) confined_to: Vec<PathBuf>,
    /// What carries out the programs of `act`, and hears what they answer.
    pub(crate) programs: Arc<Programs>,
    /// What is known of the caller, if it is inside of a command and this is done for it.
    pub(crate) asked: Option<Guest>,
    bar: Arc<Bar>,
}

impl Session {
    /// Begins a run.
    pub(crate) fn new(mut global: GlobalArgs, asked: Option<Guest>) -> Self {
        // A pager takes orders: nobody inside gives any to a program that is not watched.
        global.no_pager |= asked.is_some();
        let ui = Ui::new(&global);
        let bar = ui.progress();
        let (agent, task) = (global.agent.clone(), global.task.clone());
        let (here, retention) = (Here::find(), Retention::standard());
        show::called_with(&global);
        Self {
            cap: global.cap,
            ui,
            global,
            agent,
            task,
            here,
            retention,
            needs_no_store: false,
            words: None,
            within: None,
            forebears: Vec::new(),
            confined_to: Vec::new(),
            programs: Arc::new(Programs::heeding(Arc::clone(&bar) as _)),
            asked,
            bar,
        }
    }

    /// Takes from the environment what was not typed.
    pub(crate) fn read_environment(&mut self) -> Result<(), Report> {
        self.agent = self
            .agent
            .take()
            .map_or_else(|| from_environment(env_vars::AGENT, str::parse), good)?;
        self.task = self
            .task
            .take()
            .map_or_else(|| from_environment(env_vars::TASK, str::parse), good)?;
        let cap = self
            .global
            .cap
            .map_or_else(|| from_environment(env_vars::CAP_BYTES, parse_size), good)?;
        self.within = from_environment(env_vars::RUN, str::parse)?;
        if let Some(within) = std::env::var_os(env_vars::WITHIN).filter(|value| !value.is_empty()) {
            self.confined_to = std::env::split_paths(&within).collect();
        }
        self.retention.store_bytes_max = cap.unwrap_or(self.retention.store_bytes_max);
        self.cap = cap;
        Ok(())
    }

    /// Opens the engine.
    pub(crate) fn engine(&self) -> Result<Engine, Failure> {
        self.engine_told_to(Arc::clone(&self.bar) as Arc<dyn Progress>)
    }

    /// The same, for somebody else who wants to know how far long work is.
    pub(crate) fn engine_told_to(&self, progress: Arc<dyn Progress>) -> Result<Engine, Failure> {
        let mut settings = self.settings()?;
        settings.progress = Some(progress);
        let mut engine = if self.needs_no_store {
            Engine::open_to_look(settings, local)?
        } else {
            Engine::open(settings, local)?
        };
        drivers::register(&mut engine, &self.programs)?;
        Ok(engine.for_caller(self.context()?))
    }

    fn context(&self) -> Result<Context, Failure> {
        Ok(Context {
            agent: self.agent.clone(),
            task: self.task.clone(),
            key: self.global.once.clone(),
            asked: self.words,
            depends_on: references(&self.global.depends_on)?,
            strategy: self.global.strategy.map(Strategy::from),
            prompt: None,
            within: self.within,
            is_inside: self.asked.is_some(),
            forebears: self.forebears.clone(),
        })
    }

    /// Looks whom this process descends from: who decides must not be who asked.
    pub(crate) fn look_up_forebears(&mut self) {
        self.forebears = lineage::forebears();
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = Settings::new(state_dir(self.global.state_dir.as_deref())?);
        let mut paths = rules();
        // Who asks from inside of a command has it done outside, where nothing stays behind.
        if self.asked.is_none()
            && self.within.is_none()
            && let Ok(program) = std::env::current_exe()
        {
            let state = settings.state_dir.clone().into_os_string();
            let arguments = vec!["--state-dir".into(), state, "notice".into()];
            paths = paths.told_by(Keeper { program, arguments });
        }
        let paths = Arc::new(paths);
        settings.gates = vec![
            Arc::clone(&paths) as _,
            Arc::new(Content::new(Arc::clone(&paths), &settings.state_dir)),
            Arc::new(Watches::new(Arc::clone(&paths))),
            Arc::new(Irreversible),
        ];
        if !self.confined_to.is_empty() {
            let temporary = temporary_directories();
            settings
                .gates
                .push(Arc::new(Within::new(&self.confined_to, &temporary)));
        }
        settings.triggers = Some(Arc::new(Written::new(Arc::clone(&paths))));
        settings.escalation = Some(Arc::new(Hooks::new(paths)));
        settings.probe = Some(Arc::new(WaveProbe));
        settings.retention = self.retention.clone();
        settings.progress = Some(Arc::clone(&self.bar) as Arc<dyn Progress>);
        Ok(settings)
    }

    /// Lets Ctrl-C stop the work at the next step, with everything put back, instead of ending the process.
    pub(crate) fn heed_signals(&self) {
        self.bar.heed_signals();
    }

    /// Has a command carried out, and tells what was recovered on the way.
    pub(crate) fn execute(&mut self, engine: &Engine, command: Command) -> Result<Reply, Failure> {
        let result = engine.execute(command);
        self.bar.clear();
        self.tell_recovered(engine);
        Ok(result?)
    }

    /// Tells what was recovered on the way to something else.
    pub(crate) fn tell_recovered(&mut self, engine: &Engine) {
        let recovered = engine.take_recovered();
        let left = engine.take_acts_left();
        if self.ui.is_json() {
            self.ui.note_recovered(recovered, left);
        } else {
            show::recover::on_the_way(self, &recovered, &left);
        }
    }

    /// Gives how long a list may be that usually ends after so many.
    pub(crate) const fn listed(&self, usual: usize) -> usize {
        if self.global.verbose {
            usize::MAX
        } else {
            usual
        }
    }

    /// Gives the bar, which knows whether somebody wants to stop.
    pub(crate) fn bar(&self) -> &Bar {
        &self.bar
    }

    /// Takes the bar away, if there is one.
    pub(crate) fn clear_bar(&self) {
        self.bar.clear();
    }

    /// Has a command carried out and shows the reply.
    pub(crate) fn run(&mut self, command: Command) -> Result<(), Failure> {
        let engine = self.engine()?;
        let reply = self.execute(&engine, command)?;
        self.show(&engine, &reply)
    }

    /// Repairs the store, whatever its state, and then has it checked.
    pub(crate) fn repair(&mut self, check: Command) -> Result<(), Failure> {
        let repaired = Engine::repair(self.settings()?, local);
        self.bar.clear();
        let (engine, repair) = repaired?;
        let mut reply = self.execute(&engine, check)?;
        if let Reply::Doctor(report) = &mut reply {
            report.repair = Some(repair);
        }
        self.show(&engine, &reply)
    }

    /// Takes down what is asked, in words that do not depend on what is found, and shows the answer if the same call got one
    /// before. Tells whether it did.
    pub(crate) fn is_answered(&mut self, words: &Words) -> Result<bool, Failure> {
        if self.global.once.is_none() {
            return Ok(false);
        }
        self.words = Some(words.digest());
        let engine = self.engine()?;
        let answer = engine.answer();
        self.tell_recovered(&engine);
        let Some(finished) = answer? else {
            return Ok(false);
        };
        if self.ui.is_json() {
            self.show(&engine, &Reply::Finished(finished))?;
        } else {
            show::write::finished(self, &finished, "");
        }
        Ok(true)
    }

    /// Has a write carried out and says so in the past tense.
    pub(crate) fn write(&mut self, request: FileRequest) -> Result<(), Failure> {
        let kind = advice::Asked::of(&request);
        self.write_as(request, &kind)
    }

    /// The same, with advice for what was asked.
    pub(crate) fn write_as(
        &mut self,
        request: FileRequest,
        kind: &advice::Asked,
    ) -> Result<(), Failure> {
        let said = show::write::past(&request, &self.here);
        self.carry_out(request.into(), &said, |error| kind.advice(error))
    }

    /// Has keys of a config file changed and says so in the past tense.
    pub(crate) fn write_keys(&mut self, request: ConfigRequest) -> Result<(), Failure> {
        let said = show::write::keys(&request, &self.here);
        self.carry_out(request.into(), &said, |error| match error {
            FileError::NotFound { .. } => {
                Some("check the name; `backout write FILE` makes a new file")
            }
            _ => None,
        })
    }

    /// Has something written and shows it, with better advice than the engine's if there is any.
    fn carry_out(
        &mut self,
        request: WriteRequest,
        said: &str,
        advice: impl Fn(&FileError) -> Option<&'static str>,
    ) -> Result<(), Failure> {
        let engine = self.engine()?;
        match self.execute(&engine, Command::Write { request }) {
            Ok(Reply::Finished(finished)) if !self.ui.is_json() => {
                show::write::finished(self, &finished, said);
                Ok(())
            }
            Ok(reply) => self.show(&engine, &reply),
            Err(Failure::Engine(EngineError::Driver(error))) => {
                let better = error.as_a().and_then(advice);
                let mut report = Report::from(EngineError::Driver(error));
                if let Some(advice) = better {
                    report.next = vec![advice.into()];
                }
                Err(report.into())
            }
            Err(failure) => Err(failure),
        }
    }

    /// Has an undo, a redo or a rollback carried out or previewed, and shows it in its own words.
    pub(crate) fn take_back(
        &mut self,
        engine: &Engine,
        command: Command,
        asked: &Asked,
    ) -> Result<(), Failure> {
        match self.execute(engine, command) {
            Ok(Reply::Plan(plan)) if !self.ui.is_json() => {
                let asked = asked.about(engine, plan.steps.iter().map(|step| step.id));
                show::plan::plan(self, engine, &plan, &asked);
                show::bad_news(&Reply::Plan(plan))
            }
            Ok(Reply::Undone(report)) if !self.ui.is_json() => {
                let asked = asked.about(engine, report.steps.iter().map(|step| step.id));
                show::undo::undone(self, engine, &report, &asked);
                Ok(())
            }
            Ok(reply) => self.show(engine, &reply),
            // What was done in part is a reply as well.
            Err(Failure::Engine(error @ (EngineError::Partial(_) | EngineError::Stopped(_)))) => {
                if let EngineError::Partial(report) | EngineError::Stopped(report) = &error {
                    let ids = report.steps.iter().map(|step| step.id);
                    self.show_part(report, &asked.about(engine, ids));
                }
                Err(show::undo::report(error, asked).into())
            }
            Err(Failure::Engine(error)) => Err(show::undo::report(error, asked).into()),
            Err(failure) => Err(failure),
        }
    }

    fn show_part(&mut self, report: &UndoReport, asked: &Asked) {
        if self.ui.is_json() {
            self.ui.print_json(&Reply::Undone(report.clone()));
        } else {
            let fine_max = self.listed(show::FINE_MAX);
            let text = show::undo::steps(report, &self.here, asked, fine_max);
            self.ui.print(&text);
        }
    }

    /// Shows a reply.
    pub(crate) fn show(&mut self, engine: &Engine, reply: &Reply) -> Result<(), Failure> {
        if self.ui.is_json() {
            self.ui.print_json(reply);
        } else {
            show::reply(self, engine, reply);
        }
        show::bad_news(reply)
    }

    /// Ends the run: shows what went wrong, if something did, and gives the exit code.
    pub(crate) fn end(mut self, result: Result<(), Failure>) -> u8 {
        let code = match result {
            Ok(()) => 0,
            Err(Failure::Shown(code)) => code,
            // Nobody wants to know how a stream ended that nobody reads.
            Err(Failure::Engine(_)) if self.ui.is_closed() => 0,
            Err(Failure::Engine(error)) => self.report(&self.without_relay(Report::from(error))),
            Err(Failure::Report(report)) => self.report(&report),
        };
        match self.ui.finish() {
            Some(error) => {
                let mut report = Report::refused("the reply could not be written").because(error);
                report.code = ErrorCode::NoReply;
                if code == 0 {
                    report = report.next_call(
                        "if this was to change something, it was done: see it with {}",
                        [Call::of("log").typed(Typed::default().and(&["-n", "1"]))],
                    );
                }
                self.report(&report).max(code)
            }
            None => code,
        }
    }

    /// Says why the state cannot be used where a command is watched and nobody can be asked to use it.
    fn without_relay(&self, report: Report) -> Report {
        if self.within.is_none() || self.asked.is_some() || report.code != ErrorCode::StateDirectory
        {
            return report;
        }
        let mut report = report
            .because("this is inside of a command that `backout run` watches, and there is no relay to ask")
            .because("the process in front of the command has ended, or sockets are forbidden here");
        report.next = vec!["do it outside of the command".into()];
        report
    }

    /// Shows what went wrong, and goes on.
    pub(crate) fn tell(&mut self, report: &Report) {
        let _code = self.report(report);
    }

    fn report(&mut self, report: &Report) -> u8 {
        let mut said = report.clone();
        for next in &mut said.next {
            *next = next.worded(|call| format!("`{}`", show::command_line(&call.line())));
        }
        self.ui.report(&said, &self.here);
        report.exit_code()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "stands beside what may fail")]
const fn good<T>(value: T) -> Result<Option<T>, Report> {
    Ok(Some(value))
}

/// Lists the directories that programs keep temporary files in.
fn temporary_directories() -> Vec<PathBuf> {
    let usual = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
    std::iter::once(std::env::temp_dir()).chain(usual).collect()
}

/// Gives what reads the rules that hold for this user.
pub(crate) fn rules() -> Paths {
    Paths::new(own_rules(), home())
}

/// Reads a variable; an empty one is none.
fn from_environment<T, E: ToString>(
    name: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, Report> {
    match std::env::var_os(name).filter(|value| !value.is_empty()) {
        Some(value) => parse(&value.to_string_lossy()).map(Some).map_err(|error| {
            Report::usage(format!("the environment variable {name} cannot be used"))
                .because(error.to_string())
                .next("set it right, or take it away")
        }),
        None => Ok(None),
    }
}

/// Reads the names of operations.
pub(crate) fn references(names: &[String]) -> Result<Vec<OperationRef>, Failure> {
    names.iter().map(|name| reference(name)).collect()
}

/// Reads the name of an operation.
pub(crate) fn reference(name: &str) -> Result<OperationRef, Failure> {
    name.parse()
        .map_err(|error| Failure::Engine(EngineError::Ref(error)))
}

/// Tells the time, as the engine does.
pub(crate) fn now() -> Timestamp {
    #[cfg(feature = "testing")]
    if let Some(fixed) = fixed_now() {
        return fixed;
    }
    SystemClock.now()
}

/// The fixed clock of hermetic tests, where the engine has it from.
#[cfg(feature = "testing")]
fn fixed_now() -> Option<Timestamp> {
    let directory = std::path::PathBuf::from(std::env::var_os("BACKOUT_TEST_SEED")?);
    let fixed = std::fs::read_to_string(directory.join("now")).ok();
    Some(Timestamp(
        fixed
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(1_800_000_000_000),
    ))
}
