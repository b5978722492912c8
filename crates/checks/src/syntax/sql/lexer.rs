//! The tokens of SQL that a database need not be known for: words, quotes, comments, brackets.

use crate::syntax::cursor::Cursor;
use crate::syntax::fault::Fault;

/// What stands at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A word without quotes.
    Word(&'t str),
    /// A string or a name in quotes, or a number.
    Value,
    /// Any other character.
    Mark(u8),
}

/// What the databases do not agree in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Manner {
    /// A backslash protects a quote: in MySQL it does.
    pub(super) backslash_escapes: bool,
    /// Comments nest: in PostgreSQL they do.
    pub(super) comments_nest: bool,
}

/// Skips space and comments.
pub(super) fn skip(cursor: &mut Cursor<'_>, manner: Manner) -> Result<(), Fault> {
    loop {
        cursor.skip_space();
        let at = cursor.at();
        let is_line_start = matches!(cursor.before(), None | Some(b'\n'));
        if cursor.sees("--") || (cursor.sees("#") && is_line_start) {
            cursor.skip_line();
        } else if cursor.sees("/*") {
            comment(cursor, at, manner)?;
        } else {
            return Ok(());
        }
    }
}

fn comment(cursor: &mut Cursor<'_>, at: usize, manner: Manner) -> Result<(), Fault> {
    let mut depth = 0_usize;
    loop {
        if cursor.sees("/*") && (depth == 0 || manner.comments_nest) {
            cursor.eat("/*");
            depth += 1;
        } else if cursor.eat("*/") {
            depth -= 1;
            if depth == 0 {
                return Ok(());
            }
        } else if cursor.bump().is_none() {
            return Err(Fault::unclosed(cursor.text(), at, "the comment", "*/"));
        }
    }
}

/// Reads one token. The cursor stands at its first character.
pub(super) fn token<'t>(cursor: &mut Cursor<'t>, manner: Manner) -> Result<Token<'t>, Fault> {
    let at = cursor.at();
    match cursor.peek() {
        Some(mark @ (b'\'' | b'"' | b'`')) => {
            let escapes = manner.backslash_escapes && mark != b'`'
                || mark == b'\'' && matches!(cursor.before(), Some(b'e' | b'E'));
            quoted(cursor, at, mark, escapes)?;
            Ok(Token::Value)
        }
        Some(b'$') => {
            if let Some(tag) = dollar_tag(cursor) {
                cursor.go(at + tag.len());
                if cursor.skip_behind(tag).is_none() {
                    return Err(Fault::unclosed(cursor.text(), at, "the quote", tag));
                }
            } else {
                cursor.bump();
            }
            Ok(Token::Value)
        }
        Some(b'0'..=b'9') => {
            cursor.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
            Ok(Token::Value)
        }
        Some(byte) if is_word(byte) => {
            let word = cursor.take_while(is_word_part);
            let is_prefix = word.len() == 1 && cursor.peek() == Some(b'\'');
            if is_prefix {
                return token(cursor, manner);
            }
            Ok(Token::Word(word))
        }
        Some(byte) => {
            cursor.bump();
            Ok(Token::Mark(byte))
        }
        None => Ok(Token::Mark(0)),
    }
}

fn quoted(cursor: &mut Cursor<'_>, at: usize, mark: u8, escapes: bool) -> Result<(), Fault> {
    cursor.bump();
    loop {
        cursor.take_while(|byte| byte != mark && byte != b'\\');
        match cursor.peek() {
            Some(b'\\') => {
                cursor.bump();
                if escapes {
                    cursor.bump();
                }
            }
            Some(_) => {
                cursor.bump();
                if cursor.peek() != Some(mark) {
                    return Ok(());
                }
                cursor.bump();
            }
            None => {
                let mark = char::from(mark).to_string();
                return Err(Fault::unclosed(cursor.text(), at, "the quote", &mark));
            }
        }
    }
}

/// The tag of a string between dollars: `$$` or `$name$`.
fn dollar_tag<'t>(cursor: &Cursor<'t>) -> Option<&'t str> {
    let rest = cursor.rest();
    let end = rest.get(1..)?.find('$')?;
    let name = rest.get(1..=end)?;
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    is_name.then(|| rest.get(..end + 2)).flatten()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn is_word_part(byte: u8) -> bool {
    is_word(byte) || byte.is_ascii_digit() || byte == b'$'
}
