//! Objects against their schemas, offline.
//!
//! All schemas are loaded by their `$id`, so that a `$ref` finds its document whatever the directory. They are draft-07; formats are checked. The `events/`
//! schemas say only `format: uuid`, which draft-07 does not know: that ids are UUIDs of version 4 is a matter of the invariants there.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::{Registry, Validator};
use serde::Serialize;
use serde_json::Value;

use crate::Kind;
use crate::data::SCHEMAS;

/// The most mistakes of one object that are told.
const FLAWS_MAX: usize = 20;

/// What a schema does not like about an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flaw {
    /// Where in the object, as a JSON pointer; empty for the object itself.
    pub place: String,
    /// What is wrong there.
    pub what: String,
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.place.is_empty() {
            return f.write_str(&self.what);
        }
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Says what is wrong with an object by the schema of its kind; an empty list is a pass.
pub fn check(kind: Kind, object: &Value) -> Vec<Flaw> {
    let Some(validator) = VALIDATORS.get(&kind) else {
        return vec![Flaw {
            place: String::new(),
            what: format!("there is no schema for {kind}"),
        }];
    };
    if validator.is_valid(object) {
        return Vec::new();
    }
    let errors = validator.iter_errors(object).take(FLAWS_MAX);
    let told = errors.map(|error| Flaw {
        place: error.instance_path().to_string(),
        what: error.to_string(),
    });
    told.collect()
}

static VALIDATORS: LazyLock<BTreeMap<Kind, Validator>> = LazyLock::new(|| {
    let schemas = SCHEMAS.iter().map(|(path, text)| {
        let schema: Value = serde_json::from_str(text).expect("an embedded schema is JSON");
        (*path, schema)
    });
    let schemas: BTreeMap<&str, Value> = schemas.collect();
    let mut registry = Registry::new();
    for schema in schemas.values() {
        let id = schema.get("$id").and_then(Value::as_str);
        registry = registry
            .add(id.expect("an embedded schema has an id"), schema)
            .expect("the id of an embedded schema is an address");
    }
    let registry = registry
        .prepare()
        .expect("embedded schemas refer to each other only");
    let compiled = Kind::ALL.iter().filter_map(|kind| {
        let schema = schemas.get(kind.schema())?;
        let validator = jsonschema::options()
            .offline()
            .with_registry(&registry)
            .should_validate_formats(true)
            .build(schema)
            .expect("an embedded schema compiles");
        Some((*kind, validator))
    });
    compiled.collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_schema() {
        for kind in Kind::ALL {
            assert!(VALIDATORS.contains_key(kind), "{kind}");
            assert!(!check(*kind, &Value::Null).is_empty(), "{kind}");
            assert_eq!(Kind::named(kind.as_str()), Some(*kind));
        }
        assert_eq!(Kind::named("nothing"), None);
    }
}
