//! Each role against each command: who may, who may not, and whose work it is about.

use serde_json::{Value, json};

use crate::world::{Server, World};

/// A command, and who may ask it: viewer, agent, operator.
const TABLE: &[(&str, &str, [bool; 3])] = &[
    ("log", "{}", [true, true, true]),
    ("prompts", "{}", [true, true, true]),
    ("status", "null", [true, true, true]),
    ("show", r#""@""#, [true, true, true]),
    (
        "diff",
        r#"{"operation":"@","selection":{},"is_brief":true}"#,
        [true, true, true],
    ),
    (
        "undo",
        r#"{"what":{"operations":["@"]},"options":{},"is_dry_run":true}"#,
        [true, true, true],
    ),
    (
        "undo",
        r#"{"what":{"operations":["@"]},"options":{},"is_dry_run":false}"#,
        [false, true, true],
    ),
    (
        "redo",
        r#"{"what":{"operations":["@"]},"options":{},"is_dry_run":false}"#,
        [false, true, true],
    ),
    (
        "restore",
        r#"{"paths":["/nowhere"],"from":"@","is_after":false}"#,
        [false, true, true],
    ),
    ("task", r#""list""#, [true, true, true]),
    (
        "task",
        r#"{"begin":{"id":null,"owner_pid":null}}"#,
        [false, true, true],
    ),
    ("checkpoint", r#""list""#, [true, true, true]),
    (
        "checkpoint",
        r#"{"mark":{"name":null,"state":null}}"#,
        [false, true, true],
    ),
    (
        "checkpoint",
        r#"{"drop":{"name":"x"}}"#,
        [false, false, true],
    ),
    ("proposal", r#""list""#, [true, true, true]),
    (
        "proposal",
        r#"{"approve":{"proposal":"@","decided":{"by":"me","why":null}}}"#,
        [false, false, true],
    ),
    (
        "proposal",
        r#"{"reject":{"proposal":"@","decided":{"by":"me","why":null}}}"#,
        [false, false, true],
    ),
    ("failed", r#""list""#, [true, false, true]),
    (
        "failed",
        r#"{"retry":{"operations":[]}}"#,
        [false, false, true],
    ),
    (
        "failed",
        r#"{"accept":{"operation":"@","decided":{"by":"me","why":null}}}"#,
        [false, false, true],
    ),
    ("rollout", r#""list""#, [true, false, true]),
    (
        "rollout",
        r#"{"abort":{"which":null}}"#,
        [false, false, true],
    ),
    ("try", r#""list""#, [true, false, true]),
    ("try", r#"{"discard":{"trial":null}}"#, [false, false, true]),
    ("sandbox", r#""list""#, [true, false, true]),
    (
        "sandbox",
        r#"{"end":{"name":null,"is_discarding":false}}"#,
        [false, false, true],
    ),
    ("recover", r#"{"all":{"from":null}}"#, [false, false, true]),
    ("verify", "null", [true, false, true]),
    (
        "gc",
        r#"{"is_dry_run":true,"compact":false}"#,
        [true, false, true],
    ),
    (
        "gc",
        r#"{"is_dry_run":false,"compact":false}"#,
        [false, false, true],
    ),
    (
        "doctor",
        r#"{"directory":"/","repair":false}"#,
        [false, false, true],
    ),
    (
        "doctor",
        r#"{"directory":"/","repair":true}"#,
        [false, false, false],
    ),
];

fn ask(server: &Server, token: &str, name: &str, with: &str) -> (u16, Value) {
    let with: Value = serde_json::from_str(with).unwrap();
    let mut command = json!({"command": name});
    if !with.is_null() {
        command["with"] = with;
    }
    let answer = server.post(token, "/v1/command", &json!({"command": command}));
    (answer.status, answer.json())
}

#[test]
fn each_role_may_ask_what_the_table_says_and_nothing_else() {
    let world = World::new();
    let server = world.serve(&[]);
    let roles: [&[&str]; 3] = [&["viewer"], &["agent", "--agent", "bob"], &["operator"]];
    let tokens = roles.map(|role| world.token(role));
    // Bob's own work, so that `@` is his.
    server
        .post(&tokens[1], "/v1/command", &world.write("a", "x"))
        .is(200);
    for (name, with, allowed) in TABLE {
        for (at, token) in tokens.iter().enumerate() {
            let (status, body) = ask(&server, token, name, with);
            let role = roles[at][0];
            assert_ne!(status, 400, "{name} {with}: the test asks wrongly: {body}");
            assert_ne!(status, 500, "{name} {with}: {body}");
            let is_forbidden = body["code"] == "forbidden";
            assert_eq!(
                !is_forbidden, allowed[at],
                "{role} {name} {with}: {status} {body}"
            );
        }
    }
    let (_, refused) = ask(
        &server,
        &tokens[0],
        "write",
        r#"{"request":{"driver":"file","request":{"mkdir":{"path":"/x","parents":false,"mode":null}}}}"#,
    );
    assert_eq!(refused["code"], "forbidden");
    for path in ["/v1/storage", "/metrics", "/v1/verify", "/v1/failed"] {
        server.get(&tokens[0], path).is(200);
        server.get(&tokens[1], path).code(403, "forbidden");
        server.get(&tokens[2], path).is(200);
    }
    server
        .post(&tokens[2], "/v1/links", &json!({}))
        .code(403, "forbidden");
}

#[test]
fn an_agent_sees_and_takes_back_its_own_and_bears_its_own_name() {
    let world = World::new();
    let server = world.serve(&[]);
    let bob = world.token(&["agent", "--agent", "bob"]);
    let eve = world.token(&["agent", "--agent", "eve"]);
    let id = |answer: Value| answer["id"].as_str().unwrap().to_owned();
    let bobs = id(server
        .post(&bob, "/v1/command", &world.write("bobs", "x"))
        .json());
    let eves = id(server
        .post(&eve, "/v1/command", &world.write("eves", "x"))
        .json());
    let mut pretending = world.write("other", "x");
    pretending["context"] = json!({"agent": "eve"});
    server
        .post(&bob, "/v1/command", &pretending)
        .code(403, "forbidden");
    assert!(!world.path("other").exists());

    let list = server.get(&bob, "/v1/operations").json();
    let ids: Vec<_> = list["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].clone())
        .collect();
    assert_eq!(ids, [json!(bobs)]);
    server
        .get(&bob, "/v1/operations?agent=eve")
        .code(403, "forbidden");
    for rest in [
        "",
        "/diff",
        "/undo",
        &format!("/content?side=after&path={}", world.path("eves").display()),
    ] {
        server
            .get(&bob, &format!("/v1/operations/{eves}{rest}"))
            .code(403, "forbidden");
    }
    server
        .get(&bob, &format!("/v1/graph?around={eves}"))
        .code(403, "forbidden");
    let undo = format!("/v1/operations/{eves}/undo");
    server
        .post(&bob, &undo, &json!({"force": true, "others": true}))
        .code(403, "forbidden");
    assert!(world.path("eves").exists());
    // Built on Bob's by Eve: he may not take hers with it.
    let both = id(server
        .post(&eve, "/v1/command", &world.write("bobs", "y"))
        .json());
    let undo = format!("/v1/operations/{bobs}/undo");
    let refused = server.post(&bob, &undo, &json!({"others": true}));
    assert_eq!(refused.status / 100, 4, "{}", refused.text());
    assert_eq!(world.read("bobs"), "y");
    server
        .post(&eve, &format!("/v1/operations/{both}/undo"), &json!({}))
        .is(200);
    server.post(&bob, &undo, &json!({})).is(200);
    assert!(!world.path("bobs").exists());
    let status = server.get(&bob, "/v1/status").json();
    let newest = status["newest"].as_array().unwrap();
    assert!(newest.iter().all(|it| it["agent"] == "bob"), "{newest:?}");
}
