//! A real Redis server of a test's own, and a client that shares no code with what is tested.

#![expect(
    clippy::panic,
    reason = "a server that answers something else fails the test"
)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    /// Nothing.
    Nil,
    /// A number.
    Int(i64),
    /// Bytes, or a word.
    Bytes(Vec<u8>),
    /// An error.
    Error(String),
    /// Several of these.
    List(Vec<Self>),
}

/// A server on a socket in a directory of its own. It ends with the test.
#[derive(Debug)]
pub struct RedisServer {
    directory: PathBuf,
    own: Option<tempfile::TempDir>,
    child: Child,
    log: Option<JoinHandle<()>>,
    options: Vec<String>,
}

impl Default for RedisServer {
    fn default() -> Self {
        Self::with(&[])
    }
}

impl RedisServer {
    /// Starts one with more options, in pairs.
    pub fn with(options: &[&str]) -> Self {
        let own = tempfile::tempdir().expect("a directory");
        let mut server = Self::at(own.path(), options);
        server.own = Some(own);
        server
    }

    /// The same, in a directory that is there.
    pub fn at(directory: &Path, options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().map(|it| (*it).to_owned()).collect();
        let (child, log) = started(directory, &options);
        Self {
            directory: directory.to_path_buf(),
            own: None,
            child,
            log: Some(log),
            options,
        }
    }

    /// Ends it at once and starts it again, on the same socket.
    pub fn restart(&mut self) {
        self.stop();
        let (child, log) = started(&self.directory, &self.options);
        (self.child, self.log) = (child, Some(log));
    }

    /// Ends it at once.
    pub fn stop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
        if let Some(log) = self.log.take() {
            let _read = log.join();
        }
    }

    /// Gives its socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    /// Gives its URL.
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Connects.
    pub fn client(&self) -> RedisClient {
        let stream = UnixStream::connect(self.socket()).expect("connects");
        RedisClient(BufReader::new(stream))
    }

    /// Asks one thing, as somebody else would.
    pub fn ask(&self, words: &[&str]) -> Reply {
        self.client().ask(words)
    }

    /// Looks at all keys of the first database but our marks: what each is, and when it goes.
    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let mut client = self.client();
        let Reply::List(keys) = client.ask(&["KEYS", "*"]) else {
            panic!("a server lists its keys");
        };
        let keys = keys.into_iter().map(|key| match key {
            Reply::Bytes(key) => key,
            other @ (Reply::Nil | Reply::Int(_) | Reply::Error(_) | Reply::List(_)) => {
                panic!("a key: {other:?}")
            }
        });
        keys.filter(|key| !key.starts_with(b"backout:mark:"))
            .map(|key| (key.escape_ascii().to_string(), client.described(&key)))
            .collect()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct RedisClient(BufReader<UnixStream>);

impl RedisClient {
    /// Asks one thing.
    pub fn ask(&mut self, words: &[&str]) -> Reply {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.ask_bytes(&words)
    }

    /// The same, in any bytes.
    pub fn ask_bytes(&mut self, words: &[&[u8]]) -> Reply {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n", word.len()).into_bytes());
            bytes.extend(*word);
            bytes.extend(b"\r\n");
        }
        self.0.get_mut().write_all(&bytes).expect("is sent");
        self.reply()
    }

    fn reply(&mut self) -> Reply {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("answers");
        let rest = line.get(1..).expect("an answer").trim_end();
        let count = || rest.parse::<i64>().expect("a number");
        match line.as_bytes().first() {
            Some(b'+') => Reply::Bytes(rest.as_bytes().to_vec()),
            Some(b'-') => Reply::Error(rest.to_owned()),
            Some(b':') => Reply::Int(count()),
            Some(b'$') if count() >= 0 => {
                let mut bytes = vec![0; usize::try_from(count()).expect("a size") + 2];
                self.0.read_exact(&mut bytes).expect("is there");
                bytes.truncate(bytes.len() - 2);
                Reply::Bytes(bytes)
            }
            Some(b'*') if count() >= 0 => Reply::List((0..count()).map(|_| self.reply()).collect()),
            _ => Reply::Nil,
        }
    }

    /// Says all of a key.
    fn described(&mut self, key: &[u8]) -> String {
        let goes_at = self.ask_bytes(&[b"PEXPIRETIME", key]);
        let kind = match self.ask_bytes(&[b"TYPE", key]) {
            Reply::Bytes(kind) => String::from_utf8(kind).expect("a word"),
            other @ (Reply::Nil | Reply::Int(_) | Reply::Error(_) | Reply::List(_)) => {
                panic!("a kind: {other:?}")
            }
        };
        let value = match kind.as_str() {
            "string" => self.ask_bytes(&[b"GET", key]),
            "list" => self.ask_bytes(&[b"LRANGE", key, b"0", b"-1"]),
            "set" => sorted(self.ask_bytes(&[b"SMEMBERS", key]), 1),
            "hash" => sorted(self.ask_bytes(&[b"HGETALL", key]), 2),
            "zset" => self.ask_bytes(&[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"]),
            "stream" => {
                let last = self.ask_bytes(&[b"XREVRANGE", key, b"+", b"-"]);
                let groups = self.ask_bytes(&[b"XINFO", b"GROUPS", key]);
                Reply::List(vec![last, groups])
            }
            other => panic!("no test knows a {other}"),
        };
        format!("{kind} {value:?} {goes_at:?}")
    }
}

fn sorted(reply: Reply, width: usize) -> Reply {
    let Reply::List(list) = reply else {
        return reply;
    };
    let mut groups: Vec<_> = list.chunks(width).map(<[Reply]>::to_vec).collect();
    groups.sort();
    Reply::List(groups.concat())
}

fn started(directory: &Path, options: &[String]) -> (Child, JoinHandle<()>) {
    let socket = directory.join("socket");
    let mut command = Command::new("redis-server");
    command
        .args(["--port", "0", "--save", "", "--appendonly", "no", "--dir"])
        .arg(directory)
        .arg("--unixsocket")
        .arg(&socket)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("redis-server is installed");
    let mut log = BufReader::new(child.stdout.take().expect("its log"));
    let mut line = String::new();
    while !line.contains("ready to accept connections") {
        line.clear();
        let read = log.read_line(&mut line).expect("its log is read");
        assert!(read > 0, "the server did not start");
    }
    let drain = move |mut log: BufReader<ChildStdout>| {
        let _drained = std::io::copy(&mut log, &mut std::io::sink());
    };
    (child, std::thread::spawn(move || drain(log)))
}
