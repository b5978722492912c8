//! Everything about a file comes back, not only its bytes.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::Instant;

use backout_model::ports::OnConflict;
use backout_model::{OutcomeKind, TargetOutcome};

use super::world::World;
use crate::file::{FileRequest, Source};

const GIB: u64 = 1 << 30;

fn remove(world: &World, name: &str) -> FileRequest {
    FileRequest::Remove {
        path: world.path(name),
        recursive: true,
    }
}

/// Applies, undoes, and compares everything.
fn there_and_back(world: &World, request: &FileRequest) {
    let before = world.see();
    let effect = world.apply(request).unwrap();
    assert_ne!(world.see(), before);
    let (_, outcomes) = world.undo(&effect, OnConflict::Refuse);
    let is_taken_back = |outcome: &TargetOutcome| outcome.kind.is_taken_back();
    assert!(outcomes.iter().all(is_taken_back), "{outcomes:?}");
    assert_eq!(world.see(), before);
}

fn set_xattr(world: &World, name: &str, key: &str, value: &[u8]) {
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::lsetxattr(world.path(name), key, value, flags).unwrap();
}

/// `user::rw-, user:1234:rwx, group::r--, mask::rwx, other::r--`
fn acl() -> Vec<u8> {
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in [
        (1, 6, u32::MAX),
        (2, 7, 1234),
        (4, 4, u32::MAX),
        (16, 7, u32::MAX),
        (32, 4, u32::MAX),
    ] {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(permissions));
        list.extend(u32::to_le_bytes(id));
    }
    list
}

#[test]
fn attributes_and_acls_stay_with_a_written_file_and_come_back() {
    let world = World::on_disk().file("f", "old").file("gone", "x");
    for name in ["f", "gone"] {
        set_xattr(&world, name, "user.plain", b"text");
        set_xattr(&world, name, "user.binary", b"\0\xff");
        set_xattr(&world, name, "system.posix_acl_access", &acl());
    }
    let before = world.see();
    let effect = world
        .apply(&FileRequest::write(world.path("f"), "new"))
        .unwrap();
    let after = world.see();
    let name = std::path::Path::new("f");
    assert_eq!(
        format!("{:?}", after[name]).matches("user.").count(),
        2,
        "{:?}",
        after[name]
    );
    world.undo(&effect, OnConflict::Refuse);
    assert_eq!(world.see(), before);
    there_and_back(&world, &remove(&world, "gone"));
}

#[test]
fn a_default_acl_and_a_setgid_directory_pass_on_to_what_is_made() {
    let world = World::on_disk().dir("d");
    set_xattr(&world, "d", "system.posix_acl_default", &acl());
    let world = world.mode("d", 0o2775);
    let made = FileRequest::Batch(vec![
        FileRequest::write(world.path("d/file"), "x"),
        FileRequest::Mkdir {
            path: world.path("d/sub"),
            parents: false,
            mode: None,
        },
        FileRequest::write(world.path("d/sub/inner"), "x"),
    ]);
    let before = world.see();
    let effect = world.apply(&made).unwrap();
    // The system's own way to make the same.
    std::fs::write(world.path("d/plain"), "x").unwrap();
    std::fs::create_dir(world.path("d/plain-sub")).unwrap();
    std::fs::write(world.path("d/plain-sub/inner"), "x").unwrap();
    let after = world.see();
    let looks = |name: &str| {
        let mut entry = after[std::path::Path::new(name)].clone();
        entry.mtime = (0, 0);
        entry
    };
    assert_eq!(looks("d/file"), looks("d/plain"));
    assert_eq!(looks("d/sub"), looks("d/plain-sub"));
    assert_eq!(looks("d/sub/inner"), looks("d/plain-sub/inner"));
    std::fs::remove_file(world.path("d/plain")).unwrap();
    std::fs::remove_dir_all(world.path("d/plain-sub")).unwrap();
    world.undo(&effect, OnConflict::Refuse);
    assert_eq!(world.see().len(), before.len());
}

#[test]
fn odd_modes_come_back() {
    let world = World::on_disk()
        .file("suid", "x")
        .file("none", "y")
        .dir("sticky");
    let world = world
        .mode("suid", 0o6755)
        .mode("none", 0)
        .mode("sticky", 0o1777);
    there_and_back(&world, &FileRequest::write(world.path("suid"), "new"));
    for name in ["suid", "none", "sticky"] {
        there_and_back(&world, &remove(&world, name));
    }
}

#[test]
fn a_huge_sparse_file_is_replaced_and_brought_back_without_copying_a_byte() {
    let world = World::on_disk().file("huge", "head");
    let file = std::fs::File::options()
        .write(true)
        .open(world.path("huge"))
        .unwrap();
    file.set_len(GIB).unwrap();
    let before = world.path("huge").metadata().unwrap();
    let began = Instant::now();
    let prepared = world
        .prepare(&FileRequest::write(world.path("huge"), "small"))
        .unwrap();
    let prepared_in = began.elapsed();
    assert!(
        prepared
            .contents
            .iter()
            .all(|content| content.bytes.len() < 100)
    );
    drop(prepared);
    let effect = world
        .apply(&FileRequest::write(world.path("huge"), "small"))
        .unwrap();
    let kept = world.kept();
    assert_eq!(kept.len(), 1);
    let inode = kept[0].metadata().unwrap();
    assert_eq!(
        (inode.ino(), inode.blocks()),
        (before.ino(), before.blocks())
    );
    assert!(world.contents.size().1 < 100);
    let began = Instant::now();
    world.undo(&effect, OnConflict::Refuse);
    eprintln!(
        "1 GiB: prepared in {prepared_in:?}, undone in {:?}",
        began.elapsed()
    );
    let back = world.path("huge").metadata().unwrap();
    assert_eq!(
        (back.ino(), back.mtime_nsec()),
        (before.ino(), before.mtime_nsec())
    );
    assert!(world.kept().is_empty());
}

