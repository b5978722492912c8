//! What a schema does not like, in our words.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};

use super::leads::Leads;
use crate::nearest::nearest;
use crate::value::{Kind, Node, short};
use crate::values::listed;

/// What is wrong. Values of the schema are kept as text.
#[derive(Debug)]
pub(super) enum Told {
    /// A name is not there.
    Required(String),
    /// Names are there that must not be; and the names that may be, as far as the schema says them in the same place.
    Unexpected(Vec<String>, Vec<String>),
    /// The value is none of these.
    Enum(Vec<serde_json::Value>),
    /// The value is of another type.
    Type(String),
    /// A reference leads nowhere: what the validator says of it, and where it leads.
    Reference(String, Leads),
    /// Anything else: what, and what would mend it.
    Other(String, String),
}

impl Told {
    pub(super) fn of(error: &ValidationError<'_>, schema: &serde_json::Value) -> Self {
        use ValidationErrorKind as Kind;
        match error.kind() {
            Kind::Required { property } => Self::Required(plain(property)),
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                let known = known_names(error.schema_path().as_str(), schema);
                Self::Unexpected(unexpected.clone(), known)
            }
            Kind::Enum { options } => Self::Enum(options.as_array().cloned().unwrap_or_default()),
            Kind::Constant { expected_value } => Self::Enum(vec![expected_value.as_ref().clone()]),
            Kind::Type { kind } => Self::Type(types(kind)),
            Kind::Referencing(error) => Self::Reference(error.to_string(), Leads::of(error)),
            kind => {
                let told = limit(kind).or_else(|| form(kind));
                let (found, remedy) = told.unwrap_or_else(|| {
                    (
                        format!("does not fit: {}", short(&error.to_string())),
                        "see the schema",
                    )
                });
                Self::Other(found, remedy.to_owned())
            }
        }
    }

    /// The first name that must not be there, if that is what is wrong.
    pub(super) fn unexpected(&self) -> Option<&str> {
        match self {
            Self::Unexpected(names, _) => names.first().map(String::as_str),
            Self::Required(_)
            | Self::Enum(_)
            | Self::Type(_)
            | Self::Reference(..)
            | Self::Other(..) => None,
        }
    }

    /// Where a reference leads that leads nowhere, if that is what is wrong.
    pub(super) fn reference(&self) -> Option<&Leads> {
        match self {
            Self::Reference(_, leads) => Some(leads),
            Self::Required(_)
            | Self::Unexpected(..)
            | Self::Enum(_)
            | Self::Type(_)
            | Self::Other(..) => None,
        }
    }

    pub(super) fn found(&self, node: &Node) -> String {
        match self {
            Self::Required(name) => format!("the key `{}` is missing", short(name)),
            Self::Unexpected(names, _) => match names.as_slice() {
                [name] => format!("the schema knows no key `{}` here", short(name)),
                names => format!("the schema knows none of the keys {} here", listed(names)),
            },
            Self::Enum(allowed) => {
                format!("{} is none of {}", node.shown(), listed(&texts(allowed)))
            }
            Self::Type(wanted) => format!("it is {}, and has to be {wanted}", node.what()),
            Self::Reference(message, _) => {
                format!("it refers to what is not in it ({})", short(message))
            }
            Self::Other(found, _) => format!("{} {found}", node.shown()),
        }
    }

    pub(super) fn remedy(&self, node: &Node) -> String {
        match self {
            Self::Required(name) => match near_name(node, name) {
                Some(near) => format!("add `{}`; did you mean it by `{near}`?", short(name)),
                None => format!("add `{}`", short(name)),
            },
            Self::Unexpected(names, known) => {
                let is_free = |name: &&str| node.named(name).is_none();
                let near = names.first().and_then(|name| {
                    nearest(name, known.iter().map(String::as_str).filter(is_free))
                });
                match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "take it out, or rename it".into(),
                }
            }
            Self::Enum(allowed) => {
                let names = texts(allowed);
                let near = node
                    .as_text()
                    .and_then(|text| nearest(text, names.iter().map(String::as_str)));
                match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("choose one of {}", listed(&names)),
                }
            }
            Self::Type(wanted) => format!("write {wanted}"),
            Self::Reference(..) => "put what `$ref` names under `$defs`: nothing is fetched".into(),
            Self::Other(_, remedy) => remedy.clone(),
        }
    }
}

