//! Patterns for paths: `*` and `?` stay within a name, `**` does not, `[a-z]` is one of several.
//!
//! A pattern that matches a directory matches all that is in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use backout_model::any_path;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A pattern, made absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    pattern: Vec<u8>,
}

impl Glob {
    /// Takes a pattern; one that does not begin with a slash begins at `directory`.
    pub fn new(pattern: impl AsRef<OsStr>, directory: &Path) -> Self {
        let pattern = pattern.as_ref().as_bytes();
        let relative = pattern.strip_prefix(b"./").unwrap_or(pattern);
        let relative = match relative.strip_suffix(b"/") {
            Some(shorter) if !shorter.is_empty() => shorter,
            _ => relative,
        };
        if relative.starts_with(b"/") {
            return Self {
                pattern: relative.to_vec(),
            };
        }
        let mut whole = escaped(directory.as_os_str().as_bytes());
        if relative != b"." {
            if !whole.ends_with(b"/") {
                whole.push(b'/');
            }
            whole.extend(relative);
        }
        Self { pattern: whole }
    }

    /// Gives the pattern that matches one path and what is in it, whatever letters its names have.
    pub fn exactly(path: &Path) -> OsString {
        OsString::from_vec(escaped(path.as_os_str().as_bytes()))
    }

    /// Tells whether it matches a path or a directory above it.
    pub fn matches(&self, path: &Path) -> bool {
        path.ancestors()
            .any(|part| matches(&self.pattern, part.as_os_str().as_bytes()))
    }
}

impl Serialize for Glob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        any_path::serialize(Path::new(OsStr::from_bytes(&self.pattern)), serializer)
    }
}

impl<'de> Deserialize<'de> for Glob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pattern = any_path::deserialize(deserializer)?;
        Ok(Self::new(pattern, Path::new("/")))
    }
}

/// Keeps the characters of a name from meaning something.
fn escaped(name: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::new();
    for byte in name {
        if b"*?[\\".contains(byte) {
            escaped.push(b'\\');
        }
        escaped.push(*byte);
    }
    escaped
}

/// A part of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// This byte.
    Byte(u8),
    /// Any byte of a name.
    Any,
    /// One of these, or none of them.
    OneOf(Vec<(u8, u8)>, bool),
    /// Any number of bytes of a name.
    Star,
    /// Any number of bytes.
    Deep,
    /// Any number of whole directories.
    Directories,
}

fn parts(mut pattern: &[u8]) -> Vec<Part> {
    let mut parts = Vec::new();
    loop {
        let (part, rest) = match pattern {
            [] => return parts,
            [b'*', b'*', b'/', rest @ ..] => (Part::Directories, rest),
            [b'*', b'*', rest @ ..] => (Part::Deep, rest),
            [b'*', rest @ ..] => (Part::Star, rest),
            [b'?', rest @ ..] => (Part::Any, rest),
            [b'[', rest @ ..] => one_of(rest).unwrap_or((Part::Byte(b'['), rest)),
            [b'\\', byte, rest @ ..] | [byte, rest @ ..] => (Part::Byte(*byte), rest),
        };
        parts.push(part);
        pattern = rest;
    }
}

/// Reads what follows a `[`; nothing if it has no end.
fn one_of(text: &[u8]) -> Option<(Part, &[u8])> {
    let (is_negated, mut rest) = match text {
        [b'!' | b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut ranges = Vec::new();
    loop {
        rest = match rest {
            [] => return None,
            [b']', after @ ..] if !ranges.is_empty() => {
                return Some((Part::OneOf(ranges, is_negated), after));
            }
            [from, b'-', to, after @ ..] if *to != b']' => {
                ranges.push((*from, *to));
                after
            }
            [byte, after @ ..] => {
                ranges.push((*byte, *byte));
                after
            }
        };
    }
}

/// Matches a pattern against the whole of a text, in time proportional to the product of their lengths: part by part,
/// every place that can be reached is kept.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut reached = vec![false; text.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for part in parts(pattern) {
        reached = after(&part, &reached, text);
    }
    reached.last() == Some(&true)
}