#[test]
fn a_copy_keeps_holes() {
    let world = World::on_disk().file("sparse", "head");
    let file = std::fs::File::options()
        .write(true)
        .open(world.path("sparse"))
        .unwrap();
    file.set_len(64 << 20).unwrap();
    let copy = FileRequest::Copy {
        from: world.path("sparse"),
        to: world.path("copy"),
        recursive: false,
        replace: false,
    };
    world.apply(&copy).unwrap();
    let copy = world.path("copy").metadata().unwrap();
    assert_eq!(copy.len(), 64 << 20);
    assert!(copy.blocks() * 512 < 1 << 20, "{} blocks", copy.blocks());
}

#[test]
fn pipes_and_sockets_come_back_as_the_same_inode() {
    let world = World::on_disk();
    let mode = rustix::fs::Mode::from_raw_mode(0o640);
    let at = rustix::fs::CWD;
    rustix::fs::mkfifoat(at, world.path("pipe"), mode).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(world.path("socket")).unwrap();
    for name in ["pipe", "socket"] {
        there_and_back(&world, &remove(&world, name));
        let request = FileRequest::Symlink {
            path: world.path(name),
            to: "elsewhere".into(),
            replace: true,
        };
        there_and_back(&world, &request);
    }
    std::os::unix::net::UnixStream::connect(world.path("socket")).unwrap();
    drop(listener);
}

#[test]
fn names_that_are_not_utf8_come_back() {
    let world = World::on_disk();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9\n\xff");
    std::fs::write(world.root.join(name), "x").unwrap();
    there_and_back(&world, &FileRequest::write(world.root.join(name), "y"));
    std::os::unix::fs::symlink(name, world.path("link")).unwrap();
    there_and_back(&world, &remove(&world, "link"));
    let effect = world
        .apply(&FileRequest::write(world.root.join(name), "y"))
        .unwrap();
    let json = serde_json::to_string(&effect.recipe).unwrap();
    let recipe = serde_json::from_str(&json).unwrap();
    let effect = backout_model::Effect { recipe, ..effect };
    world.undo(&effect, OnConflict::Refuse);
    assert_eq!(std::fs::read(world.root.join(name)).unwrap(), b"x");
}

#[test]
fn a_hard_link_group_comes_back_as_one() {
    let world = World::on_disk().file("a", "shared");
    std::fs::hard_link(world.path("a"), world.path("b")).unwrap();
    there_and_back(&world, &FileRequest::write(world.path("a"), "mine alone"));
    let inode = |name: &str| world.path(name).metadata().unwrap().ino();
    assert_eq!(inode("a"), inode("b"));
}

#[test]
fn a_hard_link_changed_by_its_other_name_comes_back_on_its_own() {
    let world = World::on_disk().file("a", "shared");
    std::fs::hard_link(world.path("a"), world.path("b")).unwrap();
    let effect = world
        .apply(&FileRequest::write(world.path("a"), "mine alone"))
        .unwrap();
    std::fs::write(world.path("b"), "changed in place").unwrap();
    let undo = world.plan_undo(&effect, OnConflict::Refuse);
    assert!(
        undo.prepared
            .notes
            .iter()
            .any(|note| note.contains("of its own"))
    );
    drop(undo);
    let (_, outcomes) = world.undo(&effect, OnConflict::Refuse);
    assert_eq!(outcomes[0].kind, OutcomeKind::Restored);
    assert_eq!(world.read("a"), b"shared");
    assert_eq!(world.read("b"), b"changed in place");
}

#[test]
fn a_write_follows_a_link_and_leaves_it_alone() {
    let world = World::on_disk().file("real", "old");
    std::os::unix::fs::symlink("real", world.path("link")).unwrap();
    std::os::unix::fs::symlink("made", world.path("dangling")).unwrap();
    there_and_back(&world, &FileRequest::write(world.path("link"), "new"));
    let effect = world
        .apply(&FileRequest::write(world.path("dangling"), "new"))
        .unwrap();
    assert_eq!(world.read("made"), b"new");
    assert!(
        world
            .path("dangling")
            .symlink_metadata()
            .unwrap()
            .is_symlink()
    );
    world.undo(&effect, OnConflict::Refuse);
    assert!(!world.path("made").exists());
}

#[test]
fn a_file_moves_between_file_systems_and_back() {
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let world = World::on_disk()
        .file("d/small", "x")
        .file("d/large", vec![1; 200_000]);
    let request = FileRequest::Move {
        from: world.path("d"),
        to: other.path().canonicalize().unwrap().join("d"),
        replace: false,
    };
    there_and_back(&world, &request);
    assert!(std::fs::read_dir(other.path()).unwrap().next().is_none());
}

#[test]
fn a_large_source_is_streamed() {
    let world = World::on_disk().file("source", vec![5; 300_000]);
    let opened = std::fs::File::open(world.path("source")).unwrap();
    for source in [Source::Path(world.path("source")), Source::Opened(opened)] {
        let request = FileRequest::Write {
            path: world.path("copy"),
            source,
            expect: crate::file::Expect::New,
            parents: false,
            mode: Some(0o604),
        };
        let effect = world.apply(&request).unwrap();
        assert_eq!(world.read("copy"), vec![5; 300_000]);
        assert_eq!(
            world.path("copy").metadata().unwrap().mode() & 0o7777,
            0o604
        );
        world.undo(&effect, OnConflict::Refuse);
        assert!(!world.path("copy").exists());
    }
}
