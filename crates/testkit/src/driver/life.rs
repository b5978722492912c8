//! A write, its undo and its redo, while nothing dies.

use backout_model::ports::{OnConflict, State};
use backout_model::{OutcomeKind, TargetOutcome};

use super::{
    AGAIN, Harness, REDO, UNDO, applied, assert_settled, carried_out, prepared, taken_back,
};

pub(super) fn preparing_changes_nothing<H: Harness>(name: &str, world: &H) {
    let before = world.snapshot(true);
    let prepared = prepared(world);
    assert_eq!(
        world.snapshot(true),
        before,
        "{name}: preparing changed something"
    );
    assert!(!prepared.is_noop, "{name}: nothing to do");
    drop(prepared);
    assert_eq!(
        world.snapshot(true),
        before,
        "{name}: letting go of it changed something"
    );
}

pub(super) fn apply_undo_redo_come_back<H: Harness>(name: &str, world: &H) {
    let before = world.snapshot(true);
    let effect = applied(world);
    let after = world.snapshot(true);
    assert_ne!(before, after, "{name}: applying changed nothing");
    assert!(
        world.driver().is_in_place(&effect).expect("looks"),
        "{name}: is not in place"
    );

    let (undo, outcomes) = taken_back(world, UNDO, &effect);
    assert_settled(name, &outcomes);
    assert_eq!(
        world.snapshot(true),
        before,
        "{name}: undo is not as before"
    );
    assert!(
        !world.driver().is_in_place(&effect).expect("looks"),
        "{name}: is still in place"
    );

    let twice = world
        .driver()
        .prepare_undo(AGAIN, &effect, OnConflict::Refuse.into())
        .expect("looks");
    assert!(
        twice.prepared.is_noop,
        "{name}: undoing twice does something"
    );
    let is_gone = |outcome: &TargetOutcome| outcome.kind == OutcomeKind::AlreadyGone;
    assert!(
        twice.outcomes.iter().all(is_gone),
        "{name}: {:?}",
        twice.outcomes
    );

    let (redo, outcomes) = taken_back(world, REDO, &undo);
    assert_settled(name, &outcomes);
    assert_eq!(world.snapshot(true), after, "{name}: redo is not as after");

    // Both ways of going back again: through the redo, and through the first operation itself.
    let (_, outcomes) = taken_back(world, AGAIN, &redo);
    assert_settled(name, &outcomes);
    assert_eq!(
        world.snapshot(true),
        before,
        "{name}: undoing the redo is not as before"
    );
}

pub(super) fn what_is_written_was_named_before<H: Harness>(name: &str, world: &H) {
    if !world.is_named_before() {
        return;
    }
    let scope = world.driver().scope(&*world.request()).expect("looks");
    for target in prepared(world).targets {
        let mut leased = scope.targets.iter();
        assert!(
            leased.any(|leased| leased.overlap(&target).is_some()),
            "{name}: {target} is written and was not leased: {:?}",
            scope.targets
        );
    }
}

pub(super) fn the_same_request_once_more_can_be_taken_back<H: Harness>(name: &str, world: &H) {
    applied(world);
    let after = world.snapshot(true);
    let twice = world
        .driver()
        .prepare(AGAIN, &*world.request(), world.strategy());
    assert_eq!(
        world.snapshot(true),
        after,
        "{name}: preparing it twice changed something"
    );
    let Some(twice) = twice.ok().filter(|twice| !twice.is_noop) else {
        return;
    };
    let twice = carried_out(world, AGAIN, twice);
    let (_, outcomes) = taken_back(world, UNDO, &twice);
    assert_settled(name, &outcomes);
    assert_eq!(
        world.snapshot(true),
        after,
        "{name}: undoing the second is not as after the first"
    );
}

pub(super) fn drift_is_refused<H: Harness>(name: &str, world: &H) {
    let effect = applied(world);
    if !world.drift() {
        return;
    }
    let drifted = world.snapshot(true);
    let undo = world
        .driver()
        .prepare_undo(UNDO, &effect, OnConflict::Refuse.into())
        .expect("looks");
    let is_conflict =
        |outcome: &TargetOutcome| matches!(outcome.kind, OutcomeKind::Conflict { .. });
    assert!(
        undo.outcomes.iter().any(is_conflict),
        "{name}: {:?}",
        undo.outcomes
    );
    assert!(undo.prepared.is_noop, "{name}: half an undo was prepared");
    drop(undo);
    let examined = world.driver().examine(&effect, false).expect("looks");
    let is_other = |state: &State| matches!(state, State::Other { .. });
    assert!(
        examined.iter().any(|it| is_other(&it.state)),
        "{name}: nobody sees that it changed: {examined:?}"
    );
    assert_eq!(
        world.snapshot(true),
        drifted,
        "{name}: a refused undo changed something"
    );
}

pub(super) fn what_force_replaces_is_kept<H: Harness>(name: &str, world: &H) {
    let effect = applied(world);
    if !world.drift() {
        return;
    }
    let drifted = world.snapshot(false);
    let undo = world
        .driver()
        .prepare_undo(UNDO, &effect, OnConflict::Force.into())
        .expect("looks");
    if !undo
        .outcomes
        .iter()
        .all(|outcome| outcome.kind.is_taken_back())
    {
        return; // Even by force not everything can come back; then the suite has nothing to say.
    }
    // Or that it stays: where only a name was changed, nothing of theirs is replaced.
    let is_told = |outcome: &TargetOutcome| {
        matches!(
            outcome.kind,
            OutcomeKind::Overwritten { .. } | OutcomeKind::Merged
        )
    };
    assert!(
        undo.outcomes.iter().any(is_told),
        "{name}: nobody says what was overwritten: {:?}",
        undo.outcomes
    );
    let undo = carried_out(world, UNDO, undo.prepared);
    let (_, outcomes) = taken_back(world, REDO, &undo);
    assert_settled(name, &outcomes);
    assert_eq!(
        world.snapshot(false),
        drifted,
        "{name}: what force replaced is lost"
    );
}
