//! TOML.

use backout_config::{ConfigError, Format, Value};

use crate::steps::{
    broken, json, means, merge, plain, raw, refused, reverts_in, says, set, text, unset,
};

const T: Format = Format::Toml;

const CARGO: &str = "\
# The manifest
[package]
name = \"app\" # ours
version = '1.0'

[dependencies]
serde = { version = \"1\", features = [\"derive\"] }
log.version = \"0.4\"

[dependencies.rand]
version = \"0.8\"

# Programs
[[bin]]
name = \"one\"

[[bin]]
name = \"two\"
";

#[test]
fn a_value_is_replaced_and_nothing_else() {
    set(
        T,
        CARGO,
        "package.name",
        &plain("web"),
        &CARGO.replace("\"app\"", "\"web\""),
    );
    set(
        T,
        CARGO,
        "package.version",
        &text("2.0"),
        &CARGO.replace("1.0", "2.0"),
    );
    set(
        T,
        CARGO,
        "dependencies.serde.version",
        &text("2"),
        &CARGO.replace("\"1\"", "\"2\""),
    );
    set(
        T,
        CARGO,
        "dependencies.serde.features[0]",
        &plain("std"),
        &CARGO.replace("derive", "std"),
    );
    set(
        T,
        CARGO,
        "dependencies.log.version",
        &text("0.5"),
        &CARGO.replace("0.4", "0.5"),
    );
    set(
        T,
        CARGO,
        "dependencies.rand.version",
        &text("0.9"),
        &CARGO.replace("0.8", "0.9"),
    );
    set(
        T,
        CARGO,
        "bin[1].name",
        &plain("three"),
        &CARGO.replace("two", "three"),
    );
    set(T, "\"a.b\" = 1\n", "\"a.b\"", &plain("2"), "\"a.b\" = 2\n");
    set(
        T,
        "\u{feff}a = 1\r\nb = 2\r\n",
        "b",
        &plain("3"),
        "\u{feff}a = 1\r\nb = 3\r\n",
    );
    set(
        T,
        "a = '''\nx\n'''\nb = 1",
        "a",
        &plain("y"),
        "a = \"y\"\nb = 1",
    );
}

#[test]
fn a_new_key_goes_where_its_table_is_written() {
    set(
        T,
        CARGO,
        "package.edition",
        &text("2024"),
        &CARGO.replace("'1.0'\n", "'1.0'\nedition = \"2024\"\n"),
    );
    set(
        T,
        CARGO,
        "dependencies.serde.optional",
        &plain("true"),
        &CARGO.replace("[\"derive\"]", "[\"derive\"], optional = true"),
    );
    set(
        T,
        CARGO,
        "dependencies.log.optional",
        &plain("true"),
        &CARGO.replace("\"0.4\"\n", "\"0.4\"\nlog.optional = true\n"),
    );
    set(
        T,
        CARGO,
        "dependencies.rand.optional",
        &plain("true"),
        &CARGO.replace("\"0.8\"\n", "\"0.8\"\noptional = true\n"),
    );
    set(
        T,
        CARGO,
        "dependencies.anyhow",
        &text("1"),
        &CARGO.replace("\"0.4\"\n", "\"0.4\"\nanyhow = \"1\"\n"),
    );
    set(
        T,
        CARGO,
        "bin[0].path",
        &plain("a.rs"),
        &CARGO.replace("\"one\"\n", "\"one\"\npath = \"a.rs\"\n"),
    );
    set(
        T,
        CARGO,
        "profile.dev.debug",
        &plain("true"),
        &format!("{CARGO}\n[profile.dev]\ndebug = true\n"),
    );
    set(T, CARGO, "top", &plain("1"), &format!("top = 1\n\n{CARGO}"));
}

#[test]
fn a_table_that_is_not_there_is_made() {
    set(T, "a = 1", "b", &plain("2"), "a = 1\nb = 2");
    set(T, "", "a.b", &plain("2"), "[a]\nb = 2\n");
    set(
        T,
        "[a.b]\nc = 1\n",
        "a.d",
        &plain("2"),
        "[a]\nd = 2\n\n[a.b]\nc = 1\n",
    );
    set(
        T,
        "[a]\nx = 1\n\n[b]\n",
        "a.c.d",
        &plain("2"),
        "[a]\nx = 1\n\n[a.c]\nd = 2\n\n[b]\n",
    );
    set(
        T,
        "t = {}\n",
        "t.a.b",
        &plain("2"),
        "t = { a = { b = 2 } }\n",
    );
    set(
        T,
        "[[l]]\nx = 1\n[[l]]\nx = 2\n",
        "l[0].a.b",
        &plain("2"),
        "[[l]]\nx = 1\na.b = 2\n[[l]]\nx = 2\n",
    );
    set(
        T,
        "a = 1\n",
        "\"x y\".z",
        &plain("2"),
        "a = 1\n\n[\"x y\"]\nz = 2\n",
    );
    set(
        T,
        "a = [\n    1, # one\n]\n",
        "a[+]",
        &plain("2"),
        "a = [\n    1, # one\n    2,\n]\n",
    );
    set(T, "a = 1\n", "l[+]", &plain("2"), "a = 1\nl = [2]\n");
    set(
        T,
        "a = 1\n",
        "m",
        &json("{\"x\": [1, {\"y\": \"z\"}]}"),
        "a = 1\nm = { x = [1, { y = \"z\" }] }\n",
    );
}

#[test]
fn a_key_goes_and_comes_back_to_its_place() {
    let edited = unset(
        T,
        CARGO,
        "package.name",
        &CARGO.replace("name = \"app\" # ours\n", ""),
    );
    reverts_in(
        T,
        &edited,
        &edited.text.replace("1.0", "2.0"),
        &CARGO.replace("1.0", "2.0"),
    );
    unset(
        T,
        CARGO,
        "dependencies.serde.version",
        &CARGO.replace("version = \"1\", ", ""),
    );
    unset(
        T,
        CARGO,
        "dependencies.serde.features",
        &CARGO.replace(", features = [\"derive\"]", ""),
    );
    unset(
        T,
        CARGO,
        "dependencies.log",
        &CARGO.replace("log.version = \"0.4\"\n", ""),
    );
    unset(
        T,
        CARGO,
        "dependencies.rand",
        &CARGO.replace("[dependencies.rand]\nversion = \"0.8\"\n\n", ""),
    );
    unset(
        T,
        CARGO,
        "package",
        "# The manifest\n[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\nlog.version = \"0.4\"\n\n[dependencies.rand]\nversion = \"0.8\"\n\n# Programs\n[[bin]]\nname = \"one\"\n\n[[bin]]\nname = \"two\"\n",
    );
    let edited = unset(T, CARGO, "dependencies", &CARGO.replace("[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\nlog.version = \"0.4\"\n\n[dependencies.rand]\nversion = \"0.8\"\n\n", ""));
    reverts_in(
        T,
        &edited,
        &edited.text.replace("one", "eins"),
        &CARGO.replace("one", "eins"),
    );
    unset(T, CARGO, "bin", &CARGO[..CARGO.find("[[bin]]").unwrap()]);
    let edited = set(T, "a = 1\n", "s.x", &plain("1"), "a = 1\n\n[s]\nx = 1\n");
    reverts_in(
        T,
        &edited,
        "a = 2\n\n[s]\nx = 1\ny = 2\n",
        "a = 2\n\n[s]\ny = 2\n",
    );
    reverts_in(
        T,
        &edited,
        "b = 1\n[t]\n[s]\nx = 1\n[u]\n",
        "b = 1\n[t]\n[u]\n",
    );
}

#[test]
fn a_patch_is_merged_leaf_by_leaf() {
    merge(
        T,
        CARGO,
        r#"{"package": {"version": "2.0", "edition": "2024"}, "dependencies": {"rand": null}, "features": {"a": [], "b": ["a"]}}"#,
        &format!(
            "{}\n[features]\na = []\nb = [\"a\"]\n",
            CARGO
                .replace("1.0'\n", "2.0'\nedition = \"2024\"\n")
                .replace("[dependencies.rand]\nversion = \"0.8\"\n\n", "")
        ),
    );
}

#[test]
fn what_toml_cannot_hold_or_would_change_is_refused() {
    says(
        T,
        CARGO,
        "package.version",
        &plain("2.0"),
        "`package.version` is a text (line 4, column 11), and `2.0` would make it a number",
    );
    says(
        T,
        "a = 1\n",
        "a",
        &plain("null"),
        "toml cannot hold this value: TOML has no null; unset the key instead",
    );
    for word in [
        "2024-01-01",
        "2024-01-01T10:00:00Z",
        "inf",
        "0x1f",
        "1_000",
        "0123",
    ] {
        let error = refused(T, "a = 1\n", "a", &plain(word));
        assert!(
            matches!(error, ConfigError::Unclear { .. }),
            "{word}: {error}"
        );
    }
    set(T, "a = 1\n", "a", &plain("1e3"), "a = 1e3\n");
    set(T, "a = 1\n", "a", &text("no"), "a = \"no\"\n");
    set(T, "a = 1\n", "a", &raw("2024-01-01"), "a = 2024-01-01\n");
    set(
        T,
        "d = 2024-01-01\n",
        "d",
        &raw("2024-01-02"),
        "d = 2024-01-02\n",
    );
    assert_eq!(
        means(T, "d = 2024-01-01\n", "d"),
        Some(Value::Raw("2024-01-01".into()))
    );
    assert_eq!(
        means(T, "d = 0xff\n", "d"),
        Some(Value::Number("0xff".into()))
    );
    assert!(matches!(
        refused(T, "a = 1\n", "a", &raw("1\nb = 2")),
        ConfigError::BadValue { .. }
    ));
}

#[test]
fn tables_without_one_place_are_refused() {
    let scattered = "[a]\nx = 1\n[b]\ny = 1\n[a.c]\nz = 1\n";
    let document = backout_config::Document::parse(T, scattered).unwrap();
    let error = document.unset(&"a".parse().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`a` cannot be edited here (line 1, column 1): it is written in several places"
    );
    unset(T, scattered, "a.c", "[a]\nx = 1\n[b]\ny = 1\n");
    assert!(matches!(
        refused(T, CARGO, "bin[+].name", &plain("x")),
        ConfigError::Unsupported { .. }
    ));
    assert!(matches!(
        refused(T, CARGO, "package", &json("1")),
        ConfigError::Unsupported { .. }
    ));
}

#[test]
fn a_broken_text_is_refused_with_line_and_column() {
    broken(T, "a = 1\na = 2\n", "line 2, column 1: duplicate key");
    broken(T, "[a]\n[a]\n", "line 2, column 2: duplicate key");
    broken(
        T,
        "a = \n",
        "line 1, column 5: string values must be quoted, expected literal string",
    );
    broken(T, "a = 1\nb = [1,\n", "line 2, column 8: unclosed array");
}
