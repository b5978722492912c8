//! `restic`: a backup of the tree before each step, and a restore of what the step touched.

use std::process::Command;

use super::{Peer, Step, Undone, World, undone};
use crate::Failure;
use crate::process::{run, run_well};

/// A repository beside the tree.
#[derive(Debug)]
pub(super) struct Restic;

impl Restic {
    fn command(world: &World) -> Command {
        let mut command = world.command("restic");
        command
            .arg("--quiet")
            .env("RESTIC_REPOSITORY", world.store.join("repository"))
            .env("RESTIC_PASSWORD", "race")
            .env("RESTIC_CACHE_DIR", world.store.join("cache"));
        command
    }

    fn backup(world: &World) -> Result<(), Failure> {
        run_well(Self::command(world).arg("backup").arg(&world.tree))?;
        Ok(())
    }
}

impl Peer for Restic {
    fn name(&self) -> &'static str {
        "restic"
    }

    fn version(&self) -> Result<String, Failure> {
        let ran = run_well(Command::new("restic").arg("version"))?;
        Ok(ran.output.split(' ').nth(1).unwrap_or_default().to_owned())
    }

    fn how(&self) -> &'static str {
        "`restic backup` of the tree; `restic restore --include PATH`"
    }

    fn prepare(&mut self, world: &World) -> Result<(), Failure> {
        run_well(Self::command(world).arg("init"))?;
        Self::backup(world)
    }

    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure> {
        Self::backup(world)?;
        world.agent(step)
    }

    fn undo(&mut self, world: &World, step: &Step) -> Result<Undone, Failure> {
        let ran = run(Self::command(world)
            .args(["restore", "latest", "--target", "/", "--include"])
            .arg(world.tree.join(step.at())))?;
        Ok(undone(&ran))
    }
}
