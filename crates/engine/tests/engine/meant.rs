//! Which operations are meant by what somebody asks for: the newest, a name, a path, a part.

use std::fs;

use backout_drivers::file::FileRequest;
use backout_engine::{Engine, EngineError, Glob, RedoWhat, Selection, UndoOptions, UndoWhat};
use backout_model::ports::OnConflict;
use backout_model::{OperationId, PlanError, Status, TargetPath};

use crate::world::{NEWEST, NEWEST_UNDO, World, committed, named, on, written};

fn write(engine: &Engine, world: &World, name: &str, content: &str) -> OperationId {
    let request = FileRequest::write(world.path(name), content);
    written(&engine.write(&request).unwrap())
}

fn agent(world: &World, name: &str) -> Engine {
    world.asking(|c| c.agent = Some(name.parse().unwrap()))
}

fn path(world: &World, name: &str) -> TargetPath {
    TargetPath::new(world.path(name)).unwrap()
}

fn redo(id: OperationId) -> RedoWhat {
    RedoWhat::Operations(vec![id.to_string().parse().unwrap()])
}

fn only(world: &World, name: &str) -> UndoOptions {
    UndoOptions {
        selection: Selection {
            only: vec![Glob::new(name, world.directory.path())],
            exclude: Vec::new(),
        },
        ..UndoOptions::default()
    }
}

fn two_files(world: &World) -> OperationId {
    let both = ["a", "b"].map(|name| FileRequest::write(world.path(name), "1"));
    written(
        &world
            .engine
            .write(&FileRequest::Batch(both.into()))
            .unwrap(),
    )
}

#[test]
fn the_newest_is_that_of_the_task_that_asks() {
    let world = World::new();
    let task = world.engine.begin(Some("t".parse().unwrap()), None);
    let task = task.unwrap().id;
    let inside = world.asking(|c| c.task = Some(task));
    let mine = write(&inside, &world, "mine", "1");
    let other = world.write("other", "1");
    inside.undo(&NEWEST, &UndoOptions::default()).unwrap();
    assert_eq!(
        (world.status(mine), world.status(other)),
        (Status::Undone, Status::Committed)
    );
    assert_eq!(
        (world.read("mine"), world.read("other").as_deref()),
        (None, Some("1"))
    );
}

#[test]
fn the_newest_in_effect_is_found_behind_many_that_are_not() {
    let world = World::new();
    let kept = world.write("kept", "1");
    // With their undos that is as much as the first page, and more than the second.
    for _ in 0..16 {
        let id = world.write("a", "1");
        world.undone(id);
    }
    let report = world.engine.undo(&NEWEST, &UndoOptions::default()).unwrap();
    assert_eq!(
        report.steps.iter().map(|step| step.id).collect::<Vec<_>>(),
        [kept]
    );
    assert_eq!(world.read("kept"), None);
}

#[test]
fn the_newest_undo_is_that_of_the_agent_and_the_directory_that_ask() {
    let world = World::new();
    fs::create_dir(world.path("d")).unwrap();
    let (one, two) = (agent(&world, "one"), agent(&world, "two"));
    let inner = write(&one, &world, "d/mine", "1");
    let outer = write(&one, &world, "mine", "1");
    let theirs = write(&two, &world, "theirs", "1");
    for (engine, id) in [(&one, inner), (&one, outer), (&two, theirs)] {
        engine.undo(&named(id), &UndoOptions::default()).unwrap();
    }
    let below = RedoWhat::Newest {
        below: Some(path(&world, "d")),
    };
    one.redo(&below, &UndoOptions::default()).unwrap();
    assert_eq!(
        [inner, outer, theirs].map(|id| world.status(id)),
        [Status::Committed, Status::Undone, Status::Undone]
    );
    one.redo(&NEWEST_UNDO, &UndoOptions::default()).unwrap();
    assert_eq!(
        [outer, theirs].map(|id| world.status(id)),
        [Status::Committed, Status::Undone]
    );
    assert_eq!(
        (world.read("mine").as_deref(), world.read("theirs")),
        (Some("1"), None)
    );
}

