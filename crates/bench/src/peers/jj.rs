//! `jj`: the state before a step is one commit, the step another; the undo drops the step's commit and keeps what came later.

use std::path::PathBuf;
use std::process::Command;

use super::{Peer, Step, Undone, World, install, undone};
use crate::Failure;
use crate::process::{run, run_well};

/// A repository of `jj` in the tree.
#[derive(Debug)]
pub(super) struct Jj;

/// The default leaves out files of more than 1 MiB.
const SETTINGS: &str = "snapshot.max-new-file-size = \"1GiB\"\nui.paginate = \"never\"\n";

impl Jj {
    fn command(world: &World) -> Command {
        let mut command = world.command(install::program("jj"));
        command
            .env("JJ_CONFIG", world.store.join("settings.toml"))
            .env("JJ_USER", "race")
            .env("JJ_EMAIL", "race@localhost");
        command
    }

    fn commit(world: &World, message: &str) -> Result<(), Failure> {
        run_well(Self::command(world).args(["--quiet", "commit", "-m", message]))?;
        Ok(())
    }
}

impl Peer for Jj {
    fn name(&self) -> &'static str {
        "jj"
    }

    fn version(&self) -> Result<String, Failure> {
        install::version("jj", "jj ")
    }

    fn how(&self) -> &'static str {
        "`jj commit`, the command, `jj commit`; `jj abandon @-`"
    }

    fn prepare(&mut self, world: &World) -> Result<(), Failure> {
        std::fs::write(world.store.join("settings.toml"), SETTINGS)?;
        run_well(Self::command(world).args(["git", "init", "--no-colocate"]))?;
        Self::commit(world, "base")
    }

    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure> {
        Self::commit(world, "before")?;
        world.agent(step)?;
        Self::commit(world, "step")
    }

    fn undo(&mut self, world: &World, _step: &Step) -> Result<Undone, Failure> {
        Ok(undone(&run(Self::command(world).args(["abandon", "@-"]))?))
    }

    fn stores(&self, world: &World) -> Vec<PathBuf> {
        vec![world.tree.join(".jj")]
    }
}
