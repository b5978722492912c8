//! Every kind of change, and every way to get it wrong.

use super::*;

fn read(json: &str) -> Result<String, String> {
    let requests = parse(json.as_bytes(), Path::new("/base"));
    let summaries = requests.map(|requests| {
        requests
            .iter()
            .map(FileRequest::summary)
            .collect::<Vec<_>>()
            .join("; ")
    });
    summaries.map_err(|report| [vec![report.what], report.why].concat().join(": "))
}

fn one(change: &str) -> Result<String, String> {
    read(&format!(r#"{{"changes": [{change}]}}"#))
}

#[test]
fn every_kind_of_change_is_read() {
    for (change, summary) in [
        (r#"{"write": {"path": "a", "text": "x"}}"#, "write /base/a"),
        (
            r#"{"write": {"path": "a/b", "base64": "AAEC", "create": true, "parents": true, "mode": "0600"}}"#,
            "write /base/a/b",
        ),
        (
            r#"{"write": {"path": "a", "from": "b", "existing": true}}"#,
            "write /base/a",
        ),
        (
            r#"{"append": {"path": "a", "text": "x"}}"#,
            "append to /base/a",
        ),
        (
            r#"{"edit": {"path": "a", "search": "x", "replace": "y", "nth": 2}}"#,
            "edit /base/a",
        ),
        (r#"{"patch": {"patch": "--- a/f"}}"#, "patch /base"),
        (
            r#"{"patch": {"patch": "--- a/f", "base": "d"}}"#,
            "patch /base/d",
        ),
        (
            r#"{"remove": {"path": "a", "recursive": true}}"#,
            "remove /base/a and all below",
        ),
        (
            r#"{"move": {"from": "a", "to": "b"}}"#,
            "move /base/a to /base/b",
        ),
        (
            r#"{"copy": {"from": "a", "to": "b", "recursive": true}}"#,
            "copy /base/a to /base/b",
        ),
        (
            r#"{"mkdir": {"path": "a", "mode": "755"}}"#,
            "make directory /base/a",
        ),
        (
            r#"{"symlink": {"path": "a", "to": "../b"}}"#,
            "link /base/a to ../b",
        ),
        (
            r#"{"link": {"path": "a", "to": "b"}}"#,
            "name /base/b also /base/a",
        ),
        (
            r#"{"chmod": {"path": "a", "mode": "u+x"}}"#,
            "change mode of /base/a to u+x",
        ),
        (
            r#"{"chown": {"path": "a", "owner": "7:8"}}"#,
            "change owner of /base/a to 7:8",
        ),
    ] {
        assert_eq!(one(change).as_deref(), Ok(summary), "{change}");
    }
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    for (change, word) in [
        (
            r#"{"write": {"path": "a", "txt": "x"}}"#,
            "unknown field `txt`, expected one of `path`, `text`",
        ),
        (
            r#"{"write": {"path": "a", "txt": "x"}}"#,
            "at line 1 column 42",
        ),
        (r#"{"wriet": {}}"#, "unknown variant `wriet`"),
        (
            r#"{"write": {"path": "/etc/passwd", "text": ""}}"#,
            "`/etc/passwd` is not a path below",
        ),
        (
            r#"{"write": {"path": "a/../../b", "text": ""}}"#,
            "change 1 of the batch",
        ),
        (
            r#"{"write": {"path": "", "text": ""}}"#,
            "is not a path below",
        ),
        (r#"{"write": {"path": "a"}}"#, "not clear what to write"),
        (
            r#"{"write": {"path": "a", "text": "", "base64": ""}}"#,
            "not clear what to write",
        ),
        (
            r#"{"write": {"path": "a", "base64": "?"}}"#,
            "does not hold base64",
        ),
        (
            r#"{"write": {"path": "a", "from": "../b"}}"#,
            "`../b` is not a path below",
        ),
        (
            r#"{"write": {"path": "a", "text": "", "mode": "888"}}"#,
            "`888` is not a mode",
        ),
        (
            r#"{"write": {"path": "a", "text": "", "create": true, "existing": true}}"#,
            "contradict",
        ),
        (
            r#"{"edit": {"path": "a", "search": "", "replace": "", "all": true, "nth": 1}}"#,
            "contradict",
        ),
        (
            r#"{"chmod": {"path": "a", "mode": "q"}}"#,
            "`q` is not a mode",
        ),
    ] {
        let error = one(change).unwrap_err();
        assert!(error.contains(word), "{change}: {error}");
    }
    assert!(read("{\"changes\": []}").unwrap_err().contains("empty"));
    assert!(read("{}").unwrap_err().contains("missing field `changes`"));
    assert!(
        read("{\"changes\": [], \"more\": 1}")
            .unwrap_err()
            .contains("unknown field `more`")
    );
}

#[test]
fn the_examples_of_the_standard_for_base64_are_read() {
    for (text, bytes) in [
        ("", &b""[..]),
        ("Zg==", b"f"),
        ("Zm8=", b"fo"),
        ("Zm9v", b"foo"),
        ("Zm9vYg==", b"foob"),
        ("Zm9vYmE=", b"fooba"),
        ("Zm9vYmFy", b"foobar"),
        ("Zg", b"f"),
        ("AP+A/w==", b"\x00\xff\x80\xff"),
    ] {
        assert_eq!(decoded(text).as_deref(), Some(bytes), "{text}");
    }
}

#[test]
fn what_is_not_base64_is_refused() {
    for text in [
        "Z", "Zg=", "Zg===", "Zh==", "Zm 9", "Zm9-", "=", "====", "ü",
    ] {
        assert_eq!(decoded(text), None, "{text}");
    }
}
