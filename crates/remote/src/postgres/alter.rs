//! Changes of a table that is there: columns that go or get another type, names, defaults, constraints.
//!
//! What a statement did is the difference between two definitions, the one before and the one after it. The way back leads
//! from the second to the first. Values that would be lost are kept first, in a table of our own schema, by the primary key of
//! their rows. They are put back by an `ALTER COLUMN ... TYPE ... USING`, which fires no trigger and writes no log.

use backout_model::ports::State;
use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::definition::{Column, DEFINITION, Definition, Fate};
use super::schema::ident;
use crate::rows::{RowsError, SchemaChange, SchemaKind, Server as _, Statement};

/// Words in an `ALTER TABLE` that change what a definition does not hold.
const OTHER: [&str; 24] = [
    "CASCADE",
    "OWNER",
    "ENABLE",
    "DISABLE",
    "ATTACH",
    "DETACH",
    "INHERIT",
    "CLUSTER",
    "REPLICA",
    "FORCE",
    "TABLESPACE",
    "SCHEMA",
    "LOGGED",
    "UNLOGGED",
    "STORAGE",
    "STATISTICS",
    "COMPRESSION",
    "IDENTITY",
    "GENERATED",
    "EXPRESSION",
    "RESET",
    "OIDS",
    "METHOD",
    "OF",
];

/// What a statement made of a table.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Altered {
    before: Definition,
    after: Definition,
    /// The table of ours that holds values which went or changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

/// Tells whether an `ALTER TABLE` does only what the definition of a table holds.
pub(super) fn is_known(statement: &Statement<'_>) -> bool {
    let has = |word: &&str| {
        statement
            .names
            .iter()
            .any(|it| it.eq_ignore_ascii_case(word))
    };
    let renames_constraint = has(&"RENAME") && has(&"CONSTRAINT");
    !renames_constraint && !OTHER.iter().any(has)
}

impl Connection {
    /// Runs an `ALTER TABLE`, and says what it made of the table.
    pub(super) fn run_alter(
        &mut self,
        statement: &Statement<'_>,
    ) -> Result<Vec<SchemaChange>, RowsError> {
        let before = self.named(statement)?;
        self.run("SAVEPOINT backout_alter")?;
        self.run(statement.text)?;
        let mut changed = Vec::new();
        for (relation, was) in before {
            match self.definition(relation)? {
                Some(now) if now.is_same(&was) => {}
                Some(now) => changed.push((relation, was, now)),
                None => return Err(not_back("a table is gone")),
            }
        }
        let Some((relation, was, now)) = changed.pop().filter(|_| changed.is_empty()) else {
            let why = "it changes nothing of a table that is known here, or more than one table";
            return Err(not_back(why));
        };
        // What came in the same operation goes with all that was made of it.
        let is_of_it = |it: &SchemaChange| it.kind == SchemaKind::Table && it.relation == relation;
        let is_new = self.schema.iter().any(is_of_it);
        let hindrance = was.hindrance(&now).or_else(|| now.hindrance(&was));
        if let Some(why) = hindrance.filter(|_| !is_new) {
            return Err(not_back(why));
        }
        let kept = if is_new || was.fates(&now).is_empty() {
            None
        } else {
            // What goes has to be kept before it does.
            self.run("ROLLBACK TO SAVEPOINT backout_alter")?;
            let kept = self.keep(&was, &now)?;
            self.run(statement.text)?;
            self.keep_after(&kept, &was, &now)?;
            Some(kept)
        };
        let altered = Altered {
            before: was,
            after: now,
            kept,
        };
        Ok(vec![altered.change(relation)?])
    }

    /// Asks how the tables are defined that a statement may mean.
    fn named(&mut self, statement: &Statement<'_>) -> Result<Vec<(u32, Definition)>, RowsError> {
        let names = statement.names.iter();
        let names: Vec<String> = names
            .flat_map(|it| [it.replace("\"\"", "\""), it.to_lowercase()])
            .collect();
        let sql = "SELECT oid FROM pg_catalog.pg_class WHERE relkind = 'r' AND oid >= 16384 AND relname = ANY($1)";
        let rows = self.client.query(sql, &[&names])?;
        let mut found = Vec::new();
        for row in rows {
            let relation: u32 = row.get(0);
            if let Some(definition) = self.definition(relation)? {
                found.push((relation, definition));
            }
        }
        Ok(found)
    }

    /// Asks how a table is defined; none if it is not there, or is ours.
    fn definition(&mut self, relation: u32) -> Result<Option<Definition>, RowsError> {
        // Names come out in full where nothing else is looked through.
        let sql = "SELECT pg_catalog.current_setting('search_path')";
        let path: String = self.client.query_one(sql, &[])?.get(0);
        self.run("SET LOCAL search_path = pg_catalog")?;
        let row = self.client.query_opt(DEFINITION, &[&relation])?;
        let sql = "SELECT pg_catalog.set_config('search_path', $1, true)";
        self.client.query_one(sql, &[&path])?;
        let text: Option<String> = row.map(|row| row.get(0));
        let read = text.map(|text| serde_json::from_str(&text)).transpose();
        read.map_err(|error| not_back(&error.to_string()))
    }

