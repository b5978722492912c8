//! Values of keys that are named like secrets: `password = "…"`, `API_KEY: …`, `"client_secret": "…"`.

use std::ops::Range;

use super::pairs::Pairs;
use super::{Hit, plausible};

/// Parts of a name that say "secret", in small or capital letters. Between two of them a `_` or a `-` may stand.
const NAMES: [(&str, &str); 10] = [
    ("passw", ""),
    ("passphrase", ""),
    ("secret", ""),
    ("token", ""),
    ("pwd", ""),
    ("api", "key"),
    ("access", "key"),
    ("private", "key"),
    ("auth", "key"),
    ("credential", ""),
];

/// How these parts begin.
pub(super) static BEGINNINGS: Pairs = beginnings();

#[expect(
    clippy::indexing_slicing,
    reason = "a constant with a wrong index does not compile"
)]
const fn beginnings() -> Pairs {
    let mut set = Pairs::none();
    let mut at = 0;
    while at < NAMES.len() {
        let name = NAMES[at].0.as_bytes();
        set = set.with_any_case([name[0], name[1]]);
        at += 1;
    }
    set
}

/// Finds the part of a name that says "secret" and begins here.
pub(super) fn name_at(content: &[u8], start: usize) -> Option<Range<usize>> {
    if !BEGINNINGS.stands_at(content, start) {
        return None;
    }
    let rest = content.get(start..)?;
    let length = NAMES.iter().find_map(|name| length_of(*name, rest))?;
    Some(start..start + length)
}

/// Tells how long a name is that begins here, if it does.
fn length_of((first, second): (&str, &str), rest: &[u8]) -> Option<usize> {
    let begins = |rest: &[u8], word: &str| {
        let head = rest.get(..word.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()))
    };
    begins(rest, first).then_some(())?;
    let behind = rest.get(first.len()..)?;
    let gap = usize::from(!second.is_empty() && matches!(behind.first(), Some(b'_' | b'-')));
    let is_there = begins(behind.get(gap..)?, second);
    is_there.then_some(first.len() + gap + second.len())
}

/// What follows in a name that is about a secret and holds none: `token_url`, `secretName`, `password_hash`.
const HARMLESS: [&str; 43] = [
    "name",
    "ref",
    "url",
    "uri",
    "path",
    "file",
    "dir",
    "id",
    "endpoint",
    "type",
    "count",
    "limit",
    "expir",
    "ttl",
    "len",
    "size",
    "arn",
    "hash",
    "digest",
    "sha",
    "checksum",
    "field",
    "policy",
    "regex",
    "pattern",
    "reset",
    "prompt",
    "label",
    "title",
    "hint",
    "placeholder",
    "header",
    "prefix",
    "suffix",
    "version",
    "format",
    "mode",
    "class",
    "kind",
    "iz",
    "stream",
    "public",
    "algorithm",
];

/// The longest name and the longest value that are looked at.
const NAME_MAX: usize = 64;
const VALUE_MAX: usize = 512;

/// Tells where the name of a secret ends that begins here, or its value if that is one.
pub(super) fn at(content: &[u8], start: usize) -> Option<(usize, Option<Hit>)> {
    let found = name_at(content, start)?;
    let rest = content.get(found.end..).unwrap_or_default();
    let tail = rest
        .iter()
        .take(NAME_MAX)
        .take_while(|byte| is_name(**byte))
        .count();
    let end = found.end + tail;
    let hit = assigned(content, found.start, end);
    Some((hit.as_ref().map_or(end, |hit| hit.range.end), hit))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The secret that is assigned to the name that ends here.
fn assigned(content: &[u8], keyword: usize, end: usize) -> Option<Hit> {
    let mut at = end;
    if matches!(content.get(at), Some(b'"' | b'\'' | b']')) {
        at += 1;
    }
    at = blanks(content, at);
    at += match (content.get(at), content.get(at + 1)) {
        (Some(b'='), Some(b'=' | b'~')) | (Some(b':'), Some(b':')) => return None,
        (Some(b'='), Some(b'>')) | (Some(b':'), Some(b'=')) => 2,
        (Some(b'=' | b':'), _) => 1,
        _ => return None,
    };
    at = blanks(content, at);
    let tail = content.get(keyword..end)?.to_ascii_lowercase();
    let has = |word: &str| tail.windows(word.len()).any(|part| part == word.as_bytes());
    if HARMLESS.into_iter().any(has) {
        return None;
    }
    let (start, value) = value(content, at)?;
    let is_password = tail.starts_with(b"pass") || tail.starts_with(b"pwd");
    if !plausible::is_secret_value(value, is_password) {
        return None;
    }
    let kind = match tail.as_slice() {
        t if t.starts_with(b"pass") || t.starts_with(b"pwd") => "a password",
        t if t.starts_with(b"token") => "a token",
        t if t.starts_with(b"private") => "a private key",
        t if t.starts_with(b"api") || t.starts_with(b"access") || t.starts_with(b"auth") => {
            "a key of a service"
        }
        _ => "a secret",
    };
    Some(Hit {
        range: start..start + value.len(),
        kind: kind.into(),
    })
}

fn blanks(content: &[u8], at: usize) -> usize {
    let rest = content.get(at..).unwrap_or_default();
    at + rest
        .iter()
        .take(16)
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count()
}

/// The value that begins here, without its quotes. What is computed or looked up is none.
fn value(content: &[u8], at: usize) -> Option<(usize, &[u8])> {
    let quote = content
        .get(at)
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let start = at + usize::from(quote.is_some());
    let rest = content.get(start..)?;
    let is_print = |byte: &u8| *byte > b' ' && *byte < 0x7f;
    let is_part = |(at, byte): &(usize, &u8)| match (quote, byte) {
        (Some(quote), byte) => **byte != quote && is_print(byte),
        // `a=b=c` goes on to the next assignment; the end of base64 does not.
        (None, b'=') => !rest.get(at + 1).is_some_and(u8::is_ascii_alphanumeric),
        (None, byte) => is_print(byte) && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';'),
    };
    let bytes = rest.iter().enumerate().take(VALUE_MAX + 1);
    let length = bytes.take_while(is_part).count();
    let value = rest.get(..length)?;
    let is_closed = match quote {
        Some(quote) => rest.get(length) == Some(&quote),
        None => true,
    };
    let is_code = |byte: &u8| match quote {
        Some(_) => matches!(byte, b'{' | b'}' | b'<' | b'>' | b'(' | b'\\'),
        None => matches!(
            byte,
            b'{' | b'}' | b'<' | b'>' | b'(' | b')' | b'[' | b']' | b'&' | b'|' | b'\\' | b'*'
        ),
    };
    // Without quotes a dotted or slashed name is code or a path.
    let is_reference = value
        .windows(2)
        .any(|pair| pair == b"::" || pair == b"->" || pair == b"//")
        || value.starts_with(b"/")
        || value.starts_with(b"./")
        || value.starts_with(b"arn:")
        || (quote.is_none() && value.contains(&b'.') && value.iter().all(|byte| is_name(*byte)));
    (is_closed && length <= VALUE_MAX && !value.iter().any(is_code) && !is_reference)
        .then_some((start, value))
}
