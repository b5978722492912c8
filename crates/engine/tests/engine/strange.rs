//! A driver that a program brings along, and what the others do with its recipes.

use std::collections::BTreeSet;
use std::sync::Arc;

use backout_engine::{
    Command, Decide, Engine, EngineError, RecoveredAs, Reply, Report, Selection, Settings,
    TargetState, UndoOptions,
};
use backout_model::ports::{Durability, Entry, OnConflict};
use backout_model::{DriverName, Event, OperationId, Owner, Status};
use backout_storage::{Filter, OperationRef};

use crate::toy::{Board, Note, TOY, Toy};
use crate::world::{NEWEST_UNDO, World, named, on, written};

fn note(name: &str, text: &str) -> Note {
    Note {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

/// The same store, opened by a program that has the driver.
fn with_toy(world: &World) -> (Engine, Board) {
    let toy = Toy::default();
    let board = Arc::clone(&toy.board);
    let mut engine = world.with(|_| {});
    engine.register(Arc::new(toy)).unwrap();
    (engine, board)
}

fn text(board: &Board, name: &str) -> Option<String> {
    board.lock().unwrap().get(name).cloned()
}

fn reference(id: OperationId) -> OperationRef {
    id.to_string().parse().unwrap()
}

/// Leaves an operation as a dead process would.
fn died(world: &World, id: OperationId, again: OperationId) {
    let mut intent = world.intent(id, again);
    intent.owner = Owner {
        pid: 1,
        started: 1,
        ..intent.owner
    };
    let entry = Entry::of(vec![Event::Intent(Box::new(intent))]);
    world
        .engine
        .store()
        .append(&entry, Durability::Power)
        .unwrap();
}

#[test]
fn a_driver_of_another_program_writes_undoes_and_redoes_beside_files() {
    let world = World::new().file("f", "file");
    let (engine, board) = with_toy(&world);
    let first = written(&engine.write(&note("a", "one")).unwrap());
    let file = world.write("f", "other");
    let second = written(&engine.write(&note("a", "two")).unwrap());
    let undone = engine.undo(&named(first), &UndoOptions::default()).unwrap();
    let ids: Vec<_> = undone.steps.iter().map(|step| step.id).collect();
    assert_eq!(ids, [second, first], "what was built on it goes first");
    assert_eq!(
        (text(&board, "a"), world.status(file)),
        (None, Status::Committed)
    );
    engine.redo(&NEWEST_UNDO, &UndoOptions::default()).unwrap();
    assert_eq!(text(&board, "a").as_deref(), Some("two"));
    board
        .lock()
        .unwrap()
        .insert("a".to_owned(), "mine".to_owned());
    let refused = engine.undo(&named(second), &UndoOptions::default());
    assert!(matches!(refused, Err(EngineError::Conflicts { .. })));
    engine.undo(&named(second), &on(OnConflict::Force)).unwrap();
    assert_eq!(text(&board, "a").as_deref(), Some("one"));
    engine.redo(&NEWEST_UNDO, &UndoOptions::default()).unwrap();
    assert_eq!(text(&board, "a").as_deref(), Some("mine"));
}

#[test]
fn a_name_is_taken_once() {
    let world = World::new();
    let (mut engine, _) = with_toy(&world);
    let taken = engine.register(Arc::new(Toy::default())).unwrap_err();
    assert!(matches!(&taken, EngineError::DriverTaken { name } if *name == TOY));
    let report = Report::from(taken);
    assert_eq!(report.what, "there is a driver `toy` already");
    assert_eq!(report.next, ["give the other one another name".into()]);
}

/// A store in which a driver that the world's engine does not have left an operation that was undone, its undo, and
/// one that stands.
struct Left {
    world: World,
    with: Engine,
    board: Board,
    undone: OperationId,
    undo: OperationId,
    stands: OperationId,
}

fn left() -> Left {
    let world = World::new();
    let (with, board) = with_toy(&world);
    let undone = written(&with.write(&note("a", "one")).unwrap());
    let report = with.undo(&named(undone), &UndoOptions::default()).unwrap();
    let stands = written(&with.write(&note("b", "two")).unwrap());
    Left {
        undo: report.act.unwrap(),
        world,
        with,
        board,
        undone,
        stands,
    }
}

#[test]
fn what_needs_a_driver_that_is_not_there_is_refused_and_named() {
    let left = left();
    let engine = &left.world.engine;
    let options = UndoOptions::default();
    let stands = reference(left.stands);
    let refused = [
        engine.undo(&named(left.stands), &options).map(drop),
        engine.preview_undo(&named(left.stands), &options).map(drop),
        engine.redo(&NEWEST_UNDO, &options).map(drop),
        engine.diff(&stands, &Selection::default(), false).map(drop),
        engine.write(&note("c", "three")).map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert!(matches!(&error, EngineError::NoDriver { name } if *name == TOY));
        let report = Report::from(error);
        insta::allow_duplicates! { insta::assert_snapshot!(format!("{}\n{:#?}\n{:#?}", report.what, report.why, report.next.iter().map(|it| &it.text).collect::<Vec<_>>()), @r#"
        this program has no driver `toy`, so it cannot tell what there is to do
        [
            "nothing was changed; what the driver recorded stays kept",
        ]
        [
            "use a program that has the driver `toy` on the same state directory",
        ]
        "#); }
    }
    assert_eq!(text(&left.board, "b").as_deref(), Some("two"));
    let log = engine.store().operations(&Filter::default()).unwrap();
    assert_eq!(log.len(), 3, "the log needs no driver");
    let Reply::Shown(shown) = engine.execute(Command::Show(stands)).unwrap() else {
        panic!("nothing is shown")
    };
    let states: Vec<_> = shown.targets.iter().map(|it| &it.state).collect();
    let why = "this program has no driver `toy`".to_owned();
    assert_eq!(states, [&TargetState::CannotComeBack { why }]);
}

#[test]
fn what_a_driver_keeps_that_is_not_there_is_neither_undoable_nor_lost_nor_too_old() {
    let left = left();
    let all = [left.undone, left.undo, left.stands];
    let verified = left.world.engine.verify().unwrap();
    assert_eq!(verified.findings, []);
    assert!(verified.undoable.is_empty() && verified.not_undoable.is_empty());
    let others = verified.others.iter();
    let others: Vec<_> = others.map(|it| (it.id, it.driver.clone())).collect();
    assert_eq!(others, all.map(|id| (id, TOY)));
    let at_once = |settings: &mut Settings| {
        settings.retention.committed_ms_min = 0;
        settings.retention.committed_ms_max = 0;
    };
    for is_dry_run in [true, false] {
        let collected = left.world.with(at_once).gc(is_dry_run, false).unwrap();
        let collected = collected.collected;
        assert_eq!(collected.expired, [], "nothing goes");
        let kept: BTreeSet<_> = collected.others.iter().map(|it| it.id).collect();
        assert_eq!(kept, BTreeSet::from(all));
    }
    // Who has the driver finds all as it was, and lets it go.
    left.with
        .redo(&NEWEST_UNDO, &UndoOptions::default())
        .unwrap();
    assert_eq!(text(&left.board, "a").as_deref(), Some("one"));
    let mut engine = left.world.with(at_once);
    engine.register(Arc::new(Toy::default())).unwrap();
    assert_ne!(engine.gc(true, false).unwrap().collected.expired, []);
}

#[test]
fn what_died_with_a_driver_that_is_not_there_waits_for_it() {
    let world = World::new();
    let (with, board) = with_toy(&world);
    let id = written(&with.write(&note("a", "one")).unwrap());
    let dead = OperationId::from_bits(0xdead);
    died(&world, dead, id);
    // Other work goes on.
    world.write("f", "x");
    assert_eq!(world.status(dead), Status::Armed);
    let report = world.engine.recover(None).unwrap();
    let [recovered] = report.operations.as_slice() else {
        panic!("{report:?}")
    };
    assert_eq!(
        (recovered.id, recovered.became),
        (dead, RecoveredAs::InDoubt)
    );
    assert_eq!(recovered.doubts, ["this program has no driver `toy`"]);
    assert_eq!(world.status(dead), Status::Armed, "nobody judged it");
    let keep = world.engine.decide(&[reference(dead)], Decide::Keep);
    assert!(matches!(keep, Err(EngineError::NoDriver { .. })));
    assert_eq!(world.status(dead), Status::Armed);
    // Whoever has the driver settles it.
    let report = with.recover(None).unwrap();
    assert_eq!(report.operations.len(), 1, "{report:?}");
    assert_ne!(world.status(dead), Status::Armed);
    assert_eq!(text(&board, "a"), None, "it was taken back");
}

#[test]
fn the_name_of_a_driver_is_any_text() {
    let name: DriverName = serde_json::from_str(r#""queue of tomorrow""#).unwrap();
    assert_eq!(name.to_string(), "queue of tomorrow");
}
