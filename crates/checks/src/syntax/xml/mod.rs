//! XML 1.0: whether a text is well-formed.
//!
//! Entities are looked up, never expanded, and nothing is fetched: a text of a billion laughs is as cheap as any other.
//! With a DTD elsewhere an entity that nobody here declares may be declared there, so it is let pass.

mod doctype;
mod markup;

use std::collections::HashSet;

use super::DEPTH_MAX;
use super::cursor::Cursor;
use super::fault::{Fault, quote, standing_at};
use crate::{Finding, Place};

pub(super) fn check(text: &str) -> Vec<Finding> {
    let mut reader = Reader {
        cursor: Cursor::new(text),
        open: Vec::new(),
        entities: HashSet::new(),
        is_declared_elsewhere: false,
    };
    match reader.document() {
        Ok(()) => Vec::new(),
        Err(fault) => vec![fault.finding(text)],
    }
}

struct Reader<'t> {
    cursor: Cursor<'t>,
    /// The names and places of the elements that are not closed yet.
    open: Vec<(&'t str, usize)>,
    /// The names of the entities that the text declares.
    entities: HashSet<&'t str>,
    is_declared_elsewhere: bool,
}

impl<'t> Reader<'t> {
    fn fault(&self, found: impl Into<String>) -> Fault {
        Fault::new(self.cursor.at(), found)
    }

    fn document(&mut self) -> Result<(), Fault> {
        self.declaration()?;
        self.beside_root(true)?;
        if self.cursor.is_done() {
            return Err(self
                .fault("has no element")
                .mended_by("XML needs one element around everything"));
        }
        self.element()?;
        while let Some((name, at)) = self.open.last().copied() {
            self.content(name, at)?;
        }
        self.beside_root(false)?;
        if self.cursor.is_done() {
            return Ok(());
        }
        Err(self
            .fault("a second element stands behind the first")
            .mended_by("put one element around both"))
    }

    /// Reads `<?xml …?>`, if the text begins with it.
    fn declaration(&mut self) -> Result<(), Fault> {
        let is_there = self.cursor.sees("<?xml")
            && self
                .cursor
                .peek_at(5)
                .is_some_and(|byte| byte.is_ascii_whitespace());
        if !is_there {
            return Ok(());
        }
        let start = self.cursor.at();
        let Some(inside) = self.cursor.skip_behind("?>") else {
            return Err(Fault::unclosed(self.cursor.text(), start, "`<?xml`", "?>"));
        };
        if is_declaration(inside.get("<?xml".len()..).unwrap_or_default()) {
            return Ok(());
        }
        Err(Fault::new(start, "the XML declaration cannot be read")
            .mended_by("write `<?xml version=\"1.0\" encoding=\"UTF-8\"?>`"))
    }

    /// Reads what may stand before and behind the root element.
    fn beside_root(&mut self, is_before: bool) -> Result<(), Fault> {
        loop {
            self.cursor.skip_space();
            let at = self.cursor.at();
            if self.cursor.sees("<!--") {
                self.comment()?;
            } else if self.cursor.sees("<?") {
                self.instruction()?;
            } else if is_before && self.cursor.sees("<!DOCTYPE") {
                self.doctype()?;
            } else if self.cursor.sees("</") {
                return Err(self.fault("an element is closed that was not opened"));
            } else if self.cursor.is_done() || self.cursor.sees("<") {
                return Ok(());
            } else {
                let found = standing_at(self.cursor.text(), at);
                return Err(self
                    .fault(format!("{found} stands outside of the root element"))
                    .mended_by("XML has text only inside of elements"));
            }
        }
    }

