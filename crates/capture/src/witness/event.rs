//! Events as the kernel writes them: a head of fixed length, then pieces that say what it is about.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// How long the head of an event is at least.
const HEAD_BYTES: usize = 24;

/// The kind of a piece that has a directory and a name.
const DIRECTORY_AND_NAME: u8 = 2;

/// The file system's number, and the length and type of a handle.
const BEFORE_HANDLE: usize = 16;

/// Something that happened in a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event<'b> {
    /// Who did it.
    pub(super) pid: u32,
    /// What the directory is named by.
    pub(super) directory: &'b [u8],
    /// The name in it.
    pub(super) name: &'b OsStr,
}

/// Gives all events that name a process, a directory and a name.
pub(super) fn each(mut bytes: &[u8]) -> impl Iterator<Item = Event<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(number(bytes, 0)?).ok()?;
        let whole = bytes
            .get(..length)
            .filter(|whole| whole.len() >= HEAD_BYTES)?;
        bytes = bytes.get(length..)?;
        Some(read(whole))
    })
    .flatten()
}

fn read(event: &[u8]) -> Option<Event<'_>> {
    let head = event.get(6..8)?.try_into().ok()?;
    let head = usize::from(u16::from_ne_bytes(head));
    let pid = number(event, 20).filter(|pid| i32::try_from(*pid).is_ok_and(|pid| pid > 0))?;
    let mut rest = event.get(head..)?;
    while !rest.is_empty() {
        let length = rest.get(2..4)?.try_into().ok()?;
        let length = usize::from(u16::from_ne_bytes(length));
        let piece = rest.get(..length).filter(|piece| piece.len() > 4)?;
        if piece.first() == Some(&DIRECTORY_AND_NAME) {
            let (directory, name) = named(piece.get(4..)?)?;
            return Some(Event {
                pid,
                directory,
                name,
            });
        }
        rest = rest.get(length..)?;
    }
    None
}

/// Takes what names the directory apart from the name in it.
fn named(piece: &[u8]) -> Option<(&[u8], &OsStr)> {
    let handle = usize::try_from(number(piece, 8)?).ok()?;
    let (directory, name) = piece.split_at_checked(BEFORE_HANDLE + handle)?;
    let name = name.split(|byte| *byte == 0).next()?;
    let is_name = !name.is_empty() && name != b".";
    is_name.then(|| (directory, OsStr::from_bytes(name)))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event as a kernel wrote it: somebody made `zz`.
    fn made(pid: u32) -> Vec<u8> {
        let mut bytes = 56_u32.to_ne_bytes().to_vec();
        bytes.extend([3, 0]);
        bytes.extend(24_u16.to_ne_bytes());
        bytes.extend(0x100_u64.to_ne_bytes());
        bytes.extend((-1_i32).to_ne_bytes());
        bytes.extend(pid.to_ne_bytes());
        bytes.extend([2, 0]);
        bytes.extend(32_u16.to_ne_bytes());
        bytes.extend([7; 8]);
        bytes.extend(8_u32.to_ne_bytes());
        bytes.extend(1_u32.to_ne_bytes());
        bytes.extend([9; 8]);
        bytes.extend(*b"zz\0\0");
        bytes
    }

    #[test]
    fn events_are_read_one_after_the_other() {
        let bytes = [made(17), made(0), made(18)].concat();
        let found: Vec<_> = each(&bytes).map(|it| (it.pid, it.name)).collect();
        let zz = OsStr::new("zz");
        assert_eq!(found, [(17, zz), (18, zz)], "one names nobody");
    }

    #[test]
    fn what_is_cut_short_is_left_out() {
        let whole = made(17);
        for length in 0..whole.len() {
            assert_eq!(each(&whole[..length]).count(), 0, "{length}");
        }
        assert_eq!(each(&[0; 64]).count(), 0);
    }
}
