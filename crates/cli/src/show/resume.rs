//! Where an agent goes on, and how stages stand. The words are for a model as well as for a person.

use std::fmt::Write as _;

use backout_engine::{NotDue, Resumed, StageStanding, StageView, redacted};
use backout_model::{LeftAlone, Lsn, OperationId, TargetOutcome, Timestamp};

use super::time::ago;
use super::{command_line, counted, counted_of, typed};
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{ACCENT, BAD, Cell, DIM, GOOD, WARN, paint, table};

/// Says that a checkpoint is not due yet.
pub(super) fn not_due(session: &mut Session, early: NotDue) {
    let NotDue { operations, every } = early;
    session.ui.done(&format!(
        "no checkpoint is due: {operations} of {every} operations since the last one\n"
    ));
}

/// Says where an agent goes on.
pub(super) fn resumed(session: &mut Session, resumed: &Resumed, now: Timestamp) {
    let mut text = String::new();
    heading(&mut text, resumed, now);
    said(session, &mut text, resumed);
    fate(&session.here, &mut text, resumed);
    for skipped in &resumed.skipped {
        let name = skipped
            .name
            .as_ref()
            .map_or_else(|| format!("record {}", skipped.lsn), ToString::to_string);
        line(
            &mut text,
            "skipped",
            &format!("checkpoint {name}: {}", skipped.why),
        );
    }
    let bytes = resumed.checkpoint.resume.as_ref().map_or(0, |it| it.bytes);
    let numbers = format!(
        "{} of state, {}, {} looked at in {} ms",
        counted(bytes, "byte"),
        counted(resumed.checkpoints as u64, "checkpoint"),
        counted(resumed.replayed as u64, "operation"),
        resumed.replay_ms
    );
    text.push_str(&paint(DIM, &format!("  {numbers}\n")));
    session.ui.print(&text);
    let whose = whose(resumed);
    let again = |option: &str| typed(&format!("resume{whose} {option}"));
    if resumed.is_refused && resumed.in_the_way.is_empty() {
        let others = again("--others");
        session.ui.hint(&format!(
            "other agents built on what goes: take that back as well with {others}"
        ));
    } else if resumed.is_refused {
        let (merge, force, keep) = (again("--merge"), again("--force"), again("--keep"));
        session.ui.hint(&format!(
            "take out only this change with {merge}, or all with {force} (what is there now is kept); or keep what was in flight with {keep}"
        ));
    }
    if resumed.waits {
        let (back, keep) = (again("--rollback"), again("--keep"));
        session.ui.hint(&format!(
            "somebody has to say what becomes of it: take it back with {back}, or keep it with {keep}"
        ));
    }
}

fn whose(resumed: &Resumed) -> String {
    let task = resumed.task.as_ref();
    task.map_or_else(String::new, |task| format!(" {task}"))
}

fn heading(text: &mut String, resumed: &Resumed, now: Timestamp) {
    let checkpoint = &resumed.checkpoint;
    let step = checkpoint.resume.as_ref().and_then(|point| point.step);
    let place = match (resumed.next_step, step) {
        (Some(next), Some(step)) => match step.of {
            Some(of) => format!("at step {next} of {of}"),
            None => format!("at step {next}"),
        },
        (None, Some(_)) => "after the last step: all are done".to_owned(),
        (_, None) => "from there".to_owned(),
    };
    let verb = match (resumed.is_dry_run, resumed.is_refused) {
        (true, true) => "would not go on",
        (true, false) => "would go on",
        (false, _) => "go on",
    };
    let _infallible = writeln!(
        text,
        "{verb} {place}  {}",
        paint(
            DIM,
            &format!(
                "(checkpoint {}, {})",
                checkpoint.name,
                ago(now, checkpoint.at)
            )
        )
    );
}

