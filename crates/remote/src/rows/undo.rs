//! Taking a transaction back, in a transaction of its own that stays open until its own way back is durable.
//!
//! Every row that it left different is looked up by its key and locked: as it left it, as it was before, or something else.
//! Then what it brought goes, what it changed is set back, and what it took away comes again, and all of it is looked at once
//! more. Our own triggers log that like any change, so the undo of an undo needs no code.

use backout_model::OutcomeKind;
use backout_model::ports::{How, OnConflict, State};
use backout_model::{Target, TargetOutcome};

use super::TableChange;
use super::body::Body;
use super::error::RowsError;
use super::references::{InTheWay, dangling, in_order};
use super::schema::{self, SchemaChange};
use super::server::{Server, Stills, Table, TextRow, Way, on_key, quote};

/// How often the rows are tried again without those that turned out to be in somebody's way.
const ROUNDS_MAX: usize = 6;

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
    pub(super) counts: [u64; 3],
    /// The rows, if they are few.
    pub(super) rows: Option<Vec<SeenRow>>,
}

/// Fills the temporary table with what a transaction did, unless it holds that already, and gives the tables.
pub(super) fn fill<S: Server>(server: &mut S, body: &Body) -> Result<Vec<Table>, RowsError> {
    let mut tables = server.tables(&body.xact)?;
    tables.retain(|table| known(body, table).is_some());
    for table in &mut tables {
        // Whatever it is called now, targets bear the name that it had.
        if let Some(known) = known(body, table) {
            table.names = (known.schema.clone(), known.table.clone());
        }
    }
    let holds = Some((body.xact.clone(), tables.clone()));
    if *server.net() == holds {
        return Ok(tables);
    }
    *server.net() = None;
    server.make_net()?;
    for table in &tables {
        if table.changed.is_some() {
            let keys = known(body, table).and_then(|it| it.rows.as_deref());
            put_keys(server, table, keys)?;
        } else {
            server.fill_net(table, &body.xact)?;
        }
    }
    *server.net() = holds;
    Ok(tables)
}

/// Finds what the recipe says of a table.
fn known<'b>(body: &'b Body, table: &Table) -> Option<&'b TableChange> {
    let mut known = body.tables.iter();
    let known = known.find(|it| it.relation == table.relation);
    known.map(|it| &it.change)
}

/// Looks at all rows that a transaction changed. With `locks`, nobody can change them until this transaction ends.
pub(super) fn look<S: Server>(
    server: &mut S,
    body: &Body,
    locks: bool,
) -> Result<Vec<SeenTable>, RowsError> {
    let mut seen = Vec::new();
    for table in fill(server, body)? {
        let is_whole = known(body, &table).is_some_and(|it| it.rows.is_none());
        if is_whole && !locks && table.changed.is_none() && !table.key.is_empty() {
            let counts = states(&server.count_states(&table)?);
            let rows = None;
            seen.push(SeenTable {
                table,
                counts,
                rows,
            });
            continue;
        }
        if table.changed.is_none() {
            server.look_at(&table, locks)?;
        }
        seen.push(seen_table(server, table, is_whole)?);
    }
    // Tables where nothing is different in the end are no targets.
    seen.retain(|it| it.counts.iter().sum::<u64>() > 0);
    Ok(seen)
}

/// Reads how many rows are as after, as before, otherwise.
fn states(found: &[TextRow]) -> [u64; 3] {
    let row = found.first();
    [number(row, 0), number(row, 1), number(row, 2)]
}

/// Names the rows of a table that cannot be compared any more.
fn put_keys<S: Server>(
    server: &mut S,
    table: &Table,
    keys: Option<&[String]>,
) -> Result<(), RowsError> {
    let all = ["all".to_owned()];
    let why = quote(table.changed.as_deref().unwrap_or_default());
    for key in keys.unwrap_or(&all) {
        server.run(&format!(
            "INSERT INTO backout_net (relation, k, n, state, why) VALUES ({}, {}, 1, 'o', {why})",
            table.relation,
            quote(key)
        ))?;
    }
    Ok(())
}

/// Reads how the rows of a table stand.
fn seen_table<S: Server>(
    server: &mut S,
    table: Table,
    is_whole: bool,
) -> Result<SeenTable, RowsError> {
    let relation = table.relation;
    let found = server.ask(&format!(
        "SELECT count(CASE WHEN state = 'a' THEN 1 END), count(CASE WHEN state = 'b' THEN 1 END),
                count(CASE WHEN state NOT IN ('a', 'b') THEN 1 END) FROM backout_net WHERE relation = {relation}"
    ))?;
    let counts = states(&found);
    let rows = if is_whole {
        None
    } else {
        let rows = server.ask(&format!(
            "SELECT k, went, came, present, state, why FROM backout_net WHERE relation = {relation} ORDER BY k"
        ))?;
        Some(rows.into_iter().map(seen_row).collect())
    };
    Ok(SeenTable {
        table,
        counts,
        rows,
    })
}

