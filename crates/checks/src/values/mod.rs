//! Rules about single values: a range, a pattern, a type, a name that must be there.
//!
//! - A rule names keys by a pattern: `server.port`, `users.*.name`, `**.image`. `*` is any one step, a name or an index, `**` any number of them.
//! - A rule about a key that is not there says nothing, unless it is `required`.
//! - `min` and `max` of a text or a list are its length. In INI and `.env` every value is a text: one that reads as a number counts as that number.
//!
//! Not here: whether a path exists. The caller answers that, for this crate opens nothing.

mod pattern;

use std::collections::{HashMap, HashSet};

use backout_config::Segment;
use serde::Deserialize;

use crate::finding::Finding;
use crate::nearest::nearest;
use crate::value::{Amount, FINDINGS_MAX, Format, Kind, Node, Tree, amount, key_of};

pub use pattern::KeyPattern;

/// The most memory that a pattern of a rule may compile to.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// One rule, as it stands in `backout.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ValueRule {
    /// The keys that it is about.
    pub key: KeyPattern,
    /// The smallest number, or the least length.
    #[serde(default)]
    pub min: Option<f64>,
    /// The largest number, or the greatest length.
    #[serde(default)]
    pub max: Option<f64>,
    /// What the whole text has to match.
    #[serde(default)]
    pub pattern: Option<ValuePattern>,
    /// The values that are allowed.
    #[serde(default)]
    pub one_of: Option<Vec<serde_json::Value>>,
    /// Anything if it is left out.
    #[serde(default, rename = "type")]
    pub kind: Option<ValueType>,
    /// Whether a key like this has to be there.
    #[serde(default)]
    pub required: bool,
    /// Whether the value is a path at which something has to be, or must not.
    #[serde(default)]
    pub exists: Option<bool>,
    /// Whether no two of these keys may have the same value.
    #[serde(default)]
    pub unique: bool,
    /// Keys, one of which has to have this value.
    #[serde(default)]
    pub refers_to: Option<KeyPattern>,
}

/// A kind of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueType {
    /// Yes or no.
    Boolean,
    /// A whole number.
    Integer,
    /// Whole, or with a fraction.
    Number,
    /// A text.
    String,
    /// A list.
    Array,
    /// A table.
    Object,
    /// Nothing.
    Null,
}

/// A regular expression of a rule. It has to match the whole text.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct ValuePattern {
    text: String,
    regex: regex::Regex,
}

impl TryFrom<String> for ValuePattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let whole = format!("^(?:{text})$");
        // The text alone is tried first: a mistake is then told as it was written.
        let built = |text: &str| {
            regex::RegexBuilder::new(text)
                .size_limit(PATTERN_SIZE_MAX)
                .build()
        };
        let regex = built(&text)
            .and_then(|_| built(&whole))
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => format!("the pattern `{text}` is too large"),
                error => format!("the pattern `{text}` cannot be read: {error}"),
            })?;
        Ok(Self { text, regex })
    }
}

/// Applies rules to a text that was read. `exists` says whether something is at a path.
pub fn check(tree: &Tree<'_>, rules: &[ValueRule], exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules {
        let found = rule.key.all(tree);
        let mut look = Look {
            tree,
            rule,
            findings: &mut findings,
        };
        if found.is_empty() && rule.required {
            look.missing();
        }
        for (way, node) in &found {
            if look.findings.len() >= FINDINGS_MAX {
                return findings;
            }
            look.value(way, node, exists);
        }
        if rule.unique {
            look.unique(&found);
        }
        if let Some(target) = &rule.refers_to {
            look.refers(&found, target);
        }
    }
    findings.truncate(FINDINGS_MAX);
    findings
}

struct Look<'a, 't> {
    tree: &'a Tree<'t>,
    rule: &'a ValueRule,
    findings: &'a mut Vec<Finding>,
}

impl Look<'_, '_> {
    fn found(&mut self, way: &[Segment], node: &Node, found: String, remedy: String) {
        let finding = Finding::new(found)
            .at(self.tree.place_of(node))
            .of_key(key_of(way));
        self.findings.push(finding.mended_by(remedy));
    }

