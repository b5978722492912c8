//! YAML.

use backout_config::{ConfigError, Format, Value};

use crate::steps::{
    broken, json, means, merge, plain, raw, refused, reverts_in, says, set, text, unset,
};

const Y: Format = Format::Yaml;

const APP: &str = "\
# The app
server:
  port: 80 # public
  host: 'a.example'

# Where things are
paths:
  - /a
  - /b
debug: false
";

#[test]
fn a_value_is_replaced_and_nothing_else() {
    set(
        Y,
        APP,
        "server.port",
        &plain("8080"),
        &APP.replace("80", "8080"),
    );
    set(
        Y,
        APP,
        "server.host",
        &plain("b.example"),
        &APP.replace("a.example", "b.example"),
    );
    set(Y, APP, "paths[1]", &plain("/c"), &APP.replace("/b", "/c"));
    set(
        Y,
        APP,
        "debug",
        &plain("true"),
        &APP.replace("false", "true"),
    );
    set(Y, "a: \"x\"\n", "a", &plain("z"), "a: \"z\"\n");
    set(Y, "a:\nb: 1\n", "a", &plain("x"), "a: x\nb: 1\n");
    set(
        Y,
        "a: # soon\nb: 1\n",
        "a",
        &plain("x"),
        "a: x # soon\nb: 1\n",
    );
    set(Y, "a:\n  long\nb: 1", "a", &plain("x"), "a:\n  x\nb: 1");
    set(
        Y,
        "{\"a\":1, b: [x, y]}",
        "b[0]",
        &plain("z"),
        "{\"a\":1, b: [z, y]}",
    );
    set(Y, "{\"a\":1}", "a", &plain("2"), "{\"a\":2}");
    set(
        Y,
        "a: |\n  one\n  two\nb: 1\n",
        "a",
        &plain("x"),
        "a: x\nb: 1\n",
    );
    set(
        Y,
        "a:\n  b: 1\n  c: 2\nd: 3\n",
        "a",
        &json("[1, \"x\"]"),
        "a: [1, x]\nd: 3\n",
    );
    set(
        Y,
        "a: # keep\n  b: 1\nd: 3\n",
        "a",
        &json("7"),
        "a: 7 # keep\nd: 3\n",
    );
    set(Y, "---\na: 1\n...\n", "a", &plain("2"), "---\na: 2\n...\n");
    set(
        Y,
        "\u{feff}a: 1\r\nb: 2\r\n",
        "b",
        &plain("3"),
        "\u{feff}a: 1\r\nb: 3\r\n",
    );
}

#[test]
fn a_new_key_looks_like_its_neighbours() {
    set(
        Y,
        APP,
        "server.tls",
        &plain("true"),
        &APP.replace("'a.example'\n", "'a.example'\n  tls: true\n"),
    );
    set(
        Y,
        APP,
        "log.level",
        &plain("info"),
        &format!("{APP}log:\n  level: info\n"),
    );
    set(Y, "a: 1", "b", &plain("2"), "a: 1\nb: 2");
    set(Y, "", "a.b", &plain("2"), "a:\n  b: 2\n");
    set(
        Y,
        "# only a remark\n",
        "a",
        &plain("2"),
        "# only a remark\na: 2\n",
    );
    set(Y, "---\n", "a", &plain("2"), "---\na: 2\n");
    set(
        Y,
        "a:\n    b: 1\n",
        "c.d",
        &plain("x"),
        "a:\n    b: 1\nc:\n    d: x\n",
    );
    set(Y, "a:\nb: 1\n", "a.c", &plain("2"), "a:\n  c: 2\nb: 1\n");
    set(
        Y,
        "a: # why\nb: 1\n",
        "a.c",
        &plain("2"),
        "a: # why\n  c: 2\nb: 1\n",
    );
    set(Y, "a: {}\n", "a.b", &plain("2"), "a: {b: 2}\n");
    set(
        Y,
        "a: {x: 1}\n",
        "a.b",
        &plain("q, r"),
        "a: {x: 1, b: \"q, r\"}\n",
    );
    set(
        Y,
        "- a: 1\n  b: 2\n- c\n",
        "[0].d",
        &plain("3"),
        "- a: 1\n  b: 2\n  d: 3\n- c\n",
    );
    set(
        Y,
        "a:\r\n  b: 1\r\n",
        "a.c",
        &plain("2"),
        "a:\r\n  b: 1\r\n  c: 2\r\n",
    );
    set(
        Y,
        "a: |\n  text\n\n# end\n",
        "b",
        &plain("2"),
        "a: |\n  text\nb: 2\n\n# end\n",
    );
}