/// Repeats what the agent said of itself, with secrets left out.
fn said(session: &Session, text: &mut String, resumed: &Resumed) {
    let checkpoint = redacted(&resumed.checkpoint);
    if let Some(task) = &resumed.task {
        line(text, "task", task.as_str());
    }
    if let Some(point) = &checkpoint.resume {
        if let Some(summary) = &point.summary {
            line(text, "summary", summary);
        }
        for decision in &point.decisions {
            line(text, "decided", decision);
        }
        if let Some(directory) = &point.directory {
            line(text, "directory", &session.here.show(directory));
        }
        for (name, value) in &point.environment {
            match value {
                Some(value) => line(text, "variable", &format!("{name}={value}")),
                None => line(text, "variable", &format!("{name} was taken away")),
            }
        }
        for name in &point.secrets {
            let what = format!("{name} is not kept: it looks like a secret");
            line(text, "variable", &what);
        }
    }
    if !checkpoint.state.is_null() {
        line(text, "state", &checkpoint.state.to_string());
    }
}

/// Says what became of what was done since.
fn fate(here: &Here, text: &mut String, resumed: &Resumed) {
    let gone = if resumed.is_dry_run {
        "goes"
    } else {
        "reverted"
    };
    for it in &resumed.reverted {
        let whose = it.agent.as_ref();
        let whose = whose.map_or_else(String::new, |agent| format!(" of {agent}"));
        let (id, why) = (it.id.short(), it.why.as_words());
        let summary = here.shorten(&it.summary);
        line(text, gone, &format!("{id} {summary}{whose}: {why}"));
    }
    if let Some(act) = resumed.act {
        for it in &resumed.overwritten {
            line(text, "over", &over(here, it, act));
        }
    }
    for it in &resumed.in_the_way {
        let (target, why) = (here.shorten(&it.target.to_string()), here.shorten(&it.why));
        let what = format!("{} `{target}`: {why}", it.id.short());
        line(text, "conflict", &what);
    }
    for it in &resumed.stays {
        let (id, summary) = (it.id.short(), here.shorten(&it.summary));
        line(
            text,
            "stays",
            &format!("{id} {summary}: {}", it.why.as_words()),
        );
    }
    for left in &resumed.undone_since {
        if let LeftAlone::UndoneSince { id, by } = left {
            let redo = format!("`{}`", command_line(&format!("redo {}", by.short())));
            line(
                text,
                "missing",
                &format!(
                    "{} stood at the checkpoint and was undone since; bring it back with {redo}",
                    id.short()
                ),
            );
        }
    }
    for it in &resumed.differs {
        let target = here.shorten(&it.target.to_string());
        line(text, "differs", &format!("{target}: {}", it.why.as_words()));
    }
    let whose = match resumed.task {
        Some(_) => "this task",
        None => "this agent",
    };
    if resumed.reverted.is_empty() && resumed.stays.is_empty() {
        line(
            text,
            "since",
            &format!("{whose} did nothing after the checkpoint"),
        );
    }
    let is_as_then =
        resumed.stays.is_empty() && resumed.differs.is_empty() && resumed.undone_since.is_empty();
    if is_as_then && !resumed.is_dry_run {
        let what = if resumed.is_more {
            format!(
                "as it was at the checkpoint, where {whose} wrote last; older writes were not looked at"
            )
        } else {
            format!("as it was at the checkpoint, where {whose} wrote")
        };
        line(text, "world", &what);
    }
}

/// Says what was overwritten, and what brings it back.
fn over(here: &Here, it: &TargetOutcome, act: OperationId) -> String {
    let target = here.shorten(&it.target.to_string());
    let redo = command_line(&format!("redo {}", act.short()));
    format!("`{target}` was changed by others; `{redo}` brings that back")
}

fn line(text: &mut String, name: &str, what: &str) {
    let shown = crate::ui::printable(what);
    let _infallible = writeln!(text, "  {:<9} {shown}", format!("{name}:"));
}

