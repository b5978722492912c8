//! MCP behind the door of the server: an agent's token says who asks, `--mcp-root` where it may write.

use serde_json::{Value, json};

use crate::world::{Answer, Server, World};

/// Sends a message of the protocol; gives the answer, and what is in it.
#[track_caller]
fn send(
    server: &Server,
    token: &str,
    session: Option<&str>,
    message: &Value,
) -> (Answer, Option<Value>) {
    let session = session.map_or(String::new(), |it| format!("Mcp-Session-Id: {it}\r\n"));
    let headers = format!(
        "Authorization: Bearer {token}\r\nAccept: application/json, text/event-stream\r\n{session}"
    );
    let answer = server.send("POST", "/mcp", &headers, Some(message));
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let mut lines = text
        .lines()
        .map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let message = lines.find_map(|line| serde_json::from_str::<Value>(line).ok());
    (answer, message)
}

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": {"name": "somebody", "version": "1"}}})
}

fn write(path: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params":
        {"name": "write", "arguments": {"path": path, "content": "x"}}})
}

#[test]
fn an_agent_with_a_token_writes_over_mcp_in_its_roots_as_itself() {
    let world = World::new();
    let token = world.token(&["agent", "--agent", "coder"]);
    let root = world.path("root");
    std::fs::create_dir(&root).unwrap();
    let server = world.serve(&["--mcp-root", root.to_str().unwrap()]);

    let (answer, told) = send(&server, &token, None, &hello());
    answer.is(200);
    assert_eq!(told.unwrap()["result"]["serverInfo"]["name"], "backout");
    let head = answer.head.to_lowercase();
    let session = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = session.unwrap();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    send(&server, &token, Some(session), &ready).0.is(202);

    let (answer, told) = send(&server, &token, Some(session), &write("a"));
    assert_eq!(
        told.as_ref().unwrap()["result"]["isError"],
        false,
        "{told:?} {answer:?}"
    );
    assert_eq!(world.read("root/a"), "x");
    let log: Value = serde_json::from_str(&world.succeeds(&["--json", "log"])).unwrap();
    assert_eq!(log["operations"][0]["agent"], "coder", "{log}");

    // A rule that comes while the server runs holds from the next call on.
    std::fs::write(root.join("backout.toml"), "[protect]\ndeny = [\"c\"]\n").unwrap();
    let (_, told) = send(&server, &token, Some(session), &write("c"));
    assert_eq!(
        told.as_ref().unwrap()["result"]["isError"],
        true,
        "{told:?}"
    );
    assert!(!root.join("c").exists());

    let outside = world.path("b");
    let (_, told) = send(
        &server,
        &token,
        Some(session),
        &write(outside.to_str().unwrap()),
    );
    assert_eq!(
        told.as_ref().unwrap()["result"]["isError"],
        true,
        "{told:?}"
    );
    assert!(!outside.exists());
}

#[test]
fn nobody_but_an_agent_is_served_over_mcp_and_nobody_where_no_root_was_named() {
    let world = World::new();
    let [viewer, operator] = ["viewer", "operator"].map(|role| world.token(&[role]));
    let agent = world.token(&["agent", "--agent", "coder"]);
    let server = world.serve(&["--mcp-root", world.path("").to_str().unwrap()]);
    for token in [&viewer, &operator] {
        let (answer, _) = send(&server, token, None, &hello());
        answer.code(403, "forbidden");
        let told = answer.text();
        assert!(told.contains("only an agent is served here"), "{told}");
        let next = "make a token for it: `backout --agent NAME serve token add --role agent`";
        assert!(told.contains(next), "{told}");
    }
    send(&server, "nobody's", None, &hello())
        .0
        .code(401, "unauthenticated");
    drop(server);

    let server = world.serve(&[]);
    send(&server, &agent, None, &hello())
        .0
        .code(404, "unknown-route");
}
