//! `undo-core`: a checkpoint, paths that are tracked from it on, and a rollback to it.

use std::path::PathBuf;
use std::process::Command;

use super::{Peer, Step, Undone, World, install, undone};
use crate::Failure;
use crate::process::{run, run_well};

/// The `undo` command of the crate `undo-core`.
#[derive(Debug)]
pub(super) struct UndoCore;

impl UndoCore {
    fn command(world: &World) -> Command {
        world.command(install::program("undo"))
    }
}

impl Peer for UndoCore {
    fn name(&self) -> &'static str {
        "undo-core"
    }

    fn version(&self) -> Result<String, Failure> {
        install::version("undo", "undo ")
    }

    fn how(&self) -> &'static str {
        "`undo checkpoint`, `undo track PATH`, the command; `undo rollback`"
    }

    fn prepare(&mut self, world: &World) -> Result<(), Failure> {
        run_well(Self::command(world).arg("init"))?;
        Ok(())
    }

    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure> {
        run_well(Self::command(world).args(["checkpoint", "step"]))?;
        run_well(Self::command(world).arg("track").arg(step.at()))?;
        world.agent(step)
    }

    fn undo(&mut self, world: &World, _step: &Step) -> Result<Undone, Failure> {
        Ok(undone(&run(Self::command(world).arg("rollback"))?))
    }

    fn stores(&self, world: &World) -> Vec<PathBuf> {
        vec![world.tree.join(".undo")]
    }
}
