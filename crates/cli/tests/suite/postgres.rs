//! Rows of a real `PostgreSQL`: changed through the program and by other clients, and taken back.

use std::os::unix::process::ExitStatusExt as _;

use crate::postgres_server::Server;
use crate::world::{Ran, World};

/// SIGABRT.
const ABORTED: i32 = 6;

pub(crate) const SCHEMA: &str = "
    CREATE TABLE a (id int PRIMARY KEY, v numeric, u text UNIQUE);
    CREATE TABLE loose (v text);
    CREATE TABLE child (id int PRIMARY KEY, a int REFERENCES a ON DELETE CASCADE);
    INSERT INTO a VALUES (1, 1.10, 'one'), (2, 2.00, 'two');
    INSERT INTO loose VALUES ('q'), ('q'), (NULL);
    INSERT INTO child VALUES (10, 1), (20, 2)";

/// A database that is enrolled as `shop`, and a world of ours.
pub(crate) struct Shop {
    pub(crate) world: World,
    pub(crate) server: Server,
}

impl Shop {
    pub(crate) fn new(schema: &str) -> Self {
        let (world, server) = (World::new(), Server::start());
        server.psql("postgres", schema);
        let shop = Self { world, server };
        let enrolled = shop.cli(&[
            "db",
            "enroll",
            &shop.server.url("postgres"),
            "--name",
            "shop",
        ]);
        assert_eq!(enrolled.code, 0, "{enrolled}");
        shop
    }

    pub(crate) fn cli(&self, words: &[&str]) -> Ran {
        self.world.run(&mut self.world.command(words))
    }

    #[track_caller]
    pub(crate) fn ok(&self, words: &[&str]) -> String {
        let ran = self.cli(words);
        assert_eq!(ran.code, 0, "{words:?}: {ran}");
        ran.out
    }

    #[track_caller]
    pub(crate) fn sql(&self, text: &str) -> String {
        self.ok(&["sql", "--db", "shop", text])
    }

    /// Everything that anybody can see, and not in which order it lies.
    pub(crate) fn all(&self) -> String {
        self.server.psql(
            "postgres",
            "SELECT 'a', t::text FROM a t UNION ALL SELECT 'loose', t::text FROM loose t
             UNION ALL SELECT 'child', t::text FROM child t ORDER BY 1, 2",
        )
    }

    /// Names the newest operation.
    pub(crate) fn newest(&self) -> String {
        let log = self.ok(&["--json", "log", "-n", "1"]);
        let log: serde_json::Value = serde_json::from_str(&log).unwrap();
        let newest = log.pointer("/operations/0/id").unwrap();
        newest.as_str().unwrap().to_owned()
    }
}

const WORK: &str = "UPDATE a SET v = 7 WHERE id = 1; DELETE FROM a WHERE id = 2; INSERT INTO a VALUES (3, 3, 'three');
    DELETE FROM loose WHERE v = 'q'; INSERT INTO loose VALUES ('z'), ('z');
    WITH gone AS (DELETE FROM child WHERE id = 10 RETURNING a) INSERT INTO child SELECT 30, a FROM gone;
    INSERT INTO a VALUES (1, 0, 'x') ON CONFLICT (id) DO UPDATE SET v = 8;
    MERGE INTO a USING (VALUES (3), (4)) w (id) ON a.id = w.id WHEN MATCHED THEN UPDATE SET v = 33
      WHEN NOT MATCHED THEN INSERT VALUES (w.id, 4, 'four')";

#[test]
fn a_new_row_that_was_undone_is_called_gone() {
    let shop = Shop::new(SCHEMA);
    shop.sql("INSERT INTO a VALUES (9, 9, 'nine'); UPDATE a SET v = 7 WHERE id = 1; DELETE FROM child WHERE id = 10");
    let id = shop.newest();
    let told = shop.ok(&["undo", &id]);
    let place = "postgres:shop/public";
    for said in [
        "a:9       gone, as before",
        "a:1       restored",
        "child:10  restored",
    ] {
        assert!(told.contains(&format!("{place}/{said}")), "{said}: {told}");
    }
    let told = shop.ok(&["redo", &id]);
    for said in [
        "a:9       changed again",
        "a:1       changed again",
        "child:10  gone again",
    ] {
        assert!(told.contains(&format!("{place}/{said}")), "{said}: {told}");
    }
}

