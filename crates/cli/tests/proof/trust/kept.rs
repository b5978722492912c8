//! Stories of `restore` and `diff`: a name becomes what it was, or it is said what of it is not known. And of names of one file.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::{newest, to_and_fro};
use crate::world::{World, said};

fn linked(names: [&str; 2]) -> World {
    let world = World::new();
    world.file(names[0], "old\n");
    fs::hard_link(world.path(names[0]), world.path(names[1])).unwrap();
    world
}

/// Writes a file with `write`.
fn write(world: &World, name: &str, content: &str) {
    world.file("given", content);
    world.ok(&["write", name, "--from", "given"]);
    fs::remove_file(world.path("given")).unwrap();
}

fn mode(world: &World, name: &str) -> u32 {
    let found = world.path(name).metadata().unwrap();
    found.permissions().mode() & 0o7777
}

#[test]
fn a_name_that_went_is_restored_with_what_its_file_held_before_it_was_written_by_another_name() {
    for script in ["echo new > a; rm b", "echo new > a; mv b c"] {
        let world = linked(["a", "b"]);
        world.ok(&["run", "--", "sh", "-c", script]);
        let told = world.ok(&["diff", "@"]);
        assert!(!told.contains("-new"), "{script}: {told}");
        world.ok(&["restore", "b", "--from", "@"]);
        assert_eq!(world.read("b"), "old\n", "{script}");
        assert_eq!(world.read("a"), "new\n", "{script}");
        world.check_store();
    }
}

#[test]
fn a_second_name_is_restored_as_it_was_made_whatever_its_first_name_holds_by_now() {
    let made = |world: &World| {
        world.file("a", "old\n");
        world.ok(&["run", "--", "sh", "-c", "echo new > a; ln a b"]);
        newest(world, "run")
    };
    let world = World::new();
    let run = made(&world);
    write(&world, "a", "later\n");
    assert!(!world.ok(&["diff", &run]).contains("+later"));
    world.ok(&["restore", "b", "--from", &run, "--after"]);
    assert_eq!(world.read("b"), "new\n");

    let world = World::new();
    let run = made(&world);
    world.ok(&["undo"]);
    assert!(!world.ok(&["diff", &run]).contains("+old"));
    let planned = world.ok(&["redo", "-n", "--diff"]);
    let of_b = planned.split("created b").nth(1).unwrap();
    assert!(of_b.contains("+new") && !of_b.contains("+old"), "{planned}");
    world.ok(&["restore", "b", "--from", &run, "--after"]);
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("old\n".into(), "new\n".into())
    );

    let world = World::new();
    world.file("a", "old\n");
    world.ok(&["ln", "a", "b"]);
    let link = newest(&world, "link");
    write(&world, "a", "later\n");
    fs::remove_file(world.path("b")).unwrap();
    world.ok(&["restore", "b", "--from", &link, "--after"]);
    assert_eq!(world.read("b"), "old\n");
    world.ok(&["undo", &newest(&world, "write")]);
    world.ok(&["restore", "b", "--from", &link, "--after"]);
    let number = |name: &str| world.path(name).metadata().unwrap().ino();
    assert_eq!(number("a"), number("b"));
    world.check_store();
}

#[test]
fn a_moved_directory_is_restored_as_a_copy_as_far_as_nothing_in_it_changed() {
    for command in [&["mv", "d", "e"][..], &["run", "--", "mv", "d", "e"]] {
        let world = World::new();
        world.file("d/x", "1\n");
        world.ok(command);
        let id = newest(&world, if command[0] == "mv" { "move" } else { "run" });
        world.ok(&["restore", "d/x", "--from", &id]);
        assert_eq!(world.read("d/x"), "1\n");
        world.ok(&["undo"]);
        world.ok(&["restore", "d", "--from", &id]);
        assert_eq!(
            (world.read("d/x"), world.read("e/x")),
            ("1\n".into(), "1\n".into())
        );
        world.ok(&["undo"]);
        world.file("e/y", "2\n");
        let refused = world.fails(1, &["restore", "d", "--from", &id]);
        assert!(refused.contains("e` may have changed since"), "{refused}");
        let way = format!("take the whole operation back with `backout undo {id}`");
        assert!(refused.contains(&way), "{refused}");
        world.ok(&["undo", &id, "--merge"]);
        assert_eq!(
            (world.read("d/x"), world.read("d/y")),
            ("1\n".into(), "2\n".into())
        );
    }
    let world = World::new();
    world.file("f", "1\n");
    world.ok(&["mv", "f", "g"]);
    write(&world, "g", "2\n");
    world.ok(&["restore", "f", "--from", "@-1"]);
    assert_eq!(world.read("f"), "1\n");
}

