//! Schemas: what they find, in which words, and what they cannot be made to do.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::finding::Place;

const SCHEMA: &str = r##"{
  "type": "object",
  "required": ["server"],
  "additionalProperties": false,
  "properties": {
    "server": {"$ref": "#/$defs/server"},
    "mode": {"enum": ["fast", "safe"]},
    "tags": {"type": "array", "uniqueItems": true, "items": {"type": "string", "pattern": "^[a-z]+$"}},
    "level": {"type": ["integer", "string"]}
  },
  "$defs": {
    "server": {
      "type": "object",
      "required": ["port", "timeout"],
      "additionalProperties": false,
      "properties": {"port": {"type": "integer", "minimum": 1, "maximum": 65535}, "timeout": {"type": "number"}, "host": {"type": "string"}}
    }
  }
}"##;

fn findings(text: &str) -> Vec<Finding> {
    let schema = Schema::compile(SCHEMA).unwrap();
    schema.check(&Tree::read(Format::Yaml, text.as_bytes()).unwrap())
}

#[test]
fn a_mistake_is_told_with_key_place_and_remedy() {
    #[rustfmt::skip]
    let table = [
        ("server: {port: 80, timeout: 1}\nmode: fsat\n", "mode", 2, 7, "\"fsat\" is none of `fast`, `safe`", "did you mean `fast`?"),
        ("server: {port: 80, timeout: 1}\nmode: no\n", "mode", 2, 7, "\"no\" is none of `fast`, `safe`", "choose one of `fast`, `safe`"),
        ("server:\n  port: 80000\n  timeout: 1\n", "server.port", 2, 9, "`80000` is more than 65535", "choose a smaller number"),
        ("server:\n  port: '80'\n  timeout: 1\n", "server.port", 2, 9, "it is a text, and has to be a whole number", "write a whole number"),
        ("server:\n  port: 80\n  timeout: 1\n  hots: a\n", "server.hots", 4, 3, "the schema knows no key `hots` here", "did you mean `host`?"),
        ("server: {port: 80, timeout: 1}\nzzz: a\n", "zzz", 2, 1, "the schema knows no key `zzz` here", "take it out, or rename it"),
        ("server: {port: 80, timeout: 1}\ntags: [a, B]\n", "tags[1]", 2, 11, "\"B\" does not match `^[a-z]+$`", "write a text that matches"),
        ("server: {port: 80, timeout: 1}\ntags: [a, a]\n", "tags", 2, 7, "a list of 2 has items that are the same", "remove what is there twice"),
        ("server: {port: 80, timeout: 1}\nlevel: 1.5\n", "level", 2, 8, "it is a number, and has to be a whole number or a text", "write a whole number or a text"),
        ("server:\n  port: 80\n", "server", 2, 3, "the key `timeout` is missing", "add `timeout`"),
        ("{}\n", "", 1, 1, "the key `server` is missing", "add `server`"),
    ];
    for (text, key, line, column, found, remedy) in table {
        let findings = findings(text);
        assert_eq!(findings.len(), 1, "{text}: {findings:?}");
        let finding = &findings[0];
        assert_eq!(finding.key.as_deref().unwrap_or_default(), key, "{text}");
        assert_eq!(finding.place, Some(Place { line, column }), "{text}");
        assert_eq!(
            (finding.found.as_str(), finding.remedy.as_deref()),
            (found, Some(remedy)),
            "{text}"
        );
    }
    assert_eq!(findings("server: {port: 80, timeout: 0.5}\n"), []);
}

#[test]
fn a_missing_name_points_at_the_one_that_was_meant() {
    let schema = Schema::compile(r#"{"required": ["timeout"]}"#).unwrap();
    let tree = Tree::read(Format::Toml, b"tiemout = 1\n").unwrap();
    assert_eq!(
        schema.check(&tree)[0].remedy.as_deref(),
        Some("add `timeout`; did you mean it by `tiemout`?")
    );
}

#[test]
fn documents_are_checked_one_by_one() {
    let found = findings("server: {port: 1, timeout: 1}\n---\nserver: {port: 0, timeout: 1}\n");
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].key.as_deref(), found[0].place),
        (
            Some("[1].server.port"),
            Some(Place {
                line: 3,
                column: 16
            })
        )
    );
}