#[test]
fn rows_go_back_and_come_again() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.sql(WORK);
    let after = shop.all();
    assert_ne!(before, after);
    let id = shop.newest();
    let foreseen = shop.ok(&["undo", "-n", &id]);
    assert!(foreseen.contains("postgres:shop/public/a:2"), "{foreseen}");
    assert_eq!(shop.all(), after, "a dry run changes nothing");
    shop.ok(&["undo", &id]);
    assert_eq!(shop.all(), before);
    shop.ok(&["redo", &id]);
    assert_eq!(shop.all(), after);
    shop.ok(&["undo", &id]);
    assert_eq!(shop.all(), before);
}

#[test]
fn an_emptied_table_comes_back_and_a_question_is_no_operation() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.sql("TRUNCATE a, child, loose");
    assert_eq!(shop.all(), "");
    shop.ok(&["undo", &shop.newest()]);
    assert_eq!(shop.all(), before);
    let newest = shop.newest();
    assert_eq!(
        shop.sql("SELECT id, u FROM a ORDER BY id"),
        "id  u\n1   one\n2   two\n"
    );
    assert_eq!(shop.newest(), newest);
}

#[test]
fn rows_that_are_copied_in_go_back() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    let text = b"COPY a FROM STDIN;\n7\t7.70\tseven;\n8\t\\N\t\\N\n\\.\nUPDATE a SET v = 0 WHERE id = 8;\n";
    let ran = shop.world.piped(text, ["sql", "--db", "shop"]);
    assert_eq!(ran.code, 0, "{ran}");
    let after = shop.all();
    assert!(
        after.contains("(7,7.70,seven;)") && after.contains("(8,0,)"),
        "{after}"
    );
    let id = shop.newest();
    shop.ok(&["undo", &id]);
    assert_eq!(shop.all(), before);
    shop.ok(&["redo", &id]);
    assert_eq!(shop.all(), after);
}

#[test]
fn two_rows_that_swapped_what_is_unique_swap_it_back() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.sql("UPDATE a SET u = 'x' WHERE id = 1; UPDATE a SET u = 'one' WHERE id = 2; UPDATE a SET u = 'two' WHERE id = 1");
    shop.ok(&["undo", &shop.newest()]);
    assert_eq!(shop.all(), before);
}