/// Reads a number out of an answer.
fn number(row: Option<&TextRow>, index: usize) -> u64 {
    let text = row.and_then(|row| row.get(index)?.as_deref());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn seen_row(row: TextRow) -> SeenRow {
    let mut values = row.into_iter();
    let mut next = || values.next().flatten();
    let (key, before, after, now) = (next().unwrap_or_default(), next(), next(), next());
    let (state, why) = (next().unwrap_or_default(), next());
    let somebody = || "somebody else changed it".to_owned();
    SeenRow {
        key,
        before,
        after,
        now,
        state: match state.as_str() {
            "a" => State::After,
            "b" => State::Before,
            _ => State::Other {
                why: why.unwrap_or_else(somebody),
            },
        },
    }
}

/// Takes rows and changes of the schema back, inside of the transaction that was begun, and says what becomes of each target,
/// and what that changed in the schema. What went comes again before its rows do, and what came goes after them.
pub(super) fn take_back<S: Server>(
    server: &mut S,
    body: &Body,
    how: How<'_>,
) -> Result<(Vec<TargetOutcome>, Vec<SchemaChange>), RowsError> {
    let space = body.place.space();
    let changes = schema::look(server, &body.schema, &space)?;
    let mut of_schema = schema::outcomes(&changes, how);
    if !how.goes_on(&mut of_schema) {
        return Ok((of_schema, Vec::new()));
    }
    let mut done = schema::set_back(server, &changes, how, false)?;
    let mut outcomes = take_rows_back(server, body, how)?;
    let stops = outcomes.iter().any(|it| !it.kind.is_taken_back());
    if !stops {
        done.extend(schema::set_back(server, &changes, how, true)?);
    } else if !how.is_partial {
        // All of it, or nothing: what came again goes with the transaction.
        return Ok((outcomes, Vec::new()));
    }
    let stays = |target: &Target| {
        let mut came = changes.iter().filter(|(change, ..)| change.came);
        stops && came.any(|(_, it, _)| it == target)
    };
    for outcome in of_schema.iter_mut().filter(|it| stays(&it.target)) {
        let why = "rows of it could not be taken back".to_owned();
        outcome.kind = OutcomeKind::Conflict { why };
    }
    of_schema.retain(|it| !outcomes.iter().any(|row| row.target == it.target));
    outcomes.extend(of_schema);
    Ok((outcomes, done))
}

/// Carries one table's changes out the other way round.
fn take_rows_back<S: Server>(
    server: &mut S,
    body: &Body,
    how: How<'_>,
) -> Result<Vec<TargetOutcome>, RowsError> {
    let stills = server.still()?;
    let seen = look(server, body, true)?;
    let space = body.place.space();
    let mut targets = targets(&seen, &space);
    targets.retain(|(_, _, target)| how.means(target));
    for (table, key, _) in &targets {
        let forces = how.on_conflict == OnConflict::Force && table.changed.is_none();
        server.run(&format!(
            "UPDATE backout_net SET take = (state = 'a' OR {forces} AND state = 'o') WHERE {}",
            meant(table, key.as_deref())
        ))?;
    }
    let tables = seen.iter().map(|it| &it.table);
    let tables: Vec<&Table> = tables.filter(|it| it.changed.is_none()).collect();
    let tables = in_order(server, &tables)?;
    for _ in 0..ROUNDS_MAX {
        let mut outcomes = outcomes(server, &targets, how)?;
        if !how.goes_on(&mut outcomes) {
            server.run("UPDATE backout_net SET take = false")?;
            return Ok(outcomes);
        }
        server.run("SAVEPOINT backout_round")?;
        let in_the_way = try_back(server, &tables, stills, how)?;
        if in_the_way == 0 {
            return Ok(outcomes);
        }
    }
    let why = "rows stand in each other's way".to_owned();
    Err(RowsError::NotUndoable(why))
}

/// Writes which lines are meant by a target.
fn meant(table: &Table, key: Option<&str>) -> String {
    let relation = table.relation;
    match key {
        Some(key) => format!("relation = {relation} AND k = {}", quote(key)),
        None => format!("relation = {relation}"),
    }
}

/// Sets all rows back that are to be, and looks. If rows are in the way of something, all is as before this, they are not
/// to be taken back any more, and their number is given.
fn try_back<S: Server>(
    server: &mut S,
    tables: &[&Table],
    stills: Stills,
    how: How<'_>,
) -> Result<usize, RowsError> {
    let mut way = Way::Update;
    loop {
        let done = set_back(server, tables, way);
        match done {
            Ok(()) => break,
            // Something that must be unique went from one row to another.
            Err(error) if error.is_twice() && stills.references && way == Way::Update => {
                server.run("ROLLBACK TO SAVEPOINT backout_round")?;
                way = Way::Replace;
            }
            Err(error) => return Err(error),
        }
    }
    let mut found = Vec::new();
    for table in tables {
        found.extend(not_back(server, table)?);
        if stills.references {
            found.extend(dangling(server, table)?);
        }
    }
    if !stills.triggers {
        server.settle()?;
        let beside = server
            .beside()?
            .filter(|_| how.on_conflict != OnConflict::Force);
        if let Some(beside) = beside {
            return Err(RowsError::NotUndoable(format!(
                "a trigger or a cascade would change more than what is taken back ({beside}); {}",
                S::UNSTILLED
            )));
        }
    }
    if found.is_empty() {
        return Ok(0);
    }
    server.run("ROLLBACK TO SAVEPOINT backout_round")?;
    for (relation, key, why) in &found {
        server.run(&format!(
            "UPDATE backout_net SET take = false, state = 't', why = {} WHERE relation = {relation} AND k = {}",
            quote(why),
            quote(key)
        ))?;
    }
    Ok(found.len())
}

fn set_back<S: Server>(server: &mut S, tables: &[&Table], way: Way) -> Result<(), RowsError> {
    for table in tables.iter().rev() {
        server.go(table, way)?;
    }
    for table in tables {
        server.come(table, way)?;
    }
    Ok(())
}

/// Finds rows that were to come back and are not there as they were: somebody holds something that must be unique, or a
/// trigger made something else of them.
fn not_back<S: Server>(server: &mut S, table: &Table) -> Result<Vec<InTheWay>, RowsError> {
    let (only, relation) = (S::only(table), table.relation);
    let image = S::image(table, "t");
    let found = if table.key.is_empty() {
        // All equal rows are counted at once: a look for each would read the table as often.
        let digest = S::digest(table, "t");
        server.ask(&format!(
            "SELECT x.k FROM backout_net x LEFT JOIN (SELECT {digest} AS k, count(*) AS c FROM {only} t GROUP BY 1) f ON f.k = x.k
             WHERE x.relation = {relation} AND x.take AND x.went IS NOT NULL AND coalesce(f.c, 0) < x.n"
        ))?
    } else {
        let on = on_key::<S>(table, "t", "x.r");
        server.ask(&format!(
            "SELECT k FROM (SELECT k, went, n, {} AS r FROM backout_net
                            WHERE relation = {relation} AND take AND went IS NOT NULL{}) x
             WHERE NOT EXISTS (SELECT 1 FROM {only} t WHERE {on} AND {image} = x.went)",
            S::parsed(table, "went"),
            S::FENCE
        ))?
    };
    let why = "another row has something by now that only one may have, or a trigger made something else of it";
    let keys = found.into_iter().filter_map(|row| row.into_iter().next()?);
    Ok(keys.map(|key| (relation, key, why.to_owned())).collect())
}

