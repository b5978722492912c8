//! Who this process is, and whether another one is still alive.
//!
//! A process is known by its id, its start time and the machine's boot, so a reused id is never mistaken for
//! the one that died. Where nobody can tell (another process-id namespace of the same boot), the owner
//! counts as alive: waiting is safe, stealing is not.

use std::fs;
use std::sync::OnceLock;

use backout_model::Owner;

/// Describes this process.
pub fn this_process() -> Owner {
    static THIS: OnceLock<Owner> = OnceLock::new();
    THIS.get_or_init(|| {
        let pid = std::process::id();
        Owner {
            pid,
            started: start_time(pid).unwrap_or(0),
            boot: boot_id(),
            pid_namespace: pid_namespace(),
        }
    })
    .clone()
}

/// Describes another process of this machine, such as the shell that a task belongs to.
pub fn process(pid: u32) -> Option<Owner> {
    let started = start_time(pid)?;
    Some(Owner {
        pid,
        started,
        boot: boot_id(),
        pid_namespace: pid_namespace(),
    })
}

/// Tells whether the owner may still be at work.
pub fn is_alive(owner: &Owner) -> bool {
    if owner.boot != boot_id() {
        return false;
    }
    owner.pid_namespace != pid_namespace() || start_time(owner.pid) == Some(owner.started)
}

/// Tells whether the machine was started anew since the owner worked, so that unsynced records may be lost.
pub fn is_from_another_boot(owner: &Owner) -> bool {
    owner.boot != boot_id()
}

pub(crate) fn boot_id() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        #[cfg(feature = "testing")]
        if let Ok(boot) = std::env::var("BACKOUT_TEST_BOOT") {
            return boot;
        }
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    })
    .clone()
}

fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

/// Reads field 22 of `/proc/PID/stat`. The command name before it may hold spaces and parentheses, so
/// fields are counted from the last `)`. A zombie has died.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_another_life_of_its_id_is_not() {
        let this = this_process();
        assert!(is_alive(&this));
        assert!(!is_alive(&Owner {
            started: this.started + 1,
            ..this.clone()
        }));
        assert!(!is_alive(&Owner {
            boot: "another".to_owned(),
            ..this.clone()
        }));
        assert!(is_alive(&Owner {
            pid_namespace: this.pid_namespace + 1,
            started: 1,
            ..this
        }));
    }

    #[test]
    fn a_child_that_ended_is_dead() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let owner = process(child.id()).unwrap();
        assert!(is_alive(&owner));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_alive(&owner));
    }
}
