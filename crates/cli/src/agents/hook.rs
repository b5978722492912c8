//! `backout hook AGENT`: an event comes on standard input, and what is said of it is an exit code and a few words.
//!
//! Whatever fails here, a panic included, ends in a refusal, or in a loud passage if the user's own rules say so. A thread ends
//! the process well before the agent would stop waiting: most agents let a tool run whose hook is late.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr as _;
use std::time::Duration;

use backout_agents::{Agent, Answer, Does, NotAnEvent, Reply, Told, Use, What};
use backout_engine::{
    CallBegun, CallEnded, Caller, Context, Engine, EngineError, NewPrompt, Report, ToolCall,
};
use backout_gates::OnHookFailure;
use backout_model::{AgentId, CallKey, Status};

use super::{owner, shell};
use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::inside::{self, Way};
use crate::session::Session;
use crate::state_dir::own_rules;

/// How long a hook may take. Agents wait for sixty seconds.
const DEADLINE: Duration = Duration::from_secs(25);

/// No event is larger.
const EVENT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Says the answer and ends.
pub(super) fn main(state_dir: Option<PathBuf>, words: &[OsString]) -> ExitCode {
    let name = words
        .first()
        .and_then(|word| word.to_str())
        .unwrap_or_default();
    let agent = match Agent::from_str(name) {
        Ok(agent) => agent,
        Err(error) => {
            // Nobody knows how to tell it: most agents understand this.
            say(&Answer::Refuse(format!("backout: {error}")).for_agent(Agent::ClaudeCode, ""));
            return ExitCode::from(2);
        }
    };
    let event = words.get(1).and_then(|word| word.to_str());
    fail_closed(agent);
    let asked = [&[OsString::from("hook")], words].concat();
    match inside::ask(&asked) {
        // The agent runs under `backout run`: whatever it does is recorded already.
        Way::Here(Some(_)) => return ExitCode::SUCCESS,
        Way::Here(None) => {}
        Way::Outside(code) => return ExitCode::from(code),
        Way::Refused(report) => {
            let reply = broken(&said(&report)).for_agent(agent, event.unwrap_or_default());
            say(&reply);
            return ExitCode::from(reply.code);
        }
    }
    let reply = match listen(agent, event) {
        Ok(told) => {
            let answer = answer(state_dir, &told);
            let answer = answer.unwrap_or_else(|failure| failed(&told, &why(failure)));
            answer.for_agent(told.agent, &told.name)
        }
        Err(error) => unheard(&error).for_agent(agent, event.unwrap_or_default()),
    };
    say(&reply);
    ExitCode::from(reply.code)
}

/// Makes sure that neither a panic nor a long wait lets anything pass.
fn fail_closed(agent: Agent) {
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        end(
            agent,
            &format!("it broke down at {place}; please report this"),
        );
    }));
    std::thread::spawn(move || {
        std::thread::sleep(DEADLINE);
        end(agent, "it took too long");
    });
}

/// Ends the process at once.
#[expect(
    clippy::exit,
    reason = "a panic or a deadline must not let anything pass"
)]
fn end(agent: Agent, why: &str) -> ! {
    let reply = broken(why).for_agent(agent, "");
    say(&reply);
    std::process::exit(i32::from(reply.code))
}

fn say(reply: &Reply) {
    // Who does not listen has the exit code.
    let _output = std::io::stdout().write_all(reply.output.as_bytes());
    let _flushed = std::io::stdout().flush();
    let _errors = std::io::stderr().write_all(reply.errors.as_bytes());
}

/// What is said when we fail ourselves.
fn broken(why: &str) -> Answer {
    match OnHookFailure::of(own_rules().as_deref()) {
        OnHookFailure::Refuse => Answer::Refuse(format!(
            "backout: nothing can be recorded, so this was not allowed: {why}. See `backout doctor`"
        )),
        OnHookFailure::Pass => Answer::Warn(format!(
            "Backout failed ({why}), and your rules let this pass: it is not recorded and cannot be undone"
        )),
    }
}

