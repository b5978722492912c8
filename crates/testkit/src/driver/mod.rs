//! The suite that every driver passes: what "every write can be taken back" means, in code.
//!
//! A driver brings a [`Harness`]: a fresh little world, a request in it, and a way to see all of it. The
//! suite then claims, for each request:
//!
//! - preparing changes nothing, and what is written was named before, so that it was leased (`life`);
//! - apply then undo is as before, undo then redo is as after, and undoing twice is undoing once;
//! - the same request once more is refused, nothing to do, or a write of its own that can be taken back;
//! - what somebody else changed since is left alone, and what is replaced by force is kept;
//! - a step that fails, any step, leaves the world as before (`cuts`);
//! - a crash at any step can be taken back, also after a crash while taking it back, and a crashed undo too;
//! - what taking back a crash removed can be had again;
//! - how much of an effect is in the world is told right after a crash at any step: all, nothing, or neither;
//! - what is recorded reads back the same, from the request to the recipe (`records`);
//! - a recipe of a version that nobody knows is refused by whoever is asked about it;
//! - all that a recipe keeps is named in its envelope, and what was let go of is missed and not made up;
//! - values, where they are told, are what was, what is, and what is there now.
//!
//! How to bring a driver here: `docs/adding-a-driver.md`.

mod cuts;
mod life;
mod records;
mod steps;

use std::collections::BTreeSet;
use std::fmt::Debug;

use backout_model::ports::{Driver, OnConflict, Prepared, Request};
use backout_model::{Armed, Effect, OperationId, Recipe, Strategy, TargetOutcome, Verb};

pub use self::steps::{Cut, Steps};
use crate::fakes::MemoryJournal;

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
        Strategy::Transaction
    }

    /// Tells whether what the request writes has a name before it is there. What a service makes has not.
    fn is_named_before(&self) -> bool {
        true
    }

    /// Looks at everything; with `exactly`, also at what only a finished operation can put back.
    fn snapshot(&self, exactly: bool) -> Self::Snapshot;

    /// Lists what is there, whatever its name; temporary names of our own aside.
    fn contents(&self, snapshot: &Self::Snapshot) -> BTreeSet<String>;

    /// Arms a prepared operation. A driver whose recipes refer to contents has a journal of its own that stores them.
    fn arm(&self, id: OperationId, prepared: Prepared) -> Armed {
        MemoryJournal::default().arm(id, Verb::Write, prepared)
    }

    /// Lets go of all that a recipe keeps, as the store does when it is too old.
    fn release(&self, recipe: &Recipe) {
        let is_small = recipe.contents.is_empty() && recipe.slots.is_empty();
        assert!(is_small, "what is kept cannot be let go of");
    }

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
    conforms_in_life(name, &make);
    cuts::a_failing_step_leaves_the_world_as_before(name, &make);
    cuts::how_much_is_there_is_told_after_a_cut(name, &make);
    cuts::a_crash_at_any_step_can_be_taken_back(name, &make);
    cuts::a_crashed_undo_can_be_taken_back(name, &make);
    records::values_are_what_was_and_what_is(name, &make());
}

/// Runs all of the suite but for steps that fail, deaths, and values: of a driver whose effects are answered by others, and who
/// keeps no more than digests of what they left, those are another matter, and have tests of their own.
pub fn conforms_in_life<H: Harness>(name: &str, make: &impl Fn() -> H) {
    life::preparing_changes_nothing(name, &make());
    life::what_is_written_was_named_before(name, &make());
    life::apply_undo_redo_come_back(name, &make());
    life::the_same_request_once_more_can_be_taken_back(name, &make());
    life::drift_is_refused(name, &make());
    life::what_force_replaces_is_kept(name, &make());
    records::a_request_is_kept_and_read_again(name, &make());
    records::a_recipe_reads_back_the_same(name, &make());
    records::an_unknown_version_is_refused(name, &make());
    records::what_was_let_go_of_is_not_made_up(name, &make());
}

/// Prepares the request of a world.
fn prepared<H: Harness>(world: &H) -> Prepared {
    let prepared = world
        .driver()
        .prepare(FIRST, &*world.request(), world.strategy());
    prepared.expect("prepares")
}

/// Applies the request of a world.
pub fn applied<H: Harness>(world: &H) -> Effect {
    carried_out(world, FIRST, prepared(world))
}

/// Arms and applies what is prepared, and gives the effect as a later process reads it.
fn carried_out<H: Harness>(world: &H, id: OperationId, prepared: Prepared) -> Effect {
    let recipe = through_json(&prepared.recipe);
    let applied = world.driver().apply(world.arm(id, prepared));
    let applied = applied.expect("applies");
    assert!(applied.unlike.is_empty(), "{:?}", applied.unlike);
    Effect {
        recipe,
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
    (carried_out(world, id, undo.prepared), undo.outcomes)
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
