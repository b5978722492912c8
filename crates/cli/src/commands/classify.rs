//! `backout classify`

use std::ffi::OsString;

use backout_shell::{Verdict, classify, classify_words};
use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::session::Session;
use crate::show;

/// Tell whether a command writes, from its words alone.
///
/// One word is read as a line for a shell: `backout classify 'ls | tee x'`. Several words are read as a program with its
/// arguments, as they would be run without a shell: a `*` among them is a `*`. Nothing is run and no file is looked at.
///
/// The answer is read-only, writes or unknown. What is unknown is treated like a write.
#[derive(Debug, Args)]
pub(crate) struct ClassifyArgs {
    /// Read several words as a line for a shell too, with blanks between them.
    #[arg(long)]
    shell: bool,

    /// The command.
    #[arg(value_name = "WORD", required = true, trailing_var_arg = true)]
    words: Vec<OsString>,
}

/// The reply for programs.
#[derive(Debug, Serialize)]
struct Classified<'a> {
    reply: &'static str,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// Judges a command.
#[expect(clippy::unnecessary_wraps, reason = "every command has this shape")]
pub(crate) fn cmd_classify(session: &mut Session, args: &ClassifyArgs) -> Result<(), Failure> {
    let is_line = args.shell || args.words.len() == 1;
    let line = args.words.join(" ".as_ref());
    let verdict = match line.to_str() {
        Some(line) if is_line => classify(line),
        _ => classify_words(&args.words),
    };
    if session.ui.is_json() {
        let reply = "classified";
        session.ui.print_json(&Classified {
            reply,
            verdict: &verdict,
        });
    } else {
        show::classify::verdict(session, &verdict);
    }
    Ok(())
}
