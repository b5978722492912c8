//! What is said to a program that edits keys by itself, and what a person can do about it.

use backout_config::{
    ConfigError, Document, Edited, Format, KeyPath, MERGE_READ_MAX, NewValue, VALUES_MAX, Value,
    revert,
};

fn set(format: Format, text: &str, key: &str, value: &str) -> Edited {
    let document = Document::parse(format, text).unwrap();
    let value = NewValue::Plain(value.to_owned());
    document.set(&key.parse().unwrap(), &value).unwrap()
}

#[test]
fn a_key_that_somebody_changed_since_is_told_with_both_values() {
    let edited = set(Format::Toml, "a = 1\n", "a", "2");
    let error = revert(Format::Toml, "a = 3\n", &edited.changes[0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`a` was changed since: expected `2`, found `3`"
    );
    assert_eq!(error.next(), "look at the key and decide by hand");
    let error = revert(Format::Toml, "b = 3\n", &edited.changes[0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`a` was changed since: expected `2`, found nothing"
    );
}

#[test]
fn an_item_of_a_list_that_changed_since_may_be_another() {
    let edited = set(Format::Json, r#"{"l": [{"a": 1}]}"#, "l[0].a", "2");
    let changed = r#"{"l": [{"a": 7}, {"a": 2}]}"#;
    let error = revert(Format::Json, changed, &edited.changes[0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the list `l` was changed since, and `l[0].a` may mean another item"
    );
    assert_eq!(error.next(), "look at the key and decide by hand");
}

#[test]
fn a_key_that_is_not_understood_says_how_keys_are_written() {
    let error = "a b".parse::<KeyPath>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "column 2 of the key `a b`: a `.` or `[` is needed here; put such a name in double quotes"
    );
    assert_eq!(
        error.next(),
        "write names with other characters in double quotes: a.\"b.c\".d"
    );
}

#[test]
fn what_would_take_too_long_is_refused_before_it_begins() {
    let over = |error: ConfigError, said: &str| {
        assert_eq!(error.to_string(), said);
        assert_eq!(error.next(), "edit the file as a whole");
    };
    let text = format!("[{}1]", "1,".repeat(VALUES_MAX));
    over(
        Document::parse(Format::Json, &text).unwrap_err(),
        &format!("the number of values is over the limit of {VALUES_MAX}"),
    );
    let text = format!("#{}\nA=1\n", " ".repeat(32 << 20));
    let members = (0..65).map(|number| (format!("A{number}"), Value::Text("1".to_owned())));
    let document = Document::parse(Format::Env, &text).unwrap();
    over(
        document.merge(&Value::Map(members.collect())).unwrap_err(),
        &format!(
            "the number of bytes that this merge has to read is over the limit of {MERGE_READ_MAX}"
        ),
    );
}

#[test]
fn a_number_that_json_does_not_have_is_not_written_into_it() {
    let document = Document::parse(Format::Json, r#"{"a": 1}"#).unwrap();
    let infinite = NewValue::Typed(Value::Number("inf".to_owned()));
    let error = document.set(&"a".parse().unwrap(), &infinite).unwrap_err();
    assert_eq!(
        error.to_string(),
        "json cannot hold this value: JSON has no such value"
    );
}
