//! What is shown is what is meant: hints that are typed as they are printed, plans, summaries of trials, and words for what is not over yet.

use std::path::Path;
use std::process::Command;

use super::{Running, json, newest};
use crate::world::{World, said};

/// Types the first hint that has all of these words, as a shell reads it.
fn typed(world: &World, report: &serde_json::Value, words: &[&str]) -> String {
    let hints = report["next"].as_array().unwrap();
    let commands = hints.iter().filter_map(|hint| {
        let (_, rest) = hint["text"].as_str().unwrap().split_once("`backout ")?;
        Some(rest.split_once('`')?.0)
    });
    let is_meant = |line: &&str| words.iter().all(|word| line.contains(word));
    let line = commands.into_iter().find(is_meant);
    let line = line.unwrap_or_else(|| panic!("{words:?}: {report}"));
    let program = env!("CARGO_BIN_EXE_backout");
    let output = Command::new("bash")
        .args(["-c", &format!("{program} {line}")])
        .current_dir(world.path(""))
        .env("BACKOUT_STATE_DIR", world.state())
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", said(&output));
    line.to_owned()
}

#[test]
fn a_name_with_the_letters_of_a_pattern_is_hinted_at_as_a_name() {
    let line =
        r#"for f in "[x]" x "a*b" aXb "q?" qq 'b\*' -o "two words"; do echo 1 > "./$f"; done"#;
    for (name, others) in [
        ("[x]", vec!["x"]),
        ("a*b", vec!["aXb"]),
        ("./q?", vec!["qq"]),
        (r"b\*", vec!["x"]),
        ("./-o", vec!["x"]),
        ("two words", vec!["x"]),
    ] {
        let world = World::new();
        world.ok(&["run", "--", "sh", "-c", line]);
        world.file(name, "1\nsomebody's\n");
        let refused = json(&world, 1, &["undo", name]);
        let hint = typed(&world, &refused, &["--force"]);
        assert!(!world.path(name).exists(), "{hint}");
        for other in others {
            assert_eq!(world.read(other), "1\n", "{hint}");
        }
        assert_eq!(world.tree().names().len(), 9, "{hint}");
    }
}

#[test]
fn the_hint_of_a_part_of_a_path_means_the_same_part() {
    let world = World::new();
    world.file("d/e/old", "0\n");
    std::os::unix::fs::symlink("d", world.path("l")).unwrap();
    let line = "for f in a b c; do echo 1 > d/e/$f; done";
    for part in [&["--exclude", "d/e/b"][..], &["--only", "**/[ac]"]] {
        world.ok(&["run", "--", "sh", "-c", line]);
        world.file("d/e/a", "1\nsomebody's\n");
        let refused = json(&world, 1, &[&["undo", "l/e"][..], part].concat());
        let hint = typed(&world, &refused, &["--force"]);
        assert!(!world.path("d/e/a").exists(), "{hint}");
        assert!(!world.path("d/e/c").exists(), "{hint}");
        assert_eq!(world.read("d/e/b"), "1\n", "{hint}");
        world.ok(&["undo", "d/e"]);
    }
}

#[test]
fn of_a_command_at_work_it_is_said_that_it_is_at_work() {
    let world = World::new();
    world.file("f", "0\n");
    world.ok(&["checkpoint", "c"]);
    let running = Running::start(&world, &[], "echo 1 >> f", "true");
    let run = newest(&world, "run");
    let shown = said(&world.run(&["show", &run]));
    assert!(!shown.contains("backout diff"), "{shown}");
    for asked in [
        &["diff", &run][..],
        &["restore", "f", "--from", &run],
        &["rollback", "--to", "c"],
        &["rollback", "--to", "c", "-n"],
    ] {
        let told = json(&world, 1, asked);
        assert_eq!(told["code"], "at-work", "{asked:?}: {told}");
    }
    for asked in [&["undo", "f"][..], &["undo", "f", "-n"], &["undo"]] {
        let told = json(&world, 1, asked);
        assert_eq!(told["code"], "nothing", "{asked:?}: {told}");
        let why = format!(
            "operation {run} is still at work; what it changed can be undone when it has ended"
        );
        assert!(told["why"].to_string().contains(&why), "{asked:?}: {told}");
    }
    running.go_on(&world);
    world.ok(&["diff", &run]);
    world.ok(&["rollback", "--to", "c"]);
    assert_eq!(world.read("f"), "0\n");
    world.check_store();
}

