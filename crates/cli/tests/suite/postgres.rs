//! Rows of a real `PostgreSQL`: changed through the program and by other clients, and taken back.

use std::os::unix::process::ExitStatusExt as _;

use crate::postgres_server::Server;
use crate::world::{Ran, World};

/// SIGABRT.
const ABORTED: i32 = 6;

const SCHEMA: &str = "
    CREATE TABLE a (id int PRIMARY KEY, v numeric, u text UNIQUE);
    CREATE TABLE loose (v text);
    CREATE TABLE child (id int PRIMARY KEY, a int REFERENCES a ON DELETE CASCADE);
    INSERT INTO a VALUES (1, 1.10, 'one'), (2, 2.00, 'two');
    INSERT INTO loose VALUES ('q'), ('q'), (NULL);
    INSERT INTO child VALUES (10, 1), (20, 2)";

/// A database that is enrolled as `shop`, and a world of ours.
struct Shop {
    world: World,
    server: Server,
}

impl Shop {
    fn new(schema: &str) -> Self {
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

    fn cli(&self, words: &[&str]) -> Ran {
        self.world.run(&mut self.world.command(words))
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let ran = self.cli(words);
        assert_eq!(ran.code, 0, "{words:?}: {ran}");
        ran.out
    }

    #[track_caller]
    fn sql(&self, text: &str) -> String {
        self.ok(&["sql", "--db", "shop", text])
    }

    /// Everything that anybody can see, and not in which order it lies.
    fn all(&self) -> String {
        self.server.psql(
            "postgres",
            "SELECT 'a', t::text FROM a t UNION ALL SELECT 'loose', t::text FROM loose t
             UNION ALL SELECT 'child', t::text FROM child t ORDER BY 1, 2",
        )
    }

    /// Names the newest operation.
    fn newest(&self) -> String {
        let log = self.ok(&["--json", "log", "-n", "1"]);
        let log: serde_json::Value = serde_json::from_str(&log).unwrap();
        log["operations"][0]["id"].as_str().unwrap().to_owned()
    }
}

const WORK: &str = "UPDATE a SET v = 7 WHERE id = 1; DELETE FROM a WHERE id = 2; INSERT INTO a VALUES (3, 3, 'three');
    DELETE FROM loose WHERE v = 'q'; INSERT INTO loose VALUES ('z'), ('z');
    WITH gone AS (DELETE FROM child WHERE id = 10 RETURNING a) INSERT INTO child SELECT 30, a FROM gone;
    INSERT INTO a VALUES (1, 0, 'x') ON CONFLICT (id) DO UPDATE SET v = 8;
    MERGE INTO a USING (VALUES (3), (4)) w (id) ON a.id = w.id WHEN MATCHED THEN UPDATE SET v = 33
      WHEN NOT MATCHED THEN INSERT VALUES (w.id, 4, 'four')";

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
        "id\tu\n1\tone\n2\ttwo\n"
    );
    assert_eq!(shop.newest(), newest);
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
fn what_another_client_wrote_is_an_operation_with_its_name() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    shop.server.psql(
        "postgres",
        "SET backout.agent = 'builder'; UPDATE a SET v = v + 1",
    );
    shop.server.psql(
        "postgres",
        "BEGIN; INSERT INTO a VALUES (9, 9, 'nine'); ROLLBACK",
    );
    shop.server.psql(
        "postgres",
        "BEGIN; INSERT INTO a VALUES (5, 9, 'five'); DELETE FROM a WHERE id = 5; COMMIT",
    );
    let log = shop.ok(&["log"]);
    assert!(
        log.contains("builder") && log.contains("wrote a (2 changed)"),
        "{log}"
    );
    assert_eq!(log.lines().count(), 1, "{log}");
    shop.ok(&["undo", &shop.newest(), "--others"]);
    assert_eq!(shop.all(), before);
    assert_eq!(
        shop.ok(&["log"]).lines().count(),
        2,
        "nothing is taken up twice"
    );
}

