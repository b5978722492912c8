//! The agent's own process: it outlives the call that it tells us of, and so answers for it until the call is over.

use crate::env_vars;

/// So many processes stand between an agent and its hook at most.
const STEPS_MAX: usize = 6;

/// Programs that only start others.
const STARTERS: [&str; 9] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "env", "timeout", "nice",
];

/// Finds the agent's process: the one that it names, or the nearest above that is no shell.
pub(super) fn agent() -> Option<u32> {
    let named = std::env::var(env_vars::CLAUDE_PID).ok();
    let named = named.and_then(|pid| pid.parse().ok());
    if let Some(pid) = named.filter(|pid| is_above(*pid)) {
        return Some(pid);
    }
    above()
        .find(|(_, name)| !STARTERS.contains(&name.as_str()))
        .map(|(pid, _)| pid)
}

fn is_above(pid: u32) -> bool {
    above().any(|(above, _)| above == pid)
}

/// Lists the processes above this one, the nearest first, but not the first of all.
fn above() -> impl Iterator<Item = (u32, String)> {
    let first = parent_of(std::process::id());
    let chain = std::iter::successors(first, |(pid, _)| parent_of(*pid));
    chain.take_while(|(pid, _)| *pid > 1).take(STEPS_MAX)
}

/// Gives the number and the name of a process's parent.
fn parent_of(pid: u32) -> Option<(u32, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let parent = fields.split_whitespace().nth(1)?.parse().ok()?;
    let name = std::fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
    Some((parent, name.trim().to_owned()))
}
