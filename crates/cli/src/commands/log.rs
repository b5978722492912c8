//! `backout log`

use std::path::PathBuf;

use backout_engine::{Command, PromptFilter, Reply, quoted, real_target};
use backout_storage::Filter;
use clap::{Args, ValueHint};

use super::undo::below_here;
use crate::browse::walk;
use crate::failure::Failure;
use crate::named_targets::named_target;
use crate::paths::real;
use crate::session::{Session, now};
use crate::show;

/// How many operations are listed when nobody says.
const LIMIT: usize = 25;

/// List what was done, and draw what was built on what.
///
/// The newest is at the top. ● is in effect, ○ is not, ◇ took something back, ✗ needs somebody to look at it. A line leads from each operation
/// down to what it was built on. `--agent` and `--task`, typed here, list only their operations.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a word of the command line"
)]
pub(crate) struct LogArgs {
    /// Only what wrote this path or something below it; or another target as it is printed, like `app.toml:server.port` or
    /// `postgres:shop/public/orders:7`.
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    path: Option<PathBuf>,

    /// List at most this many; 0 lists all.
    #[arg(long, short = 'n', value_name = "N", default_value_t = LIMIT)]
    limit: usize,

    /// List what people asked agents instead, each with what that did and the number that `rollback --prompt` takes.
    #[arg(long, conflicts_with = "path")]
    prompts: bool,

    /// With `--prompts`: also those whose work wrote nothing below this directory.
    #[arg(long, requires = "prompts")]
    everywhere: bool,

    /// Walk through it on one screen: read what each operation changed, and undo with a key. `?` shows the keys.
    #[arg(long, short, conflicts_with_all = ["path", "prompts", "no_graph"])]
    interactive: bool,

    /// Do not draw what was built on what.
    #[arg(long)]
    no_graph: bool,
}

impl LogArgs {
    /// Tells whether somebody walks through it at a terminal.
    pub(crate) const fn is_interactive(&self) -> bool {
        self.interactive
    }
}

/// Lists operations.
pub(crate) fn cmd_log(session: &mut Session, args: &LogArgs) -> Result<(), Failure> {
    session.sync_databases();
    if args.interactive {
        return walk(session);
    }
    let engine = session.engine()?;
    if args.prompts {
        let limit = Some(args.limit).filter(|limit| *limit > 0 && !session.global.verbose);
        let filter = PromptFilter {
            below: below_here(args.everywhere)?,
            limit,
        };
        let reply = session.execute(&engine, Command::Prompts(filter))?;
        return session.show(&engine, &reply);
    }
    let at = match &args.path {
        Some(path) => Some(named_target(&engine, path)?),
        None => None,
    };
    let filter = Filter {
        agent: session.global.agent.clone(),
        task: session.global.task.clone(),
        at,
        limit: Some(args.limit).filter(|limit| *limit > 0 && !session.global.verbose),
        ..Filter::default()
    };
    let reply = session.execute(&engine, Command::Log(filter))?;
    match &reply {
        Reply::Log { operations } if !session.ui.is_json() => {
            let is_cut = operations.len() == args.limit && !session.global.verbose;
            session.ui.page();
            show::log::list(session, operations, now(), !args.no_graph);
            if operations.is_empty()
                && let Some(path) = &args.path
                && let Some(to) = real_target(&real(path)?)
            {
                let to = quoted(to.as_path().as_os_str());
                let command = show::command_line(&format!("log {to}"));
                let hint = format!("it is a symbolic link: see what it leads to with `{command}`");
                session.ui.hint(&hint);
            }
            if is_cut {
                session
                    .ui
                    .hint("there may be more: list all with `backout log -n 0`");
            }
            Ok(())
        }
        other => session.show(&engine, other),
    }
}
