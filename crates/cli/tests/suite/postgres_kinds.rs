//! A `PostgreSQL` database with something of every kind, and roles with few rights.

use crate::postgres::Shop;
use crate::postgres_server::Server;
use crate::world::World;

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
                &format!("SELECT (t.*)::text FROM {table} t ORDER BY 1"),
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
    shop.ok(&["db", "unenroll", "shop", "--discard"]);
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
fn a_copy_of_a_database_is_not_taken_for_it() {
    let shop = Shop::new("CREATE TABLE a (id int PRIMARY KEY, v int); INSERT INTO a VALUES (1, 1)");
    shop.server
        .psql("template1", "CREATE DATABASE stage TEMPLATE postgres");
    let url = shop.server.url("stage");
    let refused = shop.cli(&["sql", "--db", &url, "UPDATE a SET v = 2"]);
    assert!(
        refused
            .err
            .contains("is a copy of one that is enrolled as shop: give it a name of its own"),
        "{refused}"
    );
    shop.ok(&["db", "enroll", &url]);
    assert!(shop.ok(&["db", "list"]).contains("stage  postgres://"));
    shop.sql("UPDATE a SET v = 3");
    shop.ok(&["sql", "--db", "stage", "UPDATE a SET v = 4"]);
    let values = |database| shop.server.psql(database, "SELECT v FROM a");
    assert_eq!(
        (values("postgres"), values("stage")),
        ("3\n".into(), "4\n".into())
    );
    shop.ok(&["undo", "@-1"]);
    assert_eq!(
        (values("postgres"), values("stage")),
        ("1\n".into(), "4\n".into())
    );
}

#[test]
fn what_is_no_row_of_yours_is_refused() {
    let shop = Shop::new("CREATE TABLE a (id int PRIMARY KEY, v int); INSERT INTO a VALUES (1, 1)");
    shop.sql("UPDATE a SET v = 2");
    shop.server.psql("postgres", "SELECT lo_create(4242)");
    for (sql, said) in [
        (
            "DELETE FROM backout.log; UPDATE a SET v = 3",
            "the log of Backout is not changed by hand",
        ),
        (
            "TRUNCATE backout.marker; UPDATE a SET v = 3",
            "the log of Backout is not changed by hand",
        ),
        (
            "SELECT lo_unlink(4242); UPDATE a SET v = 3",
            "a table of the server itself",
        ),
        ("SELECT lo_unlink(4242)", "a table of the server itself"),
        (
            "UPDATE pg_proc SET procost = 7 WHERE false; UPDATE a SET v = 3",
            "a table of the server itself",
        ),
        (
            "DO $$ BEGIN EXECUTE 'CREATE ROLE foo'; END $$; UPDATE a SET v = 3",
            "nothing would bring",
        ),
    ] {
        let refused = shop.cli(&["sql", "--db", "shop", sql]);
        assert!(
            refused.code != 0 && refused.err.contains(said),
            "{sql}: {refused}"
        );
    }
    assert_eq!(shop.server.psql("postgres", "SELECT v FROM a"), "2\n");
    shop.ok(&["undo", "@"]);
    assert_eq!(shop.server.psql("postgres", "SELECT v FROM a"), "1\n");
}
