//! Upstream's sample objects pass; every one of them, spoiled in one place, is refused. Upstream's golden rules can all be carried out.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on has failed"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use backout_mplp::{Kind, RuleSet, Scope, Surroundings, check, read_rules};
use serde_json::{Value, json};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data")
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Every sample, with the kind that its name says.
fn samples() -> Vec<(String, Kind, Value)> {
    let mut samples = Vec::new();
    for entry in fs::read_dir(data().join("schemas/v2/examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let kind = match name.split('.').next().unwrap() {
            "event" => Kind::BaseEvent,
            word => Kind::named(word).unwrap(),
        };
        let mut object = read(&path);
        // The minimal samples have a key that their schemas do not allow.
        object.as_object_mut().unwrap().remove("$comment");
        samples.push((name, kind, object));
    }
    assert_eq!(samples.len(), 21);
    samples
}

/// A schema with the file that it is in, so that references can be followed.
#[derive(Clone)]
struct At {
    file: PathBuf,
    schema: Value,
}

impl At {
    fn of(kind: Kind) -> Self {
        let file = data().join(kind.schema());
        let schema = read(&file);
        Self { file, schema }
    }

    fn followed(mut self) -> Self {
        while let Some(reference) = self.schema.get("$ref").and_then(Value::as_str) {
            let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
            if !file.is_empty() {
                self.file = self.file.parent().unwrap().join(file);
            }
            let whole = read(&self.file);
            self.schema = whole.pointer(pointer).unwrap().clone();
        }
        self
    }

    fn property(&self, name: &str) -> Option<Self> {
        let schema = self.schema.get("properties")?.get(name)?.clone();
        let file = self.file.clone();
        Some(Self { file, schema }.followed())
    }

    fn items(&self) -> Option<Self> {
        let schema = self.schema.get("items")?.clone();
        let file = self.file.clone();
        Some(Self { file, schema }.followed())
    }
}

/// Spoils what is at a place, in every way that its schema forbids.
fn spoiled(
    at: &At,
    object: &Value,
    place: &str,
    whole: &Value,
    mutants: &mut Vec<(String, Value)>,
) {
    let mut spoil = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut mutant = whole.clone();
        change(mutant.pointer_mut(place).unwrap());
        mutants.push((format!("{place} {what}"), mutant));
    };
    match object {
        Value::Object(map) => {
            for name in at.schema["required"].as_array().into_iter().flatten() {
                let name = name.as_str().unwrap();
                spoil(&format!("without {name}"), &|it| {
                    it.as_object_mut().unwrap().remove(name);
                });
            }
            if at.schema["additionalProperties"] == json!(false) {
                spoil("with more", &|it| it["surprise"] = json!(true));
            }
            spoil("as a list", &|it| *it = json!([]));
            for (name, value) in map {
                if let Some(inner) = at.property(name) {
                    spoiled(&inner, value, &format!("{place}/{name}"), whole, mutants);
                }
            }
        }
        Value::Array(items) => {
            spoil("as an object", &|it| *it = json!({}));
            if at.schema["minItems"].as_u64() > Some(0) {
                spoil("empty", &|it| *it = json!([]));
            }
            if let (Some(inner), Some(first)) = (at.items(), items.first()) {
                spoiled(&inner, first, &format!("{place}/0"), whole, mutants);
            }
        }
        _ => {
            spoil("as a number", &|it| *it = json!(1.5));
            spoil("as nothing", &|it| *it = Value::Null);
            if at.schema.get("enum").is_some() {
                spoil("as another word", &|it| *it = json!("no-such-word"));
            }
            if at.schema.get("pattern").is_some() {
                for wrong in ["", "NOT LIKE IT", "123e4567-e89b-12d3-a456-426614174000"] {
                    spoil("in another shape", &|it| *it = json!(wrong));
                }
            }
            if at.schema["minLength"].as_u64() > Some(0) {
                spoil("empty", &|it| *it = json!(""));
            }
            if at.schema["format"] == json!("date-time") {
                spoil("on no day", &|it| *it = json!("2025-13-41T00:00:00Z"));
            }
        }
    }
}

#[test]
fn every_sample_passes() {
    for (name, kind, object) in samples() {
        assert_eq!(check(kind, &object), [], "{name}");
        assert_eq!(Kind::of(&object), Some(kind), "{name}");
    }
}

