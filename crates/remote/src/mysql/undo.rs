//! The statements that look at rows of a `MariaDB` and set them back.

use super::catalog::texts;
use super::connection::Connection;
use super::log::place;
use crate::rows::{RowsError, Server as _, Table, Way, on_key};

/// The temporary table of `rows::Server`.
pub(super) const NET_TABLE: &str = "
    CREATE TEMPORARY TABLE backout_net (relation INT UNSIGNED NOT NULL, k VARCHAR(3000) NOT NULL, went LONGTEXT, came LONGTEXT,
        n BIGINT NOT NULL, present LONGTEXT, state CHAR(1), take TINYINT NOT NULL DEFAULT 0, why TEXT, KEY (relation, k(100)))
        ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

/// What names a row without a key.
fn digest(table: &Table, row: &str) -> String {
    format!("LEFT(SHA2({}, 256), 16)", Connection::image(table, row))
}

impl Connection {
    /// Finds out what the rows of a table are now.
    pub(super) fn look_at_rows(&mut self, table: &Table, locks: bool) -> Result<(), RowsError> {
        let (sql, relation) = (&table.sql, table.relation);
        if table.key.is_empty() {
            return self.look_at_bag(table, locks);
        }
        let on = on_key::<Self>(table, "t", "COALESCE(n.went, n.came)");
        let joined = format!("backout_net n STRAIGHT_JOIN {sql} t ON {on}");
        if locks {
            self.tell(&format!(
                "SELECT 1 FROM {joined} WHERE n.relation = {relation} ORDER BY n.k FOR UPDATE"
            ))?;
        }
        self.tell(&format!(
            "UPDATE {joined} SET n.present = {} WHERE n.relation = {relation}",
            Self::image(table, "t")
        ))?;
        self.tell(&format!(
            "UPDATE backout_net SET state = CASE WHEN present <=> came THEN 'a' WHEN present <=> went THEN 'b' ELSE 'o' END
             WHERE relation = {relation}"
        ))
    }

    /// The same for a table without a key: of equal rows any will do; which one it was nobody can tell.
    fn look_at_bag(&mut self, table: &Table, locks: bool) -> Result<(), RowsError> {
        let (sql, relation, digest) = (&table.sql, table.relation, digest(table, "t"));
        if locks {
            self.tell(&format!(
                "SELECT 1 FROM {sql} t WHERE {digest} IN (SELECT k FROM backout_net WHERE relation = {relation} AND came IS NOT NULL) FOR UPDATE"
            ))?;
        }
        self.tell(&format!(
            "UPDATE backout_net n LEFT JOIN (SELECT {digest} AS k, COUNT(*) AS c FROM {sql} t GROUP BY 1) f ON f.k = n.k
             SET n.present = CASE WHEN f.c > 0 THEN n.came END, n.state = CASE WHEN n.came IS NULL OR f.c >= n.n THEN 'a'
               WHEN COALESCE(f.c, 0) = 0 THEN 'b' ELSE 'o' END WHERE n.relation = {relation}"
        ))
    }

    /// Takes rows away.
    pub(super) fn take_away(&mut self, table: &Table, way: Way) -> Result<(), RowsError> {
        let (sql, relation) = (&table.sql, table.relation);
        if table.key.is_empty() {
            let rows = self.question(&format!(
                "SELECT k, n FROM backout_net WHERE relation = {relation} AND take AND came IS NOT NULL"
            ))?;
            for row in rows {
                let [key, count] = texts(row);
                // With a limit the server takes no other name for the table.
                let digest = digest(table, sql);
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

/// Writes a column of the text of a row.
pub(super) fn column_of(table: &Table, text: &str, column: &str) -> String {
    let index = place(table, column).unwrap_or_default();
    match table.values.get(index) {
        Some(value) => super::columns::field(value, index, text),
        None => "NULL".to_owned(),
    }
}
