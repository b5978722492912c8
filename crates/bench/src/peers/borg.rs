//! `borg`: an archive of the tree before each step, and an extraction of what the step touched.

use std::process::Command;

use super::{Peer, Step, Undone, World, undone};
use crate::Failure;
use crate::process::{run, run_well};

/// A repository beside the tree.
#[derive(Debug, Default)]
pub(super) struct Borg {
    archives: usize,
}

impl Borg {
    /// The command works in the tree; archives hold paths relative to it.
    fn command(world: &World) -> Command {
        let mut command = world.command("borg");
        command
            .env("BORG_REPO", world.store.join("repository"))
            .env("BORG_BASE_DIR", world.store.join("home"))
            .env("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes");
        command
    }

    fn archive(&mut self, world: &World) -> Result<(), Failure> {
        self.archives += 1;
        let mut create = Self::command(world);
        create
            .arg("create")
            .arg(format!("::{}", self.archives))
            .arg(".");
        run_well(&mut create)?;
        Ok(())
    }
}

impl Peer for Borg {
    fn name(&self) -> &'static str {
        "borg"
    }

    fn version(&self) -> Result<String, Failure> {
        let ran = run_well(Command::new("borg").arg("--version"))?;
        Ok(ran.output.trim().replace("borg ", ""))
    }

    fn how(&self) -> &'static str {
        "`borg create` of the tree; `borg extract --sparse PATH`"
    }

    fn prepare(&mut self, world: &World) -> Result<(), Failure> {
        std::fs::create_dir_all(world.store.join("home"))?;
        run_well(Self::command(world).args(["init", "--encryption", "none"]))?;
        self.archive(world)
    }

    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure> {
        self.archive(world)?;
        world.agent(step)
    }

    fn undo(&mut self, world: &World, step: &Step) -> Result<Undone, Failure> {
        let ran = run(Self::command(world)
            .args(["extract", "--sparse"])
            .arg(format!("::{}", self.archives))
            .arg(step.at()))?;
        Ok(undone(&ran))
    }
}
