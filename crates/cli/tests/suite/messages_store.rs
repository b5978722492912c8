//! What is said when the state directory, the journal or what it keeps cannot be used. Nothing was written then.
//!
//! Without a test: a journal that takes no more writes after a failed sync (`proof/errno` has it), a database that stays
//! locked (it is waited for, a minute), a target that is leased and a record that is not there (nothing says these two any
//! more).

use std::fs;
use std::os::unix::fs::chown;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::claims::{Disk, is_root, numberless};
use crate::world::{Ran, World};

/// The steps of a write of an existing file up to the moment when the new content is staged.
const UNTIL_STAGED: [&str; 5] = [
    "journal.before-commit",
    "journal.after-commit",
    "engine.leased",
    "file.staged",
    "file.prepared",
];

/// The steps of a batch of two writes up to the moment when the first of them can be seen.
const UNTIL_HALF: [&str; 18] = [
    "journal.before-commit",
    "journal.after-commit",
    "engine.leased",
    "file.staged",
    "file.staged",
    "file.prepared",
    "engine.staged",
    "engine.before-arm",
    "journal.contents-put",
    "journal.before-commit",
    "journal.after-commit",
    "engine.armed",
    "file.made",
    "file.made",
    "file.synced",
    "file.synced",
    "file.swap",
    "file.swapped",
];

fn one_write() -> World {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world
}

/// Runs the command with its state somewhere in the world.
fn with_state(world: &World, state: &str, arguments: &[&str]) -> Ran {
    let mut command = world.command(arguments);
    world.run(command.env("BACKOUT_STATE_DIR", world.place(state)))
}

fn tamper(world: &World, sql: &str) {
    let journal = rusqlite::Connection::open(world.place("state/journal.sqlite")).unwrap();
    journal.execute_batch(sql).unwrap();
}

