//! What is said when a service is called, and when it is not.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::world::World;

/// Answers so many calls with the same text, and gives where.
pub(crate) fn answering(count: usize, text: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (length, text) = (text.len(), text.to_owned());
    std::thread::spawn(move || {
        for stream in listener.incoming().take(count) {
            let mut stream = stream.unwrap();
            let mut bytes = [0; 4096];
            let _asked = stream.read(&mut bytes).unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close");
            write!(stream, "{head}\r\n\r\n{text}").unwrap();
        }
    });
    url
}

#[test]
fn what_cannot_be_sent_is_not_sent() {
    let world = World::new().file("bytes", "");
    std::fs::write(world.path("bytes"), [0xff, 0xfe, 0xfd]).unwrap();
    let url = "http://127.0.0.1:9/users";
    let rows: [(&[&str], i32, &str); 7] = [
        (
            &["-H", "Accept"],
            2,
            "error: `Accept` is no header
  next: a header is a name, a colon and a value, like `Accept: text/plain`",
        ),
        (
            &["--json-body", "--data", "{"],
            2,
            "error: what is to be sent is not JSON: EOF while parsing an object at line 1 column 1
  next: set it right, or leave `--json-body` out",
        ),
        (
            &["--data", "@bytes"],
            1,
            "error: what is to be sent is not UTF-8
  why: a body is kept as text, so that it can be sent again",
        ),
        (
            &["-H", "Authorization: Bearer abc"],
            1,
            "error: nothing was sent: the header `Authorization` holds a secret
  why: it would be kept in clear, for the call that takes it back
  next: write it as `${env:NAME}`: the variable is looked up when the call is sent",
        ),
        (
            &["--data", "x"],
            1,
            "error: `POST http://127.0.0.1:9/users` was not sent
  why: nothing is known that takes it back
  next: say what does in a [[compensation]] of backout.toml
  next: give `--irreversible`: it is sent when somebody approves it, or when its task is committed",
        ),
        (
            &[
                "-H",
                "X: ${env:NO_SUCH_VARIABLE}",
                "--irreversible",
                "-H",
                "Cookie: a",
            ],
            1,
            "error: nothing was sent: the header `Cookie` holds a secret
  why: it would be kept in clear, for the call that takes it back
  next: write it as `${env:NAME}`: the variable is looked up when the call is sent",
        ),
        (
            &["--timeout", "0"],
            2,
            "error: invalid value '0' for '--timeout <SECONDS>': 0 is not in 1..=3600",
        ),
    ];
    for (more, code, said) in rows {
        let words = [&["http", "POST", url], more].concat();
        let ran = world.run(&mut world.command(&words));
        assert!(ran.err.starts_with(said), "{words:?}: {ran}");
        assert_eq!(ran.code, code, "{words:?}");
    }
    assert_eq!(world.in_effect(), [""; 0]);
    let ran = world.terminal(80, ["http", "POST", url, "--data", "@-"]);
    assert!(
        ran.out
            .contains("give it with `--data TEXT` or `--data @FILE`"),
        "{ran}"
    );
}

#[test]
fn rules_with_a_mistake_send_nothing() {
    let world = World::new().file(
        "backout.toml",
        "[[compensation]]\nmatch = 'PUT'\ncapture = true\n",
    );
    let ran = world.cli(["http", "POST", "http://127.0.0.1:9/", "--data", "x"]);
    assert_eq!(
        ran.err.trim_end(),
        "error: nothing was sent: the rules cannot be read
  why: backout.toml, line 2, column 9: `compensation.match`: it must be a method and a URL, like `POST https://api.example/v1/users/{user}`
  next: mend the file; `backout config check` shows every mistake"
    );
}

#[test]
fn an_answer_is_shown_and_a_long_one_in_part() {
    let url = answering(1, "hello");
    let ran = World::new().cli(["http", "get", &url]);
    assert_eq!((ran.out.trim_end(), ran.code), ("hello", 0), "{ran}");
    let url = answering(1, &"0123456789".repeat(10_000));
    let ran = World::new().cli(["http", "GET", &url]);
    assert!(
        ran.err
            .contains("there is more of the answer than is shown"),
        "{ran}"
    );
    assert_eq!(ran.out.trim_end().len(), 64 * 1024);
}

#[test]
fn what_nothing_takes_back_waits() {
    let world = World::new();
    let words = [
        "http",
        "POST",
        "http://127.0.0.1:9/",
        "--irreversible",
        "--data",
        "x",
    ];
    let ran = world.cli(words);
    let remedy = "somebody else approves it, or it is part of a task and leaves with the commit";
    assert!(
        ran.err.contains("nothing takes it back once it is sent"),
        "{ran}"
    );
    assert!(world.cli(["--json", "pending"]).out.contains(remedy));
    world.did(["task", "begin", "t"]);
    let mut command = world.command(&[&["--task", "t"], &words[..]].concat());
    assert_ne!(world.run(&mut command).code, 0);
    let remedy = "commit the task, and it is sent; roll it back, and it is dropped";
    assert!(world.cli(["--json", "pending"]).out.contains(remedy));
}
