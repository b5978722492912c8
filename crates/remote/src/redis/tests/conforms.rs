//! The suite of all drivers, on every kind of value.

use std::sync::Arc;

use backout_testkit::driver::conforms;
use backout_testkit::world::RedisServer;

use super::World;

fn conform(name: &str, before: &[&str], asked: &str) {
    let server = Arc::new(RedisServer::default());
    conforms(name, || World::new(&server, before, asked));
}

#[test]
fn a_string_that_comes_changes_and_goes_conforms() {
    conform("new", &[], "SET a 1");
    conform("changed", &["SET a 1", "SET b 2"], "APPEND a 2");
    conform("gone", &["SET a 1", "SET b 2"], "DEL a");
}

#[test]
fn several_keys_at_once_conform() {
    let before = [
        "SET a 1",
        "RPUSH l 1 2 3",
        "SADD s x y",
        "HSET h f 1",
        "ZADD z 1 m",
    ];
    conform(
        "several commands",
        &before,
        "INCR a\nRPOPLPUSH l l2\nSREM s x\nHSET h f 2 g 3\nZINCRBY z 5 m\nDEL gone",
    );
    conform("one command", &["SET a 1", "SET b 2"], "COPY b a REPLACE");
}

#[test]
fn times_to_live_conform() {
    conform("kept", &["SET a 1 PXAT 4102444800000"], "SET a 2 KEEPTTL");
    conform("taken away", &["SET a 1 PXAT 4102444800000"], "PERSIST a");
    conform("given", &["SET a 1"], "PEXPIREAT a 4102444800000");
}

#[test]
fn streams_conform() {
    let before = ["XADD a 1-1 f 1", "XADD a 2-1 f 2", "XGROUP CREATE a g 0"];
    conform("moved on", &before, "XGROUP SETID a g 2-1\nXSETID a 9-9");
    conform(
        "read by a group",
        &before,
        "XGROUP SETID a g 1-1\nXDEL a 1-1",
    );
    conform("trimmed", &before, "XTRIM a MAXLEN 1");
}
