//! When a call is over that the kernel carries out itself.

use super::sys::Notice;

/// Tells whether a thread is no longer in the call that it was in.
pub(super) fn has_left(notice: &Notice, ran_before: Option<u64>) -> bool {
    /// No rename computes for so long: whoever does is back in its program.
    const COMPUTING_NANOS: u64 = 50_000_000;
    let text = match std::fs::read_to_string(format!("/proc/{}/syscall", notice.thread)) {
        Ok(text) => text,
        // Gone, or not for us to look at: then the next thing that it does tells.
        Err(error) => {
            let gone = [Some(libc::ENOENT), Some(libc::ESRCH)];
            return gone.contains(&error.raw_os_error());
        }
    };
    if text.starts_with("running") {
        let both = ran_before.zip(ran(notice.thread));
        return both.is_some_and(|(before, now)| now > before + COMPUTING_NANOS);
    }
    let number = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    number != Some(notice.number)
}

/// Gives how long a thread had a processor so far, in nanoseconds.
pub(super) fn ran(thread: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}
