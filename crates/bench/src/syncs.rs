//! How many syncs an operation costs, counted by strace around the real program.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::report::Row;
use crate::{Failure, process};

/// Counts the syncs of one protected write by a process of its own.
pub(crate) fn count(directory: &Path) -> Result<Vec<Row>, Failure> {
    let program = process::backout()?;
    let state = directory.join("state");
    fs::write(directory.join("small"), "old\n")?;
    fs::write(directory.join("large"), vec![b'x'; 1 << 20])?;
    let mut rows = Vec::new();
    for (work, arguments) in [
        (
            "the first write (makes the store)",
            &["write", "small", "--text", "1\n"][..],
        ),
        (
            "write over a small file",
            &["write", "small", "--text", "2\n"],
        ),
        (
            "write over a large file",
            &["write", "large", "--text", "2\n"],
        ),
        ("undo of a small write", &["undo", "@-1"]),
    ] {
        let log = directory.join("syncs.log");
        let status = Command::new("strace")
            .args(["-f", "-qq", "-e", "trace=fsync,fdatasync,syncfs,sync", "-o"])
            .arg(&log)
            .arg(&program)
            .args(arguments)
            .current_dir(directory)
            .env("BACKOUT_STATE_DIR", &state)
            .output();
        let Ok(output) = status else {
            return Ok(vec![Row {
                work: "syncs per operation".to_owned(),
                measured: "not counted: strace is not installed".to_owned(),
                promise: String::new(),
                kept: None,
            }]);
        };
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        let syncs = fs::read_to_string(&log)?
            .lines()
            .filter(|line| line.contains("sync"))
            .count();
        rows.push(Row {
            work: format!("syncs: {work}, by a process of its own"),
            measured: syncs.to_string(),
            promise: String::new(),
            kept: None,
        });
    }
    Ok(rows)
}
