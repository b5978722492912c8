//! YAML: one document or several, with anchors and with tags of any kind.
//!
//! Aliases are counted, never expanded: a text whose aliases would come to more than [`EXPANDED_MAX`] values is a
//! finding, for the program that reads it will expand them.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, ScanError};

use super::fault::{Fault, quote};
use super::json::twice;
use super::keys::{Names, Step, shown};
use super::{DEPTH_MAX, FINDINGS_MAX};
use crate::Finding;

/// The most values that a text may come to when its aliases are expanded.
const EXPANDED_MAX: u64 = 10_000_000;

pub(super) fn check(text: &str) -> Vec<Finding> {
    let mut options = Options::default();
    options.flow_nesting_limit = DEPTH_MAX;
    options.block_nesting_limit = DEPTH_MAX;
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut reader = Reader {
        text,
        open: Vec::new(),
        weights: HashMap::new(),
        weight: 0,
        findings: Vec::new(),
    };
    while let Some(event) = parser.next_event() {
        match event {
            Ok((Event::StreamEnd, _)) => break,
            Ok((event, span)) => reader.event(event, span.byte_range().unwrap_or_default().start),
            Err(error) => {
                reader.findings.push(of_error(text, &error).finding(text));
                break;
            }
        }
        if reader.findings.len() >= FINDINGS_MAX {
            break;
        }
    }
    reader.findings
}

/// A collection that is not closed yet.
struct Open<'t> {
    /// The names of a mapping with their places. None of a list.
    names: Option<Names<'t>>,
    /// Whether a mapping waits for a key.
    is_at_key: bool,
    step: Step<'t>,
    anchor: usize,
    weight: u64,
}

struct Reader<'t> {
    text: &'t str,
    open: Vec<Open<'t>>,
    /// How many values stand behind each anchor.
    weights: HashMap<usize, u64>,
    weight: u64,
    findings: Vec<Finding>,
}

