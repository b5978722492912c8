//! What is good and what is wrong in SQL.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 26] = [
    "",
    "-- c\n",
    "SELECT 1;",
    "select a, b from t where c = 'x' and d in (1, 2);",
    "INSERT INTO t (a) VALUES (1), (2);",
    "UPDATE t SET a = 1 WHERE b IS NULL;",
    "DELETE FROM t;",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT NOT NULL DEFAULT '');",
    "DO $$ BEGIN RAISE NOTICE 'x;'; END $$;",
    "CREATE FUNCTION f() RETURNS int AS $f$ SELECT 1; $f$ LANGUAGE sql;",
    "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE b SET c = 1; DELETE FROM d; END;\nSELECT 1;",
    "DELIMITER //\nCREATE PROCEDURE p() BEGIN SELECT 1; END //\nDELIMITER ;\nSELECT 2;",
    "COPY t FROM stdin;\n1\tit's\n\\.\nSELECT 1;",
    "\\connect db\nSELECT 1;\n",
    "WITH x AS (SELECT 1) SELECT * FROM x;",
    "/* a /* b */ c */ SELECT 1;",
    "/* a /* b */ SELECT 1;",
    "INSERT INTO t VALUES ('it\\'s');",
    "SELECT 'C:\\' AS p;",
    "BEGIN; COMMIT;",
    "GRANT SELECT ON t TO u;",
    "ALTER TABLE t ADD COLUMN a int;",
    "SELECT `a` FROM \"b\";",
    "CREATE INDEX i ON t (a);\r\nDROP TABLE t;\r\n",
    "SELECT a::text FROM t WHERE b = :id;",
    "SELECT 1",
];

#[rustfmt::skip]
const BAD: [Bad; 27] = [
    ("SELECT 'a;", 1, 11, "the text ends, but the quote of line 1, column 8 is not closed"),
    ("SELECT \"a;", 1, 11, "the text ends, but the quote of line 1, column 8 is not closed"),
    ("SELECT (1;", 1, 10, "the statement ends, but the `(` of line 1, column 8 is not closed"),
    ("SELECT 1);", 1, 9, "`)` closes nothing that is open here"),
    ("SELCT 1;", 1, 1, "`SELCT` begins no statement of SQL"),
    ("SELECT a FROM;", 1, 14, "the statement ends too early: identifier is needed"),
    ("SELECT a,, b FROM t;", 1, 10, "an expression is needed here, not `,`"),
    ("INSERT INTO t VALUES (1;", 1, 24, "the statement ends, but the `(` of line 1, column 22 is not closed"),
    ("INSERT t (a VALUES (1);", 1, 23, "the statement ends, but the `(` of line 1, column 10 is not closed"),
    ("UPDATE SET a = 1;", 1, 14, "SET is needed here, not `=`"),
    ("UPDATE t a = 1;", 1, 12, "SET is needed here, not `=`"),
    ("DELETE t WHERE;", 1, 15, "the statement ends too early: an expression is needed"),
    ("/* a", 1, 5, "the text ends, but the comment of line 1, column 1 is not closed"),
    ("DO $$ BEGIN;", 1, 13, "the text ends, but the quote of line 1, column 4 is not closed"),
    ("CREATE TABLE t (a int,);", 1, 23, "column name or constraint definition is needed here, not `)`"),
    ("CREATE TABLE (a int);", 1, 14, "identifier is needed here, not `(`"),
    ("CREATE TABLE t (a int", 1, 22, "the statement ends, but the `(` of line 1, column 16 is not closed"),
    ("SELECT 1;\nFOO BAR;\n", 2, 1, "`FOO` begins no statement of SQL"),
    ("SELECT * FORM t;", 1, 10, "end of statement is needed here, not `FORM`"),
    ("SELECT a b c FROM t;", 1, 12, "end of statement is needed here, not `c`"),
    ("SELECT 1 WHERE AND 2;", 1, 20, "end of statement is needed here, not `2`"),
    ("DROP TABLE;", 1, 11, "the statement ends too early: identifier is needed"),
    ("SELECT * FROM t ORDER name;", 1, 17, "end of statement is needed here, not `ORDER`"),
    ("SELECT 1;\n\nSELECT * FROM t WHERE (a = 1;\n", 3, 29, "the statement ends, but the `(` of line 3, column 23 is not closed"),
    ("`a", 1, 3, "the text ends, but the quote of line 1, column 1 is not closed"),
    ("hello world", 1, 1, "`HELLO` begins no statement of SQL"),
    ("WITH x AS SELECT 1;", 1, 11, "( is needed here, not `SELECT`"),
];

#[test]
fn good_texts_pass() {
    good(Format::Sql, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Sql, &BAD);
}
