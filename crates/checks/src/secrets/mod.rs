//! Secrets in a text: tokens of known services, private keys, passwords in URLs, and values of keys that are named like secrets.
//!
//! - A finding never holds the secret: it shows the first four characters and the length, and of a short one the length only.
//! - Time is linear in the content. Any bytes will do: UTF-16 is decoded, and in binary content only tokens and keys are looked for.
//! - Few false alarms matter more than the last secret: a check that cries wolf is switched off. What looks made up is let through (`plausible`): words
//!   like `changeme` or `xxx`, `${VARIABLE}`, `<password>`, documented examples, values with little variety. So are UUIDs, digests and a
//!   password that equals its user's name (`postgres:postgres@`).
//!
//! The formats are written from what the services document about their tokens.

mod assign;
mod pairs;
mod plausible;
mod shapes;
mod tokens;

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use pairs::Pairs;

use crate::finding::{Finding, Place};
use crate::value::FINDINGS_MAX;

/// A secret that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Where it is, in bytes of the decoded content.
    pub(crate) range: Range<usize>,
    /// What it is, in words that fit behind "this is".
    pub(crate) kind: Cow<'static, str>,
}

/// Finds secrets in the content of a file.
pub fn check(content: &[u8]) -> Vec<Finding> {
    let content = decoded(content);
    told(&content, hits(&content))
}

/// Finds secrets that the old content did not have already, wherever they stood in it. That is asked for only if there are any.
pub fn new_only<'b>(before: impl FnOnce() -> &'b [u8], after: &[u8]) -> Vec<Finding> {
    let after = decoded(after);
    let mut found = hits(&after);
    if found.is_empty() {
        return Vec::new();
    }
    let before = decoded(before());
    let old = hits(&before);
    let known: HashSet<&[u8]> = old
        .iter()
        .filter_map(|hit| before.get(hit.range.clone()))
        .collect();
    found.retain(|hit| {
        after
            .get(hit.range.clone())
            .is_none_or(|secret| !known.contains(secret))
    });
    told(&after, found)
}

/// UTF-16 with a byte order mark as UTF-8; anything else as it is.
fn decoded(content: &[u8]) -> Cow<'_, [u8]> {
    let unit: fn([u8; 2]) -> u16 = match content {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return Cow::Borrowed(content),
    };
    let (pairs, _) = content.as_chunks::<2>();
    let units = pairs.iter().skip(1).map(|pair| unit(*pair));
    let text: String = char::decode_utf16(units)
        .map(|c| c.unwrap_or('\u{fffd}'))
        .collect();
    Cow::Owned(text.into_bytes())
}

/// Whether the content is no text: a zero byte near its beginning.
fn is_binary(content: &[u8]) -> bool {
    let head = content.get(..8192).unwrap_or(content);
    memchr::memchr(0, head).is_some()
}

/// Where a token, or the name of a secret, may begin.
static BEGINNINGS: Pairs = Pairs::none()
    .with_all(&tokens::PAIRS)
    .with_all(&assign::BEGINNINGS);

/// All secrets, in their order, none inside of another.
fn hits(content: &[u8]) -> Vec<Hit> {
    let is_text = !is_binary(content);
    let (mut hits, mut assigned) = (Vec::new(), Vec::new());
    // What stands before these places belongs to the last token, or to the last name.
    let (mut token_from, mut name_from) = (0, 0);
    let mut at = 0;
    while let Some(start) = BEGINNINGS.next(content, at) {
        at = start + 1;
        if start >= token_from
            && let Some(hit) = tokens::at(content, start)
        {
            token_from = hit.range.end;
            if hit.kind.contains("AWS") {
                hits.extend(shapes::aws_secret(content, &hit.range));
            }
            hits.push(hit);
        }
        if is_text
            && start >= name_from
            && let Some((end, hit)) = assign::at(content, start)
        {
            name_from = end;
            assigned.extend(hit);
        }
    }
    hits.extend(shapes::discord_bots(content));
    hits.extend(assigned);
    // A token tells more than the key that it is assigned to: of two that overlap the first found stays.
    let mut order: Vec<usize> = (0..hits.len()).collect();
    order.sort_by_key(|at| hits.get(*at).map(|hit| (hit.range.start, *at)));
    let mut out: Vec<Hit> = Vec::new();
    for at in order {
        let Some(hit) = hits.get_mut(at) else {
            continue;
        };
        match out.last() {
            Some(last) if last.range.end > hit.range.start => {}
            Some(_) | None => out.push(Hit {
                range: hit.range.clone(),
                kind: std::mem::take(&mut hit.kind),
            }),
        }
    }
    out
}

fn told(content: &[u8], hits: Vec<Hit>) -> Vec<Finding> {
    let binary = is_binary(content);
    let mut walk = Walk {
        content,
        at: 0,
        place: Place { line: 1, column: 1 },
    };
    let mut findings = Vec::new();
    for hit in hits.into_iter().take(FINDINGS_MAX) {
        let secret = content.get(hit.range.clone()).unwrap_or_default();
        let mut found = format!("this looks like {}: {}", hit.kind, masked(secret));
        if binary {
            found = format!("{found}, at byte {}", hit.range.start);
        }
        let remedy = "take it out, read it from the environment or a secret store, and revoke it if it was real";
        let finding = Finding::new(found).mended_by(remedy);
        findings.push(if binary {
            finding
        } else {
            finding.at(walk.to(hit.range.start))
        });
    }
    findings
}

/// The first characters of a secret and its length. Of a short one nothing is shown.
fn masked(secret: &[u8]) -> String {
    let text = String::from_utf8_lossy(secret);
    let length = text.chars().count();
    let first: String = text.chars().take(4).filter(|c| !c.is_control()).collect();
    if length >= 16 {
        format!("`{first}…` ({length} characters)")
    } else {
        format!("`…` ({length} characters)")
    }
}

/// Counts lines and columns while it walks forward.
struct Walk<'c> {
    content: &'c [u8],
    at: usize,
    place: Place,
}

impl Walk<'_> {
    fn to(&mut self, offset: usize) -> Place {
        if self.at == 0 && self.content.starts_with(b"\xef\xbb\xbf") {
            self.at = 3;
        }
        for byte in self.content.get(self.at..offset).unwrap_or_default() {
            if *byte == b'\n' {
                self.place.line = self.place.line.saturating_add(1);
                self.place.column = 1;
            } else if byte & 0xc0 != 0x80 {
                self.place.column = self.place.column.saturating_add(1);
            }
        }
        self.at = offset.max(self.at);
        self.place
    }
}

#[cfg(test)]
mod tests;
