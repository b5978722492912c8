//! What is special of keys: times that run out, somebody else at the same moment, servers on a bad day.

use std::sync::Arc;

use backout_model::ports::{Driver as _, How, OnConflict};
use backout_model::{Effect, OperationId, OutcomeKind};
use backout_testkit::driver::Harness as _;
use backout_testkit::world::{RedisServer, Reply};

use super::{ANYWAY, World, kinds, request};
use crate::redis::{RedisFault, Server, read_only};

fn world(before: &[&str], asked: &str) -> World {
    World::new(&Arc::new(RedisServer::default()), before, asked)
}

/// Asks until a key is gone. It has a time to live, so it will be.
fn wait_until_gone(server: &RedisServer, key: &str) {
    let mut client = server.client();
    for _ in 0..1_000_000 {
        if client.ask(&["EXISTS", key]) == Reply::Int(0) {
            return;
        }
    }
    panic!("`{key}` has not gone");
}

#[test]
fn nothing_happens_if_somebody_writes_a_key_at_the_same_moment() {
    let world = world(&["SET a 1"], "INCR a\nSET b 2");
    let prepared = world.prepare(1).unwrap();
    world.server.ask(&["SET", "a", "5"]);
    let armed = world.arm(OperationId::from_bits(1), prepared);
    let error = world.driver.apply(armed).unwrap_err();
    assert!(
        matches!(error.as_a(), Some(RedisFault::Overtaken)),
        "{error:?}"
    );
    assert!(error.fault().may_pass() && !error.fault().is_half_done());
    assert_eq!(
        world.server.ask(&["MGET", "a", "b"]),
        Reply::List(vec![Reply::Bytes(b"5".into()), Reply::Nil])
    );
}

#[test]
fn one_command_that_fails_takes_the_others_with_it() {
    let world = world(&["SET a 1", "SET text x"], "INCR a\nINCR text\nSET b 2");
    let before = world.snapshot(true);
    let armed = world.arm(OperationId::from_bits(1), world.prepare(1).unwrap());
    let error = world.driver.apply(armed).unwrap_err();
    let said = error.to_string();
    assert!(
        said.starts_with("command 2, `INCR`, failed") && said.contains("not an integer"),
        "{said}"
    );
    assert!(!error.fault().is_half_done());
    assert_eq!(world.snapshot(true), before);
    assert_eq!(
        world.server.ask(&["KEYS", "backout:*"]),
        Reply::List(Vec::new())
    );
}

#[test]
fn what_is_still_on_its_way_when_it_is_recovered_never_happens() {
    let world = world(&["SET a 1"], "INCR a");
    let prepared = world.prepare(1).unwrap();
    let recipe = prepared.recipe.clone();
    let completion = None;
    let undo = world.driver.prepare_undo(
        OperationId::from_bits(2),
        &Effect { recipe, completion },
        How::unfinished(),
    );
    assert_eq!(kinds(&undo.unwrap()), [OutcomeKind::AlreadyGone]);
    let armed = world.arm(OperationId::from_bits(1), prepared);
    assert!(matches!(
        world.driver.apply(armed).unwrap_err().as_a(),
        Some(RedisFault::Overtaken)
    ));
    assert_eq!(world.server.ask(&["GET", "a"]), Reply::Bytes(b"1".into()));
}

#[test]
fn a_key_that_would_have_run_out_is_not_brought_back_to_life() {
    let world = world(&["SET a old PX 150"], "SET a new");
    let effect = world.write(1);
    world.server.ask(&["SET", "clock", "x", "PX", "200"]);
    wait_until_gone(&world.server, "clock");
    let undo = world.undo(2, &effect, OnConflict::Refuse);
    assert_eq!(kinds(&undo), [OutcomeKind::Restored]);
    assert!(
        undo.prepared.notes[0].contains("would have run out by now"),
        "{:?}",
        undo.prepared.notes
    );
    world.carry_out(2, undo.prepared);
    assert!(world.snapshot(true).is_empty());
}

#[test]
fn a_key_that_has_run_out_by_itself_is_as_it_was_made() {
    let world = world(&["SET a old"], "SET a new PX 50");
    let before = world.snapshot(true);
    let effect = world.write(1);
    wait_until_gone(&world.server, "a");
    let undo = world.undo(2, &effect, OnConflict::Refuse);
    assert_eq!(kinds(&undo), [OutcomeKind::Restored]);
    world.carry_out(2, undo.prepared);
    assert_eq!(world.snapshot(true), before);
}

