//! Scripts of sh and bash: whether a shell would read them to the end.
//!
//! A reader of its own, in one pass and with bounded nesting. It takes what bash or dash takes, with extended globs; what
//! they leave until a command runs (arithmetic, backticks, what `${…}` means) is only read to its end.
//! Lists and pipelines are here, `if`, `for` and the like in `compound`, words and quotes in `word`, `[[ … ]]` in `test`.

mod compound;
mod redirect;
mod test;
mod word;

use super::cursor::Cursor;
use super::fault::{Fault, quote, standing_at};
use crate::Finding;

/// The deepest nesting of commands and quotes that is read.
const NESTING_MAX: usize = 100;

/// Words that end or go on with something that was begun before.
const CLOSERS: [&str; 9] = [
    "then", "else", "elif", "fi", "do", "done", "esac", "}", "in",
];

pub(super) fn check(text: &str) -> Vec<Finding> {
    if let Some(at) = text.find("\r\n") {
        let fault = Fault::new(
            at,
            "the line ends with a carriage return, which a shell takes for a part of it",
        )
        .mended_by("save it with line ends of Unix");
        return vec![fault.finding(text)];
    }
    let mut reader = Reader {
        cursor: Cursor::new(text),
        depth: 0,
        documents: Vec::new(),
        unclosed: None,
    };
    let result = reader.program();
    let fault = result.err().or(reader.unclosed);
    fault.map(|fault| fault.finding(text)).into_iter().collect()
}

/// A here-document whose lines begin behind the end of this line.
struct Document<'t> {
    at: usize,
    mark: String,
    raw: &'t str,
    strips_tabs: bool,
}

struct Reader<'t> {
    cursor: Cursor<'t>,
    depth: usize,
    documents: Vec<Document<'t>>,
    /// The first here-document that does not end.
    unclosed: Option<Fault>,
}

impl<'t> Reader<'t> {
    fn fault(&self, found: impl Into<String>) -> Fault {
        Fault::new(self.cursor.at(), found)
    }

