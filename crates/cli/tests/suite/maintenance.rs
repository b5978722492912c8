//! `recover`, `verify`, `gc`, `doctor`, `export`, `completions`, `man`.

use crate::world::World;

fn used_world() -> World {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "a", "--text", "2"]);
    world
}

#[test]
fn a_healthy_store_is_verified() {
    insta::assert_snapshot!(used_world().cli(["verify"]), @"checked 6 records, 2 contents and 0 kept inodes: all as they must be");
}

#[test]
fn a_damaged_store_is_told_record_by_record() {
    let world = used_world();
    let journal = rusqlite::Connection::open(world.place("state/journal.sqlite")).unwrap();
    let tampering =
        "DROP TRIGGER record_is_append_only; UPDATE record SET at = at + 1 WHERE lsn = 2";
    journal.execute_batch(tampering).unwrap();
    insta::assert_snapshot!(world.cli(["verify"]), @r"
    checked 6 records, 2 contents and 0 kept inodes: 2 findings
      record 2            record 2 does not match its hash
      operation 9e3779b9  its `completion` is not what its records say
    2 operations can still be undone: 3c6ef372, 9e3779b9
    hint: save what can be saved with `backout doctor --repair`
    [exit code 3]
    ");
}

#[test]
fn nothing_unfinished_needs_no_recovery() {
    insta::assert_snapshot!(used_world().cli(["recover"]), @"nothing was left unfinished");
}

#[test]
fn what_a_dead_process_left_behind_is_recovered() {
    let world = World::new().file("a", "before");
    let crash = world.run(
        world
            .command(&["write", "a", "--text", "half"])
            .env("BACKOUT_CRASH_AT", "engine.applied"),
    );
    assert_ne!(crash.code, 0);
    insta::assert_snapshot!(world.cli(["recover"]), @"
    9e3779b9  write a  now undone
      a  restored
      its process died half-way, and what it had done was taken back; bring it back with `backout redo 9e3779b9`
    ");
    assert_eq!(world.text("a"), "before");
}

#[test]
fn old_images_are_let_go() {
    let world = used_world();
    world.minutes(60 * 24 * 40);
    insta::assert_snapshot!(world.cli(["gc", "--dry-run"]), @r"
    would let the images of 2 operations go: they can no longer be undone
      2 operations  past the retention window
      store         held 2 B, would then hold 0 B
    ");
    insta::assert_snapshot!(world.cli(["gc"]), @r"
    let the images of 2 operations go: they can no longer be undone
      2 operations  past the retention window
      store         held 2 B, holds now 0 B
    ");
    insta::assert_snapshot!(world.cli(["undo"]), @"
    error: operation 3c6ef372 can no longer be undone
      why: the images of 3c6ef372 are no longer kept
      next: see what the journal still knows with `backout show 3c6ef372`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["log"]), @r"
    ╭●   3c6ef372  2027-01-15  committed  write a  (no longer undoable)
    ╰●   9e3779b9  2027-01-15  committed  write a  (no longer undoable)
    ");
    // What happened is known for a week longer, then it leaves the journal.
    world.minutes(60 * 24 * 48);
    assert!(world.cli(["gc"]).to_string().contains("old records"));
    insta::assert_snapshot!(world.cli(["log"]), @"no operations");
}

#[test]
fn retention_can_be_set() {
    let world = used_world();
    world.minutes(120);
    insta::assert_snapshot!(world.cli(["gc", "-n"]), @r"
    no image is past its retention
      store  held 2 B, would then hold 2 B
    ");
    insta::assert_snapshot!(world.cli(["gc", "-n", "--preset", "article"]), @r"
    would let the images of 2 operations go: they can no longer be undone
      2 operations  past the retention window
      store         held 2 B, would then hold 0 B
    ");
    insta::assert_snapshot!(world.cli(["gc", "-n", "--keep", "90min"]), @r"
    would let the images of 2 operations go: they can no longer be undone
      2 operations  past the retention window
      store         held 2 B, would then hold 0 B
    ");
    insta::assert_snapshot!(world.cli(["gc", "-n", "--keep", "soon"]), @r"
    error: invalid value 'soon' for '--keep <DURATION>': a duration is like 30d, 12h or 90min

    For more information, try '--help'.
    [exit code 2]
    ");
}

#[test]
fn a_full_store_refuses_the_next_write() {
    let world = used_world();
    insta::assert_snapshot!(world.cli(["--cap", "1", "write", "a", "--text", "3"]), @r"
    error: nothing was written: the store is full
      why: it holds 2 bytes, its cap is 1
      why: nothing in it may be let go yet: it is uncommitted or not an hour old
      next: commit or roll back open tasks (`backout status`), then `backout gc`
      next: raise the cap with `--cap` or BACKOUT_CAP_BYTES
    [exit code 1]
    ");
    assert_eq!(world.text("a"), "2");
}

#[test]
fn a_doctor_checks_store_and_machine() {
    let ran = used_world().cli(["doctor"]);
    assert_eq!(ran.code, 0, "{ran}");
    let checks: Vec<&str> = ran
        .out
        .lines()
        .map(|line| line.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(
        checks,
        [
            "store",
            "privacy",
            "space",
            "journal",
            "unfinished",
            "stuck",
            "failed",
            "staging",
            "resolution",
            "reflink",
            "live",
            "layers"
        ]
    );
}

#[test]
fn the_journal_is_exported_as_lines_of_json() {
    let world = used_world();
    let ran = world.cli(["export"]);
    assert_eq!(ran.code, 0);
    let events: Vec<String> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].to_string())
        .collect();
    assert_eq!(
        events.join(" "),
        r#""intent" "applied" "commit" "intent" "applied" "commit""#
    );
    insta::assert_snapshot!(world.cli(["export", "--from", "4", "-o", "audit.jsonl"]), @"exported 2 records");
    assert_eq!(world.text("audit.jsonl").lines().count(), 2);
    insta::assert_snapshot!(world.cli(["export", "-o", "audit.jsonl"]), @r"
    error: `audit.jsonl` could not be made
      why: File exists (os error 17)
      next: choose another name
    [exit code 1]
    ");
}

#[test]
fn completions_and_manual_pages_are_made() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = world.cli(["completions", shell]);
        assert!(ran.code == 0 && ran.out.contains("checkpoint"), "{shell}");
    }
    assert!(world.cli(["man"]).out.contains(".TH backout 1"));
    std::fs::create_dir(world.path("man")).unwrap();
    insta::assert_snapshot!(world.cli(["man", "--dir", "man"]), @"wrote the manual pages into man");
    assert!(world.has("man/backout-undo.1"));
}

#[test]
fn the_size_that_is_told_is_the_size_after_packing() {
    let world = World::new();
    let lines = (0..2000).map(|line| format!("{line} {}\n", line * 7919 % 1009));
    let text: String = lines.collect();
    for version in 0..8 {
        let wrote = world.piped(
            format!("{text}{version}\n").as_bytes(),
            ["write", "f", "-q"],
        );
        assert_eq!(wrote.code, 0, "{wrote}");
    }
    let collected = world.cli(["gc", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&collected.out).unwrap();
    let collected = &told["collected"];
    assert!(told["compacted"]["rewritten"].as_u64() > Some(0), "{told}");
    let status = world.cli(["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(
        collected["after"]["total"], status["stored"]["total"],
        "{told}"
    );
}
