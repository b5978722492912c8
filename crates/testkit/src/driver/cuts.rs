//! Steps that fail, and steps that are the last ones of a process.

use std::cell::Cell;
use std::collections::BTreeSet;

use backout_model::ports::{How, OnConflict, State};
use backout_model::{Effect, OperationId, TargetOutcome};

use super::{
    AGAIN, FIRST, Harness, REDO, UNDO, applied, assert_settled, prepared, taken_back, through_json,
};

pub(super) fn a_failing_step_leaves_the_world_as_before<H: Harness>(
    name: &str,
    make: &impl Fn() -> H,
) {
    for at in 0..steps_of(make) {
        let world = make();
        let before = world.snapshot(true);
        let armed = world.arm(FIRST, prepared(&world));
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

pub(super) fn how_much_is_there_is_told_after_a_cut<H: Harness>(name: &str, make: &impl Fn() -> H) {
    let whole = make();
    applied(&whole);
    let after = contents_of(&whole);
    for at in 0..steps_of(make) {
        let world = make();
        let before = contents_of(&world);
        let effect = crashed(&world, at);
        let now = contents_of(&world);
        let place = format!("{name}: cut at step {at}");
        let seen = world.snapshot(false);
        let examined = world.driver().examine(&effect, true).expect("looks");
        let is_in_place = world.driver().is_in_place(&effect).expect("looks");
        assert_eq!(
            world.snapshot(false),
            seen,
            "{place}: looking changed something"
        );
        assert!(!examined.is_empty(), "{place}: nothing is told");
        let is_none = examined.iter().all(|it| it.state == State::Before);
        assert!(!is_none || !is_in_place, "{place}: all and nothing");
        if is_none {
            assert_eq!(now, before, "{place}: nothing is said to be there");
        }
        if is_in_place {
            assert_eq!(now, after, "{place}: all is said to be there");
        }
    }
}

pub(super) fn a_crash_at_any_step_can_be_taken_back<H: Harness>(name: &str, make: &impl Fn() -> H) {
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

pub(super) fn a_crashed_undo_can_be_taken_back<H: Harness>(name: &str, make: &impl Fn() -> H) {
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

/// Applies the request of a world up to a step, and no further.
fn crashed<H: Harness>(world: &H, at: usize) -> Effect {
    let prepared = prepared(world);
    let recipe = through_json(&prepared.recipe);
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
    let armed = world.arm(FIRST, prepared(&world));
    world.fail_at_step(None, false);
    world.driver().apply(armed).expect("applies");
    world.steps_passed()
}

fn contents_of<H: Harness>(world: &H) -> BTreeSet<String> {
    world.contents(&world.snapshot(false))
}
