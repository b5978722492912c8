//! Undo, redo, dependencies, conflicts.

use std::fs;

use backout_drivers::file::FileRequest;
use backout_engine::{EngineError, Report, TargetState, UndoOptions, UndoWhat};
use backout_model::ports::OnConflict;
use backout_model::{OutcomeKind, PlanError, Status};

use crate::world::{World, committed, named, on, written};

#[test]
fn a_write_is_undone_redone_and_undone_again() {
    let world = World::new().file("a", "1");
    let id = world.write("a", "2");
    assert_eq!(world.status(id), Status::Committed);
    for _ in 0..3 {
        world.undone(id);
        assert_eq!(
            (world.read("a").as_deref(), world.status(id)),
            (Some("1"), Status::Undone)
        );
        world.redo();
        assert_eq!(
            (world.read("a").as_deref(), world.status(id)),
            (Some("2"), Status::Committed)
        );
    }
    assert_eq!(world.engine.verify().unwrap().findings, []);
}

#[test]
fn a_tree_comes_and_goes_as_often_as_one_likes() {
    let world = World::new();
    fs::create_dir_all(world.path("d/e")).unwrap();
    fs::write(world.path("d/e/f"), "deep").unwrap();
    let id = world.remove("d");
    for _ in 0..3 {
        assert_eq!(world.read("d/e/f"), None);
        world.undone(id);
        assert_eq!(world.read("d/e/f").as_deref(), Some("deep"));
        world.redo();
    }
    assert_eq!(world.engine.verify().unwrap().findings, []);
}

#[test]
fn independent_later_work_stays() {
    let world = World::new().file("a", "1");
    let bad = world.write("a", "2");
    let good = world.write("b", "kept");
    let report = world.undone(bad);
    assert_eq!(report.steps.len(), 1);
    assert_eq!(report.left_alone.len(), 1);
    assert_eq!(
        (world.read("a").as_deref(), world.read("b").as_deref()),
        (Some("1"), Some("kept"))
    );
    assert_eq!(world.status(good), Status::Committed);
}

#[test]
fn what_was_built_on_it_goes_too_newest_first() {
    let world = World::new();
    let directory = world.mkdir("d");
    let first = world.write("d/f", "1");
    let second = world.write("d/f", "2");
    let report = world.undo(directory, &UndoOptions::default()).unwrap();
    assert_eq!(
        report.steps.iter().map(|s| s.id).collect::<Vec<_>>(),
        [second, first, directory]
    );
    assert!(!world.path("d").exists());
    let report = world.redo();
    assert_eq!(report.steps.len(), 3, "one redo brings the whole undo back");
    assert_eq!(world.read("d/f").as_deref(), Some("2"));
}

#[test]
fn an_undo_that_contains_a_move_is_redone() {
    // Whether `d/a` stands as expected hangs on `a`, which a newer step of the same plan brings back first.
    let world = World::new();
    let first = world.write("a", "1");
    world.mkdir("d");
    let request = FileRequest::Move {
        from: world.path("a"),
        to: world.path("d/a"),
        replace: false,
    };
    world.engine.write(&request).unwrap();
    world.undone(first);
    assert_eq!((world.read("a"), world.read("d/a")), (None, None));
    world.redo();
    assert_eq!(
        (world.read("a"), world.read("d/a").as_deref()),
        (None, Some("1"))
    );
}

#[test]
fn the_chain_below_goes_when_asked() {
    let world = World::new().file("a", "0");
    let first = world.write("a", "1");
    let second = world.write("a", "2");
    let options = UndoOptions {
        with_dependencies: true,
        ..committed()
    };
    let report = world.undo(second, &options).unwrap();
    assert_eq!(
        report.steps.iter().map(|s| s.id).collect::<Vec<_>>(),
        [second, first]
    );
    assert_eq!(world.read("a").as_deref(), Some("0"));
}

#[test]
fn declared_dependencies_count() {
    let world = World::new();
    let hosts = world.write("hosts", "db.internal");
    let engine = world.asking(|c| c.depends_on = vec![hosts.to_string().parse().unwrap()]);
    let app = written(
        &engine
            .write(&FileRequest::write(world.path("app"), "db.internal"))
            .unwrap(),
    );
    let report = world.undone(hosts);
    assert_eq!(
        report.steps.iter().map(|s| s.id).collect::<Vec<_>>(),
        [app, hosts]
    );
}

