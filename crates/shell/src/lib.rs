//! Reads a shell command and tells whether it writes: a verdict with its reason.
//!
//! [`classify`] takes a line for a shell, [`classify_words`] words that are run without one. Both are pure: no
//! file is looked at, nothing is run. The verdict is advice that decides whether a capture is worth its cost; it
//! is not what holds. So every doubt ends in [`Class::Unknown`], and unknown is captured like a write.
//!
//! - `guard` stands before the parser: limits, a thread with room, what of its answer is believed.
//! - `scan` reads single words, which the parser leaves as text, and finds the commands inside them.
//! - `walk`, `simple` and `redirect` go through the tree.
//! - `table` knows programs. A new one goes there.
//!
//! What it cannot see is in `docs/design/commands-verdicts.md`.

mod flags;
mod guard;
mod influence;
mod redirect;
mod scan;
mod scan_end;
mod simple;
mod source;
mod table;
mod verdict;
mod walk;
mod word;

use std::ffi::OsStr;

use redirect::Stdin;
use verdict::Finding;
use walk::Walk;
use word::Word;

pub use verdict::{Class, CommandVerdict, Verdict};

/// Judges a command line that a shell would run.
pub fn classify(command: &str) -> Verdict {
    judged(command, |walk| walk.text(command))
}

/// Judges a program with its words, run without a shell: a `*` among them is a `*`.
pub fn classify_words(argv: &[impl AsRef<OsStr>]) -> Verdict {
    let texts: Option<Vec<&str>> = argv.iter().map(|word| word.as_ref().to_str()).collect();
    let Some(texts) = texts else {
        let shown: Vec<_> = argv
            .iter()
            .map(|word| word.as_ref().to_string_lossy())
            .collect();
        return refused(&shown.join(" "), "a word of it is not UTF-8");
    };
    if texts.iter().map(|text| text.len()).sum::<usize>() > guard::COMMAND_BYTES_MAX {
        return refused(&texts.join(" "), "it is too long");
    }
    let words: Vec<Word> = texts.iter().copied().map(Word::fixed).collect();
    judged(&texts.join(" "), move |walk| {
        if !words.is_empty() {
            walk.argv(&words, &Stdin::Inherited);
        }
    })
}

fn judged(command: &str, work: impl FnOnce(&mut Walk) + Send) -> Verdict {
    let found = guard::with_room(move || {
        let mut walk = Walk::default();
        work(&mut walk);
        walk.found
    });
    match found {
        Some(found) => Verdict::of(found),
        None => refused(command, "the parser failed"),
    }
}

fn refused(command: &str, why: &str) -> Verdict {
    let mut walk = Walk::default();
    walk.finds(command, Finding::unknown(why, &walk::beginning(command)));
    Verdict::of(walk.found)
}
