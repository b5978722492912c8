//! Drivers whose targets answer over a socket. They are a crate of their own because their clients are heavy, and nobody who
//! writes files should have to compile them.
//!
//! - A recipe holds no password and no token: it says where to ask for one.
//! - What a server cannot tell for certain is in doubt, never guessed.
//!
//! Each folder has the same files: `request.rs`, `recipe.rs`, `driver.rs`, `tests.rs`. What databases have in common is beside
//! them: `rows`, `secret.rs`, `tls.rs`. Design: `docs/design/data.md`.

#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "mysql")]
pub mod mysql;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redis")]
pub mod redis;
pub mod rows;
pub mod secret;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod tls;
