//! Words with a server.

use std::fmt;
use std::time::Duration;

use redis::{Cmd, ConnectionLike as _, Value};

use super::error::RedisFault;
use super::server::Server;
use super::state::{State, look_script, mark_script};
use super::words::Line;

/// How long to wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long to wait for an answer.
const ANSWER_MAX: Duration = Duration::from_mins(1);

/// The first version that can say when a key goes (`PEXPIRETIME`), and which keys a command writes.
const OLDEST: u32 = 7;

/// How long a mark stays: a recovery may come a day late.
const MARK_MS: i64 = 24 * 60 * 60 * 1000;

/// What a mark holds that keeps an operation from happening.
const TAKEN: &str = "never";

/// What a mark says.
#[derive(Debug)]
pub(super) enum Mark {
    /// It happened, and made this of the keys.
    Happened(Vec<State>),
    /// It did not happen, and never will.
    Never,
    /// There is none.
    Absent,
}

/// What became of commands that were to happen together.
#[derive(Debug)]
pub(super) enum Ended {
    /// They were run; these are the answers.
    Ran(Vec<Value>),
    /// A watched key was written: none was run.
    Overtaken,
}

/// A connection to a server that is fit.
pub(super) struct Link {
    inner: redis::Connection,
    server: Server,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.server)
    }
}

impl Link {
    /// Connects.
    pub(super) fn to(server: &Server) -> Result<Self, RedisFault> {
        let away = |cause| RedisFault::away(server, cause);
        let client = redis::Client::open(server.access()?).map_err(away)?;
        let inner = client
            .get_connection_with_timeout(CONNECT_MAX)
            .map_err(away)?;
        inner.set_read_timeout(Some(ANSWER_MAX)).map_err(away)?;
        inner.set_write_timeout(Some(ANSWER_MAX)).map_err(away)?;
        let server = server.clone();
        let mut link = Self { inner, server };
        link.check_fit()?;
        Ok(link)
    }

    fn check_fit(&mut self) -> Result<(), RedisFault> {
        let info = self.ask(&[b"INFO", b"server"])?;
        let Value::BulkString(info) = info else {
            return Err(RedisFault::Strange {
                expected: "what it is",
            });
        };
        let info = String::from_utf8_lossy(&info).into_owned();
        let of = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
        let version = of("redis_version:").unwrap_or("unknown");
        let major = version.split('.').next().and_then(|it| it.parse().ok());
        if major.is_none_or(|major: u32| major < OLDEST) {
            let what = format!("of version {version}, which cannot say enough of its keys");
            return Err(RedisFault::Unfit { what });
        }
        if of("redis_mode:") == Some("cluster") {
            let what = "a part of a cluster".to_owned();
            return Err(RedisFault::Unfit { what });
        }
        Ok(())
    }

