//! Conditions of rules, in CEL: `operation.kind == "remove" && operation.files > 20`.
//!
//! - The one variable is `operation`, see [`OperationFacts`]. A name that is not there is a mistake of the condition, found before it is ever asked.
//! - A condition that is no boolean, that fails, or that would take too long is an error and never a pass.
//! - It ends: before it is asked, its steps are counted from the sizes of what it is asked about (`cost`), and one that may take more than [`STEPS_MAX`] is refused.
//!   No clock, no thread.
//! - Patterns of `matches` are written out in the condition and are compiled with a limit.

mod cost;
mod names;

use std::panic::{AssertUnwindSafe, catch_unwind};

use cel::{Context, Env, ParseErrors, Program};
use serde::Serialize;

use crate::finding::{Finding, Place};

/// The longest condition, in bytes.
pub const TEXT_MAX: usize = 4096;
/// The deepest nesting of brackets, calls and operators.
const DEPTH_MAX: usize = 64;
/// The stack that texts are parsed on.
const STACK_SIZE: usize = 64 << 20;
const LIKE_THIS: &str =
    "conditions are written in CEL, like `operation.files > 20 && operation.kind == \"remove\"`";
/// The most steps that a condition may take. A step is some tens of nanoseconds.
pub const STEPS_MAX: u64 = 20_000_000;

/// A condition that may take more is not tried when the rules are read: every write reads them.
const TRIED_STEPS_MAX: u64 = 10_000;

/// What a condition can ask about: the variable `operation`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OperationFacts {
    /// What kind of change it is: `create`, `write`, `remove`, and so on.
    pub kind: String,
    /// The command that was asked for, as `log` names it.
    pub verb: String,
    /// The operation in one line.
    pub summary: String,
    /// Who asks; empty if nobody said.
    pub agent: String,
    /// The task it belongs to; empty if none.
    pub task: String,
    /// How many files it changes.
    pub files: u64,
    /// How many bytes it writes.
    pub bytes: u64,
    /// How many files it removes.
    pub removed: u64,
    /// How many bytes shorter the files become that stay.
    pub shrunk: u64,
    /// The paths it changes.
    pub paths: Vec<String>,
    /// What it was asked to work on.
    pub targets: Vec<String>,
}

impl OperationFacts {
    /// The names of the fields.
    pub(crate) const FIELDS: [&'static str; 11] = [
        "kind", "verb", "summary", "agent", "task", "files", "bytes", "removed", "shrunk", "paths",
        "targets",
    ];

    /// The facts as a condition is asked about them.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// A condition that was compiled.
#[derive(Debug)]
pub struct Condition {
    text: String,
    program: Program,
}

impl Condition {
    /// Compiles a condition. A mistake is told with its place in the text.
    pub fn compile(text: &str) -> Result<Self, Finding> {
        if text.len() > TEXT_MAX {
            return Err(
                Finding::new(format!("the condition is longer than {TEXT_MAX} bytes"))
                    .mended_by("make two rules of it"),
            );
        }
        let owned = text.to_owned();
        // The parser calls itself for every bracket and operator.
        let work = move || parsed(&owned);
        let thread = std::thread::Builder::new()
            .stack_size(STACK_SIZE)
            .spawn(work);
        let thread = thread.map_err(|error| {
            Finding::new(format!(
                "the condition cannot be read: no thread could be started ({error})"
            ))
        })?;
        let broken = || Finding::new("the condition cannot be read").mended_by(LIKE_THIS);
        let program = thread.join().map_err(|_| broken())??;
        names::check(text, &program)?;
        Ok(Self {
            text: text.to_owned(),
            program,
        })
    }

    /// Asks it about two operations that nobody wants. One that gives neither true nor false is a mistake; one that only
    /// cannot be answered for these may be for others.
    pub fn tried(self) -> Result<Self, Finding> {
        let one = || vec!["/a".to_owned()];
        let some = OperationFacts {
            files: 1,
            paths: one(),
            targets: one(),
            ..OperationFacts::default()
        };
        for facts in [OperationFacts::default(), some].map(|facts| facts.to_json()) {
            // What takes long is told when it is asked in earnest.
            if cost::steps(self.program.expression(), &facts) > TRIED_STEPS_MAX {
                continue;
            }
            if let Some(Ok(Err(other))) = self.answer(&facts) {
                return Err(no_boolean(&other));
            }
        }
        Ok(self)
    }

