//! The capture log: one frame per thing learnt, written before the call that it is about goes on.
//!
//! A frame is two lengths, a check sum, a note in JSON and, for few bytes, the bytes themselves. A frame that was cut off
//! by a crash ends the log: its call never went on. A frame that could not be written whole is taken out again at once, so
//! that what comes later can be read. A frame that is all there and damaged means that something is lost: a reader says so.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use backout_model::{OperationId, TargetPath};
use serde::{Deserialize, Serialize};

use crate::file::recipe::{Identity, Image, Kind, Meta, Times};

/// Lengths and check sum.
const HEAD_BYTES: usize = 16;

/// No frame is larger: the bytes in it are few.
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// So long the time of the log counts as now: the clock of files goes no finer.
const MOMENT: Duration = Duration::from_millis(4);

/// One thing learnt. Paths are those of the world before the command, but for moves and aliases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Note {
    /// A name stood for nothing.
    Absent(TargetPath),
    /// Mode, owner, attributes and times of a name whose content nobody touched.
    Dressed {
        path: TargetPath,
        node: Kind,
        meta: Meta,
        identity: Identity,
    },
    /// All that a name stood for. The bytes follow if the image says that they are stored.
    Whole {
        path: TargetPath,
        image: Image,
        /// The inode, if it has several names and is written in place.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        written: Option<u64>,
    },
    /// The inode of a file that was written in place is kept as well: its name goes, others stay.
    Shelved { path: TargetPath, image: Image },
    /// The inode flags of something that is known by other notes, and that nobody had changed before.
    Flags { path: TargetPath, flags: u32 },
    /// What was to be kept was not kept after all.
    Forget(TargetPath),
    /// The times of a directory.
    Parent { path: TargetPath, times: Times },
    /// The command gives a directory times by itself, and not by changing what is in it.
    Timed(TargetPath),
    /// A thing is about to get another name.
    Moving(Move),
    /// The last move happened.
    Moved,
    /// The last move did not happen.
    NotMoved,
    /// A new name is a second one of this file.
    Alias { name: TargetPath, of: TargetPath },
    /// A name changes and nobody keeps what it is.
    Unkept {
        path: TargetPath,
        why: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<Identity>,
    },
    /// Somebody else changed a name that the command had touched; by the names of now.
    Foreign(TargetPath),
    /// Somebody else made something in a directory that the command had made; by the names of now.
    Stranger(TargetPath),
    /// The command's part in some names is over and told by an operation of its own: with them it begins anew.
    Cut {
        by: OperationId,
        paths: Vec<TargetPath>,
    },
    /// All of the command so far is over and told by an operation of its own: it begins anew.
    CutAll(OperationId),
    /// That operation could not be recorded.
    Uncut(OperationId),
    /// A file was read.
    Read(TargetPath),
    /// Everything below this directory was looked at before the command.
    Root(TargetPath),
    /// What a name stood for before the command, as a scan saw it. Its bytes are in the store.
    Scanned {
        path: TargetPath,
        image: Image,
        identity: Identity,
    },
}

/// A thing that gets another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) from: TargetPath,
    pub(crate) to: TargetPath,
    pub(crate) ino: u64,
    pub(crate) is_directory: bool,
    /// Whether the two names are exchanged.
    #[serde(default)]
    pub(crate) is_exchange: bool,
}

/// Writes the log.
#[derive(Debug)]
pub(crate) struct LogWriter {
    file: Arc<File>,
    buffer: Vec<u8>,
    /// Whether a call may only go on when the disk has what was learnt before it.
    syncs: bool,
    /// Where the last whole frame ends.
    end: u64,
    /// Whether a part of a frame may stand behind that end.
    is_torn: bool,
    /// Whether something was written since the disk was last told to keep it.
    is_dirty: bool,
    /// Tells the disk at this moment.
    syncing: Option<JoinHandle<io::Result<()>>>,
    /// What the disk said, if it said no.
    refused: Option<io::ErrorKind>,
    /// The directory of the log, until the disk has its name there.
    directory: Option<File>,
    /// When the time of the log was last renewed.
    beaten: Cell<Instant>,
}

