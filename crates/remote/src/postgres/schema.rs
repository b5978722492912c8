//! Changes of the schema: the server's transactions hold them, so they go back like rows.
//!
//! - A table that goes is set aside, in a schema of its own: it keeps its number, its rows and all that is on it, but for its
//!   references to other tables, which would bind those. They are put on again when it comes back.
//! - An index or a view is made again from the text that the server has of it.
//! - A column that came goes, unless rows have values in it by now.
//! - What else an `ALTER TABLE` does is in `alter.rs`.
//!
//! What a statement did is asked of the server: what is there now and was not before, or the other way round. To know what a
//! `DROP` takes, it is run, looked at and rolled back; then the tables are set aside instead.

use std::collections::BTreeMap;

use backout_model::ports::State;

use super::connection::Connection;
use crate::rows::{RowsError, SchemaChange, SchemaKind, Server as _, Statement};

/// What a statement that changes the schema may begin with.
const KNOWN: [(&str, &str, SchemaKind); 6] = [
    ("CREATE", "TABLE", SchemaKind::Table),
    ("CREATE", "INDEX", SchemaKind::Index),
    ("CREATE", "VIEW", SchemaKind::View),
    ("DROP", "TABLE", SchemaKind::Table),
    ("DROP", "INDEX", SchemaKind::Index),
    ("DROP", "VIEW", SchemaKind::View),
];

/// Words in an `ALTER TABLE` that do more than add columns.
const MORE: [&str; 13] = [
    "DROP",
    "RENAME",
    "OWNER",
    "ENABLE",
    "DISABLE",
    "ATTACH",
    "DETACH",
    "INHERIT",
    "CLUSTER",
    "VALIDATE",
    "REPLICA",
    "FORCE",
    "TABLESPACE",
];

/// The tables, indexes and views that are there: number, kind, schema, name, and how the columns of a table are.
const THERE: &str = "
    SELECT c.oid, c.relkind::text, n.nspname, c.relname, CASE WHEN c.relkind = 'r' THEN backout.columns_of(c.oid) ELSE '' END
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid >= 16384 AND c.relkind IN ('r', 'i', 'v') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT SIMILAR TO 'backout(\\_[0-9]+)?'";

/// What this session holds so that nobody else can use it: what it made, and what it dropped.
const HELD: &str = "
    SELECT DISTINCT relation FROM pg_catalog.pg_locks
    WHERE pid = pg_backend_pid() AND locktype = 'relation' AND granted AND relation >= 16384
      AND mode IN ('AccessExclusiveLock', 'ShareLock', 'ShareUpdateExclusiveLock')";

/// Something that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct There {
    kind: String,
    schema: String,
    name: String,
    columns: String,
}

impl There {
    fn is(&self, kind: SchemaKind) -> bool {
        self.kind
            == match kind {
                SchemaKind::Table | SchemaKind::Column | SchemaKind::Altered => "r",
                SchemaKind::Index => "i",
                SchemaKind::View => "v",
            }
    }

    fn change(&self, kind: SchemaKind, came: bool, relation: u32, text: String) -> SchemaChange {
        SchemaChange {
            kind,
            came,
            schema: self.schema.clone(),
            name: self.name.clone(),
            relation,
            text,
            names: Vec::new(),
            keys: Vec::new(),
        }
    }
}

/// Tells what kind of thing a statement is about, if it is one that can be taken back, and whether that comes.
pub(super) fn kind_of(statement: &Statement<'_>) -> Option<(SchemaKind, bool)> {
    let first = statement.word(0);
    let has = |word: &str| {
        statement
            .names
            .iter()
            .any(|it| it.eq_ignore_ascii_case(word))
    };
    let second = (1..4).map(|index| statement.word(index));
    let mut second = second.skip_while(|it| matches!(it.as_str(), "UNIQUE" | "UNLOGGED"));
    let second = second.next().unwrap_or_default();
    if first == "ALTER" {
        let count = |word: &str| {
            let each = statement.names.iter();
            each.filter(|it| it.eq_ignore_ascii_case(word)).count()
        };
        let of_constraint = ["CONSTRAINT", "FOREIGN", "PRIMARY", "EXCLUDE"];
        let adds = count("ADD") > 0
            && count("ALTER") == 1
            && !MORE.iter().any(|it| has(it))
            && !of_constraint.iter().any(|it| has(it));
        let known = if adds {
            Some((SchemaKind::Column, true))
        } else {
            super::alter::is_known(statement).then_some((SchemaKind::Altered, false))
        };
        return known.filter(|_| second == "TABLE");
    }
    let mut known = KNOWN.iter();
    let found = known.find(|(verb, noun, _)| *verb == first && *noun == second);
    let found = found.filter(|_| !has("CASCADE") || first == "CREATE");
    found.map(|(verb, _, kind)| (*kind, *verb == "CREATE"))
}

