//! INI.

use backout_config::{ConfigError, Format, Value};

use crate::steps::{broken, json, means, merge, plain, raw, refused, reverts_in, says, set, unset};

const I: Format = Format::Ini;

const CONF: &str = "\
; The server
name=web

[http]
# Where it listens
port = 80 ; public
root = /srv
flag

[mail]
host: mx.example
to =
    a@example
    b@example
";

#[test]
fn a_value_is_replaced_and_nothing_else() {
    set(
        I,
        CONF,
        "http.port",
        &plain("8080"),
        &CONF.replace("80 ;", "8080 ;"),
    );
    set(I, CONF, "name", &plain("no"), &CONF.replace("web", "no"));
    set(
        I,
        CONF,
        "mail.host",
        &plain("m"),
        &CONF.replace("mx.example", "m"),
    );
    set(
        I,
        CONF,
        "mail.to",
        &plain("c@example"),
        &CONF.replace("\n    a@example\n    b@example", " c@example"),
    );
    set(
        I,
        CONF,
        "http.flag",
        &plain("1"),
        &CONF.replace("flag", "flag = 1"),
    );
    set(I, "[a]\nx =\ny=\n", "a.x", &plain("1"), "[a]\nx = 1\ny=\n");
    set(I, "[a]\nx =\ny=\n", "a.y", &plain("1"), "[a]\nx =\ny=1\n");
    set(
        I,
        "[a]\nx = \"b c\" # d\n",
        "a.x",
        &plain("e ; f"),
        "[a]\nx = \"e ; f\" # d\n",
    );
    set(
        I,
        "[core]\n\tbare = false\n\teditor = vi\n",
        "core.bare",
        &plain("true"),
        "[core]\n\tbare = true\n\teditor = vi\n",
    );
    set(
        I,
        "[Service]\r\nExecStart=/a \\\r\n  b\r\nUser=x\r\n",
        "Service.ExecStart",
        &plain("/c"),
        "[Service]\r\nExecStart=/c\r\nUser=x\r\n",
    );
}

#[test]
fn a_new_key_looks_like_its_neighbours() {
    set(
        I,
        CONF,
        "http.tls",
        &plain("on"),
        &CONF.replace("flag\n", "flag\ntls = on\n"),
    );
    set(
        I,
        CONF,
        "mode",
        &plain("x"),
        &CONF.replace("name=web\n", "name=web\nmode=x\n"),
    );
    set(
        I,
        CONF,
        "log.level",
        &plain("info"),
        &format!("{CONF}\n[log]\nlevel=info\n"),
    );
    set(
        I,
        "[core]\n\tbare = false\n",
        "core.editor",
        &plain("vi"),
        "[core]\n\tbare = false\n\teditor = vi\n",
    );
    set(
        I,
        "# top\n\n# about a\n[a]\nx=1",
        "k",
        &plain("v"),
        "# top\n\nk=v\n\n# about a\n[a]\nx=1",
    );
    set(I, "[a]\n[b]\n", "a.x", &plain("1"), "[a]\nx = 1\n[b]\n");
    set(I, "", "a.x", &plain("1"), "[a]\nx = 1\n");
    set(I, "[a]\nx=1", "b.y", &plain("2"), "[a]\nx=1\n\n[b]\ny=2");
    set(
        I,
        "[a]\nx=1\n",
        "\"remote \\\"o\\\"\".url",
        &plain("u"),
        "[a]\nx=1\n\n[remote \"o\"]\nurl=u\n",
    );
    assert_eq!(
        means(I, "[remote \"o\"]\nurl=u\n", "\"remote \\\"o\\\"\".url"),
        Some(Value::Text("u".into()))
    );
}

