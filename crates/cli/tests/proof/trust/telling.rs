//! What is printed is what a second look finds.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::{json, newest, outcomes, state_of};
use crate::world::{World, said};

#[test]
fn a_file_above_the_limit_that_nobody_kept_is_not_called_undone() {
    let world = World::new();
    let large = "x".repeat(200_000);
    world.file("big", &large);
    let line = "echo more >> big; echo y > small";
    world.ok(&[
        "run",
        "--limit",
        "1000",
        "--over-limit",
        "mark",
        "--",
        "sh",
        "-c",
        line,
    ]);
    let run = newest(&world, "run");
    assert_eq!(state_of(&world, &run, "big"), "cannot-come-back");
    let plan = json(&world, 1, &["undo", "-n"]);
    assert_eq!(plan["is_executable"], false, "{plan}");
    let refused = json(&world, 1, &["undo"]);
    assert!(refused["why"].to_string().contains("big"), "{refused}");
    assert!(world.path("small").exists());
    let output = world.run(&["--json", "undo", "--partial"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut said = outcomes(&world, &report);
    said.sort();
    let expected = [("big", "failed"), ("small", "restored")];
    assert_eq!(
        said,
        expected.map(|(name, it)| (name.to_owned(), it.to_owned()))
    );
    assert!(!world.path("small").exists());
    assert_eq!(world.read("big"), format!("{large}more\n"));
    let operation = &world.json(&["show", &run])["operation"];
    assert_eq!(
        operation["status"], "committed",
        "it is not undone: {operation}"
    );
}

#[test]
fn an_undo_that_fails_restores_nothing_and_says_nothing_else() {
    if rustix::process::geteuid().is_root() {
        return as_user();
    }
    cannot_write(&World::new());
}

fn as_user() {
    let world = World::new().of_user(1000);
    cannot_write(&world);
}

/// The directory became read-only after the write.
fn cannot_write(world: &World) {
    fs::create_dir(world.path("d")).unwrap();
    std::os::unix::fs::chown(world.path("d"), Some(1000), Some(1000)).unwrap();
    world.ok(&["write", "d/f", "--text", "new\n"]);
    fs::set_permissions(world.path("d"), fs::Permissions::from_mode(0o555)).unwrap();
    let output = world.run(&["--json", "undo"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("restored"), "{text}");
    assert_eq!(world.read("d/f"), "new\n");
    let told = world.fails(1, &["undo"]);
    assert!(!told.contains(".backout-"), "no temporary names: {told}");
    fs::set_permissions(world.path("d"), fs::Permissions::from_mode(0o755)).unwrap();
    world.ok(&["undo"]);
    assert!(!world.path("d/f").exists());
    world.check_store();
}

#[test]
fn an_undo_needs_no_room_that_it_holds_already() {
    let world = World::in_memory();
    for number in 1..=3 {
        world.file(&format!("g{number}"), &"x".repeat(3_000_000));
    }
    world.ok(&["--cap", "2MB", "run", "--", "rm", "g1", "g2", "g3"]);
    world.ok(&["--cap", "2MB", "undo"]);
    assert_eq!(world.read("g3").len(), 3_000_000);
    // What it gave back counts.
    world.ok(&["--cap", "2MB", "write", "x", "--text", "1"]);
    world.check_store();
}

#[test]
fn a_write_that_would_go_over_the_cap_is_refused_before_it_happens() {
    let world = World::in_memory();
    world.file("large", &"x".repeat(3_000_000));
    world.file("small", &"y".repeat(1_500));
    let before = world.tree();
    for (cap, arguments) in [
        ("2MB", &["write", "large", "--text", "1"][..]),
        ("2MB", &["rm", "large"]),
        ("2MB", &["mv", "--force", "small", "large"]),
        ("1kB", &["write", "small", "--text", "1"]),
    ] {
        let told = world.fails(1, &[&["--cap", cap], arguments].concat());
        assert!(
            told.contains("nothing was written: the store has no room for what this replaces"),
            "{told}"
        );
        assert!(told.contains("would be kept; its cap is"), "{told}");
        assert!(world.tree() == before, "{arguments:?}");
    }
    world.ok(&["--cap", "4MB", "rm", "large"]);
    // What goes back needs no room.
    world.ok(&["--cap", "1kB", "undo"]);
    assert!(world.tree() == before);
    world.check_store();
}

#[test]
fn a_clock_that_went_back_does_not_make_the_newest_images_old() {
    let world = World::new();
    // `faketime` is not needed: the tests may set the clock of the program.
    let seed = world.scratch("seed");
    fs::create_dir(&seed).unwrap();
    let at = |millis: i64, arguments: &[&str]| {
        fs::write(seed.join("now"), millis.to_string()).unwrap();
        let mut command = world.command(arguments);
        let output = command.env("BACKOUT_TEST_SEED", &seed).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    };
    let now = 1_800_000_000_000;
    let day = 86_400_000;
    world.file("f", "old\n");
    at(now, &["write", "other", "--text", "1"]);
    // The clock goes back by a year, and then somebody writes.
    at(now - 365 * day, &["write", "f", "--text", "new\n"]);
    at(now, &["gc"]);
    at(now, &["undo", "f"]);
    assert_eq!(world.read("f"), "old\n");
}

#[test]
fn a_store_of_the_format_before_is_brought_over_and_all_of_it_can_be_undone() {
    let world = World::new();
    let archive = include_bytes!("../fixtures/format-1.tar.gz");
    fs::write(world.scratch("old.tar.gz"), archive).unwrap();
    let home = std::path::Path::new("/tmp/backout-format-1");
    if home.exists() {
        fs::remove_dir_all(home).unwrap();
    }
    let unpacked = std::process::Command::new("tar")
        .args(["-xzpf"])
        .arg(world.scratch("old.tar.gz"))
        .args(["-C", "/tmp"])
        .status()
        .unwrap();
    assert!(unpacked.success());
    let run = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command
            .current_dir(home.join("work"))
            .env("BACKOUT_STATE_DIR", home.join("state"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&["verify"]);
    // The journal as it was is kept.
    assert!(home.join("state/journal.sqlite.format-1").exists());
    let log: serde_json::Value =
        serde_json::from_str(&run(&["--json", "log", "-n", "100"])).unwrap();
    let operations = log["operations"].as_array().unwrap();
    let stands = operations
        .iter()
        .filter(|op| matches!(op["status"].as_str(), Some("committed" | "applied")))
        .filter(|op| !matches!(op["verb"].as_str(), Some("undo" | "redo")));
    let ids: Vec<String> = stands
        .map(|op| op["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(!ids.is_empty());
    // A moved file is known by its inode, and an archive gives it another.
    let mut arguments = vec!["undo", "--committed", "--others", "--force"];
    arguments.extend(ids.iter().map(String::as_str));
    let is = || {
        let names = [
            "a",
            "app.toml",
            "b",
            "c",
            "late",
            "made/x",
            "new",
            "src/main.rs",
        ];
        names.map(|name| fs::read_to_string(home.join("work").join(name)).ok())
    };
    let as_found = is();
    run(&arguments);
    let one = |text: &str| Some(text.to_owned());
    let (toml, main) = (one("port = 8080\nhost = \"a\"\n"), one("fn main() {}\n"));
    let before = [
        one("one\n"),
        toml,
        one("two\n"),
        None,
        None,
        None,
        None,
        main,
    ];
    assert_eq!(is(), before);
    run(&["redo"]);
    assert_eq!(is(), as_found);
    run(&["verify"]);
    fs::remove_dir_all(home).unwrap();
}

#[test]
fn what_a_redo_keeps_is_looked_at_by_verify() {
    let world = World::new();
    world.file("d/x", "x0\n");
    world.file("big", &"b".repeat(300_000));
    for arguments in [&["rm", "-r", "d"][..], &["rm", "big"]] {
        world.ok(arguments);
        world.ok(&["undo"]);
        world.ok(&["redo"]);
    }
    let verified = world.json(&["verify"]);
    assert_eq!(verified["slots"], 2, "{verified}");
    let depot = world.state().join("depot");
    let kept: Vec<_> = std::fs::read_dir(depot)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    for path in &kept {
        let file = if path.is_dir() {
            path.join("x")
        } else {
            path.clone()
        };
        std::fs::write(file, "hurt\n").unwrap();
    }
    std::fs::create_dir(world.scratch("away")).unwrap();
    let verified = json(&world, 1, &["verify"]);
    let changed = verified["changed"].as_array().unwrap();
    assert_eq!(changed.len(), kept.len(), "{verified}");
    for path in &kept {
        std::fs::rename(path, world.scratch("away").join(path.file_name().unwrap())).unwrap();
    }
    let verified = json(&world, 3, &["verify"]);
    let findings = verified["findings"].as_array().unwrap();
    assert_eq!(findings.len(), kept.len(), "{verified}");
    let lost = verified["not_undoable"].as_array().unwrap();
    assert_eq!(lost.len(), 2, "{verified}");
}

#[test]
fn a_persons_edit_between_two_writes_is_foreseen_and_nothing_is_touched() {
    let world = World::in_memory();
    world.file("f", "0\n");
    world.ok(&["write", "f", "--text", "1"]);
    let first = newest(&world, "write");
    world.file("f", "a person\n");
    world.ok(&["write", "f", "--text", "2"]);
    let told = said(&world.run(&["undo", &first, "--dry-run"]));
    assert!(told.contains("somebody else changed it before"), "{told}");
    let told = world.fails(1, &["undo", &first]);
    assert_eq!(world.read("f"), "2", "{told}");
    assert!(!told.contains("--merge"), "{told}");
    // Both ways that are named do what they say.
    assert!(
        told.contains("--partial") && told.contains("--force"),
        "{told}"
    );
    world.ok(&["undo", &first, "--force"]);
    assert_eq!(world.read("f"), "0\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("f"), "2");
    world.run(&["undo", &first, "--partial"]);
    assert_eq!(world.read("f"), "a person\n");
    world.check_store();
}

#[test]
fn a_time_that_is_still_to_come_takes_nothing_back() {
    let world = World::in_memory();
    world.file("f", "0\n");
    world.ok(&["write", "f", "--text", "1"]);
    let told = world.fails(2, &["undo", "f", "--at", "2930-01-01 00:00"]);
    assert!(told.contains("is still to come"), "{told}");
    assert_eq!(world.read("f"), "1");
}

#[test]
fn what_a_redo_took_away_with_its_directory_is_not_called_restored() {
    for line in ["rm -r d; echo file > d", "rm -r d; ln -s other d"] {
        let world = World::new();
        world.file("d/x", "1\n");
        world.file("other/x", "2\n");
        world.ok(&["run", "--", "sh", "-c", line]);
        world.ok(&["undo"]);
        let told = world.ok(&["redo"]);
        let of = |name: &str| {
            let mut lines = told.lines().map(str::trim);
            lines
                .find(|line| line.starts_with(name))
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(of("d/x"), "d/x  gone again", "{line}: {told}");
        assert_eq!(of("d "), "d    changed again", "{line}: {told}");
        world.ok(&["undo"]);
        assert_eq!(world.read("d/x"), "1\n");
        world.check_store();
    }
}

#[test]
fn a_kept_second_name_of_a_file_that_is_written_is_no_damage() {
    for removal in [
        &["run", "--", "rm", "d/z"] as &[&str],
        &["rm", "d/z"],
        &["rm", "-r", "d"],
    ] {
        let world = World::new();
        world.file("a", "1\n");
        std::fs::create_dir(world.path("d")).unwrap();
        std::fs::hard_link(world.path("a"), world.path("d/z")).unwrap();
        let before = world.tree().without_times();
        world.ok(removal);
        world.ok(&["run", "--", "sh", "-c", "echo 2 >> a"]);
        world.ok(&["verify"]);
        world.ok(&["doctor"]);
        world.ok(&["undo"]);
        world.ok(&["undo"]);
        let now = world.tree().without_times();
        assert!(now == before, "{removal:?}: {}", now.difference(&before));
        world.check_store();
    }
}

#[test]
fn a_name_comes_back_to_a_file_that_was_written_since_and_that_is_said() {
    let world = World::new();
    world.file("a", "1\n");
    std::fs::hard_link(world.path("a"), world.path("z")).unwrap();
    world.ok(&["run", "--", "rm", "z"]);
    let mut file = std::fs::File::options()
        .append(true)
        .open(world.path("a"))
        .unwrap();
    std::io::Write::write_all(&mut file, b"person\n").unwrap();
    drop(file);
    let told = said(&world.run(&["undo"]));
    let note = "`z` is another name of a file that was written since, and holds what that holds";
    assert!(told.contains(note), "{told}");
    assert_eq!(world.read("z"), "1\nperson\n");
    assert_eq!(std::fs::metadata(world.path("z")).unwrap().nlink(), 2);
    world.check_store();
}
