//! Redirections and here-documents.

use super::{Document, Reader};
use crate::syntax::fault::{Fault, standing_at};

/// Operators that a file name or a number follows, the longer ones first.
const OPERATORS: [&str; 11] = [
    "<<<", "&>>", "&>", ">>", ">|", ">&", "<&", "<>", "<", ">", "",
];

impl Reader<'_> {
    pub(super) fn redirections(&mut self) -> Result<(), Fault> {
        loop {
            self.blanks();
            if !self.redirection()? {
                return Ok(());
            }
        }
    }

    /// Reads one redirection, if one stands here.
    pub(super) fn redirection(&mut self) -> Result<bool, Fault> {
        let start = self.cursor.at();
        let digits = self.cursor.take_while(|byte| byte.is_ascii_digit());
        if digits.is_empty() && self.cursor.peek() == Some(b'{') {
            // `{name}>file`
            let rest = self.cursor.rest();
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '{'));
            let behind = end.and_then(|end| rest.get(end..)).unwrap_or_default();
            if behind.starts_with("}<") || behind.starts_with("}>") {
                self.cursor.go(start + end.unwrap_or_default() + 1);
            }
        }
        let is_process = self.cursor.sees("<(") || self.cursor.sees(">(");
        let is_both = self.cursor.sees("&>") && digits.is_empty();
        let begins = matches!(self.cursor.peek(), Some(b'<' | b'>')) && !is_process || is_both;
        if !begins {
            self.cursor.go(start);
            return Ok(false);
        }
        if self.cursor.sees("<<") && !self.cursor.sees("<<<") {
            self.begin_document()?;
            return Ok(true);
        }
        let operator = OPERATORS.into_iter().find(|text| self.cursor.eat(text));
        self.blanks();
        let is_process = self.cursor.sees("<(") || self.cursor.sees(">(");
        let ends = matches!(
            self.cursor.peek(),
            None | Some(b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
        );
        if ends && !is_process {
            let found = standing_at(self.cursor.text(), self.cursor.at());
            let operator = operator.unwrap_or_default();
            return Err(self.fault(format!("a file is needed behind `{operator}`, not {found}")));
        }
        self.word()?;
        Ok(true)
    }

    fn begin_document(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        self.cursor.eat("<<");
        let strips_tabs = self.cursor.eat("-");
        self.blanks();
        let start = self.cursor.at();
        if matches!(
            self.cursor.peek(),
            None | Some(b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
        ) {
            return Err(self
                .fault("a here-document has no word that ends it")
                .mended_by("write `<<EOF`"));
        }
        self.word()?;
        let raw = self.cursor.since(start);
        self.documents.push(Document {
            at,
            mark: raw.replace(['"', '\'', '\\'], ""),
            raw,
            strips_tabs,
        });
        Ok(())
    }
}
