//! Where the engine of a story keeps things: a store in memory, which other processes share.

use std::sync::Arc;

use backout_engine::{Engine, RandomIds, Settings, SystemClock};
use backout_testkit::MemoryStore;

pub(crate) fn engine(settings: Settings) -> Engine {
    let clock = Arc::new(SystemClock);
    let store = MemoryStore::shared(&settings.state_dir, clock.clone()).unwrap();
    Engine::with_store(
        settings,
        Arc::new(store),
        backout_drivers::local,
        (clock, Arc::new(RandomIds)),
    )
    .unwrap()
}