/// Makes all of a directory anew at another place, as a move to another file system does.
fn carry(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(status.unwrap().success());
    std::fs::remove_dir_all(from).unwrap();
}

#[test]
fn a_state_directory_that_was_moved_away_and_back_undoes_all_that_it_keeps() {
    let world = World::new();
    world.file("d/e/x", "kept\n");
    world.file("large", &"0123456789abcdef".repeat(8 * 1024));
    world.file("f", "0\n");
    let before = world.tree();
    world.ok(&["rm", "-r", "d"]);
    world.ok(&["rm", "large"]);
    world.ok(&["run", "--", "sh", "-c", "rm f; mkdir f"]);
    let elsewhere = world.scratch("elsewhere");
    carry(world.state(), &elsewhere);
    let there = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("BACKOUT_STATE_DIR", &elsewhere);
        said(&command.output().unwrap())
    };
    let told = there(&["undo", "@-2"]);
    let advice = format!("move it back to `{}`", world.state().display());
    assert!(told.contains(&advice), "{told}");
    assert!(!told.contains("--state-dir"), "{told}");
    // Something is written while it is away.
    there(&["write", "g", "--text", "1"]);
    there(&["undo"]);
    carry(&elsewhere, world.state());
    assert!(world.run(&["verify"]).status.success());
    let mut told = String::new();
    for _ in 0..3 {
        told.push_str(&world.ok(&["undo"]));
    }
    assert!(told.contains("the state directory was copied"), "{told}");
    let now = world.tree();
    assert!(now == before, "{}", now.difference(&before));
    for _ in 0..3 {
        world.ok(&["redo"]);
    }
    assert!(!world.path("d").exists());
    world.check_store();
}

#[test]
fn what_was_kept_and_changed_is_foreseen_and_only_taken_by_whoever_insists() {
    let world = World::new();
    world.file("d/x", "kept\n");
    world.ok(&["rm", "-r", "d"]);
    let elsewhere = world.scratch("elsewhere");
    carry(world.state(), &elsewhere);
    carry(&elsewhere, world.state());
    let depot = std::fs::read_dir(world.state().join("depot")).unwrap();
    let slot = depot.into_iter().next().unwrap().unwrap().path();
    std::fs::write(slot.join("x"), "changed\n").unwrap();
    let plan = json(&world, 1, &["undo", "-n"]);
    assert_eq!(plan["is_executable"], false, "{plan}");
    let refused = json(&world, 1, &["undo"]);
    assert_eq!(refused["code"], "conflict", "{refused}");
    assert!(!world.path("d").exists());
    json(&world, 1, &["undo", "--partial"]);
    assert!(!world.path("d").exists());
    typed(&world, &refused, &["--force"]);
    assert_eq!(world.read("d/x"), "changed\n");
    world.check_store();
}

#[test]
fn a_trial_tells_what_goes_with_a_directory() {
    for (line, kind) in [
        ("rm -r d; echo f > d", "changed"),
        ("rm -r d; ln -s x d", "changed"),
        ("rm -r d", "removed"),
    ] {
        let world = World::new();
        world.file("d/x", "x\n");
        world.file("d/e/y", "y\n");
        let tried = said(&world.run(&["try", "--", "sh", "-c", line]));
        if tried.contains("cannot") {
            return;
        }
        assert!(
            tried.contains("and 3 names in directories that go"),
            "{tried}"
        );
        let said = match kind {
            "changed" => "(was a directory, with 3 names in it",
            _ => "(a directory, with 3 names in it)",
        };
        assert!(tried.contains(said), "{tried}");
        let shown = world.json(&["try", "--show"]);
        let change = &shown["changes"][0];
        assert_eq!(change["change"], kind, "{shown}");
        assert_eq!(change["gone_below"], 3, "{shown}");
        let names = world.ok(&["try", "--name-only"]);
        let names: Vec<&str> = names.lines().collect();
        assert_eq!(names, ["d", "d/e", "d/e/y", "d/x"]);
        let counted = world.ok(&["try", "--stat"]);
        assert!(counted.contains("d/e/y"), "{counted}");
        let diff = world.ok(&["try", "--diff"]);
        assert!(diff.contains("-y"), "{diff}");
    }
}

#[test]
fn without_a_name_an_undo_takes_all_that_one_redo_brought_back() {
    let world = World::new();
    world.ok(&["checkpoint", "c"]);
    world.ok(&["write", "f", "--text", "1"]);
    world.ok(&["write", "g", "--text", "2"]);
    world.ok(&["rollback", "--to", "c"]);
    world.ok(&["redo"]);
    world.ok(&["undo"]);
    assert_eq!(world.tree().names(), [""]);
    let help = world.ok(&["undo", "--help"]);
    let help: Vec<&str> = help.split_whitespace().collect();
    let said = "one operation, or all that one redo brought back";
    assert!(help.join(" ").contains(said), "{help:?}");
}

