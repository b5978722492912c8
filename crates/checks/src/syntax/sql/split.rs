//! Cuts a script into statements.
//!
//! Lines for a client (`\connect`, `.mode`, `DELIMITER`) and the data behind `COPY … FROM stdin` are no statements.

use super::lexer::{Manner, Token, skip, token};
use crate::Place;
use crate::syntax::cursor::Cursor;
use crate::syntax::fault::Fault;

/// How many words of a statement are kept.
const WORDS_MAX: usize = 4000;

/// One statement, without the `;`.
#[derive(Debug)]
pub(super) struct Statement<'t> {
    pub(super) at: usize,
    pub(super) text: &'t str,
    /// Its words without quotes, in capitals.
    pub(super) words: Vec<String>,
    /// How deep its brackets nest.
    pub(super) depth: usize,
    /// Whether it has parts that are no SQL yet, or that only one program understands.
    pub(super) is_opaque: bool,
    brackets: Vec<(u8, usize)>,
    stray: Option<(u8, usize)>,
}

impl Statement<'_> {
    /// Refuses brackets without a partner.
    pub(super) fn check_brackets(&self, text: &str) -> Result<(), Fault> {
        if let Some((closer, at)) = self.stray {
            let closer = char::from(closer);
            return Err(
                Fault::new(at, format!("`{closer}` closes nothing that is open here"))
                    .mended_by("remove it, or open its bracket before"),
            );
        }
        if let Some((opener, at)) = self.brackets.last() {
            let opener = char::from(*opener);
            let place = Place::of(text, *at);
            let end = self.at + self.text.trim_end().len();
            return Err(Fault::new(
                end,
                format!("the statement ends, but the `{opener}` of {place} is not closed"),
            )
            .mended_by("close it with `)`"));
        }
        Ok(())
    }

    fn bracket(&mut self, byte: u8, at: usize) {
        match byte {
            b'(' => {
                self.brackets.push((byte, at));
                self.depth = self.depth.max(self.brackets.len());
            }
            b')' if self.brackets.pop().is_none() => {
                self.stray.get_or_insert((byte, at));
            }
            _ => {}
        }
    }
}

/// Gives the statements, and what could not be cut. What the databases do not agree in is tried both ways.
pub(super) fn statements(text: &str) -> (Vec<Statement<'_>>, Option<Fault>) {
    let manners = [(false, true), (false, false), (true, true), (true, false)];
    let mut manners = manners
        .into_iter()
        .map(|(backslash_escapes, comments_nest)| Manner {
            backslash_escapes,
            comments_nest,
        });
    let first = manners.next().map(|manner| cut(text, manner));
    let first = first.unwrap_or_default();
    if first.1.is_none() {
        return first;
    }
    let mut others = manners.map(|manner| cut(text, manner));
    others.find(|(_, fault)| fault.is_none()).unwrap_or(first)
}

fn cut(text: &str, manner: Manner) -> (Vec<Statement<'_>>, Option<Fault>) {
    let mut splitter = Splitter {
        cursor: Cursor::new(text),
        manner,
        delimiter: None,
        statements: Vec::new(),
    };
    let fault = splitter.all().err();
    (splitter.statements, fault)
}

struct Splitter<'t> {
    cursor: Cursor<'t>,
    manner: Manner,
    /// What ends a statement instead of `;`.
    delimiter: Option<&'t str>,
    statements: Vec<Statement<'t>>,
}

impl Splitter<'_> {
    fn all(&mut self) -> Result<(), Fault> {
        loop {
            skip(&mut self.cursor, self.manner)?;
            if self.cursor.is_done() {
                return Ok(());
            }
            let is_line_start = matches!(self.cursor.before(), None | Some(b'\n'));
            if is_line_start && matches!(self.cursor.peek(), Some(b'\\' | b'.')) {
                self.cursor.skip_line();
            } else if self.is_delimiter_line() {
                let line = self.cursor.skip_line();
                let mark = line.split_whitespace().nth(1).filter(|mark| *mark != ";");
                self.delimiter = mark;
            } else {
                self.statement()?;
            }
        }
    }

    fn is_delimiter_line(&self) -> bool {
        let word = self.cursor.rest().get(..10);
        word.is_some_and(|word| word.eq_ignore_ascii_case("delimiter "))
    }

    fn statement(&mut self) -> Result<(), Fault> {
        let at = self.cursor.at();
        let mut statement = Statement {
            at,
            text: "",
            words: Vec::new(),
            depth: 0,
            is_opaque: self.delimiter.is_some(),
            brackets: Vec::new(),
            stray: None,
        };
        let mut blocks = 0_usize;
        let mut before = String::new();
        loop {
            skip(&mut self.cursor, self.manner)?;
            let here = self.cursor.at();
            let ends = match self.delimiter {
                Some(mark) => self.cursor.eat(mark),
                None => blocks == 0 && self.cursor.eat(";"),
            };
            if ends || self.cursor.is_done() {
                statement.text = self.cursor.text().get(at..here).unwrap_or_default();
                break;
            }
            match token(&mut self.cursor, self.manner)? {
                Token::Word(word) => {
                    let word = word.to_ascii_uppercase();
                    if is_routine(&statement.words) {
                        blocks = nested(blocks, &before, &word);
                    }
                    before.clone_from(&word);
                    if statement.words.len() < WORDS_MAX {
                        statement.words.push(word);
                    }
                }
                Token::Value => before.clear(),
                Token::Mark(byte) => {
                    statement.bracket(byte, here);
                    // Placeholders of templates, and variables of clients.
                    statement.is_opaque |= matches!(byte, b'{' | b'}' | b'%' | b'@' | b'\\')
                        || byte == b'.' && ends_in(self.cursor.text(), here, ')')
                        || byte == b':'
                            && !ends_in(self.cursor.text(), here, ':')
                            && self.is_variable();
                    before.clear();
                }
            }
        }
        let is_copy = copies_from_client(&statement.words);
        self.statements.push(statement);
        if is_copy {
            self.skip_data();
        }
        Ok(())
    }

    /// Whether a name or a quote follows a single colon.
    fn is_variable(&self) -> bool {
        self.cursor
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'\'' | b'"' | b'_'))
    }

    /// Skips the lines of data behind `COPY … FROM stdin`.
    fn skip_data(&mut self) {
        while !self.cursor.is_done() {
            self.cursor.eat("\n");
            if self.cursor.skip_line().trim_end() == "\\." {
                return;
            }
        }
    }
}

/// Whether a character stands right before a place.
fn ends_in(text: &str, at: usize, wanted: char) -> bool {
    text.get(..at)
        .is_some_and(|before| before.ends_with(wanted))
}

/// Whether a statement defines something with a body of statements.
fn is_routine(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str);
    words.next() == Some("CREATE")
        && words.take(8).any(|word| {
            matches!(
                word,
                "TRIGGER" | "PROCEDURE" | "FUNCTION" | "EVENT" | "PACKAGE"
            )
        })
}

/// Counts `BEGIN … END` and `CASE … END`.
fn nested(blocks: usize, before: &str, word: &str) -> usize {
    match (before, word) {
        ("END", "CASE") => blocks,
        // The `END` of `END IF` closed what nobody counted.
        (_, "BEGIN" | "CASE") | ("END", "IF" | "LOOP" | "WHILE" | "REPEAT" | "FOR") => blocks + 1,
        (_, "END") => blocks.saturating_sub(1),
        _ => blocks,
    }
}

fn copies_from_client(words: &[String]) -> bool {
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    words.first().is_some_and(|word| word == "COPY") && has("FROM") && has("STDIN")
}
