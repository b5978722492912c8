//! Rows of a small table as targets: the driver that `docs/adding-a-driver.md` explains, step by step.
//!
//! - It puts several rows at once and brings each back exactly, unless somebody wrote it since.
//! - It keeps old values in the recipe itself, since they are small, and relies on [`Table`] to put a row whole or not at all.

mod table;

use std::collections::BTreeMap;

use backout_model::ports::{
    Applied, Driver, DriverError, Examined, Fault, How, Outline, Prepared, PreparedUndo, Request,
    Scope, Staged, State, ValueChange, Watch,
};
use backout_model::{
    Armed, DriverName, Effect, JsonText, Key, OperationId, OperationKind, OutcomeKind, Reach,
    Recipe, Strategy, Target, TargetOutcome, Verb,
};
use serde::{Deserialize, Serialize};

pub use table::{Table, TableError};

/// The name that its recipes bear.
pub const ROWS: DriverName = DriverName::literal("rows");

/// The newest version of a recipe's body.
const VERSION: u16 = 1;

/// Asks for rows: each gets a value, or goes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PutRows(pub BTreeMap<String, Option<String>>);

impl Request for PutRows {
    fn driver(&self) -> DriverName {
        ROWS
    }

    fn verb(&self) -> Verb {
        Verb::Write
    }

    fn summary(&self) -> String {
        let names: Vec<_> = self.0.keys().map(String::as_str).collect();
        format!("put rows {}", names.join(", "))
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        Ok(JsonText::of(self)?)
    }
}

/// What a row was and becomes.
#[derive(Debug, Serialize, Deserialize)]
struct Change {
    row: String,
    before: Option<String>,
    after: Option<String>,
}

/// The body of a recipe, and all there is to stage: the values are at hand.
#[derive(Debug, Serialize, Deserialize)]
struct Changes(Vec<Change>);

impl Staged for Changes {}

impl Changes {
    fn targets(&self) -> Result<Vec<Target>, DriverError> {
        self.0.iter().map(|change| target(&change.row)).collect()
    }

    fn prepared(self) -> Result<Prepared, DriverError> {
        let recipe = Recipe::of(ROWS, VERSION, &self)?;
        Ok(Prepared::plain(recipe, self.targets()?, self).boxed())
    }
}

fn target(row: &str) -> Result<Target, DriverError> {
    Ok(Target::new(
        Key::in_space("rows:table", &[row])?,
        Reach::Node,
    ))
}

impl Fault for TableError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Busy)
    }
}

impl From<TableError> for DriverError {
    fn from(error: TableError) -> Self {
        Self::new(error)
    }
}

/// The driver of one table.
#[derive(Debug)]
pub struct Rows {
    table: Table,
    watch: Watch,
    /// Whether somebody acts on a row at once: then putting it back is an answer, and nothing is as if it had not been.
    answers: bool,
}

impl Rows {
    /// Writes rows of a table.
    pub fn new(table: Table) -> Self {
        Self {
            table,
            watch: Watch::default(),
            answers: false,
        }
    }

    /// Writes rows that somebody acts on at once, so that an undo can only answer them.
    #[must_use]
    pub const fn answering(mut self) -> Self {
        self.answers = true;
        self
    }

    /// Looks at the rows of a recipe: what each is now, and what that is to the recipe.
    fn look(&self, recipe: &Recipe) -> Result<Vec<(Change, Option<String>, State)>, DriverError> {
        let Changes(changes) = recipe.read(VERSION)?;
        let mut rows = self.table.rows()?;
        let look = |change: Change| {
            let now = rows.remove(&change.row);
            let state = State::of(&now, &change.before, &change.after);
            (change, now, state)
        };
        Ok(changes.into_iter().map(look).collect())
    }

