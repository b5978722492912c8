//! The way back: each row as it is now, against what it was and became; then the undo itself, tried out and taken back.

use std::collections::{BTreeMap, HashSet};

use backout_changeset::{Answer, Apply, Change, ChangesetError, Conflict, Session, apply};
use backout_model::ports::{How, PreparedUndo, State, hold_back};
use backout_model::{Effect, OperationId, OutcomeKind, Target, TargetOutcome};

use super::carry::{Kept, SqliteStaged};
use super::database::Database;
use super::driver::SqliteDriver;
use super::error::SqliteFault;
use super::name::row_name;
use super::recipe::SqliteRecipe;
use super::references::hindered;
use super::row_states::look;
use super::shape::{count_dangling, placed, whole_tables};

/// How often an undo in parts leaves out what turns out to stand in the way.
const ROUNDS_MAX: usize = 8;

/// A row, by its table and name.
pub(super) type Row = (String, String);

/// What a look at the rows of a target found.
#[derive(Debug, Default)]
pub(super) struct Stand {
    before: u64,
    after: u64,
    other: u64,
    why: Option<String>,
    /// Whether rows are there that were not.
    pub(super) goes: bool,
}

impl Stand {
    pub(super) fn add(&mut self, state: &State) {
        match state {
            State::Before => self.before += 1,
            State::After => self.after += 1,
            State::Other { why } => {
                self.other += 1;
                self.why.get_or_insert_with(|| why.clone());
            }
        }
    }

    /// Gives where the target stands as a whole.
    pub(super) fn state(&self) -> State {
        let all = self.before + self.after + self.other;
        match &self.why {
            Some(why) if all > 1 => State::Other {
                why: format!("{} of {all} rows: {why}", self.other),
            },
            Some(why) => State::Other { why: why.clone() },
            None if self.after > 0 => State::After,
            None => State::Before,
        }
    }
}

/// What a look found, by target and by row.
#[derive(Debug, Default)]
struct Found {
    stands: BTreeMap<Target, Stand>,
    before: HashSet<Row>,
    other: HashSet<Row>,
}

