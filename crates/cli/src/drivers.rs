//! The drivers that the program knows beside those of the engine.

use std::sync::Arc;

use backout_engine::{Engine, EngineError};
use backout_remote::http::HttpDriver;

/// Makes them known to an engine, so that it can carry out their requests and recipes.
pub(crate) fn register(engine: &mut Engine) -> Result<(), EngineError> {
    let http = HttpDriver::new(engine.contents());
    engine.register(Arc::new(http))
}
