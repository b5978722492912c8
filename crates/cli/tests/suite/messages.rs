//! Every sentence that the reports and the replies are made of comes up in a test.

use std::fs;
use std::path::{Path, PathBuf};

/// Fewer words are no sentence: they come up everywhere.
const WORDS_MIN: usize = 3;

/// Where the sentences are.
const SOURCES: [&str; 2] = ["crates/engine/src/report", "crates/cli/src/show"];

/// What programs read, not people; the schema has a test of its own.
const NOT_SAID: &str = "code.rs";

#[test]
fn every_sentence_is_in_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tests = tests_of(&root);
    let mut missing = Vec::new();
    for file in SOURCES.iter().flat_map(|source| files(&root.join(source))) {
        if file.ends_with(NOT_SAID) {
            continue;
        }
        for literal in literals(&fs::read_to_string(&file).unwrap()) {
            let parts = sentences(&literal);
            let is_told = parts.is_empty() || parts.iter().any(|part| tests.contains(part));
            if !is_told {
                missing.push(format!("{}: {literal}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "in no test:\n{}", missing.join("\n"));
}

/// The text of all tests, comments left out, with single blanks.
fn tests_of(root: &Path) -> String {
    let crates = fs::read_dir(root.join("crates")).unwrap();
    let tests = crates.map(|entry| entry.unwrap().path().join("tests"));
    let mut text = String::new();
    for file in tests
        .filter(|path| path.exists())
        .flat_map(|path| files(&path))
    {
        // What is listed here is not thereby in a test.
        if file.ends_with("suite/messages.rs") {
            continue;
        }
        let content = fs::read_to_string(&file).unwrap();
        let lines = content
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        text.extend(lines.flat_map(|line| [line, " "]));
    }
    single_blanks(&text)
}

/// All Rust files and snapshots below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path
            .extension()
            .is_some_and(|end| end == "rs" || end == "snap")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn single_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The strings of a source file before its own tests, without comments and reasons for lints.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    for line in joined(source).lines() {
        let code = line.trim_start();
        if code.starts_with("//") || code.contains("reason = \"") {
            continue;
        }
        let mut rest = code;
        while let Some((_, after)) = rest.split_once('"') {
            let end = end_of_string(after);
            found.push(after[..end].to_owned());
            rest = after.get(end + 1..).unwrap_or_default();
        }
    }
    found
}

/// Puts strings that go on after a backslash on one line, and leaves quotes out that are characters.
fn joined(source: &str) -> String {
    let mut text = String::new();
    for line in source.replace("'\"'", "").lines() {
        match line.strip_suffix('\\') {
            Some(begin) if text.ends_with('\u{1}') => {
                text.pop();
                text.extend([begin.trim_start(), "\u{1}"]);
            }
            Some(begin) => text.extend([begin, "\u{1}"]),
            None if text.ends_with('\u{1}') => {
                text.pop();
                text.extend([line.trim_start(), "\n"]);
            }
            None => text.extend([line, "\n"]),
        }
    }
    text
}

fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let is_end = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// The parts of a string that are always the same and long enough to be told from others.
fn sentences(literal: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut depth = 0_u32;
    for c in literal.replace("\\n", "`").replace("\\\"", "\"").chars() {
        match c {
            '{' => {
                depth += 1;
                plain.push('`');
            }
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let parts = plain.split('`').map(single_blanks);
    // A format of a time is no word.
    let words = |part: &str| part.split(' ').filter(|it| !it.starts_with('%')).count();
    parts.filter(|part| words(part) >= WORDS_MIN).collect()
}
