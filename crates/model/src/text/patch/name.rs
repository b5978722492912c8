//! Names of files in patch headers: quoting, prefixes, `/dev/null`.

use std::fmt;

/// What stands for "no file" in a header.
const NO_FILE: &[u8] = b"/dev/null";

/// What git puts before old and new names, by default and with `diff.mnemonicPrefix`; the second is
/// the default reversed.
const PREFIXES: [(&[u8], &[u8]); 8] = [
    (b"a/", b"b/"),
    (b"b/", b"a/"),
    (b"i/", b"w/"),
    (b"c/", b"w/"),
    (b"c/", b"i/"),
    (b"o/", b"w/"),
    (b"w/", b"i/"),
    (b"1/", b"2/"),
];

/// The name of a file in a patch: bytes, without the prefix of its side.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PatchPath(Vec<u8>);

impl PatchPath {
    /// Takes any bytes as a name.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Gives the bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Tells whether the name stays below the directory it is used in: it is relative and has no `..`
    /// component. Anybody may have written the patch, so check before joining.
    pub fn is_inside(&self) -> bool {
        !self.0.is_empty()
            && !self.0.starts_with(b"/")
            && !self.0.contains(&0)
            && self.0.split(|byte| *byte == b'/').all(|part| part != b"..")
    }
}

impl fmt::Display for PatchPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for PatchPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// Reads the name after `---`, `+++`, `rename from` and the like: quoted, or up to a tab.
/// `None` if the quoting is broken or there is no name.
pub(super) fn read(rest: &[u8]) -> Option<Vec<u8>> {
    let name = if rest.starts_with(b"\"") {
        unquote(rest)?.0
    } else {
        rest.split(|byte| *byte == b'\t').next()?.to_vec()
    };
    (!name.is_empty()).then_some(name)
}

/// Reads the two names of a `diff --git` line. Without quotes they can only be told apart if they are
/// the same but for the prefix, which is so wherever no other line names the files.
pub(super) fn read_pair(rest: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    if rest.starts_with(b"\"") {
        let (old, rest) = unquote(rest)?;
        return Some((old, read(rest.strip_prefix(b" ")?)?));
    }
    if rest.ends_with(b"\"") {
        let quote = rest.windows(2).position(|pair| pair == b" \"")?;
        let (old, new) = rest.split_at_checked(quote)?;
        return Some((old.to_vec(), read(new.strip_prefix(b" ")?)?));
    }
    let (old, new) = rest.split_at_checked(rest.len() / 2)?;
    let new = new.strip_prefix(b" ")?;
    let (bare_old, bare_new) = strip(old, new);
    (bare_old == bare_new).then(|| (old.to_vec(), new.to_vec()))
}

/// Takes the prefixes off a pair of names; `/dev/null` becomes `None`.
pub(super) fn sides(old: &[u8], new: &[u8]) -> (Option<PatchPath>, Option<PatchPath>) {
    let path = |name: &[u8]| (name != NO_FILE).then(|| PatchPath(name.to_vec()));
    let (old, new) = strip(old, new);
    (path(old), path(new))
}

/// Without a second name the default prefix is assumed.
fn strip<'a>(old: &'a [u8], new: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    if old == NO_FILE {
        return (old, new.strip_prefix(b"b/").unwrap_or(new));
    }
    if new == NO_FILE {
        return (old.strip_prefix(b"a/").unwrap_or(old), new);
    }
    PREFIXES
        .iter()
        .find_map(|(of_old, of_new)| Some((old.strip_prefix(*of_old)?, new.strip_prefix(*of_new)?)))
        .unwrap_or((old, new))
}

