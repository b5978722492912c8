//! Two processes and one name: whoever is first, an undo brings back what was there before both.
//!
//! The racer is a program of ours (`racer.c`). It does two things to each of many names at the same moment, with both
//! processes the watcher's own user, one of them another, or both, with and without load. `BACKOUT_RACES=N` races N rounds
//! of each.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Child, Command};

use super::{USER, attacker};
use crate::world::{World, said};

/// Rounds of each story in `cargo xtask test`.
const ROUNDS: usize = 60;

/// As many as this take every processor that a test machine has, or share it.
const BURNERS: usize = 3;

#[test]
fn two_processes_on_one_name_lose_nothing() {
    race(false);
}

#[test]
fn two_processes_on_one_name_lose_nothing_under_load() {
    race(true);
}

fn race(is_loaded: bool) {
    let helper = World::in_memory();
    let Some(racer) = attacker(&helper, "racer.c") else {
        return;
    };
    fs::set_permissions(helper.scratch(""), fs::Permissions::from_mode(0o755)).unwrap();
    let rounds = std::env::var("BACKOUT_RACES").map_or(ROUNDS, |text| text.parse().unwrap());
    let listed = Command::new(&racer).arg("list").output().unwrap();
    let stories = String::from_utf8(listed.stdout).unwrap();
    let who: &[&str] = if rustix::process::geteuid().is_root() {
        &["none", "second", "both"]
    } else {
        &["none"]
    };
    let load = Load::new(if is_loaded { BURNERS } else { 0 });
    let (mut count, mut wrong) = (0, Vec::new());
    for story in stories.lines() {
        for who in who {
            count += rounds;
            if let Err(why) = told(&racer, story, rounds, who) {
                wrong.push(format!("{story}, {who}: {why}"));
            }
        }
    }
    drop(load);
    eprintln!("{count} rounds");
    assert!(wrong.is_empty(), "{}", wrong.join("\n----\n"));
}

fn told(racer: &Path, story: &str, rounds: usize, who: &str) -> Result<(), String> {
    let world = World::in_memory();
    for path in [world.scratch(""), world.path("")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    for round in 0..rounds {
        world.file(&format!("f{round}"), &format!("first {round}\n"));
        world.file(&format!("g{round}"), &format!("second {round}\n"));
        fs::create_dir_all(world.path(&format!("d{round}/y"))).unwrap();
        for name in ["f#", "g#", "d#", "d#/y"].map(|name| name.replace('#', &round.to_string())) {
            if who != "none" {
                chown(world.path(&name), Some(USER), Some(USER)).unwrap();
            }
        }
    }
    let before = world.tree();
    let racer = racer.to_str().unwrap();
    let output = world.run(&["run", "--", racer, story, &rounds.to_string(), who]);
    if !output.status.success() {
        return Err(said(&output));
    }
    let undo = world.run(&["undo"]);
    let now = world.tree();
    if undo.status.success() && now == before {
        return world.check();
    }
    let lines = now.difference(&before);
    let lines: Vec<&str> = lines.lines().take(12).collect();
    let told = said(&undo);
    let told: Vec<&str> = told.lines().take(12).collect();
    Err(format!("{}\n{}", lines.join("\n"), told.join("\n")))
}

/// Processes that do nothing but use the processor, at the lowest priority.
struct Load(Vec<Child>);

impl Load {
    fn new(count: usize) -> Self {
        let burn = |_| {
            let line = ["-n", "19", "sh", "-c", "while :; do :; done"];
            Command::new("nice").args(line).spawn().unwrap()
        };
        Self((0..count).map(burn).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
