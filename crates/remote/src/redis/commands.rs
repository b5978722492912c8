//! Which keys a command writes, by the server's own word, and which commands are refused.
//!
//! Nothing is known by heart that the server can say: `COMMAND INFO` tells whether a command writes, `COMMAND GETKEYSANDFLAGS` which keys. A write
//! whose keys are not told, or that acts on more than its keys, does not happen.

use std::collections::BTreeSet;

use redis::Value;

use super::answer::Answer;
use super::connection::Link;
use super::error::RedisFault;
use super::request::{RedisRequest, name_in_capitals};
use super::words::Line;

/// What commands do, taken together.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The keys that they may write, in the order of their bytes.
    pub(super) writes: BTreeSet<Vec<u8>>,
    /// The keys that they only read.
    pub(super) reads: BTreeSet<Vec<u8>>,
}

/// Commands that say something harmless although nothing marks them as reading.
const HARMLESS: [&str; 13] = [
    "PING",
    "ECHO",
    "TIME",
    "INFO",
    "ROLE",
    "LASTSAVE",
    "COMMAND",
    "COMMAND|COUNT",
    "COMMAND|DOCS",
    "COMMAND|INFO",
    "COMMAND|LIST",
    "CLIENT|ID",
    "CLIENT|INFO",
];

/// Commands that write only by some of their options: without those they tell of no key that is written.
const WRITE_BY_OPTION: [&str; 4] = ["SORT", "BITFIELD", "GEORADIUS", "GEORADIUSBYMEMBER"];

/// Commands that only keep a count that they have made beside what they counted; no look tells that apart.
const WRITE_A_COUNT: [&str; 1] = ["PFCOUNT"];

/// Runs a request that writes nothing, and gives the answers; none if it writes something.
pub fn read_only(request: &RedisRequest) -> Result<Option<Vec<Answer>>, RedisFault> {
    let mut server = Link::to(&request.server)?;
    if !judge(&mut server, &request.commands)?.writes.is_empty() {
        return Ok(None);
    }
    let mut answers = Vec::new();
    for line in &request.commands {
        let words: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
        answers.push(Answer::from(server.ask(&words)?));
    }
    Ok(Some(answers))
}

/// Finds out what commands do, or why they are refused.
pub(super) fn judge(server: &mut Link, commands: &[Line]) -> Result<Judged, RedisFault> {
    let mut judged = Judged::default();
    for line in commands {
        judge_one(server, line, &mut judged)?;
    }
    judged.reads = judged.reads.difference(&judged.writes).cloned().collect();
    Ok(judged)
}

fn judge_one(server: &mut Link, line: &Line, judged: &mut Judged) -> Result<(), RedisFault> {
    let (name, flags) = flags_of(server, line)?;
    let has = |flag: &str| flags.iter().any(|it| it == flag);
    refuse_by_name(&name, line)?;
    let refuse = |why: &str, instead| Err(refused(&name, why, instead));
    if has("pubsub") {
        return refuse(
            "what other clients were told cannot be taken back",
            "run it with `redis-cli`, if nobody has to take it back",
        );
    }
    if has("blocking") && line.iter().any(|word| word.eq_ignore_ascii_case(b"BLOCK"))
        || has("blocking") && !name.starts_with("XREAD")
    {
        return refuse(
            "it waits for other clients, and nothing can wait in a transaction",
            "use the command that does not wait: `LPOP` for `BLPOP`, `XREAD` without `BLOCK`",
        );
    }
    let keys = keys_of(server, line)?;
    let is_reading = has("readonly") || HARMLESS.contains(&name.as_str());
    if keys.is_empty() {
        return if is_reading {
            Ok(())
        } else {
            refuse(
                "the server does not say which keys it writes",
                "name the keys: use commands that take them, such as `DEL` and `SET`",
            )
        };
    }
    let written = keys.iter().filter(|key| key.is_written).count();
    // Some commands change more of a key than their flags tell (a group that reads a stream).
    let is_all = has("write") && written == 0 && !WRITE_BY_OPTION.contains(&name.as_str());
    for key in keys {
        if (key.is_written || is_all) && !WRITE_A_COUNT.contains(&name.as_str()) {
            judged.writes.insert(key.bytes);
        } else {
            judged.reads.insert(key.bytes);
        }
    }
    Ok(())
}

