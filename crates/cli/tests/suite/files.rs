//! `rm`, `mv`, `cp`, `mkdir`, `ln`, `chmod`, `chown`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::world::World;

#[test]
fn several_files_are_removed_together_and_come_back_together() {
    let world = World::new().file("a", "1").file("b", "2");
    insta::assert_snapshot!(world.cli(["rm", "a", "b"]), @"");
    assert!(!world.has("a") && !world.has("b"));
    insta::assert_snapshot!(world.cli(["undo"]), @"");
    assert_eq!((world.text("a"), world.text("b")), ("1".into(), "2".into()));
}

#[test]
fn if_one_of_several_is_missing_none_is_removed() {
    let world = World::new().file("a", "1");
    insta::assert_snapshot!(world.cli(["rm", "a", "gone"]), @"");
    assert!(world.has("a"));
}

#[test]
fn a_missing_file_is_no_error_by_force() {
    let world = World::new().file("a", "1");
    insta::assert_snapshot!(world.cli(["rm", "-f", "a", "gone"]), @"");
    insta::assert_snapshot!(world.cli(["rm", "-f", "gone"]), @"");
}

#[test]
fn a_directory_is_removed_only_when_asked_for() {
    let world = World::new().file("d/x", "1").file("d/y/z", "2");
    insta::assert_snapshot!(world.cli(["rm", "d"]), @"");
    insta::assert_snapshot!(world.cli(["rm", "-r", "d"]), @"");
    assert!(!world.has("d"));
    world.did(["undo"]);
    assert_eq!(world.text("d/y/z"), "2");
}

#[test]
fn a_move_gives_another_name_or_goes_into_a_directory() {
    let world = World::new().file("a", "1").file("b", "2").file("d/x", "");
    insta::assert_snapshot!(world.cli(["mv", "a", "c"]), @"");
    insta::assert_snapshot!(world.cli(["mv", "b", "c", "d"]), @"");
    assert_eq!(
        (world.text("d/b"), world.text("d/c")),
        ("2".into(), "1".into())
    );
}

#[test]
fn several_sources_need_a_directory() {
    let world = World::new().file("a", "1").file("b", "2");
    insta::assert_snapshot!(world.cli(["mv", "a", "b", "c"]), @"");
}

#[test]
fn a_move_replaces_only_when_asked_for() {
    let world = World::new().file("a", "1").file("b", "2");
    insta::assert_snapshot!(world.cli(["mv", "a", "b"]), @"");
    world.did(["mv", "--replace", "a", "b"]);
    assert_eq!(world.text("b"), "1");
    world.did(["undo"]);
    assert_eq!((world.text("a"), world.text("b")), ("1".into(), "2".into()));
}

#[test]
fn files_and_trees_are_copied() {
    let world = World::new().file("a", "1").file("d/x", "2");
    insta::assert_snapshot!(world.cli(["cp", "a", "b"]), @"");
    insta::assert_snapshot!(world.cli(["cp", "-r", "d", "e"]), @"");
    insta::assert_snapshot!(world.cli(["cp", "d", "f"]), @"");
    assert_eq!(
        (world.text("b"), world.text("e/x")),
        ("1".into(), "2".into())
    );
}

#[test]
fn directories_are_made() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["mkdir", "a"]), @"");
    insta::assert_snapshot!(world.cli(["mkdir", "-p", "-m", "0750", "x/y"]), @"");
    insta::assert_snapshot!(world.cli(["mkdir", "a"]), @"");
    assert_eq!(
        fs::metadata(world.path("x/y")).unwrap().mode() & 0o7777,
        0o750
    );
}

#[test]
fn symbolic_links_and_second_names_are_made() {
    let world = World::new().file("a", "1").file("d/x", "");
    insta::assert_snapshot!(world.cli(["ln", "-s", "../a", "d/link"]), @"");
    insta::assert_snapshot!(world.cli(["ln", "a", "d"]), @"");
    assert_eq!(
        fs::read_link(world.path("d/link")).unwrap().to_str(),
        Some("../a")
    );
    assert_eq!(fs::metadata(world.path("a")).unwrap().nlink(), 2);
}

#[test]
fn modes_are_changed_by_digits_and_letters() {
    let world = World::new().file("run.sh", "").file("d/x", "");
    fs::set_permissions(world.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    insta::assert_snapshot!(world.cli(["chmod", "-x", "run.sh"]), @"");
    assert_eq!(
        fs::metadata(world.path("run.sh")).unwrap().mode() & 0o7777,
        0o644
    );
    world.did(["chmod", "-R", "700", "d", "run.sh"]);
    assert_eq!(
        fs::metadata(world.path("d/x")).unwrap().mode() & 0o7777,
        0o700
    );
    world.did(["undo"]);
    assert_eq!(
        fs::metadata(world.path("run.sh")).unwrap().mode() & 0o7777,
        0o644
    );
}

#[test]
fn an_owner_that_nobody_knows_is_refused() {
    let world = World::new().file("a", "");
    insta::assert_snapshot!(world.cli(["chown", "no-such-user", "a"]), @"");
}

#[test]
fn the_owner_is_changed_by_who_may() {
    let world = World::new().file("a", "");
    let own = fs::metadata(world.path("a")).unwrap();
    let (uid, gid) = if own.uid() == 0 {
        (12, 34)
    } else {
        (own.uid(), own.gid())
    };
    assert_eq!(world.cli(["chown", &format!("{uid}:{gid}"), "a"]).code, 0);
    let now = fs::metadata(world.path("a")).unwrap();
    assert_eq!((now.uid(), now.gid()), (uid, gid));
}
