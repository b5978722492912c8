//! `cp -a` of exactly what will be touched, by somebody who knows beforehand.

use super::{Peer, Step, Undone, World, undone};
use crate::Failure;
use crate::process::{run, run_well};

/// A copy per step.
#[derive(Debug, Default)]
pub(super) struct Copy {
    steps: usize,
}

impl Peer for Copy {
    fn name(&self) -> &'static str {
        "`cp -a`"
    }

    fn version(&self) -> Result<String, Failure> {
        let ran = run_well(std::process::Command::new("cp").arg("--version"))?;
        let line = ran.output.lines().next().unwrap_or_default().to_owned();
        Ok(line.replace("cp (GNU coreutils) ", ""))
    }

    fn how(&self) -> &'static str {
        "`cp -a --parents` of what will be touched; `cp -a` back"
    }

    fn prepare(&mut self, _world: &World) -> Result<(), Failure> {
        Ok(())
    }

    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure> {
        self.steps += 1;
        let kept = world.store.join(self.steps.to_string());
        std::fs::create_dir(&kept)?;
        let mut copy = world.command("cp");
        copy.args(["-a", "--parents"]).arg(step.at()).arg(&kept);
        run_well(&mut copy)?;
        world.agent(step)
    }

    fn undo(&mut self, world: &World, _step: &Step) -> Result<Undone, Failure> {
        let kept = world.store.join(self.steps.to_string());
        let mut copy = world.command("cp");
        copy.args(["-a", "--remove-destination"])
            .arg(kept.join("."))
            .arg(".");
        Ok(undone(&run(&mut copy)?))
    }
}
