//! Errors: every file-system call of an operation fails in turn, and the world is as before or as after.
//!
//! By default each call meets one of the errors; `cargo xtask crash --errors` tries every call with every error.

mod calls;
mod climbing;
mod told;
mod tracer;

use nix::errno::Errno;
use tracer::{Fault, Ran, run};

use crate::world::{Tree, World};

const FAULTS: [Fault; 5] = [
    Fault::Fails(Errno::EIO),
    Fault::Fails(Errno::ENOSPC),
    Fault::Fails(Errno::EINTR),
    Fault::Fails(Errno::EMFILE),
    Fault::ShortWrite,
];

/// Of so many calls each is tried by default.
const STRIDE: usize = 4;

/// What is done before, whether it is cut off there, and the command whose calls fail.
struct Workload {
    before: &'static [&'static [&'static str]],
    cut_off: Option<(&'static [&'static str], &'static str)>,
    command: &'static [&'static str],
}

macro_rules! workloads {
    ($($name:ident: $before:expr, $cut_off:expr => $command:expr;)*) => {
        $(
            #[test]
            fn $name() {
                sweep(&Workload { before: $before, cut_off: $cut_off, command: $command });
            }
        )*
    };
}

const SMALL: &[&str] = &["write", "app.toml", "--text", "port = 1\n"];
const LARGE: &[&str] = &["write", "large.bin", "--text", "small now"];
const TREE: &[&str] = &["rm", "-r", "src"];
const BATCH_COMMAND: &[&str] = &["batch", "../batch.json"];

workloads! {
    a_small_write: &[], None => SMALL;
    a_large_write: &[], None => LARGE;
    a_batch: &[], None => BATCH_COMMAND;
    a_removed_tree: &[], None => TREE;
    a_copied_tree: &[], None => &["cp", "-r", "src", "copied"];
    an_undo_of_a_small_write: &[SMALL], None => &["undo"];
    an_undo_of_a_large_write: &[LARGE], None => &["undo"];
    an_undo_of_a_removed_tree: &[TREE], None => &["undo"];
    an_undo_of_a_batch: &[BATCH_COMMAND], None => &["undo"];
    a_redo: &[TREE, &["undo"]], None => &["redo"];
    a_collection: &[
        SMALL,
        &["write", "app.toml", "--text", "port = 2\n"],
        LARGE,
        TREE,
        &["undo"],
    ], None => &["gc", "--keep", "0s", "--keep-at-least", "0s", "--audit", "0s"];
    a_compaction: &[
        &["write", "app.toml", "--text", "one and more of the same text\n"],
        &["write", "app.toml", "--text", "two and more of the same text\n"],
        &["write", "app.toml", "--text", "three and more of the same text\n"],
    ], None => &["gc"];
    a_command: &[], None => &["run", "--", "rm", "large.bin"];
    an_undo_of_a_command: &[&["run", "--", "sh", "-c", "rm -r src; echo x > app.toml"]], None => &["undo"];
    an_applied_trial: &[&["try", "--", "sh", "-c", "rm -r src; echo x > app.toml"]], None => &["try", "--apply"];
    a_recovery_of_a_command: &[], Some((&["run", "--", "sh", "-c", "rm -r src; echo x > app.toml"], "run.ended")) => &["recover"];
    a_recovery_of_a_write: &[], Some((LARGE, "file.applied")) => &["recover"];
    a_recovery_of_a_removed_tree: &[], Some((TREE, "file.applied")) => &["recover"];
    a_recovery_of_an_undo: &[TREE], Some((&["undo"], "file.made")) => &["recover"];
}

const BATCH: &str = r#"{"changes": [
    {"write": {"path": "batch/one", "text": "1", "parents": true}},
    {"write": {"path": "app.toml", "text": "port = 5\n"}},
    {"remove": {"path": "run.sh"}},
    {"move": {"from": "large.bin", "to": "batch/large"}}]}"#;

fn prepared(workload: &Workload) -> World {
    let world = World::in_memory().with_project();
    std::fs::write(world.scratch("batch.json"), BATCH).unwrap();
    for command in workload.before {
        world.ok(command);
    }
    world.ok(&["recover"]); // whoever only looks makes no store
    if let Some((command, point)) = workload.cut_off {
        let mut command = world.command(command);
        let status = command.env("BACKOUT_CRASH_AT", point).status().unwrap();
        assert!(!status.success(), "{point} is passed");
    }
    world
}

/// Lets every call fail in turn.
fn sweep(workload: &Workload) {
    let world = prepared(workload);
    let quiet = run(&world.command(workload.command), |_| true, None);
    assert_eq!(quiet.code, Some(0), "{}", quiet.said);
    let after = world.tree().without_times();
    let is_full = std::env::var_os("BACKOUT_EVERY_ERROR").is_some();
    let mut tried = 0;
    let mut wrong = Vec::new();
    for number in 1..=quiet.calls {
        for (index, fault) in FAULTS.into_iter().enumerate() {
            if !is_full && (number / STRIDE % FAULTS.len() != index || number % STRIDE != 0) {
                continue;
            }
            match meet(workload, (number, fault), &after) {
                Ok(was_hit) => tried += usize::from(was_hit),
                Err(why) => wrong.push(format!("{fault:?} at call {number}: {why}")),
            }
        }
    }
    eprintln!(
        "{} calls, {tried} faults, {} wrong",
        quiet.calls,
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Tells whether the fault was met, or what was wrong afterwards.
fn meet(workload: &Workload, fault: (usize, Fault), after: &Tree) -> Result<bool, String> {
    let world = prepared(workload);
    let before = world.tree().without_directory_times();
    let ran = run(&world.command(workload.command), |_| true, Some(fault));
    let Some(hit) = &ran.hit else {
        return Ok(false);
    };
    judge(workload, &world, (&ran, &fault.1), &before, after)
        .map(|()| true)
        .map_err(|why| format!("{hit}: {why}\nexit {:?}: {}", ran.code, ran.said))
}

fn judge(
    workload: &Workload,
    world: &World,
    (ran, fault): (&Ran, &Fault),
    before: &Tree,
    after: &Tree,
) -> Result<(), String> {
    let is_sync = ran.hit.as_ref().is_some_and(|hit| calls::syncs(hit.name));
    let at_once = world.tree().without_times();
    match ran.code {
        // An owner that could not be looked at counts as alive.
        Some(0) if ran.said.contains("left alone") => {}
        Some(0) if at_once != *after => {
            return Err(format!("it says done, but\n{}", at_once.difference(after)));
        }
        // One that was only interrupted may be asked again.
        Some(0) if is_sync && *fault != Fault::Fails(Errno::EINTR) => {
            return Err("it goes on after a failed sync".to_owned());
        }
        Some(1..=3) if ran.said.trim().is_empty() => return Err("it says nothing".to_owned()),
        // With the last two the loader could not start the program at all.
        Some(0..=3 | 126 | 127) => {}
        _ => return Err("it did not end by itself".to_owned()),
    }
    let output = world.run(&["recover"]);
    if !output.status.success() {
        return Err(format!("recover: {}", crate::world::said(&output)));
    }
    let now = world.tree().without_directory_times();
    let is_after = now.clone().without_times() == *after;
    // What was being recovered stands between until it is.
    if now != *before && !is_after && workload.cut_off.is_none() {
        return Err(format!(
            "neither before nor after:\n{}",
            now.difference(before)
        ));
    }
    if workload.cut_off.is_some() && !is_after {
        return Err(format!("not recovered:\n{}", now.difference(after)));
    }
    world.check()
}
