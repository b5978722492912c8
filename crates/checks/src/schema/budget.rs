//! A limit on the work of a check, counted in schemas that are asked about values.
//!
//! A schema that asks itself twice at each level takes time, and for its findings memory, without end. The validator has no limit of its own. So every schema
//! within a schema gets one keyword more, which counts, and ends the work when it was too much. It ends by unwinding: the caller catches that.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::{Keyword, ValidationError};
use serde_json::Value;

/// The keyword that counts. No schema of anybody else has it.
pub(super) const KEYWORD: &str = "\u{1}backout-steps";

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// What is thrown when the work was too much.
struct TooMuch;

/// Does work that asks at most so many schemas. Nothing comes of work that asks more, or that breaks down.
pub(super) fn within<T>(steps: u64, work: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(steps);
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Counts one schema that is asked.
pub(super) struct Count;

impl Count {
    fn step() {
        match LEFT.get().checked_sub(1) {
            Some(left) => LEFT.set(left),
            None => resume_unwind(Box::new(TooMuch)),
        }
    }
}

impl<'i> Keyword<'i> for Count {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        Self::step();
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        Self::step();
        true
    }
}

/// Keywords that hold a schema, or a list of schemas.
const ONE: [&str; 18] = [
    "additionalProperties",
    "additionalItems",
    "items",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentSchema",
    "allOf",
    "anyOf",
    "oneOf",
    "prefixItems",
    "extends",
    "disallow",
];
/// Keywords that hold schemas by name.
const NAMED: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];

/// Adds the keyword to a schema and to all schemas within it.
pub(super) fn counted(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                if ONE.contains(&name.as_str()) {
                    counted(value);
                } else if let (true, Value::Object(schemas)) =
                    (NAMED.contains(&name.as_str()), value)
                {
                    schemas.values_mut().for_each(counted);
                }
            }
            members.insert(KEYWORD.to_owned(), Value::Bool(true));
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(counted),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_over_the_limit_ends_and_the_next_begins_anew() {
        let work = |times: u64| move || (0..times).for_each(|_| Count::step());
        assert_eq!(within(10, work(11)), None);
        assert_eq!(within(10, work(10)), Some(()));
    }

    #[test]
    fn every_schema_counts_and_no_value_does() {
        let mut schema = serde_json::json!({"properties": {"enum": {"enum": [{}]}}, "allOf": [{}], "items": {}, "default": {"items": {}}});
        counted(&mut schema);
        let text = schema.to_string();
        assert_eq!(text.matches("backout-steps").count(), 4);
        assert!(text.contains(r#""enum":[{}]"#) && text.contains(r#""default":{"items":{}}"#));
    }
}
