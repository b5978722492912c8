//! Names of a condition: every one has to be there before the condition is asked.

use cel::IdedExpr;
use cel::Program;
use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, LiteralValue};

use super::OperationFacts;
use crate::finding::{Finding, Place};
use crate::nearest::nearest;

/// The functions of CEL that a condition may call.
const FUNCTIONS: [&str; 12] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "string",
    "int",
    "uint",
    "double",
    "bytes",
    "type",
    "dyn",
];
/// The macros, for the nearest right name.
const MACROS: [&str; 6] = ["has", "all", "exists", "exists_one", "map", "filter"];
/// The most memory that a pattern may compile to: it is compiled each time it is asked.
const PATTERN_SIZE_MAX: usize = 64 << 10;

/// Finds the first name that is not there.
pub(super) fn check(text: &str, program: &Program) -> Result<(), Finding> {
    Names {
        text,
        program,
        known: vec!["operation".to_owned()],
    }
    .expression(program.expression())
}

/// How many levels an expression has.
pub(super) fn depth(here: &IdedExpr) -> usize {
    let below = match &here.expr {
        Expr::Literal(_) | Expr::Ident(_) | Expr::Unspecified => 0,
        Expr::Select(select) => depth(&select.operand),
        Expr::Call(call) => deepest(call.target.iter().map(AsRef::as_ref).chain(&call.args)),
        Expr::List(list) => deepest(list.elements.iter()),
        Expr::Map(map) => entries(&map.entries),
        Expr::Struct(object) => entries(&object.entries),
        Expr::Comprehension(walk) => deepest(
            [
                &walk.iter_range,
                &walk.accu_init,
                &walk.loop_cond,
                &walk.loop_step,
                &walk.result,
            ]
            .into_iter(),
        ),
    };
    below + 1
}

fn deepest<'e>(parts: impl Iterator<Item = &'e IdedExpr>) -> usize {
    parts.map(depth).max().unwrap_or(0)
}

fn entries(entries: &[IdedEntryExpr]) -> usize {
    let of = |entry: &IdedEntryExpr| match &entry.expr {
        EntryExpr::MapEntry(entry) => depth(&entry.key).max(depth(&entry.value)),
        EntryExpr::StructField(field) => depth(&field.value),
    };
    entries.iter().map(of).max().unwrap_or(0)
}

struct Names<'p> {
    text: &'p str,
    program: &'p Program,
    known: Vec<String>,
}

impl Names<'_> {
    fn place(&self, id: u64) -> Option<Place> {
        let (start, _) = self.program.source_info().offset_for(id)?;
        let start = start as usize;
        // The place of a field is that of its dot.
        let dot = usize::from(self.text.as_bytes().get(start) == Some(&b'.'));
        Some(Place::of(self.text, start + dot))
    }

    fn wrong(&self, id: u64, found: String, remedy: String) -> Finding {
        let finding = Finding::new(found).mended_by(remedy);
        match self.place(id) {
            Some(place) => finding.at(place),
            None => finding,
        }
    }

    fn expression(&mut self, here: &IdedExpr) -> Result<(), Finding> {
        match &here.expr {
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.variable(here.id, name),
            Expr::Select(select) => {
                if matches!(&select.operand.expr, Expr::Ident(name) if name == "operation") {
                    self.field(here.id, &select.field)?;
                }
                self.expression(&select.operand)
            }
            Expr::Call(call) => {
                self.function(here.id, &call.func_name)?;
                if call.func_name == "matches" {
                    self.pattern(here.id, call.args.last())?;
                }
                call.target
                    .iter()
                    .try_for_each(|target| self.expression(target))?;
                call.args
                    .iter()
                    .try_for_each(|argument| self.expression(argument))
            }
            Expr::List(list) => list
                .elements
                .iter()
                .try_for_each(|element| self.expression(element)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.expression(&entry.key)?;
                    self.expression(&entry.value)
                }
                EntryExpr::StructField(field) => self.expression(&field.value),
            }),
            Expr::Comprehension(walk) => {
                self.expression(&walk.iter_range)?;
                let before = self.known.len();
                self.known
                    .extend([walk.iter_var.clone(), walk.accu_var.clone()]);
                self.known.extend(walk.iter_var2.clone());
                let parts = [
                    &walk.accu_init,
                    &walk.loop_cond,
                    &walk.loop_step,
                    &walk.result,
                ];
                let result = parts.into_iter().try_for_each(|part| self.expression(part));
                self.known.truncate(before);
                result
            }
            Expr::Struct(_) | Expr::Unspecified => Err(self.wrong(
                here.id,
                "a condition makes no objects".into(),
                "compare with `operation` and its fields".into(),
            )),
        }
    }

    fn variable(&self, id: u64, name: &str) -> Result<(), Finding> {
        if self.known.iter().any(|known| known == name) {
            return Ok(());
        }
        let remedy = if OperationFacts::FIELDS.contains(&name) {
            format!("write `operation.{name}`")
        } else {
            match nearest(
                name,
                self.known
                    .iter()
                    .map(String::as_str)
                    .filter(|known| !known.starts_with('@')),
            ) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "the only variable is `operation`; texts stand in quotes".into(),
            }
        };
        Err(self.wrong(id, format!("there is no variable `{name}`"), remedy))
    }

    fn field(&self, id: u64, name: &str) -> Result<(), Finding> {
        if OperationFacts::FIELDS.contains(&name) {
            return Ok(());
        }
        let remedy = match nearest(name, OperationFacts::FIELDS.into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("its fields are {}", OperationFacts::FIELDS.join(", ")),
        };
        Err(self.wrong(id, format!("`operation` has no field `{name}`"), remedy))
    }

    fn function(&self, id: u64, name: &str) -> Result<(), Finding> {
        let is_operator = name.starts_with(['_', '@', '!', '-']);
        if is_operator || FUNCTIONS.contains(&name) {
            return Ok(());
        }
        let remedy = match nearest(name, FUNCTIONS.into_iter().chain(MACROS)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}, {}", FUNCTIONS.join(", "), MACROS.join(", ")),
        };
        let found = if MACROS.contains(&name) {
            format!("`{name}` is not called like this")
        } else {
            format!("there is no function `{name}`")
        };
        Err(self.wrong(id, found, remedy))
    }

    fn pattern(&self, id: u64, pattern: Option<&IdedExpr>) -> Result<(), Finding> {
        let Some(Expr::Literal(LiteralValue::String(pattern))) =
            pattern.map(|argument| &argument.expr)
        else {
            return Err(self.wrong(
                id,
                "the pattern of `matches` is not written out".into(),
                "write it as a text in quotes".into(),
            ));
        };
        let built = regex::RegexBuilder::new(pattern.inner())
            .size_limit(PATTERN_SIZE_MAX)
            .build();
        built.map(drop).map_err(|error| {
            let what = match error {
                regex::Error::CompiledTooBig(_) => "is too large",
                _ => "is no regular expression",
            };
            self.wrong(
                id,
                format!(
                    "the pattern `{}` {what}",
                    crate::value::short(pattern.inner())
                ),
                "write a simpler one".into(),
            )
        })
    }
}
