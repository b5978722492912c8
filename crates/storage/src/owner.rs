//! Who this process is, and whether another one is still alive.
//!
//! A process is known by its id, its start time and the machine's boot, so a reused id is never mistaken for
//! the one that died. Where nobody can tell (another process-id namespace of the same boot), the owner
//! counts as alive: waiting is safe, stealing is not.
//!
//! A process of another machine cannot be looked at from here. What its silence means is for the store to say: this one serves
//! one machine at a time (`host`), so whoever can use it knows that the others are gone.

use std::sync::OnceLock;
use std::{fs, io};

use backout_model::{Digest, Owner};

/// How much of its digest names a machine.
const HOST_DIGITS: usize = 16;

/// Finds out who this process is, once. A store is not opened without: work of an owner that nobody knows could be
/// taken for a dead one's.
pub(crate) fn know_this_process() -> io::Result<&'static Owner> {
    static THIS: OnceLock<Owner> = OnceLock::new();
    if let Some(this) = THIS.get() {
        return Ok(this);
    }
    let this = describe(std::process::id())?;
    Ok(THIS.get_or_init(|| this))
}

/// Describes this process.
pub fn this_process() -> Owner {
    know_this_process().cloned().unwrap_or_else(|_| Owner {
        pid: std::process::id(),
        started: 0,
        boot: String::new(),
        pid_namespace: 0,
        host: String::new(),
    })
}

/// Describes another process of this machine, such as the shell that a task belongs to.
pub fn process(pid: u32) -> Option<Owner> {
    describe(pid).ok()
}

fn describe(pid: u32) -> io::Result<Owner> {
    let gone = || io::Error::new(io::ErrorKind::NotFound, "there is no such process");
    Ok(Owner {
        pid,
        started: start_time(pid)?.ok_or_else(gone)?,
        boot: boot_id()?,
        pid_namespace: pid_namespace()?,
        host: host_id(),
    })
}

/// Tells whether an owner worked on another machine. The same boot is the same machine, whatever a container calls it.
pub fn is_elsewhere(owner: &Owner) -> bool {
    let is_here = || boot_id().is_ok_and(|boot| boot == owner.boot);
    !owner.host.is_empty() && owner.host != host_id() && !is_here()
}

/// Names this machine: a digest, since the machine's own id is not to be told.
pub(crate) fn host_id() -> String {
    static HOST: OnceLock<String> = OnceLock::new();
    #[cfg(feature = "testing")]
    if let Ok(host) = std::env::var("BACKOUT_TEST_HOST") {
        return host;
    }
    let known = HOST.get_or_init(|| {
        let own = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let own = Some(own.trim().to_owned()).filter(|id| !id.is_empty());
        let id = own.unwrap_or_else(host_name);
        let digest = Digest::of(format!("backout host {id}").as_bytes());
        digest.to_string().chars().take(HOST_DIGITS).collect()
    });
    known.clone()
}

/// What people call this machine.
pub(crate) fn host_name() -> String {
    #[cfg(feature = "testing")]
    if let Ok(host) = std::env::var("BACKOUT_TEST_HOST") {
        return host;
    }
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Tells whether the owner may still be at work. Where the system does not say, it may.
pub fn is_alive(owner: &Owner) -> bool {
    may_be_alive(owner).unwrap_or(true)
}

fn may_be_alive(owner: &Owner) -> io::Result<bool> {
    if owner.boot != boot_id()? {
        return Ok(false);
    }
    if owner.pid_namespace != pid_namespace()? {
        return Ok(true);
    }
    Ok(start_time(owner.pid)? == Some(owner.started))
}

/// Tells whether the owner was stopped (SIGSTOP, Ctrl-Z) and does nothing until somebody lets it go on.
pub fn is_paused(owner: &Owner) -> bool {
    let here = pid_namespace().is_ok_and(|here| here == owner.pid_namespace);
    let stat = fs::read_to_string(format!("/proc/{}/stat", owner.pid)).unwrap_or_default();
    let state = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    here && matches!(state.split_whitespace().next(), Some("T" | "t"))
}

/// Tells whether the machine was started anew since the owner worked, so that unsynced records may be lost.
pub fn is_from_another_boot(owner: &Owner) -> bool {
    boot_id().is_ok_and(|boot| owner.boot != boot)
}

/// Names the time since the machine was started.
pub(crate) fn boot_id() -> io::Result<String> {
    static BOOT: OnceLock<String> = OnceLock::new();
    #[cfg(feature = "testing")]
    if let Ok(boot) = std::env::var("BACKOUT_TEST_BOOT") {
        return Ok(boot);
    }
    if let Some(boot) = BOOT.get() {
        return Ok(boot.clone());
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(BOOT.get_or_init(|| boot.trim().to_owned()).clone())
}

fn pid_namespace() -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// Reads field 22 of `/proc/PID/stat`; none if the process is dead. The command name before it may hold spaces and
/// parentheses, so fields are counted from the last `)`. A zombie has died.
fn start_time(pid: u32) -> io::Result<Option<u64>> {
    const ESRCH: i32 = 3;
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // It died between the opening and the reading.
        Err(error) if error.raw_os_error() == Some(ESRCH) => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return Ok(None);
    };
    let mut fields = fields.split_whitespace();
    if matches!(fields.next(), None | Some("Z" | "X")) {
        return Ok(None);
    }
    Ok(fields.nth(18).and_then(|started| started.parse().ok()))
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
