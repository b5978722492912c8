//! The programs that are known, and the rule for each.
//!
//! A program that is not here is unknown. To add one: find the file of its kind, add its name to a list there
//! or write a rule, and add rows to `tests/table.rs`. A program belongs to the readers only if none of its
//! flags writes a file, runs a command or changes the system.

mod awk;
mod build;
mod builtins;
mod files;
mod find;
mod git;
mod lists;
mod sed;
mod shells;
mod specs;
mod tar;
mod text;
mod wrappers;

use crate::flags::{self, Options, Parsed};
use crate::redirect::Stdin;
use crate::verdict::{Class, Finding};
use crate::word::Word;

/// A program with its words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// Its name, without a directory.
    pub(crate) name: &'a str,
    /// Its name as it was written.
    pub(crate) raw: &'a str,
    /// Its arguments.
    pub(crate) words: &'a [Word],
    /// What it finds on its standard input.
    pub(crate) stdin: &'a Stdin,
}

/// What a rule says: about the program itself, and what else is to be judged.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) finding: Finding,
    pub(crate) then: Vec<Next>,
}

/// What a program runs.
#[derive(Debug)]
pub(crate) enum Next {
    /// A program with its words.
    Argv(Vec<Word>),
    /// A text for bash.
    Shell(String),
    /// A text for a shell to which `((a > b))` are two subshells and a redirection.
    PlainShell(String),
}

impl From<Finding> for Answer {
    fn from(finding: Finding) -> Self {
        Self {
            finding,
            then: Vec::new(),
        }
    }
}

/// How a program is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// None of its flags writes.
    Reads,
    /// It writes, and this is what.
    Writes(&'static str),
    /// Nobody can tell, and this is why.
    Unknown(&'static str),
    /// It reads, but for some of its flags.
    Flags(&'static Spec),
    /// It is asked.
    Ask(fn(&Call<'_>) -> Answer),
}

/// The flags of a program that reads without them.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) options: Options,
    pub(crate) bad: &'static [Bad],
}

/// A flag with which a program no longer only reads.
#[derive(Debug)]
pub(crate) struct Bad {
    pub(crate) short: char,
    pub(crate) long: &'static str,
    pub(crate) class: Class,
    pub(crate) why: &'static str,
}

/// A flag that writes. A blank and an empty name mean that there is no such form.
pub(crate) const fn writes(short: char, long: &'static str, why: &'static str) -> Bad {
    Bad {
        short,
        long,
        class: Class::Writes,
        why,
    }
}

/// A flag after which nobody can tell.
pub(crate) const fn hides(short: char, long: &'static str, why: &'static str) -> Bad {
    Bad {
        short,
        long,
        class: Class::Unknown,
        why,
    }
}

/// Judges a program with its words.
pub(crate) fn judge(call: &Call<'_>) -> Answer {
    let Some(rule) = rule(call.name) else {
        let why = format!("`{}` is a program that is not known", call.name);
        return Finding::unknown(why, call.raw).into();
    };
    if let [only] = call.words
        && (only.is("--help") || only.is("--version"))
        && !matches!(rule, Rule::Ask(_))
    {
        let why = format!("`{} {}` only tells about itself", call.name, only.lead);
        return Finding::reads(why, call.raw).and(&only.raw).into();
    }
    match rule {
        Rule::Reads => only_reads(call).into(),
        Rule::Writes(what) => Finding::writes(format!("`{}` {what}", call.name), call.raw).into(),
        Rule::Unknown(why) => Finding::unknown(format!("`{}` {why}", call.name), call.raw).into(),
        Rule::Flags(spec) => {
            let parsed = flags::read(call.words, &spec.options);
            by_flags(call, &parsed, spec.bad).into()
        }
        Rule::Ask(ask) => ask(call),
    }
}

fn rule(name: &str) -> Option<Rule> {
    lists::rule(name)
        .or_else(|| specs::rule(name))
        .or_else(|| files::rule(name))
        .or_else(|| text::rule(name))
        .or_else(|| build::rule(name))
        .or_else(|| builtins::rule(name))
        .or_else(|| shells::rule(name))
        .or_else(|| wrappers::rule(name))
        .or(match name {
            "find" => Some(Rule::Ask(find::judge)),
            "git" => Some(Rule::Ask(git::judge)),
            "sed" | "gsed" => Some(Rule::Ask(sed::judge)),
            "awk" | "gawk" | "mawk" | "nawk" => Some(Rule::Ask(awk::judge)),
            _ => None,
        })
}

/// Says that a program only reads.
pub(crate) fn only_reads(call: &Call<'_>) -> Finding {
    Finding::reads(format!("`{}` only reads", call.name), call.raw)
}

/// Judges by the flags that were given; a word that could become one of the bad ones hides it.
pub(crate) fn by_flags(call: &Call<'_>, parsed: &Parsed<'_>, bad: &[Bad]) -> Finding {
    let mut worst = only_reads(call);
    for flag in &parsed.flags {
        for bad in bad.iter().filter(|bad| flag.is(bad.short, bad.long)) {
            let why = format!("`{} {}` {}", call.name, flag.word.raw, bad.why);
            let mut finding = Finding::unknown(why, call.raw).and(&flag.word.raw);
            finding.class = bad.class;
            worst = worst.or_worse(finding);
        }
    }
    if bad.is_empty() {
        worst
    } else {
        worst.or_worse(no_hidden_flags(call, parsed).unwrap_or_else(|| only_reads(call)))
    }
}

/// Finds a word that could become a flag.
pub(crate) fn no_hidden_flags(call: &Call<'_>, parsed: &Parsed<'_>) -> Option<Finding> {
    let (word, open) = parsed.opens.first()?;
    Some(hidden(call, word, *open))
}

/// Says that a word could become a flag.
pub(crate) fn hidden(call: &Call<'_>, word: &Word, open: crate::word::Open) -> Finding {
    let why = format!(
        "{} could become a flag of `{}`: `{}`",
        open.name(),
        call.name,
        word.raw
    );
    Finding::unknown(why, call.raw).and(&word.raw)
}
