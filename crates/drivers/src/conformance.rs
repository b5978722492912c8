//! The suite that every driver passes: what "every write can be taken back" means, in code.
//!
//! A driver brings a [`Harness`]: a fresh little world, a request in it, and a way to see all of it. The
//! suite then claims, for each request:
//!
//! - preparing changes nothing;
//! - apply then undo is as before, undo then redo is as after, and undoing twice is undoing once;
//! - a step that fails, any step, leaves the world as before;
//! - a crash at any step can be reverted, also after a crash while reverting; a crashed undo can be
//!   finished or reverted;
//! - what somebody else changed since is left alone.

use std::fmt::Debug;

use backout_model::ports::{Driver, OnConflict, Prepared};
use backout_model::{Armed, Effect, OperationId, OutcomeKind, Recipe, TargetOutcome};

/// A small world with one request in it.
pub trait Harness {
    /// The driver under test.
    type Driver: Driver;
    /// Everything that anybody can see of the world.
    type Snapshot: PartialEq + Debug;

    /// Gives the driver.
    fn driver(&self) -> &Self::Driver;

    /// Makes the request.
    fn request(&self) -> <Self::Driver as Driver>::Request;

    /// Looks at everything; with `exactly`, also at what only a finished operation can put back.
    fn snapshot(&self, exactly: bool) -> Self::Snapshot;

    /// Arms a prepared operation.
    fn arm(
        &self,
        id: OperationId,
        prepared: Prepared<<Self::Driver as Driver>::Staged>,
    ) -> Armed<<Self::Driver as Driver>::Staged>;

    /// Changes something that the request has written, behind the driver's back. False if there is
    /// nothing left that could be changed.
    fn drift(&self) -> bool;

    /// Makes a step fail; with `abandons`, as a crash would.
    fn fail_at_step(&self, at: Option<usize>, abandons: bool);

    /// Tells how many steps were passed since.
    fn steps_passed(&self) -> usize;
}

const FIRST: OperationId = OperationId::from_bits(0xa1);
const UNDO: OperationId = OperationId::from_bits(0xa2);
const REDO: OperationId = OperationId::from_bits(0xa3);
const AGAIN: OperationId = OperationId::from_bits(0xa4);

/// Runs the whole suite.
pub fn conforms<H: Harness>(name: &str, make: impl Fn() -> H) {
    preparing_changes_nothing(name, &make());
    apply_undo_redo_come_back(name, &make());
    drift_is_refused(name, &make());
    a_failing_step_leaves_the_world_as_before(name, &make);
    a_crash_at_any_step_can_be_reverted(name, &make);
    a_crashed_undo_can_be_finished_or_reverted(name, &make);
}

