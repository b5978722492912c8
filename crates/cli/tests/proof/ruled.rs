//! Worlds with a `backout.toml`, and what the program answers in them.

use crate::trust::json;
use crate::world::World;

/// A world with these rules.
pub(crate) fn ruled(rules: &str) -> World {
    let world = World::in_memory();
    world.file("backout.toml", rules);
    world
}

/// Something that must be refused. Gives the code of the answer.
#[track_caller]
pub(crate) fn code(world: &World, arguments: &[&str]) -> String {
    let report = json(world, 1, arguments);
    report["code"].as_str().unwrap().to_owned()
}

/// A write that must wait. Gives its id.
#[track_caller]
pub(crate) fn waits(world: &World, arguments: &[&str]) -> String {
    let report = json(world, 1, arguments);
    assert_eq!(report["code"], "waits", "{arguments:?}: {report}");
    report["operation"].as_str().unwrap()[..8].to_owned()
}
