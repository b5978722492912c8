//! The story that began it all: an agent changes the rate limit of a web server. The real nginx, on a port of its own.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{denied_once, fails_watch, touched};
use crate::world::{World, said};

/// How often we look whether a server has come up or gone.
const LOOKS: usize = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// An nginx that serves one word.
struct Nginx {
    world: World,
    port: u16,
}

impl Nginx {
    /// None if there is no nginx here.
    fn start(rules: impl Fn(&str, u16) -> String) -> Option<Self> {
        if Command::new("nginx").arg("-v").output().is_err() {
            eprintln!("no nginx here: not tried");
            return None;
        }
        let world = World::new();
        let port = {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        };
        let nginx = Self { world, port };
        let prefix = nginx.world.path("").display().to_string();
        nginx.world.file("nginx.conf", &nginx.config("", "old"));
        nginx.world.file("backout.toml", &rules(&prefix, port));
        let output = nginx.nginx(&[]);
        assert!(output.status.success(), "{}", said(&output));
        nginx.until(|| nginx.get("/").contains("old"));
        Some(nginx)
    }

    /// A config that answers with a word, with more lines for its head.
    fn config(&self, head: &str, word: &str) -> String {
        let (prefix, port) = (self.world.path("").display().to_string(), self.port);
        let scratch = self.world.scratch("nginx").display().to_string();
        format!(
            "worker_processes 1;
pid {scratch}.pid;
error_log {scratch}.log;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {scratch}-body; proxy_temp_path {scratch}-proxy; fastcgi_temp_path {scratch}-fastcgi;
  uwsgi_temp_path {scratch}-uwsgi; scgi_temp_path {scratch}-scgi;
  {head}
  server {{
    listen 127.0.0.1:{port};
    root {prefix};
    location / {{ return 200 '{word}'; }}
  }}
}}
"
        )
    }

    fn nginx(&self, more: &[&str]) -> std::process::Output {
        let (prefix, config) = (self.world.path(""), self.world.path("nginx.conf"));
        let log = self.world.scratch("nginx.log");
        let mut command = Command::new("nginx");
        command
            .arg("-p")
            .arg(prefix)
            .arg("-e")
            .arg(log)
            .arg("-c")
            .arg(config);
        command.args(more).output().unwrap()
    }

    fn get(&self, path: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return String::new();
        };
        let mut answer = String::new();
        let _gone = write!(stream, "GET {path} HTTP/1.0\r\n\r\n");
        let _gone = stream.read_to_string(&mut answer);
        answer
    }

    fn until(&self, mut is: impl FnMut() -> bool) {
        for _ in 0..LOOKS {
            if is() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        let log = std::fs::read_to_string(self.world.scratch("nginx.log")).unwrap_or_default();
        panic!("it did not come to pass: {}{log}", self.get("/"));
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let file = self.world.scratch("nginx.pid");
        let pid = std::fs::read_to_string(&file).unwrap_or_default();
        if let Some(pid) = pid.trim().parse().ok().and_then(Pid::from_raw) {
            let _gone = kill_process(pid, Signal::TERM);
            for _ in 0..LOOKS {
                if !file.exists() {
                    return;
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

const LIMIT: &str = "limit_req_zone $binary_remote_addr zone=one:1m rate=1000r/s;";

fn check(_prefix: &str, _port: u16) -> String {
    "[[check]]\nname = 'nginx'\npaths = ['nginx.conf']\ncommand = ['nginx', '-t', '-q', '-c', '{staged}']\n".to_owned()
}

#[test]
fn a_bad_rate_limit_never_reaches_the_service() {
    let Some(nginx) = Nginx::start(check) else {
        return;
    };
    let world = &nginx.world;
    let before = (touched(&world.path("nginx.conf")), world.tree());
    // Somebody asks all the while.
    let (is_over, bad) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(Mutex::new(Vec::new())),
    );
    let asking = {
        let (is_over, bad, port) = (Arc::clone(&is_over), Arc::clone(&bad), nginx.port);
        std::thread::spawn(move || {
            let mut count = 0;
            while !is_over.load(Ordering::SeqCst) {
                let mut answer = String::new();
                let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
                write!(stream, "GET / HTTP/1.0\r\n\r\n").unwrap();
                stream.read_to_string(&mut answer).unwrap();
                if !answer.ends_with("old") {
                    bad.lock().unwrap().push(answer);
                }
                count += 1;
            }
            count
        })
    };
    for typo in [
        "limit_req_zone $binary_remote_addr zone=one:1m rate=1000rs;",
        "limit_req_zone $binary_remote_addr zone=one rate=10r/s;",
        "limit_req_zon $binary_remote_addr zone=one:1m rate=10r/s;",
        "limit_req_zone $binary_remote_addr zone=one:1m rate=10r/s",
    ] {
        let found = denied_once(
            world,
            &["write", "nginx.conf", "--text", &nginx.config(typo, "new")],
        );
        assert!(found.contains("`nginx` ended with 1: "), "{found}");
        // nginx's own words, with the file that people know.
        let place = format!("{}:", world.path("nginx.conf").display());
        assert!(found.contains(&place), "{found}");
    }
    assert!(world.tree() == before.1);
    assert_eq!(touched(&world.path("nginx.conf")), before.0);
    is_over.store(true, Ordering::SeqCst);
    assert!(asking.join().unwrap() > 0);
    assert_eq!(*bad.lock().unwrap(), Vec::<String>::new());
    // What nginx likes is written.
    world.ok(&["write", "nginx.conf", "--text", &nginx.config(LIMIT, "new")]);
    world.ok(&["undo"]);
    assert_eq!(world.read("nginx.conf"), nginx.config("", "old"));
    world.check_store();
}

fn watch(prefix: &str, port: u16) -> String {
    let log = format!("{prefix}../nginx.log");
    format!(
        "[[check]]
name = 'nginx'
paths = ['nginx.conf']
command = ['nginx', '-t', '-q', '-c', '{{staged}}']
[[watch]]
name = 'it answers'
paths = ['nginx.conf']
reload = ['nginx', '-p', '{prefix}', '-e', '{log}', '-c', '{prefix}nginx.conf', '-s', 'reload']
http = 'http://127.0.0.1:{port}/health'
contains = 'new'
tries = 100
pause = '50ms'
window = '200ms'
"
    )
}

#[test]
fn a_config_that_is_fine_and_does_not_serve_is_rolled_back() {
    let Some(nginx) = Nginx::start(watch) else {
        return;
    };
    let world = &nginx.world;
    // nginx likes it, and the health check gets an error from it: too many tries of it fail.
    let ill = nginx
        .config(LIMIT, "new")
        .replace("return 200", "return 503");
    let rules = world
        .read("backout.toml")
        .replace("tries = 100", "tries = 20");
    world.file("backout.toml", &rules);
    let report = fails_watch(world, &["write", "nginx.conf", "--text", &ill]);
    let why = report["why"].to_string();
    assert!(why.contains("watch `it answers` in"), "{why}");
    assert!(why.contains("answers 503, and 200 is wanted"), "{why}");
    assert_eq!(world.read("nginx.conf"), nginx.config("", "old"));
    nginx.until(|| nginx.get("/").ends_with("old"));
    let log = world.ok(&["log"]);
    assert!(log.contains("undo of write nginx.conf"), "{log}");
    // A good one stays, and its undo reloads the service too.
    let rules = rules.replace("tries = 20", "tries = 100");
    world.file("backout.toml", &rules);
    world.ok(&["write", "nginx.conf", "--text", &nginx.config(LIMIT, "new")]);
    assert!(nginx.get("/").ends_with("new"));
    world.ok(&["undo"]);
    nginx.until(|| nginx.get("/").ends_with("old"));
    world.ok(&["redo"]);
    nginx.until(|| nginx.get("/").ends_with("new"));
    world.check_store();
}
