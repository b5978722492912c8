//! Stories of plans over keys and rows in which newer steps go first: what somebody did in between is foreseen.

use rusqlite::Connection;

use super::json;
use crate::world::{World, said};

/// The plan refuses for that reason, and so does the undo; the plan by force foretells what force does.
#[track_caller]
fn is_foreseen(world: &World, id: &str, why: &str) {
    let plan = world.run(&["undo", id, "-n"]);
    assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
    assert!(said(&plan).contains(why), "{}", said(&plan));
    world.fails(1, &["undo", id]);
    let plan = world.ok(&["undo", id, "--force", "-n"]);
    assert!(plan.contains("will be overwritten"), "{plan}");
}

#[track_caller]
fn done(world: &World, words: &[&str]) -> String {
    let told = json(world, 0, words);
    told["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{told}"))
        .to_owned()
}

#[test]
fn what_somebody_did_to_a_key_between_two_steps_is_foreseen() {
    for (person, why) in [
        ("3", "somebody else changed it before"),
        ("", "somebody else removed it before"),
    ] {
        let world = World::new();
        world.file("c.toml", "[s]\na = 1\nb = 1\n");
        let first = done(&world, &["set", "c.toml", "s.a", "2"]);
        let line = if person.is_empty() {
            String::new()
        } else {
            format!("a = {person}\n")
        };
        world.file("c.toml", &format!("[s]\n{line}b = 1\n"));
        world.ok(&["set", "c.toml", "s.a", "4"]);
        is_foreseen(&world, &first, why);
        world.ok(&["undo", &first, "--force"]);
        assert!(
            world.read("c.toml").contains("a = 1\n"),
            "{}",
            world.read("c.toml")
        );
        // The way back meets the same.
        world.ok(&["redo"]);
        assert!(
            world.read("c.toml").contains("a = 4"),
            "{}",
            world.read("c.toml")
        );
        let plan = world.run(&["undo", "-n"]);
        let act = world.run(&["undo"]);
        assert_eq!(
            plan.status.code(),
            act.status.code(),
            "{}\n{}",
            said(&plan),
            said(&act)
        );
        world.check_store();
    }
}

#[test]
fn a_key_that_nobody_touched_between_two_steps_is_foreseen_as_before() {
    let world = World::new();
    world.file("c.toml", "[s]\na = 1\nb = 1\n");
    let first = done(&world, &["set", "c.toml", "s.a", "2"]);
    world.file("c.toml", "[s]\na = 2\nb = 9\n");
    world.ok(&["set", "c.toml", "s.a", "4"]);
    world.ok(&["undo", &first, "-n"]);
    world.ok(&["undo", &first]);
    assert_eq!(world.read("c.toml"), "[s]\na = 1\nb = 9\n");
}

#[test]
fn what_somebody_did_to_a_row_between_two_steps_is_foreseen() {
    let world = World::new();
    let shop = Connection::open(world.path("s.db")).unwrap();
    shop.execute_batch(
        "create table t(id integer primary key, v, w); insert into t values(1, 1, 1), (2, 1, 1)",
    )
    .unwrap();
    let sql = |line: &str| done(&world, &["sql", "--db", "s.db", line]);
    let first = sql("update t set v = 2");
    shop.execute_batch("update t set v = 3 where id = 1")
        .unwrap();
    sql("update t set v = 4");
    is_foreseen(&world, &first, "somebody else changed it before");
    // Another column is another matter.
    let world = World::new();
    let shop = Connection::open(world.path("s.db")).unwrap();
    shop.execute_batch(
        "create table t(id integer primary key, v, w); insert into t values(1, 1, 1)",
    )
    .unwrap();
    let first = done(&world, &["sql", "--db", "s.db", "update t set v = 2"]);
    done(&world, &["sql", "--db", "s.db", "update t set w = 2"]);
    let plan = world.run(&["undo", &first, "-n"]);
    let act = world.run(&["undo", &first]);
    assert_eq!(
        plan.status.code(),
        act.status.code(),
        "{}\n{}",
        said(&plan),
        said(&act)
    );
}