#[test]
fn a_key_goes_and_comes_back_to_its_place() {
    let edited = unset(
        I,
        CONF,
        "http.port",
        &CONF.replace("port = 80 ; public\n", ""),
    );
    reverts_in(
        I,
        &edited,
        &edited.text.replace("web", "w"),
        &CONF.replace("web", "w"),
    );
    unset(
        I,
        CONF,
        "mail.to",
        &CONF.replace("to =\n    a@example\n    b@example\n", ""),
    );
    unset(
        I,
        CONF,
        "http",
        &CONF.replace(
            "[http]\n# Where it listens\nport = 80 ; public\nroot = /srv\nflag\n\n",
            "",
        ),
    );
    unset(I, CONF, "mail", &CONF[..CONF.find("\n[mail]").unwrap()]);
    let edited = set(
        I,
        "[a]\nx=1\n",
        "b.y",
        &plain("2"),
        "[a]\nx=1\n\n[b]\ny=2\n",
    );
    reverts_in(
        I,
        &edited,
        "[a]\nx=3\n\n[b]\ny=2\nz=1\n",
        "[a]\nx=3\n\n[b]\nz=1\n",
    );
    reverts_in(I, &edited, "[c]\n\n[b]\ny=2\n", "[c]\n");
}

#[test]
fn a_patch_is_merged_leaf_by_leaf() {
    merge(
        I,
        CONF,
        r#"{"http": {"port": 81, "root": null}, "name": true}"#,
        &CONF
            .replace("80 ;", "81 ;")
            .replace("root = /srv\n", "")
            .replace("web", "true"),
    );
}

#[test]
fn what_is_ambiguous_is_refused() {
    let twice = "[a]\nx=1\n[b]\n[a]\ny=2\n";
    says(
        I,
        twice,
        "a.z",
        &plain("1"),
        "`a` stands twice: line 1, column 2, and line 4, column 2",
    );
    set(I, twice, "a.y", &plain("3"), "[a]\nx=1\n[b]\n[a]\ny=3\n");
    says(
        I,
        "[a]\nx=1\nx=2\n",
        "a.x",
        &plain("3"),
        "`a.x` stands twice: line 2, column 1, and line 3, column 1",
    );
    // A key that stands twice elsewhere is not in the way.
    set(
        I,
        "[a]\nx=1\nx=2\ny=3\n",
        "a.y",
        &plain("4"),
        "[a]\nx=1\nx=2\ny=4\n",
    );
    // Nor is it a neighbour by which a key finds its place again.
    unset(I, "x\na=1\nx\nb=2\n", "a", "x\nx\nb=2\n");
    unset(I, "x\na=1\nx\n", "a", "x\nx\n");
    // A key goes back although another one differs only in case.
    unset(I, "[s]\na = 1\nA = 2\n", "s.a", "[s]\nA = 2\n");
    says(
        I,
        CONF,
        "http.Port",
        &plain("1"),
        "`http.Port` is not there, but `http.port` is (line 6, column 1)",
    );
    says(
        I,
        "[a.b]\nx=1\n",
        "a.b.x",
        &plain("1"),
        "`a.b.x` is not there, but `\"a.b\".x` is (line 1, column 2)",
    );
    says(
        I,
        CONF,
        "a.b.c",
        &plain("1"),
        "`a.b.c` cannot be a key here: INI has sections and keys in them, no deeper",
    );
    says(
        I,
        CONF,
        "name.x",
        &plain("1"),
        "`name.x` cannot be a key here: what stands there is a key, not a section",
    );
}

#[test]
fn what_no_reader_would_find_is_not_written() {
    for value in ["a ; b", " a", "a\nb", "# a", "\"a"] {
        let error = refused(I, CONF, "http.root", &plain(value));
        assert!(
            matches!(error, ConfigError::Unwritable { .. }),
            "{value}: {error}"
        );
    }
    set(
        I,
        CONF,
        "http.root",
        &raw("\"a ; b\""),
        &CONF.replace("/srv", "\"a ; b\""),
    );
    assert!(matches!(
        refused(I, CONF, "http.root", &json("[1]")),
        ConfigError::Unwritable { .. }
    ));
    assert!(matches!(
        refused(I, CONF, "http.\"a=b\"", &plain("1")),
        ConfigError::NoSuchKeys { .. }
    ));
    broken(
        I,
        "[a\nx=1\n",
        "line 1, column 1: this section has no `]`, or something follows it",
    );
    broken(
        I,
        "[a]\n  = 1\n",
        "line 2, column 3: a key is needed before this sign",
    );
}