/// Gives the places that can be reached by one more part.
fn after(part: &Part, reached: &[bool], text: &[u8]) -> Vec<bool> {
    let takes = |byte: u8| match part {
        Part::Byte(wanted) => byte == *wanted,
        Part::Any | Part::Star => byte != b'/',
        Part::OneOf(ranges, is_negated) => {
            let is_in = ranges
                .iter()
                .any(|(from, to)| (*from..=*to).contains(&byte));
            byte != b'/' && is_in != *is_negated
        }
        Part::Deep | Part::Directories => true,
    };
    let is_open = matches!(part, Part::Star | Part::Deep | Part::Directories);
    let mut next = Vec::with_capacity(reached.len());
    // Whether an open part that began earlier is still going on.
    let mut is_going = false;
    for (index, was_reached) in reached.iter().enumerate() {
        let before = index
            .checked_sub(1)
            .and_then(|index| text.get(index))
            .copied();
        let fits = before.is_some_and(takes);
        if is_open {
            is_going = *was_reached || is_going && fits;
            let is_end = *part != Part::Directories || *was_reached || before == Some(b'/');
            next.push(is_going && is_end);
        } else {
            let was_before = index.checked_sub(1).and_then(|index| reached.get(index));
            next.push(fits && was_before == Some(&true));
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_shells_match() {
        let table = [
            ("*.rs", "/w/a.rs", true),
            ("*.rs", "/w/src/a.rs", false),
            ("**/*.rs", "/w/a.rs", true),
            ("**/*.rs", "/w/src/deep/a.rs", true),
            ("**/*.rs", "/w/src/a.rsx", false),
            ("src", "/w/src/deep/a.rs", true),
            ("src/", "/w/src/a", true),
            ("./src", "/w/src", true),
            ("src", "/w/srcs", false),
            ("s?c/**", "/w/src/x/y", true),
            ("[a-c]x", "/w/bx", true),
            ("[!a-c]x", "/w/bx", false),
            ("[]x", "/w/[]x", true),
            ("a[", "/w/a[", true),
            ("\\*", "/w/*", true),
            ("\\*", "/w/a", false),
            ("/etc/*.conf", "/etc/a.conf", true),
            ("/etc/*.conf", "/w/etc/a.conf", false),
            (".", "/w/anything/at/all", true),
            (".", "/x", false),
            ("/", "/x", true),
            ("a*b*c", "/w/aXbYbZc", true),
            ("a*b*c", "/w/aXbYbZ", false),
        ];
        for (pattern, path, wanted) in table {
            let glob = Glob::new(pattern, Path::new("/w"));
            assert_eq!(glob.matches(Path::new(path)), wanted, "{pattern} {path}");
        }
        assert!(Glob::new("a", Path::new("/w*[")).matches(Path::new("/w*[/a")));
        assert!(Glob::new("a", Path::new("/")).matches(Path::new("/a")));
    }

    #[test]
    fn names_need_not_be_text() {
        let name = OsStr::from_bytes(b"caf\xe9");
        assert!(Glob::new(name, Path::new("/w")).matches(&Path::new("/w").join(name)));
        assert!(Glob::new("caf?", Path::new("/w")).matches(&Path::new("/w").join(name)));
        assert!(!Glob::new(name, Path::new("/w")).matches(Path::new("/w/cafe")));
    }

    #[test]
    fn a_path_can_be_meant_exactly() {
        for name in ["[x]", "a*b", "a?b", "a\\b", "**", "[!a]", "\\"] {
            let glob = Glob::new(Glob::exactly(Path::new(name)), Path::new("/w"));
            assert!(glob.matches(&Path::new("/w").join(name)), "{name}");
            for other in ["x", "aXb", "ab", "b", "any"] {
                assert!(
                    !glob.matches(&Path::new("/w").join(other)),
                    "{name} {other}"
                );
            }
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_others() {
        let glob = Glob::new("*a".repeat(200), Path::new("/w"));
        assert!(!glob.matches(Path::new(&format!("/w/{}", "a".repeat(150) + "b"))));
    }
}
