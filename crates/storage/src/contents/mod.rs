//! The contents: images of what was and of what came, each known by its BLAKE3 digest.
//!
//! - A small content is a row: as it is, compressed, or as the difference from a newer version. A large one
//!   is a list of chunks, which lie in packs beside the database. Either may be a reverse change, logged as it was made (`reversed`).
//! - Every read is checked against the digest. What is damaged is reported, never handed out.
//! - How a content is stored may change at any time (`compact`), what it is never does; a reader sees one moment.
//! - Who needs a content is in the table `reference`, written in the transaction that stores it. Only `gc` removes.
//! - Locks: whoever reads or writes packs shares the lock on `contents/`; `gc` takes it alone before it lets go
//!   of a chunk or a file. The lock is taken before a database transaction, never inside one.
//!
//! Not here: whole inodes (`depots`), which content may go (`gc`). Layout: `docs/format.md`.

pub(crate) mod chain;
pub(crate) mod codec;
mod compact;
#[cfg(test)]
pub(crate) mod fixture;
mod holders;
mod many;
mod open;
pub(crate) mod pack;
mod pairs;
mod reversed;
pub(crate) mod rows;
mod sizes;
mod slots;
mod stash;

pub(crate) use rows::{Fault, put};
pub(crate) use sizes::{Kept, add_stored};
pub(crate) use slots::{drop_slots, put_slots};

#[cfg(test)]
mod flaw_tests;
#[cfg(test)]
mod tests;
