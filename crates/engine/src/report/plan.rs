//! Reports of undos that cannot be planned, or not wholly carried out.

use backout_model::ports::Guarantee;
use backout_model::{
    Key, LeftAlone, OperationId, OutcomeKind, PlanError, TargetOutcome, TargetPath, Verb,
};

use super::advice::{advice, undo, word_advice};
use super::{Call, Report, undecided};
use crate::{DoAgain, EngineError, NotOver, PlanView, RefusedTarget, TakeBack, UndoReport};

/// How many lines of the same kind are told before the rest is counted.
const LINES_MAX: usize = 8;

pub(super) fn report(error: &PlanError) -> Report {
    match error {
        PlanError::Unknown { id } => Report::refused(format!("there is no operation {id}"))
            .next_call("see the operations with {}", [Call::of("log")]),
        PlanError::AlreadyUndone { id, by } => {
            let report = already_undone(*id);
            let report = match by {
                Some(by) => report.because(format!("{} took it back", by.short())),
                None => report,
            };
            report.next_call("bring it back with {}", [Call::redo(&[*id])])
        }
        PlanError::BroughtAgain { id, by } => brought_again(*id, *by),
        PlanError::UndoneForGood { id, by } => already_undone(*id)
            .because(format!("{} took it back", by.short()))
            .because(format!(
                "it cannot be redone: the images of {} are no longer kept",
                by.short()
            ))
            .next_call(
                "see what the journal still knows with {}",
                [Call::show(*id)],
            ),
        PlanError::NeverHappened { id, status } => Report::refused(format!(
            "there is nothing to undo in operation {}",
            id.short()
        ))
        .because(format!("it was {status}, so it changed nothing")),
        PlanError::Unfinished { id } => {
            Report::refused(format!("operation {} is not finished", id.short()))
                .because("its process is still at work, or died and nobody recovered it yet")
                .next_call("run {} if nobody is at work", [Call::of("recover")])
        }
        PlanError::Expired { id, for_sake_of } => {
            let what = match for_sake_of {
                None => format!("operation {} can no longer be undone", id.short()),
                Some(other) => format!("operation {} cannot be undone", other.short()),
            };
            let report = Report::refused(what);
            let report = match for_sake_of {
                None => report,
                Some(_) => report.because(format!("operation {} was built on it", id.short())),
            };
            report
                .because(format!("the images of {} are no longer kept", id.short()))
                .next_call(
                    "see what the journal still knows with {}",
                    [Call::show(*id)],
                )
        }
        PlanError::Irreversible { id } => {
            Report::refused(format!("operation {} is irreversible", id.short()))
                .next("a person has to decide what to do about it")
        }
        PlanError::ChangedNothing { id } => Report::refused(format!(
            "there is nothing to undo in operation {}",
            id.short()
        ))
        .because("it changed nothing"),
        PlanError::NothingChosen { id } => Report::refused("nothing was undone")
            .because(format!(
                "nothing that operation {} did and that is in effect matches what was chosen",
                id.short()
            ))
            .next_call("see what it did with {}", [Call::show(*id)]),
        PlanError::Nothing => Report::refused("there is nothing to undo")
            .next_call("see the operations with {}", [Call::of("log")]),
    }
}

/// Says that going back means to bring something back, and how.
pub(super) fn undone_since(undone: &[LeftAlone]) -> Report {
    let report = Report::refused("there is nothing to undo")
        .because("all that happened since is that what stood then was undone");
    match redo_undone(undone) {
        Some(call) => report.next_call("bring it back with {}", [call]),
        None => report,
    }
}

/// Gives the call that brings back what was undone since a checkpoint.
pub fn redo_undone(left: &[LeftAlone]) -> Option<Call> {
    let by = left.iter().filter_map(|left| match left {
        LeftAlone::UndoneSince { by, .. } => Some(*by),
        LeftAlone::Independent { .. }
        | LeftAlone::Merges { .. }
        | LeftAlone::Depends { .. }
        | LeftAlone::ReadsTheSame { .. }
        | LeftAlone::GoesAgain { .. }
        | LeftAlone::NotInEffect { .. } => None,
    });
    let mut undos: Vec<OperationId> = by.collect();
    undos.sort_unstable();
    undos.dedup();
    (!undos.is_empty()).then(|| Call::redo(&undos))
}