impl LogWriter {
    /// Begins a new log.
    pub(crate) fn create(path: &Path, syncs: bool) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut options = File::options();
        let file = options
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let directory = path
            .parent()
            .and_then(|directory| File::open(directory).ok());
        Ok(Self {
            file: Arc::new(file),
            buffer: Vec::new(),
            syncs,
            end: 0,
            is_torn: false,
            is_dirty: false,
            syncing: None,
            refused: None,
            directory,
            beaten: Cell::new(Instant::now()),
        })
    }

    /// Says that the watcher is alive: the time of the log is the last moment that it is known to have been.
    pub(crate) fn beat(&self) -> io::Result<()> {
        let now = rustix::fs::Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_NOW,
        };
        let times = rustix::fs::Timestamps {
            last_access: now,
            last_modification: now,
        };
        self.beaten.set(Instant::now());
        Ok(rustix::fs::futimens(&*self.file, &times)?)
    }

    /// Says so where a note was left out, if the last one is not of this very moment: what is made now is the command's.
    pub(crate) fn beat_for_unsaid(&self) -> io::Result<()> {
        if self.beaten.get().elapsed() < MOMENT {
            return Ok(());
        }
        self.beat()
    }

    /// Tells the disk to keep what was written, in a thread of its own: nobody waits for it.
    pub(crate) fn sync_soon(&mut self) {
        let is_at_it = self.syncing.as_ref().is_some_and(|it| !it.is_finished());
        // One that failed stays, for the end of the command to find.
        if !self.is_dirty || is_at_it || self.synced().is_err() {
            return;
        }
        let file = Arc::clone(&self.file);
        let directory = self.directory.take();
        let sync = move || {
            file.sync_all()?;
            directory.map_or(Ok(()), |directory| directory.sync_all())
        };
        self.syncing = std::thread::Builder::new().spawn(sync).ok();
        self.is_dirty = self.syncing.is_none();
    }

    /// Has the disk keep what was written, and waits for it.
    pub(crate) fn sync_now(&mut self) -> io::Result<()> {
        self.synced()?;
        if !self.is_dirty {
            return Ok(());
        }
        self.file.sync_data()?;
        if let Some(directory) = self.directory.take() {
            directory.sync_all()?;
        }
        self.is_dirty = false;
        Ok(())
    }

    /// Waits until the disk has said yes or no to what it was last told.
    pub(crate) fn synced(&mut self) -> io::Result<()> {
        let Some(syncing) = self.syncing.take() else {
            return self.refused.map_or(Ok(()), |kind| Err(kind.into()));
        };
        let done = syncing.join().unwrap_or(Ok(()));
        if let Err(error) = &done {
            self.refused = Some(error.kind());
        }
        done
    }

    /// Adds a note, with the bytes that belong to it.
    pub(crate) fn add(&mut self, note: &Note, bytes: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.resize(HEAD_BYTES, 0);
        serde_json::to_writer(&mut self.buffer, note).map_err(io::Error::other)?;
        let note_length = self.buffer.len() - HEAD_BYTES;
        self.buffer.extend_from_slice(bytes);
        write_head(&mut self.buffer, note_length);
        self.mend()?;
        if let Err(error) = self.append() {
            self.is_torn = true;
            // If not now, then before the next note.
            let _mended = self.mend();
            return Err(error);
        }
        self.end += self.buffer.len() as u64;
        self.is_dirty = true;
        self.beaten.set(Instant::now());
        Ok(())
    }

    fn append(&self) -> io::Result<()> {
        (&*self.file).write_all(&self.buffer)?;
        if self.syncs {
            self.file.sync_data()?;
        }
        Ok(())
    }

    /// Takes out what a note left that could not be written whole.
    fn mend(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.end)?;
            self.is_torn = false;
        }
        Ok(())
    }
}

/// Fills in the head of a frame whose note is so long.
fn write_head(frame: &mut [u8], note_length: usize) {
    let (head, body) = frame.split_at_mut(HEAD_BYTES);
    let check = blake3::hash(body);
    let lengths = [note_length, body.len().saturating_sub(note_length)];
    let lengths = lengths.map(|length| u32::try_from(length).unwrap_or(u32::MAX));
    let parts = lengths.iter().flat_map(|length| length.to_le_bytes());
    let parts = parts.chain(check.as_bytes().iter().copied());
    head.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
}

/// Makes the frame of a note that is written already. For those who try what a reader makes of it.
#[doc(hidden)]
pub fn framed(note: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut frame = [&[0; HEAD_BYTES][..], note, bytes].concat();
    write_head(&mut frame, note.len());
    frame
}

