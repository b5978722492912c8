//! `backout mcp`

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use backout_engine::{Engine, Report};
use backout_mcp::{Caller, Given, Host, Program, serve_stdio};
use backout_model::ports::Progress;
use clap::{Args, ValueHint};

use crate::args::GlobalArgs;
use crate::env_vars;
use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;
use crate::state_dir::state_dir;

/// Serve an agent over MCP, on standard input and output.
///
/// The agent gets tools to write files, keys and rows, to run and try commands, to call services, and to look at and take back
/// its own work. It writes only in its directories. It cannot approve what waits for a decision, let images go, change rules or
/// undo the work of others. `backout init AGENT --mcp` registers this with an agent.
///
/// The agent is called what `--agent` says, or else what its program calls itself.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// A directory that the agent may write in; may be repeated. By default those that its program names as roots, or else
    /// the current directory.
    #[arg(long = "root", value_name = "DIR", value_hint = ValueHint::DirPath)]
    roots: Vec<PathBuf>,
}

/// Serves an agent.
pub(crate) fn cmd_mcp(session: &mut Session, args: McpArgs) -> Result<(), Failure> {
    let mut roots = Vec::new();
    for root in args.roots {
        roots.push(root_of(&root)?);
    }
    let given = Given {
        agent: session.agent.clone(),
        roots,
        is_granted: false,
    };
    let host = Served::new(&session.global)?;
    serve_stdio(Arc::new(host), given).map_err(|error| {
        let report = Report::refused("the agent is no longer served").because(error);
        report.into()
    })
}

/// Gives a directory that an agent may write in, without links.
pub(super) fn root_of(root: &std::path::Path) -> Result<PathBuf, Report> {
    let root = absolute(root)?;
    let wrong = || Report::refused(format!("`{}` cannot be used as a root", root.display()));
    let found = root
        .canonicalize()
        .map_err(|error| wrong().because(error))?;
    if !found.is_dir() {
        return Err(wrong().because("it is no directory"));
    }
    Ok(found)
}

/// This program, for those who are served.
#[derive(Debug)]
pub(crate) struct Served {
    global: GlobalArgs,
    state: PathBuf,
    program: PathBuf,
}

impl Served {
    /// Takes what every command takes.
    pub(crate) fn new(global: &GlobalArgs) -> Result<Self, Report> {
        let unknown =
            |error| Report::refused("it is not clear where this program is").because(error);
        let state = absolute(&state_dir(global.state_dir.as_deref())?)?;
        let served = GlobalArgs {
            cap: global.cap,
            ..GlobalArgs::of_hook(Some(state.clone()))
        };
        Ok(Self {
            global: served,
            state,
            program: std::env::current_exe().map_err(unknown)?,
        })
    }

    fn session(&self, caller: &Caller) -> Result<Session, Report> {
        let mut session = Session::new(self.global.clone(), None);
        session.read_environment()?;
        session.agent = Some(caller.agent.clone());
        session.task = None;
        session.confined_to.clone_from(&caller.roots);
        Ok(session)
    }
}

impl Host for Served {
    fn engine(&self, caller: &Caller, progress: Arc<dyn Progress>) -> Result<Engine, Report> {
        self.session(caller)?.engine_told_to(progress).map_err(said)
    }

    fn take_up(&self, caller: &Caller) {
        if let Ok(mut session) = self.session(caller) {
            session.sync_databases();
        }
    }

    fn program(&self, caller: &Caller) -> Program {
        let word = |name: &str, value: &std::ffi::OsStr| {
            let mut word = OsString::from(name);
            word.push(value);
            word
        };
        let mut words = vec![
            "--json".into(),
            word("--state-dir=", self.state.as_os_str()),
            format!("--agent={}", caller.agent).into(),
        ];
        words.extend(self.global.cap.map(|cap| format!("--cap={cap}").into()));
        // A name with a colon would be two directories: then there is none that it may write in.
        let within = std::env::join_paths(&caller.roots).unwrap_or_else(|_| "/dev/null".into());
        Program {
            path: self.program.clone(),
            words,
            variables: vec![
                (env_vars::WITHIN.into(), within),
                (env_vars::AGENT.into(), caller.agent.as_str().into()),
                (env_vars::TASK.into(), OsString::new()),
            ],
        }
    }
}

fn said(failure: Failure) -> Report {
    match failure {
        Failure::Engine(error) => Report::from(error),
        Failure::Report(report) => report,
        Failure::Shown(_) => Report::refused("it failed"),
    }
}
