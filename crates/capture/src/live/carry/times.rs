//! The times that a call sets, in each of the forms that they have in memory.

use rustix::fs::{Timespec, Timestamps};
use rustix::io::Errno;

use super::super::calls::as_int;
use super::super::memory::read_exactly;
use super::super::sys::Notice;

/// The present moment, as the kernel writes it among times.
const NOW: i64 = 0x3fff_ffff;

const MICROSECONDS: i64 = 1_000_000;

/// Reads the times that a call sets. None if it is asked for in a way that only the kernel knows.
pub(super) fn times_of(notice: &Notice) -> Result<Option<Timestamps>, Errno> {
    let argument = |index: usize| notice.arguments.get(index).copied().unwrap_or_default();
    let (address, form) = match notice.number {
        libc::SYS_utimensat => {
            let known = libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH;
            if as_int(argument(3)) & !known != 0 {
                return Ok(None);
            }
            (argument(2), Form::Nanoseconds)
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => (argument(1), Form::Microseconds),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => (argument(2), Form::Microseconds),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => (argument(1), Form::Seconds),
        _ => return Ok(None),
    };
    if address == 0 {
        return Ok(Some(timestamps([(0, NOW), (0, NOW)])));
    }
    let mut bytes = [0; 32];
    let size = if matches!(form, Form::Seconds) {
        16
    } else {
        32
    };
    let room = bytes.get_mut(..size).unwrap_or_default();
    read_exactly(notice.thread, address, room)?;
    let word = |index: usize| {
        let word = bytes.get(index * 8..index * 8 + 8);
        let word = word.and_then(|word| word.try_into().ok());
        i64::from_le_bytes(word.unwrap_or_default())
    };
    match form {
        Form::Seconds => Ok(Some(timestamps([(word(0), 0), (word(1), 0)]))),
        Form::Nanoseconds => Ok(Some(timestamps([(word(0), word(1)), (word(2), word(3))]))),
        Form::Microseconds => {
            let is_good = |part: i64| (0..MICROSECONDS).contains(&part);
            if !is_good(word(1)) || !is_good(word(3)) {
                return Err(Errno::INVAL);
            }
            let times = [(word(0), word(1) * 1000), (word(2), word(3) * 1000)];
            Ok(Some(timestamps(times)))
        }
    }
}

#[derive(Clone, Copy)]
enum Form {
    #[cfg(target_arch = "x86_64")]
    Seconds,
    #[cfg(target_arch = "x86_64")]
    Microseconds,
    Nanoseconds,
}

fn timestamps(times: [(i64, i64); 2]) -> Timestamps {
    let [last_access, last_modification] =
        times.map(|(tv_sec, tv_nsec)| Timespec { tv_sec, tv_nsec });
    Timestamps {
        last_access,
        last_modification,
    }
}
