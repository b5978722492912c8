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
        let lines = self.lines(table, xact)?;
        let found = self.question(&format!(
            "SELECT SUM(CASE WHEN went IS NULL THEN n ELSE 0 END), SUM(CASE WHEN went IS NOT NULL AND came IS NOT NULL THEN n ELSE 0 END),
                    SUM(CASE WHEN came IS NULL THEN n ELSE 0 END), COUNT(*) FROM ({lines}) net"
        ))?;
        let row: [String; 4] = texts(found.into_iter().next().unwrap_or_default());
        let [new, changed, gone, lines] = row.map(|it| it.parse::<u64>().unwrap_or_default());
        let rows = if lines <= ROWS_MAX as u64 {
            let net = self.net_by_key(table, xact)?;
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
    pub(super) fn net_by_key(&mut self, table: &Table, xact: &str) -> Result<String, RowsError> {
        let (log, lines) = (self.own("log"), self.lines(table, xact)?);
        let key = match key_places(table) {
            None => "LEFT(SHA2(COALESCE(w.went, c.came), 256), 16)".to_owned(),
            Some(places) => {
                let name = |text: &str| {
                    let each = places
                        .iter()
                        .map(|index| format!("JSON_VALUE({text}, '$[{index}]')"));
                    let each: Vec<String> = each.collect();
                    format!("LEFT(CONCAT_WS(',', {}), 3000)", each.join(", "))
                };
                if places.iter().any(|index| is_text(table, *index)) {
                    // Its letters may have changed to others that are the same to the server: either way it has one name.
                    format!(
                        "LEAST({}, {})",
                        name("COALESCE(w.went, c.came)"),
                        name("COALESCE(c.came, w.went)")
                    )
                } else {
                    name("COALESCE(w.went, c.came)")
                }
            }
        };
        Ok(format!(
            "SELECT {key} AS k, w.went, c.came, net.n FROM ({lines}) net
             LEFT JOIN {log} w ON w.place = net.went LEFT JOIN {log} c ON c.place = net.came"
        ))
    }

    /// Tells whether a transaction wrote each row of a table once: then nothing has to be struck out.
    fn is_simple(&mut self, table: &Table, xact: &str) -> Result<bool, RowsError> {
        let Some(places) = key_places(table) else {
            return Ok(false);
        };
        let key = |text: &str| {
            let each = places.iter().map(|index| same(table, *index, text));
            let each: Vec<String> = each.collect();
            format!("UNHEX(SHA2(CONCAT_WS(',', {}), 256))", each.join(", "))
        };
        let found = self.question(&format!(
            "SELECT COUNT(*) = COUNT(DISTINCT {}) AND COALESCE(SUM(NOT ({} <=> {})), 0) = 0 FROM {}
             WHERE xact = {} AND relation = {}",
            key("COALESCE(went, came)"),
            key("COALESCE(went, came)"),
            key("COALESCE(came, went)"),
            self.own("log"),
            number(xact),
            table.relation
        ))?;
        Ok(found.into_iter().flatten().flatten().next().as_deref() == Some("1"))
    }

    /// Writes the query for where the log has each row as it was and as it is: `went`, `came`, `n`. Only digests and numbers
    /// are sorted, the texts themselves stay where they are: to group texts costs the server ten times as much.
    fn lines(&mut self, table: &Table, xact: &str) -> Result<String, RowsError> {
        let is_simple = self.is_simple(table, xact)?;
        let (log, relation, xact) = (self.own("log"), table.relation, number(xact));
        if is_simple {
            return Ok(format!(
                "SELECT IF(went IS NULL, NULL, place) AS went, IF(came IS NULL, NULL, place) AS came, 1 AS n FROM {log}
                 WHERE xact = {xact} AND relation = {relation} AND NOT (went <=> came)"
            ));
        }
        let places = key_places(table);
        let side = |column: &str, n: i8| {
            let key = match &places {
                None => "''".to_owned(),
                Some(places) => {
                    let each = places.iter().map(|index| same(table, *index, column));
                    let each: Vec<String> = each.collect();
                    format!("UNHEX(SHA2(CONCAT_WS(',', {}), 256))", each.join(", "))
                }
            };
            format!(
                "SELECT UNHEX(SHA2({column}, 256)) AS h, {key} AS kh, {n} AS n, place FROM {log}
                 WHERE xact = {xact} AND relation = {relation} AND {column} IS NOT NULL"
            )
        };
        let struck = format!(
            "SELECT SQL_BIG_RESULT MIN(kh) AS kh, SUM(n) AS n, MIN(CASE WHEN n > 0 THEN place END) AS went,
                    MIN(CASE WHEN n < 0 THEN place END) AS came
             FROM ({} UNION ALL {}) each_side GROUP BY h HAVING SUM(n) <> 0",
            side("went", 1),
            side("came", -1)
        );
        let (went, came) = (
            "CASE WHEN n > 0 THEN went END",
            "CASE WHEN n < 0 THEN came END",
        );
        if places.is_none() {
            return Ok(format!(
                "SELECT {went} AS went, {came} AS came, ABS(n) AS n FROM ({struck}) struck"
            ));
        }
        Ok(format!(
            "SELECT SQL_BIG_RESULT MIN({went}) AS went, MIN({came}) AS came, 1 AS n FROM ({struck}) struck GROUP BY kh"
        ))
    }

    /// Lists the transactions that no operation stands for, the oldest first.
    pub(super) fn foreign_it(&mut self) -> Result<Vec<Foreign>, RowsError> {
        let (log, marker) = (self.own("log"), self.own("marker"));
        let rows = self.question(&format!(
            "SELECT l.xact, MAX(l.operation), COALESCE(MAX(l.agent), CONCAT(SUBSTRING_INDEX(MAX(l.role), '@', 1), '/', MAX(l.connection)))
             FROM (SELECT x.xact FROM (SELECT DISTINCT xact FROM {log}) x
                   WHERE NOT EXISTS (SELECT 1 FROM {marker} m WHERE m.started = x.xact AND m.taken IS NULL)
                     AND NOT EXISTS (SELECT 1 FROM {marker} m WHERE m.taken = x.xact)) free
             STRAIGHT_JOIN {log} l ON l.xact = free.xact GROUP BY l.xact ORDER BY MAX(l.place) LIMIT {MANY}"
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

/// Finds the columns of the key in a row; none if rows are not told by a key.
fn key_places(table: &Table) -> Option<Vec<usize>> {
    if table.key.is_empty() || table.changed.is_some() {
        return None;
    }
    let places = table.key.iter().filter_map(|key| place(table, key));
    Some(places.collect())
}

/// Tells whether a column holds text, of which several spellings may be the same to a key.
fn is_text(table: &Table, index: usize) -> bool {
    let value = table.values.get(index);
    value.is_some_and(|it| it.write.contains("COLLATE"))
}

/// Writes what is equal if two values of a column are the same to a key.
fn same(table: &Table, index: usize, text: &str) -> String {
    match table.values.get(index) {
        Some(value) if is_text(table, index) => {
            let typed = field(value, index, text);
            format!("COALESCE(HEX(WEIGHT_STRING({typed})), '')")
        }
        _ => format!("COALESCE(JSON_VALUE({text}, '$[{index}]'), '')"),
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
