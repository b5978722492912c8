//! JSON Schema: of 2020-12, or of the draft that `$schema` names.
//!
//! - Nothing is fetched. A `$ref` that leads out of the schema is a finding when the schema is compiled.
//! - Patterns run in linear time: those that need backtracking (lookaround, back references) are refused.
//! - A check ends. A schema can ask for work without end (`allOf` of itself, twice, at every level): the work is counted, and what is over [`STEPS_MAX`] is given up,
//!   which is a finding. Should the validator hang all the same, nobody waits for it longer than [`WORK_MAX`].
//! - The findings of a schema name the key, its place, and for a slip the nearest right name.

mod budget;
mod leads;
mod told;

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use backout_config::Segment;
use jsonschema::{PatternOptions, ValidationError, Validator};

use crate::finding::Finding;
use crate::value::{FINDINGS_MAX, Format, Node, Tree, key_of};
use crate::values::KeyPattern;

/// The most work of a check: how often a schema is asked about a value.
pub const STEPS_MAX: u64 = 20_000_000;
/// The same for telling all mistakes, which takes memory too. When that is over, the first is told.
const TELLING_STEPS_MAX: u64 = 300_000;
/// How long compiling and checking may take, each.
pub const WORK_MAX: Duration = Duration::from_secs(30);
/// The largest schema, in bytes.
const SCHEMA_SIZE_MAX: usize = 4 << 20;
/// The most memory that a pattern of a schema may compile to.
const PATTERN_SIZE_MAX: usize = 1 << 20;
/// How many values a text may have for all of its mistakes to be told. Of a larger one the first is.
const ALL_TOLD_MAX: usize = 50_000;
/// The stack that schemas are walked on: each level of a text may pass many levels of a schema.
const STACK_SIZE: usize = 64 << 20;

const SIMPLER: &str = "make the schema simpler: it may refer to itself several times at each level";

/// A schema that was compiled.
#[derive(Debug, Clone)]
pub struct Schema {
    validator: Arc<Validator>,
    json: Arc<serde_json::Value>,
}

impl Schema {
    /// Reads and compiles a schema. It may be written in JSON, with comments or without.
    pub fn compile(text: &str) -> Result<Self, Finding> {
        if text.len() > SCHEMA_SIZE_MAX {
            return Err(Finding::new(format!(
                "the schema is larger than {SCHEMA_SIZE_MAX} bytes"
            )));
        }
        let tree = Tree::read(Format::Jsonc, text.as_bytes())?;
        let json = Arc::new(tree.to_json());
        let mut schema = json.as_ref().clone();
        budget::counted(&mut schema);
        let built = worked("the schema could not be compiled", move || {
            jsonschema::options()
                .offline()
                .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE_MAX))
                .should_validate_formats(true)
                .with_keyword(budget::KEYWORD, |_, _, _| Ok(Box::new(budget::Count)))
                .build(&schema)
                .map_err(|error| Mistake::of(&error, &serde_json::Value::Null))
        })?;
        match built {
            Ok(validator) => Ok(Self {
                validator: Arc::new(validator),
                json,
            }),
            Err(mistake) => Err(mistake.about_schema(&tree)),
        }
    }

    /// Says what is wrong with a text by this schema. Every document of it is checked on its own.
    pub fn check(&self, tree: &Tree<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (way, root) in tree.documents() {
            findings.extend(self.document(tree, &way, root));
        }
        findings.truncate(FINDINGS_MAX);
        findings
    }

    fn document(&self, tree: &Tree<'_>, way: &[Segment], root: &Node) -> Vec<Finding> {
        let instance = root.to_json();
        let (validator, json) = (Arc::clone(&self.validator), Arc::clone(&self.json));
        let many = is_larger(root, &mut ALL_TOLD_MAX.clone());
        let work = move || mistakes(&validator, &json, &instance, many);
        let mistakes = match worked("the text could not be checked against the schema", work) {
            Ok(Some(mistakes)) => Ok(mistakes),
            Ok(None) => Err(Finding::new(
                "the text could not be checked against the schema: it takes too many steps",
            )
            .mended_by(SIMPLER)),
            Err(finding) => Err(finding),
        };
        match mistakes {
            Ok(mistakes) => mistakes
                .into_iter()
                .map(|mistake| mistake.found_in(tree, way, root))
                .collect(),
            Err(finding) => vec![finding],
        }
    }
}

/// What a schema does not like; nothing if that takes too long to find out.
fn mistakes(
    validator: &Validator,
    schema: &serde_json::Value,
    instance: &serde_json::Value,
    many: bool,
) -> Option<Vec<Mistake>> {
    if budget::within(STEPS_MAX, || validator.is_valid(instance))? {
        return Some(Vec::new());
    }
    let all = || {
        let errors = validator.iter_errors(instance).take(FINDINGS_MAX);
        errors.map(|error| Mistake::of(&error, schema)).collect()
    };
    let told = if many {
        None
    } else {
        budget::within(TELLING_STEPS_MAX, all)
    };
    let first = || {
        let error = validator.validate(instance).err();
        error
            .iter()
            .map(|error| Mistake::of(error, schema))
            .collect()
    };
    let most = if many { STEPS_MAX } else { TELLING_STEPS_MAX };
    told.or_else(|| budget::within(most, first))
}

