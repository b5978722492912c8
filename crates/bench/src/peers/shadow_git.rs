//! What the checkpoints of most coding agents are: a commit of everything in a git directory apart from the user's own.

use std::process::Command;

use super::{Peer, Step, Undone, World, undone};
use crate::Failure;
use crate::process::{run, run_well};

/// A git directory beside the tree.
#[derive(Debug, Default)]
pub(super) struct ShadowGit {
    /// The commit from before the newest step.
    before: String,
}

impl ShadowGit {
    fn git(world: &World) -> Command {
        let mut git = world.command("git");
        git.env("GIT_DIR", world.store.join("git"))
            .env("GIT_WORK_TREE", &world.tree)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "checkpoint")
            .env("GIT_AUTHOR_EMAIL", "checkpoint@localhost")
            .env("GIT_COMMITTER_NAME", "checkpoint")
            .env("GIT_COMMITTER_EMAIL", "checkpoint@localhost");
        git
    }

    fn checkpoint(&mut self, world: &World) -> Result<(), Failure> {
        run_well(Self::git(world).args(["add", "-A", "."]))?;
        run_well(Self::git(world).args([
            "commit",
            "-q",
            "--no-verify",
            "--allow-empty",
            "-m",
            "checkpoint",
        ]))?;
        let head = run_well(Self::git(world).args(["rev-parse", "HEAD"]))?;
        head.output.trim().clone_into(&mut self.before);
        Ok(())
    }
}

impl Peer for ShadowGit {
    fn name(&self) -> &'static str {
        "shadow git"
    }

    fn version(&self) -> Result<String, Failure> {
        let ran = run_well(Command::new("git").arg("--version"))?;
        Ok(ran.output.trim().replace("git version ", ""))
    }

    fn how(&self) -> &'static str {
        "`git add -A`, `git commit` in a git directory of its own; `git reset --hard`, `git clean -fd`"
    }

    fn prepare(&mut self, world: &World) -> Result<(), Failure> {
        run_well(Self::git(world).args(["init", "-q"]))?;
        self.checkpoint(world)
    }

    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure> {
        self.checkpoint(world)?;
        world.agent(step)
    }

    fn undo(&mut self, world: &World, _step: &Step) -> Result<Undone, Failure> {
        let reset = run(Self::git(world).args(["reset", "-q", "--hard", &self.before]))?;
        if !reset.is_success {
            return Ok(undone(&reset));
        }
        Ok(undone(&run(Self::git(world).args(["clean", "-q", "-fd"]))?))
    }
}
