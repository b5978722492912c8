//! Random TOML: sections in any order, dotted names, inline tables, arrays over several lines, arrays of tables.

use super::dice::Dice;
use super::texts::{names, remark};

pub(crate) fn text(dice: &mut Dice<'_>) -> String {
    let mut out = String::new();
    lines(dice, &mut out);
    for name in names(dice, 4) {
        let name = key(dice, name);
        match dice.roll(5) {
            3 => {
                for _ in 0..=dice.roll(3) {
                    header(dice, &mut out, &format!("[[t.{name}]]"));
                }
            }
            4 => {
                header(dice, &mut out, &format!("[s.{name}.sub]"));
                if dice.once_in(2) {
                    header(dice, &mut out, &format!("[s.{name}]"));
                }
            }
            _ => header(dice, &mut out, &format!("[s.{name}]")),
        }
    }
    between(dice, &mut out);
    out
}

fn between(dice: &mut Dice<'_>, out: &mut String) {
    match dice.roll(6) {
        4 => out.push('\n'),
        5 => out.push_str(&format!("# {}\n", remark(dice))),
        _ => {}
    }
}

fn behind(dice: &mut Dice<'_>) -> String {
    if dice.once_in(5) {
        format!(" # {}", remark(dice))
    } else {
        String::new()
    }
}

fn header(dice: &mut Dice<'_>, out: &mut String, header: &str) {
    between(dice, out);
    out.push_str(&format!("{header}{}\n", behind(dice)));
    lines(dice, out);
}

fn key(dice: &mut Dice<'_>, name: &str) -> String {
    let bare = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare && !dice.once_in(5) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\\\""))
    }
}

fn lines(dice: &mut Dice<'_>, out: &mut String) {
    for name in names(dice, 4) {
        between(dice, out);
        let name = key(dice, name);
        let indent = dice.pick(&["", "", "", "  "]);
        if dice.once_in(5) {
            for below in names(dice, 3) {
                let below = key(dice, below);
                let value = value(dice, 2);
                out.push_str(&format!(
                    "{indent}{name}.{below} = {value}{}\n",
                    behind(dice)
                ));
            }
        } else {
            let equals = dice.pick(&[" = ", "=", "  =  "]);
            let value = value(dice, 0);
            out.push_str(&format!("{indent}{name}{equals}{value}{}\n", behind(dice)));
        }
    }
}

fn value(dice: &mut Dice<'_>, depth: usize) -> String {
    match dice.roll(12) {
        8 if depth < 3 => {
            let items: Vec<String> = (0..dice.roll(4)).map(|_| value(dice, depth + 1)).collect();
            format!("[{}]", items.join(", "))
        }
        9 if depth < 2 => {
            let mut list = String::from("[\n");
            for _ in 0..dice.roll(3) {
                let item = value(dice, 3);
                list.push_str(&format!("  {item},{}\n", behind(dice)));
            }
            list.push(']');
            list
        }
        10 | 11 if depth < 3 => {
            let pair = |name: &str, dice: &mut Dice<'_>| {
                format!("{} = {}", key(dice, name), value(dice, depth + 1))
            };
            let pairs: Vec<String> = names(dice, 3)
                .into_iter()
                .map(|name| pair(name, dice))
                .collect();
            if pairs.is_empty() {
                "{}".into()
            } else {
                format!("{{ {} }}", pairs.join(", "))
            }
        }
        _ => dice
            .pick(&[
                "1",
                "\"text\"",
                "'literal'",
                "true",
                "1.5",
                "2024-01-01",
                "0xff",
                "\"\"\"\nmany\nlines\"\"\"",
                "\"no\"",
                "1_000",
            ])
            .to_owned(),
    }
}