#[test]
fn a_list_grows_and_shrinks_as_a_whole() {
    set(
        Y,
        APP,
        "paths[+]",
        &plain("/c"),
        &APP.replace("/b\n", "/b\n  - /c\n"),
    );
    set(
        Y,
        "a:\n- 1\n- 2\nb: 0\n",
        "a[+]",
        &plain("3"),
        "a:\n- 1\n- 2\n- 3\nb: 0\n",
    );
    set(Y, "l: [1]\n", "l[+]", &plain("2"), "l: [1, 2]\n");
    set(Y, "- x\n", "[+].name", &plain("z"), "- x\n- name: z\n");
    set(Y, "a: 1\n", "l[+]", &plain("x"), "a: 1\nl:\n  - x\n");
    unset(Y, APP, "paths[0]", &APP.replace("  - /a\n", ""));
    unset(Y, "l:\n  - x\nb: 1\n", "l[0]", "l: []\nb: 1\n");
}

#[test]
fn a_key_goes_and_comes_back_to_its_place() {
    let edited = unset(
        Y,
        APP,
        "server.port",
        &APP.replace("  port: 80 # public\n", ""),
    );
    let since = edited
        .text
        .replace("debug: false", "debug: true")
        .replace("a.example", "c");
    reverts_in(
        Y,
        &edited,
        &since,
        &APP.replace("debug: false", "debug: true")
            .replace("a.example", "c"),
    );
    unset(
        Y,
        APP,
        "paths",
        &APP.replace("paths:\n  - /a\n  - /b\n", ""),
    );
    unset(Y, "a:\n  b: 1\nc: 2\n", "a.b", "a: {}\nc: 2\n");
    unset(Y, "a: 1\n", "a", "{}\n");
    unset(Y, "- a: 1\n  b: 2\n", "[0].a", "- b: 2\n");
    unset(Y, "a: {b: 1, c: 2}\n", "a.c", "a: {b: 1}\n");
    unset(Y, "a: |\n  x\n  y\nb: 1\n", "a", "b: 1\n");
    let edited = set(Y, "a: 1\n", "s.x", &plain("1"), "a: 1\ns:\n  x: 1\n");
    reverts_in(
        Y,
        &edited,
        "a: 1\ns:\n  x: 1\n  y: 2\n",
        "a: 1\ns:\n  y: 2\n",
    );
    reverts_in(Y, &edited, "b: 1\ns:\n    x: 1\nz: 0\n", "b: 1\nz: 0\n");
    // What others remarked in it stays, and so does what holds the remark.
    reverts_in(
        Y,
        &edited,
        "a: 1\ns:\n  # why\n  x: 1\n",
        "a: 1\ns: {}\n  # why\n",
    );
    let edited = set(Y, "s:\na: 1\n", "s.x", &plain("1"), "s:\n  x: 1\na: 1\n");
    reverts_in(
        Y,
        &edited,
        "s:\n  # why\n  x: 1\na: 1\n",
        "s:\n  # why\na: 1\n",
    );
}

#[test]
fn a_block_comes_back_at_another_indent() {
    let edited = unset(
        Y,
        "r:\n  a:\n    # note\n    x: 1\n    y: |\n      t\n  b: 1\n",
        "r.a",
        "r:\n  b: 1\n",
    );
    let moved = "r:\n    c: 1\n    a:\n        # note\n        x: 1\n        y: |\n          t\n";
    reverts_in(Y, &edited, "r:\n    c: 1\n", moved);
}

#[test]
fn a_patch_is_merged_leaf_by_leaf() {
    merge(
        Y,
        APP,
        r#"{"server": {"port": 8080, "host": null}, "log": {"level": "info", "on": true}}"#,
        &format!(
            "{}log:\n  level: info\n  \"on\": true\n",
            APP.replace("80", "8080")
                .replace("  host: 'a.example'\n", "")
        ),
    );
}

#[test]
fn texts_are_quoted_where_readers_would_not_agree() {
    for (given, written) in [
        ("no", "\"no\""),
        ("1e3", "\"1e3\""),
        ("0123", "\"0123\""),
        ("12:30", "\"12:30\""),
        ("2024-01-01", "\"2024-01-01\""),
        ("null", "\"null\""),
        ("~", "\"~\""),
        ("", "\"\""),
        ("a: b", "\"a: b\""),
        ("a #b", "\"a #b\""),
        ("- x", "\"- x\""),
        ("*x", "\"*x\""),
        ("@x", "\"@x\""),
        ("two\nlines", "\"two\\nlines\""),
        (" x", "\" x\""),
        ("http://x/y?z", "\"http://x/y?z\""),
        ("a-b_c.d/e", "a-b_c.d/e"),
        ("hello there", "hello there"),
    ] {
        set(Y, "k: 0\n", "k", &text(given), &format!("k: {written}\n"));
    }
    set(Y, "k: 'x'\n", "k", &text("it's"), "k: 'it''s'\n");
    set(Y, "k: 1\n", "k", &json("1e3"), "k: 1.0e+3\n");
    set(Y, "k: 1\n", "on", &plain("x"), "k: 1\n\"on\": x\n");
}

