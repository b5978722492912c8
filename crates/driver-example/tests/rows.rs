//! Rows pass the suite of all drivers, and what is their own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backout_driver_example::{PutRows, Rows, Table, TableError};
use backout_model::ports::{Driver, How, Progress, Request, Watch};
use backout_model::{Key, OperationId, OutcomeKind, Strategy};
use backout_testkit::driver::{Harness, Steps, applied, conforms};

/// A table in a directory of its own, and what is asked of it.
struct World {
    _directory: tempfile::TempDir,
    table: Table,
    driver: Rows,
    steps: Arc<Steps>,
    request: PutRows,
}

impl World {
    fn new(rows: &[(&str, &str)], wanted: &[(&str, Option<&str>)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let steps = Arc::new(Steps::default());
        let counted = Arc::clone(&steps);
        let table = Table::new(directory.path().join("table"));
        let table = table.with_steps(move || counted.pass().map_err(std::io::Error::other));
        let world = Self {
            driver: Rows::new(table.clone()),
            table,
            _directory: directory,
            steps,
            request: wanted_rows(wanted),
        };
        for (row, value) in rows {
            world.table.put(row, None, Some(value)).unwrap();
        }
        world
    }
}

fn wanted_rows(wanted: &[(&str, Option<&str>)]) -> PutRows {
    let each = wanted.iter();
    PutRows(
        each.map(|(row, value)| ((*row).to_owned(), value.map(str::to_owned)))
            .collect(),
    )
}

impl Harness for World {
    type Snapshot = BTreeMap<String, String>;

    fn driver(&self) -> &dyn Driver {
        &self.driver
    }

    fn request(&self) -> Box<dyn Request> {
        Box::new(self.request.clone())
    }

    fn snapshot(&self, _exactly: bool) -> Self::Snapshot {
        self.table.rows().unwrap()
    }

    fn contents(&self, snapshot: &Self::Snapshot) -> BTreeSet<String> {
        snapshot.values().cloned().collect()
    }

    fn drift(&self) -> bool {
        let row = self.request.0.keys().next().unwrap();
        let now = self.table.rows().unwrap();
        let now = now.get(row).map(String::as_str);
        self.table.put(row, now, Some("somebody's")).is_ok()
    }

    fn fail_at_step(&self, at: Option<usize>, abandons: bool) {
        self.steps.fail_at(at, abandons);
    }

    fn steps_passed(&self) -> usize {
        self.steps.passed()
    }
}

#[test]
fn rows_that_come_change_and_go_conform() {
    conforms("new", || World::new(&[], &[("a", Some("1"))]));
    conforms("changed", || {
        World::new(&[("a", "1"), ("b", "2")], &[("a", Some("3"))])
    });
    conforms("gone", || {
        World::new(&[("a", "1"), ("b", "2")], &[("b", None)])
    });
    conforms("several", || {
        let wanted = [("a", Some("3")), ("b", None), ("c", Some("4"))];
        World::new(&[("a", "1"), ("b", "2"), ("z", "9")], &wanted)
    });
}

#[test]
fn one_row_of_several_goes_back_and_the_others_stay() {
    let world = World::new(&[("a", "1")], &[("a", Some("2")), ("b", Some("3"))]);
    let effect = applied(&world);
    let only = [Key::in_space("rows:table", &["a"]).unwrap()].into();
    let how = How {
        only: Some(&only),
        ..How::default()
    };
    let undo = world
        .driver
        .prepare_undo(OperationId::from_bits(9), &effect, how);
    let undo = undo.unwrap();
    assert_eq!(undo.prepared.targets.len(), 1);
    let kinds: Vec<_> = undo.outcomes.iter().map(|it| &it.kind).collect();
    assert_eq!(kinds, [&OutcomeKind::Restored]);
}

#[test]
fn a_table_that_somebody_else_writes_may_be_free_a_moment_later() {
    let world = World::new(&[], &[("a", Some("1"))]);
    let prepared = world.driver.prepare(
        OperationId::from_bits(1),
        &world.request,
        Strategy::Transaction,
    );
    let armed = world.arm(OperationId::from_bits(1), prepared.unwrap());
    let lock = world.table.lock().unwrap();
    let error = world.driver.apply(armed).unwrap_err();
    assert!(matches!(error.as_a(), Some(TableError::Busy)), "{error:?}");
    assert!(error.fault().may_pass() && !error.fault().is_half_done());
    drop(lock);
    assert_eq!(world.snapshot(true), BTreeMap::new());
}

/// Wants the work to stop once a row is done.
#[derive(Debug, Default)]
struct StopsAfterOne(AtomicU64);

impl Progress for StopsAfterOne {
    fn total(&self, items: u64) {
        assert_eq!(items, 3);
    }

    fn advance(&self, items: u64) {
        self.0.fetch_add(items, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

#[test]
fn rows_that_somebody_stops_are_put_back() {
    let wanted = [("a", Some("1")), ("b", Some("1")), ("c", None)];
    let world = World::new(&[("b", "0"), ("c", "0")], &wanted);
    let watch = world.driver.watch().unwrap();
    watch.join(&Watch::of(Arc::new(StopsAfterOne::default())));
    let id = OperationId::from_bits(1);
    let prepared = world
        .driver
        .prepare(id, &world.request, Strategy::Transaction);
    let before = world.snapshot(true);
    let error = world
        .driver
        .apply(world.arm(id, prepared.unwrap()))
        .unwrap_err();
    assert!(error.fault().is_stop() && !error.fault().is_half_done());
    assert_eq!(world.snapshot(true), before);
}
