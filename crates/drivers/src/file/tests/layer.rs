//! A layer becomes real: the conformance suite, and what is refused.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::world::World;
use backout_files::BaseChanged;

use crate::file::{Baseline, FileError, FileRequest, LayerEntry, LayerState};
use backout_testkit::driver::conforms;

/// Real files, and beside them a layer with something of every kind.
fn world() -> World {
    let world = World::new()
        .file("changed", "old")
        .file("retouched", "same")
        .file("removed", "old")
        .file("removed-tree/deep/file", "old")
        .file("moved/file", "old")
        .file("was-file", "old")
        .file("was-tree/file", "old")
        .dir("kept-directory")
        .file("layer/changed", "new")
        .mode("layer/changed", 0o600)
        .file("layer/retouched", "same")
        .mode("layer/retouched", 0o640)
        .file("layer/large", vec![7; 100 * 1024])
        .file("layer/new/file", "new")
        .dir("layer/was-file")
        .file("layer/was-file/inner", "new")
        .file("layer/was-tree", "new")
        .dir("layer/kept-directory")
        .mode("layer/kept-directory", 0o711);
    symlink("nowhere", world.path("layer/link")).unwrap();
    world
}

fn entry(root: &Path, name: &str, becomes: LayerState) -> LayerEntry {
    let path = root.join(name);
    let is_directory = matches!(&becomes, LayerState::Like(source) if source.is_dir());
    LayerEntry {
        baseline: Baseline::of(&path, !is_directory).unwrap(),
        path,
        becomes,
    }
}

fn request(root: &Path) -> FileRequest {
    let like = |name: &str| {
        let source = root.join("layer").join(name);
        entry(root, name, LayerState::Like(source))
    };
    let from = root.join("moved");
    let moved = LayerState::Moved {
        baseline: Baseline::of(&from, true).unwrap(),
        from,
    };
    FileRequest::Layer {
        summary: "a layer".to_owned(),
        entries: vec![
            like("changed"),
            like("kept-directory"),
            like("large"),
            like("link"),
            entry(root, "moved-away", moved),
            like("new"),
            like("new/file"),
            entry(root, "removed", LayerState::Nothing),
            entry(root, "removed-tree", LayerState::Nothing),
            like("retouched"),
            entry(root, "second", LayerState::Linked(root.join("new/file"))),
            like("was-file"),
            like("was-file/inner"),
            like("was-tree"),
        ],
    }
}

#[test]
fn a_layer_happens_as_one_and_is_undone_as_one() {
    let drift: fn(&Path) = |root| std::fs::write(root.join("changed"), "mine").unwrap();
    conforms("layer", || {
        let mut world = world();
        world.request = Some(request);
        world.drift = Some(drift);
        world
    });
}

#[test]
fn what_changed_since_is_named_and_nothing_happens() {
    let world = world();
    let request = request(&world.root);
    std::fs::write(world.path("changed"), "mine").unwrap();
    std::fs::write(world.path("removed-tree/deep/new"), "mine").unwrap();
    std::fs::write(world.path("moved/new"), "mine").unwrap();
    let before = world.see();
    let Err(FileError::BaseChanged(BaseChanged { paths })) = world.apply(&request) else {
        panic!("it was applied");
    };
    let wanted = ["changed", "moved", "removed-tree"].map(|name| world.path(name));
    assert_eq!(paths, wanted.map(|path| path.display().to_string()));
    assert_eq!(world.see(), before);
}

#[test]
fn notes_that_overlays_keep_stay_behind() {
    let world = World::new().file("layer/f", "new");
    let set = |name: &str| {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::lsetxattr(world.path("layer/f"), name, b"y", flags)
    };
    if set("user.overlay.origin").is_err() || set("user.kept").is_err() {
        return;
    }
    let like = LayerState::Like(world.path("layer/f"));
    let entries = vec![entry(&world.root, "f", like)];
    let request = FileRequest::Layer {
        summary: "a layer".to_owned(),
        entries,
    };
    world.apply(&request).unwrap();
    let mut names = vec![0; 1000];
    let length = rustix::fs::llistxattr(world.path("f"), names.as_mut_slice()).unwrap();
    names.truncate(length);
    assert_eq!(names, b"user.kept\0");
}

#[test]
fn a_directory_that_became_a_link_does_not_lead_the_layer_elsewhere() {
    let world = World::new()
        .dir("d")
        .dir("other")
        .file("layer/d/new", "new");
    let source = world.path("layer/d/new");
    let request = FileRequest::Layer {
        summary: "a layer".to_owned(),
        entries: vec![entry(&world.root, "d/new", LayerState::Like(source))],
    };
    std::fs::remove_dir(world.path("d")).unwrap();
    symlink("other", world.path("d")).unwrap();
    let refused = world.apply(&request).unwrap_err();
    assert!(
        matches!(refused, FileError::ThroughSymlink { .. }),
        "{refused}"
    );
    assert!(!world.path("other/new").exists());
}
