//! `backout serve`: HTTP over the engine, with roles, events and a page.
//!
//! - Every request becomes a command of the engine, carried out on a thread of its own by a handle of its own. Async code is here
//!   and in `mcp`, and nowhere else.
//! - Who asks is settled first (`auth`), what he may ask is one table (`roles`), what is his own is looked up before and after (`own`).
//! - The contract is `docs/design/serve.md`; the table in `routes` makes the router and the `OpenAPI` document.
//!
//! Not here: what a command does (`engine`), which drivers and gates there are (`cli` brings the opened engine along).

mod answer;
mod app;
mod ask;
mod auth;
mod caller;
mod client;
mod limits;
mod listen;
mod metrics;
mod mount;
mod openapi;
mod otlp;
mod own;
mod page;
mod place;
mod roles;
mod routes;
mod server;
mod sessions;
mod stream;
mod tls;
mod tokens;
mod watch;

pub use app::Program;
pub use axum::Router;
pub use caller::{Caller, Role, Way};
pub use client::link;
pub use limits::Patience;
pub use listen::Lineage;
pub use mount::mounted;
pub use openapi::text as openapi;
pub use otlp::Collector;
pub use place::{Place, Serving};
pub use server::{Options, serve};
pub use tls::Tls;
pub use tokens::{Token, Tokens};
