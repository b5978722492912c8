//! Two edits, taken back in either order: the text is what it was, byte for byte, or it was said that it may not be. And a remark that
//! somebody writes behind a line stays behind that line, or stands in the way.

use backout_config::{Applied, ConfigError, Document, Edited, Format, KeyChange, revert};
use proptest::prelude::*;

use super::dice::Dice;
use super::story::{act, perform, related};
use super::texts::document;

/// The text after an undo, and what was said to differ.
fn back(
    format: Format,
    text: &str,
    changes: &[KeyChange],
) -> Result<(String, String), ConfigError> {
    let (mut text, mut said) = (text.to_owned(), String::new());
    for change in changes.iter().rev() {
        match revert(format, &text, change)? {
            Applied::Done(done) => text = done,
            Applied::Nearly { text: done, why } => {
                text = done;
                said.push_str(why);
            }
            Applied::Already => {}
        }
    }
    Ok((text, said))
}

/// The text with a remark behind every line that takes one.
fn remarked(format: Format, text: &str) -> String {
    let sign = match format {
        Format::Json => return text.to_owned(),
        Format::Jsonc => "//",
        Format::Ini => ";",
        Format::Yaml | Format::Toml | Format::Env => "#",
    };
    let parsed = |text: &str| {
        let document = Document::parse(format, text).ok()?;
        let keys = document.keys().ok()?.into_iter();
        Some(
            keys.map(|(key, found)| (key, found.value))
                .collect::<Vec<_>>(),
        )
    };
    let Some(wanted) = parsed(text) else {
        return text.to_owned();
    };
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    for at in 0..lines.len() {
        let was = lines[at].clone();
        if was.trim().is_empty() || was.contains(sign) {
            continue;
        }
        let (line, end) = was
            .strip_suffix('\r')
            .map_or((&*was, ""), |line| (line, "\r"));
        lines[at] = format!("{line} {sign} r{at}{end}");
        if parsed(&lines.join("\n")).as_ref() != Some(&wanted) {
            lines[at] = was;
        }
    }
    lines.join("\n")
}

fn pair(format: Format, bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut dice = Dice::new(bytes);
    let text = remarked(format, &document(format, &mut dice));
    let Ok(keys) =
        Document::parse(format, &text).and_then(|document| document.keys().map(|k| k.len()))
    else {
        return Ok(());
    };
    let _ = keys;
    let first_act = act(format, &text, &mut dice);
    let Ok(first) = perform(format, &text, &first_act) else {
        return Ok(());
    };
    let second_act = act(format, &first.text, &mut dice);
    let Ok(second) = perform(format, &first.text, &second_act) else {
        return Ok(());
    };
    let told = format!(
        "{first_act:?}\nin {text:?}\ngives {:?}\nthen {second_act:?}\ngives {:?}",
        first.text, second.text
    );
    // The newest first: always the same bytes.
    let once = back(format, &second.text, &second.changes);
    prop_assert_eq!(once, Ok((first.text.clone(), String::new())), "{}", told);
    if touch(&first, &second) {
        return Ok(());
    }
    let Ok((once, said)) = back(format, &second.text, &first.changes) else {
        return Ok(());
    };
    let told = format!("{told}\nwithout the first {once:?}");
    let Ok((twice, also)) = back(format, &once, &second.changes) else {
        return Ok(());
    };
    if said.is_empty() && also.is_empty() {
        prop_assert_eq!(&twice, &text, "{}", told);
    }
    let remarks = |text: &str| {
        let mut remarks: Vec<String> = text
            .lines()
            .filter_map(|line| {
                let at = line
                    .rfind("# r")
                    .or_else(|| line.rfind("; r"))
                    .or_else(|| line.rfind("// r"))?;
                Some(line[at..].trim().to_owned())
            })
            .collect();
        remarks.sort();
        remarks
    };
    if !said.contains("comment") && !also.contains("comment") {
        prop_assert_eq!(
            remarks(&twice),
            remarks(&text),
            "{}\ngives {:?}",
            told,
            twice
        );
    }
    Ok(())
}

fn touch(one: &Edited, two: &Edited) -> bool {
    let mut pairs = one
        .changes
        .iter()
        .flat_map(|a| two.changes.iter().map(move |b| (a, b)));
    pairs.any(|(a, b)| related(&a.key, &b.key))
}

/// Somebody writes a remark behind a line; the undo keeps it there, or is refused.
fn person(format: Format, bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut dice = Dice::new(bytes);
    let text = document(format, &mut dice);
    let act = act(format, &text, &mut dice);
    let Ok(edited) = perform(format, &text, &act) else {
        return Ok(());
    };
    let sign = match format {
        Format::Json => return Ok(()),
        Format::Jsonc => "//",
        Format::Ini => ";",
        Format::Yaml | Format::Toml | Format::Env => "#",
    };
    let lines: Vec<&str> = edited.text.split('\n').collect();
    let at = dice.roll(lines.len());
    let line = lines[at].trim_end_matches('\r');
    let end = if lines[at].ends_with('\r') { "\r" } else { "" };
    if line.trim().is_empty() || line.contains(sign) {
        return Ok(());
    }
    let remark = format!("{line} {sign} zz{end}");
    let since: Vec<&str> = lines
        .iter()
        .enumerate()
        .map(|(i, l)| if i == at { remark.as_str() } else { l })
        .collect();
    let since = since.join("\n");
    let keys = |text: &str| {
        let document = Document::parse(format, text).ok()?;
        let keys = document.keys().ok()?.into_iter();
        Some(
            keys.map(|(key, found)| (key, found.value))
                .collect::<Vec<_>>(),
        )
    };
    if keys(&since).is_none() || keys(&since) != keys(&edited.text) {
        return Ok(());
    }
    let told = format!(
        "{act:?}\nin {text:?}\ngives {:?}\nthen {since:?}",
        edited.text
    );
    let Ok((undone, _)) = back(format, &since, &edited.changes) else {
        return Ok(());
    };
    let own = format!("{sign} zz");
    let now = undone.lines().find(|line| line.contains(&own));
    prop_assert!(now.is_some(), "{told}\ngives {undone:?}");
    // The key that the line begins with, if it does.
    let name = |line: &str| {
        let line = line.trim_start_matches([' ', '-']);
        let end = line.find([':', '='])?;
        let name = line[..end].trim_end();
        let is_name = name
            .chars()
            .all(|c| c.is_alphanumeric() || "_.'\"-".contains(c));
        is_name.then(|| name.to_owned())
    };
    if let (Some(was), Some(is)) = (name(line), name(now.unwrap_or_default())) {
        prop_assert_eq!(is, was, "{}\ngives {:?}", told, undone);
    }
    Ok(())
}

macro_rules! pairs {
    ($($name:ident, $person:ident: $format:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
                    pair($format, &bytes)?;
                }
                #[test]
                fn $person(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
                    person($format, &bytes)?;
                }
            )*
        }
    };
}

pairs! {
    two_edits_of_json_go_back_in_any_order, a_remark_in_json_stays: Format::Json;
    two_edits_of_jsonc_go_back_in_any_order, a_remark_in_jsonc_stays: Format::Jsonc;
    two_edits_of_yaml_go_back_in_any_order, a_remark_in_yaml_stays: Format::Yaml;
    two_edits_of_toml_go_back_in_any_order, a_remark_in_toml_stays: Format::Toml;
    two_edits_of_ini_go_back_in_any_order, a_remark_in_ini_stays: Format::Ini;
    two_edits_of_env_go_back_in_any_order, a_remark_in_env_stays: Format::Env;
}
