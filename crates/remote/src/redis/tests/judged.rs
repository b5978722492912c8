//! Which commands write which keys, and which are refused.

use backout_model::ports::{Driver as _, Fault as _};
use backout_testkit::world::RedisServer;

use super::{World, request};
use crate::redis::read_only;

#[test]
fn the_server_says_which_keys_are_written_and_which_are_read() {
    let server = std::sync::Arc::new(RedisServer::default());
    let world = World::new(&server, &[], "PING");
    for (asked, writes, reads) in [
        ("SUNIONSTORE d a b", "d", "a b"),
        ("MSET a 1 b 2", "a b", ""),
        ("SORT a BY w_* STORE d", "d", "a"),
        ("RENAME a b", "a b", ""),
        ("XREADGROUP GROUP g c STREAMS s >", "s", ""),
        ("XGROUP CREATE s g 0", "s", ""),
        ("BITFIELD a SET u8 0 1", "a", ""),
        ("GEORADIUS a 1 1 5 km STORE d", "d", "a"),
        ("LMPOP 2 a b LEFT", "a b", ""),
        ("PFCOUNT a", "", "a"),
        ("GET a\nSET b 1", "b", "a"),
        ("get a\nset a 1", "a", ""),
    ] {
        let scope = world.driver.scope(&request(&server, asked)).unwrap();
        let named = |targets: &[backout_model::Target]| {
            let names: Vec<_> = targets
                .iter()
                .filter_map(|it| it.key().names().last().cloned())
                .collect();
            names.join(" ")
        };
        assert_eq!(named(&scope.targets), writes, "{asked}");
        assert_eq!(named(&scope.sources), reads, "{asked}");
    }
}

#[test]
fn what_only_reads_is_answered() {
    let server = RedisServer::default();
    server.ask(&["RPUSH", "l", "b", "a"]);
    for (asked, answer) in [
        ("GET nothing", "(nil)\n"),
        ("LRANGE l 0 -1", "1) \"b\"\n2) \"a\"\n"),
        ("SORT l ALPHA", "1) \"a\"\n2) \"b\"\n"),
        ("PING", "PONG\n"),
        ("DBSIZE", "(integer) 1\n"),
        ("KEYS *", "1) \"l\"\n"),
        ("EVAL_RO 'return 1' 0", "(integer) 1\n"),
        ("OBJECT REFCOUNT l", "(integer) 1\n"),
        ("XREAD COUNT 1 STREAMS s 0", "(nil)\n"),
    ] {
        let answers = read_only(&request(&server, asked)).unwrap();
        let answers = answers.unwrap_or_else(|| panic!("{asked} writes"));
        assert_eq!(answers[0].text(), answer, "{asked}");
    }
    assert!(
        read_only(&request(&server, "GET l\nSET a 1"))
            .unwrap()
            .is_none()
    );
    let error = read_only(&request(&server, "GET l")).unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
}

#[test]
fn what_cannot_be_taken_back_is_refused_with_a_way_out() {
    let server = RedisServer::default();
    server.ask(&["SET", "a", "1"]);
    let before = server.snapshot();
    for (asked, why) in [
        ("FLUSHALL", "every key at once"),
        ("FLUSHDB ASYNC", "every key at once"),
        ("SWAPDB 0 1", "every key at once"),
        ("EVAL \"return redis.call('SET','x',1)\" 0", "does not name"),
        ("EVALSHA abc 1 a", "does not name"),
        ("FCALL f 0", "does not name"),
        ("MOVE a 1", "outside of this database"),
        ("COPY a b DB 1", "outside of this database"),
        ("MIGRATE h 1 a 0 1", "outside of this database"),
        ("BLPOP a 0", "waits for other clients"),
        ("XREAD BLOCK 0 STREAMS a 0", "waits for other clients"),
        ("PUBLISH c m", "cannot be taken back"),
        ("SUBSCRIBE c", "cannot be taken back"),
        ("CONFIG SET maxmemory 1", "does not say which keys"),
        ("CONFIG GET maxmemory", "does not say which keys"),
        ("SCRIPT LOAD x", "does not say which keys"),
        ("DEBUG SLEEP 0", "does not say which keys"),
        ("SHUTDOWN", "does not say which keys"),
        ("CLIENT KILL x", "does not say which keys"),
        ("SELECT 1", "part of the URL"),
        ("MULTI", "one transaction already"),
        ("NOSUCH a", "does not know it"),
        ("SET a 2\nFLUSHALL", "every key at once"),
    ] {
        let fault = read_only(&request(&server, asked)).unwrap_err();
        assert!(fault.to_string().contains(why), "{asked}: {fault}");
        assert!(fault.advice().is_some(), "{asked}");
    }
    assert_eq!(server.snapshot(), before);
}