#[test]
fn large_integers_are_compared_exactly() {
    let schema = Schema::compile(&json!({"maximum": u64::MAX - 1}).to_string()).unwrap();
    let at = |number: u64| {
        schema
            .check(&Tree::read(Format::Json, number.to_string().as_bytes()).unwrap())
            .len()
    };
    assert_eq!((at(u64::MAX - 1), at(u64::MAX)), (0, 1));
}

#[test]
fn a_wrong_schema_is_told_as_such() {
    let wrong = |text: &str| Schema::compile(text).unwrap_err();
    let finding = wrong("{\n  \"minimum\": \"a\"\n}");
    assert_eq!(
        finding.found,
        "the schema is wrong: it is a text, and has to be a number"
    );
    assert_eq!(
        (finding.key.as_deref(), finding.place),
        (
            Some("minimum"),
            Some(Place {
                line: 2,
                column: 14
            })
        )
    );
    assert!(wrong("{").found.starts_with("it cannot be read: "));
    assert!(wrong(r#"{"type": "strin"}"#).key.as_deref() == Some("type"));
    assert!(
        wrong(r#"{"$schema": "https://nowhere.test/draft"}"#)
            .found
            .starts_with("the schema is wrong: ")
    );
    assert!(
        wrong(r#"{"pattern": "("}"#)
            .found
            .starts_with("the schema is wrong: ")
    );
    assert!(
        wrong(r#"{"pattern": "(?=a)b"}"#)
            .found
            .starts_with("the schema is wrong: ")
    );
    assert!(
        wrong(r#"{"pattern": "((a{100}){100}){100}"}"#)
            .found
            .starts_with("the schema is wrong: ")
    );
    assert!(
        wrong(&format!(
            "{{\"title\": \"{}\"}}",
            "x".repeat(SCHEMA_SIZE_MAX)
        ))
        .found
        .contains("is larger than")
    );
}

#[test]
fn what_lies_elsewhere_is_not_fetched() {
    let text = "{\n  \"properties\": {\n    \"a\": {\"$ref\": \"http://127.0.0.1:9/s.json\"}}}";
    let finding = Schema::compile(text).unwrap_err();
    assert!(
        finding
            .found
            .starts_with("the schema is wrong: it refers to what is not in it"),
        "{finding:?}"
    );
    assert_eq!(
        (finding.key.as_deref(), finding.place),
        (
            Some("properties.a.$ref"),
            Some(Place {
                line: 3,
                column: 19
            })
        )
    );
    assert!(Schema::compile(r##"{"$ref": "#/$defs/gone"}"##).is_err());
    assert!(Schema::compile(r#"{"$ref": "file:///etc/passwd"}"#).is_err());
}

/// Of two references the one that leads nowhere is named, also where it is written like a part of the other.
#[test]
fn the_reference_that_leads_nowhere_is_named() {
    for (good, bad) in [
        ("#/$defs/here", "#/$defs/her"),
        ("#/$defs/here", "#nowhere"),
        ("#/$defs/here", "other.json#/$defs/here"),
        ("#/$defs/here", "http://[/s.json"),
    ] {
        let schema = json!({
            "properties": {"a": {"$ref": bad}, "b": {"$ref": good}},
            "$defs": {"here": true},
        });
        let finding = Schema::compile(&schema.to_string()).unwrap_err();
        assert_eq!(
            finding.key.as_deref(),
            Some("properties.a.$ref"),
            "{bad}: {finding:?}"
        );
    }
}

#[test]
fn drafts_are_told_by_the_schema() {
    let text = |draft: &str| {
        format!(
            r#"{{"$schema": "{draft}", "items": [{{"type": "string"}}], "additionalItems": false}}"#
        )
    };
    let tree = Tree::read(Format::Json, b"[\"a\", 2]").unwrap();
    let schema = Schema::compile(&text("http://json-schema.org/draft-07/schema#")).unwrap();
    assert_eq!(schema.check(&tree).len(), 1);
    assert!(
        Schema::compile(&text("https://json-schema.org/draft/2020-12/schema")).is_err(),
        "lists of items were renamed"
    );
}

#[test]
fn schemas_that_refer_to_themselves_end() {
    let own = Schema::compile(r##"{"$ref": "#"}"##);
    let tree = Tree::read(Format::Json, b"{\"a\": 1}").unwrap();
    if let Ok(schema) = own {
        schema.check(&tree);
    }
    let list = Schema::compile(
        r##"{"properties": {"next": {"$ref": "#"}}, "additionalProperties": false}"##,
    )
    .unwrap();
    let deep = format!(
        "{}{{\"x\": 1}}{}",
        "{\"next\": ".repeat(120),
        "}".repeat(120)
    );
    assert_eq!(
        list.check(&Tree::read(Format::Json, deep.as_bytes()).unwrap())
            .len(),
        1
    );
}

#[test]
fn a_pattern_that_would_backtrack_ends() {
    let schema = Schema::compile(r#"{"pattern": "^(a+)+$"}"#).unwrap();
    let text = format!("\"{}!\"", "a".repeat(100_000));
    assert_eq!(
        schema
            .check(&Tree::read(Format::Json, text.as_bytes()).unwrap())
            .len(),
        1
    );
}

#[test]
fn a_schema_that_asks_for_too_much_is_given_up() {
    let deep = format!("{}1{}", "{\"n\": ".repeat(100), "}".repeat(100));
    let tree = Tree::read(Format::Json, deep.as_bytes()).unwrap();
    // One that is wrong at the bottom, below two ways at each level.
    let bottom = r##"{"properties": {"n": {"allOf": [{"$ref": "#"}, {"$ref": "#/$defs/a"}]}}, "$defs": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "type": "object"}"##;
    let findings = Schema::compile(bottom).unwrap().check(&tree);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0]
            .found
            .starts_with("it is a number, and has to be")
            || findings[0].found
                == "the text could not be checked against the schema: it takes too many steps",
        "{findings:?}"
    );
    // One that is wrong soon, but in more places than there is memory.
    let wrong = r##"{"required": ["x"], "properties": {"n": {"allOf": [{"$ref": "#"}, {"$ref": "#/$defs/a"}]}}, "$defs": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}"##;
    let findings = Schema::compile(wrong).unwrap().check(&tree);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].found, "the key `x` is missing");
}

#[test]
fn a_deep_schema_is_no_danger() {
    let tower = format!("{}{{}}{}", r#"{"not": "#.repeat(100), "}".repeat(100));
    assert!(Schema::compile(&tower).is_ok());
    let tower = format!(
        "{}{{}}{}",
        r#"{"not": "#.repeat(100_000),
        "}".repeat(100_000)
    );
    assert!(Schema::compile(&tower).is_err());
    let chain: serde_json::Map<String, serde_json::Value> = (0..5000)
        .map(|at| {
            (
                format!("d{at}"),
                json!({"$ref": format!("#/$defs/d{}", at + 1)}),
            )
        })
        .chain([("d5000".to_owned(), json!(true))])
        .collect();
    let schema =
        Schema::compile(&json!({"$ref": "#/$defs/d0", "$defs": chain}).to_string()).unwrap();
    assert_eq!(schema.check(&Tree::read(Format::Json, b"1").unwrap()), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_schema_is_compiled_or_refused(text in "[a-c{}\\[\\]:\",0-9]{0,40}", keyword in "type|enum|required|pattern|items|allOf|\\$ref|\\$id|if") {
        if let Ok(schema) = Schema::compile(&format!("{{\"{keyword}\": {text}}}")) {
            schema.check(&Tree::read(Format::Json, b"{\"a\": [1, \"b\"]}").unwrap());
        }
    }
}
