//! `backout redis`

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use backout_engine::{Command, EngineError, Finished, Reply};
use backout_model::ports::{DriverError, Request as _};
use backout_remote::redis::{Answer, RedisFault, RedisRequest, Server, commands_of, read_only};
use clap::{Args, ValueHint};
use serde::Serialize;

use crate::failure::Failure;
use crate::input::read_file_or_stdin;
use crate::session::Session;
use crate::show;

/// How often it is tried again because somebody wrote one of the keys at the same moment.
const TRIES_MAX: usize = 5;

/// Run Redis commands, with an undo for every key that they write.
///
/// The server says which keys a command writes. What they are is kept before anything happens, value and time to live, and if
/// somebody else writes one of them in between, nothing happens and it is tried again. Several commands, from a file or from
/// standard input, are one transaction: all of them count, or none. What only reads is answered and not recorded.
///
/// The undo looks at each key again and leaves what somebody else wrote since. Commands whose keys cannot be known are refused.
#[derive(Debug, Args)]
pub(crate) struct RedisArgs {
    /// The server: `redis://[USER@]HOST[:PORT][/DB]` or `unix:///PATH[?db=DB]`. The password comes from `REDISCLI_AUTH`, or from a
    /// variable that the URL names: `redis://USER:${env:NAME}@HOST`.
    #[arg(long, value_name = "URL", default_value = "redis://localhost:6379/0")]
    url: String,

    /// Take the commands from this file, one per line, quoted as for `redis-cli`; `-` is standard input.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "words")]
    file: Option<PathBuf>,

    /// The command and its arguments; without them and without `--file` commands come from standard input.
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

/// The reply for programs.
#[derive(Debug, Serialize)]
struct Answered<'a> {
    reply: &'static str,
    /// What the server said to each command.
    answers: Vec<serde_json::Value>,
    /// The operation, if something was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    write: Option<&'a Finished>,
}

/// Runs commands.
pub(crate) fn cmd_redis(session: &mut Session, args: RedisArgs) -> Result<(), Failure> {
    let asked = asked(session, args)?;
    if let Some(answers) = read_only(&asked).map_err(failure)? {
        print(session, &asked, &answers, None);
        return Ok(());
    }
    let engine = session.engine()?;
    let mut tried = 1;
    loop {
        let request = asked.clone().into();
        match session.execute(&engine, Command::Write { request }) {
            Err(failure) if tried < TRIES_MAX && is_overtaken(&failure) => tried += 1,
            Err(failure) => return Err(failure),
            Ok(Reply::Finished(finished)) => {
                print(session, &asked, &asked.answers.take(), Some(&finished));
                return Ok(());
            }
            Ok(reply) => return session.show(&engine, &reply),
        }
    }
}

fn asked(session: &Session, args: RedisArgs) -> Result<RedisRequest, Failure> {
    let server = Server::parse(&args.url).map_err(failure)?;
    let commands = if args.words.is_empty() {
        let file = args.file.unwrap_or_else(|| PathBuf::from("-"));
        let instead = "give a command, or `--file FILE`";
        let text = read_file_or_stdin(&file, session.bar(), instead)?;
        commands_of(&text).map_err(failure)?
    } else {
        vec![args.words.into_iter().map(OsString::into_vec).collect()]
    };
    RedisRequest::new(server, commands).map_err(failure)
}

/// Shows what the server said, and what became of it.
fn print(
    session: &mut Session,
    asked: &RedisRequest,
    answers: &[Answer],
    finished: Option<&Finished>,
) {
    if session.ui.is_json() {
        session.ui.print_json(&Answered {
            reply: "redis",
            answers: answers.iter().map(Answer::json).collect(),
            write: finished,
        });
        return;
    }
    for answer in answers {
        session.ui.print(&answer.text());
    }
    if let Some(finished) = finished {
        show::write::finished(session, finished, &format!("ran {}", asked.summary()));
    }
}

fn failure(fault: RedisFault) -> Failure {
    EngineError::from(DriverError::from(fault)).into()
}

/// Tells whether nothing happened because somebody wrote a key at the same moment.
fn is_overtaken(failure: &Failure) -> bool {
    let Failure::Engine(EngineError::TakenBack { cause, .. }) = failure else {
        return false;
    };
    let EngineError::Driver(error) = &**cause else {
        return false;
    };
    matches!(error.as_a(), Some(RedisFault::Overtaken))
}
