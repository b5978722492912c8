//! The language of the rules, as it is found in the files: no more, and nothing that is not known passes.

use serde_json::Value;

use super::path::{Found, Path};
use super::prose::Prose;
use super::{Scope, Surroundings};
use crate::moment::is_moment;
use crate::uuid::is_uuid;

/// What a rule means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// A UUID of version 4.
    UuidV4,
    /// A text with something in it besides blanks.
    NonEmptyString,
    /// A text, if it is there.
    OptionalString,
    /// A list or a text with at least this many items.
    MinLength(usize),
    /// One of these texts.
    OneOf(Vec<String>),
    /// Equal to a property of another object.
    EqualTo {
        /// Which object.
        scope: Scope,
        /// By its name in the schema.
        property: String,
    },
    /// Equal to this text.
    Equals(String),
    /// There, and not null.
    Exists,
    /// A moment with a zone.
    IsoDatetime,
    /// Another rule, where a property of the object is this.
    If {
        /// By its name in the schema.
        property: String,
        /// What it must be for the rule to hold.
        is: String,
        /// The rule.
        then: Box<Self>,
    },
    /// Something is found at this way, and is not null. The way is in the rule.
    Found(String),
    /// A rule that upstream has in prose only.
    Prose(Prose),
    /// Nobody knows what it means: it fails.
    Unknown(String),
}

/// When a rule holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct When {
    /// Only where a property of the object is this.
    property: Option<(String, String)>,
    /// Only where what the rule looks at is there.
    pub(super) is_present: bool,
}

impl Rule {
    pub(super) fn unknown(why: &str) -> Self {
        Self::Unknown(why.to_owned())
    }

    /// Reads a rule. Without a path, only rules that bring their own are known.
    pub(super) fn read(text: &str, has_path: bool) -> Self {
        let unknown = || Self::Unknown(format!("nobody knows the rule `{text}`"));
        if !has_path {
            return Self::with_own_path(text).unwrap_or_else(unknown);
        }
        match text {
            "uuid-v4" => Self::UuidV4,
            "non-empty-string" => Self::NonEmptyString,
            "optional-string" => Self::OptionalString,
            "exists" => Self::Exists,
            "iso-datetime" => Self::IsoDatetime,
            _ => Self::with_arguments(text).unwrap_or_else(unknown),
        }
    }

    fn with_own_path(text: &str) -> Option<Self> {
        let way = match text.strip_suffix("!= null") {
            Some(way) => way.trim(),
            None => inside(text, "exists")?,
        };
        Path::read(way)?;
        Some(Self::Found(way.to_owned()))
    }

    fn with_arguments(text: &str) -> Option<Self> {
        if let Some(count) = inside(text, "min-length") {
            return count.parse().ok().map(Self::MinLength);
        }
        if let Some(words) = inside(text, "enum") {
            let words = words.split(',').map(|word| word.trim().to_owned());
            let words: Vec<String> = words.collect();
            return (!words.iter().any(String::is_empty)).then_some(Self::OneOf(words));
        }
        if let Some(list) = inside(text, "one-of") {
            return serde_json::from_str(list).ok().map(Self::OneOf);
        }
        if let Some(what) = inside(text, "eq") {
            if what.starts_with('"') {
                return serde_json::from_str(what).ok().map(Self::Equals);
            }
            let (scope, property) = what.split_once('.')?;
            Path::read(property)?;
            return Some(Self::EqualTo {
                scope: Scope::named(scope)?,
                property: property.to_owned(),
            });
        }
        let (condition, then) = inside(text, "if")?.split_once(',')?;
        let (property, is) = condition.split_once("==")?;
        let property = property.trim().to_owned();
        Path::read(&property)?;
        match Self::read(then.trim(), true) {
            Self::Unknown(_) => None,
            then @ (Self::UuidV4
            | Self::NonEmptyString
            | Self::OptionalString
            | Self::MinLength(_)
            | Self::OneOf(_)
            | Self::EqualTo { .. }
            | Self::Equals(_)
            | Self::Exists
            | Self::IsoDatetime
            | Self::If { .. }
            | Self::Found(_)
            | Self::Prose(_)) => Some(Self::If {
                property,
                is: serde_json::from_str(is.trim()).ok()?,
                then: Box::new(then),
            }),
        }
    }
}

/// Gives what stands between the brackets of `name(...)`.
fn inside<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(name)?.strip_prefix('(')?;
    Some(rest.strip_suffix(')')?.trim())
}

impl When {
    /// Reads a note. None if it says something that is not known.
    pub(super) fn read(note: Option<&str>, path: Option<&str>) -> Option<Self> {
        let mut when = Self::default();
        let Some(note) = note else {
            return Some(when);
        };
        if note.ends_with("; validate only when present") {
            when.is_present = true;
            return Some(when);
        }
        if let Some(what) = note.strip_prefix("Apply only when ") {
            let field = what.strip_suffix(" exists")?;
            let field = field.strip_suffix(" field").unwrap_or(field);
            when.is_present = true;
            return (Some(field) == path).then_some(when);
        }
        for part in note.strip_prefix("Apply when ")?.split(" AND ") {
            match part.split_once(" == ") {
                Some((property, is)) => {
                    Path::read(property)?;
                    when.property = Some((property.to_owned(), is.to_owned()));
                }
                None if part == "field exists" => when.is_present = true,
                None => return None,
            }
        }
        Some(when)
    }
}

