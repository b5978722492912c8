//! Ctrl-C while a server is busy with a statement: the server is told to stop, and nothing of it happened. The same story is
//! told of both kinds of servers.

use std::process::{Child, Stdio};

use crate::world::World;
use crate::{mysql, postgres};

/// What a world with a server in it can be asked.
trait Shop {
    fn world(&self) -> &World;
    fn all(&self) -> String;
    /// Says what the server is busy with.
    fn busy(&self) -> String;
}

impl Shop for postgres::Shop {
    fn world(&self) -> &World {
        &self.world
    }

    fn all(&self) -> String {
        self.all()
    }

    fn busy(&self) -> String {
        let sql =
            "SELECT query FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()";
        self.server.psql("postgres", sql)
    }
}

impl Shop for mysql::Shop {
    fn world(&self) -> &World {
        &self.world
    }

    fn all(&self) -> String {
        self.all()
    }

    fn busy(&self) -> String {
        let sql = "SELECT info FROM information_schema.PROCESSLIST WHERE command = 'Query' AND id <> CONNECTION_ID()";
        self.server.sql("shop", sql)
    }
}

/// Waits until a server is busy with something, or no more. The patience is for a machine that has other things to do.
#[track_caller]
fn wait(shop: &dyn Shop, mark: &str, is_busy: bool) {
    for _ in 0..600 {
        if shop.busy().contains(mark) == is_busy {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(shop.busy().contains(mark), is_busy, "{mark}");
}

fn begin(shop: &dyn Shop, text: &str) -> Child {
    let mut command = shop.world().command(&["sql", "--db", "shop", text]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn a_statement_is_stopped(shop: &dyn Shop, text: &str, mark: &str) {
    let before = shop.all();
    let child = begin(shop, text);
    wait(shop, mark, true);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(130), "{said}");
    wait(shop, mark, false);
    assert_eq!(shop.all(), before);
    assert_eq!(shop.world().cli(["log"]).out, "no operations\n");
}

#[test]
fn postgres_stops_a_statement_when_somebody_presses_ctrl_c() {
    let shop = postgres::Shop::new(postgres::SCHEMA);
    let text = "UPDATE a SET v = 5; SELECT pg_sleep(600)";
    a_statement_is_stopped(&shop, text, "pg_sleep(600)");
}

#[test]
fn mariadb_stops_a_statement_when_somebody_presses_ctrl_c() {
    let shop = mysql::Shop::new(mysql::SCHEMA);
    let text = "UPDATE a SET v = 5; UPDATE a SET v = SLEEP(600)";
    a_statement_is_stopped(&shop, text, "SLEEP(600)");
}
