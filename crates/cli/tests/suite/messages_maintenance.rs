//! What is said of checks, repairs, letting go, and of differences.
//!
//! Without a test: "openat2 does not work", "copies share their blocks", "check the disk", "check that the state directory
//! is there" (they tell of other machines, or of failing calls), "could not be removed" (failing calls), "found again ...
//! lost" of chunks (`proof/damage` hurts a store in every such way).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::claims::Disk;
use crate::world::{Ran, World};

fn used() -> World {
    let world = World::new().file("a", "0\n").file("b", "0\n");
    world.did(["write", "a", "--text", "1\n"]);
    world.did(["write", "b", "--text", "1\n"]);
    world
}

fn tamper(world: &World, sql: &str) {
    let journal = rusqlite::Connection::open(world.place("state/journal.sqlite")).unwrap();
    journal.execute_batch(sql).unwrap();
}

/// What the doctor says of a check, with its advice; and of what was repaired.
fn said(ran: &Ran, check: &str) -> String {
    let mut lines = ran.out.lines().skip_while(|line| !line.contains(check));
    let first = lines.next().unwrap();
    let advice = lines.take_while(|line| line.contains("next: "));
    let mut shown = vec![first];
    shown.extend(advice);
    shown.join("\n")
}

#[test]
fn a_repair_says_what_was_saved() {
    let world = used();
    insta::assert_snapshot!(said(&world.unmoved(["doctor", "--repair"]), "repair"), @"nothing needed repair");
    let hurt = "DROP TRIGGER record_is_append_only; UPDATE record SET body = x'00' WHERE lsn = 1";
    tamper(&world, hurt);
    let ran = world.unmoved(["doctor"]);
    insta::assert_snapshot!(said(&ran, "journal"), @"
    bad  journal       6 records, 2 contents, 0 kept inodes: 3 are not as they must be
                       next: see which, and what can still be undone, with `backout verify`; save what can be saved with `backout doctor --repair`
    ");
    insta::assert_snapshot!(world.unmoved(["verify"]), @"
    checked 6 records, 2 contents and 0 kept inodes: 3 findings
      record 1            record 1 does not match its hash
      operation 9e3779b9  it is listed, but no record of it can be trusted
      operation 9e3779b9  the table `target` has a row that no record gives for it
    1 operation can still be undone: 3c6ef372
    1 operation cannot be undone any more
      9e3779b9  it is listed, but no record of it can be trusted
    hint: save what can be saved with `backout doctor --repair`
    [exit code 3]
    ");
    let repaired = world.cli(["doctor", "--repair"]);
    let told: Vec<&str> = repaired
        .out
        .lines()
        .take_while(|line| !line.starts_with("ok"))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    the journal was put together again: 5 records and 2 contents saved, 1 record lost
      record 1 is lost
      1 operation lost with their records, and unknown from now on: 9e3779b9
      the damaged journal is kept as `$WORLD/state/journal.damaged-1`
    1 operation can be undone
    ");
    insta::assert_snapshot!(world.unmoved(["verify"]), @"
    checked 6 records, 2 contents and 0 kept inodes: all as they must be
    the journal was repaired at record 7: record 1 is lost; the damaged one is `journal.damaged-1` in the state directory
    ");
    assert!(world.place("state/journal.damaged-1").exists());
    world.did(["undo", "3c6e"]);
    assert_eq!(
        (world.text("a").as_str(), world.text("b").as_str()),
        ("1\n", "0\n")
    );
}

#[test]
fn a_repair_says_what_is_lost() {
    let world = used();
    let hurt = "DROP TRIGGER record_is_cut_at_the_anchor; DELETE FROM record WHERE operation = (SELECT id FROM operation WHERE lsn = 1); DELETE FROM operation WHERE lsn = 1; DELETE FROM target WHERE lsn = 1";
    tamper(&world, hurt);
    let repaired = world.cli(["doctor", "--repair"]);
    let told: Vec<&str> = repaired
        .out
        .lines()
        .take_while(|line| !line.starts_with("ok"))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    the journal was put together again: 3 records and 2 contents saved, 3 records lost
      records 1–3 are lost
      1 operation known, but not undoable: nothing vouches for their record: 3c6ef372
      the damaged journal is kept as `$WORLD/state/journal.damaged-1`
    0 operations can be undone
    ");
    insta::assert_snapshot!(world.unmoved(["verify"]), @"
    checked 5 records, 0 contents and 0 kept inodes
    the journal was repaired at record 7: records 1–3 are lost; the damaged one is `journal.damaged-1` in the state directory
    0 operations can still be undone
    1 operation cannot be undone any more
      3c6ef372  it can no longer be undone: its record cannot be checked, since the one before it is lost
    ");
    insta::assert_snapshot!(world.unmoved(["log"]), @"●  3c6ef372  just now  committed  write b  (no longer undoable)");
    assert_eq!(
        (world.text("a").as_str(), world.text("b").as_str()),
        ("1\n", "1\n")
    );
}

#[test]
fn images_that_are_lost_are_noted_by_a_repair() {
    let world = used();
    tamper(&world, "DELETE FROM content");
    let repaired = world.unmoved(["doctor", "--repair"]);
    let told: Vec<&str> = repaired
        .out
        .lines()
        .take_while(|line| !line.starts_with("ok"))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    2 operations cannot be undone any more
      3c6ef372  the content 50cc1102b1c612e6962547aacdcef9a400d4416ef8dd9388e885991853c400c9 is missing from the store
      9e3779b9  the content 50cc1102b1c612e6962547aacdcef9a400d4416ef8dd9388e885991853c400c9 is missing from the store
    0 operations can be undone
    ");
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: operation 3c6ef372 can no longer be undone
      why: the images of 3c6ef372 are no longer kept
      next: see what the journal still knows with `backout show 3c6ef372`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["show", "@"]), @"
    3c6ef372  write b
      id        3c6ef372fe94f82a
      status    committed, no longer undoable: its images are no longer kept
      when      2027-01-15 08:00:00 UTC (just now)
      target    b
      strategy  snapshot  small enough to keep whole (size 2)
      cost      4 B stored
      journal   4 intent, 5 applied, 6 commit
      note      it can no longer be undone: the content 50cc1102b1c612e6962547aacdcef9a400d4416ef8dd9388e885991853c400c9 is missing from the store
    ");
}

#[test]
fn what_the_dead_left_is_taken_back_by_a_repair() {
    let world = World::new().file("a", "0");
    world.dies("file.swapped", ["write", "a", "--text", "1"]);
    let repaired = world.cli(["doctor", "--repair"]);
    let told: Vec<&str> = repaired
        .out
        .lines()
        .take_while(|line| !line.starts_with("ok"))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    settled 1 operation and rolled back 0 tasks of dead processes
    0 operations can be undone
    ");
    assert_eq!(world.text("a"), "0");
}

#[test]
fn a_doctor_says_what_is_good_and_what_is_not() {
    let world = used();
    let ran = world.unmoved(["doctor"]);
    let checks = [
        "privacy",
        "unfinished",
        "stuck",
        "staging",
        "resolution",
        "live capture",
        "layers",
    ];
    insta::assert_snapshot!(checks.map(|check| said(&ran, check)).join("\n"), @"
    ok  privacy       the state directory is closed to others
    ok  unfinished    0 operations under way, none abandoned
    ok  stuck         nothing waits for a person
    ok  staging       nameless files work in `.`
    ok  resolution    openat2 works
    ok  live capture  `run` works: commands can be watched
    ok  layers        `try` works: commands can run in layers
    ");
    let Some(_disk) = Disk::at(world.place("small"), 8192) else {
        return;
    };
    let mut command = world.command(&["doctor"]);
    let ran = world.run(command.env("BACKOUT_STATE_DIR", world.place("small")));
    let space = said(&ran, "space");
    assert!(space.contains(" MiB free for the store"), "{space}");
    insta::assert_snapshot!(space.lines().last().unwrap(), @"                   next: make room: a write whose undo cannot be kept is refused");
    assert_eq!(ran.code, 1);
}

#[test]
fn a_directory_without_nameless_files() {
    let world = used();
    let mut command = world.command(&["doctor"]);
    let ran = world.run(command.current_dir("/proc"));
    insta::assert_snapshot!(said(&ran, "staging"), @"
    bad  staging       nameless files do not work in `.` (Operation not supported (os error 95))
                       next: nothing to do: large files are staged in the state directory
    ");
}

#[test]
fn a_state_directory_that_was_open_to_others_is_closed() {
    let world = used();
    let state = world.place("state");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    insta::assert_snapshot!(said(&world.unmoved(["doctor"]), "privacy"), @"ok  privacy       the state directory is closed to others");
    assert_eq!(
        state.metadata().unwrap().permissions().mode() & 0o777,
        0o700
    );
}

#[test]
fn differences_that_are_not_of_lines() {
    let world = World::new().file("a", "0\n").file("b", "b\n");
    fs::write(world.path("bytes"), [0, 159, 146, 150]).unwrap();
    world.did(["write", "bytes", "--text", "text"]);
    insta::assert_snapshot!(world.unmoved(["diff", "@"]), @"
    changed bytes
      content 4 B -> 4 B, not shown: binary
    ");
    world.piped(&[0, 159], ["write", "more"]);
    insta::assert_snapshot!(world.unmoved(["diff", "@"]), @"
    created more
      file, mode 0644, owner root:root, 2 B
      content not shown: binary
    ");
    world.did(["run", "--", "sh", "-c", "rm a; ln b a"]);
    insta::assert_snapshot!(world.unmoved(["diff", "@"]), @"
    changed a
      now another name of b
    --- a/a
    +++ b/a
    @@ -1 +1 @@
    -0
    +b
    ");
    let large = "line\n".repeat(400_000);
    world.put("large", &large);
    world.did(["edit", "large", "--nth", "1", "-s", "line", "-r", "first"]);
    insta::assert_snapshot!(world.unmoved(["diff", "@"]), @"
    changed large
      content 1.9 MiB -> 1.9 MiB, not shown: too large to compare by line
    ");
}

#[test]
fn a_day_is_said_as_a_day() {
    let world = used();
    world.minutes(60 * 25);
    insta::assert_snapshot!(world.unmoved(["log"]), @"
    ●  3c6ef372  1 day ago  committed  write b
    ●  9e3779b9  1 day ago  committed  write a
    ");
}
