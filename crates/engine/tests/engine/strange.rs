//! A driver that a program brings along, and what the others do with its recipes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backout_driver_example::{PutRows, ROWS, Rows, Table};
use backout_drivers::file::FileRequest;
use backout_engine::{
    Command, Decide, Engine, EngineError, PlannedStep, RecoveredAs, Reply, Report, Selection,
    Settings, TargetState, UndoOptions, UndoWhat,
};
use backout_model::ports::{Durability, Entry, OnConflict, Progress, Request};
use backout_model::{Completion, DriverName, Event, OperationId, Owner, Status};
use backout_storage::{Filter, OperationRef};

use crate::world::{NEWEST_UNDO, World, named, on, written};

fn row(name: &str, value: &str) -> PutRows {
    PutRows([(name.to_owned(), Some(value.to_owned()))].into())
}

/// The same store, opened by a program that has the driver.
fn with_rows(world: &World) -> (Engine, Table) {
    let table = Table::new(world.path("table"));
    let mut engine = world.with(|_| {});
    engine.register(Arc::new(Rows::new(table.clone()))).unwrap();
    (engine, table)
}

fn text(table: &Table, name: &str) -> Option<String> {
    table.rows().unwrap().remove(name)
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
    let (engine, table) = with_rows(&world);
    let first = written(&engine.write(&row("a", "one")).unwrap());
    let file = world.write("f", "other");
    let second = written(&engine.write(&row("a", "two")).unwrap());
    let undone = engine.undo(&named(first), &UndoOptions::default()).unwrap();
    let ids: Vec<_> = undone.steps.iter().map(|step| step.id).collect();
    assert_eq!(ids, [second, first], "what was built on it goes first");
    assert_eq!(
        (text(&table, "a"), world.status(file)),
        (None, Status::Committed)
    );
    engine.redo(&NEWEST_UNDO, &UndoOptions::default()).unwrap();
    assert_eq!(text(&table, "a").as_deref(), Some("two"));
    table.put("a", Some("two"), Some("mine")).unwrap();
    let refused = engine.undo(&named(second), &UndoOptions::default());
    assert!(matches!(refused, Err(EngineError::Conflicts { .. })));
    engine.undo(&named(second), &on(OnConflict::Force)).unwrap();
    assert_eq!(text(&table, "a").as_deref(), Some("one"));
    engine.redo(&NEWEST_UNDO, &UndoOptions::default()).unwrap();
    assert_eq!(text(&table, "a").as_deref(), Some("mine"));
}

/// A task that wrote files and rows in turns, as an engine within the task sees it.
fn mixed_task(world: &World) -> (Engine, Table, UndoWhat, Vec<OperationId>) {
    let (engine, table) = with_rows(world);
    table.put("a", None, Some("0")).unwrap();
    let task = engine.begin(Some("mixed".parse().unwrap()), None);
    let task = task.unwrap().id;
    let mut inside = world.asking(|c| c.task = Some(task.clone()));
    inside.register(Arc::new(Rows::new(table.clone()))).unwrap();
    let file = |name: &str, text: &str| FileRequest::write(world.path(name), text);
    let rows = [("a", Some("1")), ("b", Some("2"))];
    let rows = rows.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
    let writes: [&dyn Request; 5] = [
        &file("f", "one"),
        &PutRows(rows.into()),
        &file("g", "two"),
        &row("a", "3"),
        &file("f", "four"),
    ];
    let ids = writes.map(|request| written(&inside.write(request).unwrap()));
    (inside, table, UndoWhat::Task(task), ids.into())
}

#[test]
fn a_task_of_files_and_rows_goes_back_as_one_newest_first() {
    let world = World::new().file("f", "zero");
    let (engine, table, task, mut ids) = mixed_task(&world);
    let undone = engine.rollback(&task, &UndoOptions::default(), "a test");
    let undone = undone.unwrap();
    ids.reverse();
    let order: Vec<_> = undone.steps.iter().map(|step| step.id).collect();
    assert_eq!(order, ids, "what came last goes first, whatever it wrote");
    assert_eq!(table.rows().unwrap(), [("a".into(), "0".into())].into());
    let files = (world.read("f"), world.read("g"));
    assert_eq!(files, (Some("zero".to_owned()), None));
    engine.redo(&NEWEST_UNDO, &UndoOptions::default()).unwrap();
    assert_eq!(text(&table, "a").as_deref(), Some("3"));
    assert_eq!(world.read("f").as_deref(), Some("four"));
}

#[test]
fn a_row_that_somebody_changed_holds_the_files_of_its_task_back() {
    let world = World::new().file("f", "zero");
    let (engine, table, task, _) = mixed_task(&world);
    table.put("b", Some("2"), Some("mine")).unwrap();
    let refused = engine.rollback(&task, &UndoOptions::default(), "a test");
    assert!(matches!(refused, Err(EngineError::Conflicts { .. })));
    let rows = ["a", "b"].map(|name| text(&table, name).unwrap());
    assert_eq!(rows, ["3", "mine"], "nothing went back");
    assert_eq!(world.read("f").as_deref(), Some("four"));
    assert_eq!(world.read("g").as_deref(), Some("two"));
}