impl SqliteDriver {
    /// Prepares the way back.
    pub(super) fn back(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo<SqliteStaged>, SqliteFault> {
        let recipe = SqliteRecipe::of(effect)?;
        let nothing = || {
            let was_empty = recipe.was_empty;
            let empty = SqliteRecipe::empty(recipe.path.clone(), id);
            Kept::of(SqliteRecipe { was_empty, ..empty })
        };
        let meant = |kind: &dyn Fn() -> OutcomeKind| -> Result<Vec<TargetOutcome>, SqliteFault> {
            let targets = recipe.targets()?.into_iter();
            let targets = targets.filter(|target| how.means(target));
            Ok(targets.map(|it| TargetOutcome::new(it, kind())).collect())
        };
        let stays = |outcomes| {
            let prepared = nothing().prepared(SqliteStaged::Planned)?;
            Ok(PreparedUndo { prepared, outcomes })
        };
        let database = match Database::open(recipe.path.as_path()) {
            Err(SqliteFault::Missing { path }) => {
                let why = format!("there is no database at `{path}`");
                return stays(meant(&|| OutcomeKind::Conflict { why: why.clone() })?);
            }
            opened => opened?,
        };
        database.silence()?;
        if !recipe.images.is_empty() {
            database.execute("PRAGMA foreign_keys=OFF")?;
        }
        database.begin()?;
        if effect.completion.is_none() && !database.has_mark(recipe.mark)? {
            return stays(meant(&|| OutcomeKind::AlreadyGone)?);
        }
        let found = self.found(&database, &recipe)?;
        let mut outcomes = Vec::new();
        for (target, stand) in &found.stands {
            if how.means(target) {
                let kind = stand.state().taken_back(how.on_conflict);
                outcomes.push(TargetOutcome::new(target.clone(), kind));
            }
        }
        for _ in 0..ROUNDS_MAX {
            if !how.goes_on(&mut outcomes) {
                return stays(outcomes);
            }
            let (kept, hindered) = self.tried(&database, &recipe, &found, &outcomes, nothing())?;
            if hindered.is_empty() {
                let prepared = kept.prepared(SqliteStaged::Planned)?;
                return Ok(PreparedUndo { prepared, outcomes });
            }
            for outcome in &mut outcomes {
                if let Some(why) = hindered
                    .get(&outcome.target)
                    .or(hindered.get(&all(&recipe)))
                    && is_done(outcome)
                {
                    outcome.kind = OutcomeKind::Conflict { why: why.clone() };
                }
            }
        }
        hold_back(&mut outcomes);
        stays(outcomes)
    }

    /// Looks at every row.
    fn found(&self, database: &Database, recipe: &SqliteRecipe) -> Result<Found, SqliteFault> {
        let mut found = Found::default();
        for it in placed(database, recipe)? {
            found.stands.entry(it.target).or_default().add(&it.state);
        }
        let mut wrong = None;
        let Some(mut changes) = self.changes(recipe)? else {
            return Ok(found);
        };
        let looked = look(&database.connection, &mut changes, |looked| {
            let name = row_name(&looked.change.key_values());
            match recipe.target(&looked.change.table, &name) {
                Ok(target) => found.stands.entry(target).or_default().add(&looked.state),
                Err(error) => {
                    wrong = Some(error);
                    return Err(ChangesetError::Stopped);
                }
            }
            let row = (looked.change.table, name);
            match looked.state {
                State::Before => found.before.insert(row),
                State::Other { .. } => found.other.insert(row),
                State::After => false,
            };
            Ok(())
        });
        wrong.map_or(Ok(()), Err)?;
        looked.map_err(|error| database.wrong(error))?;
        Ok(found)
    }

    /// Takes back what is meant, keeps what that changes, and makes it undone. Gives the targets that stood in the way.
    fn tried(
        &self,
        database: &Database,
        recipe: &SqliteRecipe,
        found: &Found,
        outcomes: &[TargetOutcome],
        nothing: Kept,
    ) -> Result<(Kept, BTreeMap<Target, String>), SqliteFault> {
        let done = outcomes.iter().filter(|it| is_done(it));
        let done: HashSet<&Target> = done.map(|it| &it.target).collect();
        if done.is_empty() {
            return Ok((nothing, BTreeMap::new()));
        }
        let mut kept = nothing;
        database.execute("SAVEPOINT backout_tried")?;
        let has_shapes = !recipe.objects.is_empty() || !recipe.images.is_empty();
        let dangling = if has_shapes {
            count_dangling(database)?
        } else {
            0
        };
        let reshaped = self.reshaped(database, recipe, &done, &mut kept)?;
        let mut hindered = reshaped.unwrap_or_default();
        let apart = whole_tables(recipe);
        let session = Session::new(&database.connection, move |it| !apart.contains(it));
        let session = session.map_err(|error| database.wrong(error))?;
        if hindered.is_empty() {
            hindered = self.rows_back(database, recipe, found, &done)?;
        }
        // Only when the rows are back, too, is it known which references lead nowhere.
        if hindered.is_empty() && has_shapes {
            kept.recipe.dangling = count_dangling(database)? - dangling;
            // As many as the operation took away may come again.
            if kept.recipe.dangling > (-recipe.dangling).max(0) {
                let why = "a reference would lead nowhere";
                hindered = shapes_of(recipe, &kept.recipe, why)?;
            }
        }
        if hindered.is_empty() {
            let is_whole = |table: &str| recipe.is_whole(table);
            self.keep(database, &session, &mut kept, &is_whole)?;
        }
        drop(session);
        database.execute("ROLLBACK TO backout_tried; RELEASE backout_tried")?;
        Ok((kept, hindered))
    }

    /// Takes rows back. Gives the targets that stood in the way.
    fn rows_back(
        &self,
        database: &Database,
        recipe: &SqliteRecipe,
        found: &Found,
        done: &HashSet<&Target>,
    ) -> Result<BTreeMap<Target, String>, SqliteFault> {
        let mut stuck: Vec<(Row, String)> = Vec::new();
        let mut has_dangling = false;
        let row_of = |change: &Change| (change.table.clone(), row_name(&change.key_values()));
        let mut wants = |change: &Change| {
            let row = row_of(change);
            let target = recipe.target(&row.0, &row.1);
            target.is_ok_and(|target| done.contains(&target)) && !found.before.contains(&row)
        };
        let is_all = found.before.is_empty() && done.len() == found.stands.len();
        let how = Apply {
            inverted: true,
            wants: if is_all { None } else { Some(&mut wants) },
            conflict: &mut |conflict, change| {
                let (row, why) = match (conflict, change.map(row_of)) {
                    (Conflict::References(_), _) | (_, None) => {
                        has_dangling = true;
                        return Answer::Skip;
                    }
                    (Conflict::Differs | Conflict::Taken, Some(row))
                        if found.other.contains(&row) =>
                    {
                        return Answer::Replace;
                    }
                    (Conflict::Constraint, Some(row)) => {
                        (row, "a constraint of the table forbids what it was")
                    }
                    (_, Some(row)) => (row, "the row is gone, and only a part of it is known"),
                };
                stuck.push((row, why.to_owned()));
                Answer::Skip
            },
        };
        let wrong = |error| database.wrong(error);
        let Some(mut changes) = self.changes(recipe)? else {
            return Ok(BTreeMap::new());
        };
        apply(&database.connection, &mut changes, how).map_err(wrong)?;
        let mut hindered_targets = BTreeMap::new();
        if has_dangling && let Some(mut changes) = self.changes(recipe)? {
            stuck.extend(hindered(&database.connection, &mut changes).map_err(wrong)?);
            let why = "a reference would lead nowhere".to_owned();
            hindered_targets.insert(all(recipe), why);
        }
        for ((table, name), why) in stuck {
            let target = recipe.target(&table, &name)?;
            if done.contains(&target) {
                hindered_targets.insert(target, why);
            }
        }
        if hindered_targets.len() > 1 {
            hindered_targets.remove(&all(recipe));
        }
        Ok(hindered_targets)
    }
}

impl SqliteDriver {
    /// Takes back what is meant of the schema. Gives the targets that cannot come back so, if it cannot.
    fn reshaped(
        &self,
        database: &Database,
        recipe: &SqliteRecipe,
        done: &HashSet<&Target>,
        kept: &mut Kept,
    ) -> Result<Option<BTreeMap<Target, String>>, SqliteFault> {
        let by = kept.recipe.mark;
        let is_meant = |target: &Target| done.contains(target);
        self.turned(database, recipe, &is_meant, kept, by)?;
        let mut part = recipe.clone();
        part.objects
            .retain(|name, _| kept.recipe.objects.contains_key(name));
        part.images
            .retain(|name, _| kept.recipe.images.contains_key(name));
        if part.objects.is_empty() && part.images.is_empty() {
            return Ok(None);
        }
        let why = match self.reshape(database, &part, false) {
            Err(SqliteFault::Sqlite { cause, .. }) => cause.to_string(),
            Err(error) => return Err(error),
            Ok(()) => return Ok(None),
        };
        shapes_of(recipe, &part, &why).map(Some)
    }
}

/// Says of all that changes in a schema why it cannot.
fn shapes_of(
    recipe: &SqliteRecipe,
    part: &SqliteRecipe,
    why: &str,
) -> Result<BTreeMap<Target, String>, SqliteFault> {
    let names = part.objects.keys().chain(part.images.keys());
    let hindered = names.map(|name| Ok((recipe.part(name)?, why.to_owned())));
    hindered.collect()
}

/// Tells whether a target is to be changed.
fn is_done(outcome: &TargetOutcome) -> bool {
    outcome.kind.is_taken_back() && outcome.kind != OutcomeKind::AlreadyGone
}

/// Stands for all targets.
fn all(recipe: &SqliteRecipe) -> Target {
    Target::node(recipe.path.clone())
}
