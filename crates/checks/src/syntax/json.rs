//! JSON to the letter of RFC 8259, and JSON with comments and trailing commas.
//!
//! What is open is a list, and its length is limited. A key that stands twice in one object is a finding, since readers
//! differ in which of the two they take.

use std::borrow::Cow;

use super::cursor::Cursor;
use super::fault::{Fault, quote, standing_at};
use super::keys::{Names, Step, shown};
use super::{DEPTH_MAX, FINDINGS_MAX};
use crate::{Finding, Place};

/// Whether comments and trailing commas may stand in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comments {
    Allowed,
    Refused,
}

pub(super) fn check(text: &str, comments: Comments) -> Vec<Finding> {
    let mut reader = Reader {
        cursor: Cursor::new(text),
        comments,
        open: Vec::new(),
        twice: Vec::new(),
    };
    if let Err(fault) = reader.document() {
        reader.twice.push(fault.finding(text));
    }
    reader.twice
}

/// An object or a list that is not closed yet.
struct Open<'t> {
    at: usize,
    /// The names of an object with their places. None of a list.
    names: Option<Names<'t>>,
    /// The member that is being read.
    step: Step<'t>,
}

struct Reader<'t> {
    cursor: Cursor<'t>,
    comments: Comments,
    open: Vec<Open<'t>>,
    twice: Vec<Finding>,
}

impl<'t> Reader<'t> {
    fn fault(&self, found: impl Into<String>) -> Fault {
        Fault::new(self.cursor.at(), found)
    }

    fn document(&mut self) -> Result<(), Fault> {
        self.skip()?;
        if self.cursor.is_done() {
            return Err(self
                .fault("is empty, and JSON needs a value")
                .mended_by("write at least `{}`"));
        }
        self.value()?;
        while !self.open.is_empty() {
            self.behind_value()?;
        }
        self.skip()?;
        if self.cursor.is_done() {
            return Ok(());
        }
        let found = standing_at(self.cursor.text(), self.cursor.at());
        Err(self
            .fault(format!("{found} stands behind the end of the value"))
            .mended_by("JSON holds one value: remove what is behind it"))
    }

    /// Skips space, and comments where they may be. Mostly there is nothing to skip.
    #[inline]
    fn skip(&mut self) -> Result<(), Fault> {
        match self.cursor.peek() {
            Some(b' ' | b'\t' | b'\n' | b'\r' | b'/') => self.skip_space(),
            Some(_) | None => Ok(()),
        }
    }

    fn skip_space(&mut self) -> Result<(), Fault> {
        loop {
            self.cursor
                .skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
            if self.cursor.peek() != Some(b'/')
                || !matches!(self.cursor.peek_at(1), Some(b'/' | b'*'))
            {
                return Ok(());
            }
            if self.comments == Comments::Refused {
                return Err(self
                    .fault("a comment stands here, and JSON has none")
                    .mended_by("remove the comment"));
            }
            let start = self.cursor.at();
            if self.cursor.eat("//") {
                self.cursor.skip_line();
            } else {
                self.cursor.eat("/*");
                if self.cursor.skip_behind("*/").is_none() {
                    let text = self.cursor.text();
                    return Err(Fault::unclosed(text, start, "the comment", "*/"));
                }
            }
        }
    }

