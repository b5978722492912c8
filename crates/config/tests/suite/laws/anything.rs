//! No text, however broken, brings the crate down; and whatever it accepts it puts back.

use backout_config::{Document, Format, KeyPath, NewValue, Segment, Value, diff, revert_all};
use proptest::prelude::*;

use super::dice::Dice;

/// Does all there is to do with a text.
fn exercise(format: Format, text: &str, dice: &mut Dice<'_>) -> Result<(), TestCaseError> {
    let Ok(document) = Document::parse(format, text) else {
        return Ok(());
    };
    prop_assert_eq!(diff(format, text, text).unwrap_or_default(), Vec::new());
    let mut keys = vec![KeyPath::of_names(["new"]), KeyPath::of_names(["a", "new"])];
    for (key, _) in document.keys().unwrap_or_default() {
        prop_assert_eq!(
            &key.to_string().parse::<KeyPath>().unwrap_or_default(),
            &key
        );
        let up = key.prefix(key.segments().len().saturating_sub(1));
        keys.extend([
            up.child(Segment::Append),
            up.child(Segment::Name("new".into())),
            up,
            key,
        ]);
    }
    let patch = Value::Map(vec![
        ("a".into(), Value::Null),
        ("b".into(), Value::Text("x: 'y'".into())),
    ]);
    let some = |dice: &mut Dice<'_>| keys[dice.roll(keys.len())].clone();
    for edited in [
        document.set(&some(dice), &NewValue::Plain("8080".into())),
        document.set(&some(dice), &NewValue::Text("it's \"so\"".into())),
        document.set(&some(dice), &NewValue::Raw("[1]".into())),
        document.unset(&some(dice)),
        document.merge(&patch),
    ] {
        let Ok(edited) = edited else { continue };
        let back = revert_all(format, &edited.text, &edited.changes);
        prop_assert_eq!(
            back.as_deref(),
            Ok(text),
            "{:?} gives {:?}",
            text,
            edited.text
        );
    }
    Ok(())
}

/// A valid text with a few characters put in, taken out or moved.
fn hurt(text: &str, dice: &mut Dice<'_>) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=dice.roll(4) {
        if chars.is_empty() {
            break;
        }
        let at = (dice.roll(256) * 256 + dice.roll(256)) % chars.len();
        match dice.roll(4) {
            0 => {
                chars.remove(at);
            }
            1 => chars.insert(
                at,
                dice.pick(&[
                    "\n", "\"", "'", ":", "#", " ", "[", "]", "{", "}", ",", "=", "-", "&", "*",
                    "!", "|", "\t", "\r", "\\", ".", "<",
                ])
                .chars()
                .next()
                .unwrap(),
            ),
            2 => chars.truncate(at),
            _ => {
                let other = dice.roll(chars.len());
                chars.swap(at, other);
            }
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_hurt_text_is_refused_or_put_back(format in 0_usize..6, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let format = Format::ALL[format];
        let mut dice = Dice::new(&bytes);
        let text = super::texts::document(format, &mut dice);
        let text = hurt(&text, &mut dice);
        exercise(format, &text, &mut dice)?;
    }

    #[test]
    fn any_text_is_refused_or_put_back(format in 0_usize..6, text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 8)) {
        exercise(Format::ALL[format], &text, &mut Dice::new(&bytes))?;
    }

    #[test]
    fn any_signs_are_refused_or_put_back(format in 0_usize..6, text in "[-a:=#;\\[\\]{},.\"'&*!|> \\n\\r\\t1\\\\/$<?%@`~\\u{feff}\\u{85}é]{0,40}", bytes in prop::collection::vec(any::<u8>(), 8)) {
        exercise(Format::ALL[format], &text, &mut Dice::new(&bytes))?;
    }

    #[test]
    fn any_bytes_are_refused_or_read(format in 0_usize..6, bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(document) = Document::from_bytes(Format::ALL[format], &bytes) {
            prop_assert_eq!(document.text().as_bytes(), &bytes[..]);
        }
    }

    #[test]
    fn any_key_is_printed_as_it_parses(names in prop::collection::vec(prop_oneof![any::<String>().prop_map(Segment::Name), any::<usize>().prop_map(Segment::Index), Just(Segment::Append)], 1..5)) {
        let key = KeyPath::new(names);
        prop_assert_eq!(key.to_string().parse::<KeyPath>().unwrap(), key);
    }
}
