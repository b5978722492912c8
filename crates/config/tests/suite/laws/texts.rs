//! Random documents of every format: odd names, comments, several layouts, all line ends.

use backout_config::Format;

use super::dice::Dice;

pub(crate) const NAMES: [&str; 12] = [
    "a",
    "b",
    "port",
    "name",
    "x-y",
    "c.d",
    "two words",
    "é",
    "no",
    "8080",
    "A_B",
    "q\"t'",
];
const REMARKS: [&str; 4] = ["note", "a: 1", "x = \"y\"", "it's [b] {c}, d"];

pub(crate) fn document(format: Format, dice: &mut Dice<'_>) -> String {
    let bom = dice.once_in(12);
    let crlf = dice.roll(6);
    let last = dice.once_in(5);
    let mut text = match format {
        Format::Json => super::texts_json::text(dice, false),
        Format::Jsonc => super::texts_json::text(dice, true),
        Format::Yaml => super::texts_yaml::text(dice),
        Format::Toml => super::texts_toml::text(dice),
        Format::Ini => ini(dice),
        Format::Env => env(dice),
    };
    if last {
        text.truncate(text.trim_end_matches('\n').len());
    }
    match crlf {
        4 => text = text.replace('\n', "\r\n"),
        // Mixed line ends: every other line.
        5 => {
            let mut lines = text.split_inclusive('\n').enumerate();
            text = lines
                .by_ref()
                .map(|(i, line)| {
                    if i % 2 == 0 {
                        line.replace('\n', "\r\n")
                    } else {
                        line.to_owned()
                    }
                })
                .collect();
        }
        _ => {}
    }
    if bom { format!("\u{feff}{text}") } else { text }
}

pub(crate) fn remark(dice: &mut Dice<'_>) -> &'static str {
    dice.pick(&REMARKS)
}

/// Names that are not used yet.
pub(crate) fn names(dice: &mut Dice<'_>, most: usize) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for _ in 0..dice.roll(most + 1) {
        let name = dice.pick(&NAMES);
        if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            names.push(name);
        }
    }
    names
}

fn lines_between(dice: &mut Dice<'_>, out: &mut String, signs: &[&str]) {
    match dice.roll(5) {
        1 => out.push('\n'),
        2 => {
            out.push_str(&format!("{} {}\n", dice.pick(signs), remark(dice)));
        }
        _ => {}
    }
}

fn ini(dice: &mut Dice<'_>) -> String {
    let mut out = String::new();
    let separator = dice.pick(&["=", " = ", ": ", " : "]);
    let section = |dice: &mut Dice<'_>, out: &mut String| {
        let indent = dice.pick(&["", "", "  ", "\t"]);
        for name in names(dice, 4) {
            lines_between(dice, out, &["#", ";"]);
            let value = dice.pick(&[
                "1",
                "some text",
                "",
                "\"in quotes\"",
                "a=b",
                "x:y",
                "1\n      more\n      and more",
            ]);
            let behind = dice.pick(&["", "", " ; why", " # why"]);
            if dice.once_in(10) {
                out.push_str(&format!("{indent}{name}\n"));
            } else {
                out.push_str(&format!(
                    "{indent}{name}{separator}{value}{}\n",
                    if value.contains('\n') { "" } else { behind }
                ));
            }
        }
    };
    section(dice, &mut out);
    for name in names(dice, 3) {
        lines_between(dice, &mut out, &["#", ";"]);
        out.push_str(&format!("[S{name}]{}\n", dice.pick(&["", " ", " ; x"])));
        section(dice, &mut out);
    }
    lines_between(dice, &mut out, &["#", ";"]);
    out
}

fn env(dice: &mut Dice<'_>) -> String {
    let mut out = String::new();
    let mut used: Vec<&str> = Vec::new();
    for _ in 0..dice.roll(6) {
        let name = dice.pick(&["A", "B_C", "PORT", "d", "E9"]);
        if used.contains(&name) {
            continue;
        }
        used.push(name);
        lines_between(dice, &mut out, &["#"]);
        let value = dice.pick(&[
            "1",
            "",
            "plain",
            "\"a $X \\\" b\"",
            "'l1\nl2'",
            "a b",
            "x=y",
            "\"x\"$Y",
            "`q`",
        ]);
        let behind = dice.pick(&["", "", " # why"]);
        out.push_str(&format!(
            "{}{name}{}{value}{behind}\n",
            dice.pick(&["", "", "export "]),
            dice.pick(&["=", "=", " = "])
        ));
    }
    lines_between(dice, &mut out, &["#"]);
    out
}
