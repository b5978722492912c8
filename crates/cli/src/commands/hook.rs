//! `backout hook`

use backout_engine::Report;
use clap::Args;

use crate::failure::Failure;
use crate::session::Session;

/// Answer an event of a coding agent; `backout init` sets it up.
///
/// The event comes on standard input.
///
/// Before a file tool writes, what is there is kept; afterwards what was written is recorded and checked. Whatever fails ends in
/// a refusal: exit code 2 and one line on standard error.
#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// The agent.
    #[arg(value_name = "AGENT")]
    which: String,

    /// The event, for agents whose events do not say.
    event: Option<String>,
}

/// Is answered before the command line is read; whoever comes here typed it with other options.
pub(crate) fn cmd_hook(_session: &mut Session, args: &HookArgs) -> Result<(), Failure> {
    let agent = &args.which;
    let event = args.event.as_deref().unwrap_or_default();
    let call = format!("call it as `backout hook {agent} {event}`");
    let report = Report::usage("`hook` takes no other options than `--state-dir`, before it");
    Err(report.next(call.trim_end().to_owned()).into())
}