    fn enter(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            let found = format!("is nested deeper than {NESTING_MAX}");
            return Err(self.fault(found).mended_by("nest less"));
        }
        Ok(())
    }

    fn program(&mut self) -> Result<(), Fault> {
        self.list()?;
        self.skip_lines();
        if self.cursor.is_done() {
            self.newline();
            return Ok(());
        }
        let at = self.cursor.at();
        if let Some(word) = self.closer() {
            return Err(
                Fault::new(at, format!("`{word}` belongs to nothing that was begun"))
                    .mended_by("remove it, or begin its command before"),
            );
        }
        let found = standing_at(self.cursor.text(), at);
        Err(self.fault(format!("{found} stands where no command can begin")))
    }

    /// Reads commands, up to something that none of them can begin with. Gives how many there were.
    fn list(&mut self) -> Result<usize, Fault> {
        self.enter()?;
        let mut count = 0;
        loop {
            self.skip_lines();
            if !self.begins_command() {
                break;
            }
            self.and_or()?;
            count += 1;
            self.blanks();
            self.skip_comment();
            match self.cursor.peek() {
                Some(b';') if !matches!(self.cursor.peek_at(1), Some(b';' | b'&')) => {
                    self.cursor.bump();
                }
                Some(b'&') if self.cursor.peek_at(1) != Some(b'&') => {
                    self.cursor.bump();
                }
                Some(b'\n') => {}
                _ => break,
            }
        }
        self.depth -= 1;
        Ok(count)
    }

    /// Whether a command, and not the end of another one, stands here.
    fn begins_command(&mut self) -> bool {
        match self.cursor.peek() {
            None | Some(b')' | b';' | b'&' | b'|' | b'\n') => self.cursor.sees("&>"),
            Some(_) => self.closer().is_none(),
        }
    }

    /// The word here, if it ends what another began.
    fn closer(&self) -> Option<&'static str> {
        let word = self.bare_word();
        CLOSERS
            .into_iter()
            .find(|closer| *closer == word && word != "in")
    }

    /// The word here, if it has no quotes and nothing else that the shell fills in.
    fn bare_word(&self) -> &'t str {
        let rest = self.cursor.rest();
        let end = rest.find(|c: char| c.is_whitespace() || ";&|<>()".contains(c));
        rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
    }

    /// Takes a reserved word, if it stands here.
    fn eat_word(&mut self, word: &str) -> bool {
        self.bare_word() == word && self.cursor.eat(word)
    }

    fn and_or(&mut self) -> Result<(), Fault> {
        loop {
            self.pipeline()?;
            self.blanks();
            let operator = ["&&", "||"].into_iter().find(|text| self.cursor.eat(text));
            let Some(operator) = operator else {
                return Ok(());
            };
            self.goes_on(operator)?;
        }
    }

    fn pipeline(&mut self) -> Result<(), Fault> {
        loop {
            self.blanks();
            if self.eat_word("time") {
                self.blanks();
                self.eat_word("-p");
                self.blanks();
                if !self.begins_command() {
                    return Ok(());
                }
            }
            while self.eat_word("!") {
                self.blanks();
            }
            self.command()?;
            self.blanks();
            if self.cursor.sees("||") || !(self.cursor.eat("|&") || self.cursor.eat("|")) {
                return Ok(());
            }
            self.goes_on("|")?;
        }
    }

    /// A command must follow an operator, on this line or on the next.
    fn goes_on(&mut self, operator: &str) -> Result<(), Fault> {
        self.skip_lines();
        if self.begins_command() {
            return Ok(());
        }
        let found = standing_at(self.cursor.text(), self.cursor.at());
        Err(self.fault(format!(
            "a command is needed behind `{operator}`, not {found}"
        )))
    }

    fn command(&mut self) -> Result<(), Fault> {
        if self.compound()? {
            return self.behind_compound();
        }
        self.simple()
    }

    /// Behind `fi`, `done` and the like only redirections may stand.
    fn behind_compound(&mut self) -> Result<(), Fault> {
        self.redirections()?;
        self.skip_comment();
        match self.cursor.peek() {
            None | Some(b'\n' | b';' | b'&' | b'|' | b')') => Ok(()),
            // `{ { a; } }` and `if if a; then b; fi then c; fi` need nothing between.
            Some(_) if self.closer().is_some() => Ok(()),
            Some(_) => {
                let word = quote(self.bare_word());
                Err(self
                    .fault(format!("{word} stands behind the end of a command"))
                    .mended_by("put `;` or a line end before it"))
            }
        }
    }

    /// Reads assignments, words and redirections, or the definition of a function.
    fn simple(&mut self) -> Result<(), Fault> {
        let start = self.cursor.at();
        let mut words = 0_usize;
        loop {
            self.blanks();
            if self.redirection()? {
                words += 1;
                continue;
            }
            match self.cursor.peek() {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                Some(b'#') => {
                    self.skip_comment();
                    break;
                }
                Some(b'(') if words == 1 => return self.function_behind_name(start),
                Some(b'(') => {
                    return Err(self
                        .fault("`(` stands where it means nothing")
                        .mended_by("put it in quotes, or a backslash before it"));
                }
                Some(_) => {
                    self.word()?;
                    words += 1;
                }
            }
        }
        if words == 0 {
            let found = standing_at(self.cursor.text(), self.cursor.at());
            return Err(self.fault(format!("a command is needed here, not {found}")));
        }
        Ok(())
    }

    /// Skips blanks, comments and line ends.
    fn skip_lines(&mut self) {
        loop {
            self.blanks();
            self.skip_comment();
            if self.cursor.peek() != Some(b'\n') {
                return;
            }
            self.newline();
        }
    }

    /// Skips blanks, and line ends behind a backslash.
    fn blanks(&mut self) {
        loop {
            self.cursor.skip_blanks();
            if !self.cursor.eat("\\\n") {
                return;
            }
        }
    }

    /// Skips a comment. The cursor stands at the beginning of a word.
    fn skip_comment(&mut self) {
        if self.cursor.peek() == Some(b'#') {
            self.cursor.skip_line();
        }
    }

    /// Takes a line end, and the here-documents that begin behind it.
    fn newline(&mut self) {
        self.cursor.eat("\n");
        for document in std::mem::take(&mut self.documents) {
            self.document(&document);
        }
    }

    fn document(&mut self, document: &Document<'t>) {
        while !self.cursor.is_done() {
            let line = self.cursor.skip_line();
            let line = if document.strips_tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            if line == document.mark {
                self.cursor.eat("\n");
                return;
            }
            // Inside of `$(…)` the parenthesis may stand behind the mark.
            if self.depth > 1 && line.strip_prefix(document.mark.as_str()) == Some(")") {
                self.cursor.go(self.cursor.at() - 1);
                return;
            }
            self.cursor.eat("\n");
        }
        let found = format!("the here-document {} is not closed", quote(document.raw));
        let remedy = format!("end it with a line `{}`", document.mark);
        self.unclosed
            .get_or_insert(Fault::new(document.at, found).mended_by(remedy));
    }
}
