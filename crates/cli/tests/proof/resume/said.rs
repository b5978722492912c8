//! What people and models read when an agent goes on, or a stage ends.

use crate::world::World;

const MINE: [&str; 4] = ["--agent", "robin", "--task", "t"];

fn begun() -> World {
    let world = World::new();
    world.ok(&["--agent", "robin", "task", "begin", "t"]);
    world
}

fn mine(world: &World, words: &[&str]) -> String {
    world.ok(&[&MINE, words].concat())
}

/// What a command said that asks for a decision: both streams.
fn asked(world: &World, words: &[&str]) -> String {
    crate::world::said(&world.run(&[&MINE, words].concat()))
}

fn has(told: &str, sentences: &[&str]) {
    for sentence in sentences {
        assert!(told.contains(sentence), "{sentence}\n{told}");
    }
}

#[test]
fn where_to_go_on_is_told_in_full() {
    let world = begun();
    mine(&world, &["write", "first", "--text", "1"]);
    let said = [
        "--summary",
        "half of the servers are done",
        "--decision",
        "canary first",
        "--step",
        "1/3",
    ];
    mine(
        &world,
        &[&["checkpoint", "c", "--state", "{\"n\": 1}"], &said[..]].concat(),
    );
    let told = mine(&world, &["resume"]);
    has(
        &told,
        &[
            "go on at step 2 of 3  (checkpoint c, ",
            "this task did nothing after the checkpoint",
        ],
    );
    mine(&world, &["write", "second", "--text", "2"]);
    world.ok(&["undo", "@-1"]);
    let told = mine(&world, &["resume", "-n"]);
    has(&told, &["would go on at step 2 of 3"]);
    let told = mine(&world, &["resume"]);
    has(
        &told,
        &[
            "summary:  half of the servers are done",
            "decided:  canary first",
            "state:    {\"n\":1}",
            "it was done after the checkpoint, and not committed",
            "stood at the checkpoint and was undone since; bring it back with `backout redo ",
            "of state, 1 checkpoint, ",
            "looked at in ",
        ],
    );
    mine(&world, &["checkpoint", "end", "--step", "3/3"]);
    has(
        &mine(&world, &["resume"]),
        &["go on after the last step: all are done"],
    );
    let list = world.ok(&["checkpoint", "--list"]);
    has(&list, &["step 3/3, ", "step 1/3, "]);
}

#[test]
fn what_stays_is_told_with_its_reason() {
    let world = begun();
    mine(&world, &["checkpoint", "c"]);
    mine(&world, &["write", "a", "--text", "a"]);
    has(
        &mine(&world, &["resume", "--keep"]),
        &["work in flight is kept here"],
    );
    world.file("backout.toml", "[triggers]\ntransaction-abort = 'ask'\n");
    let told = asked(&world, &["resume"]);
    has(
        &told,
        &[
            "it waits for a decision",
            "somebody has to say what becomes of it: take it back with `backout resume t --rollback`, or keep it with `backout resume t --keep`",
        ],
    );
    world.ok(&["--agent", "wren", "checkpoint", "w"]);
    world.ok(&["--agent", "wren", "write", "b", "--text", "b"]);
    has(
        &world.ok(&["--agent", "wren", "resume"]),
        &["it is committed"],
    );
}

#[test]
fn what_died_is_told() {
    let world = begun();
    mine(&world, &["checkpoint", "c"]);
    let write = [&MINE[..], &["write", "a", "--text", "a"]].concat();
    let points = {
        let other = begun();
        let log = other.scratch("points");
        let output = other
            .command(&write)
            .env("BACKOUT_CRASH_LOG", &log)
            .output();
        assert!(output.unwrap().status.success());
        std::fs::read_to_string(log).unwrap().lines().count()
    };
    // Somewhere between the arm and the commit the file is there and nobody says that it stays.
    let mut told = String::new();
    for point in 1..=points {
        world
            .command(&write)
            .env("BACKOUT_CRASH_AT", point.to_string())
            .output()
            .unwrap();
        told += &mine(&world, &["resume"]);
        assert!(!world.path("a").exists(), "point {point}");
    }
    has(&told, &["its process died before it was finished"]);
}

