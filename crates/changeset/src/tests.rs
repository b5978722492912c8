//! Recorded, turned round, applied: on tables of every kind.

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::*;

fn database(sql: &str) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(sql).unwrap();
    connection
}

fn recorded(connection: &Connection, sql: &str) -> Vec<u8> {
    let session = Session::new(connection, |_| true).unwrap();
    connection.execute_batch(sql).unwrap();
    session.changeset().unwrap()
}

fn rows(connection: &Connection, sql: &str) -> Vec<Vec<String>> {
    let mut statement = connection.prepare(sql).unwrap();
    let width = statement.column_count();
    let rows = statement.query_map([], |row| {
        let value = |at| Value::from(row.get_ref(at).unwrap());
        Ok((0..width).map(|at| format!("{:?}", value(at))).collect())
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn back(connection: &Connection, changes: &[u8]) -> Vec<Conflict> {
    let mut met = Vec::new();
    let how = Apply {
        inverted: true,
        wants: None,
        conflict: &mut |conflict, _| {
            met.push(conflict);
            Answer::Skip
        },
    };
    apply(connection, &mut &*changes, how).unwrap();
    met
}

#[test]
fn what_was_recorded_goes_back_on_every_kind_of_table() {
    for (schema, sql) in [
        (
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1,'x'),(2,x'00ff')",
            "UPDATE t SET a=3 WHERE id=1; DELETE FROM t WHERE id=2; INSERT INTO t VALUES(9,0.5)",
        ),
        (
            "CREATE TABLE t(a, b); INSERT INTO t VALUES(1,2),(1,2),(NULL,NULL)",
            "DELETE FROM t WHERE rowid=2; UPDATE t SET b=NULL WHERE rowid=1; INSERT INTO t VALUES(4,5)",
        ),
        (
            "CREATE TABLE t(a TEXT, b INT, c, PRIMARY KEY(a,b)) WITHOUT ROWID; INSERT INTO t VALUES('x',1,2),('y',2,3)",
            "UPDATE t SET a='z' WHERE b=1; DELETE FROM t WHERE b=2",
        ),
        (
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a, g AS (a*2) STORED, v AS (a+1)); INSERT INTO t(id,a) VALUES(1,1),(2,2)",
            "UPDATE t SET a=7; INSERT INTO t(id,a) VALUES(3,3); DELETE FROM t WHERE id=1",
        ),
        (
            "CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE); INSERT INTO t VALUES(1,'a'),(2,'b')",
            "UPDATE t SET u='c' WHERE id=1; UPDATE t SET u='a' WHERE id=2; UPDATE t SET u='b' WHERE id=1",
        ),
        (
            "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT); INSERT INTO t VALUES(1, CAST(x'ff00fe' AS TEXT))",
            "UPDATE t SET a='b'",
        ),
    ] {
        let connection = database(schema);
        let look = "SELECT * FROM t ORDER BY 1, 2";
        let before = rows(&connection, look);
        let changes = recorded(&connection, sql);
        assert_ne!(rows(&connection, look), before, "{schema}");
        assert_eq!(back(&connection, &changes), [], "{schema}");
        assert_eq!(rows(&connection, look), before, "{schema}");
        let again = invert(&invert(&changes).unwrap()).unwrap();
        assert_eq!(count(&mut &*again).unwrap(), count(&mut &*changes).unwrap());
    }
}

#[test]
fn a_row_that_somebody_changed_is_asked_about_and_the_others_go_back() {
    let connection =
        database("CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1,1),(2,2)");
    let changes = recorded(&connection, "UPDATE t SET a=a+10");
    connection
        .execute_batch("UPDATE t SET a=99 WHERE id=2")
        .unwrap();
    assert_eq!(back(&connection, &changes), [Conflict::Differs]);
    assert_eq!(
        rows(&connection, "SELECT a FROM t"),
        [["Integer(1)"], ["Integer(99)"]]
    );
}

#[test]
fn a_unique_value_that_was_taken_meanwhile_is_a_constraint() {
    let connection =
        database("CREATE TABLE t(id INTEGER PRIMARY KEY, u UNIQUE); INSERT INTO t VALUES(1,'a')");
    let changes = recorded(&connection, "UPDATE t SET u='b'");
    connection
        .execute_batch("INSERT INTO t VALUES(2,'a')")
        .unwrap();
    assert_eq!(back(&connection, &changes), [Conflict::Constraint]);
}

#[test]
fn references_are_counted_and_do_not_act() {
    let connection = database(
        "PRAGMA foreign_keys=ON; CREATE TABLE p(id INTEGER PRIMARY KEY); \
         CREATE TABLE c(id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE);",
    );
    let changes = recorded(&connection, "INSERT INTO p VALUES(1)");
    connection
        .execute_batch("INSERT INTO c VALUES(5,1); BEGIN")
        .unwrap();
    assert_eq!(back(&connection, &changes), [Conflict::References(1)]);
    assert_eq!(rows(&connection, "SELECT id FROM c").len(), 1);
    // SQLite counts once and then forgets: whoever skips this must not commit.
    connection.execute_batch("COMMIT").unwrap();
}

#[test]
fn triggers_are_recorded_and_stay_silent_when_they_are_off() {
    let connection = database(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE TABLE seen(id INTEGER PRIMARY KEY, what); \
         CREATE TRIGGER r AFTER UPDATE ON t BEGIN INSERT INTO seen(what) VALUES(new.a); END; INSERT INTO t VALUES(1,1)",
    );
    let changes = recorded(&connection, "UPDATE t SET a=2");
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)
        .unwrap();
    assert_eq!(back(&connection, &changes), []);
    assert_eq!(
        rows(&connection, "SELECT * FROM seen"),
        Vec::<Vec<String>>::new()
    );
}

#[test]
fn two_databases_are_compared_row_by_row() {
    let connection = database(
        "ATTACH ':memory:' AS older; CREATE TABLE older.t(id INTEGER PRIMARY KEY, a); INSERT INTO older.t VALUES(1,1),(2,2); \
         CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1,5),(3,3)",
    );
    let session = Session::new(&connection, |_| true).unwrap();
    session.diff("older", "t").unwrap();
    let mut seen = Vec::new();
    each(&mut &*session.changeset().unwrap(), false, |change| {
        seen.push(format!("{:?} {:?}", change.op, change.key_values()));
        Ok(())
    })
    .unwrap();
    seen.sort();
    assert_eq!(
        seen,
        [
            "Delete [Integer(2)]",
            "Insert [Integer(3)]",
            "Update [Integer(1)]"
        ]
    );
}

#[test]
fn only_what_is_wanted_is_applied() {
    let connection =
        database("CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1,1),(2,2)");
    let changes = recorded(&connection, "UPDATE t SET a=0");
    let how = Apply {
        inverted: true,
        wants: Some(&mut |change| change.key_values() == [&Value::Integer(2)]),
        conflict: &mut |_, _| Answer::Stop,
    };
    apply(&connection, &mut &*changes, how).unwrap();
    assert_eq!(
        rows(&connection, "SELECT a FROM t"),
        [["Integer(0)"], ["Integer(2)"]]
    );
}

#[test]
fn what_is_no_changeset_is_an_error() {
    assert!(count(&mut &b"not a changeset"[..]).is_err());
    assert!(invert(b"T\x7f").is_err());
}
