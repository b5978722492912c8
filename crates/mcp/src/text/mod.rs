//! What a model reads of an answer: what happened, the operation, and how to take it back.

mod resumed;

use std::fmt::Write as _;

use backout_engine::{
    DiffChange, DiffFile, ErrorCode, Finished, PlanView, Reply, Report, RunReport, Shown, TakeBack,
    TargetState, TrialView, UndoReport,
};
use backout_model::{Operation, OperationId, OutcomeKind, Status};

use self::resumed::resumed;
use crate::advice::for_tools;
use crate::child::Said;

/// How much of each stream of a command a model is shown.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;

/// So many lines of one list are shown.
const LISTED_MAX: usize = 40;

/// How much of a difference is shown.
const DIFF_BYTES_MAX: usize = 64 * 1024;

/// Says a reply.
#[expect(clippy::too_many_lines, reason = "one arm for each reply")]
pub(crate) fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Finished(it) => finished(it),
        Reply::Ran(it) => ran(&it.report),
        Reply::Trial(it) => trial(it),
        Reply::Discarded { id, .. } => {
            format!("Trial {} is discarded. No file was changed.\n", id.short())
        }
        Reply::Undone(it) => undone(it),
        Reply::Plan(it) => plan(it),
        Reply::Task(it) => format!(
            "Task {} is open. Name it as `task` in other calls, then end it with the tool `task`: `commit` or `rollback`.\n",
            it.id
        ),
        Reply::Tasks { tasks } => {
            let lines = tasks
                .iter()
                .map(|it| format!("{}  {:?}", it.id, it.status).to_lowercase());
            listed("You have no tasks.\n", lines)
        }
        Reply::Committed { task, operations } => {
            format!(
                "Task {task} is committed: {} operations are kept.\n",
                operations.len()
            )
        }
        Reply::Checkpoint(it) => format!(
            "Checkpoint {} is marked. The tool `undo` with `checkpoint` takes back what you do from here on.\n",
            it.name
        ),
        Reply::CheckpointNotDue(it) => format!(
            "No checkpoint is due: {} of {} operations since the last one.\n",
            it.operations, it.every
        ),
        Reply::Resumed(it) => resumed(it),
        Reply::Stage(it) => format!("Stage {} is {}.\n", it.stage, it.standing.as_str()),
        Reply::Stages { stages } => {
            let lines = stages
                .iter()
                .map(|it| format!("{}  {}", it.stage, it.standing.as_str()));
            listed("You have no stages.\n", lines)
        }
        Reply::WorkspaceKept(it) => {
            let name = it
                .checkpoint
                .as_ref()
                .map_or_else(String::new, |it| it.name.to_string());
            let mut text = format!(
                "Checkpoint {name} keeps {} names. The tool `undo` with `checkpoint` makes the directories what they are now.\n",
                it.names
            );
            notes(
                &mut text,
                it.not_kept
                    .iter()
                    .map(|it| format!("`{}` is not kept: {}", it.path, it.why)),
            );
            text
        }
        Reply::WorkspacePlan(it) => {
            let lines = it.changes.iter().map(|it| it.path.to_string());
            let names = listed("Nothing there differs.\n", lines);
            format!("Going back to {} would change:\n{names}", it.checkpoint)
        }
        Reply::Drift(it) => {
            let lines = it.open.iter().map(|it| {
                let drift = &it.drift;
                format!(
                    "{}  {}: {} was recorded, {} is there",
                    it.subject, drift.kind, drift.expected.what, drift.found.what
                )
            });
            listed("All that you wrote is as you left it.\n", lines)
        }
        Reply::GraphUpdated(it) => {
            let lines = it.written.iter().map(|node| {
                let broken = node
                    .violations
                    .iter()
                    .map(|it| format!("; breaks {}: {}", it.invariant, it.why));
                format!(
                    "{} {} is version {}{}",
                    node.kind,
                    node.id,
                    node.version,
                    broken.collect::<String>()
                )
            });
            listed("The graph is so already.\n", lines)
        }
        Reply::GraphDocument(it) => {
            format!("{}\n", serde_json::to_string_pretty(it).unwrap_or_default())
        }
        Reply::Log { operations } => listed("You did nothing yet.\n", operations.iter().map(line)),
        Reply::Shown(it) => shown(it),
        Reply::Diff(it) => diff(&it.files),
        // No tool gives these.
        Reply::Trials { .. }
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
        | Reply::DriftDecided(_)
        | Reply::Graph(_)
        | Reply::GraphChecked(_)
        | Reply::Evidence(_)
        | Reply::Rollouts { .. }
        | Reply::Failed { .. }
        | Reply::Accepted { .. }
        | Reply::Checkpoints { .. }
        | Reply::WorkspaceDropped { .. }
        | Reply::Prompts { .. }
        | Reply::Status(_)
        | Reply::Recovered(_)
        | Reply::Verified(_)
        | Reply::Collected(_)
        | Reply::Doctor(_)
        | Reply::Exported { .. } => "It is done.\n".to_owned(),
    }
}

