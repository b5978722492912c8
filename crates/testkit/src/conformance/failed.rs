//! Undos that failed, and what was done about them.

use backout_model::{
    Climbed, Escalated, Event, Intent, OperationId, OutcomeKind, Retention, Rung, Source, Strategy,
    TargetOutcome, Trigger, TriggerKind, Verb,
};
use backout_storage::this_process;

use super::{World, id, intent, node};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn trigger() -> Trigger {
    Trigger::new(TriggerKind::PlanFailure, Source::Command).because("exit 1")
}

fn escalated(of: OperationId, rung: Rung, climbed: Climbed) -> Event {
    let why = "the disk is full".to_owned();
    Event::Escalated(Box::new(Escalated {
        id: of,
        rung,
        climbed,
        times: 0,
        is_first: rung == Rung::Retry,
        strategy: Strategy::Snapshot,
        trigger: trigger(),
        outcomes: vec![TargetOutcome::new(node("/a"), OutcomeKind::Failed { why })],
        owner: this_process(),
        decided: None,
    }))
}

fn no() -> Climbed {
    let why = "it failed again".to_owned();
    Climbed::DidNotHelp { why }
}

fn failed(world: &World) -> Vec<OperationId> {
    let failed = world.store.failed().expect("asked");
    failed.into_iter().map(|operation| operation.id).collect()
}

/// Until something helps, somebody accepts it, or it is undone.
pub fn an_undo_that_failed_is_listed_until_it_is_solved(world: &World) {
    for number in 1..=4 {
        world.finish(world.arm_with(number, &[node("/a")], &[b"a"]));
    }
    assert_eq!(failed(world), []);
    for number in 1..=4 {
        world.append(vec![escalated(id(number), Rung::Retry, no())]);
    }
    assert_eq!(failed(world), [id(4), id(3), id(2), id(1)]);
    world.append(vec![escalated(id(1), Rung::Restore, Climbed::Began)]);
    world.append(vec![escalated(id(2), Rung::Alert, Climbed::Helped)]);
    assert_eq!(failed(world), [id(4), id(3), id(2), id(1)]);
    world.append(vec![escalated(id(1), Rung::Restore, Climbed::Helped)]);
    world.append(vec![escalated(id(2), Rung::Accept, Climbed::Helped)]);
    assert_eq!(failed(world), [id(4), id(3)]);
    let by = world.finish(world.arm_as(Intent {
        verb: Verb::Undo,
        undoes: Some(id(4)),
        trigger: Some(trigger()),
        ..intent(9, &[node("/a")])
    }));
    world.append(vec![Event::Undone {
        id: id(4),
        by,
        outcomes: vec![TargetOutcome::new(node("/a"), OutcomeKind::Restored)],
        is_partial: false,
    }]);
    assert_eq!(failed(world), [id(3)]);
    assert_eq!(world.operation(by).trigger, Some(trigger()));
    assert_eq!(world.operation(id(3)).trigger, None);
}

/// A person may still find a way.
pub fn what_could_not_be_undone_is_kept_whatever_its_age(world: &World) {
    let strict = Retention {
        committed_ms_max: 1,
        ..Retention::standard()
    };
    for number in 1..=2 {
        world.finish(world.arm_with(number, &[node("/a")], &[b"a"]));
    }
    world.append(vec![escalated(id(1), Rung::Retry, no())]);
    world.clock.pass(DAY_MS);
    world.gc(&strict, false);
    assert!(world.operation(id(1)).retained);
    assert!(!world.operation(id(2)).retained);
    world.append(vec![escalated(id(1), Rung::Accept, Climbed::Helped)]);
    world.clock.pass(DAY_MS);
    world.gc(&strict, false);
    assert!(!world.operation(id(1)).retained);
}
