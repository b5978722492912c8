//! Policies in Rego, for those who have them: the feature `rego`.
//!
//! A policy says under `deny` why an operation must not be. The operation is `input`, with the fields of [`OperationFacts`](crate::condition::OperationFacts).
//! Only functions that neither read nor send anything are there. A policy that fails or takes longer than [`TIME_MAX`] is an error and never a pass.

use std::num::NonZeroU32;
use std::time::Duration;

use regorus::{Engine, Value, utils::limits::ExecutionTimerConfig};

use crate::finding::{Finding, Place};

/// How long an answer may take. It is the interpreter that looks at the clock.
pub const TIME_MAX: Duration = Duration::from_secs(5);
/// The longest policy, in bytes.
pub const TEXT_MAX: usize = 256 << 10;
/// The deepest nesting of brackets: the parser reads each twice as often as the one around it.
pub const DEPTH_MAX: usize = 12;
/// How many steps of the interpreter lie between two looks at the clock.
const STEPS_BETWEEN: u32 = 64;
/// The most reasons that are told.
const REASONS_MAX: usize = 100;
/// The stack that policies are read and asked on.
const STACK_SIZE: usize = 64 << 20;
/// What the engine calls the text.
const NAME: &str = "policy";

/// A policy that was compiled.
#[derive(Debug, Clone)]
pub struct Rego {
    text: String,
    rule: String,
}

impl Rego {
    /// Reads a policy. A mistake is told with its place.
    pub fn compile(text: &str) -> Result<Self, Finding> {
        if text.len() > TEXT_MAX {
            return Err(
                Finding::new(format!("the policy is longer than {TEXT_MAX} bytes"))
                    .mended_by("make several policies of it"),
            );
        }
        if depth(text) > DEPTH_MAX {
            return Err(Finding::new(format!(
                "the policy has brackets that are nested deeper than {DEPTH_MAX} levels"
            ))
            .mended_by("give the inner parts names of their own"));
        }
        let owned = text.to_owned();
        let rule = on_stack(move || {
            let (mut engine, rule) = engine(&owned)?;
            // Asking about nothing finds calls of functions that are not there.
            engine.set_input(Value::new_object());
            engine
                .eval_rule(rule.clone())
                .map_err(|error| told("the policy cannot be read", &error.to_string()))?;
            Ok(rule)
        })?;
        Ok(Self {
            text: text.to_owned(),
            rule,
        })
    }

    /// The reasons that the policy gives against an operation; none if it may be.
    pub fn deny(&self, operation: &serde_json::Value) -> Result<Vec<String>, Finding> {
        let (text, rule, input) = (self.text.clone(), self.rule.clone(), operation.to_string());
        on_stack(move || {
            let (mut engine, _) = engine(&text)?;
            let unanswered = |error: &dyn std::fmt::Display| {
                told("the policy cannot be answered", &error.to_string())
            };
            engine.set_input(Value::from_json_str(&input).map_err(|error| unanswered(&error))?);
            let value = engine.eval_rule(rule).map_err(|error| unanswered(&error))?;
            reasons(&value)
        })
    }
}

/// How deep brackets are nested, outside of texts and comments.
fn depth(text: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' | b'(' => now += 1,
            b']' | b'}' | b')' => now = now.saturating_sub(1),
            b'#' => drop(bytes.find(|byte| *byte == b'\n')),
            b'`' => drop(bytes.find(|byte| *byte == b'`')),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => drop(bytes.next()),
                        b'"' | b'\n' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        most = most.max(now);
    }
    most
}

/// An engine with the policy in it, and the name of its rule `deny`.
fn engine(text: &str) -> Result<(Engine, String), Finding> {
    let mut engine = Engine::new();
    engine.set_strict_builtin_errors(true);
    let check_interval = NonZeroU32::new(STEPS_BETWEEN).unwrap_or(NonZeroU32::MIN);
    engine.set_execution_timer_config(ExecutionTimerConfig {
        limit: TIME_MAX,
        check_interval,
    });
    let package = engine
        .add_policy(NAME.to_owned(), text.to_owned())
        .map_err(|error| told("the policy cannot be read", &error.to_string()))?;
    Ok((engine, format!("{package}.deny")))
}

/// The texts of a set or a list. Anything else is no list of reasons.
fn reasons(value: &Value) -> Result<Vec<String>, Finding> {
    let json: serde_json::Value = serde_json::to_value(value).unwrap_or_default();
    let wrong = || {
        Finding::new("`deny` gives no set of texts")
            .mended_by("write `deny contains \"reason\" if { … }`")
    };
    match json {
        // Nothing is defined: no rule held.
        serde_json::Value::String(text) if text == "<undefined>" => Ok(Vec::new()),
        serde_json::Value::Array(items) => {
            let texts = items.into_iter().take(REASONS_MAX);
            texts
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect()
        }
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_)
        | serde_json::Value::Object(_) => Err(wrong()),
    }
}

