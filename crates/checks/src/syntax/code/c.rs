//! C without its preprocessor: what no macro can make right.
//!
//! Brackets are counted in the text itself. Each branch of `#if` begins with what was open before it; if the branches
//! leave different things open, nothing is said of the text.

use tree_sitter::{Node, Tree};

use super::brackets::misplaced;
use crate::syntax::cursor::Cursor;
use crate::syntax::fault::Fault;

/// What tells that a header is C++, of which the grammar knows nothing.
const CPLUSPLUS: [&str; 5] = ["namespace ", "template", "class ", "public:", "::"];

/// The brackets that are open, with their places.
type Open = Vec<(u8, usize)>;

/// Finds a bracket without a partner, or a semicolon that is missing.
pub(super) fn faults(text: &str, tree: &Tree) -> Vec<Fault> {
    if CPLUSPLUS.iter().any(|word| text.contains(word)) {
        return Vec::new();
    }
    match mismatch(text) {
        Ok(()) => missing_semicolon(text, tree).into_iter().collect(),
        Err(Trouble::Wrong(fault)) => vec![fault],
        Err(Trouble::Unclear) => Vec::new(),
    }
}

enum Trouble {
    Wrong(Fault),
    /// Branches of the preprocessor do not agree.
    Unclear,
}

/// A branch: what was open before it, and what its first one left open.
struct Branches {
    before: Open,
    after: Option<usize>,
}

fn mismatch(text: &str) -> Result<(), Trouble> {
    let mut cursor = Cursor::new(text);
    let mut open = Open::new();
    let mut branches: Vec<Branches> = Vec::new();
    let mut is_line_start = true;
    while let Some(byte) = cursor.peek() {
        let at = cursor.at();
        match byte {
            b'#' if is_line_start => directive(&mut cursor, &mut open, &mut branches)?,
            b'/' if cursor.sees("//") => {
                cursor.skip_line();
            }
            b'/' if cursor.sees("/*") => {
                cursor.eat("/*");
                if cursor.skip_behind("*/").is_none() {
                    let fault = Fault::unclosed(text, at, "the comment", "*/");
                    return Err(Trouble::Wrong(fault));
                }
            }
            b'"' | b'\'' => literal(&mut cursor, byte)?,
            b'(' | b'[' | b'{' => {
                cursor.bump();
                open.push((byte, at));
            }
            b')' | b']' | b'}' => {
                cursor.bump();
                close(text, &mut open, byte, at)?;
            }
            _ => {
                cursor.bump();
            }
        }
        is_line_start = byte == b'\n' || is_line_start && byte.is_ascii_whitespace();
    }
    if !branches.is_empty() {
        return Err(Trouble::Unclear);
    }
    match open.last() {
        None => Ok(()),
        Some((opener, at)) => {
            let (opener, closer) = (char::from(*opener), char::from(partner(*opener)));
            let what = format!("`{opener}`");
            Err(Trouble::Wrong(Fault::unclosed(
                text,
                *at,
                &what,
                &closer.to_string(),
            )))
        }
    }
}

const fn partner(opener: u8) -> u8 {
    match opener {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}

fn close(text: &str, open: &mut Open, closer: u8, at: usize) -> Result<(), Trouble> {
    match open.pop() {
        Some((opener, _)) if partner(opener) == closer => Ok(()),
        other => {
            let closer = char::from(closer).to_string();
            let fault = misplaced(text, &closer, at, other.map(|(_, at)| at));
            Err(Trouble::Wrong(fault))
        }
    }
}

/// Reads a string or a character. One that goes over the line may stand in a text that is never compiled.
fn literal(cursor: &mut Cursor<'_>, mark: u8) -> Result<(), Trouble> {
    let at = cursor.at();
    cursor.bump();
    loop {
        cursor.take_while(|byte| byte != mark && byte != b'\\' && byte != b'\n');
        match cursor.peek() {
            Some(b'\\') => {
                cursor.bump();
                cursor.bump();
            }
            Some(byte) if byte == mark => {
                cursor.bump();
                return Ok(());
            }
            // An apostrophe may stand in a comment of another language, or between digits.
            _ if mark == b'\'' => return Err(Trouble::Unclear),
            _ => {
                let fault = Fault::new(at, "a string is not closed on its line");
                return Err(Trouble::Wrong(fault.mended_by("close it with `\"`")));
            }
        }
    }
}

/// Reads a line of the preprocessor, with the lines that it goes on to.
fn directive(
    cursor: &mut Cursor<'_>,
    open: &mut Open,
    branches: &mut Vec<Branches>,
) -> Result<(), Trouble> {
    cursor.bump();
    cursor.skip_blanks();
    let word = cursor.take_while(|byte| byte.is_ascii_alphabetic());
    match word {
        "if" | "ifdef" | "ifndef" => branches.push(Branches {
            before: open.clone(),
            after: None,
        }),
        "else" | "elif" | "elifdef" | "elifndef" => {
            let Some(last) = branches.last_mut() else {
                return Err(Trouble::Unclear);
            };
            if last.after.is_some_and(|after| after != open.len()) {
                return Err(Trouble::Unclear);
            }
            last.after = Some(open.len());
            open.clone_from(&last.before);
        }
        "endif" => {
            let Some(last) = branches.pop() else {
                return Err(Trouble::Unclear);
            };
            if last.after.unwrap_or(last.before.len()) != open.len() {
                return Err(Trouble::Unclear);
            }
        }
        _ => {}
    }
    loop {
        let line = cursor.take_while(|byte| byte != b'\n' && byte != b'/');
        if cursor.eat("/*") {
            // A comment may take the directive over several lines.
            if cursor.skip_behind("*/").is_none() {
                return Err(Trouble::Unclear);
            }
        } else if cursor.sees("/") {
            cursor.bump();
        } else if !line.trim_end_matches('\r').ends_with('\\') || cursor.bump().is_none() {
            return Ok(());
        }
    }
}

/// Finds a missing semicolon behind a number, a string or a subscript in a function: behind a name or a call a macro
/// may bring it.
fn missing_semicolon(text: &str, tree: &Tree) -> Option<Fault> {
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_missing() && node.kind() == ";" && is_in_function(node) {
            let before = text.get(..node.start_byte()).unwrap_or_default().trim_end();
            let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
            let is_number = word.is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()));
            let behind = text.get(node.start_byte()..).unwrap_or_default();
            let is_branch = behind.trim_start().starts_with('#');
            if !is_branch && (is_number || before.ends_with(['"', ']', '\''])) {
                return Some(Fault::new(before.len(), "`;` is missing").mended_by("add it"));
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

fn is_in_function(node: Node<'_>) -> bool {
    let mut above = node.parent();
    while let Some(parent) = above {
        match parent.kind() {
            "function_definition" => return true,
            "ERROR" => return false,
            _ => above = parent.parent(),
        }
    }
    false
}
