//! `--json`: one object per run, the same shape that the journal and every later surface have.

use serde_json::{Value, json};

use crate::world::World;

/// Takes out what differs from run to run: who wrote.
fn reply(ran: &crate::world::Ran) -> Value {
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran}");
    assert_eq!(ran.out.lines().count(), 1, "one object on one line");
    let mut value = serde_json::from_str(&ran.out).unwrap();
    blank_owners(&mut value);
    value
}

fn blank_owners(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == "owner" {
                    *field = json!("…");
                } else {
                    blank_owners(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(blank_owners),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

#[test]
fn a_write_answers_with_its_id() {
    let world = World::new();
    insta::assert_snapshot!(pretty(&reply(&world.cli(["--json", "write", "a", "--text", "1"]))), @r#"
    {
      "decision": {
        "asked": "snapshot",
        "cost": {
          "kept_bytes": 0,
          "prepared_ms": 0,
          "stored_bytes": 1
        },
        "fallbacks": [
          "transaction"
        ],
        "reason": "small enough to keep whole (size 0)",
        "strategy": "snapshot"
      },
      "id": "9e3779b97f4a7c15",
      "notes": [],
      "reply": "finished",
      "status": "committed",
      "strategy": "snapshot",
      "summary": "write $WORLD/work/a"
    }
    "#);
    insta::assert_snapshot!(pretty(&reply(&world.cli(["--json", "write", "a", "--text", "1"]))), @r#"
    {
      "id": null,
      "notes": [],
      "reply": "finished",
      "status": null,
      "strategy": null,
      "summary": "write $WORLD/work/a"
    }
    "#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one whole reply")]
fn the_log_answers_with_operations() {
    let world = World::new();
    world.did(["--agent", "claude", "write", "a", "--text", "1"]);
    world.did(["write", "a", "--text", "2"]);
    insta::assert_snapshot!(pretty(&reply(&world.cli(["log", "--json"]))), @r#"
    {
      "operations": [
        {
          "at": 1800000000000,
          "decision": {
            "asked": "snapshot",
            "cost": {
              "kept_bytes": 0,
              "prepared_ms": 0,
              "stored_bytes": 2
            },
            "fallbacks": [
              "transaction"
            ],
            "reason": "small enough to keep whole (size 1)",
            "strategy": "snapshot"
          },
          "depends_on": [
            {
              "on": "9e3779b97f4a7c15",
              "reason": "same-target"
            }
          ],
          "id": "3c6ef372fe94f82a",
          "lsn": 4,
          "owner": "…",
          "place": 4,
          "retained": true,
          "status": "committed",
          "summary": "write $WORLD/work/a",
          "targets": [
            {
              "kind": "path",
              "path": "$WORLD/work/a",
              "reach": "node"
            }
          ],
          "verb": "write"
        },
        {
          "agent": "claude",
          "at": 1800000000000,
          "decision": {
            "asked": "snapshot",
            "cost": {
              "kept_bytes": 0,
              "prepared_ms": 0,
              "stored_bytes": 1
            },
            "fallbacks": [
              "transaction"
            ],
            "reason": "small enough to keep whole (size 0)",
            "strategy": "snapshot"
          },
          "depends_on": [],
          "id": "9e3779b97f4a7c15",
          "lsn": 1,
          "owner": "…",
          "place": 1,
          "retained": true,
          "status": "committed",
          "summary": "write $WORLD/work/a",
          "targets": [
            {
              "kind": "path",
              "path": "$WORLD/work/a",
              "reach": "node"
            }
          ],
          "verb": "write"
        }
      ],
      "reply": "log"
    }
    "#);
}

#[test]
fn a_planned_undo_answers_with_its_plan() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "b", "--text", "1"]);
    insta::assert_snapshot!(pretty(&reply(&world.cli(["undo", "@-1", "--json", "--dry-run"]))), @r#"
    {
      "is_executable": true,
      "left_alone": [
        {
          "id": "3c6ef372fe94f82a",
          "why": "independent"
        }
      ],
      "named": [
        "9e3779b97f4a7c15"
      ],
      "needs_committed": [],
      "needs_others": [],
      "reply": "plan",
      "steps": [
        {
          "chosen": "named",
          "guarantee": "exact",
          "id": "9e3779b97f4a7c15",
          "strategy": "snapshot",
          "summary": "write $WORLD/work/a",
          "targets": [
            {
              "goes": true,
              "state": "comes-back",
              "target": {
                "kind": "path",
                "path": "$WORLD/work/a",
                "reach": "node"
              }
            }
          ],
          "way": "undo",
          "with": "9e3779b97f4a7c15"
        }
      ]
    }
    "#);
}

#[test]
fn an_undo_answers_with_what_was_found_afterwards() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "b", "--text", "1"]);
    insta::assert_snapshot!(pretty(&reply(&world.cli(["undo", "@-1", "--json"]))), @r#"
    {
      "act": "daa66d2c7ddf743f",
      "left_alone": [
        {
          "id": "3c6ef372fe94f82a",
          "why": "independent"
        }
      ],
      "reply": "undone",
      "steps": [
        {
          "by": "daa66d2c7ddf743f",
          "guarantee": "exact",
          "id": "9e3779b97f4a7c15",
          "outcomes": [
            {
              "outcome": "restored",
              "target": {
                "kind": "path",
                "path": "$WORLD/work/a",
                "reach": "node"
              }
            }
          ],
          "summary": "write $WORLD/work/a",
          "way": "undo"
        }
      ]
    }
    "#);
}

#[test]
fn an_error_is_an_object_on_standard_error() {
    let world = World::new();
    let ran = world.cli(["--json", "undo", "7f3c"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    let value: Value = serde_json::from_str(&ran.err).unwrap();
    insta::assert_snapshot!(pretty(&value), @r#"
    {
      "code": "unknown-operation",
      "next": [
        {
          "calls": [
            {
              "command": "log"
            }
          ],
          "text": "see the operations with `backout log`"
        }
      ],
      "severity": "refused",
      "what": "there is no operation `7f3c`",
      "why": []
    }
    "#);
}

#[test]
fn a_wrong_question_is_answered_in_the_same_shape() {
    let ran = World::new().cli(["--json", "undo", "--dryrun"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    let value: Value = serde_json::from_str(&ran.err).unwrap();
    insta::assert_snapshot!(pretty(&value), @r#"
    {
      "code": "usage",
      "next": [
        {
          "text": "a similar argument exists: '--dry-run'"
        },
        {
          "text": "try '--help'."
        }
      ],
      "severity": "usage",
      "what": "unexpected argument '--dryrun' found",
      "why": [
        "Usage: backout undo --dry-run [REF|TARGET]..."
      ]
    }
    "#);
}

#[test]
fn an_undo_in_part_is_a_reply_and_an_error() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    world.did(["write", "b", "--text", "2"]);
    world.put("b", "somebody else's");
    let ran = world.cli(["undo", "--json", "--partial", "@", "@-1"]);
    let reply: Value = serde_json::from_str(&ran.out).unwrap();
    let error: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(
        (ran.code, &reply["reply"], &error["severity"]),
        (1, &json!("undone"), &json!("refused"))
    );
}

#[test]
fn every_command_answers_with_one_object() {
    let world = World::new();
    world.did(["write", "a", "--text", "1"]);
    for (arguments, kind) in [
        (&["show", "@"][..], "shown"),
        (&["diff", "@"], "diff"),
        (&["status"], "status"),
        (&["task", "begin", "t"], "task"),
        (&["task", "list"], "tasks"),
        (&["commit", "t"], "committed"),
        (&["checkpoint", "c"], "checkpoint"),
        (&["checkpoint", "--list"], "checkpoints"),
        (&["recover"], "recovered"),
        (&["verify"], "verified"),
        (&["gc", "-n"], "collected"),
        (&["doctor"], "doctor"),
        (&["export", "-o", "x"], "exported"),
        (&["undo"], "undone"),
        (&["redo"], "undone"),
    ] {
        let ran = world.run(world.command(arguments).arg("--json"));
        assert_eq!(reply(&ran)["reply"], kind, "{arguments:?}");
    }
}

/// The words that stand in `next` are the ones to type, wherever one is.
#[test]
fn what_was_typed_is_told_so_that_it_means_the_same_from_every_directory() {
    let world = World::new().file("d/a b", "1").file("d/c", "1");
    world.did([
        "run",
        "-q",
        "--",
        "/bin/sh",
        "-c",
        "echo 2 >'d/a b'; echo 2 >d/c",
    ]);
    world.put("d/a b", "theirs");
    let mut command = world.command(&["undo", "@", "--only", "a *", "--exclude=-x", "--json"]);
    let refused = world.run(command.current_dir(world.path("d")));
    assert_eq!(refused.code, 1, "{refused}");
    let told: serde_json::Value = serde_json::from_str(&refused.err).unwrap();
    let next = told["next"].as_array().unwrap();
    let mut calls = next
        .iter()
        .flat_map(|next| next["calls"].as_array().unwrap());
    let forces = |call: &&Value| {
        let options = call["options"].as_array();
        options.is_some_and(|options| options.contains(&"force".into()))
    };
    let force = calls.find(forces).unwrap_or_else(|| panic!("{told}"));
    let typed = serde_json::json!(["--only=$WORLD/work/d/a *", "--exclude=$WORLD/work/d/-x"]);
    assert_eq!(force["typed"], typed, "{told}");
    let operation = force["operations"][0].as_str().unwrap();
    let root = world.place("");
    let root = root.to_str().unwrap().trim_end_matches('/');
    let words = typed.as_array().unwrap().iter();
    let words = words.map(|word| word.as_str().unwrap().replace("$WORLD", root));
    let words: Vec<String> = words.collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = world.command(&["undo", operation, "--force"]);
    let done = world.run(command.args(words).current_dir("/"));
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(
        (world.text("d/a b"), world.text("d/c")),
        ("1".into(), "2\n".into())
    );
}
