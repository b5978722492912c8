//! TOML, as `toml_edit` reads it: syntax, and keys and tables that are defined twice.

use super::fault::{Fault, quote};
use crate::Finding;

pub(super) fn check(text: &str) -> Vec<Finding> {
    let Err(error) = toml_edit::Document::parse(text) else {
        return Vec::new();
    };
    let span = error.span().unwrap_or_default();
    let message = error.message().lines().next().unwrap_or_default();
    let message = message.trim_end_matches(", expected nothing");
    let part = text.get(span.clone()).unwrap_or_default();
    let fault = match message {
        "duplicate key" => {
            return vec![
                Fault::new(span.start, format!("the key {} stands twice", quote(part)))
                    .mended_by("remove one of the two")
                    .finding(text)
                    .of_key(part),
            ];
        }
        message if message.contains("recurs") => {
            Fault::new(span.start, "is nested deeper than 80").mended_by("nest less")
        }
        message if message.contains("must be quoted") && part.trim().is_empty() => {
            Fault::new(span.start, "a value is missing").mended_by("write `key = value`")
        }
        message if part.trim().is_empty() => Fault::new(span.start, message),
        message => Fault::new(span.start, format!("{message}: {}", quote(part))),
    };
    vec![remedied(fault, message, part).finding(text)]
}

fn remedied(fault: Fault, message: &str, part: &str) -> Fault {
    let is_word = !part.is_empty() && !part.contains(char::is_whitespace);
    if message.contains("string values must be quoted") && is_word {
        return fault.mended_by(format!("write {}", quote(&format!("\"{part}\""))));
    }
    if message.contains("missing value") || message.contains("expected `=`") {
        return fault.mended_by("write `key = value`");
    }
    fault
}
