//! Shell commands of agents: whether the seam is there before, and whether the command ran through it after.

use std::path::Path;
use std::time::{Duration, Instant};

use backout_agents::{Agent, Answer, Told, Use, call_key};
use backout_engine::{Engine, EngineError, Filter};
use backout_model::{Operation, OperationId, Verb};

use crate::env_vars;

/// A command that is started in the background may be reported before it is armed.
const WAIT_MAX: Duration = Duration::from_secs(3);

/// How long to wait between two looks.
const POLL: Duration = Duration::from_millis(20);

/// So many of the newest operations of a prompt may be the command that is looked for.
const NEWEST: usize = 64;

/// Refuses a shell command that would not run through the seam, where that can be told.
pub(super) fn before(agent: Agent) -> Answer {
    let (name, script) = match agent {
        Agent::ClaudeCode => (env_vars::CLAUDE_PREFIX, "backout-shell"),
        Agent::Gemini | Agent::Qwen => (env_vars::BASH_ENV, "bash-env"),
        // Their hooks do not see what their shells get: the command is looked for afterwards.
        Agent::Codex | Agent::OpenCode | Agent::Copilot | Agent::Cline | Agent::Cursor => {
            return Answer::GoOn;
        }
    };
    let found = std::env::var_os(name).unwrap_or_default();
    if is_ours(Path::new(&found), agent, script) {
        return Answer::GoOn;
    }
    let how = if found.is_empty() {
        "is not set".to_owned()
    } else {
        format!("is `{}`", Path::new(&found).display())
    };
    Answer::Refuse(format!(
        "backout: shell commands would run unrecorded, so they are refused: {name} {how}. Somebody's settings switch it off; see `backout doctor`"
    ))
}

/// Tells whether a path is that of a script of ours, and the script is there.
fn is_ours(path: &Path, agent: Agent, script: &str) -> bool {
    let end = format!("agents/{agent}/{script}");
    path.is_absolute() && path.ends_with(end) && path.is_file()
}

/// Finds the operations that shell commands became, and reports those that became none.
pub(super) fn after(
    engine: &Engine,
    told: &Told,
    used: &Use,
    commands: &[String],
) -> Result<Answer, EngineError> {
    let mut found = Vec::new();
    let mut unseen = Vec::new();
    for command in commands {
        match run_of(engine, told, used, command)? {
            Some(id) => found.push(id.short()),
            None => unseen.push(command.as_str()),
        }
    }
    Ok(if unseen.is_empty() {
        let found = found.join(", ");
        Answer::Tell(format!("Backout: operation {found}"))
    } else {
        Answer::Warn(format!(
            "Backout did not see this command run: what it changed is not recorded and cannot be undone. See `backout doctor`: {}",
            unseen.join("; ")
        ))
    })
}

fn run_of(
    engine: &Engine,
    told: &Told,
    used: &Use,
    command: &str,
) -> Result<Option<OperationId>, EngineError> {
    let began = Instant::now();
    let call = used.call.as_deref();
    // A shell knows no sub-agents.
    let key = call.and_then(|call| call_key(told.agent, &told.session, None, call));
    let summary = format!("run {}", command.trim());
    loop {
        if let Some(key) = &key
            && let Some((id, _)) = engine.store().answer_to(key)?
        {
            return Ok(Some(id));
        }
        let filter = Filter {
            agent: engine.context().agent.clone(),
            prompt: engine.context().prompt.clone(),
            limit: Some(NEWEST),
            ..Filter::default()
        };
        let is_it = |it: &&Operation| it.verb == Verb::Run && it.summary == summary;
        let operations = engine.store().operations(&filter)?;
        if let Some(operation) = operations.iter().find(is_it) {
            return Ok(Some(operation.id));
        }
        if began.elapsed() > WAIT_MAX || !may_come(told.agent) {
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

/// Tells whether an agent's shells run through a seam at all, so that it is worth while to wait.
const fn may_come(agent: Agent) -> bool {
    match agent {
        Agent::ClaudeCode
        | Agent::Codex
        | Agent::Gemini
        | Agent::Qwen
        | Agent::OpenCode
        | Agent::Cline => true,
        Agent::Copilot | Agent::Cursor => false,
    }
}
