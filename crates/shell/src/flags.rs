//! Reads the flags of a command the way its program does: clusters of short ones, long ones with `=` or
//! abbreviated, values in the same word or the next, `--` as the end.
//!
//! A word that could become a flag unseen is kept apart, so that each rule says itself whether it matters.

use crate::word::{Open, Word};

/// How a program reads its flags.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Options {
    /// Short flags that take a value, in the same word or the next.
    pub(crate) values: &'static str,
    /// Short flags that take a value only in the same word.
    pub(crate) optional: &'static str,
    /// Long flags that take a value in the next word if there is no `=`.
    pub(crate) long_values: &'static [&'static str],
    /// Whether the first operand ends the flags, as in a program that runs another.
    pub(crate) ends_at_operand: bool,
}

/// A flag that was given.
#[derive(Debug)]
pub(crate) struct Flag<'a> {
    /// Its letter, if it is a short one.
    pub(crate) short: Option<char>,
    /// Its name without dashes, perhaps abbreviated, if it is a long one.
    pub(crate) long: Option<&'a str>,
    /// Its value, if it has one.
    pub(crate) value: Option<Word>,
    /// The word in which it stands.
    pub(crate) word: &'a Word,
}

impl Flag<'_> {
    /// Tells whether it is this flag, or an abbreviation of its long form. A blank means that there is no such form.
    pub(crate) fn is(&self, short: char, long: &str) -> bool {
        (short != ' ' && self.short == Some(short))
            || self
                .long
                .is_some_and(|given| !given.is_empty() && long.starts_with(given))
    }
}

/// A command's words, sorted.
#[derive(Debug, Default)]
pub(crate) struct Parsed<'a> {
    /// The flags, in order.
    pub(crate) flags: Vec<Flag<'a>>,
    /// What is no flag.
    pub(crate) operands: Vec<&'a Word>,
    /// Words that could become flags.
    pub(crate) opens: Vec<(&'a Word, Open)>,
    /// From the first operand on, where that ends the flags.
    pub(crate) rest: &'a [Word],
}

impl Parsed<'_> {
    /// Tells whether a flag was given.
    pub(crate) fn has(&self, short: char, long: &str) -> bool {
        self.find(short, long).is_some()
    }

    /// Finds a flag.
    pub(crate) fn find(&self, short: char, long: &str) -> Option<&Flag<'_>> {
        self.flags.iter().find(|flag| flag.is(short, long))
    }
}

/// Sorts a command's words.
pub(crate) fn read<'a>(words: &'a [Word], options: &Options) -> Parsed<'a> {
    let mut parsed = Parsed::default();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        if word.is("--") {
            parsed.operands.extend(after);
            parsed.rest = after;
            return parsed;
        }
        let is_flag = word.lead.len() > 1 && word.lead.starts_with('-');
        if !is_flag {
            if let Some(open) = word.may_become_flag() {
                parsed.opens.push((word, open));
            }
            if options.ends_at_operand {
                parsed.rest = rest;
                parsed.operands.extend(rest);
                return parsed;
            }
            parsed.operands.push(word);
            rest = after;
            continue;
        }
        let takes_next = match word.lead.strip_prefix("--") {
            Some(long) => read_long(&mut parsed, word, long, options),
            None => read_cluster(&mut parsed, word, options),
        };
        rest = after;
        if takes_next && let Some((value, after)) = rest.split_first() {
            if let Some(open) = value.open.filter(|_| becomes_several(value)) {
                parsed.opens.push((value, open));
            }
            if let Some(flag) = parsed.flags.last_mut() {
                flag.value = Some(value.clone());
            }
            rest = after;
        }
    }
    parsed
}

/// Tells whether a value may turn out to be more than one word, the second of which could be a flag.
fn becomes_several(value: &Word) -> bool {
    value.splits
        || (matches!(value.open, Some(Open::Glob | Open::Brace))
            && value.may_become_flag().is_some())
}

/// Reads a long flag; tells whether its value is the next word.
fn read_long<'a>(
    parsed: &mut Parsed<'a>,
    word: &'a Word,
    long: &'a str,
    options: &Options,
) -> bool {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    if let Some(open) = word.open.filter(|_| value.is_none() || word.splits) {
        parsed.opens.push((word, open));
    }
    parsed.flags.push(Flag {
        short: None,
        long: Some(name),
        value: value.map(|text| Word {
            lead: text.to_owned(),
            ..word.clone()
        }),
        word,
    });
    value.is_none()
        && word.open.is_none()
        && options
            .long_values
            .iter()
            .any(|known| known.starts_with(name))
}

/// Reads a cluster of short flags; tells whether the value of the last is the next word.
fn read_cluster<'a>(parsed: &mut Parsed<'a>, word: &'a Word, options: &Options) -> bool {
    let mut letters = word.lead.chars().skip(1);
    let mut has_value = false;
    while let Some(letter) = letters.next() {
        let takes_value = options.values.contains(letter);
        let may_take_value = takes_value || options.optional.contains(letter);
        let text: String = if may_take_value {
            letters.by_ref().collect()
        } else {
            String::new()
        };
        let is_attached = !text.is_empty() || (may_take_value && word.open.is_some());
        has_value |= is_attached;
        parsed.flags.push(Flag {
            short: Some(letter),
            long: None,
            value: is_attached.then(|| Word {
                lead: text,
                ..word.clone()
            }),
            word,
        });
        if takes_value && !is_attached {
            return true;
        }
    }
    if let Some(open) = word.open.filter(|_| !has_value || word.splits) {
        parsed.opens.push((word, open));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options {
        values: "ko",
        optional: "i",
        long_values: &["key", "output"],
        ends_at_operand: false,
    };

    fn sorted(line: &[&str]) -> (Vec<String>, Vec<String>) {
        let words: Vec<Word> = line.iter().copied().map(Word::fixed).collect();
        let parsed = read(&words, &OPTIONS);
        let flags = parsed.flags.iter().map(|flag| {
            let name = flag
                .short
                .map(String::from)
                .or(flag.long.map(str::to_owned))
                .unwrap();
            match &flag.value {
                Some(value) => format!("{name}={}", value.lead),
                None => name,
            }
        });
        let operands = parsed
            .operands
            .iter()
            .map(|word| word.raw.clone())
            .collect();
        (flags.collect(), operands)
    }

    #[test]
    fn flags_are_read_as_their_programs_read_them() {
        for (line, flags, operands) in [
            (vec!["-nr", "a"], vec!["n", "r"], vec!["a"]),
            (vec!["-nk2", "a"], vec!["n", "k=2"], vec!["a"]),
            (vec!["-nk", "2", "a"], vec!["n", "k=2"], vec!["a"]),
            (vec!["a", "-o", "b"], vec!["o=b"], vec!["a"]),
            (vec!["-i.bak", "a"], vec!["i=.bak"], vec!["a"]),
            (vec!["-i", "a"], vec!["i"], vec!["a"]),
            (vec!["--outp", "x", "a"], vec!["outp=x"], vec!["a"]),
            (vec!["--output=x", "a"], vec!["output=x"], vec!["a"]),
            (vec!["--", "-o", "b"], vec![], vec!["-o", "b"]),
            (vec!["-", "a"], vec![], vec!["-", "a"]),
        ] {
            let expected = (
                flags.into_iter().map(str::to_owned).collect(),
                operands.into_iter().map(str::to_owned).collect(),
            );
            assert_eq!(sorted(&line), expected, "{line:?}");
        }
    }
}