    /// Asks one thing. An error of the server is an error.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<Value, RedisFault> {
        match self.try_ask(words)? {
            Value::ServerError(error) => Err(RedisFault::from(&error)),
            value => Ok(value),
        }
    }

    /// The same, with an error of the server as an answer.
    pub(super) fn try_ask(&mut self, words: &[&[u8]]) -> Result<Value, RedisFault> {
        let asked = self.inner.req_command(&command(words));
        asked.map_err(|cause| RedisFault::away(&self.server, cause))
    }

    /// Watches the mark and the keys from now on.
    pub(super) fn watch(&mut self, mark: &str, keys: &[Vec<u8>]) -> Result<(), RedisFault> {
        let mut words: Vec<&[u8]> = vec![b"WATCH", mark.as_bytes()];
        words.extend(keys.iter().map(Vec::as_slice));
        self.ask(&words).map(drop)
    }

    /// Gives the state of each key, in their order.
    pub(super) fn look(&mut self, keys: &[Vec<u8>]) -> Result<Vec<State>, RedisFault> {
        let (script, count) = (look_script(), keys.len().to_string());
        let mut words: Vec<&[u8]> = vec![b"EVAL_RO", script.as_bytes(), count.as_bytes()];
        words.extend(keys.iter().map(Vec::as_slice));
        states(&self.ask(&words)?, keys.len())
    }

    /// Gives a key as it can be restored; none if it is not there.
    pub(super) fn dump(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, RedisFault> {
        match self.ask(&[b"DUMP", key])? {
            Value::Nil => Ok(None),
            Value::BulkString(bytes) => Ok(Some(bytes)),
            _ => Err(RedisFault::Strange { expected: "a dump" }),
        }
    }

    /// Tells the server's time in milliseconds.
    pub(super) fn now_ms(&mut self) -> Result<i64, RedisFault> {
        let strange = RedisFault::Strange {
            expected: "the time",
        };
        let (seconds, micros): (i64, i64) =
            redis::from_redis_value(self.ask(&[b"TIME"])?).map_err(|_| strange)?;
        Ok(seconds * 1000 + micros / 1000)
    }

    /// Runs commands as one, if no watched key was written. With a mark, what the keys then are is written into it.
    pub(super) fn together(
        &mut self,
        commands: &[Line],
        mark: Option<(&str, &[Vec<u8>])>,
    ) -> Result<Ended, RedisFault> {
        let mut bytes = redis::cmd("MULTI").get_packed_command();
        for line in commands {
            let words: Vec<&[u8]> = line.iter().map(Vec::as_slice).collect();
            bytes.extend(command(&words).get_packed_command());
        }
        if let Some((mark, keys)) = mark {
            bytes.extend(mark_command(mark, keys));
        }
        bytes.extend(redis::cmd("EXEC").get_packed_command());
        let count = commands.len() + usize::from(mark.is_some()) + 2;
        let answers = self.inner.req_packed_commands(&bytes, 0, count);
        let mut answers = answers.map_err(|cause| RedisFault::away(&self.server, cause))?;
        let ended = answers.pop();
        // If one was not even taken, the server says why there, and runs none.
        let refused = answers.iter().find_map(|answer| match answer {
            Value::ServerError(error) => Some(RedisFault::from(error)),
            _ => None,
        });
        match (refused, ended) {
            (Some(fault), _) => Err(fault),
            (None, Some(Value::Array(answers))) => Ok(Ended::Ran(answers)),
            (None, Some(Value::Nil)) => Ok(Ended::Overtaken),
            (None, Some(Value::ServerError(error))) => Err(RedisFault::from(&error)),
            (None, _) => Err(RedisFault::Strange {
                expected: "answers of a transaction",
            }),
        }
    }

    /// Reads a mark.
    pub(super) fn mark(&mut self, mark: &str, keys: usize) -> Result<Mark, RedisFault> {
        let value = self.try_ask(&[b"LRANGE", mark.as_bytes(), b"0", b"-1"])?;
        match value {
            Value::ServerError(error) if error.code() == "WRONGTYPE" => Ok(Mark::Never),
            Value::ServerError(error) => Err(RedisFault::from(&error)),
            Value::Array(list) if list.is_empty() => Ok(Mark::Absent),
            value => states(&value, keys).map(Mark::Happened),
        }
    }

    /// Finds out for good whether something happened: where there is no mark, the mark is taken, so that what may still be on its way to the
    /// server finds a watched key written, and is not run.
    pub(super) fn settle(&mut self, mark: &str, keys: usize) -> Result<Mark, RedisFault> {
        let ms = MARK_MS.to_string();
        let words: [&[u8]; 6] = [
            b"SET",
            mark.as_bytes(),
            TAKEN.as_bytes(),
            b"NX",
            b"PX",
            ms.as_bytes(),
        ];
        match self.ask(&words)? {
            Value::Nil => self.mark(mark, keys),
            _ => Ok(Mark::Never),
        }
    }
}

/// Reads what a script says of so many keys.
pub(super) fn states(value: &Value, count: usize) -> Result<Vec<State>, RedisFault> {
    let strange = RedisFault::Strange {
        expected: "what the keys are",
    };
    let state = |value: &Value| match value {
        Value::BulkString(text) => State::read(text),
        _ => None,
    };
    let read = match value {
        Value::ServerError(error) => return Err(RedisFault::from(error)),
        Value::Array(list) => list.iter().map(state).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    read.filter(|read| read.len() == count).ok_or(strange)
}

fn mark_command(mark: &str, keys: &[Vec<u8>]) -> Vec<u8> {
    let (script, count) = (mark_script(), (keys.len() + 1).to_string());
    let ms = MARK_MS.to_string();
    let mut words: Vec<&[u8]> = vec![
        b"EVAL",
        script.as_bytes(),
        count.as_bytes(),
        mark.as_bytes(),
    ];
    words.extend(keys.iter().map(Vec::as_slice));
    words.push(ms.as_bytes());
    command(&words).get_packed_command()
}

fn command(words: &[&[u8]]) -> Cmd {
    let mut command = Cmd::new();
    for word in words {
        command.arg(*word);
    }
    command
}