#[test]
fn each_key_has_its_own_conflict_and_force_keeps_what_it_replaces() {
    let world = world(&["SET a 1", "SET b 1"], "MSET a 2 b 2 c 2");
    let effect = world.write(1);
    world.server.ask(&["SET", "b", "theirs"]);
    let theirs = world.snapshot(true);
    let held = world.undo(2, &effect, OnConflict::Refuse);
    assert!(held.prepared.is_noop);
    assert!(matches!(
        kinds(&held)[..],
        [
            OutcomeKind::Skipped { .. },
            OutcomeKind::Conflict { .. },
            OutcomeKind::Skipped { .. }
        ]
    ));
    drop(held);
    let how = How {
        is_unfinished: false,
        ..ANYWAY
    };
    let part = world
        .driver
        .prepare_undo(OperationId::from_bits(3), &effect, how)
        .unwrap();
    let undone = world.carry_out(3, part.prepared);
    let values = |world: &World| world.server.ask(&["MGET", "a", "b", "c"]);
    let is = |list: [Option<&str>; 3]| {
        Reply::List(
            list.map(|it| it.map_or(Reply::Nil, |it| Reply::Bytes(it.into())))
                .into(),
        )
    };
    assert_eq!(values(&world), is([Some("1"), Some("theirs"), None]));
    let again = world.undo(4, &undone, OnConflict::Refuse);
    world.carry_out(4, again.prepared);
    assert_eq!(world.snapshot(true), theirs);
    let forced = world.undo(5, &effect, OnConflict::Force);
    let forced = world.carry_out(5, forced.prepared);
    assert_eq!(values(&world), is([Some("1"), Some("1"), None]));
    let again = world.undo(6, &forced, OnConflict::Refuse);
    world.carry_out(6, again.prepared);
    assert_eq!(world.snapshot(true), theirs);
}

#[test]
fn one_key_of_several_goes_back() {
    let world = world(&["SET a 1"], "MSET a 2 b 2");
    let effect = world.write(1);
    let only = [world.driver.outline(&effect).unwrap().targets[0]
        .key()
        .clone()]
    .into();
    let how = How {
        only: Some(&only),
        ..How::default()
    };
    let undo = world
        .driver
        .prepare_undo(OperationId::from_bits(2), &effect, how)
        .unwrap();
    assert_eq!(undo.outcomes.len(), 1);
    world.carry_out(2, undo.prepared);
    assert_eq!(
        world.server.ask(&["MGET", "a", "b"]),
        Reply::List(vec![Reply::Bytes(b"1".into()), Reply::Bytes(b"2".into())])
    );
}

#[test]
fn the_same_value_in_another_encoding_is_the_same() {
    let world = world(&["SADD s m0", "HSET h f0 v"], "SADD s m1\nHSET h f1 v");
    let before = world.snapshot(true);
    let effect = world.write(1);
    let mut client = world.server.client();
    let is_table = |client: &mut backout_testkit::world::RedisClient| {
        client.ask(&["OBJECT", "ENCODING", "h"]) == Reply::Bytes(b"hashtable".into())
    };
    assert!(!is_table(&mut client));
    for number in 0..600 {
        let (member, field) = (format!("x{number}"), format!("x{number}"));
        client.ask(&["SADD", "s", &member]);
        client.ask(&["HSET", "h", &field, "v"]);
    }
    for number in 0..600 {
        let name = format!("x{number}");
        client.ask(&["SREM", "s", &name]);
        client.ask(&["HDEL", "h", &name]);
    }
    assert!(is_table(&mut client));
    let undo = world.undo(2, &effect, OnConflict::Refuse);
    assert_eq!(kinds(&undo), [OutcomeKind::Restored, OutcomeKind::Restored]);
    world.carry_out(2, undo.prepared);
    assert_eq!(world.snapshot(true), before);
}

