//! The drivers that the program knows beside those of the engine.

use std::sync::Arc;

use backout_engine::{Engine, EngineError};
use backout_remote::redis::RedisDriver;

/// Makes them known to an engine, so that it can carry out their requests and recipes.
pub(crate) fn register(engine: &mut Engine) -> Result<(), EngineError> {
    let store = engine.shared_store();
    engine.register(Arc::new(RedisDriver::new(
        Arc::clone(&store) as _,
        store as _,
    )))
}
