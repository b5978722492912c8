//! What is decided about drift holds, and whatever a decision overwrites comes back.

use std::fs;

use crate::world::World;

fn read(world: &World, name: &str) -> String {
    fs::read_to_string(world.path(name)).unwrap()
}

/// A world in which somebody changed the middle of a file that was recorded, and the bytes of the record are kept by a checkpoint.
fn changed() -> World {
    let world = World::new();
    world.write("a", "one\ntwo\nthree\n");
    world.put("a", "one\nTWO\nthree\n");
    assert_eq!(world.sweep().len(), 1);
    world
}

#[test]
fn accepted_drift_is_an_operation_and_later_undos_compare_with_it() {
    let world = changed();
    let said = world.does(&["drift", "accept", "a"]);
    assert!(said.contains("accepted as it is"), "{said}");
    assert_eq!(read(&world, "a"), "one\nTWO\nthree\n");
    assert_eq!(world.open(), []);
    assert_eq!(world.sweep(), []);
    let accepted = world.newest();
    let shown = world.does(&["show", &accepted]);
    assert!(shown.contains("accept what others made of"), "{shown}");
    // It is what later changes are compared with.
    world.put("a", "again\n");
    assert_eq!(world.sweep().len(), 1);
    // What was accepted is kept.
    world.does(&["restore", "a", "--from", &accepted, "--after"]);
    assert_eq!(read(&world, "a"), "one\nTWO\nthree\n");
}

#[test]
fn what_was_added_or_removed_or_dressed_is_accepted_and_taken_back() {
    let world = World::new();
    world.does(&["mkdir", "d"]);
    world.write("d/a", "1");
    world.put("d/new/deep", "theirs");
    fs::remove_file(world.path("d/a")).unwrap();
    let found = world.sweep();
    assert_eq!(found.len(), 2, "{found:?}");
    world.does(&["drift", "accept", "d"]);
    assert_eq!(world.sweep(), []);
    fs::remove_dir_all(world.path("d/new")).unwrap();
    assert_eq!(world.sweep().len(), 1, "it is recorded now");
}

#[test]
fn restored_drift_is_as_recorded_and_what_it_overwrote_comes_back() {
    let world = changed();
    let said = world.does(&["drift", "restore", "a"]);
    assert!(said.contains("made what was recorded"), "{said}");
    assert_eq!(read(&world, "a"), "one\ntwo\nthree\n");
    assert_eq!(world.sweep(), []);
    world.does(&["undo"]);
    assert_eq!(read(&world, "a"), "one\nTWO\nthree\n");
}

#[test]
fn bytes_and_mode_that_two_operations_left_are_one_drift_and_both_come_back() {
    let world = World::new();
    world.write("a", "mine\n");
    world.does(&["chmod", "640", "a"]);
    fs::remove_file(world.path("a")).unwrap();
    world.put("a", "theirs\n");
    let found = world.sweep();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind.as_str(), found[0].count), ("changed", 1));
    world.does(&["drift", "restore", "a"]);
    assert_eq!(read(&world, "a"), "mine\n");
    assert_eq!(world.sweep(), []);
}

#[test]
fn what_was_added_goes_and_comes_back() {
    let world = World::new();
    world.does(&["mkdir", "d"]);
    world.put("d/new/deep", "theirs");
    assert_eq!(world.sweep().len(), 1);
    world.does(&["drift", "restore", "d/new"]);
    assert!(!world.path("d/new").exists());
    assert_eq!(world.sweep(), []);
    world.does(&["undo"]);
    assert_eq!(read(&world, "d/new/deep"), "theirs");
}

#[test]
fn keys_and_rows_are_restored_by_their_drivers() {
    let world = World::new();
    world.put("app.toml", "[server]\nport = 1\n");
    world.does(&["set", "app.toml", "server.port", "2"]);
    world.put("app.toml", "[server]\nport = 3\n");
    assert_eq!(world.sweep().len(), 1);
    world.does(&["drift", "restore", "app.toml:server.port"]);
    assert_eq!(read(&world, "app.toml"), "[server]\nport = 2\n");
    assert_eq!(world.sweep(), []);
    world.put("app.toml", "[server]\nport = 3\n");
    assert_eq!(world.sweep().len(), 1);
    let said = world.run(&["drift", "accept", "app.toml:server.port"]);
    let said = crate::world::texts(&said);
    assert!(
        said.1.contains("app.toml:server.port` is accepted as long as it stays so; an undo of what was recorded will find it changed"),
        "{said:?}"
    );
    assert_eq!(world.sweep(), []);
    world.put("app.toml", "[server]\nport = 4\n");
    assert_eq!(world.sweep().len(), 1, "it did not stay so");
}

#[test]
fn what_changed_again_is_not_decided_about() {
    let world = changed();
    world.put("a", "and again\n");
    let said = world.refuses(&["drift", "accept", "a"]);
    assert!(
        said.contains("it changed again since that was told"),
        "{said}"
    );
    assert!(said.contains("nothing was done about"), "{said}");
    world.does(&["drift", "accept", "a"]);
    let said = world.refuses(&["drift", "accept", "a"]);
    assert!(said.contains("no open drift has that name"), "{said}");
}