fn finished(it: &Finished) -> String {
    let mut text = match it.id {
        Some(id) if it.is_again => format!(
            "This call was answered before, as operation {}: {}.\n",
            id.short(),
            it.summary
        ),
        Some(id) => format!(
            "Done as operation {}: {}.\n{}",
            id.short(),
            it.summary,
            if it.is_lost { String::new() } else { back(id) }
        ),
        None => format!("Nothing had to be done: {}.\n", it.summary),
    };
    if it.status == Some(Status::Applied) {
        text.push_str("It belongs to an open task: it is kept when you commit that.\n");
    }
    notes(&mut text, it.notes.iter().cloned());
    text
}

fn back(id: OperationId) -> String {
    format!(
        "To take it back: the tool `undo` with operations [\"{}\"].\n",
        id.short()
    )
}

fn ran(it: &RunReport) -> String {
    let end = &it.end;
    let mut text = match (end.exit_code, end.signal) {
        _ if end.timed_out => "The command was ended: its time was up.\n".to_owned(),
        (Some(code), _) => format!("Exit code {code}.\n"),
        (None, Some(signal)) => format!("The command was ended by signal {signal}.\n"),
        (None, None) => "It is not known how the command ended.\n".to_owned(),
    };
    let count = end.created + end.changed + end.deleted;
    let _written = match (&it.undone, count) {
        (Some(undone), _) => writeln!(
            text,
            "What it did to files was taken back: operation {}, {} of {} steps whole.",
            it.id.short(),
            undone
                .steps
                .iter()
                .filter(|step| step.is_complete())
                .count(),
            undone.steps.len()
        ),
        (None, 0) => writeln!(text, "It changed no file. Operation {}.", it.id.short()),
        (None, _) => write!(
            text,
            "Operation {}: {} created, {} changed, {} deleted.\n{}",
            it.id.short(),
            end.created,
            end.changed,
            end.deleted,
            back(it.id)
        ),
    };
    notes(&mut text, it.reasons.iter().map(ToString::to_string));
    notes(&mut text, it.notes.iter().cloned());
    if !end.survivors.is_empty() {
        let _written = writeln!(text, "Still running: {}.", end.survivors.join(", "));
    }
    text
}

fn trial(it: &TrialView) -> String {
    let code = it
        .ended
        .map_or_else(String::new, |end| format!("Exit code {}. ", end.code));
    let id = it.id.short();
    if it.changes.is_empty() {
        return format!("{code}Trial {id} would change no file.\n");
    }
    let lines = it.changes.iter().map(|change| {
        let others = if change.is_conflict {
            "  (somebody else changed it meanwhile)"
        } else {
            ""
        };
        format!("{:?} {}{others}", change.what, change.path)
    });
    let names = listed("", lines);
    let mut text = format!(
        "{code}Trial {id} would change these, and nothing is real yet:\n{names}To make it real or let it go: the tool `try_end` with trial \"{id}\".\n"
    );
    notes(&mut text, it.notes.iter().cloned());
    text
}

pub(crate) fn undone(it: &UndoReport) -> String {
    let mut text = String::new();
    for step in it.steps.iter().take(LISTED_MAX) {
        let way = match (step.way, step.is_complete()) {
            (TakeBack::Undo, true) => "Undid",
            (TakeBack::Redo, true) => "Brought back",
            (TakeBack::Undo, false) => "Did not wholly undo",
            (TakeBack::Redo, false) => "Did not wholly bring back",
        };
        let _written = writeln!(text, "{way} {}: {}.", step.id.short(), step.summary);
        for outcome in step.outcomes.iter().take(LISTED_MAX) {
            let _written = writeln!(
                text,
                "  {}: {}",
                outcome.target,
                outcome_word(&outcome.kind, step.way)
            );
        }
        cut(&mut text, step.outcomes.len());
        notes(&mut text, step.notes.iter().cloned());
    }
    cut(&mut text, it.steps.len());
    if !it.left_alone.is_empty() {
        let _written = writeln!(text, "{} later operations stayed.", it.left_alone.len());
    }
    if let Some(act) = it.act {
        // What a redo had to take back on its way is brought back with it.
        let is_redo = it.steps.iter().any(|step| step.way == TakeBack::Redo);
        let tool = if is_redo { "undo" } else { "redo" };
        let _written = writeln!(
            text,
            "To take this back: the tool `{tool}` with operations [\"{}\"].",
            act.short()
        );
    }
    notes(&mut text, it.notes.iter().cloned());
    if text.is_empty() {
        text.push_str("There was nothing to do.\n");
    }
    text
}

