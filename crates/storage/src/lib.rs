//! The journal and the contents: the only code that touches our state directory.
//!
//! - [`Store`] is both: one SQLite database with the records and the small images, and beside it packs with
//!   chunks of large ones and depots with whole inodes.
//! - Many short-lived processes use one store at the same time; the database orders their writes.
//! - After a failed sync a store takes no more writes until it is opened again.
//!
//! Not here: what a recipe means (`drivers`), what to undo (`model`), when to do it (`engine`).

mod contents;
mod databases;
mod depots;
mod drivers;
mod error;
mod gc;
mod home;
mod host;
mod journal;
mod notices;
mod owner;
mod ports;
mod repair;
mod reserve;
mod room;
mod sandboxes;
mod schema;
mod state_dir;
mod store;
mod trials;
mod witness;
mod workspaces;

pub use backout_model::ports::{
    ChangedSince, CompactBudget, CompactReport, Filter, GcReport, GcRequest, Holding, Lease,
    LeftBehind, NotUndoable, OfOtherDriver, OperationRef, OutOfReach, PackSalvage, RefError,
    RepairSeen, StorageError, StoreSummary, StoredBy, StoredBytes, VerifyFinding, VerifyReport,
    hurt_images,
};
pub use databases::{Database, databases, write_databases};
pub use journal::slot_is_gone;
pub use notices::{Telling, note_untold, untold};
pub use owner::{is_alive, is_elsewhere, is_from_another_boot, is_paused, process, this_process};
pub use repair::{Salvage, repair_journal};
pub use sandboxes::Sandboxes;
pub use schema::FORMAT;
pub use state_dir::StateDir;
pub use store::Store;
pub use workspaces::Workspaces;
