//! Random YAML: block and flow, all quotes, block scalars, comments.

use super::dice::Dice;
use super::texts::{names, remark};

pub(crate) fn text(dice: &mut Dice<'_>) -> String {
    let mut out = String::new();
    if dice.once_in(6) {
        out.push_str("---\n");
    }
    if dice.once_in(8) {
        out.push_str(&format!("# {}\n", remark(dice)));
    }
    let unit = dice.pick(&["  ", "    ", " "]);
    map(dice, &mut out, "", unit, 0);
    if dice.once_in(8) {
        out.push_str(&format!("# {}\n", remark(dice)));
    }
    out
}

fn quoted(dice: &mut Dice<'_>, name: &str) -> String {
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    match dice.roll(4) {
        0 | 1 if plain => name.to_owned(),
        2 => format!("'{}'", name.replace('\'', "''")),
        _ => format!("\"{}\"", name.replace('"', "\\\"")),
    }
}

fn behind(dice: &mut Dice<'_>) -> String {
    if dice.once_in(5) {
        format!(" # {}", remark(dice))
    } else {
        String::new()
    }
}

/// Members of a block table, one or more lines each. Writes nothing if there are none.
fn map(dice: &mut Dice<'_>, out: &mut String, indent: &str, unit: &str, depth: usize) {
    for name in names(dice, 4) {
        between(dice, out, indent);
        let name = quoted(dice, name);
        out.push_str(&format!("{indent}{name}:"));
        value(dice, out, indent, unit, depth);
    }
}

fn between(dice: &mut Dice<'_>, out: &mut String, indent: &str) {
    match dice.roll(7) {
        5 => out.push('\n'),
        6 => out.push_str(&format!("{indent}# {}\n", remark(dice))),
        _ => {}
    }
}

/// A value behind a colon or a dash, up to the end of its line or lines.
fn value(dice: &mut Dice<'_>, out: &mut String, indent: &str, unit: &str, depth: usize) {
    let inner = format!("{indent}{unit}");
    match dice.roll(12) {
        6 if depth < 4 => {
            let mut members = String::new();
            map(dice, &mut members, &inner, unit, depth + 1);
            let behind = behind(dice);
            out.push_str(&if members.trim().is_empty() {
                format!("{behind}\n")
            } else {
                format!("{behind}\n{members}")
            });
        }
        7 if depth < 4 => {
            let dash_indent = if dice.once_in(2) {
                inner.as_str()
            } else {
                indent
            };
            out.push_str(&behind(dice));
            out.push('\n');
            for _ in 0..=dice.roll(3) {
                between(dice, out, dash_indent);
                out.push_str(&format!("{dash_indent}-"));
                item(dice, out, dash_indent, unit, depth);
            }
        }
        8 => {
            let header = dice.pick(&["|", ">", "|-", ">-"]);
            out.push_str(&format!(
                " {header}{}\n{inner}first\n{inner}  second # no remark\n",
                behind(dice)
            ));
            if dice.once_in(2) {
                out.push_str(&format!("\n{inner}third\n"));
            }
        }
        9 => {
            let flow = dice.pick(&[
                "{}",
                "[]",
                "{a: 1, b: [x, y]}",
                "[1, \"q\", {z: w}]",
                "{\"j\":1,\"k\": 'l'}",
                "[ a, b ]",
            ]);
            out.push_str(&format!(" {flow}{}\n", behind(dice)));
        }
        10 => out.push_str(&format!("{}\n", behind(dice))),
        11 => out.push_str(&format!("\n{inner}on its line{}\n", behind(dice))),
        _ => {
            let scalar = dice.pick(&[
                "1",
                "text",
                "true",
                "'single'",
                "\"double \\t\"",
                "no",
                "two words",
                "1.5",
                "2024-01-01",
                "null",
                "~",
                "a:b",
            ]);
            out.push_str(&format!(" {scalar}{}\n", behind(dice)));
        }
    }
}

/// An item of a list: a table that begins behind the dash, or any value.
fn item(dice: &mut Dice<'_>, out: &mut String, indent: &str, unit: &str, depth: usize) {
    let mut members = String::new();
    let inner = format!("{indent}  ");
    if depth < 3 && dice.once_in(3) {
        map(dice, &mut members, &inner, unit, depth + 2);
    }
    let first = members.trim_start_matches('\n');
    if first.trim().is_empty() || first.trim_start().starts_with('#') {
        value(dice, out, indent, "  ", depth + 1);
    } else {
        out.push(' ');
        out.push_str(first.trim_start_matches(' '));
    }
}
