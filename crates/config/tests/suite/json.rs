//! JSON and JSON with comments.

use backout_config::{ConfigError, Format, Value};

use crate::steps::{
    broken, json, means, merge, plain, raw, refused, reverts_in, says, set, text, unset,
};

const J: Format = Format::Json;
const C: Format = Format::Jsonc;

const PACKAGE: &str = r#"{
  "name": "app",
  "version": "1.0.0",
  "scripts": {
    "build": "make"
  },
  "files": ["a", "b"]
}
"#;

#[test]
fn a_value_is_replaced_and_nothing_else() {
    set(
        J,
        PACKAGE,
        "version",
        &plain("1.0.1"),
        &PACKAGE.replace("1.0.0", "1.0.1"),
    );
    set(
        J,
        PACKAGE,
        "scripts.build",
        &plain("make all"),
        &PACKAGE.replace("make", "make all"),
    );
    set(
        J,
        PACKAGE,
        "files[1]",
        &plain("c"),
        &PACKAGE.replace("\"b\"", "\"c\""),
    );
    set(
        C,
        "{\n  // on\n  \"a\": 1, // one\n}\n",
        "a",
        &plain("2"),
        "{\n  // on\n  \"a\": 2, // one\n}\n",
    );
    set(J, "{\"a\": true}", "a", &plain("null"), "{\"a\": null}");
    set(
        J,
        "{\"a\": {\"b\": 1}}",
        "a",
        &json("[1, 2]"),
        "{\"a\": [1, 2]}",
    );
    set(J, "[1, 2]", "[0]", &plain("3"), "[3, 2]");
}

#[test]
fn a_new_key_looks_like_its_neighbours() {
    set(J, "{\"a\":1}", "b", &plain("2"), "{\"a\":1,\"b\":2}");
    set(J, "{\"a\": 1}", "b", &plain("2"), "{\"a\": 1, \"b\": 2}");
    set(J, "{}\n", "b", &plain("2"), "{\n  \"b\": 2\n}\n");
    set(
        J,
        "{\n\t\"a\": 1\n}",
        "b",
        &plain("x"),
        "{\n\t\"a\": 1,\n\t\"b\": \"x\"\n}",
    );
    set(
        J,
        "{\r\n    \"a\": {}\r\n}\r\n",
        "a.b",
        &plain("1"),
        "{\r\n    \"a\": {\r\n        \"b\": 1\r\n    }\r\n}\r\n",
    );
    set(
        J,
        PACKAGE,
        "scripts.test",
        &plain("make test"),
        &PACKAGE.replace("\"make\"", "\"make\",\n    \"test\": \"make test\""),
    );
    set(
        J,
        PACKAGE,
        "engines.node.min",
        &plain("18"),
        &PACKAGE.replace(
            "\"b\"]",
            "\"b\"],\n  \"engines\": {\n    \"node\": {\n      \"min\": 18\n    }\n  }",
        ),
    );
    set(
        C,
        "{\n  \"a\": 1 // one\n}",
        "b",
        &plain("2"),
        "{\n  \"a\": 1, // one\n  \"b\": 2\n}",
    );
    set(
        C,
        "{\n  \"a\": 1, // one\n}",
        "b",
        &plain("2"),
        "{\n  \"a\": 1, // one\n  \"b\": 2,\n}",
    );
    set(
        C,
        "{\n  // nothing yet\n}",
        "b",
        &plain("2"),
        "{\n  // nothing yet\n  \"b\": 2\n}",
    );
    set(
        C,
        "{ /* x */ }",
        "b",
        &plain("2"),
        "{ /* x */\n  \"b\": 2\n }",
    );
}

#[test]
fn a_list_grows_at_its_end_and_goes_back_as_a_whole() {
    set(
        J,
        "{\"l\": [1, 2]}",
        "l[+]",
        &plain("3"),
        "{\"l\": [1, 2, 3]}",
    );
    set(J, "{\"l\": []}", "l[+]", &plain("3"), "{\"l\": [3]}");
    set(
        C,
        "[\n  1, // one\n]\n",
        "[+]",
        &plain("2"),
        "[\n  1, // one\n  2,\n]\n",
    );
    let edited = unset(
        J,
        "{\"l\": [1, 2, 3], \"k\": 0}",
        "l[1]",
        "{\"l\": [1, 3], \"k\": 0}",
    );
    reverts_in(
        J,
        &edited,
        "{\"l\": [1, 3], \"k\": 9}",
        "{\"l\": [1, 2, 3], \"k\": 9}",
    );
    assert_eq!(edited.changes[0].key.to_string(), "l");
}

