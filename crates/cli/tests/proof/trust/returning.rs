//! Going back to a mark, and what is said where there is nothing to go back from.

use crate::world::{World, said};

fn written(world: &World, name: &str, text: &str) {
    world.ok(&["write", name, "--text", text]);
}

#[test]
fn what_stood_at_a_checkpoint_stays_also_if_it_was_undone_and_redone_since() {
    let world = World::in_memory();
    world.file("f", "0");
    written(&world, "f", "1");
    world.ok(&["checkpoint", "c"]);
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    let nothing = world.fails(1, &["rollback", "--to", "c"]);
    assert!(nothing.contains("there is nothing to undo"), "{nothing}");
    assert_eq!(world.read("f"), "1");
    // What was done since goes, and only that.
    written(&world, "g", "new");
    world.ok(&["rollback", "--to", "c"]);
    assert_eq!(world.read("f"), "1");
    assert!(!world.path("g").exists());
}

#[test]
fn what_was_undone_at_a_checkpoint_and_brought_back_since_goes() {
    let world = World::in_memory();
    world.file("f", "0");
    written(&world, "f", "1");
    world.ok(&["undo"]);
    world.ok(&["checkpoint", "c"]);
    world.ok(&["redo"]);
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    world.ok(&["rollback", "--to", "c"]);
    assert_eq!(world.read("f"), "0");
}

#[test]
fn a_part_that_stood_at_a_checkpoint_stays_and_the_rest_goes() {
    let world = World::in_memory();
    world.file("a", "0");
    world.file("b", "0");
    world.ok(&["run", "--", "sh", "-c", "echo 1 > a; echo 1 > b"]);
    world.ok(&["undo", "b"]);
    world.ok(&["checkpoint", "c"]);
    world.ok(&["undo", "a"]);
    world.ok(&["redo"]);
    world.ok(&["redo"]);
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("1\n".into(), "1\n".into())
    );
    world.ok(&["rollback", "--to", "c"]);
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("1\n".into(), "0".into())
    );
}

#[test]
fn what_was_undone_since_a_checkpoint_is_named_with_the_way_back() {
    let world = World::in_memory();
    world.file("f", "0");
    written(&world, "f", "1");
    world.ok(&["checkpoint", "c"]);
    world.ok(&["undo"]);
    let nothing = world.fails(1, &["rollback", "--to", "c"]);
    let back = named_command(&nothing, "redo");
    written(&world, "g", "new");
    let planned = world.ok(&["rollback", "--to", "c", "-n"]);
    assert!(
        planned.contains("1 older operation would stay undone"),
        "{planned}"
    );
    let done = said(&world.run(&["rollback", "--to", "c"]));
    assert!(done.contains("1 older operation stayed undone"), "{done}");
    assert!(done.contains(&format!("`backout redo {back}`")), "{done}");
    world.ok(&["redo", &back]);
    assert_eq!(world.read("f"), "1");
    assert!(!world.path("g").exists());
}

/// Gives the id in the first hint of this kind.
fn named_command(text: &str, verb: &str) -> String {
    let start = format!("`backout {verb} ");
    let rest = text.split(&start).nth(1);
    let rest = rest.unwrap_or_else(|| panic!("no {verb} in {text}"));
    rest.split('`').next().unwrap().to_owned()
}

#[test]
fn the_preview_of_a_rollback_of_nothing_ends_as_the_rollback_does() {
    let world = World::in_memory();
    world.ok(&["task", "begin", "t"]);
    let planned = world.ok(&["rollback", "t", "-n"]);
    assert!(
        planned.contains("there is nothing to take back"),
        "{planned}"
    );
    let json = world.json(&["rollback", "t", "-n"]);
    assert_eq!(json["steps"].as_array().map(Vec::len), Some(0), "{json}");
    world.ok(&["rollback", "t"]);
    world.ok(&["rollback", "t", "-n"]);
}

