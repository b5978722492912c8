//! The drivers that the program knows beside those of the engine.

use backout_engine::{Engine, EngineError};

/// Makes them known to an engine, so that it can carry out their requests and recipes.
#[cfg_attr(
    not(feature = "testing"),
    expect(
        clippy::unnecessary_wraps,
        clippy::missing_const_for_fn,
        reason = "a name can be taken"
    )
)]
pub(crate) fn register(engine: &mut Engine) -> Result<(), EngineError> {
    #[cfg(feature = "testing")]
    of_tests(engine)?;
    #[cfg(not(feature = "testing"))]
    let _none = engine;
    Ok(())
}

/// Knows the rows of the example, if a test has a table of them: they are in no file.
#[cfg(feature = "testing")]
fn of_tests(engine: &mut Engine) -> Result<(), EngineError> {
    use backout_driver_example::{Rows, Table};

    let Some(table) = std::env::var_os("BACKOUT_TEST_ROWS") else {
        return Ok(());
    };
    let rows = Rows::new(Table::new(table));
    let is_answered = std::env::var_os("BACKOUT_TEST_ROWS_ANSWER").is_some();
    engine.register(std::sync::Arc::new(if is_answered {
        rows.answering()
    } else {
        rows
    }))
}