#[test]
fn a_key_goes_with_its_comma_and_its_comment_behind() {
    unset(J, "{\"a\": 1, \"b\": 2}", "a", "{\"b\": 2}");
    unset(J, "{\"a\": 1, \"b\": 2}", "b", "{\"a\": 1}");
    unset(J, "{\n  \"a\": 1\n}\n", "a", "{}\n");
    unset(
        J,
        PACKAGE,
        "version",
        &PACKAGE.replace("  \"version\": \"1.0.0\",\n", ""),
    );
    unset(
        J,
        PACKAGE,
        "files",
        &PACKAGE.replace(",\n  \"files\": [\"a\", \"b\"]", ""),
    );
    unset(
        J,
        PACKAGE,
        "scripts.build",
        &PACKAGE.replace("{\n    \"build\": \"make\"\n  }", "{}"),
    );
    unset(
        C,
        "{\n  \"a\": 1, // one\n  // above\n  \"b\": 2 // two\n}",
        "b",
        "{\n  \"a\": 1 // one\n  // above\n}",
    );
    unset(
        C,
        "{\n  \"a\": 1, // one\n  \"b\": 2, // two\n}",
        "b",
        "{\n  \"a\": 1, // one\n}",
    );
    unset(C, "{\n  /* x */ \"a\": 1\n}", "a", "{\n  /* x */ \n}");
    unset(
        C,
        "{ \"a\": 1, // one\n \"b\": 2 }",
        "b",
        "{ \"a\": 1 // one\n }",
    );
}

#[test]
fn a_patch_is_merged_leaf_by_leaf() {
    let edited = merge(
        J,
        PACKAGE,
        r#"{"version": "2.0.0", "files": null, "scripts": {"test": "t", "lint": "l"}, "none": null}"#,
        &PACKAGE
            .replace("1.0.0", "2.0.0")
            .replace(",\n  \"files\": [\"a\", \"b\"]", "")
            .replace(
                "\"make\"",
                "\"make\",\n    \"test\": \"t\",\n    \"lint\": \"l\"",
            ),
    );
    let keys: Vec<String> = edited
        .changes
        .iter()
        .map(|change| change.key.to_string())
        .collect();
    assert_eq!(keys, ["version", "files", "scripts.test", "scripts.lint"]);
    merge(
        J,
        "{}",
        r#"{"a": {"b": 1, "c": {"d": 2}}}"#,
        "{\n  \"a\": {\n    \"b\": 1,\n    \"c\": {\n      \"d\": 2\n    }\n  }\n}",
    );
}

#[test]
fn what_others_did_meanwhile_stays() {
    let edited = set(
        J,
        PACKAGE,
        "engines.node",
        &plain("x"),
        &PACKAGE.replace(
            "\"b\"]",
            "\"b\"],\n  \"engines\": {\n    \"node\": \"x\"\n  }",
        ),
    );
    // Another key of the table that was made for it: only the key goes.
    let since = edited
        .text
        .replace("\"node\": \"x\"", "\"node\": \"x\",\n    \"npm\": \"9\"");
    reverts_in(
        J,
        &edited,
        &since,
        &edited.text.replace("\"node\": \"x\"", "\"npm\": \"9\""),
    );
    // The neighbours changed: the table goes all the same.
    let since = edited
        .text
        .replace("[\"a\", \"b\"]", "[]")
        .replace("app", "apple");
    reverts_in(
        J,
        &edited,
        &since,
        &PACKAGE
            .replace("[\"a\", \"b\"]", "[]")
            .replace("app", "apple"),
    );

    let edited = unset(
        J,
        PACKAGE,
        "version",
        &PACKAGE.replace("  \"version\": \"1.0.0\",\n", ""),
    );
    // The neighbour before it is gone: it comes back before the one behind it.
    let since = edited.text.replace("  \"name\": \"app\",\n", "");
    reverts_in(
        J,
        &edited,
        &since,
        &PACKAGE.replace("  \"name\": \"app\",\n", ""),
    );
    // Both are gone: it comes back before the first of those that stood behind it.
    let since = "{\n  \"files\": []\n}\n";
    reverts_in(
        J,
        &edited,
        since,
        "{\n  \"version\": \"1.0.0\",\n  \"files\": []\n}\n",
    );
}

#[test]
fn a_key_that_somebody_changed_is_a_conflict() {
    let edited = set(
        J,
        "{\"a\": 1, \"b\": 1}",
        "a",
        &plain("2"),
        "{\"a\": 2, \"b\": 1}",
    );
    let change = &edited.changes[0];
    let error = backout_config::revert(J, "{\"a\": 3, \"b\": 1}", change).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`a` was changed since: expected `2`, found `3`"
    );
    let error = backout_config::revert(J, "{\"b\": 1}", change).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`a` was changed since: expected `2`, found nothing"
    );
    // Spelled otherwise is not changed.
    let edited = set(J, "{\"a\": \"x\"}", "a", &plain("é"), "{\"a\": \"é\"}");
    reverts_in(J, &edited, "{\"a\": \"\\u00e9\"}", "{\"a\": \"x\"}");
}

#[test]
fn an_index_that_may_mean_another_item_is_a_conflict() {
    let before = r#"{"l": [{"name": "x", "port": 1}, {"name": "y", "port": 2}]}"#;
    let edited = set(
        J,
        before,
        "l[1].port",
        &plain("1"),
        &before.replace('2', "1"),
    );
    let swapped = r#"{"l": [{"name": "y", "port": 1}, {"name": "x", "port": 1}]}"#;
    let longer =
        r#"{"l": [{"name": "z", "port": 1}, {"name": "x", "port": 1}, {"name": "y", "port": 1}]}"#;
    for since in [swapped, longer] {
        let error = backout_config::revert(J, since, &edited.changes[0]).unwrap_err();
        assert!(matches!(error, ConfigError::Moved { .. }), "{error}");
    }
}

