//! Builtins of the shell. What only changes the shell itself counts as reading: nothing outside of it changes.

use super::{Answer, Call, Next, Rule, only_reads};
use crate::flags::{self, Options};
use crate::influence;
use crate::simple::holds_command;
use crate::verdict::Finding;

/// Builtins that change nothing but the shell, whatever their words.
const SHELL_ONLY: [&str; 27] = [
    ":", "true", "false", "cd", "pushd", "popd", "dirs", "echo", "shift", "return", "exit",
    "break", "continue", "umask", "ulimit", "times", "type", "which", "caller", "help", "logout",
    "suspend", "disown", "bg", "fg", "unalias", "shopt",
];

/// Finds a builtin.
pub(super) fn rule(name: &str) -> Option<Rule> {
    if SHELL_ONLY.contains(&name) {
        return Some(Rule::Ask(shell_only));
    }
    Some(Rule::Ask(match name {
        "export" | "declare" | "typeset" | "local" | "readonly" | "unset" | "read" | "mapfile"
        | "readarray" | "test" | "[" | "let" | "printf" | "wait" | "getopts" => evaluates,
        "set" => set,
        "eval" => eval,
        "trap" => trap,
        "exec" => exec,
        "command" => command,
        "builtin" => builtin,
        "source" | "." => source,
        "alias" => alias,
        "hash" => hash,
        "history" | "fc" | "bind" | "complete" | "compgen" | "compopt" | "enable" => hidden,
        "jobs" => jobs,
        _ => return None,
    }))
}

fn shell_only(call: &Call<'_>) -> Answer {
    let why = match call.name {
        "echo" => "`echo` only prints".to_owned(),
        "which" | "type" | "help" => return only_reads(call).into(),
        name => format!("`{name}` changes nothing but the shell"),
    };
    Finding::reads(why, call.raw).into()
}

/// Judges a builtin that may evaluate its words once more: `test -v 'a[$(rm x)]'` runs the command.
fn evaluates(call: &Call<'_>) -> Answer {
    if let Some(word) = call.words.iter().find(|word| holds_command(word)) {
        let why = format!("`{}` may run a quoted command", call.name);
        return Finding::unknown(why, call.raw).and(&word.raw).into();
    }
    if let Some((word, why)) = call.words.iter().find_map(|word| {
        let name = word.lead.split(['=', '+', '[']).next()?;
        Some((word, influence::of(name)?))
    }) && !matches!(call.name, "test" | "[" | "let")
    {
        return Finding::unknown(format!("`{}` {why}", word.lead), call.raw)
            .and(&word.raw)
            .into();
    }
    let is_declaring = matches!(
        call.name,
        "declare" | "typeset" | "local" | "export" | "readonly"
    );
    let numbers = call.words.iter().find(|word| {
        let letters = word.lead.strip_prefix(['-', '+']).unwrap_or_default();
        letters.contains('i') || letters.contains('n') || letters.contains('f')
    });
    if let Some(flag) = numbers.filter(|_| is_declaring) {
        let why = format!("`{} {}` changes how values are read", call.name, flag.raw);
        return Finding::unknown(why, call.raw).and(&flag.raw).into();
    }
    if matches!(call.name, "mapfile" | "readarray")
        && let Some(flag) = call
            .words
            .iter()
            .find(|word| word.lead.starts_with("-C") || word.may_become_flag().is_some())
    {
        return Finding::unknown(
            format!("`{}` may run a command for each line", call.name),
            call.raw,
        )
        .and(&flag.raw)
        .into();
    }
    match call.name {
        "printf" => Finding::reads("`printf` only prints", call.raw).into(),
        "test" | "[" => Finding::reads(format!("`{}` only compares", call.name), call.raw).into(),
        name => Finding::reads(format!("`{name}` changes nothing but the shell"), call.raw).into(),
    }
}