#[test]
fn a_table_that_does_not_answer_holds_no_file_of_its_task_back() {
    let world = World::new().file("f", "zero");
    let (engine, _table, task, ids) = mixed_task(&world);
    let (place, away) = (world.path("table"), world.path("away"));
    std::fs::rename(&place, &away).unwrap();
    std::fs::create_dir(&place).unwrap();
    let plan = engine.preview_undo(&task, &UndoOptions::default()).unwrap();
    let lost = |step: &PlannedStep| {
        let mut targets = step.targets.iter();
        targets.any(|it| matches!(it.state, TargetState::CannotComeBack { .. }))
    };
    let states: Vec<bool> = plan.steps.iter().map(lost).collect();
    assert_eq!(states, [false, true, false, true, false]);
    let Reply::Shown(shown) = engine.execute(Command::Show(reference(ids[1]))).unwrap() else {
        unreachable!("it is shown")
    };
    assert!(
        shown
            .targets
            .iter()
            .all(|it| it.state.hindrance().is_some())
    );
    let undone = engine.rollback(&task, &UndoOptions::default(), "a test");
    let Err(EngineError::Partial(report)) = undone else {
        unreachable!("a part goes back: {undone:?}")
    };
    let done: Vec<bool> = report.steps.iter().map(|step| step.by.is_some()).collect();
    assert_eq!(done, [true, false, true, false, true]);
    assert_eq!(
        (world.read("f").as_deref(), world.read("g")),
        (Some("zero"), None)
    );
    // When it answers again, the rest goes.
    std::fs::remove_dir(&place).unwrap();
    std::fs::rename(&away, &place).unwrap();
    engine
        .rollback(&task, &UndoOptions::default(), "a test")
        .unwrap();
    let rows = Table::new(place).rows().unwrap();
    assert_eq!(rows, [("a".into(), "0".into())].into());
}

/// Wants the work to stop as soon as a row is put.
#[derive(Debug, Default)]
struct Impatient(AtomicU64);

impl Progress for Impatient {
    fn total(&self, _items: u64) {}