fn outcome_word(kind: &OutcomeKind, way: TakeBack) -> String {
    let (again, already, not) = match way {
        TakeBack::Undo => ("as it was before", "already as before", "NOT undone"),
        TakeBack::Redo => ("changed again", "already so", "NOT brought back"),
    };
    match kind {
        OutcomeKind::Restored => again.to_owned(),
        OutcomeKind::Compensated => "answered by a second effect".to_owned(),
        OutcomeKind::Merged => "the change is taken out, the others' stay".to_owned(),
        OutcomeKind::AlreadyGone => already.to_owned(),
        OutcomeKind::Overwritten { why } => format!("restored over what was there: {why}"),
        OutcomeKind::Incomplete { why } => format!("restored, but: {why}"),
        OutcomeKind::Overtaken { why } => format!("somebody changed it at once: {why}"),
        OutcomeKind::Left { why } | OutcomeKind::Skipped { why } => format!("left as it is: {why}"),
        OutcomeKind::Conflict { why } => format!("{not}, it changed since: {why}"),
        OutcomeKind::Failed { why } => format!("{not}: {why}"),
        OutcomeKind::InDoubt { why } => format!("in doubt: {why}"),
    }
}

fn plan(it: &PlanView) -> String {
    let mut text = if it.is_executable {
        "This would be done. Nothing was changed yet.\n".to_owned()
    } else {
        "This could not be done as it is. Nothing was changed.\n".to_owned()
    };
    for step in it.steps.iter().take(LISTED_MAX) {
        let way = match step.way {
            TakeBack::Undo => "undo",
            TakeBack::Redo => "bring back",
        };
        let _written = writeln!(text, "{way} {}: {}", step.id.short(), step.summary);
        for target in step.targets.iter().take(LISTED_MAX) {
            let state = match &target.state {
                TargetState::Conflict { why } | TargetState::CannotComeBack { why } => {
                    format!("IN THE WAY: {why}")
                }
                TargetState::AlreadyBefore => "already as before".to_owned(),
                TargetState::Merges => "merges with what others changed".to_owned(),
                TargetState::Left { why }
                | TargetState::Incomplete { why }
                | TargetState::Overwritten { why } => why.clone(),
                TargetState::ComesBack | TargetState::AfterNewerStep if target.goes => {
                    "goes".to_owned()
                }
                TargetState::ComesBack | TargetState::AfterNewerStep => "comes back".to_owned(),
            };
            let _written = writeln!(text, "  {}: {state}", target.target);
        }
        cut(&mut text, step.targets.len());
    }
    cut(&mut text, it.steps.len());
    if !it.left_alone.is_empty() {
        let _written = writeln!(text, "{} later operations would stay.", it.left_alone.len());
    }
    if !it.needs_others.is_empty() {
        text.push_str("Others built on it, and their work is not yours to take back.\n");
    }
    if let Some(differs) = &it.diff {
        text.push_str(&diff(&differs.back));
    }
    text
}

fn line(it: &Operation) -> String {
    let whose = it
        .agent
        .as_ref()
        .map_or_else(String::new, |agent| format!("  by {agent}"));
    let task = it
        .task
        .as_ref()
        .map_or_else(String::new, |task| format!("  in task {task}"));
    format!(
        "{}  {}  {}{task}{whose}",
        it.id.short(),
        standing(it.status),
        it.summary
    )
}

const fn standing(status: Status) -> &'static str {
    match status {
        Status::Proposed => "waits for a person",
        Status::Refused => "refused",
        Status::Armed => "under way",
        Status::Applied => "done, in an open task",
        Status::Committed => "done",
        Status::Interrupted => "interrupted",
        Status::Aborted => "did not happen",
        Status::Undone => "undone",
        Status::InDoubt => "in doubt",
        Status::Failed => "not wholly undone",
    }
}

