//! Calls of web services, with the calls that answer them.
//!
//! - A thing that a service lets us look at (`capture`) is put back as it was, and compared: *restored*. Any other call is answered
//!   by the call that a `[[compensation]]` names: *compensated*.
//! - Whether a call happened whose answer was lost is found out by sending it again under its key, or by a look. Where neither can
//!   tell, it is in doubt; it is never answered on a guess.
//! - A recipe holds `${env:NAME}` where a secret goes. Of an answer it keeps the fields that the way back needs, and no others.
//!
//! - What others made of the thing since is a conflict where it can be seen; what a forced undo takes away is kept, and a redo brings it
//!   back.
//!
//! What others saw between a call and its answer stays so. Design: `docs/design/data.md`.

mod address;
mod answer;
mod client;
mod driver;
mod error;
mod facts;
mod look;
mod lost;
mod recipe;
mod request;
mod secrets;
mod send;
mod settled;
mod thing;
mod told;
mod undo;

pub use address::Address;
pub use client::Answer;
pub use driver::HttpDriver;
pub use error::HttpError;
pub use recipe::HTTP;
pub use request::{Heard, HttpRequest, TIMEOUT_MS};
pub use secrets::{hidden, is_secret_header};