#[test]
fn every_spoiled_sample_is_refused() {
    let mut count = 0;
    let mut ways = BTreeSet::new();
    for (name, kind, object) in samples() {
        let mut mutants = Vec::new();
        spoiled(&At::of(kind), &object, "", &object, &mut mutants);
        for (what, mutant) in mutants {
            assert!(!check(kind, &mutant).is_empty(), "{name}: {what} passes");
            ways.insert(what.split_once(' ').unwrap().1.to_owned());
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
    assert!(ways.len() > 30, "{ways:?}");
}

#[test]
fn the_first_sample_of_an_identifier_fails_its_own_pattern() {
    let identifiers = read(&data().join("schemas/v2/common/identifiers.schema.json"));
    let samples = identifiers["examples"].as_array().unwrap();
    let fits: Vec<bool> = samples
        .iter()
        .map(|it| backout_mplp::is_uuid(it.as_str().unwrap()))
        .collect();
    assert_eq!(fits, [false, true]);
}

/// An object that keeps the golden rules of its scope.
fn golden(scope: Scope) -> Value {
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let step = json!({
        "step_id": id, "description": "d", "agent_role": "coder", "status": "pending",
    });
    match scope {
        Scope::Context => json!({
            "context_id": id, "status": "active", "root": {"domain": "d"},
            "meta": {"protocol_version": "1.0.0", "schema_version": "2.0.0"},
        }),
        Scope::Plan => json!({
            "plan_id": id, "context_id": id, "steps": vec![step; 20],
        }),
        Scope::Confirm => json!({
            "confirm_id": id, "target_id": id, "target_type": "plan", "status": "rejected", "reason": "no",
            "decisions": [{"decision_id": id, "status": "rejected", "reason": "no"}],
        }),
        Scope::Trace => json!({
            "trace_id": id, "context_id": id, "plan_id": id,
            "root_span": {"trace_id": id, "context_id": id},
            "events": [
                {"event_type": "tool.call", "timestamp": "2025-01-01T00:00:00Z", "data": {}},
                {"event_type": "tool.result", "timestamp": "2025-01-01T00:00:00Z"},
            ],
        }),
        Scope::Collab => json!({
            "collab_id": id, "context_id": id, "mode": "broadcast",
            "participants": [
                {"participant_id": "a", "role_id": "a", "kind": "agent"},
                {"participant_id": "b", "role_id": "b", "kind": "human"},
            ],
        }),
        Scope::Role
        | Scope::Dialog
        | Scope::Extension
        | Scope::Network
        | Scope::Core
        | Scope::Event
        | Scope::ToolEvent
        | Scope::FileUpdateEvent
        | Scope::GitEvent
        | Scope::CiEvent
        | Scope::LearningSample => json!({}),
    }
}

#[test]
fn the_golden_rules_are_carried_out() {
    let objects = [
        Scope::Context,
        Scope::Plan,
        Scope::Confirm,
        Scope::Trace,
        Scope::Collab,
    ]
    .map(|scope| (scope, golden(scope)));
    let around: Surroundings<'_> = objects.iter().map(|(scope, it)| (*scope, it)).collect();
    let mut files = Vec::new();
    for directory in ["tests/golden/invariants", "tests/golden/flows"] {
        for entry in fs::read_dir(data().join(directory)).unwrap() {
            let path = entry.unwrap().path();
            files.push(if path.is_dir() {
                path.join("invariants.yaml")
            } else {
                path
            });
        }
    }
    assert_eq!(files.len(), 13);
    let mut carried_out = 0;
    for file in files {
        let scope = Scope::named(file.file_stem().unwrap().to_str().unwrap());
        let rules = read_rules(&fs::read_to_string(&file).unwrap(), RuleSet::Own, scope).unwrap();
        assert!(!rules.is_empty(), "{}", file.display());
        for rule in rules {
            let scope = rule.scope.unwrap_or_else(|| panic!("{rule:?}"));
            let told = rule.check(&golden(scope), &around);
            // The flow of turns wants another mode than that of broadcasts.
            let is_mode = rule.id == "map01_collab_mode_round_robin";
            assert_eq!(told.is_empty(), !is_mode, "{rule:?} {told:?}");
            // The same rule fails for an object that has nothing.
            let nothing = rule.check(&json!({}), &Surroundings::new());
            let may = rule.rule.starts_with("if(");
            assert_eq!(nothing.is_empty(), may, "{rule:?}");
            carried_out += 1;
        }
    }
    assert!(carried_out > 80, "{carried_out}");
}
