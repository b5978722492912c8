//! Reading paths from another process's memory.

use rustix::io::Errno;

use super::sys;

/// The longest path that the kernel takes, its zero byte included.
const PATH_BYTES_MAX: usize = 4096;

/// So much is read at once: most paths are shorter.
const CHUNK_BYTES: usize = 256;

/// The smallest piece of memory that is there or is not.
const PAGE: u64 = 4096;

/// Reads a path up to its zero byte, as the kernel does.
pub(super) fn read_path(thread: u32, address: u64) -> Result<Vec<u8>, Errno> {
    let mut path = Vec::with_capacity(CHUNK_BYTES);
    while path.len() < PATH_BYTES_MAX {
        let at = address.wrapping_add(path.len() as u64);
        let mut chunk = [0_u8; CHUNK_BYTES];
        let size = to_page_end(at).min(PATH_BYTES_MAX - path.len());
        let room = chunk.get_mut(..size).unwrap_or_default();
        let read = read(thread, at, room)?;
        let chunk = chunk.get(..read).unwrap_or_default();
        match chunk.iter().position(|byte| *byte == 0) {
            Some(end) => {
                path.extend_from_slice(chunk.get(..end).unwrap_or_default());
                return Ok(path);
            }
            None if read == 0 => return Err(Errno::FAULT),
            None => path.extend_from_slice(chunk),
        }
    }
    Err(Errno::NAMETOOLONG)
}

/// Reads two paths by one call. None if one of them is longer than most are, or cannot be read so: then each is read by itself.
pub(super) fn read_two_paths(thread: u32, addresses: [u64; 2]) -> Option<[Vec<u8>; 2]> {
    let [mut one, mut other] = [[0_u8; CHUNK_BYTES]; 2];
    let sizes = addresses.map(to_page_end);
    let [first, second] = [one.get_mut(..sizes[0])?, other.get_mut(..sizes[1])?];
    let pieces = [(addresses[0], &mut *first), (addresses[1], &mut *second)];
    let read = sys::read_pieces(thread, pieces).ok()?;
    let path = |chunk: &[u8]| {
        let end = chunk.iter().position(|byte| *byte == 0)?;
        chunk.get(..end).map(<[u8]>::to_vec)
    };
    if read != first.len() + second.len() {
        return None;
    }
    Some([path(first)?, path(second)?])
}

/// Tells how many bytes may be read at once: never across a page that may not be there.
fn to_page_end(address: u64) -> usize {
    usize::try_from(PAGE - address % PAGE).map_or(CHUNK_BYTES, |size| size.min(CHUNK_BYTES))
}

/// Reads exactly so many bytes.
pub(super) fn read_exactly(thread: u32, address: u64, into: &mut [u8]) -> Result<(), Errno> {
    let mut done = 0;
    while done < into.len() {
        let at = address.wrapping_add(done as u64);
        let read = read(thread, at, into.get_mut(done..).unwrap_or_default())?;
        if read == 0 {
            return Err(Errno::FAULT);
        }
        done += read;
    }
    Ok(())
}

/// Reads as far as it goes. Memory that may only be written or executed can be read by the kernel, and by another door.
fn read(thread: u32, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
    match sys::read_memory(thread, address, into).map_err(|error| errno(&error)) {
        Err(Errno::FAULT) if is_open(thread, address) => {
            sys::read_memory_file(thread, address, into).map_err(|_| Errno::FAULT)
        }
        other => other,
    }
}

/// Tells whether anything at all is allowed with a piece of memory. That other door would open what is closed to all.
fn is_open(thread: u32, address: u64) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{thread}/maps")).unwrap_or_default();
    maps.lines().any(|line| {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let number = |text| u64::from_str_radix(text, 16).ok();
        let range = range.split_once('-');
        let range = range.and_then(|(start, end)| Some(number(start)?..number(end)?));
        range.is_some_and(|range| range.contains(&address)) && !rights.starts_with("---")
    })
}

/// Tells whether a piece of memory is kept from everybody but its process, and the kernel on its behalf.
pub(super) fn is_secret(thread: u32, address: u64) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{thread}/maps")).unwrap_or_default();
    maps.lines().any(|line| {
        let number = |text| u64::from_str_radix(text, 16).ok();
        let range = line
            .split_whitespace()
            .next()
            .and_then(|range| range.split_once('-'));
        let range = range.and_then(|(start, end)| Some(number(start)?..number(end)?));
        line.contains(" /secretmem") && range.is_some_and(|range| range.contains(&address))
    })
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_as_long_as_the_kernel_takes() {
        for (length, is_read) in [(0, true), (4095, true), (4096, false), (4200, false)] {
            let mut path = vec![b'a'; length];
            path.extend([0; 300]);
            let found = read_path(std::process::id(), path.as_ptr().expose_provenance() as u64);
            let expected = if is_read {
                Ok(path[..length].to_vec())
            } else {
                Err(Errno::NAMETOOLONG)
            };
            assert_eq!(found, expected, "{length}");
        }
    }

    #[test]
    fn two_paths_are_read_at_once_or_each_by_itself() {
        let own = std::process::id();
        let address = |path: &[u8]| path.as_ptr().expose_provenance() as u64;
        let long = [vec![b'a'; 300], vec![0]].concat();
        let (first, second) = (b"from\0".to_vec(), b"to\0".to_vec());
        let both = read_two_paths(own, [address(&first), address(&second)]);
        assert_eq!(both, Some([b"from".to_vec(), b"to".to_vec()]));
        assert_eq!(read_two_paths(own, [address(&first), address(&long)]), None);
        assert_eq!(read_two_paths(own, [address(&first), 0]), None);
        assert_eq!(read_two_paths(own, [0, address(&second)]), None);
    }
}
