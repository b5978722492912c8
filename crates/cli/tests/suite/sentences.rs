//! The strings of Rust code, and the sentences in them.

use std::fs;
use std::path::{Path, PathBuf};

/// Fewer words are no sentence: they come up everywhere.
const WORDS_MIN: usize = 3;

/// What stands before a string that is for programmers.
const NOT_FOR_PEOPLE: [&str; 5] = [
    "reason =",
    ".expect(",
    "unreachable!(",
    "must_use =",
    "assert",
];

/// Words that only a statement for the database has.
const OF_STATEMENTS: [&str; 14] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "PRAGMA", "VACUUM", "BEGIN", "WHERE",
    "INDEXED", "ORDER", "FROM", "?", "?1",
];

/// How the tests of a module begin that are in the same file.
const TESTS: &str = "#[cfg(test)]\nmod tests {";

/// All Rust files and snapshots below a directory.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let end = path.extension().unwrap_or_default();
        if path.is_dir() {
            found.extend(files(&path));
        } else if end == "rs" || end == "snap" {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Tells whether a file holds only what tests need.
pub(crate) fn is_test(file: &Path) -> bool {
    let is_in = |name: &str| file.components().any(|part| part.as_os_str() == name);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with("tests.rs") || name == "fixture.rs" || is_in("tests")
}

/// The text of all tests below the crates, comments left out, with single blanks; but not that of one file.
pub(crate) fn tests_of(root: &Path, but: &str) -> String {
    let mut text = String::new();
    for file in files(&root.join("crates")) {
        let content = fs::read_to_string(&file).unwrap();
        let tests = match content.split_once(TESTS) {
            _ if is_test(&file) => content.as_str(),
            Some((_, tests)) => tests,
            None => continue,
        };
        if file.ends_with(but) {
            continue;
        }
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        text.extend(tests.lines().filter(is_code).flat_map(|line| [line, " "]));
    }
    single_blanks(&text.replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// The strings that a source file says to people.
pub(crate) fn literals(source: &str) -> Vec<String> {
    let source = source.split(TESTS).next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = source;
    let mut code = String::new();
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        rest = match first {
            '/' if after.starts_with('/') => after.split_once('\n').map_or("", |it| it.1),
            '\'' => after.strip_prefix(character(after)).unwrap_or(after),
            '"' => {
                let length = if code.ends_with("r#") {
                    after.find("\"#").unwrap_or(after.len())
                } else {
                    end_of_string(after)
                };
                let (string, behind) = after.split_at(length);
                if !is_for_programmers(&code) && !is_statement(string) {
                    found.push(string.to_owned());
                }
                code.push('"');
                behind.get(1..).unwrap_or_default()
            }
            c => {
                let is_blank = c.is_whitespace() && c != '\n';
                code.extend((!is_blank || !code.ends_with(' ')).then_some(c));
                after
            }
        };
    }
    found
}

/// A character in quotes, behind the first of them; nothing if it is the name of a lifetime.
fn character(after: &str) -> &str {
    let end = match after.strip_prefix('\\') {
        Some(escaped) => escaped
            .char_indices()
            .skip(1)
            .find(|it| it.1 == '\'')
            .map(|it| it.0 + 2),
        None => after
            .char_indices()
            .nth(1)
            .filter(|it| it.1 == '\'')
            .map(|it| it.0 + 1),
    };
    end.and_then(|end| after.get(..end)).unwrap_or_default()
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

/// Tells by the code before it whether a string is for programmers.
fn is_for_programmers(code: &str) -> bool {
    let statement = code.rfind([';', '{', '}']).map_or(code, |at| &code[at..]);
    let statement = statement.trim_end();
    let line = statement.rsplit('\n').next().unwrap_or_default();
    let is_before = |mark: &&str| line.contains(*mark) || statement.ends_with(*mark);
    NOT_FOR_PEOPLE.iter().any(is_before) || statement.contains("assert!(")
}

fn is_statement(string: &str) -> bool {
    let mut words = string.split(|c: char| c.is_whitespace() || "(),".contains(c));
    words.any(|word| OF_STATEMENTS.contains(&word))
}

/// The parts of a string that are always the same and long enough to be told from others.
pub(crate) fn sentences(literal: &str) -> Vec<String> {
    let literal = literal.split("\\\n").map(str::trim_start);
    let literal = literal.collect::<String>().replace("\\n", "`");
    let literal = literal
        .replace("\\\"", "\"")
        .replace("{{", "")
        .replace("}}", "");
    let mut plain = String::new();
    let mut depth = 0_u32;
    for c in literal.chars() {
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

fn single_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
