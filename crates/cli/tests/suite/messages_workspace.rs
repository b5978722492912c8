//! What is said of checkpoints that keep directories, and of sandboxes that go on for long.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};

use crate::world::{Ran, World};

/// Sees that everything is in what was said.
#[track_caller]
fn says(ran: &Ran, sentences: &[&str]) {
    let said = ran.to_string();
    for sentence in sentences {
        assert!(said.contains(sentence), "{sentence}\nis not in\n{said}");
    }
}

fn kept() -> World {
    let world = World::new().file("a", "1").file("b", "1").file("c", "1");
    let ran = world.cli(["checkpoint", "good", "--roots", "."]);
    says(
        &ran,
        &[
            "kept checkpoint good: 4 names, 3 files read, ",
            "(return with `backout rollback --to good`)",
        ],
    );
    world
}

#[test]
fn what_differs_and_who_changed_it() {
    let world = kept();
    says(
        &world.cli(["rollback", "--to", "good"]),
        &["everything is already as asked"],
    );
    world.put("a", "22");
    fs::remove_file(world.path("b")).unwrap();
    fs::set_permissions(world.path("c"), fs::Permissions::from_mode(0o600)).unwrap();
    world.did(["--agent", "x", "write", "d", "--text", "1"]);
    let plan = world.cli(["--agent", "y", "rollback", "--to", "good", "-n"]);
    says(
        &plan,
        &[
            "4 names would become what they were at checkpoint good",
            "~ a  changed since, not by an operation",
            "+ b  went since, would come back, not by an operation",
            "~ c  mode, owner, attributes or time changed since, not by an operation",
            "- d  came since, would go, by ",
            "1 operation of other agents would be overwritten; that needs `--others`",
            "[exit code 1]",
        ],
    );
    says(
        &world.cli(["--agent", "y", "rollback", "--to", "good"]),
        &[
            "error: nothing was brought back",
            "other agents wrote there since the checkpoint: ",
            "take their work back as well with `backout rollback --to good --others`",
            "or leave it out with `--exclude`",
        ],
    );
    says(
        &world.cli(["rollback", "--to", "good"]),
        &["brought . back to checkpoint good"],
    );
    assert_eq!(world.text("a"), "1");
    assert!(!world.has("d"));
}

#[test]
fn files_that_were_let_go_and_a_list_that_cannot_be_read() {
    let world = kept();
    says(
        &world.cli(["checkpoint", "good", "--drop"]),
        &["let the files of checkpoint good go: ", " given back"],
    );
    says(
        &world.cli(["rollback", "--to", "good"]),
        &[
            "error: the checkpoint `good` keeps no files",
            "it never did, or a collection or somebody let them go, or a later checkpoint took its name over",
            "take back what Backout recorded since then with `backout rollback --to good --operations`",
        ],
    );
    for name in ["one", "two", "three"] {
        world.did(["checkpoint", name, "--roots", "."]);
    }
    says(
        &world.cli(["gc", "--keep-at-least", "0s", "--versions", "1"]),
        &["the files of checkpoint one go: its directories have enough newer checkpoints"],
    );
    let held = world.place("state/workspaces/held.json");
    fs::write(&held, "{\"version\":9,\"checkpoints\":[]}").unwrap();
    says(
        &world.cli(["rollback", "--to", "three"]),
        &[
            "what is known of the files of checkpoints cannot be read",
            "it was written by a newer program (version 9)",
        ],
    );
}

#[test]
fn the_doctor_reads_what_checkpoints_keep() {
    let world = World::new().file("large", &"0123456789abcdef".repeat(64 * 1024));
    world.did(["checkpoint", "good", "--roots", "."]);
    says(
        &world.cli(["doctor"]),
        &["contents that checkpoints keep are sound"],
    );
    let packs = fs::read_dir(world.place("state/workspaces/store/contents")).unwrap();
    let pack = packs.flatten().next().unwrap().path();
    let file = fs::File::options().write(true).open(pack).unwrap();
    file.write_at(b"hurt", 90).unwrap();
    says(
        &world.cli(["doctor"]),
        &[
            "contents that checkpoints keep are damaged",
            "make a new checkpoint: those that need them cannot be gone back to whole",
        ],
    );
}

