//! Programs of which an operand decides: the second file of `uniq`, the time given to `date`.

use super::{Answer, Call, Rule, by_flags, only_reads, writes};
use crate::flags::{self, Options};
use crate::redirect::is_sink;
use crate::verdict::Finding;
use crate::word::Word;

/// Finds a program.
pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(Rule::Ask(match name {
        "uniq" => uniq,
        "xxd" => xxd,
        "tee" => tee,
        "date" => date,
        "hostname" => hostname,
        "curl" => curl,
        "wget" => wget,
        _ => return None,
    }))
}

/// Judges a program that writes its second operand.
fn second_operand(call: &Call<'_>, options: &Options) -> Answer {
    let parsed = flags::read(call.words, options);
    let splits = parsed.operands.iter().find(|word| becomes_several(word));
    match (parsed.operands.get(1), splits) {
        (Some(output), _) if !is_sink(output) && !output.is("-") => {
            let why = format!("`{}` writes its second operand", call.name);
            Finding::writes(why, call.raw).and(&output.raw).into()
        }
        (_, Some(word)) => {
            let why = format!(
                "`{}` may become two operands, and the second is written",
                word.raw
            );
            Finding::unknown(why, call.raw).and(&word.raw).into()
        }
        // No flag of these programs writes, so it does not matter what becomes one.
        _ => only_reads(call).into(),
    }
}

fn becomes_several(word: &Word) -> bool {
    use crate::word::Open;
    word.splits || matches!(word.open, Some(Open::Glob | Open::Brace | Open::Input))
}

fn uniq(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "fsw",
        long_values: &["skip-fields", "skip-chars", "check-chars"],
        ..Options::default()
    };
    second_operand(call, &options)
}

fn xxd(call: &Call<'_>) -> Answer {
    // Its flags have one dash and may be whole words, so a word with a dash is one flag.
    let mut operands = Vec::new();
    let mut takes_value = false;
    for word in call.words {
        if takes_value {
            takes_value = false;
        } else if word.lead.starts_with('-') && word.lead.len() > 1 {
            takes_value = [
                "-c",
                "-cols",
                "-g",
                "-groupsize",
                "-l",
                "-len",
                "-s",
                "-seek",
                "-o",
                "-n",
                "-name",
                "-R",
            ]
            .iter()
            .any(|known| word.is(known));
        } else {
            operands.push(word.clone());
        }
    }
    let call = Call {
        words: &operands,
        ..*call
    };
    second_operand(&call, &Options::default())
}

fn tee(call: &Call<'_>) -> Answer {
    let parsed = flags::read(call.words, &Options::default());
    let output = parsed.operands.iter().find(|word| !is_sink(word));
    match output {
        Some(output) => Finding::writes("`tee` writes files", call.raw)
            .and(&output.raw)
            .into(),
        None => only_reads(call).into(),
    }
}

fn date(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "dfrs",
        optional: "I",
        long_values: &["date", "file", "reference", "set"],
        ..Options::default()
    };
    let parsed = flags::read(call.words, &options);
    if let Some(clock) = parsed
        .operands
        .iter()
        .find(|word| !word.lead.starts_with('+') && word.open.is_none())
    {
        return Finding::writes("`date` sets the clock", call.raw)
            .and(&clock.raw)
            .into();
    }
    if let Some(word) = parsed
        .operands
        .iter()
        .find(|word| !word.lead.starts_with('+'))
    {
        let why = "`date` would set the clock to it";
        return Finding::unknown(why, call.raw).and(&word.raw).into();
    }
    by_flags(call, &parsed, &[writes('s', "set", "sets the clock")]).into()
}

fn hostname(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "F",
        long_values: &["file"],
        ..Options::default()
    };
    let parsed = flags::read(call.words, &options);
    if let Some(name) = parsed.operands.first() {
        return Finding::writes("`hostname` sets the name", call.raw)
            .and(&name.raw)
            .into();
    }
    let bad = [
        writes('F', "file", "sets the name"),
        writes('b', "boot", "sets the name"),
    ];
    by_flags(call, &parsed, &bad).into()
}

fn curl(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "AbcCdDeEFhHKmoPQrtTuUwxXyYz",
        ..Options::default()
    };
    let parsed = flags::read(call.words, &options);
    let network = Finding::unknown("`curl` talks to the network", call.raw);
    let bad = [
        ('o', "output"),
        ('O', "remote-name"),
        ('D', "dump-header"),
        ('c', "cookie-jar"),
    ];
    for flag in &parsed.flags {
        let is_bad = bad.iter().any(|(short, long)| {
            flag.short == Some(*short)
                || flag
                    .long
                    .is_some_and(|given| given.starts_with(long) || long.starts_with(given))
        });
        let is_sunk = flag
            .value
            .as_ref()
            .is_some_and(|value| is_sink(value) || value.is("-"));
        if is_bad && !is_sunk {
            return Finding::writes(format!("`curl {}` writes a file", flag.word.raw), call.raw)
                .and(&flag.word.raw)
                .into();
        }
    }
    only_version(call).unwrap_or(network).into()
}

fn wget(call: &Call<'_>) -> Answer {
    let options = Options {
        values: "OoaeitTwQPUlARDIX",
        ..Options::default()
    };
    let parsed = flags::read(call.words, &options);
    let to_nowhere = parsed
        .find('O', "output-document")
        .and_then(|flag| flag.value.as_ref())
        .is_some_and(|value| is_sink(value) || value.is("-"));
    if to_nowhere || parsed.has(' ', "spider") {
        return Finding::unknown("`wget` talks to the network", call.raw).into();
    }
    only_version(call)
        .unwrap_or_else(|| Finding::writes("`wget` writes files", call.raw))
        .into()
}

/// Judges a program that is only asked about itself.
pub(super) fn only_version(call: &Call<'_>) -> Option<Finding> {
    match call.words {
        [only] if only.is("--version") || only.is("--help") => {
            let why = format!("`{} {}` only tells about itself", call.name, only.lead);
            Some(Finding::reads(why, call.raw).and(&only.raw))
        }
        _ => None,
    }
}
