//! The coding agents that people use: their hooks, the seam in their shells, and their settings.
//!
//! - [`hook`] is what `backout hook AGENT` does: an event comes on standard input, and the answer is an exit code and a few words.
//! - [`seam`] runs an agent's shell command under `backout run`.
//! - [`setup`] finds what protects an agent, and whether it does.
//!
//! Both entries are found before the command line is read: what an agent waits for must be quick, and must end in refusal
//! whatever is wrong with how it was called. Design: `docs/design/agents.md`.

pub(crate) mod doctor;
pub(crate) mod hook;
mod owner;
pub(crate) mod seam;
pub(crate) mod setup;
mod shell;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// What an agent asks for.
#[derive(Debug)]
pub(crate) struct Asked {
    what: What,
    state_dir: Option<PathBuf>,
    rest: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Hook,
    Seam,
}

/// Tells whether an agent asks: `[--state-dir DIR] hook AGENT ...` or `[--state-dir DIR] seam AGENT ...`.
pub(crate) fn asked(words: &[OsString]) -> Option<Asked> {
    let (state_dir, rest) = match words {
        [option, directory, rest @ ..] if option == "--state-dir" => {
            (Some(PathBuf::from(directory)), rest)
        }
        rest => (None, rest),
    };
    let (first, rest) = rest.split_first()?;
    let what = match first.to_str()? {
        "hook" => What::Hook,
        "seam" => What::Seam,
        _ => return None,
    };
    // Whoever asks how is answered with the help of all commands.
    let wants_help = rest.iter().any(|word| word == "--help" || word == "-h");
    (what == What::Seam || !wants_help).then(|| Asked {
        what,
        state_dir,
        rest: rest.to_vec(),
    })
}

pub(crate) fn answer(asked: Asked) -> ExitCode {
    match asked.what {
        What::Hook => hook::main(asked.state_dir, &asked.rest),
        What::Seam => seam::main(asked.state_dir, asked.rest),
    }
}
