//! `.env` files.

use backout_config::{ConfigError, Format, Value};

use crate::steps::{broken, json, means, merge, plain, raw, refused, reverts_in, says, set, unset};

const E: Format = Format::Env;

const ENV: &str = "\
# Secrets
export TOKEN=abc # old
URL=\"http://x/$TOKEN\"
KEY='-----BEGIN-----
two lines
-----END-----'
EMPTY=
NAME = web
";

#[test]
fn a_value_is_replaced_and_nothing_else() {
    set(E, ENV, "TOKEN", &plain("def"), &ENV.replace("abc", "def"));
    set(
        E,
        ENV,
        "URL",
        &plain("http://y/"),
        &ENV.replace("http://x/$TOKEN", "http://y/"),
    );
    set(
        E,
        ENV,
        "KEY",
        &plain("k"),
        &ENV.replace("-----BEGIN-----\ntwo lines\n-----END-----", "k"),
    );
    set(
        E,
        ENV,
        "EMPTY",
        &plain("0123"),
        &ENV.replace("EMPTY=", "EMPTY=0123"),
    );
    set(E, ENV, "NAME", &plain("a b"), &ENV.replace("web", "'a b'"));
    set(E, "A=1\r\nB=2", "B", &plain("3"), "A=1\r\nB=3");
    set(E, "A\nB=2", "A", &plain("3"), "A=3\nB=2");
}

#[test]
fn a_text_is_quoted_so_that_all_readers_agree() {
    for (given, written) in [
        ("plain-1.2/x:y@z", "plain-1.2/x:y@z"),
        ("two words", "'two words'"),
        ("$HOME", "'$HOME'"),
        ("a#b", "'a#b'"),
        ("it's", "\"it's\""),
        ("a\\b", "'a\\b'"),
        ("say \"x\"", "'say \"x\"'"),
        ("l1\nl2", "'l1\nl2'"),
        ("", ""),
    ] {
        set(
            E,
            "K=x\nL=y\n",
            "K",
            &plain(given),
            &format!("K={written}\nL=y\n"),
        );
        assert_eq!(
            means(E, &format!("K={written}\n"), "K"),
            Some(Value::Text(given.into()))
        );
    }
    says(
        E,
        "K=x\n",
        "K",
        &plain("it's $5"),
        "env cannot hold this value: no quoting means the same to all readers",
    );
    set(E, "K=x\n", "K", &raw("\"it's \\$5\""), "K=\"it's \\$5\"\n");
    assert_eq!(
        means(E, "K=\"it's \\$5\\n\"\n", "K"),
        Some(Value::Text("it's $5\n".into()))
    );
}

#[test]
fn keys_come_and_go() {
    set(E, ENV, "MORE", &plain("1"), &format!("{ENV}MORE=1\n"));
    set(E, "export A=1", "B", &plain("2"), "export A=1\nexport B=2");
    set(E, "# nothing\n", "B", &plain("2"), "# nothing\nB=2\n");
    set(E, "", "B", &plain("2"), "B=2\n");
    unset(
        E,
        ENV,
        "KEY",
        &ENV.replace("KEY='-----BEGIN-----\ntwo lines\n-----END-----'\n", ""),
    );
    let edited = unset(
        E,
        ENV,
        "TOKEN",
        &ENV.replace("export TOKEN=abc # old\n", ""),
    );
    reverts_in(
        E,
        &edited,
        &edited.text.replace("web", "w"),
        &ENV.replace("web", "w"),
    );
    merge(
        E,
        ENV,
        r#"{"TOKEN": null, "N": 5}"#,
        &format!("{}N=5\n", ENV.replace("export TOKEN=abc # old\n", "")),
    );
}

#[test]
fn what_is_not_understood_is_refused() {
    says(
        E,
        "A=1\nA=2\n",
        "A",
        &plain("3"),
        "`A` stands twice: line 1, column 1, and line 2, column 1",
    );
    says(
        E,
        "A=1\n",
        "a.b",
        &plain("3"),
        "`a.b` cannot be a key here: a .env file has single names",
    );
    broken(
        E,
        "A=\"x\nB=1\n",
        "line 1, column 3: this quote is not closed",
    );
    broken(E, "A: 1\n", "line 1, column 2: `=` is needed here");
    broken(E, "=1\n", "line 1, column 1: NAME=value is needed here");
    assert!(matches!(
        refused(E, "A=1\n", "A", &json("{}")),
        ConfigError::Unwritable { .. }
    ));
    assert!(matches!(
        refused(E, "A=1\n", "\"9 x\"", &plain("1")),
        ConfigError::NoSuchKeys { .. }
    ));
}

#[test]
fn secrets_are_not_in_debug() {
    let edited = set(E, "A=1\n", "B", &plain("hunter2"), "A=1\nB=hunter2\n");
    assert!(!format!("{:?}", edited.changes).contains("hunter2"));
}
