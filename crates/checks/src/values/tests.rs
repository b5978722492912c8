//! Rules of values: what each finds, where, and in which words.

use proptest::prelude::*;
use serde::de::DeserializeOwned;

use super::*;
use crate::finding::Place;

fn from_json<T: DeserializeOwned>(json: serde_json::Value) -> T {
    serde_json::from_value(json).unwrap()
}

fn run(
    format: Format,
    text: &str,
    rule: serde_json::Value,
) -> Vec<(String, u32, u32, String, String)> {
    let tree = Tree::read(format, text.as_bytes()).unwrap();
    check(&tree, &[from_json(rule)], &|path| path == "/there")
        .into_iter()
        .map(|finding| {
            let place = finding.place.unwrap_or(Place { line: 0, column: 0 });
            (
                finding.key.unwrap_or_default(),
                place.line,
                place.column,
                finding.found,
                finding.remedy.unwrap_or_default(),
            )
        })
        .collect()
}

const TEXT: &str = "server:\n  port: 70000\n  name: wbe\n  big: 18446744073709551615\nusers:\n  - name: a\n    home: /there\n  - name: b\n    home: /gone\n  - name: a\nuse: c\non: no\n";

#[test]
fn each_rule_says_what_where_and_what_would_mend_it() {
    use serde_json::json;
    #[rustfmt::skip]
    let table = [
        (json!({"key": "server.port", "min": 1, "max": 65535}), "server.port", 2, 9, "it is `70000`, and has to be 1 to 65535", "choose 1 to 65535"),
        (json!({"key": "server.name", "min": 4}), "server.name", 3, 9, "its length is 3, and has to be 4 or more", "choose 4 or more"),
        (json!({"key": "users", "max": 2}), "users", 6, 3, "its length is 3, and has to be 2 or less", "choose 2 or less"),
        (json!({"key": "server.name", "one-of": ["web", "db"]}), "server.name", 3, 9, "\"wbe\" is none of `web`, `db`", "did you mean `web`?"),
        (json!({"key": "server.name", "pattern": "w[a-e]"}), "server.name", 3, 9, "\"wbe\" does not match `w[a-e]`", "write a value that matches"),
        (json!({"key": "on", "type": "boolean"}), "on", 12, 5, "it is a text, and has to be a boolean", "write a boolean"),
        (json!({"key": "users.*.home", "exists": true}), "users[1].home", 9, 11, "nothing is at \"/gone\"", "make it first, or mend the path"),
        (json!({"key": "users[0].home", "exists": false}), "users[0].home", 7, 11, "something is at \"/there\" already", "choose another path"),
        (json!({"key": "users[*].name", "unique": true}), "users[2].name", 10, 11, "`users[0].name` is \"a\" already", "give each another value"),
        (json!({"key": "use", "refers-to": "users.*.name"}), "use", 11, 6, "\"c\" is none of `users.*.name`", "did you mean `a`?"),
        (json!({"key": "server.prt", "required": true}), "server.prt", 2, 3, "the key `server.prt` is missing", "did you mean it by `server.port`?"),
        (json!({"key": "server.zzzz", "required": true}), "server.zzzz", 0, 0, "the key `server.zzzz` is missing", "add `server.zzzz`"),
        (json!({"key": "server", "min": 1}), "server", 2, 3, "it is a table, and has to be a number", "write a number"),
    ];
    for (rule, key, line, column, found, remedy) in table {
        let expected = vec![(
            key.to_owned(),
            line,
            column,
            found.to_owned(),
            remedy.to_owned(),
        )];
        assert_eq!(run(Format::Yaml, TEXT, rule.clone()), expected, "{rule}");
    }
}

#[test]
fn what_is_right_is_no_finding() {
    use serde_json::json;
    for rule in [
        json!({"key": "server.port", "min": 1, "max": 70000, "type": "integer", "required": true}),
        json!({"key": "server.big", "min": 9e18}),
        json!({"key": "nowhere", "min": 1}),
        json!({"key": "users.*.home", "pattern": "/.*"}),
        json!({"key": "users[0].name", "refers-to": "users.*.name"}),
        json!({"key": "**.port", "one-of": [70000]}),
        json!({"key": "on", "one-of": ["no"]}),
    ] {
        assert_eq!(run(Format::Yaml, TEXT, rule.clone()), [], "{rule}");
    }
}

