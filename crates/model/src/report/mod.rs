//! What people and programs are told when something did not work: what happened, why, what to do next.
//!
//! It is data, so that a driver can say it of its own errors ([`Fault::report`](crate::ports::Fault::report)) and every
//! surface can word it. Each begins without a word of its own for programs: [`ErrorCode::Refused`] and its like.

mod code;
mod next;
mod quote;

use std::error::Error;

use serde::Serialize;

pub use self::code::ErrorCode;
pub use self::next::{Call, Next, Typed};
pub use self::quote::{literal, quoted};
use crate::ports::Reason;
use crate::{OperationId, TargetPath};

/// The exit code that shells give for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// How bad it is, and the exit code that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It was refused or failed; everything is as before, or told line by line.
    Refused,
    /// It was asked wrongly.
    Usage,
    /// The store itself is hurt.
    Broken,
}

/// One report: what happened, why, what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What kind of thing happened, for programs: one of a fixed set of words.
    pub code: ErrorCode,
    /// How bad it is.
    pub severity: Severity,
    /// The operation that the journal has it as, where a program may want to ask about it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// What happened.
    pub what: String,
    /// Why, most general first.
    pub why: Vec<String>,
    /// What to do next, best first.
    pub next: Vec<Next>,
    /// What the gates found, for programs: rule, target, place, key, what was found, what would mend it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

impl Report {
    /// Begins a report of something refused or failed.
    pub fn refused(what: impl Into<String>) -> Self {
        Self::new(Severity::Refused, what)
    }

    /// Begins a report of something asked wrongly.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Severity::Usage, what)
    }

    /// Begins a report of a hurt store.
    pub fn broken(what: impl Into<String>) -> Self {
        Self::new(Severity::Broken, what)
    }

    fn new(severity: Severity, what: impl Into<String>) -> Self {
        let code = match severity {
            Severity::Refused => ErrorCode::Refused,
            Severity::Usage => ErrorCode::Usage,
            Severity::Broken => ErrorCode::Broken,
        };
        Self {
            code,
            severity,
            operation: None,
            what: what.into(),
            why: Vec::new(),
            next: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// Says what kind of thing happened.
    #[must_use]
    pub const fn code(mut self, code: ErrorCode) -> Self {
        self.code = code;
        self
    }

    /// Names the operation.
    #[must_use]
    pub const fn operation(mut self, id: OperationId) -> Self {
        self.operation = Some(id);
        self
    }

    /// Adds a reason.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "errors and texts are given away here"
    )]
    pub fn because(mut self, why: impl ToString) -> Self {
        self.why.push(why.to_string());
        // Two targets of one name stand in the way for one reason.
        self.why.dedup();
        self
    }

    /// Adds everything that caused an error, without the error itself.
    #[must_use]
    pub fn because_of_causes(mut self, error: &dyn Error) -> Self {
        let mut cause = error.source();
        while let Some(inner) = cause {
            self.why.push(inner.to_string());
            cause = inner.source();
        }
        self.why.dedup();
        self
    }

    /// Adds advice that names calls, one for each `{}` in it.
    #[must_use]
    pub fn next_call<const N: usize>(self, advice: impl Into<String>, calls: [Call; N]) -> Self {
        self.next(Next::naming(advice, calls))
    }

    /// Adds advice.
    #[must_use]
    pub fn next(mut self, advice: impl Into<Next>) -> Self {
        self.next.push(advice.into());
        self
    }

    /// Gives the exit code of a program that ends with this report.
    pub fn exit_code(&self) -> u8 {
        if self.code == ErrorCode::Interrupted {
            return INTERRUPTED;
        }
        match self.severity {
            Severity::Refused => 1,
            Severity::Usage => 2,
            Severity::Broken => 3,
        }
    }
}

impl Next {
    /// Names the list of what wrote a path.
    pub fn wrote_it(path: &TargetPath) -> Self {
        Self::naming(
            "see which operations wrote it with {}",
            [Call::log_of(path)],
        )
    }
}
