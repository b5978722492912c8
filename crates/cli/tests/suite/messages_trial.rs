//! What is said of trials that cannot be applied, shown or made. Nothing real was changed then.
//!
//! Without a test: "`...` could only be read inside" (it needs a file system that no layer can be made over), "look at what
//! the command changed" and "remove the layers of the trial" (failing system calls).

use std::fs;

use crate::claims::{is_root, numberless};
use crate::world::World;

fn tried() -> World {
    let world = World::new().file("a", "0");
    world.did(["try", "--", "sh", "-c", "echo 1 > a"]);
    world
}

/// Changes what is noted of the trial.
fn amend(world: &World, from: &str, to: &str) {
    let note = world.place("state/trials/9e3779b97f4a7c15/manifest.json");
    let text = fs::read_to_string(&note).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(note, text.replacen(from, to, 1)).unwrap();
}

fn status(world: &World) -> String {
    let status = world.unmoved(["status"]).to_string();
    let lines = status.lines().take(2).chain(status.lines().last());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_trial_that_still_runs() {
    let world = World::new().file("a", "0");
    let waiting = world.waiting(["try", "--", "sh", "-c", "echo 1 > a; echo ready; read x"]);
    insta::assert_snapshot!(world.unmoved(["try", "--list"]), @"9e3779b9  just now  sh -c 'echo 1 > a; echo ready; read x'  still running");
    insta::assert_snapshot!(world.unmoved(["try", "--apply"]), @"
    error: the trial 9e3779b9 has not ended
      why: its command still runs
      next: wait for it, or end it
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["try", "--discard"]), @"
    error: the trial 9e3779b9 has not ended
      why: its command still runs
      next: wait for it, or end it
    [exit code 1]
    ");
    insta::assert_snapshot!(status(&world), @"
    trials that wait for a decision:
      9e3779b9  sh -c 'echo 1 > a; echo ready; read x'  still running  just now
      directory  $WORLD/state
    ");
    insta::assert_snapshot!(world.still(|| world.go_on(waiting)), @"
    sh -c 'echo 1 > a; echo ready; read x' failed with 1: 1 changed
      ~ a (1 B -> 2 B)
    hint: nothing was changed; apply it with `backout try --apply 9e3779b9`, look with `backout try --diff 9e3779b9`, or let it go with `backout try --discard 9e3779b9`
    [exit code 1]
    ");
    world.did(["try", "--apply"]);
    assert_eq!(world.text("a"), "1\n");
}

#[test]
fn a_trial_whose_process_died() {
    let world = World::new().file("a", "0");
    world.dies("trial.ran", ["try", "--", "sh", "-c", "echo 1 > a"]);
    insta::assert_snapshot!(world.unmoved(["try", "--apply"]), @"
    error: the trial 9e3779b9 has not ended
      why: its process died, and nobody saw the end of the command
      next: let it go with `backout try --discard 9e3779b9`
    [exit code 1]
    ");
    insta::assert_snapshot!(status(&world), @"
    trials that wait for a decision:
      9e3779b9  sh -c 'echo 1 > a'  interrupted  just now
    hint: let the trial go that came to no end with `backout try --discard 9e3779b9`
    ");
    insta::assert_snapshot!(world.unmoved(["try", "--discard", "9e3779b9"]), @"discarded the trial 9e3779b9; nothing was changed");
    insta::assert_snapshot!(world.unmoved(["try", "--list"]), @"no trial waits for a decision");
}

#[test]
fn a_trial_of_a_machine_that_was_started_anew() {
    let world = tried();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    amend(&world, boot.trim(), "00000000-0000-0000-0000-000000000000");
    insta::assert_snapshot!(world.unmoved(["try", "--list"]), @"9e3779b9  just now  sh -c 'echo 1 > a'  lost when the machine was started anew");
    insta::assert_snapshot!(world.unmoved(["try", "--apply"]), @"
    error: the trial 9e3779b9 cannot be used any more
      why: the machine was started anew, and what a trial writes is not synced
      next: let it go with `backout try --discard 9e3779b9`
      next: run the command again
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["try", "--discard", "9e3779b9"]), @"discarded the trial 9e3779b9; nothing was changed");
}

#[test]
fn a_trial_that_cannot_be_read() {
    let world = tried();
    amend(&world, "\"version\":2", "\"version\":9");
    insta::assert_snapshot!(world.unmoved(["try", "--apply"]), @"
    error: the trial 9e3779b9 cannot be read
      why: it was made by a newer program (version 9)
      next: let it go with `backout try --discard 9e3779b9`
    [exit code 1]
    ");
    fs::remove_file(world.place("state/trials/9e3779b97f4a7c15/manifest.json")).unwrap();
    insta::assert_snapshot!(world.unmoved(["try", "--apply"]), @"
    error: the trial 9e3779b9 cannot be read
      why: it has no manifest
      next: let it go with `backout try --discard 9e3779b9`
    [exit code 1]
    ");
    world.did(["try", "--discard", "9e3779b9"]);
}

#[test]
fn a_name_that_two_trials_have() {
    let world = tried();
    world.next_id_is(234);
    world.did(["try", "--", "sh", "-c", "echo 2 > a"]);
    insta::assert_snapshot!(world.unmoved(["try", "--apply", "9e"]), @"
    error: `9e` names more than one trial
      next: give more digits
      next: see them with `backout try --list`
    [exit code 2]
    ");
}

#[test]
fn a_trial_that_was_applied_by_a_process_that_died_then() {
    let world = tried();
    world.dies("trial.applied", ["try", "--apply"]);
    assert_eq!(world.text("a"), "1\n");
    insta::assert_snapshot!(world.unmoved(["try", "--apply"]), @"
    error: there is nothing left to apply, and the trial is over
      why: all that it changed is real already
      next: see what made it so with `backout log`
    [exit code 1]
    ");
}

#[test]
fn many_changes_are_not_all_listed() {
    let world = World::new();
    let ran = world.unmoved([
        "try",
        "--",
        "sh",
        "-c",
        "for n in $(seq 10 52); do : > f$n; done",
    ]);
    let said = ran.to_string();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 43, "{said}");
    insta::assert_snapshot!([lines[0], lines[1], lines[40], lines[41]].join("\n"), @"
    sh -c 'for n in $(seq 10 52); do : > f$n; done' succeeded: 43 created
      + f10 (0 B)
      + f49 (0 B)
      and 3 more; see all with `backout try --show 9e3779b9`
    ");
}

#[test]
fn what_outlives_a_tried_command_is_named() {
    let world = World::new();
    let ran = world.cli([
        "try",
        "--",
        "sh",
        "-c",
        "sleep 1000 > /dev/null 2>&1 & echo 1 > a",
    ]);
    insta::assert_snapshot!(numberless(&ran), @"
    sh -c 'sleep 1000 > /dev/null 2>&1 & echo 1 > a' succeeded: 1 created
    note: process PID outlived the command: sleep 1000
      + a (2 B)
    hint: nothing was changed; apply it with `backout try --apply 9e3779b9`, look with `backout try --diff 9e3779b9`, or let it go with `backout try --discard 9e3779b9`
    ");
    assert!(!world.has("a"));
}

#[test]
fn where_layers_cannot_be_made() {
    if !is_root() {
        return;
    }
    let world = World::new().file("a", "0");
    // A namespace in which none may be made, and a root there who may do nothing that root may.
    let line = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    let words = ["--user", "--map-root-user", "/bin/sh", "-c", line, "sh"];
    let mut command = world.program("/usr/bin/unshare".as_ref(), &words);
    command.arg(env!("CARGO_BIN_EXE_backout"));
    let ran = world.still(|| world.run(command.args(["try", "--", "sh", "-c", "echo 1 > a"])));
    insta::assert_snapshot!(ran, @"
    error: the command was not run
      why: the layers could not be set up: cannot make a user namespace
      why: No space left on device (os error 28)
      next: run it for real, with every change recorded before it happens: `backout run -- COMMAND`
      next: allow user namespaces (sysctl user.max_user_namespaces), or try it as root
    [exit code 1]
    ");
}

/// Lays an overlay over every place where layers could be, and looks at a file when the command has ended.
const OVERLAID: &str = "mount -t tmpfs none /mnt
for place in tmp var/tmp dev/shm
do mkdir -p /mnt/$place/upper /mnt/$place/work
   mount -t overlay -o lowerdir=/$place,upperdir=/mnt/$place/upper,workdir=/mnt/$place/work none /$place
done
cd \"$PWD\"; \"$@\"; code=$?; cat a; exit $code";

#[test]
fn where_no_layer_can_be_put() {
    if !is_root() {
        return;
    }
    let world = World::new().file("a", "0\n");
    let words = ["--mount", "/bin/sh", "-c", OVERLAID, "sh"];
    let mut command = world.program("/usr/bin/unshare".as_ref(), &words);
    command.arg(env!("CARGO_BIN_EXE_backout"));
    let ran = world.still(|| world.run(command.args(["try", "--", "sh", "-c", "echo 1 > a"])));
    insta::assert_snapshot!(ran, @"
    0
    error: the command was not run
      why: no file system here can hold the layers
      why: $WORLD/state/trials/9e3779b97f4a7c15/layers: it is an overlay itself
      why: /dev/shm/.backout-trial-9e3779b97f4a7c15: it is an overlay itself
      why: /var/tmp/.backout-trial-9e3779b97f4a7c15: it is an overlay itself
      why: /tmp/.backout-trial-9e3779b97f4a7c15: it is an overlay itself
      next: put the state directory on a disk or a tmpfs with `--state-dir`
      next: run it for real, with every change recorded before it happens: `backout run -- COMMAND`
    [exit code 1]
    ");
}

#[test]
fn a_file_that_something_is_mounted_on_is_read_only_in_a_trial() {
    if !crate::claims::is_root() {
        return;
    }
    let world = World::new().file("a", "0").file("b", "1");
    let mounted = |words: &[&str]| {
        let mut command = world.program(std::path::Path::new("/usr/bin/env"), words);
        assert_eq!(world.run(&mut command).code, 0);
    };
    mounted(&["mount", "--bind", "a", "b"]);
    let ran = world.cli(["try", "--discard", "--", "sh", "-c", "echo 2 > b"]);
    mounted(&["umount", "b"]);
    insta::assert_snapshot!(ran, @"
    sh: 1: cannot create b: Read-only file system
    sh -c 'echo 2 > b' failed with 2: nothing changed
    note: `b` could only be read inside: Invalid argument (os error 22)
    [exit code 2]
    ");
    assert_eq!((world.text("a"), world.text("b")), ("0".into(), "1".into()));
}

#[test]
fn what_a_discard_leaves_of_a_trial_that_was_applied_in_part_is_said() {
    let world = World::new();
    let tried = world.cli(["try", "--", "sh", "-c", "echo 1 > x; echo 1 > y"]);
    assert_eq!(tried.code, 0, "{tried}");
    world.did(["try", "--apply", "--only", "y"]);
    insta::assert_snapshot!(world.unmoved(["try", "--discard"]), @"discarded the rest of the trial 9e3779b9; what was applied before stays as it is");
    assert!(world.has("y") && !world.has("x"));
}

#[test]
fn backout_inside_of_a_trial_says_that_it_cannot_be_used_there() {
    let world = World::new().file("f.json", "{\"a\": 1}\n");
    let program = env!("CARGO_BIN_EXE_backout");
    for words in [&["set", "f.json", "a", "2"][..], &["log"]] {
        let mut tried = world.command(&["try", "--discard", "--", program]);
        let ran = world.run(tried.args(words)).to_string();
        // Behind it stands what became of the trial.
        let said: Vec<&str> = ran.lines().take(3).collect();
        insta::allow_duplicates! {
            insta::assert_snapshot!(said.join("\n"), @"
            error: `backout` cannot be used inside of a trial
              why: `$WORLD/state` is hidden there, so that what is tried changes nothing
              next: try the command itself, without `backout`: `try` shows what it changes, and applies it as an operation
            ");
        }
    }
}