/// Quotes a name as git does (with `core.quotePath=false`) if it would break a header or is no text, else leaves it.
pub(in crate::text) fn quoted_name(name: &[u8]) -> Vec<u8> {
    let is_text = std::str::from_utf8(name).is_ok();
    let breaks = |byte: &u8| matches!(byte, 0..=0x1f | 0x7f | b'"' | b'\\');
    if is_text && !name.iter().any(breaks) {
        return name.to_vec();
    }
    let mut quoted = vec![b'"'];
    for byte in name {
        match byte {
            b'\t' => quoted.extend_from_slice(b"\\t"),
            b'\n' => quoted.extend_from_slice(b"\\n"),
            b'\r' => quoted.extend_from_slice(b"\\r"),
            b'"' | b'\\' => quoted.extend_from_slice(&[b'\\', *byte]),
            0..=0x1f | 0x7f => quoted.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            0x80.. if !is_text => quoted.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            0x20..=0x7e | 0x80.. => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Decodes a C-style quoted name; gives it and what follows the closing quote.
fn unquote(quoted: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = quoted.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (decoded, after) = unescape(rest)?;
                name.push(decoded);
                rest = after;
            }
            plain => name.push(*plain),
        }
    }
}

fn unescape(rest: &[u8]) -> Option<(u8, &[u8])> {
    let (kind, after) = rest.split_first()?;
    let byte = match kind {
        b'a' => 0x07,
        b'b' => 0x08,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'r' => b'\r',
        b'"' | b'\\' => *kind,
        b'0'..=b'3' => {
            let (digits, after) = rest.split_at_checked(3)?;
            return Some((
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?,
                after,
            ));
        }
        _ => return None,
    };
    Some((byte, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_git_are_decoded_into_bytes() {
        assert_eq!(
            read(b"\"a/caf\\303\\251\\t\\\"x\\\"\"").unwrap(),
            b"a/caf\xc3\xa9\t\"x\""
        );
        assert_eq!(read(b"a/b c\t2024-01-01").unwrap(), b"a/b c");
        for broken in [
            &b"\"open"[..],
            b"\"\\9\"",
            b"\"\\40",
            b"\"\"",
            b"",
            b"\"\\400\"",
        ] {
            assert_eq!(read(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn the_names_of_a_git_line_are_told_apart() {
        let pair = |old: &str, new: &str| Some((old.into(), new.into()));
        assert_eq!(read_pair(b"a/x y b/x y"), pair("a/x y", "b/x y"));
        assert_eq!(read_pair(b"b/x b/x"), pair("b/x", "b/x"));
        assert_eq!(
            read_pair(b"\"a/x\\ty\" \"b/x\\ty\""),
            pair("a/x\ty", "b/x\ty")
        );
        assert_eq!(read_pair(b"a/x \"b/\\001\""), pair("a/x", "b/\u{1}"));
        assert_eq!(read_pair(b"a/x b/other"), None);
        assert_eq!(read_pair(b""), None);
    }

    #[test]
    fn prefixes_are_taken_off_in_pairs() {
        let both = |old: &str, new: &str| {
            let (old, new) = sides(old.as_bytes(), new.as_bytes());
            [old, new].map(|side| side.map(|path| path.to_string()))
        };
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(both("a/x", "b/x"), [some("x"), some("x")]);
        assert_eq!(both("i/x", "w/x"), [some("x"), some("x")]);
        assert_eq!(both("a/x", "a/x"), [some("a/x"), some("a/x")]);
        assert_eq!(both("/dev/null", "b/x"), [None, some("x")]);
        assert_eq!(both("a/x", "/dev/null"), [some("x"), None]);
    }

    #[test]
    fn a_name_that_leaves_its_directory_is_told() {
        let is_inside = |name: &str| PatchPath::from_bytes(name.into()).is_inside();
        assert!(is_inside("a/..b/c"));
        for outside in ["/etc/passwd", "a/../../b", "..", "", "a\0"] {
            assert!(!is_inside(outside), "{outside:?}");
        }
    }

    proptest! {
        #[test]
        fn quoting_is_undone_by_reading(name in proptest::collection::vec(any::<u8>(), 1..20)) {
            prop_assert_eq!(read(&quoted_name(&name)), Some(name));
        }
    }
}
