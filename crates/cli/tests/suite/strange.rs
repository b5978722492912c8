//! What another program recorded with a driver of its own.

use std::sync::Arc;

use backout_driver_example::{PutRows, Rows, Table};
use backout_engine::{Engine, Settings};

use crate::world::World;

/// A store in which another program wrote a row; and its short id.
fn with_a_row() -> (World, String) {
    let world = World::new();
    let mut engine =
        Engine::open(Settings::new(world.place("state")), backout_drivers::local).unwrap();
    let rows = Rows::new(Table::new(world.place("table")));
    engine.register(Arc::new(rows)).unwrap();
    let row = PutRows([("a".to_owned(), Some("one".to_owned()))].into());
    let finished = engine.write(&row).unwrap();
    (world, finished.id.unwrap().short())
}

#[test]
fn it_is_told_and_kept() {
    let (world, id) = with_a_row();
    let told = |ran: crate::world::Ran| ran.to_string().replace(&id, "ID");
    insta::assert_snapshot!(told(world.unmoved(["undo", &id])), @r"
    error: this program has no driver `rows`, so it cannot tell what there is to do
      why: nothing was changed; what the driver recorded stays kept
      next: use a program that has the driver `rows` on the same state directory
    [exit code 1]
    ");
    insta::assert_snapshot!(told(world.unmoved(["verify"])), @r"
    checked 3 records, 0 contents and 0 kept inodes: all as they must be
    1 operation of drivers that this program does not have; all stays kept
      ID  rows
    ");
    let gc = told(world.unmoved(["gc", "-n", "--keep", "0s", "--keep-at-least", "0s"]));
    assert!(
        gc.starts_with("no image is past its retention\n")
            && gc.contains("1 operation of drivers that this program does not have; all stays kept\n  ID  rows\n"),
        "{gc}"
    );
    assert_eq!(world.cli(["--json", "verify"]).code, 0);
}
