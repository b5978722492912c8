//! Programs that run another one: what they run is judged as a command of its own.

use super::find::filled_in;
use super::{Answer, Call, Next, Rule, no_hidden_flags, only_reads};
use crate::flags::{self, Options};
use crate::influence;
use crate::verdict::Finding;
use crate::word::Word;

/// Finds a wrapper.
pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(Rule::Ask(match name {
        "env" => env,
        "sudo" | "doas" => sudo,
        "xargs" => xargs,
        "time" => time,
        "watch" => watch,
        "flock" => flock,
        "nohup" => nohup,
        "timeout" | "nice" | "ionice" | "chrt" | "taskset" | "stdbuf" | "setsid" | "unbuffer"
        | "catchsegv" | "busybox" | "toybox" | "caffeinate" | "prlimit" | "setarch" | "linux32"
        | "linux64" => plain,
        _ => return None,
    }))
}

const PLAIN: Options = Options {
    values: "",
    optional: "",
    long_values: &[],
    ends_at_operand: true,
};

/// Says that a program runs what follows.
fn follows(call: &Call<'_>, words: &[Word]) -> Answer {
    let finding = Finding::reads(format!("`{}` runs what follows", call.name), call.raw);
    if words.is_empty() {
        return finding.into();
    }
    Answer {
        finding,
        then: vec![Next::Argv(words.to_vec())],
    }
}

/// Judges a wrapper with simple flags, and perhaps one operand of its own before the command.
fn plain(call: &Call<'_>) -> Answer {
    let (options, own) = match call.name {
        "timeout" => (
            Options {
                values: "ks",
                long_values: &["kill-after", "signal"],
                ..PLAIN
            },
            1,
        ),
        "nice" => (
            Options {
                values: "n",
                long_values: &["adjustment"],
                ..PLAIN
            },
            0,
        ),
        "ionice" => (
            Options {
                values: "cn",
                long_values: &["class", "classdata"],
                ..PLAIN
            },
            0,
        ),
        "stdbuf" => (
            Options {
                values: "ioe",
                long_values: &["input", "output", "error"],
                ..PLAIN
            },
            0,
        ),
        "chrt" | "taskset" => (PLAIN, 1),
        _ => (PLAIN, 0),
    };
    let parsed = flags::read(call.words, &options);
    // These act on a process that already runs.
    let acts = matches!(call.name, "ionice" | "chrt" | "taskset" | "prlimit")
        && parsed
            .flags
            .iter()
            .any(|flag| matches!(flag.short, Some('p' | 'P' | 'u')) || flag.long.is_some());
    if let Some(flag) = parsed.flags.first().filter(|_| acts) {
        let why = format!(
            "`{} {}` may act on another process",
            call.name, flag.word.raw
        );
        return Finding::unknown(why, call.raw).and(&flag.word.raw).into();
    }
    if let Some(word) = parsed.rest.iter().take(own).find(|word| word.splits) {
        let why = format!("`{}` may become several words", word.raw);
        return Finding::unknown(why, call.raw).and(&word.raw).into();
    }
    follows(call, parsed.rest.get(own..).unwrap_or_default())
}

fn env(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "uCSP",
        long_values: &["unset", "chdir", "split-string"],
        ..PLAIN
    };
    let parsed = flags::read(call.words, &options);
    let mut finding = Finding::reads("`env` runs what follows, or prints", call.raw);
    for flag in &parsed.flags {
        if flag.is('S', "split-string") || flag.short == Some('P') {
            let why = format!("`env {}` is not read", flag.word.raw);
            finding = finding.or_worse(Finding::unknown(why, call.raw).and(&flag.word.raw));
        }
    }
    let mut rest = parsed.rest;
    while let Some((word, after)) = rest.split_first() {
        let Some((name, _)) = word.lead.split_once('=') else {
            break;
        };
        if let Some(why) = influence::of(name) {
            finding = finding
                .or_worse(Finding::unknown(format!("`{name}` {why}"), call.raw).and(&word.raw));
        }
        if word.splits {
            let why = format!("`{}` may become several words", word.raw);
            finding = finding.or_worse(Finding::unknown(why, call.raw).and(&word.raw));
        }
        rest = after;
    }
    Answer {
        finding,
        ..follows(call, rest)
    }
}

