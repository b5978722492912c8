//! Patterns for paths, and for targets outside of the file system: `*`, `?` and `[a-z]` stay within a name, `**` as a whole name does not, `{a,b}` is one of several. A
//! backslash takes a sign's meaning away.
//!
//! - A pattern that matches a directory matches all that is in it.
//! - Names need not be text: `?` is one byte, and what leads to the first sign is compared byte by byte. From the name with
//!   the first sign on, a pattern must be UTF-8; one that is not stands for itself, so nothing in it is a sign.
//! - A target elsewhere is matched as it is shown, like `postgres:shop/public/orders:7`. Its space has a colon in its name, so a
//!   pattern is one for it if there is one in its first name.
//! - `globset` does the matching, for rules and for selections.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::any_path;

/// What means something in a pattern.
const SIGNS: &[u8] = b"*?[{\\";

/// A pattern, made absolute; or one for targets in another space.
#[derive(Debug, Clone)]
pub struct Glob {
    /// What leads to the first name with a sign.
    base: PathBuf,
    /// The pattern from there on.
    open: String,
    /// The same, ready to match; none if there is no sign at all.
    set: Option<GlobSet>,
}

/// Says why a pattern cannot be read as one.
#[derive(Debug, thiserror::Error)]
pub enum GlobError {
    /// There is none.
    #[error("a pattern must not be empty")]
    Empty,
    /// It has signs beside bytes that are not UTF-8.
    #[error("a pattern must be UTF-8 from its first sign on")]
    NotText,
    /// A sign has no end, or is too large.
    #[error(transparent)]
    Unreadable(#[from] globset::Error),
}

impl Glob {
    /// Reads a pattern; one that does not begin with a slash begins at `directory`.
    pub fn read(pattern: impl AsRef<OsStr>, directory: &Path) -> Result<Self, GlobError> {
        let pattern = pattern.as_ref().as_bytes();
        if pattern.is_empty() {
            return Err(GlobError::Empty);
        }
        let is_absolute = pattern.starts_with(b"/");
        let start = if is_absolute {
            Path::new("/")
        } else {
            directory
        };
        Self::from_start(pattern, start)
    }

    /// Reads a pattern for targets in another space; none if it cannot be one, or cannot be read.
    pub fn elsewhere(pattern: impl AsRef<OsStr>) -> Option<Self> {
        let pattern = pattern.as_ref().as_bytes();
        let first = pattern.split(|byte| *byte == b'/').next()?;
        let is_space = first.contains(&b':') && !first.starts_with(b".");
        is_space.then(|| Self::from_start(pattern, Path::new("")).ok())?
    }

    /// Tells whether it is for targets in another space.
    pub fn is_elsewhere(&self) -> bool {
        let has_something = !self.open.is_empty() || !self.base.as_os_str().is_empty();
        has_something && !self.base.is_absolute()
    }

    fn from_start(pattern: &[u8], start: &Path) -> Result<Self, GlobError> {
        let mut base = start.to_owned();
        let names = pattern.split(|byte| *byte == b'/');
        let mut names = names.filter(|name| !name.is_empty() && *name != b".");
        let mut open = Vec::new();
        for name in names.by_ref() {
            if let Some(name) = literal(name) {
                base.push(OsString::from_vec(name));
            } else {
                open.push(name);
                break;
            }
        }
        open.extend(names);
        let open = String::from_utf8(open.join(&b'/')).map_err(|_| GlobError::NotText)?;
        let set = if open.is_empty() {
            None
        } else {
            let both = [glob(&open)?, glob(&format!("{open}/**"))?];
            Some(GlobSet::new(both)?)
        };
        Ok(Self { base, open, set })
    }

    /// Reads a pattern as shells do: one that cannot be read stands for itself. An empty one matches nothing.
    pub fn new(pattern: impl AsRef<OsStr>, directory: &Path) -> Self {
        let pattern = pattern.as_ref();
        Self::read(pattern, directory).unwrap_or_else(|error| match error {
            GlobError::Empty => Self {
                base: PathBuf::new(),
                open: String::new(),
                set: Some(GlobSet::empty()),
            },
            GlobError::NotText | GlobError::Unreadable(_) => Self {
                base: directory.join(pattern),
                open: String::new(),
                set: None,
            },
        })
    }

