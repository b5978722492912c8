//! The trees that everybody protects: the same bytes on every machine, sizes as in source code.
//!
//! Half of the files lie under `a`, half under `b`, forty in each directory: `a/m007/f13.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;

/// Files in one directory.
pub(crate) const DIRECTORY_FILES: usize = 40;

/// Makes a tree of `files` files. `version` changes the content of each, and its size a little.
pub(crate) fn make(at: &Path, files: usize, version: u64) -> Result<(), Failure> {
    for half in ["a", "b"] {
        make_half(&at.join(half), files / 2, version)?;
    }
    Ok(())
}

/// Makes one half of a tree.
pub(crate) fn make_half(at: &Path, files: usize, version: u64) -> Result<(), Failure> {
    for directory in 0..files.div_ceil(DIRECTORY_FILES) {
        let here = at.join(directory_name(directory));
        fs::create_dir_all(&here)?;
        let first = directory * DIRECTORY_FILES;
        for number in first..files.min(first + DIRECTORY_FILES) {
            fs::write(
                here.join(file_name(number)),
                content(number as u64, version),
            )?;
        }
    }
    Ok(())
}

/// The directory with this number within its half.
pub(crate) fn directory_name(number: usize) -> String {
    format!("m{number:03}")
}

/// The file with this number within its half.
pub(crate) fn file_name(number: usize) -> String {
    format!("f{:02}.rs", number % DIRECTORY_FILES)
}

/// What a file holds: lines that look like source and differ from file to file.
pub(crate) fn content(number: u64, version: u64) -> Vec<u8> {
    let mut random = Random(
        number
            .wrapping_mul(0x9e37_79b9)
            .wrapping_add(version * 77 + 1),
    );
    let size = size_of(number);
    let mut text = Vec::with_capacity(size + 80);
    let mut line = 0_u64;
    while text.len() < size {
        line += 1;
        let (word, value) = (random.next() % 5_000, random.next() % 100_000);
        text.extend_from_slice(
            format!("    let field_{word} = compute({value}, version_{version}); // {line}\n")
                .as_bytes(),
        );
    }
    text
}

/// Half of the files have 4 KiB or less, one in a hundred has 64 KiB, one in a thousand 512 KiB.
fn size_of(number: u64) -> usize {
    let mut random = Random(number + 17);
    let draw = random.next() % 1_000;
    let spread = usize::try_from(random.next() % 4_096).unwrap_or_default();
    match draw {
        0 => 512 << 10,
        1..=10 => 64 << 10,
        11..=300 => 256 + spread / 2,
        301..=800 => 2_048 + spread,
        _ => 6_144 + spread * 3,
    }
}

/// A small generator of numbers that are the same everywhere (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// All regular files below, relative to `at`, in order.
pub(crate) fn files_below(at: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut open = vec![at.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path().strip_prefix(at)?.to_path_buf());
            }
        }
    }
    found.sort();
    Ok(found)
}
