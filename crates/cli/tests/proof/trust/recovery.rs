//! Recovery is an operation: guarded, journalled, said, and undoable. A dead run keeps its work.

use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Running, json, newest, state_of};
use crate::commands::wait_for;
use crate::world::{World, said};

/// Kills a process and waits until it is dead: the signal alone only asks for it.
pub(crate) fn end(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    wait_for(|| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
}

/// A run that wrote `f` and made `g`, and whose watcher is dead.
fn dead_run(world: &World, options: &[&str], and_front: bool) -> String {
    world.file("f", "before\n");
    let running = Running::start(world, options, "echo run > f; echo made > g", "true");
    // The log says every second that the command is watched.
    std::thread::sleep(std::time::Duration::from_millis(1200));
    let (watcher, front) = (running.watcher(), running.front());
    if and_front {
        end(front);
    }
    end(watcher);
    let output = running.go_on(world);
    assert!(!output.status.success());
    said(&output)
}

#[test]
fn what_a_dead_run_did_and_what_a_person_did_after_it_survive_the_next_command() {
    for and_front in [false, true] {
        let world = World::new();
        let told = dead_run(&world, &[], and_front);
        world.file("f", "run\nperson\n");
        world.file("g", "made\nperson\n");
        let next = said(&world.run(&["write", "other", "--text", "x"]));
        assert_eq!(world.read("f"), "run\nperson\n");
        assert_eq!(world.read("g"), "made\nperson\n");
        // Whoever recovers says so: the front at once, or else the next command.
        let who = if and_front { &next } else { &told };
        assert!(who.contains("recovered"), "{who}");
        assert!(who.contains("recover --keep"), "{who}");
        let run = newest(&world, "run");
        // Nobody loses anything by an undo either.
        let refused = json(&world, 1, &["undo", &run]);
        assert_eq!(refused["code"], "conflict", "{refused}");
        assert_eq!(world.read("f"), "run\nperson\n");
        world.ok(&["undo", &run, "--force"]);
        assert_eq!(
            (world.read("f").as_str(), world.path("g").exists()),
            ("before\n", false)
        );
        world.ok(&["redo", &run]);
        assert_eq!(world.read("f"), "run\nperson\n");
        assert_eq!(world.read("g"), "made\nperson\n");
        world.check_store();
    }
}

#[test]
fn a_dry_run_does_not_take_a_dead_command_for_one_at_work() {
    let world = World::new();
    dead_run(&world, &[], true);
    for arguments in [&["undo", "-n"][..], &["undo", "f", "-n"]] {
        let told = world.fails(1, arguments);
        assert!(
            told.contains("died; what it changed can be undone once that is settled"),
            "{told}"
        );
        assert!(told.contains("settle it with `backout recover`"), "{told}");
    }
    world.run(&["recover"]);
    world.ok(&["undo", "f", "-n"]);
    world.ok(&["undo", "f"]);
    assert_eq!(world.read("f"), "before\n");
}

/// Asks what an undo would do where something is to be settled first: there is no answer yet, and nothing is changed.
fn is_not_foretold(world: &World, arguments: &[&str]) {
    let before = world.tree();
    let told = world.fails(1, arguments);
    let verb = arguments[0];
    let what = format!("what the {verb} would do is not known yet");
    assert!(told.contains(&what), "{arguments:?}: {told}");
    let first = format!("the {verb} settles that first, and only then chooses what to do");
    assert!(told.contains(&first), "{told}");
    assert!(told.contains("settle it with `backout recover`"), "{told}");
    assert!(world.tree() == before);
}

#[test]
fn a_dry_run_beside_a_dead_command_foretells_nothing_else() {
    let world = World::new();
    world.ok(&["write", "f", "--text", "older\n"]);
    let write = newest(&world, "write");
    dead_run(&world, &[], true);
    for arguments in [
        &["undo", "-n"][..],
        &["undo", &write, "-n"],
        &["undo", "f", "-n"],
        &["redo", "-n"],
    ] {
        is_not_foretold(&world, arguments);
    }
    // When it is settled the dry run says what the undo does.
    world.run(&["recover"]);
    let run = newest(&world, "run");
    let plan = world.json(&["undo", "-n"]);
    assert!(plan["steps"].to_string().contains(&run), "{plan}");
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), "before\n");
}