/// Refuses what reaches further than its keys in this database.
fn refuse_by_name(name: &str, line: &Line) -> Result<(), RedisFault> {
    let base = name.split('|').next().unwrap_or(name);
    let has_word = |word: &[u8]| line.iter().skip(1).any(|it| it.eq_ignore_ascii_case(word));
    let (why, instead) = match base {
        "EVAL" | "EVALSHA" | "FCALL" => (
            "a script may write keys that it does not name",
            "run the commands of the script themselves, from a file they are one transaction; or `EVAL_RO`, if it only reads",
        ),
        "FLUSHALL" | "FLUSHDB" | "SWAPDB" => (
            "it writes every key at once",
            "remove the keys by name, with `DEL` or `UNLINK`",
        ),
        "MOVE" | "MIGRATE" => (
            "it writes outside of this database",
            "use `DUMP` here and `RESTORE` there, each with its own `--url`",
        ),
        "COPY" if has_word(b"DB") => (
            "it writes outside of this database",
            "use `DUMP` here and `RESTORE` there, each with its own `--url`",
        ),
        "SELECT" => (
            "the database is part of the URL",
            "give it with `--url`: `redis://HOST:PORT/DB`",
        ),
        "MULTI" | "EXEC" | "DISCARD" | "WATCH" | "UNWATCH" => (
            "all commands of one call are one transaction already",
            "leave it out",
        ),
        _ => return Ok(()),
    };
    Err(refused(name, why, instead))
}

fn refused(command: &str, why: &str, instead: &'static str) -> RedisFault {
    RedisFault::Refused {
        command: command.replace('|', " "),
        why: why.to_owned(),
        instead,
    }
}

/// Gives the name of a command, with that of the one inside if it has some, and its flags.
fn flags_of(server: &mut Link, line: &Line) -> Result<(String, Vec<String>), RedisFault> {
    let mut name = name_in_capitals(line);
    let mut info = described(server, &name)?;
    // The last field lists the commands inside.
    let has_inside = matches!(info.last(), Some(Value::Array(inside)) if !inside.is_empty());
    if has_inside && let Some(word) = line.get(1) {
        let inside = String::from_utf8_lossy(word).to_ascii_uppercase();
        name = format!("{name}|{inside}");
        info = described(server, &name)?;
    }
    let flags = match info.get(2) {
        Some(Value::Array(flags)) => flags.iter().filter_map(word_of).collect(),
        _ => Vec::new(),
    };
    Ok((name, flags))
}

fn described(server: &mut Link, name: &str) -> Result<Vec<Value>, RedisFault> {
    let answer = server.ask(&[b"COMMAND", b"INFO", name.as_bytes()])?;
    match answer {
        Value::Array(list) => match list.into_iter().next() {
            Some(Value::Array(info)) => Ok(info),
            _ => Err(refused(
                name,
                "the server does not know it",
                "check the name of the command",
            )),
        },
        _ => Err(RedisFault::Strange {
            expected: "what a command does",
        }),
    }
}

fn word_of(value: &Value) -> Option<String> {
    match value {
        Value::SimpleString(word) => Some(word.clone()),
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    }
}

struct CommandKey {
    bytes: Vec<u8>,
    is_written: bool,
}

fn keys_of(server: &mut Link, line: &Line) -> Result<Vec<CommandKey>, RedisFault> {
    // The server wants an argument; a command without one has no keys.
    if line.len() < 2 {
        return Ok(Vec::new());
    }
    let mut words: Vec<&[u8]> = vec![b"COMMAND", b"GETKEYSANDFLAGS"];
    words.extend(line.iter().map(Vec::as_slice));
    let list = match server.try_ask(&words)? {
        Value::Array(list) => list,
        Value::ServerError(error) => {
            let said = error.details().unwrap_or_default();
            if said.contains("no key arguments") {
                return Ok(Vec::new());
            }
            return Err(RedisFault::from(&error));
        }
        _ => Vec::new(),
    };
    let strange = || RedisFault::Strange {
        expected: "the keys of a command",
    };
    let key = |value: &Value| {
        let Value::Array(pair) = value else {
            return None;
        };
        let [Value::BulkString(bytes), Value::Array(flags)] = pair.as_slice() else {
            return None;
        };
        let is_read = flags.iter().filter_map(word_of).any(|flag| flag == "RO");
        Some(CommandKey {
            bytes: bytes.clone(),
            is_written: !is_read,
        })
    };
    list.iter()
        .map(|value| key(value).ok_or_else(strange))
        .collect()
}