#[test]
fn keys_of_any_bytes_and_large_values_come_back() {
    let world = world(&[], r#"DEL "\xff\x00/%" "" big"#);
    let mut client = world.server.client();
    client.ask_bytes(&[b"SET", b"\xff\x00/%", b"\x00\xfe"]);
    client.ask_bytes(&[b"SET", b"", b"empty"]);
    for number in 0..9000 {
        client.ask(&["RPUSH", "big", &format!("{number:032x}")]);
    }
    let before = world.snapshot(true);
    let effect = world.write(1);
    assert!(world.snapshot(true).is_empty());
    let undo = world.undo(2, &effect, OnConflict::Refuse);
    world.carry_out(2, undo.prepared);
    assert_eq!(world.snapshot(true), before);
    assert_eq!(before.len(), 3);
}

#[test]
fn a_server_that_forgot_everything_is_a_conflict() {
    let server = Arc::new(RedisServer::default());
    let world = World::new(&server, &["SET a 1"], "SET a 2");
    let effect = world.write(1);
    let World { driver, .. } = world;
    drop(world.server);
    let mut server = Arc::into_inner(server).expect("nobody else has it");
    server.restart();
    let undo = driver
        .prepare_undo(OperationId::from_bits(2), &effect, How::default())
        .unwrap();
    assert!(matches!(kinds(&undo)[..], [OutcomeKind::Conflict { .. }]));
    // And of one that never said how it ended, nobody knows.
    let lost = Effect {
        completion: None,
        ..effect
    };
    let undo = driver
        .prepare_undo(OperationId::from_bits(3), &lost, How::unfinished())
        .unwrap();
    let [OutcomeKind::Conflict { why }] = &kinds(&undo)[..] else {
        panic!("{:?}", undo.outcomes);
    };
    assert!(why.contains("no mark on the server"), "{why}");
    server.stop();
    let error = driver.examine(&lost, true).unwrap_err();
    assert!(error.fault().out_of_reach().is_some(), "{error}");
}

#[test]
fn what_the_server_refuses_is_said_with_a_way_out() {
    let server = RedisServer::default();
    let url = server.url();
    let said = |url: &str, asked: &str| {
        let mut asked = request(&server, asked);
        asked.server = Server::parse(url).unwrap();
        let contents = Arc::new(backout_testkit::fakes::MemoryContents::default());
        let driver =
            crate::redis::RedisDriver::new(Arc::clone(&contents) as _, Arc::clone(&contents) as _);
        let journal = backout_testkit::fakes::MemoryJournal::new(contents);
        let id = OperationId::from_bits(7);
        let prepared = match driver.prepare(id, &asked, backout_model::Strategy::Transaction) {
            Ok(prepared) => prepared,
            Err(error) => {
                return (
                    error.to_string(),
                    error.fault().advice().unwrap_or_default(),
                );
            }
        };
        let error = driver
            .apply(journal.arm(id, backout_model::Verb::Write, prepared))
            .unwrap_err();
        (
            error.to_string(),
            error.fault().advice().unwrap_or_default(),
        )
    };
    let expect = |(what, advice): (String, String), is: &str, helps: &str| {
        assert!(
            what.contains(is) && advice.contains(helps),
            "{what} / {advice}"
        );
    };
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    expect(said(&url, "SET a 1"), "OOM", "maxmemory");
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    server.ask(&["REPLICAOF", "127.0.0.1", "1"]);
    expect(said(&url, "SET a 1"), "READONLY", "primary");
    server.ask(&["REPLICAOF", "NO", "ONE"]);
    server.ask(&["ACL", "SETUSER", "weak", "on", ">pw", "~*", "+@all", "-set"]);
    expect(
        said(&format!("{url}?user=weak&pass=pw"), "SET a 1"),
        "NOPERM",
        "backout:mark:*",
    );
    expect(
        said(&format!("{url}?user=weak&pass=wrong"), "SET a 1"),
        "WRONGPASS",
        "REDISCLI_AUTH",
    );
    expect(
        said(&format!("{url}?pass=${{env:BACKOUT_NO_SUCH}}"), "SET a 1"),
        "BACKOUT_NO_SUCH",
        "set that variable",
    );
    server.ask(&["CONFIG", "SET", "requirepass", "hush"]);
    expect(said(&url, "SET a 1"), "NOAUTH", "REDISCLI_AUTH");
    let open = format!("{url}?pass=hush");
    let mut asked = request(&server, "DBSIZE");
    asked.server = Server::parse(&open).unwrap();
    assert_eq!(
        read_only(&asked).unwrap().unwrap()[0].text(),
        "(integer) 0\n"
    );
    expect(
        said("unix:///nowhere/socket", "SET a 1"),
        "does not answer",
        "--url",
    );
}

#[test]
fn a_count_that_somebody_asked_for_is_no_change() {
    let world = world(&["PFADD a x y z"], "PFADD a u v w");
    let effect = world.write(1);
    // It is kept in the key itself.
    let dump = world.server.ask(&["DUMP", "a"]);
    world.server.ask(&["PFCOUNT", "a"]);
    assert_ne!(world.server.ask(&["DUMP", "a"]), dump);
    let undo = world.undo(2, &effect, OnConflict::Refuse);
    assert_eq!(kinds(&undo), [OutcomeKind::Restored]);
    world.carry_out(2, undo.prepared);
    assert_eq!(world.server.ask(&["PFCOUNT", "a"]), Reply::Int(3));
    let read = read_only(&request(&world.server, "PFCOUNT a")).unwrap();
    assert!(read.is_some(), "it is recorded");
}
