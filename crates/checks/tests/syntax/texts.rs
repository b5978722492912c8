//! What holds for every format: encodings, remedies, keys.

use backout_checks::syntax::{FINDINGS_MAX, Format, check};
use backout_checks::{Finding, Place};

fn first(format: Format, content: &[u8]) -> Finding {
    check(format, content)
        .into_iter()
        .next()
        .unwrap_or_else(|| panic!("{format}: {content:?} passes"))
}

#[test]
fn what_is_no_text_is_told() {
    for format in Format::ALL {
        let utf16 = first(format, b"\xff\xfea\0");
        assert_eq!(
            (utf16.found.as_str(), utf16.remedy.as_deref()),
            ("is UTF-16", Some("save it as UTF-8"))
        );
        let zero = first(format, b"a\nb\0c");
        assert_eq!(zero.found, "holds a zero byte");
        assert_eq!(zero.place, Some(Place { line: 2, column: 2 }));
    }
}

#[test]
fn bytes_that_are_not_utf8_are_told_with_their_place() {
    for format in [
        Format::Json,
        Format::Yaml,
        Format::Toml,
        Format::Xml,
        Format::Python,
        Format::Rust,
    ] {
        let finding = first(format, b"a\n\xc3\xa4b\xe4c");
        assert_eq!(
            finding.found, "is not UTF-8: the byte 0xe4 stands here",
            "{format}"
        );
        assert_eq!(
            finding.place,
            Some(Place { line: 2, column: 3 }),
            "{format}"
        );
    }
}

#[test]
fn where_other_encodings_are_usual_they_pass() {
    for (format, content) in [
        (Format::Ini, &b"[a]\nb = \xe4\n"[..]),
        (Format::Env, b"A=\xe4\n"),
        (Format::Shell, b"echo \xe4\n"),
        (Format::Sql, b"SELECT '\xe4';\n"),
        (Format::C, b"char *s = \"\xe4\";\n"),
        (
            Format::Xml,
            b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe4</a>",
        ),
        (Format::Python, b"# -*- coding: latin-1 -*-\nx = '\xe4'\n"),
    ] {
        let is_read = cfg!(feature = "code") || !format.is_code();
        assert_eq!(check(format, content).is_empty(), is_read, "{format}");
    }
}

#[cfg(not(feature = "code"))]
#[test]
fn without_grammars_code_is_not_told_apart_and_never_passes() {
    assert_eq!(Format::of(std::path::Path::new("a.rs"), b""), None);
    let finding = first(Format::Rust, b"fn main() {}\n");
    let found = "cannot be checked: this program was built without the grammar of rust";
    assert_eq!(finding.found, found);
}

#[test]
fn a_byte_order_mark_is_told_where_readers_stumble() {
    for (format, text, stumbles) in [
        (Format::Json, "\u{feff}{}", true),
        (Format::Env, "\u{feff}A=1", true),
        (Format::Shell, "\u{feff}echo", true),
        (Format::JsonWithComments, "\u{feff}{}", false),
        (Format::Ini, "\u{feff}[a]", false),
        (Format::Hcl, "\u{feff}a = 1", false),
        (Format::Dockerfile, "\u{feff}FROM a", false),
    ] {
        let found = check(format, text.as_bytes());
        let told = found
            .iter()
            .any(|f| f.found == "begins with a byte order mark, at which readers stumble");
        assert_eq!(told, stumbles, "{format}: {found:?}");
    }
}

#[test]
fn empty_texts_are_wrong_only_where_something_is_needed() {
    for format in Format::ALL {
        if format.is_code() && cfg!(not(feature = "code")) {
            continue;
        }
        let needs = matches!(
            format,
            Format::Json | Format::JsonWithComments | Format::Xml | Format::Dockerfile
        );
        assert_eq!(!check(format, b"").is_empty(), needs, "{format}");
    }
}

#[test]
fn a_key_that_stands_twice_is_named_as_set_would_name_it() {
    let text = r#"{"a": [{}, {"b.c": 1, "b.c": 2}]}"#;
    let finding = first(Format::Json, text.as_bytes());
    assert_eq!(finding.key.as_deref(), Some(r#"a[1]."b.c""#));
    assert_eq!(finding.remedy.as_deref(), Some("remove one of the two"));
    let finding = first(Format::Yaml, b"a:\n  - x: 1\n    x: 2\n");
    assert_eq!(finding.key.as_deref(), Some("a[0].x"));
    let finding = first(Format::Toml, b"[t]\na = 1\na = 2\n");
    assert_eq!(finding.key.as_deref(), Some("a"));
}

#[test]
fn every_key_that_stands_twice_is_told_up_to_the_limit() {
    let two = check(Format::Json, br#"{"a": 1, "a": 2, "b": 3, "b": 4}"#);
    assert_eq!(two.len(), 2);
    let many: Vec<String> = (0..100).map(|i| format!("\"{}\": 1", i % 10)).collect();
    let many = check(Format::Json, format!("{{{}}}", many.join(",")).as_bytes());
    assert_eq!(many.len(), FINDINGS_MAX);
}

#[test]
fn remedies_say_what_to_do() {
    for (format, text, remedy) in [
        (Format::Json, "[1,]", "remove the comma"),
        (Format::Json, "{'a': 1}", "write `\"key\": value`"),
        (Format::Json, "[NaN]", "write it as a string, or as `null`"),
        (
            Format::Json,
            "[007]",
            "remove the zeros before it, or put it in quotes",
        ),
        (Format::Json, "[1", "close it with `]`"),
        (Format::Yaml, "a:\n\tb: 1\n", "indent with spaces"),
        (
            Format::Yaml,
            "a: b: c\n",
            "put a text that holds `: ` in quotes, or check the indentation",
        ),
        (Format::Toml, "a = b\n", "write `\"b\"`"),
        (
            Format::Xml,
            "<a>&nbsp;</a>",
            "write the character itself, or its number as in `&#160;`",
        ),
        (Format::Xml, "<a>a & b</a>", "write `&amp;`"),
        (Format::Ini, "[a\n", "close it with `]`"),
        (
            Format::Env,
            "A=\"x\n",
            "close it, or write the value without quotes",
        ),
        (Format::Shell, "if a; then b\n", "close it with `fi`"),
        (Format::Shell, "cat <<E\n", "end it with a line `E`"),
        (
            Format::Hcl,
            "a = \"x\n",
            "close it with `\"`; for several lines write `<<EOT`",
        ),
        (
            Format::Dockerfile,
            "FROM a\n&& b\n",
            "end the line before it with a backslash if it goes on here",
        ),
    ] {
        assert_eq!(
            first(format, text.as_bytes()).remedy.as_deref(),
            Some(remedy),
            "{text:?}"
        );
    }
}

#[test]
fn long_and_strange_parts_are_shown_short_and_on_one_line() {
    let text = format!("[{}\u{7}\n", "x".repeat(200));
    let found = first(Format::Ini, text.as_bytes()).found;
    assert_eq!(
        found,
        format!("the section `[{}…` is not closed", "x".repeat(39))
    );
    let found = first(Format::Ini, b"[a\tb\x07\n").found;
    assert_eq!(found, "the section `[a\\tb\\u{7}` is not closed");
}