#[test]
fn somebody_elses_change_is_a_conflict_and_left_alone() {
    let world = World::new().file("a", "1");
    let id = world.write("a", "2");
    fs::write(world.path("a"), "somebody else").unwrap();
    let view = world
        .engine
        .preview_undo(&named(id), &UndoOptions::default())
        .unwrap();
    assert!(matches!(
        view.steps[0].targets[0].state,
        TargetState::Conflict { .. }
    ));
    assert!(!view.is_executable);
    let error = world.undo(id, &UndoOptions::default()).unwrap_err();
    assert!(
        matches!(&error, EngineError::Conflicts { targets, .. } if targets.len() == 1),
        "{error}"
    );
    assert_eq!(Report::from(error).next.len(), 2);
    assert_eq!(world.read("a").as_deref(), Some("somebody else"));
    assert_eq!(world.status(id), Status::Committed);
}

#[test]
fn force_restores_and_even_that_is_undoable() {
    let world = World::new().file("a", "1");
    let id = world.write("a", "2");
    fs::write(world.path("a"), "somebody else").unwrap();
    world.undo(id, &on(OnConflict::Force)).unwrap();
    assert_eq!(world.read("a").as_deref(), Some("1"));
    world.redo();
    assert_eq!(world.read("a").as_deref(), Some("somebody else"));
}

#[test]
fn merge_takes_out_one_change_and_keeps_the_others() {
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n{last}\n");
    let world = World::new().file("a", &lines("1", "8"));
    let bad = world.write("a", &lines("bad", "8"));
    let later = world.write("a", &lines("bad", "good"));
    let report = world.undo(bad, &on(OnConflict::Merge)).unwrap();
    assert_eq!(report.steps.len(), 1, "the later write is no dependent");
    assert_eq!(report.steps[0].outcomes[0].kind, OutcomeKind::Merged);
    assert_eq!(world.read("a"), Some(lines("1", "good")));
    assert_eq!(
        (world.status(bad), world.status(later)),
        (Status::Undone, Status::Committed)
    );
}

#[test]
fn a_merge_that_does_not_work_out_is_a_conflict() {
    let world = World::new().file("a", "1\n");
    let bad = world.write("a", "2\n");
    fs::write(world.path("a"), "3\n").unwrap();
    let error = world.undo(bad, &on(OnConflict::Merge)).unwrap_err();
    assert!(matches!(error, EngineError::Conflicts { .. }), "{error}");
    assert_eq!(world.read("a").as_deref(), Some("3\n"));
}

#[test]
fn a_failing_part_does_not_stop_the_others_when_asked() {
    let world = World::new().file("a", "1").file("b", "1");
    let a = world.write("a", "2");
    let b = world.write("b", "2");
    fs::write(world.path("b"), "somebody else").unwrap();
    let both = UndoWhat::Operations(vec![
        a.to_string().parse().unwrap(),
        b.to_string().parse().unwrap(),
    ]);
    let error = world.engine.undo(&both, &committed()).unwrap_err();
    assert!(
        matches!(error, EngineError::Conflicts { .. }),
        "whole plan refused: {error}"
    );
    assert_eq!(world.read("a").as_deref(), Some("2"));
    let partial = UndoOptions {
        partial: true,
        ..committed()
    };
    let error = world.engine.undo(&both, &partial).unwrap_err();
    let EngineError::Partial(report) = error else {
        panic!("{error}")
    };
    assert_eq!(report.steps.iter().filter(|s| s.by.is_some()).count(), 1);
    assert_eq!(
        (world.read("a").as_deref(), world.read("b").as_deref()),
        (Some("1"), Some("somebody else"))
    );
    assert_eq!(
        (world.status(a), world.status(b)),
        (Status::Undone, Status::Committed)
    );
}

#[test]
fn an_undone_operation_is_not_undone_twice() {
    let world = World::new().file("a", "1");
    let id = world.write("a", "2");
    world.undone(id);
    let error = world.undo(id, &UndoOptions::default()).unwrap_err();
    assert!(
        matches!(error, EngineError::Plan(PlanError::AlreadyUndone { .. })),
        "{error}"
    );
}

#[test]
fn a_merge_does_not_keep_what_was_moved_there_and_removed_again() {
    let world = World::new().file("moved", "another\n");
    std::fs::create_dir(world.path("d")).unwrap();
    std::fs::write(world.path("d/f"), "one\n").unwrap();
    let first = world.remove("d/f");
    let onto = FileRequest::Move {
        from: world.path("moved"),
        to: world.path("d/f"),
        replace: false,
    };
    let onto = written(&world.engine.write(&onto).unwrap());
    let gone = world.remove("d");
    // Nothing can be merged where nothing is: the later work has to go as well.
    let report = world.undo(first, &on(OnConflict::Merge)).unwrap();
    let gone_too: Vec<_> = report.steps.iter().map(|step| step.id).collect();
    assert_eq!(gone_too, [gone, onto, first]);
}
