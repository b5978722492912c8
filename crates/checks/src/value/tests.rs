//! Reading: values, places, refusals.

use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn json_of(format: Format, text: &str) -> serde_json::Value {
    Tree::read(format, text.as_bytes()).unwrap().to_json()
}

fn finding(format: Format, text: &str) -> Finding {
    Tree::read(format, text.as_bytes()).unwrap_err()
}

#[test]
fn all_formats_give_the_same_tree() {
    let expected = json!({"a": {"b": "x"}, "c": "1"});
    let texts = [
        (Format::Json, r#"{"a": {"b": "x"}, "c": "1"}"#),
        (
            Format::Jsonc,
            "// hi\n{\"a\": {\"b\": \"x\"}, \"c\": \"1\",}",
        ),
        (Format::Yaml, "a:\n  b: x\nc: '1'\n"),
        (Format::Toml, "c = \"1\"\n[a]\nb = \"x\"\n"),
        (Format::Ini, "c = 1\n[a]\nb = x\n"),
    ];
    for (format, text) in texts {
        assert_eq!(json_of(format, text), expected, "{format:?}");
    }
    assert_eq!(json_of(Format::Env, "A=x\nA=y\n"), json!({"A": "y"}));
    assert_eq!(
        json_of(Format::Ini, "[S]\nx=1\nx=2\n[S]\ny=3\n"),
        json!({"S": {"x": ["1", "2"], "y": "3"}})
    );
}

#[test]
fn yaml_is_read_by_the_core_schema() {
    let text = "a: no\nb: 0o17\nc: 0x1F\nd: +12\ne: 1e3\nf: ~\ng: True\nh: !!str 5\ni: !Ref x\nj: 2024-01-01\nk: .inf\nl: 18446744073709551615\nm: -9223372036854775808\n";
    let expected = json!({"a": "no", "b": 15, "c": 31, "d": 12, "e": 1000.0, "f": null, "g": true, "h": "5", "i": "x", "j": "2024-01-01", "k": ".inf",
        "l": u64::MAX, "m": i64::MIN});
    assert_eq!(json_of(Format::Yaml, text), expected);
    assert_eq!(
        json_of(
            Format::Toml,
            "a = 0b11\nb = 1_000\nc = 1979-05-27\nd = inf\n"
        ),
        json!({"a": 3, "b": 1000, "c": "1979-05-27", "d": "inf"})
    );
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    let text = "base: &b {x: 1, y: 2}\nmore: &m {y: 9, z: 3}\none:\n  <<: *b\n  x: 5\ntwo:\n  <<: [*b, *m]\nthree: *b\nfour:\n  '<<': 1\n";
    let tree = Tree::read(Format::Yaml, text.as_bytes()).unwrap();
    let json = tree.to_json();
    assert_eq!(json["one"], json!({"x": 5, "y": 2}));
    assert_eq!(json["two"], json!({"x": 1, "y": 2, "z": 3}));
    assert_eq!(json["three"], json!({"x": 1, "y": 2}));
    assert_eq!(json["four"], json!({"<<": 1}));
    assert_eq!(
        tree.place_of(tree.get("three").unwrap()),
        Place { line: 8, column: 8 }
    );
}

#[test]
fn places_are_those_of_the_text() {
    let text = "\u{feff}a: 1\r\nb:\r\n  - ä: x\r\n    c: y\r\n";
    let tree = Tree::read(Format::Yaml, text.as_bytes()).unwrap();
    let at = |key: &str| {
        let node = tree.get(key).unwrap();
        let (name, value) = (tree.place_of_name(node), tree.place_of(node));
        (name.line, name.column, value.line, value.column)
    };
    assert_eq!(at("a"), (1, 1, 1, 4));
    assert_eq!(at("b[0].ä"), (3, 5, 3, 8));
    assert_eq!(at("b[0].c"), (4, 5, 4, 8));
    let tree = Tree::read(Format::Json, b"{\n \"a\": [1,\n  {\"b\": 2}]}").unwrap();
    let node = tree.get("a[1].b").unwrap();
    assert_eq!(
        (tree.place_of_name(node), tree.place_of(node)),
        (Place { line: 3, column: 4 }, Place { line: 3, column: 9 })
    );
}

#[test]
fn several_documents_are_a_list() {
    let tree = Tree::read(Format::Yaml, b"a: 1\n---\na: 2\n").unwrap();
    assert_eq!(tree.to_json(), json!([{"a": 1}, {"a": 2}]));
    assert_eq!(
        tree.place_of(tree.get("[1].a").unwrap()),
        Place { line: 3, column: 4 }
    );
    assert_eq!(json_of(Format::Yaml, ""), json!(null));
    assert_eq!(json_of(Format::Yaml, "# only this\n"), json!(null));
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let twice = finding(Format::Yaml, "a:\n  b: 1\n  b: 2\n");
    assert_eq!(
        (twice.key.as_deref(), twice.place),
        (Some("a.b"), Some(Place { line: 3, column: 3 }))
    );
    assert_eq!(
        twice.found,
        "the key stands twice, first in line 2, column 3"
    );
    let twice = finding(Format::Json, r#"{"a": 1, "a": 2}"#);
    assert_eq!(
        twice.place,
        Some(Place {
            line: 1,
            column: 10
        })
    );
    assert_eq!(
        finding(Format::Json, "{\"a\": }").place,
        Some(Place { line: 1, column: 7 })
    );
    assert_eq!(
        finding(Format::Yaml, "a: 1\nb: [1\n").place.map(|p| p.line),
        Some(2)
    );
    let bytes = Tree::read(Format::Json, b"{\"a\":\n \"\xff\"}").unwrap_err();
    assert_eq!(
        (bytes.found.as_str(), bytes.place),
        ("it is not UTF-8", Some(Place { line: 2, column: 3 }))
    );
}

#[test]
fn bombs_and_towers_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        writeln!(
            bomb,
            "a{level}: &a{level} [{}]",
            below.trim_end_matches(", ")
        )
        .unwrap();
    }
    assert!(
        finding(Format::Yaml, &bomb)
            .found
            .contains("its aliases multiply")
    );
    let own = finding(Format::Yaml, "a: &a [*a]\n");
    assert!(own.place.is_some(), "{own:?}");
    for (format, open, close) in [
        (Format::Json, "[", "]"),
        (Format::Yaml, "[", "]"),
        (Format::Yaml, "{a: ", "}"),
        (Format::Yaml, "- ", ""),
    ] {
        let tower = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(
            Tree::read(format, tower.as_bytes()).is_err(),
            "{format:?} {open}"
        );
    }
    let tower = format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Tree::read(Format::Toml, tower.as_bytes()).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for format in Format::ALL {
            drop(Tree::read(format, &bytes));
        }
    }

    #[test]
    fn any_text_like_config_is_read_or_refused(text in "[a-c:=\\[\\]{}\\-\"', \n\r\t0-9*&<#!|>.]{0,80}") {
        for format in Format::ALL {
            if let Ok(tree) = Tree::read(format, text.as_bytes()) {
                tree.to_json();
            }
        }
    }
}
