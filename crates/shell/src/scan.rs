//! Reads one word of the parser: what its quotes and expansions come to, and the commands inside it.
//!
//! The parser leaves words as text. This reads them to the last character, finds every command that the
//! shell would run to expand them, at any depth, and refuses what it does not follow. It must not end a
//! command too early or too late: where it doubts (a single quote inside `${…}`), it refuses.

use crate::influence;
use crate::scan_end::{command_end, is_one_group};
use crate::source::has_neighbours;
use crate::word::{Open, Word};

/// A word that was read, with the texts of the commands that are run to expand it.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) word: Word,
    pub(crate) commands: Vec<String>,
}

/// Reads a word of a command.
pub(crate) fn word(raw: &str) -> Result<Scanned, String> {
    let mut scanner = Scanner::new(raw);
    scanner.unquoted(true)?;
    Ok(scanner.done)
}

/// Reads a pattern, which may hold what would end a word elsewhere.
pub(crate) fn pattern(raw: &str) -> Result<Scanned, String> {
    let mut scanner = Scanner::new(raw);
    scanner.unquoted(false)?;
    Ok(scanner.done)
}

/// Reads a text in which quotes mean nothing: a here-document, arithmetic.
pub(crate) fn body(raw: &str) -> Result<Scanned, String> {
    let mut scanner = Scanner::new(raw);
    scanner.quoted(None)?;
    Ok(scanner.done)
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    done: Scanned,
}

impl Scanner {
    fn new(raw: &str) -> Self {
        Self {
            chars: raw.chars().collect(),
            at: 0,
            done: Scanned {
                word: Word {
                    raw: raw.to_owned(),
                    ..Word::default()
                },
                commands: Vec::new(),
            },
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += 1;
        Some(character)
    }

    /// Adds a character that stands for itself.
    fn literal(&mut self, character: char) {
        if self.done.word.open.is_none() {
            self.done.word.lead.push(character);
        }
    }

    /// Notes that the shell fills something in here.
    fn opens(&mut self, open: Open, splits: bool) {
        self.done.word.open.get_or_insert(open);
        self.done.word.splits |= splits;
    }

    fn rest_has(&self, wanted: &[&str]) -> bool {
        let rest: String = self.chars.iter().skip(self.at).collect();
        wanted.iter().any(|text| rest.contains(text))
    }

    fn unquoted(&mut self, is_strict: bool) -> Result<(), String> {
        while let Some(character) = self.next() {
            match character {
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(escaped) => self.literal(escaped),
                    None => return Err("it ends in a backslash".to_owned()),
                },
                '\'' => self.single()?,
                '"' => self.quoted(Some('"'))?,
                '$' => self.dollar(false)?,
                '`' => self.backtick(false)?,
                '*' | '?' => self.opens(Open::Glob, false),
                '[' if self.rest_has(&["]"]) => self.opens(Open::Glob, false),
                '{' if self.rest_has(&[",", ".."]) && self.rest_has(&["}"]) => {
                    self.opens(Open::Brace, false);
                }
                ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')' if is_strict => {
                    return Err(format!("`{character}` stands where no word has it"));
                }
                '<' | '>' if self.peek() == Some('(') => {
                    return Err("a process substitution stands inside a word".to_owned());
                }
                _ => self.literal(character),
            }
        }
        Ok(())
    }

