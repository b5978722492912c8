//! Reads JSON into a tree of positions.

use crate::error::ConfigError;
use crate::lines;
use crate::tree::{DEPTH_MAX, Form, Kind, Member, Node, Span, VALUES_MAX};

pub(super) fn parse(text: &str, comments: bool) -> Result<Node, ConfigError> {
    let mut scan = Scan {
        text,
        at: lines::text_start(text),
        comments,
        depth: 0,
        values: 0,
    };
    scan.skip()?;
    if scan.at == text.len() {
        return Err(scan.wrong("the text is empty: write {} first"));
    }
    let root = scan.value()?;
    scan.skip()?;
    if scan.at < text.len() {
        return Err(scan.wrong("nothing may follow the value"));
    }
    Ok(root)
}

/// The length of a text in double quotes that begins here, quotes included.
pub(crate) fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            0..0x20 => return None,
            _ => at += 1,
        }
    }
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    comments: bool,
    depth: usize,
    values: usize,
}

impl Scan<'_> {
    fn wrong(&self, what: &str) -> ConfigError {
        ConfigError::Syntax {
            at: lines::place(self.text, self.at),
            what: what.to_owned(),
        }
    }

    fn peek(&self) -> Option<u8> {
        lines::byte(self.text, self.at)
    }

    /// Goes on to the next token.
    fn skip(&mut self) -> Result<(), ConfigError> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b'/') if !self.comments => {
                    return Err(self.wrong(
                        "JSON has no comments; if this file may have them, name the format jsonc",
                    ));
                }
                Some(b'/') => {
                    let rest = lines::rest(self.text, self.at);
                    if rest.starts_with("//") {
                        self.at = lines::line_end(self.text, self.at);
                    } else if rest.starts_with("/*") {
                        let end = rest.find("*/").filter(|end| *end >= 2);
                        self.at += end.ok_or_else(|| self.wrong("this comment is not closed"))? + 2;
                    } else {
                        return Err(self.wrong("a value or a name is needed here"));
                    }
                }
                Some(_) | None => return Ok(()),
            }
        }
    }

    fn value(&mut self) -> Result<Node, ConfigError> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return Err(ConfigError::OverLimit {
                what: "the number of values",
                limit: VALUES_MAX,
            });
        }
        match self.peek() {
            Some(b'{') => self.inside(b'}'),
            Some(b'[') => self.inside(b']'),
            Some(b'"') => Ok(Node::scalar(self.string()?)),
            Some(_) => self.word(),
            None => Err(self.wrong("the text ends where a value is needed")),
        }
    }

    fn string(&mut self) -> Result<Span, ConfigError> {
        let rest = lines::rest(self.text, self.at);
        let length = string_length(rest);
        let length =
            length.ok_or_else(|| self.wrong("this text in quotes does not end in its line"))?;
        if super::unquoted(lines::cut(rest, 0..length)).is_none() {
            return Err(self.wrong("this text in quotes has an escape that JSON does not know"));
        }
        let span = Span::new(self.at, self.at + length);
        self.at += length;
        Ok(span)
    }

    fn word(&mut self) -> Result<Node, ConfigError> {
        let rest = lines::rest(self.text, self.at);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-._".contains(c));
        let word = lines::cut(rest, 0..end.unwrap_or(rest.len()));
        if !matches!(word, "true" | "false" | "null") && !crate::value::is_json_number(word) {
            return Err(self.wrong("a value is needed here: a text in double quotes, a number, true, false, null, [ or {"));
        }
        let node = Node::scalar(Span::new(self.at, self.at + word.len()));
        self.at += word.len();
        Ok(node)
    }

    /// Reads an object or a list, up to its closing bracket.
    fn inside(&mut self, close: u8) -> Result<Node, ConfigError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ConfigError::OverLimit {
                what: "the nesting",
                limit: DEPTH_MAX,
            });
        }
        let start = self.at;
        self.at += 1;
        let mut members = Vec::new();
        self.skip()?;
        while self.peek() != Some(close) {
            members.push(self.member(close == b'}')?);
            self.skip()?;
            match self.peek() {
                Some(b',') => {
                    let comma = self.at;
                    self.at += 1;
                    self.skip()?;
                    if self.peek() == Some(close) && !self.comments {
                        self.at = comma;
                        return Err(self.wrong("JSON allows no comma behind the last value"));
                    }
                }
                Some(byte) if byte == close => {}
                Some(_) | None => {
                    let what = if close == b'}' {
                        "`,` or `}` is needed here"
                    } else {
                        "`,` or `]` is needed here"
                    };
                    return Err(self.wrong(what));
                }
            }
        }
        self.at += 1;
        self.depth -= 1;
        let kind = if close == b'}' {
            Kind::Map(members)
        } else {
            Kind::List(members)
        };
        Ok(Node::new(Span::new(start, self.at), kind, Form::Plain))
    }

    fn member(&mut self, named: bool) -> Result<Member, ConfigError> {
        let start = self.at;
        let (name, name_at) = if named {
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a name in double quotes is needed here"));
            }
            let span = self.string()?;
            let name = super::unquoted(span.of(self.text)).unwrap_or_default();
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.wrong("`:` is needed here"));
            }
            self.at += 1;
            self.skip()?;
            (name, span)
        } else {
            (String::new(), Span::new(start, start))
        };
        let node = self.value()?;
        Ok(Member {
            name: name.into(),
            name_at,
            whole: Some(Span::new(start, node.span.end())),
            tail: Some(node.span),
            node,
        })
    }
}
