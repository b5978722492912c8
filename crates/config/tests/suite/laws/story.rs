//! A random document, a random edit, a random edit of others, and the way back.

use backout_config::{
    ConfigError, Document, Edited, Format, KeyPath, NewValue, Segment, Value, revert_all,
};
use proptest::prelude::*;

use super::dice::Dice;
use super::texts::{NAMES, document};

/// What somebody does.
#[derive(Debug)]
pub(super) enum Act {
    Set(KeyPath, NewValue),
    Unset(KeyPath),
    Merge(Value),
}

pub(super) fn act(format: Format, text: &str, dice: &mut Dice<'_>) -> Act {
    match dice.roll(5) {
        0 | 1 => Act::Set(some_key(format, text, dice), new_value(dice)),
        2 => Act::Set(new_key(format, text, dice), new_value(dice)),
        3 => Act::Unset(some_key(format, text, dice)),
        _ => Act::Merge(patch(format, dice)),
    }
}

/// A key that is there, of a single value or of what holds some.
fn some_key(format: Format, text: &str, dice: &mut Dice<'_>) -> KeyPath {
    let keys = Document::parse(format, text).and_then(|document| {
        let keys = document.keys()?;
        Ok(keys.into_iter().map(|(key, _)| key).collect::<Vec<_>>())
    });
    let keys = keys.unwrap_or_default();
    let Some(key) = keys.get(dice.roll(keys.len())) else {
        return new_key(format, text, dice);
    };
    let up = if dice.once_in(4) { dice.roll(3) } else { 0 };
    key.prefix(key.segments().len().saturating_sub(up).max(1))
}

fn new_key(format: Format, text: &str, dice: &mut Dice<'_>) -> KeyPath {
    let name = |dice: &mut Dice<'_>| match format {
        Format::Env => Segment::Name((*dice.pick(&["NEW", "N_2", "A"])).to_owned()),
        Format::Json | Format::Jsonc | Format::Yaml | Format::Toml | Format::Ini => {
            Segment::Name((*dice.pick(&["new", "fresh", "p q", "on", "a", "x.y"])).to_owned())
        }
    };
    if format == Format::Env {
        return KeyPath::new(vec![name(dice)]);
    }
    let mut key = match dice.roll(3) {
        0 => KeyPath::default(),
        1 => {
            let known = some_key_or_none(format, text, dice);
            known.prefix(known.segments().len().saturating_sub(1))
        }
        _ => some_key_or_none(format, text, dice),
    };
    let most = if format == Format::Ini {
        2_usize.saturating_sub(key.segments().len()).max(1)
    } else {
        3
    };
    for _ in 0..=dice.roll(most) {
        key = key.child(if dice.once_in(8) && format != Format::Ini {
            Segment::Append
        } else {
            name(dice)
        });
    }
    key
}

fn some_key_or_none(format: Format, text: &str, dice: &mut Dice<'_>) -> KeyPath {
    let has_keys = Document::parse(format, text)
        .and_then(|d| d.keys())
        .is_ok_and(|keys| !keys.is_empty());
    if has_keys && !dice.is_out() {
        some_key(format, text, dice)
    } else {
        KeyPath::default()
    }
}

fn new_value(dice: &mut Dice<'_>) -> NewValue {
    let word = (*dice.pick(&[
        "8080",
        "hello",
        "no",
        "two words",
        "",
        "it's",
        "a: b # c",
        "é\n\"x\"",
        "0x1f",
        "true",
        "- a",
        "[x",
        "$Y `z`",
        " pad ",
        "1e3",
    ]))
    .to_owned();
    match dice.roll(4) {
        0 => NewValue::Text(word),
        1 => NewValue::Plain(word),
        _ => NewValue::Typed(value(dice, 0)),
    }
}

fn value(dice: &mut Dice<'_>, depth: usize) -> Value {
    match dice.roll(8) {
        0 => Value::Bool(true),
        1 | 2 => {
            Value::Number((*dice.pick(&["1", "-2.5", "1e3", "12345678901234567", "0"])).to_owned())
        }
        3 if depth < 3 => Value::List((0..dice.roll(4)).map(|_| value(dice, depth + 1)).collect()),
        4 if depth < 3 => {
            let names = super::texts::names(dice, 3);
            Value::Map(
                names
                    .into_iter()
                    .map(|name| (name.to_owned(), value(dice, depth + 1)))
                    .collect(),
            )
        }
        _ => Value::Text(
            (*dice.pick(&[
                "text",
                "off",
                "",
                "q'\"\\",
                "line\nline",
                "2024-01-01",
                "#x",
                "~",
            ]))
            .to_owned(),
        ),
    }
}

