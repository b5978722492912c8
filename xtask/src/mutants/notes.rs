//! Which changes each test comes by and how long it takes, in a file, so that a round that goes on need not look again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use super::tests::Test;

/// How long a test takes, and what it comes by.
type Note = (Duration, BTreeSet<usize>);

/// What is known, by the stamp of a binary and the name of a test.
pub(crate) struct Notes {
    file: File,
    known: BTreeMap<(u64, String), Note>,
}

impl Notes {
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let known = text.lines().filter_map(read).collect();
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self { file, known })
    }

    pub(crate) fn of(&self, stamp: u64, name: &str) -> Option<Note> {
        self.known.get(&(stamp, name.to_owned())).cloned()
    }

    pub(crate) fn add(&mut self, stamp: u64, test: &Test) -> Result<(), String> {
        let seen: Vec<String> = test.seen.iter().map(ToString::to_string).collect();
        let (name, takes, seen) = (&test.name, test.takes.as_millis(), seen.join(","));
        writeln!(self.file, "{stamp} {name} {takes} {seen}").map_err(|error| error.to_string())
    }
}

fn read(line: &str) -> Option<((u64, String), Note)> {
    let [stamp, name, takes, seen] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let seen = seen.split(',').filter_map(|id| id.parse().ok()).collect();
    let takes = Duration::from_millis(takes.parse().ok()?);
    Some(((stamp.parse().ok()?, name.to_owned()), (takes, seen)))
}