    /// The text it was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it holds for an operation, which is given as [`OperationFacts::to_json`] has it.
    pub fn holds(&self, operation: &serde_json::Value) -> Result<bool, Finding> {
        let steps = cost::steps(self.program.expression(), operation);
        if steps > STEPS_MAX {
            return Err(Finding::new(format!("the condition may take {steps} steps for this operation, and {STEPS_MAX} are allowed"))
                .mended_by("walk through `paths` once and not within itself, or add strings outside of such walks"));
        }
        match self.answer(operation) {
            Some(Ok(Ok(yes))) => Ok(yes),
            Some(Ok(Err(other))) => Err(no_boolean(&other)),
            Some(Err(error)) => Err(Finding::new(format!(
                "the condition cannot be answered: {}",
                crate::value::short(&error.to_string())
            ))
            .mended_by(
                "ask with `has(…)` whether a field is there, and compare only values of one type",
            )),
            None => Err(Finding::new(
                "the condition cannot be answered: its evaluation broke down",
            )
            .mended_by("write it in another way")),
        }
    }

    /// What it says, or what it gives instead of that. None if its evaluation breaks down.
    fn answer(
        &self,
        operation: &serde_json::Value,
    ) -> Option<Result<Result<bool, cel::Value>, cel::ExecutionError>> {
        let answer = catch_unwind(AssertUnwindSafe(|| {
            let mut context = Context::default();
            context.add_variable_from_value("operation", value(operation));
            self.program.execute(&context)
        }));
        Some(answer.ok()?.map(|value| match value {
            cel::Value::Bool(yes) => Ok(yes),
            other => Err(other),
        }))
    }
}

fn no_boolean(other: &cel::Value) -> Finding {
    Finding::new(format!(
        "the condition gives {}, and has to give true or false",
        other.type_of()
    ))
    .mended_by("compare it with something")
}

/// Parses a text, and refuses one whose answer would need a deep stack.
fn parsed(text: &str) -> Result<Program, Finding> {
    let program = Env::stdlib()
        .compile(text)
        .map_err(|errors| syntax(text, &errors))?;
    if names::depth(program.expression()) > DEPTH_MAX {
        return Err(Finding::new(format!(
            "the condition is nested deeper than {DEPTH_MAX} levels"
        ))
        .mended_by("make two rules of it"));
    }
    Ok(program)
}

/// The first mistake of a text.
fn syntax(text: &str, errors: &ParseErrors) -> Finding {
    let Some(error) = errors.errors.first() else {
        return Finding::new("the condition cannot be read").mended_by(LIKE_THIS);
    };
    let (line, column) = error.pos;
    let lines = text.split('\n').count().max(1);
    let line = u32::try_from(line)
        .unwrap_or(1)
        .clamp(1, u32::try_from(lines).unwrap_or(u32::MAX));
    let place = Place {
        line,
        column: u32::try_from(column).unwrap_or(1).max(1),
    };
    Finding::new(format!(
        "the condition cannot be read: {}",
        crate::value::short(&error.msg)
    ))
    .at(place)
    .mended_by(LIKE_THIS)
}

/// A value of JSON as CEL has it. Whole numbers are `int`, as literals are.
fn value(json: &serde_json::Value) -> cel::Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => cel::Value::Null,
        Json::Bool(yes) => cel::Value::Bool(*yes),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => cel::Value::Int(whole),
            (None, Some(float)) if number.is_f64() => cel::Value::Float(float),
            (None, _) => cel::Value::Int(i64::MAX),
        },
        Json::String(text) => cel::Value::from(text.as_str()),
        Json::Array(items) => cel::Value::from(items.iter().map(value).collect::<Vec<_>>()),
        Json::Object(members) => {
            let members: std::collections::HashMap<String, cel::Value> = members
                .iter()
                .map(|(name, member)| (name.clone(), value(member)))
                .collect();
            cel::Value::from(members)
        }
    }
}

#[cfg(test)]
mod tests;
