//! The engine on real files: undo, redo, dependencies, conflicts, tasks, checkpoints, gates.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::PathBuf;

use backout_drivers::file::{Expect, FileRequest, Source};
use backout_engine::{
    Engine, EngineError, Finished, Report, Settings, TargetState, UndoOptions, UndoReport, UndoWhat,
};
use backout_model::ports::OnConflict;
use backout_model::{OperationId, OutcomeKind, PlanError, Status};

struct World {
    directory: tempfile::TempDir,
    engine: Engine,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(Settings::new(directory.path().join("state"))).unwrap();
        Self { directory, engine }
    }

    /// The same store for another agent, task or connection.
    fn with(&self, change: impl FnOnce(&mut Settings)) -> Engine {
        let mut settings = self.engine.settings().clone();
        change(&mut settings);
        Engine::open(settings).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(self, name: &str, content: &str) -> Self {
        fs::write(self.path(name), content).unwrap();
        self
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    fn write(&self, name: &str, content: &str) -> OperationId {
        written(
            &self
                .engine
                .write(&FileRequest::write(self.path(name), content))
                .unwrap(),
        )
    }

    fn mkdir(&self, name: &str) -> OperationId {
        let request = FileRequest::Mkdir {
            path: self.path(name),
            parents: false,
            mode: None,
        };
        written(&self.engine.write(&request).unwrap())
    }

    fn remove(&self, name: &str) -> OperationId {
        let request = FileRequest::Remove {
            path: self.path(name),
            recursive: true,
        };
        written(&self.engine.write(&request).unwrap())
    }

    fn undo(&self, id: OperationId, options: UndoOptions) -> Result<UndoReport, EngineError> {
        self.engine.undo(&named(id), options)
    }

    fn undone(&self, id: OperationId) -> UndoReport {
        self.undo(id, committed()).unwrap()
    }

    fn redo(&self) -> UndoReport {
        self.engine.redo(None, UndoOptions::default()).unwrap()
    }

    fn status(&self, id: OperationId) -> Status {
        self.engine.store().operation(id).unwrap().unwrap().status
    }
}

fn written(finished: &Finished) -> OperationId {
    finished.id.expect("something was written")
}

fn named(id: OperationId) -> UndoWhat {
    UndoWhat::Operations(vec![id.to_string().parse().unwrap()])
}

fn committed() -> UndoOptions {
    UndoOptions {
        committed: true,
        ..UndoOptions::default()
    }
}

fn on(on_conflict: OnConflict) -> UndoOptions {
    UndoOptions {
        on_conflict,
        ..UndoOptions::default()
    }
}

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
fn what_was_built_on_it_goes_too_newest_first_but_only_with_leave() {
    let world = World::new();
    let directory = world.mkdir("d");
    let first = world.write("d/f", "1");
    let second = world.write("d/f", "2");
    let refused = world.undo(directory, UndoOptions::default()).unwrap_err();
    let EngineError::NeedsCommitted(view) = refused else {
        panic!("{refused:#?}")
    };
    assert_eq!(view.needs_committed, [second, first]);
    assert_eq!(world.read("d/f").as_deref(), Some("2"), "nothing happened");
    let report = world.undone(directory);
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
fn the_chain_below_goes_when_asked() {
    let world = World::new().file("a", "0");
    let first = world.write("a", "1");
    let second = world.write("a", "2");
    let options = UndoOptions {
        with_dependencies: true,
        ..committed()
    };
    let report = world.undo(second, options).unwrap();
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
    let engine = world.with(|s| s.context.depends_on = vec![hosts.to_string().parse().unwrap()]);
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
        .preview_undo(&named(id), UndoOptions::default())
        .unwrap();
    assert!(matches!(
        view.steps[0].targets[0].state,
        TargetState::Conflict { .. }
    ));
    assert!(!view.is_executable);
    let error = world.undo(id, UndoOptions::default()).unwrap_err();
    assert!(
        matches!(&error, EngineError::Conflicts { targets } if targets.len() == 1),
        "{error}"
    );
    assert_eq!(Report::from(error).next.len(), 3);
    assert_eq!(world.read("a").as_deref(), Some("somebody else"));
    assert_eq!(world.status(id), Status::Committed);
}

#[test]
fn force_restores_and_even_that_is_undoable() {
    let world = World::new().file("a", "1");
    let id = world.write("a", "2");
    fs::write(world.path("a"), "somebody else").unwrap();
    world.undo(id, on(OnConflict::Force)).unwrap();
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
    let report = world.undo(bad, on(OnConflict::Merge)).unwrap();
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
    let error = world.undo(bad, on(OnConflict::Merge)).unwrap_err();
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
    let error = world.engine.undo(&both, committed()).unwrap_err();
    assert!(
        matches!(error, EngineError::Conflicts { .. }),
        "whole plan refused: {error}"
    );
    assert_eq!(world.read("a").as_deref(), Some("2"));
    let partial = UndoOptions {
        partial: true,
        ..committed()
    };
    let error = world.engine.undo(&both, partial).unwrap_err();
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
    let error = world.undo(id, UndoOptions::default()).unwrap_err();
    assert!(
        matches!(error, EngineError::Plan(PlanError::AlreadyUndone { .. })),
        "{error}"
    );
}

#[test]
fn a_write_that_changes_nothing_is_not_recorded() {
    let world = World::new().file("a", "1");
    let finished = world
        .engine
        .write(&FileRequest::write(world.path("a"), "1"))
        .unwrap();
    assert_eq!(finished.id, None);
    assert_eq!(world.engine.store().summary().unwrap().records, 0);
    assert_eq!(world.engine.store().summary().unwrap().leases, 0);
}

#[test]
fn a_gate_that_says_no_leaves_the_target_and_a_record() {
    let world = World::new().file("a", "1");
    let staged = world
        .engine
        .stage(&FileRequest::write(world.path("a"), "bad"))
        .unwrap();
    let seen: Vec<Vec<u8>> = staged
        .staged()
        .files()
        .map(|f| f.bytes().unwrap())
        .collect();
    assert_eq!(seen, [b"bad".to_vec()]);
    let id = staged.id();
    let error = staged.refuse("it is bad");
    assert!(matches!(error, EngineError::Refused { .. }), "{error}");
    assert_eq!(
        (world.read("a").as_deref(), world.status(id)),
        (Some("1"), Status::Refused)
    );
    world.write("a", "good"); // nothing is leased any more
}

#[test]
fn a_check_after_the_write_that_says_no_takes_it_back() {
    let world = World::new().file("a", "1");
    let staged = world
        .engine
        .stage(&FileRequest::write(world.path("a"), "2"))
        .unwrap();
    let id = staged.id();
    let error = staged
        .apply_and_verify(|| Err("the service is down".to_owned()))
        .unwrap_err();
    assert!(matches!(error, EngineError::TakenBack { .. }), "{error}");
    assert_eq!(
        (world.read("a").as_deref(), world.status(id)),
        (Some("1"), Status::Aborted)
    );
}

#[test]
fn a_dropped_stage_leaves_no_trace() {
    let world = World::new().file("a", "1");
    drop(
        world
            .engine
            .stage(&FileRequest::write(world.path("a"), "2"))
            .unwrap(),
    );
    assert_eq!(world.read("a").as_deref(), Some("1"));
    let summary = world.engine.store().summary().unwrap();
    assert_eq!((summary.records, summary.leases), (0, 0));
    assert_eq!(
        fs::read_dir(world.directory.path()).unwrap().count(),
        2,
        "the file and the state"
    );
}

#[test]
fn a_task_is_rolled_back_whole_or_committed_whole() {
    let world = World::new().file("a", "1");
    let task = world
        .engine
        .begin(Some("t".parse().unwrap()), None)
        .unwrap()
        .id;
    let inside = world.with(|s| s.context.task = Some(task.clone()));
    let first = written(
        &inside
            .write(&FileRequest::write(world.path("a"), "2"))
            .unwrap(),
    );
    written(
        &inside
            .write(&FileRequest::write(world.path("b"), "new"))
            .unwrap(),
    );
    assert_eq!(world.status(first), Status::Applied);
    world
        .engine
        .rollback(
            &UndoWhat::Task(task.clone()),
            UndoOptions::default(),
            "a test",
        )
        .unwrap();
    assert_eq!(
        (world.read("a").as_deref(), world.read("b")),
        (Some("1"), None)
    );
    let ended = inside
        .write(&FileRequest::write(world.path("a"), "3"))
        .unwrap_err();
    assert!(matches!(ended, EngineError::TaskEnded { .. }), "{ended}");
    let task = world
        .engine
        .begin(Some("t2".parse().unwrap()), None)
        .unwrap()
        .id;
    let inside = world.with(|s| s.context.task = Some(task.clone()));
    let id = written(
        &inside
            .write(&FileRequest::write(world.path("a"), "2"))
            .unwrap(),
    );
    assert_eq!(world.engine.commit(&task).unwrap(), [id]);
    assert_eq!(world.status(id), Status::Committed);
}

#[test]
fn a_task_dies_with_its_owner() {
    let world = World::new().file("a", "1");
    let mut owner = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let task = world
        .engine
        .begin(Some("t".parse().unwrap()), Some(owner.id()))
        .unwrap()
        .id;
    let inside = world.with(|s| s.context.task = Some(task));
    inside
        .write(&FileRequest::write(world.path("a"), "2"))
        .unwrap();
    assert!(
        world.engine.recover(None).unwrap().tasks.is_empty(),
        "the owner lives"
    );
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(world.engine.recover(None).unwrap().tasks.len(), 1);
    assert_eq!(world.read("a").as_deref(), Some("1"));
}

#[test]
fn a_checkpoint_is_returned_to() {
    let world = World::new().file("a", "1");
    world.write("a", "2");
    let state = serde_json::json!({ "step": 4 });
    let checkpoint = world
        .engine
        .mark(Some("good".parse().unwrap()), state.clone())
        .unwrap();
    world.write("a", "3");
    world.write("b", "new");
    let what = UndoWhat::ToCheckpoint(checkpoint.name.clone());
    world
        .engine
        .rollback(&what, UndoOptions::default(), "a test")
        .unwrap();
    assert_eq!(
        (world.read("a").as_deref(), world.read("b")),
        (Some("2"), None)
    );
    let found = world
        .engine
        .store()
        .checkpoint(&checkpoint.name)
        .unwrap()
        .unwrap();
    assert_eq!(found.state, state);
}

#[test]
fn one_agent_never_reverts_what_another_wrote() {
    let world = World::new();
    let agent = |name: &str| {
        let name = name.parse().unwrap();
        world.with(move |s| s.context.agent = Some(name))
    };
    let (a, b) = (agent("a"), agent("b"));
    let checkpoint = a
        .mark(Some("start".parse().unwrap()), serde_json::Value::Null)
        .unwrap();
    a.write(&FileRequest::write(world.path("mine"), "a"))
        .unwrap();
    b.write(&FileRequest::write(world.path("theirs"), "b"))
        .unwrap();
    a.rollback(
        &UndoWhat::ToCheckpoint(checkpoint.name),
        UndoOptions::default(),
        "a test",
    )
    .unwrap();
    assert_eq!(
        (world.read("mine"), world.read("theirs").as_deref()),
        (None, Some("b"))
    );
    let error = a
        .undo(&UndoWhat::Newest, UndoOptions::default())
        .unwrap_err();
    assert!(
        matches!(error, EngineError::Plan(PlanError::Nothing)),
        "{error}"
    );
}

#[test]
fn a_file_that_was_meant_to_be_new_is_not_overwritten() {
    let world = World::new().file("a", "1");
    let request = FileRequest::Write {
        path: world.path("a"),
        source: Source::Bytes(b"2".to_vec()),
        expect: Expect::New,
        parents: false,
        mode: None,
    };
    let report = Report::from(world.engine.write(&request).unwrap_err());
    assert!(report.what.contains("already exists"), "{report:?}");
    assert_eq!(world.read("a").as_deref(), Some("1"));
}

#[test]
fn the_state_directory_is_out_of_reach() {
    let world = World::new();
    let request = FileRequest::write(world.path("state/journal.sqlite"), "gone");
    let report = Report::from(world.engine.write(&request).unwrap_err());
    assert!(report.what.contains("our own state"), "{report:?}");
}

#[test]
fn frequent_writes_change_the_strategy() {
    let world = World::new().file("a", "0");
    for number in 1..=6 {
        world.write("a", &number.to_string());
    }
    let finished = world
        .engine
        .write(&FileRequest::write(world.path("a"), "7"))
        .unwrap();
    assert_eq!(
        finished.strategy,
        Some(backout_model::Strategy::Transaction)
    );
}