#[test]
fn an_agent_reads_drift_and_does_not_decide() {
    let world = changed();
    let listed = world.does(&["--agent", "bob", "drift"]);
    assert!(listed.contains('a'), "{listed}");
    for act in ["accept", "restore", "merge", "ignore"] {
        let said = world.refuses(&["--agent", "bob", "drift", act, "a"]);
        assert!(
            said.contains("nothing was done about the drift")
                && said.contains("an agent may read drift, and a person decides about it")
                && said.contains("read it with `backout drift`"),
            "{said}"
        );
    }
    let program = env!("CARGO_BIN_EXE_backout");
    let said = world.run(&["run", "--", program, "drift", "accept", "a"]);
    assert!(!said.status.success(), "from inside of a command");
    assert_eq!(world.open().len(), 1);
}

#[test]
fn a_pattern_is_left_alone_until_somebody_looks_at_it_again() {
    let world = World::new();
    world.write("logs/a.log", "1");
    world.write("b", "1");
    world.put("logs/a.log", "2");
    world.put("b", "2");
    assert_eq!(world.sweep().len(), 2);
    let said = world.does(&["drift", "ignore", "**/*.log"]);
    let pattern = format!("{}/**/*.log", world.root.display());
    assert_eq!(
        said.lines().last(),
        Some(format!("what {pattern} matches is left alone").as_str())
    );
    assert!(
        said.contains(&format!("a.log  left alone by {pattern}")),
        "{said}"
    );
    assert_eq!(world.sweep().len(), 1);
    let listed = world.run(&["drift"]);
    assert!(crate::world::texts(&listed).1.contains("left alone: "));
    let said = world.does(&["drift", "ignore", "--off", "**/*.log"]);
    assert_eq!(said, format!("what {pattern} matches is looked at again\n"));
    assert_eq!(world.sweep().len(), 2);
    let said = world.refuses(&["drift", "ignore", "--off", "**/*.log"]);
    assert!(said.contains("no such pattern was given"), "{said}");
    assert!(
        said.contains("list the patterns with `backout drift`"),
        "{said}"
    );
}

#[test]
fn what_nobody_kept_is_not_restored_and_said_so() {
    let world = World::new();
    let script = "printf 'one\\ntwo\\nthree\\n' > a";
    world.does(&["run", "--", "sh", "-c", script]);
    world.put("a", "one\nTWO\nthree\n");
    assert_eq!(world.sweep()[0].choices, ["accept", "ignore"]);
    let said = world.refuses(&["drift", "restore", "a"]);
    assert!(said.contains("was not made what was recorded"), "{said}");
    assert_eq!(read(&world, "a"), "one\nTWO\nthree\n");
    let said = world.refuses(&["drift", "merge", "a"]);
    assert!(said.contains("was not merged"), "{said}");
}

#[test]
fn of_a_removed_directory_one_file_is_restored_and_the_others_stay_drift() {
    let world = World::new();
    world.does(&["mkdir", "d"]);
    for name in ["d/a", "d/b", "d/c"] {
        world.write(name, name);
    }
    fs::remove_dir_all(world.path("d")).unwrap();
    let found = world.sweep();
    assert_eq!((found.len(), found[0].count), (1, 4), "{found:?}");
    world.does(&["drift", "restore", "d/a"]);
    assert_eq!(read(&world, "d/a"), "d/a");
    let counted = |open: Vec<crate::world::Drifted>| open.iter().map(|it| it.count).sum::<u64>();
    assert_eq!(counted(world.open()), 2);
    assert_eq!(counted(world.sweep()), 2);
    world.put("d/b", "d/b");
    assert_eq!(counted(world.sweep()), 1, "somebody else put it back");
    fs::remove_file(world.path("d/b")).unwrap();
    world.does(&["undo"]);
    assert_eq!(counted(world.sweep()), 4, "all of it is gone again");
    world.does(&["redo"]);
    assert_eq!(counted(world.sweep()), 2);
    world.does(&["drift", "restore", "d"]);
    assert_eq!(world.sweep(), []);
    assert_eq!(read(&world, "d/c"), "d/c");
}

#[test]
fn status_does_not_count_drift_that_a_forced_undo_or_a_write_ended() {
    let counted = |world: &World| world.json(&["status"])["drifted"].as_u64().unwrap_or(0);
    let world = changed();
    assert_eq!(counted(&world), 1);
    world.does(&["undo", "--force"]);
    assert_eq!(counted(&world), 0, "an undo put it back");
    let world = changed();
    world.write("a", "mine\n");
    assert_eq!(counted(&world), 0, "it was written since");
    let world = changed();
    world.does(&["mkdir", "elsewhere"]);
    assert_eq!(counted(&world), 1, "nobody did anything about it");
}
