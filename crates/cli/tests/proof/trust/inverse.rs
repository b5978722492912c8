//! Redo and undo are inverse, whatever happened in between.

use serde_json::json;

use super::batches::batch;
use super::{json, newest, outcomes, state_of, to_and_fro};
use crate::world::{World, said};

#[test]
fn what_somebody_put_back_before_a_redo_is_part_of_the_next_undo() {
    let world = World::new();
    world.file("a", "a0\n");
    world.file("b", "b0\n");
    world.ok(&["run", "--", "sh", "-c", "echo a1 > a; echo b1 > b"]);
    world.ok(&["undo"]);
    world.file("a", "a1\n");
    world.ok(&["redo"]);
    let undone = world.json(&["undo"]);
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("a0\n".to_owned(), "b0\n".to_owned())
    );
    let mut said = outcomes(&world, &undone);
    said.sort();
    let restored = |name: &str| (name.to_owned(), "restored".to_owned());
    assert_eq!(said, [restored("a"), restored("b")]);
    world.check_store();
}

#[test]
fn a_forced_redo_over_thousands_of_files_is_undone_whole() {
    let world = World::new();
    for number in 0..2000 {
        world.file(&format!("d/{number:04}"), "old\n");
    }
    let line = "for f in d/*; do echo new > $f; done";
    world.ok(&["run", "--", "sh", "-c", line]);
    world.ok(&["undo"]);
    // A redo is cut off half-way, and somebody edits three of the files.
    let output = world
        .command(&["redo"])
        .env("BACKOUT_CRASH_AT", "file.swapped#700")
        .output()
        .unwrap();
    assert!(!output.status.success());
    world.ok(&["recover"]);
    for name in ["d/0001", "d/0500", "d/1999"] {
        world.file(name, "person\n");
    }
    world.ok(&["redo", "--force"]);
    assert_eq!(world.read("d/1234"), "new\n");
    world.ok(&["undo"]);
    for number in 0..2000 {
        let name = format!("d/{number:04}");
        let wanted = match number {
            1 | 500 | 1999 => "person\n",
            _ => "old\n",
        };
        assert_eq!(world.read(&name), wanted, "{name}");
    }
    world.check_store();
}