    /// Keeps the values of columns that go or change, by the keys of their rows, and names the table that holds them.
    fn keep(&mut self, from: &Definition, to: &Definition) -> Result<String, RowsError> {
        let sql = "SELECT 'kept_' || pg_catalog.pg_current_xact_id() || '_' || pg_catalog.count(*) FROM pg_catalog.pg_class
                   WHERE relnamespace = 'backout'::pg_catalog.regnamespace
                     AND pg_catalog.starts_with(relname, 'kept_' || pg_catalog.pg_current_xact_id() || '_') AND relkind = 'r'";
        let kept: String = self.client.query_one(sql, &[])?.get(0);
        let keys = from.key.iter().enumerate();
        let keys = keys.map(|(index, name)| format!("{} AS k{index}", ident(name)));
        let values = from.fates(to).into_iter().enumerate();
        let values = values.map(|(index, (it, _))| format!("{} AS c{index}", ident(&it.name)));
        let columns: Vec<String> = keys.chain(values).collect();
        let key: Vec<String> = (0..from.key.len()).map(|it| format!("k{it}")).collect();
        self.run(&format!(
            "CREATE TABLE backout.{kept} AS SELECT {} FROM ONLY {}; ALTER TABLE backout.{kept} ADD PRIMARY KEY ({})",
            columns.join(", "),
            from.sql(),
            key.join(", ")
        ))?;
        Ok(kept)
    }

    /// Keeps what values became that got another type, so that later changes of them are seen.
    fn keep_after(
        &mut self,
        kept: &str,
        from: &Definition,
        to: &Definition,
    ) -> Result<(), RowsError> {
        for (index, (column, fate)) in from.fates(to).into_iter().enumerate() {
            let then = to.columns.iter().find(|it| it.number == column.number);
            let (Some(then), Fate::Changes) = (then, fate) else {
                continue;
            };
            self.run(&format!(
                "ALTER TABLE backout.{kept} ADD COLUMN a{index} text;
                 UPDATE backout.{kept} k SET a{index} = t.{}::text FROM ONLY {} t WHERE {}",
                ident(&then.name),
                to.sql(),
                on_keys(to)
            ))?;
        }
        Ok(())
    }

    /// Tells how a table that was altered stands now.
    pub(super) fn alter_state(&mut self, change: &SchemaChange) -> Result<State, RowsError> {
        let other = |why: &str| {
            let why = why.to_owned();
            Ok(State::Other { why })
        };
        let altered = Altered::of(change)?;
        let Some(now) = self.definition(change.relation)? else {
            return other("the table is gone");
        };
        if now.is_same(&altered.before) && !now.is_same(&altered.after) {
            return Ok(State::Before);
        }
        if !now.is_same(&altered.after) {
            return other("the definition of the table changed since");
        }
        let (after, before) = (&altered.after, &altered.before);
        let mut questions: Vec<(String, &str)> = Vec::new();
        if let Some(kept) = &altered.kept {
            let sql = format!("SELECT pg_catalog.to_regclass('backout.{kept}')");
            if self
                .ask(&sql)?
                .into_iter()
                .flatten()
                .flatten()
                .next()
                .is_none()
            {
                return other("what was set aside is gone");
            }
            let joined = format!(
                "SELECT 1 FROM ONLY {} t LEFT JOIN backout.{kept} k ON {}",
                now.sql(),
                on_keys(&now)
            );
            for column in after.coming(before) {
                if column.is_required && column.usual.is_none() {
                    let why =
                        "rows are new since, and have no value for a column that must have one";
                    questions.push((format!("{joined} WHERE k.k0 IS NULL LIMIT 1"), why));
                }
            }
            for (index, (column, fate)) in before.fates(after).into_iter().enumerate() {
                let then = after.columns.iter().find(|it| it.number == column.number);
                if let (Some(then), Fate::Changes) = (then, fate) {
                    let name = ident(&then.name);
                    let sql = format!(
                        "{joined} WHERE k.k0 IS NULL OR t.{name}::text IS DISTINCT FROM k.a{index} LIMIT 1"
                    );
                    questions.push((sql, "rows have other values in it since, which the type that it had may not hold: set them back first"));
                }
            }
        }
        for (was, is) in pairs(before, after) {
            if was.is_required && !is.is_required {
                let (table, name) = (now.sql(), ident(&is.name));
                let sql = format!("SELECT 1 FROM {table} WHERE {name} IS NULL LIMIT 1");
                questions.push((
                    sql,
                    "rows have no value in a column that must have one then",
                ));
            }
        }
        for (sql, why) in questions {
            if !self.ask(&sql)?.is_empty() {
                return other(why);
            }
        }
        Ok(State::After)
    }

