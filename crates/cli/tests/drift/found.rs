//! All that others change is found, and nothing else, by reads, by looks, and by both.

use std::collections::BTreeMap;

use crate::meddler::{meddle, record};
use crate::random::Random;
use crate::world::{Drifted, World};

/// How many known sets of changes are tried; `BACKOUT_DRIFT_SEEDS` says otherwise.
fn seeds() -> u64 {
    let asked = std::env::var("BACKOUT_DRIFT_SEEDS").ok();
    asked.and_then(|it| it.parse().ok()).unwrap_or(4)
}

fn as_found(open: &[Drifted]) -> BTreeMap<String, String> {
    let each = open.iter();
    each.map(|it| (it.subject.clone(), it.kind.clone()))
        .collect()
}

/// Reads every operation, as a person who walks through the log does.
fn read_all(world: &World) {
    let log = world.json(&["log"]);
    for operation in log["operations"].as_array().unwrap() {
        let id = operation["id"].as_str().unwrap();
        world.run(&["show", id]);
        world.run(&["diff", id]);
        world.run(&["undo", "-n", id]);
    }
}

#[test]
fn all_changes_of_others_are_found_and_none_is_invented() {
    for seed in 0..seeds() {
        let world = World::new();
        record(&world);
        assert_eq!(world.sweep(), [], "seed {seed}: nobody else was there");
        let expected = meddle(&world, seed);
        let found = world.sweep();
        assert_eq!(as_found(&found), expected, "seed {seed}");
        let notes = world.notes();
        world.sweep();
        read_all(&world);
        assert_eq!(as_found(&world.open()), expected, "seed {seed}");
        assert_eq!(world.notes(), notes, "seed {seed}: noted twice");
    }
}

#[test]
fn reads_and_plans_find_what_they_come_upon() {
    for seed in 0..seeds().div_ceil(2) {
        let world = World::new();
        record(&world);
        read_all(&world);
        assert_eq!(world.open(), [], "seed {seed}: nobody else was there");
        let expected = meddle(&world, seed);
        read_all(&world);
        assert_eq!(as_found(&world.open()), expected, "seed {seed}");
        let notes = world.notes();
        assert_eq!(as_found(&world.sweep()), expected, "seed {seed}: by both");
        assert_eq!(world.notes(), notes, "seed {seed}: noted twice");
    }
}

#[test]
fn what_we_do_ourselves_is_no_drift() {
    for seed in 0..seeds() {
        let world = World::new();
        let mut random = Random::new(seed + 100);
        world.put("d/x", "one\n");
        world.put("e", "two\n");
        for number in 0..14 {
            let name = *random.pick(&["d/x", "d/y", "e", "f", "g/h/i"]);
            let other = *random.pick(&["d/z", "k", "g/l"]);
            let text = format!("{number}\n");
            let script = format!("echo {number} >> {name}.log; chmod 600 {name} 2>/dev/null; true");
            let words: Vec<&str> = match random.below(10) {
                0..=2 => vec!["write", "-p", name, "--text", &text],
                3 => vec!["rm", "-r", name],
                4 => vec!["mv", name, other],
                5 => vec!["cp", "-r", "d", other],
                6 => vec!["chmod", "600", name],
                7 => vec!["undo"],
                8 => vec!["redo"],
                _ => vec!["run", "--", "sh", "-c", &script],
            };
            // Some of these are refused, which is as good.
            world.run(&words);
            assert_eq!(world.sweep(), [], "seed {seed}, after {words:?}");
        }
    }
}

#[test]
fn what_is_changed_back_is_no_drift_and_goes_away_by_itself() {
    let world = World::new();
    world.write("a", "one\n");
    world.put("a", "two\n");
    world.put("a", "one\n");
    assert_eq!(world.sweep(), []);
    assert_eq!(world.notes(), 0);
    world.put("a", "two\n");
    assert_eq!(world.sweep().len(), 1);
    world.put("a", "one\n");
    assert_eq!(world.open(), []);
    let history = world.json(&["drift", "--all"]);
    assert_eq!(history["history"][0]["how"], "went-away");
    let words = "nothing was noticed; look with `backout watch --once`";
    assert!(world.does(&["drift"]).contains(words));
    assert!(world.does(&["drift", "a"]).contains("nothing has drifted"));
    assert!(
        world
            .does(&["drift", "--all"])
            .contains("as recorded again")
    );
}

#[test]
fn a_whole_file_and_its_keys_are_told_once() {
    let world = World::new();
    world.write("app.toml", "[server]\nport = 1\nhost = \"a\"\n");
    world.does(&["set", "app.toml", "server.port", "2"]);
    assert_eq!(world.sweep(), []);
    world.put("app.toml", "[server]\nport = 2\nhost = \"other\"\n");
    let found = world.sweep();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].subject, world.path("app.toml").to_str().unwrap());
}

#[test]
fn a_rebuilt_directory_is_one_drift_with_a_count() {
    let world = World::new();
    let build = "mkdir -p target/deps && for n in $(seq 300); do echo $n > target/deps/$n; done";
    world.does(&["run", "--", "sh", "-c", build]);
    world.write("README", "mine\n");
    assert_eq!(world.sweep(), []);
    for number in 1..=300 {
        world.put(&format!("target/deps/{number}"), "rebuilt\n");
    }
    world.put("README", "theirs\n");
    let found = world.sweep();
    assert_eq!(found.len(), 2, "{found:?}");
    let rebuilt = &found[1];
    assert_eq!(rebuilt.subject, world.path("target/deps").to_str().unwrap());
    assert_eq!((rebuilt.kind.as_str(), rebuilt.count), ("several", 300));
    assert_eq!(world.notes(), 2);
    world.put("target/deps/7", "7\n");
    world.sweep();
    assert_eq!(world.notes(), 3, "the same directory with another count");
}

#[test]
fn a_directory_that_goes_takes_along_what_was_in_it() {
    let world = World::new();
    world.write("d/a", "1");
    world.write("d/b", "2");
    std::fs::remove_dir_all(world.path("d")).unwrap();
    let found = world.sweep();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind.as_str(), found[0].count), ("gone", 3));
}
