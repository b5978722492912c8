//! Undo and redo to and fro: whose recipe takes a target back, what came between, what failed on the way.

use std::fs;
use std::path::Path;

use backout_drivers::file::FileRequest;
use backout_engine::{EngineError, TargetState, UndoOptions, UndoWhat};
use backout_model::ports::OnConflict;
use backout_model::{OperationId, OutcomeKind, Status, TargetPath};

use crate::world::{NEWEST_UNDO, World, committed, named, on, written};

/// More than fits into the journal: such a file is kept by its inode.
const LARGE: usize = 300_000;

fn batch(world: &World, requests: Vec<FileRequest>) -> OperationId {
    written(&world.engine.write(&FileRequest::Batch(requests)).unwrap())
}

fn two_files(world: &World, content: &str) -> OperationId {
    let write = |name| FileRequest::write(world.path(name), content);
    batch(world, vec![write("a"), write("b")])
}

fn path(world: &World, name: &str) -> TargetPath {
    TargetPath::new(world.path(name)).unwrap()
}

fn undo_path(world: &World, name: &str) {
    let what = UndoWhat::Paths {
        paths: vec![path(world, name)],
        since: None,
    };
    world.engine.undo(&what, &committed()).unwrap();
}

fn partial() -> UndoOptions {
    UndoOptions {
        partial: true,
        ..committed()
    }
}

#[test]
fn what_a_redo_could_not_bring_back_is_not_in_effect() {
    let world = World::new();
    let id = two_files(&world, "1");
    world.undone(id);
    fs::write(world.path("b"), "theirs").unwrap();
    let error = world.engine.redo(&NEWEST_UNDO, &partial()).unwrap_err();
    assert!(matches!(error, EngineError::Partial(_)), "{error}");
    let operation = world.engine.store().operation(id).unwrap().unwrap();
    let in_effect: Vec<_> = operation.in_effect().map(|it| it.target.file()).collect();
    assert_eq!(in_effect, [Some(&path(&world, "a"))]);
    fs::remove_file(world.path("b")).unwrap();
    world.redo();
    assert_eq!(world.read("b").as_deref(), Some("1"));
    assert_eq!(world.engine.verify().unwrap().findings, []);
}

#[test]
fn what_the_last_redo_replaced_comes_back_also_after_an_earlier_redo() {
    let world = World::new().file("a", "0");
    let id = world.write("a", "1");
    world.undone(id);
    world.redo();
    world.undone(id);
    fs::write(world.path("a"), "theirs").unwrap();
    let forced = on(OnConflict::Force);
    world.engine.redo(&NEWEST_UNDO, &forced).unwrap();
    assert_eq!(world.read("a").as_deref(), Some("1"));
    world.undone(id);
    assert_eq!(world.read("a").as_deref(), Some("theirs"));
}

#[test]
fn an_undo_that_finds_everything_as_before_is_one_all_the_same() {
    let world = World::new().file("a", "0");
    let id = world.write("a", "1");
    fs::write(world.path("a"), "0").unwrap();
    let report = world.undone(id);
    assert_eq!(report.steps[0].outcomes[0].kind, OutcomeKind::AlreadyGone);
    assert!(report.act.is_some());
    assert_eq!(world.status(id), Status::Undone);
}

#[test]
fn a_file_is_restored_from_where_a_later_operation_keeps_it() {
    let world = World::new();
    let large = "x".repeat(LARGE);
    let first = world.write("a", &large);
    world.remove("a");
    let from = first.to_string().parse().unwrap();
    world
        .engine
        .restore(&[path(&world, "a")], &from, true)
        .unwrap();
    assert_eq!(world.read("a"), Some(large));
}

/// Removes what is at a name, or makes something there.
fn turned(world: &World, name: &str) -> OperationId {
    if fs::symlink_metadata(world.path(name)).is_ok() {
        world.remove(name)
    } else {
        world.write(name, "3")
    }
}

/// What somebody does to `a` between two writes of it.
type Between = fn(&Path);

