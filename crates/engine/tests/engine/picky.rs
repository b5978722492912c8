//! A driver of rows that cannot prepare some strategies.

use backout_driver_example::Rows;
use backout_model::ports::{
    Applied, Driver, DriverError, Examined, Fault, How, Outline, Prepared, PreparedUndo, Request,
    Scope,
};
use backout_model::{Armed, DriverName, Effect, JsonText, OperationId, Strategy};

#[derive(Debug)]
pub(crate) struct Picky {
    pub(crate) rows: Rows,
    pub(crate) cannot: Vec<Strategy>,
}

#[derive(Debug, thiserror::Error)]
#[error("no connection for a {0}")]
struct NoConnection(Strategy);

impl Fault for NoConnection {
    fn not_prepared(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Driver for Picky {
    fn name(&self) -> DriverName {
        self.rows.name()
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        self.rows.scope(request)
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        self.rows.read_request(text)
    }

    fn prepare(
        &self,
        id: OperationId,
        request: &dyn Request,
        strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        if self.cannot.contains(&strategy) {
            return Err(DriverError::new(NoConnection(strategy)));
        }
        Ok(Prepared {
            strategy,
            ..self.rows.prepare(id, request, strategy)?
        })
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        self.rows.apply(armed)
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        self.rows.prepare_undo(id, effect, how)
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        self.rows.outline(effect)
    }

    fn examine(&self, effect: &Effect, to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        self.rows.examine(effect, to_the_end)
    }
}
