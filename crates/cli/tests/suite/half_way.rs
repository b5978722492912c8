//! An undo, a redo or a rollback of several operations that dies between two of them: what was done and what was not is said,
//! with the ways on and back.

use serde_json::Value;

use crate::world::World;

/// Three files, each written once.
fn three() -> (World, [String; 3]) {
    let world = World::new().file("a", "0").file("b", "0").file("c", "0");
    let ids = ["a", "b", "c"].map(|name| {
        world.did(["write", name, "--text", "1"]);
        world.newest_id()
    });
    (world, ids)
}

fn texts(world: &World) -> String {
    ["a", "b", "c"].map(|name| world.text(name)).concat()
}

fn json<const N: usize>(world: &World, arguments: [&str; N]) -> Value {
    serde_json::from_str(&world.cli(arguments).out).unwrap()
}

/// What `status` says was left half-way.
fn left(world: &World) -> Vec<Value> {
    let status = json(world, ["--json", "status"]);
    let left = status.pointer("/acts_left").and_then(Value::as_array);
    left.unwrap().clone()
}

#[test]
fn an_undo_that_died_between_two_operations_is_told_once_and_shown_until_it_is_done() {
    let (world, [a, b, c]) = three();
    world.dies("engine.undone", ["undo", &a, &b, &c]);
    assert_eq!(texts(&world), "110");
    insta::assert_snapshot!(world.cli(["write", "other", "--text", "x"]), @"
    wrote other  (1715609f, undo with `backout undo 1715609f`)
    note: the undo of 3 operations was left half-way: its process died after 1 of them. Go on with `backout undo 3c6ef372 9e3779b9`, take it back with `backout redo 78dde6e5`, or keep it so with `backout recover --keep 78dde6e5`
    ");
    insta::assert_snapshot!(world.cli(["write", "other", "--text", "y"]), @"wrote other  (b54cda58, undo with `backout undo b54cda58`)");
    let status = world.cli(["status"]).out;
    assert!(
        status.starts_with("left half-way:\n  the undo of 3 operations was left half-way: "),
        "{status}"
    );
    // The command that it names does the rest, and then nothing is left.
    let names = &left(&world)[0]["rest"];
    let names = [0, 1].map(|index| names[index].as_str().unwrap().to_owned());
    world.did(["undo", &names[0], &names[1]]);
    assert_eq!(texts(&world), "000");
    assert!(left(&world).is_empty());
}

#[test]
fn an_undo_that_died_between_two_operations_is_taken_back_by_the_name_that_is_given() {
    let (world, [a, b, c]) = three();
    world.dies("engine.undone#2", ["undo", &a, &b, &c]);
    assert_eq!(texts(&world), "100");
    let act = left(&world)[0]["act"].as_str().unwrap().to_owned();
    world.did(["redo", &act]);
    assert_eq!(texts(&world), "111");
    assert!(left(&world).is_empty());
}

#[test]
fn an_undo_that_died_between_two_operations_is_kept_so() {
    let (world, [a, b, c]) = three();
    world.dies("engine.undone", ["undo", &a, &b, &c]);
    let act = left(&world)[0]["act"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(world.cli(["recover"]), @"
    the undo of 3 operations was left half-way: its process died after 1 of them. Go on with `backout undo 3c6ef372 9e3779b9`, take it back with `backout redo 78dde6e5`, or keep it so with `backout recover --keep 78dde6e5`
    ");
    insta::assert_snapshot!(world.cli(["recover", "--keep", &act]), @"
    78dde6e5  undo of write c  now committed
      what is there is kept; undo with `backout undo 78dde6e5`
    ");
    assert_eq!(texts(&world), "110");
    assert!(left(&world).is_empty());
    assert_eq!(world.cli(["recover", "--keep", &act]).code, 1);
}

#[test]
fn a_chain_that_was_left_half_way_goes_on_by_its_first_operation() {
    let world = World::new().file("f", "0");
    for text in ["1", "2", "3"] {
        world.did(["write", "f", "--text", text]);
    }
    let first = json(&world, ["--json", "log"])["operations"][2]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    world.dies("engine.undone", ["undo", &first]);
    assert_eq!(world.text("f"), "2");
    assert_eq!(left(&world)[0]["rest"], serde_json::json!([first]));
    world.did(["undo", &first]);
    assert_eq!(world.text("f"), "0");
    assert!(left(&world).is_empty());
}

#[test]
fn a_redo_that_died_between_two_operations_is_told() {
    let (world, [a, b, c]) = three();
    world.did(["undo", &a, &b, &c]);
    world.dies("engine.undone", ["redo"]);
    assert_eq!(texts(&world), "100");
    insta::assert_snapshot!(world.cli(["write", "other", "--text", "x"]), @"
    wrote other  (f1bbcdcb, undo with `backout undo f1bbcdcb`)
    note: the redo of 3 operations was left half-way: its process died after 1 of them. Go on with `backout redo 3c6ef372 daa66d2c`, take it back with `backout undo 53845412`, or keep it so with `backout recover --keep 53845412`
    ");
    world.did(["redo", &b, &c]);
    assert_eq!(texts(&world), "111");
    assert!(left(&world).is_empty());
}

#[test]
fn a_rollback_that_died_between_two_operations_goes_on_as_a_rollback() {
    let world = World::new().file("a", "0").file("b", "0");
    world.did(["task", "begin", "t"]);
    world.did(["--task", "t", "write", "a", "--text", "1"]);
    world.did(["--task", "t", "write", "b", "--text", "1"]);
    world.dies("engine.undone", ["rollback", "t"]);
    insta::assert_snapshot!(world.cli(["write", "other", "--text", "x"]), @"
    wrote other  (78dde6e5, undo with `backout undo 78dde6e5`)
    note: the rollback of task t was left half-way: its process died after 1 of 2 operations. Go on with `backout rollback t`, take it back with `backout redo daa66d2c`, or keep it so with `backout recover --keep daa66d2c`
    ");
    // And again, when all is taken back and only the task is not ended.
    world.dies("engine.undone", ["rollback", "t"]);
    assert_eq!((world.text("a"), world.text("b")), ("0".into(), "0".into()));
    insta::assert_snapshot!(world.cli(["write", "other", "--text", "y"]), @"
    wrote other  (b54cda58, undo with `backout undo b54cda58`)
    note: the rollback of task t took back all of it, and its process died before the task was ended. End it with `backout rollback t`, take it back with `backout redo 1715609f`, or keep it so with `backout recover --keep 1715609f`
    ");
    world.did(["rollback", "t"]);
    assert!(left(&world).is_empty());
    assert_eq!(
        json(&world, ["--json", "task", "list"])["tasks"][0]["status"],
        "rolled-back"
    );
}

#[test]
fn a_part_that_was_left_half_way_goes_on_with_the_same_paths() {
    let world = World::new().file("a", "0").file("b", "0").file("c", "0");
    for text in ["1", "2"] {
        let line = format!("for f in a b c; do printf {text} > $f; done");
        world.did(["run", "--", "sh", "-c", &line]);
    }
    world.dies("engine.undone", ["undo", "@", "@-1", "--exclude", "c"]);
    assert_eq!(texts(&world), "112");
    insta::assert_snapshot!(world.cli(["write", "other", "--text", "x"]), @"
    wrote other  (78dde6e5, undo with `backout undo 78dde6e5`)
    note: the undo of 2 operations was left half-way: its process died after 1 of them. Go on with `backout undo 9e3779b9` and the paths that were chosen (`--only`), take it back with `backout redo daa66d2c`, or keep it so with `backout recover --keep daa66d2c`
    ");
    let rest = left(&world)[0]["rest"][0].as_str().unwrap().to_owned();
    world.did(["undo", &rest, "--exclude", "c"]);
    assert_eq!(texts(&world), "002");
    assert!(left(&world).is_empty());
}

#[test]
fn of_many_operations_that_are_left_some_are_named() {
    let world = World::new();
    world.did(["checkpoint", "begin"]);
    let names: Vec<String> = (0..12).map(|number| format!("f{number}")).collect();
    for name in &names {
        world.did(["write", name, "--text", "1"]);
    }
    world.dies("engine.undone", ["rollback", "--to", "begin"]);
    insta::assert_snapshot!(world.cli(["write", "other", "--text", "x"]), @"
    wrote other  (a708a824, undo with `backout undo a708a824`)
    note: the undo of 12 operations was left half-way: its process died after 1 of them. Go on with `backout undo cc623af8 2e2ac13e 8ff34785 f1bbcdcb 53845412 b54cda58 1715609f 78dde6e5` and 3 more that `backout status --json` names, take it back with `backout redo 08d12e6b`, or keep it so with `backout recover --keep 08d12e6b`
    ");
}

#[test]
fn an_act_that_ended_leaves_nothing_to_decide() {
    let (world, [a, b, c]) = three();
    world.did(["undo", &a, &b, &c]);
    world.did(["redo"]);
    world.put("b", "theirs");
    assert_eq!(world.cli(["undo", &a, &b, &c, "--partial"]).code, 1);
    assert_eq!(texts(&world), "0theirs0");
    assert!(left(&world).is_empty());
    let next = world.cli(["write", "other", "--text", "x"]);
    assert!(!next.to_string().contains("half-way"), "{next}");
}
