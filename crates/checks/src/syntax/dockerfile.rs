//! Dockerfile and Containerfile: instructions, what each of them needs, lines that go on, here-documents.
//!
//! What stands behind `RUN` is for a shell that is not known here, and is not read.

use super::fault::{Fault, quote};
use crate::Finding;

/// Every instruction that there is, with the fewest words that it needs.
const INSTRUCTIONS: [(&str, usize); 18] = [
    ("FROM", 1),
    ("ARG", 1),
    ("RUN", 1),
    ("CMD", 0),
    ("LABEL", 1),
    ("MAINTAINER", 1),
    ("EXPOSE", 1),
    ("ENV", 1),
    ("ADD", 2),
    ("COPY", 2),
    ("ENTRYPOINT", 0),
    ("VOLUME", 1),
    ("USER", 1),
    ("WORKDIR", 1),
    ("ONBUILD", 1),
    ("STOPSIGNAL", 1),
    ("HEALTHCHECK", 1),
    ("SHELL", 1),
];

pub(super) fn check(text: &str) -> Vec<Finding> {
    let mut faults = Vec::new();
    let mut reader = Reader::new(text, &mut faults);
    let mut stages = Stages::default();
    while let Some(instruction) = reader.next(&mut faults) {
        if let Err(fault) = stages.check(&instruction) {
            faults.push(fault);
        }
        if faults.len() >= super::FINDINGS_MAX {
            break;
        }
    }
    if faults.is_empty() && !stages.has_from {
        faults.push(Fault::new(text.len(), "has no `FROM`").mended_by("begin with `FROM image`"));
    }
    faults
        .into_iter()
        .map(|fault| fault.finding(text))
        .collect()
}

/// An instruction with its lines put together.
struct Instruction {
    at: usize,
    name: String,
    /// What stands behind the name.
    rest: String,
    rest_at: usize,
    has_document: bool,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    escape: char,
}

impl<'t> Reader<'t> {
    /// Reads the directives at the top.
    fn new(text: &'t str, faults: &mut Vec<Fault>) -> Self {
        let mut reader = Self {
            text,
            at: 0,
            escape: '\\',
        };
        while let Some((at, line)) = reader.peek_line() {
            let directive = line
                .trim()
                .strip_prefix('#')
                .and_then(|line| line.split_once('='));
            let Some((name, value)) = directive else {
                break;
            };
            match (name.trim().to_ascii_lowercase().as_str(), value.trim()) {
                ("escape", "`") => reader.escape = '`',
                ("escape", "\\") | ("syntax" | "check", _) => {}
                ("escape", value) => faults.push(
                    Fault::new(
                        at,
                        format!("{} cannot be the escape character", quote(value)),
                    )
                    .mended_by("write `# escape=\\` or `# escape=` with a backtick"),
                ),
                _ => break,
            }
            reader.advance();
        }
        reader
    }

    fn peek_line(&self) -> Option<(usize, &'t str)> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let line = rest.split('\n').next().unwrap_or_default();
        Some((self.at, line.strip_suffix('\r').unwrap_or(line)))
    }

    fn advance(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
    }

    fn next(&mut self, faults: &mut Vec<Fault>) -> Option<Instruction> {
        let (at, mut line) = loop {
            let (at, line) = self.peek_line()?;
            self.advance();
            if !is_comment(line) && !line.trim().is_empty() {
                break (at, line);
            }
        };
        let at = at + (line.len() - line.trim_start().len());
        let mut logical = String::new();
        loop {
            let trimmed = line.trim_end();
            let Some(begun) = trimmed.strip_suffix(self.escape) else {
                logical.push_str(line);
                break;
            };
            logical.push_str(begun);
            // Comments and empty lines between lines that go on do not end them.
            let next = loop {
                let next = self.peek_line();
                if next.is_some() {
                    self.advance();
                }
                match next {
                    Some((_, line)) if is_comment(line) || line.trim().is_empty() => {}
                    next => break next,
                }
            };
            match next {
                Some((_, next)) => line = next,
                None => break,
            }
        }
        let logical = logical.trim().to_owned();
        let (name, rest) = logical
            .split_once(char::is_whitespace)
            .unwrap_or((&logical, ""));
        let mut instruction = Instruction {
            at,
            name: name.to_ascii_uppercase(),
            rest: rest.trim().to_owned(),
            rest_at: at + name.len() + 1,
            has_document: false,
        };
        self.documents(&mut instruction, faults);
        Some(instruction)
    }

