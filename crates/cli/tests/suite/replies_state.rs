//! Replies about agents that go on, stages, and the project's state graph.

use crate::replies::Judge;
use crate::world::World;

pub(crate) fn going_on(judge: &mut Judge) {
    let world = World::new();
    judge.replies(&world, "task begin t", "task");
    judge.replies(&world, "write a.txt --text one --task t", "finished");
    judge.replies(&world, "checkpoint --step 1/2 --task t", "checkpoint");
    judge.replies(
        &world,
        "checkpoint --step 1/2 --if-due --task t",
        "checkpoint-not-due",
    );
    judge.replies(&world, "write b.txt --text one --task t", "finished");
    judge.replies(&world, "resume t -n", "resumed");
    judge.replies(&world, "resume t", "resumed");
    judge.replies(&world, "stage begin s --task t", "stage");
    judge.replies(&world, "write c.txt --text one --task t", "finished");
    judge.replies(&world, "stage list --task t", "stages");
    judge.replies(&world, "stage end s --failed --task t", "stage");
    assert!(!world.path("b.txt").exists() && !world.path("c.txt").exists());
}

pub(crate) fn in_the_graph(judge: &mut Judge) {
    let context = r#"{"meta": {"protocol_version": "1.0.0", "schema_version": "1.0.0", "created_at": "2026-01-01T00:00:00.000Z"},
        "context_id": "550e8400-e29b-41d4-a716-446655440000", "root": {"domain": "shop", "environment": "test"},
        "title": "the shop", "status": "active"}"#;
    let world = World::new().file("c.json", context);
    judge.replies(&world, "graph import c.json", "graph-updated");
    judge.replies(&world, "graph show", "graph");
    judge.replies(&world, "graph export", "graph-document");
    judge.replies(&world, "graph check", "graph-checked");
    judge.fails(&world, "graph restore --to nothing", "unknown-checkpoint");
    judge.replies(&world, "export --format mplp out", "evidence");
    judge.replies(&world, "verify --evidence out", "evidence");
}