#[test]
fn batches_that_are_none() {
    let world = World::new();
    world.did(["sandbox", "start"]);
    let batch = |bytes: &[u8]| {
        fs::write(world.path("batch"), bytes).unwrap();
        world.cli(["sandbox", "exec", "--batch", "batch"])
    };
    says(&batch(b"\xff\n"), &["error: the commands cannot be read"]);
    says(
        &batch(b"{\"timeout\": \"1s\"}\n"),
        &[
            "error: line 1 is no command",
            "it needs either `line` or `command`",
        ],
    );
    says(
        &batch(b"{\"line\": \"true\", \"timeout\": \"soon\"}\n"),
        &["error: a timeout cannot be read"],
    );
    says(
        &batch("true\n".repeat(10_001).as_bytes()),
        &[
            "error: there are too many commands",
            "a file may have 10000",
        ],
    );
    let ran = batch(b"true\nfalse\ntrue\n");
    says(&ran, &["2 commands ran, 1 succeeded; 1 not begun"]);
}

#[test]
fn checkpoints_that_go() {
    let world = World::new().file("a", "0");
    world.did(["sandbox", "start", "--keep", "2"]);
    says(
        &world.cli(["sandbox", "prune", "--keep", "9"]),
        &["no checkpoint goes"],
    );
    world.did(["sandbox", "exec", "-c", "echo 1 > a"]);
    world.did(["sandbox", "exec", "-c", "echo 2 > a"]);
    world.did(["sandbox", "apply"]);
    world.did(["sandbox", "rollback", "1"]);
    says(
        &world.cli(["sandbox", "exec", "-c", "echo 3 > b"]),
        &["checkpoints that were set aside and let go: 2"],
    );
    says(
        &world.cli(["sandbox", "exec", "-c", "echo 4 > b"]),
        &["checkpoints that cannot be gone back to any more: 1"],
    );
    world.did(["sandbox", "rollback", "3"]);
    world.did(["sandbox", "exec", "-c", "echo 5 > c"]);
    // What 4 was made above stays with it.
    says(
        &world.cli(["sandbox", "prune", "--keep", "1"]),
        &[
            "no checkpoint goes",
            "set aside and not applied, so they stay: 4; `--discard` lets them go",
        ],
    );
    says(
        &world.cli(["sandbox", "prune", "--keep", "1", "--discard"]),
        &["let go, set aside before: 4", "the layers took "],
    );
    says(
        &world.cli(["sandbox", "exec", "-c", "cat a b c"]),
        &["1", "3", "5"],
    );
}

#[test]
fn exports() {
    let world = World::new();
    world.did(["sandbox", "start"]);
    world.did(["sandbox", "exec", "-c", "export TOKEN=abc; echo 1 > a"]);
    says(
        &world.cli(["sandbox", "export", "--script"]),
        &[
            "# The commands that made checkpoint 1 of the sandbox sandbox.",
            "these look like secrets and were left out: TOKEN; `--secrets` lets them go along",
            "\"${TOKEN:?set it first}\"",
        ],
    );
    says(
        &world.cli(["sandbox", "export", "--dockerfile"]),
        &[
            "# They began with the files of this machine: build it with the directory ",
            " as the context.",
            "# TOKEN looks like a secret and was left out: give it with --build-arg",
        ],
    );
    says(
        &world.cli(["sandbox", "export", "--tar", "t.tar"]),
        &["wrote t.tar: "],
    );
    says(
        &world.cli(["sandbox", "export", "--oci", "t.tar"]),
        &[
            "error: nothing was exported",
            "is there already, and an export replaces nothing",
        ],
    );
}
