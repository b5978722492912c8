//! Taking a transaction back, in a transaction of its own that stays open until its own way back is durable.
//!
//! Every row that it left different is looked up by its key and locked: as it left it, as it was before, or something else.
//! Then what it brought goes, what it changed is set back, and what it took away comes again, and all of it is looked at once
//! more. Our own triggers log that like any change, so the undo of an undo needs no code.
//!
//! A temporary table holds one line for each row: `key`, `went` (the row before), `came` (after), `now`, `state` (`a`fter,
//! `b`efore, `o`ther, `t`aken), `take` (whether it goes back) and `why`.

use backout_model::OutcomeKind;
use backout_model::ports::{How, OnConflict, State};
use backout_model::{OperationId, Target, TargetOutcome};

use super::connection::Connection;
use super::error::PostgresError;
use super::log::{Table, net_by_key};
use super::recipe::Body;

/// How often the rows are tried again without those that turned out to be in somebody's way.
const ROUNDS_MAX: usize = 6;

const NET_TABLE: &str = "
    CREATE TEMPORARY TABLE backout_net (relation oid NOT NULL, key text NOT NULL, went text, came text, n bigint NOT NULL,
        now text, state \"char\", take boolean NOT NULL DEFAULT false, why text) ON COMMIT DROP";

/// How rows of a table are set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// What changed is updated where it is.
    Update,
    /// What changed goes and comes again: two rows may have swapped something that must be unique.
    Replace,
}

/// A row, and how it stands.
#[derive(Debug, Clone)]
pub(super) struct SeenRow {
    pub(super) key: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    pub(super) now: Option<String>,
    pub(super) state: State,
}

/// A table, and how its rows stand.
#[derive(Debug)]
pub(super) struct SeenTable {
    pub(super) table: Table,
    /// How many rows are as after, as before, otherwise.
    pub(super) counts: [i64; 3],
    /// The rows, if they are few.
    pub(super) rows: Option<Vec<SeenRow>>,
}

impl Connection {
    /// Looks at all rows that a transaction changed. With `locks`, nobody can change them until this transaction ends.
    pub(super) fn look(
        &mut self,
        body: &Body,
        locks: bool,
    ) -> Result<Vec<SeenTable>, PostgresError> {
        self.run("DROP TABLE IF EXISTS pg_temp.backout_net")?;
        self.run(NET_TABLE)?;
        let mut seen = Vec::new();
        for mut table in self.tables(&body.xact)? {
            let mut known = body.tables.iter();
            let Some(known) = known.find(|it| it.relation == table.relation) else {
                continue;
            };
            // Whatever it is called now, targets bear the name that it had.
            table.names = (known.change.schema.clone(), known.change.table.clone());
            if table.changed.is_some() {
                self.put_keys(&table, known.change.rows.as_deref())?;
            } else {
                let net = net_by_key(&table);
                let sql = format!(
                    "INSERT INTO backout_net (relation, key, went, came, n)
                     SELECT $2::oid, key, went, came, n FROM ({net}) net"
                );
                self.client.execute(&sql, &[&body.xact, &table.relation])?;
                self.look_at(&table, locks)?;
            }
            seen.push(self.seen(table, known.change.rows.is_none())?);
        }
        // Tables where nothing is different in the end are no targets.
        seen.retain(|it| it.counts.iter().sum::<i64>() > 0);
        Ok(seen)
    }

    /// Names the rows of a table that cannot be compared any more.
    fn put_keys(&mut self, table: &Table, keys: Option<&[String]>) -> Result<(), PostgresError> {
        let all = ["all".to_owned()];
        let sql = "INSERT INTO backout_net (relation, key, n, state, why) SELECT $1, key, 1, 'o', $3 FROM unnest($2::text[]) key";
        let keys = keys.unwrap_or(&all);
        self.client
            .execute(sql, &[&table.relation, &keys, &table.changed])?;
        Ok(())
    }

