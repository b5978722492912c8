//! The statements that look at rows of a `MariaDB` and set them back.

use super::catalog::texts;
use super::connection::Connection;
use super::log::place;
use crate::rows::{RowsError, Server as _, Table, Way, on_key};

/// The temporary table of `rows::Server`.
pub(super) const NET_TABLE: &str = "
    CREATE TEMPORARY TABLE backout_net (relation INT UNSIGNED NOT NULL, k VARCHAR(3000) NOT NULL, went LONGTEXT, came LONGTEXT,
        n BIGINT NOT NULL, there BIGINT, present LONGTEXT, state CHAR(1), take TINYINT NOT NULL DEFAULT 0, why TEXT, KEY (relation, k(100)))
        ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

impl Connection {
    /// Finds out what the rows of a table are now.
    pub(super) fn look_at_rows(&mut self, table: &Table, locks: bool) -> Result<(), RowsError> {
        let (sql, relation) = (&table.sql, table.relation);
        if table.key.is_empty() {
            return self.look_at_bag(table, locks);
        }
        let on = on_key::<Self>(table, "t", "COALESCE(n.went, n.came)");
        if locks {
            self.tell(&format!(
                "SELECT 1 FROM backout_net n STRAIGHT_JOIN {sql} t ON {on} WHERE n.relation = {relation} ORDER BY n.k FOR UPDATE"
            ))?;
        }
        let now = now(table);
        self.tell(&format!(
            "UPDATE backout_net n LEFT JOIN {sql} t ON {on} SET n.present = {now},
               n.state = CASE WHEN {now} <=> n.came THEN 'a' WHEN {now} <=> n.went THEN 'b' ELSE 'o' END
             WHERE n.relation = {relation}"
        ))
    }

    /// The same for a table without a key: of equal rows any will do; which one it was nobody can tell.
    fn look_at_bag(&mut self, table: &Table, locks: bool) -> Result<(), RowsError> {
        let (sql, relation) = (&table.sql, table.relation);
        let digest = Self::digest(table, "t");
        if locks {
            self.tell(&format!(
                "SELECT 1 FROM {sql} t WHERE {digest} IN (SELECT k FROM backout_net WHERE relation = {relation} AND came IS NOT NULL) FOR UPDATE"
            ))?;
        }
        self.tell(&format!(
            "UPDATE backout_net n LEFT JOIN (SELECT {digest} AS k, COUNT(*) AS c FROM {sql} t GROUP BY 1) f ON f.k = n.k
             SET n.there = COALESCE(f.c, 0), n.present = CASE WHEN f.c > 0 THEN n.came END, n.state = CASE WHEN n.came IS NULL OR f.c >= n.n THEN 'a'
               WHEN COALESCE(f.c, 0) = 0 THEN 'b' ELSE 'o' END WHERE n.relation = {relation}"
        ))
    }

    /// Deletes the rows that the changes brought.
    pub(super) fn take_away(&mut self, table: &Table, way: Way) -> Result<(), RowsError> {
        let (sql, relation) = (&table.sql, table.relation);
        if table.key.is_empty() {
            // Where all that are equal go they go together; of the others some stay, and the server counts for one at a time.
            let goes = format!("n.relation = {relation} AND n.take AND n.came IS NOT NULL");
            self.tell(&format!(
                "DELETE t FROM {sql} t JOIN backout_net n ON n.k = {} WHERE {goes} AND n.there <= n.n",
                Self::digest(table, "t")
            ))?;
            let rows = self.question(&format!(
                "SELECT n.k, n.n FROM backout_net n WHERE {goes} AND n.there > n.n"
            ))?;
            for row in rows {
                let [key, count] = texts(row);
                // With a limit the server takes no other name for the table.
                let digest = Self::digest(table, sql);
                self.tell(&format!(
                    "DELETE FROM {sql} WHERE {digest} = '{key}' LIMIT {count}"
                ))?;
            }
            return Ok(());
        }
        let only_new = match way {
            Way::Update => " AND n.went IS NULL",
            Way::Replace => "",
        };
        let on = on_key::<Self>(table, "t", "n.present");
        self.tell(&format!(
            "DELETE t FROM backout_net n STRAIGHT_JOIN {sql} t ON {on}
             WHERE n.relation = {relation} AND n.take AND n.present IS NOT NULL{only_new}"
        ))
    }

