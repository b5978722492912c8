//! What a value means, and what a value given by a person is taken for.
//!
//! A plain word is taken for what it looks like, and refused if readers of the format disagree about it. Numbers stay the text they are: nothing is
//! rounded.

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::format::Format;

/// A value, free of its format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Value {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    /// Without its quotes and escapes.
    Text(String),
    /// What only the format itself can read: a date of TOML, an alias or a tagged value of YAML.
    Raw(String),
    /// In its order.
    List(Vec<Self>),
    /// A table, in its order.
    Map(Vec<(String, Self)>),
}

impl Value {
    /// What the value is, in a word for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::Raw(_) => "a value that only this format has",
            Self::List(_) => "a list",
            Self::Map(_) => "a table",
        }
    }

    /// Reads a JSON text, for values that are given as such and for patches.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        crate::read(Format::Json, text).map_err(|error| ConfigError::BadValue {
            what: error.to_string(),
        })
    }

    /// Whether two values mean the same. Numbers are compared by what they are, tables without regard to order.
    pub fn means(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(two)) => {
                let is_same_kind = is_fraction(one) == is_fraction(two);
                one == two
                    || is_same_kind
                        && matches!((float(one), float(two)), (Some(a), Some(b)) if a.total_cmp(&b).is_eq())
            }
            (Self::List(one), Self::List(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(a, b)| a.means(b))
            }
            (Self::Map(one), Self::Map(two)) => {
                let sorted = |map: &[(String, Self)]| {
                    let mut order: Vec<usize> = (0..map.len()).collect();
                    order.sort_by(|a, b| map.get(*a).map(|m| &m.0).cmp(&map.get(*b).map(|m| &m.0)));
                    order
                };
                one.len() == two.len()
                    && sorted(one).into_iter().zip(sorted(two)).all(|(a, b)| {
                        matches!((one.get(a), two.get(b)), (Some(a), Some(b)) if a.0 == b.0 && a.1.means(&b.1))
                    })
            }
            (one, two) => one == two,
        }
    }
}

/// Whether a number is one with a point or an exponent: readers take 77 and 77.0 for values of two types.
fn is_fraction(number: &str) -> bool {
    !number.contains(['x', 'X']) && number.contains(['.', 'e', 'E'])
}

/// A number that a float holds exactly enough to compare: short ones only, for long integers would be rounded.
fn float(number: &str) -> Option<f64> {
    (number.len() <= 15).then(|| number.parse().ok()).flatten()
}

/// A value as somebody gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NewValue {
    /// A word, taken for what it looks like.
    Plain(String),
    /// A text, whatever it looks like.
    Text(String),
    /// Exactly this.
    Typed(Value),
    /// The format's own syntax.
    Raw(String),
}

/// What a plain word means in a format.
pub(crate) fn plain(format: Format, word: &str) -> Result<Value, ConfigError> {
    if matches!(format, Format::Ini | Format::Env) {
        return Ok(Value::Text(word.to_owned()));
    }
    if word.starts_with(['{', '[', '"']) {
        return Value::from_json(word);
    }
    match word {
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        "null" => return Ok(Value::Null),
        _ => {}
    }
    let exponent = word.contains(['e', 'E']);
    if is_json_number(word) && !(exponent && format == Format::Yaml) {
        return Ok(Value::Number(word.to_owned()));
    }
    let why = match (looks_like(word), format) {
        (Looks::Number, _) => "it may be a number or a text",
        (Looks::Constant, _) => "it may be a boolean, nothing at all, or a text",
        (Looks::Word, Format::Yaml) => {
            "it is a boolean to some readers of YAML and a text to others"
        }
        (Looks::Date, Format::Yaml | Format::Toml) => "it may be a date or a text",
        (Looks::Word | Looks::Date | Looks::Text, _) => return Ok(Value::Text(word.to_owned())),
    };
    Err(ConfigError::Unclear {
        text: word.to_owned(),
        why,
    })
}

/// Whether some reader of YAML takes the word for something other than a text.
pub(crate) fn is_unclear(word: &str) -> bool {
    looks_like(word) != Looks::Text
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Looks {
    Number,
    /// A spelling of true, false, null, infinity.
    Constant,
    /// `yes`, `off`: booleans of YAML 1.1.
    Word,
    Date,
    Text,
}

fn looks_like(word: &str) -> Looks {
    let lower = word.to_ascii_lowercase();
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    match lower.as_str() {
        "true" | "false" | "null" | "nil" | "none" | "~" | "<<" | "=" => return Looks::Constant,
        "yes" | "no" | "on" | "off" | "y" | "n" => return Looks::Word,
        _ => {}
    }
    if matches!(unsigned, ".inf" | ".nan" | "inf" | "nan" | "infinity") {
        return Looks::Constant;
    }
    if is_number(unsigned) {
        Looks::Number
    } else if is_date(&lower) {
        Looks::Date
    } else {
        Looks::Text
    }
}

/// Any number of any YAML or TOML: with underscores, leading zeros, other bases, base 60.
fn is_number(word: &str) -> bool {
    let digits =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if let Some((prefix, rest)) = word.split_at_checked(2)
        && matches!(prefix, "0x" | "0o" | "0b")
    {
        return rest.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_');
    }
    let (mantissa, exponent) = word.split_once('e').unwrap_or((word, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !digits(exponent) || !word.contains(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let base60 = whole.split(':').all(digits) && (whole.contains(':') || digits(whole));
    (base60 || whole.is_empty()) && (fraction.is_empty() || digits(fraction))
}

fn is_date(word: &str) -> bool {
    let digits = |part: &str, most: usize| {
        !part.is_empty() && part.len() <= most && part.bytes().all(|b| b.is_ascii_digit())
    };
    let date = word.split(['t', ' ']).next().unwrap_or_default();
    let mut parts = date.split('-');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(year), Some(month), Some(day), None) => {
            year.len() == 4 && digits(year, 4) && digits(month, 2) && digits(day, 2)
        }
        _ => false,
    }
}

pub(crate) fn is_json_number(word: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent),
        None => (unsigned, "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && digits(fraction)
        && digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
}
