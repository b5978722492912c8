//! Whether the agents on this machine are protected: what is set up is run, and what a repository switches off is told.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backout_agents::settings::{Places, Standing, trust};
use backout_agents::{Agent, CHECK};
use backout_config::{Document, Format, KeyPath, Value};
use backout_engine::Finding;
use serde_json::json;

use super::setup;
use crate::env_vars;
use crate::session::Session;

/// How long a hook may take to say that it works.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How long to wait between two looks.
const POLL: Duration = Duration::from_millis(5);

/// Looks at every agent that has settings here.
pub(crate) fn findings(session: &Session) -> Vec<Finding> {
    let mut findings = Vec::new();
    for agent in Agent::ALL {
        let Ok(places) = setup::places(session, agent, false) else {
            return findings;
        };
        if is_here(agent, &places) {
            findings.push(finding(agent, &places));
        }
        findings.extend(switched_off(agent, &places).iter().map(|off| Finding {
            check: format!("agent {agent}"),
            is_good: false,
            detail: off.to_string(),
            advice: Some(TAKE_OUT.to_owned()),
        }));
    }
    findings
}

fn is_here(agent: Agent, places: &Places) -> bool {
    home_of(agent, places).is_dir()
}

/// Gives the directory of the user's own settings of an agent.
fn home_of(agent: Agent, places: &Places) -> PathBuf {
    let own = places.config.clone();
    own.unwrap_or_else(|| places.home.join(directory_of(agent)))
}

const fn directory_of(agent: Agent) -> &'static str {
    match agent {
        Agent::ClaudeCode => ".claude",
        Agent::Codex => ".codex",
        Agent::Gemini => ".gemini",
        Agent::Qwen => ".qwen",
        Agent::OpenCode => ".config/opencode",
        Agent::Copilot => ".copilot",
        Agent::Cline => ".cline",
        Agent::Cursor => ".cursor",
    }
}

fn finding(agent: Agent, places: &Places) -> Finding {
    let said = |is_good, detail: String, advice: Option<String>| Finding {
        check: format!("agent {agent}"),
        is_good,
        detail,
        advice,
    };
    let init = format!("`backout init {agent}`");
    match setup::standing(setup::Gets::Protection, agent, places) {
        Err(report) => said(
            false,
            report.why.join(": "),
            Some(format!("put it right, then {init}")),
        ),
        Ok(Standing::Absent) => said(
            true,
            "not protected".to_owned(),
            Some(format!("protect it with {init}")),
        ),
        Ok(Standing::Part) => {
            let detail = "a part of what protects it is missing, or is of another version";
            said(
                false,
                detail.to_owned(),
                Some(format!("bring it up to date with {init}")),
            )
        }
        Ok(Standing::Whole) => match answers(agent, places) {
            Err(why) => said(false, format!("its hook does not work: {why}"), Some(init)),
            Ok(()) if agent == Agent::Codex && !is_trusted(places) => said(
                false,
                "Codex does not trust the hooks, and skips them in silence".to_owned(),
                Some(format!(
                    "approve them in `/hooks`, or with {init} and `--trust`"
                )),
            ),
            Ok(()) => said(true, "protected; its hook answers".to_owned(), None),
        },
    }
}

/// Runs the hook as the agent would, with an event that only asks whether it works.
fn answers(agent: Agent, places: &Places) -> Result<(), String> {
    let mut command = Command::new(&places.program);
    if let Some(directory) = &places.state_dir {
        command.arg("--state-dir").arg(directory);
    }
    command.args(["hook", agent.as_str()]).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let event = json!({"hook_event_name": CHECK, "session_id": "doctor", "cwd": "/"}).to_string();
    if let Some(mut input) = child.stdin.take() {
        let _said = input.write_all(event.as_bytes());
    }
    let began = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if began.elapsed() < ANSWER_MAX => std::thread::sleep(POLL),
            Ok(None) => {
                let _ended = child.kill();
                let _gone = child.wait();
                return Err("it did not answer in time".to_owned());
            }
            Err(error) => return Err(error.to_string()),
        }
    };
    let mut errors = String::new();
    if let Some(mut said) = child.stderr.take() {
        let _read = said.read_to_string(&mut errors);
    }
    if status.success() {
        Ok(())
    } else {
        Err(errors.trim().to_owned())
    }
}

