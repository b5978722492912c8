//! What can be asked from inside of a command that `backout run` watches: a closed list.
//!
//! - Inside, this program asks the relay, and another one does the work outside. Which of the two this is, is found out
//!   here first.
//! - Whoever is inside may write, take back what is its own, and look. The store, the agent, the task and the rules of
//!   keeping are those of the command; to let images go, to approve and to repair is for those outside.
//! - Nothing that is done outside runs unwatched: no pager, no trial, no capture by looking twice.

use std::ffi::OsString;
use std::path::Path;

use backout_capture::live::{Guest, Outside, Refusal, ask_outside, asked};
use backout_engine::{Call, ErrorCode, Report};

use crate::commands::Subcommand;
use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;
use crate::state_dir::state_dir;

/// Where the work is done.
pub(crate) enum Way {
    /// Here; if somebody inside asked for it, with what is known of it.
    Here(Option<Guest>),
    /// It was done outside, and ended with this code.
    Outside(u8),
    /// It was not done.
    Refused(Report),
}

/// Has the work done outside, if this is inside.
pub(crate) fn ask(words: &[OsString]) -> Way {
    if let Some(asked) = asked() {
        return Way::Here(Some(asked));
    }
    match ask_outside(words) {
        Outside::NoDoor => Way::Here(None),
        Outside::Done(code) => Way::Outside(u8::try_from(code).unwrap_or(1)),
        Outside::Refused(why) => Way::Refused(refused(why)),
        Outside::Unanswered => Way::Refused(
            Report::refused("it is not known what became of it")
                .because("the command that this is part of ended before it was answered")
                .next_call(
                    "see whether it was done with {}, outside of the command",
                    [Call::of("log")],
                ),
        ),
    }
}

fn refused(why: Refusal) -> Report {
    let report = Report::refused("nothing was done").code(ErrorCode::NotFromInside);
    match why {
        Refusal::Stranger => report.because("this is no process of the command"),
        Refusal::Sandboxed => report
            .because("this process has other rights, another root or other mounts than the command that it is part of")
            .because("what it may not do is not done for it outside either")
            .next("ask from a process of the command that is in no sandbox of its own"),
        Refusal::Malformed => report
            .because("what was asked could not be read")
            .next("ask from a directory that is there, with the same program that started the command"),
        Refusal::Late => report
            .because("it took too long to say what is wanted")
            .next("ask again"),
        Refusal::NotStarted => report
            .because("the program could not be started outside")
            .next("see whether the directory is there, and try again"),
    }
}

/// Makes sure that who is inside asks only for what may be asked there.
pub(crate) fn permit(session: &Session, command: &Subcommand) -> Result<(), Failure> {
    if session.asked.is_none() {
        return Ok(());
    }
    let why = not_pinned(session)?.or_else(|| not_for_inside(command));
    match why {
        None => Ok(()),
        Some(why) => Err(
            Report::refused("this cannot be asked from inside of a command")
                .code(ErrorCode::NotFromInside)
                .because(why)
                .next("have it done outside of the command, by whoever started it")
                .into(),
        ),
    }
}

/// Says which option would be another one than the command's.
fn not_pinned(session: &Session) -> Result<Option<&'static str>, Failure> {
    let global = &session.global;
    if let Some(given) = &global.state_dir
        && !is_same(given, &state_dir(None)?)?
    {
        return Ok(Some("the store is that of the command"));
    }
    let pinned = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_other =
        |given: Option<&str>, name: &str| given.is_some() && given != pinned(name).as_deref();
    let agent = global.agent.as_ref().map(backout_model::AgentId::as_str);
    if is_other(agent, crate::env_vars::AGENT) {
        return Ok(Some("the agent is that of the command"));
    }
    let task = global.task.as_ref().map(backout_model::TaskId::as_str);
    if is_other(task, crate::env_vars::TASK) {
        return Ok(Some("the task is that of the command"));
    }
    let is_capped = global.cap.is_some();
    Ok(is_capped.then_some("how much is kept is decided outside"))
}

fn is_same(given: &Path, pinned: &Path) -> Result<bool, Failure> {
    let (given, pinned) = (absolute(given)?, absolute(pinned)?);
    let real = |path: &Path| path.canonicalize().ok();
    Ok(given == pinned || (real(&given).is_some() && real(&given) == real(&pinned)))
}

