//! `agent-undo`: a watcher that copies every file that changes, after it changed; hooks tell it whose change it was.
//!
//! A step is over when the watcher has recorded it: before that, an undo would miss a part.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Peer, Step, Undone, World, install, tree, undone};
use crate::Failure;
use crate::process::{run, run_well, run_with_input};

/// The watcher and the `au` command.
#[derive(Debug, Default)]
pub(super) struct AgentUndo {
    steps: usize,
    watcher: Option<Child>,
}

/// How long the watcher gets to record a step.
const PATIENCE: Duration = Duration::from_mins(2);

impl AgentUndo {
    fn command(world: &World) -> Command {
        world.command(install::program("au"))
    }

    fn hook(&self, world: &World, step: &Step, when: &str) -> Result<(), Failure> {
        let event = serde_json::json!({
            "session_id": format!("step-{}", self.steps),
            "tool_name": "Write",
            "tool_input": {"file_path": world.tree.join(step.at())},
        });
        run_with_input(
            Self::command(world).args(["hook", when]),
            &event.to_string(),
        )?;
        Ok(())
    }

    /// Waits until the watcher's table says what the tree says.
    fn wait_for_watcher(world: &World, paths: &[PathBuf]) -> Result<(), Failure> {
        let table = rusqlite::Connection::open_with_flags(
            world.tree.join(".agent-undo/timeline.db"),
            rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
        )?;
        table.busy_timeout(PATIENCE)?;
        let mut known = table.prepare("SELECT latest_size FROM file_state WHERE path = ?1")?;
        let begun = Instant::now();
        for path in paths {
            let name = path.display().to_string();
            let size =
                |path: &PathBuf| world.tree.join(path).metadata().ok().map(|file| file.len());
            loop {
                let recorded = known.query_row([&name], |row| row.get::<_, u64>(0)).ok();
                if recorded == size(path) {
                    break;
                }
                if begun.elapsed() > PATIENCE {
                    return Err(format!("the watcher did not notice {name}").into());
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }
}

/// The files that a step touches, while they are there.
fn touched(world: &World, step: &Step) -> Result<Vec<PathBuf>, Failure> {
    let at = world.tree.join(step.at());
    if !at.is_dir() {
        return Ok(vec![step.at().to_path_buf()]);
    }
    let inside = tree::files_below(&at)?;
    Ok(inside
        .into_iter()
        .map(|path| step.at().join(path))
        .collect())
}

impl Peer for AgentUndo {
    fn name(&self) -> &'static str {
        "agent-undo"
    }

    fn version(&self) -> Result<String, Failure> {
        install::version("au", "au ")
    }

    fn how(&self) -> &'static str {
        "`au serve` watches; `au hook pre`, the command, until it is recorded, `au hook post`; `au restore --session`; for a \
         removal, which no session records, `au pin` before and `au unpin` after"
    }

    fn prepare(&mut self, world: &World) -> Result<(), Failure> {
        run_well(Self::command(world).arg("init"))?;
        self.watcher = Some(
            Command::new(install::program("au"))
                .arg("serve")
                .current_dir(&world.tree)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?,
        );
        // It says nothing when it has begun: a file that comes and goes shows it.
        let sign = world.tree.join("watched");
        let begun = Instant::now();
        loop {
            std::fs::write(&sign, format!("{:?}", begun.elapsed()))?;
            std::thread::sleep(Duration::from_millis(100));
            if run(Self::command(world).args(["log", "-n", "5"]))?
                .output
                .contains("watched")
            {
                break;
            }
            if begun.elapsed() > PATIENCE {
                return Err("the watcher did not begin".into());
            }
        }
        std::fs::remove_file(&sign)?;
        Self::wait_for_watcher(world, &["watched".into()])
    }

    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure> {
        self.steps += 1;
        let paths = touched(world, step)?;
        if matches!(step, Step::Remove(_)) {
            let label = format!("step-{}", self.steps);
            run_well(Self::command(world).args(["pin", &label]))?;
        }
        self.hook(world, step, "pre")?;
        world.agent(step)?;
        Self::wait_for_watcher(world, &paths)?;
        self.hook(world, step, "post")
    }

    fn undo(&mut self, world: &World, step: &Step) -> Result<Undone, Failure> {
        let label = format!("step-{}", self.steps);
        let mut command = Self::command(world);
        match step {
            Step::Write(_) => command.args(["restore", "--session", &label]),
            Step::Remove(_) => command.args(["unpin", &label]),
        };
        Ok(undone(&run(&mut command)?))
    }

    fn stores(&self, world: &World) -> Vec<PathBuf> {
        vec![world.tree.join(".agent-undo")]
    }
}

impl Drop for AgentUndo {
    fn drop(&mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            let _killed = watcher.kill();
            let _waited = watcher.wait();
        }
    }
}
