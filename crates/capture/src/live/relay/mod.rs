//! The relay: how a watched process has something done outside of the watch.
//!
//! A watched command may not write our state, so `backout` itself could do nothing inside of it. Instead it asks at the
//! relay, and the process in front, which nobody watches, runs the same program.
//!
//! ```text
//! inside: checks who is there ─► words, directory, three streams ─┐
//! front:  checks who asks ◄───────────────────────────────────────┘ ─► runs `backout WORDS`, gives the exit code
//! ```
//!
//! - Only the program itself can be asked for. Its environment is the front's, with the store, the agent, the task and the
//!   command that the front has. What the caller has set goes to a command that `backout run` starts, and to nobody else.
//! - The caller trusts the front that it was born under: its user, its number and the time it started. The front serves
//!   processes below its command, that have its user, rights, root and mounts. Whoever sits in a sandbox of its own gets
//!   nothing done that the sandbox forbids.
//! - The front never waits for a caller: all is read without blocking, and there is a limit to how many may ask, how long
//!   they may take, and how much they may say.
//!
//! Which words may be asked for is not decided here: the program that is run knows that it was asked ([`asked`]).

mod caller;
mod guest;
mod peer;
mod request;
mod server;

pub use caller::{Outside, ask_outside};
pub use guest::{Guest, asked};
pub use request::{Malformed, Refusal, Request};
pub(super) use server::Relay;

/// The variable that tells where the relay is, and who runs it.
pub const RELAY: &str = "BACKOUT_RELAY";

/// The variable that tells a program that it was asked for through the relay, and where the caller's environment is.
pub const ASKED: &str = "BACKOUT_ASKED";

const STREAMS: usize = 3;
