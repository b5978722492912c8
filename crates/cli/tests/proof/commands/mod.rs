//! Commands: what they do under `run` is the same as without, and an undo takes all of it back.

mod bad_days;
mod behaviour;
mod links;
mod programs;
mod scan;
mod stories;
mod storm;

use crate::world::{Tree, World, said};

/// Runs a shell line under `run`, undoes it, redoes it and undoes it again; the world must be as before, bit for bit,
/// and as after in between. Gives how the world was after the command.
pub(crate) fn there_and_back(world: &World, line: &str) -> Tree {
    let before = world.tree();
    let output = world.run(&["run", "--", "bash", "-c", line]);
    assert!(output.status.success(), "{line}: {}", said(&output));
    let after = world.tree();
    assert!(before != after, "{line}: it changed nothing");
    for _ in 0..2 {
        undone(world, line, &before);
        let output = world.run(&["redo"]);
        assert!(output.status.success(), "{line}: {}", said(&output));
        let (now, after) = (world.tree().without_directory_times(), after.clone());
        let after = after.without_directory_times();
        assert!(now == after, "{line}: redo\n{}", now.difference(&after));
    }
    undone(world, line, &before);
    world.check_store();
    after
}

fn undone(world: &World, line: &str, before: &Tree) {
    let output = world.run(&["undo"]);
    assert!(output.status.success(), "{line}: {}", said(&output));
    let now = world.tree();
    assert!(now == *before, "{line}: undo\n{}", now.difference(before));
}
