//! Edits that move keys, and edits that do not.

use std::fmt::Write as _;

use backout_config::{Document, KeyPath, NewValue};
use proptest::prelude::*;

use super::*;
use crate::finding::Place;
use crate::value::Format;

fn run(format: Format, before: &str, after: &str) -> Vec<Finding> {
    let read = |text| Tree::read(format, str::as_bytes(text)).unwrap();
    check(&read(before), &read(after))
}

const TEXT: &str =
    "web:\n  port: 80\n  host: a\n  tls:\n    cert: c\n    key: k\ndb:\n  url: u\n  pool: 5\n";

#[test]
fn two_blanks_that_move_half_of_the_file_are_told() {
    let after = TEXT.replace("  tls:\n", "tls:\n");
    let findings = run(Format::Yaml, TEXT, &after);
    assert_eq!(findings.len(), 1);
    assert_eq!(
        findings[0].found,
        "1 line changed, and 2 keys moved whose lines did not: `web.tls.cert` is now `tls.cert`, `web.tls.key` is now `tls.key`"
    );
    assert_eq!(
        (findings[0].key.as_deref(), findings[0].place),
        (Some("tls.cert"), Some(Place { line: 5, column: 5 }))
    );
    assert!(
        findings[0]
            .remedy
            .as_deref()
            .unwrap()
            .starts_with("look at the indentation")
    );
}

#[test]
fn moves_that_no_line_tells_of_are_findings() {
    #[rustfmt::skip]
    let table = [
        (Format::Yaml, TEXT.to_owned(), TEXT.replace("db:\n", ""), "`db.url` is now `web.url`"),
        (Format::Yaml, TEXT.to_owned(), TEXT.replace("  host: a\n", "  host: a\nmid:\n"), "`web.tls.cert` is now `mid.tls.cert`"),
        (Format::Yaml, TEXT.to_owned(), TEXT.replace("db:\n  url: u\n  pool: 5\n", "  db:\n    url: u\n    pool: 5\n"), "`db.url` is now `web.db.url`"),
        (Format::Toml, "[a]\nx = 1\ny = 2\n".to_owned(), "[a]\nx = 1\n[b]\ny = 2\n".to_owned(), "`a.y` is now `b.y`"),
        (Format::Ini, "[a]\nx = 1\n[b]\ny = 2\n".to_owned(), "[a]\nx = 1\ny = 2\n".to_owned(), "`b.y` is now `a.y`"),
        (Format::Json, "{\n\"a\": {\n\"x\": 1\n},\n\"y\": 2\n}\n".to_owned(), "{\n\"a\": {\n\"x\": 1,\n\"y\": 2\n}\n}\n".to_owned(), "`y` is now `a.y`"),
        (Format::Yaml, "a:\n  - x: 1\n    y: 2\n".to_owned(), "a:\n  - x: 1\n  -\n    y: 2\n".to_owned(), ""),
        (Format::Yaml, "a: 1\nb: |\n  t\nc: 2\n".to_owned(), "a: 1\nb: |\n  t\n  c: 2\n".to_owned(), "`c` is gone"),
        (Format::Yaml, "b: |\n  t\n  c: 2\n".to_owned(), "b: |\n  t\nc: 2\n".to_owned(), "`c` is new"),
    ];
    for (format, before, after, told) in table {
        let findings = run(format, &before, &after);
        if told.is_empty() {
            assert_eq!(
                findings,
                [],
                "items of one list are not told apart: {after}"
            );
        } else {
            assert!(findings[0].found.contains(told), "{after}{findings:?}");
        }
    }
}

#[test]
fn edits_whose_lines_tell_what_they_do_are_none() {
    for after in [
        TEXT.to_owned(),
        TEXT.replace("port: 80", "port: 8080"),
        TEXT.replace("port: 80", "port: '80'"),
        TEXT.replace("port: 80", "port:\n    - 80\n    - 81"),
        TEXT.replace("web:", "front:"),
        TEXT.replace("  host: a\n", ""),
        TEXT.replace("  host: a\n", "  host: a\n  more: b\n"),
        TEXT.replace(
            "db:\n  url: u\n  pool: 5\n",
            "stores:\n  db:\n    url: u\n    pool: 5\n",
        ),
        TEXT.replace("  tls:\n    cert: c\n    key: k\n", "  tls: {}\n"),
        TEXT.replace("  ", "    "),
        TEXT.replace('\n', "\r\n"),
        format!(
            "{}{}",
            &TEXT[TEXT.find("db:").unwrap()..],
            &TEXT[..TEXT.find("db:").unwrap()]
        ),
        format!("# top\n{TEXT}"),
    ] {
        assert_eq!(run(Format::Yaml, TEXT, &after), [], "{after}");
    }
    assert_eq!(run(Format::Yaml, "a:\nb: 1\n", "a:\n  x: 1\nb: 1\n"), []);
    assert_eq!(
        run(
            Format::Yaml,
            "l:\n- a: 1\n- a: 2\n",
            "l:\n- a: 0\n- a: 1\n- a: 2\n"
        ),
        []
    );
    assert_eq!(run(Format::Ini, "[s]\nx = 1\n", "[s]\nx = 1\nx = 2\n"), []);
    assert_eq!(
        run(
            Format::Toml,
            "[a.b]\nx = 1\n[a.c]\ny = 1\n",
            "[a.c]\ny = 1\n"
        ),
        []
    );
    assert_eq!(run(Format::Yaml, "", TEXT), []);
    assert_eq!(run(Format::Yaml, TEXT, ""), []);
}

