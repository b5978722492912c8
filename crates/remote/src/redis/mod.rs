//! Keys of a Redis server as targets.
//!
//! - What it brings back: the value and the time to live of every key that a command wrote, exactly, by `DUMP` and `RESTORE`. How often
//!   and when a key was used last is not kept, and who was told by a notification was told.
//! - What it refuses: commands whose keys the server cannot name (`FLUSHALL`, scripts, `SWAPDB`), those that act outside of this database, and
//!   those that wait or speak to other clients (`commands.rs`).
//! - What it relies on: `WATCH` and `MULTI`. The keys are watched from before they are looked at until `EXEC`, so capture and effect are one
//!   step: if somebody writes one of them in between, nothing happens.
//!
//! ```text
//! watch keys and mark ─► dump ─► ARM ─► multi: commands, mark ─► exec ─► second look
//!                                            │ nil: somebody wrote a key; nothing happened
//!                                            │ no answer: the mark tells, or is taken so that it never happens
//! ```
//!
//! The *mark* is a key with the operation's name, written in the same `MULTI` by a script: it holds what each key became (`state.rs`). So a later
//! process knows whether it happened, and whether somebody wrote a key since. It goes by itself after a day.

mod answer;
mod commands;
mod connection;
mod driver;
mod dump;
mod error;
mod recipe;
mod request;
mod server;
mod state;
#[cfg(test)]
mod tests;
mod words;

pub use self::answer::{Answer, Answers};
pub use self::commands::read_only;
pub use self::driver::{REDIS, RedisDriver};
pub use self::error::RedisFault;
pub use self::request::RedisRequest;
pub use self::server::Server;
pub use self::words::{Line, commands_of, name_of};