    /// Reads a value, or the beginning of one that holds others.
    fn value(&mut self) -> Result<(), Fault> {
        match self.cursor.peek() {
            Some(b'{') => self.enter(true),
            Some(b'[') => self.enter(false),
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn enter(&mut self, is_object: bool) -> Result<(), Fault> {
        let at = self.cursor.at();
        if self.open.len() >= DEPTH_MAX {
            return Err(Fault::too_deep(at));
        }
        self.cursor.bump();
        self.open.push(Open {
            at,
            names: is_object.then(Names::default),
            step: Step::Index(0),
        });
        self.skip()?;
        if self.cursor.eat_byte(if is_object { b'}' } else { b']' }) {
            self.open.pop();
            return Ok(());
        }
        self.member()
    }

    /// Reads one member up to its value, which may hold others.
    fn member(&mut self) -> Result<(), Fault> {
        let is_object = self.open.last().is_some_and(|open| open.names.is_some());
        if is_object {
            self.name()?;
            self.skip()?;
            if !self.cursor.eat_byte(b':') {
                if self.cursor.is_done() {
                    return Err(self.unclosed());
                }
                let found = standing_at(self.cursor.text(), self.cursor.at());
                return Err(self
                    .fault(format!("a colon is needed behind the key, not {found}"))
                    .mended_by("write `\"key\": value`"));
            }
            self.skip()?;
        }
        if self.cursor.is_done() {
            return Err(self.unclosed());
        }
        self.value()
    }

    fn name(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        if self.cursor.peek() != Some(b'"') {
            if self.cursor.is_done() {
                return Err(self.unclosed());
            }
            let found = standing_at(self.cursor.text(), at);
            let fault = self.fault(format!("a key in double quotes is needed, not {found}"));
            return Err(match self.cursor.peek() {
                Some(b'}') => fault.mended_by("remove the comma before it"),
                _ => fault.mended_by("write `\"key\": value`"),
            });
        }
        let name = self.string()?;
        let Some(open) = self.open.last_mut() else {
            return Ok(());
        };
        open.step = Step::Name(name.clone());
        let first = open.names.as_mut().and_then(|names| names.add(name, at));
        if let Some(first) = first
            && self.twice.len() < FINDINGS_MAX
        {
            let finding = twice(self.cursor.text(), first, at, &self.way());
            self.twice.push(finding);
        }
        Ok(())
    }

    fn way(&self) -> String {
        shown(self.open.iter().map(|open| &open.step))
    }

    /// Reads what may stand behind a value: a comma and the next member, or the end.
    fn behind_value(&mut self) -> Result<(), Fault> {
        self.skip()?;
        let is_object = self.open.last().is_some_and(|open| open.names.is_some());
        let closer = if is_object { b'}' } else { b']' };
        if self.cursor.eat_byte(closer) {
            self.open.pop();
            return Ok(());
        }
        let comma = self.cursor.at();
        if self.cursor.eat_byte(b',') {
            self.skip()?;
            if self.cursor.peek() == Some(closer) {
                if self.comments == Comments::Refused {
                    let closer = char::from(closer);
                    return Err(
                        Fault::new(comma, format!("a comma stands before `{closer}`"))
                            .mended_by("remove the comma"),
                    );
                }
                self.cursor.bump();
                self.open.pop();
                return Ok(());
            }
            if let Some(Step::Index(index)) = self.open.last_mut().map(|open| &mut open.step) {
                *index += 1;
            }
            return self.member();
        }
        if self.cursor.is_done() {
            return Err(self.unclosed());
        }
        let closer = char::from(closer);
        let found = standing_at(self.cursor.text(), comma);
        let fault = self.fault(format!("`,` or `{closer}` is needed here, not {found}"));
        Err(match self.cursor.peek() {
            Some(b'"' | b'{' | b'[' | b'0'..=b'9') => {
                fault.mended_by("is a comma missing before it?")
            }
            Some(b'}' | b']') => fault.mended_by(format!("close with `{closer}`")),
            _ => fault,
        })
    }

    fn unclosed(&self) -> Fault {
        let (at, opener, closer) = match self.open.last() {
            Some(open) if open.names.is_some() => (open.at, "`{`", "}"),
            Some(open) => (open.at, "`[`", "]"),
            None => (0, "the value", "}"),
        };
        Fault::unclosed(self.cursor.text(), at, opener, closer)
    }

    /// Reads a string and gives what it means.
    fn string(&mut self) -> Result<Cow<'t, str>, Fault> {
        let start = self.cursor.at();
        self.cursor.bump();
        let mut is_plain = true;
        loop {
            self.cursor
                .skip_while(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
            match self.cursor.peek() {
                Some(b'"') => {
                    self.cursor.bump();
                    break;
                }
                Some(b'\\') => {
                    is_plain = false;
                    self.escape()?;
                }
                Some(b'\n' | b'\r') | None => {
                    return Err(Fault::new(start, "a string is not closed on its line")
                        .mended_by("close it with `\"`; a line end is written `\\n`"));
                }
                Some(byte) => {
                    return Err(self
                        .fault(format!(
                            "a control character (0x{byte:02x}) stands in a string"
                        ))
                        .mended_by(format!("write it as `\\u{byte:04x}`")));
                }
            }
        }
        let raw = self.cursor.since(start);
        if !is_plain && let Ok(meaning) = serde_json::from_str::<String>(raw) {
            return Ok(Cow::Owned(meaning));
        }
        let inside = raw.get(1..raw.len().saturating_sub(1));
        Ok(Cow::Borrowed(inside.unwrap_or_default()))
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        self.cursor.bump();
        match self.cursor.bump() {
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => Ok(()),
            Some('u') => {
                let is_digit = |ahead| {
                    let byte: Option<u8> = self.cursor.peek_at(ahead);
                    byte.is_some_and(|byte| byte.is_ascii_hexdigit())
                };
                if (0..4).all(is_digit) {
                    self.cursor.go(self.cursor.at() + 4);
                    return Ok(());
                }
                Err(Fault::new(start, "`\\u` needs four hexadecimal digits")
                    .mended_by("write it like `\\u00e9`"))
            }
            Some(_) => {
                let found = quote(self.cursor.since(start));
                Err(Fault::new(start, format!("{found} is no escape in JSON"))
                    .mended_by("write a backslash as `\\\\`"))
            }
            None => Err(Fault::new(start, "the text ends in the middle of a string")),
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        let raw = self.cursor.take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
        });
        if is_number(raw) {
            return Ok(());
        }
        let fault = Fault::new(start, format!("{} is no number in JSON", quote(raw)));
        let digits = raw.trim_start_matches('-');
        let is_long = digits.len() > 1 && digits.bytes().all(|byte| byte.is_ascii_digit());
        Err(if is_long {
            fault.mended_by("remove the zeros before it, or put it in quotes")
        } else if raw == "-Infinity" {
            fault.mended_by("write it as a string, or as `null`")
        } else {
            fault
        })
    }

    fn word(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        let word = self
            .cursor
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'+' | b'.'));
        match word {
            "true" | "false" | "null" => return Ok(()),
            "" => {}
            "NaN" | "Infinity" | "+Infinity" => {
                return Err(Fault::new(start, format!("`{word}` is no value in JSON"))
                    .mended_by("write it as a string, or as `null`"));
            }
            "True" | "False" | "None" | "undefined" | "nil" | "TRUE" | "FALSE" | "NULL" => {
                return Err(Fault::new(start, format!("`{word}` is no value in JSON"))
                    .mended_by("JSON has `true`, `false` and `null`"));
            }
            word => {
                return Err(
                    Fault::new(start, format!("{} is no value in JSON", quote(word)))
                        .mended_by("put texts in double quotes"),
                );
            }
        }
        let found = standing_at(self.cursor.text(), start);
        let fault = Fault::new(start, format!("a value is needed here, not {found}"));
        Err(match self.cursor.peek() {
            Some(b'\'') => fault.mended_by("put texts in double quotes"),
            Some(b']' | b'}' | b',') => fault.mended_by("remove a comma, or add the value"),
            _ => fault,
        })
    }
}

/// Two places with the same name.
pub(super) fn twice(text: &str, first: usize, second: usize, key: &str) -> Finding {
    let (first, second) = (Place::of(text, first), Place::of(text, second));
    let lines = if first.line == second.line {
        format!("both on line {}", first.line)
    } else {
        format!("line {} and line {}", first.line, second.line)
    };
    Finding::new(format!("the key {} stands twice: {lines}", quote(key)))
        .at(second)
        .of_key(key)
        .mended_by("remove one of the two")
}

fn is_number(raw: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Most numbers are plain.
    if digits(raw) {
        return raw == "0" || !raw.starts_with('0');
    }
    let raw = raw.strip_prefix('-').unwrap_or(raw);
    let (mantissa, exponent) = match raw.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (raw, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent
            .is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}