#[test]
fn aliases_and_merges_count_where_they_are_defined() {
    let before = "b: &b\n  x: 1\none:\n  <<: *b\n";
    assert_eq!(
        run(
            Format::Yaml,
            before,
            "b: &b\n  x: 1\n  y: 2\none:\n  <<: *b\n"
        ),
        []
    );
    assert_eq!(
        run(
            Format::Yaml,
            before,
            "b: &b\n  x: 1\none:\n  <<: *b\ntwo: *b\n"
        ),
        []
    );
}

#[test]
fn a_long_line_costs_little() {
    let many: Vec<String> = (0..50_000).map(|at| format!("\"k{at}\": {at}")).collect();
    let before = format!("{{\"a\": {{\n{}\n}},\n\"z\": 1}}", many.join(", "));
    let after = before
        .replace("\"a\"", "\"b\"")
        .replace("\"z\": 1", "\"z\": 2");
    assert_eq!(run(Format::Json, &before, &after), []);
}

/// A table of tables, each with a few keys.
fn tables() -> impl Strategy<Value = String> {
    let table = proptest::collection::vec(0..1000_u32, 1..5);
    proptest::collection::vec(table, 2..6).prop_map(|tables| {
        let mut text = String::new();
        for (at, values) in tables.iter().enumerate() {
            writeln!(text, "t{at}:").unwrap();
            for (index, value) in values.iter().enumerate() {
                writeln!(text, "  k{at}{index}: {value}").unwrap();
            }
        }
        text
    })
}

proptest! {
    #[test]
    fn edits_of_single_keys_are_never_found(text in tables(), edits in proptest::collection::vec((0..6_usize, 0..6_usize, prop_oneof![Just("7"), Just("word"), Just("[1, 2]"), Just("{\"x\": {\"y\": 1}}")]), 1..8)) {
        let mut after = text.clone();
        for (table, key, value) in edits {
            let key: KeyPath = if key == 5 { format!("t{table}.new.deep") } else { format!("t{table}.k{table}{key}") }.parse().unwrap();
            let document = Document::parse(Format::Yaml, &after).unwrap();
            let edited = match value {
                "7" => document.unset(&key),
                value if value.starts_with(['[', '{']) => document.set(&key, &NewValue::Typed(backout_config::Value::from_json(value).unwrap())),
                value => document.set(&key, &NewValue::Plain(value.into())),
            };
            if let Ok(edited) = edited {
                after = edited.text;
            }
        }
        prop_assert_eq!(run(Format::Yaml, &text, &after), vec![], "{}", after);
    }

    #[test]
    fn a_block_under_another_is_always_found(text in tables(), which in 1..6_usize) {
        let name = format!("t{which}:\n");
        prop_assume!(text.contains(&name));
        let start = text.find(&name).unwrap();
        let end = text[start + 1..].find("\nt").map_or(text.len(), |at| start + at + 2);
        let block = text[start..end].lines().map(|line| format!("  {line}\n")).collect::<Vec<_>>().concat();
        let after = format!("{}{block}{}", &text[..start], &text[end..]);
        prop_assert_eq!(run(Format::Yaml, &text, &after).len(), 1, "{}", after);
    }

    #[test]
    fn any_two_texts_are_compared(before in "[a-c:\\[\\]{}\\-\", \n0-9*&<]{0,60}", after in "[a-c:\\[\\]{}\\-\", \n0-9*&<]{0,60}") {
        for format in Format::ALL {
            if let (Ok(before), Ok(after)) = (Tree::read(format, before.as_bytes()), Tree::read(format, after.as_bytes())) {
                prop_assert!(check(&before, &after).len() <= 1);
                prop_assert_eq!(check(&before, &before), vec![]);
            }
        }
    }
}
