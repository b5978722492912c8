//! The files: what packages brought to this machine, and the sources of the crates that this one is built from.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use backout_checks::syntax::Format;

/// Larger files would make the test slow and find nothing more.
const BYTES_MAX: u64 = 12 * 1024;
/// How many files of one format are taken.
const FILES_MAX: usize = 60;
/// How deep directories are looked into, and how many names are looked at in all.
const DEPTH_MAX: usize = 12;
const NAMES_MAX: usize = 600_000;

/// Names of directories that hold files which are broken on purpose, or no files of their format yet.
const SKIPPED: [&str; 14] = [
    "test",
    "tests",
    "testdata",
    "test-data",
    "testing",
    "fixtures",
    "fixture",
    "invalid",
    "bad",
    "corpus",
    "templates",
    "skeleton",
    "fuzz",
    "lib2to3",
];

/// A real file.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    pub(crate) text: String,
}

/// Takes files of each format, evenly out of all that there are, in the order of their names.
pub(crate) fn of_this_machine() -> Vec<File> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let mut found: BTreeMap<Format, Vec<PathBuf>> = BTreeMap::new();
    let mut names_left = NAMES_MAX;
    for root in [
        PathBuf::from("/etc"),
        PathBuf::from("/usr/share"),
        PathBuf::from("/usr/lib"),
        cargo.join("registry/src"),
    ] {
        walk(&root, DEPTH_MAX, &mut names_left, &mut found);
    }
    let mut files = Vec::new();
    for (format, mut paths) in found {
        paths.sort();
        let step = paths.len().div_ceil(FILES_MAX).max(1);
        files.extend(paths.into_iter().step_by(step).filter_map(|path| {
            let text = String::from_utf8(fs::read(&path).ok()?).ok()?;
            let is_named_well = Format::of(&path, text.as_bytes()) == Some(format);
            is_named_well.then_some(File { path, format, text })
        }));
    }
    files
}

fn walk(
    directory: &Path,
    depth: usize,
    left: &mut usize,
    found: &mut BTreeMap<Format, Vec<PathBuf>>,
) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return;
        }
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        let path = entry.path();
        if kind.is_dir() && depth > 0 && !SKIPPED.contains(&name.as_str()) {
            walk(&path, depth - 1, left, found);
        }
        // What has no ending would have to be opened to be known.
        let tells = name.contains('.') || name == "dockerfile";
        if !kind.is_file() || !tells || name == ".cargo_vcs_info.json" {
            continue;
        }
        let Some(format) = Format::of(&path, b"") else {
            continue;
        };
        let size = entry.metadata().map_or(0, |metadata| metadata.len());
        if size > 0 && size <= BYTES_MAX {
            found.entry(format).or_default().push(path);
        }
    }
}