#[test]
fn what_only_got_another_mode_is_restored_whole_or_it_is_said_that_only_the_mode_is() {
    for command in [
        &["chmod", "600", "f"][..],
        &["run", "--", "chmod", "600", "f"],
    ] {
        let world = World::new();
        world.file("f", "1\n");
        let before = mode(&world, "f");
        world.ok(command);
        let id = newest(&world, command[0]);
        write(&world, "f", "2\n");
        let told = world.ok(&["restore", "f", "--from", &id]);
        assert!(told.contains("restored f to what it was before"), "{told}");
        assert_eq!(
            (world.read("f").as_str(), mode(&world, "f")),
            ("1\n", before)
        );
        let other = World::new();
        other.file("f", "1\n");
        other.ok(command);
        let id = newest(&other, command[0]);
        other.file("f", "theirs\n");
        let told = other.ok(&["restore", "f", "--from", &id]);
        assert!(
            told.contains("restored the mode, owner and attributes of f"),
            "{told}"
        );
        assert_eq!(
            (other.read("f").as_str(), mode(&other, "f")),
            ("theirs\n", before)
        );
        fs::remove_file(other.path("f")).unwrap();
        let refused = other.fails(1, &["restore", "f", "--from", &id]);
        assert!(refused.contains("the rest of it is not kept"), "{refused}");
        assert!(!refused.contains("--parents"), "{refused}");
    }
}

#[test]
fn one_name_of_a_file_goes_and_the_other_gets_a_mode_in_a_trial() {
    let world = linked(["a", "l"]);
    let before = world.tree().without_times();
    let told = said(&world.run(&["try", "--apply", "--", "sh", "-c", "rm l; chmod 600 a"]));
    assert!(!told.contains("keeps the old mode"), "{told}");
    to_and_fro(&world, &before);
    // An undo that dies when the name is back and the mode is not.
    let after = world.tree().without_times();
    let mut undo = world.command(&["undo"]);
    let died = undo.env("BACKOUT_CRASH_AT", "file.swapped#1").output();
    assert!(!died.unwrap().status.success());
    let told = world.ok(&["recover"]);
    let now = world.tree().without_times();
    assert!(now == after, "{told}{}", now.difference(&after));
}

#[test]
fn a_name_to_which_a_trial_does_not_give_the_mode_is_named() {
    let world = linked(["a", "l"]);
    let told = said(&world.run(&["try", "--apply", "--", "sh", "-c", "mv l h; chmod 600 a"]));
    let note = "a` has other names, and `h` keeps the old mode, owner and attributes";
    assert!(told.contains(note), "{told}");
    assert_ne!(mode(&world, "a"), mode(&world, "h"));
}

#[test]
fn where_a_redo_meets_a_directory_that_was_made_again_the_way_to_have_both_is_named() {
    let world = World::new();
    let script = "mkdir k; echo x > k/x; echo y > k/y; echo z > z";
    world.ok(&["try", "--", "sh", "-c", script]);
    world.ok(&["try", "--apply", "--only", "k/y"]);
    let part = newest(&world, "batch");
    world.ok(&["undo"]);
    world.ok(&["try", "--apply"]);
    let rest = newest(&world, "batch");
    let told = world.ok(&["redo"]);
    assert!(told.contains("k/x  taken back"), "{told}");
    // What the redo took back is named, and comes back by that name.
    let refused = world.fails(1, &["redo"]);
    let why = format!("what a redo had to take back comes only by name: {rest}");
    assert!(refused.contains(&why), "{refused}");
    let way = "take that redo back, and have it again, with `backout undo";
    assert!(refused.contains(way), "{refused}");
    let refused = world.fails(1, &["redo", &rest]);
    assert!(!refused.contains("k/x`: it exists"), "{refused}");
    assert!(refused.contains("a directory that holds y"), "{refused}");
    let way = format!(
        "put what is in it beside what is there with `backout restore k --from {rest} --after`"
    );
    assert!(refused.contains(&way), "{refused}");
    let planned = said(&world.run(&["redo", &rest, "--force", "-n"]));
    assert!(planned.contains("a directory that holds y"), "{planned}");
    world.ok(&["restore", "k", "z", "--from", &rest, "--after"]);
    let all = ["k/x", "k/y", "z"].map(|name| world.read(name));
    assert_eq!(all, ["x\n", "y\n", "z\n"]);
    world.ok(&["undo"]);
    world.ok(&["undo", &part]);
    world.check_store();
}

#[test]
fn a_difference_of_a_file_with_an_odd_name_is_a_patch_that_finds_it() {
    for (name, header) in [
        (" sp", "a/ sp\t"),
        ("a\"b", r#""a/a\"b""#),
        ("t\tab", r#""a/t\tab""#),
        ("`x`", "a/`x`"),
    ] {
        let world = World::new();
        world.file(name, "old\n");
        let path = world.path(name).display().to_string();
        world.ok(&["write", &path, "--text", "new\n"]);
        let told = world.run(&["diff", "@"]);
        let told = String::from_utf8(told.stdout).unwrap();
        assert!(told.contains(&format!("\n--- {header}\n")), "{told}");
        world.file("p", &told);
        world.ok(&["undo"]);
        world.ok(&["edit", "--patch", "p"]);
        assert_eq!(world.read(name), "new\n");
    }
    let world = World::new();
    let script = r"printf 'n\n' > $(printf '\377')";
    world.ok(&["run", "--", "sh", "-c", script]);
    let told = world.ok(&["diff", "@"]);
    assert!(told.contains(r#"+++ "b/\377""#), "{told}");
}
