//! What a checkpoint costs: of a command in a sandbox, and of a whole directory.
//!
//! The other side is what a user would take instead: `docker commit` with a new container, a commit in a shadow git directory,
//! the bare command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::{Duration, Instant};

use backout_engine::{
    CheckpointCommand, Command, Engine, OnFailure, Reply, SandboxCommand, SandboxKeep,
    SandboxStart, SandboxTask, Selection, Settings,
};
use backout_model::TargetPath;

use crate::Failure;
use crate::docker::commit_and_recreate;
use crate::durable::median;
use crate::process::{run, run_well};
use crate::report::Row;

const ROUNDS: usize = 15;
const FILES: usize = 50_000;
const NEW_FILES: usize = 4_333;

/// Measures all of it.
pub(crate) fn measure(directory: &Path) -> Result<Vec<Row>, Failure> {
    let (mut rows, failing) = depths(directory)?;
    rows.push(docker(directory, failing)?);
    rows.extend(workspace(directory)?);
    rows.push(apply(directory)?);
    Ok(rows)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn begin(engine: &Engine, directory: &Path, name: &str) -> Result<(), Failure> {
    engine.execute(Command::Sandbox(SandboxCommand::Start(SandboxStart {
        name: Some(name.to_owned()),
        directory: directory.to_path_buf(),
        roots: Vec::new(),
        has_no_network: false,
        keep: SandboxKeep::default(),
    })))?;
    Ok(())
}

fn exec(engine: &Engine, name: &str, words: &[&str]) -> Result<(), Failure> {
    let task = SandboxTask {
        command: words.iter().map(Into::into).collect(),
        is_line: false,
        time_max: None,
        on_failure: OnFailure::Rollback,
        keeps_output: true,
    };
    let name = Some(name.to_owned());
    engine.execute(Command::Sandbox(SandboxCommand::Exec { name, task }))?;
    Ok(())
}

/// The bare program, a command that fails, and a rollback, above so many checkpoints. Gives the time of such a command above
/// one, too.
fn depths(directory: &Path) -> Result<(Vec<Row>, Duration), Failure> {
    let work = directory.join("work");
    fs::create_dir(&work)?;
    let engine = Engine::open(
        Settings::new(directory.join("state")),
        backout_drivers::local,
    )?;
    begin(&engine, &work, "deep")?;
    let (mut rows, mut made) = (Vec::new(), 0);
    let mut first = None;
    for depth in [1_u64, 20, 200] {
        while made < depth {
            exec(&engine, "deep", &["touch", &format!("f{made}")])?;
            made += 1;
        }
        let (mut bare, mut failing, mut back) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            run(Program::new("false").current_dir(&work))?;
            bare.push(begun.elapsed());
            let begun = Instant::now();
            exec(&engine, "deep", &["false"])?;
            failing.push(begun.elapsed());
            let begun = Instant::now();
            engine.execute(Command::Sandbox(SandboxCommand::Rollback {
                name: Some("deep".to_owned()),
                checkpoint: depth.to_string(),
            }))?;
            back.push(begun.elapsed());
        }
        let (bare, failing, back) = (median(&mut bare), median(&mut failing), median(&mut back));
        first.get_or_insert(failing);
        let most = Duration::from_millis(5);
        let own = failing.saturating_sub(bare);
        rows.push(Row {
            work: format!(
                "a failing command in a sandbox, checkpoint and rollback, above {depth} checkpoints"
            ),
            measured: format!(
                "{:.1} ms over the bare command ({:.1} ms); a rollback by number {:.1} ms",
                milliseconds(own),
                milliseconds(bare),
                milliseconds(back)
            ),
            promise: "≤ 5 ms each".to_owned(),
            kept: Some(own <= most && back <= most),
        });
    }
    let name = Some("deep".to_owned());
    let is_discarding = true;
    engine.execute(Command::Sandbox(SandboxCommand::End {
        name,
        is_discarding,
    }))?;
    Ok((rows, first.unwrap_or_default()))
}

/// Commit, removal and a new container, against a failing command in a sandbox: both end where they began.
fn docker(directory: &Path, own: Duration) -> Result<Row, Failure> {
    let (measured, kept) = match commit_and_recreate(directory)? {
        Err(why) => (format!("not measured: {why}"), None),
        Ok(theirs) => {
            let ratio = theirs.as_secs_f64() / own.as_secs_f64();
            let text = format!(
                "a sandbox is {ratio:.0} × faster ({:.1} ms against {:.0} ms, the command itself included)",
                milliseconds(own),
                milliseconds(theirs)
            );
            (text, Some(ratio >= 100.0))
        }
    };
    Ok(Row {
        work: "a failing command, with Docker: commit, remove, recreate".to_owned(),
        measured,
        promise: "≥ 100 × faster".to_owned(),
        kept,
    })
}