#[test]
fn a_redo_after_a_forced_undo_brings_back_the_persons_text_and_says_that_it_is_no_ones_undo() {
    let world = World::new();
    world.file("k", "k0\n");
    world.ok(&["write", "k", "--text", "k1\n"]);
    world.file("k", "person\n");
    let write = newest(&world, "write");
    world.ok(&["undo", "--force"]);
    assert_eq!(world.read("k"), "k0\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("k"), "person\n");
    // It is as it was before the undo: in conflict.
    assert_eq!(state_of(&world, &write, "k"), "conflict");
    let refused = json(&world, 1, &["undo"]);
    assert_eq!(refused["code"], "conflict", "{refused}");
    assert_eq!(world.read("k"), "person\n");
}

#[test]
fn what_a_redo_brought_back_with_a_persons_text_goes_newest_first_again() {
    let world = World::new();
    world.file("n", "0\n");
    world.ok(&["write", "n", "--text", "1\n"]);
    let first = newest(&world, "write");
    world.ok(&["write", "n", "--text", "2\n"]);
    let second = newest(&world, "write");
    world.file("n", "2\nperson\n");
    for _ in 0..2 {
        let undone = world.json(&["undo", &first, "--force"]);
        assert_eq!(world.read("n"), "0\n");
        let steps = undone["steps"].as_array().unwrap().iter();
        let ids: Vec<_> = steps
            .map(|step| &step["id"].as_str().unwrap()[..8])
            .collect();
        assert_eq!(ids, [&second[..8], &first[..8]], "{undone}");
        world.ok(&["redo"]);
        assert_eq!(world.read("n"), "2\nperson\n");
    }
    let refused = json(&world, 1, &["undo"]);
    assert_eq!(refused["code"], "conflict", "{refused}");
    world.ok(&["undo", "--force"]);
    assert_eq!(world.read("n"), "0\n");
    world.check_store();
}

#[test]
fn a_redo_that_takes_later_work_back_says_which_way_each_step_goes() {
    let world = World::new();
    world.file("m", "m0\n");
    world.ok(&["write", "m", "--text", "m1\n"]);
    let first = newest(&world, "write");
    world.ok(&["undo"]);
    world.ok(&["write", "m", "--text", "m2\n"]);
    let second = newest(&world, "write");
    let plan = world.json(&["redo", &first, "-n"]);
    let ways = |plan: &serde_json::Value| {
        let steps = plan["steps"].as_array().unwrap().iter();
        let way = |step: &serde_json::Value| {
            let id = step["id"].as_str().unwrap()[..8].to_owned();
            (id, step["way"].as_str().unwrap().to_owned())
        };
        steps.map(way).collect::<Vec<_>>()
    };
    let expected = [
        (second.clone(), "undo".to_owned()),
        (first.clone(), "redo".to_owned()),
    ];
    assert_eq!(ways(&plan), expected);
    let done = world.json(&["redo", &first]);
    assert_eq!(ways(&done), expected);
    assert_eq!(world.read("m"), "m1\n");
    let verbs: Vec<String> = world
        .operations()
        .into_iter()
        .map(|(verb, _)| verb)
        .collect();
    assert_eq!(verbs[..2], ["redo", "undo"]);
    // All of it is one act.
    let act = done["act"].as_str().unwrap();
    world.ok(&["undo", act]);
    assert_eq!(world.read("m"), "m2\n");
    world.check_store();
}

#[test]
fn an_undo_after_a_redo_of_several_takes_all_of_them_and_the_task_is_what_it_was() {
    let world = World::new();
    let task_is = |status: &str| {
        let tasks = world.json(&["task", "list"]);
        assert_eq!(tasks["tasks"][0]["status"], status);
    };
    world.ok(&["task", "begin", "t"]);
    world.ok(&["--task", "t", "write", "a", "--text", "1"]);
    world.ok(&["--task", "t", "write", "b", "--text", "2"]);
    world.ok(&["rollback", "t"]);
    task_is("rolled-back");
    world.ok(&["redo"]);
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("1".to_owned(), "2".to_owned())
    );
    task_is("open");
    world.ok(&["undo"]);
    assert!(!world.path("a").exists() && !world.path("b").exists());
    task_is("rolled-back");
    world.check_store();
}

#[test]
fn what_was_appended_undone_redone_and_appended_again_goes_back_without_a_conflict() {
    let world = World::new();
    let lines: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    let content = lines.join("\n");
    world.file("f", &content);
    world.ok(&["run", "--", "sh", "-c", "echo 1 >> f"]);
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    world.ok(&["run", "--", "sh", "-c", "echo 2 >> f"]);
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), format!("{content}1\n"));
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), content);
    world.check_store();
}

#[test]
fn the_hints_act_on_what_they_were_printed_for() {
    let world = World::new();
    world.ok(&["write", "a", "--text", "1"]);
    world.ok(&["--agent", "alice", "write", "b", "--text", "2"]);
    let hint = |arguments: &[&str]| {
        let output = world.run(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text
            .lines()
            .find(|line| line.starts_with("hint:"))
            .unwrap()
            .to_owned();
        let command = line.split('`').nth(1).unwrap();
        let words = command.split(' ').skip(1).map(str::to_owned);
        words.collect::<Vec<_>>()
    };
    let follow = |words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        world.ok(&words)
    };
    let planned = hint(&["--agent", "alice", "undo", "-n"]);
    // Somebody else writes between the plan and the act.
    world.ok(&["write", "c", "--text", "3"]);
    follow(&planned);
    assert!(!world.path("b").exists() && world.path("a").exists() && world.path("c").exists());
    let undo = hint(&["redo", &planned[1]]);
    world.ok(&["write", "d", "--text", "4"]);
    follow(&undo);
    assert!(!world.path("b").exists() && world.path("c").exists() && world.path("d").exists());
}