fn patch(format: Format, dice: &mut Dice<'_>) -> Value {
    fn table(dice: &mut Dice<'_>, depth: usize) -> Value {
        let mut members: Vec<(String, Value)> = Vec::new();
        for _ in 0..dice.roll(4) {
            let name = dice.pick(&NAMES).to_owned();
            let value = match dice.roll(4) {
                0 => Value::Null,
                1 if depth > 0 => table(dice, depth - 1),
                _ => value(dice, 2),
            };
            if !members.iter().any(|(known, _)| *known == name) {
                members.push((name, value));
            }
        }
        Value::Map(members)
    }
    table(
        dice,
        match format {
            Format::Env => 0,
            Format::Ini => 1,
            Format::Json | Format::Jsonc | Format::Yaml | Format::Toml => 2,
        },
    )
}

pub(super) fn perform(format: Format, text: &str, act: &Act) -> Result<Edited, ConfigError> {
    let document = Document::parse(format, text)?;
    match act {
        Act::Set(key, value) => document.set(key, value),
        Act::Unset(key) => document.unset(key),
        Act::Merge(patch) => document.merge(patch),
    }
}

/// All single values of a text with what they mean, but those below the given keys and the tables that hold them.
fn others(format: Format, text: &str, but: &[&KeyPath]) -> Vec<(KeyPath, String, Value)> {
    let document = Document::parse(format, text).unwrap();
    let keys = document.keys().unwrap().into_iter();
    let kept = keys.filter(|(key, _)| !but.iter().any(|other| related(key, other)));
    let mut kept: Vec<_> = kept
        .map(|(key, found)| (key, found.raw.to_owned(), found.value))
        .collect();
    kept.sort_by(|a, b| a.0.cmp(&b.0));
    kept
}

/// Whether one key is the other, or is above it.
pub(super) fn related(one: &KeyPath, two: &KeyPath) -> bool {
    one.segments()
        .iter()
        .zip(two.segments())
        .all(|(a, b)| a == b)
}

fn one_edit(format: Format, bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut dice = Dice::new(bytes);
    let text = document(format, &mut dice);
    let parsed = Document::parse(format, &text);
    prop_assert!(parsed.is_ok(), "{} in {text:?}", parsed.unwrap_err());
    if others_are_unreadable(format, &text) {
        return Ok(());
    }
    let act = act(format, &text, &mut dice);
    let edited = match perform(format, &text, &act) {
        Ok(edited) => edited,
        Err(ConfigError::Disturbs { key }) => {
            return Err(TestCaseError::fail(format!(
                "{key} disturbs: {act:?} in {text:?}"
            )));
        }
        Err(_) => return Ok(()),
    };
    let told = format!("{act:?}\nin {text:?}\ngives {:?}", edited.text);
    let back = revert_all(format, &edited.text, &edited.changes);
    prop_assert_eq!(back.as_deref(), Ok(text.as_str()), "{}", told);
    let changed: Vec<&KeyPath> = edited.changes.iter().map(|change| &change.key).collect();
    prop_assert_eq!(
        others(format, &text, &changed),
        others(format, &edited.text, &changed),
        "{}",
        told
    );
    if let Act::Set(key, NewValue::Typed(value)) = &act
        && !key.segments().contains(&Segment::Append)
    {
        let now = Document::parse(format, &edited.text).unwrap();
        let found = now.get(key).unwrap().unwrap().value;
        let as_text = matches!(format, Format::Ini | Format::Env);
        prop_assert!(as_text || value.means(&found), "{found:?} {told}");
    }
    meanwhile(format, &text, &edited, &mut dice, &told)?;
    remarked(format, &text, &edited, &mut dice, &told)
}

/// Others write a remark or a blank line somewhere; then the edit is taken back, and their line stays.
fn remarked(
    format: Format,
    text: &str,
    edited: &Edited,
    dice: &mut Dice<'_>,
    told: &str,
) -> Result<(), TestCaseError> {
    let changed: Vec<&KeyPath> = edited.changes.iter().map(|change| &change.key).collect();
    let Some((since, at)) = with_remark(format, &edited.text, dice) else {
        return Ok(());
    };
    let told = format!("{told}\nthen {since:?}");
    // A parent that was made for the key stays, empty, if their line is in it, also where nothing was.
    let keys = |text: &str| {
        let mut keys = others(format, text, &[]);
        keys.retain(|(_, _, value)| {
            !matches!(value, Value::Null) && *value != Value::Map(Vec::new())
        });
        keys
    };
    let same = Document::parse(format, &since).is_ok_and(|document| document.keys().is_ok());
    if !same || keys(&since) != keys(&edited.text) {
        return Ok(());
    }
    // Inside of what was set, a remark is a change of it.
    let document = Document::parse(format, &edited.text).unwrap();
    let inside = changed.iter().any(|key| {
        document.get(key).ok().flatten().is_some_and(|found| {
            let start = found.raw.as_ptr() as usize - edited.text.as_ptr() as usize;
            let name = edited
                .text
                .get(..start)
                .unwrap_or_default()
                .trim_end()
                .len();
            (name..=start + found.raw.len()).contains(&at)
        })
    });
    if inside {
        return Ok(());
    }
    let back = revert_all(format, &since, &edited.changes);
    prop_assert!(back.is_ok(), "{} {}", back.unwrap_err(), told);
    let back = back.unwrap();
    prop_assert_eq!(
        back.matches("zz").count(),
        since.matches("zz").count(),
        "{} gives {:?}",
        told,
        back
    );
    prop_assert_eq!(keys(&back), keys(text), "{} gives {:?}", told, back);
    Ok(())
}

