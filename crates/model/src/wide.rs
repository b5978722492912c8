//! Numbers that may be too wide for JavaScript, as decimal text in JSON: inodes, devices, nanoseconds.
//!
//! JavaScript reads every number as a double, and from 2^53 on takes neighbours for one. So what may get there is written
//! as text. It is read as text or as a number, since older programs wrote numbers.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The widest whole number that JavaScript tells from its neighbours.
pub const PLAIN_MAX: u64 = (1 << 53) - 1;

/// Writes a number as text; for `#[serde(with = "wide")]`.
pub fn serialize<T: fmt::Display, S: Serializer>(
    number: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// Reads a number from text or from a number; for `#[serde(with = "wide")]`.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr + TryFrom<u64> + TryFrom<i64>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(Either(PhantomData))
}

/// A number in a list or an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wide<T>(pub T);

impl<T: fmt::Display> Serialize for Wide<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de, T: FromStr + TryFrom<u64> + TryFrom<i64>> Deserialize<'de> for Wide<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self)
    }
}

/// Tells whether there is no number, or one that is better left out than misread. What is about real bytes never is.
pub fn is_none_or_wide(number: &Option<u64>) -> bool {
    number.is_none_or(|number| number > PLAIN_MAX)
}

/// Makes text of every number in a value that is too wide, as older programs wrote them.
pub(crate) fn narrow(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let is_plain = match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => number <= PLAIN_MAX,
                (None, Some(number)) => number.unsigned_abs() <= PLAIN_MAX,
                (None, None) => true,
            };
            if !is_plain {
                *value = Value::String(number.to_string());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(narrow),
        Value::Object(fields) => fields.values_mut().for_each(narrow),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

struct Either<T>(PhantomData<T>);

impl<T: FromStr + TryFrom<u64> + TryFrom<i64>> Visitor<'_> for Either<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, or its decimal digits as text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let wrong = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
        text.parse().map_err(|_| wrong())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        let wrong = || E::invalid_value(serde::de::Unexpected::Unsigned(number), &self);
        T::try_from(number).map_err(|_| wrong())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        let wrong = || E::invalid_value(serde::de::Unexpected::Signed(number), &self);
        T::try_from(number).map_err(|_| wrong())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_str, json, to_string};

    use super::{Wide, narrow};

    #[test]
    fn a_wide_number_is_written_as_text_and_read_from_both() {
        assert_eq!(
            to_string(&Wide(u64::MAX)).unwrap(),
            r#""18446744073709551615""#
        );
        for text in ["18446744073709551615", r#""18446744073709551615""#] {
            assert_eq!(from_str::<Wide<u64>>(text).unwrap(), Wide(u64::MAX));
        }
        for text in ["-7", r#""-7""#] {
            assert_eq!(from_str::<Wide<i64>>(text).unwrap(), Wide(-7));
            assert!(from_str::<Wide<u64>>(text).is_err());
        }
        for text in [r#""""#, r#""7 ""#, "1.5", "null"] {
            let error = from_str::<Wide<i64>>(text).unwrap_err().to_string();
            let wanted = "a whole number, or its decimal digits as text";
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn only_what_is_too_wide_becomes_text() {
        let mut value = json!({"a": [9_007_199_254_740_991_u64, 9_007_199_254_740_992_u64], "b": i64::MIN, "c": 0.5});
        narrow(&mut value);
        let told = json!({"a": [9_007_199_254_740_991_u64, "9007199254740992"], "b": "-9223372036854775808", "c": 0.5});
        assert_eq!(value, told);
    }
}
