//! What a command read counts if an undo would change it, and what was copied or moved goes with what it was made of.

use std::fs;

use crate::world::World;

const COPY: [&str; 6] = ["run", "--reads", "--", "sh", "-c", "cat in > out"];

fn has_read_edge(world: &World) -> bool {
    let shown = world.json(&["show", "@"]);
    let edges = shown["operation"]["depends_on"].to_string();
    edges.contains("\"read\"")
}

#[test]
fn reads_make_dependencies() {
    let world = World::new();
    world.ok(&["write", "in", "--text", "1\n"]);
    world.ok(&["run", "--reads", "--", "sh", "-c", "cat in > out"]);
    let shown = world.json(&["show", "@"]);
    let reasons = shown["operation"]["depends_on"].to_string();
    assert!(reasons.contains("\"read\""), "{reasons}");
    // What was made of it goes with it, and comes back with it.
    world.ok(&["undo", "@-1"]);
    assert!(!world.path("in").exists() && !world.path("out").exists());
    world.ok(&["redo"]);
    assert_eq!(std::fs::read_to_string(world.path("out")).unwrap(), "1\n");
}

#[test]
fn a_read_counts_only_if_its_bytes_would_change() {
    let world = World::new();
    std::fs::write(world.path("in"), "1\n").unwrap();
    world.ok(&["chmod", "600", "in"]);
    world.ok(&["run", "--reads", "--", "sh", "-c", "cat in > out"]);
    let shown = world.json(&["show", "@"]);
    let reasons = shown["operation"]["depends_on"].to_string();
    assert!(!reasons.contains("\"read\""), "{reasons}");
    world.ok(&["undo", "@-1"]);
    assert_eq!(std::fs::read_to_string(world.path("out")).unwrap(), "1\n");
}

#[test]
fn a_copy_and_another_name_go_with_what_they_were_made_of() {
    let world = World::new();
    for words in [["cp", "in", "copy"], ["mv", "in", "moved"]] {
        world.ok(&["write", "in", "--text", "1\n"]);
        world.ok(&words);
        assert!(world.path(words[2]).exists());
        world.ok(&["undo", "@-1"]);
        assert!(
            !world.path("in").exists() && !world.path(words[2]).exists(),
            "{words:?}"
        );
    }
}

/// There and back: whoever undoes both leaves what was read as it was.
#[test]
fn a_read_does_not_count_if_the_undo_brings_the_same_bytes() {
    let world = World::new();
    fs::write(world.path("in"), "a\n").unwrap();
    world.ok(&["write", "in", "--text", "b\n"]);
    world.ok(&["write", "in", "--text", "a\n"]);
    world.ok(&COPY);
    assert!(has_read_edge(&world));
    let plan = world.json(&["undo", "@-2", "--dry-run"]);
    let left = plan["left_alone"].to_string();
    assert!(left.contains("reads-the-same"), "{plan}");
    world.ok(&["undo", "@-2"]);
    assert_eq!(fs::read_to_string(world.path("in")).unwrap(), "a\n");
    assert_eq!(fs::read_to_string(world.path("out")).unwrap(), "a\n");
    world.check_store();
}

/// The same history, and only the way back is taken back: then what was read changes.
#[test]
fn a_read_counts_if_only_a_part_of_the_way_is_undone() {
    let world = World::new();
    fs::write(world.path("in"), "a\n").unwrap();
    world.ok(&["write", "in", "--text", "b\n"]);
    world.ok(&["write", "in", "--text", "a\n"]);
    world.ok(&COPY);
    world.ok(&["undo", "@-1"]);
    assert_eq!(fs::read_to_string(world.path("in")).unwrap(), "b\n");
    assert!(!world.path("out").exists());
    world.check_store();
}

#[test]
fn what_somebody_else_wrote_is_nobodys_version() {
    let world = World::new();
    world.ok(&["write", "in", "--text", "1\n"]);
    fs::write(world.path("in"), "by hand\n").unwrap();
    world.ok(&COPY);
    assert!(!has_read_edge(&world));
    world.ok(&["undo", "@-1", "--force"]);
    assert!(!world.path("in").exists());
    assert_eq!(fs::read_to_string(world.path("out")).unwrap(), "by hand\n");
    world.check_store();
}

/// What lies in a tree that a command made has no target of its own.
#[test]
fn a_read_in_a_tree_that_an_operation_made_counts() {
    let world = World::new();
    let make = "mkdir -p made/deep && echo 1 > made/deep/in";
    world.ok(&["run", "--", "sh", "-c", make]);
    world.ok(&["run", "--reads", "--", "sh", "-c", "cat made/deep/in > out"]);
    assert!(has_read_edge(&world));
    world.ok(&["undo", "@-1"]);
    assert!(!world.path("made").exists() && !world.path("out").exists());
    world.check_store();
}

#[test]
fn a_read_of_a_file_of_which_a_key_was_set_counts() {
    let world = World::new();
    fs::write(world.path("in.toml"), "a = 1 # one\nb = 2\n").unwrap();
    world.ok(&["set", "in.toml", "a", "5"]);
    world.ok(&["run", "--reads", "--", "sh", "-c", "cat in.toml > out"]);
    assert!(has_read_edge(&world));
    world.ok(&["undo", "@-1"]);
    let text = fs::read_to_string(world.path("in.toml")).unwrap();
    assert_eq!(text, "a = 1 # one\nb = 2\n");
    assert!(!world.path("out").exists());
    world.check_store();
}

/// With `--path`, what was read elsewhere is not what goes.
#[test]
fn a_part_that_was_not_read_leaves_the_reader_as_it_is() {
    let world = World::new();
    world.ok(&["run", "--", "sh", "-c", "echo 1 > in; echo 1 > beside"]);
    world.ok(&COPY);
    let plan = world.json(&["undo", "@-1", "--dry-run", "--only", "beside"]);
    let left = plan["left_alone"].to_string();
    assert!(left.contains("reads-the-same"), "{plan}");
    let plan = world.json(&["undo", "@-1", "--dry-run", "--only", "in"]);
    let left = plan["left_alone"].to_string();
    assert!(left.contains("depends"), "{plan}");
}