#[test]
fn taking_back_a_redo_by_the_name_that_the_hint_gives_is_an_undo_like_any_other() {
    let world = World::new();
    world.ok(&["write", "b", "--text", "W"]);
    world.ok(&["undo"]);
    for _ in 0..3 {
        world.ok(&["redo"]);
        let redo = newest(&world, "redo");
        assert_eq!(world.read("b"), "W");
        world.ok(&["undo", &redo]);
        assert!(!world.path("b").exists());
    }
    world.ok(&["redo"]);
    world.ok(&["undo"]);
    assert!(!world.path("b").exists());
    world.check_store();
}

#[test]
fn a_redo_that_has_to_take_something_back_and_its_undo_swap_the_two_for_ever() {
    let world = World::new();
    world.file("s", "copied");
    world.ok(&["cp", "s", "b"]);
    world.ok(&["undo"]);
    world.ok(&["write", "b", "--text", "written"]);
    let status = |verb: &str| {
        let operations = world.operations().into_iter();
        let mut of = operations.filter(|(word, _)| word == verb);
        of.next().unwrap().1
    };
    for _ in 0..3 {
        world.ok(&["redo"]);
        assert_eq!(world.read("b"), "copied");
        assert_eq!(
            (status("copy"), status("write")),
            ("committed".to_owned(), "undone".to_owned())
        );
        world.ok(&["undo"]);
        assert_eq!(world.read("b"), "written");
        assert_eq!(
            (status("copy"), status("write")),
            ("undone".to_owned(), "committed".to_owned())
        );
    }
    // What the undo brought again is an operation like any other.
    world.ok(&["undo"]);
    assert!(!world.path("b").exists());
    world.check_store();
}

#[test]
fn a_removed_tree_that_somebody_edited_comes_back_as_they_left_it() {
    let world = World::new();
    world.file("d/1", "one\n");
    world.file("d/e/2", "two\n");
    world.ok(&["rm", "-r", "d"]);
    world.ok(&["undo"]);
    world.file("d/1", "one\nedit\n");
    world.file("d/e/3", "three\n");
    let theirs = world.tree().without_times();
    world.fails(1, &["redo"]);
    for _ in 0..2 {
        world.ok(&["redo", "--force"]);
        assert!(!world.path("d").exists());
        world.ok(&["undo"]);
        let now = world.tree().without_times();
        assert!(now == theirs, "{}", now.difference(&theirs));
    }
    world.check_store();
}

#[test]
fn what_a_forced_redo_replaced_comes_back_by_the_command_it_names() {
    let world = World::new();
    world.file("f", "a\n");
    world.ok(&["write", "f", "--text", "A\n"]);
    world.file("f", "p1\n");
    world.ok(&["undo", "--force"]);
    world.file("f", "p2\n");
    world.ok(&["redo", "--force"]);
    assert_eq!(world.read("f"), "p1\n");
    let redo = newest(&world, "redo");
    world.ok(&["undo", &redo]);
    assert_eq!(world.read("f"), "p2\n");
    world.check_store();
}

#[test]
fn a_file_that_was_moved_over_another_out_of_a_directory_that_is_gone_moves_again() {
    let world = World::new();
    world.file("d/y", "moved\n");
    world.file("d/z", "removed\n");
    world.file("b", "replaced\n");
    let before = world.tree().without_times();
    world.ok(&["run", "--", "sh", "-c", "mv -fT d/y b; rm -rf d"]);
    to_and_fro(&world, &before);
}

#[test]
fn an_act_that_brought_one_operation_back_in_two_parts_is_taken_back_whole() {
    let world = World::new();
    world.file("x", "1\n");
    world.file("y", "1\n");
    world.ok(&["run", "--", "sh", "-c", "echo 2 >> x; echo 2 >> y"]);
    let first = newest(&world, "run");
    world.ok(&["undo", "x"]);
    world.ok(&["undo"]);
    world.ok(&["run", "--", "sh", "-c", "echo 3 > x; echo 3 > y"]);
    // It takes the second command back, and does the first again: once for each undo.
    world.ok(&["redo", "--committed", &first]);
    assert_eq!(world.read("x") + &world.read("y"), "1\n2\n1\n2\n");
    let act = newest(&world, "undo");
    world.ok(&["undo", "--committed", &act]);
    assert_eq!(world.read("x") + &world.read("y"), "3\n3\n");
    world.check_store();
}