fn git(directory: &Path, tree: &Path) -> Program {
    let mut git = Program::new("git");
    git.current_dir(tree)
        .env("GIT_DIR", directory.join("git"))
        .env("GIT_WORK_TREE", tree)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "checkpoint")
        .env("GIT_AUTHOR_EMAIL", "checkpoint@localhost")
        .env("GIT_COMMITTER_NAME", "checkpoint")
        .env("GIT_COMMITTER_EMAIL", "checkpoint@localhost");
    git
}

fn commit(directory: &Path, tree: &Path) -> Result<Duration, Failure> {
    let begun = Instant::now();
    run_well(git(directory, tree).args(["add", "-A", "."]))?;
    run_well(git(directory, tree).args([
        "commit",
        "-q",
        "--no-verify",
        "--allow-empty",
        "-m",
        "x",
    ]))?;
    Ok(begun.elapsed())
}

fn keep(engine: &Engine, tree: &Path) -> Result<(Duration, u64), Failure> {
    let begun = Instant::now();
    let reply = engine.execute(Command::Checkpoint(CheckpointCommand::Keep {
        name: Some("bench".parse()?),
        state: serde_json::Value::Null,
        roots: vec![TargetPath::new(tree)?],
        resume: None,
    }))?;
    let time = begun.elapsed();
    let Reply::WorkspaceKept(kept) = reply else {
        return Err("no checkpoint was kept".into());
    };
    Ok((time, kept.stored_bytes))
}

/// A directory of 50 000 files with one change, in turns with a shadow git directory.
fn workspace(directory: &Path) -> Result<Vec<Row>, Failure> {
    let tree = directory.join("tree").canonicalize().or_else(|_| {
        fs::create_dir(directory.join("tree"))?;
        directory.join("tree").canonicalize()
    })?;
    for number in 0..FILES {
        let place = tree.join(format!("d{}/e{}", number / 2500, number / 100));
        if number % 100 == 0 {
            fs::create_dir_all(&place)?;
        }
        fs::write(
            place.join(format!("f{number}")),
            format!("file {number}\n").repeat(20),
        )?;
    }
    let engine = Engine::open(
        Settings::new(directory.join("kept")),
        backout_drivers::local,
    )?;
    run_well(git(directory, &tree).args(["init", "-q"]))?;
    let (first_git, (first, first_bytes)) = (commit(directory, &tree)?, keep(&engine, &tree)?);
    // What was written within the tick of the first is read once more.
    keep(&engine, &tree)?;
    let changed: PathBuf = tree.join("d3/e80/f8007");
    let (mut theirs, mut ours, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        fs::write(&changed, format!("round {round}\n"))?;
        theirs.push(commit(directory, &tree)?);
        let (time, stored) = keep(&engine, &tree)?;
        ours.push(time);
        bytes.push(stored);
    }
    bytes.sort_unstable();
    let (theirs, ours) = (median(&mut theirs), median(&mut ours));
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    let stored = bytes.get(ROUNDS / 2).copied().unwrap_or_default();
    Ok(vec![
        Row {
            work: format!("a workspace checkpoint of {FILES} files, one changed"),
            measured: format!(
                "{ratio:.1} × faster than a shadow-git commit ({:.0} ms against {:.0} ms), {stored} bytes stored",
                milliseconds(ours),
                milliseconds(theirs)
            ),
            promise: "≥ 20 × faster".to_owned(),
            kept: Some(ratio >= 20.0),
        },
        Row {
            work: "the first one of it".to_owned(),
            measured: format!(
                "{:.0} ms against {:.0} ms, {} KiB stored",
                milliseconds(first),
                milliseconds(first_git),
                first_bytes / 1024
            ),
            promise: String::new(),
            kept: None,
        },
    ])
}

/// Makes the new files that a command wrote real, against the command itself.
fn apply(directory: &Path) -> Result<Row, Failure> {
    let work = directory.join("applied");
    fs::create_dir(&work)?;
    let line = format!(
        "mkdir $0 && cd $0 && for d in $(seq 1 43); do mkdir d$d; for f in $(seq 1 {}); do echo content of $d $f > d$d/$f; done; done",
        NEW_FILES / 43
    );
    let begun = Instant::now();
    run_well(
        Program::new("sh")
            .args(["-c", &line, "bare"])
            .current_dir(&work),
    )?;
    let bare = begun.elapsed();
    let engine = Engine::open(
        Settings::new(directory.join("applying")),
        backout_drivers::local,
    )?;
    begin(&engine, &work, "many")?;
    exec(&engine, "many", &["sh", "-c", &line, "layered"])?;
    let begun = Instant::now();
    engine.execute(Command::Sandbox(SandboxCommand::Apply {
        name: Some("many".to_owned()),
        selection: Selection::default(),
    }))?;
    let applied = begun.elapsed();
    let ratio = applied.as_secs_f64() / bare.as_secs_f64();
    Ok(Row {
        work: format!("applying a layer with {NEW_FILES} new files"),
        measured: format!(
            "{ratio:.1} × the bare command ({:.0} ms against {:.0} ms)",
            milliseconds(applied),
            milliseconds(bare)
        ),
        promise: "≤ 1.5 ×".to_owned(),
        kept: Some(ratio <= 1.5),
    })
}
