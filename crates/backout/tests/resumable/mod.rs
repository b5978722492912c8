//! An agent with a plan of several steps, in a process that dies in the middle of one, and the process that goes on.

use std::fs;
use std::path::Path;
use std::process::Command;

use backout::model::{MarkReason, StepAt};
use backout::{Backout, Failure, StepError};

/// Where the agent works, if this process is one.
const AGENT: &str = "BACKOUT_FACADE_AGENT";

/// In which step it dies.
const DIES: &str = "BACKOUT_FACADE_DIES";

const STEPS: u32 = 4;

/// Does what is left of the plan: each step writes a file of its own and a line of a common one.
fn work(base: &Path, dies: Option<u32>) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
    let backout = Backout::open(base.join("state"))?;
    let mut agent = backout.resumable("plan")?;
    let mut done: Vec<u32> = agent.state()?.unwrap_or_default();
    while let Some(number) = agent.next_step().filter(|number| *number <= STEPS) {
        let step = StepAt {
            done: number,
            of: Some(STEPS),
        };
        agent.bracket(step, Some("a file"), &mut done, |backout, done| {
            backout
                .write(base.join(format!("{number}.txt")), "done\n")
                .map_err(|error| error.to_string())?;
            if dies == Some(number) {
                std::process::abort();
            }
            done.push(number);
            let numbers: Vec<String> = done.iter().map(u32::to_string).collect();
            let lines = numbers.join("\n") + "\n";
            let written = backout.write(base.join("all.txt"), lines);
            written.map(drop).map_err(|error| error.to_string())
        })?;
    }
    agent.commit()?;
    Ok(done)
}

#[test]
fn an_agent_in_a_process_of_its_own() {
    let Some(base) = std::env::var_os(AGENT) else {
        return;
    };
    let dies = std::env::var(DIES).ok().and_then(|step| step.parse().ok());
    work(Path::new(&base), dies).unwrap();
}

fn start(base: &Path, dies: Option<u32>) -> bool {
    let mut agent = Command::new(std::env::current_exe().unwrap());
    agent.args(["--exact", "resumable::an_agent_in_a_process_of_its_own"]);
    agent.env(AGENT, base);
    if let Some(step) = dies {
        agent.env(DIES, step.to_string());
    }
    agent.output().unwrap().status.success()
}

#[test]
fn an_agent_that_dies_in_each_of_its_steps_ends_where_an_unbroken_one_does() {
    let world = tempfile::tempdir().unwrap();
    for step in 1..=STEPS {
        assert!(!start(world.path(), Some(step)), "it dies in step {step}");
        let half_done = world.path().join(format!("{step}.txt"));
        assert!(half_done.exists());
        let backout = Backout::open(world.path().join("state")).unwrap();
        let agent = backout.resumable("plan").unwrap();
        assert!(!half_done.exists(), "what was in flight is taken back");
        let resumed = agent.resumed().expect("it was begun");
        assert_eq!(resumed.reverted.len(), 1);
        assert_eq!(agent.next_step(), Some(step));
        let done: Option<Vec<u32>> = agent.state().unwrap();
        assert_eq!(done.unwrap_or_default(), (1..step).collect::<Vec<_>>());
        let point = resumed.checkpoint.resume.as_ref().unwrap();
        assert_eq!(point.decisions.len(), step as usize - 1);
    }
    assert!(start(world.path(), None));
    let all = fs::read_to_string(world.path().join("all.txt")).unwrap();
    assert_eq!(all, "1\n2\n3\n4\n");
}

#[test]
fn a_step_that_fails_leaves_neither_its_writes_nor_its_state() {
    let world = tempfile::tempdir().unwrap();
    let backout = Backout::open(world.path().join("state")).unwrap();
    let mut agent = backout.resumable("plan").unwrap();
    let (kept, lost) = (world.path().join("kept"), world.path().join("lost"));
    let mut state = vec!["begun"];
    let step = |done| StepAt { done, of: Some(2) };
    agent
        .bracket(step(1), None, &mut state, |backout, state| {
            state.push("kept");
            backout.write(&kept, "1\n").map(drop)
        })
        .unwrap();
    let failed = agent.bracket(step(2), None, &mut state, |backout, state| {
        state.push("lost");
        backout
            .write(&lost, "2\n")
            .map_err(|error| error.to_string())?;
        Err::<(), _>("the model gave up".to_owned())
    });
    let said = failed.unwrap_err();
    assert!(matches!(&said, StepError::Step(why) if why == "the model gave up"));
    assert!(kept.exists() && !lost.exists());
    assert_eq!(state, ["begun", "kept"]);
    assert_eq!(agent.next_step(), Some(2));

    // One that wrote nothing has nothing to take back.
    let failed = agent.bracket(step(2), None, &mut state, |_, _| Err::<(), _>("again"));
    assert!(matches!(failed, Err(StepError::Step("again"))));
    agent.commit().unwrap();
    assert!(kept.exists());
}

#[test]
fn a_checkpoint_is_due_after_some_operations_and_finds_the_state_again() {
    let world = tempfile::tempdir().unwrap();
    let backout = Backout::open(world.path().join("state")).unwrap();
    let agent = backout.resumable("plan").unwrap();
    let due = |count: u32| -> Result<bool, Failure> { Ok(agent.mark_if_due(&count)?.is_some()) };
    assert!(!due(0).unwrap());
    for number in 0..10 {
        let path = world.path().join(number.to_string());
        agent.backout().write(path, "x").unwrap();
    }
    assert!(due(10).unwrap());
    assert!(!due(11).unwrap());
    drop(agent);
    let agent = backout.resumable("plan").unwrap();
    assert_eq!(agent.state::<u32>().unwrap(), Some(10));
    let other = agent.state::<String>().unwrap_err();
    assert!(
        other.to_string().contains("is not what is asked for"),
        "{other}"
    );
    agent.mark(&12, MarkReason::Signal).unwrap();
}