/// Reads a log, takes all of it in, and tells how many notes and how many gaps it has.
#[doc(hidden)]
pub fn weighed(bytes: &[u8]) -> (usize, usize) {
    let told = read_bytes(bytes);
    let weight = (told.notes.len(), told.gaps);
    let mut tracker = super::tracker::Tracker::default();
    for (note, bytes) in told.notes {
        tracker.apply(note, bytes);
    }
    weight
}

/// What a log tells.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) notes: Vec<(Note, Vec<u8>)>,
    /// How many places of it cannot be read, and were not just cut off: what they told is lost.
    pub(crate) gaps: usize,
}

/// Reads a log from its beginning to its end, or to where it was cut off.
pub(crate) fn read_log(path: &Path) -> io::Result<Told> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(mut file) => drop(file.read_to_end(&mut bytes)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(read_bytes(&bytes))
}

/// Reads what stands in a log. What is damaged is passed over up to the next whole frame.
pub(crate) fn read_bytes(bytes: &[u8]) -> Told {
    let mut told = Told::default();
    let mut rest = bytes;
    loop {
        while let Some((note, data, after)) = next(rest) {
            told.notes.push((note, data));
            rest = after;
        }
        let whole = (1..rest.len()).find(|at| rest.get(*at..).is_some_and(is_frame));
        let Some(at) = whole else {
            told.gaps += usize::from(is_hurt(rest));
            return told;
        };
        told.gaps += 1;
        rest = rest.get(at..).unwrap_or_default();
    }
}

/// Tells whether what ends a log, and is no frame, was a whole one once. What was cut off is shorter than its head says; a disk
/// that lost power may have the room for it and nothing in there.
fn is_hurt(rest: &[u8]) -> bool {
    let Some((head, body)) = rest.split_at_checked(HEAD_BYTES) else {
        return false;
    };
    let is_empty = rest.iter().all(|byte| *byte == 0);
    let is_body_whole = blake3::hash(body).as_bytes().get(..8) == head.get(8..);
    let is_all_there = lengths(head).is_none_or(|(note, data)| note + data <= body.len());
    !is_empty && (is_body_whole || is_all_there)
}

/// Reads how long the note and its bytes are; none if no frame is that long.
fn lengths(head: &[u8]) -> Option<(usize, usize)> {
    let length = |at: usize| {
        let word = head.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(word)).ok()
    };
    let (note, data) = (length(0)?, length(4)?);
    (note.checked_add(data)? <= FRAME_BYTES_MAX).then_some((note, data))
}

/// Tells whether a whole frame begins here. What cannot be a note is not read at all.
fn is_frame(bytes: &[u8]) -> bool {
    matches!(bytes.get(HEAD_BYTES), Some(b'{' | b'"')) && next(bytes).is_some()
}

fn next(bytes: &[u8]) -> Option<(Note, Vec<u8>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let (note_length, data_length) = lengths(head)?;
    let (body, after) = rest.split_at_checked(note_length + data_length)?;
    let check = blake3::hash(body);
    if check.as_bytes().get(..8) != head.get(8..) {
        return None;
    }
    let (note, data) = body.split_at_checked(note_length)?;
    let note = serde_json::from_slice(note).ok()?;
    Some((note, data.to_vec(), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_reads_back_and_ends_where_it_was_cut_or_hurt() {
        let world = tempfile::tempdir().unwrap();
        let path = world.path().join("log");
        let mut writer = LogWriter::create(&path, false).unwrap();
        let name = |text: &str| TargetPath::new(text).unwrap();
        let notes = [
            Note::Absent(name("/a")),
            Note::Moved,
            Note::Read(name("/b")),
        ];
        for note in &notes {
            writer.add(note, b"bytes").unwrap();
        }
        let count = || read_log(&path).unwrap().notes.len();
        let all = read_log(&path).unwrap();
        assert_eq!((all.notes.len(), all.gaps), (3, 0));
        assert!(
            all.notes
                .iter()
                .zip(&notes)
                .all(|((read, data), note)| read == note && data == b"bytes")
        );
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(count() < 3, "{length}");
            assert_eq!(read_log(&path).unwrap().gaps, 0, "{length}");
        }
        for at in 0..whole.len() {
            let mut hurt = whole.clone();
            hurt[at] ^= 1;
            std::fs::write(&path, &hurt).unwrap();
            let told = read_log(&path).unwrap();
            assert_eq!(told.notes.len(), 2, "{at}: the others are found");
            assert_eq!(told.gaps, 1, "{at}");
        }
        assert!(
            read_log(&world.path().join("none"))
                .unwrap()
                .notes
                .is_empty()
        );
    }
}
