//! What a command does through us while it runs: its undos, and what it had written by then.

use super::{json, newest, to_and_fro};
use crate::world::{World, said};

const PROGRAM: &str = env!("CARGO_BIN_EXE_backout");

#[test]
fn an_undo_from_inside_takes_along_what_the_command_wrote_in_what_goes_back() {
    let world = World::new();
    world.file("d/a", "1\n");
    let before = world.tree().without_times();
    world.ok(&["write", "d/a", "--text", "2\n"]);
    let line = format!("{PROGRAM} mv d e; echo 3 >> e/a; {PROGRAM} undo; cat d/a");
    let told = world.ok(&["run", "--", "sh", "-c", &line]);
    assert!(told.contains("move d to e"), "{told}");
    assert!(told.contains("e/a  taken back"), "{told}");
    assert!(told.ends_with("2\n"), "{told}");
    assert_eq!(world.tree().names(), ["", "d", "d/a"]);
    // Nothing of it is left, so the write is what was done last.
    to_and_fro(&world, &before);
}

#[test]
fn what_a_command_undid_stays_undone_and_that_is_said() {
    let world = World::new();
    world.file("a", "1\n");
    let before = world.tree().without_times();
    world.ok(&["write", "a", "--text", "2\n"]);
    let line = format!("{PROGRAM} undo; echo x > y");
    world.ok(&["run", "--", "sh", "-c", &line]);
    let inside = newest(&world, "undo");
    let hint = format!("`backout redo {inside}`");
    let plan = said(&world.run(&["undo", "-n"]));
    let told = said(&world.run(&["undo"]));
    for said in [plan, told] {
        assert!(
            said.contains(&format!("undone since by {inside}")),
            "{said}"
        );
        assert!(said.contains(&hint), "{said}");
    }
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.ok(&["redo"]);
    to_and_fro(&world, &before);
    world.ok(&["redo", &inside]);
    assert_eq!(world.read("a"), "2\n");
    world.check_store();
}

#[test]
fn a_command_that_only_undid_something_names_what_brings_it_back() {
    let world = World::new();
    world.file("a", "1\n");
    world.ok(&["write", "a", "--text", "2\n"]);
    world.ok(&["run", "--", PROGRAM, "undo"]);
    let (command, inside) = (newest(&world, "run"), newest(&world, "undo"));
    let told = json(&world, 1, &["undo", &command]);
    assert_eq!(told["code"], "nothing", "{told}");
    assert!(told["next"].to_string().contains(&inside), "{told}");
    world.ok(&["redo", &inside]);
    assert_eq!(world.read("a"), "2\n");
    // What a command brought back stays, too.
    world.ok(&["undo"]);
    let line = format!("{PROGRAM} redo; echo x > y");
    world.ok(&["run", "--", "sh", "-c", &line]);
    let again = newest(&world, "redo");
    let told = said(&world.run(&["undo"]));
    let why = "(was done while it ran), and was not chosen";
    let line = told.lines().find(|line| line.contains(why));
    assert!(line.is_some_and(|line| line.contains(&again)), "{told}");
    assert_eq!(world.read("a"), "2\n");
    world.check_store();
}
