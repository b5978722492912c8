//! Effects of any kind that are answered by a handler, registered by name.
//!
//! A recipe never holds code. It holds the name of a [`CompensationHandler`] and JSON; any later process that registers a handler
//! of that name can take the effect back. A program without it reports the operation and keeps it, as for any driver that is not
//! there.
//!
//! Each handler is a driver of its own, `handler:NAME`. What it cannot tell is in doubt, and never guessed.

mod driver;
mod recipe;
mod request;

use std::fmt;

use backout_model::ports::Fault;
use serde_json::Value;

pub use driver::HandlerDriver;
pub use request::Handled;

/// What a handler found of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is there, and this is what [`CompensationHandler::act`] gave or would have given.
    There(Value),
    /// Nothing of the effect is in the world.
    NotThere,
    /// Nobody looks: what is recorded is believed.
    Unknown,
    /// It was looked for, and the look cannot tell: why.
    Failed(String),
}

/// Says why a handler did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// Nothing happened.
    #[error("{0}")]
    Nothing(String),
    /// Nothing happened, and it may work a moment later.
    #[error("{0}")]
    Busy(String),
    /// It may have happened.
    #[error("it is not known whether it happened: {0}")]
    Unknown(String),
    /// Somebody stopped it, and it may have happened.
    #[error("it is not known whether it happened: {0}")]
    Stopped(String),
    /// Somebody stopped it, and nothing of it stays.
    #[error("{0}")]
    Withdrawn(String),
}

impl Fault for HandlerError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Unknown(_))
    }

    fn is_half_done(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Stopped(_))
    }

    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped(_) | Self::Withdrawn(_))
    }
}

/// An effect of your own, and what answers it. `key` is the same each time one effect is meant, and another for every other.
pub trait CompensationHandler: fmt::Debug + Send + Sync {
    /// Names it. Recipes bear the name: never change it.
    fn name(&self) -> String;

    /// Makes it happen. What it gives is kept for the way back: no secrets.
    fn act(&self, arguments: &Value, key: &str) -> Result<Value, HandlerError>;

    /// Answers it. Twice is once: it may be asked again after a crash.
    fn compensate(&self, arguments: &Value, answer: &Value, key: &str) -> Result<(), HandlerError>;

    /// Says what keeps the effect from being answered now, or made again, if that can be seen beforehand.
    fn hindrance(&self, _arguments: &Value, _again: bool) -> Option<String> {
        None
    }

    /// Looks for the effect. Changes nothing. An answer that is not the recorded one is somebody's change; null and an empty text
    /// are none.
    fn find(&self, _arguments: &Value, _key: &str) -> Found {
        Found::Unknown
    }
}
