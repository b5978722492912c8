//! Stories of what others did between an edit and its undo: what they wrote stays where it is, and what is not as it was is said.

use backout_config::{
    Applied, ConfigError, Document, Edited, Format, KeyPath, NewValue, Value, revert,
};

use crate::steps::{key, plain};

fn set(format: Format, text: &str, at: &str, value: &str) -> Edited {
    let document = Document::parse(format, text).unwrap();
    document.set(&key(at), &plain(value)).unwrap()
}

fn unset(format: Format, text: &str, at: &str) -> Edited {
    let document = Document::parse(format, text).unwrap();
    document.unset(&key(at)).unwrap()
}

fn back(format: Format, text: &str, edited: &Edited) -> Applied {
    revert(format, text, edited.changes.first().unwrap()).unwrap()
}

/// The text after an undo that is exact or says what differs.
fn text_of(applied: Applied) -> String {
    match applied {
        Applied::Done(text) | Applied::Nearly { text, .. } => text,
        Applied::Already => panic!("nothing was done"),
    }
}

#[test]
fn the_comment_of_an_item_stays_when_the_one_behind_it_goes_and_a_line_came_below() {
    let appended = set(Format::Yaml, "l:\n  - p  # cp\n", "l[+]", "r");
    for below in ["k: 1\n", "# remark\nk: 1\n"] {
        let since = format!("{}{below}", appended.text);
        let done = Applied::Done(format!("l:\n  - p  # cp\n{below}"));
        assert_eq!(back(Format::Yaml, &since, &appended), done);
    }
}

#[test]
fn a_block_table_that_lost_all_its_keys_gets_them_back_as_lines_with_their_comments() {
    let text = "x: 1  # why\ny: 2\n";
    let first = unset(Format::Yaml, text, "x");
    let second = unset(Format::Yaml, &first.text, "y");
    let once = text_of(back(Format::Yaml, &second.text, &first));
    assert_eq!(once, "x: 1  # why\n");
    assert_eq!(text_of(back(Format::Yaml, &once, &second)), text);

    let text = "t:\n  x: 1  # why\n  y: 2 # too\nz: 3\n";
    let first = unset(Format::Yaml, text, "t.x");
    let second = unset(Format::Yaml, &first.text, "t.y");
    let once = text_of(back(Format::Yaml, &second.text, &first));
    assert_eq!(once, "t:\n  x: 1  # why\nz: 3\n");
    assert_eq!(text_of(back(Format::Yaml, &once, &second)), text);
}

#[test]
fn the_comment_behind_the_last_key_comes_back_with_it() {
    let text = "{\n  \"a\": 1,\n  \"z\": 9 // why nine\n}\n";
    let first = set(Format::Jsonc, text, "n", "7");
    let second = unset(Format::Jsonc, &first.text, "z");
    let once = text_of(back(Format::Jsonc, &second.text, &first));
    assert_eq!(text_of(back(Format::Jsonc, &once, &second)), text);

    let text = "{\n  \"a\": 1, // ca\n  \"b\": 2 // cb\n}\n";
    let gone = unset(Format::Jsonc, text, "b");
    let since = "{\n  \"a\": 1, // ca\n  \"c\": 2 // cc\n}\n";
    let now = text_of(back(Format::Jsonc, since, &gone));
    assert!(now.contains("\"b\": 2") && now.contains("// cb"), "{now}");
    assert!(now.contains("\"a\": 1, // ca\n"), "{now}");
    let cc = now.lines().find(|line| line.ends_with("// cc"));
    assert!(cc.is_some_and(|line| line.contains("\"c\": 2")), "{now}");
}

