//! The umask that counts for a write: the process's own, or that of whoever asked for it.

use std::cell::Cell;
use std::sync::OnceLock;

thread_local! {
    static INSTEAD: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Does something as if the process had another umask: what somebody else asked for gets his rights.
pub fn with_umask<T>(umask: Option<u32>, work: impl FnOnce() -> T) -> T {
    let before = INSTEAD.replace(umask);
    let value = work();
    INSTEAD.set(before);
    value
}

/// Tells whether something is done for somebody else, with his umask.
pub fn is_for_another() -> bool {
    INSTEAD.get().is_some()
}

/// Gives the umask that counts: the process's own, unless something is done for somebody else. It can only be read without
/// changing it from `/proc`.
pub fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    if let Some(instead) = INSTEAD.get() {
        return instead;
    }
    *UMASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
            .unwrap_or(0o022)
    })
}
