//! What the coding agents say on the wire and keep in their settings, in our words.
//!
//! - `read` takes an event as an agent tells it and gives a [`Told`]; fields that are not known are passed over.
//! - `answer` words what we have to say as that agent understands it.
//! - `unwrap` finds the command that was meant in what an agent wraps around it.
//! - `settings` says which keys and files put an agent under protection, and takes them out again.
//!
//! **Invariant**: no I/O. What third parties define stops here. Design: `docs/design/agents.md`.

mod agent;
mod answer;
mod event;
mod patch;
mod read;
pub mod settings;
mod tools;
mod unwrap;

pub use agent::{Agent, UnknownAgent};
pub use answer::{Answer, Reply};
pub use event::{Does, Told, Use, What, call_key};
pub use read::{CHECK, NotAnEvent, read};
pub use unwrap::{Unwrapped, is_own_line, unwrapped};