/// Tells whether Codex has the digest of each of our hooks as they are now.
fn is_trusted(places: &Places) -> bool {
    let directory = places.config.clone();
    let directory = directory.unwrap_or_else(|| places.home.join(".codex"));
    let hooks = directory.join("hooks.json");
    let text = std::fs::read_to_string(&hooks).unwrap_or_default();
    let config = std::fs::read_to_string(directory.join("config.toml")).unwrap_or_default();
    let Ok(wanted) = trust(&hooks, &text) else {
        return false;
    };
    wanted.iter().all(|trust| {
        let found = value(Format::Toml, &config, &trust.key);
        found == Some(Value::Text(trust.hash.clone()))
    })
}

/// What to do about settings that switch hooks off.
pub(crate) const TAKE_OUT: &str = "take it out, or do not use the agent in this directory";

/// Something that takes the protection of an agent away.
#[derive(Debug)]
pub(crate) struct Off {
    file: PathBuf,
    what: String,
}

impl fmt::Display for Off {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, in `{}`", self.what, self.file.display())
    }
}

/// Finds what the settings that count in this directory switch off for an agent: the user's own, and those that a repository may
/// bring.
pub(crate) fn switched_off(agent: Agent, places: &Places) -> Vec<Off> {
    let (name, format, key, is_off) = match agent {
        Agent::ClaudeCode => (
            "settings.json",
            Format::Jsonc,
            &["disableAllHooks"][..],
            true,
        ),
        Agent::Codex => (
            "config.toml",
            Format::Toml,
            &["features", "hooks"][..],
            false,
        ),
        Agent::Gemini | Agent::Qwen => (
            "settings.json",
            Format::Jsonc,
            &["hooksConfig", "enabled"][..],
            false,
        ),
        Agent::OpenCode | Agent::Copilot | Agent::Cline | Agent::Cursor => return Vec::new(),
    };
    let here = std::env::current_dir().map(|here| here.join(directory_of(agent)));
    let mut files = vec![home_of(agent, places).join(name)];
    files.extend(here.iter().map(|here| here.join(name)));
    if agent == Agent::ClaudeCode {
        files.extend(here.iter().map(|here| here.join("settings.local.json")));
    }
    files.dedup();
    let mut off = Vec::new();
    for file in files {
        if found(&file, format, key) == Some(Value::Bool(is_off)) {
            let what = format!("{} switches every hook off", key.join("."));
            off.push(Off {
                file: file.clone(),
                what,
            });
        }
        let is_here = here.as_ref().is_ok_and(|here| file.starts_with(here));
        if agent == Agent::ClaudeCode && is_here {
            off.extend(other_prefix(file));
        }
    }
    off
}

/// Tells whether a file of a repository has another program run the commands of Claude Code's shell.
fn other_prefix(file: PathBuf) -> Option<Off> {
    let prefix = found(&file, Format::Jsonc, &["env", env_vars::CLAUDE_PREFIX])?;
    let is_ours =
        matches!(&prefix, Value::Text(path) if path.ends_with("agents/claude-code/backout-shell"));
    let what = format!(
        "{} takes the shell away from Backout",
        env_vars::CLAUDE_PREFIX
    );
    (!is_ours).then_some(Off { file, what })
}

fn found(file: &PathBuf, format: Format, names: &[&str]) -> Option<Value> {
    let text = std::fs::read_to_string(file).ok()?;
    value(format, &text, &KeyPath::of_names(names.iter().copied()))
}

fn value(format: Format, text: &str, key: &KeyPath) -> Option<Value> {
    let document = Document::parse(format, text).ok()?;
    document.get(key).ok()?.map(|found| found.value)
}
