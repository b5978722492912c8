//! Undo and redo to and fro: whose recipe takes a target back, what came between, what failed on the way.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use backout_drivers::file::FileRequest;
use backout_engine::{EngineError, Filter, RedoWhat, TargetState, UndoOptions, UndoWhat};
use backout_model::ports::OnConflict;
use backout_model::{OperationId, OutcomeKind, Status, TargetPath};

use crate::world::{NEWEST, NEWEST_UNDO, World, committed, named, on, written};

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
        paths: vec![path(world, name).into()],
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

fn chmod(world: &World, name: &str, mode: &str) -> OperationId {
    let request = FileRequest::Chmod {
        path: world.path(name),
        mode: mode.parse().unwrap(),
        recursive: false,
    };
    written(&world.engine.write(&request).unwrap())
}

/// Gives what a plan says of the conflicts that it sees; the same act then must leave no trace.
fn foreseen(world: &World, undo: Option<OperationId>) -> Vec<String> {
    let engine = &world.engine;
    let count = || engine.store().operations(&Filter::default()).unwrap().len();
    let before = count();
    let (plan, act) = match undo {
        Some(id) => (
            engine.preview_undo(&named(id), &committed()),
            engine.undo(&named(id), &committed()),
        ),
        None => (
            engine.preview_redo(&NEWEST_UNDO, &committed()),
            engine.redo(&NEWEST_UNDO, &committed()),
        ),
    };
    assert!(matches!(act, Err(EngineError::Conflicts { .. })), "{act:?}");
    assert_eq!(count(), before, "something was done, and put back");
    let steps = plan.unwrap().steps.into_iter();
    let targets = steps.flat_map(|step| step.targets);
    let why = targets.filter_map(|it| match it.state {
        TargetState::Conflict { why } => Some(why),
        TargetState::ComesBack
        | TargetState::AlreadyBefore
        | TargetState::Left { .. }
        | TargetState::CannotComeBack { .. }
        | TargetState::AfterNewerStep
        | TargetState::Merges
        | TargetState::Overwritten { .. }
        | TargetState::Incomplete { .. } => None,
    });
    why.collect()
}

#[test]
fn what_others_wrote_below_a_change_of_the_mode_is_seen_by_the_plan() {
    let world = World::new();
    let write = world.write("a", "mine");
    fs::write(world.path("a"), "them").unwrap();
    chmod(&world, "a", "600");
    assert_eq!(
        foreseen(&world, Some(write)),
        ["somebody else changed it since"]
    );
    // So it is where a newer step keeps what they wrote.
    let removed = world.remove("a");
    world.write("a", "again");
    let said = format!("somebody else changed it before {}", removed.short());
    assert_eq!(foreseen(&world, Some(write)), [said]);
}

#[test]
fn a_mode_that_somebody_else_changed_is_seen_by_the_plan_of_a_redo_that_must_take_later_work_back()
{
    let world = World::new().file("a", "0");
    let id = chmod(&world, "a", "600");
    world.undone(id);
    fs::set_permissions(world.path("a"), fs::Permissions::from_mode(0o711)).unwrap();
    world.write("a", "1");
    assert_eq!(foreseen(&world, None), ["mode is 0711, was 0644"]);
}

#[test]
fn a_redo_that_is_put_back_leaves_everything_undone() {
    let world = World::new();
    fs::create_dir_all(world.path("d/e")).unwrap();
    let write = world.write("d/e/b", "1");
    let remove = world.remove("d/e");
    world.undone(write);
    // What is in a tree shows when its turn comes.
    fs::write(world.path("d/e/x"), "theirs").unwrap();
    let error = world.engine.redo(&NEWEST_UNDO, &committed()).unwrap_err();
    assert!(matches!(error, EngineError::Conflicts { .. }), "{error}");
    assert_eq!(world.read("d/e/b"), None);
    assert_eq!(world.status(write), Status::Undone);
    assert_eq!(world.status(remove), Status::Undone);
    assert_eq!(world.engine.verify().unwrap().findings, []);
    // It is still one act.
    fs::remove_file(world.path("d/e/x")).unwrap();
    world.redo();
    assert!(!world.path("d/e").exists());
    assert_eq!(world.status(write), Status::Committed);
    world.undone(write);
    assert_eq!(fs::read_dir(world.path("d/e")).unwrap().count(), 0);
}

#[test]
fn an_undo_that_was_put_back_does_not_change_what_is_the_newest() {
    let world = World::new();
    fs::create_dir_all(world.path("d/e")).unwrap();
    let write = world.write("d/e/b", "1");
    let remove = world.remove("d/e");
    world.undone(remove);
    world.undone(write);
    world.write("d/e/y", "2");
    world.write("a", "3");
    fs::write(world.path("d/e/x"), "theirs").unwrap();
    let what = RedoWhat::Operations(vec![remove.to_string().parse().unwrap()]);
    let error = world.engine.redo(&what, &committed()).unwrap_err();
    assert!(matches!(error, EngineError::Conflicts { .. }), "{error}");
    assert_eq!(world.read("d/e/y").as_deref(), Some("2"));
    world.engine.undo(&NEWEST, &committed()).unwrap();
    assert_eq!(world.read("a"), None);
}

#[test]
fn a_redo_of_a_part_does_not_put_the_rest_above_later_work() {
    for is_forced in [false, true] {
        let world = World::new();
        world
            .engine
            .mark(Some("c".parse().unwrap()), serde_json::Value::Null)
            .unwrap();
        let both = two_files(&world, "1");
        undo_path(&world, "a");
        let later = world.write("b", "2");
        world.redo();
        assert_eq!(world.read("a").as_deref(), Some("1"));
        let ids = [both, later].map(|id| id.to_string().parse().unwrap());
        let options = UndoOptions {
            on_conflict: if is_forced {
                OnConflict::Force
            } else {
                OnConflict::Refuse
            },
            ..committed()
        };
        let what = UndoWhat::Operations(ids.to_vec());
        let report = world.engine.undo(&what, &options).unwrap();
        let outcomes = report.steps.iter().flat_map(|step| &step.outcomes);
        let kinds: Vec<_> = outcomes.map(|outcome| &outcome.kind).collect();
        assert_eq!(kinds, [&OutcomeKind::Restored; 3]);
        assert_eq!((world.read("a"), world.read("b")), (None, None));
        // All comes again, and goes by its checkpoint.
        world.redo();
        assert_eq!(world.read("b").as_deref(), Some("2"));
        let what = UndoWhat::ToCheckpoint("c".parse().unwrap());
        world.engine.rollback(&what, &options, "").unwrap();
        assert_eq!((world.read("a"), world.read("b")), (None, None));
    }
}
