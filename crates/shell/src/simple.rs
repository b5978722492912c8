//! Judges a simple command: its assignments, its redirections, and the program with its words.

use brush_parser::ast::{
    Assignment, AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem, SimpleCommand,
    Word as RawWord,
};

use crate::influence;
use crate::redirect::Stdin;
use crate::scan;
use crate::source::Source;
use crate::table::{self, Answer, Call, Next};
use crate::verdict::Finding;
use crate::walk::Walk;
use crate::word::Word;

/// Directories whose programs are the ones of the table.
const SYSTEM_DIRECTORIES: [&str; 6] = [
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
];

/// Builtins that take assignments as arguments.
const DECLARE: [&str; 5] = ["export", "declare", "typeset", "local", "readonly"];

/// A simple command while it is read.
#[derive(Debug)]
struct Reading {
    words: Vec<Word>,
    stdin: Stdin,
    worst: Option<Finding>,
    /// Whether it is `read`, for which `IFS` may be set.
    reads_line: bool,
}

impl Reading {
    fn finds(&mut self, finding: Finding) {
        self.worst = Some(match self.worst.take() {
            Some(worst) => worst.or_worse(finding),
            None => finding,
        });
    }
}

/// Tells whether a text holds a command that would run if the text were evaluated again.
pub(crate) fn holds_command(word: &Word) -> bool {
    word.lead.contains("$(") || word.lead.contains('`')
}