/// Says which operations would have to go and need a word.
pub(super) fn needs_word(view: &PlanView) -> Report {
    // A command of which only what was done within it goes has no step.
    let is_step = |id: &&OperationId| view.steps.iter().any(|step| step.id == **id);
    let alone = view.named.iter().find(|id| !is_step(id)).copied();
    let named = alone.or(view.steps.last().map(|step| step.id));
    let named = named.map(OperationId::short).unwrap_or_default();
    let mut report = Report::refused(format!("operation {named} was not undone"));
    for (ids, whose) in [
        (&view.needs_committed, "of committed tasks"),
        (&view.needs_others, "of other agents"),
    ] {
        if ids.is_empty() {
            continue;
        }
        let operations = if ids.len() == 1 {
            "operation"
        } else {
            "operations"
        };
        report = report.because(format!(
            "{} {operations} {whose} would have to go with it",
            ids.len()
        ));
        let steps = view.steps.iter().filter(|step| ids.contains(&step.id));
        for step in steps.take(LINES_MAX) {
            report = report.because(format!("{} {}", step.id.short(), step.summary));
        }
    }
    for (target, why) in view.hindrances().take(LINES_MAX) {
        report = report.because(format!("`{target}`: {why}"));
    }
    report.next.extend(word_advice(view, &undo));
    report
}

/// Says that there is nothing below a directory.
pub(super) fn nothing_below(
    below: &TargetPath,
    elsewhere: Option<&(OperationId, String)>,
    at_work: Option<NotOver>,
) -> Report {
    let report = Report::refused(format!("there is nothing to undo below `{below}`"));
    let report = still_at_work(report, at_work);
    match elsewhere {
        Some((id, summary)) => report
            .because(format!(
                "the newest operation elsewhere is {}: {summary}",
                id.short()
            ))
            .next_call("undo it with {}", [Call::undo(&[*id])])
            .next_call(
                "or undo the newest wherever it is with {}",
                [Call::of("undo").option("everywhere")],
            ),
        None => report.next_call("see the operations with {}", [Call::of("log")]),
    }
}

/// Says that what was done last cannot be undone, and what is the newest that can. Nothing else is taken in its place: who says
/// "undo" means the last that he did.
pub(super) fn newest_expired(
    id: OperationId,
    summary: &str,
    (older, older_summary): &(OperationId, String),
) -> Report {
    let (short, older_short) = (id.short(), older.short());
    Report::refused(format!(
        "the newest operation {short} can no longer be undone"
    ))
    .because(format!(
        "the images of {short} are no longer kept: {summary}"
    ))
    .because(format!(
        "the newest that can be undone is {older_short}: {older_summary}"
    ))
    .next_call("undo that one with {}", [Call::undo(&[*older])])
}

pub(super) fn newest_lost(
    id: OperationId,
    why: String,
    (older, older_summary): &(OperationId, String),
) -> Report {
    let (short, older_short) = (id.short(), older.short());
    Report::refused(format!("nothing takes back the newest operation {short}"))
        .because(why)
        .because(format!(
            "the newest that can be undone is {older_short}: {older_summary}"
        ))
        .next_call("undo that one with {}", [Call::undo(&[*older])])
}

/// Says that a link was not written, but what it leads to.
pub(super) fn nothing_on_link(path: &Key, to: &TargetPath, at_work: Option<NotOver>) -> Report {
    let report = Report::refused(format!("there is nothing to undo at `{path}`"));
    still_at_work(report, at_work)
        .because(format!(
            "it is a symbolic link to `{to}`, and that was written"
        ))
        .next_call("take that back with {}", [Call::of("undo").path(to)])
}

/// Says that a name stands for nothing, and for what it could.
pub(super) fn nothing_known(key: &Key, at_work: Option<NotOver>) -> Report {
    let report = Report::refused(format!("there is nothing to undo at `{key}`"));
    still_at_work(report, at_work)
        .because("it is no operation, no path that is there or was written, and no other target that was written")
        .next_call(
            "name an operation or a target as {} shows it, or a path",
            [Call::of("log")],
        )
}