    fn single(&mut self) -> Result<(), String> {
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some(character) => self.literal(character),
                None => return Err("a quote is not closed".to_owned()),
            }
        }
    }

    /// Reads up to the closing quote, or to the end of a text that has none.
    fn quoted(&mut self, end: Option<char>) -> Result<(), String> {
        while let Some(character) = self.next() {
            match character {
                _ if Some(character) == end => return Ok(()),
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => self.literal(escaped),
                    Some(other) => {
                        self.literal('\\');
                        self.literal(other);
                    }
                    None => self.literal('\\'),
                },
                '$' => self.dollar(true)?,
                '`' => self.backtick(true)?,
                _ => self.literal(character),
            }
        }
        match end {
            Some(_) => Err("a quote is not closed".to_owned()),
            None => Ok(()),
        }
    }

    fn dollar(&mut self, is_quoted: bool) -> Result<(), String> {
        match self.peek() {
            Some('(') => self.substitution(is_quoted),
            Some('{') => {
                self.at += 1;
                self.parameter(is_quoted)
            }
            Some('[') => Err("`$[…]` is not read".to_owned()),
            Some('\'') if !is_quoted => self.escaped(),
            Some('"') if !is_quoted => {
                self.at += 1;
                self.quoted(Some('"'))
            }
            Some('?' | '#' | '$' | '!') => {
                self.at += 1;
                self.literal('0');
                Ok(())
            }
            Some(name @ ('@' | '*' | '-' | '0'..='9')) => {
                self.at += 1;
                self.opens(Open::Variable, !is_quoted || name == '@');
                Ok(())
            }
            Some(first) if first == '_' || first.is_ascii_alphabetic() => {
                while self
                    .peek()
                    .is_some_and(|next| next == '_' || next.is_ascii_alphanumeric())
                {
                    self.at += 1;
                }
                self.opens(Open::Variable, !is_quoted);
                Ok(())
            }
            _ => {
                self.literal('$');
                Ok(())
            }
        }
    }

    /// Reads `$'…'`.
    fn escaped(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some('\\') => {
                    self.opens(Open::Escapes, false);
                    let _escaped = self.next();
                }
                Some(character) => self.literal(character),
                None => return Err("a quote is not closed".to_owned()),
            }
        }
    }

    /// Reads `$(…)` or `$((…))`, standing at the first parenthesis.
    fn substitution(&mut self, is_quoted: bool) -> Result<(), String> {
        let start = self.at + 1;
        let end = command_end(&self.chars, start)?;
        let inner: Vec<char> = self
            .chars
            .iter()
            .skip(start)
            .take(end - start)
            .copied()
            .collect();
        let text: String = inner.iter().collect();
        if is_one_group(&inner)? {
            if has_neighbours(&text) {
                return Err(format!("`$({text})` is no arithmetic"));
            }
            self.done.commands.extend(body(&text)?.commands);
        } else {
            self.done.commands.push(text);
        }
        self.opens(Open::Substitution, !is_quoted);
        self.at = end + 1;
        Ok(())
    }

    fn backtick(&mut self, is_quoted: bool) -> Result<(), String> {
        let mut text = String::new();
        loop {
            match self.next() {
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(escaped @ ('$' | '`' | '\\')) => text.push(escaped),
                    Some('"') if is_quoted => text.push('"'),
                    Some(other) => text.extend(['\\', other]),
                    None => return Err("a backtick is not closed".to_owned()),
                },
                Some(character) => text.push(character),
                None => return Err("a backtick is not closed".to_owned()),
            }
        }
        self.done.commands.push(text);
        self.opens(Open::Substitution, !is_quoted);
        Ok(())
    }

    /// Reads `${…}`, standing behind the brace.
    fn parameter(&mut self, is_quoted: bool) -> Result<(), String> {
        let start = self.at;
        if matches!(self.peek(), Some(' ' | '\t' | '\n' | '|')) {
            return Err("`${ …; }` is not read".to_owned());
        }
        // What is inside does not add to the text of the word.
        self.opens(Open::Variable, !is_quoted);
        loop {
            match self.next() {
                Some('}') => break,
                Some('\\') => {
                    let _escaped = self.next();
                }
                Some('\'') => return Err("a single quote inside `${…}` is not read".to_owned()),
                Some('"') => self.quoted(Some('"'))?,
                Some('$') => self.dollar(is_quoted)?,
                Some('`') => self.backtick(is_quoted)?,
                Some('<' | '>') if self.peek() == Some('(') => {
                    return Err("a process substitution inside `${…}` is not read".to_owned());
                }
                Some(_) => {}
                None => return Err("`${` is not closed".to_owned()),
            }
        }
        let inner: String = self
            .chars
            .iter()
            .skip(start)
            .take(self.at - start - 1)
            .collect();
        if inner.ends_with("@P") {
            return Err("`${…@P}` runs what the variable holds".to_owned());
        }
        self.done.word.splits |= inner.contains('@');
        let name: String = inner
            .chars()
            .take_while(|next| *next == '_' || next.is_ascii_alphanumeric())
            .collect();
        Self::check_parameter(&inner, &name)?;
        let assigns = inner
            .get(name.len()..)
            .is_some_and(|rest| rest.starts_with('=') || rest.starts_with(":="));
        match influence::of(&name) {
            Some(why) if assigns => Err(format!("`${{{inner}}}` sets what {why}")),
            _ => Ok(()),
        }
    }
    /// Refuses what does not look like a parameter: `${ rm x; }` runs a command.
    fn check_parameter(inner: &str, name: &str) -> Result<(), String> {
        let rest = inner.get(name.len()..).unwrap_or_default();
        let begins_well = if name.is_empty() {
            rest.starts_with(['!', '#', '@', '*', '?', '-', '$'])
        } else {
            rest.is_empty()
                || rest.starts_with([
                    ':', '-', '=', '+', '?', '#', '%', '/', '^', ',', '@', '[', '*', '~',
                ])
        };
        if begins_well && !inner.contains("<<") && !inner.contains('\n') {
            Ok(())
        } else {
            Err(format!("`${{{inner}}}` is not read"))
        }
    }
}
