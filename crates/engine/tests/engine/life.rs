//! Gates, checks, tasks, checkpoints, agents.

use std::fs;

use backout_drivers::file::{Expect, FileRequest, Source};
use backout_engine::{EngineError, Report, UndoOptions, UndoWhat};
use backout_model::ports::{Durability, Entry};
use backout_model::{Event, OperationId, PlanError, Status};

use crate::world::{NEWEST, World, written};

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
    let changed = staged.staged().changed();
    let seen: Vec<Vec<u8>> = changed
        .iter()
        .map(|file| file.new.as_ref().unwrap().read().unwrap())
        .collect();
    drop(changed);
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
        (Some("1"), Status::Undone)
    );
    world.redo();
    assert_eq!(world.read("a").as_deref(), Some("2"), "even that is kept");
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
    let inside = world.asking(|c| c.task = Some(task.clone()));
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
            &UndoOptions::default(),
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
    let inside = world.asking(|c| c.task = Some(task.clone()));
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
    let inside = world.asking(|c| c.task = Some(task));
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
        .rollback(&what, &UndoOptions::default(), "a test")
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
        world.asking(move |c| c.agent = Some(name))
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
        &UndoOptions::default(),
        "a test",
    )
    .unwrap();
    assert_eq!(
        (world.read("mine"), world.read("theirs").as_deref()),
        (None, Some("b"))
    );
    let error = a.undo(&NEWEST, &UndoOptions::default()).unwrap_err();
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
fn what_this_process_left_in_doubt_it_can_try_again() {
    let world = World::new().file("a", "0");
    let write = world.write("a", "1");
    let id = OperationId::from_bits(7);
    let mut left = world.intent(id, write);
    // Nobody has this number any more.
    left.owner.started += 1;
    let entry = Entry::of(vec![Event::Intent(Box::new(left))]);
    let store = world.engine.store();
    store.append(&entry, Durability::Power).unwrap();
    fs::write(world.path("a"), "theirs").unwrap();
    world.engine.recover(None).unwrap();
    assert_eq!(world.status(id), Status::InDoubt);
    fs::write(world.path("a"), "1").unwrap();
    let report = world.engine.recover(None).unwrap();
    assert!(report.running.is_empty(), "{report:?}");
    assert_eq!(
        (world.status(id), world.read("a").as_deref()),
        (Status::Undone, Some("0"))
    );
}
