//! Stages: one that fails goes back to where it began, and what it left is looked at again.

use serde_json::json;

use crate::world::World;

fn begun() -> World {
    let world = World::new();
    world.file("app.toml", "port = 1\n");
    world.ok(&["--agent", "robin", "task", "begin", "t"]);
    mine(&world, &["write", "before", "--text", "before"]);
    mine(&world, &["stage", "begin", "build"]);
    mine(&world, &["set", "app.toml", "port", "2"]);
    mine(&world, &["write", "made", "--text", "made"]);
    world
}

fn mine(world: &World, words: &[&str]) -> String {
    world.ok(&[&["--agent", "robin", "--task", "t"], words].concat())
}

fn json(world: &World, words: &[&str]) -> serde_json::Value {
    world.json(&[&["--agent", "robin", "--task", "t"], words].concat())
}

#[test]
fn a_stage_that_fails_is_rolled_back_and_looked_at_again() {
    let world = begun();
    let plan = json(&world, &["stage", "end", "build", "--failed", "-n"]);
    assert_eq!(plan["steps"].as_array().unwrap().len(), 2);
    let told = mine(
        &world,
        &[
            "stage",
            "end",
            "build",
            "--failed",
            "--why",
            "the tests fail",
        ],
    );
    assert_eq!(
        told,
        "the stage build failed, and was rolled back: 2 operations taken back\n  looked again: 2 targets, as before by digest\n"
    );
    assert_eq!(world.read("app.toml"), "port = 1\n");
    assert!(!world.path("made").exists() && world.path("before").exists());
    let stage = &world.json(&["stage", "list"])["stages"][0];
    assert_eq!(stage["standing"], "rolled-back");
    assert_eq!(stage["trigger"]["kind"], "plan-failure");
    assert_eq!(
        stage["trigger"]["why"],
        "the stage build failed: the tests fail"
    );
    world.ok(&["redo", stage["act"].as_str().unwrap()]);
    assert_eq!(world.read("made"), "made");
    world.check_store();
}

#[test]
fn what_becomes_of_a_stage_is_said_by_its_end_its_beginning_or_the_rules() {
    let world = begun();
    world.file(
        "backout.toml",
        "[triggers]\nplan-failure = 'keep'\nuser-rejection = 'ask'\n",
    );
    let told = json(&world, &["stage", "end", "build", "--failed"]);
    assert_eq!(told["standing"], "kept");
    mine(&world, &["stage", "begin", "next"]);
    mine(&world, &["write", "more", "--text", "more"]);
    let rejected = ["--failed", "--trigger", "user-rejection"];
    let whose = ["--agent", "robin", "--task", "t", "stage", "end", "next"];
    let told = world.run(&[&whose[..], &rejected].concat());
    assert_eq!(told.status.code(), Some(1));
    let told = crate::world::said(&told);
    assert!(
        told.contains("the stage next failed, and waits for a decision"),
        "{told}"
    );
    assert!(world.path("more").exists());
    mine(&world, &["stage", "end", "next", "--failed", "--rollback"]);
    assert!(!world.path("more").exists());
    mine(
        &world,
        &["stage", "begin", "last", "--on-failure", "rollback"],
    );
    mine(&world, &["write", "more", "--text", "more"]);
    let told = json(&world, &["stage", "end", "last", "--failed"]);
    assert_eq!(told["standing"], "rolled-back");
    assert_eq!(told["not_as_before"], json!(null));
}

#[test]
fn resume_asks_the_rules_what_becomes_of_what_was_in_flight() {
    let world = begun();
    mine(&world, &["checkpoint", "c", "--step", "1/2"]);
    mine(&world, &["write", "after", "--text", "after"]);
    world.file("backout.toml", "[triggers]\ntransaction-abort = 'ask'\n");
    let asked = world.run(&["--json", "--agent", "robin", "--task", "t", "resume"]);
    assert_eq!(asked.status.code(), Some(1));
    let told: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!(told["waits"], true);
    assert_eq!(told["stays"][0]["why"], "waits");
    world.file("backout.toml", "[triggers]\ntransaction-abort = 'keep'\n");
    assert_eq!(json(&world, &["resume"])["stays"][0]["why"], "kept");
    assert!(world.path("after").exists());
    assert_eq!(
        json(&world, &["resume", "--rollback"])["reverted"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(!world.path("after").exists());
}

#[test]
fn a_stage_that_meets_somebody_elses_change_stays_open() {
    let world = begun();
    std::fs::write(world.path("made"), "a person's").unwrap();
    world.fails(
        1,
        &[
            "--agent", "robin", "--task", "t", "stage", "end", "build", "--failed",
        ],
    );
    assert_eq!(world.read("made"), "a person's");
    assert_eq!(world.read("app.toml"), "port = 2\n");
    assert_eq!(
        world.json(&["stage", "list"])["stages"][0]["standing"],
        "open"
    );
    let told = json(&world, &["stage", "end", "build", "--failed", "--force"]);
    assert_eq!(told["standing"], "rolled-back");
    assert_eq!(told["targets"], 2, "{told}");
    assert!(!world.path("made").exists());
    world.ok(&["redo", told["act"].as_str().unwrap()]);
    assert_eq!(world.read("made"), "a person's");
}

#[test]
fn a_stage_is_ended_once_and_from_the_inside_out() {
    let world = begun();
    mine(&world, &["stage", "begin", "inner"]);
    let words = ["--agent", "robin", "--task", "t", "stage"];
    let ask = |more: &[&str]| world.fails(1, &[&words, more].concat());
    assert!(ask(&["begin", "inner"]).contains("the stage `inner` has begun already"));
    assert!(ask(&["end", "build"]).contains("the stage `inner` began in it and is still open"));
    assert!(ask(&["end", "nothing"]).contains("there is no open stage `nothing`"));
    mine(&world, &["stage", "end", "build", "--failed"]);
    assert!(ask(&["end", "inner"]).contains("it is rolled back"));
    let told = world.fails(2, &["stage", "begin", "nobodys"]);
    assert!(told.contains("nobody said whose work it is"), "{told}");
}