fn preparing_changes_nothing<H: Harness>(name: &str, world: &H) {
    let before = world.snapshot(true);
    let prepared = world
        .driver()
        .prepare(FIRST, &world.request())
        .expect("prepares");
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

fn apply_undo_redo_come_back<H: Harness>(name: &str, world: &H) {
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
        .prepare_undo(AGAIN, &effect, OnConflict::Refuse)
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

fn drift_is_refused<H: Harness>(name: &str, world: &H) {
    let effect = applied(world);
    if !world.drift() {
        return;
    }
    let drifted = world.snapshot(true);
    let undo = world
        .driver()
        .prepare_undo(UNDO, &effect, OnConflict::Refuse)
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
    assert_eq!(
        world.snapshot(true),
        drifted,
        "{name}: a refused undo changed something"
    );

    let outcomes = world.driver().revert(&effect).expect("reverts the rest");
    assert!(outcomes.iter().any(is_conflict), "{name}: {outcomes:?}");
}

fn a_failing_step_leaves_the_world_as_before<H: Harness>(name: &str, make: &impl Fn() -> H) {
    for at in 0..steps_of(make) {
        let world = make();
        let before = world.snapshot(true);
        let prepared = world
            .driver()
            .prepare(FIRST, &world.request())
            .expect("prepares");
        let armed = world.arm(FIRST, prepared);
        world.fail_at_step(Some(at), false);
        let failed = world.driver().apply(armed);
        world.fail_at_step(None, false);
        assert!(failed.is_err(), "{name}: step {at} did not fail");
        assert_eq!(
            world.snapshot(true),
            before,
            "{name}: step {at}: {failed:?}"
        );
    }
}

fn a_crash_at_any_step_can_be_reverted<H: Harness>(name: &str, make: &impl Fn() -> H) {
    let steps = steps_of(make);
    for at in 0..steps {
        // First how many steps the way back has; then, from half-way and from the end, a crash at each.
        let is_crashed_again = at == steps / 2 || at + 1 == steps;
        let mut crash_back_at = None;
        loop {
            let world = make();
            let before = world.snapshot(false);
            let effect = crashed(&world, at);
            if let Some(back) = crash_back_at {
                world.fail_at_step(Some(back), true);
                let _crashed = world.driver().revert(&effect);
            }
            world.fail_at_step(None, false);
            let outcomes = world.driver().revert(&effect).expect("reverts");
            let passed = world.steps_passed();
            let place = format!("{name}: step {at}, then {crash_back_at:?}");
            assert_settled(&place, &outcomes);
            assert_eq!(world.snapshot(false), before, "{place}");
            world.driver().revert(&effect).expect("reverts once more");
            assert_eq!(world.snapshot(false), before, "{place}: once more");
            crash_back_at = match crash_back_at {
                None if is_crashed_again && passed > 0 => Some(passed - 1),
                Some(back) if back > 0 => Some(back - 1),
                None | Some(_) => break,
            };
        }
    }
}

fn a_crashed_undo_can_be_finished_or_reverted<H: Harness>(name: &str, make: &impl Fn() -> H) {
    let mut at = 0;
    loop {
        let mut is_over = false;
        for finishes in [true, false] {
            let world = make();
            let before = world.snapshot(false);
            let effect = applied(&world);
            let after = world.snapshot(false);
            let undo = world
                .driver()
                .prepare_undo(UNDO, &effect, OnConflict::Refuse)
                .expect("looks");
            let recipe = undo.prepared.recipe.clone();
            let armed = world.arm(UNDO, undo.prepared);
            world.fail_at_step(Some(at), true);
            is_over = world.driver().apply(armed).is_ok();
            world.fail_at_step(None, false);
            let undo = Effect {
                recipe,
                completion: None,
            };
            let place = format!("{name}: undo step {at}, finishes: {finishes}");
            let (outcomes, wanted) = if finishes {
                (world.driver().finish(&undo).expect("finishes"), &before)
            } else {
                (world.driver().revert(&undo).expect("reverts"), &after)
            };
            assert_settled(&place, &outcomes);
            assert_eq!(world.snapshot(false), *wanted, "{place}");
            if !finishes {
                // The undo did not come to pass, so the first operation can still be taken back.
                let (_, outcomes) = taken_back(&world, AGAIN, &effect);
                assert_settled(&place, &outcomes);
                assert_eq!(world.snapshot(false), before, "{place}: undone after all");
            }
        }
        if is_over {
            break;
        }
        at += 1;
    }
}

/// Applies the request of a world.
pub fn applied<H: Harness>(world: &H) -> Effect {
    let prepared = world
        .driver()
        .prepare(FIRST, &world.request())
        .expect("prepares");
    let recipe = prepared.recipe.clone();
    let completion = world
        .driver()
        .apply(world.arm(FIRST, prepared))
        .expect("applies");
    Effect {
        recipe: through_json(&recipe),
        completion: Some(completion),
    }
}

/// Takes an effect back, and gives the effect of that.
pub fn taken_back<H: Harness>(
    world: &H,
    id: OperationId,
    effect: &Effect,
) -> (Effect, Vec<TargetOutcome>) {
    let undo = world
        .driver()
        .prepare_undo(id, effect, OnConflict::Refuse)
        .expect("looks");
    let recipe = undo.prepared.recipe.clone();
    let armed = world.arm(id, undo.prepared);
    let completion = world.driver().apply(armed).expect("takes back");
    (
        Effect {
            recipe: through_json(&recipe),
            completion: Some(completion),
        },
        undo.outcomes,
    )
}

/// Applies the request of a world up to a step, and no further.
fn crashed<H: Harness>(world: &H, at: usize) -> Effect {
    let prepared = world
        .driver()
        .prepare(FIRST, &world.request())
        .expect("prepares");
    let recipe = prepared.recipe.clone();
    let armed = world.arm(FIRST, prepared);
    world.fail_at_step(Some(at), true);
    let _crashed = world.driver().apply(armed);
    world.fail_at_step(None, false);
    Effect {
        recipe,
        completion: None,
    }
}

fn steps_of<H: Harness>(make: &impl Fn() -> H) -> usize {
    let world = make();
    let prepared = world
        .driver()
        .prepare(FIRST, &world.request())
        .expect("prepares");
    let armed = world.arm(FIRST, prepared);
    world.fail_at_step(None, false);
    world.driver().apply(armed).expect("applies");
    world.steps_passed()
}

/// A recipe is persisted between the operation and its undo.
fn through_json(recipe: &Recipe) -> Recipe {
    let json = serde_json::to_string(recipe).expect("a recipe is JSON");
    serde_json::from_str(&json).expect("a recipe reads back")
}

fn assert_settled(name: &str, outcomes: &[TargetOutcome]) {
    assert!(
        !outcomes.is_empty(),
        "{name}: nothing was said about any target"
    );
    for outcome in outcomes {
        assert!(
            outcome.kind.is_settled(),
            "{name}: {outcome:?} of {outcomes:?}"
        );
    }
}
