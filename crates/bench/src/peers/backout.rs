//! Ourselves, by the command line: each step and each undo is a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Peer, Step, Undone, World, undone};
use crate::Failure;
use crate::process::{run, run_well};

/// The `backout` command.
#[derive(Debug)]
pub(super) struct Backout {
    program: PathBuf,
}

impl Backout {
    pub(super) fn new(program: &Path) -> Self {
        Self {
            program: program.to_path_buf(),
        }
    }

    fn command(&self, world: &World) -> Command {
        let mut command = world.command(&self.program);
        command.env("BACKOUT_STATE_DIR", &world.store);
        command
    }
}

impl Peer for Backout {
    fn name(&self) -> &'static str {
        "**Backout**"
    }

    fn version(&self) -> Result<String, Failure> {
        let ran = run_well(Command::new(&self.program).arg("--version"))?;
        Ok(ran.output.trim().replace("backout ", ""))
    }

    fn how(&self) -> &'static str {
        "`backout write`, `batch` or `rm -r`; `backout undo`"
    }

    fn prepare(&mut self, _world: &World) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure> {
        let mut command = self.command(world);
        match step {
            Step::Remove(at) => command.args(["rm", "-r"]).arg(at),
            Step::Write(at) if world.tree.join(at).is_dir() => {
                command.arg("batch").arg(world.batch())
            }
            Step::Write(at) => command
                .arg("write")
                .arg(at)
                .arg("--from")
                .arg(world.staged.join(at)),
        };
        run_well(&mut command)?;
        Ok(())
    }

    fn undo(&mut self, world: &World, _step: &Step) -> Result<Undone, Failure> {
        Ok(undone(&run(self.command(world).arg("undo"))?))
    }
}