    /// Sets changed rows back, and brings rows again that are not there.
    pub(super) fn bring(&mut self, table: &Table, way: Way) -> Result<(), RowsError> {
        let (sql, relation) = (&table.sql, table.relation);
        let field = |column: &String| Self::field(table, "n.went", column);
        let sets = table
            .settable
            .iter()
            .map(|it| format!("t.{it} = {}", field(it)));
        let sets: Vec<String> = sets.collect();
        if way == Way::Update && !table.key.is_empty() && !sets.is_empty() {
            let on = on_key::<Self>(table, "t", "n.went");
            self.tell(&format!(
                "UPDATE backout_net n STRAIGHT_JOIN {sql} t ON {on} SET {}
                 WHERE n.relation = {relation} AND n.take AND n.went IS NOT NULL AND n.present IS NOT NULL",
                sets.join(", ")
            ))?;
        }
        let only_gone = match way {
            _ if table.key.is_empty() => "",
            Way::Update => " AND n.present IS NULL",
            Way::Replace => "",
        };
        let values: Vec<String> = table.columns.iter().map(field).collect();
        let insert = format!(
            "INSERT IGNORE INTO {sql} ({}) SELECT {} FROM backout_net n WHERE n.relation = {relation} AND n.take AND n.went IS NOT NULL{only_gone}",
            table.columns.join(", "),
            values.join(", ")
        );
        if !table.key.is_empty() {
            return self.tell(&insert);
        }
        let most = self.value(&format!(
            "SELECT MAX(n) FROM backout_net WHERE relation = {relation} AND take AND went IS NOT NULL"
        ))?;
        let most: u64 = most.and_then(|it| it.parse().ok()).unwrap_or_default();
        (1..=most).try_for_each(|copy| self.tell(&format!("{insert} AND n.n >= {copy}")))
    }

    /// Says what was changed beside the rows that were to be set back.
    pub(super) fn what_else(&mut self) -> Result<Option<String>, RowsError> {
        if self.foreign_triggers()?.is_empty() {
            return Ok(None);
        }
        let side = |column: &str| {
            format!(
                "(SELECT DISTINCT relation, SHA2({column}, 256) AS h FROM backout_net WHERE take AND {column} IS NOT NULL)"
            )
        };
        let found = self.question(&format!(
            "SELECT COUNT(*), GROUP_CONCAT(DISTINCT r.name SEPARATOR ', ') FROM {} l JOIN {} r ON r.id = l.relation
             LEFT JOIN {} p ON p.relation = l.relation AND p.h = SHA2(l.went, 256)
             LEFT JOIN {} w ON w.relation = l.relation AND w.h = SHA2(l.came, 256)
             WHERE l.xact = {} AND NOT ((l.went IS NULL OR p.h IS NOT NULL) AND (l.came IS NULL OR w.h IS NOT NULL))",
            self.own("log"),
            self.own("relation"),
            side("present"),
            side("went"),
            super::log::number(&self.xact)
        ))?;
        let [count, tables] = texts(found.into_iter().next().unwrap_or_default());
        Ok((count != "0").then(|| format!("{count} rows of {tables}")))
    }

    /// Lists the triggers that are not ours.
    pub(super) fn foreign_triggers(&mut self) -> Result<Vec<String>, RowsError> {
        let schema = self.schema_text();
        let rows = self.question(&format!(
            "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = {schema}"
        ))?;
        let names = rows.into_iter().flatten().flatten();
        Ok(names.filter(|it| !super::enroll::is_ours(it)).collect())
    }
}

/// Writes the text of a row as it is now, of a table beside `backout_net n`; NULL if it is not there.
fn now(table: &Table) -> String {
    let key = table.key.first().map_or("", String::as_str);
    let image = Connection::image(table, "t");
    format!("IF(t.{key} IS NULL, NULL, {image})")
}

/// Writes what counts the rows that are as after, as before, otherwise.
pub(super) fn counting(table: &Table) -> String {
    let (sql, relation, now) = (&table.sql, table.relation, now(table));
    let on = on_key::<Connection>(table, "t", "COALESCE(n.went, n.came)");
    format!(
        "SELECT SUM(state = 'a'), SUM(state = 'b'), SUM(state = 'o') FROM (
           SELECT CASE WHEN {now} <=> n.came THEN 'a' WHEN {now} <=> n.went THEN 'b' ELSE 'o' END AS state
           FROM backout_net n LEFT JOIN {sql} t ON {on} WHERE n.relation = {relation}) each_row"
    )
}

/// Writes a column of the text of a row.
pub(super) fn column_of(table: &Table, text: &str, column: &str) -> String {
    let index = place(table, column).unwrap_or_default();
    match table.values.get(index) {
        Some(value) => super::columns::field(value, index, text),
        None => "NULL".to_owned(),
    }
}
