//! What the grammar of Python lets pass: indentation, strings that do not end on their line, `try` without `except`,
//! parameters without a default behind one that has one.

use std::ops::Range;

use tree_sitter::{Node, Tree};

use crate::syntax::cursor::Cursor;
use crate::syntax::fault::{Fault, quote};

/// As far as Python moves on at a tab.
const TAB: usize = 8;

/// Finds the first line that is not indented as it must be, a quote that is not closed, or a parameter that must not stand where it
/// does.
pub(super) fn fault(text: &str, tree: &Tree) -> Option<Fault> {
    let mut reader = Reader {
        cursor: Cursor::new(text),
        levels: vec![Level::default()],
        opened: None,
        defaults: Vec::new(),
    };
    let read = reader.all();
    read.err()
        .or_else(|| misplaced_default(text, tree, &reader.defaults))
}

/// Finds two statements on one line, between which the grammar invented a line end.
pub(super) fn joined(text: &str, tree: &Tree) -> Option<Fault> {
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let mut children = node.walk();
        let below: Vec<_> = node.children(&mut children).collect();
        let is_block = matches!(node.kind(), "module" | "block");
        for pair in below.windows(2).filter(|_| is_block) {
            if let [one, two] = pair
                && one.end_position().row == two.start_position().row
                && text
                    .get(one.end_byte()..two.start_byte())
                    .is_some_and(|between| between.trim().is_empty())
                && one.is_named()
                && two.is_named()
                && two.kind() != "comment"
            {
                let part = text.get(two.byte_range()).unwrap_or_default();
                let first = part.lines().next().unwrap_or_default();
                let found = format!("a line end is needed before {}", quote(first));
                return Some(Fault::new(two.start_byte(), found));
            }
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}

/// Finds a parameter without a default behind one that has one, in some lines of the text.
fn misplaced_default(text: &str, tree: &Tree, lines: &[Range<usize>]) -> Option<Fault> {
    let mut lines = lines.iter();
    let mut line = lines.next()?;
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        while line.end <= node.start_byte() {
            line = lines.next()?;
        }
        // A walk over the whole tree takes a quarter of the time that reading it takes.
        let is_inside = node.end_byte() > line.start;
        if is_inside && matches!(node.kind(), "parameters" | "lambda_parameters") {
            let fault = without_default(text, node);
            if fault.is_some() {
                return fault;
            }
        }
        if is_inside && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}

/// Finds the first of some parameters that needs a default.
fn without_default(text: &str, parameters: Node<'_>) -> Option<Fault> {
    let mut children = parameters.walk();
    let mut has_default = false;
    for parameter in parameters.named_children(&mut children) {
        match parameter.kind() {
            "default_parameter" | "typed_default_parameter" => has_default = true,
            // What follows a star is given by name.
            "list_splat_pattern" | "keyword_separator" => return None,
            "identifier" | "typed_parameter" if has_default => {
                let part = text.get(parameter.byte_range()).unwrap_or_default();
                if part.starts_with('*') {
                    return None;
                }
                let found = format!("{} has no default, and one before it has", quote(part));
                let fault = Fault::new(parameter.start_byte(), found);
                return Some(fault.mended_by("give it a default, or put it first"));
            }
            _ => {}
        }
    }
    None
}

/// Tells whether a parameter of a line may have a default.
fn may_have_default(line: &str) -> bool {
    let line = line.as_bytes();
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    memchr::memchr(b'=', line).is_some() && (has(b"def") || has(b"lambda"))
}

/// A level of indentation that is open.
#[derive(Default)]
struct Level {
    width: usize,
    /// A `try` that waits for its `except`.
    attempt: Option<usize>,
}

struct Reader<'t> {
    cursor: Cursor<'t>,
    levels: Vec<Level>,
    /// The line before, if it ends in a colon.
    opened: Option<(usize, &'t str)>,
    /// The lines in which a parameter may have a default.
    defaults: Vec<Range<usize>>,
}

impl<'t> Reader<'t> {
    fn all(&mut self) -> Result<(), Fault> {
        loop {
            let width = self.indentation();
            match self.cursor.peek() {
                None => return self.end(),
                Some(b'\n' | b'\r') => {
                    self.cursor.bump();
                    continue;
                }
                Some(b'#') => {
                    self.cursor.skip_line();
                    continue;
                }
                Some(b'\\') => {
                    self.skip_escaped();
                    continue;
                }
                Some(_) => {}
            }
            let at = self.cursor.at();
            let ends_in_colon = self.logical_line()?;
            let line = self.cursor.since(at);
            self.place(at, width, line)?;
            if may_have_default(line) {
                self.defaults.push(at..at + line.len());
            }
            self.opened = ends_in_colon.then_some((at, line));
        }
    }

    /// Reads the blanks before a line.
    fn indentation(&mut self) -> usize {
        let mut width = 0;
        while let Some(byte) = self.cursor.peek() {
            width = match byte {
                b' ' => width + 1,
                b'\t' => (width / TAB + 1) * TAB,
                0x0c => 0,
                _ => break,
            };
            self.cursor.bump();
        }
        width
    }

    /// Checks where a line stands among the others.
    fn place(&mut self, at: usize, width: usize, line: &'t str) -> Result<(), Fault> {
        let current = self.levels.last().map_or(0, |level| level.width);
        if let Some((_, opener)) = self.opened {
            if width <= current {
                let first = opener.lines().next().unwrap_or_default();
                return Err(Fault::new(
                    at,
                    format!("an indented line is needed behind {}", quote(first)),
                )
                .mended_by("indent it, or write `pass` before it"));
            }
            self.levels.push(Level {
                width,
                attempt: None,
            });
        } else if width > current {
            return Err(Fault::new(
                at,
                "the line is indented, and the one before opens no block",
            )
            .mended_by("indent it as the line before"));
        }
        while self.levels.last().is_some_and(|level| level.width > width) {
            waits(self.levels.pop().and_then(|level| level.attempt))?;
        }
        let Some(level) = self.levels.last_mut() else {
            return Ok(());
        };
        if level.width != width {
            return Err(Fault::new(at, "the indentation fits no line above")
                .mended_by("indent it as one of the lines that it belongs to"));
        }
        let word = line
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next();
        let word = word.unwrap_or_default();
        if !matches!(word, "except" | "finally") {
            waits(level.attempt.take())?;
        }
        level.attempt = (word == "try"
            && line
                .get(3..)
                .is_some_and(|rest| rest.trim_start().starts_with(':')))
        .then_some(at);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        if let Some((_, opener)) = self.opened {
            let first = opener.lines().next().unwrap_or_default();
            let found = format!("an indented line is needed behind {}", quote(first));
            return Err(Fault::new(self.cursor.at(), found).mended_by("write at least `pass`"));
        }
        while let Some(level) = self.levels.pop() {
            waits(level.attempt)?;
        }
        Ok(())
    }

    /// Reads a line with the lines that it goes on to. Tells whether it ends in a colon.
    fn logical_line(&mut self) -> Result<bool, Fault> {
        let mut open = 0_usize;
        let mut last = 0;
        while let Some(byte) = self.cursor.peek() {
            match byte {
                b'\n' | b'\r' if open == 0 => break,
                b'#' => {
                    self.cursor.skip_line();
                    continue;
                }
                b'(' | b'[' | b'{' => open += 1,
                b')' | b']' | b'}' => open = open.saturating_sub(1),
                b'\\' => {
                    self.skip_escaped();
                    continue;
                }
                b'"' | b'\'' => {
                    self.string(byte)?;
                    last = byte;
                    continue;
                }
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                last = byte;
            }
            self.cursor.bump();
        }
        Ok(last == b':' && open == 0)
    }

    /// Takes a backslash and what stands behind it, a line end as a whole.
    fn skip_escaped(&mut self) {
        self.cursor.bump();
        if !self.cursor.eat("\r\n") {
            self.cursor.bump();
        }
    }

    fn string(&mut self, mark: u8) -> Result<(), Fault> {
        let at = self.cursor.at();
        let (one, three) = if mark == b'"' {
            ("\"", "\"\"\"")
        } else {
            ("'", "'''")
        };
        let is_long = self.cursor.eat(three);
        if !is_long {
            self.cursor.bump();
        }
        loop {
            self.cursor
                .take_while(|byte| byte != mark && byte != b'\\' && (is_long || byte != b'\n'));
            match self.cursor.peek() {
                Some(b'\\') => self.skip_escaped(),
                Some(byte) if byte == mark && (!is_long || self.cursor.sees(three)) => {
                    self.cursor.eat(if is_long { three } else { one });
                    return Ok(());
                }
                Some(byte) if byte == mark => {
                    self.cursor.bump();
                }
                Some(_) | None => {
                    let mark = if is_long { three } else { one };
                    return Err(Fault::new(at, format!("the quote `{mark}` is not closed"))
                        .mended_by(format!("close it with `{mark}`")));
                }
            }
        }
    }
}

/// A `try` without an `except` is an error.
fn waits(attempt: Option<usize>) -> Result<(), Fault> {
    match attempt {
        None => Ok(()),
        Some(at) => Err(Fault::new(at, "`try` has neither `except` nor `finally`")
            .mended_by("add `except` behind its block")),
    }
}