#[test]
fn the_next_step_of_an_error_names_the_store_that_was_typed() {
    let world = World::in_memory();
    let other = world.scratch("other store");
    let other = other.to_str().unwrap();
    let with = |arguments: &[&str]| {
        let mut all = vec!["--state-dir", other];
        all.extend(arguments);
        said(&world.run(&all))
    };
    with(&["write", "f", "--text", "1"]);
    with(&["undo"]);
    for arguments in [
        &["undo", "@"][..],
        &["undo"],
        &["rollback", "q"],
        &["rollback", "--to", "q"],
    ] {
        let error = with(arguments);
        let (_, next) = error.split_once("next:").expect(&error);
        assert!(
            next.contains(&format!("`backout --state-dir '{other}' ")),
            "{error}"
        );
    }
}

#[test]
fn recover_names_what_waits_for_a_decision_each_time() {
    let world = World::in_memory();
    let line = "echo 1 > k; kill -9 $PPID; echo 2 > k";
    world.run(&["run", "--", "sh", "-c", line]);
    for _ in 0..2 {
        let text = world.ok(&["recover"]);
        assert!(
            text.contains("now interrupted") && text.contains("recover --keep"),
            "{text}"
        );
        let json = world.json(&["recover"]);
        assert_eq!(json["operations"][0]["as"], "interrupted", "{json}");
    }
    world.ok(&["recover", "--keep", "@"]);
    assert!(
        world
            .ok(&["recover"])
            .contains("nothing was left unfinished")
    );
}

#[test]
fn a_command_that_died_before_it_changed_anything_waits_for_nothing() {
    let world = World::in_memory();
    let died = said(&world.run(&["run", "--", "sh", "-c", "kill -9 $PPID; echo 2 > k"]));
    assert!(!died.contains("recover --keep"), "{died}");
    let status = world.ok(&["status"]);
    assert!(!status.contains("waits for your decision"), "{status}");
    assert!(!world.path("k").exists());
}

/// A moment between what was done before and what is done after.
fn moment() -> String {
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let now = std::process::Command::new("date").arg("+%F %T").output();
    let now = String::from_utf8(now.unwrap().stdout).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    now.trim().to_owned()
}

#[test]
fn a_path_goes_back_to_what_it_was_at_a_time_or_it_is_said_what_is_missing() {
    let world = World::in_memory();
    world.file("f", "0");
    written(&world, "f", "1");
    let then = moment();
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    world.fails(1, &["undo", "f", "--at", &then]);
    assert_eq!(world.read("f"), "1");
    world.ok(&["undo"]);
    let nothing = world.fails(1, &["undo", "f", "--at", &then]);
    let back = named_command(&nothing, "redo");
    written(&world, "f", "3");
    let done = said(&world.run(&["undo", "f", "--at", &then]));
    assert!(done.contains("1 older operation stayed undone"), "{done}");
    world.ok(&["redo", &back]);
    assert_eq!(world.read("f"), "1");
}

#[test]
fn an_undo_of_a_link_names_what_it_leads_to() {
    let world = World::in_memory();
    world.file("f", "0");
    world.file("d/x", "0");
    std::os::unix::fs::symlink("f", world.path("l")).unwrap();
    std::os::unix::fs::symlink("d", world.path("e")).unwrap();
    written(&world, "l", "1");
    written(&world, "e/x", "1");
    for (link, to) in [("l", "f"), ("e", "d")] {
        let error = world.fails(1, &["undo", link]);
        assert!(
            error.contains(&format!("it is a symbolic link to `{to}`")),
            "{error}"
        );
        let told = said(&world.run(&["log", link]));
        assert!(told.contains("it is a symbolic link"), "{told}");
        let named = named_command(&error, "undo");
        world.ok(&["undo", &named]);
    }
    assert_eq!(
        (world.read("f"), world.read("d/x")),
        ("0".into(), "0".into())
    );
}

#[test]
fn a_checkpoint_of_another_agent_is_not_taken_over() {
    let world = World::in_memory();
    world.ok(&["--agent", "A", "checkpoint", "k"]);
    world.ok(&["--agent", "A", "write", "g", "--text", "1"]);
    let error = world.fails(1, &["--agent", "B", "checkpoint", "k"]);
    assert!(error.contains("agent `A` made it"), "{error}");
    world.ok(&["--agent", "B", "write", "f", "--text", "2"]);
    world.ok(&["--agent", "A", "rollback", "--to", "k"]);
    assert!(!world.path("g").exists());
    assert_eq!(world.read("f"), "2");
    world.ok(&["--agent", "A", "checkpoint", "k"]);
}

