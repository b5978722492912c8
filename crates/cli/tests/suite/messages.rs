//! Every sentence that the program says comes up in a test, or is listed here with the reason why it does not.
//!
//! The reports and replies, what is said inside of a command, what the doctor finds, what is noted of commands. Not here:
//! sentences of the file driver that a report only passes on, and those of the verdicts of `classify`, which `crates/shell`
//! tests by themselves.

use std::fs;
use std::path::{Path, PathBuf};

/// Fewer words are no sentence: they come up everywhere.
const WORDS_MIN: usize = 3;

/// Where the sentences are.
const SOURCES: [&str; 3] = [
    "crates/cli/src",
    "crates/engine/src",
    "crates/drivers/src/command",
];

/// What programs read, not people (the schema has a test of its own), and errors that the report puts into its own words.
const NOT_SAID: [&str; 4] = [
    "report/code.rs",
    "engine/src/error.rs",
    "engine/src/gate_error.rs",
    "engine/src/trial/error.rs",
];

/// Lines whose strings are for programmers.
const NOT_FOR_PEOPLE: [&str; 4] = ["reason = \"", ".expect(\"", "unreachable!(", "#[must_use"];

/// What no test can bring about here, and why.
const EXCUSED: [(&str, &[&str]); 9] = [
    (
        "a call of the system fails that does not fail here; `proof/errno` lets each fail",
        &[
            "become two processes",
            "wait for the command",
            "read the recipe",
            "watch the command",
            "record the command",
            "it has no record",
            "watch what the command left running",
            "write the recipe",
            "sync what was kept",
            "begin the record of the command",
            "see what the command left running",
            "find the current directory",
            "write down what the command changed",
            "remove the layers of the trial",
            "look at what the command changed",
            "write the export",
            "read the link",
            "make a copy",
            "sync the copy",
            "was refused: could not",
            "a directory cannot be watched:",
            "the disk would not keep the capture log:",
            "write the capture log beside",
            "the capture log",
            "the manual page could not be made",
            "the answer could not be read",
            "gave up with code",
            "record what it did with",
        ],
    ),
    (
        "the program does not do this: it asks at once, is there to be started, and takes a stranger's door for none",
        &[
            "this is no process of the command",
            "it took too long to say what is wanted",
            "the program could not be started outside",
            "see whether the directory is there, and try again",
            "the engine gave no trial",
        ],
    ),
    (
        "another machine: an older kernel, a file system without modes, a core dump, a restart",
        &[
            "the state directory has mode",
            "what was asked is damaged, or of a newer version of this program",
            "chmod 700 it: images hold secrets",
            "check that the state directory is there",
            "openat2 does not work (",
            "nothing to do: paths are walked step by step",
            "the kernel wrote a core dump of it; that file is not undone",
            "the machine went down while it ran; what it did in the last moments",
            "there is no depot on its file system",
        ],
    ),
    (
        "a process that no signal ends: one that waits for a file system that does not answer",
        &[
            "it could not be ended:",
            "its processes could not be ended, and nobody watches them:",
            "a process that is in no list",
        ],
    ),
    (
        "a moment that cannot be met on purpose: thousands of events at once, a file that changes whenever it is read",
        &[
            "it keeps changing while it is read",
            "more happened at once than could be looked at",
            "was written, and somebody else changed it at once",
            "nothing was decided about {}",
            "somebody else is deciding about it",
            "see what came of it with `backout show {}`",
        ],
    ),
    (
        "a way into another view of the file system that `proof/attacks` goes, and does not quote",
        &[
            "writing was refused by a path that nobody else can follow",
            "a call of process",
        ],
    ),
    (
        "a note of an operation that cannot be recorded then: the disk is full (`proof/commands/full_log.rs`)",
        &[
            "the capture log could not be written:",
            "writing was refused:",
        ],
    ),
    (
        "stays in the journal; `export` gives it to programs",
        &[
            "somebody asked for it",
            "its process died, and it cannot be taken back",
            "its process died, and nothing is as it was to make it",
        ],
    ),
    (
        "not told by a test yet",
        &[
            "there is too much to show all of it; name a part with",
            "too large to show",
            "did that since",
            "and nobody looked what became of the files there:",
            "were restored: what was in it is not kept",
            "it comes back with `{tree}`: {why}",
            "write the capture log beside",
            "driver.rs: the capture log",
            "a copy of",
        ],
    ),
];

#[test]
fn every_sentence_is_in_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tests = tests_of(&root);
    let mut missing = Vec::new();
    for file in SOURCES.iter().flat_map(|source| files(&root.join(source))) {
        if file.ends_with("tests.rs") || NOT_SAID.iter().any(|it| file.ends_with(it)) {
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
    let excused = || EXCUSED.iter().flat_map(|(_, sentences)| *sentences);
    let is_there = |sentence: &&&str| missing.iter().any(|it| it.contains(**sentence));
    let over: Vec<_> = excused().filter(|it| !is_there(it)).collect();
    missing.retain(|it| !excused().any(|sentence| it.contains(sentence)));
    assert!(missing.is_empty(), "in no test:\n{}", missing.join("\n"));
    assert!(over.is_empty(), "excused, and told or gone: {over:?}");
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
        let is_said = !NOT_FOR_PEOPLE.iter().any(|it| code.contains(it));
        if code.starts_with("//") || !is_said {
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

/// Puts strings that go on after a backslash on one line, and what is expected with its reason; leaves quotes out that are
/// characters.
fn joined(source: &str) -> String {
    let mut text = String::new();
    for line in source.replace("'\"'", "").lines() {
        let begin = line.strip_suffix('\\');
        match begin.or_else(|| line.ends_with(".expect(").then_some(line)) {
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