/// Does work on a thread with a large stack: the parser calls itself for every bracket.
fn on_stack<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Finding> + Send + 'static,
) -> Result<T, Finding> {
    let thread = std::thread::Builder::new()
        .stack_size(STACK_SIZE)
        .spawn(work);
    let thread = thread.map_err(|error| {
        Finding::new(format!(
            "no thread could be started for the policy ({error})"
        ))
    })?;
    thread.join().unwrap_or_else(|_| {
        Err(Finding::new(
            "the policy cannot be answered: its evaluation broke down",
        ))
    })
}

/// A message of the engine: its last line says what, and `policy:LINE:COLUMN` where.
fn told(what: &str, message: &str) -> Finding {
    let said = message
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .unwrap_or("nobody knows why");
    let said = said.strip_prefix("error: ").unwrap_or(said);
    let finding = Finding::new(format!("{what}: {}", crate::value::short(said))).mended_by(
        "mend the policy; it is written in Rego, with rules `deny contains \"reason\" if { … }`",
    );
    let place = message.split(&format!("{NAME}:")).nth(1).and_then(|rest| {
        let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
        Some(Place {
            line: numbers.next()?.parse().ok()?,
            column: numbers.next()?.parse().ok()?,
        })
    });
    match place {
        Some(place) => finding.at(place),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::OperationFacts;

    const POLICY: &str = "package backout\n\nimport rego.v1\n\ndeny contains msg if {\n  input.files > 20\n  msg := sprintf(\"%d files\", [input.files])\n}\n\ndeny contains \"not here\" if {\n  some path in input.paths\n  startswith(path, \"/etc\")\n}\n";

    fn facts(files: u64, path: &str) -> serde_json::Value {
        OperationFacts {
            files,
            paths: vec![path.into()],
            ..OperationFacts::default()
        }
        .to_json()
    }

    #[test]
    fn reasons_are_told() {
        let rego = Rego::compile(POLICY).unwrap();
        assert_eq!(rego.deny(&facts(1, "/srv")), Ok(vec![]));
        assert_eq!(
            rego.deny(&facts(21, "/etc/a")),
            Ok(vec!["21 files".to_owned(), "not here".to_owned()])
        );
    }

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let finding =
            Rego::compile("package a\n\ndeny contains x if {\n  x := (\n}\n").unwrap_err();
        assert!(
            finding.found.starts_with("the policy cannot be read: "),
            "{finding:?}"
        );
        assert_eq!(
            finding.place.map(|place| place.line),
            Some(4),
            "{finding:?}"
        );
        assert!(
            Rego::compile(
                "package a\n\nimport rego.v1\n\ndeny contains x if {\n  x := http.send({})\n}\n"
            )
            .is_err()
        );
        assert!(Rego::compile(&" ".repeat(TEXT_MAX + 1)).is_err());
    }

    #[test]
    fn what_gives_no_reasons_is_an_error() {
        let rego = Rego::compile("package a\n\nimport rego.v1\n\ndeny := input.files > 3\n")
            .or_else(|_| Rego::compile("package a\n\ndeny := true\n"));
        assert!(rego.unwrap().deny(&facts(9, "/a")).is_err());
    }

    #[test]
    fn a_policy_that_takes_too_long_is_given_up() {
        let text = "package a\n\nimport rego.v1\n\ndeny contains \"x\" if {\n  some a in input.paths\n  some b in input.paths\n  some c in input.paths\n  some d in input.paths\n  a == concat(\"\", [b, c, d, \"!\"])\n}\n";
        let paths = (0..300).map(|at| format!("/{at}")).collect();
        let facts = OperationFacts {
            paths,
            ..OperationFacts::default()
        }
        .to_json();
        let finding = Rego::compile(text).unwrap().deny(&facts).unwrap_err();
        assert!(
            finding.found.starts_with("the policy cannot be answered: "),
            "{finding:?}"
        );
    }

    #[test]
    fn towers_are_no_danger() {
        let tower = |levels: usize| {
            format!(
                "package a\n\ndeny := {}1{}\n",
                "[".repeat(levels),
                "]".repeat(levels)
            )
        };
        assert!(
            Rego::compile(&tower(5000))
                .unwrap_err()
                .found
                .contains("nested deeper than 12 levels")
        );
        assert!(Rego::compile(&tower(DEPTH_MAX)).is_ok());
        assert_eq!(depth("a[\"[\\\"[\"] # [[\n`[[`({"), 2);
    }
}
