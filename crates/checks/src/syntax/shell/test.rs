//! `[[ … ]]`.

use super::Reader;
use super::word::Within;
use crate::syntax::fault::{Fault, quote, standing_at};

/// Operators between two words. `<`, `>` and `=~` are no words.
const BETWEEN: [&str; 12] = [
    "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
];

impl Reader<'_> {
    /// Reads a test, standing behind `[[`.
    pub(super) fn test(&mut self, at: usize) -> Result<(), Fault> {
        let mut open = 0_usize;
        loop {
            self.skip_lines();
            while self.eat_word("!") {
                self.skip_lines();
            }
            if self.cursor.eat("(") {
                open += 1;
                continue;
            }
            self.operand(at)?;
            self.skip_lines();
            if self.cursor.eat("=~") {
                self.skip_lines();
                self.word_within(Within::Regex)?;
            } else if self.cursor.eat("<") || self.cursor.eat(">") {
                self.skip_lines();
                self.operand(at)?;
            } else if BETWEEN.contains(&self.bare_word()) {
                self.cursor.eat(self.bare_word());
                self.skip_lines();
                self.operand(at)?;
            }
            if self.behind_expression(at, &mut open)? {
                return Ok(());
            }
        }
    }

    /// Reads a word, or an operator with its word.
    fn operand(&mut self, at: usize) -> Result<(), Fault> {
        let is_unary = |word: &str| word.len() == 2 && word.starts_with('-');
        let operator = self.bare_word();
        if is_unary(operator) {
            let here = self.cursor.clone();
            self.cursor.eat(operator);
            self.skip_lines();
            let ends = matches!(
                self.cursor.peek(),
                None | Some(b'&' | b'|' | b')' | b'<' | b'>' | b'(')
            );
            let word = self.bare_word();
            if ends || word == "]]" || BETWEEN.contains(&word) {
                // It is a word like others.
                self.cursor = here;
            }
        }
        let start = self.cursor.at();
        if self.bare_word() != "]]" {
            self.word()?;
        }
        if self.cursor.at() > start {
            return Ok(());
        }
        if self.cursor.is_done() {
            return Err(Fault::unclosed(self.cursor.text(), at, "`[[`", "]]"));
        }
        let found = standing_at(self.cursor.text(), start);
        Err(self.fault(format!("a word is needed inside of `[[`, not {found}")))
    }

    /// Reads what may stand behind an expression. Tells whether it was the end.
    fn behind_expression(&mut self, at: usize, open: &mut usize) -> Result<bool, Fault> {
        loop {
            self.skip_lines();
            if self.eat_word("]]") {
                if *open > 0 {
                    return Err(self
                        .fault("`(` is not closed inside of `[[`")
                        .mended_by("close it with `)`"));
                }
                return Ok(true);
            }
            if self.cursor.eat("&&") || self.cursor.eat("||") {
                return Ok(false);
            }
            if self.cursor.is_done() {
                return Err(Fault::unclosed(self.cursor.text(), at, "`[[`", "]]"));
            }
            if *open > 0 && self.cursor.eat(")") {
                *open -= 1;
                continue;
            }
            let word = self.bare_word();
            let found = if word.is_empty() {
                standing_at(self.cursor.text(), self.cursor.at())
            } else {
                quote(word)
            };
            return Err(self
                .fault(format!(
                    "{found} stands inside of `[[` where an operator is needed"
                ))
                .mended_by("put a text with blanks in quotes, or close with ` ]]`"));
        }
    }
}
