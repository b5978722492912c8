//! Frames by hand: every version of the protocol, and clients that behave badly.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::world::World;

/// A client that sends what it likes.
struct Raw {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Raw {
    fn start(world: &World) -> Self {
        Self::start_with(world, &[])
    }

    fn start_with(world: &World, variables: &[(&str, &str)]) -> Self {
        let mut command = world.program();
        command
            .args(["--agent", "raw", "mcp"])
            .envs(variables.iter().copied());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Reads what is said until an answer to this id.
    fn answer(&mut self, id: i64) -> Value {
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).unwrap();
            assert!(count > 0, "no answer to {id}");
            let value: Value = serde_json::from_str(&line).unwrap();
            if value["id"] == id {
                return value;
            }
        }
    }

    fn ask(&mut self, id: i64, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(request.to_string().as_bytes());
        self.answer(id)
    }

    fn greet(&mut self, version: &str) -> Value {
        let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
        let answer = self.ask(1, "initialize", &hello);
        self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    fn call(&mut self, id: i64, tool: &str, arguments: &Value) -> Value {
        self.ask(
            id,
            "tools/call",
            &json!({"name": tool, "arguments": arguments}),
        )
    }

    /// Closes the pipe and waits for the end.
    fn end(mut self) -> std::process::ExitStatus {
        drop(self.input.take());
        self.child.wait().unwrap()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn every_version_of_the_protocol_is_spoken() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let world = World::new();
        let mut client = Raw::start(&world);
        let hello = client.greet(version);
        assert_eq!(hello["result"]["protocolVersion"], version, "{hello}");
        assert_eq!(hello["result"]["serverInfo"]["name"], "backout");
        let answer = client.call(2, "write", &json!({"path": "a", "content": version}));
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        assert!(
            answer["result"].get("resultType").is_none(),
            "not of this version"
        );
        assert!(client.end().success());
    }
    let world = World::new();
    let mut client = Raw::start(&world);
    let hello = client.greet("1999-01-01");
    let agreed = hello["result"]["protocolVersion"]
        .as_str()
        .unwrap_or_default();
    assert!(
        agreed.starts_with("202"),
        "a version that nobody knows: {hello}"
    );
}

#[test]
fn the_newest_version_needs_no_greeting() {
    let world = World::new();
    let mut client = Raw::start(&world);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let answer = client.ask(
        1,
        "tools/call",
        &json!({"name": "write", "arguments": {"path": "a", "content": "x"}, "_meta": meta}),
    );
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

#[test]
fn malformed_frames_end_nothing() {
    let world = World::new();
    let mut client = Raw::start(&world);
    client.send(b"this is not JSON");
    client.greet("2025-11-25");
    for bad in [
        &b"{"[..],
        b"[]",
        b"null",
        b"\xff\xfe\x00",
        b"{\"jsonrpc\":\"2.0\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\"}",
        b"{\"jsonrpc\":\"1.0\",\"id\":5,\"method\":\"tools/list\"}",
    ] {
        client.send(bad);
    }
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    client.send(deep.as_bytes());
    let answer = client.ask(7, "no/such/method", &json!({}));
    assert!(answer["error"]["code"].is_i64(), "{answer}");
    let answer = client.ask(
        8,
        "tools/call",
        &json!({"name": "write", "arguments": "text"}),
    );
    assert!(answer.get("error").is_some(), "{answer}");
    let answer = client.call(9, "no-such-tool", &json!({}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let answer = client.call(10, "write", &json!({"path": "a", "content": "x"}));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

#[test]
fn a_huge_request_is_carried_out_or_refused_in_words() {
    let world = World::new();
    let mut client = Raw::start(&world);
    client.greet("2025-11-25");
    let large = "x".repeat(20 << 20);
    let answer = client.call(2, "write", &json!({"path": "large", "content": large}));
    assert_eq!(answer["result"]["isError"], false);
    let size = std::fs::metadata(world.work().join("large")).unwrap().len();
    assert_eq!(size, 20 << 20);
    let huge = "x".repeat(65 << 20);
    let answer = client.call(3, "write", &json!({"path": "huge", "content": huge}));
    let said = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(said.contains("larger than"), "{said}");
    assert!(!world.work().join("huge").exists());
    let answer = client.call(4, "log", &json!({}));
    assert_eq!(answer["result"]["isError"], false, "and it goes on");
}

#[test]
fn a_client_that_dies_leaves_nothing_half_done() {
    let world = World::new();
    let mut client = Raw::start(&world);
    client.greet("2025-11-25");
    client.call(2, "write", &json!({"path": "a", "content": "before"}));
    let run = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params":
        {"name": "run", "arguments": {"command": "echo $$ > pid; sleep 1000"}}});
    client.send(run.to_string().as_bytes());
    let write = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params":
        {"name": "write", "arguments": {"path": "a", "content": "after"}}});
    let pid = world.work().join("pid");
    while !std::fs::read_to_string(&pid).is_ok_and(|it| it.ends_with('\n')) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    client.send(write.to_string().as_bytes());
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(client.end().success());
    assert!(
        !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists(),
        "the command was ended"
    );
    let text = std::fs::read_to_string(world.work().join("a")).unwrap();
    assert!(["before", "after"].contains(&text.as_str()), "{text}");
    let log = world.json(&["log"]);
    let all = log["operations"].as_array().unwrap();
    assert!(all.iter().all(|it| it["status"] != "armed"), "{log}");
    assert!(all.iter().any(|it| it["verb"] == "run"), "{log}");
}

#[test]
fn a_server_that_is_killed_in_the_middle_of_a_write_is_recovered() {
    let world = World::new();
    std::fs::write(world.work().join("a"), "before").unwrap();
    let mut client = Raw::start_with(&world, &[("BACKOUT_CRASH_AT", "engine.applied")]);
    client.greet("2025-11-25");
    let write = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params":
        {"name": "write", "arguments": {"path": "a", "content": "after"}}});
    client.send(write.to_string().as_bytes());
    let ended = client.child.wait().unwrap();
    assert!(!ended.success(), "it died in the middle");
    world.backout(&["recover"]);
    let text = std::fs::read_to_string(world.work().join("a")).unwrap();
    assert_eq!(text, "before");
    let mut client = Raw::start(&world);
    client.greet("2025-11-25");
    let answer = client.call(5, "write", &json!({"path": "a", "content": "after"}));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}

