//! What is said of a file that is not as it was left: by whoever takes something back, and by whoever foresees it.

use std::ffi::{OsStr, OsString};

use backout_model::TargetPath;
use backout_model::text::{Merge, merge3};

/// How many names a message lists.
const NAMES_SHOWN_MAX: usize = 3;

/// Says that a directory does not let us take something back.
pub fn said_of_barred(directory: &TargetPath) -> String {
    format!("not permitted to change what is in `{directory}`")
}

/// Says that a directory which is to go holds something; nothing if it does not.
pub fn said_of_strangers(strangers: &[TargetPath]) -> Option<String> {
    let names = strangers
        .iter()
        .filter_map(|path| path.as_path().file_name());
    let names: Vec<OsString> = names.map(OsStr::to_owned).collect();
    (!names.is_empty()).then(|| format!("the directory is not empty: {}", names_shown(&names)))
}

/// Says that bytes changed.
pub fn changed_bytes(was: u64, is: u64) -> String {
    if was == is {
        format!("content changed since ({was} bytes)")
    } else {
        format!("content changed since ({was} -> {is} bytes)")
    }
}

/// Merges, or says why it cannot be done.
pub fn merged(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<u8>, String> {
    match merge3(base, ours, theirs) {
        Merge::Clean(merged) => Ok(merged),
        Merge::Conflicting(places) => {
            let line = places.first().map_or(1, |place| place.base_lines.start + 1);
            Err(match places.len() {
                1 => format!("the changes overlap at line {line}"),
                count => format!("the changes overlap at {count} places, the first at line {line}"),
            })
        }
        Merge::NotText => Err("it is not text".to_owned()),
    }
}

/// Names a few of many.
pub fn names_shown(names: &[OsString]) -> String {
    let mut text = names
        .iter()
        .take(NAMES_SHOWN_MAX)
        .map(|name| name.display().to_string());
    let first: Vec<String> = text.by_ref().collect();
    let more = names.len().saturating_sub(NAMES_SHOWN_MAX);
    let rest = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{rest}", first.join(", "))
}
