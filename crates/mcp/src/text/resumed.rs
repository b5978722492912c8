//! Where an agent goes on, in words for it.

use backout_engine::{Resumed, redacted};
use backout_model::Checkpoint;

use super::notes;

pub(super) fn resumed(it: &Resumed) -> String {
    let checkpoint = redacted(&it.checkpoint);
    let name = &checkpoint.name;
    let mut text = match (it.next_step, it.is_refused, it.is_dry_run) {
        (_, true, _) => format!("You could not go on from checkpoint {name}.\n"),
        (Some(step), _, true) => {
            format!("You would go on at step {step}, from checkpoint {name}.\n")
        }
        (None, _, true) => format!("You would go on from checkpoint {name}.\n"),
        (Some(step), ..) => format!("Go on at step {step}, from checkpoint {name}.\n"),
        (None, ..) => format!("Go on from checkpoint {name}.\n"),
    };
    let ways = it.in_the_way.iter();
    let ways = ways.map(|it| format!("in the way: `{}`: {}", it.target.key(), it.why));
    notes(&mut text, ways);
    said(&mut text, &checkpoint);
    fate(&mut text, it);
    text
}

/// Repeats what the agent said of itself.
fn said(text: &mut String, checkpoint: &Checkpoint) {
    if let Some(point) = &checkpoint.resume {
        notes(text, point.summary.iter().cloned());
        let decisions = point.decisions.iter();
        notes(text, decisions.map(|it| format!("decided: {it}")));
        let directory = point.directory.iter();
        let directory = directory.map(|it| format!("directory: {}", it.display()));
        notes(text, directory);
        let variables = point.environment.iter().map(|(name, value)| match value {
            Some(value) => format!("variable: {name}={value}"),
            None => format!("variable: {name} was taken away"),
        });
        notes(text, variables);
        let secrets = point.secrets.iter();
        let secrets =
            secrets.map(|name| format!("variable: {name} is not kept: it looks like a secret"));
        notes(text, secrets);
    }
    if !checkpoint.state.is_null() {
        let state = format!("state: {}", checkpoint.state);
        notes(text, std::iter::once(state));
    }
}

/// Says what became of what it had done since, and of what it had left.
fn fate(text: &mut String, it: &Resumed) {
    let word = if it.is_dry_run {
        "would be taken back"
    } else {
        "was taken back"
    };
    let reverted = it.reverted.iter().map(|it| {
        let (id, why) = (it.id.short(), it.why.as_words());
        format!("{id} ({}) {word}: {why}", it.summary)
    });
    notes(text, reverted);
    let act = it.act.map(backout_model::OperationId::short);
    let over = it.overwritten.iter().map(|it| {
        let act = act.as_deref().unwrap_or_default();
        format!(
            "`{}` was changed by others; a redo of {act} brings that back",
            it.target.key()
        )
    });
    notes(text, over);
    let stays = it.stays.iter().map(|it| {
        let (id, why) = (it.id.short(), it.why.as_words());
        format!("{id} ({}) stays: {why}", it.summary)
    });
    notes(text, stays);
    let differs = it.differs.iter();
    let differs = differs.map(|it| format!("`{}` differs: {}", it.target.key(), it.why.as_words()));
    notes(text, differs);
    let skipped = it.skipped.iter().map(|it| {
        let (lsn, why) = (it.lsn, &it.why);
        format!("the checkpoint of record {lsn} was skipped: {why}")
    });
    notes(text, skipped);
}