#[test]
fn force_makes_again_the_directory_that_somebody_removed() {
    let world = World::new();
    world.file("d/e/x", "before\n");
    world.file("d/e/y", "moved\n");
    world.ok(&["run", "--", "sh", "-c", "echo after > d/e/x; mv d/e/y y"]);
    std::fs::remove_dir_all(world.path("d")).unwrap();
    world.fails(1, &["undo"]);
    world.ok(&["undo", "--force"]);
    assert_eq!(world.read("d/e/x"), "before\n");
    assert_eq!(world.read("d/e/y"), "moved\n");
    world.ok(&["redo"]);
    assert!(!world.path("d").exists(), "it was gone");
    assert_eq!(world.read("y"), "moved\n");
    world.check_store();
}

#[test]
fn somebodys_text_is_in_conflict_also_after_the_redo_that_brought_it_was_taken_back_by_its_name() {
    let world = World::new();
    world.file("k", "k0\n");
    world.ok(&["write", "k", "--text", "k1\n"]);
    let write = newest(&world, "write");
    world.file("k", "person\n");
    world.ok(&["undo", "--force"]);
    world.ok(&["redo"]);
    let redo = newest(&world, "redo");
    world.ok(&["undo", &redo]);
    assert_eq!(world.read("k"), "k0\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("k"), "person\n");
    // Whoever names no redo is asked, as before all of that.
    assert_eq!(state_of(&world, &write, "k"), "conflict");
    let refused = json(&world, 1, &["undo"]);
    assert_eq!(refused["code"], "conflict", "{refused}");
    assert_eq!(world.read("k"), "person\n");
    world.check_store();
}

#[test]
fn a_file_that_changed_moved_with_its_directory_and_got_another_name_is_redone_each_time() {
    for line in [
        "echo n >> d/2; mv d e; ln e/2 hl",
        "mv d e; echo n >> e/2; ln e/2 hl",
    ] {
        let world = World::new();
        world.file("d/2", "two\n");
        let before = world.tree().without_times();
        world.ok(&["run", "--", "sh", "-c", line]);
        to_and_fro(&world, &before);
        world.ok(&["undo"]);
        world.ok(&["redo"]);
    }
}

#[test]
fn what_was_removed_by_force_and_brought_back_stands_in_the_way_again() {
    let world = World::new();
    world.ok(&["run", "--", "sh", "-c", "mkdir d; echo 1 > d/1"]);
    world.file("d/x", "foreign\n");
    let after = world.tree().without_times();
    world.ok(&["undo", "--force"]);
    world.ok(&["redo"]);
    // Once by the redo and once by the run itself: it is one operation all the same.
    let plan = said(&world.run(&["undo", "-n"]));
    assert!(plan.contains("would not undo 1 operation:"), "{plan}");
    assert!(
        plan.contains("conflict: the directory is not empty: x"),
        "{plan}"
    );
    let output = world.run(&["undo"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let now = world.tree().without_times();
    assert!(now == after, "{}", now.difference(&after));
    world.check_store();
}

#[test]
fn a_directory_made_anew_in_the_place_of_another_is_redone_also_after_force_took_a_text_out_of_it()
{
    let world = World::new();
    world.file("d/x", "x0\n");
    world.file("d/y", "y0\n");
    let changes = [
        json!({"remove": {"path": "d", "recursive": true}}),
        json!({"write": {"path": "d/x", "text": "x1\n", "parents": true}}),
        json!({"write": {"path": "e", "text": "e1\n"}}),
    ];
    let done = batch(&world, &changes);
    assert!(done.status.success(), "{}", said(&done));
    world.file("d/x", "theirs\n");
    let theirs = world.tree().without_times();
    // A part goes entry by entry, and what is in the old directory is not in the way of the new one.
    world.ok(&["undo", "--force", "--only", "d", "--only", "d/x"]);
    assert_eq!(world.read("d/x"), "x0\n");
    for _ in 0..2 {
        let redone = world.json(&["redo", "--partial"]);
        let said = outcomes(&world, &redone);
        assert!(said.iter().all(|(_, word)| word == "restored"), "{said:?}");
        let now = world.tree().without_times();
        assert!(now == theirs, "{}", now.difference(&theirs));
        // Their text is in conflict again, and force takes all of it back.
        json(&world, 1, &["undo"]);
        world.ok(&["undo", "--force"]);
        assert_eq!(world.read("d/y"), "y0\n");
    }
    // Somebody was in the old directory: it is not taken for the new one.
    world.file("d/y", "y1\n");
    let redone = json(&world, 1, &["redo", "--partial"]);
    let said = outcomes(&world, &redone);
    assert!(said.contains(&("d".into(), "conflict".into())), "{said:?}");
    assert_eq!(world.read("d/y"), "y1\n");
    world.check_store();
}

#[test]
fn what_comes_back_in_a_tree_is_there_for_the_steps_after_it() {
    let world = World::new();
    world.file("d/x", "x0\n");
    world.ok(&["rm", "-r", "d"]);
    let removal = newest(&world, "remove");
    world.ok(&["write", "-p", "d/x", "--text", "x1\n"]);
    world.ok(&["undo", &removal]);
    world.ok(&["write", "d/x", "--text", "x2\n"]);
    // The redo takes the later write back first; its undo brings the directory, and then the write in it.
    let redone = world.json(&["redo"]);
    assert_eq!(world.read("d/x"), "x1\n");
    let act = redone["act"].as_str().unwrap();
    world.ok(&["undo", act]);
    assert_eq!(world.read("d/x"), "x2\n");
    world.check_store();
}

#[test]
fn a_redo_without_a_name_goes_past_an_undo_that_found_nothing_to_do() {
    let world = World::new();
    world.file("f", "1\n");
    world.ok(&["write", "f", "--text", "2\n"]);
    world.ok(&["write", "g", "--text", "2\n"]);
    world.ok(&["undo", "f"]);
    std::fs::remove_file(world.path("g")).unwrap();
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    assert_eq!(world.read("f"), "2\n");
    let told = world.fails(1, &["redo"]);
    assert!(told.contains("there is nothing to redo"), "{told}");
    world.check_store();
}

#[test]
fn a_command_that_only_gives_directories_times_is_undone_and_redone() {
    let world = World::new();
    world.file("d/x", "1\n");
    world.file("e/x", "1\n");
    let before = world.tree();
    world.ok(&["run", "--", "touch", "-d", "2001-01-01", "d", "e"]);
    let after = world.tree();
    assert!(after != before);
    for (word, wanted) in [("undo", &before), ("redo", &after)]
        .into_iter()
        .cycle()
        .take(4)
    {
        world.ok(&[word]);
        let now = world.tree();
        assert!(now == *wanted, "{word}: {}", now.difference(wanted));
    }
    // A file that comes and goes leaves a new time, and is no change.
    world.ok(&["run", "--", "sh", "-c", "touch d/y; rm d/y"]);
    let log = world.ok(&["log", "-n", "1"]);
    assert!(log.contains("changed nothing"), "{log}");
    world.check_store();
}

#[test]
fn an_undo_is_named_with_what_lies_below_it_and_all_of_it_goes() {
    let world = World::new();
    world.file("f", "0");
    world.ok(&["write", "f", "--text", "1"]);
    let first = newest(&world, "write");
    world.ok(&["write", "f", "--text", "2"]);
    world.ok(&["undo"]);
    let undo = newest(&world, "undo");
    let before = world.tree().without_times();
    let plan = world.json(&["undo", &undo, &first, "-n"]);
    assert_eq!(plan["is_executable"], true, "{plan}");
    let told = world.ok(&["undo", &undo, &first]);
    assert!(
        told.contains(&format!(
            "what it took back was built on {first}, which goes"
        )),
        "{told}"
    );
    assert_eq!(world.read("f"), "0");
    world.ok(&["redo"]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}
