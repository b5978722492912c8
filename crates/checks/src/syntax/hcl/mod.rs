//! HCL, as Terraform, Packer and others have it: bodies of attributes and blocks.
//!
//! Expressions are in `expression`, strings and what is filled into them in `template`.

mod expression;
mod template;

use std::collections::HashMap;

use super::DEPTH_MAX;
use super::cursor::Cursor;
use super::fault::{Fault, quote, standing_at};
use super::json::twice;
use crate::Finding;

pub(super) fn check(text: &str) -> Vec<Finding> {
    let mut reader = Reader {
        cursor: Cursor::new(text),
        depth: 0,
        twice: Vec::new(),
    };
    if let Err(fault) = reader.body(None) {
        reader.twice.push(fault.finding(text));
    }
    reader.twice
}

struct Reader<'t> {
    cursor: Cursor<'t>,
    depth: usize,
    twice: Vec<Finding>,
}

impl<'t> Reader<'t> {
    fn fault(&self, found: impl Into<String>) -> Fault {
        Fault::new(self.cursor.at(), found)
    }

    /// What is wrong here: something else is needed.
    fn needs(&self, what: &str) -> Fault {
        let found = standing_at(self.cursor.text(), self.cursor.at());
        self.fault(format!("{what} is needed here, not {found}"))
    }

    /// Goes one level down, if there is room.
    fn enter(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Fault::too_deep(self.cursor.at()));
        }
        Ok(())
    }

    /// Reads attributes and blocks, up to the end of the text or the closing brace.
    fn body(&mut self, opened: Option<usize>) -> Result<(), Fault> {
        self.enter()?;
        let mut names: HashMap<&str, usize> = HashMap::new();
        loop {
            self.skip(true)?;
            if self.cursor.is_done() {
                return match opened {
                    Some(at) => Err(Fault::unclosed(self.cursor.text(), at, "`{`", "}")),
                    None => Ok(()),
                };
            }
            if self.cursor.peek() == Some(b'}') {
                if opened.is_none() {
                    return Err(self
                        .fault("`}` closes nothing")
                        .mended_by("remove it, or open a block before"));
                }
                self.cursor.bump();
                self.depth -= 1;
                return Ok(());
            }
            let at = self.cursor.at();
            let name = self
                .identifier()
                .ok_or_else(|| self.needs("the name of an attribute or a block"))?;
            self.skip(false)?;
            if self.cursor.peek() == Some(b'=') && self.cursor.peek_at(1) != Some(b'=') {
                self.cursor.bump();
                if let Some(first) = names.insert(name, at) {
                    self.twice.push(twice(self.cursor.text(), first, at, name));
                }
                self.skip(false)?;
                self.expression(false)?;
            } else {
                self.block(name)?;
            }
            self.line_end(opened.is_some())?;
        }
    }

    /// Reads the labels and the body of a block.
    fn block(&mut self, name: &str) -> Result<(), Fault> {
        loop {
            self.skip(false)?;
            match self.cursor.peek() {
                Some(b'"') => self.string()?,
                Some(b'{') => {
                    let at = self.cursor.at();
                    self.cursor.bump();
                    return self.body(Some(at));
                }
                _ if self.identifier().is_some() => {}
                _ => {
                    let what = format!("`=` or `{{` behind {}", quote(name));
                    return Err(self
                        .needs(&what)
                        .mended_by("write `name = value` or `name { … }`"));
                }
            }
        }
    }

    /// An attribute or a block ends with its line, or with the block around it.
    fn line_end(&mut self, is_inside: bool) -> Result<(), Fault> {
        self.skip(false)?;
        match self.cursor.peek() {
            None | Some(b'\n' | b'\r') => Ok(()),
            Some(b'}') if is_inside => Ok(()),
            Some(_) => Err(self
                .needs("the end of the line")
                .mended_by("put each attribute and each block on its own line")),
        }
    }

    /// Skips blanks and comments, and line ends if they mean nothing here.
    fn skip(&mut self, over_lines: bool) -> Result<(), Fault> {
        loop {
            self.cursor.skip_blanks();
            let start = self.cursor.at();
            match self.cursor.peek() {
                Some(b'\n' | b'\r') if over_lines => {
                    self.cursor.bump();
                }
                Some(b'\r') if self.cursor.peek_at(1) == Some(b'\n') => return Ok(()),
                Some(b'#') => {
                    self.cursor.skip_line();
                }
                Some(b'/') if self.cursor.sees("//") => {
                    self.cursor.skip_line();
                }
                Some(b'/') if self.cursor.eat("/*") => {
                    if self.cursor.skip_behind("*/").is_none() {
                        let text = self.cursor.text();
                        return Err(Fault::unclosed(text, start, "the comment", "*/"));
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// Takes a name, if one stands here.
    fn identifier(&mut self) -> Option<&'t str> {
        let begins = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii();
        self.cursor.peek().filter(|byte| begins(*byte))?;
        let goes_on = |byte: u8| begins(byte) || byte.is_ascii_digit() || byte == b'-';
        Some(self.cursor.take_while(goes_on))
    }
}
