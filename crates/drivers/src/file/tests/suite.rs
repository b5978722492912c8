//! The conformance suite over a table of requests.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::world::World;
use crate::file::{Expect, FileRequest, ModeChange, Occurrence, Source};
use backout_testkit::driver::conforms;

fn case(
    name: &str,
    make: impl Fn() -> World,
    request: fn(&Path) -> FileRequest,
    drift: Option<fn(&Path)>,
) {
    conforms(name, || {
        let mut world = make();
        world.request = Some(request);
        world.drift = drift;
        world
    });
}

fn remove(root: &Path, name: &str, recursive: bool) -> FileRequest {
    FileRequest::Remove {
        path: root.join(name),
        recursive,
    }
}

fn mode(text: &str) -> ModeChange {
    text.parse().unwrap()
}

const LARGE: usize = 100 * 1024;

fn small() -> World {
    World::new()
        .file("a.txt", "one\ntwo\n")
        .mode("a.txt", 0o640)
}

fn large() -> World {
    World::new().file("big", vec![7_u8; LARGE])
}

fn tree() -> World {
    let world = World::new()
        .file("d/one", "1")
        .file("d/sub/two", vec![2_u8; LARGE])
        .file("d/sub/three", "3")
        .dir("d/empty")
        .mode("d/sub", 0o2750);
    std::os::unix::fs::symlink("nowhere", world.path("d/link")).unwrap();
    std::fs::hard_link(world.path("d/one"), world.path("d/sub/also-one")).unwrap();
    world
}

#[test]
fn a_small_file_is_replaced() {
    let overwrite: fn(&Path) = |root| std::fs::write(root.join("a.txt"), "mine").unwrap();
    case(
        "write",
        small,
        |r| FileRequest::write(r.join("a.txt"), "new"),
        Some(overwrite),
    );
}

#[test]
fn a_file_is_made() {
    let drift: fn(&Path) = |root| std::fs::write(root.join("new"), "mine").unwrap();
    case(
        "create",
        World::new,
        |r| FileRequest::write(r.join("new"), "x"),
        Some(drift),
    );
}

#[test]
fn a_large_file_is_replaced_by_a_large_one() {
    let request = |r: &Path| FileRequest::write(r.join("big"), vec![8_u8; LARGE]);
    let drift: fn(&Path) = |root| std::fs::write(root.join("big"), "mine").unwrap();
    case("large", large, request, Some(drift));
}

#[test]
fn a_file_in_new_directories_is_made() {
    let request = |r: &Path| FileRequest::Write {
        path: r.join("x/y/z"),
        source: Source::Bytes(b"deep".to_vec()),
        expect: Expect::New,
        parents: true,
        mode: Some(0o600),
    };
    let drift: fn(&Path) = |root| std::fs::write(root.join("x/y/mine"), "").unwrap();
    case("parents", World::new, request, Some(drift));
}

#[test]
fn a_file_grows() {
    let append = |r: &Path| FileRequest::Append {
        path: r.join("a.txt"),
        source: Source::Bytes(b"three\n".to_vec()),
    };
    case("append", small, append, None);
    let append = |r: &Path| FileRequest::Append {
        path: r.join("big"),
        source: Source::Bytes(vec![9; LARGE]),
    };
    case("append to large", large, append, None);
}

#[test]
fn a_part_of_a_file_is_replaced() {
    let edit = |r: &Path| FileRequest::Edit {
        path: r.join("a.txt"),
        search: b"two".to_vec(),
        replacement: b"2".to_vec(),
        occurrence: Occurrence::Unique,
    };
    case("edit", small, edit, None);
}

#[test]
fn a_patch_changes_makes_deletes_and_renames() {
    let world = || small().file("old", "gone\n").file("name", "same\n");
    let patch = |r: &Path| {
        FileRequest::Patch {
        base: r.to_owned(),
        patch: b"--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\
            diff --git a/dir/new b/dir/new\nnew file mode 100755\n--- /dev/null\n+++ b/dir/new\n@@ -0,0 +1 @@\n+new\n\
            diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n\
            diff --git a/name b/moved\nsimilarity index 100%\nrename from name\nrename to moved\n"
            .to_vec(),
    }
    };
    let drift: fn(&Path) = |root| std::fs::write(root.join("moved"), "mine").unwrap();
    case("patch", world, patch, Some(drift));
}

#[test]
fn files_and_links_are_removed() {
    let drift: fn(&Path) = |root| std::fs::write(root.join("a.txt"), "mine").unwrap();
    case(
        "remove small",
        small,
        |r| remove(r, "a.txt", false),
        Some(drift),
    );
    case("remove large", large, |r| remove(r, "big", false), None);
    case("remove link", tree, |r| remove(r, "d/link", false), None);
    case("remove shared", tree, |r| remove(r, "d/one", false), None);
    case(
        "remove empty directory",
        tree,
        |r| remove(r, "d/empty", false),
        None,
    );
}

#[test]
fn a_tree_is_removed_whole() {
    let drift: fn(&Path) = |root| std::fs::create_dir(root.join("d")).unwrap();
    case("remove tree", tree, |r| remove(r, "d", true), Some(drift));
}

#[test]
fn a_tree_is_removed_where_there_is_no_depot() {
    let world = || {
        World::without_depot()
            .file("d/one", "1")
            .file("d/sub/two", vec![2_u8; LARGE])
            .dir("d/empty")
            .mode("d/sub", 0o2750)
    };
    case("remove each", world, |r| remove(r, "d", true), None);
}

