//! Size, depth and work are limited: a hostile text costs little and is told.

use backout_checks::syntax::{BYTES_MAX, CODE_BYTES_MAX, Format, check};

fn found(format: Format, text: &str) -> String {
    let findings = check(format, text.as_bytes());
    findings
        .first()
        .map(|finding| finding.found.clone())
        .unwrap_or_default()
}

#[test]
fn what_is_too_large_is_told_and_not_read() {
    let small = vec![b' '; CODE_BYTES_MAX + 1];
    let large = vec![b' '; BYTES_MAX + 1];
    for format in Format::ALL {
        let findings = check(format, &large);
        assert_eq!(findings.len(), 1, "{format}");
        assert_eq!(
            findings[0].found,
            format!("is too large to be checked ({} bytes)", BYTES_MAX + 1)
        );
    }
    for format in [Format::Shell, Format::Sql, Format::Toml, Format::Rust] {
        assert!(
            found(format, str::from_utf8(&small).unwrap()).contains("too large"),
            "{format}"
        );
    }
    assert!(found(Format::Json, str::from_utf8(&small).unwrap()).contains("is empty"));
}

#[test]
fn deep_nesting_is_told_and_overflows_no_stack() {
    for (format, open) in [
        (Format::Json, "["),
        (Format::Json, "{\"a\":"),
        (Format::JsonWithComments, "["),
        (Format::Yaml, "["),
        (Format::Yaml, "- "),
        (Format::Yaml, "? "),
        (Format::Toml, "a=["),
        (Format::Xml, "<a>"),
        (Format::Shell, "("),
        (Format::Shell, "$("),
        (Format::Shell, "\"$("),
        (Format::Shell, "${"),
        (Format::Shell, "x=(a "),
        (Format::Shell, "{ "),
        (Format::Shell, "if "),
        (Format::Shell, "f() { "),
        (Format::Shell, "case x in a) "),
        (Format::Hcl, "a {\n"),
    ] {
        let text = match format {
            Format::Toml => format!("a={}", "[".repeat(50_000)),
            Format::Json
            | Format::JsonWithComments
            | Format::Yaml
            | Format::Xml
            | Format::Ini
            | Format::Env
            | Format::Shell
            | Format::Sql
            | Format::Hcl
            | Format::Dockerfile
            | Format::Python
            | Format::JavaScript
            | Format::TypeScript
            | Format::Tsx
            | Format::Rust
            | Format::Go
            | Format::C => open.repeat(50_000),
        };
        let found = found(format, &text);
        assert!(
            found.starts_with("is nested deeper than "),
            "{format} {open:?}: {found}"
        );
    }
    for open in ["[", "(", "f(", "x?", "\"${", "{a="] {
        let found = found(Format::Hcl, &format!("a={}", open.repeat(50_000)));
        assert!(
            found.starts_with("is nested deeper than "),
            "{open:?}: {found}"
        );
    }
}

#[test]
fn nesting_that_people_write_passes() {
    let nested = |open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(60), close.repeat(60))
    };
    for (format, text) in [
        (Format::Json, nested("[", "1", "]")),
        (Format::Yaml, nested("[", "1", "]")),
        (Format::Xml, nested("<a>", "x", "</a>")),
        (Format::Hcl, format!("a = {}", nested("[", "1", "]"))),
        (Format::Shell, nested("{ ", ":;", " };")),
    ] {
        assert_eq!(found(format, &text), "", "{format}");
    }
}

#[test]
fn what_is_tried_twice_does_not_double_with_each_level() {
    // Each of these would take longer than anybody lives if the work doubled.
    for text in [
        "a[$(a[$(".repeat(45),
        "((\"$(".repeat(45),
        "$((\"$(".repeat(45),
        "(( ".repeat(40) + &") ) ".repeat(40),
    ] {
        assert_ne!(found(Format::Shell, &text), "", "{text}");
    }
    for open in ["(", "(select ", "a(", "case when "] {
        let text = format!("select {}", open.repeat(40));
        assert_ne!(found(Format::Sql, &text), "", "{open}");
    }
}

#[test]
fn long_chains_in_sql_have_room() {
    for text in [
        format!("select {}1", "1+".repeat(30_000)),
        format!("select {}1", "a or ".repeat(12_000)),
        format!("select a{}", "::b".repeat(20_000)),
    ] {
        assert_eq!(found(Format::Sql, &text), "");
    }
}

#[test]
fn a_billion_laughs_are_counted_and_not_told() {
    let mut xml = String::from("<!DOCTYPE a [<!ENTITY l0 \"ha\">");
    let mut yaml = String::from("l0: &l0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n");
    for level in 1..10 {
        let below = level - 1;
        let entities = format!("&l{below};").repeat(10);
        let aliases = vec![format!("*l{below}"); 10].join(", ");
        xml.extend(["<!ENTITY l", &level.to_string(), " \"", &entities, "\">"]);
        yaml.extend([format!("l{level}: &l{level} [{aliases}]\n")]);
    }
    xml += "]><a>&l9;</a>";
    assert_eq!(found(Format::Xml, &xml), "");
    assert_eq!(
        found(Format::Yaml, &yaml),
        "the aliases come to more than 10000000 values"
    );
}

#[test]
fn a_large_text_is_read_to_its_end() {
    let row = r#"{"id": 1, "name": "user", "tags": ["a", "b"], "x": {"y": null}}"#;
    let rows = vec![row; 50_000].join(",\n");
    assert_eq!(found(Format::Json, &format!("[{rows}]")), "");
    assert_eq!(found(Format::Yaml, &format!("[{rows}]")), "");
    let found = check(Format::Json, format!("[{rows}").as_bytes());
    assert_eq!(found[0].place.unwrap().line, 50_000);
}