#[test]
fn values_are_what_they_say() {
    assert_eq!(
        means(J, "{\"a\": 1.50}", "a"),
        Some(Value::Number("1.50".into()))
    );
    assert_eq!(
        means(J, "{\"a\": \"\\ud83d\\ude00\"}", "a"),
        Some(Value::Text("😀".into()))
    );
    assert_eq!(means(J, "{\"a\": 1}", "b"), None);
    let big = "12345678901234567890123";
    set(
        J,
        "{\"a\": 1}",
        "a",
        &plain(big),
        &format!("{{\"a\": {big}}}"),
    );
    set(
        J,
        "{\"a\": \"\"}",
        "a",
        &text("no \"way\"\n"),
        "{\"a\": \"no \\\"way\\\"\\n\"}",
    );
    set(J, "{\"a\": 0}", "a", &raw("[ 1,2 ]"), "{\"a\": [ 1,2 ]}");
    set(
        J,
        "{\"a\": \"x\"}",
        "a",
        &plain("2024-01-01"),
        "{\"a\": \"2024-01-01\"}",
    );
}

#[test]
fn an_unclear_value_is_refused_with_the_way_out() {
    says(
        J,
        "{\"port\": \"80\"}",
        "port",
        &plain("8080"),
        "`port` is a text (line 1, column 10), and `8080` would make it a number",
    );
    says(
        J,
        "{\"a\": {}}",
        "a",
        &plain("x"),
        "`a` is a table (line 1, column 7), and `x` would make it a text",
    );
    for word in [
        "0123", "0x1f", "+1", ".5", "1_000", "True", "NULL", "None", "-.inf",
    ] {
        let error = refused(J, "{\"a\": 0}", "a", &plain(word));
        assert!(
            matches!(error, ConfigError::Unclear { .. }),
            "{word}: {error}"
        );
        assert!(error.next().contains("--string"), "{}", error.next());
    }
    assert!(matches!(
        refused(J, "{\"a\": 0}", "a", &raw("1, \"b\": 2")),
        ConfigError::BadValue { .. }
    ));
    assert!(matches!(
        refused(J, "{\"a\": 0}", "a", &plain("[1,")),
        ConfigError::BadValue { .. }
    ));
}

#[test]
fn keys_that_cannot_be_are_refused() {
    says(
        J,
        "{\"a\": 1}",
        "a.b",
        &plain("1"),
        "`a.b` cannot be: a single value stands there (line 1, column 7), not a table",
    );
    says(
        J,
        "{\"a\": [1]}",
        "a[1]",
        &plain("1"),
        "`a[1]` is out of range: the list has 1 item",
    );
    says(
        J,
        "{\"a\": [1]}",
        "a.b",
        &plain("1"),
        "`a.b` cannot be: a list stands there (line 1, column 7), not a table",
    );
    says(
        J,
        "{\"a\": 1,\n \"a\": 2}",
        "a",
        &plain("3"),
        "`a` stands twice: line 1, column 2, and line 2, column 2",
    );
    // A key that stands twice elsewhere is not in the way.
    set(
        J,
        "{\"a\": 1, \"a\": 2, \"b\": 3}",
        "b",
        &plain("4"),
        "{\"a\": 1, \"a\": 2, \"b\": 4}",
    );
}

#[test]
fn a_broken_text_is_refused_with_line_and_column() {
    broken(J, "", "line 1, column 1: the text is empty: write {} first");
    broken(
        J,
        "{\n  \"a\": 1,\n}",
        "line 2, column 9: JSON allows no comma behind the last value",
    );
    broken(
        J,
        "{\n  // x\n}",
        "line 2, column 3: JSON has no comments; if this file may have them, name the format jsonc",
    );
    broken(
        J,
        "\u{feff}{\"a\" 1}",
        "line 1, column 6: `:` is needed here",
    );
    broken(
        J,
        "{\"a\": 01}",
        "line 1, column 7: a value is needed here: a text in double quotes, a number, true, false, null, [ or {",
    );
    broken(
        J,
        "{\"a\": \"x\n\"}",
        "line 1, column 7: this text in quotes does not end in its line",
    );
    broken(J, "[1 2]", "line 1, column 4: `,` or `]` is needed here");
    broken(J, "{} {}", "line 1, column 4: nothing may follow the value");
    broken(C, "{/*", "line 1, column 2: this comment is not closed");
    broken(J, &"[".repeat(200), "the nesting is over the limit of 128");
}

#[test]
fn a_byte_order_mark_stays() {
    set(
        J,
        "\u{feff}{\"a\": 1}",
        "a",
        &plain("2"),
        "\u{feff}{\"a\": 2}",
    );
}
