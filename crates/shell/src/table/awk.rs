//! `awk`: its flags, and its program. A program that neither runs anything nor redirects only reads.
//!
//! The program is not parsed. `>` is a comparison before the first `print` and may be a redirection after it;
//! so is `|`. That is coarse, and errs towards unknown.

use super::{Answer, Bad, Call, by_flags, hides, writes};
use crate::flags::{self, Options};
use crate::verdict::Finding;

const OPTIONS: Options = Options {
    values: "FfvieElm",
    optional: "dDopW",
    long_values: &[
        "field-separator",
        "assign",
        "file",
        "source",
        "include",
        "exec",
        "load",
    ],
    ends_at_operand: true,
};

const BAD: [Bad; 13] = [
    hides('f', "file", "reads its program from a file"),
    hides('E', "exec", "reads its program from a file"),
    hides('e', "source", "takes its program in parts"),
    hides('i', "include", "adds code"),
    hides('l', "load", "adds code"),
    hides('m', "", "is not known"),
    hides('W', "", "is not known"),
    hides('D', "debug", "starts a debugger"),
    writes('d', "dump-variables", "writes a file"),
    writes('o', "pretty-print", "writes a file"),
    writes('p', "profile", "writes a file"),
    hides('Y', "", "is not known"),
    hides('I', "trace", "is not known"),
];

/// What runs or reads something else, wherever it stands.
const FORBIDDEN: [&str; 4] = ["system", "getline", "@", "`"];

/// Judges an `awk`.
pub(super) fn judge(call: &Call<'_>) -> Answer {
    let parsed = flags::read(call.words, &OPTIONS);
    let worst = by_flags(call, &parsed, &BAD);
    let Some(program) = parsed.operands.first() else {
        return worst.into();
    };
    let Some(text) = program.text() else {
        let finding = Finding::unknown("the program of `awk` is not known", call.raw);
        return worst.or_worse(finding.and(&program.raw)).into();
    };
    let found =
        effect(text).map(|why| Finding::unknown(format!("the program of `awk` {why}"), call.raw));
    found
        .into_iter()
        .fold(worst, |worst, found| {
            worst.or_worse(found.and(&program.raw))
        })
        .into()
}

fn effect(program: &str) -> Option<String> {
    if let Some(word) = FORBIDDEN.iter().find(|word| program.contains(**word)) {
        return Some(format!("has `{word}`, with which it can run something"));
    }
    let (_, after_print) = program.split_once("print")?;
    let without_or = after_print.replace("||", "");
    if after_print.contains('>') {
        return Some("may write a file: `>` after `print`".to_owned());
    }
    if without_or.contains('|') {
        return Some("may run something: `|` after `print`".to_owned());
    }
    None
}
