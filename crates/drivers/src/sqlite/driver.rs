//! The driver of `SQLite` files.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use backout_changeset::{Change, ChangesetError, Op, Value};
use backout_model::ports::{
    Applied, Driver, DriverError, Examined, How, Outline, Prepared, PreparedUndo, Request, Scope,
    State, ValueChange,
};
use backout_model::{
    Armed, Digest, DriverName, Effect, JsonText, OperationId, OperationKind, OutcomeKind, Recipe,
    Strategy, Target, TargetOutcome, TargetPath,
};

use super::back::Stand;
use super::carry::SqliteStaged;
use super::database::Database;
use super::error::SqliteFault;
use super::name::{row_json, row_name};
use super::recipe::{SQLITE, SqliteRecipe};
use super::request::SqlRequest;
use super::row_states::{Looked, look};
use super::shape::{Placed, placed};
use crate::file::FileDriver;
use crate::file::context::FileContext;
use crate::file::repeat::absolute;
use crate::file::resolve::{Last, resolve};

/// Runs statements in database files so that exactly the rows that they change can be taken back.
#[derive(Debug)]
pub struct SqliteDriver {
    files: Arc<FileDriver>,
}

impl SqliteDriver {
    /// Takes the driver of files, for its store.
    pub const fn new(files: Arc<FileDriver>) -> Self {
        Self { files }
    }

    pub(super) fn files(&self) -> &FileDriver {
        &self.files
    }

    pub(super) fn context(&self) -> &FileContext {
        self.files.context()
    }

    pub(super) fn resolved(&self, path: &Path) -> Result<TargetPath, SqliteFault> {
        Ok(resolve(self.context(), path, Last::Followed)?.path)
    }

    /// Opens the changeset of a recipe, if rows changed.
    pub(super) fn changes(
        &self,
        recipe: &SqliteRecipe,
    ) -> Result<Option<Box<dyn Read + Send>>, SqliteFault> {
        let open = |digest: &Digest| self.context().contents.open(digest);
        Ok(recipe.rows.as_ref().map(open).transpose()?)
    }

