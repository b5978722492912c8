//! The journal as a stream: by whomever it was written, from wherever a reader had come to.

use std::io::Read as _;
use std::time::{Duration, Instant};

use crate::world::{PATIENCE, Reader, World};

#[test]
fn events_tell_what_other_processes_write_and_go_on_where_a_reader_was() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["viewer"]));
    let mut reader = Reader::open(&server, &token, "/v1/events", "");
    let (first, kind, _) = reader.next();
    assert_eq!(kind, "hello");
    world.succeeds(&["write", "a", "--text", "x"]);
    let (armed, data) = reader.wait_for("intent");
    assert!(armed > first);
    assert_eq!(data["operation"]["verb"], "write");
    assert!(data.get("recipe").is_none());
    let (kept, data) = reader.wait_for("commit");
    assert_eq!(data["operation"]["status"], "committed");
    drop(reader);
    world.succeeds(&["write", "b", "--text", "x"]);
    let mut again = Reader::open(
        &server,
        &token,
        "/v1/events",
        &format!("Last-Event-ID: {armed}\r\n"),
    );
    assert_eq!(again.next().0, armed, "it begins where the reader was");
    let mut last = armed;
    loop {
        let (id, kind, data) = again.next();
        assert_eq!(id, last + 1, "nothing is left out, and nothing comes twice");
        last = id;
        if kind == "commit" && id > kept {
            assert!(data["operation"]["summary"].as_str().unwrap().contains('b'));
            break;
        }
    }
    let wrong = server.send(
        "GET",
        "/v1/events",
        &format!("Authorization: Bearer {token}\r\nLast-Event-ID: x\r\n"),
        None,
    );
    wrong.code(400, "usage");
}

#[test]
fn an_agent_hears_of_its_own_work_only() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["agent", "--agent", "bob"]));
    let mut reader = Reader::open(&server, &token, "/v1/events", "");
    reader.next();
    world.succeeds(&["--agent", "eve", "write", "eves", "--text", "x"]);
    world.succeeds(&["--agent", "bob", "write", "bobs", "--text", "x"]);
    let (_, data) = reader.wait_for("intent");
    assert_eq!(data["operation"]["agent"], "bob");
}

#[test]
fn a_reader_that_takes_nothing_is_cut_off_and_the_others_go_on() {
    let world = World::new();
    // Large events, so that few of them fill what the system holds for a reader.
    let long = "x".repeat(200);
    for number in 0..40 {
        let names: Vec<String> = (0..40).map(|at| format!("{long}-{number}-{at}")).collect();
        let mut words = vec!["mkdir"];
        words.extend(names.iter().map(String::as_str));
        world.succeeds(&words);
    }
    let (server, token) = (
        world.serve(&["--reader-timeout", "1s"]),
        world.token(&["viewer"]),
    );
    let mut slow: Vec<Reader> = Vec::new();
    // As many as there may be: when they are cut off, there is room again.
    for _ in 0..64 {
        slow.push(Reader::open(&server, &token, "/v1/events?after=0", ""));
    }
    let began = Instant::now();
    loop {
        let answer = {
            let mut stream = server.connect();
            let host = format!(
                "Host: {}\r\nAuthorization: Bearer {token}\r\n",
                server.address
            );
            let sent = crate::world::request("GET", "/v1/events", &host, None);
            std::io::Write::write_all(&mut stream, &sent).unwrap();
            let mut head = [0; 15];
            stream.read_exact(&mut head).unwrap();
            String::from_utf8(head.to_vec()).unwrap()
        };
        if answer.contains("200") && began.elapsed() > Duration::from_secs(2) {
            break;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "slow readers keep their places: {answer}"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    server.get(&token, "/v1/status").is(200);
}
