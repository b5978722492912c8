//! Where the engines of a world keep things: a store in memory, opened by each anew.

use std::path::Path;
use std::sync::Arc;

use backout_engine::{Engine, RandomIds, Settings, SystemClock};
use backout_model::ports::Store;
use backout_testkit::MemoryStore;

pub(crate) struct Shelf(MemoryStore);

impl Shelf {
    pub(crate) fn new(state: &Path) -> Self {
        Self(MemoryStore::new(state, Arc::new(SystemClock)).unwrap())
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.again())
    }

    pub(crate) fn engine(&self, settings: Settings) -> Engine {
        let store = self.store();
        let (clock, ids) = (Arc::new(SystemClock), Arc::new(RandomIds));
        Engine::with_store(settings, store, backout_drivers::local, (clock, ids)).unwrap()
    }
}
