//! Five ways in which agents break things by writing, each caught: by a check before the write, or by a watch after it. Whatever
//! was written can be taken back.

use super::{denied, fails_watch, lines, ruled, script, touched, waits};
use crate::trust::json;

/// Two bytes of indentation, and the whole tree means something else. The syntax is fine.
#[test]
fn config_corruption() {
    let world =
        ruled("[syntax]\n[[check]]\nname = 'shape'\npaths = ['*.yaml']\nstructure = true\n");
    let good = "services:\n  web:\n    port: 80\n    tls: true\n  db:\n    port: 5432\nlogging:\n  level: info\n";
    world.file("app.yaml", good);
    let before = touched(&world.path("app.yaml"));
    // Two blanks less, and the whole of `db` slides out of `services`.
    let bad = good.replace("  db:\n", "db:\n");
    let found = denied(&world, &["write", "app.yaml", "--text", &bad]);
    let words = serde_json::to_string(&found).unwrap();
    assert!(words.contains("check `shape` in"), "{words}");
    assert!(words.contains("services.db"), "{words}");
    // What cannot be read at all is a matter of the syntax, with its place.
    let found = denied(
        &world,
        &[
            "edit",
            "app.yaml",
            "--search",
            "  db:",
            "--replace",
            "\tdb:",
        ],
    );
    let syntax = found
        .iter()
        .find(|it| it["rule"].as_str().unwrap().starts_with("syntax in"));
    assert!(syntax.unwrap()["place"]["line"].is_u64(), "{found:?}");
    assert_eq!(touched(&world.path("app.yaml")), before);
    // An honest edit passes.
    world.ok(&["set", "app.yaml", "services.web.port", "8080"]);
    world.ok(&["undo"]);
    assert_eq!(world.read("app.yaml"), good);
}

/// A README becomes an empty template. Without a rule it is undone; with one it waits.
#[test]
fn silent_overwrite() {
    let world = ruled("");
    let precious = "# The product\n\n".to_owned() + &"What nobody else wrote down.\n".repeat(200);
    world.file("README.md", &precious);
    // Who asks for a new file does not get an old one.
    let refused = json(
        &world,
        1,
        &["write", "--create", "README.md", "--text", "# Title\n"],
    );
    assert_ne!(refused["code"], "gate", "{refused}");
    world.ok(&["write", "README.md", "--text", "# Title\n"]);
    world.ok(&["undo"]);
    assert_eq!(world.read("README.md"), precious);
    world.file(
        "backout.toml",
        "[[rule]]
name = 'nothing shrinks to a stub'
when = 'operation.kind == \"write\" && operation.shrunk > 1000'
then = 'ask'
because = 'most of what was there would go'
remedy = 'edit it instead'
",
    );
    let before = touched(&world.path("README.md"));
    let id = waits(&world, &["write", "README.md", "--text", "# Title\n"]);
    let shown = world.ok(&["pending", &id]);
    assert!(shown.contains("most of what was there would go"), "{shown}");
    assert_eq!(touched(&world.path("README.md")), before);
    world.ok(&["reject", &id]);
    world.ok(&["write", "--append", "README.md", "--text", "More.\n"]);
    assert_eq!(world.read("README.md"), precious.clone() + "More.\n");
    world.check_store();
}