#[test]
fn an_agent_does_not_take_along_what_a_person_wrote_without_a_word() {
    let world = World::in_memory();
    world.file("f", "0");
    world.ok(&["--agent", "B", "write", "f", "--text", "1"]);
    written(&world, "f", "mine");
    let error = world.fails(1, &["--agent", "B", "undo"]);
    assert!(error.contains("--others"), "{error}");
    assert_eq!(world.read("f"), "mine");
    world.ok(&["--agent", "B", "undo", "--others"]);
    assert_eq!(world.read("f"), "0");
}

#[test]
fn what_depends_on_what_goes_and_was_not_chosen_is_not_called_independent() {
    let world = World::in_memory();
    world.file("a", "0");
    world.file("b", "0");
    written(&world, "a", "1");
    world.ok(&["--depends-on", "@", "write", "b", "--text", "1"]);
    let planned = world.ok(&["undo", "a", "-n"]);
    assert!(planned.contains("and was not chosen"), "{planned}");
    let done = said(&world.run(&["undo", "@-1", "--only", "a"]));
    assert!(done.contains("was declared to depend on it"), "{done}");
    assert_eq!((world.read("a"), world.read("b")), ("0".into(), "1".into()));
    let error = world.fails(2, &["undo", "b", "--with-dependencies"]);
    assert!(error.contains("is for operations"), "{error}");
}

#[test]
fn a_task_with_a_command_at_work_or_a_doubt_is_not_committed() {
    let world = World::in_memory();
    world.ok(&["task", "begin", "t"]);
    let running = super::Running::start(&world, &["--task", "t"], "echo 1 > f", "echo 2 > g");
    let error = world.fails(1, &["commit", "t"]);
    assert!(error.contains("still at work"), "{error}");
    assert!(running.go_on(&world).status.success());
    let kept = world.ok(&["commit", "t"]);
    assert!(kept.contains("1 operation kept"), "{kept}");
}

#[test]
fn a_trial_that_is_applied_later_belongs_to_whoever_made_it() {
    let world = World::in_memory();
    world.file("f", "0");
    world.ok(&["task", "begin", "t"]);
    world.run(&[
        "--task",
        "t",
        "--agent",
        "A",
        "try",
        "--",
        "sh",
        "-c",
        "echo 1 > f",
    ]);
    world.ok(&["try", "--apply"]);
    let newest = &world.json(&["log"])["operations"][0];
    assert_eq!(
        (newest["task"].as_str(), newest["agent"].as_str()),
        (Some("t"), Some("A"))
    );
    world.ok(&["rollback", "t"]);
    assert_eq!(world.read("f"), "0");
}

#[test]
fn a_patch_of_two_names_changes_the_file_that_is_meant() {
    let world = World::in_memory();
    world.file("f", "a\nb\n");
    let patch = |old: &str, new: &str| {
        let text = format!("--- {old}\n+++ {new}\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        world.file("p", &text);
        world.ok(&["edit", "--patch", "p"]);
        assert_eq!(world.read("f"), "a\nc\n");
        world.ok(&["undo"]);
        assert_eq!(world.read("f"), "a\nb\n");
    };
    patch("f", "f.new");
    assert!(!world.path("f.new").exists());
    patch("f.orig", "f");
    world.file("f.new", "a\nc\n");
    patch("f", "f.new");
    world.file("f.orig", "a\nb\n");
    patch("f.orig", "f");
    assert_eq!(world.read("f.new"), "a\nc\n");
}

/// Each time somebody saves the file, its name stands for a whole file: a command that appends to it must not fail.
#[test]
fn a_command_does_not_fail_because_somebody_saves_a_file_while_it_is_kept() {
    let world = World::in_memory();
    world.file("f", "0\n");
    let (target, next) = (world.path("f"), world.path("f.next"));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                std::fs::write(&next, "saved\n").unwrap();
                std::fs::rename(&next, &target).unwrap();
                // As often as a program saves at the most. Without any pause nobody could catch it.
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let line =
            "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do echo $i >> f || exit 9; done";
        let done = world.run(&["run", "--", "sh", "-c", line]);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        done
    });
    assert!(done.status.success(), "{}", said(&done));
}