/// Says what becomes of each target.
fn outcomes<S: Server>(
    server: &mut S,
    targets: &[Meant<'_>],
    how: How<'_>,
) -> Result<Vec<TargetOutcome>, RowsError> {
    let mut outcomes = Vec::new();
    for (table, key, target) in targets {
        let meant = meant(table, key.as_deref());
        let found = server.ask(&format!(
            "SELECT count(*), count(CASE WHEN state = 'b' THEN 1 END), count(CASE WHEN state = 'o' THEN 1 END),
                    count(CASE WHEN state = 't' THEN 1 END), max(why) FROM backout_net WHERE {meant}"
        ))?;
        let row = found.first();
        let count = |index| number(row, index);
        let (all, before, other, taken) = (count(0), count(1), count(2), count(3));
        let why = row.and_then(|row| row.get(4)?.clone());
        let of = |some: u64| {
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
            server.run(&format!(
                "UPDATE backout_net SET take = false WHERE {meant}"
            ))?;
        }
        outcomes.push(TargetOutcome::new(target.clone(), kind));
    }
    Ok(outcomes)
}

/// A table, the key of a row in it or all of them, and what that is as a target.
pub(super) type Meant<'s> = (&'s Table, Option<String>, Target);

/// Lists all targets.
pub(super) fn targets<'s>(seen: &'s [SeenTable], space: &str) -> Vec<Meant<'s>> {
    let mut all = Vec::new();
    for it in seen {
        let (schema, name) = &it.table.names;
        let rows = it.rows.as_ref();
        let change = TableChange {
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
