//! Processes that outlive the command: all of them end up below the namespace's first process.

use std::collections::HashMap;
use std::fs;

/// How many generations are followed; more there are not below one process.
const GENERATIONS_MAX: usize = 1000;

/// A process that outlives the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Its number, as seen from outside.
    pub pid: i32,
    /// Its command line.
    pub command: String,
}

/// Lists the processes below `first`, by the parents that `/proc` tells.
pub(super) fn below(first: i32) -> Vec<Survivor> {
    let mut parents: HashMap<i32, i32> = HashMap::new();
    let Ok(listing) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    for entry in listing.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            parents.insert(pid, parent);
        }
    }
    let is_below = |pid: &i32| {
        let mut at = *pid;
        for _ in 0..GENERATIONS_MAX {
            match parents.get(&at) {
                Some(parent) if *parent == first => return true,
                Some(parent) => at = *parent,
                None => return false,
            }
        }
        false
    };
    let mut found: Vec<i32> = parents.keys().copied().filter(is_below).collect();
    found.sort_unstable();
    let named = |pid: i32| Survivor {
        pid,
        command: command_of(pid),
    };
    found.into_iter().map(named).collect()
}

/// Reads field 4 of `/proc/PID/stat`; none if the process is dead or a zombie.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.next()?.parse().ok(),
    }
}

fn command_of(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned());
    let joined = words.collect::<Vec<_>>().join(" ");
    if joined.is_empty() {
        fs::read_to_string(format!("/proc/{pid}/comm"))
            .map(|name| name.trim().to_owned())
            .unwrap_or_default()
    } else {
        joined
    }
}