#[test]
fn what_somebody_did_between_two_writes_is_foreseen_as_a_conflict() {
    let between: [(Between, &str); 4] = [
        (
            |a| fs::write(a, "9").unwrap(),
            "somebody else changed it before ",
        ),
        (
            |a| fs::write(a, "y".repeat(2 * LARGE)).unwrap(),
            "somebody else changed it before ",
        ),
        (
            |a| {
                fs::remove_file(a).unwrap();
                std::os::unix::fs::symlink("elsewhere", a).unwrap();
            },
            "somebody else changed it before ",
        ),
        (
            |a| fs::remove_file(a).unwrap(),
            "somebody else removed it before ",
        ),
    ];
    for first_content in ["1", &"x".repeat(LARGE)] {
        for (act, why) in between {
            let world = World::new().file("a", "0");
            let first = world.write("a", first_content);
            act(&world.path("a"));
            let second = turned(&world, "a");
            let view = world
                .engine
                .preview_undo(&named(first), &committed())
                .unwrap();
            let last = view.steps.last().unwrap();
            let TargetState::Conflict { why: told } = &last.targets[0].state else {
                panic!("{:?}", last.targets)
            };
            assert!(told.starts_with(why), "{told}");
            let error = world.undo(first, &committed()).unwrap_err();
            assert!(matches!(error, EngineError::Conflicts { .. }), "{error}");
            assert_eq!(world.status(second), Status::Committed);
        }
    }
}

#[test]
fn a_directory_that_came_back_as_one_goes_and_comes_in_parts() {
    let world = World::new();
    let write = |name| FileRequest::write(world.path(name), "1");
    let mkdir = FileRequest::Mkdir {
        path: world.path("d"),
        parents: false,
        mode: None,
    };
    let id = batch(&world, vec![mkdir, write("d/x"), write("d/y")]);
    for _ in 0..2 {
        world.undone(id);
        world.redo();
        undo_path(&world, "d/x");
        assert_eq!(
            (world.read("d/x"), world.read("d/y").as_deref()),
            (None, Some("1"))
        );
        world.redo();
        assert_eq!(world.read("d/x").as_deref(), Some("1"));
    }
    world.undone(id);
    assert!(!world.path("d").exists());
    assert_eq!(world.engine.verify().unwrap().findings, []);
}

#[test]
fn what_stood_at_the_name_of_a_move_before_goes_back_after_it() {
    let world = World::new();
    fs::create_dir(world.path("d")).unwrap();
    fs::write(world.path("d/f"), "moved").unwrap();
    fs::create_dir(world.path("e")).unwrap();
    let task = world.engine.begin(Some("t".parse().unwrap()), None);
    let task = task.unwrap().id;
    let inside = world.asking(|c| c.task = Some(task.clone()));
    let (from, to) = (world.path("d"), world.path("e"));
    for request in [
        FileRequest::write(world.path("e/f"), "1"),
        FileRequest::Remove {
            path: to.clone(),
            recursive: true,
        },
        FileRequest::Move {
            from,
            to,
            replace: false,
        },
    ] {
        inside.write(&request).unwrap();
    }
    assert_eq!(world.read("e/f").as_deref(), Some("moved"));
    let what = UndoWhat::Task(task);
    world
        .engine
        .rollback(&what, &UndoOptions::default(), "a test")
        .unwrap();
    assert_eq!(world.read("d/f").as_deref(), Some("moved"));
    assert_eq!(fs::read_dir(world.path("e")).unwrap().count(), 0);
}

#[test]
fn what_is_there_already_and_could_not_be_taken_back_again_is_left_by_a_redo() {
    let world = World::new().file("a", &"x".repeat(LARGE)).file("b", "0");
    let id = two_files(&world, "1");
    world.undone(id);
    // What the first was is in no store any more, what the second was is.
    fs::remove_file(world.path("a")).unwrap();
    for name in ["a", "b"] {
        fs::write(world.path(name), "1").unwrap();
    }
    let report = world.redo();
    let kinds: Vec<_> = report.steps[0].outcomes.iter().map(|it| &it.kind).collect();
    let is_so = matches!(
        kinds[..],
        [OutcomeKind::Left { .. }, OutcomeKind::AlreadyGone]
    );
    assert!(is_so, "{kinds:?}");
    world.undone(id);
    let now = (world.read("a"), world.read("b"));
    assert_eq!(now, (Some("1".to_owned()), Some("0".to_owned())));
}
