//! The drivers that the program knows beside those of the engine.

use backout_engine::{Engine, EngineError};

/// Makes them known to an engine, so that it can carry out their requests and recipes.
#[expect(clippy::unnecessary_wraps, reason = "a name can be taken")]
pub(crate) const fn register(_engine: &mut Engine) -> Result<(), EngineError> {
    Ok(())
}
