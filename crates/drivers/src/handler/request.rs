//! What a handler is asked: its name and what it is told.

use backout_model::ports::{DriverError, Request};
use backout_model::{DriverName, JsonText, Verb};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Asks a handler to act.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handled {
    /// The name of the handler.
    pub handler: String,
    /// What it is told. It is kept: no secrets.
    pub arguments: Value,
    /// What it is called in the log; none tells the handler and its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Handled {
    /// Asks a handler, by what it is told.
    pub fn new(handler: impl Into<String>, arguments: Value) -> Self {
        Self {
            handler: handler.into(),
            arguments,
            name: None,
        }
    }

    /// Gives it a name for the log.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..self
        }
    }
}

impl Request for Handled {
    fn driver(&self) -> DriverName {
        driver_name(&self.handler)
    }

    fn verb(&self) -> Verb {
        Verb::Write
    }

    fn summary(&self) -> String {
        let told = || format!("{} {}", self.handler, self.arguments);
        self.name.clone().unwrap_or_else(told)
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        Ok(JsonText::of(self)?)
    }
}

/// Names the driver of a handler.
pub(super) fn driver_name(handler: &str) -> DriverName {
    DriverName::from(format!("handler:{handler}"))
}