/// One record, five services. One of them does not come up, so all five get back what they had.
#[test]
fn cascading_write_failure() {
    let world = ruled("");
    world.file("db.json", "{\"pool\": 5}\n");
    let mut rules = Vec::new();
    for number in 1..=5 {
        let reload = script(
            &world,
            &format!("reload-{number}"),
            &format!(
                "echo x >> {0}; cp db.json {0}.seen",
                world.scratch(&format!("log-{number}")).display()
            ),
        );
        // The fourth service cannot work with a pool of 500.
        let probe = if number == 4 {
            "grep -qv 500 db.json"
        } else {
            "true"
        };
        let probe = script(&world, &format!("probe-{number}"), probe);
        rules.push(format!(
            "[[watch]]\nname = 'service {number}'\npaths = ['db.json']\nreload = ['{reload}']\ncommand = ['{probe}']\ntries = 1\n"
        ));
    }
    world.file("backout.toml", &rules.concat());
    let report = fails_watch(&world, &["write", "db.json", "--text", "{\"pool\": 500}\n"]);
    let why = report["why"].to_string();
    assert!(why.contains("watch `service 4` in"), "{why}");
    assert!(!why.contains("service 3"), "{why}");
    assert_eq!(world.read("db.json"), "{\"pool\": 5}\n");
    for number in 1..=5 {
        // Once for the write, once more for the old content.
        assert_eq!(
            lines(&world, &format!("log-{number}")),
            2,
            "service {number}"
        );
        let seen = std::fs::read_to_string(world.scratch(&format!("log-{number}.seen"))).unwrap();
        assert_eq!(seen, "{\"pool\": 5}\n", "service {number}");
    }
    world.check_store();
}

/// A batch whose last step is bad leaves nothing of the others; neither does a task.
#[test]
fn partial_mutation() {
    let world = ruled("[syntax]\n");
    for name in ["code.py", "app.json", "run.env"] {
        world.file(name, "");
    }
    let before = world.tree();
    world.file(
        "../batch.json",
        r#"{"changes": [
          {"write": {"path": "code.py", "text": "x = 1\n"}},
          {"write": {"path": "run.env", "text": "A=1\n"}},
          {"write": {"path": "app.json", "text": "{\"a\": }"}}]}"#,
    );
    let found = denied(&world, &["batch", "../batch.json"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0]["target"]["path"]
            .as_str()
            .unwrap()
            .ends_with("app.json")
    );
    assert!(world.tree() == before);
    // The same in a task: what passed waits, and goes when the task fails.
    world.ok(&["task", "begin", "migrate"]);
    world.ok(&["--task", "migrate", "write", "code.py", "--text", "x = 1\n"]);
    world.ok(&["--task", "migrate", "write", "run.env", "--text", "A=1\n"]);
    denied(
        &world,
        &[
            "--task",
            "migrate",
            "write",
            "app.json",
            "--text",
            "{\"a\": }",
        ],
    );
    world.ok(&["task", "rollback", "migrate"]);
    assert!(
        world.tree() == before,
        "{}",
        world.tree().difference(&before)
    );
    world.check_store();
}

/// The same instruction, another library: numbers become texts. The schema knows what the service reads.
#[test]
fn non_deterministic_write() {
    let world = ruled(
        "[[check]]\nname = 'as the service reads it'\npaths = ['*.yaml']\nschema = 'schema.json'\n",
    );
    world.file(
        "schema.json",
        r#"{"type": "object", "required": ["port", "hosts"], "additionalProperties": false, "properties": {
            "port": {"type": "integer"}, "hosts": {"type": "array", "items": {"type": "string"}}}}"#,
    );
    world.file("production.yaml", "port: 1\nhosts: [old]\n");
    // In staging.
    world.ok(&[
        "write",
        "staging.yaml",
        "--text",
        "port: 8080\nhosts: [a, b]\n",
    ]);
    // In production the library quotes numbers and writes lists as texts.
    let found = denied(
        &world,
        &[
            "write",
            "production.yaml",
            "--text",
            "port: '8080'\nhosts: a,b\n",
        ],
    );
    let keys: Vec<&str> = found.iter().map(|it| it["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["port", "hosts"], "{found:#?}");
    assert_eq!(found[0]["place"]["line"], 1, "{found:#?}");
    // Or writes JSON, which is YAML, or TOML, which is not.
    world.ok(&[
        "write",
        "production.yaml",
        "--text",
        "{\"port\": 2, \"hosts\": [\"a\"]}\n",
    ]);
    denied(
        &world,
        &[
            "write",
            "production.yaml",
            "--text",
            "port = 8080\nhosts = ['a']\n",
        ],
    );
    world.ok(&["undo"]);
    assert_eq!(world.read("production.yaml"), "port: 1\nhosts: [old]\n");
}