/// Says where and how an object breaks a rule.
pub(super) fn told(
    rule: &Rule,
    when: &When,
    way: &Path,
    object: &Value,
    around: &Surroundings<'_>,
) -> Vec<(String, String)> {
    if let Some((property, is)) = &when.property
        && !is_at(object, property, is)
    {
        return Vec::new();
    }
    match rule {
        Rule::Unknown(why) => vec![(String::new(), why.clone())],
        Rule::Prose(prose) => prose.told(object),
        Rule::Found(own) => match Path::read(own) {
            Some(own) => each(&Rule::Exists, own.follow(object), object, around),
            None => vec![(String::new(), "its path cannot be read".to_owned())],
        },
        rule @ (Rule::UuidV4
        | Rule::NonEmptyString
        | Rule::OptionalString
        | Rule::MinLength(_)
        | Rule::OneOf(_)
        | Rule::EqualTo { .. }
        | Rule::Equals(_)
        | Rule::Exists
        | Rule::IsoDatetime
        | Rule::If { .. }) => {
            let mut found = way.follow(object);
            if when.is_present {
                found.retain(|(_, value)| value.is_some());
            }
            each(rule, found, object, around)
        }
    }
}

fn each(
    rule: &Rule,
    found: Vec<Found<'_>>,
    object: &Value,
    around: &Surroundings<'_>,
) -> Vec<(String, String)> {
    let broken = found.into_iter().filter_map(|(place, value)| {
        let why = broken(rule, value, object, around)?;
        Some((place, why))
    });
    broken.collect()
}

/// Says how a value breaks a rule; none if it keeps it.
fn broken(
    rule: &Rule,
    value: Option<&Value>,
    object: &Value,
    around: &Surroundings<'_>,
) -> Option<String> {
    if let Rule::If { property, is, then } = rule {
        if !is_at(object, property, is) {
            return None;
        }
        return broken(then, value, object, around);
    }
    let Some(value) = value else {
        // A rule for what may be left out is the only one that a value which is not there keeps.
        return (*rule != Rule::OptionalString).then(|| "it is not there".to_owned());
    };
    let text = value.as_str();
    let (passes, wanted) = match rule {
        Rule::UuidV4 => (
            text.is_some_and(is_uuid),
            "a UUID of version 4 in lower case".to_owned(),
        ),
        Rule::NonEmptyString => (
            text.is_some_and(|text| !text.trim().is_empty()),
            "a text that is not empty".to_owned(),
        ),
        Rule::OptionalString => (text.is_some(), "a text".to_owned()),
        Rule::MinLength(least) => (
            length(value).is_some_and(|length| length >= *least),
            format!("at least {least} of them"),
        ),
        Rule::OneOf(words) => (
            text.is_some_and(|text| words.iter().any(|word| word == text)),
            format!("one of {}", words.join(", ")),
        ),
        Rule::Equals(wanted) => (text == Some(wanted), format!("`{wanted}`")),
        Rule::EqualTo { scope, property } => {
            let name = format!("{}.{property}", scope.as_str());
            let other = around.get(scope).and_then(|other| at(other, property));
            match other {
                None => return Some(format!("there is no {name} to compare it with")),
                Some(other) => (other == value, format!("the {name}, {other}")),
            }
        }
        Rule::Exists => (!value.is_null(), "something".to_owned()),
        Rule::IsoDatetime => (
            text.is_some_and(is_moment),
            "a moment in ISO 8601, with a zone".to_owned(),
        ),
        Rule::If { .. } | Rule::Found(_) | Rule::Prose(_) | Rule::Unknown(_) => {
            (false, "a rule that can be carried out".to_owned())
        }
    };
    (!passes).then(|| format!("{} is not {wanted}", shown(value)))
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Array(items) => Some(items.len()),
        Value::String(text) => Some(text.chars().count()),
        _ => None,
    }
}

/// The longest value that is told as it is.
const SHOWN_MAX: usize = 80;

fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        value => {
            let text = value.to_string();
            if text.chars().count() <= SHOWN_MAX {
                return text;
            }
            let start: String = text.chars().take(SHOWN_MAX).collect();
            format!("{start}…")
        }
    }
}

fn at<'v>(object: &'v Value, property: &str) -> Option<&'v Value> {
    let found = Path::read(property)?.follow(object);
    found.into_iter().next()?.1
}

fn is_at(object: &Value, property: &str, is: &str) -> bool {
    at(object, property).and_then(Value::as_str) == Some(is)
}
