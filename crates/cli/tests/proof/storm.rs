//! A storm of SIGKILLs: sixteen processes at a time on one store, each killed or not at a random moment, and afterwards
//! every acknowledged operation is accounted for.
//!
//! Every worker has a file of its own and knows what may be in it: what was acknowledged last, or what a killed
//! process may have got done after that. All of them also write one shared file, remove trees, collect garbage and
//! recover, while others work. `BACKOUT_STORM_ROUNDS` makes it longer; `cargo xtask crash --storm` runs for minutes.

use std::collections::BTreeSet;
use std::process::{Child, Output};
use std::time::Duration;

use crate::random::Random;
use crate::world::{World, said};

const WORKERS: usize = 16;
/// So many commands are started by each worker.
const ROUNDS: usize = 12;

#[test]
fn every_acknowledged_operation_is_accounted_for() {
    let rounds = std::env::var("BACKOUT_STORM_ROUNDS").map_or(ROUNDS, |it| it.parse().unwrap());
    let world = World::in_memory();
    world.file("shared", "nobody\n");
    world.ok(&["checkpoint", "calm"]);
    let before = world.tree().without_directory_times();
    let workers: Vec<Worker<'_>> = std::thread::scope(|scope| {
        let world = &world;
        let threads = (0..WORKERS).map(|number| {
            scope.spawn(move || {
                let mut worker = Worker::new(world, number);
                for round in 0..rounds {
                    worker.step(round);
                }
                worker
            })
        });
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.collect()
    });
    world.ok(&["recover"]);
    world.check_store();
    let (kills, acknowledged) = account(&world, &workers);
    eprintln!("{kills} killed, {acknowledged} acknowledged");
    assert!(kills > 0 && acknowledged > 0);
    world.ok(&["rollback", "--to", "calm", "--committed"]);
    let after = world.tree().without_directory_times();
    assert_eq!(after, before, "{}", after.difference(&before));
    world.check_store();
}

/// Checks every worker's file and every acknowledged operation; gives the numbers of kills and of acknowledgements.
fn account(world: &World, workers: &[Worker<'_>]) -> (usize, usize) {
    let log = world.json(&["log", "-n", "1000000"]);
    let statuses: std::collections::HashMap<&str, &str> = log["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["id"].as_str().unwrap(), it["status"].as_str().unwrap()))
        .collect();
    for worker in workers {
        let now = worker.now();
        assert!(
            worker.possible.contains(&now),
            "{} holds {now:?}, not one of {:?}",
            worker.name,
            worker.possible
        );
        for id in &worker.acknowledged {
            let status = statuses.get(id.as_str());
            assert!(
                matches!(status, Some(&"committed" | &"undone")),
                "acknowledged {id} is {status:?}"
            );
        }
    }
    let shared = world.read("shared");
    assert!(
        shared.ends_with('\n') && shared.lines().count() == 1,
        "the shared file is whole: {shared:?}"
    );
    let kills = workers.iter().map(|worker| worker.kills).sum();
    let acknowledged = workers.iter().map(|worker| worker.acknowledged.len()).sum();
    (kills, acknowledged)
}

/// What a file holds; none if it is not there.
type Held = Option<String>;

struct Worker<'w> {
    world: &'w World,
    name: String,
    random: Random,
    /// What may be in its own file.
    possible: BTreeSet<Held>,
    /// Its last write, if that was acknowledged and is the newest thing that happened to the file: id, before, after.
    last: Option<(String, Held, Held)>,
    acknowledged: Vec<String>,
    kills: usize,
}

/// How a command ended.
enum End {
    Done(serde_json::Value),
    Refused(String),
    Killed,
}

impl<'w> Worker<'w> {
    fn new(world: &'w World, number: usize) -> Self {
        Self {
            world,
            name: format!("own-{number}"),
            random: Random::new(u64::try_from(number).unwrap() + 100),
            possible: BTreeSet::from([None]),
            last: None,
            acknowledged: Vec::new(),
            kills: 0,
        }
    }

    fn now(&self) -> Held {
        let path = self.world.path(&self.name);
        path.exists().then(|| self.world.read(&self.name))
    }

    fn step(&mut self, round: usize) {
        let text = format!("{} in round {round}\n", self.name);
        match self.random.below(10) {
            0..=4 => self.write(&text),
            5 | 6 => self.undo(),
            7 => {
                let shared = self.end(&["write", "shared", "--text", &text]);
                self.note(&shared);
            }
            8 => {
                let tree = format!("tree-{}/{round}/file", self.name);
                let made = self.end(&["write", "-p", &tree, "--text", &text]);
                self.note(&made);
                let gone = self.end(&["rm", "-r", &format!("tree-{}", self.name)]);
                self.note(&gone);
            }
            _ => {
                let chore = *self.random.pick(&["gc", "recover"]);
                self.end(&[chore]);
            }
        }
    }

    fn write(&mut self, text: &str) {
        let name = self.name.clone();
        // What a big file holds is parked, what a small one holds is copied.
        let text = if self.random.below(4) == 0 {
            text.repeat(4000)
        } else {
            text.to_owned()
        };
        let before = self.possible.iter().next().cloned().unwrap_or_default();
        let is_certain = self.possible.len() == 1;
        match self.end(&["write", &name, "--text", &text]) {
            End::Done(reply) => {
                let id = reply["id"].as_str().map(ToOwned::to_owned);
                self.acknowledged.extend(id.clone());
                self.possible = BTreeSet::from([Some(text.clone())]);
                self.last = id.filter(|_| is_certain).map(|id| (id, before, Some(text)));
            }
            End::Killed => self.maybe(Some(text)),
            End::Refused(why) => panic!("{name}: {why}"),
        }
    }

    fn undo(&mut self) {
        let Some((id, before, _)) = self.last.take() else {
            return;
        };
        match self.end(&["undo", &id]) {
            End::Done(_) => self.possible = BTreeSet::from([before]),
            End::Killed => self.maybe(before),
            End::Refused(why) => panic!("{}: {why}", self.name),
        }
    }

    fn maybe(&mut self, held: Held) {
        self.possible.insert(held);
        self.last = None;
    }

    fn note(&mut self, end: &End) {
        if let End::Done(reply) = end {
            self.acknowledged
                .extend(reply["id"].as_str().map(ToOwned::to_owned));
        }
    }

    /// Runs a command; half of the time it is killed at a random moment, if it has not ended by then.
    fn end(&mut self, arguments: &[&str]) -> End {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let mut child = self.world.spawn(&all);
        if self.random.below(2) == 0 {
            let pause = u64::try_from(self.random.below(60)).unwrap();
            std::thread::sleep(Duration::from_millis(pause));
            self.kills += usize::from(is_running(&mut child));
            child.kill().unwrap();
        }
        ended(&child.wait_with_output().unwrap())
    }
}

fn is_running(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

fn ended(output: &Output) -> End {
    match output.status.code() {
        None => End::Killed,
        Some(0) => End::Done(serde_json::from_slice(&output.stdout).unwrap()),
        Some(_) => End::Refused(said(output)),
    }
}
