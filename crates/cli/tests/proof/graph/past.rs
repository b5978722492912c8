//! What the graph was: only what the journal can tell, and every update can be taken back.

use serde_json::json;

use super::*;
use crate::world::said;

fn context(title: &str) -> String {
    let meta = json!({"protocol_version": "1.0.0", "schema_version": "1.0.0"});
    let id = "11111111-1111-4111-8111-111111111111";
    let root = json!({"domain": "x", "environment": "dev"});
    json!({"meta": meta, "context_id": id, "root": root, "title": title, "status": "active"})
        .to_string()
}

fn import(world: &World, title: &str, expect: &str) -> String {
    let file = world.path("context.json");
    std::fs::write(&file, context(title)).unwrap();
    let output = world.run(&["graph", "import", "context.json", "--expect", expect]);
    assert!(output.status.success(), "{output:?}");
    said(&output)
}

#[test]
fn every_update_names_the_command_that_takes_it_back() {
    let world = World::new();
    import(&world, "one", "0");
    let told = import(&world, "two", "1");
    let back = told.split("`backout ").nth(1).unwrap();
    let back: Vec<&str> = back.split('`').next().unwrap().split(' ').collect();
    assert!(
        told.contains("take this back with `backout graph restore --at "),
        "{told}"
    );
    world.ok(&back);
    assert!(world.ok(&["graph", "show"]).contains("one"));
    // A part of the id is enough, as it is shown.
    let told = said(&world.run(&["graph", "remove", "11111111"]));
    assert!(told.contains("1 node taken out of the graph"), "{told}");
    assert!(world.ok(&["graph", "show"]).contains("the graph is empty"));
}

#[test]
fn a_place_that_the_journal_cannot_tell_of_is_refused() {
    let world = World::new();
    import(&world, "one", "0");
    import(&world, "two", "1");
    import(&world, "three", "2");
    for words in [
        &["graph", "show", "--at", "99999"][..],
        &["graph", "restore", "--at", "99999"],
        &["export", "--format", "mplp", "pack", "--from", "99999"],
    ] {
        let told = world.fails(1, words);
        assert!(told.contains("there is no record 99999"), "{told}");
        assert!(
            told.contains("the journal has not come so far; nothing was changed"),
            "{told}"
        );
        assert!(
            told.contains("see its records with `backout export`"),
            "{told}"
        );
    }
    world.ok(&["write", "f", "--text", "1"]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    world.ok(&[
        "gc",
        "--keep",
        "0s",
        "--keep-at-least",
        "0s",
        "--audit",
        "0s",
    ]);
    for words in [
        &["graph", "show", "--at", "2"][..],
        &["graph", "restore", "--at", "2"],
    ] {
        let told = world.fails(1, words);
        assert!(
            told.contains("nobody can tell how the graph was after record 2"),
            "{told}"
        );
        assert!(
            told.contains("`gc` moved those before it to `audit/`"),
            "{told}"
        );
        assert!(told.contains(" or a later one"), "{told}");
    }
    assert!(world.ok(&["graph", "show"]).contains("three"));
    // What came after the cut is told, and evidence of it holds.
    import(&world, "four", "3");
    world.ok(&["export", "--format", "mplp", "pack"]);
    world.ok(&["verify", "--evidence", "pack"]);
}

#[test]
fn a_step_is_told_to_be_a_part_of_its_plan() {
    let world = World::new();
    import(&world, "one", "0");
    let meta = json!({"protocol_version": "1.0.0", "schema_version": "1.0.0"});
    let step = "33333333-3333-4333-8333-333333333333";
    let plan = json!({"meta": meta, "plan_id": "22222222-2222-4222-8222-222222222222",
        "context_id": "11111111-1111-4111-8111-111111111111", "title": "P", "objective": "o", "status": "draft",
        "steps": [{"step_id": step, "description": "s", "status": "pending", "dependencies": []}]});
    std::fs::write(world.path("plan.json"), plan.to_string()).unwrap();
    world.ok(&["graph", "import", "plan.json"]);
    let told = world.fails(1, &["graph", "remove", step]);
    assert!(
        told.contains(&format!("{step} is a step of plan 2222")),
        "{told}"
    );
    assert!(
        told.contains("take the step out of its plan, and import the plan"),
        "{told}"
    );
}
