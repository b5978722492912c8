//! Programs whose mode decides: compressors, services, packages.

use super::tar;
use super::text::only_version;
use super::{Answer, Call, Rule, no_hidden_flags, only_reads};
use crate::flags::{self, Options};
use crate::redirect::is_sink;
use crate::verdict::Finding;

/// Finds a program.
pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(Rule::Ask(match name {
        "tar" | "gtar" | "bsdtar" => tar::judge,
        "unzip" => unzip,
        "gzip" | "gunzip" | "bzip2" | "bunzip2" | "xz" | "unxz" | "lzma" | "zstd" | "unzstd"
        | "lz4" | "pigz" => compressor,
        "dd" => dd,
        "crontab" => crontab,
        "systemctl" => systemctl,
        "service" => service,
        "dpkg" => dpkg,
        "dpkg-query" | "rpmquery" => |call| only_reads(call).into(),
        _ => return None,
    }))
}

fn unzip(call: &Call<'_>) -> Answer {
    let parsed = flags::read(call.words, &Options::default());
    let reads = ['l', 'p', 't', 'v', 'Z', 'c', 'z']
        .into_iter()
        .any(|short| parsed.flags.iter().any(|flag| flag.short == Some(short)));
    if !reads {
        return Finding::writes("`unzip` writes files", call.raw).into();
    }
    no_hidden_flags(call, &parsed)
        .unwrap_or_else(|| only_reads(call))
        .into()
}

fn compressor(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "STo",
        ..Options::default()
    };
    let parsed = flags::read(call.words, &options);
    let has = |short: char, long: &str| {
        parsed
            .flags
            .iter()
            .any(|flag| flag.short == Some(short) || flag.long == Some(long))
    };
    if let Some(finding) = only_version(call) {
        return finding.into();
    }
    if let Some(flag) = parsed
        .flags
        .iter()
        .find(|flag| flag.is('o', "output") || flag.is(' ', "rm"))
    {
        let why = format!("`{} {}` writes or removes a file", call.name, flag.word.raw);
        return Finding::writes(why, call.raw).and(&flag.word.raw).into();
    }
    if has('c', "stdout") || has('t', "test") || has('l', "list") || has(' ', "to-stdout") {
        return no_hidden_flags(call, &parsed)
            .unwrap_or_else(|| only_reads(call))
            .into();
    }
    if parsed.operands.is_empty() && parsed.opens.is_empty() {
        return Finding::reads(format!("`{}` passes its input on", call.name), call.raw).into();
    }
    Finding::writes(format!("`{}` replaces files", call.name), call.raw).into()
}

fn dd(call: &Call<'_>) -> Answer {
    for word in call.words {
        if let Some(output) = word.lead.strip_prefix("of=") {
            let is_sunk = is_sink(&crate::word::Word {
                lead: output.to_owned(),
                ..word.clone()
            });
            if !is_sunk {
                return Finding::writes("`dd` writes its output file", call.raw)
                    .and(&word.raw)
                    .into();
            }
        } else if let Some(open) = word
            .open
            .filter(|_| word.splits || !word.lead.contains('='))
        {
            let why = format!("{} could become `of=`: `{}`", open.name(), word.raw);
            return Finding::unknown(why, call.raw).and(&word.raw).into();
        }
    }
    only_reads(call).into()
}

fn crontab(call: &Call<'_>) -> Answer {
    match call.words {
        [only] if only.is("-l") => Finding::reads("`crontab -l` only lists", call.raw)
            .and("-l")
            .into(),
        _ => Finding::writes("`crontab` changes what is run later", call.raw).into(),
    }
}

fn systemctl(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "tpnoHMs",
        long_values: &[
            "type", "state", "property", "lines", "output", "host", "machine", "signal", "root",
        ],
        ..Options::default()
    };
    let parsed = flags::read(call.words, &options);
    let reads = |verb: &str| {
        verb.starts_with("list-")
            || verb.starts_with("is-")
            || ["status", "show", "cat", "help", "get-default"].contains(&verb)
    };
    match parsed.operands.first() {
        None => no_hidden_flags(call, &parsed)
            .unwrap_or_else(|| only_reads(call))
            .into(),
        Some(verb) => match verb.text() {
            Some(text) if reads(text) => no_hidden_flags(call, &parsed)
                .unwrap_or_else(|| {
                    Finding::reads(format!("`systemctl {text}` only reads"), call.raw).and(text)
                })
                .into(),
            Some(text) => Finding::writes(format!("`systemctl {text}` changes services"), call.raw)
                .and(text)
                .into(),
            None => Finding::unknown("its verb is not known", call.raw)
                .and(&verb.raw)
                .into(),
        },
    }
}

fn service(call: &Call<'_>) -> Answer {
    Finding::unknown("`service` runs a script of the system", call.raw).into()
}

fn dpkg(call: &Call<'_>) -> Answer {
    let parsed = flags::read(call.words, &Options::default());
    let reads = parsed.flags.first().is_some_and(|flag| {
        ['l', 'L', 's', 'S', 'p', 'c', 'I', 'V']
            .iter()
            .any(|short| flag.short == Some(*short))
            || [
                "list",
                "listfiles",
                "status",
                "search",
                "print-avail",
                "print-architecture",
                "get-selections",
                "contents",
                "info",
                "verify",
                "version",
            ]
            .iter()
            .any(|long| flag.long == Some(*long))
    });
    if reads {
        return no_hidden_flags(call, &parsed)
            .unwrap_or_else(|| only_reads(call))
            .into();
    }
    Finding::writes("`dpkg` changes what is installed", call.raw).into()
}
