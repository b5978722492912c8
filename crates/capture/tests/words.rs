//! What is said to a program that uses this crate by itself, or that talks to the relay in a way that `backout` never does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsString;

use backout_capture::live::{Request, Variables, Watching, spawn};

/// Bytes as they come through the relay: how long the rest is, and the rest.
fn arrived(rest: &[u8]) -> Vec<u8> {
    let length = u64::try_from(rest.len()).unwrap();
    [length.to_le_bytes().as_slice(), rest].concat()
}

#[test]
fn what_is_no_request_says_why() {
    for (bytes, said) in [
        (
            u64::MAX.to_le_bytes().to_vec(),
            "it is longer than any request",
        ),
        (arrived(b"/\x000"), "it does not end where it should"),
        (
            [arrived(b"/\x000\0"), b"more".to_vec()].concat(),
            "it does not end where it should",
        ),
        (
            arrived(b"here\x000\0"),
            "the directory is not an absolute path",
        ),
        (
            arrived(b"/\x002\0one\0"),
            "the number of words is not that of the words",
        ),
        (
            arrived(b"/\x00many\0"),
            "the number of words is not that of the words",
        ),
        (
            arrived(b"/\x001\0one\0NAME\0"),
            "a variable has no name or no value",
        ),
        (
            arrived(b"/\x001\0one\0\0value\0"),
            "a variable has no name or no value",
        ),
    ] {
        let error = Request::decode(&bytes).unwrap_err();
        assert_eq!(error.to_string(), said, "{bytes:?}");
    }
    let whole = arrived(b"/\x001\0one\0NAME\0value\0");
    let request = Request::decode(&whole).unwrap().unwrap();
    assert_eq!(request.encode(), whole);
    assert_eq!(Request::decode(&whole[..9]), Ok(None), "more is to come");
}

#[test]
fn a_word_that_no_program_could_be_given_is_refused_before_anything_starts() {
    let variables = Variables {
        base: None,
        set: &[],
    };
    let words = [OsString::from("true\0")];
    let error = spawn(&words, Watching::Nothing, variables).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a word of the command has a zero byte in it"
    );
}
