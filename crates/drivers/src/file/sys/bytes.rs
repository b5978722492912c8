//! Moving bytes: reading whole files, copying with holes kept, digests along the way; where holes are.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd as _;

use backout_model::Digest;
use rustix::fs::{FallocateFlags, SeekFrom, seek};
use rustix::io::Errno;

use crate::file::recipe::Holes;

/// How many bytes are moved at a time.
const BUFFER_BYTES: usize = 32 * 1024;

/// No file system has larger blocks.
const BLOCK_BYTES_MAX: u64 = 64 * 1024;

/// How many holes of one file are told at most.
const HOLES_MAX: usize = 1024;

/// What is no larger is read whole, with its holes.
const WHOLE_BYTES_MAX: u64 = 1 << 40;

/// What is no larger is read at once.
const SMALL_BYTES: usize = 4 * 1024;

/// Copies all that `from` gives, and returns digest and length.
pub(crate) fn copy_stream(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<(Digest, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0_u8; BUFFER_BYTES];
    let mut total = 0_u64;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let piece = buffer.get(..count).unwrap_or_default();
        hasher.update(piece);
        to.write_all(piece)?;
        total += u64::try_from(count).unwrap_or(0);
    }
    Ok((Digest::from_bytes(*hasher.finalize().as_bytes()), total))
}

