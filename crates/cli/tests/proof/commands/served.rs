//! File systems that a command serves itself, and ways to our own state that it must leave.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use super::behaviour::wait_for;
use crate::world::{World, said};

/// Nobody waits for a server that waits for him.
#[test]
fn what_a_server_of_the_command_does_is_recorded_and_nobody_waits_for_it() {
    if Command::new("bindfs").arg("--version").output().is_err() {
        return;
    }
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.file(&format!("d/{name}"), &format!("{name}\n"));
    }
    fs::create_dir(world.path("m")).unwrap();
    let before = world.tree().without_directory_times();
    let line = "bindfs d m && mv m/a m/z; rm m/b; echo more >> m/c; echo new > m/new; mkdir m/sub; umount m";
    let began = Instant::now();
    let output = world.run(&["run", "--timeout", "20s", "--", "bash", "-c", line]);
    let took = began.elapsed();
    assert!(output.status.success(), "{}", said(&output));
    assert!(took < Duration::from_secs(15), "{took:?}");
    let note = "it wrote to a file system that it serves itself; what its server did is recorded";
    assert!(said(&output).contains(note), "{}", said(&output));
    wait_for(|| world.json(&["status"])["unfinished"] == serde_json::json!([]));
    assert_eq!(world.read("d/z"), "a\n");
    assert_eq!(world.read("d/c"), "c\nmore\n");
    world.ok(&["undo"]);
    let now = world.tree().without_directory_times();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}

#[test]
fn a_link_that_leads_to_our_state_is_not_taken_away() {
    let world = World::new();
    world.ok(&["write", "a", "--text", "1\n"]);
    let (links, real) = (world.scratch("links"), world.state().to_path_buf());
    fs::create_dir(&links).unwrap();
    symlink(&real, links.join("inner")).unwrap();
    symlink("links/inner", world.scratch("outer")).unwrap();
    let run = |line: &str| {
        let mut command = world.command(&["run", "--", "bash", "-c", line]);
        command.env("BACKOUT_STATE_DIR", world.scratch("outer"));
        command.output().unwrap()
    };
    for line in [
        "rm ../outer",
        "rm ../links/inner",
        "rm -rf ../links",
        "mv ../links ../elsewhere",
        "mv ../outer ../elsewhere",
        "ln -sfn /tmp ../outer",
        "touch x; mv x ../outer",
    ] {
        let output = run(line);
        assert!(!output.status.success(), "{line}: {}", said(&output));
        assert!(
            said(&output).contains("our own state"),
            "{line}: {}",
            said(&output)
        );
        assert!(world.scratch("outer").join("journal.sqlite").exists());
    }
    assert!(run("touch ../other; rm ../other").status.success());
}

#[test]
fn a_copy_of_our_state_says_where_things_are_kept() {
    let world = World::new();
    world.file("a", "kept\n");
    world.ok(&["run", "--", "rm", "a"]);
    let copy = tempfile::tempdir_in(crate::world::memory()).unwrap();
    let copied = Command::new("cp")
        .arg("-a")
        .args([world.state(), &copy.path().join("state")])
        .status();
    assert!(copied.unwrap().success());
    fs::rename(world.state(), world.scratch("away")).unwrap();
    let mut undo = world.command(&["undo"]);
    undo.env("BACKOUT_STATE_DIR", copy.path().join("state"));
    let told = said(&undo.output().unwrap());
    assert!(told.contains("that is not there any more"), "{told}");
    // Where it was kept, it comes back.
    fs::remove_dir_all(world.state()).ok();
    fs::rename(world.scratch("away"), world.state()).unwrap();
    world.ok(&["undo"]);
    assert_eq!(world.read("a"), "kept\n");
}