/// Whether there are more values than the budget.
fn is_larger(node: &Node, budget: &mut usize) -> bool {
    if *budget == 0 {
        return true;
    }
    *budget -= 1;
    node.children()
        .into_iter()
        .any(|(_, child)| is_larger(child, budget))
}

/// What a schema does not like, without the values that it was found in.
#[derive(Debug)]
struct Mistake {
    /// The steps to the value.
    way: Vec<Step>,
    told: told::Told,
}

/// A step to a value, which is a name or an index: only the value tells which.
#[derive(Debug)]
enum Step {
    Name(String),
    Index(usize),
}

impl Mistake {
    fn of(error: &ValidationError<'_>, schema: &serde_json::Value) -> Self {
        let step = |segment: jsonschema::paths::LocationSegment<'_>| match segment {
            jsonschema::paths::LocationSegment::Property(name) => Step::Name(name.to_string()),
            jsonschema::paths::LocationSegment::Index(index) => Step::Index(index),
        };
        Self {
            way: error.instance_path().segments().map(step).collect(),
            told: told::Told::of(error, schema),
        }
    }

    /// Follows the way from a value as far as it goes.
    fn follow<'n>(&self, way: &[Segment], root: &'n Node) -> (Vec<Segment>, &'n Node) {
        let (mut way, mut node) = (way.to_vec(), root);
        for step in &self.way {
            let (segment, next) = match step {
                Step::Name(name) => (Segment::Name(name.clone()), node.named(name)),
                // A name of digits looks like an index.
                Step::Index(index) => match node.named(&index.to_string()) {
                    Some(next) => (Segment::Name(index.to_string()), Some(next)),
                    None => (
                        Segment::Index(*index),
                        node.below(&[Segment::Index(*index)]),
                    ),
                },
            };
            let Some(next) = next else { break };
            way.push(segment);
            node = next;
        }
        (way, node)
    }

    fn found_in(&self, tree: &Tree<'_>, way: &[Segment], root: &Node) -> Finding {
        let (mut way, node) = self.follow(way, root);
        let mut place = tree.place_of(node);
        if let Some((name, child)) = self
            .told
            .unexpected()
            .and_then(|name| Some((name, node.named(name)?)))
        {
            way.push(Segment::Name(name.to_owned()));
            place = tree.place_of_name(child);
        }
        let finding = Finding::new(self.told.found(node)).at(place);
        let finding = if way.is_empty() {
            finding
        } else {
            finding.of_key(key_of(&way))
        };
        finding.mended_by(self.told.remedy(node))
    }

    /// The mistake is in the schema itself: the text in which it was found is the schema.
    fn about_schema(&self, tree: &Tree<'_>) -> Finding {
        let finding = tree
            .documents()
            .next()
            .map(|(way, root)| self.found_in(tree, &way, root));
        let mut finding = finding.unwrap_or_else(|| Finding::new("it is empty"));
        if let Some((way, node)) = self.told.reference().and_then(|it| referrer(tree, it)) {
            finding = finding.at(tree.place_of(node)).of_key(key_of(&way));
        }
        Finding {
            found: format!("the schema is wrong: {}", finding.found),
            ..finding
        }
    }
}

/// The `$ref` that leads to what is not there.
fn referrer<'n>(tree: &'n Tree<'_>, leads: &leads::Leads) -> Option<(Vec<Segment>, &'n Node)> {
    let pattern = KeyPattern::try_from("**.$ref".to_owned()).ok()?;
    let references = pattern.all(tree).into_iter();
    references
        .rev()
        .find(|(_, node)| node.as_text().is_some_and(|text| leads.is_meant_by(text)))
}

/// Does work on a thread of its own, with a large stack, and waits no longer than [`WORK_MAX`].
fn worked<T: Send + 'static>(
    what: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Finding> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .stack_size(STACK_SIZE)
        .spawn(move || {
            drop(sender.send(work()));
        });
    let thread = thread
        .map_err(|error| Finding::new(format!("{what}: no thread could be started ({error})")))?;
    match receiver.recv_timeout(WORK_MAX) {
        Ok(done) => {
            drop(thread.join());
            Ok(done)
        }
        Err(mpsc::RecvTimeoutError::Timeout) => Err(Finding::new(format!(
            "{what} within {} seconds",
            WORK_MAX.as_secs()
        ))
        .mended_by(SIMPLER)),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Err(Finding::new(format!("{what}: the validator broke down")))
        }
    }
}

#[cfg(test)]
mod tests;
