//! What is said of sandboxes.
//!
//! Without a test: those that need a system call to fail, or a machine that was started anew (`messages.rs` lists them).

use std::fs;

use crate::world::{Ran, World};

/// Sees that everything is in what was said.
#[track_caller]
fn says(ran: &Ran, sentences: &[&str]) {
    let said = ran.to_string();
    for sentence in sentences {
        assert!(said.contains(sentence), "{sentence}\nis not in\n{said}");
    }
}

#[test]
fn a_life() {
    let world = World::new().file("a", "0");
    says(&world.cli(["sandbox", "list"]), &["there is no sandbox"]);
    says(
        &world.cli(["sandbox", "apply"]),
        &[
            "error: there is no sandbox",
            "begin one with `backout sandbox start`",
        ],
    );
    says(
        &world.cli(["sandbox", "start"]),
        &["sandbox sandbox is at checkpoint 0, in ."],
    );
    says(
        &world.cli(["sandbox", "apply"]),
        &[
            "error: nothing was applied",
            "the sandbox `sandbox` changes nothing of what was chosen",
        ],
    );
    says(
        &world.cli(["sandbox", "exec"]),
        &[
            "error: there is nothing to run",
            "put two dashes before the command, or a shell line after `-c`",
        ],
    );
    let ran = world.cli(["sandbox", "exec", "-c", "echo 1 > a"]);
    says(&ran, &["echo 1 > a succeeded: 1 changed; checkpoint 1"]);
    let ran = world.cli(["sandbox", "exec", "-c", "rm a; exit 3"]);
    says(
        &ran,
        &[
            "rm a; exit 3 failed with 3: 1 deleted; reverted; still at checkpoint 1",
            "[exit code 3]",
        ],
    );
}

#[test]
fn an_end() {
    let world = World::new().file("a", "0");
    world.did(["sandbox", "start"]);
    world.did(["sandbox", "exec", "-c", "echo 1 > a"]);
    world.cli(["sandbox", "exec", "-c", "rm a; exit 3"]);
    let ran = world.cli(["sandbox", "exec", "--timeout", "1s", "--", "sleep", "60"]);
    says(
        &ran,
        &["sleep 60 ended, since its time was up: nothing changed"],
    );
    let ran = world.cli([
        "sandbox",
        "exec",
        "--on-failure",
        "keep",
        "--",
        "sh",
        "-c",
        "echo 2 > a; kill -9 $$",
    ]);
    says(
        &ran,
        &[
            "ended by signal 9",
            "hint: take back what it did with `backout sandbox rollback sandbox 1`",
        ],
    );
    says(
        &world.cli(["sandbox", "rollback", "1"]),
        &[
            "sandbox sandbox is at checkpoint 1, in .",
            "hint: go to checkpoint 2 again with `backout sandbox rollback sandbox 2`",
        ],
    );
    let shown = world.cli(["sandbox", "checkpoints"]);
    says(
        &shown,
        &[
            "went to this checkpoint",
            "set aside: 2",
            "now at checkpoint 1",
            "timed out",
            "reverted",
        ],
    );
    says(
        &world.cli(["sandbox", "list"]),
        &["checkpoint 1, not applied"],
    );
    says(
        &world.cli(["sandbox", "end"]),
        &[
            "error: the sandbox `sandbox` was not ended",
            "it holds changes that were not applied, and nothing would bring them back: checkpoints 1, 2",
            "make them real with `backout sandbox apply sandbox`",
            "throw them away with `backout sandbox end sandbox --discard`",
        ],
    );
    says(&world.cli(["sandbox", "apply"]), &["sandbox: sandbox"]);
    assert_eq!(world.text("a"), "1\n");
    // What was set aside is work, too.
    says(
        &world.cli(["sandbox", "end"]),
        &[
            "nothing would bring them back: checkpoint 2",
            "go to the newest of them with `backout sandbox rollback sandbox 2`",
        ],
    );
    says(
        &world.cli(["sandbox", "end", "--discard"]),
        &["ended the sandbox sandbox"],
    );
}