#[test]
fn an_unclear_value_is_refused_with_the_way_out() {
    for word in [
        "no",
        "Yes",
        "off",
        "y",
        "1e3",
        "0123",
        "0o17",
        "1_000",
        "12:30",
        "2024-01-01",
        "2001-12-14t21:59:43",
        "~",
        "Null",
        ".inf",
        "<<",
    ] {
        let error = refused(Y, "k: 0\n", "k", &plain(word));
        assert!(
            matches!(error, ConfigError::Unclear { .. }),
            "{word}: {error}"
        );
        assert!(
            error
                .next()
                .contains(&format!("`--raw` to write `{word}` as it is")),
            "{}",
            error.next()
        );
        set(Y, "k: 0\n", "k", &raw(word), &format!("k: {word}\n"));
    }
    says(
        Y,
        "v: \"1.0\"\n",
        "v",
        &plain("1.1"),
        "`v` is a text (line 1, column 4), and `1.1` would make it a number",
    );
    // What is unclear already has no type to keep.
    set(Y, "k: no\n", "k", &plain("true"), "k: true\n");
}

const SHARED: &str = "\
base: &base
  x: 1
  y: {z: 2}
one:
  <<: *base
  x: 3
two: *base
free: &f 5
";

#[test]
fn what_others_share_is_not_touched() {
    says(
        Y,
        SHARED,
        "base.x",
        &plain("9"),
        "`base.x` cannot be changed alone (line 2, column 3): others have this value through its anchor",
    );
    says(
        Y,
        SHARED,
        "base",
        &json("1"),
        "`base` cannot be changed alone (line 2, column 3): others have this value through its anchor",
    );
    says(
        Y,
        SHARED,
        "two.x",
        &plain("9"),
        "`two.x` cannot be changed alone (line 7, column 6): it comes through an alias",
    );
    says(
        Y,
        SHARED,
        "one.y",
        &plain("9"),
        "`one.y` cannot be changed alone (line 5, column 3): it may come through the merge key `<<` that stands there",
    );
    set(
        Y,
        SHARED,
        "one.x",
        &plain("4"),
        &SHARED.replace("x: 3", "x: 4"),
    );
    says(
        Y,
        SHARED,
        "free",
        &json("6"),
        "`free` cannot be edited here (line 8, column 7): its value has a tag or an anchor, which would be lost; --raw replaces it",
    );
    set(Y, SHARED, "free", &raw("6"), &SHARED.replace("&f 5", "6"));
    says(
        Y,
        "a: {b: &x 1}\nc: *x\n",
        "a",
        &json("1"),
        "`a` cannot be changed alone (line 1, column 4): it holds an anchor that others use",
    );
    says(
        Y,
        "a: !secret x\n",
        "a",
        &json("1"),
        "`a` cannot be edited here (line 1, column 4): its value has a tag or an anchor, which would be lost; --raw replaces it",
    );
}

#[test]
fn a_text_that_is_not_understood_is_refused_with_line_and_column() {
    broken(
        Y,
        "a: 1\n---\nb: 2\n",
        "line 2, column 1: a second document begins here; only texts of one document are edited",
    );
    broken(
        Y,
        "a: [1\nb: 2\n",
        "line 2, column 2: illegal placement of ':' indicator",
    );
    broken(
        Y,
        "a: *x\n",
        "line 1, column 4: while parsing node, found unknown anchor",
    );
    broken(
        Y,
        "a: 1\n b: 2\n",
        "line 2, column 3: mapping values are not allowed in this context",
    );
    says(
        Y,
        "a: 1\nb: 2\na: 3\n",
        "a",
        &plain("4"),
        "`a` stands twice: line 1, column 1, and line 3, column 1",
    );
    says(
        Y,
        "? a\n: 1\n",
        "a",
        &plain("4"),
        "`a` cannot be edited here (line 2, column 3): its value is not written in one place",
    );
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    assert!(matches!(
        refused(Y, &deep, "a", &plain("1")),
        ConfigError::Syntax { .. } | ConfigError::OverLimit { .. }
    ));
}

#[test]
fn values_mean_what_yaml_says() {
    let yaml = "a: 0o17\nb: 1_000\nc: yes\nd: \"x\\ty\"\ne: >-\n  f\n  g\nh: plain\n  more\ni: .5\nj: .inf\n";
    for (key, value) in [
        ("a", Value::Number("0o17".into())),
        ("b", Value::Text("1_000".into())),
        ("c", Value::Text("yes".into())),
        ("d", Value::Text("x\ty".into())),
        ("e", Value::Text("f g".into())),
        ("h", Value::Text("plain more".into())),
        ("i", Value::Number(".5".into())),
        ("j", Value::Raw(".inf".into())),
    ] {
        assert_eq!(means(Y, yaml, key), Some(value), "{key}");
    }
}
