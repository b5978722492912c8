//! Effects that Backout cannot see, made and answered by programs of the user's own: the handler `program`.
//!
//! - The recipe holds the programs, the directory they run in, and what they are told; the answer of the first is kept with it. Nothing
//!   of it is a secret's place: programs look secrets up by themselves.
//! - Each program is told the same, as JSON on its standard input: `key`, `about`, `answer`. The key and the answer are variables too.
//! - Whoever asks can make the effect by himself the first time: he is told when the way back is kept, and says what came of it.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use backout_drivers::handler::{CompensationHandler, Found, Handled, HandlerError};
use backout_gates::{Asked, Limits, ask_program};
use backout_model::any_path;
use backout_model::compensation::text_of;
use backout_model::ports::Progress;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::env_vars;

/// The handler's name. Recipes bear it.
pub(crate) const NAME: &str = "program";

/// How often somebody who waits for the caller looks whether he is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Why nobody redoes what a caller did by himself.
const ONCE: &str = "only the program that did it can do it again";

/// How long an answer may be, as text: the system limits variables, and what takes the effect back must get all of it.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// What a recipe says of an effect.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Deed {
    /// Where its programs run.
    #[serde(with = "any_path")]
    pub(crate) directory: PathBuf,
    /// What makes it; none if only whoever asked can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) act: Option<Vec<String>>,
    /// What takes it back.
    pub(crate) undo: Vec<String>,
    /// What tells whether it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) look: Option<Vec<String>>,
    /// What all of them are told.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) about: Value,
    /// How long each may take, in milliseconds.
    pub(crate) time_ms_max: u64,
}

impl Deed {
    /// Makes a request of it.
    pub(crate) fn asked(&self, name: String) -> Result<Handled, serde_json::Error> {
        Ok(Handled::new(NAME, serde_json::to_value(self)?).named(name))
    }

    /// Says that its directory is gone.
    fn hindrance(&self) -> Option<String> {
        let is_gone = !self.directory.is_dir();
        is_gone.then(|| {
            let directory = self.directory.display();
            format!("its programs run in `{directory}`, and that is no directory now")
        })
    }

    /// Runs one of its programs.
    fn run(
        &self,
        words: &[String],
        (key, answer): (&str, Option<&Value>),
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Asked, String> {
        if let Some(why) = self.hindrance() {
            return Err(why);
        }
        let told = json!({ "key": key, "about": self.about, "answer": answer });
        let answer = answer.map(text_of).unwrap_or_default();
        let variables = [
            (env_vars::KEY, OsStr::new(key)),
            (env_vars::ANSWER, OsStr::new(&answer)),
        ];
        let words = words.iter().map(OsString::from).collect();
        let time_max = Duration::from_millis(self.time_ms_max);
        ask_program(
            words,
            &self.directory,
            &variables,
            &told.to_string(),
            &Limits {
                time_max,
                is_stopped,
            },
        )
    }

    /// Asks whether the effect is there.
    fn find(&self, key: &str) -> Found {
        let Some(look) = &self.look else {
            return Found::Unknown;
        };
        if let Some(process) = at_work(key) {
            return Found::Failed(format!(
                "process {process}, a program of it, is still at work: wait until it has ended, or end it"
            ));
        }
        match self.run(look, (key, None), &|| false) {
            Ok(Asked {
                code: Some(0),
                printed,
                ..
            }) => answer_of(printed).map_or_else(Found::Failed, Found::There),
            Ok(Asked { code: Some(1), .. }) => Found::NotThere,
            Ok(Asked { said, .. }) => Found::Failed(format!("its look cannot tell: {said}")),
            Err(why) => Found::Failed(why),
        }
    }
}

/// Carries deeds out.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    /// Whether the next effect is made by whoever asks.
    is_callers: AtomicBool,
    /// What the last effect that was made here gave.
    answer: Mutex<Option<Value>>,
    /// Who hears that somebody wants to stop.
    heard: Option<Arc<dyn Progress>>,
}

impl Programs {
    /// Stops its programs when somebody wants to stop.
    pub(crate) fn heeding(heard: Arc<dyn Progress>) -> Self {
        Self {
            heard: Some(heard),
            ..Self::default()
        }
    }

    fn is_stopped(&self) -> bool {
        self.heard.as_ref().is_some_and(|heard| heard.is_stopped())
    }

    /// Lets whoever asks make the next effect.
    pub(crate) fn let_the_caller_act(&self) {
        self.is_callers.store(true, Ordering::Relaxed);
    }

    /// Gives what the last effect gave.
    pub(crate) fn take_answer(&self) -> Option<Value> {
        let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.take()
    }

    fn made(&self, deed: &Deed, key: &str) -> Result<Value, HandlerError> {
        if self.is_callers.swap(false, Ordering::Relaxed) {
            return self.by_the_caller(key);
        }
        let Some(act) = &deed.act else {
            return Err(HandlerError::Nothing(ONCE.to_owned()));
        };
        let asked = deed.run(act, (key, None), &|| self.is_stopped());
        let asked = asked.map_err(HandlerError::Nothing)?;
        if asked.code == Some(0) {
            return answer_of(asked.printed).map_err(HandlerError::Unknown);
        }
        Err(failed(asked))
    }
}

