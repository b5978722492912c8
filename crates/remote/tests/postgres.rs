//! Rows of a real `PostgreSQL` pass the suite of all drivers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "another suite uses all of it")]
#[path = "../../cli/tests/suite/postgres_server.rs"]
mod postgres_server;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use backout_model::ports::{Driver, Request};
use backout_remote::postgres::{Connection, PostgresDriver};
use backout_remote::rows::{Act, Database as _, PATIENCE, Place, RowsRequest};
use backout_testkit::driver::{Harness, conforms};
use postgres_server::Server;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A database of its own, and what is asked of it.
struct World<'s> {
    driver: PostgresDriver,
    server: &'s Server,
    database: String,
    place: Place,
    text: &'static str,
    drift: &'static str,
}

impl<'s> World<'s> {
    fn new(server: &'s Server, text: &'static str, drift: &'static str) -> Self {
        let database = format!("d{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        server.psql("postgres", &format!("CREATE DATABASE {database}"));
        server.psql(
            &database,
            "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE bag (v text);
             INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL); INSERT INTO bag VALUES ('x'), ('x')",
        );
        let mut connection = Connection::open(&server.url(&database), PATIENCE).unwrap();
        let place = connection.enroll(None).unwrap().place;
        Self {
            driver: PostgresDriver::default(),
            server,
            database,
            place,
            text,
            drift,
        }
    }
}

impl Harness for World<'_> {
    type Snapshot = String;

    fn driver(&self) -> &dyn Driver {
        &self.driver
    }

    fn request(&self) -> Box<dyn Request> {
        let (text, agent) = (self.text.to_owned(), None);
        Box::new(RowsRequest::new(
            self.place.clone(),
            None,
            Act::Run { text, agent },
        ))
    }

    fn snapshot(&self, _exactly: bool) -> String {
        let all =
            "SELECT 't', t::text FROM t UNION ALL SELECT 'bag', b::text FROM bag b ORDER BY 1, 2";
        self.server.psql(&self.database, all)
    }

    fn contents(&self, snapshot: &String) -> BTreeSet<String> {
        snapshot.lines().map(str::to_owned).collect()
    }

    fn drift(&self) -> bool {
        if !self.drift.is_empty() {
            self.server.psql(&self.database, self.drift);
        }
        !self.drift.is_empty()
    }

    fn fail_at_step(&self, _at: Option<usize>, _abandons: bool) {}

    fn steps_passed(&self) -> usize {
        0
    }
}

#[test]
fn rows_that_come_change_and_go_conform() {
    let server = Server::start();
    for (name, text, drift) in [
        (
            "new",
            "INSERT INTO t VALUES (7, 'x')",
            "UPDATE t SET v = 'theirs' WHERE id = 7",
        ),
        (
            "changed",
            "UPDATE t SET v = 'x' WHERE id < 3",
            "UPDATE t SET v = 'theirs' WHERE id = 2",
        ),
        (
            "gone",
            "DELETE FROM t WHERE id = 2",
            "INSERT INTO t VALUES (2, 'theirs')",
        ),
        (
            "another key",
            "UPDATE t SET id = id + 10",
            "UPDATE t SET v = 'theirs' WHERE id = 11",
        ),
    ] {
        conforms(name, || World::new(&server, text, drift));
    }
}

// Rows without a key are not here: that one of them is back already only the journal can tell, since an equal row may be
// anybody's. How they go back and come again is in the suite of the program.
// Neither is a table that is emptied: while that is staged the server lets nobody read it.
#[test]
fn whole_tables_conform() {
    let server = Server::start();
    let text = "INSERT INTO t SELECT i, i::text FROM generate_series(10, 400) i";
    let drift = "UPDATE t SET v = 'theirs' WHERE id = 70";
    conforms("many", || World::new(&server, text, drift));
}
