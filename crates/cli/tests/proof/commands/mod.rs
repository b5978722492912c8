//! Commands: what they do under `run` is the same as without, and an undo takes all of it back.

mod bad_days;
mod behaviour;
mod calls;
mod confined;
mod eyes;
mod full_log;
mod link_stories;
mod links;
mod names;
mod programs;
mod reads;
mod relay;
mod rights;
mod sandboxes;
mod scan;
mod served;
mod signals;
mod stories;
mod storm;
mod survivor_storm;
mod survivors;
mod witness;

pub(crate) use bad_days::kill_both;
pub(crate) use behaviour::wait_for;

use crate::world::{Tree, World, said};

/// Runs a shell line under `run`, undoes it, redoes it and undoes it again; the world must be as before, bit for bit,
/// and as after in between. Gives how the world was after the command.
pub(crate) fn there_and_back(world: &World, line: &str) -> Tree {
    let before = world.tree();
    let output = world.run(&["run", "--", "bash", "-c", line]);
    assert!(output.status.success(), "{line}: {}", said(&output));
    // Some programs leave a process behind that tidies up.
    behaviour::wait_for(|| world.json(&["status"])["unfinished"] == serde_json::json!([]));
    let id = newest_command(world);
    let after = world.tree();
    assert!(before != after, "{line}: it changed nothing");
    for _ in 0..2 {
        undone(world, line, &id, &before);
        let output = world.run(&["redo"]);
        assert!(output.status.success(), "{line}: {}", said(&output));
        let (now, after) = (world.tree().without_directory_times(), after.clone());
        let after = after.without_directory_times();
        assert!(now == after, "{line}: redo\n{}", now.difference(&after));
    }
    undone(world, line, &id, &before);
    world.check_store();
    after
}

/// The id of the newest command, not of what it left running.
fn newest_command(world: &World) -> String {
    let log = world.json(&["log", "-n", "20"]);
    let operations = log["operations"].as_array().unwrap();
    let is_it = |op: &&serde_json::Value| op["summary"].as_str().unwrap().starts_with("run ");
    let found = operations.iter().find(is_it).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

fn undone(world: &World, line: &str, id: &str, before: &Tree) {
    let output = world.run(&["undo", id, "--committed"]);
    assert!(output.status.success(), "{line}: {}", said(&output));
    let now = world.tree();
    assert!(now == *before, "{line}: undo\n{}", now.difference(before));
}
