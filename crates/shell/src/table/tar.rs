//! `tar`: only `t` reads, and even then some flags run programs.

use super::text::only_version;
use super::{Answer, Call, no_hidden_flags};
use crate::flags::{self, Flag, Options, Parsed};
use crate::verdict::Finding;

const OPTIONS: Options = Options {
    values: "fCTXbgHIKLNVF",
    optional: "",
    long_values: &["file", "directory", "files-from", "exclude-from", "exclude"],
    ends_at_operand: false,
};

/// Modes that write, as letters and as words.
const WRITES: [char; 5] = ['c', 'x', 'r', 'u', 'A'];
const WRITES_LONG: [&str; 8] = [
    "create",
    "extract",
    "get",
    "append",
    "update",
    "catenate",
    "concatenate",
    "delete",
];

/// Flags that run a program or write a file in any mode.
const RUNS: [char; 3] = ['I', 'F', 'g'];
const RUNS_LONG: [&str; 9] = [
    "use-compress-program",
    "checkpoint-action",
    "to-command",
    "info-script",
    "new-volume-script",
    "rsh-command",
    "rmt-command",
    "index-file",
    "listed-incremental",
];

/// Judges a `tar`.
pub(super) fn judge(call: &Call<'_>) -> Answer {
    if let Some(finding) = only_version(call) {
        return finding.into();
    }
    let parsed = flags::read(call.words, &OPTIONS);
    let cluster = first_cluster(call);
    if let Some(word) = given(&parsed, cluster, &WRITES, &WRITES_LONG) {
        return Finding::writes("`tar` writes files", call.raw)
            .and(word)
            .into();
    }
    if let Some(word) = given(&parsed, cluster, &RUNS, &RUNS_LONG) {
        let why = format!("`tar {word}` runs a program or writes a file");
        return Finding::unknown(why, call.raw).and(word).into();
    }
    if let Some(finding) = no_hidden_flags(call, &parsed) {
        return finding.into();
    }
    match given(&parsed, cluster, &['t'], &["list"]) {
        Some(word) => Finding::reads("`tar` only lists", call.raw)
            .and(word)
            .into(),
        None => Finding::unknown("`tar` has no mode that is known", call.raw).into(),
    }
}

/// The first word may be a cluster of flags without a dash.
fn first_cluster<'a>(call: &Call<'a>) -> &'a str {
    let text = call.words.first().and_then(|word| word.text());
    text.filter(|text| !text.starts_with('-'))
        .unwrap_or_default()
}

/// Finds the word in which one of these is given.
fn given<'a>(
    parsed: &'a Parsed<'a>,
    cluster: &'a str,
    short: &[char],
    long: &[&str],
) -> Option<&'a str> {
    if cluster.contains(short) {
        return Some(cluster);
    }
    let is_one = |flag: &&Flag<'_>| {
        flag.short.is_some_and(|letter| short.contains(&letter))
            || flag.long.is_some_and(|given| {
                // `--list` is also how `--listed-incremental` begins.
                long.iter()
                    .any(|name| name.starts_with(given) && (given != "list" || *name == given))
            })
    };
    parsed
        .flags
        .iter()
        .find(is_one)
        .map(|flag| flag.word.raw.as_str())
}