/// Says that nothing was done at a path since a moment.
pub(super) fn nothing_since(key: &Key, at_work: Option<NotOver>) -> Report {
    let report = Report::refused(format!("there is nothing to undo at `{key}`"));
    let report = still_at_work(report, at_work).because("nothing was done to it since then");
    match key.file() {
        Some(path) => report.next_call("see what was done to it with {}", [Call::log_of(path)]),
        None => report.next_call("see the operations with {}", [Call::of("log")]),
    }
}

/// Says that there is nothing at a path.
pub(super) fn nothing_on_path(
    key: &Key,
    inside: Option<OperationId>,
    other: Option<&(OperationId, TargetPath)>,
    at_work: Option<NotOver>,
) -> Report {
    let report = Report::refused(format!("there is nothing to undo at `{key}`"));
    let report = still_at_work(report, at_work);
    let Some(path) = key.file() else {
        return report.next_call("see the operations with {}", [Call::of("log")]);
    };
    if let Some((id, other)) = other {
        return report
            .because(format!(
                "it is the same file as `{other}`, by which operation {} wrote it",
                id.short()
            ))
            .next_call(
                "take that back, by all of its names, with {}",
                [Call::of("undo").path(other)],
            );
    }
    match inside {
        Some(id) => report
            .because(format!(
                "operation {} wrote a whole tree that it lies in",
                id.short()
            ))
            .next_call(
                "bring back only this with {}",
                [Call::of("restore").path(path).option("from").operation(id)],
            )
            .next_call("or take back the whole tree with {}", [Call::undo(&[id])]),
        None => report.next_call("see what was done to it with {}", [Call::log_of(path)]),
    }
}

/// Says that a directory on the way became a link, and who wrote by the name before that.
pub(super) fn nothing_on_old_name(
    key: &Key,
    (id, name): &(OperationId, TargetPath),
    at_work: Option<NotOver>,
) -> Report {
    let report = Report::refused(format!("there is nothing to undo at `{key}`"));
    still_at_work(report, at_work)
        .because(format!(
            "operation {} wrote `{name}` when no directory on the way to it was a link; now one is, and leads elsewhere",
            id.short()
        ))
        .next_call("see what it did with {}", [Call::show(*id)])
        .next_call(
            "put the directory back in its place, then take it back with {}",
            [Call::undo(&[*id])],
        )
}

/// Says that there is no plan before something is settled.
pub(super) fn not_settled_yet(id: OperationId, verb: Verb) -> Report {
    let report = Report::refused(format!("what the {verb} would do is not known yet"));
    let left = NotOver { id, is_dead: true };
    still_at_work(report, Some(left)).because(format!(
        "the {verb} settles that first, and only then chooses what to do"
    ))
}

/// Says that a command may yet turn out to have changed something.
fn still_at_work(report: Report, at_work: Option<NotOver>) -> Report {
    match at_work {
        Some(NotOver { id, is_dead: false }) => report.because(format!(
            "operation {} is still at work; what it changed can be undone when it has ended",
            id.short()
        )),
        Some(NotOver { id, is_dead: true }) => report
            .because(format!(
                "the process of operation {} died; what it changed can be undone once that is settled",
                id.short()
            ))
            .next_call("settle it with {}", [Call::of("recover")]),
        None => report,
    }
}

fn already_undone(id: OperationId) -> Report {
    Report::refused(format!("operation {} is already undone", id.short()))
}

/// Says that another redo has brought back what one had brought that was taken back.
fn brought_again(id: OperationId, by: OperationId) -> Report {
    already_undone(id)
        .because(format!(
            "what it had brought back is there again, by {}",
            by.short()
        ))
        .next_call("take that back with {}", [Call::undo(&[by])])
}

/// Says that an operation cannot be redone.
pub(super) fn nothing_to_redo(id: OperationId) -> Report {
    Report::refused(format!("operation {} is not undone", id.short()))
        .because("only what was undone can be redone")
        .next_call("see where it stands with {}", [Call::show(id)])
}

/// Says of an undo that there is nothing of it left to take back.
pub(super) fn taken_back_before(
    id: OperationId,
    again: Option<OperationId>,
    by: Option<OperationId>,
) -> Report {
    let report = Report::refused(format!("operation {} was taken back before", id.short()));
    match (again, by) {
        (Some(undo), _) => report
            .because(format!(
                "what it undid was brought back then, and was undone again by {}",
                undo.short()
            ))
            .next_call("bring it back with {}", [Call::redo(&[undo])]),
        (None, Some(by)) => report
            .because(format!(
                "what it undid was brought back then, by {}",
                by.short()
            ))
            .next_call("take that back with {}", [Call::undo(&[by])]),
        (None, None) => report
            .because("what it undid was brought back then")
            .next_call("see where it stands with {}", [Call::show(id)]),
    }
}