#[test]
fn a_comment_that_somebody_wrote_on_a_new_key_stands_in_the_way_of_its_undo() {
    for (format, text, at, sign) in [
        (Format::Yaml, "z: 1\n", "a", "#"),
        (Format::Toml, "z = 1\n", "a", "#"),
        (Format::Env, "Z=1\n", "A", "#"),
        (Format::Ini, "z = 1\n", "a", ";"),
        (Format::Jsonc, "{\n  \"z\": 1\n}\n", "a", "//"),
    ] {
        let edited = set(format, text, at, "2");
        let line = edited
            .text
            .lines()
            .find(|line| line.ends_with('2'))
            .unwrap();
        let since = edited.text.replace(line, &format!("{line} {sign} PERSON"));
        let error = revert(format, &since, &edited.changes[0]).unwrap_err();
        assert_eq!(error, ConfigError::Remarked { key: key(at) }, "{since}");
        let said = format!("`{at}` has a comment that somebody else wrote since");
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn a_deeper_line_that_may_be_a_key_is_no_value_to_replace() {
    let text = "[user]\nname = X\n  email = y@z\n";
    let document = Document::parse(Format::Ini, text).unwrap();
    for refused in [
        document.set(&key("user.name"), &plain("NEW")),
        document.unset(&key("user.name")),
    ] {
        assert!(
            matches!(refused, Err(ConfigError::Unsupported { .. })),
            "{refused:?}"
        );
    }
    // What no reader takes for a key is a value of several lines.
    let text = "[a]\ndeps =\n  one\n  two\n";
    assert_eq!(
        set(Format::Ini, text, "a.deps", "x").text,
        "[a]\ndeps = x\n"
    );
}

#[test]
fn a_table_that_two_edits_made_and_that_is_left_empty_is_told() {
    let first = set(Format::Yaml, "a: 1\n", "t.x", "1");
    let second = set(Format::Yaml, &first.text, "t.z", "2");
    let once = text_of(back(Format::Yaml, &second.text, &first));
    assert_eq!(once, "a: 1\nt:\n  z: 2\n");
    let Applied::Nearly { text, why } = back(Format::Yaml, &once, &second) else {
        panic!("it is not as it was");
    };
    assert_eq!(text, "a: 1\nt: {}\n");
    assert!(why.contains("empty"), "{why}");
}

#[test]
fn neighbours_that_went_one_after_the_other_come_back_or_it_is_said_that_the_order_may_differ() {
    let text = "A=1\nB=2\nC=3\n";
    let first = unset(Format::Env, text, "A");
    let second = unset(Format::Env, &first.text, "B");
    let once = text_of(back(Format::Env, &second.text, &first));
    assert_eq!(once, "A=1\nC=3\n");
    let twice = back(Format::Env, &once, &second);
    assert!(matches!(&twice, Applied::Nearly { why, .. } if why.contains("place")));
    assert_eq!(text_of(twice), text);
}

#[test]
fn a_key_keeps_its_indent_when_another_came_where_it_was() {
    let text = "{\n    \"a\": 1\n}\n";
    let first = unset(Format::Json, text, "a");
    let second = set(Format::Json, &first.text, "n", "1");
    let once = text_of(back(Format::Json, &second.text, &first));
    assert_eq!(text_of(back(Format::Json, &once, &second)), text);
}

#[test]
fn an_integer_and_a_float_are_two_values() {
    for (format, one, two) in [
        (Format::Toml, "a = 77\n", "a = 77.0\n"),
        (Format::Yaml, "a: 77\n", "a: 77.0\n"),
    ] {
        assert_eq!(set(format, one, "a", "77.0").text, two);
        let typed = NewValue::Typed(Value::Number("77.0".into()));
        let document = Document::parse(format, one).unwrap();
        assert_eq!(document.set(&key("a"), &typed).unwrap().text, two);
    }
    let edited = set(Format::Toml, "a = 1\n", "a", "5");
    let error = revert(Format::Toml, "a = 5.0\n", &edited.changes[0]).unwrap_err();
    assert!(matches!(error, ConfigError::Conflict { .. }));
}

#[test]
fn a_key_of_thousands_of_steps_is_refused() {
    let long = vec!["a"; 20_000].join(".");
    let refused = long.parse::<KeyPath>();
    assert!(matches!(refused, Err(ConfigError::KeySyntax { .. })));
    let deepest = vec!["a"; 128].join(".");
    assert_eq!(deepest.parse::<KeyPath>().unwrap().segments().len(), 128);
}

#[test]
fn what_is_wrong_is_named_and_so_is_the_way_out() {
    let refused = |format, text, at: &str| {
        let document = Document::parse(format, text).unwrap();
        document.set(&key(at), &plain("1")).unwrap_err()
    };
    let error = refused(Format::Json, "{}", "zz[0]");
    assert_eq!(
        error.to_string(),
        "`zz[0]` is out of range: there is no list"
    );
    let error = refused(Format::Env, "A=1\n", "A.B");
    assert!(matches!(error, ConfigError::NoSuchKeys { .. }));
    let error = refused(Format::Ini, "[s]\na = 1\n", "s.\"k=z\"");
    assert!(matches!(error, ConfigError::NoSuchKeys { .. }));
    let list = Value::List(Vec::new());
    let document = Document::parse(Format::Json, "{}").unwrap();
    let error = document.merge(&list).unwrap_err();
    assert_eq!(
        error.next(),
        "write it like `{\"server\": {\"port\": 8080}}`"
    );
}

#[test]
fn a_comment_on_a_table_stays_there_when_its_only_key_comes_back() {
    let edited = unset(Format::Yaml, "a:\n  a: 1\n", "a.a");
    assert_eq!(edited.text, "a: {}\n");
    let now = back(Format::Yaml, "a: {} # PERSON\n", &edited);
    assert_eq!(text_of(now), "a: # PERSON\n  a: 1\n");
}