impl Connection {
    /// Runs a statement that changes the schema, and says what came and went.
    pub(super) fn run_schema(
        &mut self,
        statement: &Statement<'_>,
        (kind, came): (SchemaKind, bool),
        xact: &str,
    ) -> Result<Vec<SchemaChange>, RowsError> {
        if kind == SchemaKind::Altered {
            let done = self.run_alter(statement)?;
            self.is_all_told(&done, xact)?;
            return Ok(done);
        }
        let before = self.there()?;
        self.run("SAVEPOINT backout_schema")?;
        self.run(statement.text)?;
        let (after, held) = (self.there()?, self.held()?);
        // Texts of the server name what they are about in full, whatever the session looks through.
        let sql = "SELECT pg_catalog.current_setting('search_path')";
        let path: String = self.client.query_one(sql, &[])?.get(0);
        self.run("SET LOCAL search_path = pg_catalog")?;
        let changed = |one: &BTreeMap<u32, There>, other: &BTreeMap<u32, There>| -> Vec<u32> {
            let is_ours = |oid: &u32| held.contains(oid) || kind == SchemaKind::View;
            let each = one.iter().filter(|(_, it)| it.is(kind));
            let each = each.map(|(oid, _)| *oid);
            each.filter(|oid| is_ours(oid) && !other.contains_key(oid))
                .collect()
        };
        let mut done = Vec::new();
        if kind == SchemaKind::Column {
            done = self.added(statement, &before, &after)?;
        } else if came {
            for oid in changed(&after, &before) {
                done.push(self.made(kind, oid, &after)?);
            }
        } else {
            self.run("ROLLBACK TO SAVEPOINT backout_schema; SET LOCAL search_path = pg_catalog")?;
            for oid in changed(&before, &after) {
                let change = self.made(kind, oid, &before)?;
                done.push(self.schema_back_it(&change)?);
            }
        }
        let sql = "SELECT pg_catalog.set_config('search_path', $1, true)";
        self.client.query_one(sql, &[&path])?;
        self.is_all_told(&done, xact)?;
        Ok(done)
    }

    /// Makes sure that what is noted of a change of the schema is told; what is told need not be noted.
    fn is_all_told(&mut self, done: &[SchemaChange], xact: &str) -> Result<(), RowsError> {
        let sql = "SELECT ddl FROM backout.transaction WHERE xact = $1::text::xid8";
        let noted = self.client.query_opt(sql, &[&xact])?;
        let noted: Option<String> = noted.and_then(|row| row.get(0));
        if let (Some(what), true) = (noted, done.is_empty()) {
            return Err(RowsError::NotUndoable(format!(
                "it changes the schema ({what}), and what is kept here is rows: nothing would bring the schema back"
            )));
        }
        self.client.execute(
            "UPDATE backout.transaction SET ddl = NULL WHERE xact = $1::text::xid8",
            &[&xact],
        )?;
        Ok(())
    }

    fn there(&mut self) -> Result<BTreeMap<u32, There>, RowsError> {
        let rows = self.client.query(THERE, &[])?;
        let each = rows.iter().map(|row| {
            let there = There {
                kind: row.get(1),
                schema: row.get(2),
                name: row.get(3),
                columns: row.get(4),
            };
            (row.get(0), there)
        });
        Ok(each.collect())
    }