/// Numbers and sizes that are out of bounds.
fn limit(kind: &ValidationErrorKind) -> Option<(String, &'static str)> {
    use ValidationErrorKind as Kind;
    Some(match kind {
        Kind::Minimum { limit } => (format!("is less than {limit}"), "choose a larger number"),
        Kind::Maximum { limit } => (format!("is more than {limit}"), "choose a smaller number"),
        Kind::ExclusiveMinimum { limit } => (
            format!("is not more than {limit}"),
            "choose a larger number",
        ),
        Kind::ExclusiveMaximum { limit } => (
            format!("is not less than {limit}"),
            "choose a smaller number",
        ),
        Kind::MultipleOf { multiple_of } => (
            format!("is no multiple of {multiple_of}"),
            "choose a multiple",
        ),
        Kind::MinLength { limit } => (format!("is shorter than {limit}"), "write a longer text"),
        Kind::MaxLength { limit } => (format!("is longer than {limit}"), "write a shorter text"),
        Kind::MinItems { limit } => (format!("has fewer than {limit} items"), "add items"),
        Kind::MaxItems { limit } => (format!("has more than {limit} items"), "remove items"),
        Kind::AdditionalItems { limit } => (format!("has more than {limit} items"), "remove items"),
        Kind::MinProperties { limit } => (format!("has fewer than {limit} keys"), "add keys"),
        Kind::MaxProperties { limit } => (format!("has more than {limit} keys"), "remove keys"),
        _ => return None,
    })
}

/// Values that are of the wrong form.
fn form(kind: &ValidationErrorKind) -> Option<(String, &'static str)> {
    use ValidationErrorKind as Kind;
    let none = "fits none of the ways that the schema allows";
    Some(match kind {
        Kind::UniqueItems => (
            "has items that are the same".into(),
            "remove what is there twice",
        ),
        Kind::Contains => (
            "has too few or too many items of the kind that the schema counts".into(),
            "see `contains` in the schema",
        ),
        Kind::Pattern { pattern } => (
            format!("does not match `{}`", short(pattern)),
            "write a text that matches",
        ),
        Kind::Format { format } => (
            format!("is not of the format `{}`", short(format)),
            "write it in that format",
        ),
        Kind::FalseSchema => ("must not be there".into(), "take it out"),
        Kind::Not { .. } => (
            "is what the schema rules out".into(),
            "see `not` in the schema",
        ),
        Kind::AnyOf { .. } => (none.into(), "see `anyOf` in the schema"),
        Kind::OneOfNotValid { .. } => (none.into(), "see `oneOf` in the schema"),
        Kind::OneOfMultipleValid { .. } => (
            "fits several ways of which the schema allows one".into(),
            "see `oneOf` in the schema",
        ),
        Kind::PropertyNames { error } => (
            format!(
                "has a name that the schema does not allow: {}",
                short(&error.to_string())
            ),
            "rename it",
        ),
        Kind::UnevaluatedItems { unexpected } => (
            format!(
                "has {} items that the schema does not allow",
                unexpected.len()
            ),
            "remove them",
        ),
        _ => return None,
    })
}

/// The names that stand under `properties` beside the keyword that a path of the schema leads to.
fn known_names(path: &str, schema: &serde_json::Value) -> Vec<String> {
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    let properties = schema
        .pointer(above)
        .and_then(|schema| schema.get("properties"));
    properties
        .and_then(serde_json::Value::as_object)
        .map(|names| names.keys().cloned().collect())
        .unwrap_or_default()
}

/// A name that is there and is nearly the one that is missing.
fn near_name<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    match &node.kind {
        Kind::Map(members) => nearest(name, members.iter().map(|(name, _)| &**name)),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => None,
    }
}

fn plain(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn texts(values: &[serde_json::Value]) -> Vec<String> {
    values.iter().map(plain).collect()
}

fn types(kind: &TypeKind) -> String {
    let word = |one: JsonType| match one {
        JsonType::Null => "nothing",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "a text",
        JsonType::Array => "a list",
        JsonType::Object => "a table",
    };
    match kind {
        TypeKind::Single(one) => word(*one).to_owned(),
        TypeKind::Multiple(several) => {
            let words: Vec<&str> = several.iter().map(word).collect();
            words.join(" or ")
        }
    }
}
