//! What another program recorded with a driver of its own.

use std::sync::Arc;

use backout_engine::{Engine, Settings};

use crate::toy::{Note, Toy};
use crate::world::World;

/// A store in which another program left a note; and its short id.
fn noted() -> (World, String) {
    let world = World::new();
    let mut engine = Engine::open(Settings::new(world.place("state"))).unwrap();
    engine.register(Arc::new(Toy::default())).unwrap();
    let note = Note {
        name: "a".to_owned(),
        text: "one".to_owned(),
    };
    let finished = engine.write(&note).unwrap();
    (world, finished.id.unwrap().short())
}

#[test]
fn it_is_told_and_kept() {
    let (world, id) = noted();
    let told = |ran: crate::world::Ran| ran.to_string().replace(&id, "ID");
    insta::assert_snapshot!(told(world.unmoved(["undo", &id])), @r"
    error: this program has no driver `toy`, so it cannot tell what there is to do
      why: nothing was changed; what the driver recorded stays kept
      next: use a program that has the driver `toy` on the same state directory
    [exit code 1]
    ");
    insta::assert_snapshot!(told(world.unmoved(["verify"])), @r"
    checked 3 records, 0 contents and 0 kept inodes: all as they must be
    1 operation of drivers that this program does not have; all stays kept
      ID  toy
    ");
    let gc = told(world.unmoved(["gc", "-n", "--keep", "0s", "--keep-at-least", "0s"]));
    assert!(
        gc.starts_with("no image is past its retention\n")
            && gc.contains("1 operation of drivers that this program does not have; all stays kept\n  ID  toy\n"),
        "{gc}"
    );
    assert_eq!(world.cli(["--json", "verify"]).code, 0);
}