    /// Finds out what the rows of a table are now.
    fn look_at(&mut self, table: &Table, locks: bool) -> Result<(), PostgresError> {
        let relation = table.relation;
        self.run("ANALYZE backout_net")?;
        let sql = &table.sql;
        if table.key.is_empty() {
            if locks {
                self.run(&format!(
                    "SELECT FROM ONLY {sql} t WHERE (t.*)::text IN (SELECT came FROM backout_net WHERE relation = {relation}) FOR UPDATE"
                ))?;
            }
            // Of equal rows any will do; which one it was nobody can tell.
            return self.run(&format!(
                "UPDATE backout_net n SET now = CASE WHEN f.c > 0 THEN n.came END, state = CASE
                     WHEN n.came IS NULL OR f.c >= n.n THEN 'a' WHEN f.c = 0 THEN 'b' ELSE 'o' END::\"char\"
                 FROM (SELECT m.key, count(t.*) AS c FROM backout_net m LEFT JOIN ONLY {sql} t ON (t.*)::text = m.came
                       WHERE m.relation = {relation} GROUP BY m.key) f
                 WHERE n.relation = {relation} AND n.key = f.key"
            ));
        }
        let on = on_key(table, "t", "(p.r)");
        let parsed = format!(
            "(SELECT key, coalesce(went, came)::{sql} AS r FROM backout_net WHERE relation = {relation} ORDER BY key OFFSET 0) p"
        );
        if locks {
            self.run(&format!(
                "SELECT FROM {parsed} JOIN ONLY {sql} t ON {on} FOR UPDATE OF t"
            ))?;
        }
        self.run(&format!(
            "UPDATE backout_net n SET now = (t.*)::text FROM {parsed} JOIN ONLY {sql} t ON {on}
             WHERE n.relation = {relation} AND n.key = p.key;
             UPDATE backout_net SET state = CASE WHEN now IS NOT DISTINCT FROM came THEN 'a'
                 WHEN now IS NOT DISTINCT FROM went THEN 'b' ELSE 'o' END::\"char\" WHERE relation = {relation}"
        ))
    }

    /// Reads how the rows of a table stand.
    fn seen(&mut self, table: Table, is_whole: bool) -> Result<SeenTable, PostgresError> {
        let sql = "SELECT count(*) FILTER (WHERE state = 'a'), count(*) FILTER (WHERE state = 'b'),
                          count(*) FILTER (WHERE state NOT IN ('a', 'b')) FROM backout_net WHERE relation = $1";
        let row = self.client.query_one(sql, &[&table.relation])?;
        let counts = [row.get(0), row.get(1), row.get(2)];
        let rows = if is_whole {
            None
        } else {
            let sql = "SELECT key, went, came, now, state::text, why FROM backout_net WHERE relation = $1 ORDER BY key";
            let rows = self.client.query(sql, &[&table.relation])?;
            Some(rows.iter().map(seen_row).collect())
        };
        Ok(SeenTable {
            table,
            counts,
            rows,
        })
    }

    /// Takes rows back, inside of the transaction that was begun, and says what becomes of each target.
    pub(super) fn take_back(
        &mut self,
        body: &Body,
        how: How<'_>,
    ) -> Result<Vec<TargetOutcome>, PostgresError> {
        let stills = self.may_still_triggers()?;
        if stills {
            self.run("SET LOCAL session_replication_role = replica")?;
        }
        self.run("SET CONSTRAINTS ALL DEFERRED")?;
        let seen = self.look(body, true)?;
        let space = super::space(&body.place);
        let targets = meant(&seen, &space, how);
        for (table, key, _) in &targets {
            let sql = "UPDATE backout_net SET take = state = 'a' OR $3 AND state = 'o'
                       WHERE relation = $1 AND ($2::text IS NULL OR key = $2)";
            let forces = how.on_conflict == OnConflict::Force && table.changed.is_none();
            self.client.execute(sql, &[&table.relation, key, &forces])?;
        }
        let tables = seen.iter().map(|it| &it.table);
        let tables: Vec<&Table> = tables.filter(|it| it.changed.is_none()).collect();
        let tables = self.in_order(&tables)?;
        for _ in 0..ROUNDS_MAX {
            let mut outcomes = self.outcomes(&targets, how)?;
            if !how.goes_on(&mut outcomes) {
                self.run("UPDATE backout_net SET take = false")?;
                return Ok(outcomes);
            }
            self.run("SAVEPOINT backout_round")?;
            let in_the_way = self.try_back(&tables, stills, how)?;
            if in_the_way == 0 {
                return Ok(outcomes);
            }
        }
        let why = "rows stand in each other's way".to_owned();
        Err(PostgresError::NotUndoable(why))
    }

