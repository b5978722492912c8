//! Damage: every page of every file of the store truncated, flipped, zeroed, spliced or deleted.
//!
//! Never a panic, never a restore that is silently wrong; `verify` names the damage; a repair saves the rest. By default
//! a fixed sample is tried; `BACKOUT_EVERY_DAMAGE=1` tries all of them, another number every so many.

mod hurt;
mod names;
mod repairing;
mod story;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use backout_engine::{Engine, Filter, UndoOptions, UndoReport, UndoWhat};
use backout_model::{OperationId, Status};

use self::hurt::{Damage, Which};
use self::story::{Story, undo};

/// Of so many damages one is tried by default.
const SAMPLE: usize = 31;

/// Tries damages and gathers what went wrong with each. `number` shifts the sample.
fn each_damage(number: usize, test: impl Fn(&Story, Damage) -> Result<&'static str, String>) {
    let asked = std::env::var("BACKOUT_EVERY_DAMAGE").ok();
    let step = asked.and_then(|step| step.parse().ok()).unwrap_or(SAMPLE);
    let all = Damage::all(&Story::new());
    let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
    for (index, damage) in all.iter().enumerate() {
        if index % step != number % step {
            continue;
        }
        let story = Story::new();
        damage.inflict(&story);
        let result = catch_unwind(AssertUnwindSafe(|| test(&story, *damage)));
        match result {
            Ok(Ok(verdict)) => *counts.entry(verdict).or_insert(0_usize) += 1,
            Ok(Err(why)) => wrong.push(format!("{damage:?}: {why}")),
            Err(_) => wrong.push(format!("{damage:?}: a panic")),
        }
    }
    let tried: usize = counts.values().sum::<usize>() + wrong.len();
    let summary = format!("{tried} of {} damages: {counts:#?}", all.len());
    eprintln!("{summary}");
    assert!(wrong.is_empty(), "{summary}\n{}", wrong.join("\n"));
}

#[test]
fn no_damage_is_accepted_silently() {
    each_damage(3, |story, _| {
        let engine = match story.engine() {
            Ok(engine) => engine,
            Err(error) if is_broken(&error) => return Ok("the store is refused"),
            Err(error) => return Err(format!("not named as damage: {error:?}")),
        };
        let log = engine.store().operations(&Filter::default());
        let verified = engine
            .verify()
            .map_err(|error| format!("verify: {error:?}"))?;
        let is_named = !verified.findings.is_empty() || !verified.changed.is_empty();
        let everything = UndoWhat::Newest { below: None };
        let _planned = engine.preview_undo(&everything, &UndoOptions::default());
        let mut failures = Vec::new();
        let mut is_said = false;
        if engine.recover(None).is_err() {
            failures.push("recover".to_owned());
        }
        for told in story.told.iter().rev() {
            let before = story.world.tree();
            match undo(&engine, told.id) {
                Ok(report) if report.is_complete() => {
                    let ids: Vec<OperationId> = report.steps.iter().map(|step| step.id).collect();
                    if let Some(wrong) = story.wrong(&before, &ids) {
                        if is_named {
                            failures.push(wrong);
                        } else if says_what_is_missing(&report) {
                            is_said = true;
                        } else {
                            return Err(format!("silently wrong: {wrong}"));
                        }
                    }
                }
                Ok(_) => failures.push("in part".to_owned()),
                Err(error) => failures.push(format!("{error:?}")),
            }
        }
        match (is_named, failures.is_empty()) {
            (true, true) => Ok("named, and everything came back"),
            (true, false) => Ok("named"),
            (false, true) if is_said => Ok("said by the undo"),
            (false, true) if log.is_ok() => Ok("changed nothing that matters"),
            (false, _) => Err(format!("verify is clean, but: {}", failures.join("; "))),
        }
    });
}