    /// Gives the pattern that matches one path and what is in it, whatever letters its names have.
    pub fn exactly(path: &Path) -> OsString {
        let mut escaped = Vec::new();
        for byte in path.as_os_str().as_bytes() {
            if SIGNS.contains(byte) {
                escaped.push(b'\\');
            }
            escaped.push(*byte);
        }
        OsString::from_vec(escaped)
    }

    /// Gives the pattern as it is written from the root.
    pub fn from_root(&self) -> OsString {
        let mut pattern = PathBuf::new();
        if self.set.is_none() || !self.open.is_empty() {
            pattern.push(Self::exactly(&self.base));
        }
        if !self.open.is_empty() {
            pattern.push(&self.open);
        }
        pattern.into_os_string()
    }

    /// Tells whether it matches a path or a directory above it, or a target in another space as it is shown.
    pub fn matches(&self, path: &Path) -> bool {
        if self.is_elsewhere() && path.is_absolute() {
            return false;
        }
        match (path.strip_prefix(&self.base), &self.set) {
            (Ok(below), Some(set)) => !below.as_os_str().is_empty() && set.is_match(below),
            (below, _) => below.is_ok(),
        }
    }
}

impl Serialize for Glob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        any_path::serialize(Path::new(&self.from_root()), serializer)
    }
}

impl<'de> Deserialize<'de> for Glob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pattern = any_path::deserialize(deserializer)?;
        let elsewhere = Self::elsewhere(&pattern);
        Ok(elsewhere.unwrap_or_else(|| Self::new(pattern, Path::new("/"))))
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        let has_signs_alike = self.set.is_none() == other.set.is_none();
        has_signs_alike && self.base == other.base && self.open == other.open
    }
}

impl Eq for Glob {}

/// Gives the name that a part of a pattern without signs stands for.
fn literal(part: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::new();
    let mut bytes = part.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => name.push(*bytes.next()?),
            byte if SIGNS.contains(byte) => return None,
            byte => name.push(*byte),
        }
    }
    Some(name)
}