#[test]
fn the_rows_and_files_of_a_command_are_one_undo() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    let psql = shop
        .server
        .psql_words("postgres", "COPY loose FROM STDIN; UPDATE a SET v = 0");
    let line = format!(
        "echo data > made; printf 'x\\ny\\n' | {}",
        psql[..psql.len() - 1].join(" ")
    );
    shop.ok(&[
        "run",
        "--",
        "sh",
        "-c",
        &format!("{line} 'COPY loose FROM STDIN'"),
    ]);
    assert!(shop.world.has("made") && shop.all().contains("(x)"));
    let log = shop.ok(&["--json", "log"]);
    let log: serde_json::Value = serde_json::from_str(&log).unwrap();
    let all = log["operations"].as_array().unwrap();
    let run = all.iter().find(|it| it["verb"] == "run").unwrap();
    shop.ok(&["undo", run["id"].as_str().unwrap()]);
    assert!(!shop.world.has("made"));
    assert_eq!(shop.all(), before);
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
    for name in ["postgres.ran", "postgres.marked", "postgres.committed"] {
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
fn what_cannot_be_taken_back_is_refused_and_did_not_happen() {
    let shop = Shop::new(SCHEMA);
    let before = shop.server.dump("postgres");
    for (text, why) in [
        ("CREATE TABLE t ()", "changes the schema"),
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
        ("COPY a FROM STDIN", "no stream to read"),
        (
            "SET LOCAL statement_timeout = '10ms'; SELECT pg_sleep(5)",
            "statement timeout",
        ),
        (
            "UPDATE a SET v = 1; SELECT pg_terminate_backend(pg_backend_pid())",
            "connection closed",
        ),
    ] {
        let refused = shop.cli(&["sql", "--db", "shop", text]);
        assert_eq!(refused.code, 1, "{text}: {refused}");
        assert!(refused.err.contains(why), "{text}: {refused}");
        assert_eq!(shop.server.dump("postgres"), before, "{text}");
    }
    assert_eq!(shop.ok(&["log"]), "");
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

const ZOO: &str = "
    CREATE DOMAIN price AS numeric(9, 3) CHECK (VALUE >= 0);
    CREATE TYPE mood AS ENUM ('sad', 'it''s \"ok\"');
    CREATE TYPE pair AS (x int, y text);
    CREATE TABLE kinds (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, p price, m mood, c pair, l text[], j json, b jsonb,
        f float8, r real, y bytea, t timestamptz, d interval, n numeric, i inet, g int GENERATED ALWAYS AS (id * 2) STORED,
        rg int4range, cls regclass, \"odd \"\"name\" text, x xml, mon money, bits bit varying);
    CREATE TABLE events (at date, note text, PRIMARY KEY (at, note)) PARTITION BY RANGE (at);
    CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2026-07-01');
    CREATE TABLE events_2 (note text NOT NULL, at date NOT NULL);
    ALTER TABLE events ATTACH PARTITION events_2 FOR VALUES FROM ('2026-07-01') TO ('2027-01-01');
    CREATE TABLE staff (id serial PRIMARY KEY, name text, boss int REFERENCES staff, changed timestamptz);
    CREATE TABLE audit (what text, at timestamptz DEFAULT now());
    CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.changed := clock_timestamp(); RETURN NEW; END';
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO audit VALUES (TG_OP); RETURN NULL; END';
    CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON staff FOR EACH ROW EXECUTE FUNCTION touch();
    CREATE TRIGGER a_note AFTER INSERT OR UPDATE OR DELETE ON staff FOR EACH ROW EXECUTE FUNCTION note();
    INSERT INTO kinds (p, m, c, l, j, b, f, r, y, t, d, n, i, rg, cls, \"odd \"\"name\", x, mon, bits)
    VALUES (1.5, 'it''s \"ok\"', (1, 'a,\"b')::pair, '{NULL,\"a b\",\"\\\\\"}', '{\"b\": 1,  \"a\":1.0}', '{\"b\": 1.00}',
        0.1 + 0.2, 1e-20, '\\x00ff', '2026-03-29 01:30:00.123456+00', '-1 day +02:03:04', 1.5000, '10.0.0.1/8', '[1,5)', 'staff', '',
        '<a>&lt;</a>', 12.34, B'0101'), (0, NULL, NULL, NULL, NULL, NULL, 'NaN', '-0', NULL, 'infinity', NULL, 'NaN', NULL, 'empty',
        NULL, NULL, NULL, NULL, NULL);
    INSERT INTO events VALUES ('2026-02-01', 'a'), ('2026-08-01', 'b');
    INSERT INTO staff (name) VALUES ('ann'); INSERT INTO staff (name, boss) VALUES ('bob', 1), ('eve', 2)";

/// What is done to it, by whom: through the program, or by another client with settings of its own.
const DEEDS: [(bool, &str); 8] = [
    (true, "UPDATE kinds SET n = n * 2, f = f / 3, l = l || 'z'::text, t = t + '1 day'; DELETE FROM kinds WHERE id = 2"),
    (false, "SET datestyle = 'SQL, DMY'; SET timezone = 'Asia/Tokyo'; SET intervalstyle = 'iso_8601'; SET bytea_output = 'escape';
             SET extra_float_digits = 0; UPDATE kinds SET d = d * 2, y = y || '\\x5c', r = r * 3, mon = mon * 2"),
    (true, "INSERT INTO kinds (id, p) OVERRIDING SYSTEM VALUE VALUES (77, 3); UPDATE kinds SET cls = 'audit' WHERE id = 1"),
    (true, "UPDATE events SET at = at + 150; INSERT INTO events VALUES ('2026-12-24', 'c')"),
    (false, "DELETE FROM staff WHERE name = 'eve'; UPDATE staff SET name = upper(name); INSERT INTO staff (name, boss) VALUES ('joe', 2)"),
    (true, "UPDATE staff SET boss = NULL; DELETE FROM staff WHERE name <> 'ANN'"),
    (false, "TRUNCATE kinds, audit"),
    (true, "INSERT INTO events SELECT '2026-01-01'::date + i % 360, i::text FROM generate_series(1, 500) i; DELETE FROM events WHERE note = 'b'"),
];

#[test]
fn a_database_with_something_of_everything_is_worked_on_undone_and_left_as_it_was() {
    let (world, server) = (World::new(), Server::start());
    server.psql("postgres", ZOO);
    let bare = server.dump("postgres");
    let shop = Shop { world, server };
    let url = shop.server.url("postgres");
    shop.ok(&["db", "enroll", &url, "--name", "shop"]);
    shop.ok(&["db", "enroll", &url]);
    assert!(
        shop.ok(&["db", "status", "shop"])
            .contains("5 tables covered"),
        "{}",
        shop.ok(&["db", "status", "shop"])
    );
    let contents = || {
        let tables = ["kinds", "events_1", "events_2", "staff", "audit"];
        let each = tables.map(|table| {
            shop.server.psql(
                "postgres",
                &format!("SELECT t::text FROM {table} t ORDER BY 1"),
            )
        });
        each.concat()
    };
    let before = contents();
    let mut ids = Vec::new();
    let mut states = vec![before.clone()];
    for (is_ours, deed) in DEEDS {
        if is_ours {
            shop.sql(deed);
        } else {
            shop.server.psql("postgres", deed);
        }
        ids.push(shop.newest());
        states.push(contents());
    }
    for (id, state) in ids.iter().zip(&states).rev() {
        shop.ok(&["undo", id, "--others"]);
        assert_eq!(contents(), *state, "undo of {id}");
    }
    for (id, state) in ids.iter().zip(states.iter().skip(1)) {
        shop.ok(&["redo", id, "--others"]);
        assert_eq!(contents(), *state, "redo of {id}");
    }
    for id in ids.iter().rev() {
        shop.ok(&["undo", id, "--others"]);
    }
    shop.ok(&["db", "unenroll", "shop"]);
    assert_eq!(shop.ok(&["db", "list"]), "");
    // Sequences are not rewound, and rows may lie in another order.
    let still = |dump: &str| {
        let mut lines: Vec<String> = dump
            .lines()
            .filter(|it| !it.contains("setval"))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(still(&shop.server.dump("postgres")), still(&bare));
    let left = "SELECT count(*) FROM pg_namespace WHERE nspname = 'backout'";
    assert_eq!(shop.server.psql("postgres", left), "0\n");
    assert_eq!(
        shop.server
            .psql("postgres", "SELECT count(*) FROM pg_event_trigger"),
        "0\n"
    );
}

#[test]
fn a_role_with_few_rights_is_told_what_that_means() {
    let (world, server) = (World::new(), Server::start());
    server.psql("postgres", "CREATE ROLE clerk LOGIN");
    server.psql("postgres", "CREATE DATABASE own OWNER clerk");
    server.psql(
        "own",
        "CREATE TABLE theirs (id int PRIMARY KEY); GRANT ALL ON theirs TO clerk",
    );
    server.psql(
        "own",
        "SET ROLE clerk; CREATE SCHEMA s; CREATE TABLE s.mine (id int PRIMARY KEY, v text);
        CREATE TABLE s.child (id int PRIMARY KEY, m int REFERENCES s.mine)",
    );
    let shop = Shop { world, server };
    let url = shop.server.url("own").replace("postgres:s3cret@", "clerk@");
    let told = shop.cli(&["db", "enroll", &url, "--name", "shop"]);
    assert_eq!(told.code, 0, "{told}");
    for said in [
        "`theirs` is not covered: must be owner of table theirs",
        "tables that are made later are not covered by themselves: only a superuser can have that",
        "this role cannot keep other triggers from running during an undo: they run once more",
    ] {
        assert!(told.err.contains(said), "{told}");
    }
    let refused = shop.cli(&["sql", "--db", "shop", "INSERT INTO theirs VALUES (1)"]);
    assert!(
        refused.err.contains("has no triggers of Backout"),
        "{refused}"
    );
    shop.sql("INSERT INTO s.mine VALUES (1, 'x'); INSERT INTO s.child VALUES (5, 1)");
    shop.ok(&["undo", &shop.newest()]);
    assert_eq!(
        shop.server.psql("own", "SELECT count(*) FROM s.mine"),
        "0\n"
    );
    shop.server.psql("own", "CREATE TABLE s.late ()");
    let status = shop.cli(&["db", "status", "shop"]);
    assert!(
        status
            .err
            .contains("`s.late` is not covered: it was made or changed since"),
        "{status}"
    );
    let refused = shop.cli(&[
        "sql",
        "--db",
        "shop",
        "DO $$ BEGIN CREATE TABLE s.t (); END $$",
    ]);
    assert!(refused.err.contains("changes the schema"), "{refused}");
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

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// Makes up a transaction of a few statements.
    fn transaction(&mut self, client: u64) -> String {
        let count = 1 + self.roll(4);
        let each = (0..count).map(|_| {
            let (id, v) = (self.roll(30), self.roll(1000));
            match self.roll(8) {
                0 | 1 => format!("INSERT INTO a VALUES ({id}, {v}, 'c{client}-{v}') ON CONFLICT DO NOTHING"),
                2 => format!("UPDATE a SET v = v + {v} WHERE id % 7 = {}", id % 7),
                3 => format!("DELETE FROM a WHERE id = {id}"),
                4 => format!("INSERT INTO child SELECT {id} + 100 * {client}, min(id) FROM a HAVING count(*) > 0 ON CONFLICT DO NOTHING"),
                5 => format!("INSERT INTO loose VALUES ('{v}'), ('q')"),
                6 => "DELETE FROM loose WHERE ctid IN (SELECT ctid FROM loose LIMIT 1)".to_owned(),
                _ => format!("UPDATE a SET id = id + 1000 WHERE id = {id} AND NOT EXISTS (SELECT FROM a WHERE id = {id} + 1000)
                              AND NOT EXISTS (SELECT FROM child WHERE child.a = {id})"),
            }
        });
        each.collect::<Vec<_>>().join("; ")
    }
}

#[test]
fn random_transactions_of_several_clients_at_once_go_back_one_by_one() {
    let shop = Shop::new(SCHEMA);
    let before = shop.all();
    std::thread::scope(|scope| {
        for client in 1..=3 {
            let server = &shop.server;
            scope.spawn(move || {
                let mut dice = Dice(client * 7919);
                for _ in 0..12 {
                    // Two clients may stand in each other's way; then one of them is sent away, whole.
                    let sql = format!("BEGIN; {}; COMMIT", dice.transaction(client));
                    let _ended = server
                        .program("psql", "postgres")
                        .args(["-qAt", "-v", "ON_ERROR_STOP=1", "-c", &sql])
                        .output();
                }
            });
        }
        let mut dice = Dice(42);
        for _ in 0..6 {
            let _ended = shop.cli(&["sql", "--db", "shop", &dice.transaction(9)]);
        }
    });
    let after = shop.all();
    assert_ne!(before, after);
    let log = shop.ok(&["--json", "log", "-n", "0"]);
    let log: serde_json::Value = serde_json::from_str(&log).unwrap();
    let ids: Vec<String> = log["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(ids.len() > 10, "{} operations", ids.len());
    for id in &ids {
        shop.ok(&["undo", id, "--others", "--committed"]);
    }
    assert_eq!(shop.all(), before);
}

#[test]
fn of_two_that_wait_for_each_other_one_is_sent_away_whole() {
    let shop = Shop::new(SCHEMA);
    let theirs = "BEGIN; UPDATE a SET v = 100 WHERE id = 2; SELECT pg_sleep(1); UPDATE a SET v = 100 WHERE id = 1; COMMIT";
    let ours =
        "UPDATE a SET v = 200 WHERE id = 1; SELECT pg_sleep(1); UPDATE a SET v = 200 WHERE id = 2";
    let (their, our) = std::thread::scope(|scope| {
        let their = scope.spawn(|| {
            let mut psql = shop.server.program("psql", "postgres");
            psql.args(["-qAt", "-v", "ON_ERROR_STOP=1", "-c", theirs])
                .output()
                .unwrap()
        });
        let our = shop.cli(&["sql", "--db", "shop", ours]);
        (their.join().unwrap(), our)
    });
    assert!(their.status.success() || our.code == 0, "{our}");
    let now = shop.server.psql("postgres", "SELECT DISTINCT v FROM a");
    assert_eq!(
        now.lines().count(),
        1,
        "all of one and nothing of the other: {now}"
    );
    if our.code != 0 {
        assert!(our.err.contains("deadlock detected"), "{our}");
        assert!(!shop.ok(&["log"]).contains("sql in shop"));
    }
}

#[test]
fn what_the_journal_let_go_is_pruned_and_nothing_before() {
    let shop = Shop::new(SCHEMA);
    shop.sql("UPDATE a SET v = 5");
    let count = "SELECT count(*) FROM backout.log";
    shop.ok(&["db", "sync"]);
    assert_eq!(shop.server.psql("postgres", count), "2\n");
    shop.world.minutes(60 * 24 * 40);
    shop.ok(&["gc"]);
    let told = shop.ok(&["--json", "db", "sync", "shop"]);
    assert!(
        told.contains("\"pruned_rows\":2") || told.contains("\"pruned_rows\": 2"),
        "{told}"
    );
    assert_eq!(shop.server.psql("postgres", count), "0\n");
}

#[test]
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
                "it is like `postgres://user@host/database`",
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
    shop.server.psql("postgres", "UPDATE a SET v = 3");
    assert_eq!(
        shop.ok(&["db", "sync"]),
        "took up 1 transaction of other clients\n"
    );
    assert_eq!(
        shop.ok(&["db", "unenroll", "shop"]),
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