    /// Looks at every row of an effect, if it can be that it happened.
    pub(super) fn looked(
        &self,
        effect: &Effect,
        mut with: impl FnMut(Target, Looked<'_>),
    ) -> Result<(Sight, Vec<Placed>), SqliteFault> {
        let nothing = |why| Ok((Sight::Nothing(why), Vec::new()));
        let recipe = SqliteRecipe::of(effect)?;
        let database = match Database::open_to_look(recipe.path.as_path()) {
            Err(SqliteFault::Missing { path }) => {
                return nothing(format!("there is no database at `{path}`"));
            }
            Err(error @ SqliteFault::NoDatabase { .. }) => {
                return nothing(error.to_string());
            }
            opened => opened?,
        };
        database.execute("BEGIN")?;
        if effect.completion.is_none() && !database.has_mark(recipe.mark)? {
            return Ok((Sight::NeverDone, Vec::new()));
        }
        let shapes = placed(&database, &recipe)?;
        let Some(mut changes) = self.changes(&recipe)? else {
            return Ok((Sight::All, shapes));
        };
        let mut wrong = None;
        let done = look(&database.connection, &mut changes, |looked| {
            let name = row_name(&looked.change.key_values());
            match recipe.target(&looked.change.table, &name) {
                Ok(target) => with(target, looked),
                Err(error) => {
                    wrong = Some(error);
                    return Err(ChangesetError::Stopped);
                }
            }
            Ok(())
        });
        wrong.map_or(Ok(()), Err)?;
        done.map_err(|error| database.wrong(error))?;
        Ok((Sight::All, shapes))
    }

    fn examined(&self, effect: &Effect) -> Result<Vec<Examined>, SqliteFault> {
        let mut stands: BTreeMap<Target, Stand> = BTreeMap::new();
        let (sight, shapes) = self.looked(effect, |target, looked| {
            let stand = stands.entry(target).or_default();
            stand.add(&looked.state);
            stand.goes |= looked.change.op == Op::Insert;
        })?;
        for it in shapes {
            let stand = stands.entry(it.target).or_default();
            stand.add(&it.state);
            stand.goes |= it.goes;
        }
        let targets = SqliteRecipe::of(effect)?.targets()?.into_iter().enumerate();
        let all = |state: &State| {
            let each = targets.clone();
            each.map(|(number, target)| Examined::new(number, target, state.clone()))
                .collect()
        };
        Ok(match sight {
            Sight::Nothing(why) => all(&State::Other { why }),
            Sight::NeverDone => all(&State::Before),
            Sight::All => {
                let each = stands.into_iter().enumerate();
                each.map(|(number, (target, stand))| Examined {
                    goes: stand.goes,
                    ..Examined::new(number, target, stand.state())
                })
                .collect()
            }
        })
    }

    fn told(&self, effect: &Effect) -> Result<Vec<ValueChange>, SqliteFault> {
        let recipe = SqliteRecipe::of(effect)?;
        let mut told = Vec::new();
        let mut sums: BTreeMap<Target, [Sum; 3]> = BTreeMap::new();
        let mut never = Vec::new();
        let done = Effect {
            recipe: effect.recipe.clone(),
            completion: Some(backout_model::Completion::default()),
        };
        let (sight, shapes) = self.looked(&done, |target, looked| {
            let shown = shown(&looked);
            if recipe.is_whole(&looked.change.table) {
                let sums = sums.entry(target).or_default();
                for (sum, shown) in std::iter::zip(sums, shown) {
                    sum.add(shown.as_deref());
                }
                return;
            }
            let [before, after, now] = shown;
            told.push(ValueChange {
                key: target.into(),
                before,
                after,
                now: Ok(now),
            });
        })?;
        told.extend(shapes.into_iter().map(|it| ValueChange {
            key: it.target.into(),
            before: it.before,
            after: it.after,
            now: Ok(it.now),
        }));
        if let Sight::Nothing(why) = sight {
            // The rows themselves are in the store, whatever became of the file.
            let mut changes = self.changes(&recipe)?;
            if let Some(changes) = &mut changes {
                let read = backout_changeset::each(changes, false, |change| {
                    never.push(change);
                    Ok(())
                });
                read.map_err(|error| SqliteFault::of(recipe.path.as_path(), error))?;
            }
            for change in never.iter().filter(|it| !recipe.is_whole(&it.table)) {
                let target = recipe.target(&change.table, &row_name(&change.key_values()))?;
                let [before, after] = sides(change, &[]);
                told.push(ValueChange {
                    key: target.into(),
                    before,
                    after,
                    now: Err(why.clone()),
                });
            }
        }
        told.extend(
            sums.into_iter()
                .map(|(target, [before, after, now])| ValueChange {
                    key: target.into(),
                    before: before.said(),
                    after: after.said(),
                    now: Ok(now.said()),
                }),
        );
        told.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(told)
    }
}

/// What could be seen of an effect.
pub(super) enum Sight {
    /// There is no database, for this reason.
    Nothing(String),
    /// It was never committed.
    NeverDone,
    /// Each of its rows.
    All,
}

/// Many rows in one line: how many, and a digest that does not depend on their order.
#[derive(Default)]
struct Sum {
    rows: u64,
    sum: u64,
}

impl Sum {
    fn add(&mut self, row: Option<&str>) {
        if let Some(row) = row {
            self.rows += 1;
            let digest = blake3::hash(row.as_bytes());
            let (first, _) = digest.as_bytes().split_at(8);
            let part = first.try_into().map_or(0, u64::from_le_bytes);
            self.sum = self.sum.wrapping_add(part);
        }
    }

