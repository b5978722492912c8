//! What no compiler checks: every module says what it is, no file grows without bounds, nothing is left half-done.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::root;

/// Longer than this needs a reason, and there is none so far.
const LINES_MAX: usize = 600;

/// Checks every Rust file of the project.
pub(crate) fn check() -> Result<(), String> {
    let mut wrong = Vec::new();
    for file in rust_files(&root()) {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let mut complain = |what: &str| wrong.push(format!("{}: {what}", file.display()));
        if !text.starts_with("//!") {
            complain("has no module documentation");
        }
        if text.lines().count() > LINES_MAX {
            complain("is too long: split it");
        }
        for word in ["todo!", "unimplemented!", "#[ignore"] {
            // The names are put together here, so that this file does not hold them.
            if text.contains(&format!(
                "{word}{}",
                if word.starts_with('#') { "" } else { "(" }
            )) {
                complain("is not finished");
            }
        }
    }
    wrong.retain(|line| !line.contains("tidy.rs"));
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

/// Lists the Rust files below a directory.
pub(crate) fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" && name != ".git" && name != "wip" {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}
