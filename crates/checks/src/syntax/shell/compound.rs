//! `if`, `for`, `case` and the like, groups, functions.

use super::Reader;
use crate::Place;
use crate::syntax::fault::{Fault, quote, standing_at};

impl Reader<'_> {
    /// Reads a compound command, if one stands here.
    pub(super) fn compound(&mut self) -> Result<bool, Fault> {
        let at = self.cursor.at();
        if self.cursor.peek() == Some(b'(') {
            if !(self.cursor.sees("((") && self.arithmetic()) {
                self.cursor.bump();
                self.body(at, "(")?;
                self.closes(at)?;
            }
            return Ok(true);
        }
        let word = self.bare_word();
        match word {
            "{" | "if" | "while" | "until" | "for" | "select" | "case" | "[[" | "function"
            | "coproc" => {
                self.cursor.eat(word);
            }
            _ => return Ok(false),
        }
        match word {
            "{" => {
                self.body(at, "{")?;
                self.end(at, "{", "}")?;
            }
            "if" => self.conditional(at)?,
            "while" | "until" => {
                self.body(at, word)?;
                self.loop_body(at, word)?;
            }
            "for" | "select" => self.for_each(at, word)?,
            "case" => self.case(at)?,
            "[[" => self.test(at)?,
            "function" => {
                self.blanks();
                self.word()?;
                self.blanks();
                if self.cursor.eat("(") {
                    self.blanks();
                    self.closing_parenthesis()?;
                }
                self.function_body()?;
            }
            _ => self.coprocess()?,
        }
        Ok(true)
    }

    /// Reads commands, of which there must be one.
    fn body(&mut self, at: usize, of: &str) -> Result<(), Fault> {
        if self.list()? > 0 {
            return Ok(());
        }
        self.skip_lines();
        if self.cursor.is_done() {
            let closer = match of {
                "(" => ")",
                "{" => "}",
                "if" => "fi",
                _ => "done",
            };
            return Err(Fault::unclosed(
                self.cursor.text(),
                at,
                &format!("the `{of}`"),
                closer,
            ));
        }
        let place = Place::of(self.cursor.text(), at);
        let found = standing_at(self.cursor.text(), self.cursor.at());
        Err(self
            .fault(format!(
                "a command is needed in the `{of}` of {place}, not {found}"
            ))
            .mended_by("write `:` for a command that does nothing"))
    }

    /// Takes the word that must stand here.
    fn end(&mut self, at: usize, of: &str, word: &str) -> Result<(), Fault> {
        self.skip_lines();
        if self.eat_word(word) {
            return Ok(());
        }
        if self.cursor.is_done() {
            return Err(Fault::unclosed(
                self.cursor.text(),
                at,
                &format!("the `{of}`"),
                word,
            ));
        }
        let place = Place::of(self.cursor.text(), at);
        let bare = self.bare_word();
        let found = if bare.is_empty() {
            standing_at(self.cursor.text(), self.cursor.at())
        } else {
            quote(bare)
        };
        Err(self.fault(format!(
            "`{word}` is needed for the `{of}` of {place}, not {found}"
        )))
    }

    fn conditional(&mut self, at: usize) -> Result<(), Fault> {
        self.body(at, "if")?;
        self.end(at, "if", "then")?;
        self.body(at, "if")?;
        loop {
            self.skip_lines();
            if self.eat_word("elif") {
                self.body(at, "if")?;
                self.end(at, "if", "then")?;
                self.body(at, "if")?;
            } else if self.eat_word("else") {
                self.body(at, "if")?;
                return self.end(at, "if", "fi");
            } else {
                return self.end(at, "if", "fi");
            }
        }
    }

    fn loop_body(&mut self, at: usize, of: &str) -> Result<(), Fault> {
        self.end(at, of, "do")?;
        self.body(at, of)?;
        self.end(at, of, "done")
    }

    fn for_each(&mut self, at: usize, of: &str) -> Result<(), Fault> {
        self.blanks();
        if self.cursor.sees("((") {
            if !self.arithmetic() {
                return Err(self
                    .fault("`((` is not closed")
                    .mended_by("close it with `))`"));
            }
        } else {
            if matches!(
                self.cursor.peek(),
                None | Some(b'\n' | b';' | b'(' | b')' | b'&' | b'|' | b'<' | b'>')
            ) {
                let found = standing_at(self.cursor.text(), self.cursor.at());
                return Err(self.fault(format!("a name is needed behind `{of}`, not {found}")));
            }
            self.word()?;
            self.skip_lines();
            if self.eat_word("in") {
                loop {
                    self.blanks();
                    self.skip_comment();
                    match self.cursor.peek() {
                        None | Some(b'\n' | b';') => break,
                        Some(b'(' | b')' | b'&' | b'|') => {
                            let found = standing_at(self.cursor.text(), self.cursor.at());
                            return Err(
                                self.fault(format!("{found} stands among the words of `{of}`"))
                            );
                        }
                        Some(_) => self.word()?,
                    }
                }
            }
        }
        self.blanks();
        if !self.cursor.sees(";;") {
            self.cursor.eat(";");
        }
        self.skip_lines();
        if self.eat_word("{") {
            self.body(at, of)?;
            return self.end(at, of, "}");
        }
        self.loop_body(at, of)
    }

    fn case(&mut self, at: usize) -> Result<(), Fault> {
        self.blanks();
        self.word()?;
        self.end(at, "case", "in")?;
        loop {
            self.skip_lines();
            if self.eat_word("esac") {
                return Ok(());
            }
            self.cursor.eat("(");
            self.patterns(at)?;
            self.list()?;
            self.skip_lines();
            let goes_on = self.cursor.eat(";;&") || self.cursor.eat(";;") || self.cursor.eat(";&");
            if !goes_on {
                return self.end(at, "case", "esac");
            }
        }
    }

    /// Reads `a | b)`.
    fn patterns(&mut self, at: usize) -> Result<(), Fault> {
        loop {
            self.blanks();
            let start = self.cursor.at();
            self.word()?;
            if self.cursor.at() == start {
                if self.cursor.is_done() {
                    return Err(Fault::unclosed(
                        self.cursor.text(),
                        at,
                        "the `case`",
                        "esac",
                    ));
                }
                let found = standing_at(self.cursor.text(), start);
                return Err(self.fault(format!("a pattern is needed here, not {found}")));
            }
            self.blanks();
            if self.cursor.eat("|") {
                continue;
            }
            return self.closing_parenthesis();
        }
    }

    fn closing_parenthesis(&mut self) -> Result<(), Fault> {
        if self.cursor.eat(")") {
            return Ok(());
        }
        let found = standing_at(self.cursor.text(), self.cursor.at());
        Err(self.fault(format!("`)` is needed here, not {found}")))
    }

    /// Reads `()` and the body of a function, standing behind its name.
    pub(super) fn function_behind_name(&mut self, start: usize) -> Result<(), Fault> {
        let at = self.cursor.at();
        self.cursor.eat("(");
        self.blanks();
        if !self.cursor.eat(")") {
            let name = self.cursor.text().get(start..at).unwrap_or_default();
            return Err(
                Fault::new(at, format!("`(` stands behind {}", quote(name.trim_end())))
                    .mended_by("put it in quotes, or a backslash before it"),
            );
        }
        self.function_body()
    }

    fn function_body(&mut self) -> Result<(), Fault> {
        self.skip_lines();
        self.enter()?;
        if !self.compound()? {
            let found = standing_at(self.cursor.text(), self.cursor.at());
            return Err(self
                .fault(format!(
                    "the body of a function is needed here, not {found}"
                ))
                .mended_by("write `name() { …; }`"));
        }
        self.depth -= 1;
        self.redirections()
    }

    fn coprocess(&mut self) -> Result<(), Fault> {
        self.blanks();
        self.enter()?;
        if !self.compound()? {
            self.word()?;
            self.blanks();
            if !self.compound()?
                && !matches!(
                    self.cursor.peek(),
                    None | Some(b'\n' | b';' | b'&' | b'|' | b')')
                )
            {
                self.simple()?;
            }
        }
        self.depth -= 1;
        Ok(())
    }
}
