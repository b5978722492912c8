//! Names become what they were, as a write of its own.

use std::fs;
use std::path::Path;

use backout_files::Files as _;
use backout_model::Effect;
use backout_model::ports::OnConflict;

use super::world::World;
use crate::file::{FileError, FileRequest, Past};

/// What a name, and all below it, was before or after an effect.
fn past(world: &World, effect: &Effect, name: &str, is_after: bool) -> FileRequest {
    let root = world.target(name);
    let sides = world.driver.sides(effect).unwrap().into_iter();
    let meant = sides.filter(|side| side.path == root || side.path.is_below(&root));
    let names = meant.map(|side| Past {
        path: side.path,
        was: if is_after { side.after } else { side.before },
    });
    FileRequest::Restore {
        summary: "restore".to_owned(),
        names: names.collect(),
    }
}

fn remove(world: &World, name: &str) -> Effect {
    let request = FileRequest::Remove {
        path: world.path(name),
        recursive: true,
    };
    world.apply(&request).unwrap()
}

/// A file, an odd mode, a link, a large file, an empty directory.
fn project() -> World {
    World::new()
        .file("d/a", "one\n")
        .file("d/large", vec![7; 200_000])
        .dir("d/empty")
        .link("d/l", "a")
        .mode("d/a", 0o640)
}

#[test]
fn a_removed_tree_is_restored_and_can_be_removed_again() {
    let world = project();
    let before = world.see();
    let removed = remove(&world, "d");
    let gone = world.see();
    let restored = world.apply(&past(&world, &removed, "d", false)).unwrap();
    // The directory above was written to.
    let (mut now, mut then) = (world.see(), before.clone());
    assert!(now.remove(Path::new("")).is_some() && then.remove(Path::new("")).is_some());
    assert_eq!(now, then);
    // The removal is as undoable as it was, once what was restored is gone again.
    world.undo(&restored, OnConflict::Refuse);
    assert_eq!(world.see(), gone);
    world.undo(&removed, OnConflict::Refuse);
    assert_eq!(world.see(), before);
}

#[test]
fn one_file_of_a_removed_tree_is_restored_with_the_directory_it_needs() {
    let world = project();
    let removed = remove(&world, "d");
    for (name, bytes) in [("d/a", b"one\n".to_vec()), ("d/large", vec![7; 200_000])] {
        world.apply(&past(&world, &removed, name, false)).unwrap();
        assert_eq!(world.read(name), bytes);
    }
    assert_eq!(fs::read_dir(world.path("d")).unwrap().count(), 2);
}

#[test]
fn a_file_is_restored_over_what_came_later_and_that_is_kept() {
    for large in [false, true] {
        let (old, new) = if large {
            (vec![1; 200_000], vec![2; 200_000])
        } else {
            (b"one\n".to_vec(), b"two\n".to_vec())
        };
        let world = World::new().file("f", &old);
        let written = world
            .apply(&FileRequest::write(world.path("f"), new.clone()))
            .unwrap();
        fs::write(world.path("f"), "somebody else's").unwrap();
        let restored = world.apply(&past(&world, &written, "f", false)).unwrap();
        assert_eq!(world.read("f"), old);
        world.undo(&restored, OnConflict::Refuse);
        assert_eq!(world.read("f"), b"somebody else's");
    }
}

#[test]
fn what_was_not_there_goes_and_comes_back() {
    let world = World::new();
    let written = world
        .apply(&FileRequest::write(world.path("f"), "new\n"))
        .unwrap();
    fs::write(world.path("f"), "somebody else's").unwrap();
    let restored = world.apply(&past(&world, &written, "f", false)).unwrap();
    assert!(!world.path("f").exists());
    world.undo(&restored, OnConflict::Refuse);
    assert_eq!(world.read("f"), b"somebody else's");
}

#[test]
fn a_file_is_restored_to_what_an_operation_made_of_it() {
    let world = World::new().file("f", "old\n");
    let written = world
        .apply(&FileRequest::write(world.path("f"), "new\n"))
        .unwrap();
    // The next write keeps it.
    world
        .apply(&FileRequest::write(world.path("f"), "newer\n"))
        .unwrap();
    world.apply(&past(&world, &written, "f", true)).unwrap();
    assert_eq!(world.read("f"), b"new\n");
}

#[test]
fn a_directory_takes_the_place_of_a_file_and_a_file_that_of_a_directory() {
    let world = project();
    let removed = remove(&world, "d");
    fs::write(world.path("d"), "a file now").unwrap();
    let restored = world.apply(&past(&world, &removed, "d", false)).unwrap();
    assert_eq!(world.read("d/a"), b"one\n");
    world.undo(&restored, OnConflict::Refuse);
    assert_eq!(world.read("d"), b"a file now");

    let world = World::new().file("x", "a file");
    let removed = remove(&world, "x");
    let world = world.file("x/inside", "now a directory");
    let restored = world.apply(&past(&world, &removed, "x", false)).unwrap();
    assert_eq!(world.read("x"), b"a file");
    world.undo(&restored, OnConflict::Refuse);
    assert_eq!(world.read("x/inside"), b"now a directory");
}

#[test]
fn only_the_mode_is_restored_where_only_that_was_changed() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new().file("f", "one\n").mode("f", 0o640);
    let chmod = FileRequest::Chmod {
        path: world.path("f"),
        mode: "0600".parse().unwrap(),
        recursive: false,
    };
    let changed = world.apply(&chmod).unwrap();
    fs::write(world.path("f"), "edited\n").unwrap();
    world.apply(&past(&world, &changed, "f", false)).unwrap();
    assert_eq!(world.read("f"), b"edited\n");
    let mode = world.path("f").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
}

#[test]
fn what_is_already_so_is_left_alone_and_what_is_lost_is_told() {
    let world = World::new().file("f", vec![1; 200_000]);
    let written = world
        .apply(&FileRequest::write(world.path("f"), "small"))
        .unwrap();
    let again = world.prepare(&past(&world, &written, "f", true)).unwrap();
    assert!(again.is_noop);
    drop(again);
    for slot in world.kept() {
        fs::remove_file(slot).unwrap();
    }
    let error = world
        .apply(&past(&world, &written, "f", false))
        .unwrap_err();
    assert!(matches!(error, FileError::Lost { .. }), "{error:?}");
    assert_eq!(world.read("f"), b"small");
}
