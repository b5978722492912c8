//! Everything that reached the disk, in order, and the images that a power cut could have left of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::fuse::Backing;
use crate::random::Random;

const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// The bytes of a disk; a page that is not there is zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pages(BTreeMap<u64, Arc<[u8; PAGE]>>);

impl Pages {
    fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = offset + bytes.len() as u64;
            let (page, within) = split(at);
            let count = (PAGE - within).min(length - bytes.len());
            match self.0.get(&page) {
                Some(page) => bytes.extend(&page[within..within + count]),
                None => bytes.resize(bytes.len() + count, 0),
            }
        }
        bytes
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let (page, within) = split(offset + done as u64);
            let count = (PAGE - within).min(bytes.len() - done);
            let page = self.0.entry(page).or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[within..within + count].copy_from_slice(&bytes[done..done + count]);
            done += count;
        }
    }

    /// Writes the disk as a sparse file.
    pub(crate) fn save(&self, path: &Path, size: u64) {
        let file = File::create(path).unwrap();
        file.set_len(size).unwrap();
        for (page, bytes) in self.0.iter().filter(|(_, bytes)| ***bytes != [0; PAGE]) {
            file.write_all_at(&bytes[..], page * PAGE as u64).unwrap();
        }
    }
}

fn split(offset: u64) -> (u64, usize) {
    let within = usize::try_from(offset % PAGE as u64).unwrap();
    (offset / PAGE as u64, within)
}

#[derive(Debug, Clone)]
enum Entry {
    Write(u64, Arc<[u8]>),
    Flush,
}

/// A disk that remembers.
#[derive(Debug)]
pub(crate) struct Recorder {
    size: u64,
    inner: Mutex<(Pages, Vec<Entry>)>,
}

impl Recorder {
    pub(crate) fn new(size: u64) -> Self {
        let inner = Mutex::default();
        Self { size, inner }
    }

    /// How much has been recorded so far.
    pub(crate) fn position(&self) -> usize {
        self.inner.lock().unwrap().1.len()
    }

    pub(crate) fn to_history(&self) -> History {
        let entries = self.inner.lock().unwrap().1.clone();
        History {
            size: self.size,
            entries,
            base: (Pages::default(), 0),
        }
    }
}

impl Backing for Recorder {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let length = length.min(usize::try_from(self.size.saturating_sub(offset)).unwrap());
        self.inner.lock().unwrap().0.read(offset, length)
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        let mut inner = self.inner.lock().unwrap();
        inner.0.write(offset, bytes);
        inner.1.push(Entry::Write(offset, bytes.into()));
    }

    fn flush(&self) {
        self.inner.lock().unwrap().1.push(Entry::Flush);
    }
}

/// How the disk treats what it was given but not yet told to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// All of it is lost.
    Lost,
    /// All of it arrived.
    Kept,
    /// Each write arrived or not, in any order, and some only by sectors.
    Scattered,
}

/// What was recorded, from which images are made. Images are asked for in order of time.
pub(crate) struct History {
    size: u64,
    entries: Vec<Entry>,
    /// The disk after everything before this position.
    base: (Pages, usize),
}

impl History {
    /// Makes the image that a power cut at `position` leaves.
    pub(crate) fn image(&mut self, position: usize, fate: Fate, random: &mut Random) -> Pages {
        let flushed = self.entries[..position]
            .iter()
            .rposition(|entry| matches!(entry, Entry::Flush))
            .unwrap_or(0);
        assert!(flushed >= self.base.1, "images are asked for in order");
        for entry in &self.entries[self.base.1..flushed] {
            if let Entry::Write(offset, bytes) = entry {
                self.base.0.write(*offset, bytes);
            }
        }
        self.base.1 = flushed;
        let mut image = self.base.0.clone();
        for entry in &self.entries[flushed..position] {
            if let Entry::Write(offset, bytes) = entry {
                strew(&mut image, *offset, bytes, fate, random);
            }
        }
        image
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The positions right after each flush between two positions.
    pub(crate) fn flushes(&self, from: usize, to: usize) -> Vec<usize> {
        (from..to)
            .filter(|position| matches!(self.entries[*position], Entry::Flush))
            .map(|position| position + 1)
            .collect()
    }
}

/// Lets one unflushed write arrive, or not, or in parts.
fn strew(image: &mut Pages, offset: u64, bytes: &[u8], fate: Fate, random: &mut Random) {
    match fate {
        Fate::Lost => {}
        Fate::Kept => image.write(offset, bytes),
        Fate::Scattered => match random.below(8) {
            0..=2 => {}
            3..=5 => image.write(offset, bytes),
            6 => {
                let sectors = random.below(bytes.len() / SECTOR + 1);
                image.write(offset, &bytes[..sectors * SECTOR]);
            }
            _ => {
                for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                    if random.below(2) == 0 {
                        image.write(offset + (number * SECTOR) as u64, sector);
                    }
                }
            }
        },
    }
}
