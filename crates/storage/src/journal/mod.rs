//! The journal: an append-only table of hash-chained records, and the only truth about what happened.
//!
//! - A record is durable before the change it describes begins.
//! - Tables that answer questions (`operation`, `target`, `edge`, …) are updated in the transaction that appends
//!   the record, and could be made again from the records alone.
//! - A broken link in the chain is reported with its place; nothing is skipped silently.
//!
//! Not here: contents (`contents/`), deciding what to undo (`model::plan_undo`). Layout: `docs/format.md`.

mod append;
mod checkpoints;
mod dependency;
mod export;
mod gaps;
mod group;
mod lease;
mod notes;
mod open_acts;
mod project;
mod prompts;
mod proposals;
mod read;
mod rebuild;
mod refs;
mod replay;
mod rollouts;
mod rows;
mod standing;
mod summary;
mod verify;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
pub(crate) mod tests;

pub use verify::slot_is_gone;

pub(crate) use group::Group;
pub(crate) use project::{Mode, project};
pub(crate) use rows::{id_from_sql, id_to_sql, key_from_sql, lsn_from_sql};
