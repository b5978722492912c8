//! The drivers that the program knows beside those of the engine.

use std::sync::Arc;

use backout_drivers::handler::HandlerDriver;
use backout_engine::{Engine, EngineError};
use backout_remote::http::HttpDriver;
use backout_remote::mysql::MysqlDriver;
use backout_remote::postgres::PostgresDriver;
use backout_remote::redis::RedisDriver;

use crate::programs::Programs;

/// Makes them known to an engine, so that it can carry out their requests and recipes.
pub(crate) fn register(engine: &mut Engine, programs: &Arc<Programs>) -> Result<(), EngineError> {
    engine.register(Arc::new(HandlerDriver(Arc::clone(programs) as _)))?;
    let store = engine.shared_store();
    engine.register(Arc::new(PostgresDriver::default()))?;
    engine.register(Arc::new(MysqlDriver::default()))?;
    engine.register(Arc::new(HttpDriver::new(Arc::clone(&store) as _)))?;
    engine.register(Arc::new(RedisDriver::new(
        Arc::clone(&store) as _,
        store as _,
    )))?;
    #[cfg(feature = "testing")]
    of_tests(engine)?;
    Ok(())
}

/// Knows the rows of the example, if a test has a table of them: they are in no file.
#[cfg(feature = "testing")]
fn of_tests(engine: &mut Engine) -> Result<(), EngineError> {
    use backout_driver_example::{Rows, Table};
    use backout_model::ports::Guarantee;

    let Some(table) = std::env::var_os("BACKOUT_TEST_ROWS") else {
        return Ok(());
    };
    let mut rows = Rows::new(Table::new(table));
    if std::env::var_os("BACKOUT_TEST_ROWS_ANSWER").is_some() {
        rows.guarantee = Guarantee::Compensating;
    }
    engine.register(Arc::new(rows))
}