#[test]
fn what_was_written_by_another_name_is_told_where_nothing_was_done() {
    let world = World::new();
    world.file("a z", "z\n");
    std::fs::hard_link(world.path("a z"), world.path("z2")).unwrap();
    let before = world.tree();
    world.ok(&[
        "run",
        "--",
        "sh",
        "-c",
        "echo more >> 'a z'; chmod 600 'a z'",
    ]);
    let refused = json(&world, 1, &["undo", "z2"]);
    let run = newest(&world, "run");
    let why = format!(
        "it is the same file as `{}`, by which operation {run} wrote it",
        world.path("a z").display()
    );
    assert_eq!(refused["why"][0], *why, "{refused}");
    let advice = "take that back, by all of its names, with `backout undo ";
    let next = refused["next"][0]["text"].as_str().unwrap();
    assert!(next.starts_with(advice), "{refused}");
    typed(&world, &refused, &["undo", "a z"]);
    let now = world.tree();
    assert!(now == before, "{}", now.difference(&before));
    let refused = json(&world, 1, &["undo", "z2"]);
    assert_eq!(refused["why"], serde_json::json!([]), "{refused}");
    typed(&world, &refused, &["log"]);
    world.check_store();
}

#[test]
fn the_times_of_a_directory_come_back_with_the_last_part() {
    let world = World::new();
    world.file("x", "0\n");
    let before = world.tree();
    let line = "echo a > a; echo b > b; echo 1 > x; mkdir d; echo c > d/c";
    world.ok(&["run", "--", "sh", "-c", line]);
    let run = newest(&world, "run");
    let after = world.tree();
    for part in ["b", "d", "x"] {
        world.ok(&["undo", &run, "--only", part]);
        assert!(world.tree().without_times() != before.clone().without_times());
    }
    world.ok(&["undo", "a"]);
    let now = world.tree();
    assert!(now == before, "{}", now.difference(&before));
    world.ok(&["redo", &run]);
    assert!(world.tree().without_times() == after.without_times());
    world.ok(&["undo", &run]);
    let now = world.tree();
    assert!(now == before, "{}", now.difference(&before));
    // Somebody else was there between two parts: the time is theirs.
    world.ok(&["redo", &run]);
    world.ok(&["undo", &run, "--exclude", "b"]);
    world.file("theirs", "");
    std::fs::remove_file(world.path("theirs")).unwrap();
    world.ok(&["undo", "b"]);
    let now = world.tree();
    assert!(now != before && now.without_times() == before.without_times());
    world.check_store();
}

#[test]
fn the_times_of_a_directory_come_back_each_time_a_forced_undo_is_done_again() {
    let world = World::new();
    world.file("x", "0\n");
    let before = world.tree();
    world.ok(&["run", "--", "sh", "-c", "echo a > a; echo 1 > x"]);
    let run = newest(&world, "run");
    std::fs::write(world.path("x"), "theirs\n").unwrap();
    for _ in 0..3 {
        world.ok(&["undo", &run, "--force"]);
        let now = world.tree();
        assert!(now == before, "{}", now.difference(&before));
        world.ok(&["redo", &run]);
        assert_eq!(world.read("x"), "theirs\n");
    }
    world.check_store();
}

/// Tries a command; none where that cannot be.
fn tried(line: &str) -> Option<World> {
    let world = World::new();
    world.file("f", "0\n");
    let told = said(&world.run(&["try", "--", "sh", "-c", line]));
    (!told.contains("cannot")).then_some(world)
}

#[test]
fn a_trial_is_applied_over_what_an_undo_made_as_it_was() {
    let Some(world) = tried("echo 1 >> f") else {
        return;
    };
    world.ok(&["write", "f", "--text", "2\n"]);
    world.ok(&["undo"]);
    world.ok(&["try", "--apply"]);
    assert_eq!(world.read("f"), "0\n1\n");
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), "0\n");
    world.check_store();
}

