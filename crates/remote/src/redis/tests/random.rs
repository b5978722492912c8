//! Random commands on every kind of value, taken back at random: what stays is what a copy has that never saw what was taken back. And several clients
//! at once on the same keys.

use std::sync::Arc;

use backout_model::ports::{Driver as _, OnConflict};
use backout_model::{OperationId, Strategy};
use backout_testkit::driver::Harness as _;
use backout_testkit::world::{RedisServer, Reply};

use super::{World, request};
use crate::redis::RedisFault;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % 1_000_003).unwrap() % limit
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }
}

/// Templates: `K` is a key, `M` a member, `N` a number.
const COMMANDS: [&str; 40] = [
    "SET K M",
    "SET K M PXAT 4102444800000",
    "APPEND K M",
    "INCRBY K N",
    "SETRANGE K 4 M",
    "GETDEL K",
    "DEL K K",
    "UNLINK K",
    "RENAME K K",
    "COPY K K REPLACE",
    "PEXPIREAT K 4102444800001",
    "PERSIST K",
    "SETBIT K N 1",
    "BITOP OR K K K",
    "MSET K M K M",
    "LPUSH K M M",
    "RPUSH K M",
    "LPOP K",
    "LSET K 0 M",
    "LREM K 1 M",
    "LINSERT K BEFORE M M",
    "LMOVE K K LEFT RIGHT",
    "SADD K M M",
    "SREM K M",
    "SMOVE K K M",
    "SUNIONSTORE K K K",
    "SDIFFSTORE K K K",
    "HSET K M M M N",
    "HDEL K M",
    "HINCRBY K M N",
    "ZADD K N M N M",
    "ZREM K M",
    "ZINCRBY K N M",
    "ZUNIONSTORE K 2 K K",
    "ZPOPMIN K",
    "GEOADD K 1.N 2.N M",
    "PFADD K M M",
    "XADD K MAXLEN 5 N-1 M M",
    "XTRIM K MAXLEN 1",
    "SORT K ALPHA STORE K",
];

fn command(dice: &mut Dice, keys: &[&str]) -> String {
    let template = dice.of(&COMMANDS);
    let words = template.split(' ').map(|word| match word {
        "K" => dice.of(keys).to_owned(),
        "M" => format!("m{}", dice.below(6)),
        "N" | "N-1" | "1.N" | "2.N" => word.replace('N', &(1 + dice.below(9)).to_string()),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn play(seed: u64, rounds: usize) {
    let (one, copy) = (Arc::new(RedisServer::default()), RedisServer::default());
    let world = World::new(&one, &[], "PING");
    let mut dice = Dice(seed);
    let (mut kept, mut done) = (Vec::new(), 0);
    for round in 0..rounds {
        let count = 1 + dice.below(3);
        let asked: Vec<_> = (0..count)
            .map(|_| command(&mut dice, &["a", "b", "c", "d"]))
            .collect();
        let id = OperationId::from_bits(u64::try_from(2 * round + 1).unwrap());
        let before = world.snapshot(true);
        let prepared = world
            .driver
            .prepare(id, &request(&one, &asked.join("\n")), Strategy::Transaction)
            .unwrap();
        let recipe = prepared.recipe.clone();
        let place = format!("seed {seed}, round {round}: {asked:?}");
        match world.driver.apply(world.arm(id, prepared)) {
            Err(error) => {
                assert!(
                    matches!(error.as_a(), Some(RedisFault::Failed { .. })),
                    "{place}: {error:?}"
                );
                assert_eq!(world.snapshot(true), before, "{place}: failed");
            }
            Ok(applied) => {
                assert!(applied.unlike.is_empty(), "{place}: {:?}", applied.unlike);
                done += 1;
                let completion = Some(applied.completion);
                kept.push((asked, backout_model::Effect { recipe, completion }, before));
            }
        }
        // Some of the newest go back, newest first.
        for step in 0..dice.below(3) {
            let Some((asked, effect, before)) = kept.pop() else {
                break;
            };
            let place = format!("seed {seed}, round {round}, {step}: {asked:?}");
            let id = u64::try_from(1_000_000 + 10 * round + step).unwrap();
            let undo = world.undo(id, &effect, OnConflict::Refuse);
            assert!(
                undo.outcomes.iter().all(|it| it.kind.is_taken_back()),
                "{place}: {:?}",
                undo.outcomes
            );
            world.carry_out(id, undo.prepared);
            assert_eq!(world.snapshot(true), before, "{place}: undone");
        }
    }
    assert!(
        done > rounds / 8,
        "seed {seed}: only {done} commands did something"
    );
    let mut client = copy.client();
    for line in kept.iter().flat_map(|(asked, ..)| asked) {
        let words: Vec<_> = line.split(' ').collect();
        let reply = client.ask(&words);
        assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
    }
    assert_eq!(world.snapshot(true), copy.snapshot(), "seed {seed}");
}

#[test]
fn what_stays_is_what_a_copy_has_that_never_saw_the_rest() {
    for seed in [3, 11, 12_345] {
        play(seed, 120);
    }
}

/// How many writes each client makes.
const EACH: u64 = 20;

#[test]
fn several_clients_on_one_key_lose_nothing() {
    let server = Arc::new(RedisServer::default());
    let write = |thread: u64| {
        let world = World::new_beside(&server, "INCR shared\nRPUSH seen x");
        let mut client = server.client();
        let mut effects = Vec::new();
        let mut id = 1_000_000 * (thread + 1);
        while u64::try_from(effects.len()).unwrap() < EACH {
            id += 1;
            assert!(
                id < 1_000_000 * (thread + 1) + 100_000,
                "nobody comes through"
            );
            let Ok(prepared) = world.prepare(id) else {
                continue;
            };
            let recipe = prepared.recipe.clone();
            match world
                .driver
                .apply(world.arm(OperationId::from_bits(id), prepared))
            {
                Ok(applied) => effects.push((recipe, applied.completion)),
                Err(error) => assert!(
                    matches!(error.as_a(), Some(RedisFault::Overtaken)),
                    "{error:?}"
                ),
            }
            client.ask(&["INCR", "theirs"]);
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || write(thread));
        }
    });
    assert_eq!(server.ask(&["GET", "shared"]), Reply::Bytes(b"60".into()));
    assert_eq!(server.ask(&["LLEN", "seen"]), Reply::Int(60));
}
