//! What replies look like to people.
//!
//! One renderer per kind of reply; each makes a text from plain data. Somebody else's text (paths, summaries, contents)
//! is shown with its control characters escaped, and paths are shown as seen from the current directory.

mod checks;
pub(crate) mod classify;
pub(crate) mod config;
pub(crate) mod diff;
pub(crate) mod drift;
mod failed;
mod gc;
mod graph;
mod half_way;
mod list;
pub(crate) mod log;
mod operation;
pub(crate) mod plan;
pub(crate) mod prompts;
mod proposal;
pub(crate) mod recover;
mod resume;
mod rollout;
pub(crate) mod run;
mod sandbox;
pub(crate) mod sql;
mod status;
mod tasks;
mod time;
pub(crate) mod trial;
pub(crate) mod undo;
mod values;
mod workspace;
pub(crate) mod write;

use std::sync::OnceLock;

use backout_engine::{Engine, Reply, quoted};
use backout_model::OperationId;

use crate::args::GlobalArgs;
use crate::failure::Failure;
use crate::session::{Session, now};
use crate::ui::{ACCENT, paint};
pub(crate) use list::FINE_MAX;

/// Shows a reply to people.
pub(crate) fn reply(session: &mut Session, engine: &Engine, reply: &Reply) {
    let now = now();
    match reply {
        Reply::Finished(finished) => write::finished(session, finished, &finished.summary),
        Reply::Trial(view) => trial::shown(session, view),
        Reply::Trials { trials } => trial::list(session, trials, now),
        Reply::Discarded { id, is_rest } => trial::discarded(session, *id, *is_rest),
        Reply::Sandbox(view) => sandbox::shown(session, view, now),
        Reply::Sandboxes { sandboxes } => sandbox::list(session, sandboxes, now),
        Reply::SandboxRan(ran) => sandbox::ran(session, ran),
        Reply::SandboxBatch(batch) => sandbox::batch(session, batch),
        Reply::SandboxPruned(pruned) => sandbox::pruned(session, pruned),
        Reply::SandboxExported(exported) => sandbox::exported(session, exported),
        Reply::SandboxEnded { name } => sandbox::ended(session, name),
        Reply::Pending {
            proposals,
            trials,
            untold,
            now,
        } => proposal::list(session, proposals, (trials, untold), *now),
        Reply::Proposal(view) => proposal::shown(session, view, now),
        Reply::Rejected { proposal } => proposal::rejected(session, *proposal),
        Reply::Rollout(view) => rollout::shown(session, view),
        Reply::Rollouts { rollouts } => rollout::list(session, rollouts, now),
        Reply::Graph(view) => graph::shown(session, view),
        Reply::GraphUpdated(it) => graph::updated(session, it),
        Reply::GraphChecked(it) => graph::checked(session, it),
        Reply::Evidence(view) => graph::evidence(session, view),
        // `graph export` prints the document itself.
        Reply::GraphDocument(_) => {}
        Reply::Plan(plan) => plan::plan(session, engine, plan, &undo::Asked::undo()),
        Reply::Undone(report) => undo::undone(session, engine, report, &undo::Asked::undo()),
        Reply::Task(task) => tasks::begun(session, task),
        Reply::Tasks { tasks } => tasks::list(session, tasks, now),
        Reply::Committed { task, operations } => tasks::committed(session, task, operations),
        Reply::Checkpoint(checkpoint) => tasks::marked(session, checkpoint),
        Reply::Checkpoints { checkpoints } => tasks::checkpoints(session, checkpoints, now),
        Reply::CheckpointNotDue(early) => resume::not_due(session, *early),
        Reply::Resumed(resumed) => resume::resumed(session, resumed, now),
        Reply::Stage(stage) => resume::stage(session, stage),
        Reply::Stages { stages } => resume::stages(session, stages, now),
        Reply::WorkspaceKept(kept) => workspace::kept(session, kept),
        Reply::WorkspacePlan(plan) => workspace::plan(session, plan, now),
        Reply::WorkspaceDropped { name, bytes } => workspace::dropped(session, name, *bytes),
        Reply::Prompts { prompts } => prompts::list(session, prompts, now),
        Reply::Log { operations } => log::list(session, operations, now, true),
        Reply::Shown(shown) => operation::shown(session, shown, now),
        Reply::Failed { failed } => failed::list(session, failed, engine.now()),
        Reply::Drift(report) => drift::list(session, report, false),
        Reply::DriftDecided(decided) => drift::decided(session, decided),
        Reply::Accepted { id } => failed::accepted(session, *id),
        Reply::Diff(diff) => diff::files(session, &diff.files, diff::Style::Full),
        Reply::Status(status) => status::status(session, status),
        Reply::Recovered(report) => recover::recovered(session, report),
        Reply::Verified(report) => checks::verified(session, report),
        Reply::Collected(outcome) => gc::collected(session, outcome),
        Reply::Doctor(report) => checks::doctor(session, report),
        Reply::Ran(ran) => run::finished(session, &ran.report),
        Reply::Exported { records } => {
            session
                .ui
                .done(&format!("exported {}\n", counted(*records, "record")));
        }
    }
}