    /// Puts rows back, the last one first.
    fn put_back(&self, changes: &[Change]) -> Result<(), DriverError> {
        for Change { row, before, after } in changes.iter().rev() {
            match self.table.put(row, after.as_deref(), before.as_deref()) {
                // It was not put, or it is somebody else's by now.
                Ok(()) | Err(TableError::Changed(_)) => {}
                Err(error) => return Err(DriverError::half_done(error)),
            }
        }
        Ok(())
    }
}

impl Driver for Rows {
    fn name(&self) -> DriverName {
        ROWS
    }

    fn watch(&self) -> Option<&Watch> {
        Some(&self.watch)
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        let PutRows(rows) = request.as_a()?;
        let targets = rows.keys().map(|row| target(row));
        let targets = targets.collect::<Result<_, _>>()?;
        Ok(Scope::of(targets, OperationKind::DatabaseWrite))
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        Ok(Box::new(text.read::<PutRows>()?))
    }

    fn prepare(
        &self,
        _id: OperationId,
        request: &dyn Request,
        _strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        let (PutRows(wanted), mut rows) = (request.as_a()?, self.table.rows()?);
        let changes = wanted.clone().into_iter().map(|(row, after)| {
            let before = rows.remove(&row);
            Change { row, before, after }
        });
        Changes(changes.filter(|it| it.before != it.after).collect()).prepared()
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (_, recipe, staged) = armed.into_parts();
        let Changes(changes) = staged.take()?;
        self.watch.total(changes.len() as u64);
        for (index, Change { row, before, after }) in changes.iter().enumerate() {
            if let Err(stopped) = self.watch.check() {
                self.put_back(changes.get(..index).unwrap_or(&changes))?;
                return Err(stopped.into());
            }
            if let Err(error) = self.table.put(row, before.as_deref(), after.as_deref()) {
                let may_be_put = index + usize::from(matches!(error, TableError::Io(_)));
                self.put_back(changes.get(..may_be_put).unwrap_or(&changes))?;
                return Err(error.into());
            }
            self.watch.advance(1);
        }
        let completion = None;
        let examined = self.examine(&Effect { recipe, completion }, true)?;
        Ok(Applied::seen(examined))
    }

    fn prepare_undo(
        &self,
        _id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let (mut back, mut outcomes) = (Vec::new(), Vec::new());
        for (Change { row, before, .. }, now, state) in self.look(&effect.recipe)? {
            let target = target(&row)?;
            if how.means(&target) {
                let kind = match state.taken_back(how.on_conflict) {
                    OutcomeKind::Restored if self.answers => OutcomeKind::Compensated,
                    kind => kind,
                };
                if kind.is_taken_back() && now != before {
                    back.insert(
                        0,
                        Change {
                            row,
                            before: now,
                            after: before,
                        },
                    );
                }
                outcomes.push(TargetOutcome::new(target, kind));
            }
        }
        if !how.goes_on(&mut outcomes) {
            back.clear();
        }
        let prepared = Changes(back).prepared()?;
        Ok(PreparedUndo { prepared, outcomes })
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        let targets = effect.recipe.read::<Changes>(VERSION)?.targets()?;
        let outline = Outline::of(targets).seen_by("whoever reads the table");
        Ok(if self.answers {
            outline.compensating()
        } else {
            outline
        })
    }

    fn examine(&self, effect: &Effect, _to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        let seen = self.look(&effect.recipe)?.into_iter().enumerate();
        seen.map(|(number, (change, _, state))| {
            let goes = change.before.is_none();
            Ok(Examined {
                goes,
                ..Examined::new(number, target(&change.row)?, state)
            })
        })
        .collect()
    }

    fn values(&self, effect: &Effect) -> Result<Option<Vec<ValueChange>>, DriverError> {
        let seen = self.look(&effect.recipe)?.into_iter();
        let values = seen.map(|(Change { row, before, after }, now, _)| {
            let key = target(&row)?.key().clone();
            Ok(ValueChange {
                key,
                before,
                after,
                now: Ok(now),
            })
        });
        values.collect::<Result<_, _>>().map(Some)
    }
}