#[test]
fn a_dry_run_beside_a_dead_undo_foretells_nothing_else() {
    let world = World::new();
    world.file("other", "0\n");
    world.ok(&["write", "other", "--text", "1\n"]);
    let other = newest(&world, "write");
    for name in ["a", "b", "c"] {
        world.file(name, "old\n");
    }
    let line = "for it in a b c; do echo new > $it; done";
    world.ok(&["run", "--", "sh", "-c", line]);
    let run = newest(&world, "run");
    cut_off(&world, "file.swapped#2", &["undo", &run]);
    for arguments in [&["undo", "-n"][..], &["undo", &run, "-n"], &["redo", "-n"]] {
        is_not_foretold(&world, arguments);
    }
    // What has nothing to do with it is foretold.
    world.ok(&["undo", &other, "-n"]);
    world.ok(&["recover"]);
    world.ok(&["undo", "-n"]);
    world.ok(&["undo"]);
    for name in ["a", "b", "c"] {
        assert_eq!(world.read(name), "old\n");
    }
}

#[test]
fn the_work_of_a_dead_run_stays_until_somebody_decides() {
    for (decision, f) in [("--keep", "run\n"), ("--rollback", "before\n")] {
        let world = World::new();
        dead_run(&world, &[], false);
        world.ok(&["write", "other", "--text", "x"]);
        assert_eq!(
            (world.read("f"), world.read("g")),
            ("run\n".to_owned(), "made\n".to_owned())
        );
        let run = newest(&world, "run");
        let status = said(&world.run(&["status"]));
        assert!(
            status.contains(&format!("backout recover --keep {run}")),
            "{status}"
        );
        assert!(
            status.contains(&format!("backout recover --rollback {run}")),
            "{status}"
        );
        world.ok(&["recover", decision, &run]);
        assert_eq!(world.read("f"), f);
        let status = world.json(&["status"]);
        assert_eq!(status["stuck"], serde_json::json!([]));
        // Either can be taken back.
        let back = if decision == "--keep" { "undo" } else { "redo" };
        world.ok(&[back, &run]);
        assert_ne!(world.read("f"), f);
        world.check_store();
    }
}

#[test]
fn a_dead_run_that_was_to_be_rolled_back_is_but_not_over_a_persons_text() {
    let world = World::new();
    dead_run(&world, &["--on-failure", "rollback"], false);
    assert_eq!(
        (world.read("f").as_str(), world.path("g").exists()),
        ("before\n", false)
    );
    let world = World::new();
    dead_run(&world, &["--on-failure", "rollback"], true);
    world.file("f", "person\n");
    let told = said(&world.run(&["recover"]));
    assert_eq!(world.read("f"), "person\n");
    assert!(told.contains("interrupted"), "{told}");
    world.check_store();
}

#[test]
fn a_rollback_by_hand_that_cannot_be_says_so_and_names_the_way() {
    let world = World::new();
    dead_run(&world, &[], false);
    world.file("f", "person\n");
    let run = newest(&world, "run");
    let output = world.run(&["recover", "--rollback", &run]);
    assert_eq!(output.status.code(), Some(1));
    let told = said(&output);
    assert!(
        told.contains(&format!("recover --rollback {run} --force")),
        "{told}"
    );
    assert_eq!(world.read("f"), "person\n");
    world.ok(&["recover", "--rollback", &run, "--force"]);
    assert_eq!(world.read("f"), "before\n");
    world.ok(&["redo", &run]);
    assert_eq!(world.read("f"), "person\n");
}

