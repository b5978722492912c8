//! Commands, their class, and a word that decided: what is written here is what users are told.
//!
//! Rows are in `rows/`: `class | deciding word | command`; `\n` and `\t` stand for what they are, and a word `-` for any.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use backout_shell::{Class, classify, classify_words};

fn class(text: &str) -> Class {
    match text {
        "reads" => Class::ReadOnly,
        "writes" => Class::Writes,
        "unknown" => Class::Unknown,
        other => panic!("{other} is no class"),
    }
}

/// Compares every row and shows all that differ.
#[track_caller]
fn check(rows: &str) {
    let mut wrong = Vec::new();
    for row in rows.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let mut parts = row.splitn(3, " | ");
        let (expected, word) = (
            class(parts.next().unwrap().trim()),
            parts.next().unwrap().trim(),
        );
        let unescaped = |text: &str| text.replace("\\n", "\n").replace("\\t", "\t");
        let (word, command) = (unescaped(word), unescaped(parts.next().unwrap()));
        let verdict = classify(&command);
        let names_it = word == "-" || verdict.words.contains(&word);
        if verdict.class != expected || !names_it {
            wrong.push(format!(
                "{command}\n    is {} because {}, by {:?}",
                verdict.class, verdict.because, verdict.words
            ));
        }
        assert!(!verdict.because.is_empty(), "{command}");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn readers_and_writers() {
    check(include_str!("rows/readers_and_writers.txt"));
}

#[test]
fn flags_that_write() {
    check(include_str!("rows/flags_that_write.txt"));
}

#[test]
fn scripts_of_sed_and_awk() {
    check(include_str!("rows/scripts_of_sed_and_awk.txt"));
}

#[test]
fn git_and_build_tools() {
    check(include_str!("rows/git_and_build_tools.txt"));
}

#[test]
fn commands_that_run_commands() {
    check(include_str!("rows/commands_that_run_commands.txt"));
}

#[test]
fn the_shell_itself() {
    check(include_str!("rows/the_shell_itself.txt"));
}

#[test]
fn redirections() {
    check(include_str!("rows/redirections.txt"));
}

#[test]
fn what_the_parser_would_miss() {
    check(include_str!("rows/what_the_parser_would_miss.txt"));
}

#[test]
fn words_without_a_shell_stand_for_themselves() {
    for (argv, class) in [
        (vec!["ls", "*.x"], Class::ReadOnly),
        (vec!["sort", "*"], Class::ReadOnly),
        (vec!["sort", "$X"], Class::ReadOnly),
        (vec!["echo", "$(rm x)", ">", "y"], Class::ReadOnly),
        (vec!["ls", ";", "rm", "x"], Class::ReadOnly),
        (vec!["sort", "-o", "x"], Class::Writes),
        (vec!["rm", "x"], Class::Writes),
        (vec!["bash", "-c", "rm x"], Class::Writes),
        (vec!["find", ".", "-exec", "rm", "{}", ";"], Class::Writes),
        (vec!["FOO=1", "ls"], Class::Unknown),
        (vec!["frobnicate"], Class::Unknown),
        (
            vec!["bash", "-c", "((((((((((((((((((((((("],
            Class::Unknown,
        ),
        (vec![], Class::ReadOnly),
    ] {
        let verdict = classify_words(&argv);
        assert_eq!(verdict.class, class, "{argv:?}: {}", verdict.because);
    }
}

#[test]
fn words_that_are_no_text_are_unknown() {
    use std::os::unix::ffi::OsStrExt as _;
    let word = std::ffi::OsStr::from_bytes(b"a\xff");
    assert_eq!(
        classify_words(&[std::ffi::OsStr::new("ls"), word]).class,
        Class::Unknown
    );
}

#[test]
fn the_worst_part_speaks_for_the_line() {
    let verdict = classify("ls | frobnicate; rm x; mv a b");
    assert_eq!(verdict.class, Class::Writes);
    assert_eq!(verdict.words, ["rm"]);
    let classes: Vec<Class> = verdict
        .commands
        .iter()
        .map(|command| command.class)
        .collect();
    assert_eq!(
        classes,
        [
            Class::ReadOnly,
            Class::Unknown,
            Class::Writes,
            Class::Writes
        ]
    );
    assert!(Class::Writes.needs_capture() && Class::Unknown.needs_capture());
    assert!(!Class::ReadOnly.needs_capture());
}

#[test]
fn the_shape_of_a_verdict() {
    let json = serde_json::to_value(classify("ls > x")).unwrap();
    let expected = serde_json::json!({
        "class": "writes",
        "because": "`> x` writes a file",
        "words": ["> x"],
        "commands": [{
            "command": "ls > x",
            "class": "writes",
            "because": "`> x` writes a file",
            "words": ["> x"],
        }],
    });
    assert_eq!(json, expected);
    assert_eq!(serde_json::json!(classify("ls").class), "read-only");
}
