//! From what the config reader found to a tree, and from numbers as written to numbers.

use std::cmp::Ordering;
use std::collections::HashMap;

use backout_config::{Segment, Shape, Value, View};

use super::{Format, Kind, Node, key_of, place, twice};
use crate::finding::Finding;

/// Converts a value and all below it.
pub(super) fn node(text: &str, format: Format, view: View<'_>) -> Result<Node, Finding> {
    below(text, format, view, view.start(), &mut Vec::new())
}

fn below(
    text: &str,
    format: Format,
    view: View<'_>,
    name_at: usize,
    way: &mut Vec<Segment>,
) -> Result<Node, Finding> {
    let kind = match view.shape() {
        Shape::Scalar(value) => scalar(value),
        Shape::List(items) => {
            let mut list = Vec::with_capacity(items.len());
            for (index, item) in items.into_iter().enumerate() {
                way.push(Segment::Index(index));
                list.push(below(text, format, item, item.start(), way)?);
                way.pop();
            }
            Kind::List(list)
        }
        Shape::Map(members) => {
            let mut map = Members::with_capacity(members.len());
            for (name, at, member) in members {
                way.push(Segment::Name(name.to_owned()));
                let node = below(text, format, member, at, way)?;
                if let Some((first, second)) = map.add(format, name, node) {
                    let at = |offset: u32| place(text, offset as usize);
                    return Err(twice(&key_of(way), at(first), at(second)));
                }
                way.pop();
            }
            Kind::Map(map.members)
        }
    };
    Ok(Node::new(name_at, view.start(), kind))
}

/// The members of a table while it is read.
struct Members {
    members: Vec<(Box<str>, Node)>,
    index: HashMap<Box<str>, usize>,
}

impl Members {
    fn with_capacity(count: usize) -> Self {
        Self {
            members: Vec::with_capacity(count),
            index: HashMap::with_capacity(count),
        }
    }

    /// Adds a member. A name that must not stand twice gives both places.
    fn add(&mut self, format: Format, name: &str, node: Node) -> Option<(u32, u32)> {
        let known = self
            .index
            .get(name)
            .and_then(|at| self.members.get_mut(*at));
        let Some((_, old)) = known else {
            self.index.insert(name.into(), self.members.len());
            self.members.push((name.into(), node));
            return None;
        };
        match format {
            Format::Json | Format::Jsonc | Format::Yaml | Format::Toml => {
                return Some((old.name_at, node.name_at));
            }
            Format::Ini => join(old, node),
            Format::Env => *old = node,
        }
        None
    }
}

/// Joins what stands under one name of an INI file: sections become one, values a list.
fn join(old: &mut Node, new: Node) {
    match (&mut old.kind, new.kind) {
        (Kind::Map(members), Kind::Map(more)) => {
            for (name, node) in more {
                match members.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, known)) => join(known, node),
                    None => members.push((name, node)),
                }
            }
        }
        (Kind::List(items), kind) => items.push(Node { kind, ..new }),
        (Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Map(_), kind) => {
            let first = old.clone();
            old.kind = Kind::List(vec![first, Node { kind, ..new }]);
        }
    }
}

/// What a single value is.
pub(super) fn scalar(value: Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(yes) => Kind::Bool(yes),
        Value::Number(raw) => Kind::Number(raw.into()),
        Value::Raw(raw) if amount(&raw).is_some() => Kind::Number(raw.into()),
        Value::Text(text) | Value::Raw(text) => Kind::Text(text.into()),
        Value::List(items) => Kind::List(
            items
                .into_iter()
                .map(|item| Node::new(0, 0, scalar(item)))
                .collect(),
        ),
        Value::Map(members) => Kind::Map(
            members
                .into_iter()
                .map(|(name, value)| (name.into(), Node::new(0, 0, scalar(value))))
                .collect(),
        ),
    }
}

/// A number that compares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Amount {
    /// A whole number, exact.
    Whole(i128),
    /// Any other.
    Float(f64),
}

impl Amount {
    /// Which of the two is larger. Not-a-number is neither.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.float().partial_cmp(&b.float()),
        }
    }

    fn float(self) -> f64 {
        match self {
            #[expect(
                clippy::cast_precision_loss,
                reason = "the other side is a float already"
            )]
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// Whether it has no fraction.
    pub(crate) fn is_whole(self) -> bool {
        match self {
            Self::Whole(_) => true,
            Self::Float(number) => number.is_finite() && number.fract() == 0.0,
        }
    }
}

/// Reads a number of any of the formats.
pub(crate) fn amount(raw: &str) -> Option<Amount> {
    let clean = raw.replace('_', "");
    let (negative, digits) = match clean.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, clean.strip_prefix('+').unwrap_or(&clean)),
    };
    let based = [("0x", 16), ("0o", 8), ("0b", 2)];
    let whole = based
        .into_iter()
        .find_map(|(prefix, radix)| Some((digits.strip_prefix(prefix)?, radix)))
        .map_or_else(
            || unsigned(digits, 10),
            |(rest, radix)| unsigned(rest, radix),
        );
    if let Some(whole) = whole {
        return Some(Amount::Whole(if negative { -whole } else { whole }));
    }
    let float = match digits.to_ascii_lowercase().as_str() {
        ".inf" | "inf" => Some(f64::INFINITY),
        ".nan" | "nan" => Some(f64::NAN),
        word if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') => word.parse().ok(),
        _ => None,
    }?;
    Some(Amount::Float(if negative { -float } else { float }))
}

fn unsigned(digits: &str, radix: u32) -> Option<i128> {
    let is_plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    is_plain
        .then(|| i128::from_str_radix(digits, radix).ok())
        .flatten()
}

/// A number as JSON has it; a text if JSON cannot have it.
pub(super) fn json_number(raw: &str) -> serde_json::Value {
    use serde_json::{Number, Value};
    let number = match amount(raw) {
        Some(Amount::Whole(whole)) => match (u64::try_from(whole), i64::try_from(whole)) {
            (Ok(number), _) => Some(Number::from(number)),
            (Err(_), Ok(number)) => Some(Number::from(number)),
            (Err(_), Err(_)) => Number::from_f64(Amount::Whole(whole).float()),
        },
        Some(Amount::Float(number)) => Number::from_f64(number),
        None => None,
    };
    number.map_or_else(|| Value::String(raw.to_owned()), Value::Number)
}
