//! Strings and here-documents, with the expressions that are filled into them.

use super::Reader;
use crate::syntax::fault::{Fault, quote};

impl Reader<'_> {
    /// Reads a string in double quotes.
    pub(super) fn string(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        self.cursor.eat("\"");
        loop {
            self.cursor
                .take_while(|byte| !matches!(byte, b'"' | b'\\' | b'$' | b'%' | b'\n'));
            match self.cursor.peek() {
                Some(b'"') => {
                    self.cursor.bump();
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(b'$' | b'%') => self.filled_in()?,
                Some(_) | None => {
                    return Err(Fault::new(start, "a string is not closed on its line")
                        .mended_by("close it with `\"`; for several lines write `<<EOT`"));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        self.cursor.bump();
        match self.cursor.bump() {
            Some('n' | 'r' | 't' | '"' | '\\') => Ok(()),
            Some('u' | 'U') => {
                let digits = self.cursor.take_while(|byte| byte.is_ascii_hexdigit());
                if digits.len() >= 4 {
                    return Ok(());
                }
                Err(Fault::new(start, "`\\u` needs four hexadecimal digits"))
            }
            _ => {
                let found = quote(self.cursor.since(start));
                Err(Fault::new(start, format!("{found} is no escape in HCL"))
                    .mended_by("write a backslash as `\\\\`"))
            }
        }
    }

    /// Reads `${…}` or `%{…}`, or the character alone.
    fn filled_in(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        if self.cursor.eat("$${") || self.cursor.eat("%%{") {
            return Ok(());
        }
        let is_directive = self.cursor.sees("%{");
        if !is_directive && !self.cursor.sees("${") {
            self.cursor.bump();
            return Ok(());
        }
        self.cursor.go(at + 2);
        self.cursor.eat("~");
        if is_directive {
            return self.directive(at);
        }
        self.expression(true)?;
        self.skip(true)?;
        self.cursor.eat("~");
        if self.cursor.eat("}") {
            return Ok(());
        }
        if self.cursor.is_done() {
            return Err(Fault::unclosed(self.cursor.text(), at, "`${`", "}"));
        }
        Err(self
            .needs("`}`")
            .mended_by("write `$${` for a `${` that is meant as text"))
    }

    /// Reads `%{ if … }`, `%{ for x in y }`, `%{ else }` and their ends.
    fn directive(&mut self, at: usize) -> Result<(), Fault> {
        self.skip(true)?;
        let word = self.identifier();
        match word {
            Some("if") => self.expression(true)?,
            Some("for") => loop {
                self.skip(true)?;
                self.identifier().ok_or_else(|| self.needs("a name"))?;
                self.skip(true)?;
                if self.cursor.eat(",") {
                    continue;
                }
                if self.identifier() != Some("in") {
                    return Err(self.needs("`in`"));
                }
                self.expression(true)?;
                break;
            },
            Some("else" | "endif" | "endfor") => {}
            _ => {
                return Err(Fault::new(at, "`%{` begins no directive")
                    .mended_by("write `%%{` for a `%{` that is meant as text"));
            }
        }
        self.skip(true)?;
        self.cursor.eat("~");
        if self.cursor.eat("}") {
            return Ok(());
        }
        Err(self.needs("`}`"))
    }

    /// Reads `<<EOT`, its lines, and the line that ends it, of which the line end stays.
    pub(super) fn heredoc(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        self.cursor.eat("<<");
        self.cursor.eat("-");
        let Some(mark) = self.identifier() else {
            return Err(self.needs("the word that ends the here-document"));
        };
        let behind = self.cursor.skip_line().trim();
        if !behind.is_empty() {
            return Err(
                Fault::new(start, format!("{} stands behind `<<{mark}`", quote(behind)))
                    .mended_by("begin a new line behind it"),
            );
        }
        loop {
            if !self.cursor.eat("\n") {
                let what = format!("`<<{mark}`");
                return Err(Fault::unclosed(self.cursor.text(), start, &what, mark));
            }
            let line = self.cursor.rest().split('\n').next().unwrap_or_default();
            if line.trim() == mark {
                self.cursor.skip_blanks();
                self.cursor.eat(mark);
                return Ok(());
            }
            self.heredoc_line()?;
        }
    }

    /// Reads up to the end of the line, or of the line on which what is filled in ends.
    fn heredoc_line(&mut self) -> Result<(), Fault> {
        loop {
            self.cursor
                .take_while(|byte| !matches!(byte, b'$' | b'%' | b'\n'));
            match self.cursor.peek() {
                Some(b'$' | b'%') => self.filled_in()?,
                Some(_) | None => return Ok(()),
            }
        }
    }
}
