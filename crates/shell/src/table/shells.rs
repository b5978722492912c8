//! Shells: a text after `-c` is read like the line itself; a script or what comes through a pipe is not known.

use super::{Answer, Call, Next, Rule};
use crate::redirect::Stdin;
use crate::verdict::Finding;
use crate::word::Word;

/// Finds a shell.
pub(super) fn rule(name: &str) -> Option<Rule> {
    match name {
        "bash" | "sh" | "dash" | "ash" | "rbash" => Some(Rule::Ask(judge)),
        "zsh" | "ksh" | "mksh" | "fish" | "csh" | "tcsh" | "nu" | "elvish" | "xonsh" => {
            Some(Rule::Unknown("is a shell that is not read"))
        }
        _ => None,
    }
}

fn judge(call: &Call<'_>) -> Answer {
    let mut words = call.words;
    let mut runs_text = false;
    let mut finding = Finding::reads(format!("`{}` runs a text", call.name), call.raw);
    while let Some((word, after)) = words.split_first() {
        let text = word.lead.as_str();
        if word.open.is_some() || !(text.starts_with('-') || text.starts_with('+')) || text == "-" {
            break;
        }
        words = after;
        match text {
            "--" => break,
            "--version" | "--help" => {
                let why = format!("`{} {text}` only tells about itself", call.name);
                return Finding::reads(why, call.raw).and(text).into();
            }
            "--norc" | "--noprofile" | "--posix" | "--verbose" => {}
            _ if text.starts_with("--") => {
                return unknown(call, "has a flag that is not known", word);
            }
            _ => {
                let letters = text.get(1..).unwrap_or_default();
                if letters.contains(['i', 'l', 'r', 'D', 'O']) && !letters.contains('o') {
                    finding = finding
                        .or_worse(unknown(call, "runs files of its own first", word).finding);
                }
                if letters.contains('o') {
                    // `-o pipefail`: the name of an option follows.
                    words = words.split_first().map_or(&[], |(_, after)| after);
                }
                runs_text |= text.starts_with('-') && letters.contains('c');
            }
        }
    }
    match (runs_text, words.first()) {
        (true, Some(text)) => match text.text() {
            Some(script) => Answer {
                finding,
                then: vec![then(call, script)],
            },
            None => unknown(call, "runs a text that is not known", text),
        },
        (true, None) => {
            Finding::reads(format!("`{}` has nothing to run", call.name), call.raw).into()
        }
        (false, Some(script)) => unknown(call, "runs a file that is not read", script),
        (false, None) => match call.stdin {
            Stdin::Text(text) => Answer {
                finding,
                then: vec![then(call, text)],
            },
            Stdin::Piped | Stdin::Inherited => {
                let why = format!("`{}` runs what it reads", call.name);
                Finding::unknown(why, call.raw).into()
            }
        },
    }
}

/// The text is for bash, or for a shell that has no arithmetic commands.
fn then(call: &Call<'_>, text: &str) -> Next {
    if matches!(call.name, "bash" | "rbash") {
        Next::Shell(text.to_owned())
    } else {
        Next::PlainShell(text.to_owned())
    }
}

fn unknown(call: &Call<'_>, why: &str, word: &Word) -> Answer {
    Finding::unknown(format!("`{}` {why}", call.name), call.raw)
        .and(&word.raw)
        .into()
}
