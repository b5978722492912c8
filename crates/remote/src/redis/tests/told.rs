//! What is told of keys: their values, as the server itself has them.

use std::sync::Arc;

use backout_model::ports::Driver as _;
use backout_testkit::world::{RedisServer, Reply};
use serde_json::{Value, json};

use super::World;
use crate::redis::dump::told;

fn dumped(server: &RedisServer, key: &str) -> Option<Value> {
    match server.ask(&["DUMP", key]) {
        Reply::Bytes(dump) => told(&dump),
        other @ (Reply::Nil | Reply::Int(_) | Reply::Error(_) | Reply::List(_)) => {
            panic!("{other:?}")
        }
    }
}

#[test]
fn every_kind_of_value_is_read_from_its_dump_however_it_is_kept() {
    let server = RedisServer::default();
    let long = "abcdefgh".repeat(4000);
    for text in [
        "",
        "a",
        "-7",
        "300",
        "-70000",
        "2147483648",
        "é\n",
        "x%y",
        &long,
        &"z".repeat(70),
    ] {
        server.ask(&["SET", "k", text]);
        assert_eq!(dumped(&server, "k"), Some(json!(text)), "{text:.20}");
    }
    for count in [1, 3, 100, 600, 3000] {
        server.ask(&["FLUSHALL"]);
        let items: Vec<String> = (0..count)
            .map(|it| format!("item-{it}-{}", "y".repeat(it % 90)))
            .collect();
        let numbers: Vec<String> = (0..count)
            .map(|it| (i64::try_from(it).unwrap() * 999 - 7000).to_string())
            .collect();
        let (mut list, mut set, mut ints) =
            (vec!["RPUSH", "l"], vec!["SADD", "s"], vec!["SADD", "i"]);
        let (mut hash, mut zset) = (vec!["HSET", "h"], vec!["ZADD", "z"]);
        for (item, number) in std::iter::zip(&items, &numbers) {
            list.extend([item.as_str(), number]);
            set.push(item);
            ints.push(number);
            hash.extend([item.as_str(), number]);
            zset.extend([number.as_str(), item]);
        }
        for words in [&list, &set, &ints, &hash, &zset] {
            server.ask(words);
        }
        let flat: Vec<&str> = list[2..].to_vec();
        assert_eq!(dumped(&server, "l"), Some(json!(flat)), "list of {count}");
        let sorted = |mut all: Vec<String>| {
            all.sort();
            Some(json!(all))
        };
        assert_eq!(
            dumped(&server, "s"),
            sorted(items.clone()),
            "set of {count}"
        );
        assert_eq!(
            dumped(&server, "i"),
            sorted(numbers.clone()),
            "numbers: {count}"
        );
        let pairs: serde_json::Map<String, Value> = std::iter::zip(&items, &numbers)
            .map(|(item, number)| (item.clone(), json!(number)))
            .collect();
        let pairs = Some(Value::Object(pairs));
        assert_eq!(dumped(&server, "h"), pairs, "hash of {count}");
        assert_eq!(dumped(&server, "z"), pairs, "sorted set of {count}");
    }
    server.ask(&["XADD", "x", "1-1", "f", "v"]);
    assert_eq!(dumped(&server, "x"), None);
    assert_eq!(told(b"short"), None);
}

#[test]
fn a_diff_tells_what_a_key_was_became_and_is() {
    let world = World::new(
        &Arc::new(RedisServer::default()),
        &["SET a old PXAT 4102444800000", "RPUSH l 1"],
        "SET a new\nRPUSH l 2\nSET b made",
    );
    let effect = world.write(1);
    let told = |effect| {
        let values = world.driver.values(effect).unwrap().unwrap().into_iter();
        let told = values.map(|it| (it.before, it.after, it.now.unwrap()));
        told.collect::<Vec<_>>()
    };
    let text = |it: &str| Some(it.to_owned());
    let (old, new) = (text("\"old\", goes at 4102444800000"), text("\"new\""));
    assert_eq!(
        told(&effect),
        [
            (old.clone(), new.clone(), new),
            (None, text("\"made\""), text("\"made\"")),
            (
                text("[\"1\"]"),
                text("[\"1\",\"2\"]"),
                text("[\"1\",\"2\"]")
            ),
        ]
    );
    world.server.ask(&["SET", "a", "theirs"]);
    let now = told(&effect);
    assert_eq!(
        now[0],
        (old, text("(a string that is not kept)"), text("\"theirs\""))
    );
}
