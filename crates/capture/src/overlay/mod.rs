//! A view of the file system whose writes land in a layer.
//!
//! A command runs in a mount namespace of its own, where every real, writable mount is covered by an overlay: it
//! sees the machine as it is and changes nothing of it. What it wrote is in the upper directories afterwards, and
//! [`walk()`] tells what that means for the real files.
//!
//! - Every mount is one of three things inside: left as it is (`/proc`, `/sys`, `/dev` and their like), layered, or
//!   read-only. None is writable and unlayered.
//! - The layers are `volatile`: the kernel syncs nothing, so a restart of the machine loses them.
//! - As root one overlay per mount is enough. In a user namespace the kernel refuses a lower directory with other
//!   mounts below it; there the directories above mounts are a skeleton, and each directory in them has its own overlay.
//! - Not a prison: what a daemon does on behalf of the command, and what was opened before, is outside.
//!
//! Not here: what becomes of the changes (`engine::trial`), and how a layer is written to the real files (`drivers`).

mod change;
mod clock;
mod compare;
mod error;
mod layer_dir;
mod merge;
mod mountinfo;
mod plan;
mod process;
mod run;
mod skeleton;
mod stack;
mod survivors;
mod sys;
mod touched;
mod walk;
mod xattrs;

pub use change::{Becomes, Change, What};
pub use clock::ClockReference;
pub use compare::is_as_in_layer;
pub use error::OverlayError;
pub use layer_dir::remove;
pub use merge::merge;
pub use mountinfo::{Mount, mounts, parse};
pub use plan::{Layer, LayerKind, Means, Plan};
pub use process::{Ended, Invocation, Streams, Survivors};
pub use run::{Finished, run};
pub use stack::{Above, Stack, Top, moment, plan_of, run_above, settle};
pub use survivors::Survivor;
pub use touched::{Touched, touched};
pub use walk::walk;
pub use xattrs::{attributes, is_private};

#[cfg(test)]
mod tests;