    fn missing(&mut self) {
        let finding = Finding::new(format!("the key `{}` is missing", self.rule.key))
            .of_key(self.rule.key.to_string());
        let remedy = match self.rule.key.likely(self.tree) {
            Some((like, place)) => {
                self.findings.push(
                    finding
                        .at(place)
                        .mended_by(format!("did you mean it by `{like}`?")),
                );
                return;
            }
            None => format!("add `{}`", self.rule.key),
        };
        self.findings.push(finding.mended_by(remedy));
    }

    fn value(&mut self, way: &[Segment], node: &Node, exists: &dyn Fn(&str) -> bool) {
        let rule = self.rule;
        if let Some(kind) = rule.kind
            && !kind.fits(node, self.is_untyped())
        {
            self.found(
                way,
                node,
                format!("it is {}, and has to be {}", node.what(), kind.name()),
                format!("write {}", kind.name()),
            );
            return;
        }
        self.range(way, node);
        if let Some(pattern) = &rule.pattern {
            let text = plain(node);
            if !text
                .as_deref()
                .is_some_and(|text| pattern.regex.is_match(text))
            {
                self.found(
                    way,
                    node,
                    format!("{} does not match `{}`", node.shown(), pattern.text),
                    "write a value that matches".into(),
                );
            }
        }
        if let Some(allowed) = &rule.one_of {
            self.one_of(way, node, allowed);
        }
        if let Some(wanted) = rule.exists {
            match node.as_text() {
                Some(path) if exists(path) == wanted => {}
                Some(_) if wanted => self.found(
                    way,
                    node,
                    format!("nothing is at {}", node.shown()),
                    "make it first, or mend the path".into(),
                ),
                Some(_) => self.found(
                    way,
                    node,
                    format!("something is at {} already", node.shown()),
                    "choose another path".into(),
                ),
                None => self.found(
                    way,
                    node,
                    format!("it is {}, and has to be a path", node.what()),
                    "write a path".into(),
                ),
            }
        }
    }

    fn is_untyped(&self) -> bool {
        match self.tree.format() {
            Format::Ini | Format::Env => true,
            Format::Json | Format::Jsonc | Format::Yaml | Format::Toml => false,
        }
    }

    fn range(&mut self, way: &[Segment], node: &Node) {
        let rule = self.rule;
        if rule.min.is_none() && rule.max.is_none() {
            return;
        }
        let number = node.as_amount().or_else(|| {
            node.as_text()
                .filter(|_| self.is_untyped())
                .and_then(amount)
        });
        let length = match &node.kind {
            Kind::Text(text) => Some(text.chars().count()),
            Kind::List(items) => Some(items.len()),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Map(_) => None,
        };
        let (value, what) = match (number, length) {
            (Some(number), _) => (number, "it"),
            (None, Some(length)) => (
                Amount::Whole(i128::try_from(length).unwrap_or(i128::MAX)),
                "its length",
            ),
            (None, None) => {
                self.found(
                    way,
                    node,
                    format!("it is {}, and has to be a number", node.what()),
                    "write a number".into(),
                );
                return;
            }
        };
        let told = match (rule.min, rule.max) {
            (Some(min), Some(max)) => format!("{min} to {max}"),
            (Some(min), None) => format!("{min} or more"),
            (None, Some(max)) => format!("{max} or less"),
            (None, None) => return,
        };
        let not_below = rule.min.is_none_or(|min| {
            value
                .compare(of(min))
                .is_some_and(std::cmp::Ordering::is_ge)
        });
        let not_above = rule.max.is_none_or(|max| {
            value
                .compare(of(max))
                .is_some_and(std::cmp::Ordering::is_le)
        });
        if !not_below || !not_above {
            let shown = match number {
                Some(_) => node.shown(),
                None => length.map_or_else(String::new, |length| format!("{length}")),
            };
            self.found(
                way,
                node,
                format!("{what} is {shown}, and has to be {told}"),
                format!("choose {told}"),
            );
        }
    }

