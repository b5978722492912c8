//! Replies about what is in no file of yours yet: servers, services and sandboxes.

use backout_testkit::world::RedisServer;

use crate::messages_http::answering;
use crate::postgres_server::Server;
use crate::replies::Judge;
use crate::world::World;

pub(crate) fn in_databases(judge: &mut Judge) {
    let (world, server) = (World::new(), Server::start());
    server.psql("postgres", "CREATE TABLE t (id int PRIMARY KEY)");
    let url = server.url("postgres");
    judge.replies(&world, &format!("db enroll {url} --name shop"), "database");
    judge.replies(&world, "db status shop", "database");
    judge.replies(&world, "db list", "databases");
    world.put(
        "q.sql",
        "SELECT 1 AS one, NULL AS none; INSERT INTO t VALUES (7)",
    );
    judge.replies(&world, "sql --db shop --file q.sql", "rows");
    world.put("w.sql", "INSERT INTO t VALUES (8)");
    judge.replies(&world, "sql --db shop --file w.sql", "finished");
    server.psql("postgres", "DELETE FROM t");
    judge.replies(&world, "db sync", "synced");
    judge.replies(&world, "db unenroll shop --discard", "unenrolled");
}

pub(crate) fn asking_servers(judge: &mut Judge) {
    let (world, server) = (World::new(), RedisServer::default());
    for command in ["GET a", "SET a 1", "GET a"] {
        let line = format!("redis --url {} {command}", server.url());
        judge.replies(&world, &line, "redis");
    }
    let line = format!("redis --url {} FLUSHALL", server.url());
    judge.fails(&world, &line, "driver-failed");
}

pub(crate) fn in_a_sandbox(judge: &mut Judge) {
    let world = World::new().file("a", "1").file("b", "1");
    judge.fails(&world, "sandbox diff", "which-sandbox");
    judge.replies(&world, "sandbox start one", "sandbox");
    judge.fails(&world, "sandbox start one", "sandbox-exists");
    judge.replies(&world, "sandbox exec -- rm a", "sandbox-ran");
    judge.refuses(&world, "sandbox exec -- false", "sandbox-ran");
    judge.replies(&world, "sandbox checkpoints", "sandbox");
    judge.replies(&world, "sandbox rollback 0", "sandbox");
    judge.fails(&world, "sandbox rollback 9", "unknown-checkpoint");
    judge.fails(&world, "sandbox apply", "nothing");
    judge.replies(&world, "sandbox rollback 1", "sandbox");
    judge.replies(&world, "sandbox fork one@1 two", "sandbox");
    judge.replies(&world, "sandbox list", "sandboxes");
    judge.replies(&world, "sandbox diff two", "diff");
    judge.fails(&world, "sandbox end two", "sandbox-not-applied");
    judge.replies(&world, "sandbox end two --discard", "sandbox-ended");
    judge.replies(&world, "sandbox export --script", "sandbox-exported");
    judge.replies(&world, "sandbox export --tar layer.tar", "sandbox-exported");
    judge.fails(&world, "sandbox export --oci layer.tar", "already-exists");
    let world = world.file("batch", "true\nfalse\n");
    judge.refuses(&world, "sandbox exec --batch batch", "sandbox-batch");
    judge.replies(&world, "sandbox prune --keep 1", "sandbox-pruned");
    judge.replies(&world, "status", "status");
    judge.replies(&world, "sandbox apply", "finished");
    judge.replies(&world, "sandbox end", "sandbox-ended");
}

pub(crate) fn keeping_directories(judge: &mut Judge) {
    let world = World::new().file("d/a", "1").file("d/b", "1");
    judge.replies(&world, "checkpoint good --roots d", "workspace-kept");
    judge.replies(&world, "checkpoint --list", "checkpoints");
    judge.replies(&world, "rollback --to good", "finished");
    judge.replies(&world, "write d/a --text 2", "finished");
    judge.replies(&world, "rollback --to good -n", "workspace-plan");
    judge.fails(&world, "rollback --to good --only d/b", "nothing");
    judge.replies(&world, "rollback --to good", "finished");
    judge.replies(&world, "gc", "collected");
    judge.replies(&world, "checkpoint good --drop", "workspace-dropped");
    judge.fails(&world, "rollback --to good", "files-let-go");
}

fn acting(judge: &mut Judge) {
    let world = World::new();
    let acted = judge.replies(&world, "act --undo true -- echo 7", "acted");
    assert_eq!(acted.pointer("/answer").unwrap(), "7");
    judge.replies(&world, "undo --everywhere", "undone");
}

pub(crate) fn calling(judge: &mut Judge) {
    acting(judge);
    let url = answering(40, "{}");
    let rule =
        format!("[[compensation]]\nmatch = 'POST {url}/a'\ninverse = {{ url = '{url}/a' }}\n");
    let world = World::new().file("backout.toml", &rule);
    judge.replies(&world, &format!("http GET {url}/a"), "called");
    let called = judge.replies(&world, &format!("http POST {url}/a --data x"), "called");
    let status = called.pointer("/operation/status").unwrap();
    assert_eq!(status, "committed");
    judge.fails(&world, &format!("http POST {url}/b --data x"), "refused");
    judge.replies(&world, "undo --everywhere", "undone");
}