impl Walk {
    /// Judges a simple command of the tree.
    pub(crate) fn simple(&mut self, simple: &SimpleCommand, stdin: Stdin, source: &Source) {
        let mut reading = Reading {
            words: Vec::new(),
            stdin,
            worst: None,
            reads_line: simple
                .word_or_name
                .as_ref()
                .is_some_and(|name| name.value == "read"),
        };
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(&mut reading, item, true, source);
        }
        if let Some(name) = &simple.word_or_name {
            self.push_word(&mut reading, &source.word(name));
        }
        let declares = reading
            .words
            .first()
            .and_then(Word::text)
            .is_some_and(|name| DECLARE.contains(&name));
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(&mut reading, item, declares, source);
        }
        let Reading {
            words,
            stdin,
            worst,
            ..
        } = reading;
        self.judge(&simple.to_string(), &words, &stdin, worst);
    }

    /// Judges words that are run without a shell.
    pub(crate) fn argv(&mut self, words: &[Word], stdin: &Stdin) {
        let raw: Vec<&str> = words.iter().map(|word| word.raw.as_str()).collect();
        self.judge(&raw.join(" "), words, stdin, None);
    }

    fn item(
        &mut self,
        reading: &mut Reading,
        item: &CommandPrefixOrSuffixItem,
        assigns: bool,
        source: &Source,
    ) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                let redirected = self.redirect(redirect, source);
                reading.stdin = redirected.stdin.unwrap_or_else(|| reading.stdin.clone());
                redirected
                    .finding
                    .into_iter()
                    .for_each(|f| reading.finds(f));
            }
            CommandPrefixOrSuffixItem::Word(word) => self.push_word(reading, &source.word(word)),
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                let is_harmless = reading.reads_line && assignment.name.to_string() == "IFS";
                let is_list = matches!(assignment.value, AssignmentValue::Array(_));
                let finding = if assigns || is_list {
                    self.assignment(assignment, word, is_harmless, source)
                } else {
                    None
                };
                if let Some(finding) = finding {
                    reading.finds(finding);
                }
                match &assignment.value {
                    // In front of a command it is no word of it.
                    _ if assigns && reading.words.is_empty() => {}
                    AssignmentValue::Scalar(_) if !assigns => {
                        self.push_word(reading, &source.word(word));
                    }
                    // The value was judged; the name is what the builtin is given.
                    AssignmentValue::Scalar(_) | AssignmentValue::Array(_) => {
                        reading.words.push(Word {
                            raw: word.value.clone(),
                            ..Word::fixed(assignment.name.to_string())
                        });
                    }
                }
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list, source);
                reading.words.push(Word {
                    raw: item.to_string(),
                    ..Word::fixed("/dev/fd/63")
                });
            }
        }
    }

    fn push_word(&mut self, reading: &mut Reading, raw: &str) {
        match self.raw_word(raw) {
            Ok(word) => reading.words.push(word),
            Err(finding) => {
                reading.finds(finding);
                reading.words.push(Word::input());
            }
        }
    }

    /// Judges an assignment and the commands inside it.
    fn assignment(
        &mut self,
        assignment: &Assignment,
        word: &RawWord,
        is_harmless: bool,
        source: &Source,
    ) -> Option<Finding> {
        let name = match &assignment.name {
            AssignmentName::VariableName(name) => name,
            AssignmentName::ArrayElementName(name, index) => {
                self.inside(index, scan::body);
                name
            }
        };
        let raw = source.word(word);
        let is_as_written = raw == word.value || source.has_list(word);
        let values: Vec<&str> = match &assignment.value {
            AssignmentValue::Scalar(value) if is_as_written => vec![&value.value],
            AssignmentValue::Scalar(_) => vec![&raw],
            AssignmentValue::Array(items) => items
                .iter()
                .flat_map(|(key, value)| key.iter().chain([value]))
                .map(|item| item.value.as_str())
                .collect(),
        };
        let is_harmless = is_harmless || (name.ends_with("PAGER") && values == ["cat"]);
        let mut worst = influence::of(name)
            .filter(|_| !is_harmless)
            .map(|why| Finding::unknown(format!("`{name}` {why}"), &raw));
        if !is_as_written
            && values.iter().any(|value| value.contains(['$', '`', '<']))
            && values != [&raw]
        {
            worst = worst.or(Some(Finding::unknown("a list is not understood", &raw)));
        }
        for value in values {
            match self.raw_word(value) {
                Ok(word) if holds_command(&word) => {
                    let why = "a quoted command in a variable may be run later";
                    worst = worst.or(Some(Finding::unknown(why, &raw)));
                }
                Ok(_) => {}
                Err(finding) => worst = worst.or(Some(finding)),
            }
        }
        worst
    }

    fn judge(&mut self, command: &str, words: &[Word], stdin: &Stdin, worst: Option<Finding>) {
        let Answer { finding, then } = match words.split_first() {
            Some((name, arguments)) => self.program(name, arguments, stdin),
            None => Finding::reads("it runs no program", command).into(),
        };
        let finding = match worst {
            // What was found on the way speaks first among equals.
            Some(worst) if worst.class >= finding.class => worst,
            _ => finding,
        };
        self.finds(command, finding);
        for next in then {
            match next {
                Next::Argv(words) => self.argv(&words, stdin),
                Next::Shell(text) => self.text(&text),
                Next::PlainShell(text) => {
                    let is_plain = std::mem::replace(&mut self.is_plain, true);
                    self.text(&text);
                    self.is_plain = is_plain;
                }
            }
        }
    }

    fn program(&self, name: &Word, arguments: &[Word], stdin: &Stdin) -> Answer {
        let Some(text) = name.text() else {
            let what = name.open.map_or("something", crate::word::Open::name);
            return Finding::unknown(format!("{what} decides which program is run"), &name.raw)
                .into();
        };
        if self.functions.contains(text) {
            let why = format!("`{text}` is a function of the line");
            return Finding::unknown(why, &name.raw).into();
        }
        let short = match text.rsplit_once('/') {
            Some((directory, short)) if SYSTEM_DIRECTORIES.contains(&directory) => short,
            Some(_) => {
                let why = format!("`{text}` is a program that is not known");
                return Finding::unknown(why, &name.raw).into();
            }
            None => text,
        };
        table::judge(&Call {
            name: short,
            raw: &name.raw,
            words: arguments,
            stdin,
        })
    }
}