fn failed(asked: Asked) -> HandlerError {
    if asked.is_stopped {
        HandlerError::Stopped(asked.said)
    } else {
        HandlerError::Unknown(asked.said)
    }
}

impl CompensationHandler for Programs {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn act(&self, arguments: &Value, key: &str) -> Result<Value, HandlerError> {
        let answer = self.made(&read(arguments)?, key)?;
        if text_of(&answer).len() > ANSWER_BYTES_MAX {
            let why =
                "its answer is longer than 64 KiB, and could not be given to what takes it back";
            return Err(HandlerError::Unknown(why.to_owned()));
        }
        let mut heard = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        *heard = Some(answer.clone());
        Ok(answer)
    }

    fn compensate(&self, arguments: &Value, answer: &Value, key: &str) -> Result<(), HandlerError> {
        let deed = read(arguments)?;
        // Who stopped the effect wants it back.
        let is_stop_known = self.is_stopped();
        let is_stopped = || !is_stop_known && self.is_stopped();
        let asked = deed.run(&deed.undo, (key, Some(answer)), &is_stopped);
        let asked = asked.map_err(HandlerError::Nothing)?;
        if asked.code == Some(0) || deed.find(key) == Found::NotThere {
            return Ok(());
        }
        Err(failed(asked))
    }

    fn hindrance(&self, arguments: &Value, again: bool) -> Option<String> {
        let deed = read(arguments).ok()?;
        let is_once = again && deed.act.is_none();
        let once = || is_once.then(|| ONCE.to_owned());
        deed.hindrance().or_else(once)
    }

    fn find(&self, arguments: &Value, key: &str) -> Found {
        read(arguments).map_or_else(
            |error| Found::Failed(error.to_string()),
            |deed| deed.find(key),
        )
    }
}

/// Finds a program of an effect that nobody waits for any more: who started it was killed.
fn at_work(key: &str) -> Option<u32> {
    let wanted = format!("{}={key}", env_vars::KEY);
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.find(|number: &u32| {
        let environment = std::fs::read(format!("/proc/{number}/environ"));
        let environment = environment.unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|it| it == wanted.as_bytes())
    })
}

fn read(arguments: &Value) -> Result<Deed, HandlerError> {
    Deed::deserialize(arguments)
        .map_err(|error| HandlerError::Nothing(format!("the recipe cannot be read: {error}")))
}

/// Takes what was printed as a text, without the ends of its last lines. The error says why it is no answer.
fn answer_of(printed: Vec<u8>) -> Result<Value, String> {
    if printed.len() > ANSWER_BYTES_MAX {
        let why = "its answer is longer than 64 KiB, and could not be given to what takes it back";
        return Err(why.to_owned());
    }
    match String::from_utf8(printed) {
        Ok(text) if !text.contains('\0') => Ok(Value::from(text.trim_end_matches('\n'))),
        Ok(_) | Err(_) => {
            Err("its answer is no text, and could not be given to what takes it back".to_owned())
        }
    }
}

/// What whoever asks says of the effect.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Said {
    /// It is made, and this is kept for the way back: a text as it is, all else as it was written.
    Answer(Box<RawValue>),
    /// Nothing happened, and why.
    Nothing(String),
}

impl Programs {
    /// Tells the caller that the way back is kept, and hears what came of the effect.
    fn by_the_caller(&self, key: &str) -> Result<Value, HandlerError> {
        let unknown = |why: &str| HandlerError::Unknown(why.to_owned());
        let mut out = std::io::stdout().lock();
        let told = writeln!(out, "{}", json!({ "armed": key })).and_then(|()| out.flush());
        if told.is_err() {
            let why = "whoever asked does not listen any more".to_owned();
            return Err(HandlerError::Nothing(why));
        }
        let (line, heard) = channel();
        // Who waits for a line hears nothing else.
        thread::spawn(move || {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_line(&mut text);
            line.send(read.map(|_| text).unwrap_or_default())
        });
        let line = loop {
            match heard.recv_timeout(LOOK) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) if !self.is_stopped() => {}
                Err(RecvTimeoutError::Timeout) => {
                    return Err(HandlerError::Stopped("stopped".to_owned()));
                }
                Err(RecvTimeoutError::Disconnected) => break String::new(),
            }
        };
        match serde_json::from_str(&line) {
            Ok(Said::Answer(answer)) => {
                let text = serde_json::from_str::<String>(answer.get());
                let text = text.unwrap_or_else(|_| answer.get().to_owned());
                answer_of(text.into_bytes()).map_err(HandlerError::Unknown)
            }
            Ok(Said::Nothing(why)) => Err(HandlerError::Nothing(why)),
            Err(_) if line.is_empty() => Err(unknown("whoever asked ended without a word")),
            Err(_) => Err(unknown("what whoever asked said of it is no answer")),
        }
    }
}
