//! Beginning and ending: one server per store, what is taken, what is stale, signals under load, and nothing lost.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::net::UnixListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::Value;

use crate::world::{Answer, Server, World, request, write_of};

#[test]
fn a_second_server_of_a_store_names_the_first() {
    let world = World::new();
    let server = world.serve(&[]);
    let output = world.run(&["--json", "serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(output.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(said["code"], "served");
    let why = said["why"].to_string();
    assert!(
        why.contains(&server.child.id().to_string()) && why.contains(&server.address),
        "{why}"
    );
    server.ask_socket("GET", "/v1/me", None).is(200);
}

#[test]
fn a_port_that_is_taken_is_named_with_a_way_out() {
    let (one, other) = (World::new(), World::new());
    let server = one.serve(&[]);
    let output = other.run(&["--json", "serve", "--listen", &server.address]);
    let said: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(said["code"], "not-listening");
    assert!(
        said["next"].to_string().contains("--listen 127.0.0.1:0"),
        "{said}"
    );
}

#[test]
fn a_stale_socket_is_replaced_and_anything_else_there_is_left_alone() {
    let world = World::new();
    let mut server = world.serve(&[]);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let socket = world.state().join("serve/socket");
    assert!(socket.exists(), "a killed server leaves its socket");
    let again = world.serve(&[]);
    again.ask_socket("GET", "/v1/me", None).is(200);
    drop(again);
    std::fs::remove_file(&socket).unwrap();
    let stranger = UnixListener::bind(&socket).unwrap();
    drop(stranger);
    drop(world.serve(&[]));
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "mine").unwrap();
    let output = world.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no socket"));
    assert_eq!(std::fs::read_to_string(&socket).unwrap(), "mine");
}

#[test]
fn ui_starts_a_server_where_there_is_none() {
    let world = World::new();
    let link = world.succeeds(&["--json", "ui"]);
    let link: Value = serde_json::from_str(&link).unwrap();
    assert!(link["url"].as_str().unwrap().contains("/enter#"), "{link}");
    let lock = std::fs::read_to_string(world.state().join("serve/lock")).unwrap();
    let told: Value = serde_json::from_str(&lock).unwrap();
    let pid = i32::try_from(told["pid"].as_i64().unwrap()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::TERM)
        .unwrap();
}

/// What several agents wrote: each its own files, one after the other, until they cannot or are done.
struct Load {
    /// What the server said was written, by file.
    kept: Mutex<BTreeMap<String, String>>,
    is_over: AtomicBool,
}

impl Load {
    fn new() -> Self {
        Self {
            kept: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Writes as one agent, with a connection for each write.
    fn agent(&self, world: &World, server: &Server, token: &str, agent: usize, count: usize) {
        for number in 0..count {
            let name = format!("{agent}/{}", number % 3);
            let text = format!("{agent} {number}\n");
            let body = write_of(&world.path(&name), &text);
            match try_ask(server, token, &body) {
                Some(answer) if answer.status == 200 => {
                    self.kept.lock().unwrap().insert(name, text);
                }
                Some(answer) => {
                    assert!([503, 429].contains(&answer.status), "{}", answer.text());
                    return;
                }
                None => return,
            }
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// Asks somebody who may die meanwhile.
fn try_ask(server: &Server, token: &str, body: &Value) -> Option<Answer> {
    let mut stream = std::net::TcpStream::connect(&server.address).ok()?;
    let host = format!(
        "Host: {}\r\nAuthorization: Bearer {token}\r\n",
        server.address
    );
    stream
        .write_all(&request("POST", "/v1/command", &host, Some(body)))
        .ok()?;
    let mut all = Vec::new();
    let mut chunk = vec![0; 65536];
    while let Ok(count @ 1..) = std::io::Read::read(&mut stream, &mut chunk) {
        all.extend_from_slice(&chunk[..count]);
    }
    // Half an answer is none: whoever gets it does not know.
    let at = all.windows(4).position(|it| it == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&all[..at]).to_lowercase();
    let length = head
        .split("content-length: ")
        .nth(1)?
        .split("\r\n")
        .next()?;
    (all.len() == at + 4 + length.parse::<usize>().ok()?)
        .then(|| crate::world::read_answer(&all[..]))
}

/// Ends a server under load, and looks at what it said it had done.
fn ended_under_load(signal: Signal) {
    let world = World::new();
    let mut server = world.serve(&[]);
    let tokens: Vec<String> = (0..8)
        .map(|agent| world.token(&["agent", "--agent", &format!("agent-{agent}")]))
        .collect();
    let load = Load::new();
    std::thread::scope(|scope| {
        for (agent, token) in tokens.iter().enumerate() {
            let (load, world, server) = (&load, &world, &server);
            scope.spawn(move || load.agent(world, server, token, agent, 1000));
        }
        while load.kept.lock().unwrap().len() < 12 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        server.signal(signal);
    });
    let ended = server.child.wait().unwrap();
    let status: Value = serde_json::from_str(&world.succeeds(&["--json", "status"])).unwrap();
    if signal == Signal::TERM {
        assert!(ended.success(), "{ended:?}");
        assert_eq!(
            status["unfinished"],
            serde_json::json!([]),
            "nothing is half done"
        );
    }
    world.succeeds(&["recover"]);
    let mut unlike = 0;
    for (name, text) in load.kept.lock().unwrap().iter() {
        let found = world.read(name);
        // The write after the last answer may have happened as well: then it is in the journal.
        unlike += usize::from(found != *text);
        let last: Value =
            serde_json::from_str(&world.succeeds(&["--json", "log", "-n", "0", name])).unwrap();
        assert!(
            !last["operations"].as_array().unwrap().is_empty(),
            "{name} is not in the journal"
        );
    }
    assert!(
        unlike <= 8,
        "at most the one under way of each agent: {unlike}"
    );
    world.succeeds(&["verify"]);
}

#[test]
fn sigterm_lets_writes_end_and_leaves_nothing_half_done() {
    ended_under_load(Signal::TERM);
}

#[test]
fn a_server_that_is_killed_under_load_loses_nothing_it_answered() {
    ended_under_load(Signal::KILL);
}

#[test]
fn many_agents_at_once_lose_nothing_and_share_syncs() {
    let world = World::new();
    let server = world.serve(&[]);
    let tokens: Vec<String> = (0..8)
        .map(|agent| world.token(&["agent", "--agent", &format!("agent-{agent}")]))
        .collect();
    let operator = world.token(&["operator"]);
    let load = Load::new();
    std::thread::scope(|scope| {
        for (agent, token) in tokens.iter().enumerate() {
            let (load, world, server) = (&load, &world, &server);
            scope.spawn(move || load.agent(world, server, token, agent, 25));
        }
    });
    for (name, text) in load.kept.lock().unwrap().iter() {
        assert_eq!(world.read(name), *text);
    }
    let storage = server.get(&operator, "/v1/storage").json();
    assert_eq!(storage["statuses"]["committed"], 200, "{storage}");
    let text = server.get(&operator, "/metrics").text();
    let number = |name: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let (arms, syncs) = (
        number("backout_arm_seconds_count"),
        number("backout_arm_syncs_total"),
    );
    eprintln!("{arms} arms shared {syncs} syncs");
    assert_eq!(arms, 200);
    assert!(syncs <= arms);
}

#[test]
fn a_command_whose_caller_hangs_up_is_ended_and_recorded() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["agent", "--agent", "bob"]));
    let script = "echo begun > begun; echo said; exec sleep 600";
    let body = serde_json::json!({"words": ["sh", "-c", script], "directory": world.path("")});
    let mut stream = server.connect();
    let host = format!(
        "Host: {}\r\nAuthorization: Bearer {token}\r\n",
        server.address
    );
    stream
        .write_all(&request("POST", "/v1/runs", &host, Some(&body)))
        .unwrap();
    let patient = |is_so: &dyn Fn() -> bool| {
        for _ in 0..1200 {
            if is_so() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("it never came");
    };
    patient(&|| world.path("begun").exists());
    drop(stream);
    patient(&|| {
        let list = server.get(&token, "/v1/operations").json();
        let status = list["operations"][0]["status"].as_str().map(str::to_owned);
        status.as_deref() == Some("committed")
    });
    world.succeeds(&["--agent", "bob", "undo"]);
    assert!(!world.path("begun").exists());
}
