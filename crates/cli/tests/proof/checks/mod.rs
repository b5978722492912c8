//! What `backout.toml` promises, by the real program: checks before a write, watches after it, risk, policies, people who are
//! told. Real services, real validators, real failures.

mod around;
mod broken_rules;
mod desktop;
mod names;
mod nginx;
mod notified;
mod patterns;
mod policies;
mod risk;
mod running;
mod surfaces;
mod texts;
mod validators;
mod verdicts;
mod watches;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::ruled::{ruled, waits};
use crate::trust::json;
use crate::world::World;

/// A write that must be refused. Gives the reasons.
#[track_caller]
fn denied(world: &World, arguments: &[&str]) -> Vec<Value> {
    let report = json(world, 1, arguments);
    assert_eq!(report["code"], "gate", "{arguments:?}: {report}");
    reasons(&report)
}

/// A write that must be refused, for one reason. Gives what was found.
#[track_caller]
fn denied_once(world: &World, arguments: &[&str]) -> String {
    let reasons = denied(world, arguments);
    let [reason] = reasons.as_slice() else {
        panic!("{arguments:?}: {reasons:#?}");
    };
    reason["found"].as_str().unwrap().to_owned()
}

/// A write that a watch must fail. Gives the whole answer.
#[track_caller]
fn fails_watch(world: &World, arguments: &[&str]) -> Value {
    let report = json(world, 1, arguments);
    assert_eq!(report["code"], "not-verified", "{arguments:?}: {report}");
    report
}

fn reasons(report: &Value) -> Vec<Value> {
    report["reasons"].as_array().cloned().unwrap_or_default()
}

/// What tells whether anybody touched a file: its inode, and its times.
fn touched(path: &Path) -> (u64, i64, i64, i64, i64) {
    let found = path.symlink_metadata().unwrap();
    let (modified, changed) = (found.mtime_nsec(), found.ctime_nsec());
    (found.ino(), found.mtime(), modified, found.ctime(), changed)
}

/// Writes a program of a test's own.
fn script(world: &World, name: &str, text: &str) -> String {
    let path = world.scratch(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// How many lines a file of a test's own has: who reloads writes one.
fn lines(world: &World, name: &str) -> usize {
    let text = std::fs::read_to_string(world.scratch(name)).unwrap_or_default();
    text.lines().count()
}

/// A service that answers as it is told to, and remembers what it was asked.
struct Service {
    port: u16,
    status: Arc<AtomicU16>,
    body: Arc<Mutex<String>>,
    asked: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    fn new(body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut service = Self {
            port: listener.local_addr().unwrap().port(),
            status: Arc::new(AtomicU16::new(200)),
            body: Arc::new(Mutex::new(body.to_owned())),
            asked: Arc::default(),
            is_over: Arc::default(),
            thread: None,
        };
        let (status, body) = (Arc::clone(&service.status), Arc::clone(&service.body));
        let (asked, is_over) = (Arc::clone(&service.asked), Arc::clone(&service.is_over));
        service.thread = Some(std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                asked.lock().unwrap().push(request(&mut stream));
                let body = body.lock().unwrap().clone();
                let status = status.load(Ordering::SeqCst);
                let _gone = write!(stream, "HTTP/1.0 {status} X\r\n\r\n{body}");
            }
        }));
        service
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _woken = std::net::TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// Reads one request: its head, and as much more as the head says.
fn request(stream: &mut std::net::TcpStream) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).unwrap_or(0);
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
        let wanted = text.split_once("\r\n\r\n").map(|(head, body)| {
            let length = head
                .lines()
                .find_map(|it| it.strip_prefix("Content-Length: "));
            length.map_or(0, |it| it.parse().unwrap()) <= body.len()
        });
        if count == 0 || wanted == Some(true) {
            return text;
        }
    }
}
