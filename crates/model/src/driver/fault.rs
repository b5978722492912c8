//! What went wrong in a driver, with what the engine has to know of it.

use std::any::Any;
use std::error::Error;
use std::fmt;

use crate::report::Report;

/// What went wrong, with what the engine has to know of it.
pub trait Fault: Error + Any + Send + Sync {
    /// Tells whether somebody stopped the work.
    fn is_stop(&self) -> bool {
        false
    }

    /// Tells whether the same may work a moment later.
    fn may_pass(&self) -> bool {
        false
    }

    /// Tells whether a part of the effect may stay although it failed.
    fn is_half_done(&self) -> bool {
        false
    }

    /// Says why the strategy that was asked for cannot be prepared, if it is only that.
    fn not_prepared(&self) -> Option<String> {
        None
    }

    /// Says why what is needed is out of reach although it may well be there, if it is that.
    fn out_of_reach(&self) -> Option<&str> {
        None
    }

    /// Says what to do next, if the driver knows.
    fn advice(&self) -> Option<String> {
        None
    }

    /// Names what cannot be brought back since nobody has what it was, and says why, if it is that.
    fn lost(&self) -> Option<(&str, &str)> {
        None
    }

    /// Says what of the driver's own stays although every target is as before, if something does.
    fn left_over(&self) -> Option<LeftOver> {
        None
    }

    /// Tells it to people and programs in the driver's own words; none if the rest says all that there is to say.
    fn report(&self) -> Option<Report> {
        None
    }
}

/// Something of a driver's own that stays although every target is as before.
#[derive(Debug)]
pub struct LeftOver {
    /// What stays, and why.
    pub what: String,
    /// What went wrong first.
    pub began_by: Report,
}

/// What a driver could not do. Nothing was changed, unless the fault says so.
pub struct DriverError(Box<dyn Fault>);

impl DriverError {
    /// Wraps a fault.
    pub fn new(fault: impl Fault) -> Self {
        Self(Box::new(fault))
    }

    /// Says that something failed, and that what was done before it could not be put back.
    pub fn half_done(cause: impl Error + Send + Sync + 'static) -> Self {
        Self::new(HalfDone(Box::new(cause)))
    }

    /// Gives what the engine has to know.
    pub fn fault(&self) -> &dyn Fault {
        &*self.0
    }

    /// Gives the driver's own error, if it is of this type.
    pub fn as_a<F: Fault>(&self) -> Option<&F> {
        let it: &dyn Any = &*self.0;
        it.downcast_ref()
    }
}

impl fmt::Debug for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for DriverError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// A part of an effect stays although it failed.
#[derive(Debug, thiserror::Error)]
#[error("a part was done and could not be put back")]
struct HalfDone(#[source] Box<dyn Error + Send + Sync>);

impl Fault for HalfDone {
    fn is_half_done(&self) -> bool {
        true
    }
}

/// A request or something staged came to a driver that does not know it.
#[derive(Debug, thiserror::Error)]
#[error("the driver does not know this request: {request}")]
pub(super) struct WrongRequest {
    pub(super) request: String,
}

impl Fault for WrongRequest {}