#[test]
fn large_integers_are_compared_exactly() {
    use serde_json::json;
    let found = run(
        Format::Json,
        r#"{"a": 9007199254740993}"#,
        json!({"key": "a", "max": 9_007_199_254_740_992_i64}),
    );
    assert_eq!(
        found[0].3,
        "it is `9007199254740993`, and has to be 9007199254740992 or less"
    );
}

#[test]
fn in_ini_and_env_texts_count_as_what_they_read_as() {
    use serde_json::json;
    assert_eq!(
        run(
            Format::Env,
            "PORT=80\n",
            json!({"key": "PORT", "type": "integer", "min": 1, "one-of": [80]})
        ),
        []
    );
    assert_eq!(
        run(
            Format::Ini,
            "[a]\nport = 99999\n",
            json!({"key": "a.port", "max": 65535})
        )
        .len(),
        1
    );
    assert_eq!(
        run(
            Format::Ini,
            "[a]\non = yes\n",
            json!({"key": "a.on", "type": "boolean"})
        ),
        []
    );
}

#[test]
fn every_document_is_looked_at() {
    use serde_json::json;
    let found = run(
        Format::Yaml,
        "a: 1\n---\na: 9\n",
        json!({"key": "a", "max": 5}),
    );
    assert_eq!(found[0].0, "[1].a");
    assert_eq!((found[0].1, found[0].2), (3, 4));
}

#[test]
fn a_rule_with_a_mistake_is_refused() {
    use serde_json::json;
    let wrong = |rule| {
        serde_json::from_value::<ValueRule>(rule)
            .unwrap_err()
            .to_string()
    };
    assert!(wrong(json!({"key": "a", "mim": 1})).contains("unknown field `mim`"));
    assert!(wrong(json!({"key": "a..b"})).contains("a name is needed here"));
    assert!(wrong(json!({"key": "a[+]"})).contains("`[+]` is no item"));
    assert!(wrong(json!({"key": "a", "pattern": "("})).contains("the pattern `(` cannot be read"));
    assert!(wrong(json!({"key": "a", "pattern": "(a{1000}){1000}"})).contains("is too large"));
    assert!(wrong(json!({"key": "a", "type": "int"})).contains("unknown variant `int`"));
}

#[test]
fn a_pattern_that_would_backtrack_ends() {
    use serde_json::json;
    let text = format!("{{\"a\": \"{}!\"}}", "a".repeat(50_000));
    assert_eq!(
        run(Format::Json, &text, json!({"key": "a", "pattern": "(a+)+"})).len(),
        1
    );
}

#[test]
fn many_deep_steps_stay_cheap() {
    use serde_json::json;
    let text = format!("{}1{}", "{\"a\":".repeat(120), "}".repeat(120));
    let key = ["**", "a"].repeat(30).join(".");
    assert_eq!(
        run(Format::Json, &text, json!({"key": key, "max": 0})).len(),
        FINDINGS_MAX.min(91)
    );
}

proptest! {
    #[test]
    fn any_text_and_any_key_are_taken(text in "[a-c:\\[\\]{}\\-\", \n0-9*&<]{0,80}", key in "[a-c.*\\[\\]0\"]{1,12}") {
        if let (Ok(tree), Ok(key)) = (Tree::read(Format::Yaml, text.as_bytes()), KeyPattern::try_from(key)) {
            let rule = ValueRule { key: key.clone(), min: Some(1.0), max: Some(2.0), pattern: None, one_of: Some(vec![]), kind: None, required: true, exists: Some(true), unique: true, refers_to: Some(key) };
            prop_assert!(check(&tree, &[rule], &|_| true).len() <= FINDINGS_MAX);
        }
    }
}