#[test]
fn a_row_that_somebody_changed_since_is_a_conflict_of_its_own() {
    let shop = Shop::new(SCHEMA);
    shop.sql("UPDATE a SET v = 5");
    let id = shop.newest();
    // Not through the log: as if the triggers had been away.
    shop.server.psql("postgres", "SET backout.covering = 'on'; ALTER TABLE a DISABLE TRIGGER \"!backout_row\"; UPDATE a SET v = 6 WHERE id = 1; ALTER TABLE a ENABLE ALWAYS TRIGGER \"!backout_row\"");
    let refused = shop.cli(&["undo", &id]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(
        refused.to_string().contains("postgres:shop/public/a:1"),
        "{refused}"
    );
    assert!(shop.all().contains("(2,5,two)"), "nothing went back");
    shop.cli(&["undo", &id, "--partial"]);
    let now = shop.all();
    assert!(
        now.contains("(1,6,one)") && now.contains("(2,2.00,two)"),
        "{now}"
    );
    shop.ok(&["undo", &id, "--force"]);
    assert!(shop.all().contains("(1,1.10,one)"));
    shop.ok(&["redo", &shop.newest()]);
    assert!(
        shop.all().contains("(1,6,one)"),
        "what force replaced is kept"
    );
}

#[test]
fn a_unique_value_or_a_reference_that_somebody_took_meanwhile_is_a_conflict() {
    let shop = Shop::new(SCHEMA);
    shop.sql("DELETE FROM a WHERE id = 2; INSERT INTO a VALUES (7, 7, 'seven')");
    let id = shop.newest();
    shop.server.psql(
        "postgres",
        "INSERT INTO a VALUES (8, 8, 'two'); INSERT INTO child VALUES (70, 7)",
    );
    let then = shop.all();
    // The plan tried it: what no force can help is told before anything is touched.
    let refused = shop.cli(&["undo", &id, "--committed"]).to_string();
    assert!(
        refused.contains("only one may have") && !refused.contains("--force"),
        "{refused}"
    );
    let refused = shop.cli(&["undo", &id, "--committed", "--partial"]);
    let said = refused.to_string();
    assert!(
        said.contains("only one may have") && said.contains("a row of public.child refers to it"),
        "{said}"
    );
    // The row that the cascade took with it cannot come back alone.
    assert_eq!(shop.all(), then);
}

#[test]
fn a_death_at_any_point_leaves_all_or_nothing_and_a_way_back() {
    let work = ["sql", "--db", "shop", WORK];
    let shop = Shop::new(SCHEMA);
    let (before, points) = (shop.all(), shop.world.place("points"));
    let counted = shop
        .world
        .command(&work)
        .env("BACKOUT_CRASH_LOG", &points)
        .output()
        .unwrap();
    assert!(counted.status.success(), "{counted:?}");
    let names = std::fs::read_to_string(&points).unwrap();
    for name in ["rows.ran", "rows.marked", "rows.committed"] {
        assert!(names.contains(name), "{names}");
    }
    let after = shop.all();
    shop.ok(&["undo", &shop.newest()]);
    for point in 1..=names.lines().count() {
        abort_at(&shop, &work, point);
        shop.ok(&["recover"]);
        // The last point is past the end: nothing is left to take back.
        if shop.all() == after {
            shop.ok(&["undo", &shop.newest()]);
        }
        assert_eq!(shop.all(), before, "point {point} of {names}");
    }
    // The same for the way back.
    shop.sql(WORK);
    let id = shop.newest();
    let undo = ["undo", id.as_str()];
    std::fs::remove_file(&points).unwrap();
    let counted = shop
        .world
        .command(&undo)
        .env("BACKOUT_CRASH_LOG", &points)
        .output()
        .unwrap();
    assert!(counted.status.success(), "{counted:?}");
    assert_eq!(shop.all(), before);
    let count = std::fs::read_to_string(&points).unwrap().lines().count();
    shop.ok(&["redo", &id]);
    for point in 1..=count {
        abort_at(&shop, &undo, point);
        shop.ok(&["recover"]);
        if shop.all() == before {
            shop.ok(&["redo", &id]);
        }
        assert_eq!(shop.all(), after, "point {point} of the undo");
    }
}

#[track_caller]
fn abort_at(shop: &Shop, words: &[&str], point: usize) {
    let mut command = shop.world.command(words);
    let died = command
        .env("BACKOUT_CRASH_AT", point.to_string())
        .output()
        .unwrap();
    assert_eq!(
        died.status.signal(),
        Some(ABORTED),
        "point {point}: {died:?}"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of what is told")]
fn what_cannot_be_taken_back_is_refused_and_did_not_happen() {
    let shop = Shop::new(SCHEMA);
    let before = shop.server.dump("postgres");
    for (text, why) in [
        ("CREATE TYPE t AS (a int)", "changes the schema"),
        ("DROP TABLE a CASCADE", "changes the schema"),
        ("ALTER TABLE a DROP COLUMN v CASCADE", "changes the schema"),
        (
            "ALTER TABLE loose DROP COLUMN v",
            "the values of a column are kept by the primary key of their rows: here there is none",
        ),
        (
            "ALTER TABLE a ALTER id TYPE bigint",
            "the values of a column are kept by the primary key of their rows",
        ),
        (
            "ALTER TABLE a ALTER v TYPE text; UPDATE a SET v = 'x'",
            "a table gets another column, or another definition, and other rows at once",
        ),
        ("ALTER TABLE a OWNER TO postgres", "changes the schema"),
        (
            "ALTER TABLE a RENAME CONSTRAINT a_u_key TO b",
            "changes the schema",
        ),
        ("ALTER TABLE a ADD PRIMARY KEY (v)", "multiple primary keys"),
        (
            "ALTER TABLE a ADD CHECK (v > 0)",
            "it does more than add columns",
        ),
        (
            "ALTER TABLE a ADD CONSTRAINT low CHECK (v < 0)",
            "is violated by some row",
        ),
        (
            "ALTER TABLE a ADD w float DEFAULT random()",
            "a column whose value is made anew each time cannot come again as it was",
        ),
        (
            "ALTER TABLE a ADD w int; UPDATE a SET w = 1",
            "a table gets another column, or another definition, and other rows at once: do that in two operations, so that each can be taken back",
        ),
        ("DROP TABLE a", "other objects depend on it"),
        (
            "DELETE FROM child; DROP TABLE child",
            "a table goes and rows change at once: do that in two operations, so that each can be taken back",
        ),
        (
            "DROP TABLE loose; CREATE TABLE loose (w int)",
            "a name goes and comes at once: do that in two operations, so that each can be taken back",
        ),
        (
            "CREATE TABLE p (i int) PARTITION BY LIST (i)",
            "changes the schema",
        ),
        (
            "CREATE TABLE p () INHERITS (a)",
            "a table that is a part of others, or has parts, cannot be set aside",
        ),
        (
            "CREATE VIEW w WITH (security_barrier) AS SELECT 1",
            "the view has rights, options, triggers or a comment, which its text does not hold",
        ),
        (
            "DO $$ BEGIN CREATE TABLE t (); END $$",
            "changes the schema (CREATE TABLE public.t)",
        ),
        ("DO $$ BEGIN DROP TABLE loose; END $$", "changes the schema"),
        ("UPDATE a SET v = 1; COMMIT", "one transaction"),
        (
            "UPDATE a SET v = 1; DO $$ BEGIN COMMIT; END $$",
            "invalid transaction termination",
        ),
        ("VACUUM", "outside of the transaction"),
        ("UPDATE a SET v = 1; SELECT 1 / 0", "division by zero"),
        (
            "COPY a FROM STDIN",
            "there is no stream to read from here: put the rows on the lines below",
        ),
        ("COPY a FROM STDIN;\nx\ty\tz\n\\.\n", "invalid input syntax"),
        (
            "SET LOCAL statement_timeout = '10ms'; SELECT pg_sleep(5)",
            "statement timeout",
        ),
        (
            "UPDATE a SET v = 1; SELECT pg_terminate_backend(pg_backend_pid())",
            "connection",
        ),
    ] {
        let refused = shop.cli(&["sql", "--db", "shop", text]);
        assert_eq!(refused.code, 1, "{text}: {refused}");
        assert!(refused.err.contains(why), "{text}: {refused}");
        assert_eq!(shop.server.dump("postgres"), before, "{text}");
    }
    assert_eq!(shop.ok(&["log"]), "no operations\n");
}

#[test]
fn a_server_that_is_away_is_told_and_asked_again() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.sql("UPDATE a SET v = 5");
    let id = shop.newest();
    shop.server.down();
    let log = shop.cli(&["log"]);
    assert!(
        log.code == 0
            && log
                .err
                .contains("what other clients did in shop is not known now"),
        "{log}"
    );
    let refused = shop.cli(&["undo", &id]);
    assert!(
        refused.code != 0 && refused.err.contains("cannot be reached"),
        "{refused}"
    );
    let refused = shop.cli(&["sql", "--db", "shop", "SELECT 1"]);
    assert!(
        refused.code != 0 && refused.err.contains("cannot be reached"),
        "{refused}"
    );
    let gc = shop.cli(&["gc"]);
    assert!(
        gc.code == 0 && gc.err.contains("the log of shop could not be pruned now"),
        "{gc}"
    );
    shop.server.up();
    shop.ok(&["undo", &id]);
    assert_eq!(shop.all(), before);
}

#[test]
fn a_password_in_a_url_is_kept_nowhere() {
    let shop = Shop::new(SCHEMA);
    shop.sql("UPDATE a SET v = 5");
    shop.cli(&[
        "sql",
        "--db",
        &shop.server.url("postgres"),
        "UPDATE a SET v = 6",
    ]);
    shop.ok(&["export"]);
    let found = std::process::Command::new("grep")
        .args(["-r", "-a", "-l", "s3cret"])
        .arg(shop.world.place("state"))
        .output();
    assert_eq!(String::from_utf8(found.unwrap().stdout).unwrap(), "");
}

#[test]
fn a_table_whose_columns_changed_since_is_left_alone() {
    let shop = Shop::new(SCHEMA);
    shop.sql("UPDATE a SET v = 5 WHERE id = 1; UPDATE child SET a = 2 WHERE id = 10");
    let id = shop.newest();
    shop.server.psql(
        "postgres",
        "ALTER TABLE a DROP COLUMN v; ALTER TABLE a ADD w text",
    );
    let refused = shop.cli(&["undo", &id]);
    assert!(
        refused
            .to_string()
            .contains("the columns of the table changed since"),
        "{refused}"
    );
    shop.cli(&["undo", &id, "--partial"]);
    assert_eq!(
        shop.server
            .psql("postgres", "SELECT a FROM child WHERE id = 10"),
        "1\n"
    );
}

#[test]
fn many_rows_are_one_target_and_go_back_whole() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.sql("INSERT INTO loose SELECT i::text FROM generate_series(1, 3000) i; INSERT INTO a SELECT i, i, i FROM generate_series(100, 1000) i");
    let id = shop.newest();
    let shown = shop.ok(&["show", &id]);
    assert!(
        shown.contains("postgres:shop/public/a") && !shown.contains("a:100"),
        "{shown}"
    );
    shop.ok(&["undo", &id]);
    assert_eq!(shop.all(), before);
}

#[test]
fn what_the_journal_let_go_is_pruned_and_nothing_before() {
    let shop = Shop::new(SCHEMA);
    shop.sql("UPDATE a SET v = 5");
    let count = "SELECT count(*) FROM backout.log";
    shop.ok(&["db", "sync"]);
    assert_eq!(shop.server.psql("postgres", count), "2\n");
    shop.world.minutes(60 * 24 * 40);
    shop.ok(&["gc", "--keep", "100d"]);
    assert_eq!(shop.server.psql("postgres", count), "2\n");
    let gone = shop.cli(&["gc"]);
    assert_eq!((gone.code, gone.err.as_str()), (0, ""), "{gone}");
    assert_eq!(shop.server.psql("postgres", count), "0\n");
    let told = shop.ok(&["--json", "db", "sync", "shop"]);
    assert!(told.contains("\"pruned_rows\":0"), "{told}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of what is told")]
fn what_names_no_database_is_told() {
    let shop = Shop::new(SCHEMA);
    for (words, said) in [
        (
            &["sql", "--db", "nowhere", "SELECT 1"][..],
            [
                "no database is enrolled as `nowhere`",
                "see those that are with `backout db list`",
            ],
        ),
        (
            &["db", "enroll", "/a/file"],
            [
                "this is no URL of a database that can be enrolled",
                "it is like `postgres://user@host/database` or `mysql://user@host/database`",
            ],
        ),
        (
            &["db", "enroll", "postgres://h/d", "--name", "a b"],
            [
                "a name is letters, digits, `-` and `_`, at most 64",
                "--name",
            ],
        ),
        (
            &[
                "db",
                "enroll",
                &shop.server.url("postgres"),
                "--name",
                "other",
            ],
            [
                "the database is enrolled as `shop` already",
                "names of targets",
            ],
        ),
    ] {
        let refused = shop.cli(words);
        assert!(refused.code != 0, "{refused}");
        for said in said {
            assert!(refused.err.contains(said), "{refused}");
        }
    }
    let refused = shop.world.piped(b"SELECT '\xff'", ["sql", "--db", "shop"]);
    for said in [
        "the statements are not UTF-8",
        "give them in UTF-8; write other bytes as hexadecimal literals",
    ] {
        assert!(refused.err.contains(said), "{refused}");
    }
    shop.server.psql("postgres", "UPDATE a SET v = 3");
    assert_eq!(
        shop.ok(&["db", "sync"]),
        "took up 1 transaction of other clients\n"
    );
    let refused = shop.cli(&["db", "unenroll", "shop"]);
    for said in [
        "`shop` stays enrolled",
        "its log holds what 1 operation changed, and goes with it: nothing could undo them then",
        "undo first what you want back; `--discard` unenrolls it all the same",
    ] {
        assert!(refused.err.contains(said), "{refused}");
    }
    assert_eq!(
        shop.ok(&["db", "unenroll", "shop", "--discard"]),
        "shop is not enrolled any more\n"
    );
    let refused = shop.cli(&["sql", "--db", &shop.server.url("postgres"), "SELECT 1"]);
    assert!(
        refused
            .err
            .contains("is not enrolled: enroll it with `backout db enroll"),
        "{refused}"
    );
}
