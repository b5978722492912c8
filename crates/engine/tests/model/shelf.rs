//! Where the engine of a story keeps things: a store of SQLite.

use backout_engine::{Engine, Settings};

pub(crate) fn engine(settings: Settings) -> Engine {
    Engine::open(settings, backout_drivers::local).unwrap()
}