#[test]
fn what_cannot_be_resumed_is_refused_with_the_reason() {
    let world = begun();
    let told = asked(&world, &["resume"]);
    has(
        &told,
        &[
            "error: the task t has no checkpoint to go on from",
            "next: begin at the first step",
            "take back what it has done with `backout rollback t`",
        ],
    );
    has(
        &crate::world::said(&world.run(&["--agent", "wren", "resume"])),
        &["the agent wren has no checkpoint to go on from"],
    );
    let large = format!("\"{}\"", "x".repeat(100));
    mine(&world, &["checkpoint", "c", "--state", &large]);
    has(
        &asked(&world, &["checkpoint", "--env", "=x"]),
        &[
            "`=x` is no variable",
            "it has no name",
            "give NAME=VALUE, NAME, or -NAME for one that was taken away",
        ],
    );
    mine(&world, &["write", "a", "--text", "a"]);
    let told = asked(&world, &["checkpoint", "--pid", "4194303"]);
    has(&told, &["there is no process 4194303"]);
    let mut other = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    mine(
        &world,
        &["checkpoint", "alive", "--pid", &other.id().to_string()],
    );
    let told = asked(&world, &["resume"]);
    other.kill().unwrap();
    other.wait().unwrap();
    has(
        &told,
        &[
            "error: the agent is still at work",
            "took the checkpoint, and is alive",
            "next: wait for it, or end that process first",
            "next: if it does not work on this any more, say `--takeover`",
        ],
    );
}

#[test]
fn a_state_that_is_too_large_says_what_to_do() {
    let world = begun();
    world.file("state.json", &format!("\"{}\"", "x".repeat(4 << 20)));
    has(
        &asked(&world, &["checkpoint", "--state", "@state.json"]),
        &[
            "error: the checkpoint was not taken",
            "bytes, and at most 4194304 are kept",
            "next: write what is large to a file, with `backout write`, and keep its name in the state",
        ],
    );
}

#[test]
fn what_is_in_doubt_is_decided_first() {
    let world = begun();
    mine(&world, &["checkpoint", "c"]);
    let write = [&MINE[..], &["write", "a", "--text", "a"]].concat();
    let mut told = String::new();
    for point in 1..40 {
        let output = world
            .command(&write)
            .env("BACKOUT_CRASH_AT", point.to_string())
            .output();
        if output.unwrap().status.success() {
            break;
        }
        if world.path("a").exists() {
            std::fs::write(world.path("a"), "a person's").unwrap();
            told = asked(&world, &["resume"]);
            break;
        }
    }
    has(
        &told,
        &[
            "error: the task t cannot go on yet",
            "nobody can tell what became of operation ",
            "or with `--rollback`; then ask again",
        ],
    );
    assert_eq!(world.read("a"), "a person's");
}

#[test]
fn how_stages_end_is_told() {
    let world = begun();
    has(
        &mine(&world, &["stage", "begin", "s"]),
        &["began stage s  (after record "],
    );
    has(&mine(&world, &["stage", "end", "s"]), &["ended stage s"]);
    mine(&world, &["stage", "begin", "s", "--on-failure", "keep"]);
    has(
        &mine(&world, &["stage", "end", "s", "--failed"]),
        &["the stage s failed, and its work stays"],
    );
    mine(&world, &["stage", "begin", "s", "--on-failure", "ask"]);
    let told = asked(&world, &["stage", "end", "s", "--failed"]);
    has(
        &told,
        &[
            "take its work back with `backout stage end s --failed --rollback --task t`, or keep it with `backout stage end s --failed --keep --task t`",
        ],
    );
    let told = asked(&world, &["stage", "begin", "s"]);
    has(
        &told,
        &[
            "the stage `s` has begun already",
            "see it with `backout stage list`",
        ],
    );
    mine(&world, &["stage", "begin", "inner"]);
    let told = asked(&world, &["stage", "end", "s"]);
    has(
        &told,
        &[
            "the stage `s` was not ended",
            "the stage `inner` began in it and is still open",
            "end that one first with `backout stage end inner`",
        ],
    );
    let told = crate::world::said(&world.run(&["stage", "begin", "x"]));
    has(
        &told,
        &[
            "the stage `x` was not begun",
            "nobody said whose work it is, and everybody's would be taken back if it failed",
            "say `--task` or `--agent`",
        ],
    );
    let list = world.ok(&["stage", "list"]);
    has(&list, &["inner", "waits", "after record "]);
    assert_eq!(World::new().ok(&["stage", "list"]), "no stages\n");
}