fn sudo(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "ugpCDhRrtTUac",
        long_values: &[
            "user",
            "group",
            "prompt",
            "close-from",
            "chdir",
            "host",
            "chroot",
            "role",
            "type",
            "command-timeout",
            "other-user",
        ],
        ..PLAIN
    };
    let parsed = flags::read(call.words, &options);
    let flag = |short: char, long: &str| parsed.find(short, long).map(|flag| flag.word.raw.clone());
    if let Some(word) = flag('e', "edit") {
        return Finding::writes(format!("`{} {word}` edits files", call.name), call.raw)
            .and(&word)
            .into();
    }
    if let Some(word) = flag('R', "chroot") {
        return Finding::unknown("other programs are run than those that are known", call.raw)
            .and(&word)
            .into();
    }
    if let Some(word) = flag('K', "remove-timestamp").or_else(|| flag('k', "reset-timestamp"))
        && parsed.rest.is_empty()
    {
        return Finding::writes(
            format!("`{} {word}` forgets a password", call.name),
            call.raw,
        )
        .and(&word)
        .into();
    }
    if let Some(finding) = no_hidden_flags(call, &parsed) {
        return finding.into();
    }
    let is_shell = flag('s', "shell").or_else(|| flag('i', "login"));
    let mut rest = parsed.rest;
    let mut finding = Finding::reads(
        format!("`{}` runs what follows as another user", call.name),
        call.raw,
    );
    while let Some((word, after)) = rest.split_first() {
        let Some((name, _)) = word.lead.split_once('=') else {
            break;
        };
        if let Some(why) = influence::of(name) {
            finding = finding
                .or_worse(Finding::unknown(format!("`{name}` {why}"), call.raw).and(&word.raw));
        }
        rest = after;
    }
    if let Some(word) = is_shell {
        let why = format!("`{} {word}` runs a shell", call.name);
        finding = finding.or_worse(Finding::unknown(why, call.raw).and(&word));
    }
    Answer {
        finding,
        ..follows(call, rest)
    }
}

fn xargs(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "aIdEnPsLJR",
        optional: "eil",
        long_values: &[
            "arg-file",
            "delimiter",
            "max-args",
            "max-procs",
            "max-chars",
            "process-slot-var",
        ],
        ..PLAIN
    };
    let parsed = flags::read(call.words, &options);
    if let Some(finding) = no_hidden_flags(call, &parsed) {
        return finding.into();
    }
    if parsed.rest.is_empty() {
        return Finding::reads("`xargs` prints what it reads", call.raw).into();
    }
    let pattern = parsed
        .flags
        .iter()
        .find(|flag| flag.is('I', "replace") || flag.short == Some('i') || flag.short == Some('J'));
    let mut words: Vec<Word> = match pattern {
        Some(flag) => {
            let text = flag
                .value
                .as_ref()
                .map_or("{}", |value| value.lead.as_str());
            parsed
                .rest
                .iter()
                .map(|word| replaced(word, text))
                .collect()
        }
        None => parsed.rest.to_vec(),
    };
    if pattern.is_none() {
        words.push(Word::input());
    }
    follows(call, &words)
}

/// A word in which `xargs` puts what it reads.
fn replaced(word: &Word, pattern: &str) -> Word {
    match word.lead.split_once(pattern) {
        Some((before, _)) if !pattern.is_empty() => Word {
            lead: before.to_owned(),
            open: Some(crate::word::Open::Input),
            ..word.clone()
        },
        _ => filled_in(word),
    }
}

fn time(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "fo",
        long_values: &["format", "output"],
        ..PLAIN
    };
    let parsed = flags::read(call.words, &options);
    if let Some(flag) = parsed.find('o', "output") {
        return Finding::writes("`time` writes its output to a file", call.raw)
            .and(&flag.word.raw)
            .into();
    }
    follows(call, parsed.rest)
}

fn watch(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "nq",
        optional: "d",
        long_values: &["interval", "equexit", "shotsdir"],
        ..PLAIN
    };
    let parsed = flags::read(call.words, &options);
    let texts: Option<Vec<&str>> = parsed.rest.iter().map(|word| word.text()).collect();
    let finding = Finding::reads("`watch` runs what follows again and again", call.raw);
    match texts {
        _ if parsed.has('x', "exec") => Answer {
            finding,
            ..follows(call, parsed.rest)
        },
        Some(texts) => Answer {
            finding,
            then: vec![Next::Shell(texts.join(" "))],
        },
        None => Finding::unknown("`watch` runs a text that is not known", call.raw).into(),
    }
}

fn flock(call: &Call<'_>) -> Answer {
    Finding::writes("`flock` makes its lock file", call.raw).into()
}

fn nohup(call: &Call<'_>) -> Answer {
    if call.words.is_empty() {
        return only_reads(call).into();
    }
    Answer {
        finding: Finding::unknown("`nohup` may write `nohup.out`", call.raw),
        ..follows(call, call.words)
    }
}
