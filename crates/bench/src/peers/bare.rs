//! No protection at all: what a step costs by itself, without and with a sync. There is no undo.

use std::path::PathBuf;

use super::{Peer, Step, Undone, World};
use crate::Failure;
use crate::process::run_well;

/// The agent alone.
#[derive(Debug)]
pub(super) struct Bare {
    /// Whether what it wrote is synced to the disk.
    pub(super) is_synced: bool,
}

impl Peer for Bare {
    fn name(&self) -> &'static str {
        if self.is_synced {
            "bare, synced"
        } else {
            "bare"
        }
    }

    fn version(&self) -> Result<String, Failure> {
        Ok(String::new())
    }

    fn how(&self) -> &'static str {
        if self.is_synced {
            "`cp` or `rm`, then `sync` of the file and its directory (of the file system for more than one file); no undo"
        } else {
            "`cp` or `rm`; no undo"
        }
    }

    fn prepare(&mut self, _world: &World) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure> {
        world.agent(step)?;
        if self.is_synced {
            let mut sync = world.command("sync");
            let at = world.tree.join(step.at());
            if at.is_file() {
                sync.arg(at.parent().ok_or("a file has a directory")?)
                    .arg(&at);
            } else {
                sync.arg("--file-system").arg(&world.tree);
            }
            run_well(&mut sync)?;
        }
        Ok(())
    }

    fn undo(&mut self, _world: &World, _step: &Step) -> Result<Undone, Failure> {
        Ok(Undone::Refused("there is no undo".to_owned()))
    }

    fn stores(&self, _world: &World) -> Vec<PathBuf> {
        Vec::new()
    }
}
