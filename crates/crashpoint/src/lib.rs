//! Named places where a test can abort the process, and syncs that a test can leave out.
//!
//! A crash point stands at every step boundary of an operation. In a normal build both functions are empty
//! and vanish. With the feature `enabled`:
//!
//! - `BACKOUT_CRASH_AT=7` aborts at the seventh point passed, whatever its name;
//!   `BACKOUT_CRASH_AT=file.renamed#2` aborts at the second passing of that name.
//! - `BACKOUT_CRASH_LOG=FILE` appends the name of each point passed, so that a test can count them.
//! - `BACKOUT_SKIP_SYNC=NAME` leaves out the syncs of that name, to prove that the power-loss tests bite.
//!
//! The abort is a real one: no destructor runs, nothing is flushed.

/// Marks a step boundary.
#[inline]
#[cfg_attr(
    not(feature = "enabled"),
    expect(unused_variables, reason = "empty in normal builds")
)]
pub fn crash_point(name: &'static str) {
    #[cfg(feature = "enabled")]
    enabled::reach(name);
}

/// Tells whether a test wants the syncs of this name left out. Always false in a normal build.
#[inline]
#[cfg_attr(
    not(feature = "enabled"),
    expect(unused_variables, reason = "empty in normal builds")
)]
pub fn sync_is_skipped(name: &'static str) -> bool {
    #[cfg(feature = "enabled")]
    return enabled::skips(name);
    #[cfg(not(feature = "enabled"))]
    false
}

#[cfg(feature = "enabled")]
mod enabled {
    //! The real thing, in test builds.

    use std::collections::BTreeMap;
    use std::io::Write as _;
    use std::sync::Mutex;

    /// How often each was passed.
    static PASSED: Mutex<BTreeMap<&'static str, usize>> = Mutex::new(BTreeMap::new());

    pub(super) fn reach(name: &'static str) {
        let (total, of_name) = {
            let mut passed = PASSED
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let of_name = passed.entry(name).or_default();
            *of_name += 1;
            let of_name = *of_name;
            (passed.values().sum::<usize>(), of_name)
        };
        if let Some(path) = std::env::var_os("BACKOUT_CRASH_LOG") {
            let log = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path);
            let _logged = log.and_then(|mut file| writeln!(file, "{name}"));
        }
        let Ok(wanted) = std::env::var("BACKOUT_CRASH_AT") else {
            return;
        };
        let here = match wanted.split_once('#') {
            Some((other, count)) => other == name && count.parse() == Ok(of_name),
            None => wanted.parse() == Ok(total) || (wanted == name && of_name == 1),
        };
        if here {
            std::process::abort();
        }
    }

    pub(super) fn skips(name: &'static str) -> bool {
        std::env::var("BACKOUT_SKIP_SYNC").is_ok_and(|skipped| skipped == name)
    }
}
