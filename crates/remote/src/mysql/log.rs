//! What the log says a transaction changed, all in all: see `postgres/log.rs`, which does the same with other words.
//!
//! Long texts are compared by their digest: where the server sorts or groups them itself, it looks at their beginning only.

use super::catalog::{TableInfo, in_schema, texts};
use super::columns::{Column, field};
use super::connection::{Connection, name};
use crate::rows::{Changed, Foreign, ROWS_MAX, RowsError, Table, TableChange, quote};

/// How many transactions are taken up at once.
const MANY: usize = 1000;

impl Connection {
    /// Lists the tables that a transaction changed, the first one first.
    pub(super) fn logged_tables(&mut self, xact: &str) -> Result<Vec<Table>, RowsError> {
        let log = self.own("log");
        let rows = self.question(&format!(
            "SELECT relation, GROUP_CONCAT(DISTINCT shape) FROM {log} WHERE xact = {} GROUP BY relation ORDER BY MIN(place)",
            number(xact)
        ))?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let catalog = self.catalog()?;
        let mut tables = Vec::new();
        for row in rows {
            let [relation, shapes] = texts(row);
            let relation = relation.parse().unwrap_or_default();
            let trigger = super::triggers::trigger_name(relation, "insert");
            let found = catalog.triggers.iter().find(|(it, ..)| *it == trigger);
            let called = match found {
                Some((_, table, _)) => Some(table.clone()),
                None => self.value(&format!(
                    "SELECT name FROM {} WHERE id = {relation}",
                    self.own("relation")
                ))?,
            };
            let info = called.as_ref().and_then(|it| catalog.tables.get(it));
            let (Some(called), Some(info)) = (called, info) else {
                tables.push(Table::gone(relation));
                continue;
            };
            let others = self.value(&format!(
                "SELECT COUNT(*) FROM {} WHERE id IN ({shapes}) AND columns <> {}",
                self.own("shape"),
                quote(&info.shape())
            ))?;
            tables.push(self.table(relation, &called, info, others.as_deref() == Some("0")));
        }
        Ok(tables)
    }

    fn table(&self, relation: u32, called: &str, info: &TableInfo, is_same: bool) -> Table {
        let columns: Vec<&Column> = info.written().collect();
        let names: Vec<String> = columns.iter().map(|it| name(&it.name)).collect();
        // Of a text in a key the letters may have changed to others that are the same to the server.
        let is_text = |it: &&&Column| !info.key.contains(&it.name) || !it.collation.is_empty();
        let settable = columns.iter().filter(is_text).map(|it| name(&it.name));
        let values = info.values();
        let changed = "the columns of the table changed since";
        Table {
            relation,
            names: (self.database.clone(), called.to_owned()),
            sql: in_schema(&self.database, called),
            // A key that the server makes itself cannot be read out of a row.
            key: info
                .key
                .iter()
                .map(|it| name(it))
                .filter(|it| names.contains(it))
                .collect(),
            settable: settable.collect(),
            columns: names,
            changed: (!is_same || values.is_err()).then(|| changed.to_owned()),
            values: values.unwrap_or_default(),
        }
    }

    /// Says what a transaction changed, table by table.
    pub(super) fn logged_changes(&mut self, xact: &str) -> Result<Vec<Changed>, RowsError> {
        let mut changes = Vec::new();
        for table in self.logged_tables(xact)? {
            let change = self.change_of(&table, xact)?;
            if change.total() > 0 {
                let relation = table.relation;
                changes.push(Changed { relation, change });
            }
        }
        Ok(changes)
    }

    fn change_of(&mut self, table: &Table, xact: &str) -> Result<TableChange, RowsError> {
        let net = self.net_by_key(table, xact);
        let found = self.question(&format!(
            "SELECT SUM(CASE WHEN went IS NULL THEN n ELSE 0 END), SUM(CASE WHEN went IS NOT NULL AND came IS NOT NULL THEN n ELSE 0 END),
                    SUM(CASE WHEN came IS NULL THEN n ELSE 0 END), COUNT(*) FROM ({net}) net"
        ))?;
        let row: [String; 4] = texts(found.into_iter().next().unwrap_or_default());
        let [new, changed, gone, lines] = row.map(|it| it.parse::<u64>().unwrap_or_default());
        let rows = if lines <= ROWS_MAX as u64 {
            let found = self.question(&format!("SELECT k FROM ({net}) net ORDER BY k"))?;
            Some(found.into_iter().flatten().flatten().collect())
        } else {
            None
        };
        let (schema, called) = table.names.clone();
        Ok(TableChange {
            schema,
            table: called,
            counts: [new, changed, gone],
            rows,
        })
    }