    /// Reads what stands in an element: text up to the next markup, and the markup.
    fn content(&mut self, name: &'t str, at: usize) -> Result<(), Fault> {
        self.characters()?;
        if self.cursor.is_done() {
            let text = self.cursor.text();
            let what = format!("the element {}", quote(&format!("<{name}>")));
            return Err(Fault::unclosed(text, at, &what, &format!("</{name}>")));
        }
        if self.cursor.sees("</") {
            self.end_tag(name, at)
        } else if self.cursor.sees("<!--") {
            self.comment()
        } else if self.cursor.sees("<![CDATA[") {
            let start = self.cursor.at();
            match self.cursor.skip_behind("]]>") {
                Some(_) => Ok(()),
                None => Err(Fault::unclosed(
                    self.cursor.text(),
                    start,
                    "`<![CDATA[`",
                    "]]>",
                )),
            }
        } else if self.cursor.sees("<?") {
            self.instruction()
        } else {
            self.element()
        }
    }

    /// Reads text up to the next `<`.
    fn characters(&mut self) -> Result<(), Fault> {
        loop {
            self.cursor
                .take_while(|byte| !matches!(byte, b'<' | b'&' | b']' | 0..=0x1f));
            match self.cursor.peek() {
                None | Some(b'<') => return Ok(()),
                Some(b'&') => self.reference()?,
                Some(b']') if self.cursor.sees("]]>") => {
                    return Err(self
                        .fault("`]]>` stands in a text")
                        .mended_by("write `]]&gt;`"));
                }
                Some(b']' | b'\t' | b'\n' | b'\r') => {
                    self.cursor.bump();
                }
                Some(byte) => return Err(self.control(byte)),
            }
        }
    }

    fn control(&self, byte: u8) -> Fault {
        self.fault(format!(
            "a control character (0x{byte:02x}) stands here, and XML has none"
        ))
        .mended_by("remove it")
    }

    fn end_tag(&mut self, name: &'t str, at: usize) -> Result<(), Fault> {
        let start = self.cursor.at();
        self.cursor.eat("</");
        let found = self.name()?;
        self.cursor.skip_space();
        if !self.cursor.eat(">") {
            return Err(self
                .fault(format!(
                    "`>` is needed behind {}",
                    quote(&format!("</{found}"))
                ))
                .mended_by("close the tag with `>`"));
        }
        if found != name {
            let place = Place::of(self.cursor.text(), at);
            return Err(Fault::new(
                start,
                format!(
                    "`<{name}>` of {place} is closed by {}",
                    quote(&format!("</{found}>"))
                ),
            )
            .mended_by(format!("write `</{name}>`")));
        }
        self.open.pop();
        Ok(())
    }

    fn push(&mut self, name: &'t str, at: usize) -> Result<(), Fault> {
        if self.open.len() >= DEPTH_MAX {
            return Err(Fault::too_deep(at));
        }
        self.open.push((name, at));
        Ok(())
    }
}

/// Whether this is what may stand in `<?xml …?>`: a version, an encoding, and whether it stands alone.
fn is_declaration(inside: &str) -> bool {
    let mut cursor = Cursor::new(inside);
    let mut wanted = ["version", "encoding", "standalone"].into_iter();
    let mut is_first = true;
    loop {
        let before = cursor.at();
        cursor.skip_space();
        if cursor.is_done() {
            return !is_first;
        }
        let is_apart = cursor.at() > before;
        let name = cursor.take_while(|byte| byte.is_ascii_alphabetic());
        let is_known = wanted.any(|wanted| wanted == name);
        if !is_apart || !is_known || (is_first && name != "version") {
            return false;
        }
        is_first = false;
        cursor.skip_space();
        let has_sign = cursor.eat("=");
        cursor.skip_space();
        let mark = if cursor.eat("\"") { "\"" } else { "'" };
        let is_quoted = cursor.before() == Some(b'"') || cursor.eat("'");
        let value = cursor.skip_behind(mark).unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_good = match name {
            "version" => value.starts_with("1."),
            "standalone" => matches!(value, "yes" | "no"),
            _ => value.starts_with(|c: char| c.is_ascii_alphabetic()),
        };
        if !has_sign || !is_quoted || !is_good || !value.chars().all(is_plain) {
            return false;
        }
    }
}
