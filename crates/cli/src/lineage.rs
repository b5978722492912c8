//! Whom this process descends from: an agent does not approve what it proposed, however it starts the program.
//!
//! A process can take a variable from its environment, leave its session, or let its parent die. It cannot choose its parents:
//! what dies before its children leaves them to the watcher of the command. So each process above this one is looked at, with
//! the environment that it was started with.

use std::fs;

use backout_engine::Forebear;
use backout_model::{AgentId, OperationId};
use backout_storage::process;

use crate::env_vars;

/// More processes above one another are not looked at.
const DEPTH_MAX: usize = 256;

/// Lists the processes above this one that can be looked at, the nearest first.
pub(crate) fn forebears() -> Vec<Forebear> {
    from(parent_of("self"))
}

/// Lists a process and those above it that can be looked at.
pub(crate) fn of_process(pid: u32) -> Vec<Forebear> {
    from(Some(pid))
}

fn from(first: Option<u32>) -> Vec<Forebear> {
    let mut found = Vec::new();
    let mut at = first;
    while let Some(pid) = at.filter(|pid| *pid > 1 && found.len() < DEPTH_MAX) {
        let pid_text = pid.to_string();
        at = parent_of(&pid_text);
        let Some(process) = process(pid) else {
            continue;
        };
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        found.push(Forebear {
            process,
            agent: variable::<AgentId>(&environment, env_vars::AGENT),
            within: variable::<OperationId>(&environment, env_vars::RUN),
        });
    }
    found
}

/// Reads the parent of a process.
fn parent_of(process: &str) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name is in brackets and may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// Reads a variable of an environment; one that is empty or cannot be read is none.
fn variable<T: std::str::FromStr>(environment: &[u8], name: &str) -> Option<T> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|it| {
        let rest = it.strip_prefix(name.as_bytes())?;
        rest.strip_prefix(b"=")
    })?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_their_whole_name() {
        let environment = b"XBACKOUT_AGENT=a\0BACKOUT_AGENTS=b\0BACKOUT_AGENT=bob\0";
        let agent: Option<AgentId> = variable(environment, env_vars::AGENT);
        assert_eq!(agent.unwrap().as_str(), "bob");
        assert_eq!(
            variable::<AgentId>(b"BACKOUT_AGENT=\0", env_vars::AGENT),
            None
        );
        assert_eq!(variable::<AgentId>(b"", env_vars::AGENT), None);
    }

    #[test]
    fn every_process_above_this_one_is_known() {
        let found = forebears();
        assert_eq!(Some(found[0].process.pid), parent_of("self"));
    }
}