    /// Writes the query for what a transaction did to each row of a table: `k`, `went`, `came`, `n`.
    pub(super) fn net_by_key(&self, table: &Table, xact: &str) -> String {
        let (log, relation, xact) = (self.own("log"), table.relation, number(xact));
        let side = |column: &str, n: i8| {
            format!(
                "SELECT {column} AS img, {n} AS n FROM {log} WHERE xact = {xact} AND relation = {relation} AND {column} IS NOT NULL"
            )
        };
        let net = format!(
            "SELECT SHA2(img, 256) AS h, MAX(img) AS img, SUM(n) AS n FROM ({} UNION ALL {}) each_side GROUP BY h HAVING SUM(n) <> 0",
            side("went", 1),
            side("came", -1)
        );
        if table.key.is_empty() || table.changed.is_some() {
            return format!(
                "SELECT LEFT(h, 16) AS k, CASE WHEN n > 0 THEN img END AS went, CASE WHEN n < 0 THEN img END AS came, ABS(n) AS n FROM ({net}) net"
            );
        }
        let places: Vec<usize> = table
            .key
            .iter()
            .filter_map(|key| place(table, key))
            .collect();
        let texts = places
            .iter()
            .map(|index| format!("JSON_VALUE(img, '$[{index}]')"));
        let texts: Vec<String> = texts.collect();
        // Letters that are the same to a key are the same here.
        let sames = places.iter().filter_map(|index| {
            let value = table.values.get(*index)?;
            let typed = field(value, *index, "img");
            let is_text = value.write.contains("COLLATE");
            Some(if is_text {
                format!("COALESCE(HEX(WEIGHT_STRING({typed})), '')")
            } else {
                format!("COALESCE(JSON_VALUE(img, '$[{index}]'), '')")
            })
        });
        let sames: Vec<String> = sames.collect();
        format!(
            "SELECT MIN(k) AS k, MAX(CASE WHEN n > 0 THEN img END) AS went, MAX(CASE WHEN n < 0 THEN img END) AS came, 1 AS n
             FROM (SELECT img, n, LEFT(CONCAT_WS(',', {}), 3000) AS k, SHA2(CONCAT_WS(',', {}), 256) AS h FROM ({net}) net) keyed GROUP BY h",
            texts.join(", "),
            sames.join(", ")
        )
    }

    /// Lists the transactions that no operation stands for, the oldest first.
    pub(super) fn foreign_it(&mut self) -> Result<Vec<Foreign>, RowsError> {
        let (log, marker) = (self.own("log"), self.own("marker"));
        let rows = self.question(&format!(
            "SELECT l.xact, MAX(l.operation), COALESCE(MAX(l.agent), CONCAT(SUBSTRING_INDEX(MAX(l.role), '@', 1), '/', MAX(l.connection)))
             FROM {log} l WHERE NOT EXISTS (SELECT 1 FROM {marker} m WHERE m.started = l.xact AND m.taken IS NULL)
               AND NOT EXISTS (SELECT 1 FROM {marker} m WHERE m.taken = l.xact)
             GROUP BY l.xact ORDER BY MAX(l.place) LIMIT {MANY}"
        ))?;
        let mut found = Vec::new();
        for row in rows {
            let [xact, operation, actor] = texts(row);
            let changes = self.logged_changes(&xact)?;
            let operation = Some(operation).filter(|it| !it.is_empty());
            found.extend(Foreign::of(xact, actor, &changes, operation, None));
        }
        Ok(found)
    }

    /// Lets go of what the log holds for operations that cannot be undone any more.
    pub(super) fn prune_it(&mut self, operations: &[String]) -> Result<u64, RowsError> {
        let (log, marker) = (self.own("log"), self.own("marker"));
        let names: Vec<String> = operations.iter().map(|it| quote(it)).collect();
        let names = names.join(", ");
        self.tell("SET @backout_covering = 1")?;
        let ours = format!(
            "xact IN (SELECT COALESCE(taken, started) FROM {marker} WHERE operation IN ({names}))"
        );
        self.tell("START TRANSACTION")?;
        let gone = self.value(&format!("SELECT COUNT(*) FROM {log} WHERE {ours}"))?;
        self.tell(&format!("DELETE FROM {log} WHERE {ours}"))?;
        self.tell(&format!(
            "DELETE FROM {marker} WHERE operation IN ({names})"
        ))?;
        self.tell("COMMIT")?;
        for table in [log, marker] {
            self.tell(&format!("DELETE HISTORY FROM {table}"))?;
        }
        self.tell("SET @backout_covering = NULL")?;
        Ok(gone.and_then(|it| it.parse().ok()).unwrap_or_default())
    }
}

/// Finds a column of a table.
pub(super) fn place(table: &Table, column: &str) -> Option<usize> {
    table.columns.iter().position(|it| it == column)
}

/// Lets nothing but a number into a query.
pub(super) fn number(xact: &str) -> u64 {
    xact.parse().unwrap_or_default()
}
