//! What can go wrong with a Redis server.

use backout_model::ports::{ContentsError, DriverError, Fault};
use redis::{RedisError, ServerError};

/// Says why something was not done.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum RedisFault {
    /// A line of commands cannot be read.
    #[error("the quotes of line {line} do not match")]
    Quotes { line: usize },
    /// There is no command.
    #[error("there is no command to run")]
    NoCommand,
    /// The URL cannot be read. It is not repeated: it may hold a password.
    #[error("the URL of the server cannot be read: {why}")]
    Url {
        /// What is wrong.
        why: String,
    },
    /// The connection would have to be encrypted.
    #[error("this program has no TLS for Redis")]
    Tls,
    /// The variable that holds the password is not set.
    #[error("the password is to be in the variable `{name}`, which is not set")]
    NoPassword {
        /// The variable.
        name: String,
    },
    /// The server did not answer.
    #[error("{server} does not answer")]
    Away {
        server: String,
        /// What happened.
        #[source]
        cause: RedisError,
    },
    /// The server said no.
    #[error("the server said: {code} {detail}")]
    Said {
        /// The word that its errors begin with.
        code: String,
        /// The rest.
        detail: String,
    },
    /// The server answered what nobody understands.
    #[error("the server answered something else than {expected}")]
    Strange { expected: &'static str },
    /// The server cannot do what is needed.
    #[error("the server is {what}")]
    Unfit { what: String },
    /// What the command does cannot be taken back.
    #[error("`{command}` was not run: {why}")]
    Refused {
        /// Its name.
        command: String,
        /// What stands in the way.
        why: String,
        /// The way out.
        instead: &'static str,
    },
    /// Somebody wrote one of the keys meanwhile.
    #[error("somebody else wrote one of the keys at the same moment")]
    Overtaken,
    /// A command was run and did not work.
    #[error("command {number}, `{command}`, failed: {why}")]
    Failed {
        /// Which one, counted from 1.
        number: usize,
        /// Its name.
        command: String,
        /// What the server said.
        why: String,
    },
    /// Nobody knows whether the server has done it, and it cannot be asked.
    #[error("it is not known whether the server has done it")]
    Unknown(#[source] Box<Self>),
    /// A strategy that is not for keys.
    #[error("keys of a server are kept one by one")]
    NotPrepared,
    /// What is kept cannot be had.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// A test wants it to fail.
    #[error("a test made this step fail")]
    Cut,
}

impl RedisFault {
    pub(super) fn away(server: &impl ToString, cause: RedisError) -> Self {
        let server = server.to_string();
        if cause.kind() == redis::ErrorKind::AuthenticationFailed {
            return Self::Said {
                code: "WRONGPASS".to_owned(),
                detail: "the user or the password is wrong".to_owned(),
            };
        }
        match cause.code() {
            Some(code) => Self::Said {
                code: code.to_owned(),
                detail: cause.detail().unwrap_or_default().to_owned(),
            },
            None => Self::Away { server, cause },
        }
    }

    fn code(&self) -> &str {
        match self {
            Self::Said { code, .. } => code,
            Self::Quotes { .. }
            | Self::NoCommand
            | Self::Url { .. }
            | Self::Tls
            | Self::NoPassword { .. }
            | Self::Away { .. }
            | Self::Strange { .. }
            | Self::Unfit { .. }
            | Self::Refused { .. }
            | Self::Overtaken
            | Self::Failed { .. }
            | Self::Unknown(_)
            | Self::NotPrepared
            | Self::Contents(_)
            | Self::Cut => "",
        }
    }
}

impl From<&ServerError> for RedisFault {
    fn from(error: &ServerError) -> Self {
        Self::Said {
            code: error.code().to_owned(),
            detail: error.details().unwrap_or_default().to_owned(),
        }
    }
}

impl Fault for RedisFault {
    fn may_pass(&self) -> bool {
        let passes = ["LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN"];
        matches!(self, Self::Overtaken) || passes.contains(&self.code())
    }

    fn is_half_done(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    fn not_prepared(&self) -> Option<String> {
        matches!(self, Self::NotPrepared).then(|| self.to_string())
    }

    fn out_of_reach(&self) -> Option<&str> {
        matches!(self, Self::Away { .. } | Self::NoPassword { .. })
            .then_some("the keys are as they are; try again when the server answers")
    }

    fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::Refused { instead, .. } => instead,
            Self::Quotes { .. } => "write one command per line, quoted as for `redis-cli`",
            Self::Url { .. } => "give `redis://HOST:PORT/DB` or `unix:///PATH?db=DB`",
            Self::Tls => "connect to a local end of a tunnel, such as `stunnel` makes",
            Self::NoPassword { .. } => "set that variable",
            Self::Away { .. } => "see whether the server is there, and that `--url` names it",
            Self::Overtaken => "try again",
            Self::Unknown(_) => "run `backout recover` when the server answers again",
            Self::Said { detail, .. } if detail.contains("DUMP payload") => {
                "the copy was made by a newer server: undo it there"
            }
            Self::Said { code, .. } => match code.as_str() {
                "NOAUTH" | "WRONGPASS" => {
                    "set `REDISCLI_AUTH`, or name a variable in the URL: `redis://USER:${env:NAME}@HOST`"
                }
                "NOPERM" => {
                    "let the user run the command, and `COMMAND`, `INFO`, `WATCH`, `DUMP`, `RESTORE`, `EVAL` and `EVAL_RO` on keys that it may use and on `backout:mark:*`"
                }
                "READONLY" => "give the URL of the primary server",
                "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" => {
                    "clusters are not supported: give the URL of a single server"
                }
                "OOM" => "the server has no memory left: free some, or raise `maxmemory`",
                "LOADING" | "BUSY" | "TRYAGAIN" | "MASTERDOWN" => "try again in a moment",
                _ => return None,
            },
            Self::Unfit { .. } => "use Redis 7.0 or newer, or Valkey, as a single server",
            Self::NoCommand => "give a command, or `--file FILE`",
            Self::NotPrepared => "leave `--strategy` out",
            Self::Strange { .. } | Self::Failed { .. } | Self::Contents(_) | Self::Cut => {
                return None;
            }
        };
        Some(advice.to_owned())
    }
}

impl From<RedisFault> for DriverError {
    fn from(fault: RedisFault) -> Self {
        Self::new(fault)
    }
}
