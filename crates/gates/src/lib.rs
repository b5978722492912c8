//! Gates: what lets a staged change pass, or not.
//!
//! - [`Paths`] reads every `backout.toml` and has its rules about paths: which nobody writes, and which somebody must approve.
//! - [`Content`] looks at what would be written: syntax, secrets, checks of the user's own, the size and the risk of a change.
//! - [`Watches`] looks at the world after a write, and has services reload.
//! - [`Within`] keeps an agent in the directories that it was given.
//! - [`Hooks`] are called when an undo failed.
//! - [`Written`] tells what becomes of a stage that failed, and of what a dead agent left.
//! - A gate looks and changes nothing. A rule that cannot be read refuses: it must not mean that there is none.
//!
//! Not here: what a gate is (`model::ports::Gate`), what becomes of a proposal (`engine`). Design: `docs/design/gates.md`,
//! `docs/design/checks.md`.

mod braces;
mod calls;
mod content;
mod escalation;
mod hooks;
mod http;
mod notify;
mod other_names;
mod paths;
mod patterns;
mod probe;
mod program;
mod rules;
mod told;
mod triggers;
mod watch;
mod ways;
mod within;

pub use calls::Irreversible;
pub use content::Content;
pub use escalation::Hooks;
pub use hooks::OnHookFailure;
pub use notify::Keeper;
pub use paths::Paths;
pub use probe::WaveProbe;
pub use program::{Asked, Limits, ask_program};
pub use rules::Mistake;
pub use rules::schema::schema;
pub use told::{CheckedFile, Holds, STARTER};
pub use triggers::Written;
pub use watch::Watches;
pub use within::Within;