fn shown(it: &Shown) -> String {
    let operation = &it.operation;
    let mut text = format!("{}\n", line(operation));
    for target in operation.targets.iter().take(LISTED_MAX) {
        let _written = writeln!(text, "  {}", target.target);
    }
    cut(&mut text, operation.targets.len());
    match operation.status {
        Status::Proposed => {
            text.push_str("Nothing is written yet. A person decides; ask again later.\n");
        }
        Status::Refused => {
            let _written = writeln!(text, "Nothing was written: {}.", operation.decision.reason);
        }
        Status::Applied | Status::Committed | Status::Interrupted => {
            text.push_str(&back(operation.id));
        }
        Status::Armed | Status::Aborted | Status::Undone | Status::InDoubt | Status::Failed => {}
    }
    notes(&mut text, operation.notes.iter().cloned());
    text
}

/// Says what changed, as a unified diff where there is one.
pub(crate) fn diff(files: &[DiffFile]) -> String {
    let mut text = String::new();
    for file in files {
        if text.len() > DIFF_BYTES_MAX {
            text.push_str("… there is more; ask for single names with `only`\n");
            break;
        }
        let name = match (&file.path, &file.key) {
            (Some(path), Some(key)) => format!("{path}:{key}"),
            (Some(path), None) => path.to_string(),
            (None, key) => key.clone().unwrap_or_default(),
        };
        let what = match file.change {
            DiffChange::Created => "created",
            DiffChange::Changed => "changed",
            DiffChange::Removed => "removed",
            DiffChange::Moved => "moved",
        };
        let _written = writeln!(text, "{what} {name}");
        if let Some(value) = &file.value {
            let side = |it: &Option<String>| it.clone().unwrap_or_else(|| "nothing".to_owned());
            let _written = writeln!(text, "  {} -> {}", side(&value.before), side(&value.after));
        }
        if let Some(why) = &file.unshown {
            let _written = writeln!(text, "  ({why})");
        }
        text.push_str(&file.text);
    }
    if text.is_empty() {
        text.push_str("It changed nothing.\n");
    }
    text
}

/// Says what was not done.
pub(crate) fn report(report: &Report) -> String {
    let mut text = String::new();
    if report.code == ErrorCode::Waits {
        let id = report
            .operation
            .map_or_else(String::new, OperationId::short);
        text = waits(&id);
    }
    let _written = writeln!(text, "Error: {}.", report.what);
    for why in &report.why {
        let _written = writeln!(text, "Why: {why}");
    }
    let next = report.next.iter().flat_map(|next| for_tools(&next.text));
    for next in next.filter(|_| report.code != ErrorCode::Waits) {
        let _written = writeln!(text, "Next: {next}");
    }
    text
}

/// Says that something waits for a person, and what to do meanwhile.
pub(crate) fn waits(id: &str) -> String {
    format!(
        "This waits for a person's decision as operation {id}. Nothing is written yet, and you cannot approve it yourself. Go on with other work. \
         The tool `show` with operation \"{id}\" says what became of it; do not send it again meanwhile.\n"
    )
}

/// Says the end of a stream.
pub(crate) fn output(name: &str, said: &Said) -> Option<String> {
    if said.tail.is_empty() {
        return None;
    }
    let from = said.tail.len().saturating_sub(OUTPUT_BYTES_MAX);
    let shown = said.tail.get(from..).unwrap_or_default();
    let text = String::from_utf8_lossy(shown);
    let left = said.bytes.saturating_sub(shown.len() as u64);
    let head = match left {
        0 => format!("{name}:"),
        left => format!(
            "{name} (the first {left} of {} bytes are left out):",
            said.bytes
        ),
    };
    Some(format!("{head}\n{text}"))
}

fn listed(nothing: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return nothing.to_owned();
    }
    let mut text = String::new();
    for line in lines.iter().take(LISTED_MAX) {
        let _written = writeln!(text, "{line}");
    }
    cut(&mut text, lines.len());
    text
}

fn cut(text: &mut String, count: usize) {
    if let Some(left @ 1..) = count.checked_sub(LISTED_MAX) {
        let _written = writeln!(text, "… and {left} more");
    }
}

fn notes(text: &mut String, notes: impl Iterator<Item = String>) {
    for note in notes {
        let _written = writeln!(text, "Note: {note}");
    }
}