    fn advance(&self, items: u64) {
        self.0.fetch_add(items, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

#[test]
fn an_undo_of_rows_that_is_stopped_is_put_back_and_told() {
    let world = World::new();
    let (engine, table) = with_rows(&world);
    let rows = ["a", "b", "c"].map(|name| (name.to_owned(), Some("1".to_owned())));
    let id = written(&engine.write(&PutRows(rows.into())).unwrap());
    let before = table.rows().unwrap();
    let mut stopped = world.with(|it| it.progress = Some(Arc::new(Impatient::default())));
    stopped
        .register(Arc::new(Rows::new(table.clone())))
        .unwrap();
    let error = stopped
        .undo(&named(id), &UndoOptions::default())
        .unwrap_err();
    assert!(error.is_stop(), "{error:?}");
    assert_eq!(Report::from(error).code.as_str(), "interrupted");
    assert_eq!(table.rows().unwrap(), before);
    assert_eq!(world.status(id), Status::Committed);
    engine.undo(&named(id), &UndoOptions::default()).unwrap();
    assert!(table.rows().unwrap().is_empty());
}

#[test]
fn a_dead_put_of_several_rows_is_taken_back_by_whoever_comes_next() {
    let world = World::new();
    let table = Table::new(world.path("table"));
    let both = ["a", "b"].map(|name| (name.to_owned(), Some("1".to_owned())));
    let (engine, _) = with_rows(&world);
    let first = written(&engine.write(&PutRows(both.into())).unwrap());
    engine.undo(&named(first), &UndoOptions::default()).unwrap();
    // It dies again, with one of the two rows put.
    let dead = OperationId::from_bits(0xdead);
    died(&world, dead, first);
    table.put("a", None, Some("1")).unwrap();
    engine.write(&row("c", "2")).unwrap();
    assert_eq!(table.rows().unwrap(), [("c".into(), "2".into())].into());
    assert_eq!(world.status(dead), Status::Undone);
}

#[test]
fn values_of_rows_are_shown_as_what_they_were_and_are() {
    let world = World::new();
    let (engine, table) = with_rows(&world);
    table.put("a", None, Some("old")).unwrap();
    let id = written(&engine.write(&row("a", "new")).unwrap());
    let diff = engine.diff(&reference(id), &Selection::default(), false);
    let [changed] = <[_; 1]>::try_from(diff.unwrap().files).unwrap();
    assert_eq!(
        (changed.path, changed.key.as_deref(), changed.text.as_str()),
        (None, Some("rows:table/a"), "@@ -1 +1 @@\n-old\n+new\n")
    );
    // What is built on it goes first, also in what is only foreseen.
    engine.write(&row("a", "newer")).unwrap();
    let plan = engine.preview_undo(&named(id), &UndoOptions::default());
    let plan = plan.unwrap();
    let states = plan.steps.iter().flat_map(|step| &step.targets);
    let states: Vec<_> = states.map(|target| &target.state).collect();
    let foreseen = [&TargetState::ComesBack, &TargetState::AfterNewerStep];
    assert_eq!(states, foreseen);
}

#[test]
fn a_recipe_of_tomorrow_is_refused_with_what_helps() {
    let world = World::new();
    let (engine, table) = with_rows(&world);
    let id = written(&engine.write(&row("a", "one")).unwrap());
    let mut intent = world.intent(OperationId::from_bits(7), id);
    intent.recipe.version = 9;
    let newer = intent.id;
    let entry = Entry::of(vec![
        Event::Intent(Box::new(intent)),
        Event::Applied {
            id: newer,
            completion: Completion::default(),
        },
        Event::Commit { id: newer },
    ]);
    engine.store().append(&entry, Durability::Power).unwrap();
    let error = engine.undo(&named(newer), &UndoOptions::default());
    let report = Report::from(error.unwrap_err());
    assert_eq!(
        report.what,
        "the recipe has version 9, this program reads up to 1"
    );
    assert_eq!(report.next, ["use the newer program".into()]);
    assert_eq!(report.code.as_str(), "newer-recipe");
    assert_eq!(text(&table, "a").as_deref(), Some("one"));
}

#[test]
fn a_name_is_taken_once() {
    let world = World::new();
    let (mut engine, table) = with_rows(&world);
    let taken = engine.register(Arc::new(Rows::new(table))).unwrap_err();
    assert!(matches!(&taken, EngineError::DriverTaken { name } if *name == ROWS));
    let report = Report::from(taken);
    assert_eq!(report.what, "there is a driver `rows` already");
    assert_eq!(report.next, ["give the other one another name".into()]);
}

/// A store in which a driver that the world's engine does not have left an operation that was undone, its undo, and
/// one that stands.
struct Left {
    world: World,
    with: Engine,
    table: Table,
    undone: OperationId,
    undo: OperationId,
    stands: OperationId,
}

fn left() -> Left {
    let world = World::new();
    let (with, table) = with_rows(&world);
    let undone = written(&with.write(&row("a", "one")).unwrap());
    let report = with.undo(&named(undone), &UndoOptions::default()).unwrap();
    let stands = written(&with.write(&row("b", "two")).unwrap());
    Left {
        undo: report.act.unwrap(),
        world,
        with,
        table,
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
        engine.write(&row("c", "three")).map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert!(matches!(&error, EngineError::NoDriver { name } if *name == ROWS));
        let report = Report::from(error);
        insta::allow_duplicates! { insta::assert_snapshot!(format!("{}\n{:#?}\n{:#?}", report.what, report.why, report.next.iter().map(|it| &it.text).collect::<Vec<_>>()), @r#"
        this program has no driver `rows`, so it cannot tell what there is to do
        [
            "nothing was changed; what the driver recorded stays kept",
        ]
        [
            "use a program that has the driver `rows` on the same state directory",
        ]
        "#); }
    }
    assert_eq!(text(&left.table, "b").as_deref(), Some("two"));
    let log = engine.store().operations(&Filter::default()).unwrap();
    assert_eq!(log.len(), 3, "the log needs no driver");
    let Reply::Shown(shown) = engine.execute(Command::Show(stands)).unwrap() else {
        panic!("nothing is shown")
    };
    let states: Vec<_> = shown.targets.iter().map(|it| &it.state).collect();
    let why = "this program has no driver `rows`".to_owned();
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
    assert_eq!(others, all.map(|id| (id, ROWS)));
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
    assert_eq!(text(&left.table, "a").as_deref(), Some("one"));
    let mut engine = left.world.with(at_once);
    let rows = Rows::new(left.table.clone());
    engine.register(Arc::new(rows)).unwrap();
    assert_ne!(engine.gc(true, false).unwrap().collected.expired, []);
}

#[test]
fn what_died_with_a_driver_that_is_not_there_waits_for_it() {
    let world = World::new();
    let (with, table) = with_rows(&world);
    let id = written(&with.write(&row("a", "one")).unwrap());
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
    assert_eq!(recovered.doubts, ["this program has no driver `rows`"]);
    assert_eq!(world.status(dead), Status::Armed, "nobody judged it");
    let keep = world.engine.decide(&[reference(dead)], Decide::Keep);
    assert!(matches!(keep, Err(EngineError::NoDriver { .. })));
    assert_eq!(world.status(dead), Status::Armed);
    // Whoever has the driver settles it.
    let report = with.recover(None).unwrap();
    assert_eq!(report.operations.len(), 1, "{report:?}");
    assert_ne!(world.status(dead), Status::Armed);
    assert_eq!(text(&table, "a"), None, "it was taken back");
}

#[test]
fn the_name_of_a_driver_is_any_text() {
    let name: DriverName = serde_json::from_str(r#""queue of tomorrow""#).unwrap();
    assert_eq!(name.to_string(), "queue of tomorrow");
}
