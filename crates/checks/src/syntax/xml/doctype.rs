//! `<!DOCTYPE …>`: read to its end, for the names of entities only.

use super::Reader;
use crate::syntax::fault::{Fault, standing_at};

impl Reader<'_> {
    pub(super) fn doctype(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        let unclosed = |text| Fault::unclosed(text, start, "`<!DOCTYPE`", ">");
        self.cursor.eat("<!DOCTYPE");
        self.cursor.skip_space();
        self.name()?;
        loop {
            self.cursor.skip_space();
            match self.cursor.peek() {
                Some(b'>') => {
                    self.cursor.bump();
                    return Ok(());
                }
                Some(b'[') => {
                    self.cursor.bump();
                    self.subset(start)?;
                }
                Some(b'"' | b'\'') => self.literal(start)?,
                Some(b'S' | b'P') if self.cursor.eat("SYSTEM") || self.cursor.eat("PUBLIC") => {
                    self.is_declared_elsewhere = true;
                }
                Some(_) => {
                    let found = standing_at(self.cursor.text(), self.cursor.at());
                    return Err(self.fault(format!("{found} stands in the document type")));
                }
                None => return Err(unclosed(self.cursor.text())),
            }
        }
    }

    /// Reads what stands in brackets, up to and with the closing one.
    fn subset(&mut self, start: usize) -> Result<(), Fault> {
        loop {
            self.cursor.skip_space();
            if self.cursor.eat("]") {
                return Ok(());
            }
            if self.cursor.sees("<!--") {
                self.comment()?;
            } else if self.cursor.sees("<?") {
                self.instruction()?;
            } else if self.cursor.eat("%") {
                // What a parameter entity brings is not known here.
                self.is_declared_elsewhere = true;
                self.name()?;
                self.cursor.eat(";");
            } else if self.cursor.eat("<!ENTITY") {
                self.entity(start)?;
            } else if self.cursor.eat("<!") {
                self.rest_of_declaration(start)?;
            } else if self.cursor.is_done() {
                return Err(Fault::unclosed(
                    self.cursor.text(),
                    start,
                    "`<!DOCTYPE`",
                    "]>",
                ));
            } else {
                let found = standing_at(self.cursor.text(), self.cursor.at());
                return Err(self.fault(format!("{found} stands in the document type")));
            }
        }
    }

    fn entity(&mut self, start: usize) -> Result<(), Fault> {
        self.cursor.skip_space();
        if self.cursor.eat("%") {
            self.cursor.skip_space();
            self.name()?;
        } else {
            let name = self.name()?;
            self.entities.insert(name);
        }
        self.rest_of_declaration(start)
    }

    fn rest_of_declaration(&mut self, start: usize) -> Result<(), Fault> {
        loop {
            self.cursor
                .take_while(|byte| !matches!(byte, b'>' | b'"' | b'\'' | b'<'));
            match self.cursor.peek() {
                Some(b'>') => {
                    self.cursor.bump();
                    return Ok(());
                }
                Some(b'"' | b'\'') => self.literal(start)?,
                Some(_) => return Err(self.fault("a declaration is not closed before this `<`")),
                None => {
                    return Err(Fault::unclosed(
                        self.cursor.text(),
                        start,
                        "`<!DOCTYPE`",
                        "]>",
                    ));
                }
            }
        }
    }

    fn literal(&mut self, start: usize) -> Result<(), Fault> {
        let mark = if self.cursor.eat("\"") { "\"" } else { "'" };
        if mark == "'" {
            self.cursor.eat(mark);
        }
        match self.cursor.skip_behind(mark) {
            Some(_) => Ok(()),
            None => Err(Fault::unclosed(
                self.cursor.text(),
                start,
                "a quote in `<!DOCTYPE`",
                mark,
            )),
        }
    }
}