fn glob(pattern: &str) -> Result<globset::Glob, globset::Error> {
    let mut builder = GlobBuilder::new(pattern);
    builder
        .literal_separator(true)
        .backslash_escape(true)
        .build()
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
            ("**", "/w/a", true),
            ("src/**", "/w/src", false),
            ("{a,b}/*.rs", "/w/b/c.rs", true),
            ("{a,b}/*.rs", "/w/c/c.rs", false),
            ("a{", "/w/a{/b", true),
            ("[z-a]", "/w/[z-a]", true),
            ("", "/w/a", false),
            ("../x/*", "/x/a", false),
        ];
        for (pattern, path, wanted) in table {
            let glob = Glob::new(pattern, Path::new("/w"));
            assert_eq!(glob.matches(Path::new(path)), wanted, "{pattern} {path}");
        }
        assert!(Glob::new("a", Path::new("/w*[")).matches(Path::new("/w*[/a")));
        assert!(Glob::new("a", Path::new("/")).matches(Path::new("/a")));
    }

    #[test]
    fn targets_elsewhere_are_matched_as_they_are_shown() {
        let row = "postgres:shop/public/orders:7";
        for (pattern, target, wanted) in [
            ("postgres:shop/public/orders:7", row, true),
            ("postgres:shop/public/orders:*", row, true),
            ("postgres:shop/public", row, true),
            ("postgres:shop", row, true),
            ("postgres:*", row, true),
            ("{redis,postgres}:*/**", row, true),
            ("postgres:sho", row, false),
            ("postgres:shop/public/order", row, false),
            ("postgres:shop/*", "postgres:shop/public", true),
            ("postgres:*", "/w/postgres:shop", false),
        ] {
            let glob = Glob::elsewhere(pattern).unwrap();
            assert_eq!(glob.matches(Path::new(target)), wanted, "{pattern}");
            let text = serde_json::to_string(&glob).unwrap();
            let read: Glob = serde_json::from_str(&text).unwrap();
            assert_eq!(read, glob, "{text}");
            assert!(read.is_elsewhere());
        }
        for path in ["src/**", "/w/a:b", "./a:b", "../a:b", "src/a:b", ""] {
            assert!(Glob::elsewhere(path).is_none(), "{path}");
            let glob = Glob::new(path, Path::new("/w"));
            assert!(!glob.is_elsewhere() && !glob.matches(Path::new(row)));
        }
    }

    #[test]
    fn names_need_not_be_text() {
        let name = OsStr::from_bytes(b"caf\xe9");
        assert!(Glob::new(name, Path::new("/w")).matches(&Path::new("/w").join(name)));
        assert!(Glob::new("caf?", Path::new("/w")).matches(&Path::new("/w").join(name)));
        assert!(!Glob::new(name, Path::new("/w")).matches(Path::new("/w/cafe")));
        let below = Path::new("/w").join(name).join("a.rs");
        assert!(Glob::new("*.rs", below.parent().unwrap()).matches(&below));
        assert!(Glob::new(OsStr::from_bytes(b"caf\xe9/*.rs"), Path::new("/w")).matches(&below));
        let starred = OsStr::from_bytes(b"caf\xe9*");
        let glob = Glob::new(Glob::exactly(starred.as_ref()), Path::new("/w"));
        assert!(glob.matches(&Path::new("/w").join(starred)));
        assert!(!glob.matches(&below));
        // A sign beside a byte that is no text means nothing.
        let glob = Glob::new(starred, Path::new("/w"));
        assert!(glob.matches(&Path::new("/w").join(starred)));
        assert!(!glob.matches(&below));
    }

    #[test]
    fn what_cannot_be_read_is_said_to_whoever_wants_to_know() {
        let said = |pattern: &[u8]| {
            let read = Glob::read(OsStr::from_bytes(pattern), Path::new("/w"));
            read.unwrap_err().to_string()
        };
        assert_eq!(said(b""), "a pattern must not be empty");
        assert_eq!(
            said(b"\xe9*"),
            "a pattern must be UTF-8 from its first sign on"
        );
        assert!(said(b"a[").contains("unclosed character class"));
    }

    #[test]
    fn the_same_pattern_is_equal_to_itself_alone() {
        let glob = |pattern| Glob::new(pattern, Path::new("/w"));
        assert_eq!(glob("a/*"), glob("/w/a/*"));
        assert_ne!(glob("a/*"), glob("a/**"));
        assert_ne!(glob(""), glob("."));
    }

    #[test]
    fn a_path_can_be_meant_exactly() {
        for name in [
            "[x]", "a*b", "a?b", "a\\b", "**", "[!a]", "\\", "{x,b}", "}",
        ] {
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

    #[test]
    fn a_pattern_that_was_written_down_means_the_same() {
        let odd = OsStr::from_bytes(b"caf\xe9");
        let patterns = [
            "*.rs",
            "a",
            "",
            "[",
            "/etc/*.conf",
            "d/{a,b}/**",
            "x*/[a-c]",
        ];
        let patterns = patterns.map(OsStr::new).into_iter().chain([odd]);
        for pattern in patterns {
            let glob = Glob::new(pattern, Path::new("/w *"));
            let text = serde_json::to_string(&glob).unwrap();
            let read: Glob = serde_json::from_str(&text).unwrap();
            assert_eq!(read, glob, "{text}");
            for name in ["/w */a.rs", "/w */a", "/etc/x.conf", "/w */d/b/c", "/w */["] {
                assert_eq!(
                    read.matches(Path::new(name)),
                    glob.matches(Path::new(name)),
                    "{text}"
                );
            }
        }
    }
}
