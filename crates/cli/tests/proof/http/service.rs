//! A small web service of our own that fails as it is told: on loopback, one thread, everything in memory.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

/// What happens to one request that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing is done, and this is answered.
    Status(u16),
    /// Nothing is done: it is told to come back at once.
    Busy,
    /// Nothing is done, and it is called done.
    Ignore,
    /// It is done, and the answer does not say what was made.
    Mute,
    /// It is done, and this is answered.
    DoneBut(u16),
    /// It is done, and the connection is closed without a word.
    Cut,
    /// Nothing is done, and the connection is closed without a word.
    Drop,
    /// It is done, and nothing is ever answered.
    Hang,
    /// It is answered, and done when it was looked at twice.
    Later,
}

/// What the service holds.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) things: BTreeMap<String, Value>,
    pub(crate) faults: VecDeque<Fault>,
    /// Every request that writes: method, path, key.
    pub(crate) writes: Vec<(String, String, Option<String>)>,
    pub(crate) mails: Vec<String>,
    pub(crate) forgets_keys: bool,
    /// Whether it keeps names in capitals, whatever it is given.
    pub(crate) shouts: bool,
    /// What was sent as a secret.
    pub(crate) authorizations: Vec<String>,
    keys: HashMap<String, (u16, Value)>,
    next: u64,
    versions: u64,
    /// What is deleted when it was looked at so often.
    later: Option<(String, u32)>,
    hanging: Vec<TcpStream>,
}

pub(crate) struct Service {
    held: Arc<Mutex<Held>>,
    port: u16,
}

struct Asked {
    method: String,
    path: String,
    headers: HashMap<String, String>,
    body: Value,
}

impl Service {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let held = Arc::new(Mutex::new(Held::default()));
        let shared = Arc::clone(&held);
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(&shared, stream.unwrap());
            }
        });
        Self { held, port }
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn fails(&self, faults: &[Fault]) {
        self.held().faults = faults.iter().copied().collect();
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let held = self.held();
        let names = held
            .things
            .values()
            .map(|thing| thing["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    pub(crate) fn put(&self, id: &str, name: &str) {
        let mut held = self.held();
        held.versions += 1;
        let thing = json!({"id": id, "name": name, "version": held.versions});
        held.things.insert(id.to_owned(), thing);
    }

    pub(crate) fn writes(&self, method: &str) -> usize {
        let held = self.held();
        held.writes.iter().filter(|(it, ..)| it == method).count()
    }
}

fn serve(held: &Mutex<Held>, mut stream: TcpStream) {
    let Some(asked) = read(&stream) else {
        return;
    };
    let mut held = held.lock().unwrap();
    let is_write = asked.method != "GET";
    let key = asked.headers.get("idempotency-key").cloned();
    held.authorizations
        .extend(asked.headers.get("authorization").cloned());
    let fault = if is_write {
        held.writes
            .push((asked.method.clone(), asked.path.clone(), key.clone()));
        held.faults.pop_front()
    } else {
        None
    };
    let known = key
        .clone()
        .filter(|_| !held.forgets_keys)
        .and_then(|key| held.keys.get(&key).cloned());
    let (status, body) = match (fault, known) {
        (Some(Fault::Status(status)), _) => (status, json!({"error": "told to"})),
        (Some(Fault::Busy), _) => (429, json!({"error": "busy"})),
        (Some(Fault::Drop), _) => return,
        (Some(Fault::Ignore), _) => (200, json!({})),
        (_, Some(known)) => known,
        (fault, None) => {
            let is_late = fault == Some(Fault::Later) && asked.method == "DELETE";
            let answer = if is_late {
                held.later = Some((asked.path.clone(), 0));
                (202, json!({}))
            } else {
                act(&mut held, &asked)
            };
            if let Some(key) = key {
                held.keys.insert(key, answer.clone());
            }
            answer
        }
    };
    let status = match fault {
        Some(Fault::DoneBut(status)) => status,
        Some(Fault::Cut) => return,
        Some(Fault::Hang) => {
            held.hanging.push(stream);
            return;
        }
        _ => status,
    };
    let body = match fault {
        Some(Fault::Mute) => json!({}),
        _ => body,
    };
    let tag = body["version"]
        .as_u64()
        .map(|it| format!("ETag: \"{it}\"\r\n"));
    let (tag, text) = (tag.unwrap_or_default(), body.to_string());
    let retry = if status == 429 {
        "Retry-After: 0\r\n"
    } else {
        ""
    };
    let length = text.len();
    let _gone = write!(
        stream,
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Set-Cookie: session=abc\r\nConnection: close\r\n{tag}{retry}\r\n{text}"
    );
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers
        .get("content-length")
        .and_then(|it| it.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Asked {
        method,
        path,
        headers,
        body,
    })
}

fn act(held: &mut Held, asked: &Asked) -> (u16, Value) {
    let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
    let id = path.strip_prefix("/things/").unwrap_or_default().to_owned();
    let gone = || (404, json!({"error": "no such thing"}));
    if let Some((late, looks)) = &mut held.later
        && *late == path
    {
        *looks += 1;
        if *looks > 2 {
            held.things.remove(&id);
        }
    }
    let now = held
        .things
        .get(&id)
        .map(|thing| format!("\"{}\"", thing["version"]));
    let is_changed = match (
        asked.headers.get("if-match"),
        asked.headers.get("if-none-match"),
    ) {
        (Some(tag), _) => now.as_ref() != Some(tag),
        (None, Some(_)) => now.is_some(),
        (None, None) => false,
    };
    if is_changed {
        return (412, json!({"error": "changed"}));
    }
    match (asked.method.as_str(), path) {
        ("POST", "/mail") => {
            held.mails.push(asked.body["to"].to_string());
            (200, json!({"sent": true}))
        }
        ("POST", "/things") => {
            held.next += 1;
            let id = held.next.to_string();
            let mut body = asked.body.clone();
            body["api_token"] = "sk_live_from_the_service_4242".into();
            store(held, &id, &body);
            (201, held.things[&id].clone())
        }
        ("GET", "/things") => {
            let wanted = query.strip_prefix("name=").unwrap_or_default();
            let all = held.things.values().filter(|it| it["name"] == wanted);
            (200, json!({"data": all.collect::<Vec<_>>()}))
        }
        ("GET", _) => held
            .things
            .get(&id)
            .map_or_else(gone, |thing| (200, thing.clone())),
        ("PUT" | "PATCH", _) => {
            store(held, &id, &asked.body);
            (200, held.things[&id].clone())
        }
        ("DELETE", _) => match held.things.remove(&id) {
            Some(_) => (204, Value::Null),
            None => gone(),
        },
        _ => gone(),
    }
}

fn store(held: &mut Held, id: &str, body: &Value) {
    held.versions += 1;
    let name = body["name"].as_str().unwrap_or_default();
    let name = if held.shouts {
        name.to_uppercase()
    } else {
        name.to_owned()
    };
    let mut thing = json!({"id": id, "name": name, "version": held.versions});
    if let Some(token) = body.get("api_token") {
        thing["api_token"] = token.clone();
    }
    held.things.insert(id.to_owned(), thing);
}
