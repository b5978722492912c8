//! Many processes at once: nothing interleaved, nothing lost.

use std::collections::BTreeSet;
use std::fs;

use crate::world::{World, said};

#[test]
fn two_processes_on_one_target_take_turns() {
    let world = World::new().with_project();
    let rounds = 20;
    for round in 0..rounds {
        let texts = [
            format!("a{round}\n").repeat(500),
            format!("b{round}\n").repeat(500),
        ];
        let children = texts
            .each_ref()
            .map(|text| world.spawn(&["write", "app.toml", "--text", text]));
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
        }
        let content = world.read("app.toml");
        assert!(texts.contains(&content), "one of the two, whole");
    }
    // Both are in the journal, the second was built on the first, and the chain leads back to the beginning.
    assert_eq!(world.operations().len(), rounds * 2);
    for _ in 0..rounds * 2 {
        world.ok(&["undo"]);
    }
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    world.check_store();
}

#[test]
fn eight_processes_on_one_store_lose_nothing() {
    let world = World::new();
    let (processes, each) = (8, 12);
    std::thread::scope(|scope| {
        for process in 0..processes {
            let world = &world;
            scope.spawn(move || {
                for number in 0..each {
                    let name = format!("file-{process}-{number}");
                    world.ok(&["write", &name, "--text", &name]);
                    world.ok(&["write", "shared", "--text", &name]);
                }
            });
        }
    });
    let mut lsns = BTreeSet::new();
    let log = world.json(&["log", "-n", "1000"]);
    for operation in log["operations"].as_array().unwrap() {
        assert_eq!(operation["status"], "committed");
        assert!(
            lsns.insert(operation["lsn"].as_u64().unwrap()),
            "every place is used once"
        );
    }
    assert_eq!(lsns.len(), processes * each * 2);
    for process in 0..processes {
        for number in 0..each {
            let name = format!("file-{process}-{number}");
            assert_eq!(world.read(&name), name);
        }
    }
    world.check_store();
}

/// One that looked for the format just before another made the tables called the journal damaged.
#[test]
fn a_store_that_many_open_first_is_whole_for_all() {
    for _ in 0..25 {
        let world = World::in_memory();
        let names: Vec<_> = (0..8).map(|number| format!("file-{number}")).collect();
        let children: Vec<_> = names
            .iter()
            .map(|name| world.spawn(&["write", name, "--text", name]))
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
        }
    }
}

#[test]
fn two_undos_at_once_undo_once() {
    for _ in 0..10 {
        let world = World::new().with_project();
        world.ok(&["write", "app.toml", "--text", "1\n"]);
        let children = [world.spawn(&["undo", "@"]), world.spawn(&["undo", "@"])];
        let codes: Vec<_> = children
            .into_iter()
            .map(|child| child.wait_with_output().unwrap())
            .collect();
        let done = codes
            .iter()
            .filter(|output| output.status.success())
            .count();
        assert_eq!(done, 1, "{}\n{}", said(&codes[0]), said(&codes[1]));
        assert_eq!(world.read("app.toml"), "port = 8080\n");
        world.check_store();
    }
}

#[test]
fn a_killed_process_holds_nobody_up() {
    let world = World::new().with_project();
    let mut child = world
        .command(&["write", "app.toml"]) // waits for its input with nothing leased, or dies with a lease
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    world.ok(&["write", "app.toml", "--text", "free\n"]);
    assert_eq!(world.read("app.toml"), "free\n");
    assert!(
        fs::read_dir(world.state().join("staging"))
            .unwrap()
            .next()
            .is_none()
    );
}