#[test]
fn a_server_ends_by_a_signal_with_all_that_it_started() {
    let world = World::new();
    let mut client = Raw::start(&world);
    client.greet("2025-11-25");
    let run = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params":
        {"name": "run", "arguments": {"command": "echo $$ > pid; sleep 1000"}}});
    client.send(run.to_string().as_bytes());
    let pid = world.work().join("pid");
    while !std::fs::read_to_string(&pid).is_ok_and(|it| it.ends_with('\n')) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let server = nix::unistd::Pid::from_raw(i32::try_from(client.child.id()).unwrap());
    nix::sys::signal::kill(server, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert!(client.child.wait().unwrap().success());
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[test]
fn drift_is_told_of_what_the_agent_wrote() {
    let world = World::new();
    let mut client = Raw::start(&world);
    client.greet("2025-11-25");
    let answer = client.call(2, "drift", &json!({}));
    let words = "All that you wrote is as you left it.";
    assert!(answer.to_string().contains(words), "{answer}");
}

#[test]
fn advice_names_tools_and_what_no_tool_does_is_a_persons() {
    let world = World::new();
    let mut client = Raw::start(&world);
    client.greet("2025-06-18");
    let write = json!({"path": "a", "content": "mine\n"});
    client.call(2, "write", &write);
    std::fs::write(world.work().join("a"), "theirs\n").unwrap();
    let answer = client.call(3, "undo", &json!({}));
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    let next: Vec<&str> = result["structuredContent"]["next"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["text"].as_str().unwrap())
        .collect();
    assert!(!next.is_empty(), "{answer}");
    let said = result["content"][0]["text"].as_str().unwrap();
    for next in &next {
        assert!(said.contains(&format!("Next: {next}\n")), "{said}");
        let is_persons = next.starts_with("only a person can do this, ask for it: ");
        assert_eq!(next.contains("`backout "), is_persons, "{next}");
    }
    let has = |wanted: &str| next.iter().any(|next| next.contains(wanted));
    assert!(has("the tool `preview_undo` ("), "{next:#?}");
    assert!(has("--force"), "a person may overwrite: {next:#?}");
    assert_eq!(std::fs::read(world.work().join("a")).unwrap(), b"theirs\n");
    assert!(client.end().success());
}

#[test]
fn what_a_redo_brought_back_is_told_so_and_how_to_take_it_back() {
    let world = World::new();
    std::fs::write(world.work().join("a"), "before\n").unwrap();
    let mut client = Raw::start(&world);
    client.greet("2025-06-18");
    let said = |answer: &Value| {
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let text = &answer["result"]["content"][0]["text"];
        text.as_str().unwrap().to_owned()
    };
    client.call(2, "write", &json!({"path": "a", "content": "mine\n"}));
    let undone = said(&client.call(3, "undo", &json!({})));
    assert!(undone.contains("a: as it was before"), "{undone}");
    assert!(
        undone.contains("the tool `redo` with operations"),
        "{undone}"
    );
    let redone = said(&client.call(4, "redo", &json!({})));
    assert!(redone.contains("a: changed again"), "{redone}");
    let way = "the tool `undo` with operations [\"";
    let (_, id) = redone.split_once(way).unwrap();
    let id = id.split('"').next().unwrap();
    client.call(5, "undo", &json!({"operations": [id]}));
    assert_eq!(std::fs::read(world.work().join("a")).unwrap(), b"before\n");
}