/// Says how a stage stands.
pub(super) fn stage(session: &mut Session, stage: &StageView) {
    let name = paint(ACCENT, stage.stage.as_str());
    let after = format!("after record {}", stage.position);
    let said = match stage.standing {
        StageStanding::Open => format!(
            "began stage {name}  {}\n",
            paint(DIM, &format!("({after})"))
        ),
        StageStanding::Done => format!("ended stage {name}\n"),
        StageStanding::RolledBack => {
            let number = counted_of(&stage.reverted, "operation");
            format!("the stage {name} failed, and was rolled back: {number} taken back\n")
        }
        StageStanding::Kept => format!("the stage {name} failed, and its work stays\n"),
        StageStanding::Waits => format!("the stage {name} failed, and waits for a decision\n"),
    };
    session.ui.done(&said);
    if stage.standing == StageStanding::RolledBack {
        verified(session, stage);
    }
    if stage.standing == StageStanding::Waits {
        let whose = stage.whose();
        let (back, keep) = (
            typed(&format!(
                "stage end {} --failed --rollback {whose}",
                stage.stage
            )),
            typed(&format!(
                "stage end {} --failed --keep {whose}",
                stage.stage
            )),
        );
        session.ui.hint(&format!(
            "take its work back with {back}, or keep it with {keep}"
        ));
    }
}

/// Tells whether a stage that failed is not back where it began, and is to be.
pub(super) fn is_left(stage: &StageView) -> bool {
    !stage.not_as_before.is_empty()
        || stage.graph_left.is_some()
        || stage.standing == StageStanding::Waits
}

fn verified(session: &mut Session, stage: &StageView) {
    let mut text = String::new();
    if stage.not_as_before.is_empty() {
        let number = counted(stage.targets as u64, "target");
        let _infallible = writeln!(text, "  looked again: {number}, as before by digest");
    }
    for other in &stage.not_as_before {
        let what = format!("`{}`: {}", other.target.key(), other.kind);
        let _infallible = writeln!(
            text,
            "  {} {}",
            paint(BAD, "not as before:"),
            crate::ui::printable(&what)
        );
    }
    if let Some(act) = stage.act {
        for it in &stage.overwritten {
            let what = over(&session.here, it, act);
            let _infallible = writeln!(text, "  {}", crate::ui::printable(&what));
        }
    }
    text.push_str(&graph(stage));
    session.ui.print(&text);
}

/// Says whether the graph is as it was when the stage began, and what brings back what it was.
fn graph(stage: &StageView) -> String {
    let mut text = String::new();
    let back = |lsn: Lsn| command_line(&format!("graph restore --at {lsn}"));
    match (stage.is_graph_restored, &stage.graph_left) {
        (Some(true), _) => text.push_str("  the project's graph is as it was, by digest\n"),
        (Some(false), Some(why)) => {
            let (why, then) = (crate::ui::printable(&why.to_string()), back(stage.lsn));
            let _infallible = writeln!(
                text,
                "  the project's graph is not as it was: {why}; `{then}` makes it so"
            );
        }
        (Some(false), None) => text
            .push_str("  the project's graph is not as it was: see it with `backout graph show`\n"),
        (None, _) => {}
    }
    if let Some(before) = stage.graph_before {
        let back = back(before);
        let _infallible = writeln!(text, "  what it was before is brought back by `{back}`");
    }
    text
}

/// Lists stages.
pub(super) fn stages(session: &mut Session, stages: &[StageView], now: Timestamp) {
    if stages.is_empty() {
        session.ui.done("no stages\n");
        return;
    }
    let rows = stages.iter().map(|stage| {
        let style = match stage.standing {
            StageStanding::Open | StageStanding::Waits => WARN,
            StageStanding::Done => GOOD,
            StageStanding::RolledBack | StageStanding::Kept => DIM,
        };
        let whose = stage.task.as_ref().map(ToString::to_string);
        let whose = whose.or_else(|| stage.agent.as_ref().map(ToString::to_string));
        vec![
            Cell::new(ACCENT, stage.stage.as_str()),
            Cell::new(style, stage.standing.as_str()),
            Cell::new(DIM, ago(now, stage.at)).right(),
            Cell::new(DIM, format!("after record {}", stage.position)),
            Cell::plain(whose.unwrap_or_default()),
        ]
    });
    let text = table(rows.collect(), None);
    session.ui.print(&text);
}
