//! The store fails once, at each of its writes in turn: nothing is lost, and what was left is settled.

use std::sync::Arc;

use backout_drivers::file::FileRequest;
use backout_engine::{Engine, EngineError, RandomIds, SystemClock, UndoOptions};
use backout_model::{OperationId, Status};
use backout_testkit::FaultyStore;

use crate::world::{NEWEST, NEWEST_UNDO, World, committed, named};

/// More writes than any of these has.
const WRITES_MAX: usize = 60;

type Attempt = fn(&World, &Engine, OperationId) -> Result<(), EngineError>;

/// A world with a write in effect: `a` was "0" and is "1".
fn world() -> (World, OperationId) {
    let world = World::new().file("a", "0").file("b", "x");
    let id = world.write("a", "1");
    (world, id)
}

/// An engine whose store fails after so many writes.
pub(crate) fn faulty(world: &World, works: usize) -> (Engine, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore::new(world.shelf.store(), works));
    let settings = world.engine.settings().clone();
    let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
    let engine = Engine::with_store(
        settings,
        Arc::clone(&store) as _,
        backout_drivers::local,
        (clock, ids),
    )
    .unwrap();
    (engine, store)
}

/// Does the same with a fault at each write, and tells how many there were. `allowed` is what `a` and `b` may be then.
fn at_each_write(attempt: Attempt, allowed: &[(Option<&str>, Option<&str>)]) -> usize {
    for works in 0..WRITES_MAX {
        let (world, id) = world();
        let (engine, store) = faulty(&world, works);
        let result = attempt(&world, &engine, id);
        if !store.has_failed() {
            result.unwrap();
            return works;
        }
        // From here on the store works again.
        engine.recover(None).unwrap();
        let (a, b) = (world.read("a"), world.read("b"));
        let is = (a.as_deref(), b.as_deref());
        assert!(
            allowed.contains(&is),
            "write {works}: {is:?} after {result:?}"
        );
        // What was said is what is there, and every step back is open.
        let verified = engine.verify().unwrap();
        assert_eq!(verified.findings, [], "write {works}");
        let stuck = engine.store().stuck().unwrap();
        assert!(stuck.is_empty(), "write {works}: {stuck:?}");
        while let Ok(_undone) = engine.undo(&NEWEST, &committed()) {}
        assert_eq!(world.read("a").as_deref(), Some("0"), "write {works}");
        assert_eq!(world.read("b").as_deref(), Some("x"), "write {works}");
    }
    unreachable!("more than {WRITES_MAX} writes")
}

#[test]
fn a_write_whose_store_fails_happened_or_did_not_and_can_be_undone() {
    let write: Attempt = |world, engine, _| {
        let request = FileRequest::write(world.path("a"), "2");
        engine.write(&request).map(drop)
    };
    let count = at_each_write(write, &[(Some("1"), Some("x")), (Some("2"), Some("x"))]);
    assert!(count >= 4, "{count} writes");
}

#[test]
fn a_removal_whose_store_fails_keeps_the_file_or_its_image() {
    let remove: Attempt = |world, engine, _| {
        let request = FileRequest::Remove {
            path: world.path("b"),
            recursive: false,
        };
        engine.write(&request).map(drop)
    };
    at_each_write(remove, &[(Some("1"), Some("x")), (Some("1"), None)]);
}

#[test]
fn an_undo_and_a_redo_whose_store_fails_are_whole_or_not_there() {
    let undo: Attempt = |_, engine, id| engine.undo(&named(id), &committed()).map(drop);
    at_each_write(undo, &[(Some("1"), Some("x")), (Some("0"), Some("x"))]);
    let redo: Attempt = |world, engine, id| {
        world.undone(id);
        assert_eq!(world.status(id), Status::Undone);
        engine.redo(&NEWEST_UNDO, &UndoOptions::default()).map(drop)
    };
    at_each_write(redo, &[(Some("1"), Some("x")), (Some("0"), Some("x"))]);
}