fn unheard(error: &NotAnEvent) -> Answer {
    broken(&error.to_string())
}

/// Of what is over nothing can be refused any more; it is told.
fn failed(told: &Told, why: &str) -> Answer {
    match told.what {
        What::Before(_) | What::Check => broken(why),
        What::After(_) | What::Prompt(_) => Answer::Warn(format!(
            "Backout failed after this ({why}). What was kept before is safe; see `backout doctor` and `backout status`"
        )),
        What::TurnOver | What::Stopped | What::Ended | What::Other => Answer::GoOn,
    }
}

fn why(failure: Failure) -> String {
    match failure {
        Failure::Engine(error) => said(&Report::from(error)),
        Failure::Report(report) => said(&report),
        Failure::Shown(code) => format!("it ended with code {code}"),
    }
}

fn said(report: &Report) -> String {
    let mut text = report.what.clone();
    for because in &report.why {
        text.push_str(": ");
        text.push_str(because);
    }
    text
}

fn listen(agent: Agent, event: Option<&str>) -> Result<Told, NotAnEvent> {
    let mut text = Vec::new();
    let mut input = std::io::stdin().lock().take(EVENT_BYTES_MAX);
    // What is cut off is no JSON any more.
    let _read = input.read_to_end(&mut text);
    backout_agents::read(agent, event, &text)
}

fn answer(state_dir: Option<PathBuf>, told: &Told) -> Result<Answer, Failure> {
    #[cfg(feature = "testing")]
    broken_by_a_test(told);
    match &told.what {
        What::Other => Ok(Answer::GoOn),
        What::Before(used) => before(state_dir, told, used),
        What::After(used) => after(state_dir, told, used),
        What::Prompt(text) => {
            let hook = Hook::open(state_dir, told)?;
            hook.engine.settle_calls(&hook.caller, false)?;
            hook.engine.note_prompt(&NewPrompt {
                agent: &hook.agent,
                session: &told.session,
                own: told.prompt.as_deref(),
                text,
            })?;
            Ok(Answer::GoOn)
        }
        What::Check => {
            let hook = Hook::open(state_dir, told)?;
            hook.engine.store().check_end().map_err(EngineError::from)?;
            Ok(Answer::GoOn)
        }
        What::TurnOver | What::Stopped | What::Ended => {
            let hook = Hook::open(state_dir, told)?;
            let is_end = told.what == What::Ended;
            hook.engine.settle_calls(&hook.caller, is_end)?;
            Ok(Answer::GoOn)
        }
    }
}

/// What a hook works with.
struct Hook {
    engine: Engine,
    agent: AgentId,
    caller: Caller,
}

impl Hook {
    fn open(state_dir: Option<PathBuf>, told: &Told) -> Result<Self, Failure> {
        let mut session = Session::new(GlobalArgs::of_hook(state_dir), None);
        let agent = AgentId::from_str(told.agent.as_str());
        let agent = agent.map_err(|error| Report::usage(error.to_string()))?;
        session.agent = Some(agent.clone());
        let engine = session.engine()?;
        let caller = Caller {
            session: told.session.clone(),
            agent_id: told.agent_id.clone(),
        };
        Ok(Self {
            engine,
            agent,
            caller,
        })
    }

    /// Gives an engine that works for the prompt that is being answered.
    fn for_prompt(&self, told: &Told) -> Result<Engine, Failure> {
        let own = told.prompt.as_deref();
        let prompt = self.engine.prompt_of(&self.agent, &told.session, own)?;
        let context = self.engine.context().clone();
        Ok(self.engine.for_caller(Context { prompt, ..context }))
    }
}