    fn one_of(&mut self, way: &[Segment], node: &Node, allowed: &[serde_json::Value]) {
        let value = node.to_json();
        let text = plain(node);
        let same = |one: &serde_json::Value| {
            *one == value || (self.is_untyped() && text.is_some() && text == one_text(one))
        };
        if allowed.iter().any(same) {
            return;
        }
        let names: Vec<String> = allowed
            .iter()
            .map(|one| one_text(one).unwrap_or_else(|| one.to_string()))
            .collect();
        let remedy = match text
            .as_deref()
            .and_then(|text| nearest(text, names.iter().map(String::as_str)))
        {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("choose one of {}", listed(&names)),
        };
        self.found(
            way,
            node,
            format!("{} is none of {}", node.shown(), listed(&names)),
            remedy,
        );
    }

    fn unique(&mut self, found: &[(Vec<Segment>, &Node)]) {
        let mut seen: HashMap<String, &[Segment]> = HashMap::new();
        for (way, node) in found {
            if self.findings.len() >= FINDINGS_MAX {
                return;
            }
            match seen.entry(node.to_json().to_string()) {
                std::collections::hash_map::Entry::Occupied(first) => {
                    let first = key_of(first.get());
                    self.found(
                        way,
                        node,
                        format!("`{first}` is {} already", node.shown()),
                        "give each another value".into(),
                    );
                }
                std::collections::hash_map::Entry::Vacant(place) => {
                    place.insert(way);
                }
            }
        }
    }

    fn refers(&mut self, found: &[(Vec<Segment>, &Node)], target: &KeyPattern) {
        let targets = target.all(self.tree);
        let names: Vec<String> = targets.iter().filter_map(|(_, node)| plain(node)).collect();
        let known: HashSet<&str> = names.iter().map(String::as_str).collect();
        for (way, node) in found {
            if self.findings.len() >= FINDINGS_MAX {
                return;
            }
            let text = plain(node);
            if text.as_deref().is_some_and(|text| known.contains(text)) {
                continue;
            }
            let remedy = match text
                .as_deref()
                .and_then(|text| nearest(text, known.iter().copied()))
            {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add it to `{target}`, or name one that is there"),
            };
            self.found(
                way,
                node,
                format!("{} is none of `{target}`", node.shown()),
                remedy,
            );
        }
    }
}

/// A limit of a rule as an amount: whole where it is whole, so that large integers compare exactly.
fn of(limit: f64) -> Amount {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if limit.fract() == 0.0 && limit.abs() <= EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole and small enough to be exact"
        )]
        Amount::Whole(limit as i128)
    } else {
        Amount::Float(limit)
    }
}

/// A single value as people write it.
fn plain(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Text(text) | Kind::Number(text) => Some(text.to_string()),
        Kind::Bool(yes) => Some(yes.to_string()),
        Kind::Null | Kind::List(_) | Kind::Map(_) => None,
    }
}

fn one_text(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Bool(_) | serde_json::Value::Number(_) => Some(value.to_string()),
        serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
            None
        }
    }
}

/// Names in a row, the first ten of them.
pub(crate) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{}`", crate::value::short(name)))
        .collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    shown.join(", ")
}

impl ValueType {
    fn name(self) -> &'static str {
        match self {
            Self::Boolean => "a boolean",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::String => "a text",
            Self::Array => "a list",
            Self::Object => "a table",
            Self::Null => "nothing",
        }
    }

    fn fits(self, node: &Node, untyped: bool) -> bool {
        let word = node.as_text().filter(|_| untyped);
        let number = node.as_amount().or_else(|| word.and_then(amount));
        match self {
            Self::Boolean => {
                matches!(node.kind, Kind::Bool(_))
                    || word.is_some_and(|word| {
                        matches!(
                            word.to_ascii_lowercase().as_str(),
                            "true" | "false" | "yes" | "no" | "on" | "off" | "1" | "0"
                        )
                    })
            }
            Self::Integer => number.is_some_and(Amount::is_whole),
            Self::Number => number.is_some(),
            Self::String => matches!(node.kind, Kind::Text(_)),
            Self::Array => matches!(node.kind, Kind::List(_)),
            Self::Object => matches!(node.kind, Kind::Map(_)),
            Self::Null => matches!(node.kind, Kind::Null),
        }
    }
}

#[cfg(test)]
mod tests;
