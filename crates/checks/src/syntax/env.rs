//! `.env` files: `NAME=value` lines, with `export` or without.
//!
//! Readers differ in what a value may be. Wrong to all of them: a line without a name, and a quote that never closes.

use super::cursor::Cursor;
use super::fault::{Fault, quote};
use crate::Finding;

pub(super) fn check(text: &str) -> Vec<Finding> {
    let mut cursor = Cursor::new(text);
    let mut findings = Vec::new();
    while !cursor.is_done() {
        if let Err(fault) = line(&mut cursor) {
            findings.push(fault.finding(text));
            cursor.skip_line();
        }
        cursor.eat("\n");
        if findings.len() >= super::FINDINGS_MAX {
            break;
        }
    }
    findings
}

/// Reads one line, or several if a quoted value has several.
fn line(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    cursor.skip_blanks();
    let start = cursor.at();
    if matches!(cursor.peek(), None | Some(b'#' | b'\n' | b'\r')) {
        cursor.skip_line();
        return Ok(());
    }
    if cursor.sees("export ") || cursor.sees("export\t") {
        cursor.go(cursor.at() + "export ".len());
        cursor.skip_blanks();
    }
    let name_at = cursor.at();
    let name =
        cursor.take_while(|byte| !matches!(byte, b'=' | b'\n' | b'\r' | b' ' | b'\t' | b':'));
    check_name(name, name_at)?;
    let is_exported = name_at > start;
    cursor.skip_blanks();
    if !cursor.eat("=") && !cursor.eat(":") {
        let is_bare = matches!(cursor.peek(), None | Some(b'\n' | b'\r' | b'#'));
        // `export NAME` and `NAME` alone take the value of the environment.
        if is_bare && (is_exported || name.len() == cursor.since(start).trim_end().len()) {
            cursor.skip_line();
            return Ok(());
        }
        return Err(
            Fault::new(cursor.at(), format!("`=` is needed behind {}", quote(name)))
                .mended_by("write `NAME=value`; a comment begins with `#`"),
        );
    }
    cursor.skip_blanks();
    value(cursor)
}

fn check_name(name: &str, at: usize) -> Result<(), Fault> {
    let is_first = |c: char| c == '_' || c.is_alphabetic();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() {
        return Err(Fault::new(at, "a name is needed before `=`").mended_by("write `NAME=value`"));
    }
    if name.starts_with(is_first) && name.chars().all(is_part) {
        return Ok(());
    }
    Err(
        Fault::new(at, format!("{} is no name of a variable", quote(name)))
            .mended_by("a name is made of letters, digits and `_`, and begins with no digit"),
    )
}

fn value(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    let start = cursor.at();
    let Some(mark @ (b'"' | b'\'' | b'`')) = cursor.peek() else {
        cursor.skip_line();
        return Ok(());
    };
    cursor.bump();
    loop {
        cursor.take_while(|byte| byte != mark && byte != b'\\');
        match cursor.peek() {
            Some(b'\\') if mark == b'"' => {
                cursor.bump();
                cursor.bump();
            }
            Some(b'\\') => {
                cursor.bump();
            }
            Some(_) => break,
            None => {
                // What stands behind belongs to other lines: go on with the next one.
                cursor.go(start);
                return Err(Fault::new(start, "a quote is not closed")
                    .mended_by("close it, or write the value without quotes"));
            }
        }
    }
    cursor.bump();
    cursor.skip_line();
    Ok(())
}
