//! A look at the world between two waves of a rollout.

use std::fmt;

use crate::{TargetPath, TaskId, WaveCheck};

/// A wave that was written, and by what it is judged.
#[derive(Debug)]
pub struct WaveLook<'w> {
    /// The check to make.
    pub check: &'w WaveCheck,
    /// The rollout, by its task.
    pub task: &'w TaskId,
    /// The wave, counted from 1.
    pub wave: u32,
    /// What the wave wrote.
    pub targets: &'w [&'w TargetPath],
}

/// Tells whether what a wave wrote does well.
pub trait Probe: fmt::Debug + Send + Sync {
    /// Looks once. Gives what is wrong, if something is. Whatever cannot be looked at does not do well.
    fn look(&self, look: &WaveLook<'_>) -> Option<String>;

    /// Says why a check can never be carried out, before anything is written.
    fn refuses(&self, check: &WaveCheck) -> Option<String>;
}
