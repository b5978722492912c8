//! The suite that every driver passes: what "every write can be taken back" means, in code.
//!
//! A driver brings a [`Harness`]: a fresh little world, a request in it, and a way to see all of it. The
//! suite then claims, for each request:
//!
//! - preparing changes nothing;
//! - apply then undo is as before, undo then redo is as after, and undoing twice is undoing once;
//! - a step that fails, any step, leaves the world as before;
//! - a crash at any step can be taken back, also after a crash while taking it back, and a crashed undo too;
//! - what taking back a crash removed can be had again;
//! - what somebody else changed since is left alone, and what is replaced by force is kept.

use std::fmt::Debug;

use std::cell::Cell;
use std::collections::BTreeSet;

use backout_model::ports::{Driver, How, OnConflict, Prepared, Request};
use backout_model::{Armed, Effect, OperationId, OutcomeKind, Recipe, Strategy, TargetOutcome};

/// A small world with one request in it.
pub trait Harness {
    /// Everything that anybody can see of the world.
    type Snapshot: PartialEq + Debug;

    /// Gives the driver.
    fn driver(&self) -> &dyn Driver;

    /// Makes the request.
    fn request(&self) -> Box<dyn Request>;

    /// Says how the request is to be taken back.
    fn strategy(&self) -> Strategy {
        Strategy::Snapshot
    }

    /// Looks at everything; with `exactly`, also at what only a finished operation can put back.
    fn snapshot(&self, exactly: bool) -> Self::Snapshot;

    /// Lists what is there, whatever its name; temporary names of our own aside.
    fn contents(&self, snapshot: &Self::Snapshot) -> BTreeSet<String>;

    /// Arms a prepared operation.
    fn arm(&self, id: OperationId, prepared: Prepared) -> Armed;

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
    a_crash_at_any_step_can_be_taken_back(name, &make);
    a_crashed_undo_can_be_taken_back(name, &make);
    what_force_replaces_is_kept(name, &make());
}

