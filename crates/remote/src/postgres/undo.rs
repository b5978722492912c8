//! The statements that look at rows of a `PostgreSQL` and set them back.

use super::connection::Connection;
use crate::rows::{RowsError, Server as _, Table, Way, on_key};

/// The temporary table of `rows::Server`.
pub(super) const NET_TABLE: &str = "
    CREATE TEMPORARY TABLE backout_net (relation oid NOT NULL, k text NOT NULL, went text, came text, n bigint NOT NULL,
        present text, state \"char\", take boolean NOT NULL DEFAULT false, why text)";

impl Connection {
    /// Finds out what the rows of a table are now.
    pub(super) fn look_at_rows(&mut self, table: &Table, locks: bool) -> Result<(), RowsError> {
        let (sql, relation) = (&table.sql, table.relation);
        if table.key.is_empty() {
            if locks {
                self.run(&format!(
                    "SELECT FROM ONLY {sql} t WHERE (t.*)::text IN (SELECT came FROM backout_net WHERE relation = {relation}) FOR UPDATE"
                ))?;
            }
            // Of equal rows any will do; which one it was nobody can tell.
            return self.run(&format!(
                "UPDATE backout_net n SET present = CASE WHEN f.c > 0 THEN n.came END, state = CASE
                     WHEN n.came IS NULL OR f.c >= n.n THEN 'a' WHEN f.c = 0 THEN 'b' ELSE 'o' END::\"char\"
                 FROM (SELECT m.k, count(t.*) AS c FROM backout_net m LEFT JOIN ONLY {sql} t ON (t.*)::text = m.came
                       WHERE m.relation = {relation} GROUP BY m.k) f
                 WHERE n.relation = {relation} AND n.k = f.k"
            ));
        }
        let on = on_key::<Self>(table, "t", "p.r");
        let parsed = format!(
            "(SELECT k, coalesce(went, came)::{sql} AS r FROM backout_net WHERE relation = {relation} ORDER BY k OFFSET 0) p"
        );
        if locks {
            self.run(&format!(
                "SELECT FROM {parsed} JOIN ONLY {sql} t ON {on} FOR UPDATE OF t"
            ))?;
        }
        self.run(&format!(
            "UPDATE backout_net n SET present = (t.*)::text FROM {parsed} JOIN ONLY {sql} t ON {on}
             WHERE n.relation = {relation} AND n.k = p.k;
             UPDATE backout_net SET state = CASE WHEN present IS NOT DISTINCT FROM came THEN 'a'
                 WHEN present IS NOT DISTINCT FROM went THEN 'b' ELSE 'o' END::\"char\" WHERE relation = {relation}"
        ))
    }
}

/// Writes what counts the rows that are as after, as before, otherwise.
pub(super) fn counting(table: &Table) -> String {
    let (sql, relation) = (&table.sql, table.relation);
    let on = on_key::<Connection>(table, "t", "p.r");
    format!(
        "SELECT count(*) FILTER (WHERE now IS NOT DISTINCT FROM came),
                count(*) FILTER (WHERE now IS DISTINCT FROM came AND now IS NOT DISTINCT FROM went),
                count(*) FILTER (WHERE now IS DISTINCT FROM came AND now IS DISTINCT FROM went)
         FROM (SELECT p.went, p.came, CASE WHEN t.tableoid IS NOT NULL THEN (t.*)::text END AS now
               FROM (SELECT went, came, coalesce(went, came)::{sql} AS r FROM backout_net WHERE relation = {relation} OFFSET 0) p
               LEFT JOIN ONLY {sql} t ON {on} OFFSET 0) x"
    )
}

/// Writes what takes rows away.
pub(super) fn going(table: &Table, way: Way) -> String {
    let (sql, relation) = (&table.sql, table.relation);
    if table.key.is_empty() {
        return format!(
            "DELETE FROM ONLY {sql} WHERE ctid IN (SELECT c FROM (
               SELECT t.ctid AS c, n.n, row_number() OVER (PARTITION BY n.k ORDER BY t.ctid) AS i
               FROM ONLY {sql} t JOIN backout_net n ON n.relation = {relation} AND n.take AND n.came = (t.*)::text) x WHERE i <= n)"
        );
    }
    let only_new = if way == Way::Update {
        "AND went IS NULL"
    } else {
        ""
    };
    let on = on_key::<Connection>(table, "t", "x.r");
    format!(
        "DELETE FROM ONLY {sql} t USING (SELECT present::{sql} AS r FROM backout_net
           WHERE relation = {relation} AND take AND present IS NOT NULL {only_new} OFFSET 0) x WHERE {on}"
    )
}

/// Writes what sets changed rows back; none if there is nothing but the key.
pub(super) fn updating(table: &Table) -> Option<String> {
    let (sql, relation) = (&table.sql, table.relation);
    let columns = table.settable.iter().filter(|it| !table.key.contains(it));
    let columns = columns.map(|column| format!("{column} = (x.r).{column}"));
    let columns: Vec<String> = columns.collect();
    if table.key.is_empty() || columns.is_empty() {
        return None;
    }
    let on = on_key::<Connection>(table, "t", "x.r");
    Some(format!(
        "UPDATE ONLY {sql} t SET {} FROM (SELECT went::{sql} AS r FROM backout_net
           WHERE relation = {relation} AND take AND went IS NOT NULL AND present IS NOT NULL OFFSET 0) x WHERE {on}",
        columns.join(", ")
    ))
}

/// Writes what brings rows again that are not there.
pub(super) fn coming(table: &Table, way: Way) -> String {
    let (sql, relation) = (&table.sql, table.relation);
    let only_gone = match way {
        _ if table.key.is_empty() => "",
        Way::Update => "AND present IS NULL",
        Way::Replace => "",
    };
    let columns = table.columns.join(", ");
    let values = table.columns.iter().map(|column| format!("(x.r).{column}"));
    let values: Vec<String> = values.collect();
    let copies = if table.key.is_empty() {
        ", generate_series(1, n)"
    } else {
        ""
    };
    format!(
        "INSERT INTO {sql} ({columns}) OVERRIDING SYSTEM VALUE SELECT {} FROM (SELECT went::{sql} AS r
           FROM backout_net{copies} WHERE relation = {relation} AND take AND went IS NOT NULL {only_gone} OFFSET 0) x
         ON CONFLICT DO NOTHING",
        values.join(", ")
    )
}