    /// Leads a table back to the definition that it had, and says what that changed.
    pub(super) fn alter_back(&mut self, change: &SchemaChange) -> Result<SchemaChange, RowsError> {
        let Altered {
            before,
            after,
            kept,
        } = Altered::of(change)?;
        let now = self.definition(change.relation)?;
        let now = now.ok_or_else(|| not_back("the table is gone"))?;
        let kept_now = if after.fates(&before).is_empty() {
            None
        } else {
            Some(self.keep(&after, &before)?)
        };
        let arguments: Vec<String> = after.key.iter().map(|it| ident(it)).collect();
        if let Some(kept) = &kept {
            self.make_values(change.relation, kept, &before, &after)?;
        }
        let returning = before.fates(&after);
        let value = |column: &Column| {
            let index = returning
                .iter()
                .position(|(it, _)| it.name == column.name)
                .unwrap_or_default();
            format!("backout.value_{index}({})", arguments.join(", "))
        };
        let relation = change.relation;
        for step in after
            .parting(&before)
            .iter()
            .chain(&after.way(&before, &value))
        {
            self.run(step)?;
        }
        for index in 0..kept.as_ref().map_or(0, |_| returning.len()) {
            self.run(&format!("DROP FUNCTION backout.value_{index}"))?;
        }
        let half = self.definition(relation)?;
        let half = half.ok_or_else(|| not_back("the table is gone"))?;
        for step in half.finish(&before) {
            self.run(&step)?;
        }
        self.run(&format!("SELECT backout.cover({relation}); SELECT pg_catalog.set_config('backout.covering', 'on', true)"))?;
        let back = self.definition(relation)?;
        let Some(back) = back.filter(|it| it.is_same(&before)) else {
            return Err(not_back("the table would be defined otherwise than it was"));
        };
        if let Some(kept) = &kept_now {
            self.keep_after(kept, &now, &back)?;
        }
        if !back.is_in_order(&before) {
            let note = format!(
                "a column of {} came back as the last one: its place among the others is lost, and what was written in the table before it went cannot be taken back any more",
                back.sql()
            );
            self.notes.push(note);
        }
        let altered = Altered {
            before: now,
            after: back,
            kept: kept_now,
        };
        // It is the same target, whatever the table is called.
        Ok(SchemaChange {
            name: change.name.clone(),
            ..altered.change(relation)?
        })
    }

    /// Makes the functions that find the values of columns which come back.
    fn make_values(
        &mut self,
        relation: u32,
        kept: &str,
        before: &Definition,
        after: &Definition,
    ) -> Result<(), RowsError> {
        let key = "SELECT pg_catalog.format_type(a.atttypid, NULL) FROM pg_catalog.pg_index x, pg_catalog.unnest(x.indkey) WITH ORDINALITY AS k(n, i),
                     pg_catalog.pg_attribute a WHERE x.indrelid = $1 AND x.indisprimary AND a.attrelid = $1 AND a.attnum = k.n ORDER BY k.i";
        let rows = self.client.query(key, &[&relation])?;
        let kinds: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let on: Vec<String> = (0..kinds.len())
            .map(|it| format!("k{it} = ${}", it + 1))
            .collect();
        for (index, (column, _)) in before.fates(after).into_iter().enumerate() {
            let Column { kind, usual, .. } = column;
            let bare = kind.split(" COLLATE ").next().unwrap_or_default();
            let usual = usual.as_deref().unwrap_or("NULL");
            self.run(&format!(
                "CREATE FUNCTION backout.value_{index}({}) RETURNS {bare} LANGUAGE sql AS $of_backout$
                   SELECT c FROM (SELECT c{index} AS c, 0 AS o FROM backout.{kept} WHERE {}
                                  UNION ALL SELECT ({usual})::{bare}, 1) each_one ORDER BY o LIMIT 1 $of_backout$",
                kinds.join(", "),
                on.join(" AND ")
            ))?;
        }
        Ok(())
    }
}

/// Pairs the columns that both definitions have.
fn pairs<'d>(one: &'d Definition, other: &'d Definition) -> Vec<(&'d Column, &'d Column)> {
    let pair = |it: &'d Column| {
        let mut others = other.columns.iter();
        Some((it, others.find(|other| other.number == it.number)?))
    };
    one.columns.iter().filter_map(pair).collect()
}

/// Writes that a row of a table, `t`, is one whose values are kept, `k`.
fn on_keys(table: &Definition) -> String {
    let each = table.key.iter().enumerate();
    let each = each.map(|(index, name)| format!("t.{} = k.k{index}", ident(name)));
    each.collect::<Vec<_>>().join(" AND ")
}

fn not_back(why: &str) -> RowsError {
    RowsError::NotUndoable(format!(
        "it changes the schema, and nothing would bring that back: {why}"
    ))
}

impl Altered {
    fn of(change: &SchemaChange) -> Result<Self, RowsError> {
        serde_json::from_str(&change.text).map_err(|error| not_back(&error.to_string()))
    }

    fn change(&self, relation: u32) -> Result<SchemaChange, RowsError> {
        let text = serde_json::to_string(self).map_err(|error| not_back(&error.to_string()))?;
        Ok(SchemaChange {
            kind: SchemaKind::Altered,
            came: false,
            schema: self.before.schema.clone(),
            name: self.before.name.clone(),
            relation,
            text,
            names: vec![self.after.name.clone()],
            keys: Vec::new(),
        })
    }
}
