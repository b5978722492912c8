//! Two engines on two machines with one store that serves both.

use std::sync::Arc;

use backout_drivers::file::FileRequest;
use backout_engine::{Engine, EngineError, RandomIds, Settings};
use backout_model::Status;
use backout_model::ports::SILENT_MS_MAX;
use backout_testkit::{MemoryStore, TestClock};

use crate::world::written;

fn engine(store: MemoryStore, clock: &Arc<TestClock>, wait_ms: u64) -> Engine {
    let mut settings = Settings::new("unused");
    settings.lease_wait_ms = wait_ms;
    let (clock, ids) = (Arc::clone(clock), Arc::new(RandomIds));
    Engine::with_store(
        settings,
        Arc::new(store),
        backout_drivers::local,
        (clock, ids),
    )
    .unwrap()
}

#[test]
fn an_engine_waits_for_a_living_host_and_undoes_what_it_did() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(TestClock::default());
    let store = MemoryStore::new(&directory.path().join("state"), clock.clone()).unwrap();
    let alpha = engine(store.again_on("alpha"), &clock, 0);
    let beta = engine(store.again_on("beta"), &clock, 0);
    let path = directory.path().join("a");
    let request = |text: &str| FileRequest::write(path.clone(), text);
    let first = written(&alpha.write(&request("one")).unwrap());
    let staged = alpha.stage(&request("two")).unwrap();
    let refused = beta.write(&request("theirs")).unwrap_err();
    assert!(matches!(refused, EngineError::Busy { .. }), "{refused:?}");
    // Its process is gone, and so is its heart.
    std::mem::forget(staged);
    drop(alpha);
    clock.pass(SILENT_MS_MAX);
    let second = written(&beta.write(&request("theirs")).unwrap());
    beta.undo(&crate::world::named(first), &crate::world::committed())
        .unwrap();
    assert!(!path.exists(), "what was built on it went first");
    let status = |id| beta.store().operation(id).unwrap().unwrap().status;
    assert_eq!(
        (status(first), status(second)),
        (Status::Undone, Status::Undone)
    );
}