/// Computes digest and length of all that `from` gives. Most files are small, and need no room of their own.
pub(crate) fn digest(from: &mut dyn Read) -> io::Result<(Digest, u64)> {
    let mut head = [0_u8; SMALL_BYTES];
    let mut rest = head.as_mut_slice();
    while !rest.is_empty() {
        match from.read(rest) {
            Ok(0) => {
                let length = SMALL_BYTES - rest.len();
                let whole = head.get(..length).unwrap_or_default();
                return Ok((Digest::of(whole), length as u64));
            }
            Ok(count) => rest = rest.get_mut(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    copy_stream(&mut head.as_slice().chain(from), &mut io::sink())
}

/// Computes digest and length of a file. Nobody has the time to read the zeros of a huge hole: of a file above a size only the
/// blocks with something in them count, each with its place, whether the zeros between are a hole or not.
pub(crate) fn digest_of_file(file: &mut File) -> io::Result<(Digest, u64)> {
    let size = file.metadata()?.len();
    if size <= WHOLE_BYTES_MAX {
        return digest(file);
    }
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0_u8; BUFFER_BYTES];
    let step = BUFFER_BYTES as u64;
    let mut at = 0;
    while at < size {
        at = match seek(&*file, SeekFrom::Data(at)) {
            Ok(data) => data.max(at) / step * step,
            Err(Errno::NXIO) => break,
            Err(errno) => return Err(errno.into()),
        };
        let count = read_at(file, &mut block, at)?;
        if count == 0 {
            break;
        }
        let found = block.get(..count).unwrap_or_default();
        if found.iter().any(|byte| *byte != 0) {
            hasher.update(&at.to_le_bytes());
            hasher.update(found);
        }
        at += step;
    }
    hasher.update(&size.to_le_bytes());
    Ok((Digest::from_bytes(*hasher.finalize().as_bytes()), size))
}

/// Computes digest and length of a file that was seen to be so long: if it is and that is little, one call reads it.
pub(crate) fn digest_of_seen(file: &mut File, size: u64) -> io::Result<(Digest, u64)> {
    use std::os::unix::fs::FileExt as _;
    let mut head = [0_u8; SMALL_BYTES];
    if size < SMALL_BYTES as u64
        && let Ok(count) = file.read_at(&mut head, 0)
        && count as u64 == size
    {
        let whole = head.get(..count).unwrap_or_default();
        return Ok((Digest::of(whole), size));
    }
    digest_of_file(file)
}

/// Reads a file that was seen to be so long in one call. None if it is not so long any more.
pub(crate) fn read_at_once(file: &File, size: u64) -> io::Result<Option<Vec<u8>>> {
    use std::os::unix::fs::FileExt as _;
    let Ok(size) = usize::try_from(size) else {
        return Ok(None);
    };
    // There is room for one more, so that one that has grown is noticed.
    let mut content = vec![0; size.saturating_add(1)];
    let count = file.read_at(&mut content, 0)?;
    content.truncate(count);
    Ok((count == size).then_some(content))
}

/// Reads a file that was seen to be so long, and no more of it: a look afterwards tells whether it is still so long.
pub(crate) fn read_seen(file: &File, size: u64) -> io::Result<Vec<u8>> {
    let mut content = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
    let count = read_at(file, &mut content, 0)?;
    content.truncate(count);
    Ok(content)
}

/// Reads as much as there is at a place, and is room for.
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt as _;
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Tells whether a file has holes. Where it is read next changes.
pub(crate) fn has_holes_anywhere(file: &File, size: u64) -> bool {
    matches!(seek(file, SeekFrom::Hole(0)), Ok(end) if end < size)
}

/// Tells whether a file has holes. Where it is read next stays the same.
pub(crate) fn has_holes(file: &File, size: u64) -> bool {
    in_place(file, || has_holes_anywhere(file, size))
}

/// Lists the holes of a file, by start and end. One in too many pieces is told as one without. Where the file is read next
/// stays the same.
pub(crate) fn holes(file: &File, size: u64) -> Holes {
    in_place(file, || listed_holes(file, size))
}

/// Looks around in a file. Whoever reads it afterwards begins where he would have.
fn in_place<T>(file: &File, look: impl FnOnce() -> T) -> T {
    let at = seek(file, SeekFrom::Current(0));
    let found = look();
    if let Ok(at) = at {
        let _cannot_fail_if_it_was_there = seek(file, SeekFrom::Start(at));
    }
    found
}

fn listed_holes(file: &File, size: u64) -> Holes {
    let mut holes = Holes::new();
    let mut at = 0;
    while at < size {
        let Ok(start) = seek(file, SeekFrom::Hole(at)) else {
            return Holes::new();
        };
        if start >= size {
            break;
        }
        let end = match seek(file, SeekFrom::Data(start)) {
            Ok(end) if end > start => end.min(size),
            // Nothing but the hole is left.
            Ok(_) | Err(_) => size,
        };
        holes.push((start, end));
        if holes.len() > HOLES_MAX {
            return Holes::new();
        }
        at = end;
    }
    holes
}

/// Takes the room of some stretches of zeros away. A file system that has no holes keeps them as zeros.
pub(crate) fn punch(file: &File, holes: &[(u64, u64)]) -> io::Result<()> {
    if holes.is_empty() {
        return Ok(());
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let size = file.metadata()?.len();
    for (start, end) in holes {
        // The last block goes only as a whole.
        let end = if *end == size {
            end.next_multiple_of(BLOCK_BYTES_MAX)
        } else {
            *end
        };
        match rustix::fs::fallocate(file, flags, *start, end.saturating_sub(*start)) {
            Ok(()) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Makes `to`, which is empty, the same file as `from`: by sharing blocks where the file system can,
/// else by copying what is not a hole.
pub(crate) fn clone_file(from: &File, to: &File) -> io::Result<()> {
    if rustix::fs::ioctl_ficlone(to.as_fd(), from.as_fd()).is_ok() {
        return Ok(());
    }
    let size = from.metadata()?.len();
    let mut at = 0;
    while at < size {
        let start = match seek(from, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL) => at,
            Err(errno) => return Err(errno.into()),
        };
        let end = match seek(from, SeekFrom::Hole(start)) {
            Ok(end) => end,
            Err(Errno::INVAL) => size,
            Err(errno) => return Err(errno.into()),
        };
        copy_range(from, to, start, end)?;
        at = end.max(at + 1);
    }
    // A hole at the end has no bytes that would have set the length.
    if to.metadata()?.len() < size {
        to.set_len(size)?;
    }
    Ok(())
}

fn copy_range(from: &File, to: &File, start: u64, end: u64) -> io::Result<()> {
    seek(from, SeekFrom::Start(start))?;
    seek(to, SeekFrom::Start(start))?;
    let mut to = to;
    io::copy(&mut Read::take(from, end - start), &mut to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Seek as _;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_digest_is_that_of_all_bytes_however_many() {
        for length in [0, 1, SMALL_BYTES - 1, SMALL_BYTES, SMALL_BYTES + 1, 100_000] {
            let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(length).collect();
            let expected = (Digest::of(&bytes), length as u64);
            assert_eq!(digest(&mut bytes.as_slice()).unwrap(), expected, "{length}");
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            for seen in [length, 0, 7, length + 1] {
                file.rewind().unwrap();
                let found = digest_of_seen(&mut file, seen as u64).unwrap();
                assert_eq!(found, expected, "{length}, seen as {seen}");
            }
        }
    }

    #[test]
    fn of_a_huge_file_the_blocks_with_something_in_them_count() {
        use std::os::unix::fs::FileExt as _;
        let of = |pieces: &[(&[u8], u64)], size: u64| {
            let mut file = tempfile::tempfile().unwrap();
            file.set_len(size).unwrap();
            for (bytes, at) in pieces {
                file.write_all_at(bytes, *at).unwrap();
            }
            digest_of_file(&mut file).unwrap().0
        };
        let (far, size) = (1 << 40, 2 << 40);
        let one = of(&[(b"here", far)], size);
        assert_eq!(one, of(&[(&vec![0; 100_000], 5), (b"here", far)], size));
        assert_ne!(one, of(&[(b"here", far + 1)], size));
        assert_ne!(one, of(&[(b"here", far + (1 << 20))], size));
        assert_ne!(one, of(&[(b"here", far)], size + 1));
        assert_ne!(one, of(&[(b"hers", far)], size));
    }

    #[test]
    fn a_clone_keeps_holes_and_bytes() {
        let mut from = tempfile::tempfile().unwrap();
        from.write_all(b"head").unwrap();
        from.seek(io::SeekFrom::Start(8 << 20)).unwrap();
        from.write_all(b"tail").unwrap();
        from.set_len(16 << 20).unwrap();
        let mut to = tempfile::tempfile().unwrap();
        clone_file(&from, &to).unwrap();
        assert!(to.metadata().unwrap().blocks() <= from.metadata().unwrap().blocks());
        from.rewind().unwrap();
        to.rewind().unwrap();
        assert_eq!(digest(&mut from).unwrap(), digest(&mut to).unwrap());
    }
}
