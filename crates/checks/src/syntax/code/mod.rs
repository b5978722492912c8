//! Source code, read by the grammar of its language.
//!
//! A grammar recovers from an error and goes on, so it tells several. Where brackets do not match, that is what is
//! told: a grammar often notices it far away. C has rules of its own (`c`).

mod brackets;
mod c;
mod python;

use std::ops::ControlFlow;

use tree_sitter::{Language, Node, ParseOptions, Parser, Tree};

use super::Format;
use super::fault::{Fault, quote};
use crate::Finding;

/// The most errors that are told of one text: what follows the first few is often their echo.
const ERRORS_MAX: usize = 3;

/// How often the parser may report progress before it is stopped. Code that people write needs a tenth of it.
const WORK_MIN: usize = 2_000;
const WORK_MAX: usize = 100_000;
const BYTES_PER_WORK: usize = 16;

pub(super) fn check(format: Format, text: &str) -> Vec<Finding> {
    let Some(tree) = parse(format, text) else {
        let found = "cannot be checked: it takes its grammar too long";
        return vec![Finding::new(found).mended_by("check it by hand")];
    };
    let mut faults = if !tree.root_node().has_error() {
        Vec::new()
    } else if format == Format::C {
        c::faults(text, &tree)
    } else {
        brackets::mismatch(text, &tree)
            .map_or_else(|| errors(format, text, &tree), |fault| vec![fault])
    };
    if faults.is_empty() && format == Format::Python {
        let joined = tree
            .root_node()
            .has_error()
            .then(|| python::joined(text, &tree));
        faults.extend(joined.flatten().or_else(|| python::fault(text, &tree)));
    }
    faults
        .into_iter()
        .map(|fault| fault.finding(text))
        .collect()
}

fn language(format: Format) -> Option<Language> {
    Some(match format {
        Format::Python => tree_sitter_python::LANGUAGE.into(),
        Format::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
        Format::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        Format::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
        Format::Rust => tree_sitter_rust::LANGUAGE.into(),
        Format::Go => tree_sitter_go::LANGUAGE.into(),
        Format::C => tree_sitter_c::LANGUAGE.into(),
        Format::Json
        | Format::JsonWithComments
        | Format::Yaml
        | Format::Toml
        | Format::Xml
        | Format::Ini
        | Format::Env
        | Format::Shell
        | Format::Sql
        | Format::Hcl
        | Format::Dockerfile => return None,
    })
}

/// Parses a text, with a limit on the work instead of one on the time.
fn parse(format: Format, text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&language(format)?).ok()?;
    let mut left = (WORK_MIN + text.len() / BYTES_PER_WORK).min(WORK_MAX);
    let mut progress = |_: &tree_sitter::ParseState| {
        left = left.saturating_sub(1);
        if left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let bytes = text.as_bytes();
    let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut read, None, Some(options))
}

/// The places where the grammar gave up, or where it had to invent something.
fn errors(format: Format, text: &str, tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let is_wrong = node.is_error() || node.is_missing();
        if is_wrong && !may_be_right(format, text, node) {
            faults.push(of_node(text, node));
            if faults.len() == ERRORS_MAX {
                return faults;
            }
        }
        if !is_wrong && node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return faults;
            }
        }
    }
}

fn of_node(text: &str, node: Node<'_>) -> Fault {
    let start = node.start_byte();
    if node.is_missing() {
        let kind = node.kind();
        let is_name = kind
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let what = if is_name {
            format!("{} is missing", kind.replace('_', " "))
        } else {
            format!("`{kind}` is missing")
        };
        return Fault::new(start, what);
    }
    let part = text.get(start..node.end_byte()).unwrap_or_default();
    let line = part.trim_start().lines().next().unwrap_or_default();
    let skipped = part.len() - part.trim_start().len();
    let found = format!("{} cannot be read here", quote(line.trim_end()));
    let fault = Fault::new(start + skipped, found);
    match line.chars().next() {
        Some('"' | '\'' | '`') => fault.mended_by("is the quote closed?"),
        Some('/') if line.starts_with("/*") => fault.mended_by("close the comment with `*/`"),
        _ => fault,
    }
}

/// Whether a part that the grammar does not know may be right all the same.
fn may_be_right(format: Format, text: &str, node: Node<'_>) -> bool {
    match format {
        // What stands in a macro has the macro's own grammar; a macro may have the name of a type, as in `str![]` and `try!`; blocks
        // of `extern` may hold types.
        Format::Rust => {
            let part = text.get(node.byte_range()).unwrap_or_default();
            if part == "!" || part.starts_with("try!") || part.starts_with("pub type ") {
                return true;
            }
            let mut above = node.parent();
            while let Some(parent) = above {
                if matches!(
                    parent.kind(),
                    "token_tree" | "macro_definition" | "macro_invocation"
                ) {
                    return true;
                }
                above = parent.parent();
            }
            false
        }
        // The statements of Python 2 that the grammar knows in part only.
        Format::Python => {
            let before = text.get(..node.start_byte()).unwrap_or_default();
            let line = before.rsplit('\n').next().unwrap_or_default();
            let line = format!(
                "{line}{}",
                text.get(node.start_byte()..node.end_byte())
                    .unwrap_or_default()
            );
            let mut words = line.split_whitespace();
            match words.next().unwrap_or_default() {
                "print" | "exec" | "raise" => true,
                // `except X, e:`. Of what stands in parentheses both say the same.
                "except" => !words.next().unwrap_or_default().starts_with('('),
                _ => false,
            }
        }
        // A line that begins with `[...` behind one that needs no semicolon.
        Format::JavaScript | Format::TypeScript | Format::Tsx => {
            text.get(node.byte_range()) == Some("...")
        }
        Format::Go
        | Format::C
        | Format::Json
        | Format::JsonWithComments
        | Format::Yaml
        | Format::Toml
        | Format::Xml
        | Format::Ini
        | Format::Env
        | Format::Shell
        | Format::Sql
        | Format::Hcl
        | Format::Dockerfile => false,
    }
}
