//! Backout for agents that speak the Model Context Protocol.
//!
//! - A tool is a command of the engine for one agent: its [`Caller`] says who asks and in which directories it may write. No argument
//!   of a tool changes either.
//! - The engine is synchronous and is called on threads of their own. What runs somebody else's program (`run`, `try`) or waits for
//!   a server (`sql`, `http`) is a process of its own, so that it can be ended.
//! - What is answered is the engine's own JSON, and beside it a text that a model can act on.
//! - There is no tool to approve, to let images go, to repair or to undo the work of others.
//!
//! Not here: how the engine is opened and with which gates ([`Host`] is the program around). Design: `docs/design/mcp.md`.

#![expect(
    clippy::result_large_err,
    reason = "a failure carries the whole report, and a call fails once"
)]

mod advice;
mod answer;
mod arguments;
mod call;
mod child;
mod host;
mod own;
mod progress;
mod reach;
mod resources;
mod schema;
mod serve;
mod server;
mod stdin;
mod text;
mod tools;

pub use host::{Caller, Granted, Host, Program};
pub use serve::{HttpService, serve_http, serve_stdio};
pub use server::{Given, Server};
