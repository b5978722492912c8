//! A storm of kills on watched commands: each either happened and is recorded, or can be taken back whole.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::random::Random;
use crate::world::{Tree, World, said};

const WORKERS: u64 = 8;
const ROUNDS: usize = 8;

/// Changes a directory in many ways, and takes a moment for it.
const LINE: &str = "for i in 1 2 3 4 5 6 7 8; do echo $RANDOM > f$i; mv f$i g$i; rm -rf d$i; mkdir d$i; echo $RANDOM >> keep; \
                    cp -a keep d$i/; chmod 60$((RANDOM % 8)) keep; done; ln -f keep second; rm -f g1";

#[test]
fn killed_commands_are_kept_and_can_be_taken_back_and_the_others_stay() {
    let world = World::in_memory();
    let (kills, ends): (Vec<usize>, Vec<usize>) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS)
            .map(|number| {
                let world = &world;
                scope.spawn(move || work(world, number))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .unzip()
    });
    let (kills, ends) = (kills.iter().sum::<usize>(), ends.iter().sum::<usize>());
    eprintln!("{kills} killed, {ends} ended");
    assert!(kills > 0 && ends > 0);
    world.check_store();
}

fn work(world: &World, number: u64) -> (usize, usize) {
    let mut random = Random::new(number + 1);
    let own = format!("w{number}");
    world.file(&format!("{own}/keep"), "before\n");
    let tree = || Tree::of(&world.path(&own)).without_directory_times();
    let (mut kills, mut ends) = (0, 0);
    for _ in 0..ROUNDS {
        let before = tree();
        let line = format!("cd {own}; {LINE}");
        let child = world.spawn(&["run", "--", "bash", "-c", &line]);
        std::thread::sleep(Duration::from_millis(
            u64::try_from(random.below(120)).unwrap(),
        ));
        if random.below(3) > 0 {
            kill_watching(child.id());
        }
        // Whatever is left of the command holds its output, so this also waits for its end.
        let output = child.wait_with_output().unwrap();
        if output.status.success() {
            ends += 1;
            continue;
        }
        kills += 1;
        let recovered = world.run(&["recover"]);
        assert!(recovered.status.success(), "{}", said(&recovered));
        // Another worker's recovery may have been faster; what the command did is kept by either.
        let newest = || {
            let log = world.json(&["log", "-n", "100"]);
            let operations = log["operations"].as_array().unwrap().clone();
            let is_own = |op: &serde_json::Value| {
                let summary = op["summary"].as_str().unwrap();
                summary.starts_with("run ") && summary.contains(&format!("cd {own};"))
            };
            operations.into_iter().find(is_own)
        };
        super::behaviour::wait_for(|| newest().is_none_or(|op| op["status"] != "armed"));
        let interrupted = newest().filter(|op| op["status"] == "interrupted");
        let interrupted = interrupted.filter(|op| op["targets"] != serde_json::json!([]));
        if let Some(operation) = interrupted {
            let id = operation["id"].as_str().unwrap();
            let undone = world.run(&["undo", id]);
            if !undone.status.success() {
                // A process of the command lived on for a moment and wrote into a file that it had open.
                let told = said(&undone);
                assert!(told.contains("known to have been watched"), "{told}");
                world.ok(&["undo", id, "--force"]);
            }
        }
        let now = tree();
        assert!(
            now == before,
            "{}\n{}",
            said(&output),
            now.difference(&before)
        );
    }
    (kills, ends)
}

/// Kills the process that watches, if it is there already and still.
pub(super) fn kill_watching(front: u32) {
    let children = std::fs::read_to_string(format!("/proc/{front}/task/{front}/children"));
    let first = children
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok());
    if let Some(back) = first {
        let _gone = kill(Pid::from_raw(back), Signal::SIGKILL);
    }
}