fn preparing_changes_nothing<H: Harness>(name: &str, world: &H) {
    let before = world.snapshot(true);
    let prepared = world
        .driver()
        .prepare(FIRST, &*world.request(), world.strategy())
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

fn drift_is_refused<H: Harness>(name: &str, world: &H) {
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
    assert_eq!(
        world.snapshot(true),
        drifted,
        "{name}: a refused undo changed something"
    );
}

fn what_force_replaces_is_kept<H: Harness>(name: &str, world: &H) {
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
    let is_told = |outcome: &TargetOutcome| matches!(outcome.kind, OutcomeKind::Overwritten { .. });
    assert!(
        undo.outcomes.iter().any(is_told),
        "{name}: nobody says what was overwritten: {:?}",
        undo.outcomes
    );
    let recipe = through_json(&undo.prepared.recipe);
    let applied = world.driver().apply(world.arm(UNDO, undo.prepared));
    let undo = Effect {
        recipe,
        completion: Some(applied.expect("forces").completion),
    };
    let (_, outcomes) = taken_back(world, REDO, &undo);
    assert_settled(name, &outcomes);
    assert_eq!(
        world.snapshot(false),
        drifted,
        "{name}: what force replaced is lost"
    );
}

fn a_failing_step_leaves_the_world_as_before<H: Harness>(name: &str, make: &impl Fn() -> H) {
    for at in 0..steps_of(make) {
        let world = make();
        let before = world.snapshot(true);
        let prepared = world
            .driver()
            .prepare(FIRST, &*world.request(), world.strategy())
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

fn a_crash_at_any_step_can_be_taken_back<H: Harness>(name: &str, make: &impl Fn() -> H) {
    let steps = steps_of(make);
    for at in 0..steps {
        // First how many steps the way back has; then, from half-way and from the end, a crash at each.
        let is_crashed_again = at == steps / 2 || at + 1 == steps;
        let mut crash_back_at = None;
        loop {
            let world = make();
            let before = world.snapshot(false);
            let effect = crashed(&world, at);
            let crash = contents_of(&world);
            let place = format!("{name}: step {at}, then {crash_back_at:?}");
            let mut left = vec![effect.clone()];
            if let Some(back) = crash_back_at {
                world.fail_at_step(Some(back), true);
                left.extend(recovery(&world, &effect).err().map(|crashed| *crashed));
            }
            world.fail_at_step(None, false);
            let recovered = recover_all(&world, &place, left);
            let passed = world.steps_passed();
            assert_eq!(world.snapshot(false), before, "{place}");
            let twice = world
                .driver()
                .prepare_undo(AGAIN, &effect, How::unfinished());
            assert!(
                twice.expect("looks").prepared.is_noop,
                "{place}: once more does something"
            );
            if let (None, Some(recovered)) = (crash_back_at, &recovered) {
                let (_, outcomes) = taken_back(&world, REDO, recovered);
                assert_settled(&place, &outcomes);
                let (now, known) = (contents_of(&world), world.contents(&before));
                let lost: Vec<_> = crash
                    .difference(&known)
                    .filter(|it| !now.contains(*it))
                    .collect();
                assert!(lost.is_empty(), "{place}: recovery lost {lost:?}");
            }
            crash_back_at = match crash_back_at {
                None if is_crashed_again && passed > 0 => Some(passed - 1),
                Some(back) if back > 0 => Some(back - 1),
                None | Some(_) => break,
            };
        }
    }
}

fn contents_of<H: Harness>(world: &H) -> BTreeSet<String> {
    world.contents(&world.snapshot(false))
}

fn a_crashed_undo_can_be_taken_back<H: Harness>(name: &str, make: &impl Fn() -> H) {
    for at in 0.. {
        let world = make();
        let before = world.snapshot(false);
        let effect = applied(&world);
        let after = world.snapshot(false);
        let undo = world
            .driver()
            .prepare_undo(UNDO, &effect, OnConflict::Refuse.into())
            .expect("looks");
        let recipe = undo.prepared.recipe.clone();
        let armed = world.arm(UNDO, undo.prepared);
        world.fail_at_step(Some(at), true);
        let is_over = world.driver().apply(armed).is_ok();
        world.fail_at_step(None, false);
        let undo = Effect {
            recipe,
            completion: None,
        };
        let place = format!("{name}: undo step {at}");
        recover_all(&world, &place, vec![undo]);
        assert_eq!(world.snapshot(false), after, "{place}");
        // The undo did not come to pass, so the first operation can still be taken back.
        let (_, outcomes) = taken_back(&world, AGAIN, &effect);
        assert_settled(&place, &outcomes);
        assert_eq!(world.snapshot(false), before, "{place}: undone after all");
        if is_over {
            break;
        }
    }
}

/// Takes back what dead processes left, newest first; a recovery that dies is left behind, too. Gives the last recovery
/// that had something to do.
fn recover_all<H: Harness>(world: &H, place: &str, mut left: Vec<Effect>) -> Option<Effect> {
    let mut last = None;
    while let Some(effect) = left.pop() {
        match recovery(world, &effect) {
            Ok((recovered, outcomes)) => {
                assert_settled(place, &outcomes);
                last = recovered.or(last);
            }
            Err(crashed) => left.extend([effect, *crashed]),
        }
    }
    last
}

/// Takes an unfinished effect back. The error is the effect of a recovery that died.
fn recovery<H: Harness>(
    world: &H,
    effect: &Effect,
) -> Result<(Option<Effect>, Vec<TargetOutcome>), Box<Effect>> {
    thread_local! {
        static NEXT: Cell<u64> = const { Cell::new(0xb000) };
    }
    let id = OperationId::from_bits(NEXT.replace(NEXT.get() + 1));
    let Ok(undo) = world.driver().prepare_undo(id, effect, How::unfinished()) else {
        // It died before it was armed.
        world.fail_at_step(None, false);
        return recovery(world, effect);
    };
    if undo.prepared.is_noop {
        return Ok((None, undo.outcomes));
    }
    let recipe = through_json(&undo.prepared.recipe);
    let armed = world.arm(id, undo.prepared);
    match world.driver().apply(armed) {
        Ok(applied) => {
            let recovered = Effect {
                recipe,
                completion: Some(applied.completion),
            };
            Ok((Some(recovered), undo.outcomes))
        }
        Err(_) => Err(Box::new(Effect {
            recipe,
            completion: None,
        })),
    }
}

/// Applies the request of a world.
pub fn applied<H: Harness>(world: &H) -> Effect {
    let prepared = world
        .driver()
        .prepare(FIRST, &*world.request(), world.strategy())
        .expect("prepares");
    let recipe = prepared.recipe.clone();
    let applied = world
        .driver()
        .apply(world.arm(FIRST, prepared))
        .expect("applies");
    assert!(applied.unlike.is_empty(), "{:?}", applied.unlike);
    Effect {
        recipe: through_json(&recipe),
        completion: Some(applied.completion),
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
        .prepare_undo(id, effect, OnConflict::Refuse.into())
        .expect("looks");
    let recipe = undo.prepared.recipe.clone();
    let armed = world.arm(id, undo.prepared);
    let applied = world.driver().apply(armed).expect("takes back");
    assert!(applied.unlike.is_empty(), "{:?}", applied.unlike);
    (
        Effect {
            recipe: through_json(&recipe),
            completion: Some(applied.completion),
        },
        undo.outcomes,
    )
}

/// Applies the request of a world up to a step, and no further.
fn crashed<H: Harness>(world: &H, at: usize) -> Effect {
    let prepared = world
        .driver()
        .prepare(FIRST, &*world.request(), world.strategy())
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
        .prepare(FIRST, &*world.request(), world.strategy())
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
            outcome.kind.is_taken_back(),
            "{name}: {outcome:?} of {outcomes:?}"
        );
    }
}
