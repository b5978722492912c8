//! Replies of `serve` and `ui`. Each server is ended again.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::replies::Judge;
use crate::world::World;

pub(crate) fn serving(judge: &mut Judge) {
    let world = World::new();
    let made = judge.replies(&world, "serve token add --role viewer", "token");
    judge.replies(&world, "serve token list", "tokens");
    let id = made.get("id").and_then(Value::as_str).unwrap().to_owned();
    judge.replies(&world, &format!("serve token revoke {id}"), "token-revoked");
    judge.fails(&world, &format!("serve token revoke {id}"), "not-found");
    judge.fails(&world, "serve token add --role agent", "usage");
    let words = ["--json", "serve", "--listen", "127.0.0.1:0"];
    let mut server = world
        .command(&words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(server.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    judge.reply(&line, "serving");
    judge.fails(&world, "serve --listen 127.0.0.1:0", "served");
    judge.replies(&world, "ui --no-open", "page");
    let told: Value = serde_json::from_str(&line).unwrap();
    let pid = i32::try_from(told.get("pid").and_then(Value::as_i64).unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
}
