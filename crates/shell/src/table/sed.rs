//! `sed`: its flags, and its script, which can write files (`w`) and run commands (`e`).

use std::iter::Peekable;
use std::str::Chars;

use super::{Answer, Call, no_hidden_flags, only_reads};
use crate::flags::{self, Options};
use crate::verdict::Finding;

const OPTIONS: Options = Options {
    values: "efl",
    optional: "iI",
    long_values: &["expression", "file", "line-length"],
    ends_at_operand: false,
};

/// Judges a `sed`.
pub(super) fn judge(call: &Call<'_>) -> Answer {
    let parsed = flags::read(call.words, &OPTIONS);
    let mut worst = no_hidden_flags(call, &parsed).unwrap_or_else(|| only_reads(call));
    let mut has_script = false;
    for flag in &parsed.flags {
        // `-I` is what BSD has for one file at a time.
        let found = if flag.is('i', "in-place") || flag.short == Some('I') {
            Some(Finding::writes("`sed` changes files in place", call.raw))
        } else if flag.is('f', "file") {
            has_script = true;
            Some(Finding::unknown(
                "`sed` reads its script from a file",
                call.raw,
            ))
        } else if flag.is('e', "expression") {
            has_script = true;
            flag.value
                .as_ref()
                .and_then(|value| script(call, value.text(), &value.raw))
        } else {
            None
        };
        if let Some(found) = found {
            worst = worst.or_worse(found.and(&flag.word.raw));
        }
    }
    if !has_script && let Some(first) = parsed.operands.first() {
        let found = script(call, first.text(), &first.raw);
        worst = found.into_iter().fold(worst, Finding::or_worse);
    }
    worst.into()
}

fn script(call: &Call<'_>, text: Option<&str>, raw: &str) -> Option<Finding> {
    let Some(text) = text else {
        return Some(Finding::unknown("the script of `sed` is not known", call.raw).and(raw));
    };
    let mut script = Script {
        rest: text.chars().peekable(),
    };
    let effect = loop {
        match script.command() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(effect) => break effect,
        }
    };
    let finding = match effect {
        Effect::Writes => Finding::writes("the script of `sed` writes a file", call.raw),
        Effect::Runs => Finding::unknown("the script of `sed` runs a command", call.raw),
        Effect::Hidden => Finding::unknown("the script of `sed` is not understood", call.raw),
    };
    Some(finding.and(raw))
}

/// What makes a script more than a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Writes,
    Runs,
    Hidden,
}

struct Script<'a> {
    rest: Peekable<Chars<'a>>,
}

impl Script<'_> {
    /// Reads one command; tells whether there was one.
    fn command(&mut self) -> Result<bool, Effect> {
        while self
            .rest
            .next_if(|c| c.is_whitespace() || matches!(c, ';' | '{' | '}'))
            .is_some()
        {}
        self.address()?;
        while self
            .rest
            .next_if(|c| matches!(c, ' ' | '\t' | '!'))
            .is_some()
        {}
        let Some(name) = self.rest.next() else {
            return Ok(false);
        };
        match name {
            '{' | '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x'
            | 'F' | 'z' => {}
            'l' | 'L' | 'q' | 'Q' => {
                while self
                    .rest
                    .next_if(|c| c.is_ascii_digit() || *c == ' ')
                    .is_some()
                {}
            }
            '#' | 'r' | 'R' => self.line(),
            ':' | 'b' | 't' | 'T' | 'v' => {
                while self
                    .rest
                    .next_if(|c| !matches!(c, '\n' | ';' | '}'))
                    .is_some()
                {}
            }
            'a' | 'i' | 'c' => self.text(),
            'w' | 'W' => return Err(Effect::Writes),
            'e' => return Err(Effect::Runs),
            's' => {
                self.two_parts()?;
                self.substitute_flags()?;
            }
            'y' => self.two_parts()?,
            _ => return Err(Effect::Hidden),
        }
        Ok(true)
    }

    fn address(&mut self) -> Result<(), Effect> {
        loop {
            match self.rest.peek() {
                Some('0'..='9' | '$' | ',' | '~' | '+' | ' ') => {
                    self.rest.next();
                }
                Some('/') => {
                    self.rest.next();
                    self.part('/')?;
                    self.address_flags();
                }
                Some('\\') => {
                    self.rest.next();
                    let delimiter = self.rest.next().ok_or(Effect::Hidden)?;
                    self.part(delimiter)?;
                    self.address_flags();
                }
                _ => return Ok(()),
            }
        }
    }

    fn address_flags(&mut self) {
        while self.rest.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
    }

    /// Reads up to a delimiter. Between brackets it stands for itself.
    fn part(&mut self, delimiter: char) -> Result<(), Effect> {
        if matches!(delimiter, '\\' | '\n' | '[' | ']') {
            return Err(Effect::Hidden);
        }
        loop {
            match self.rest.next().ok_or(Effect::Hidden)? {
                '\\' => {
                    self.rest.next().ok_or(Effect::Hidden)?;
                }
                found if found == delimiter => return Ok(()),
                '[' => self.brackets()?,
                _ => {}
            }
        }
    }

    /// Reads a bracket expression. Where versions differ about its end, it is not understood.
    fn brackets(&mut self) -> Result<(), Effect> {
        self.rest.next_if_eq(&'^');
        // A bracket that comes first stands for itself.
        self.rest.next_if_eq(&']');
        loop {
            match self.rest.next().ok_or(Effect::Hidden)? {
                ']' => return Ok(()),
                '\\' if self.rest.next() == Some(']') => return Err(Effect::Hidden),
                '[' => match self.rest.peek() {
                    Some(':') => while self.rest.next().ok_or(Effect::Hidden)? != ']' {},
                    Some('.' | '=') => return Err(Effect::Hidden),
                    _ => {}
                },
                _ => {}
            }
        }
    }

    fn two_parts(&mut self) -> Result<(), Effect> {
        let delimiter = self.rest.next().ok_or(Effect::Hidden)?;
        self.part(delimiter)?;
        // Brackets mean nothing in a replacement.
        loop {
            match self.rest.next().ok_or(Effect::Hidden)? {
                '\\' => {
                    self.rest.next().ok_or(Effect::Hidden)?;
                }
                found if found == delimiter => return Ok(()),
                _ => {}
            }
        }
    }

    fn substitute_flags(&mut self) -> Result<(), Effect> {
        while let Some(flag) = self.rest.next() {
            match flag {
                'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' | ' ' | '\t' => {}
                'w' => return Err(Effect::Writes),
                'e' => return Err(Effect::Runs),
                ';' | '\n' | '}' => return Ok(()),
                '#' => {
                    self.line();
                    return Ok(());
                }
                _ => return Err(Effect::Hidden),
            }
        }
        Ok(())
    }

    fn line(&mut self) {
        while self.rest.next_if(|c| *c != '\n').is_some() {}
    }

    /// Reads the text of `a`, `i` and `c`: lines that end in a backslash go on.
    fn text(&mut self) {
        let mut is_escaped = false;
        for character in self.rest.by_ref() {
            if character == '\n' && !is_escaped {
                return;
            }
            is_escaped = character == '\\' && !is_escaped;
        }
    }
}