/// Fails if a reply is bad news, so that the exit code says so too.
pub(crate) fn bad_news(reply: &Reply) -> Result<(), Failure> {
    let code = match reply {
        Reply::Verified(report) if !report.findings.is_empty() => 3,
        Reply::Verified(report)
            if !report.out_of_reach.is_empty() || !report.changed.is_empty() =>
        {
            1
        }
        Reply::Doctor(report) if report.findings.iter().any(|finding| !finding.is_good) => 1,
        Reply::Recovered(report) if report.operations.iter().any(recover::is_stuck) => 1,
        Reply::Evidence(view) if !view.flaws.is_empty() => graph::evidence_code(view),
        Reply::GraphChecked(checked) if !checked.flaws.is_empty() => 1,
        // What the undo would end with.
        Reply::Plan(plan) if !plan.is_whole() => 1,
        // The world is not yet as it was at the checkpoint, or at the beginning of the stage.
        Reply::Resumed(resumed) if resumed.waits || resumed.is_refused => 1,
        Reply::Stage(stage) if resume::is_left(stage) => 1,
        Reply::WorkspacePlan(plan) if !plan.others.is_empty() || plan.refused.is_some() => 1,
        Reply::Finished(_)
        | Reply::Trial(_)
        | Reply::Trials { .. }
        | Reply::Discarded { .. }
        | Reply::Sandbox(_)
        | Reply::Sandboxes { .. }
        | Reply::SandboxRan(_)
        | Reply::SandboxBatch(_)
        | Reply::SandboxPruned(_)
        | Reply::SandboxExported(_)
        | Reply::SandboxEnded { .. }
        | Reply::Pending { .. }
        | Reply::Proposal(_)
        | Reply::Rejected { .. }
        | Reply::Rollout(_)
        | Reply::Rollouts { .. }
        | Reply::Graph(_)
        | Reply::GraphDocument(_)
        | Reply::GraphUpdated(_)
        | Reply::GraphChecked(_)
        | Reply::Evidence(_)
        | Reply::Plan(_)
        | Reply::Undone(_)
        | Reply::Failed { .. }
        | Reply::Accepted { .. }
        | Reply::Drift(_)
        | Reply::DriftDecided(_)
        | Reply::Task(_)
        | Reply::Tasks { .. }
        | Reply::Committed { .. }
        | Reply::Checkpoint(_)
        | Reply::Checkpoints { .. }
        | Reply::CheckpointNotDue(_)
        | Reply::Resumed(_)
        | Reply::Stage(_)
        | Reply::Stages { .. }
        | Reply::WorkspaceKept(_)
        | Reply::WorkspacePlan(_)
        | Reply::WorkspaceDropped { .. }
        | Reply::Log { .. }
        | Reply::Prompts { .. }
        | Reply::Shown(_)
        | Reply::Diff(_)
        | Reply::Status(_)
        | Reply::Recovered(_)
        | Reply::Verified(_)
        | Reply::Collected(_)
        | Reply::Doctor(_)
        | Reply::Ran(_)
        | Reply::Exported { .. } => return Ok(()),
    };
    Err(Failure::Shown(code))
}

/// Says a number of things.
pub(crate) fn counted(number: u64, thing: &str) -> String {
    if number == 1 {
        format!("1 {thing}")
    } else {
        format!("{number} {thing}s")
    }
}

/// Says how many there are of a list.
fn counted_of<T>(things: &[T], thing: &str) -> String {
    counted(things.len() as u64, thing)
}

/// Shows an id that can be typed.
fn id(id: OperationId) -> String {
    paint(ACCENT, &id.short())
}

/// What must be typed with every command to mean the same store.
static CALLED_WITH: OnceLock<String> = OnceLock::new();

/// Remembers how the program was called, so that what it tells people to type acts on the same store.
pub(crate) fn called_with(global: &GlobalArgs) {
    let with = match &global.state_dir {
        Some(directory) => format!("--state-dir {} ", quoted(directory.as_os_str())),
        None => String::new(),
    };
    // A second session in one process is a test's.
    let _first = CALLED_WITH.set(with);
}

/// Gives a command line that can be typed.
pub(crate) fn command_line(command: &str) -> String {
    let with = CALLED_WITH.get().map_or("", String::as_str);
    format!("backout {with}{command}")
}

/// Shows something that can be typed.
pub(crate) fn typed(command: &str) -> String {
    format!("`{}`", paint(ACCENT, &command_line(command)))
}
