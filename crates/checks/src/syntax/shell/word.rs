//! Words: quotes, expansions, and the commands inside of them.

use super::Reader;
use crate::syntax::fault::Fault;

/// Where a word is read: it decides what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// Among the words of a command.
    Command,
    /// A pattern behind `=~`, in which brackets and `|` are part of the word.
    Regex,
}

impl Reader<'_> {
    /// Reads a word of a command.
    pub(super) fn word(&mut self) -> Result<(), Fault> {
        self.word_within(Within::Command)
    }

    pub(super) fn word_within(&mut self, within: Within) -> Result<(), Fault> {
        let start = self.cursor.at();
        let mut brackets = 0_usize;
        while let Some(byte) = self.cursor.peek() {
            match byte {
                b'<' | b'>' if self.cursor.peek_at(1) == Some(b'(') => {
                    self.cursor.bump();
                    self.in_parentheses()?;
                }
                b'(' if within == Within::Regex => {
                    self.cursor.bump();
                    brackets += 1;
                }
                b')' if within == Within::Regex && brackets > 0 => {
                    self.cursor.bump();
                    brackets -= 1;
                }
                b'|' | b'<' | b'>' if within == Within::Regex => {
                    self.cursor.bump();
                }
                b' ' | b'\t' if brackets > 0 => {
                    self.cursor.bump();
                }
                b'(' if self.is_pattern(start) => self.pattern()?,
                b'(' if is_assignment(self.cursor.since(start)) => self.array()?,
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')' => break,
                b'[' if is_name(self.cursor.since(start)) => self.subscript(),
                _ => self.part()?,
            }
        }
        Ok(())
    }

    /// Reads one character, or one quote or expansion.
    fn part(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        match self.cursor.peek() {
            Some(b'\\') => {
                self.cursor.bump();
                self.cursor.bump();
            }
            Some(b'\'') => {
                self.cursor.bump();
                if self.cursor.skip_behind("'").is_none() {
                    return Err(open_quote(at, "'"));
                }
            }
            Some(b'"') => self.double()?,
            Some(b'`') => self.backtick()?,
            Some(b'$') => self.dollar(false)?,
            Some(_) => {
                self.cursor.bump();
            }
            None => {}
        }
        Ok(())
    }

    fn double(&mut self) -> Result<(), Fault> {
        self.enter()?;
        let at = self.cursor.at();
        self.cursor.bump();
        loop {
            self.cursor
                .take_while(|byte| !matches!(byte, b'"' | b'\\' | b'$' | b'`'));
            match self.cursor.peek() {
                Some(b'"') => {
                    self.cursor.bump();
                    self.depth -= 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.cursor.bump();
                    self.cursor.bump();
                }
                Some(b'`') => self.backtick()?,
                Some(_) => self.dollar(true)?,
                None => return Err(open_quote(at, "\"")),
            }
        }
    }

    fn backtick(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        self.cursor.bump();
        loop {
            self.cursor.take_while(|byte| !matches!(byte, b'`' | b'\\'));
            match self.cursor.bump() {
                Some('`') => return Ok(()),
                Some(_) => {
                    self.cursor.bump();
                }
                None => return Err(open_quote(at, "`")),
            }
        }
    }

    /// Reads what `$` begins, or `$` alone.
    fn dollar(&mut self, in_quotes: bool) -> Result<(), Fault> {
        let at = self.cursor.at();
        self.cursor.bump();
        match self.cursor.peek() {
            Some(b'(') => {
                if self.cursor.sees("((") && self.arithmetic() {
                    return Ok(());
                }
                self.in_parentheses()
            }
            Some(b'{') => self.parameter(at, in_quotes),
            Some(b'\'') if !in_quotes => {
                self.cursor.bump();
                loop {
                    self.cursor
                        .take_while(|byte| !matches!(byte, b'\'' | b'\\'));
                    match self.cursor.bump() {
                        Some('\'') => return Ok(()),
                        Some(_) => {
                            self.cursor.bump();
                        }
                        None => return Err(open_quote(at, "'")),
                    }
                }
            }
            // `$#` is no comment, `$$` no second expansion.
            Some(b'#' | b'$' | b'!' | b'?' | b'*' | b'@' | b'-') => {
                self.cursor.bump();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reads `(…)` around commands, of which `$()` may have none.
    pub(super) fn in_parentheses(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        self.cursor.bump();
        self.list()?;
        self.closes(at)
    }

    /// Takes the parenthesis that closes another.
    pub(super) fn closes(&mut self, at: usize) -> Result<(), Fault> {
        self.skip_lines();
        if self.cursor.eat(")") {
            return Ok(());
        }
        if self.cursor.is_done() {
            return Err(Fault::unclosed(self.cursor.text(), at, "`(`", ")"));
        }
        let found = crate::syntax::fault::standing_at(self.cursor.text(), self.cursor.at());
        let place = crate::Place::of(self.cursor.text(), at);
        Err(self.fault(format!(
            "{found} stands before the `(` of {place} is closed"
        )))
    }

    /// Reads `((…))`, if that is what it is: the two closing parentheses stand together.
    pub(super) fn arithmetic(&mut self) -> bool {
        let start = self.cursor.clone();
        let mut open = 0_usize;
        loop {
            self.cursor.take_while(|byte| {
                !matches!(byte, b'(' | b')' | b'\\' | b'\'' | b'"' | b'`' | b'$')
            });
            let is_read = match self.cursor.peek() {
                Some(b'(') => {
                    self.cursor.bump();
                    open += 1;
                    true
                }
                Some(b')') => {
                    self.cursor.bump();
                    open -= 1;
                    if open == 1 {
                        let is_end = self.cursor.eat(")");
                        if !is_end {
                            self.cursor = start;
                        }
                        return is_end;
                    }
                    open > 0
                }
                Some(b'\'' | b'$') => {
                    self.cursor.bump();
                    true
                }
                Some(_) => self.skip_flat(),
                None => false,
            };
            if !is_read {
                self.cursor = start;
                return false;
            }
        }
    }

    /// Takes a character, or a quote without a look into it: what is tried must cost little. Tells whether it was closed.
    fn skip_flat(&mut self) -> bool {
        match self.cursor.bump() {
            Some('\\') => self.cursor.bump().is_some(),
            Some('\'') => self.cursor.skip_behind("'").is_some(),
            Some(mark @ ('"' | '`')) => loop {
                self.cursor
                    .take_while(|byte| !matches!(byte, b'"' | b'`' | b'\\'));
                match self.cursor.bump() {
                    Some('\\') => {
                        self.cursor.bump();
                    }
                    Some(found) if found == mark => return true,
                    Some(_) => {}
                    None => return false,
                }
            },
            Some(_) => true,
            None => false,
        }
    }

    /// Reads `${…}`, standing at the brace.
    fn parameter(&mut self, at: usize, in_quotes: bool) -> Result<(), Fault> {
        self.enter()?;
        self.cursor.bump();
        let name = self
            .cursor
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'!'));
        if name.is_empty() {
            // `${#x}` and `${'x'}`: what stands first is no operator.
            self.cursor.eat("#");
        }
        // Behind these operators a pattern follows, and quotes protect in it. Behind others they are plain.
        let is_pattern = matches!(self.cursor.peek(), Some(b'#' | b'%' | b'/' | b'^' | b','));
        loop {
            match self.cursor.peek() {
                Some(b'}') => {
                    self.cursor.bump();
                    self.depth -= 1;
                    return Ok(());
                }
                Some(b'\'') if in_quotes && !is_pattern => {
                    self.cursor.bump();
                }
                Some(b'"') if in_quotes => self.double()?,
                Some(b'$') => self.dollar(in_quotes)?,
                Some(_) => self.part()?,
                None => return Err(Fault::unclosed(self.cursor.text(), at, "`${`", "}")),
            }
        }
    }

    /// Whether `(` belongs to an extended glob.
    fn is_pattern(&self, start: usize) -> bool {
        self.cursor.at() > start
            && matches!(self.cursor.before(), Some(b'?' | b'*' | b'+' | b'@' | b'!'))
            && !self.cursor.since(start).ends_with("$?")
    }

    fn pattern(&mut self) -> Result<(), Fault> {
        self.enter()?;
        let at = self.cursor.at();
        self.cursor.bump();
        loop {
            match self.cursor.peek() {
                Some(b')') => {
                    self.cursor.bump();
                    self.depth -= 1;
                    return Ok(());
                }
                Some(b'(') => self.pattern()?,
                Some(_) => self.part()?,
                None => return Err(Fault::unclosed(self.cursor.text(), at, "`(`", ")")),
            }
        }
    }

    /// Reads the list of an array.
    fn array(&mut self) -> Result<(), Fault> {
        self.enter()?;
        let at = self.cursor.at();
        self.cursor.bump();
        loop {
            self.skip_lines();
            match self.cursor.peek() {
                Some(b')') => {
                    self.cursor.bump();
                    self.depth -= 1;
                    return Ok(());
                }
                None => return Err(Fault::unclosed(self.cursor.text(), at, "`(`", ")")),
                Some(b'[') => {
                    self.subscript();
                    self.word()?;
                }
                Some(b';' | b'&' | b'|' | b'(') => {
                    let found =
                        crate::syntax::fault::standing_at(self.cursor.text(), self.cursor.at());
                    return Err(self.fault(format!("{found} stands in an array")));
                }
                Some(b'<' | b'>') if self.cursor.peek_at(1) != Some(b'(') => {
                    return Err(self.fault("a redirection stands in an array"));
                }
                Some(_) => self.word()?,
            }
        }
    }

    /// Reads `[…]` behind a name, if `=` follows: then blanks may stand in it. Else only the bracket.
    fn subscript(&mut self) {
        let start = self.cursor.clone();
        let mut open = 0_usize;
        loop {
            match self.cursor.peek() {
                Some(b'[') => {
                    self.cursor.bump();
                    open += 1;
                }
                Some(b']') => {
                    self.cursor.bump();
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                None | Some(b'\n') => break,
                Some(_) => {
                    if !self.skip_flat() {
                        break;
                    }
                }
            }
        }
        if open > 0 || !(self.cursor.sees("=") || self.cursor.sees("+=")) {
            self.cursor = start;
            self.cursor.bump();
        }
    }
}

/// A quote that is never closed is told where it begins: what follows is one long text.
fn open_quote(at: usize, mark: &str) -> Fault {
    if mark == "`" {
        return Fault::new(at, "a backtick is not closed").mended_by("close it, or write `$(…)`");
    }
    Fault::new(at, format!("the quote `{mark}` is not closed"))
        .mended_by(format!("close it with `{mark}`"))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether an assignment stands here whose value may be a list.
fn is_assignment(text: &str) -> bool {
    let name = text
        .strip_suffix('=')
        .map(|text| text.strip_suffix('+').unwrap_or(text));
    name.is_some_and(|name| is_name(name) || name.ends_with(']'))
}
