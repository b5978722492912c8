//! One task writes files, keys of files, rows, keys of a server and calls: one order, one rollback, whatever fails or dies on the way.

use std::os::unix::process::ExitStatusExt as _;

use backout_testkit::world::{RedisServer, Reply};
use rusqlite::Connection;

use crate::http::service::{Fault, Service};
use crate::world::{World, said};

/// SIGABRT.
const ABORTED: i32 = 6;

struct Mixed {
    world: World,
    service: Service,
    redis: RedisServer,
}

impl Mixed {
    /// A task that has written one of each, and a file at last.
    fn new() -> Self {
        let it = Self {
            world: World::new(),
            service: Service::start(),
            redis: RedisServer::default(),
        };
        let rules = r#"
[[compensation]]
match = "POST $S/things"
ignore = ["version"]
inverse = { url = "$S/things/{response.id}" }
idempotency = { window = "1h" }
"#;
        let rules = rules.replace("$S", &it.service.url(""));
        it.world.file("backout.toml", &rules);
        it.world.file("app.toml", "port = 1\n");
        it.shop()
            .execute_batch("CREATE TABLE t(a PRIMARY KEY, b); INSERT INTO t VALUES (1, 'x')")
            .unwrap();
        it.redis.ask(&["SET", "k", "old"]);
        it.world.ok(&["task", "begin", "t"]);
        let (url, things) = (it.redis.url(), it.service.url("/things"));
        for words in [
            &["write", "first", "--text", "1"][..],
            &[
                "sql",
                "--db",
                "shop.db",
                "UPDATE t SET b = 'y'; INSERT INTO t VALUES (2, 'z')",
            ],
            &["redis", "--url", &url, "SET", "k", "new"],
            &["http", "POST", &things, "--data", r#"{"name": "ann"}"#],
            &["set", "app.toml", "port", "2"],
            &["write", "last", "--text", "1"],
        ] {
            it.world.ok(&[&["--task", "t"], words].concat());
        }
        it
    }

    fn shop(&self) -> Connection {
        Connection::open(self.world.path("shop.db")).unwrap()
    }

    fn rows(&self) -> String {
        let sql = "SELECT group_concat(a || b, ' ') FROM (SELECT * FROM t ORDER BY a)";
        self.shop().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    #[track_caller]
    fn is_as_before(&self, when: &str) {
        assert_eq!(self.rows(), "1x", "{when}");
        let key = self.redis.ask(&["GET", "k"]);
        assert_eq!(key, Reply::Bytes(b"old".to_vec()), "{when}");
        assert!(self.service.names().is_empty(), "{when}");
        assert_eq!(self.world.read("app.toml"), "port = 1\n", "{when}");
        for name in ["first", "last"] {
            assert!(!self.world.path(name).exists(), "{when}: {name}");
        }
        self.world.check_store();
    }
}

#[test]
fn a_plan_says_of_each_step_what_it_can_promise_and_who_may_have_seen_it() {
    let it = Mixed::new();
    let plan = it.world.json(&["rollback", "--task", "t", "-n"]);
    let steps = plan["steps"].as_array().unwrap();
    let told: Vec<(&str, bool)> = steps
        .iter()
        .map(|step| {
            let guarantee = step["guarantee"].as_str().unwrap();
            (guarantee, step["seen_by_others"].is_string())
        })
        .collect();
    let exact = ("exact", false);
    assert_eq!(told.len(), 6, "{plan}");
    assert_eq!(told[2], ("compensating", true), "{plan}");
    assert_eq!(
        (told[0], told[1], told[4], told[5]),
        (exact, exact, exact, exact)
    );
    let text = it.world.ok(&["rollback", "--task", "t", "-n"]);
    assert!(text.contains("will be compensated"), "{text}");
    assert!(
        text.contains("may have been seen by whoever uses the service"),
        "{text}"
    );
    it.world.ok(&["rollback", "--task", "t"]);
    it.is_as_before("after the rollback");
}

#[test]
fn a_step_that_fails_in_the_middle_is_told_and_the_rest_can_be_finished() {
    let it = Mixed::new();
    it.service.fails(&[Fault::Status(403); 40]);
    let output = it.world.run(&["rollback", "--task", "t"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(it.service.names(), ["ann"]);
    assert!(!it.world.path("last").exists(), "{}", said(&output));
    let failed = it.world.json(&["failed"]);
    assert_eq!(failed["failed"].as_array().unwrap().len(), 1, "{failed}");
    it.service.fails(&[]);
    it.world.ok(&["failed", "--retry"]);
    it.world.run(&["rollback", "--task", "t"]);
    it.is_as_before("after the second try");
}

#[test]
fn a_rollback_that_dies_at_any_step_is_finished_by_the_next() {
    for point in [
        "engine.armed",
        "engine.armed#2",
        "engine.armed#3",
        "engine.undo-applied",
        "engine.undo-applied#2",
        "engine.undo-applied#3",
        "engine.undo-applied#4",
        "engine.undo-applied#5",
        "http.before-answer",
        "http.answered",
        "redis.before-exec",
        "redis.exec",
        "sqlite.armed",
        "sqlite.applied",
        "sqlite.marked",
        "sqlite.committed",
    ] {
        let it = Mixed::new();
        let output = it
            .world
            .command(&["rollback", "--task", "t"])
            .env("BACKOUT_CRASH_AT", point)
            .output()
            .unwrap();
        assert_eq!(
            output.status.signal(),
            Some(ABORTED),
            "{point}: {}",
            said(&output)
        );
        it.world.ok(&["recover"]);
        let output = it.world.run(&["rollback", "--task", "t"]);
        assert!(output.status.success(), "{point}: {}", said(&output));
        it.is_as_before(point);
    }
}