fn set(call: &Call<'_>) -> Answer {
    // `set -a` exports what follows; `set -k` takes any word for an assignment.
    let odd = call.words.iter().find(|word| {
        word.lead.starts_with('-') && word.lead.contains('k') && !word.lead.starts_with("--")
    });
    match odd {
        Some(word) => Finding::unknown("`set -k` changes how commands are read", call.raw)
            .and(&word.raw)
            .into(),
        None => Finding::reads("`set` changes nothing but the shell", call.raw).into(),
    }
}

fn eval(call: &Call<'_>) -> Answer {
    let texts: Option<Vec<&str>> = call.words.iter().map(|word| word.text()).collect();
    match texts {
        Some(texts) => Answer {
            finding: Finding::reads("`eval` runs the text that follows", call.raw),
            then: vec![Next::Shell(texts.join(" "))],
        },
        None => Finding::unknown("`eval` runs a text that is not known", call.raw).into(),
    }
}

fn trap(call: &Call<'_>) -> Answer {
    let parsed = flags::read(call.words, &Options::default());
    let finding = Finding::reads("`trap` keeps a text to run later", call.raw);
    match parsed.operands.split_first() {
        None | Some((_, [])) => finding.into(),
        Some((text, _)) if text.is("-") => finding.into(),
        Some((text, _)) => match text.text() {
            Some(text) => Answer {
                finding,
                then: vec![Next::Shell(text.to_owned())],
            },
            None => Finding::unknown("`trap` keeps a text that is not known", call.raw)
                .and(&text.raw)
                .into(),
        },
    }
}

fn exec(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "a",
        ends_at_operand: true,
        ..Options::default()
    };
    runs_rest(call, &options)
}

fn command(call: &Call<'_>) -> Answer {
    let options = Options {
        ends_at_operand: true,
        ..Options::default()
    };
    let parsed = flags::read(call.words, &options);
    if parsed
        .flags
        .iter()
        .any(|flag| matches!(flag.short, Some('v' | 'V')))
    {
        return Finding::reads("`command -v` only looks a program up", call.raw).into();
    }
    runs_rest(call, &options)
}

fn builtin(call: &Call<'_>) -> Answer {
    let options = Options {
        ends_at_operand: true,
        ..Options::default()
    };
    runs_rest(call, &options)
}

/// Judges what follows the flags as a command of its own.
fn runs_rest(call: &Call<'_>, options: &Options) -> Answer {
    let parsed = flags::read(call.words, options);
    let finding = Finding::reads(format!("`{}` runs what follows", call.name), call.raw);
    if parsed.rest.is_empty() {
        return finding.into();
    }
    Answer {
        finding,
        then: vec![Next::Argv(parsed.rest.to_vec())],
    }
}

fn source(call: &Call<'_>) -> Answer {
    Finding::unknown(
        format!("`{}` runs a file that is not read", call.name),
        call.raw,
    )
    .into()
}

fn alias(call: &Call<'_>) -> Answer {
    if call.words.iter().all(|word| word.is("-p")) {
        return only_reads(call).into();
    }
    Finding::unknown("`alias` changes what later commands mean", call.raw).into()
}

fn hash(call: &Call<'_>) -> Answer {
    if call.words.is_empty() || call.words.iter().all(|word| word.is("-r") || word.is("-l")) {
        return only_reads(call).into();
    }
    Finding::unknown("`hash` can change what later commands mean", call.raw).into()
}

fn jobs(call: &Call<'_>) -> Answer {
    let runs = call
        .words
        .iter()
        .find(|word| word.lead.starts_with("-x") || word.may_become_flag().is_some());
    match runs {
        Some(word) => Finding::unknown("`jobs -x` runs a command", call.raw)
            .and(&word.raw)
            .into(),
        None => only_reads(call).into(),
    }
}

fn hidden(call: &Call<'_>) -> Answer {
    Finding::unknown(
        format!("`{}` can run or change what is not seen", call.name),
        call.raw,
    )
    .into()
}
