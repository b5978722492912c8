//! Rows of a small table as targets: the driver that `docs/adding-a-driver.md` explains, step by step.
//!
//! - It puts several rows at once and brings each back exactly, unless somebody wrote it since.
//! - It keeps old values in the recipe itself, since they are small, and relies on [`Table`] to put a row whole or not at all.

mod table;

use std::collections::BTreeMap;

use backout_model::ports::{
    Applied, Driver, DriverError, Examined, Fault, Guarantee, How, NewValue, NewValues, Outline,
    Prepared, PreparedUndo, Request, Scope, ValueChange, Watch,
};
use backout_model::{
    Armed, DriverName, Effect, JsonText, Key, OperationId, OperationKind, Reach, Strategy, Target,
    Verb,
};
use serde::{Deserialize, Serialize};

pub use table::{Table, TableError};

/// The name that its recipes bear.
pub const ROWS: DriverName = DriverName::literal("rows");

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

fn key(row: &str) -> Result<Key, DriverError> {
    Ok(Key::in_space("rows:table", &[row])?)
}

fn row(key: &Key) -> &str {
    key.names().first().map_or("", String::as_str)
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
    /// What an undo can promise: where somebody acts on a row at once, putting it back is only an answer.
    pub guarantee: Guarantee,
}

impl Rows {
    /// Writes rows of a table, and brings them back exactly.
    pub fn new(table: Table) -> Self {
        Self {
            table,
            watch: Watch::default(),
            guarantee: Guarantee::Exact,
        }
    }

    /// Looks at the table, to say what each target is now.
    fn now(&self) -> Result<impl Fn(&Key) -> Option<String> + use<>, DriverError> {
        let rows = self.table.rows()?;
        Ok(move |key: &Key| rows.get(row(key)).cloned())
    }

    fn put(&self, NewValue { key, before, after }: &NewValue) -> Result<(), DriverError> {
        self.watch.check()?;
        Ok(self
            .table
            .put(row(key), before.as_deref(), after.as_deref())?)
    }

    /// Puts rows back, the last one first.
    fn put_back(&self, done: &[NewValue]) -> Result<(), DriverError> {
        for NewValue { key, before, after } in done.iter().rev() {
            match self
                .table
                .put(row(key), after.as_deref(), before.as_deref())
            {
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
        let target = |row: &String| Ok(Target::new(key(row)?, Reach::Node));
        let targets = rows
            .keys()
            .map(target)
            .collect::<Result<_, DriverError>>()?;
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
        let (PutRows(wanted), rows) = (request.as_a()?, self.table.rows()?);
        let change = |(row, after): (&String, &Option<String>)| {
            let before = rows.get(row).cloned();
            Ok(NewValue::new(key(row)?, before, after.clone()))
        };
        let changes = wanted
            .iter()
            .map(change)
            .collect::<Result<NewValues, DriverError>>()?;
        changes.prepared(ROWS)
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (_, _, staged) = armed.into_parts();
        let changes: NewValues = staged.take()?;
        let values = changes.values();
        self.watch.total(values.len() as u64);
        for (index, value) in values.iter().enumerate() {
            if let Err(error) = self.put(value) {
                let may_be_put = matches!(error.as_a(), Some(TableError::Io(_)));
                let done = values.get(..index + usize::from(may_be_put));
                self.put_back(done.unwrap_or(values))?;
                return Err(error);
            }
            self.watch.advance(1);
        }
        Ok(Applied::seen(changes.examined(self.now()?)))
    }

    fn prepare_undo(
        &self,
        _id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let changes = NewValues::read(&effect.recipe)?;
        changes.taken_back(ROWS, &how, self.guarantee, self.now()?)
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        let targets = NewValues::read(&effect.recipe)?.targets();
        let mut outline = Outline::of(targets).seen_by("whoever reads the table");
        outline.guarantee = self.guarantee;
        Ok(outline)
    }

    fn examine(&self, effect: &Effect, _to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        Ok(NewValues::read(&effect.recipe)?.examined(self.now()?))
    }

    fn values(&self, effect: &Effect) -> Result<Option<Vec<ValueChange>>, DriverError> {
        let told = NewValues::read(&effect.recipe)?.told(self.now()?);
        Ok(Some(told))
    }
}