#[test]
fn an_undo_of_two_is_redone_by_its_first_name_and_one_of_them_by_its_own() {
    let world = World::new();
    let (a, b) = (world.write("a", "1"), world.write("b", "1"));
    let both = UndoWhat::Operations([a, b].map(|id| id.to_string().parse().unwrap()).into());
    let report = world.engine.undo(&both, &UndoOptions::default()).unwrap();
    let [first, second] = [0, 1].map(|step: usize| report.steps[step].by.unwrap());
    assert_eq!(report.act, Some(first));
    let again = world
        .engine
        .redo(&redo(second), &UndoOptions::default())
        .unwrap();
    assert_eq!(
        again.steps.iter().map(|step| step.id).collect::<Vec<_>>(),
        [report.steps[1].id]
    );
    world.undone(report.steps[1].id);
    let other = report.steps[0].id;
    assert_eq!(world.status(other), Status::Undone);
    world
        .engine
        .redo(&redo(first), &UndoOptions::default())
        .unwrap();
    assert_eq!(world.status(other), Status::Committed);
}

#[test]
fn an_undo_that_brought_something_back_is_redone_by_its_name_and_a_redo_is_not() {
    let world = World::new();
    let id = world.write("a", "1");
    let undo = world.undone(id).act.unwrap();
    // To undo the undo brings the write back, and that is taken back by a redo.
    let back = world.undone(undo).act.unwrap();
    assert_eq!(world.read("a").as_deref(), Some("1"));
    world
        .engine
        .redo(&redo(back), &UndoOptions::default())
        .unwrap();
    assert_eq!((world.read("a"), world.status(id)), (None, Status::Undone));
    let again = world.engine.redo(&redo(id), &UndoOptions::default());
    let again = again.unwrap().act.unwrap();
    let error = world
        .engine
        .redo(&redo(again), &UndoOptions::default())
        .unwrap_err();
    assert!(
        matches!(error, EngineError::NothingToRedo { .. }),
        "{error}"
    );
    assert_eq!(world.read("a").as_deref(), Some("1"));
}

#[test]
fn a_redo_by_its_name_means_what_it_brought_back_and_nothing_else() {
    let world = World::new();
    let id = two_files(&world);
    world.undone(id);
    let first = world.engine.redo(&NEWEST_UNDO, &only(&world, "a")).unwrap();
    world.engine.redo(&NEWEST_UNDO, &only(&world, "b")).unwrap();
    assert_eq!(world.status(id), Status::Committed);
    world.undone(first.act.unwrap());
    assert_eq!(
        (world.read("a"), world.read("b").as_deref()),
        (None, Some("1"))
    );
    let operation = world.engine.store().operation(id).unwrap().unwrap();
    assert!(operation.is_partly_undone());
}

#[test]
fn a_path_goes_back_to_a_moment_and_what_is_not_in_effect_there_does_not_count() {
    let world = World::new().file("a", "0");
    let first = world.write("a", "1");
    let second = world.write("a", "2");
    world.undone(second);
    let store = world.engine.store();
    let made = store.operation(first).unwrap().unwrap();
    let at = |since| UndoWhat::Paths {
        paths: vec![path(&world, "a").into()],
        since: Some(since),
    };
    let moment = store.moment_of(made.place).unwrap();
    let error = world.engine.undo(&at(moment), &committed()).unwrap_err();
    assert!(
        matches!(error, EngineError::NothingOnPath { .. }),
        "{error}"
    );
    let before = backout_model::Timestamp(moment.0 - 1);
    let report = world.engine.undo(&at(before), &committed()).unwrap();
    assert_eq!(
        report.steps.iter().map(|step| step.id).collect::<Vec<_>>(),
        [first]
    );
    assert_eq!(world.read("a").as_deref(), Some("0"));
}

#[test]
fn a_path_of_which_the_operation_was_taken_back_is_not_meant_by_the_rest_of_it() {
    let world = World::new();
    two_files(&world);
    let since = Some(backout_model::Timestamp(0));
    for moment in [None, since] {
        let what = UndoWhat::Paths {
            paths: vec![path(&world, "a").into()],
            since: moment,
        };
        if moment.is_none() {
            world.engine.undo(&what, &committed()).unwrap();
        }
        let error = world.engine.undo(&what, &committed()).unwrap_err();
        assert!(
            matches!(error, EngineError::NothingOnPath { inside: None, .. }),
            "{error}"
        );
    }
    assert_eq!(
        (world.read("a"), world.read("b").as_deref()),
        (None, Some("1"))
    );
}