/// Says that there is no undo to take back.
pub(super) fn no_undo(
    recovered: Option<&(OperationId, String)>,
    swapped: Option<&(OperationId, String, OperationId)>,
) -> Report {
    let report = Report::refused("there is nothing to redo");
    if let Some((id, summary, act)) = swapped {
        return report
            .because(format!(
                "what a redo had to take back comes only by name: {} {summary}",
                id.short()
            ))
            .next_call(
                "take that redo back, and have it again, with {}",
                [Call::undo(&[*act])],
            )
            .next_call(
                "or bring back one path with {}",
                [restore_from(*id).option("after")],
            );
    }
    match recovered {
        Some((id, summary)) => report
            .because(format!(
                "what a recovery took back comes only by name: {} {summary}",
                id.short()
            ))
            .next_call("bring it back with {}", [Call::redo(&[*id])]),
        None => report.next_call("see what was undone with {}", [Call::of("log")]),
    }
}

/// Says that an undo or a redo which was put back is to be done again.
pub(super) fn put_back(id: OperationId, again: &DoAgain) -> Report {
    let call = Call::of(again.verb.as_str());
    let call = again
        .operations
        .iter()
        .fold(call, |call, id| call.operation(*id));
    Report::refused(format!("operation {} died and was put back", id.short()))
        .because("there is no half of it to bring back")
        .next_call("do it again with {}", [call])
}

/// Says that a part cannot be taken back by itself.
pub(super) fn inseparable(id: OperationId, way: TakeBack, tree: Option<&Key>) -> Report {
    let short = id.short();
    let (done, comes, all) = match way {
        TakeBack::Undo => ("undone", "taken back", Call::undo(&[id])),
        TakeBack::Redo => ("redone", "brought back", Call::redo(&[id])),
    };
    let report = Report::refused(format!("operation {short} was not {done}"));
    let report = match tree {
        Some(tree) => report.because(format!(
            "`{tree}` is only {comes} as one, with all that is in it and by all of its names"
        )),
        None => report,
    };
    report
        .next_call(format!("all of it is {comes} with {{}}"), [all])
        .next_call("or bring back one path with {}", [restore_from(id)])
}

fn restore_from(id: OperationId) -> Call {
    let call = Call::of("restore").blank("PATH");
    call.option("from").operation(id)
}

/// Says how far an undo had come when somebody stopped it.
pub(super) fn stopped(report: &UndoReport) -> Report {
    let done = report.steps.iter().filter(|step| step.by.is_some()).count();
    let mut told = Report::refused("it was interrupted");
    if let Some(step) = report.steps.last() {
        told = told.because(format!(
            "{} {} was under way; it was put back as it was",
            step.id.short(),
            step.summary
        ));
    }
    told = told.because(match done {
        0 if report.steps.is_empty() => "nothing was changed".to_owned(),
        0 => "nothing else was done".to_owned(),
        1 => "1 operation before it is done, and stays so".to_owned(),
        done => format!("{done} operations before it are done, and stay so"),
    });
    match report.act {
        Some(act) => told.next_call(
            "take back what was done with {}",
            [Call::of(verb_back(report)).operation(act)],
        ),
        None => told,
    }
}

pub(super) fn conflicts(error: &EngineError, targets: &[RefusedTarget]) -> Report {
    let id = targets
        .first()
        .map(|target| target.id.short())
        .unwrap_or_default();
    let mut report = Report::refused(format!("operation {id} was not undone"));
    for refused in targets.iter().take(LINES_MAX) {
        report = report.because(format!("`{}`: {}", refused.target, refused.why));
    }
    let more = targets.len().saturating_sub(LINES_MAX);
    if more > 0 {
        report = report.because(format!("and {more} more"));
    }
    report.next.extend(advice(error, &undo).unwrap_or_default());
    report
}