impl<'t> Reader<'t> {
    fn event(&mut self, event: Event<'t>, at: usize) {
        match event {
            Event::DocumentStart(..) => {
                self.open.clear();
                self.weights.clear();
                self.weight = 0;
            }
            Event::Scalar(value, style, anchor, tag) => {
                if tag.is_none() {
                    self.name(value, style, at);
                }
                self.completed(anchor, 1, at);
            }
            Event::Alias(id) => {
                let weight = self.weights.get(&id).copied().unwrap_or(1);
                self.completed(0, weight, at);
            }
            Event::MappingStart(_, anchor, _) => self.enter(true, anchor),
            Event::SequenceStart(_, anchor, _) => self.enter(false, anchor),
            Event::MappingEnd | Event::SequenceEnd => {
                if let Some(open) = self.open.pop() {
                    self.completed(open.anchor, open.weight.saturating_add(1), at);
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, is_mapping: bool, anchor: usize) {
        self.open.push(Open {
            names: is_mapping.then(Names::default),
            is_at_key: is_mapping,
            step: Step::Index(0),
            anchor,
            weight: 0,
        });
    }

    /// Takes a name, if a name is what comes next.
    fn name(&mut self, value: Cow<'t, str>, style: ScalarStyle, at: usize) {
        let Some(open) = self.open.last_mut().filter(|open| open.is_at_key) else {
            return;
        };
        let is_plain = style == ScalarStyle::Plain;
        let name = if is_plain && is_other_than_text(&value) {
            // `1` and `"1"` are two keys. No text holds a zero byte.
            Cow::Owned(format!("\0{value}"))
        } else {
            value.clone()
        };
        let is_merge = is_plain && value == "<<";
        open.step = Step::Name(value);
        let first = open.names.as_mut().and_then(|names| names.add(name, at));
        if let Some(first) = first.filter(|_| !is_merge) {
            let key = shown(self.open.iter().map(|open| &open.step));
            self.findings.push(twice(self.text, first, at, &key));
        }
    }

    /// A value, or a key, is over.
    fn completed(&mut self, anchor: usize, weight: u64, at: usize) {
        if anchor != 0 {
            self.weights.insert(anchor, weight);
        }
        let total = match self.open.last_mut() {
            Some(open) => {
                if open.names.is_some() {
                    open.is_at_key = !open.is_at_key;
                } else if let Step::Index(index) = &mut open.step {
                    *index += 1;
                }
                &mut open.weight
            }
            None => &mut self.weight,
        };
        let was_over = *total > EXPANDED_MAX;
        *total = total.saturating_add(weight);
        let is_own = weight <= EXPANDED_MAX;
        if *total > EXPANDED_MAX && !was_over && is_own {
            let found = format!("the aliases come to more than {EXPANDED_MAX} values");
            let fault = Fault::new(at, found).mended_by("use fewer aliases of aliases");
            self.findings.push(fault.finding(self.text));
        }
    }
}

/// Whether a scalar without quotes is a number, a boolean or nothing.
fn is_other_than_text(value: &str) -> bool {
    matches!(
        value,
        "" | "~"
            | "null"
            | "Null"
            | "NULL"
            | "true"
            | "True"
            | "TRUE"
            | "false"
            | "False"
            | "FALSE"
    ) || (value.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && value.parse::<f64>().is_ok())
}

fn of_error(text: &str, error: &ScanError) -> Fault {
    let at = error.marker().byte_offset().unwrap_or(text.len());
    let fault = |found: &str| Fault::new(at, found);
    match error.kind() {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => {
            fault("a tab stands where only spaces may be").mended_by("indent with spaces")
        }
        ErrorKind::UnclosedQuotedScalar => {
            fault("a quote is not closed").mended_by("close it, or put the text in other quotes")
        }
        ErrorKind::InvalidQuotedScalarIndent => {
            fault("a quote is not closed, or its lines are not indented")
                .mended_by("close it, or indent the lines of its text")
        }
        ErrorKind::UnexpectedCharacter { character } => fault(&format!(
            "{} cannot begin a text",
            quote(&character.to_string())
        ))
        .mended_by("put the text in quotes"),
        ErrorKind::MappingValueNotAllowed | ErrorKind::InvalidColonPlacement => {
            fault("a colon stands where no key can begin")
                .mended_by("put a text that holds `: ` in quotes, or check the indentation")
        }
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            fault("a key without a colon, or a line that belongs to nothing")
                .mended_by("write `key: value`, or check the indentation")
        }
        ErrorKind::UnknownAnchor => {
            fault(&format!("{} has no anchor before it", alias_at(text, at)))
                .mended_by("define it first with `&name`")
        }
        ErrorKind::ExpectedBlockMappingKey => fault("a key is needed here")
            .mended_by("check the indentation: keys of one mapping begin in the same column"),
        ErrorKind::ExpectedBlockSequenceEntry => fault("`- ` is needed here")
            .mended_by("check the indentation: items of one list begin in the same column"),
        ErrorKind::RecursionLimitExceeded => Fault::too_deep(at),
        ErrorKind::UndeclaredTagHandle => {
            fault("a tag has a handle that no `%TAG` declares").mended_by("write `!name`")
        }
        ErrorKind::UnclosedFlowCollection { open } => {
            fault(&format!("`{open}` is not closed")).mended_by("close it, or put it in quotes")
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            fault(&format!("`{open}` is closed by `{close}`"))
        }
        ErrorKind::MisplacedFlowCollectionEnd => {
            fault("a bracket is closed that was not opened").mended_by("remove it")
        }
        _ => fault(&error.info()),
    }
}

fn alias_at(text: &str, at: usize) -> String {
    let rest = text.get(at..).unwrap_or_default();
    let end = rest.find(|c: char| c.is_whitespace() || ",]}".contains(c));
    quote(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default())
}
