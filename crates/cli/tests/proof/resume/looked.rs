//! What is said of the world when an agent goes on is what a look at it finds, and what is advised works.

use std::fs;

use crate::world::{World, said};

const MINE: [&str; 4] = ["--agent", "robin", "--task", "t"];

fn mine(world: &World, words: &[&str]) -> String {
    world.ok(&[&MINE, words].concat())
}

/// A task with a file before its checkpoint and one after it.
fn marked() -> World {
    let world = World::new();
    world.ok(&["--agent", "robin", "task", "begin", "t"]);
    mine(&world, &["write", "before", "--text", "1"]);
    mine(&world, &["checkpoint", "c", "--step", "1/3"]);
    mine(&world, &["write", "after", "--text", "2"]);
    world
}

fn has(told: &str, sentences: &[&str]) {
    for sentence in sentences {
        assert!(told.contains(sentence), "{sentence}\n{told}");
    }
}

#[test]
fn what_is_not_as_it_was_at_the_checkpoint_is_named() {
    let as_then = "world:    as it was at the checkpoint, where this task wrote";
    has(&marked().ok(&["resume", "t"]), &[as_then]);
    for (what, told) in [
        ("rm", "before: it is gone, and no operation did that"),
        ("edit", "before: it changed, and no operation did that"),
        (
            "chmod",
            "before: its mode, owner or attributes changed, and no operation did that",
        ),
        (
            "link",
            "before: something else is there, and no operation did that",
        ),
    ] {
        let world = marked();
        let path = world.path("before");
        match what {
            "rm" => fs::remove_file(&path).unwrap(),
            "edit" => fs::write(&path, "hand").unwrap(),
            "chmod" => {
                use std::os::unix::fs::PermissionsExt as _;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            }
            _ => {
                fs::remove_file(&path).unwrap();
                std::os::unix::fs::symlink("elsewhere", &path).unwrap();
            }
        }
        let said = world.ok(&["resume", "t"]);
        has(&said, &[&format!("differs:  {told}")]);
        assert!(!said.contains("world:"), "{said}");
        let again = world.ok(&["--json", "resume", "t"]);
        let again: serde_json::Value = serde_json::from_str(&again).unwrap();
        assert_eq!(again["differs"][0]["differs"], "world", "{again}");
        let said = world.ok(&["resume", "t"]);
        has(&said, &["this task did nothing after the checkpoint", told]);
    }
}

#[test]
fn other_agents_work_on_it_is_named_as_theirs() {
    let world = marked();
    world.ok(&["--agent", "other", "write", "before", "--text", "theirs"]);
    let theirs = crate::trust::newest(&world, "write");
    let told = format!("differs:  before: operation {theirs} of other wrote it since");
    has(&world.ok(&["resume", "t"]), &[&told]);
    // What was built on what goes is told as that, and an agent needs a word for it.
    let world = marked();
    world.ok(&["--agent", "other", "write", "after", "--text", "theirs"]);
    let preview = world.ok(&["resume", "t", "-n"]);
    let built = "write after of other: it is other work, built on what goes";
    has(&preview, &[built]);
    let refused = said(&world.run(&["--agent", "robin", "resume", "t", "-n"]));
    has(
        &refused,
        &[
            "would not go on at step 2 of 3",
            "other agents built on what goes: take that back as well with `backout resume t --others`",
        ],
    );
    let refused = world.fails(1, &["--agent", "robin", "resume", "t"]);
    has(&refused, &["`backout resume t --others`"]);
    assert_eq!(world.read("after"), "theirs");
    let told = world.ok(&["--agent", "robin", "resume", "t", "--others"]);
    has(&told, &[built]);
    assert!(!world.path("after").exists());
    world.ok(&["redo"]);
    assert_eq!(world.read("after"), "theirs");
}

#[test]
fn what_stays_is_told_and_the_world_is_not_called_as_it_was() {
    let world = World::new();
    world.ok(&["--agent", "robin", "checkpoint", "c", "--step", "1/3"]);
    world.ok(&["--agent", "robin", "write", "f", "--text", "1"]);
    let told = world.ok(&["--agent", "robin", "resume"]);
    has(&told, &["write f: it is committed"]);
    assert!(!told.contains("world:"), "{told}");
    // What stood then and was undone and redone since is no work in flight.
    let world = marked();
    world.ok(&["undo", "@-1"]);
    world.ok(&["redo"]);
    let told = world.ok(&["resume", "t"]);
    has(
        &told,
        &["write before: it stood at the checkpoint, and was undone and redone since"],
    );
    assert_eq!(world.read("before"), "1");
}

#[test]
fn a_conflict_names_the_words_that_go_on_all_the_same() {
    let world = marked();
    fs::write(world.path("after"), "2 and more").unwrap();
    let preview = said(&world.run(&["resume", "t", "-n"]));
    has(
        &preview,
        &[
            "would not go on at step 2 of 3",
            "`after`: content changed since",
            "`backout resume t --merge`, or all with `backout resume t --force`",
            "keep what was in flight with `backout resume t --keep`",
        ],
    );
    let refused = world.fails(1, &["resume", "t"]);
    has(
        &refused,
        &[
            "nothing was rolled back",
            "`backout resume t --force`",
            "keep what was in flight with `backout resume t --keep`",
        ],
    );
    let told = world.ok(&["resume", "t", "--force"]);
    assert!(!world.path("after").exists());
    let over = "over:     `after` was changed by others; `backout redo ";
    has(&told, &[over]);
    let act = told.split("`backout redo ").nth(1).unwrap();
    world.ok(&["redo", act.split('`').next().unwrap()]);
    assert_eq!(world.read("after"), "2 and more");
}