#[test]
fn a_path_in_a_tree_that_went_is_told_with_the_operation_that_took_it() {
    let world = World::new();
    world.mkdir("made");
    fs::create_dir_all(world.path("d/e")).unwrap();
    for name in ["made/x", "d/e/f"] {
        fs::write(world.path(name), "theirs").unwrap();
    }
    let inner = world.remove("d/e");
    world.remove("d");
    let inside = |name: &str| {
        let what = UndoWhat::Paths {
            paths: vec![path(&world, name).into()],
            since: None,
        };
        match world.engine.undo(&what, &committed()) {
            Err(EngineError::NothingOnPath { inside, .. }) => inside,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(inside("d/e/f"), Some(inner));
    assert_eq!(inside("made/x"), None);
}

#[test]
fn what_was_declared_to_depend_on_it_goes_also_where_the_change_merges_out() {
    let world = World::new().file("a", "1\n2\n3\n");
    let first = world.write("a", "one\n2\n3\n");
    let engine = world.asking(|c| c.depends_on = vec![first.to_string().parse().unwrap()]);
    let app = write(&engine, &world, "app", "one");
    fs::write(world.path("a"), "one\n2\nthree\n").unwrap();
    let report = world.undo(first, &on(OnConflict::Merge)).unwrap();
    assert_eq!(
        report.steps.iter().map(|step| step.id).collect::<Vec<_>>(),
        [app, first]
    );
    assert_eq!(
        (world.read("a").as_deref(), world.read("app")),
        (Some("1\n2\nthree\n"), None)
    );
}

#[test]
fn who_asks_from_inside_of_a_command_takes_back_only_his_own() {
    let world = World::new();
    let task = world.engine.begin(Some("t".parse().unwrap()), None);
    let task = task.unwrap().id;
    let inside = |agent: &str, has_task: bool| {
        world.asking(|c| {
            c.agent = Some(agent.parse().unwrap());
            c.task = has_task.then(|| task.clone());
            c.is_inside = true;
        })
    };
    let mine = write(&inside("one", true), &world, "a", "1");
    for other in [inside("two", true), inside("one", false)] {
        let error = other
            .undo(&named(mine), &UndoOptions::default())
            .unwrap_err();
        assert!(matches!(error, EngineError::NotOwn { .. }), "{error}");
        assert_eq!(world.read("a").as_deref(), Some("1"));
    }
    inside("one", true)
        .undo(&named(mine), &UndoOptions::default())
        .unwrap();
    assert_eq!(world.read("a"), None);
    // What was taken back is somebody's as well.
    let error = inside("two", true)
        .redo(&redo(mine), &UndoOptions::default())
        .unwrap_err();
    assert!(matches!(error, EngineError::NotOwn { .. }), "{error}");
}

#[test]
fn a_plan_that_needs_anothers_work_to_go_needs_the_word_for_it() {
    let world = World::new();
    let (one, two) = (agent(&world, "one"), agent(&world, "two"));
    let base = write(&one, &world, "a", "1");
    write(&two, &world, "a", "2");
    let error = one.undo(&named(base), &UndoOptions::default()).unwrap_err();
    assert!(matches!(error, EngineError::NeedsWord(_)), "{error}");
    let view = one.preview_undo(&named(base), &UndoOptions::default());
    assert!(!view.unwrap().is_executable);
    let others = UndoOptions {
        others: true,
        ..UndoOptions::default()
    };
    assert_eq!(one.undo(&named(base), &others).unwrap().steps.len(), 2);
    assert_eq!(world.read("a"), None);
    let error = one.undo(&NEWEST, &UndoOptions::default()).unwrap_err();
    assert!(
        matches!(error, EngineError::Plan(PlanError::Nothing)),
        "{error}"
    );
}
