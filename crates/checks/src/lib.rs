//! What is wrong with a text that somebody wants to write.
//!
//! - [`Finding`] is the one answer of every check: where, what was found, and what would mend it.
//! - A check gets bytes and gives findings. It opens no file and starts no process. The clock only ends what takes too long.
//! - Whatever a check cannot read is a finding, never a pass. Size and depth are limited, so that a hostile text costs
//!   little.
//!
//! Not here: which check is for which file, and what follows from a finding (`gates`). Design: `docs/design/checks.md`.

pub mod condition;
mod finding;
pub mod iam;
mod nearest;
#[cfg(feature = "rego")]
pub mod rego;
pub mod schema;
pub mod secrets;
pub mod structure;
pub mod syntax;
pub mod value;
pub mod values;

pub use finding::{Finding, Place};
pub use nearest::nearest;