fn before(state_dir: Option<PathBuf>, told: &Told, used: &Use) -> Result<Answer, Failure> {
    let (verb, paths) = match &used.does {
        Does::Nothing => return Ok(Answer::GoOn),
        Does::Shell { .. } => return Ok(shell::before(told.agent)),
        Does::Unclear => {
            return Ok(Answer::Refuse(format!(
                "backout: it is not clear which files `{}` would write, so nothing could be kept",
                used.tool
            )));
        }
        Does::Writes { verb, paths } => (*verb, paths),
    };
    let hook = Hook::open(state_dir, told)?;
    let engine = hook.for_prompt(told)?;
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let begun = engine.begin_call(&ToolCall {
        key: key(told, used),
        caller: hook.caller,
        tool: used.tool.clone(),
        input: used.input,
        verb,
        summary: format!("{verb} {}", names.join(", ")),
        paths: paths.iter().map(|path| told.absolute(path)).collect(),
        owner: owner::agent(),
        notes: notes(told, used),
    })?;
    Ok(match begun {
        CallBegun::Armed(_) | CallBegun::Again(_) => Answer::GoOn,
        CallBegun::Refused { id, why } => Answer::Refuse(format!(
            "backout: not allowed: {why} (refusal {})",
            id.short()
        )),
    })
}

fn notes(told: &Told, used: &Use) -> Vec<String> {
    let by = told.agent_id.as_ref();
    let by = by.map(|id| format!("by the sub-agent {id}, with the tool {}", used.tool));
    by.into_iter().collect()
}

fn key(told: &Told, used: &Use) -> Option<CallKey> {
    told.key(used.call.as_deref()?)
}

fn after(state_dir: Option<PathBuf>, told: &Told, used: &Use) -> Result<Answer, Failure> {
    match &used.does {
        Does::Nothing | Does::Unclear => Ok(Answer::GoOn),
        Does::Shell { commands } => {
            let hook = Hook::open(state_dir, told)?;
            let engine = hook.for_prompt(told)?;
            Ok(shell::after(&engine, told, used, commands)?)
        }
        Does::Writes { .. } => {
            let hook = Hook::open(state_dir, told)?;
            let engine = hook.for_prompt(told)?;
            let key = key(told, used);
            let ended = engine.end_call(key.as_ref(), &hook.caller, &used.tool, &used.input)?;
            Ok(match ended {
                Some(ended) => told_of(&ended),
                None => Answer::Warn(format!(
                    "Backout was not told of this {} before it wrote: it is not recorded and cannot be undone",
                    used.tool
                )),
            })
        }
    }
}

/// Says what a call came to.
fn told_of(ended: &CallEnded) -> Answer {
    let short = ended.id.short();
    let reasons = ended.reasons.join("; ");
    if ended.is_again || ended.status == Status::Aborted {
        Answer::GoOn
    } else if ended.status == Status::Undone {
        Answer::Warn(format!(
            "Backout took this write back, and the files are as they were before: {reasons}. It is operation {short}"
        ))
    } else if !ended.reasons.is_empty() {
        Answer::Warn(format!(
            "Backout could not take this write back, although a rule says no: {reasons}. It is operation {short}; see `backout status`"
        ))
    } else if ended.warnings.is_empty() {
        Answer::Tell(format!(
            "Backout: operation {short}; `backout undo {short}` takes it back"
        ))
    } else {
        let warnings = ended.warnings.join("; ");
        Answer::Tell(format!(
            "Backout: operation {short}; `backout undo {short}` takes it back. The checks say: {warnings}"
        ))
    }
}

/// Breaks down or falls asleep if a test says so.
#[cfg(feature = "testing")]
#[expect(clippy::panic, reason = "the test wants to see what comes of it")]
fn broken_by_a_test(told: &Told) {
    if !matches!(told.what, What::Before(_) | What::Check) {
        return;
    }
    match std::env::var("BACKOUT_TEST_HOOK").as_deref() {
        Ok("panic") => panic!("a test"),
        Ok("late") => std::thread::sleep(DEADLINE * 2),
        Ok(_) | Err(_) => {}
    }
}
