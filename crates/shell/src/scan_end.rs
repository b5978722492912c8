//! Finds where a command inside a word ends: the parenthesis that belongs to `$(`.
//!
//! Quotes, comments, here-documents and nested expansions are stepped over. A pattern of `case` has a closing
//! parenthesis without an opening one: there the end is found too early, what is inside does not parse, and
//! the verdict is unknown.

use crate::source::{ends_early, is_plain_delimiter};

/// Gives the place of the parenthesis that closes a command which begins at `start`.
pub(crate) fn command_end(chars: &[char], start: usize) -> Result<usize, String> {
    let mut ends = Ends { chars, at: start };
    ends.command()
}

/// Tells whether a text is one group in parentheses: inside of `$(…)` that makes it arithmetic.
pub(crate) fn is_one_group(inner: &[char]) -> Result<bool, String> {
    Ok(inner.first() == Some(&'(') && command_end(inner, 1)? + 1 == inner.len())
}

struct Ends<'a> {
    chars: &'a [char],
    at: usize,
}

impl Ends<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += 1;
        Some(character)
    }

    fn command(&mut self) -> Result<usize, String> {
        let start = self.at;
        let (mut depth, mut before, mut documents) = (1_usize, ' ', Vec::new());
        loop {
            let here = self.at;
            let Some(character) = self.next() else {
                return Err("a substitution is not closed".to_owned());
            };
            match character {
                '\\' => {
                    let _escaped = self.next();
                }
                '\'' => self.up_to('\'', before == '$')?,
                '"' => self.double()?,
                '`' => self.up_to('`', true)?,
                '$' => self.expansion()?,
                '(' => depth += 1,
                ')' => {
                    depth -= 1;
                    if depth == 0 {
                        // In arithmetic `<<` is a shift.
                        let is_done = documents.is_empty() || self.chars.get(start) == Some(&'(');
                        return is_done
                            .then_some(here)
                            .ok_or_else(|| "a here-document has no body".to_owned());
                    }
                }
                '#' if matches!(before, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')') => {
                    while self.peek().is_some_and(|next| next != '\n') {
                        self.at += 1;
                    }
                }
                '<' if self.peek() == Some('<') => {
                    self.at += 1;
                    if self.peek() == Some('<') {
                        self.at += 1;
                    } else {
                        documents.push(self.delimiter()?);
                    }
                }
                '\n' => {
                    for (delimiter, strips_tabs) in documents.drain(..) {
                        self.document(&delimiter, strips_tabs)?;
                    }
                }
                _ => {}
            }
            before = character;
        }
    }

    fn up_to(&mut self, end: char, has_escapes: bool) -> Result<(), String> {
        loop {
            match self.next() {
                Some(character) if character == end => return Ok(()),
                Some('\\') if has_escapes => {
                    let _escaped = self.next();
                }
                Some(_) => {}
                None => return Err("a quote is not closed".to_owned()),
            }
        }
    }

    fn double(&mut self) -> Result<(), String> {
        loop {
            match self.next() {
                Some('"') => return Ok(()),
                Some('\\') => {
                    let _escaped = self.next();
                }
                Some('`') => self.up_to('`', true)?,
                Some('$') => self.expansion()?,
                Some(_) => {}
                None => return Err("a quote is not closed".to_owned()),
            }
        }
    }

    fn expansion(&mut self) -> Result<(), String> {
        match self.peek() {
            Some('(') => {
                self.at = command_end(self.chars, self.at + 1)? + 1;
                Ok(())
            }
            Some('{') => {
                self.at += 1;
                self.braces()
            }
            // `$#` begins no comment.
            Some('#') => {
                self.at += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn braces(&mut self) -> Result<(), String> {
        loop {
            match self.next() {
                Some('}') => return Ok(()),
                Some('\\') => {
                    let _escaped = self.next();
                }
                Some('\'') => return Err("a single quote inside `${…}` is not read".to_owned()),
                Some('"') => self.double()?,
                Some('`') => self.up_to('`', true)?,
                Some('$') => self.expansion()?,
                Some(_) => {}
                None => return Err("`${` is not closed".to_owned()),
            }
        }
    }

    /// Looks at the delimiter of a here-document without stepping over it. In arithmetic it is no delimiter.
    fn delimiter(&self) -> Result<(String, bool), String> {
        let strips_tabs = self.peek() == Some('-');
        let raw: String = self
            .chars
            .iter()
            .skip(self.at + usize::from(strips_tabs))
            .skip_while(|next| matches!(next, ' ' | '\t'))
            .take_while(|next| {
                !matches!(
                    next,
                    ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'
                )
            })
            .collect();
        if !is_plain_delimiter(&raw) {
            return Err("the end of a here-document is not understood".to_owned());
        }
        Ok((raw.replace(['\'', '"', '\\'], ""), strips_tabs))
    }

    /// Steps over the body of a here-document.
    fn document(&mut self, delimiter: &str, strips_tabs: bool) -> Result<(), String> {
        while self.at < self.chars.len() {
            let line: String = self
                .chars
                .iter()
                .skip(self.at)
                .take_while(|next| **next != '\n')
                .collect();
            let length = line.chars().count();
            let trimmed = if strips_tabs {
                line.trim_start_matches('\t')
            } else {
                line.as_str()
            };
            if trimmed == delimiter {
                self.at += length;
                return Ok(());
            }
            // Bash joins lines at a backslash before it looks for the delimiter.
            if ends_early(trimmed, delimiter) {
                break;
            }
            self.at += length + 1;
        }
        Err("a here-document is not closed".to_owned())
    }
}
