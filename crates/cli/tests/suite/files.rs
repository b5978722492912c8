//! `rm`, `mv`, `cp`, `mkdir`, `ln`, `chmod`, `chown`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::claims::Disk;
use crate::world::World;

#[test]
fn several_files_are_removed_together_and_come_back_together() {
    let world = World::new().file("a", "1").file("b", "2");
    insta::assert_snapshot!(world.cli(["rm", "a", "b"]), @"removed a, b  (9e3779b9, undo with `backout undo 9e3779b9`)");
    assert!(!world.has("a") && !world.has("b"));
    insta::assert_snapshot!(world.cli(["undo"]), @"
    undid 9e3779b9  remove a and 1 more  (the newest below .)
      a  restored
      b  restored
    hint: take this back with `backout redo 3c6ef372`
    ");
    assert_eq!((world.text("a"), world.text("b")), ("1".into(), "2".into()));
}

#[test]
fn if_one_of_several_is_missing_none_is_removed() {
    let world = World::new().file("a", "1");
    insta::assert_snapshot!(world.cli(["rm", "a", "gone"]), @r"
    error: `gone` does not exist
      next: check the name; `--force` does not mind what is not there
    [exit code 1]
    ");
    assert!(world.has("a"));
}

#[test]
fn a_missing_file_is_no_error_by_force() {
    let world = World::new().file("a", "1");
    insta::assert_snapshot!(world.cli(["rm", "-f", "a", "gone"]), @"removed a  (9e3779b9, undo with `backout undo 9e3779b9`)");
    insta::assert_snapshot!(world.cli(["rm", "-f", "gone"]), @"nothing to do: everything is already as asked");
}

#[test]
fn a_directory_is_removed_only_when_asked_for() {
    let world = World::new().file("d/x", "1").file("d/y/z", "2");
    insta::assert_snapshot!(world.cli(["rm", "d"]), @r"
    error: the directory `d` is not empty
      next: take it with all that is in it with `--recursive`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["rm", "-r", "d"]), @"removed d  (3c6ef372, undo with `backout undo 3c6ef372`)");
    assert!(!world.has("d"));
    world.did(["undo"]);
    assert_eq!(world.text("d/y/z"), "2");
}

#[test]
fn a_move_gives_another_name_or_goes_into_a_directory() {
    let world = World::new().file("a", "1").file("b", "2").file("d/x", "");
    insta::assert_snapshot!(world.cli(["mv", "a", "c"]), @"moved a to c  (9e3779b9, undo with `backout undo 9e3779b9`)");
    insta::assert_snapshot!(world.cli(["mv", "b", "c", "d"]), @"moved b to d/b, c to d/c  (3c6ef372, undo with `backout undo 3c6ef372`)");
    assert_eq!(
        (world.text("d/b"), world.text("d/c")),
        ("2".into(), "1".into())
    );
}

#[test]
fn several_sources_need_a_directory() {
    let world = World::new().file("a", "1").file("b", "2");
    insta::assert_snapshot!(world.cli(["mv", "a", "b", "c"]), @r"
    error: `c` is not a directory
      why: 2 sources need a directory to go to
      next: make it first with `backout mkdir c`
    [exit code 1]
    ");
}

#[test]
fn a_move_replaces_only_when_asked_for() {
    let world = World::new().file("a", "1").file("b", "2");
    insta::assert_snapshot!(world.cli(["mv", "a", "b"]), @r"
    error: `b` already exists
      next: replace it with `--replace`; what is there now is kept for the undo
    [exit code 1]
    ");
    world.did(["mv", "--replace", "a", "b"]);
    assert_eq!(world.text("b"), "1");
    world.did(["undo"]);
    assert_eq!((world.text("a"), world.text("b")), ("1".into(), "2".into()));
}

#[test]
fn files_and_trees_are_copied() {
    let world = World::new().file("a", "1").file("d/x", "2");
    insta::assert_snapshot!(world.cli(["cp", "a", "b"]), @"copied a to b  (9e3779b9, undo with `backout undo 9e3779b9`)");
    insta::assert_snapshot!(world.cli(["cp", "-r", "d", "e"]), @"copied d to e  (3c6ef372, undo with `backout undo 3c6ef372`)");
    insta::assert_snapshot!(world.cli(["cp", "d", "f"]), @r"
    error: `d` is a directory
      next: take it with all that is in it with `--recursive`
    [exit code 1]
    ");
    assert_eq!(
        (world.text("b"), world.text("e/x")),
        ("1".into(), "2".into())
    );
}

#[test]
fn directories_are_made() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["mkdir", "a"]), @"made a  (9e3779b9, undo with `backout undo 9e3779b9`)");
    insta::assert_snapshot!(world.cli(["mkdir", "-p", "-m", "0750", "x/y"]), @"made x/y  (3c6ef372, undo with `backout undo 3c6ef372`)");
    insta::assert_snapshot!(world.cli(["mkdir", "a"]), @r"
    error: `a` already exists
      next: `--parents` does not mind a directory that is there
    [exit code 1]
    ");
    assert_eq!(
        fs::metadata(world.path("x/y")).unwrap().mode() & 0o7777,
        0o750
    );
}

#[test]
fn symbolic_links_and_second_names_are_made() {
    let world = World::new().file("a", "1").file("d/x", "");
    insta::assert_snapshot!(world.cli(["ln", "-s", "../a", "d/link"]), @"linked d/link to ../a  (9e3779b9, undo with `backout undo 9e3779b9`)");
    insta::assert_snapshot!(world.cli(["ln", "a", "d"]), @"linked d/a to a  (3c6ef372, undo with `backout undo 3c6ef372`)");
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
    insta::assert_snapshot!(world.cli(["chmod", "-x", "run.sh"]), @"changed the mode of run.sh to -x  (9e3779b9, undo with `backout undo 9e3779b9`)");
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
    insta::assert_snapshot!(world.cli(["chown", "no-such-user", "a"]), @r"
    error: there is no user `no-such-user`
      why: `/etc/passwd` does not have it
      next: give the user's number
    [exit code 1]
    ");
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

#[test]
fn a_tree_with_a_mount_in_it_is_not_removed() {
    let world = World::new()
        .file("tree/sub/f", "0")
        .file("tree/m/below", "0");
    let Some(_disk) = Disk::at(world.path("tree/m"), 64) else {
        return;
    };
    world.put("tree/m/inside", "1");
    for command in [["rm", "-r", "tree"], ["rm", "-r", "tree/sub"]] {
        let ran = world.cli(command);
        if command[2] == "tree" {
            insta::assert_snapshot!(ran, @"
            error: `tree/m` is mounted in `tree`
              why: what is removed is kept, and what is mounted cannot be
              next: unmount it first, or remove what is beside it
            [exit code 1]
            ");
            assert_eq!(world.text("tree/m/inside"), "1");
            assert_eq!(world.text("tree/sub/f"), "0");
        } else {
            assert_eq!(ran.code, 0, "{ran}");
        }
    }
}