    /// Sets all rows back that are to be, and looks. If rows are in the way of something, all is as before this, they are not
    /// to be taken back any more, and their number is given.
    fn try_back(
        &mut self,
        tables: &[&Table],
        stills: bool,
        how: How<'_>,
    ) -> Result<usize, PostgresError> {
        let mut way = Way::Update;
        loop {
            let done = self.set_back(tables, way);
            match done {
                Ok(()) => break,
                // Something that must be unique went from one row to another.
                Err(error) if error.code() == "23505" && stills && way == Way::Update => {
                    self.run("ROLLBACK TO SAVEPOINT backout_round")?;
                    way = Way::Replace;
                }
                Err(error) => return Err(error),
            }
        }
        let mut found = Vec::new();
        for table in tables {
            found.extend(self.not_back(table)?);
            if stills {
                found.extend(self.dangling(table)?);
            }
        }
        if !stills {
            self.run("SET CONSTRAINTS ALL IMMEDIATE")?;
            let beside = self
                .beside()?
                .filter(|_| how.on_conflict != OnConflict::Force);
            if let Some(beside) = beside {
                return Err(PostgresError::NotUndoable(format!(
                    "a trigger or a cascade would change more than what is taken back ({beside}); let a role do it that may keep \
                     triggers from running, or let it happen with `--force`"
                )));
            }
        }
        if found.is_empty() {
            return Ok(0);
        }
        self.run("ROLLBACK TO SAVEPOINT backout_round")?;
        for (relation, key, why) in &found {
            let sql = "UPDATE backout_net SET take = false, state = 't', why = $3 WHERE relation = $1 AND key = $2";
            self.client.execute(sql, &[relation, key, why])?;
        }
        Ok(found.len())
    }

    fn set_back(&mut self, tables: &[&Table], way: Way) -> Result<(), PostgresError> {
        for table in tables.iter().rev() {
            self.run(&going(table, way))?;
        }
        for table in tables {
            let sql = updating(table).filter(|_| way == Way::Update);
            if let Some(sql) = sql {
                self.run(&sql)?;
            }
            self.run(&coming(table, way))?;
        }
        Ok(())
    }

    /// Finds rows that were to come back and are not there as they were: somebody holds something that must be unique, or a
    /// trigger made something else of them.
    fn not_back(&mut self, table: &Table) -> Result<Vec<(u32, String, String)>, PostgresError> {
        let (sql, relation) = (&table.sql, table.relation);
        let is_there = if table.key.is_empty() {
            format!("(SELECT count(*) FROM ONLY {sql} t WHERE (t.*)::text = n.went) >= n.n")
        } else {
            let on = on_key(table, "t", "(n.r)");
            format!("EXISTS (SELECT FROM ONLY {sql} t WHERE {on} AND (t.*)::text = n.went)")
        };
        let found = self.client.query(
            &format!(
                "SELECT key FROM (SELECT key, went, n, went::{sql} AS r FROM backout_net
                                  WHERE relation = {relation} AND take AND went IS NOT NULL OFFSET 0) n WHERE NOT {is_there}"
            ),
            &[],
        )?;
        let why = "another row has something by now that only one may have, or a trigger made something else of it";
        let each = found
            .iter()
            .map(|row| (relation, row.get(0), why.to_owned()));
        Ok(each.collect())
    }

    /// Says what the undo could not keep from happening.
    pub(super) fn undo_notes(&mut self) -> Result<Vec<String>, PostgresError> {
        let note = "this role may not keep other triggers from running: they ran once more";
        let is_free = self.may_still_triggers()?;
        Ok((!is_free).then(|| note.to_owned()).into_iter().collect())
    }

    /// Says what becomes of each target.
    fn outcomes(
        &mut self,
        targets: &[Meant<'_>],
        how: How<'_>,
    ) -> Result<Vec<TargetOutcome>, PostgresError> {
        let mut outcomes = Vec::new();
        for (table, key, target) in targets {
            let sql = "SELECT count(*), count(*) FILTER (WHERE state = 'b'), count(*) FILTER (WHERE state = 'o'),
                              count(*) FILTER (WHERE state = 't'), max(why)
                       FROM backout_net WHERE relation = $1 AND ($2::text IS NULL OR key = $2)";
            let row = self.client.query_one(sql, &[&table.relation, key])?;
            let count = |index: usize| row.get::<_, i64>(index);
            let (all, before, other, taken) = (count(0), count(1), count(2), count(3));
            let why = row.get::<_, Option<String>>(4);
            let of = |some: i64| {
                if all > 1 {
                    format!("{some} of {all} rows: ")
                } else {
                    String::new()
                }
            };
            let kind = if taken > 0 || table.changed.is_some() {
                let why = format!("{}{}", of(taken.max(other)), why.unwrap_or_default());
                OutcomeKind::Conflict { why }
            } else if other > 0 {
                let why = format!("{}somebody else changed it", of(other));
                State::Other { why }.taken_back(how.on_conflict)
            } else if before == all {
                OutcomeKind::AlreadyGone
            } else {
                OutcomeKind::Restored
            };
            if !kind.is_taken_back() {
                // A table of many rows comes back whole or not at all.
                let sql = "UPDATE backout_net SET take = false WHERE relation = $1 AND ($2::text IS NULL OR key = $2)";
                self.client.execute(sql, &[&table.relation, key])?;
            }
            outcomes.push(TargetOutcome::new(target.clone(), kind));
        }
        Ok(outcomes)
    }
}

