//! Steps that the tables are made of. Each edit is also taken back and done again, byte for byte.

use backout_config::{
    Applied, ConfigError, Document, Edited, Format, KeyPath, NewValue, Value, apply, revert,
    revert_all,
};

pub(crate) fn key(text: &str) -> KeyPath {
    text.parse().unwrap()
}

pub(crate) fn plain(text: &str) -> NewValue {
    NewValue::Plain(text.to_owned())
}

pub(crate) fn text(text: &str) -> NewValue {
    NewValue::Text(text.to_owned())
}

pub(crate) fn raw(text: &str) -> NewValue {
    NewValue::Raw(text.to_owned())
}

pub(crate) fn json(text: &str) -> NewValue {
    NewValue::Typed(Value::from_json(text).unwrap())
}

fn parsed(format: Format, text: &str) -> Document<'_> {
    Document::parse(format, text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Sets a key, and holds the new text against what a person expects.
#[track_caller]
pub(crate) fn set(format: Format, before: &str, at: &str, value: &NewValue, after: &str) -> Edited {
    let edited = parsed(format, before).set(&key(at), value);
    let edited = edited.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(edited.text, after);
    goes_back(format, before, &edited);
    edited
}

/// Removes a key, likewise.
#[track_caller]
pub(crate) fn unset(format: Format, before: &str, at: &str, after: &str) -> Edited {
    let edited = parsed(format, before)
        .unset(&key(at))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(edited.text, after);
    goes_back(format, before, &edited);
    edited
}

/// Merges a patch, likewise.
#[track_caller]
pub(crate) fn merge(format: Format, before: &str, patch: &str, after: &str) -> Edited {
    let patch = Value::from_json(patch).unwrap();
    let edited = parsed(format, before)
        .merge(&patch)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(edited.text, after);
    goes_back(format, before, &edited);
    edited
}

/// An edit goes back and forth without a byte of difference.
#[track_caller]
pub(crate) fn goes_back(format: Format, before: &str, edited: &Edited) {
    assert_eq!(
        revert_all(format, &edited.text, &edited.changes).unwrap(),
        before
    );
    let mut text = before.to_owned();
    for change in &edited.changes {
        assert_eq!(revert(format, &text, change).unwrap(), Applied::Already);
        match apply(format, &text, change).unwrap() {
            Applied::Done(done) => text = done,
            Applied::Nearly { why, .. } => panic!("{}: {why}", change.key),
            Applied::Already => panic!("{} is not done already", change.key),
        }
        assert_eq!(apply(format, &text, change).unwrap(), Applied::Already);
    }
    assert_eq!(text, edited.text);
}

/// Takes an edit back in a text that somebody edited since.
#[track_caller]
pub(crate) fn reverts_in(format: Format, edited: &Edited, since: &str, expected: &str) {
    assert_eq!(
        revert_all(format, since, &edited.changes).unwrap_or_else(|error| panic!("{error}")),
        expected
    );
}

/// The refusal of a `set`.
#[track_caller]
pub(crate) fn refused(format: Format, before: &str, at: &str, value: &NewValue) -> ConfigError {
    let result = Document::parse(format, before).and_then(|document| document.set(&key(at), value));
    match result {
        Ok(edited) => panic!("not refused:\n{}", edited.text),
        Err(error) => error,
    }
}

/// The refusal of a `set`, in the words a person reads.
#[track_caller]
pub(crate) fn says(format: Format, before: &str, at: &str, value: &NewValue, words: &str) {
    assert_eq!(refused(format, before, at, value).to_string(), words);
}

/// What is wrong with a text.
#[track_caller]
pub(crate) fn broken(format: Format, text: &str, words: &str) {
    match Document::parse(format, text) {
        Ok(_) => panic!("not refused: {text}"),
        Err(error) => assert_eq!(error.to_string(), words),
    }
}

/// What a key means.
#[track_caller]
pub(crate) fn means(format: Format, text: &str, at: &str) -> Option<Value> {
    parsed(format, text)
        .get(&key(at))
        .unwrap_or_else(|error| panic!("{error}"))
        .map(|found| found.value)
}