#[test]
fn rules_that_cannot_be_read_keep_everybody_from_guessing() {
    let world = marked();
    let rules =
        "[triggers]\ntransaction-abort = \"keep\"\nfoo = \"ask\"\n[checkpoints]\nevery = 0\n";
    world.file("backout.toml", rules);
    let refused = world.fails(1, &["resume", "t"]);
    has(
        &refused,
        &[
            "nobody can tell what the rules want",
            "backout.toml` cannot be understood: ",
            "backout.toml`, then ask again",
        ],
    );
    let refused = world.run(&[&MINE[..], &["checkpoint", "d", "--if-due"]].concat());
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert_eq!(world.read("after"), "2");
    // Whoever says it himself needs no rules.
    world.ok(&["resume", "t", "--rollback"]);
    assert!(!world.path("after").exists());
}

#[test]
fn checkpoints_and_stages_are_of_tasks_that_are_open() {
    let world = World::new();
    for words in [&["checkpoint", "c"][..], &["stage", "begin", "s"]] {
        let refused = world.fails(1, &[&["--task", "nosuch"], words].concat());
        has(&refused, &["there is no task `nosuch`"]);
    }
    world.ok(&["task", "begin", "t"]);
    let told = world.fails(1, &["resume"]);
    has(&told, &["the task t has no checkpoint to go on from"]);
    world.ok(&["--task", "t", "stage", "begin", "s"]);
    world.ok(&["--task", "t", "write", "f", "--text", "1"]);
    world.ok(&["commit", "t"]);
    // What was committed stays, also if the stage is called failed.
    let refused = world.fails(1, &["--task", "t", "stage", "end", "s", "--failed"]);
    has(&refused, &["the task `t` has ended"]);
    assert_eq!(world.read("f"), "1");
    let refused = world.fails(1, &["--task", "t", "checkpoint", "c"]);
    has(&refused, &["the task `t` has ended"]);
}

#[test]
fn what_a_stage_advises_works() {
    let world = marked();
    let ask = ["stage", "begin", "k", "--on-failure", "ask"];
    mine(&world, &ask);
    mine(&world, &["write", "f", "--text", "1"]);
    let waits = world.run(&[&MINE[..], &["stage", "end", "k", "--failed"]].concat());
    assert_eq!(waits.status.code(), Some(1));
    has(
        &said(&waits),
        &["`backout stage end k --failed --rollback --task t`"],
    );
    let elsewhere = world.fails(1, &["stage", "end", "k", "--failed", "--rollback"]);
    has(
        &elsewhere,
        &["one of that name is open: say whose it is, with `--task t`"],
    );
    let end = ["stage", "end", "k", "--failed", "--task", "t"];
    let preview = said(&world.run(&[&end[..], &["--rollback", "-n"]].concat()));
    has(
        &preview,
        &["do it with `backout stage end k --failed --task t"],
    );
    fs::write(world.path("f"), "1 and more").unwrap();
    let refused = world.fails(1, &[&end[..], &["--rollback"]].concat());
    has(
        &refused,
        &["`backout stage end k --failed --task t --force`"],
    );
    let told = world.ok(&[&end[..], &["--rollback", "--force"]].concat());
    assert!(!world.path("f").exists());
    has(&told, &["`f` was changed by others; `backout redo "]);
    let act = told.split("`backout redo ").nth(1).unwrap();
    world.ok(&["redo", act.split('`').next().unwrap()]);
    assert_eq!(world.read("f"), "1 and more");
}

#[test]
fn a_secret_variable_is_named_and_not_kept() {
    let world = World::new();
    world.ok(&["task", "begin", "t"]);
    let mark = [
        "--task",
        "t",
        "checkpoint",
        "c",
        "--step",
        "1/2",
        "--env",
        "API_TOKEN=sk-supersecret12345",
        "--env",
        "COLOR=blue",
    ];
    world.ok(&mark);
    let told = world.ok(&["resume", "t"]);
    has(
        &told,
        &[
            "API_TOKEN is not kept: it looks like a secret",
            "COLOR=blue",
        ],
    );
    let kept = world.ok(&["export"]);
    assert!(
        kept.contains("API_TOKEN") && !kept.contains("supersecret"),
        "{kept}"
    );
    let told = world.ok(&["--json", "resume", "t"]);
    assert!(!told.contains("supersecret"), "{told}");
}

#[test]
fn a_resume_waits_for_a_command_that_is_about_to_end() {
    let world = marked();
    let made = std::process::Command::new("mkfifo")
        .arg(world.path("gate"))
        .status();
    assert!(made.unwrap().success());
    let line = "echo begun > begun; read word < gate";
    let words = [&MINE[..], &["run", "--", "sh", "-c", line]].concat();
    let mut command = world.command(&words).spawn().unwrap();
    while !world.path("begun").exists() {
        std::thread::yield_now();
    }
    let resumed = world.command(&["resume", "t"]);
    let resumed = std::thread::spawn(move || {
        let mut resumed = resumed;
        resumed.output().unwrap()
    });
    fs::write(world.path("gate"), "go\n").unwrap();
    assert!(command.wait().unwrap().success());
    let output = resumed.join().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(!world.path("begun").exists(), "it was in flight");
    world.check_store();
}
