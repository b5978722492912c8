//! Tags, attributes, references, comments and instructions.

use std::collections::HashSet;

use super::Reader;
use crate::syntax::fault::{Fault, quote, standing_at};

/// The entities that every reader knows.
const PREDEFINED: [&str; 5] = ["lt", "gt", "amp", "apos", "quot"];

impl<'t> Reader<'t> {
    /// Reads a start tag, or a tag that closes itself.
    pub(super) fn element(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        self.cursor.eat("<");
        let name = self.name()?;
        let mut names = HashSet::new();
        loop {
            let before = self.cursor.at();
            self.cursor.skip_space();
            let is_apart = self.cursor.at() > before;
            match self.cursor.peek() {
                Some(b'>') => {
                    self.cursor.bump();
                    return self.push(name, start);
                }
                Some(b'/') if self.cursor.eat("/>") => return Ok(()),
                None | Some(b'<') => {
                    return Err(Fault::new(
                        start,
                        format!("the tag {} is not closed", quote(&format!("<{name}"))),
                    )
                    .mended_by("close it with `>`"));
                }
                Some(_) if !is_apart => {
                    let found = standing_at(self.cursor.text(), self.cursor.at());
                    return Err(self.fault(format!("{found} stands in a tag")));
                }
                Some(_) => {}
            }
            let at = self.cursor.at();
            let attribute = self.attribute()?;
            if !names.insert(attribute) {
                return Err(Fault::new(
                    at,
                    format!("the attribute {} stands twice", quote(attribute)),
                )
                .mended_by("remove one of the two"));
            }
        }
    }

    fn attribute(&mut self) -> Result<&'t str, Fault> {
        let name = self.name()?;
        self.cursor.skip_space();
        if !self.cursor.eat("=") {
            return Err(self
                .fault(format!("the attribute {} has no value", quote(name)))
                .mended_by(format!("write `{name}=\"…\"`")));
        }
        self.cursor.skip_space();
        let start = self.cursor.at();
        let Some(mark @ (b'"' | b'\'')) = self.cursor.peek() else {
            return Err(self
                .fault(format!("the value of {} is not in quotes", quote(name)))
                .mended_by("put it in double quotes"));
        };
        self.cursor.bump();
        loop {
            self.cursor.take_while(|byte| {
                byte != mark && !matches!(byte, b'<' | b'&' | 0..=0x08 | 0x0b | 0x0c | 0x0e..=0x1f)
            });
            match self.cursor.peek() {
                Some(byte) if byte == mark => {
                    self.cursor.bump();
                    return Ok(name);
                }
                Some(b'&') => self.reference()?,
                Some(b'<') => {
                    return Err(self
                        .fault(format!("`<` stands in the value of {}", quote(name)))
                        .mended_by("write `&lt;`, or close the quote before it"));
                }
                Some(byte) => return Err(self.control(byte)),
                None => {
                    let text = self.cursor.text();
                    let mark = char::from(mark).to_string();
                    return Err(Fault::unclosed(text, start, "the quote", &mark));
                }
            }
        }
    }

    /// Reads `&name;`, `&#10;` or `&#xa;`.
    pub(super) fn reference(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        self.cursor.eat("&");
        let name = self
            .cursor
            .take_while(|byte| is_name_byte(byte) || byte == b'#');
        if name.is_empty() || !self.cursor.eat(";") {
            return Err(
                Fault::new(start, "`&` begins a reference that does not end in `;`")
                    .mended_by("write `&amp;`"),
            );
        }
        if let Some(number) = name.strip_prefix('#') {
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            let is_allowed = |c: &char| {
                *c >= ' ' && !matches!(c, '\u{fffe}' | '\u{ffff}') || "\t\n\r".contains(*c)
            };
            return match code.ok().and_then(char::from_u32).filter(is_allowed) {
                Some(_) => Ok(()),
                None => Err(Fault::new(
                    start,
                    format!("`&{name};` is no character of XML"),
                )),
            };
        }
        if PREDEFINED.contains(&name) || self.entities.contains(name) || self.is_declared_elsewhere
        {
            return Ok(());
        }
        Err(Fault::new(
            start,
            format!("the entity {} is not defined", quote(&format!("&{name};"))),
        )
        .mended_by("write the character itself, or its number as in `&#160;`"))
    }

    pub(super) fn name(&mut self) -> Result<&'t str, Fault> {
        let at = self.cursor.at();
        let is_start = self.cursor.peek().is_some_and(|byte| {
            byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || !byte.is_ascii()
        });
        if !is_start {
            let found = standing_at(self.cursor.text(), at);
            let fault = self.fault(format!("a name is needed here, not {found}"));
            return Err(match self.cursor.before() {
                Some(b'<') => fault.mended_by("write `&lt;` for a `<` in a text"),
                _ => fault,
            });
        }
        Ok(self.cursor.take_while(is_name_byte))
    }

    pub(super) fn comment(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        self.cursor.eat("<!--");
        let Some(inside) = self.cursor.skip_behind("--") else {
            return Err(Fault::unclosed(
                self.cursor.text(),
                start,
                "the comment",
                "-->",
            ));
        };
        if self.cursor.eat(">") {
            return Ok(());
        }
        let at = start + "<!--".len() + inside.len();
        Err(Fault::new(at, "`--` stands in a comment")
            .mended_by("write `- -`, or close it with `-->`"))
    }

    pub(super) fn instruction(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        self.cursor.eat("<?");
        let name = self.name()?;
        if name.eq_ignore_ascii_case("xml") {
            return Err(
                Fault::new(start, "the XML declaration does not stand at the beginning")
                    .mended_by("let the text begin with it, without a blank before"),
            );
        }
        match self.cursor.skip_behind("?>") {
            Some(_) => Ok(()),
            None => Err(Fault::unclosed(
                self.cursor.text(),
                start,
                "the instruction",
                "?>",
            )),
        }
    }
}

/// Whether a byte may stand in a name. Characters outside of ASCII may.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-' | b'.') || !byte.is_ascii()
}
