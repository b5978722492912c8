//! Where the engines of a world keep things: a store of SQLite.

use std::path::{Path, PathBuf};

use std::sync::Arc;

use backout_engine::{Engine, Settings, SystemClock};
use backout_model::ports::Store;

pub(crate) struct Shelf(PathBuf);

impl Shelf {
    pub(crate) fn new(state: &Path) -> Self {
        Self(state.to_path_buf())
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        let store = backout_storage::Store::open(&self.0, Arc::new(SystemClock));
        Arc::new(store.unwrap())
    }

    pub(crate) fn engine(&self, settings: Settings) -> Engine {
        assert_eq!(settings.state_dir, self.0, "one world, one store");
        Engine::open(settings, backout_drivers::local).unwrap()
    }
}