/// Says why a command is not for those inside; none if it is.
#[expect(clippy::too_many_lines, reason = "one table: each command and why")]
fn not_for_inside(command: &Subcommand) -> Option<&'static str> {
    const WRITES: &str = "it would write files that are not recorded";
    const OTHERS: &str = "the work of others is theirs, or for those outside to take back";
    const DECIDES: &str = "whether the work is kept is decided outside";
    let unless = |is_fine: bool, why: &'static str| (!is_fine).then_some(why);
    match command {
        Subcommand::Write(_)
        | Subcommand::Sql(_)
        | Subcommand::Redis(_)
        | Subcommand::Http(_)
        | Subcommand::Edit(_)
        | Subcommand::Set(_)
        | Subcommand::Unset(_)
        | Subcommand::Merge(_)
        | Subcommand::Rm(_)
        | Subcommand::Mv(_)
        | Subcommand::Cp(_)
        | Subcommand::Mkdir(_)
        | Subcommand::Ln(_)
        | Subcommand::Chmod(_)
        | Subcommand::Chown(_)
        | Subcommand::Batch(_)
        | Subcommand::Restore(_)
        | Subcommand::Checkpoint(_)
        | Subcommand::Show(_)
        | Subcommand::Diff(_)
        | Subcommand::Status(_)
        | Subcommand::Pending(_)
        | Subcommand::Classify(_)
        | Subcommand::Config(_)
        | Subcommand::Verify(_)
        | Subcommand::Completions(_) => None,
        Subcommand::Log(args) => unless(
            !args.is_interactive(),
            "who does it outside does not have your terminal",
        ),
        Subcommand::Act(_) => Some("what its programs did outside would not be watched"),
        Subcommand::Run(args) => args.not_from_inside(),
        Subcommand::Undo(args) => unless(!args.takes_others(), OTHERS),
        Subcommand::Redo(args) => unless(!args.takes_others(), OTHERS),
        Subcommand::Try(args) => unless(
            args.only_looks(),
            "what is tried is not watched, and somebody outside decides about it",
        ),
        Subcommand::Sandbox(args) => unless(
            args.only_looks(),
            "what is done in a sandbox is not watched",
        ),
        Subcommand::Task(args) => unless(args.only_looks(), DECIDES),
        Subcommand::Failed(args) => unless(args.only_looks(), DECIDES),
        Subcommand::Rollout(args) => unless(args.only_looks(), DECIDES),
        Subcommand::Drift(args) => unless(args.only_looks(), DECIDES),
        Subcommand::Resume(args) => unless(args.dry_run, DECIDES),
        Subcommand::Stage(args) => unless(args.only_looks(), DECIDES),
        Subcommand::Watch(args) => unless(args.is_once(), "a watch outlives the command"),
        Subcommand::Graph(args) => unless(!args.restores(), DECIDES),
        Subcommand::Notice(_) | Subcommand::Approve(_) | Subcommand::Reject(_) => {
            Some("what waits for a decision is decided outside")
        }
        Subcommand::Commit(_) | Subcommand::Rollback(_) => Some(DECIDES),
        Subcommand::Init(args) => unless(
            args.only_looks(),
            "what protects an agent is decided outside",
        ),
        Subcommand::Serve(_) | Subcommand::Ui(_) => {
            Some("a server would do outside what is decided outside")
        }
        Subcommand::Mcp(_) => Some("who is served writes outside of the command"),
        Subcommand::Hook(_) => Some("what an agent does inside of a command is recorded already"),
        Subcommand::Recover(args) => unless(!args.decides(), DECIDES),
        Subcommand::Gc(args) => unless(
            args.only_looks(),
            "what is let go cannot be undone any more",
        ),
        Subcommand::Doctor(args) => unless(args.only_looks(), "the store is repaired from outside"),
        Subcommand::Export(args) => unless(!args.writes(), WRITES),
        Subcommand::Db(args) => unless(args.only_looks(), DECIDES),
        Subcommand::Man(args) => unless(!args.writes(), WRITES),
    }
}
