//! A hook that dies at any of its points when a file tool is done: what the tool wrote is recorded whole, judged, and can be
//! taken back.

use crate::world::World;

/// A look at the world after the write, that says yes or no.
fn watched_by(program: &str) -> String {
    format!("[[watch]]\nname = \"w\"\npaths = [\"a.conf\"]\ntries = 1\ncommand = [\"{program}\"]\n")
}

/// Writes by a file tool whose last hook gets a variable.
fn written(rules: &str, variable: (&str, &str)) -> World {
    let world = World::new();
    world.write("backout.toml", rules);
    world.write("a.conf", "old\n");
    let said = world.write_event("PreToolUse", "c1", "a.conf");
    assert!(world.hook("claude-code", &said).status.success());
    world.write("a.conf", "new\n");
    let said = world.write_event("PostToolUse", "c1", "a.conf").to_string();
    world.hook_with("claude-code", said.as_bytes(), &[variable]);
    world
}

/// Lets the hook die at every point; `may_stay` tells whether what the tool wrote may be there in the end.
fn at_every_point(rules: &str, may_stay: bool, wanted: &[&str]) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let at = log.path().display().to_string();
    let world = written(rules, ("BACKOUT_CRASH_LOG", &at));
    let expected = if may_stay { "new\n" } else { "old\n" };
    assert_eq!(world.read("a.conf"), expected);
    let points = std::fs::read_to_string(log.path()).unwrap();
    for name in wanted {
        assert!(points.lines().any(|it| it == *name), "{name}: {points}");
    }
    for (name, point) in points.lines().zip(1..) {
        let world = written(rules, ("BACKOUT_CRASH_AT", &point.to_string()));
        // The agent goes on; whoever comes next settles what the dead left.
        let said = world.write_event("PostToolUse", "c1", "a.conf");
        world.hook("claude-code", &said);
        world.backout(&["recover"]);
        let operations = world.operations();
        let call = operations.last().unwrap();
        let (status, now) = (call["status"].as_str().unwrap(), world.read("a.conf"));
        let told = format!("point {point}, {name}: {operations:?}");
        match status {
            "committed" if may_stay => assert_eq!(now, "new\n", "{told}"),
            "undone" if !may_stay => assert_eq!(now, "old\n", "{told}"),
            "interrupted" => assert!(["old\n", "new\n"].contains(&&*now), "{told}"),
            _ => panic!("{told}"),
        }
        if status != "undone" {
            world.backout(&["undo", call["id"].as_str().unwrap()]);
        }
        assert_eq!(world.read("a.conf"), "old\n", "{told}");
        world.backout(&["verify"]);
    }
}

#[test]
fn a_hook_that_dies_when_a_tool_is_done_loses_nothing() {
    at_every_point("", true, &["call.settled", "call.committed"]);
}

#[test]
fn a_hook_that_dies_while_a_watch_looks_loses_nothing() {
    let wanted = ["call.judged", "engine.watching", "engine.watched"];
    at_every_point(&watched_by("true"), true, &wanted);
}

#[test]
fn a_hook_that_dies_while_a_write_is_taken_back_loses_nothing() {
    let wanted = ["call.judged", "engine.undone"];
    at_every_point(&watched_by("false"), false, &wanted);
}