    fn said(self) -> Option<String> {
        (self.rows > 0).then(|| format!("{} rows ({:016x})", self.rows, self.sum))
    }
}

/// Shows a row as it was, became and is.
fn shown(looked: &Looked<'_>) -> [Option<String>; 3] {
    let [before, after] = sides(&looked.change, looked.columns);
    let change = &looked.change;
    let is_told = |at: usize| {
        change.op != Op::Update
            || change.key.get(at) == Some(&true)
            || matches!(change.new.get(at), Some(Some(_)))
    };
    let now = looked.now.as_ref().map(|now| {
        let now = now.iter().take(change.key.len()).enumerate();
        let now: Vec<Option<Value>> = now
            .map(|(at, value)| is_told(at).then(|| value.clone()))
            .collect();
        row_json(looked.columns, &now)
    });
    [before, after, now]
}

fn sides(change: &Change, columns: &[String]) -> [Option<String>; 2] {
    let old = || Some(row_json(columns, &change.old));
    let new = || {
        let key = std::iter::zip(&change.old, &change.key);
        let row = std::iter::zip(&change.new, key);
        let row: Vec<Option<Value>> = row
            .map(|(new, (old, is_key))| new.clone().or_else(|| old.clone().filter(|_| *is_key)))
            .collect();
        Some(row_json(columns, &row))
    };
    match change.op {
        Op::Insert => [None, new()],
        Op::Update => [old(), new()],
        Op::Delete => [old(), None],
    }
}

impl Driver for SqliteDriver {
    fn name(&self) -> DriverName {
        SQLITE
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        let request: &SqlRequest = request.as_a()?;
        // Whoever writes a row writes the file.
        let targets = vec![Target::node(self.resolved(&request.path)?)];
        Ok(Scope::of(targets, OperationKind::DatabaseWrite))
    }

    fn repeatable(
        &self,
        _by: OperationId,
        request: &dyn Request,
    ) -> Result<Box<dyn Request>, DriverError> {
        let request: &SqlRequest = request.as_a()?;
        let path = absolute(&request.path)?;
        Ok(Box::new(SqlRequest {
            path,
            ..request.clone()
        }))
    }

    fn asked(&self, request: &dyn Request) -> Result<Digest, DriverError> {
        let request: &SqlRequest = request.as_a()?;
        let path = absolute(&request.path)?;
        let text = SqlRequest::new(path, request.statements.clone()).as_text()?;
        Ok(Digest::of(text.as_str().as_bytes()))
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        Ok(Box::new(text.read::<SqlRequest>()?))
    }

    fn fingerprint(&self, recipe: &Recipe) -> Result<Digest, DriverError> {
        Ok(SqliteRecipe::read(recipe)?.fingerprint()?)
    }

    fn prepare(
        &self,
        id: OperationId,
        request: &dyn Request,
        strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        if strategy != Strategy::Transaction {
            return Err(SqliteFault::NotPrepared { strategy }.into());
        }
        Ok(self.stage(id, request.as_a()?)?.boxed())
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (_, recipe, staged) = armed.into_parts();
        let staged: SqliteStaged = staged.take()?;
        let body = SqliteRecipe::read(&recipe)?;
        let applied = self.carry_out(&body, staged)?;
        let completion = Some(applied.completion.clone());
        // It is committed: whatever the second look meets, that stays so.
        let unlike = match self.examined(&Effect { recipe, completion }) {
            Ok(examined) => Applied::seen(examined).unlike,
            Err(error) => {
                let why = format!("it could not be looked at again: {error}");
                let overtaken = |target| {
                    let why = why.clone();
                    TargetOutcome::new(target, OutcomeKind::Overtaken { why })
                };
                let targets = body.targets().unwrap_or_default();
                targets.into_iter().map(overtaken).collect()
            }
        };
        Ok(Applied { unlike, ..applied })
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        Ok(self.back(id, effect, how)?.boxed())
    }

    fn foresees_by_trying(&self) -> bool {
        true
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        Ok(Outline::of(SqliteRecipe::of(effect)?.targets()?))
    }

    fn examine(&self, effect: &Effect, _to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        Ok(self.examined(effect)?)
    }

    fn restoring(
        &self,
        effect: &Effect,
        targets: &[Target],
        is_after: bool,
        summary: String,
    ) -> Result<Option<Box<dyn Request>>, DriverError> {
        let request = self.restored(effect, targets, is_after, summary)?;
        Ok(request.map(|request| Box::new(request) as _))
    }

    fn keeps_bytes(&self, _effect: &Effect) -> bool {
        false
    }

    fn values(&self, effect: &Effect) -> Result<Option<Vec<ValueChange>>, DriverError> {
        Ok(Some(self.told(effect)?))
    }
}