#[test]
fn a_repair_saves_everything_that_survived() {
    each_damage(11, |story, damage| {
        let (engine, report) = Engine::repair(story.settings(), backout_drivers::local)
            .map_err(|error| format!("repair: {error:?}"))?;
        let verified = engine
            .verify()
            .map_err(|error| format!("verify: {error:?}"))?;
        if !verified.findings.is_empty() {
            return Err(format!(
                "still hurt: {:?} after {report:?}",
                verified.findings
            ));
        }
        let is_changed = |id: OperationId| verified.changed.iter().any(|it| it.needed_by == id);
        drop(engine);
        let (engine, again) = Engine::repair(story.settings(), backout_drivers::local)
            .map_err(|error| format!("again: {error:?}"))?;
        if again.journal.is_some() || !again.not_undoable.is_empty() {
            return Err(format!("the second repair did something: {again:?}"));
        }
        let unlinked = report
            .journal
            .as_ref()
            .map(|journal| journal.unlinked.clone());
        let unlinked = unlinked.unwrap_or_default();
        let mut lost_names: Vec<&str> = Vec::new();
        let mut is_all_saved = true;
        for told in story.told.iter().rev() {
            let operation = engine.store().operation(told.id).unwrap();
            let can_be = operation.is_some_and(|operation| {
                operation.retained
                    && matches!(operation.status, Status::Applied | Status::Committed)
            });
            if !can_be || unlinked.contains(&told.id) || is_changed(told.id) {
                is_all_saved = false;
                lost_names.extend(&told.names);
                continue;
            }
            let before = story.world.tree();
            match undo(&engine, told.id) {
                Ok(report) if report.is_complete() => {
                    let ids: Vec<OperationId> = report.steps.iter().map(|step| step.id).collect();
                    let wrong = story.wrong(&before, &ids);
                    if let Some(wrong) = wrong.filter(|_| !says_what_is_missing(&report)) {
                        return Err(format!("{} came back wrong: {wrong}", told.names[0]));
                    }
                }
                // What was written later by an operation that is lost stands in the way, and that is said.
                _ if told.names.iter().any(|name| lost_names.contains(name)) => {}
                other => return Err(format!("{} did not come back: {other:?}", told.names[0])),
            }
        }
        let has_journal = report.journal.is_some();
        Ok(match (has_journal, is_all_saved) {
            (true, true) => "the journal was rebuilt, everything came back",
            (true, false) => "the journal was rebuilt, some operations are lost and said to be",
            (false, false) if matches!(damage.which, Which::Pack(_) | Which::Kept(_)) => {
                "an image is lost or changed, and said to be"
            }
            (false, false) => return Err("something is lost without a repair".to_owned()),
            (false, true) => "nothing that matters was hurt",
        })
    });
}

#[test]
fn the_program_survives_every_kind_of_damage() {
    let all = Damage::all(&Story::new());
    let step = all.len() / 12;
    for damage in all.iter().skip(2).step_by(step) {
        let story = Story::new();
        damage.inflict(&story);
        for arguments in [
            &["log"][..],
            &["verify"],
            &["undo", "--dry-run"],
            &["undo"],
            &["doctor"],
        ] {
            let output = story.world.run(arguments);
            let code = output.status.code();
            assert!(
                matches!(code, Some(0 | 1 | 3)),
                "{damage:?} {arguments:?}: {}",
                crate::world::said(&output)
            );
        }
        let repaired = story.world.run(&["doctor", "--repair"]);
        let said = crate::world::said(&repaired);
        assert!(
            said.contains("can be undone") || said.contains("nothing needed"),
            "{damage:?}: {said}"
        );
        let verified = story.world.run(&["verify"]);
        let said = crate::world::said(&verified);
        let is_changed = verified.status.code() == Some(1) && said.contains("nothing is given up");
        assert!(
            verified.status.success() || is_changed,
            "{damage:?}: {said}"
        );
    }
}

/// An inode that was kept and had other names comes back from its copy as a file of its own, if it is gone; that is said.
fn says_what_is_missing(report: &UndoReport) -> bool {
    let mut notes = report.steps.iter().flat_map(|step| &step.notes);
    notes.any(|note| note.contains("comes back as a file of its own"))
}

fn is_broken(error: &backout_engine::EngineError) -> bool {
    matches!(error, backout_engine::EngineError::Storage(error) if error.is_broken())
}