#[test]
fn the_names_of_a_file_that_are_applied_one_after_the_other_are_one_file() {
    use std::os::unix::fs::MetadataExt as _;
    for order in [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]] {
        let Some(world) = tried("echo 2 > a; ln a b; ln a c") else {
            return;
        };
        for name in order {
            world.ok(&["try", "--apply", "--only", name]);
        }
        for name in order {
            let links = world.path(name).metadata().unwrap().nlink();
            assert_eq!((links, world.read(name).as_str()), (3, "2\n"), "{order:?}");
        }
        world.check_store();
    }
}

#[test]
fn a_name_whose_other_name_was_changed_since_is_a_file_of_its_own() {
    for change in ["echo theirs >> a", "rm a"] {
        let Some(world) = tried("echo 2 > a; ln a b") else {
            return;
        };
        world.ok(&["try", "--apply", "--only", "a"]);
        let status = Command::new("sh")
            .args(["-c", change])
            .current_dir(world.path(""))
            .status();
        assert!(status.unwrap().success());
        let told = said(&world.run(&["try", "--apply"]));
        let note = "`b` becomes a file of its own: `a` is not what was applied any more";
        assert!(told.contains(note), "{told}");
        assert_eq!(world.read("b"), "2\n");
        world.check_store();
    }
}

#[test]
fn what_a_forced_redo_takes_away_is_said_to_go() {
    let world = World::new();
    world.file("f", "a\n");
    world.ok(&["rm", "f"]);
    world.ok(&["undo"]);
    let plan = world.ok(&["redo", "-n"]);
    assert!(plan.contains("f  will be gone again"), "{plan}");
    world.file("f", "a\ntheirs\n");
    let plan = world.ok(&["redo", "-n", "--force"]);
    assert!(
        plan.contains("f  will be removed: content changed"),
        "{plan}"
    );
    let plan = world.json(&["redo", "-n", "--force"]);
    assert_eq!(plan["steps"][0]["targets"][0]["goes"], true, "{plan}");
    let told = world.ok(&["redo", "--force"]);
    assert!(!world.path("f").exists());
    let said = "f  removed over a later change: content changed";
    assert!(told.contains(said), "{told}");
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), "a\ntheirs\n");
    // And what comes to be again is changed again.
    world.ok(&["write", "g", "--text", "1\n"]);
    world.ok(&["undo"]);
    world.file("g", "theirs\n");
    let told = world.ok(&["redo", "--force"]);
    assert!(
        told.contains("g  changed again over a later change: "),
        "{told}"
    );
    world.check_store();
}

#[test]
fn a_later_redo_step_that_takes_something_away_is_said_to() {
    let world = World::new();
    world.file("f", "0\n");
    world.ok(&["write", "f", "--text", "1\n"]);
    world.ok(&["rm", "f"]);
    world.ok(&["undo", "@-1"]);
    let plan = world.ok(&["redo", "-n"]);
    assert!(
        plan.contains("f  will be gone again, after a step above"),
        "{plan}"
    );
    world.ok(&["redo"]);
    assert!(!world.path("f").exists());
}

#[test]
fn a_directory_in_the_place_of_a_file_is_called_one_and_comes_again_once() {
    let world = World::new();
    world.file("f", "a\n");
    world.ok(&["write", "f", "--text", "b\n"]);
    std::fs::remove_file(world.path("f")).unwrap();
    world.file("f/in", "theirs\n");
    let said = "it is a directory now, was a file";
    let plan = world.ok(&["undo", "-n", "--force"]);
    assert!(plan.contains(said), "{plan}");
    let told = world.ok(&["undo", "--force"]);
    assert!(told.contains(said), "{told}");
    assert_eq!(world.read("f"), "a\n");
    for asked in [&["redo", "-n"][..], &["redo"]] {
        let told = world.ok(asked);
        let lines = told.lines().filter(|line| line.trim().starts_with("f  "));
        assert_eq!(lines.count(), 1, "{told}");
    }
    assert_eq!(world.read("f/in"), "theirs\n");
    world.check_store();
}

#[test]
fn what_somebody_put_into_a_directory_is_foreseen_also_after_a_redo() {
    let world = World::new();
    world.ok(&["run", "--", "sh", "-c", "mkdir d; echo 1 > d/1"]);
    world.file("d/x", "theirs\n");
    world.run(&["undo", "--partial"]);
    world.ok(&["redo"]);
    world.ok(&["undo", "d", "--force"]);
    world.ok(&["redo"]);
    let before = world.tree();
    let plan = json(&world, 1, &["undo", "-n"]);
    assert_eq!(plan["is_executable"], false, "{plan}");
    assert!(plan.to_string().contains("not empty: x"), "{plan}");
    json(&world, 1, &["undo"]);
    let now = world.tree();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}
