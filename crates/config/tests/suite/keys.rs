//! Keys are printed as they are parsed, whatever the names hold. Formats are told by file names.

use backout_config::{ConfigError, Document, Format, KeyPath, SIZE_MAX, Segment, TOML_SIZE_MAX};

#[test]
fn a_key_is_read_as_people_write_it() {
    let name = |name: &str| Segment::Name(name.to_owned());
    for (text, segments) in [
        ("a", vec![name("a")]),
        ("server.port", vec![name("server"), name("port")]),
        ("a.\"b.c\".d", vec![name("a"), name("b.c"), name("d")]),
        (
            "list[0].name",
            vec![name("list"), Segment::Index(0), name("name")],
        ),
        ("[2]", vec![Segment::Index(2)]),
        ("list[+]", vec![name("list"), Segment::Append]),
        (
            "m[1][2]",
            vec![name("m"), Segment::Index(1), Segment::Index(2)],
        ),
        ("paths.@app/*", vec![name("paths"), name("@app/*")]),
        ("größe.x", vec![name("größe"), name("x")]),
        ("\"\"", vec![name("")]),
        ("\"say \\\"hi\\\"\\n\"", vec![name("say \"hi\"\n")]),
        ("8080", vec![name("8080")]),
    ] {
        let key: KeyPath = text.parse().unwrap();
        assert_eq!(key.segments(), segments, "{text}");
        assert_eq!(key.to_string().parse::<KeyPath>().unwrap(), key, "{text}");
    }
}

#[test]
fn a_key_that_is_not_understood_is_refused_with_its_column() {
    for (text, column) in [
        ("", 1),
        ("a..b", 3),
        ("a.", 3),
        (".a", 1),
        ("a b", 2),
        ("a[-1]", 3),
        ("a[x]", 3),
        ("a[1", 2),
        ("a.\"b", 3),
        ("a\"b\"", 2),
        ("[0]a", 4),
        ("a[99999999999999999999]", 2),
    ] {
        match text.parse::<KeyPath>() {
            Err(ConfigError::KeySyntax { column: found, .. }) => {
                assert_eq!(found, column, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_format_is_told_by_the_name_of_the_file() {
    for (file, format) in [
        ("package.json", Some(Format::Json)),
        ("web/tsconfig.json", Some(Format::Jsonc)),
        ("tsconfig.build.json", Some(Format::Jsonc)),
        (".vscode/settings.json", Some(Format::Jsonc)),
        ("x/.vscode/settings.json", Some(Format::Jsonc)),
        ("a.jsonc", Some(Format::Jsonc)),
        ("docker-compose.yml", Some(Format::Yaml)),
        ("A.YAML", Some(Format::Yaml)),
        ("Cargo.toml", Some(Format::Toml)),
        ("setup.cfg", Some(Format::Ini)),
        (".git/config", Some(Format::Ini)),
        (".env", Some(Format::Env)),
        (".env.local", Some(Format::Env)),
        ("prod.env", Some(Format::Env)),
        ("Makefile", None),
        ("config", None),
    ] {
        assert_eq!(Format::of_file(file), format, "{file}");
    }
}

#[test]
fn a_text_over_the_limit_is_refused_with_the_limit() {
    let large = "#".repeat(SIZE_MAX + 1);
    for format in Format::ALL {
        let limit = if format == Format::Toml {
            TOML_SIZE_MAX
        } else {
            SIZE_MAX
        };
        let error = Document::parse(format, &large).unwrap_err();
        assert_eq!(
            error,
            ConfigError::OverLimit {
                what: "the size in bytes",
                limit
            }
        );
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    let error = Document::from_bytes(Format::Ini, b"a = 1\nb = \xff\n").unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 5: this is not UTF-8");
}
