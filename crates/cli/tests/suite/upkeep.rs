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
    insta::assert_snapshot!(used_world().cli(["verify"]), @"");
}

#[test]
fn a_damaged_store_is_told_record_by_record() {
    let world = used_world();
    let journal = rusqlite::Connection::open(world.place("state/journal.sqlite")).unwrap();
    journal
        .execute("UPDATE record SET at = at + 1 WHERE lsn = 2", [])
        .unwrap();
    insta::assert_snapshot!(world.cli(["verify"]), @"");
}

#[test]
fn nothing_unfinished_needs_no_recovery() {
    insta::assert_snapshot!(used_world().cli(["recover"]), @"");
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
    insta::assert_snapshot!(world.cli(["recover"]), @"");
    assert_eq!(world.text("a"), "before");
}

#[test]
fn old_images_are_let_go() {
    let world = used_world();
    world.minutes(60 * 24 * 40);
    insta::assert_snapshot!(world.cli(["gc", "--dry-run"]), @"");
    insta::assert_snapshot!(world.cli(["gc"]), @"");
    insta::assert_snapshot!(world.cli(["undo"]), @"");
    insta::assert_snapshot!(world.cli(["log"]), @"");
}

#[test]
fn retention_can_be_set() {
    let world = used_world();
    world.minutes(120);
    insta::assert_snapshot!(world.cli(["gc", "-n"]), @"");
    insta::assert_snapshot!(world.cli(["gc", "-n", "--preset", "article"]), @"");
    insta::assert_snapshot!(world.cli(["gc", "-n", "--keep", "90min"]), @"");
    insta::assert_snapshot!(world.cli(["gc", "-n", "--keep", "soon"]), @"");
}

#[test]
fn a_full_store_refuses_the_next_write() {
    let world = used_world();
    insta::assert_snapshot!(world.cli(["--cap", "1", "write", "a", "--text", "3"]), @"");
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
            "staging",
            "resolution",
            "reflink"
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
    insta::assert_snapshot!(world.cli(["export", "--from", "4", "-o", "audit.jsonl"]), @"");
    assert_eq!(world.text("audit.jsonl").lines().count(), 2);
    insta::assert_snapshot!(world.cli(["export", "-o", "audit.jsonl"]), @"");
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
    insta::assert_snapshot!(world.cli(["man", "--dir", "man"]), @"");
    assert!(world.has("man/backout-undo.1"));
}
