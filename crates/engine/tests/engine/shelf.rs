//! Where the engines of a world keep things: a store of SQLite.

use std::path::{Path, PathBuf};

use backout_engine::{Engine, Settings};

pub(crate) struct Shelf(PathBuf);

impl Shelf {
    pub(crate) fn new(state: &Path) -> Self {
        Self(state.to_path_buf())
    }

    pub(crate) fn engine(&self, settings: Settings) -> Engine {
        assert_eq!(settings.state_dir, self.0, "one world, one store");
        Engine::open(settings).unwrap()
    }
}
