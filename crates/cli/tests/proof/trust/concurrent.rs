//! Several at work in one file: what others do while a command runs is never taken for the command's.

use std::os::unix::fs::PermissionsExt as _;

use super::{Running, json, newest, state_of, to_and_fro};
use crate::world::{Tree, World, said};

#[test]
fn what_a_person_does_while_a_command_runs_is_not_undone_with_it() {
    let world = World::new();
    world.file("f", "f0\n");
    world.file("h", "h0\n");
    world.file("k", "k0\n");
    world.file("m", "m0\n");
    let first = "echo run >> f; rm h; echo run > k; chmod 600 m; mkdir made; echo mine > made/mine";
    let running = Running::start(&world, &[], first, "true");
    world.file("f", "f0\nrun\nperson\n");
    world.file("h", "person\n");
    std::fs::remove_file(world.path("k")).unwrap();
    world.file("made/theirs", "person\n");
    let output = running.go_on(&world);
    assert!(output.status.success(), "{}", said(&output));
    let after = world.tree();
    let run = newest(&world, "run");
    for name in ["f", "h", "k"] {
        assert_eq!(state_of(&world, &run, name), "conflict", "{name}");
    }
    assert_eq!(state_of(&world, &run, "m"), "comes-back");
    let refused = json(&world, 1, &["undo"]);
    assert_eq!(refused["code"], "conflict", "{refused}");
    assert!(world.tree() == after);
    // The rest goes, and what others wrote stays.
    let output = world.run(&["undo", "--partial"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(world.read("f"), "f0\nrun\nperson\n");
    assert_eq!(world.read("h"), "person\n");
    assert_eq!(world.read("made/theirs"), "person\n");
    assert!(!world.path("made/mine").exists());
    // By force all of it goes, and comes back by a redo.
    world.ok(&["redo"]);
    world.ok(&["undo", &run, "--force"]);
    assert_eq!(world.read("h"), "h0\n");
    world.ok(&["redo"]);
    let now = world.tree().without_times();
    let after = after.without_times();
    assert!(now == after, "{}", now.difference(&after));
    world.check_store();
}

#[test]
fn another_agents_write_between_two_appends_keeps_its_place() {
    let world = World::new();
    world.file("f", "f0\n");
    let running = Running::start(&world, &[], "echo r1 >> f", "echo r2 >> f; echo x > y");
    world.ok(&["--agent", "other", "write", "f", "--text", "other\n"]);
    assert!(running.go_on(&world).status.success());
    assert_eq!(world.read("f"), "other\nr2\n");
    let verbs: Vec<String> = world
        .operations()
        .into_iter()
        .map(|(verb, _)| verb)
        .collect();
    assert_eq!(verbs, ["run", "write", "run"], "the order of what happened");
    // An agent does not take another's work along by itself.
    let run = newest(&world, "run");
    let refused = json(&world, 1, &["--agent", "me", "undo", &run]);
    assert_eq!(refused["code"], "needs-word", "{refused}");
    assert_eq!(world.read("f"), "other\nr2\n");
    // A person does, and is told.
    let undone = world.json(&["undo", &run]);
    assert_eq!(undone["steps"].as_array().unwrap().len(), 3);
    assert_eq!(
        (world.read("f").as_str(), world.path("y").exists()),
        ("f0\n", false)
    );
    world.ok(&["redo"]);
    assert_eq!(world.read("f"), "other\nr2\n");
    world.check_store();
}

#[test]
fn two_commands_at_once_in_one_file_do_not_take_each_other_back() {
    let world = World::new();
    world.file("f", "f0\n");
    let running = Running::start(&world, &[], "echo a1 >> f", "echo a2 >> f");
    world.ok(&["run", "--", "sh", "-c", "echo b1 >> f"]);
    assert!(running.go_on(&world).status.success());
    assert_eq!(world.read("f"), "f0\na1\nb1\na2\n");
    let run = newest(&world, "run");
    let refused = json(&world, 1, &["--agent", "me", "undo", &run]);
    assert_eq!(refused["code"], "needs-word", "{refused}");
    assert_eq!(world.read("f"), "f0\na1\nb1\na2\n");
    to_and_fro_from_zero(&world);
}

/// Takes both back, and does them again.
fn to_and_fro_from_zero(world: &World) {
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), "f0\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("f"), "f0\na1\nb1\na2\n");
    world.check_store();
}

#[test]
fn what_a_command_has_done_by_us_belongs_to_its_task_and_goes_with_it() {
    let program = env!("CARGO_BIN_EXE_backout");
    let world = World::new();
    world.file("f", "f0\n");
    world.ok(&["task", "begin", "s"]);
    let line = format!(
        "echo r1 >> f; {program} write n --text inner; {program} write f --text 'inner\n'; echo r2 >> f; \
         {program} run -- sh -c 'echo nested >> f'; echo r3 >> f"
    );
    world.ok(&[
        "--task", "s", "--agent", "c", "run", "--", "sh", "-c", &line,
    ]);
    assert_eq!(world.read("f"), "inner\nr2\nnested\nr3\n");
    let log = world.json(&["log"]);
    for operation in log["operations"].as_array().unwrap() {
        assert_eq!(operation["task"], "s", "{operation}");
        assert_eq!(operation["agent"], "c", "{operation}");
    }
    world.ok(&["rollback", "s"]);
    assert_eq!(
        (world.read("f").as_str(), world.path("n").exists()),
        ("f0\n", false)
    );
    world.ok(&["redo"]);
    assert_eq!(world.read("f"), "inner\nr2\nnested\nr3\n");
    assert_eq!(world.read("n"), "inner");
    world.check_store();
}

#[test]
fn a_copy_is_built_on_what_it_copied() {
    let world = World::new();
    world.ok(&["write", "g", "--text", "1"]);
    world.ok(&["mkdir", "d"]);
    world.ok(&["cp", "g", "d/g2"]);
    let write = newest(&world, "write");
    world.ok(&["undo", &write]);
    assert!(!world.path("g").exists() && !world.path("d/g2").exists());
    assert!(world.path("d").exists());
}

#[test]
fn commands_that_share_no_file_are_undone_without_a_conflict() {
    // Everything that a command does to one file: nothing of it is taken for somebody else's.
    let lines = [
        "echo 1 > f; echo 2 >> f; cat f > g; mv g f; chmod 600 f; touch f",
        "exec 3> f; echo 1 >&3; mv f g; echo 2 >&3; exec 3>&-; mv g f",
        "echo 1 > t; ln t u; echo 2 >> u; rm t; mv u f; chmod 4755 f; echo 3 >> f",
        "mkdir a; echo 1 > a/x; mv a b; echo 2 >> b/x; mkdir b/c; mv b/x b/c/x; rm f",
        "for i in 1 2 3 4 5 6 7 8; do (echo $i >> f) & done; wait",
        "rm f; echo new > f; rm f; mkdir f; echo y > f/y; rm -r f; echo back > f",
        "ln -s f l; echo 1 >> l; truncate -s 1 f; mkfifo p; rm p l",
        "exec 3>> f; rm f; echo lost >&3; exec 3>&-; echo again > f",
    ];
    for line in lines {
        let world = World::new();
        world.file("f", "f0\n");
        let before = world.tree();
        world.ok(&["run", "--", "bash", "-c", line]);
        let undone = world.run(&["undo"]);
        assert!(undone.status.success(), "{line}: {}", said(&undone));
        let now = world.tree();
        assert!(now == before, "{line}: {}", now.difference(&before));
    }
}

#[test]
fn what_a_person_wrote_before_the_command_replaced_the_file_is_not_undone_without_a_word() {
    let world = World::new();
    world.file("f", "f0\n");
    let running = Running::start(&world, &[], "echo r1 > f", "sed -i s/person/both/ f");
    world.file("f", "person\n");
    let output = running.go_on(&world);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(world.read("f"), "both\n");
    let refused = json(&world, 1, &["undo"]);
    assert_eq!(refused["code"], "conflict", "{refused}");
    world.ok(&["undo", "--force"]);
    assert_eq!(world.read("f"), "f0\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("f"), "both\n");
    world.check_store();
}

#[test]
fn a_directory_that_a_command_removed_is_cut_with_all_that_was_in_it() {
    let world = World::new();
    world.file("d/x", "x0\n");
    world.file("d/y", "y0\n");
    world.file("b", "b0\n");
    let before = world.tree().without_times();
    let first = "echo r1 >> d/y; rm -r d";
    let running = Running::start(&world, &[], first, "echo r2 >> b");
    let write = ["write", "d/x", "--parents", "--text", "other\n"];
    world.ok(&[&["--agent", "other"], &write[..]].concat());
    assert!(running.go_on(&world).status.success());
    to_and_fro(&world, &before);
}

#[test]
fn the_times_of_a_directory_come_back_also_if_another_operation_wrote_in_it_meanwhile() {
    let stories = [
        ("echo r1 > d/x", "d/x", "echo r2 > d/n"),
        ("echo r1 > d/n", "d/n", "true"),
        ("echo r1 > d/n; echo r1 > d/m", "d/n", "true"),
        ("rm d/x; echo r1 > d/m", "d/x", "echo r2 >> d/x; rm d/y"),
    ];
    for (first, other, then) in stories {
        let world = World::new();
        world.file("d/x", "x0\n");
        world.file("d/y", "y0\n");
        let before = world.tree();
        let running = Running::start(&world, &[], first, then);
        world.ok(&["--agent", "other", "write", other, "--text", "other\n"]);
        assert!(running.go_on(&world).status.success());
        let run = newest(&world, "run");
        let undone = world.json(&["undo", &run]);
        assert_eq!(undone["steps"].as_array().unwrap().len(), 3, "{undone}");
        let now = world.tree();
        assert!(now == before, "{first}: {}", now.difference(&before));
        to_and_fro_from(&world);
    }
}

#[test]
fn what_was_written_in_a_directory_that_a_command_had_moved_goes_before_the_move() {
    let world = World::new();
    world.file("d/x", "x0\n");
    world.file("d/y", "y0\n");
    let before = world.tree().without_times();
    // A file of several names hangs together with what moved, so the command is not cut.
    let running = Running::start(&world, &[], "ln d/y h; mv d e", "true");
    world.ok(&["--agent", "other", "write", "e/x", "--text", "other\n"]);
    assert!(running.go_on(&world).status.success());
    let after = world.tree().without_times();
    let write = newest(&world, "write");
    // By its place in the journal the command came later, so it goes along; the write came after the move all the same. And
    // whoever takes the command back takes the write along: its name would be gone.
    for name in [&write, &newest(&world, "run")].into_iter().cycle().take(4) {
        let told = world.ok(&["undo", name]);
        assert!(told.contains("write e/x"), "{told}");
        let now = world.tree().without_times();
        assert!(now == before, "{}", now.difference(&before));
        let shown = world.json(&["show", &write]);
        assert_eq!(shown["operation"]["status"], "undone");
        world.ok(&["redo"]);
        let now = world.tree().without_times();
        assert!(now == after, "{}", now.difference(&after));
    }
    world.check_store();
}

/// A command, what it does after another agent was there, and the file that the other wrote.
const MOVED: [(&str, &str, &str); 4] = [
    ("mv d e", "true", "e/x"),
    ("mv d e", "echo b >> f", "e/x"),
    ("mv f d/x", "echo b > d/x", "d/x"),
    ("mv f g", "rm g", "g"),
];

#[test]
fn what_another_operation_wrote_in_something_that_a_command_had_moved_stays_with_it() {
    for (first, then, name) in MOVED {
        let world = World::new();
        world.file("f", "f0\n");
        world.file("d/x", "x0\n");
        let see = || world.tree().without_times();
        let same = |wanted: &Tree, what: &str| {
            let now = see();
            assert!(
                now == *wanted,
                "{first}: {what}: {}",
                now.difference(wanted)
            );
        };
        let before = see();
        let running = Running::start(&world, &[], first, then);
        let moved = see();
        world.ok(&["--agent", "other", "write", name, "--text", "other\n"]);
        assert!(running.go_on(&world).status.success());
        let after = see();
        let command = newest(&world, "run");
        for _ in 0..2 {
            world.ok(&["undo", &command]);
            same(&before, "undo");
            world.ok(&["redo"]);
            same(&after, "redo");
        }
        if then == "true" {
            // The write goes by itself, and then the move.
            world.ok(&["undo", &newest(&world, "write")]);
            same(&moved, "the write");
            world.ok(&["undo", &command]);
            same(&before, "the move");
        }
        world.check_store();
    }
}

#[test]
fn what_came_after_a_command_goes_before_what_was_written_in_what_it_moved() {
    let world = World::new();
    world.file("d/x", "x0\n");
    world.file("f", "f0\n");
    let before = world.tree().without_times();
    world.ok(&["checkpoint", "c"]);
    let running = Running::start(&world, &[], "mv d e", "true");
    world.ok(&["write", "e/x", "--text", "other\n"]);
    let inside = newest(&world, "write");
    assert!(running.go_on(&world).status.success());
    let command = newest(&world, "run");
    world.ok(&["write", "f", "--text", "later\n"]);
    let later = newest(&world, "write");
    let after = world.tree().without_times();
    let undo = ["undo", &later, &command, &inside];
    let plan = json(&world, 0, &[&undo[..], &["-n"]].concat());
    let steps = plan["steps"].as_array().unwrap().iter();
    let order: Vec<&str> = steps.map(|it| &it["id"].as_str().unwrap()[..8]).collect();
    // The move is a part of the command, told by itself since somebody wrote there.
    assert_eq!(order[..2], [later.as_str(), &inside], "{plan}");
    let last = plan["steps"][2]["summary"].as_str().unwrap();
    assert!(
        order.len() == 3 && last.starts_with("part of run"),
        "{plan}"
    );
    world.ok(&undo);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.ok(&["redo"]);
    let now = world.tree().without_times();
    assert!(now == after, "{}", now.difference(&after));
    world.check_store();
}

/// What was undone is redone, and undone again without a trace.
fn to_and_fro_from(world: &World) {
    let undone = world.tree();
    world.ok(&["redo"]);
    world.ok(&["undo"]);
    let now = world.tree();
    assert!(now == undone, "{}", now.difference(&undone));
    world.check_store();
}

/// A command, what it does after somebody was there, and what that somebody wrote.
const TAKEN: [(&str, &str, &str); 7] = [
    ("rm -r d", "true", "d/x"),
    ("mv f g", "echo b >> g", "f"),
    ("mv f g", "rm g", "f"),
    ("mv d e; echo b >> e/x", "true", "d/p"),
    ("mv d e; rm e/x", "true", "d/p"),
    ("mv d e", "true", "d/p"),
    ("mv d e", "echo b >> e/x", "d/x"),
];

#[test]
fn a_name_that_a_command_left_and_a_person_took_is_not_undone_over() {
    for (first, then, theirs) in TAKEN {
        let world = World::in_memory();
        world.file("f", "f0\n");
        world.file("d/x", "x0\n");
        let running = Running::start(&world, &[], first, then);
        world.file(theirs, "a person\n");
        let output = running.go_on(&world);
        assert!(output.status.success(), "{first}: {}", said(&output));
        let after = world.tree();
        let told = world.fails(1, &["undo"]);
        assert!(world.tree() == after, "{first}; {then}: {told}");
        let told = said(&world.run(&["undo", "--partial"]));
        assert_eq!(world.read(theirs), "a person\n", "{first}; {then}: {told}");
        world.check_store();
    }
}

#[test]
fn a_name_that_a_command_left_and_another_agent_took_is_not_undone_over() {
    let world = World::in_memory();
    world.file("f", "f0\n");
    let running = Running::start(&world, &[], "mv f g", "echo b >> g");
    world.ok(&["--agent", "other", "write", "f", "--text", "other\n"]);
    assert!(running.go_on(&world).status.success());
    let run = newest(&world, "run");
    let told = world.fails(1, &["--agent", "me", "undo", &run]);
    assert_eq!(world.read("f"), "other\n", "{told}");
    world.check_store();
}

#[test]
fn what_a_person_wrote_and_the_command_then_wrote_over_or_removed_is_kept() {
    let world = World::new();
    world.file("f", "f0\n");
    world.file("h", "h0\n");
    let (first, then) = (
        "echo run > f; rm h; echo run > new",
        "echo again > f; rm h; rm new",
    );
    let running = Running::start(&world, &[], first, then);
    for name in ["f", "h", "new"] {
        world.file(name, "person\n");
    }
    let output = running.go_on(&world);
    assert!(output.status.success(), "{}", said(&output));
    let run = newest(&world, "run");
    for name in ["f", "h", "new"] {
        let note = format!(
            "note: somebody else wrote `{name}` while it ran, and it wrote there again after that; what was there in between is kept: \
             `backout undo {run} --partial` brings it back"
        );
        assert!(said(&output).contains(&note), "{}", said(&output));
    }
    let after = world.tree();
    // The plan foresees that the person's text stands in the way of the first part.
    let plan = said(&world.run(&["undo", "-n"]));
    assert!(plan.contains("would not undo 4 operations"), "{plan}");
    assert_eq!(json(&world, 1, &["undo"])["code"], "conflict");
    assert!(world.tree() == after);
    let output = world.run(&["undo", &run, "--partial"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for name in ["f", "h", "new"] {
        assert_eq!(world.read(name), "person\n", "{name}");
    }
    world.ok(&["redo"]);
    world.ok(&["undo", &run, "--force"]);
    assert_eq!(
        (world.read("f"), world.read("h")),
        ("f0\n".into(), "h0\n".into())
    );
    assert!(!world.path("new").exists());
    world.ok(&["redo"]);
    let (now, after) = (world.tree().without_times(), after.without_times());
    assert!(now == after, "{}", now.difference(&after));
    world.check_store();
}

#[test]
fn a_redo_of_what_came_after_a_persons_text_is_taken_back_by_its_name_without_the_part_before() {
    let world = World::new();
    world.file("f", "f0\n");
    // Nothing else is left of it, so that its path is all of it.
    let then = format!("echo then > f; rm {}", world.scratch("ready").display());
    let running = Running::start(&world, &[], "echo first > f", &then);
    world.file("f", "person\n");
    assert!(running.go_on(&world).status.success());
    for _ in 0..2 {
        // The path goes back to what the person left, and so does the redo's own name.
        let undone = world.json(&["undo", "f"]);
        assert_eq!(world.read("f"), "person\n");
        let redone = world.json(&["redo", undone["act"].as_str().unwrap()]);
        assert_eq!(world.read("f"), "then\n");
        world.ok(&["undo", redone["act"].as_str().unwrap()]);
        assert_eq!(world.read("f"), "person\n");
        world.ok(&["redo"]);
    }
    world.check_store();
}

#[test]
fn a_redo_that_brings_a_persons_file_and_removes_a_directory_is_taken_back_by_its_name() {
    let world = World::new();
    world.file("d/x", "x0\n");
    let before = world.tree().without_times();
    let running = Running::start(&world, &[], "rm d/x; rmdir d", "sed -i s/person/run/ d");
    world.file("d", "person\n");
    assert!(running.go_on(&world).status.success());
    let run = newest(&world, "run");
    world.ok(&["undo", &run, "--force"]);
    let log = world.json(&["log"]);
    let is_part = |op: &&serde_json::Value| op["summary"].as_str().unwrap().starts_with("part of");
    let part = log["operations"].as_array().unwrap().iter().find(is_part);
    let redone = world.json(&["redo", part.unwrap()["id"].as_str().unwrap()]);
    assert_eq!(world.read("d"), "person\n");
    // The directory went as one, and its file with it; what the redo replaced comes back by the redo's own recipe.
    world.ok(&["undo", redone["act"].as_str().unwrap()]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}

#[test]
fn what_a_person_wrote_to_a_file_that_the_command_had_moved_is_kept_too() {
    let world = World::new();
    world.file("f", "f0\n");
    let running = Running::start(&world, &[], "mv f g", "echo run > g");
    world.file("g", "person\n");
    let output = running.go_on(&world);
    assert!(
        said(&output).contains("what was there in between is kept"),
        "{}",
        said(&output)
    );
    json(&world, 1, &["undo"]);
    json(&world, 1, &["undo", "--partial"]);
    assert_eq!(world.read("g"), "person\n");
    world.check_store();
}

#[test]
fn a_mode_that_a_person_gave_is_seen_also_after_the_command_dressed_the_file_twice() {
    for is_person_there in [false, true] {
        let world = World::in_memory();
        world.file("f", "f0\n");
        // It gives its new file an owner and a mode before it takes the place of the old one.
        let running = Running::start(&world, &[], "sed -i s/f0/f1/ f", "true");
        if is_person_there {
            let private = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(world.path("f"), private).unwrap();
        }
        let output = running.go_on(&world);
        assert!(output.status.success(), "{}", said(&output));
        if is_person_there {
            assert_eq!(json(&world, 1, &["undo"])["code"], "conflict");
            assert_eq!(world.read("f"), "f1\n");
        } else {
            world.ok(&["undo"]);
            assert_eq!(world.read("f"), "f0\n");
        }
    }
}

#[test]
fn what_a_person_puts_into_a_directory_of_the_command_is_kept_when_the_command_takes_it() {
    let world = World::new();
    let then = "echo run > d/x; rm d/y; mv d/own d/z; chmod 600 d/m";
    let running = Running::start(&world, &[], "mkdir d; echo own > d/own", then);
    for name in ["d/x", "d/y", "d/z", "d/m"] {
        world.file(name, "person\n");
    }
    let output = running.go_on(&world);
    assert!(output.status.success(), "{}", said(&output));
    let run = newest(&world, "run");
    let plan = said(&world.run(&["undo", "-n"]));
    let conflict = "d  conflict: the directory is not empty: m, x, y and 1 more";
    assert!(plan.contains(conflict), "{plan}");
    assert_eq!(json(&world, 1, &["undo"])["code"], "conflict");
    let output = world.run(&["undo", &run, "--partial"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    for name in ["d/x", "d/y", "d/z", "d/m"] {
        assert_eq!(world.read(name), "person\n", "{name}");
    }
    assert_eq!(world.tree().mode_of("d/m"), Some(0o644));
    assert!(!world.path("d/own").exists());
    world.ok(&["redo"]);
    assert_eq!(
        (world.read("d/x"), world.read("d/z")),
        ("run\n".into(), "own\n".into())
    );
    assert!(!world.path("d/y").exists());
    world.check_store();
}

#[test]
fn what_another_agent_writes_into_a_directory_of_a_running_command_is_built_on_it() {
    let world = World::new();
    let running = Running::start(&world, &[], "mkdir d; echo 1 > d/1", "echo 3 > d/3");
    world.ok(&["--agent", "B", "write", "d/2", "--text", "B2\n"]);
    world.ok(&["--agent", "B", "mv", "d/1", "d/11"]);
    assert!(running.go_on(&world).status.success());
    let after = world.tree().without_times();
    let run = newest(&world, "run");
    let refused = json(&world, 1, &["--agent", "A", "undo", &run]);
    assert_eq!(refused["code"], "needs-word", "{refused}");
    world.ok(&["--agent", "A", "undo", &run, "--others"]);
    assert!(!world.path("d").exists());
    world.ok(&["redo"]);
    let now = world.tree().without_times();
    assert!(now == after, "{}", now.difference(&after));
    world.check_store();
}