/// A table, the key of a row in it or all of them, and what that is as a target.
pub(super) type Meant<'s> = (&'s Table, Option<String>, Target);

/// Lists the targets that are to be taken back.
pub(super) fn meant<'s>(seen: &'s [SeenTable], space: &str, how: How<'_>) -> Vec<Meant<'s>> {
    let mut all = targets(seen, space);
    all.retain(|(_, _, target)| how.means(target));
    all
}

/// Lists all targets.
pub(super) fn targets<'s>(seen: &'s [SeenTable], space: &str) -> Vec<Meant<'s>> {
    let mut all = Vec::new();
    for it in seen {
        let (schema, name) = &it.table.names;
        let rows = it.rows.as_ref();
        let change = crate::rows::TableChange {
            schema: schema.clone(),
            table: name.clone(),
            counts: [0; 3],
            rows: rows.map(|rows| rows.iter().map(|row| row.key.clone()).collect()),
        };
        let keys = change.rows.clone();
        // The names come from the server, which has no empty ones.
        let targets = change.targets(space).unwrap_or_default();
        for (index, target) in targets.into_iter().enumerate() {
            let key = keys.as_ref().and_then(|keys| keys.get(index).cloned());
            all.push((&it.table, key, target));
        }
    }
    all
}

fn seen_row(row: &postgres::Row) -> SeenRow {
    let state: &str = row.get(4);
    let why: Option<String> = row.get(5);
    let somebody = || "somebody else changed it".to_owned();
    SeenRow {
        key: row.get(0),
        before: row.get(1),
        after: row.get(2),
        now: row.get(3),
        state: match state {
            "a" => State::After,
            "b" => State::Before,
            _ => State::Other {
                why: why.unwrap_or_else(somebody),
            },
        },
    }
}

/// Writes that two rows have the same key.
pub(super) fn on_key(table: &Table, one: &str, other: &str) -> String {
    let each = table
        .key
        .iter()
        .map(|column| format!("{one}.{column} = {other}.{column}"));
    each.collect::<Vec<_>>().join(" AND ")
}

/// Writes what takes rows away.
fn going(table: &Table, way: Way) -> String {
    let (sql, relation) = (&table.sql, table.relation);
    if table.key.is_empty() {
        return format!(
            "DELETE FROM ONLY {sql} WHERE ctid IN (SELECT c FROM (
               SELECT t.ctid AS c, n.n, row_number() OVER (PARTITION BY n.key ORDER BY t.ctid) AS i
               FROM ONLY {sql} t JOIN backout_net n ON n.relation = {relation} AND n.take AND n.came = (t.*)::text) x WHERE i <= n)"
        );
    }
    let only_new = if way == Way::Update {
        "AND went IS NULL"
    } else {
        ""
    };
    let on = on_key(table, "t", "(x.r)");
    format!(
        "DELETE FROM ONLY {sql} t USING (SELECT now::{sql} AS r FROM backout_net
           WHERE relation = {relation} AND take AND now IS NOT NULL {only_new} OFFSET 0) x WHERE {on}"
    )
}

/// Writes what sets changed rows back; none if there is nothing but the key.
fn updating(table: &Table) -> Option<String> {
    let (sql, relation) = (&table.sql, table.relation);
    let columns = table.settable.iter().filter(|it| !table.key.contains(it));
    let columns = columns.map(|column| format!("{column} = (x.r).{column}"));
    let columns: Vec<String> = columns.collect();
    if table.key.is_empty() || columns.is_empty() {
        return None;
    }
    let on = on_key(table, "t", "(x.r)");
    Some(format!(
        "UPDATE ONLY {sql} t SET {} FROM (SELECT went::{sql} AS r FROM backout_net
           WHERE relation = {relation} AND take AND went IS NOT NULL AND now IS NOT NULL OFFSET 0) x WHERE {on}",
        columns.join(", ")
    ))
}

/// Writes what brings rows again that are not there.
fn coming(table: &Table, way: Way) -> String {
    let (sql, relation) = (&table.sql, table.relation);
    let only_gone = match way {
        _ if table.key.is_empty() => "",
        Way::Update => "AND now IS NULL",
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

/// Names a new transaction's operation.
pub(super) fn mark(
    connection: &mut Connection,
    id: OperationId,
    xact: &str,
) -> Result<(), PostgresError> {
    let sql = "INSERT INTO backout.marker (operation, xact) VALUES ($1, $2::text::xid8)";
    connection.client.execute(sql, &[&id.to_string(), &xact])?;
    Ok(())
}