pub(super) fn partial(report: &UndoReport) -> Report {
    let left = || {
        let steps = report.steps.iter();
        steps.flat_map(|step| {
            // What a step that was not done has left alone is the reason why.
            let is_left = move |it: &&TargetOutcome| {
                !it.kind.is_complete()
                    || step.by.is_none() && matches!(it.kind, OutcomeKind::Left { .. })
            };
            let left = step.outcomes.iter().filter(is_left);
            left.map(move |outcome| (step, outcome))
        })
    };
    let (back, all) = counted(report);
    let is_redo = report.steps.iter().all(|step| step.way == TakeBack::Redo);
    let half_done = report.steps.iter().find(|step| step.half_done.is_some());
    let is_unseen = half_done.is_some_and(|step| step.guarantee == Guarantee::Compensating);
    let half_done = half_done.and_then(|step| step.half_done);
    let mut told = Report::refused(match (back, all - back) {
        (0, _) if is_unseen => "it is not known what became of it".to_owned(),
        _ if half_done.is_some() => "it stopped half-way, and could not be put back".to_owned(),
        (0, _) if is_redo => "nothing was brought back".to_owned(),
        (0, _) => "nothing was taken back".to_owned(),
        (_, 0) => "not all of it is as it was".to_owned(),
        (_, 1) => format!("1 of {all} targets was left as it is"),
        (_, left) => format!("{left} of {all} targets were left as they are"),
    });
    for (step, outcome) in left().take(LINES_MAX) {
        let id = step.id.short();
        told = told.because(format!("{id} `{}`: {}", outcome.target, outcome.kind));
    }
    let more = left().count().saturating_sub(LINES_MAX);
    if more > 0 {
        told = told.because(format!("and {more} more"));
    }
    let mut stuck = left().filter(|(_, outcome)| !outcome.kind.is_taken_back());
    let stuck = stuck.next().map(|(step, _)| step);
    let told = match (stuck, left().next()) {
        _ if let Some(half) = half_done.filter(|_| is_unseen) => undecided::decide(told, half),
        _ if let Some(half) = half_done => told
            .next_call(
                "put right what stands in the way, then {}: it puts back what was done",
                [Call::of("recover")],
            )
            .next_call("or keep what is there with {}", [Call::keep(half)]),
        // Nothing stands in the way: another process was faster.
        (Some(step), _) if left().all(|(_, outcome)| is_skipped(outcome)) => {
            told.next_call("see how it stands with {}", [Call::show(step.id)])
        }
        (Some(step), _) => told.next_call(
            "put right what stands in the way, then {} again",
            [Call::of(verb_of(step.way)).operation(step.id)],
        ),
        // All is as it was to be, but not by us.
        (None, Some((step, _))) if back == 0 => {
            told.next_call("see how it stands with {}", [Call::show(step.id)])
        }
        (None, _) => told,
    };
    let call = |act| Call::of(verb_back(report)).operation(act);
    match report.act {
        Some(act) if left().any(|(_, outcome)| is_overtaken(outcome)) => told.next_call(
            "take it back with {}, which keeps what somebody else wrote",
            [call(act).option("force")],
        ),
        Some(act) if back > 0 => told.next_call("take back what was done with {}", [call(act)]),
        _ => told,
    }
}

/// Counts the targets that were taken back, and all.
fn counted(report: &UndoReport) -> (usize, usize) {
    report.steps.iter().fold((0, 0), |(back, all), step| {
        let settled = step.outcomes.iter().filter(|it| it.kind.is_taken_back());
        let settled = if step.by.is_some() {
            settled.count()
        } else {
            0
        };
        (back + settled, all + step.outcomes.len())
    })
}

const fn is_skipped(outcome: &TargetOutcome) -> bool {
    matches!(outcome.kind, OutcomeKind::Skipped { .. })
}

const fn is_overtaken(outcome: &TargetOutcome) -> bool {
    matches!(outcome.kind, OutcomeKind::Overtaken { .. })
}

/// Names what does a step again. A redo may have to undo what was written since.
const fn verb_of(way: TakeBack) -> &'static str {
    match way {
        TakeBack::Undo => "undo",
        TakeBack::Redo => "redo",
    }
}

/// Names what takes an act back.
fn verb_back(report: &UndoReport) -> &'static str {
    let is_redo = report.steps.iter().any(|step| step.way == TakeBack::Redo);
    if is_redo { "undo" } else { "redo" }
}
