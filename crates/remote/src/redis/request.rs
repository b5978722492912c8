//! What is asked of a server.

use backout_model::ports::{DriverError, Request};
use backout_model::{DriverName, JsonText, Verb};
use serde::{Deserialize, Serialize};

use super::answer::Answers;
use super::driver::REDIS;
use super::error::RedisFault;
use super::server::Server;
use super::words::{Line, bytes_of, name_of};

/// Asks for commands, all of them or none.
#[derive(Debug, Clone)]
pub struct RedisRequest {
    /// Where.
    pub server: Server,
    /// What is run, in this order.
    pub commands: Vec<Line>,
    /// Where the server's answers go.
    pub answers: Answers,
}

/// A request as it is written down: words in any bytes.
#[derive(Serialize, Deserialize)]
struct Written {
    server: Server,
    commands: Vec<Vec<String>>,
}

impl RedisRequest {
    /// Asks for commands.
    pub fn new(server: Server, commands: Vec<Line>) -> Result<Self, RedisFault> {
        if commands.is_empty() || commands.iter().any(Vec::is_empty) {
            return Err(RedisFault::NoCommand);
        }
        let answers = Answers::default();
        Ok(Self {
            server,
            commands,
            answers,
        })
    }

    /// Reads one that was written down.
    pub(super) fn read(text: &JsonText) -> Result<Self, DriverError> {
        let Written { server, commands } = text.read()?;
        let bytes = |word: &String| bytes_of(word).ok_or(RedisFault::NoCommand);
        let words = |line: &Vec<String>| line.iter().map(bytes).collect::<Result<Line, _>>();
        let commands = commands.iter().map(words).collect::<Result<_, _>>()?;
        Ok(Self::new(server, commands)?)
    }
}

/// Gives the name of a command in capitals.
pub(super) fn name_in_capitals(line: &Line) -> String {
    let name = line.first().map_or(&[][..], Vec::as_slice);
    name_of(&name.to_ascii_uppercase())
}

impl Request for RedisRequest {
    fn driver(&self) -> DriverName {
        REDIS
    }

    fn verb(&self) -> Verb {
        Verb::Write
    }

    // Values may be secrets, and which arguments are keys only the server knows: the first one says enough.
    fn summary(&self) -> String {
        let first = self.commands.first();
        let name = first.map(name_in_capitals).unwrap_or_default();
        match (self.commands.len(), first.and_then(|line| line.get(1))) {
            (1, Some(argument)) => format!("redis {name} {}", name_of(argument)),
            (1, None) => format!("redis {name}"),
            (count, _) => format!("redis {name} and {} more", count - 1),
        }
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        let words = |line: &Line| line.iter().map(|word| name_of(word)).collect();
        Ok(JsonText::of(&Written {
            server: self.server.clone(),
            commands: self.commands.iter().map(words).collect(),
        })?)
    }
}
