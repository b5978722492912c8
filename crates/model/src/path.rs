//! The path of a target: absolute, normalised, any bytes.
//!
//! File names are bytes, not text; how they are written in JSON is in `any_path`.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::any_path;

/// Says why a path cannot be a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path does not begin at the root.
    #[error("`{path}` is not an absolute path")]
    NotAbsolute {
        /// What was given.
        path: String,
    },
    /// The path holds a `..` component or a NUL byte.
    #[error("`{path}` is not a normal path (it has `..` or a NUL byte)")]
    NotNormal {
        /// What was given.
        path: String,
    },
}

/// An absolute path without `.`, `..` or doubled slashes.
#[derive(Clone, Eq)]
pub struct TargetPath(PathBuf);

// Normal paths are equal if their bytes are: no need to take them apart, as the standard library does.
impl PartialEq for TargetPath {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

// As their components are ordered: a slash ends a component, so it comes before every other byte.
impl Ord for TargetPath {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let (one, other) = past_the_same(self.as_bytes(), other.as_bytes());
        let mut pairs = one.iter().zip(other);
        let differ = pairs.find(|(one, other)| one != other);
        differ.map_or_else(
            || one.len().cmp(&other.len()),
            |(one, other)| (*one != b'/', *one).cmp(&(*other != b'/', *other)),
        )
    }
}

impl PartialOrd for TargetPath {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::hash::Hash for TargetPath {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl TargetPath {
    /// Checks and normalises a path. `.` and doubled slashes are dropped; `..` is refused, since only
    /// the file system knows where it leads.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, PathError> {
        let path = path.as_ref();
        if is_normal(path.as_os_str().as_bytes()) {
            return Ok(Self(path.to_path_buf()));
        }
        let shown = || path.display().to_string();
        if !path.is_absolute() {
            return Err(PathError::NotAbsolute { path: shown() });
        }
        let mut normal = PathBuf::from("/");
        for component in path.components() {
            match component {
                Component::Normal(name) => normal.push(name),
                Component::RootDir | Component::CurDir => {}
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(PathError::NotNormal { path: shown() });
                }
            }
        }
        if normal.as_os_str().as_bytes().contains(&0) {
            return Err(PathError::NotNormal { path: shown() });
        }
        Ok(Self(normal))
    }

    /// Reads a path from stored bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PathError> {
        Self::new(Path::new(OsStr::from_bytes(bytes)))
    }

    /// Gives the path for file-system calls.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// Gives the bytes, for storage and ordering.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }

    /// Gives the directory that holds the path; the root has none.
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|parent| Self(parent.to_path_buf()))
    }

    /// Gives the last component; the root has none.
    pub fn file_name(&self) -> Option<&OsStr> {
        self.0.file_name()
    }

    /// Appends one component. The name must not be empty, `.`, `..` or hold a slash.
    #[must_use]
    pub fn join(&self, name: &OsStr) -> Self {
        debug_assert!(!name.as_bytes().contains(&b'/'), "one component only");
        Self(self.0.join(name))
    }

    /// Tells whether the path lies below `directory` (and is not `directory` itself).
    pub fn is_below(&self, directory: &Self) -> bool {
        // Normal paths need not be taken apart for this.
        let rest = self.as_bytes().strip_prefix(directory.as_bytes());
        rest.is_some_and(|rest| match rest {
            [] => false,
            [first, ..] => *first == b'/' || directory.as_bytes() == b"/",
        })
    }

    /// Lists the directories above the path, nearest first, ending with the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        self.0
            .ancestors()
            .skip(1)
            .map(|path| Self(path.to_path_buf()))
    }

    /// Gives the same place below `to` that this path has below `from`.
    pub fn rebase(&self, from: &Self, to: &Self) -> Option<Self> {
        let rest = self.0.strip_prefix(&from.0).ok()?;
        Some(if rest.as_os_str().is_empty() {
            to.clone()
        } else {
            Self(to.0.join(rest))
        })
    }
}