    fn held(&mut self) -> Result<Vec<u32>, RowsError> {
        let rows = self.client.query(HELD, &[])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Says how something that is there was made; or why it could not be made again.
    fn made(
        &mut self,
        kind: SchemaKind,
        oid: u32,
        there: &BTreeMap<u32, There>,
    ) -> Result<SchemaChange, RowsError> {
        let no = |why: &str| Err(RowsError::NotUndoable(why.to_owned()));
        let Some(found) = there.get(&oid) else {
            return no("what it changed is not there");
        };
        let text = match kind {
            SchemaKind::Table | SchemaKind::Column | SchemaKind::Altered => {
                let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhrelid = $1 OR inhparent = $1)";
                if self.client.query_one(sql, &[&oid])?.get(0) {
                    return no(
                        "a table that is a part of others, or has parts, cannot be set aside: nothing would bring the schema back",
                    );
                }
                found.columns.clone()
            }
            SchemaKind::Index => {
                let sql = "SELECT pg_catalog.pg_get_indexdef($1)";
                self.client.query_one(sql, &[&oid])?.get(0)
            }
            SchemaKind::View => {
                let sql = "SELECT pg_catalog.format('CREATE VIEW %I.%I AS %s', n.nspname, c.relname, pg_catalog.pg_get_viewdef(c.oid)),
                      c.relacl IS NULL AND c.reloptions IS NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid)
                        AND NOT EXISTS (SELECT FROM pg_catalog.pg_description d WHERE d.objoid = c.oid)
                      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1";
                let row = self.client.query_one(sql, &[&oid])?;
                if !row.get::<_, bool>(1) {
                    return no(
                        "the view has rights, options, triggers or a comment, which its text does not hold: nothing would bring the schema back",
                    );
                }
                row.get(0)
            }
        };
        Ok(found.change(kind, true, oid, text))
    }

    /// Says which columns a statement added.
    fn added(
        &mut self,
        statement: &Statement<'_>,
        before: &BTreeMap<u32, There>,
        after: &BTreeMap<u32, There>,
    ) -> Result<Vec<SchemaChange>, RowsError> {
        let no = |why: &str| Err(RowsError::NotUndoable(why.to_owned()));
        let mut changes = Vec::new();
        let adds = statement
            .names
            .iter()
            .filter(|it| it.eq_ignore_ascii_case("ADD"));
        let adds = adds.count();
        for (oid, now) in after {
            let Some(was) = before.get(oid) else { continue };
            let Some(new) = now.columns.strip_prefix(was.columns.as_str()) else {
                if was.columns == now.columns {
                    continue;
                }
                return no("it does more than add columns: nothing would bring the schema back");
            };
            if new.is_empty() {
                continue;
            }
            let sql = "SELECT attname::text, coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') LIKE '%(%' OR attgenerated <> '' OR attidentity <> ''
                       FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
                       WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum DESC LIMIT $2";
            let count = i64::try_from(adds).unwrap_or_default();
            let rows = self.client.query(sql, &[oid, &count])?;
            if rows.iter().any(|row| row.get::<_, bool>(1)) {
                return no(
                    "a column whose value is made anew each time cannot come again as it was: nothing would bring the schema back",
                );
            }
            let mut change = self.made(SchemaKind::Column, *oid, after)?;
            change.names = rows.iter().map(|row| row.get(0)).collect();
            statement.text.clone_into(&mut change.text);
            changes.push(change);
        }
        if changes.len() != 1 {
            return no("it does more than add columns: nothing would bring the schema back");
        }
        Ok(changes)
    }

    /// Tells how something that came or went stands now.
    pub(super) fn schema_state_it(&mut self, change: &SchemaChange) -> Result<State, RowsError> {
        let other = |why: &str| State::Other {
            why: why.to_owned(),
        };
        let there = self.there()?;
        let is_it = |it: &There| it.schema == change.schema && it.name == change.name;
        let named = there.iter().find(|(_, it)| is_it(it));
        let same = there.get(&change.relation).filter(|it| is_it(it));
        Ok(match (change.kind, change.came) {
            (SchemaKind::Table, true) => match (same, named) {
                (Some(it), _) if it.columns == change.text => State::After,
                (Some(_), _) => other("the columns of the table changed since"),
                (None, None) => State::Before,
                (None, Some(_)) => other("another one has its name by now"),
            },
            (SchemaKind::Table, false) => match (same, named) {
                (Some(_), _) => State::Before,
                (None, Some(_)) => other("another one has its name by now"),
                (None, None) if self.is_aside(change.relation)? => State::After,
                (None, None) => other("what was set aside is gone"),
            },
            (SchemaKind::Index | SchemaKind::View, came) => {
                let found = match named {
                    Some((oid, it)) if it.is(change.kind) => {
                        let oid = *oid;
                        self.made(change.kind, oid, &there).ok()
                    }
                    Some(_) => return Ok(other("another one has its name by now")),
                    None => None,
                };
                match (found, came) {
                    (Some(found), true) if found.text == change.text => State::After,
                    (Some(found), false) if found.text == change.text => State::Before,
                    (Some(_), _) => other("somebody else changed it"),
                    (None, true) => State::Before,
                    (None, false) => State::After,
                }
            }
            (SchemaKind::Column, came) => self.column_state(change, came, same)?,
            (SchemaKind::Altered, _) => self.alter_state(change)?,
        })
    }

    fn column_state(
        &mut self,
        change: &SchemaChange,
        came: bool,
        table: Option<&There>,
    ) -> Result<State, RowsError> {
        let other = |why: &str| State::Other {
            why: why.to_owned(),
        };
        let Some(table) = table else {
            return Ok(other("the table is gone"));
        };
        let sql = "SELECT pg_catalog.format('%I IS DISTINCT FROM %s', attname, coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), 'NULL'))
                   FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
                   WHERE attrelid = $1 AND NOT attisdropped AND attname = ANY($2)";
        let rows = self.client.query(sql, &[&change.relation, &change.names])?;
        let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        Ok(
            match (found.len() == change.names.len(), found.is_empty(), came) {
                (_, true, true) | (true, _, false) => State::Before,
                (_, true, false) => State::After,
                (false, ..) => other("the columns of the table changed since"),
                (true, _, true) => {
                    let table = format!("{}.{}", ident(&table.schema), ident(&table.name));
                    let sql = format!("SELECT 1 FROM {table} WHERE {} LIMIT 1", found.join(" OR "));
                    if self.ask(&sql)?.is_empty() {
                        State::After
                    } else {
                        other(
                            "rows have values in it, and nothing would bring them back: set them back first",
                        )
                    }
                }
            },
        )
    }

    fn is_aside(&mut self, relation: u32) -> Result<bool, RowsError> {
        let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                   WHERE c.oid = $1 AND n.nspname = 'backout_' || c.oid)";
        Ok(self.client.query_one(sql, &[&relation])?.get(0))
    }

    /// Takes away what came, or brings again what went, and says what that changed.
    pub(super) fn schema_back_it(
        &mut self,
        change: &SchemaChange,
    ) -> Result<SchemaChange, RowsError> {
        self.run("SELECT pg_catalog.set_config('backout.covering', 'on', true)")?;
        let mut done = SchemaChange {
            came: !change.came,
            ..change.clone()
        };
        let (schema, name) = (ident(&change.schema), ident(&change.name));
        let relation = change.relation;
        match (change.kind, change.came) {
            (SchemaKind::Table, true) => {
                done.keys = self.loosen(change)?;
                self.run(&format!(
                    "CREATE SCHEMA backout_{relation}; ALTER TABLE {schema}.{name} SET SCHEMA backout_{relation}"
                ))?;
            }
            (SchemaKind::Table, false) => {
                self.run(&format!(
                    "ALTER TABLE backout_{relation}.{name} SET SCHEMA {schema}; DROP SCHEMA backout_{relation}"
                ))?;
                for (key, text) in &change.keys {
                    self.run(&format!(
                        "ALTER TABLE {schema}.{name} ADD CONSTRAINT {} {text}",
                        ident(key)
                    ))?;
                }
                done.keys = Vec::new();
            }
            (SchemaKind::Index, true) => self.run(&format!("DROP INDEX {schema}.{name}"))?,
            (SchemaKind::View, true) => self.run(&format!("DROP VIEW {schema}.{name}"))?,
            (SchemaKind::Index | SchemaKind::View, false) => self.run(&change.text)?,
            (SchemaKind::Column, true) => {
                let drops = change
                    .names
                    .iter()
                    .map(|it| format!("DROP COLUMN {}", ident(it)));
                let drops: Vec<String> = drops.collect();
                self.run(&format!(
                    "ALTER TABLE {schema}.{name} {}; SELECT backout.cover({relation})",
                    drops.join(", ")
                ))?;
            }
            (SchemaKind::Column, false) => {
                // It finds its table as it did the first time.
                self.run(&format!(
                    "SET LOCAL search_path = {schema}, pg_catalog; {}; SELECT backout.cover({relation})",
                    change.text
                ))?;
                self.set_exact()?;
            }
            (SchemaKind::Altered, _) => done = self.alter_back(change)?,
        }
        self.run("SELECT pg_catalog.set_config('backout.covering', '', true)")?;
        Ok(done)
    }

    /// Takes the references of a table off: where it is set aside it must bind nobody.
    fn loosen(&mut self, change: &SchemaChange) -> Result<Vec<(String, String)>, RowsError> {
        let sql = "SELECT conname::text, pg_catalog.pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint
                   WHERE contype = 'f' AND conrelid = $1 ORDER BY conname";
        let rows = self.client.query(sql, &[&change.relation])?;
        let keys: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let sql = format!(
            "SELECT conrelid::regclass::text FROM pg_catalog.pg_constraint WHERE contype = 'f' AND confrelid = {0} AND conrelid <> {0} LIMIT 1",
            change.relation
        );
        if let Some(from) = self.ask(&sql)?.into_iter().flatten().next().flatten() {
            return Err(RowsError::NotUndoable(format!(
                "`{from}` refers to the table that would go: nothing would bring the schema back"
            )));
        }
        for (key, _) in &keys {
            self.run(&format!(
                "ALTER TABLE {}.{} DROP CONSTRAINT {}",
                ident(&change.schema),
                ident(&change.name),
                ident(key)
            ))?;
        }
        Ok(keys)
    }
}

/// Writes a name as SQL.
pub(super) fn ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