#[test]
fn an_end_after_going_back_throws_nothing_away() {
    let world = World::new().file("a", "0");
    world.did(["sandbox", "start"]);
    world.did(["sandbox", "exec", "-c", "echo 1 > a"]);
    world.did(["sandbox", "exec", "-c", "true"]);
    world.did(["sandbox", "rollback", "0"]);
    let refused = world.cli(["sandbox", "end"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    says(&refused, &["nothing would bring them back: checkpoint 1"]);
    world.did(["sandbox", "rollback", "1"]);
    says(&world.cli(["sandbox", "exec", "--", "cat", "a"]), &["1"]);
    world.did(["sandbox", "rollback", "0"]);
    assert_eq!(world.text("a"), "0");
    // What was applied is real, wherever the head is.
    world.did(["sandbox", "rollback", "2"]);
    world.did(["sandbox", "apply"]);
    world.did(["sandbox", "rollback", "0"]);
    world.did(["sandbox", "end"]);
    assert_eq!(world.text("a"), "1\n");
}

#[test]
fn what_a_model_is_told() {
    let world = World::new().file("a", "0");
    world.did(["sandbox", "start"]);
    let told = |line: &str| world.cli(["--json", "sandbox", "exec", "-c", line]);
    says(
        &told("true"),
        &["`true` succeeded. It changed no file. This is checkpoint 1. You are in"],
    );
    says(&told("echo 1 > a"), &["It changed one name:"]);
    says(&told("touch b c"), &["It changed 2 names:"]);
    says(
        &told("false"),
        &[
            "`false` failed with exit code 1. It had changed no file. Files, working directory and variables are as before it, at checkpoint 3. Processes that it left were ended.",
        ],
    );
    says(
        &told("rm a; false"),
        &["The one name that it had changed was reverted:"],
    );
    says(
        &told("rm a b; kill -9 $$"),
        &["was ended by signal 9. All 2 names that it had changed were reverted:"],
    );
    let ran = world.cli([
        "--json",
        "sandbox",
        "exec",
        "--timeout",
        "1s",
        "--",
        "sleep",
        "60",
    ]);
    says(&ran, &["was ended: its time was up."]);
}

#[test]
fn names_and_numbers_that_are_none() {
    let world = World::new();
    world.did(["sandbox", "start", "one"]);
    says(
        &world.cli(["sandbox", "start", "one"]),
        &[
            "error: there is a sandbox `one` already",
            "take another name",
            "let the old one go with `backout sandbox end one`",
        ],
    );
    says(
        &world.cli(["sandbox", "start", "../x"]),
        &[
            "`../x` cannot be the name of a sandbox",
            "a name has letters, digits, `.`, `_` and `-`, at most 64, and begins with a letter or a digit",
        ],
    );
    says(
        &world.cli(["sandbox", "start", "--root", "nowhere"]),
        &["`nowhere` is not a directory"],
    );
    says(
        &world.cli(["sandbox", "rollback", "7"]),
        &[
            "the sandbox `one` has no checkpoint `7`",
            "its checkpoints are numbers from 0 to 0",
            "see them with `backout sandbox checkpoints one`",
        ],
    );
    says(
        &world.cli(["sandbox", "exec", "two", "--", "true"]),
        &["there is no sandbox `two`", "there are one"],
    );
    world.did(["sandbox", "start", "two"]);
    says(
        &world.cli(["sandbox", "diff"]),
        &[
            "it is not clear which sandbox is meant",
            "there are one, two",
            "put its name after the word",
        ],
    );
    says(
        &world.cli(["sandbox", "exec", "one", "--", "nosuchprogram"]),
        &["`nosuchprogram`", "[exit code 127]"],
    );
}

#[test]
fn what_is_written_down_and_cannot_be_used() {
    let world = World::new();
    world.did(["sandbox", "start", "two"]);
    let manifest = world.place("state/sandboxes/two/sandbox.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(
        &manifest,
        text.replacen("\"version\":1", "\"version\":9", 1),
    )
    .unwrap();
    says(
        &world.cli(["sandbox", "diff", "two"]),
        &[
            "the sandbox `two` cannot be read",
            "it was made by a newer program (version 9)",
        ],
    );
    fs::write(
        &manifest,
        text.replacen("\"is_roots\":", "\"is_ended\":true,\"is_roots\":", 1),
    )
    .unwrap();
    says(
        &world.cli(["sandbox", "exec", "two", "--", "true"]),
        &[
            "the sandbox `two` cannot be used any more",
            "the machine was started anew, or it was about to end; its layers are not whole",
            "let it go with `backout sandbox end two`",
        ],
    );
    world.did(["sandbox", "end", "two"]);
}

#[test]
fn a_sandbox_that_is_used_and_one_whose_owner_died() {
    let world = World::new().file("a", "0");
    world.did(["sandbox", "start"]);
    let waiting = world.waiting(["sandbox", "exec", "-c", "echo 1 > a; echo ready; read x"]);
    says(&world.cli(["sandbox", "list"]), &["runs in it"]);
    says(
        &world.cli(["sandbox", "exec", "--", "true"]),
        &[
            "the sandbox `sandbox` is in use",
            "runs in it",
            "wait for it, or end it",
            "work beside it in a copy: `backout sandbox fork sandbox NEW`",
        ],
    );
    world.go_on(waiting);
    world.dies("sandbox.ran", ["sandbox", "exec", "-c", "echo 1 > a"]);
    says(
        &world.cli(["sandbox", "list"]),
        &["died; the next command drops what it wrote"],
    );
    says(
        &world.cli(["sandbox", "exec", "--", "cat", "a"]),
        &[
            "died: what it wrote in the sandbox was dropped",
            "the owner of `echo 1 > a` died",
            "cat a succeeded",
        ],
    );
    says(&world.cli(["sandbox", "checkpoints"]), &["interrupted"]);
}

#[test]
fn who_is_asked_takes_it_back() {
    let world = World::new().file("a", "0");
    world.did(["sandbox", "start"]);
    let line = [
        "sandbox",
        "exec",
        "--on-failure",
        "ask",
        "-c",
        "rm a; false",
    ];
    says(
        &world.typed("y\n", line),
        &["Take back what it did? [y/N]", "is at checkpoint 0"],
    );
    says(
        &world.cli(["sandbox", "exec", "--", "cat", "a"]),
        &["cat a succeeded"],
    );
    let line = "(trap '' TERM; sleep 60) >/dev/null 2>&1 &";
    says(
        &world.cli(["sandbox", "exec", "-c", line]),
        &["outlived the command and was ended:"],
    );
    let inside = world.cli([
        "run",
        "--",
        env!("CARGO_BIN_EXE_backout"),
        "sandbox",
        "start",
        "x",
    ]);
    says(&inside, &["what is done in a sandbox is not watched"]);
}