/// Leaves out what two paths begin with in common, many bytes at a time: paths that are sorted mostly lie in one directory.
fn past_the_same<'p>(one: &'p [u8], other: &'p [u8]) -> (&'p [u8], &'p [u8]) {
    let (pieces, _) = one.as_chunks::<16>();
    let (others, _) = other.as_chunks::<16>();
    let same = pieces
        .iter()
        .zip(others)
        .take_while(|(one, other)| one == other);
    let same = same.count() * 16;
    let rest = |path: &'p [u8]| path.get(same..).unwrap_or_default();
    (rest(one), rest(other))
}

/// Tells whether a path is as it should be already, as most are: nothing needs to be taken apart then.
fn is_normal(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b"/") else {
        return false;
    };
    let is_name = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.contains(&0);
    rest.is_empty() || rest.split(|byte| *byte == b'/').all(is_name)
}

impl fmt::Display for TargetPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.display())
    }
}

impl fmt::Debug for TargetPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl Serialize for TargetPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        any_path::serialize(self.as_path(), serializer)
    }
}

impl<'de> Deserialize<'de> for TargetPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = any_path::deserialize(deserializer)?;
        Self::new(path).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TargetPath {
        TargetPath::new(text).unwrap()
    }

    #[test]
    fn paths_are_normalised_and_dot_dot_is_refused() {
        assert_eq!(path("/a//./b/"), path("/a/b"));
        assert!(matches!(
            TargetPath::new("a/b"),
            Err(PathError::NotAbsolute { .. })
        ));
        assert!(matches!(
            TargetPath::new("/a/../b"),
            Err(PathError::NotNormal { .. })
        ));
        assert!(matches!(
            TargetPath::from_bytes(b"/a\0b"),
            Err(PathError::NotNormal { .. })
        ));
    }

    /// Compared by bytes, since taking paths apart costs; they are ordered as their components are.
    #[test]
    fn paths_are_ordered_and_below_each_other_as_their_components() {
        let all = [
            "/", "/a", "/a-b", "/a/b", "/a/b/c", "/a.b", "/a/-", "/aa", "/a/bc", "/b", "/\u{1}",
            "/a\u{1}", "/a/\u{1}",
        ];
        let deep = all.iter().map(|it| format!("/far/below/many/others{it}"));
        let all: Vec<String> = all.iter().map(|it| (*it).to_owned()).chain(deep).collect();
        for one in &all {
            for other in &all {
                let (one, other) = (path(one), path(other));
                let as_paths = one.as_path().cmp(other.as_path());
                assert_eq!(one.cmp(&other), as_paths, "{one} {other}");
                let is_inside = one != other && one.as_path().starts_with(other.as_path());
                assert_eq!(one.is_below(&other), is_inside, "{one} {other}");
            }
        }
    }

    #[test]
    fn below_means_strictly_inside() {
        assert!(path("/a/b").is_below(&path("/a")));
        assert!(path("/a/b/c").is_below(&path("/")));
        assert!(!path("/a").is_below(&path("/a")));
        assert!(!path("/ab").is_below(&path("/a")));
        assert_eq!(
            path("/a/b/c").rebase(&path("/a/b"), &path("/x")),
            Some(path("/x/c"))
        );
        assert_eq!(
            path("/a/b").rebase(&path("/a/b"), &path("/x")),
            Some(path("/x"))
        );
        assert_eq!(path("/ab").rebase(&path("/a"), &path("/x")), None);
    }

    #[test]
    fn any_bytes_survive_json() {
        for bytes in [
            &b"/plain"[..],
            b"/caf\xc3\xa9",
            b"/not\xff\xfeutf8",
            b"/tab\tnewline\n",
        ] {
            let path = TargetPath::from_bytes(bytes).unwrap();
            let json = serde_json::to_string(&path).unwrap();
            assert_eq!(
                serde_json::from_str::<TargetPath>(&json).unwrap(),
                path,
                "{json}"
            );
        }
        assert!(serde_json::from_str::<TargetPath>(r#"{"hex":"2"}"#).is_err());
        assert!(serde_json::from_str::<TargetPath>(r#""relative""#).is_err());
    }
}
