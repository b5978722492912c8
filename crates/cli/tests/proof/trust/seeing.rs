//! What is shown is what is meant: hints that are typed as they are printed, plans, summaries of trials, and words for what is not over yet.

use std::process::Command;

use super::{Running, json, newest};
use crate::world::{World, said};

/// Types the first hint that has all of these words, as a shell reads it.
fn typed(world: &World, report: &serde_json::Value, words: &[&str]) -> String {
    let hints = report["next"].as_array().unwrap();
    let commands = hints.iter().filter_map(|hint| {
        let (_, rest) = hint.as_str().unwrap().split_once("`backout ")?;
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
