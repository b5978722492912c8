//! Changes of a schema in a real `PostgreSQL`, taken back like rows.

use crate::postgres::{SCHEMA, Shop};

/// Everything but our own triggers: a column that comes again has another number, and they know it by that.
fn plain(shop: &Shop) -> String {
    let dump = shop.server.dump("postgres");
    let lines = dump.lines().filter(|line| !line.contains("backout"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_came_into_the_schema_goes_and_comes_again_and_what_went_comes_back() {
    let shop = Shop::new(SCHEMA);
    let before = plain(&shop);
    for text in [
        "CREATE TABLE t (id serial PRIMARY KEY, a int REFERENCES a, v text DEFAULT 'x'); INSERT INTO t (a) VALUES (1), (2)",
        "CREATE TABLE u AS SELECT * FROM a",
        "CREATE UNIQUE INDEX at_v ON a (v)",
        "CREATE VIEW seen AS SELECT id FROM a WHERE v > 1",
        "CREATE TABLE t (id int PRIMARY KEY); CREATE INDEX ON t (id); CREATE VIEW w AS SELECT 1 AS one; DROP VIEW w; CREATE TABLE x (); DROP TABLE x; ALTER TABLE t ADD n int",
        "ALTER TABLE loose ADD COLUMN w int NOT NULL DEFAULT 7, ADD x text",
        "DROP TABLE child",
        "DROP TABLE child, loose",
    ] {
        shop.sql(text);
        let after = plain(&shop);
        assert_ne!(after, before, "{text}");
        let id = shop.newest();
        for _ in 0..2 {
            shop.ok(&["undo", &id]);
            assert_eq!(plain(&shop), before, "{text}");
            shop.ok(&["redo", &id]);
            assert_eq!(plain(&shop), after, "{text}");
        }
        shop.ok(&["undo", &id]);
        assert_eq!(plain(&shop), before, "{text}");
    }
}

#[test]
fn what_went_and_its_name_is_taken_or_what_came_and_is_used_is_a_conflict() {
    let shop = Shop::new(SCHEMA);
    shop.sql("DROP TABLE loose");
    let id = shop.newest();
    shop.server
        .psql("postgres", "CREATE TABLE loose (other int)");
    let refused = shop.cli(&["undo", &id]);
    assert!(
        refused.code != 0
            && refused
                .to_string()
                .contains("another one has its name by now"),
        "{refused}"
    );
    shop.server.psql("postgres", "DROP TABLE loose");
    // The parent of what is set aside can go: nothing binds it.
    shop.ok(&["undo", &id]);
    assert!(shop.all().contains("(q)"));
    shop.sql("ALTER TABLE a ADD w int");
    let id = shop.newest();
    shop.server.psql("postgres", "SET backout.covering = 'on'; ALTER TABLE a DISABLE TRIGGER ALL; UPDATE a SET w = 4; ALTER TABLE a ENABLE ALWAYS TRIGGER \"!backout_row\"");
    let refused = shop.cli(&["undo", &id]);
    assert!(
        refused.code != 0
            && refused.to_string().contains(
                "rows have values in it, and nothing would bring them back: set them back first"
            ),
        "{refused}"
    );
    shop.server.psql(
        "postgres",
        "ALTER TABLE a DROP COLUMN w; ALTER TABLE a ADD z int",
    );
    shop.sql(
        "CREATE TABLE t (id int); CREATE INDEX here ON a (v); CREATE VIEW w AS SELECT 1 AS one",
    );
    let id = shop.newest();
    shop.server.psql("postgres", "ALTER TABLE t ADD n int; DROP INDEX here; CREATE INDEX here ON a (u); DROP VIEW w; CREATE TABLE w ()");
    let refused = shop.cli(&["undo", &id]).to_string();
    for why in [
        "the columns of the table changed since",
        "somebody else changed it",
        "another one has its name by now",
    ] {
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn an_altered_table_goes_back_with_the_values_that_it_had_and_comes_again() {
    let more = "CREATE INDEX at_v ON a (v) WHERE v IS NOT NULL; COMMENT ON COLUMN a.u IS 'its name';
        ALTER TABLE a ALTER u SET DEFAULT 'q', ALTER u SET NOT NULL, ADD CONSTRAINT low CHECK (length(u) < 9)";
    let shop = Shop::new(&format!("{SCHEMA}; {more}"));
    let before = plain(&shop);
    for text in [
        "ALTER TABLE a DROP COLUMN u",
        "ALTER TABLE a ALTER v TYPE text",
        "ALTER TABLE a ALTER COLUMN v TYPE int USING v::int * 2, ALTER u DROP NOT NULL, ALTER u DROP DEFAULT",
        "ALTER TABLE a RENAME TO b",
        "ALTER TABLE a RENAME COLUMN id TO number",
        "ALTER TABLE a ALTER v SET NOT NULL",
        "ALTER TABLE a DROP CONSTRAINT low",
        "ALTER TABLE child ADD CONSTRAINT tall CHECK (id > 1)",
        "ALTER TABLE child DROP CONSTRAINT child_a_fkey",
        "ALTER TABLE child DROP COLUMN a, ADD COLUMN n int DEFAULT 3",
        "CREATE TABLE t (a int, b int); ALTER TABLE t DROP COLUMN b; ALTER TABLE t RENAME TO tt",
    ] {
        shop.sql(text);
        let after = plain(&shop);
        assert_ne!(after, before, "{text}");
        let id = shop.newest();
        for _ in 0..2 {
            shop.ok(&["undo", &id]);
            assert_eq!(plain(&shop), before, "{text}");
            shop.ok(&["redo", &id]);
            assert_eq!(plain(&shop), after, "{text}");
        }
        shop.ok(&["undo", &id]);
        assert_eq!(plain(&shop), before, "{text}");
    }
    // What was written before goes back as well: the columns are the same again.
    let rows = shop.all();
    shop.sql("UPDATE a SET v = 9");
    let id = shop.newest();
    shop.sql("ALTER TABLE a DROP COLUMN u");
    shop.ok(&["undo"]);
    shop.ok(&["undo", &id]);
    assert_eq!(shop.all(), rows);
}

#[test]
fn a_column_from_the_middle_comes_back_as_the_last_one_and_that_is_said() {
    let shop = Shop::new(SCHEMA);
    let before = shop
        .server
        .psql("postgres", "SELECT id, v, u FROM a ORDER BY id");
    shop.sql("ALTER TABLE a DROP COLUMN v");
    shop.ok(&["undo"]);
    assert_eq!(
        shop.server
            .psql("postgres", "SELECT id, v, u FROM a ORDER BY id"),
        before
    );
    let shown = shop.ok(&["show", "--json", &shop.newest()]);
    assert!(shown.contains("came back as the last one"), "{shown}");
}

#[test]
fn what_others_did_to_an_altered_table_goes_first_or_is_a_conflict() {
    let shop = Shop::new(SCHEMA);
    // Rows stand in another order after they were written.
    let before = shop.all();
    shop.sql("ALTER TABLE a ALTER v TYPE text");
    let id = shop.newest();
    shop.server
        .psql("postgres", "UPDATE a SET v = 'much' WHERE id = 1");
    shop.ok(&["undo", &id, "--others"]);
    assert_eq!(shop.all(), before);
    shop.ok(&["redo"]);
    // What nobody could see.
    let unseen = |sql: &str| {
        shop.server.psql("postgres", &format!("SET backout.covering = 'on'; ALTER TABLE a DISABLE TRIGGER ALL; {sql};
            ALTER TABLE a ENABLE TRIGGER ALL; ALTER TABLE a ENABLE ALWAYS TRIGGER \"!backout_row\"; ALTER TABLE a ENABLE ALWAYS TRIGGER \"!backout_truncate\""));
    };
    let refused = |why: &str| {
        let refused = shop.cli(&["undo", &id, "--others", "--force"]).to_string();
        assert!(refused.contains(why), "{refused}");
    };
    shop.server
        .psql("postgres", "UPDATE a SET v = '1.10' WHERE id = 1");
    unseen("UPDATE a SET v = 'more' WHERE id = 2");
    refused("rows have other values in it since");
    unseen("UPDATE a SET v = '2.00' WHERE id = 2");
    shop.server
        .psql("postgres", "ALTER TABLE a ALTER u SET DEFAULT 'x'");
    refused("the definition of the table changed since");
    shop.server
        .psql("postgres", "ALTER TABLE a ALTER u DROP DEFAULT");
    shop.ok(&["undo", &id, "--others"]);
    assert_eq!(shop.all(), before);
}

#[test]
fn unenrolling_takes_what_was_set_aside_and_an_ordinary_role_changes_no_schema() {
    let shop = Shop::new(SCHEMA);
    shop.sql("DROP TABLE loose");
    shop.ok(&["db", "unenroll", "shop", "--discard"]);
    let schemas = shop.server.psql(
        "postgres",
        "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'backout%'",
    );
    assert_eq!(schemas, "");
    shop.server.psql("postgres", "CREATE ROLE plain LOGIN");
    shop.server
        .psql("postgres", "CREATE DATABASE other OWNER plain");
    let url = shop
        .server
        .url("other")
        .replace("postgres:s3cret@", "plain@");
    shop.ok(&["db", "enroll", &url]);
    let refused = shop.cli(&["sql", "--db", &url, "CREATE TABLE t (id int)"]);
    assert!(
        refused.err.contains(
            "only where a superuser enrolled the database does the server tell all of that"
        ),
        "{refused}"
    );
}
