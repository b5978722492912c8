//! What is carried from one command to the next: the working directory and the variables that a shell exported.
//!
//! A shell line is run by a shell that writes both down as it ends, into a file in memory that only it and its children
//! have. Names and values are separated by zero bytes, so that any value comes through. Kept is what differs from the
//! caller's own variables; it is in a file that only its owner may read, and is never shown.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use backout_model::any_words;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

/// More than this is not carried.
const STATE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What every shell sets by itself.
const ITS_OWN: [&str; 4] = ["_", "PWD", "SHLVL", "OLDPWD"];

/// The shells that run a line, best first.
const SHELLS: [&str; 4] = ["/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"];

/// What differs from the caller's variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Variables {
    #[serde(with = "any_words")]
    names: Vec<OsString>,
    /// One for each name.
    #[serde(with = "any_words")]
    values: Vec<OsString>,
    /// Variables of the caller that are not there.
    #[serde(with = "any_words")]
    unset: Vec<OsString>,
}

impl Variables {
    /// Gives the caller's variables with these differences.
    pub(super) fn environment(&self, directory: &std::path::Path) -> Vec<(OsString, OsString)> {
        let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        all.retain(|name, _| !self.unset.contains(name));
        all.extend(self.names.iter().cloned().zip(self.values.iter().cloned()));
        all.insert("PWD".into(), directory.into());
        all.into_iter().collect()
    }

    fn between(
        caller: &BTreeMap<OsString, OsString>,
        found: &BTreeMap<OsString, OsString>,
    ) -> Self {
        let is_its_own = |name: &OsString| ITS_OWN.iter().any(|own| name == own);
        let mut kept = Self::default();
        for (name, value) in found.iter().filter(|(name, _)| !is_its_own(name)) {
            if caller.get(name) != Some(value) {
                kept.names.push(name.clone());
                kept.values.push(value.clone());
            }
        }
        let gone = caller.keys().filter(|name| !found.contains_key(*name));
        kept.unset = gone.filter(|name| !is_its_own(name)).cloned().collect();
        kept
    }

    /// Lists what is set, with its value.
    pub(super) fn set(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.names.iter().zip(&self.values)
    }

    /// Lists the caller's variables that are not there.
    pub(super) fn unset(&self) -> impl Iterator<Item = &OsString> {
        self.unset.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.unset.is_empty()
    }
}

/// Where a shell writes down what it ends with.
#[derive(Debug)]
pub(super) struct Note(OwnedFd);

impl Note {
    /// Makes one that children have too.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(memfd_create("backout-state", MemfdFlags::empty())?))
    }

    /// Gives the words that run a line in a shell and leave a note at its end.
    pub(super) fn words(&self, line: &OsString) -> (OsString, Vec<OsString>) {
        let shell = SHELLS.iter().find(|shell| PathBuf::from(shell).exists());
        let note = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        let script = format!(
            "trap '{{ set +x; }} 2>/dev/null; command printf \"%s\\0\" \"$PWD\" >|{note}; command -p env -0 >>{note}' EXIT; eval \"$1\""
        );
        let words = ["-c".into(), script.into(), "backout".into(), line.clone()];
        (shell.unwrap_or(&"sh").into(), words.into())
    }

    /// Reads it; none if there is none, or none that is whole.
    pub(super) fn read(self) -> Option<(PathBuf, Variables)> {
        let mut file = File::from(self.0);
        file.rewind().ok()?;
        let mut bytes = Vec::new();
        file.take(STATE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        // What was cut off does not end as it should.
        let whole = bytes.strip_suffix(&[0])?;
        let mut parts = whole.split(|byte| *byte == 0);
        let directory = PathBuf::from(OsString::from_vec(parts.next()?.to_vec()));
        let pair = |part: &[u8]| {
            let at = part.iter().position(|byte| *byte == b'=')?;
            let (name, value) = part.split_at_checked(at)?;
            let value = value.get(1..)?.to_vec();
            Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value)))
        };
        let found: BTreeMap<OsString, OsString> = parts.filter_map(pair).collect();
        let caller = std::env::vars_os().collect();
        // A shell whose `env` did not answer has no variables at all, which none has.
        let is_told = directory.is_absolute() && !found.is_empty();
        is_told.then(|| (directory, Variables::between(&caller, &found)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pairs: &[(&str, &str)]) -> BTreeMap<OsString, OsString> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn only_what_differs_is_kept() {
        let caller = all(&[("A", "1"), ("B", "2"), ("C", "3"), ("PWD", "/x")]);
        let found = all(&[
            ("A", "1"),
            ("B", "two\nlines"),
            ("D", "4"),
            ("PWD", "/y"),
            ("_", "env"),
        ]);
        let kept = Variables::between(&caller, &found);
        assert_eq!(kept.names, ["B", "D"]);
        assert_eq!(kept.values, ["two\nlines", "4"]);
        assert_eq!(kept.unset, ["C"]);
    }
}
