//! `find`: an expression of words, some of which write and some of which run a command.

use super::{Answer, Call, Next, hidden, only_reads};
use crate::verdict::Finding;
use crate::word::{Open, Word};

/// Words that take one argument, which is therefore no word of the expression.
const TAKES_ONE: [&str; 36] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-lname",
    "-ilname",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-atime",
    "-ctime",
    "-mmin",
    "-amin",
    "-cmin",
    "-anewer",
    "-cnewer",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-perm",
    "-maxdepth",
    "-mindepth",
    "-links",
    "-inum",
    "-samefile",
    "-fstype",
    "-printf",
    "-regextype",
    "-used",
    "-context",
];

/// Judges a `find`.
pub(super) fn judge(call: &Call<'_>) -> Answer {
    let mut answer = Answer::from(only_reads(call));
    let mut rest = call.words;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if let Some(open) = word.may_become_flag() {
            answer.finding = answer.finding.or_worse(hidden(call, word, open));
            continue;
        }
        let text = word.lead.as_str();
        if TAKES_ONE.contains(&text) || text.starts_with("-newer") {
            let Some((value, after)) = rest.split_first() else {
                continue;
            };
            if !becomes_several(value) {
                rest = after;
            }
        } else if matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
            let length = command_length(rest);
            let (command, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            answer
                .then
                .push(Next::Argv(command.iter().map(filled_in).collect()));
            answer.finding.words.push(word.raw.clone());
            rest = after.split_first().map_or(&[], |(_, after)| after);
        } else if text == "-delete" {
            let finding = Finding::writes("`find -delete` removes files", call.raw).and(text);
            answer.finding = answer.finding.or_worse(finding);
        } else if text.starts_with("-fprint") || text == "-fls" {
            let finding =
                Finding::writes(format!("`find {text}` writes a file"), call.raw).and(text);
            answer.finding = answer.finding.or_worse(finding);
        } else if text == "-files0-from" {
            let finding = Finding::unknown("`find` reads where to look", call.raw).and(text);
            answer.finding = answer.finding.or_worse(finding);
        }
    }
    answer
}

/// Counts the words of a command that is run: it ends at `;`, or at a `+` behind `{}`.
fn command_length(words: &[Word]) -> usize {
    let mut is_behind_braces = false;
    for (place, word) in words.iter().enumerate() {
        if word.is(";") || (word.is("+") && is_behind_braces) {
            return place;
        }
        is_behind_braces = word.is("{}");
    }
    words.len()
}

fn becomes_several(value: &Word) -> bool {
    value.splits || matches!(value.open, Some(Open::Glob | Open::Brace))
}

/// A word of the command that is run: `{}` stands for a name, which `find` begins with where it looked. Inside
/// of a longer word it may be anything.
pub(super) fn filled_in(word: &Word) -> Word {
    match word.lead.split_once("{}") {
        Some(("", "")) => Word {
            lead: "./".to_owned(),
            open: Some(Open::Input),
            ..word.clone()
        },
        Some((before, _)) => Word {
            lead: before.to_owned(),
            open: Some(Open::Input),
            ..word.clone()
        },
        None => word.clone(),
    }
}
