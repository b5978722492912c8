//! A server of its own for each test: the built program, real sockets, and a client that sends exactly what it is told.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// Many times what a machine under load needs.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A store, a directory to work in, and the server if it runs.
pub(crate) struct World {
    root: tempfile::TempDir,
}

pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    socket: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        format!("{}\n{}", self.head, String::from_utf8_lossy(&self.body))
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    #[track_caller]
    pub(crate) fn code(&self, status: u16, code: &str) -> &Self {
        self.is(status);
        assert_eq!(self.json()["code"], code, "{}", self.text());
        self
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        Self { root }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("work").join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| format!("<{error}>"))
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backout"));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.root.path())
            .env("BACKOUT_STATE_DIR", self.state())
            .current_dir(self.root.path().join("work"))
            .args(words)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    #[track_caller]
    pub(crate) fn succeeds(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Makes a token.
    pub(crate) fn token(&self, words: &[&str]) -> String {
        let all = [&["--json", "serve", "token", "add", "--role"], words].concat();
        let told: Value = serde_json::from_str(&self.succeeds(&all)).unwrap();
        told["token"].as_str().unwrap().to_owned()
    }

    /// Starts a server on a free port and waits until it can be asked.
    pub(crate) fn serve(&self, more: &[&str]) -> Server {
        let words = [&["--json", "serve", "--listen", "127.0.0.1:0"], more].concat();
        self.serve_with(&words)
    }

    pub(crate) fn serve_with(&self, words: &[&str]) -> Server {
        Server::start(self.command(words))
    }

    /// A write of a file, as a command.
    pub(crate) fn write(&self, name: &str, text: &str) -> Value {
        write_of(&self.path(name), text)
    }
}

pub(crate) fn write_of(path: &Path, text: &str) -> Value {
    json!({"command": {"command": "write", "with": {"request": {"driver": "file", "request": {
        "write": {"path": path, "source": {"bytes": text}, "expect": "anything", "parents": true, "mode": null}
    }}}}})
}

impl Server {
    /// Starts a server and waits until it can be asked.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let Ok(told) = serde_json::from_str::<Value>(&line) else {
            let mut said = String::new();
            let _read = child.stderr.take().unwrap().read_to_string(&mut said);
            panic!("the server did not come up: {said}");
        };
        let address = told["url"].as_str().unwrap_or_default();
        let address = address.rsplit('/').next().unwrap().to_owned();
        let socket = PathBuf::from(told["socket"].as_str().unwrap());
        Self {
            child,
            address,
            socket,
        }
    }

    /// Asks over TCP with a token.
    #[track_caller]
    pub(crate) fn ask(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let authorization = format!("Authorization: Bearer {token}\r\n");
        self.send(method, path, &authorization, body)
    }

    #[track_caller]
    pub(crate) fn get(&self, token: &str, path: &str) -> Answer {
        self.ask(token, "GET", path, None)
    }

    #[track_caller]
    pub(crate) fn post(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.ask(token, "POST", path, Some(body))
    }

    /// Asks over TCP with any headers.
    #[track_caller]
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: Option<&Value>,
    ) -> Answer {
        let host = format!("Host: {}\r\n{headers}", self.address);
        self.raw(&request(method, path, &host, body))
    }

    /// Sends exactly these bytes over TCP.
    #[track_caller]
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(bytes).unwrap();
        read_answer(stream)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Asks over the unix socket.
    pub(crate) fn ask_socket(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
            .write_all(&request(method, path, "Host: any\r\n", body))
            .unwrap();
        read_answer(stream)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

pub(crate) fn request(method: &str, path: &str, headers: &str, body: Option<&Value>) -> Vec<u8> {
    let body = body.map(Value::to_string);
    let more = body.as_ref().map(|body| {
        format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        )
    });
    format!(
        "{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}{}\r\n{}",
        more.unwrap_or_default(),
        body.unwrap_or_default()
    )
    .into_bytes()
}

/// Reads until the server closes; what it said before it hung up counts.
pub(crate) fn read_answer(mut stream: impl Read) -> Answer {
    let mut all = Vec::new();
    let mut chunk = vec![0; 65536];
    while let Ok(count @ 1..) = stream.read(&mut chunk) {
        all.extend_from_slice(&chunk[..count]);
    }
    let at = all.windows(4).position(|it| it == b"\r\n\r\n");
    let at = at.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&all)));
    let head = String::from_utf8(all[..at].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = all[at + 4..].to_vec();
    if head.to_lowercase().contains("transfer-encoding: chunked") {
        body = unchunked(&body);
    }
    Answer { status, head, body }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|it| it == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap(), 16).unwrap();
        if size == 0 || rest.len() < at + 2 + size {
            break;
        }
        body.extend_from_slice(&rest[at + 2..at + 2 + size]);
        rest = rest.get(at + 4 + size..).unwrap_or_default();
    }
    body
}

/// Reads server-sent events one by one.
pub(crate) struct Reader {
    lines: BufReader<TcpStream>,
}

impl Reader {
    pub(crate) fn open(server: &Server, token: &str, path: &str, headers: &str) -> Self {
        let mut stream = server.connect();
        let host = format!(
            "Host: {}\r\nAuthorization: Bearer {token}\r\n{headers}",
            server.address
        );
        stream
            .write_all(&request("GET", path, &host, None))
            .unwrap();
        Self {
            lines: BufReader::new(stream),
        }
    }

    /// Gives the next event: its id, kind and data.
    pub(crate) fn next(&mut self) -> (u64, String, Value) {
        let (mut id, mut kind) = (0, String::new());
        loop {
            let mut line = String::new();
            assert!(
                self.lines.read_line(&mut line).unwrap() > 0,
                "the stream ended"
            );
            if let Some(text) = line.strip_prefix("id: ") {
                id = text.trim().parse().unwrap();
            } else if let Some(text) = line.strip_prefix("event: ") {
                text.trim().clone_into(&mut kind);
            } else if let Some(text) = line.strip_prefix("data: ") {
                return (id, kind, serde_json::from_str(text).unwrap());
            }
        }
    }

    /// Waits for an event of a kind.
    pub(crate) fn wait_for(&mut self, wanted: &str) -> (u64, Value) {
        loop {
            let (id, kind, data) = self.next();
            if kind == wanted {
                return (id, data);
            }
        }
    }
}