/// The text with one line more, and where it was put.
fn with_remark(format: Format, text: &str, dice: &mut Dice<'_>) -> Option<(String, usize)> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    let at = starts[dice.roll(starts.len())];
    let indent: String = text.get(at..)?.chars().take_while(|c| *c == ' ').collect();
    let sign = match format {
        Format::Json => "",
        Format::Jsonc => "// zz",
        Format::Ini => "; zz",
        Format::Yaml | Format::Toml | Format::Env => "# zz",
    };
    let at = if at == 0 && text.starts_with('\u{feff}') {
        3
    } else {
        at
    };
    let (above, below) = text.split_at(at);
    Some((format!("{above}{indent}{sign}\n{below}"), at))
}

fn others_are_unreadable(format: Format, text: &str) -> bool {
    Document::parse(format, text)
        .and_then(|document| document.keys())
        .is_err()
}

/// Others edit another key; then the edit is taken back.
fn meanwhile(
    format: Format,
    text: &str,
    edited: &Edited,
    dice: &mut Dice<'_>,
    told: &str,
) -> Result<(), TestCaseError> {
    let changed: Vec<&KeyPath> = edited.changes.iter().map(|change| &change.key).collect();
    let foreign = act(format, &edited.text, dice);
    let Ok(since) = perform(format, &edited.text, &foreign) else {
        return Ok(());
    };
    let theirs: Vec<&KeyPath> = since.changes.iter().map(|change| &change.key).collect();
    if theirs
        .iter()
        .any(|key| changed.iter().any(|own| related(key, own)))
    {
        return Ok(());
    }
    let told = format!("{told}\nthen {foreign:?}\ngives {:?}", since.text);
    let back = match revert_all(format, &since.text, &edited.changes) {
        Ok(back) => back,
        // A list on the way has another length now, so its indices may mean other items; or others made the parent what it was not.
        Err(
            ConfigError::Moved { .. } | ConfigError::WrongKind { .. } | ConfigError::Shared { .. },
        ) => return Ok(()),
        Err(error) => return Err(TestCaseError::fail(format!("{error}\n{told}"))),
    };
    // Every key of others is as they left it, and ours are as before.
    prop_assert_eq!(
        others(format, &back, &changed),
        others(format, &since.text, &changed),
        "{} gives {:?}",
        told,
        back
    );
    let (now, was) = (
        Document::parse(format, &back).unwrap(),
        Document::parse(format, text).unwrap(),
    );
    for key in &changed {
        let value =
            |document: &Document<'_>| document.get(key).ok().flatten().map(|found| found.value);
        prop_assert_eq!(
            value(&now),
            value(&was),
            "{} {} gives {:?}",
            key,
            told,
            back
        );
    }
    // If they only gave other values, not one byte is different from what they alone would have left.
    if since
        .changes
        .iter()
        .all(|change| change.before.is_some() && change.after.is_some() && change.patch.is_none())
        && let Ok(alone) = perform(format, text, &foreign)
        && alone
            .changes
            .iter()
            .map(|change| &change.after)
            .eq(since.changes.iter().map(|change| &change.after))
    {
        prop_assert_eq!(&back, &alone.text, "{}", told);
    }
    Ok(())
}

macro_rules! stories {
    ($($name:ident: $format:expr;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
            $(
                #[test]
                fn $name(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
                    one_edit($format, &bytes)?;
                }
            )*
        }
    };
}

stories! {
    json_goes_back_whatever_others_did: Format::Json;
    jsonc_goes_back_whatever_others_did: Format::Jsonc;
    yaml_goes_back_whatever_others_did: Format::Yaml;
    toml_goes_back_whatever_others_did: Format::Toml;
    ini_goes_back_whatever_others_did: Format::Ini;
    env_goes_back_whatever_others_did: Format::Env;
}