#[test]
fn a_trial_whose_application_died_is_put_back_and_applied_again() {
    let world = World::new();
    world.file("a", "a0\n");
    world.file("d/x", "x0\n");
    std::os::unix::fs::symlink("a", world.path("l")).unwrap();
    let before = world.tree().without_directory_times();
    let line = "echo a1 > a; rm -r d; ln -sf d l; echo new > n";
    world.ok(&["try", "--", "sh", "-c", line]);
    for point in ["file.swapped#2", "file.swapped#4"] {
        cut_off(&world, point, &["try", "--apply"]);
        world.ok(&["recover"]);
        let now = world.tree().without_directory_times();
        assert!(now == before, "{point}: {}", now.difference(&before));
    }
    world.ok(&["try", "--apply"]);
    assert_eq!(world.read("a"), "a1\n");
    assert!(!world.path("d").exists());
    // A change that others made in between is one, also if it left content and size alone.
    world.ok(&["undo"]);
    world.ok(&["try", "--", "chmod", "600", "a"]);
    std::fs::set_permissions(world.path("a"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let told = world.fails(1, &["try", "--apply"]);
    assert!(told.contains("changed since the command began"), "{told}");
    world.check_store();
}

/// A trial whose application died when it had swapped some of its names.
fn trial_half_applied() -> World {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.file(name, "old\n");
    }
    let line = "for it in a b c; do echo new > $it; done; echo n > n";
    world.ok(&["try", "--", "sh", "-c", line]);
    cut_off(&world, "file.swapped#2", &["try", "--apply"]);
    world
}

const SOMEBODY: &str = "somebody else changed it meanwhile";

#[test]
fn a_trial_does_not_take_its_own_dead_application_for_somebody_else() {
    let world = trial_half_applied();
    let shown = world.ok(&["try", "--show"]);
    assert!(!shown.contains(SOMEBODY), "{shown}");
    assert!(
        shown.contains("of these changes are real already: the process of operation "),
        "{shown}"
    );
    assert!(
        shown.contains("died half-way, and `backout recover` settles that"),
        "{shown}"
    );
    // A person's change beside it is one.
    world.file("c", "a person's\n");
    let shown = world.ok(&["try", "--show"]);
    assert_eq!(shown.matches(SOMEBODY).count(), 1, "{shown}");
}

#[test]
fn what_was_kept_of_a_dead_application_is_no_part_of_the_trial_any_more() {
    let world = trial_half_applied();
    let log = world.json(&["log", "-n", "1"]);
    let id = log["operations"][0]["id"].as_str().unwrap();
    world.ok(&["recover", "--keep", id]);
    let names = std::fs::read_dir(world.path(".")).unwrap();
    let mut names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.find(|name| name.starts_with(".backout-")), None);
    let shown = world.ok(&["try", "--show"]);
    assert!(!shown.contains(SOMEBODY), "{shown}");
    assert!(
        shown.contains("of these changes are real already\n"),
        "{shown}"
    );
    let told = said(&world.run(&["try", "--apply"]));
    assert!(told.contains("of these changes are real already"), "{told}");
    for name in ["a", "b", "c"] {
        assert_eq!(world.read(name), "new\n", "{told}");
    }
    assert!(world.path("n").exists());
    assert_eq!(
        world.json(&["try", "--list"])["trials"],
        serde_json::json!([])
    );
    world.ok(&["verify"]);
}

#[test]
fn a_trial_of_which_all_is_real_already_is_over() {
    let world = World::new();
    world.file("a", "old\n");
    world.ok(&["try", "--", "sh", "-c", "echo new > a"]);
    world.file("a", "new\n");
    let shown = world.ok(&["try", "--show"]);
    assert!(
        shown.contains("1 of these changes is real already"),
        "{shown}"
    );
    let told = world.fails(1, &["try", "--apply"]);
    assert!(
        told.contains("there is nothing left to apply, and the trial is over"),
        "{told}"
    );
    assert!(
        told.contains("all that it changed is real already"),
        "{told}"
    );
    assert_eq!(
        world.json(&["try", "--list"])["trials"],
        serde_json::json!([])
    );
    assert_eq!(world.read("a"), "new\n");
}

/// Cuts a command off at a named point.
fn cut_off(world: &World, point: &str, arguments: &[&str]) {
    let output = world
        .command(arguments)
        .env("BACKOUT_CRASH_AT", point)
        .output()
        .unwrap();
    assert!(!output.status.success(), "{point}: {}", said(&output));
}