#[test]
fn files_and_trees_are_moved() {
    let world = || small().file("b", "other");
    let to_new = |r: &Path| FileRequest::Move {
        from: r.join("a.txt"),
        to: r.join("c"),
        replace: false,
    };
    let drift: fn(&Path) = |root| std::fs::write(root.join("c"), "mine").unwrap();
    case("move", world, to_new, Some(drift));
    let over = |r: &Path| FileRequest::Move {
        from: r.join("a.txt"),
        to: r.join("b"),
        replace: true,
    };
    case("move over", world, over, None);
    let over_large = |r: &Path| FileRequest::Move {
        from: r.join("a.txt"),
        to: r.join("big"),
        replace: true,
    };
    case(
        "move over large",
        || small().file("big", vec![1; LARGE]),
        over_large,
        None,
    );
    let whole = |r: &Path| FileRequest::Move {
        from: r.join("d/sub"),
        to: r.join("e"),
        replace: false,
    };
    case("move tree", tree, whole, None);
}

#[test]
fn files_and_trees_are_copied() {
    let copy = |r: &Path| FileRequest::Copy {
        from: r.join("a.txt"),
        to: r.join("b"),
        recursive: false,
        replace: true,
    };
    case("copy", small, copy, None);
    case("copy over", || small().file("b", "other"), copy, None);
    let whole = |r: &Path| FileRequest::Copy {
        from: r.join("d"),
        to: r.join("e"),
        recursive: true,
        replace: false,
    };
    let drift: fn(&Path) = |root| std::fs::write(root.join("e/sub/three"), "mine").unwrap();
    case("copy tree", tree, whole, Some(drift));
}

#[test]
fn directories_and_links_are_made() {
    let mkdir = |r: &Path| FileRequest::Mkdir {
        path: r.join("x"),
        parents: false,
        mode: Some(0o711),
    };
    let drift: fn(&Path) = |root| std::fs::write(root.join("x/mine"), "").unwrap();
    case("mkdir", World::new, mkdir, Some(drift));
    let deep = |r: &Path| FileRequest::Mkdir {
        path: r.join("x/y/z"),
        parents: true,
        mode: None,
    };
    case("mkdir -p", World::new, deep, None);
    let link = |r: &Path| FileRequest::Symlink {
        path: r.join("a.txt"),
        to: OsStr::from_bytes(b"no\xffwhere").to_owned(),
        replace: true,
    };
    case("symlink", small, link, None);
    let hard = |r: &Path| FileRequest::HardLink {
        path: r.join("b"),
        to: r.join("a.txt"),
    };
    case("hard link", small, hard, None);
    // The redo brings the directory whole, and the second name is of a file in it.
    let into_new = |r: &Path| {
        FileRequest::Batch(vec![
            FileRequest::Mkdir {
                path: r.join("new"),
                parents: false,
                mode: None,
            },
            FileRequest::write(r.join("new/file"), "x"),
            FileRequest::HardLink {
                path: r.join("second"),
                to: r.join("new/file"),
            },
        ])
    };
    case("hard link into a new directory", World::new, into_new, None);
}

#[test]
fn permissions_and_owners_change() {
    let chmod = |r: &Path| FileRequest::Chmod {
        path: r.join("d"),
        mode: mode("u+s,go-rwx"),
        recursive: true,
    };
    let drift: fn(&Path) = |root| {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(root.join("d/sub"), mode).unwrap();
    };
    case("chmod", tree, chmod, Some(drift));
    if rustix::process::geteuid().is_root() {
        let chown = |r: &Path| FileRequest::Chown {
            path: r.join("d"),
            uid: Some(1234),
            gid: Some(4321),
            recursive: true,
        };
        case("chown", || tree().mode("d/one", 0o4755), chown, None);
    }
}

#[test]
fn files_become_directories_and_back() {
    let to_dir = |r: &Path| {
        FileRequest::Batch(vec![
            remove(r, "a.txt", false),
            FileRequest::Mkdir {
                path: r.join("a.txt"),
                parents: false,
                mode: None,
            },
            FileRequest::write(r.join("a.txt/inner"), "x"),
        ])
    };
    case("file to directory", small, to_dir, None);
    let to_file = |r: &Path| {
        FileRequest::Batch(vec![
            remove(r, "d", true),
            FileRequest::write(r.join("d"), "flat"),
        ])
    };
    case("directory to file", tree, to_file, None);
    let renewed = |r: &Path| {
        FileRequest::Batch(vec![
            remove(r, "d", true),
            FileRequest::Mkdir {
                path: r.join("d"),
                parents: false,
                mode: None,
            },
            FileRequest::write(r.join("d/one"), "not the old one"),
        ])
    };
    case("directory renewed", tree, renewed, None);
}

#[test]
fn a_batch_happens_as_one() {
    let batch = |r: &Path| {
        FileRequest::Batch(vec![
            FileRequest::write(r.join("a.txt"), "first"),
            FileRequest::Append {
                path: r.join("a.txt"),
                source: Source::Bytes(b" more".to_vec()),
            },
            FileRequest::Mkdir {
                path: r.join("new"),
                parents: false,
                mode: None,
            },
            FileRequest::write(r.join("new/file"), "inside"),
            FileRequest::Move {
                from: r.join("b"),
                to: r.join("new/b"),
                replace: false,
            },
            FileRequest::Chmod {
                path: r.join("c"),
                mode: mode("600"),
                recursive: false,
            },
            FileRequest::Symlink {
                path: r.join("l"),
                to: "a.txt".into(),
                replace: false,
            },
        ])
    };
    case(
        "batch",
        || small().file("b", "b").file("c", "c"),
        batch,
        None,
    );
}
