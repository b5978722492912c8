//! Puts values into YAML's words, and reads plain words.

use crate::dialect::Fresh;
use crate::key::Segment;
use crate::value::{Value, is_json_number, is_unclear};

/// What a plain scalar means by the core schema of YAML 1.2.
pub(crate) fn resolved(raw: &str) -> Value {
    match raw {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let unsigned = raw.strip_prefix(['+', '-']).unwrap_or(raw);
    if matches!(
        unsigned,
        ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN"
    ) {
        return Value::Raw(raw.to_owned());
    }
    let digits =
        |part: &str, radix| !part.is_empty() && part.chars().all(|c: char| c.is_digit(radix));
    let based = |prefix, radix| {
        raw.strip_prefix(prefix)
            .is_some_and(|rest| digits(rest, radix))
    };
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let float = digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent), 10)
        && (digits(whole, 10) || (whole.is_empty() && digits(fraction, 10)))
        && (fraction.is_empty() || digits(fraction, 10));
    if float || based("0x", 16) || based("0o", 8) {
        Value::Number(raw.to_owned())
    } else {
        Value::Text(raw.to_owned())
    }
}

/// Puts a value into one line. A text keeps the kind of quotes that the old one had.
pub(super) fn written(value: &Fresh, old: &str, in_flow: bool) -> String {
    match value {
        Fresh::Raw(raw) => raw.clone(),
        Fresh::Value(Value::Text(text)) if old.starts_with('\'') && is_printable(text) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        Fresh::Value(Value::Text(text)) if old.starts_with('"') => double(text),
        Fresh::Value(value) => rendered(value, in_flow),
    }
}

fn rendered(value: &Value, in_flow: bool) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(yes) => yes.to_string(),
        Value::Raw(raw) => raw.clone(),
        Value::Number(number) => for_all_readers(number),
        Value::Text(text) => scalar_text(text, in_flow),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| rendered(item, true)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(members) => {
            let pair = |(name, value): &(String, Value)| {
                format!("{}: {}", name_text(name), rendered(value, true))
            };
            let pairs: Vec<String> = members.iter().map(pair).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

/// YAML 1.1 takes a number with an exponent for a text unless it has a point and a sign.
fn for_all_readers(number: &str) -> String {
    let Some((mantissa, exponent)) = number
        .split_once(['e', 'E'])
        .filter(|_| is_json_number(number))
    else {
        return number.to_owned();
    };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['+', '-']) {
        ""
    } else {
        "+"
    };
    format!("{mantissa}{point}e{sign}{exponent}")
}

pub(super) fn name_text(name: &str) -> String {
    scalar_text(name, true)
}

/// A text, plain where every reader takes it for that text.
fn scalar_text(text: &str, in_flow: bool) -> String {
    let first = text
        .chars()
        .next()
        .is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '/'));
    let word = |c: char| {
        c.is_alphanumeric() || "_-./@+=~^$();<> ".contains(c) || (!in_flow && ",:".contains(c))
    };
    let plain = first
        && text.chars().all(word)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !is_unclear(text)
        && is_printable(text);
    if plain { text.to_owned() } else { double(text) }
}

fn is_printable(text: &str) -> bool {
    !text.chars().any(is_special)
}

/// Characters that YAML does not take as they are, or that some readers take for line ends.
fn is_special(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

fn double(text: &str) -> String {
    let mut out = String::new();
    for c in crate::json::quoted(text).chars() {
        if is_special(c) {
            let code = format!("\\u{:04x}", u32::from(c));
            out.push_str(&code);
        } else {
            out.push(c);
        }
    }
    out
}

/// A value in the brackets that its key still needs.
pub(super) fn flow_value(missing: &[Segment], value: String) -> String {
    missing
        .iter()
        .rev()
        .fold(value, |inner, segment| match segment {
            Segment::Name(name) => format!("{{{}: {inner}}}", name_text(name)),
            Segment::Index(_) | Segment::Append => format!("[{inner}]"),
        })
}

/// A member of a flow collection.
pub(super) fn flow_chain(missing: &[Segment], value: String) -> String {
    match missing.split_first() {
        Some((Segment::Name(name), below)) => {
            format!("{}: {}", name_text(name), flow_value(below, value))
        }
        Some((Segment::Index(_) | Segment::Append, below)) => flow_value(below, value),
        None => value,
    }
}

/// A member of a block collection, without the indent of its first line.
pub(super) fn block_chain(
    missing: &[Segment],
    value: &Fresh,
    indent: &str,
    unit: usize,
    line_break: &str,
) -> String {
    let inner = format!("{indent}{}", " ".repeat(unit));
    let Some((segment, below)) = missing.split_first() else {
        return String::new();
    };
    let rest = if below.is_empty() {
        match value {
            Fresh::Raw(raw) if raw.contains('\n') => block_raw(raw, &inner, line_break),
            value @ (Fresh::Value(_) | Fresh::Raw(_)) => format!(" {}", written(value, "", false)),
        }
    } else {
        let (gap, deeper) = match segment {
            Segment::Name(_) => (format!("{line_break}{inner}"), inner),
            Segment::Index(_) | Segment::Append => (" ".to_owned(), format!("{indent}  ")),
        };
        format!(
            "{gap}{}",
            block_chain(below, value, &deeper, unit, line_break)
        )
    };
    match segment {
        Segment::Name(name) => format!("{}:{rest}", name_text(name)),
        Segment::Index(_) | Segment::Append => format!("-{rest}"),
    }
}

/// A value of several lines, moved to another indent. Its lines keep their line ends.
fn block_raw(raw: &str, indent: &str, line_break: &str) -> String {
    let mut lines = raw.split('\n');
    let first = lines.next().unwrap_or_default();
    let depth = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let below = raw
        .split('\n')
        .skip(1)
        .filter(|line| !line.trim().is_empty());
    let old = below.map(depth).min().unwrap_or_default();
    let moved = lines.map(|line| match line.get(old..) {
        Some(rest) if !rest.trim().is_empty() => format!("\n{indent}{rest}"),
        Some(_) | None => format!("\n{}", line.trim_matches(' ')),
    });
    let moved: String = moved.collect();
    let first = first.trim_matches(' ');
    if first.trim().is_empty() {
        format!("{first}{moved}")
    } else if first.starts_with(['#', '|', '>', '"', '\'', '[', '{', '&', '!']) {
        format!(" {first}{moved}")
    } else {
        format!("{line_break}{indent}{first}{moved}")
    }
}
