//! `backout act`

use std::ffi::OsString;

use backout_engine::{Command, Finished, Reply, Report};
use backout_model::compensation::text_of;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::paths::absolute;
use crate::programs::Deed;
use crate::session::Session;
use crate::show;

/// Run a program together with the one that takes it back.
///
/// For what lies outside of files, rows and calls: a user account, a DNS record by its own tool, a job in a queue. The programs and what they are told are kept
/// before PROGRAM starts; `backout undo` runs the one that takes it back, in the directory that you are in now. What PROGRAM prints is its answer, and is kept
/// for that: at most 64 KiB. What a program leaves running is ended.
///
/// A program given to `--undo`, `--look` or `--again` is a line for `sh`, or a JSON list of words. It finds the answer in `$BACKOUT_ANSWER`, a name that is the same
/// each time this one effect is meant in `$BACKOUT_KEY`, and both with `--about` as JSON on its standard input. It may run twice, and twice must be as once.
///
/// What the programs write in files is not recorded: that is what `backout run` is for. None of this is a place for secrets: let the programs look them up.
#[derive(Debug, Args)]
pub(crate) struct ActArgs {
    /// What takes it back.
    #[arg(long, value_name = "PROGRAM")]
    undo: String,

    /// What tells whether it is there: it ends with 0 if so and prints the answer, with 1 if not, with anything else if it cannot tell. What is there
    /// already is not made, and what does not print the answer any more was changed by somebody. Without it nobody looks: what is recorded is
    /// believed, and an effect whose end nobody saw is in doubt.
    #[arg(long, value_name = "PROGRAM")]
    look: Option<String>,

    /// What it is called in the log; by default the words of PROGRAM.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,

    /// What the programs are told, as JSON.
    #[arg(long, value_name = "JSON")]
    about: Option<String>,

    /// How many seconds each program may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,

    /// Do it yourself: a line is printed when the way back is kept. Then write `{"answer": ...}` if it is done, or `{"nothing": "why"}` if nothing happened.
    #[arg(long, requires = "name", conflicts_with = "program")]
    ask: bool,

    /// With `--ask`: what a redo runs to do it again.
    #[arg(long, value_name = "PROGRAM", requires = "ask")]
    again: Option<String>,

    /// What does it, and its arguments.
    #[arg(value_name = "PROGRAM", last = true, required_unless_present = "ask")]
    program: Vec<OsString>,
}

/// The reply, for programs.
#[derive(Debug, Serialize)]
struct Acted<'a> {
    reply: &'static str,
    /// Not there if the same call was answered before.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
    operation: &'a Finished,
}

/// Does it.
pub(crate) fn cmd_act(session: &mut Session, args: &ActArgs) -> Result<(), Failure> {
    let act = match &args.again {
        Some(again) => Some(words(again)?),
        None if args.ask => None,
        None => Some(texts(&args.program)?),
    };
    let name = args.name.clone();
    let name = name.unwrap_or_else(|| act.iter().flatten().cloned().collect::<Vec<_>>().join(" "));
    if name.trim().is_empty() {
        return Err(Report::usage("its name is empty")
            .next("give it like `--name 'add ann'`")
            .into());
    }
    let about = args.about.as_deref().map(serde_json::from_str::<Value>);
    let about = about.transpose().map_err(|error| {
        Report::usage(format!(
            "what the programs are to be told is not JSON: {error}"
        ))
        .next("give it like `--about '{\"id\": 7}'`")
    })?;
    let deed = Deed {
        directory: absolute(std::path::Path::new("."))?,
        act,
        undo: words(&args.undo)?,
        look: args.look.as_deref().map(words).transpose()?,
        about: about.unwrap_or_default(),
        time_ms_max: args.timeout * 1000,
    };
    let asked = deed.asked(name.clone());
    let request = asked.map_err(|error| Report::usage(error.to_string()))?;
    if args.ask {
        session.programs.let_the_caller_act();
    }
    let engine = session.engine()?;
    let request = request.into();
    match session.execute(&engine, Command::Write { request })? {
        Reply::Finished(finished) => {
            let answer = session.programs.take_answer();
            if session.ui.is_json() {
                session.ui.print_json(&Acted {
                    reply: "acted",
                    answer,
                    operation: &finished,
                });
            } else {
                if let Some(answer) = answer.filter(|answer| !args.ask && answer != "") {
                    session.ui.print(&format!("{}\n", text_of(&answer)));
                }
                show::write::finished(session, &finished, &format!("did {name}"));
            }
            Ok(())
        }
        reply => session.show(&engine, &reply),
    }
}

/// Reads a program: a JSON list of words, or a line for `sh`.
fn words(text: &str) -> Result<Vec<String>, Report> {
    if text.trim().is_empty() {
        return Err(Report::usage("a program is empty")
            .next("give a line for `sh`, or a JSON list of words"));
    }
    if !text.starts_with('[') {
        return Ok(vec!["sh".to_owned(), "-c".to_owned(), text.to_owned()]);
    }
    match serde_json::from_str::<Vec<String>>(text) {
        Ok(words) if !words.is_empty() => Ok(words),
        Ok(_) | Err(_) => Err(Report::usage(format!("`{text}` is no program"))
            .because("what begins with `[` is a JSON list of words, and this is none")
            .next("give it like `[\"userdel\", \"ann\"]`")),
    }
}

fn texts(words: &[OsString]) -> Result<Vec<String>, Report> {
    let each = words.iter().map(|word| {
        word.to_str().map(str::to_owned).ok_or_else(|| {
            Report::usage(format!("`{}` is not UTF-8", word.to_string_lossy()))
                .because("a program is kept as text, so that it can be run again")
                .next("put it into a script, and give the name of that")
        })
    });
    each.collect()
}
