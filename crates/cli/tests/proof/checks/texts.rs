//! Texts that nobody wants, schemas that nobody can use, conditions that do not end.

use std::fmt::Write as _;

use super::{denied, denied_once, ruled, waits};

#[test]
fn a_schema_that_cannot_be_used_passes_nothing() {
    let world = ruled("[[check]]\nname = 's'\npaths = ['a.json']\nschema = 'schema.json'\n");
    let write = ["write", "a.json", "--text", "{}"];
    let found = denied_once(&world, &write);
    assert!(found.contains("schema.json` cannot be used: "), "{found}");
    assert!(found.contains("o such file"), "{found}");
    for (schema, words) in [
        ("{", "schema.json` cannot be used"),
        (r#"{"type": "wrong"}"#, "schema.json` cannot be used"),
        (
            r#"{"$ref": "http://127.0.0.1:1/other.json"}"#,
            "http://127.0.0.1:1/other.json",
        ),
        (r#"{"$ref": "file:///etc/passwd"}"#, "file:///etc/passwd"),
        (r#"{"pattern": "(("}"#, "schema.json` cannot be used"),
    ] {
        world.file("schema.json", schema);
        let found = denied_once(&world, &write);
        assert!(found.contains(words), "{schema}: {found}");
        assert!(!world.path("a.json").exists());
    }
    world.file("schema.json", "{\"type\": \"object\"}");
    world.ok(&write);
    let found = denied_once(&world, &["write", "a.json", "--text", "[]"]);
    assert!(!found.is_empty());
}

#[test]
fn a_condition_that_does_not_end_or_fails_asks_at_least() {
    let long = "[1,2,3,4,5,6,7,8,9,10].all(a, ".repeat(8) + "true" + &")".repeat(8);
    for condition in [
        long.as_str(),
        "1 / operation.removed > 0",
        "operation.paths[17] == 'x'",
    ] {
        let rules =
            format!("[[rule]]\nname = 'odd'\nwhen = \"\"\"{condition}\"\"\"\nthen = 'warn'\n");
        let world = ruled(&rules);
        let id = waits(&world, &["write", "a", "--text", "x"]);
        let shown = world.ok(&["pending", &id]);
        assert!(shown.contains("the condition "), "{shown}");
        assert!(!world.path("a").exists());
    }
}

#[test]
fn yaml_bombs_and_other_odd_texts_are_refused_in_no_time() {
    let world = ruled("[syntax]\n");
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let last = format!("*a{}, ", level - 1).repeat(9);
        writeln!(bomb, "a{level}: &a{level} [{last}]").unwrap();
    }
    let deep = "[".repeat(100_000);
    for (name, text) in [
        ("bomb.yaml", bomb.as_str()),
        ("deep.json", &deep),
        ("twice.json", "{\"a\": 1, \"a\": 2}"),
        ("twice.yaml", "a: 1\na: 2\n"),
        ("twice.toml", "a = 1\na = 2\n"),
        ("half.json", "{\"a\": 1"),
        ("more.json", "{} {}"),
    ] {
        world.file("../text", text);
        let found = denied(&world, &["write", name, "--from", "../text"]);
        assert!(!found.is_empty(), "{name}");
        assert!(!world.path(name).exists());
        let rule = found[0]["rule"].as_str().unwrap();
        assert!(rule.starts_with("syntax in"), "{name}: {rule}");
    }
    // A text with a mark before it stops many readers of JSON. One with the line ends of two systems is what people have.
    let found = denied_once(
        &world,
        &["write", "mark.json", "--text", "\u{feff}{\"a\": 1}\n"],
    );
    assert!(found.contains("byte order mark"), "{found}");
    world.ok(&["write", "ends.toml", "--text", "a = 1\r\nb = 2\n"]);
    world.ok(&[
        "write",
        "ends.json",
        "--text",
        "{\r\n\"a\": 1,\n\"b\": 2}\r\n",
    ]);
}

#[test]
fn bytes_under_the_name_of_a_text_are_refused() {
    let world = ruled("[syntax]\n");
    std::fs::write(world.scratch("bytes"), [0xff, 0xfe, 0, 1, 2, 3, 0x80]).unwrap();
    for name in ["a.json", "a.yaml", "a.toml", "a.py"] {
        denied(&world, &["write", name, "--from", "../bytes"]);
        assert!(!world.path(name).exists());
    }
    // Where nobody knows the format there is nothing to say.
    world.ok(&["write", "a.bin", "--from", "../bytes"]);
}

#[test]
fn fifty_megabytes_pass_and_what_is_too_large_to_look_at_does_not() {
    let world = ruled("[syntax]\n");
    let item = format!("{{\"key\": \"{}\"}},\n", "v".repeat(990));
    let text = format!("[{}{{}}]", item.repeat(50_000));
    assert!(text.len() > 50_000_000);
    std::fs::write(world.scratch("large"), &text).unwrap();
    world.ok(&["write", "large.json", "--from", "../large"]);
    // The mistake is at the very end.
    let wrong = text.strip_suffix(']').unwrap();
    std::fs::write(world.scratch("large"), wrong).unwrap();
    let found = denied(&world, &["write", "large.json", "--from", "../large"]);
    assert_eq!(found[0]["place"]["line"], 50_001, "{found:?}");
    std::fs::write(world.scratch("large"), text.repeat(2)).unwrap();
    world.file("backout.toml", "[syntax]\n[policy]\nsecrets = 'deny'\n");
    let found = denied(&world, &["write", "large.json", "--from", "../large"]);
    let found: Vec<&str> = found
        .iter()
        .map(|it| it["found"].as_str().unwrap())
        .collect();
    let [syntax, secrets] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert!(
        syntax.ends_with("it cannot be checked: it is larger than 64 MiB"),
        "{syntax}"
    );
    assert!(
        secrets.ends_with("it cannot be searched for secrets: it is larger than 64 MiB"),
        "{secrets}"
    );
}

#[test]
fn what_was_broken_may_be_written_and_is_told() {
    let world = ruled("[syntax]\n");
    world.file("a.json", "{\"a\": \"b\": }");
    let told = world.json(&["write", "a.json", "--text", "{\"a\": }"]);
    let notes = told["notes"].to_string();
    assert!(
        notes.contains("; it was broken before as well, so it is written"),
        "{notes}"
    );
    world.ok(&["write", "a.json", "--text", "{\"a\": 1}"]);
    denied(&world, &["write", "a.json", "--text", "{\"a\": }"]);
}

#[test]
fn skipped_paths_and_formats_by_pattern() {
    let world = ruled("[syntax]\nskip = ['fixtures/**']\nformats = { '*.tmpl' = 'json' }\n");
    world.ok(&["write", "-p", "fixtures/bad.json", "--text", "{"]);
    denied(&world, &["write", "x.tmpl", "--text", "{"]);
    world.ok(&["write", "x.tmpl", "--text", "{}"]);
    let warned = ruled("[syntax]\non-failure = 'warn'\n");
    let told = warned.json(&["write", "x.json", "--text", "{"]);
    assert!(told["notes"].to_string().contains("syntax in"), "{told}");
    assert_eq!(warned.read("x.json"), "{");
}

#[test]
fn values_are_told_with_key_place_and_remedy() {
    let world = ruled(
        "[[check]]
name = 'app'
paths = ['*.toml']
values = [
  { key = 'server.port', min = 1, max = 65535 },
  { key = 'log.dir', exists = true },
  { key = 'users.*.name', unique = true },
  { key = 'default', refers-to = 'backends.*.name' },
]
",
    );
    std::fs::create_dir(world.path("logs")).unwrap();
    let good = "default = 'b'\n[server]\nport = 80\n[log]\ndir = 'logs'\n[[users]]\nname = 'x'\n[[users]]\nname = 'y'\n[[backends]]\nname = 'b'\n";
    world.ok(&["write", "app.toml", "--text", good]);
    let bad = good
        .replace("80", "80000")
        .replace("'logs'", "'nowhere'")
        .replace("'y'", "'x'")
        .replace("default = 'b'", "default = 'c'");
    let found = denied(&world, &["write", "app.toml", "--text", &bad]);
    assert_eq!(found.len(), 4, "{found:#?}");
    for reason in &found {
        assert!(reason["key"].is_string(), "{reason:#}");
        assert!(reason["place"]["line"].is_u64(), "{reason:#}");
        assert!(
            reason["rule"].as_str().unwrap().contains("check `app` in"),
            "{reason:#}"
        );
    }
    assert_eq!(world.read("app.toml"), good);
}