    /// Skips the here-documents that an instruction begins.
    fn documents(&mut self, instruction: &mut Instruction, faults: &mut Vec<Fault>) {
        if !matches!(instruction.name.as_str(), "RUN" | "COPY" | "ADD") {
            return;
        }
        for word in instruction.rest.split_whitespace() {
            let Some(mark) = delimiter(word) else {
                continue;
            };
            instruction.has_document = true;
            let start = self.at;
            loop {
                let Some((_, line)) = self.peek_line() else {
                    // A shell has `<<` for other things too: without an end it is not one of ours.
                    if instruction.name != "RUN" || mark.chars().all(|c| c.is_ascii_uppercase()) {
                        let found = format!("the here-document {} is not closed", quote(mark));
                        let remedy = format!("end it with a line `{mark}`");
                        faults.push(Fault::new(instruction.at, found).mended_by(remedy));
                    } else {
                        self.at = start;
                    }
                    break;
                };
                self.advance();
                if line.trim_start_matches('\t') == mark {
                    break;
                }
            }
        }
    }
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// The word that ends the here-document which a word begins.
fn delimiter(word: &str) -> Option<&str> {
    let word = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let mark = word.strip_prefix("<<")?;
    let mark = mark.strip_prefix('-').unwrap_or(mark);
    let mark = mark.trim_matches(['"', '\'']);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    (mark.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && mark.chars().all(is_plain))
        .then_some(mark)
}

#[derive(Default)]
struct Stages {
    has_from: bool,
}

impl Stages {
    fn check(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let name = instruction.name.as_str();
        let known = INSTRUCTIONS.iter().find(|(known, _)| *known == name);
        let Some((_, words_min)) = known else {
            return Err(
                Fault::new(instruction.at, format!("{} is no instruction", quote(name)))
                    .mended_by("end the line before it with a backslash if it goes on here"),
            );
        };
        if !self.has_from && !matches!(name, "FROM" | "ARG") {
            let found = format!("`{name}` stands before the first `FROM`");
            return Err(Fault::new(instruction.at, found).mended_by("begin with `FROM image`"));
        }
        self.has_from |= name == "FROM";
        let words = instruction.words();
        let is_document = instruction.has_document && !words.is_empty();
        if words.len() < *words_min && !is_document {
            let found = match words_min {
                1 => format!("`{name}` needs an argument"),
                _ => format!("`{name}` needs a source and a destination"),
            };
            return Err(Fault::new(instruction.at, found));
        }
        instruction.check_words(&words)
    }
}

impl Instruction {
    /// The words behind the name, without flags.
    fn words(&self) -> Vec<&str> {
        if self.rest.starts_with('[')
            && let Ok(words) = serde_json::from_str::<Vec<&str>>(&self.rest)
        {
            return words;
        }
        let words = self.rest.split_whitespace();
        words.skip_while(|word| word.starts_with("--")).collect()
    }

    fn fault(&self, found: impl Into<String>) -> Fault {
        Fault::new(self.at, found)
    }

    fn check_words(&self, words: &[&str]) -> Result<(), Fault> {
        match (self.name.as_str(), words) {
            ("FROM", [_] | [_, _, _])
                if words
                    .get(1)
                    .is_none_or(|word| word.eq_ignore_ascii_case("as")) =>
            {
                Ok(())
            }
            ("FROM", _) => Err(self
                .fault(format!("`FROM` does not take {}", quote(&self.rest)))
                .mended_by("write `FROM image` or `FROM image AS name`")),
            ("ENV" | "LABEL", [first, ..]) => self.check_pairs(first, words.len()),
            ("EXPOSE", words) => match words.iter().find(|word| !is_port(word)) {
                Some(word) => Err(self
                    .fault(format!("{} is no port", quote(word)))
                    .mended_by("write it like `8080` or `53/udp`")),
                None => Ok(()),
            },
            ("HEALTHCHECK", [first, ..]) => match first.to_ascii_uppercase().as_str() {
                "NONE" | "CMD" => Ok(()),
                _ => Err(self
                    .fault(format!("`HEALTHCHECK` does not take {}", quote(first)))
                    .mended_by("write `HEALTHCHECK CMD …` or `HEALTHCHECK NONE`")),
            },
            ("ONBUILD", [first, ..]) => {
                let inner = first.to_ascii_uppercase();
                let is_known = INSTRUCTIONS.iter().any(|(known, _)| *known == inner);
                if is_known && !matches!(inner.as_str(), "FROM" | "ONBUILD" | "MAINTAINER") {
                    return Ok(());
                }
                Err(self.fault(format!("`ONBUILD` does not take {}", quote(first))))
            }
            ("SHELL" | "CMD" | "ENTRYPOINT" | "RUN" | "COPY" | "ADD" | "VOLUME", _) => {
                self.check_list()
            }
            _ => Ok(()),
        }
    }

    /// Checks the form with brackets, which is JSON.
    fn check_list(&self) -> Result<(), Fault> {
        let begin = self.rest.trim_start_matches('[').trim_start();
        let is_meant = self.rest.starts_with('[') && begin.starts_with(['"', '\'']);
        if !is_meant && self.name != "SHELL" {
            return Ok(());
        }
        match serde_json::from_str::<Vec<String>>(&self.rest) {
            Ok(_) => Ok(()),
            Err(_) => Err(Fault::new(
                self.rest_at,
                format!("{} is no list in JSON", quote(&self.rest)),
            )
            .mended_by("write `[\"program\", \"argument\"]` with double quotes")),
        }
    }

    /// Checks `name=value` pairs, or the old form `name value`.
    fn check_pairs(&self, first: &str, words: usize) -> Result<(), Fault> {
        if !first.contains('=') {
            if words > 1 || self.name == "LABEL" && first.contains('"') {
                return Ok(());
            }
            return Err(self
                .fault(format!("{} has no value", quote(first)))
                .mended_by(format!("write `{} name=value`", self.name)));
        }
        let mut open: Option<char> = None;
        let mut characters = self.rest.chars();
        while let Some(character) = characters.next() {
            match (open, character) {
                (None | Some('"'), '\\') => {
                    characters.next();
                }
                (None, '"' | '\'') => open = Some(character),
                (Some(mark), character) if mark == character => open = None,
                _ => {}
            }
        }
        match open {
            None => Ok(()),
            Some(mark) => Err(self
                .fault(format!("the quote `{mark}` is not closed"))
                .mended_by(format!("close it with `{mark}`"))),
        }
    }
}

fn is_port(word: &str) -> bool {
    let (ports, protocol) = word.split_once('/').unwrap_or((word, "tcp"));
    let is_number = |text: &str| text.parse::<u16>().is_ok();
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    word.contains('$')
        || is_number(first)
            && is_number(last)
            && matches!(
                protocol.to_ascii_lowercase().as_str(),
                "tcp" | "udp" | "sctp"
            )
}