#[test]
fn a_half_done_write_is_taken_back_by_an_operation_that_can_itself_be_taken_back() {
    let world = World::new();
    world.file("a", "old\n");
    cut_off(
        &world,
        "engine.before-commit",
        &["write", "a", "--text", "new\n"],
    );
    let recovered = world.json(&["recover"]);
    assert_eq!(
        recovered["operations"][0]["as"], "taken-back",
        "{recovered}"
    );
    assert_eq!(world.read("a"), "old\n");
    let by = recovered["operations"][0]["by"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(world.json(&["show", &by])["operation"]["verb"], "recover");
    let write = newest(&world, "write");
    world.ok(&["redo", &write]);
    assert_eq!(world.read("a"), "new\n");
    world.ok(&["undo", &write]);
    assert_eq!(world.read("a"), "old\n");
    world.check_store();
}

#[test]
fn an_interrupted_undo_is_taken_back_and_not_finished_behind_anybodys_back() {
    let world = World::new();
    for number in 0..20 {
        world.file(&format!("d/{number}"), "x\n");
    }
    world.ok(&["run", "--", "rm", "-r", "d"]);
    let gone = world.tree();
    cut_off(&world, "file.made#9", &["undo"]);
    let output = world.run(&["write", "other", "--text", "1"]);
    assert!(said(&output).contains("recovered"), "{}", said(&output));
    world.ok(&["undo"]);
    let (now, gone) = (
        world.tree().without_directory_times(),
        gone.without_directory_times(),
    );
    assert!(now == gone, "{}", now.difference(&gone));
    world.ok(&["undo"]);
    assert_eq!(world.read("d/19"), "x\n");
    world.check_store();
}

#[test]
fn a_doubt_has_a_way_out() {
    for decision in ["keep", "rollback"] {
        let world = World::new();
        world.file("a", "old\n");
        world.file("b", "old\n");
        cut_off(&world, "file.applied", &["rm", "a", "b"]);
        // Somebody else writes where the write was cut off.
        world.file("a", "person\n");
        let told = said(&world.run(&["write", "other", "--text", "1"]));
        assert_eq!(world.read("a"), "person\n");
        assert!(told.contains("nothing was touched"), "{told}");
        let remove = newest(&world, "batch");
        let advice = format!("backout recover --{decision} {remove}");
        assert!(told.contains(&advice), "{told}");
        // What is advised works, and ends the doubt.
        let mut words = vec![
            "recover".to_owned(),
            format!("--{decision}"),
            remove.clone(),
        ];
        if decision == "rollback" {
            words.push("--force".to_owned());
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        world.ok(&words);
        assert_eq!(world.json(&["status"])["stuck"], serde_json::json!([]));
        if decision == "rollback" {
            assert_eq!(
                (world.read("a"), world.read("b")),
                ("old\n".to_owned(), "old\n".to_owned())
            );
            world.ok(&["redo", &remove]);
            assert_eq!(world.read("a"), "person\n");
        }
        world.check_store();
    }
}

#[test]
fn a_redo_that_died_is_done_again_whole_by_the_command_that_recovery_names() {
    for verb in ["undo", "redo"] {
        let world = World::new();
        let all = |content: &str| (1..=4).all(|n| world.read(&format!("f{n}")) == content);
        for number in 1..=4 {
            world.file(&format!("f{number}"), "old\n");
        }
        let line = "for i in f*; do echo new > $i; done";
        world.ok(&["run", "--", "sh", "-c", line]);
        let run = newest(&world, "run");
        if verb == "redo" {
            world.ok(&["undo"]);
        }
        cut_off(&world, "file.swapped#2", &[verb]);
        let told = said(&world.run(&["recover"]));
        let advice = format!("backout {verb} {run}");
        assert!(told.contains(&advice), "{told}");
        assert!(all(if verb == "redo" { "old\n" } else { "new\n" }));
        // What died has no half that could be brought back.
        let died = newest(&world, verb);
        let refused = world.fails(1, &["redo", &died]);
        assert!(refused.contains(&advice), "{refused}");
        world.ok(&[verb, &run]);
        assert!(all(if verb == "redo" { "new\n" } else { "old\n" }));
        world.check_store();
    }
}

#[test]
fn a_recovery_does_not_bring_back_what_was_removed_since_by_a_command_that_was_acknowledged() {
    let world = World::new();
    world.file("b", "b0\n");
    let died = world
        .command(&["rm", "b"])
        .env("BACKOUT_CRASH_AT", "file.applied")
        .output()
        .unwrap();
    assert!(!died.status.success(), "{}", said(&died));
    // Somebody writes the name anew, so the removal stays in doubt. Then that is removed, too.
    world.file("b", "person\n");
    world.run(&["recover"]);
    let first = newest(&world, "remove");
    world.ok(&["rm", "b"]);
    let second = newest(&world, "remove");
    world.run(&["recover"]);
    assert!(!world.path("b").exists(), "it came back");
    assert_eq!(state_of(&world, &second, "b"), "comes-back");
    // Both ways out lead on, and nothing is lost on them.
    world.ok(&["recover", "--keep", &first]);
    world.ok(&["undo", &second]);
    assert_eq!(world.read("b"), "person\n");
    json(&world, 1, &["undo", &first]);
    world.ok(&["undo", &first, "--force"]);
    assert_eq!(world.read("b"), "b0\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("b"), "person\n");
    world.check_store();
}
