//! Gates: what lets a staged change pass, or not.
//!
//! - [`Paths`] has the rules of `backout.toml`: which paths nobody writes, and which ones somebody must approve.
//! - [`CommandEscalation`] calls the user's hooks when an undo failed.
//! - A gate looks and changes nothing. A rule that cannot be read refuses: it must not mean that there is none.
//!
//! Not here: what a gate is (`model::ports::Gate`), what becomes of a proposal (`engine`). Design: `docs/design/gates.md`.

mod escalation;
mod paths;
mod patterns;
mod rules;

pub use escalation::CommandEscalation;
pub use paths::Paths;