#[test]
fn a_state_directory_that_cannot_be() {
    let world = World::new().file("a", "0");
    fs::write(world.place("taken"), "a file").unwrap();
    let ran = world.still(|| with_state(&world, "taken", &["write", "a", "--text", "1"]));
    insta::assert_snapshot!(ran, @"
    error: could not create `$WORLD/taken`
      why: File exists (os error 17)
      next: check the path, its permissions and the disk, or choose another with `--state-dir`
    [exit code 1]
    ");
}

#[test]
fn a_state_directory_of_somebody_else() {
    if !is_root() {
        return;
    }
    let world = World::new().file("a", "0");
    fs::create_dir(world.place("theirs")).unwrap();
    chown(world.place("theirs"), Some(65_534), None).unwrap();
    let ran = world.still(|| with_state(&world, "theirs", &["write", "a", "--text", "1"]));
    insta::assert_snapshot!(ran, @"
    error: the state directory `$WORLD/theirs` is not ours
      why: it belongs to user 65534; images are private to one user
      next: choose another with `--state-dir`, or run as that user
    [exit code 1]
    ");
    assert_eq!(fs::read_dir(world.place("theirs")).unwrap().count(), 0);
}

#[test]
fn a_state_directory_that_another_machine_uses() {
    let world = one_write();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let other = serde_json::json!({
        "host": "beta",
        "name": "beta.example",
        "boot": "another",
        "at": u64::try_from(now.as_millis()).unwrap(),
    });
    fs::write(world.place("state/host"), other.to_string()).unwrap();
    insta::assert_snapshot!(world.unmoved(["write", "a", "--text", "2"]), @"
    error: the state directory `$WORLD/state` is used by the host `beta.example`
      why: that host wrote to it less than a minute ago, and a store serves one machine at a time
      next: choose a directory on a disk of this machine with `--state-dir`
      next: if `beta.example` does not use it any more, remove `$WORLD/state/host`
    [exit code 1]
    ");
    let mut shared = world.command(&["log"]);
    let shared = world.run(shared.env("BACKOUT_TEST_SHARED", "1"));
    insta::assert_snapshot!(shared, @"
    error: the state directory `$WORLD/state` is used by the host `beta.example`
      why: it is on a file system that several machines share, and a store serves one machine at a time
      next: choose a directory on a disk of this machine with `--state-dir`
      next: if `beta.example` does not use it any more, remove `$WORLD/state/host`
    [exit code 1]
    ");
}

#[test]
fn a_disk_of_the_state_that_is_full_or_read_only() {
    let world = World::new().file("a", "0");
    let Some(disk) = Disk::at(world.place("state"), 700) else {
        return;
    };
    world.did(["write", "a", "--text", "1"]);
    disk.fill();
    insta::assert_snapshot!(world.unmoved(["write", "a", "--text", "2"]), @"
    error: no space left for the journal in `$WORLD/state`
      why: a write whose undo cannot be kept does not happen
      next: make room on that disk; then `backout gc` can let old images go
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["gc"]), @"
    error: no space left for the journal in `$WORLD/state`
      why: a write whose undo cannot be kept does not happen
      next: make room on that disk; then `backout gc` can let old images go
    [exit code 1]
    ");
    fs::remove_file(world.place("state/filler")).unwrap();
    disk.lock();
    insta::assert_snapshot!(world.unmoved(["write", "a", "--text", "2"]), @"
    error: the state directory `$WORLD/state` is read-only
      why: a write whose undo cannot be kept does not happen
      next: mount it writable, or choose another with `--state-dir`
    [exit code 1]
    ");
}

#[test]
fn a_journal_without_its_end() {
    let world = one_write();
    let (log, away) = (world.place("state/journal.sqlite-wal"), world.place("away"));
    fs::rename(&log, &away).unwrap();
    insta::assert_snapshot!(world.unmoved(["write", "a", "--text", "2"]), @"
    error: the journal has lost its newest records
      why: it ends at record 0, but it had come to 3
      next: put `journal.sqlite-wal` back, if it was moved away
      next: save what can be saved with `backout doctor --repair`; it keeps the damaged files
    [exit code 3]
    ");
    fs::remove_file(world.place("state/journal.sqlite-shm")).unwrap();
    fs::rename(&away, &log).unwrap();
    world.did(["undo"]);
    assert_eq!(world.text("a"), "0");
}

#[test]
fn a_journal_that_is_gone() {
    let world = one_write();
    let (journal, away) = (world.place("state/journal.sqlite"), world.place("away"));
    fs::rename(&journal, &away).unwrap();
    insta::assert_snapshot!(world.unmoved(["write", "a", "--text", "2"]), @"
    error: the journal `$WORLD/state/journal.sqlite` is damaged
      why: it is gone, but what belongs to it is not
      next: put it back from a copy, if there is one
      next: save what can be saved with `backout doctor --repair`; it keeps the damaged files
    [exit code 3]
    ");
    fs::rename(&away, &journal).unwrap();
    world.did(["undo"]);
    assert_eq!(world.text("a"), "0");
}

#[test]
fn a_record_that_somebody_changed() {
    let world = one_write();
    tamper(
        &world,
        "DROP TRIGGER record_is_append_only; UPDATE record SET body = x'00' WHERE lsn = 1",
    );
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: the journal's chain is broken
      why: record 1 does not match its hash
      next: see all of the damage with `backout verify`
      next: save what can be saved with `backout doctor --repair`
    [exit code 3]
    ");
    assert_eq!(world.text("a"), "1");
}

#[test]
fn a_table_that_somebody_changed() {
    let world = one_write();
    tamper(&world, "UPDATE operation SET status = 'nonsense'");
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: the journal contradicts itself at operation 9e3779b97f4a7c15
      why: unknown variant `nonsense`, expected one of `proposed`, `refused`, `armed`, `applied`, `committed`, `interrupted`, `aborted`, `undone`, `in-doubt`, `failed`
      next: see all of the damage with `backout verify`
      next: save what can be saved with `backout doctor --repair`
    [exit code 3]
    ");
    insta::assert_snapshot!(world.unmoved(["verify"]), @"
    checked 3 records, 2 contents and 0 kept inodes: 1 finding
      operation 9e3779b9  it is listed as nonsense, but its records make it committed
    1 operation can still be undone: 9e3779b9
    hint: save what can be saved with `backout doctor --repair`
    [exit code 3]
    ");
    world.did(["doctor", "--repair"]);
    world.did(["undo"]);
    assert_eq!(world.text("a"), "0");
}

#[test]
fn an_id_that_is_taken() {
    let world = one_write();
    world.next_id_is(1);
    insta::assert_snapshot!(world.unmoved(["write", "b", "--text", "1"]), @"
    error: nothing was written: the undo could not be recorded
      why: operation 9e3779b97f4a7c15 exists already
      next: try again
    [exit code 1]
    ");
    world.did(["write", "b", "--text", "1"]);
}

#[test]
fn a_kept_content_that_is_gone() {
    let world = one_write();
    tamper(&world, "DELETE FROM content");
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: nothing was undone
      why: `a`: its content 4d067153ac72 is missing from the store
      next: see what the journal still knows with `backout show 9e3779b9`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["restore", "a", "--from", "@"]), @"
    error: nothing was written: a kept content is gone
      why: the content 4d067153ac72 is not in the store, or not any more
      next: try again; if it stays so, see `backout verify`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["diff", "@"]), @"
    error: a kept content cannot be had
      why: the content 4d067153ac729a4a7e8220c97935ffba67487860d58298ceeb23864369867d9f is missing from the store
      next: see what else is damaged with `backout verify`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["verify"]), @"
    checked 7 records, 2 contents and 0 kept inodes: 2 findings
      content 4d067153ac729a4a  the content 4d067153ac729a4a7e8220c97935ffba67487860d58298ceeb23864369867d9f is missing from the store; needed to undo 9e3779b9
      content d63bd9a826af91c1  the content d63bd9a826af91c1fea371965a64e11ee20f13e46b5f52c59901136605b3a487 is missing from the store; needed to undo 9e3779b9
    0 operations can still be undone
    1 operation cannot be undone any more
      9e3779b9  the content d63bd9a826af91c1fea371965a64e11ee20f13e46b5f52c59901136605b3a487 is missing from the store
    hint: save what can be saved with `backout doctor --repair`
    [exit code 3]
    ");
}

#[test]
fn a_state_directory_that_is_deleted_while_in_use() {
    let world = one_write();
    let waiting = world.after_steps(&UNTIL_STAGED, &["write", "a", "--text", "2"]);
    let (state, away) = (world.place("state"), world.place("away"));
    fs::rename(&state, &away).unwrap();
    insta::assert_snapshot!(world.go_on(waiting), @"
    error: nothing was written: the undo could not be recorded
      why: the state directory `$WORLD/state` was deleted while in use
      why: without it nothing can be undone, so nothing is written
      next: put it back from a copy, or run the command again to begin with an empty one
    [exit code 3]
    ");
    assert_eq!(world.text("a"), "1");
    assert!(!state.exists());
    fs::rename(&away, &state).unwrap();
    world.did(["undo"]);
    assert_eq!(world.text("a"), "0");
}

#[test]
fn a_batch_that_stops_over_what_somebody_made_of_its_first_half() {
    let world = World::new().file("a", "a0").file("b", "b0");
    world.did(["write", "c", "--text", "0"]);
    let batch = r#"{"changes": [{"write": {"path": "a", "text": "a1"}}, {"write": {"path": "b", "text": "b1"}}]}"#;
    world.put("batch.json", batch);
    let waiting = world.after_steps(&UNTIL_HALF, &["batch", "batch.json"]);
    world.put("a", "theirs");
    world.put("b", "theirs too");
    insta::assert_snapshot!(world.go_on(waiting), @"
    error: operation 3c6ef372 is half done
      why: `a` is half done: putting it back failed (somebody else changed it meanwhile)
      why: `b` changed while the operation was being prepared
      why: `a`: failed: content changed since (2 -> 6 bytes)
      why: `b`: failed: content changed since (2 -> 10 bytes)
      next: see what is kept with `backout show 3c6ef372`
      next: take back what can be with `backout recover --rollback 3c6ef372`, or accept what is there with `backout recover --keep 3c6ef372`
    [exit code 1]
    ");
    assert_eq!(
        (world.text("a"), world.text("b")),
        ("theirs".into(), "theirs too".into())
    );
    assert_eq!(world.newest_status(), "in-doubt");
    world.did(["recover", "--rollback", "@", "--force"]);
    assert_eq!(
        (world.text("a"), world.text("b")),
        ("a0".into(), "b0".into())
    );
    world.did(["redo", "@"]);
    assert_eq!(
        (world.text("a"), world.text("b")),
        ("theirs".into(), "theirs too".into())
    );
}

#[test]
fn a_file_that_somebody_writes_at_the_same_moment() {
    let world = one_write();
    let waiting = world.after_steps(&UNTIL_STAGED, &["write", "a", "--text", "2"]);
    world.put("a", "theirs");
    let tree = world.tree();
    insta::assert_snapshot!(world.go_on(waiting), @"
    error: `a` changed while the operation was being prepared
      why: somebody else writes it
      why: operation 3c6ef372 was put back: nothing of it stays
      next: look at it and try again
    [exit code 1]
    ");
    assert_eq!(world.tree(), tree);
    assert_eq!(world.newest_status(), "aborted");
}

#[test]
fn a_store_that_somebody_else_has_open_is_not_repaired() {
    let world = one_write();
    tamper(
        &world,
        "DROP TRIGGER record_is_append_only; UPDATE record SET body = x'00' WHERE lsn = 1",
    );
    let other = rusqlite::Connection::open(world.place("state/journal.sqlite")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    insta::assert_snapshot!(world.still(|| world.cli(["doctor", "--repair"])), @"
    error: nothing was repaired: the store is being used
      why: another process has it open
      next: try again when it is done
    [exit code 1]
    ");
}

#[test]
fn a_store_that_is_in_use_is_not_repaired() {
    let world = one_write();
    let damage = "DROP TRIGGER record_is_append_only; UPDATE record SET body = x'00' WHERE lsn = 1";
    let waiting = world.after_steps(&UNTIL_STAGED, &["write", "a", "--text", "2"]);
    tamper(&world, damage);
    insta::assert_snapshot!(numberless(&world.unmoved(["doctor", "--repair"])), @"
    error: nothing was repaired: the store is being used
      why: process PID is writing through it
      next: try again when it is done
    [exit code 1]
    ");
    let is_repaired = |name: &str| world.place("state").join(name).exists();
    assert!(!is_repaired("journal.repaired"));
    assert_eq!(world.go_on(waiting).code, 0);
}

#[test]
fn a_file_that_another_process_writes_is_waited_for_until_ctrl_c() {
    let world = one_write();
    let writing = world.after_steps(&UNTIL_STAGED, &["write", "a", "--text", "2"]);
    let mut second = world.command(&["write", "a", "--text", "3"]);
    let log = world.place("log");
    let second = second.env("BACKOUT_CRASH_LOG", &log);
    let second = second
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let second = second.spawn().unwrap();
    // It has asked for the lease once.
    while !log.exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&second), Signal::INT).unwrap();
    let ran = world.ran(&second.wait_with_output().unwrap());
    insta::assert_snapshot!(ran, @"
    error: it was interrupted
    [exit code 130]
    ");
    assert_eq!(world.text("a"), "1");
    assert_eq!(world.go_on(writing).code, 0);
    assert_eq!(world.text("a"), "2");
}

#[test]
fn what_became_of_an_operation_whose_records_are_gone_is_taken_from_a_table() {
    let world = World::new().file("a", "0");
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "b", "--text", "2"]);
    tamper(
        &world,
        "DROP TRIGGER record_is_cut_at_the_anchor; DELETE FROM record WHERE lsn BETWEEN 2 AND 3",
    );
    let repaired = world.unmoved(["doctor", "--repair"]).to_string();
    let repaired: Vec<&str> = repaired.lines().take(6).collect();
    insta::assert_snapshot!(repaired.join("\n"), @"
    the journal was put together again: 4 records and 3 contents saved, 2 records lost
      records 2–3 are lost
      1 operation known, but not undoable: nothing vouches for their record: 3c6ef372
      1 operation with an outcome taken from a table, not from a record: 9e3779b9
      the damaged journal is kept as `$WORLD/state/journal.damaged-1`
    1 operation can be undone
    ");
    insta::assert_snapshot!(world.cli(["undo", "9e37"]), @"
    undid 9e3779b9  write a
      a  restored
    1 later operation stayed:
      3c6ef372  write b  independent
    hint: take this back with `backout redo 78dde6e5`
    ");
    assert_eq!(world.text("a"), "0");
}
