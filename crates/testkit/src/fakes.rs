//! In-memory stand-ins for the store and the journal, and a depot in a plain directory, for tests.

use std::collections::HashMap;
use std::io::{Cursor, Error, ErrorKind, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backout_model::ports::{
    Append, ContentsError, Depots, Durability, Entry, NewContent, Prepared, ReadContents,
    StorageError, WriteContents,
};
use backout_model::reversal::{Form, Made, Pieces};
use backout_model::{
    Armed, Decision, Digest, Event, Intent, Lsn, OperationId, Owner, Recipe, Strategy, TargetPath,
    Verb,
};

use crate::made;

/// Contents that are forgotten when a test ends.
#[derive(Debug, Default)]
pub struct MemoryContents {
    stored: Mutex<HashMap<Digest, Vec<u8>>>,
    /// Contents that are told as changes, with what they are made from.
    changes: Mutex<HashMap<Digest, (Digest, Pieces)>>,
}

impl MemoryContents {
    /// Stores contents as the journal would.
    pub fn put(&self, contents: &[NewContent]) {
        let mut stored = self.lock();
        for content in contents {
            match content.over {
                Some(over) => {
                    let pieces = Pieces::decode(&content.bytes, over.size).expect("pieces");
                    self.changes().insert(content.digest, (over.base, pieces));
                }
                None => drop(stored.insert(content.digest, content.bytes.clone())),
            }
        }
    }

    /// Loses a content, to see what then happens.
    pub fn lose(&self, digest: &Digest) {
        self.lock().remove(digest);
        self.changes().remove(digest);
    }

    /// Lets go of all that a recipe keeps, as the store does when it is too old.
    pub fn release(&self, recipe: &Recipe) {
        for digest in &recipe.contents {
            self.lose(digest);
        }
        for slot in &recipe.slots {
            let path = slot.path();
            let gone = if path.as_path().is_dir() {
                std::fs::remove_dir_all(path.as_path())
            } else {
                std::fs::remove_file(path.as_path())
            };
            // What was never kept, and what is back where it was, has no slot.
            let is_not_there = |error: &Error| error.kind() == ErrorKind::NotFound;
            assert!(gone.is_ok() || gone.is_err_and(|error| is_not_there(&error)));
        }
    }

    /// Tells how many contents there are, and how many bytes.
    pub fn size(&self) -> (usize, usize) {
        let stored = self.lock();
        (stored.len(), stored.values().map(Vec::len).sum())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Vec<u8>>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self) -> MutexGuard<'_, HashMap<Digest, (Digest, Pieces)>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self, digest: &Digest, outside: Option<&Digest>) -> Result<Made, ContentsError> {
        let form = |at: &Digest| match self.changes().get(at) {
            _ if self.lock().contains_key(at) => Ok(Form::Whole),
            Some((base, pieces)) => Ok(Form::Over(*base, pieces.clone())),
            None => Ok(Form::Absent),
        };
        made::made::<String>(digest, outside, form)
    }
}

impl ReadContents for MemoryContents {
    fn read(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError> {
        let digest = *digest;
        match self.made(&digest, None)? {
            Made::Whole | Made::Missing => {}
            Made::Of { pieces, base, .. } => {
                return made::older(&digest, pieces, &self.read(&base)?);
            }
            Made::Outside(any) => {
                let base = any.last().copied().unwrap_or(digest);
                return Err(ContentsError::Outside { digest, base });
            }
        }
        let missing = || ContentsError::Missing { digest };
        self.lock().get(&digest).cloned().ok_or_else(missing)
    }

    fn outside(&self, digest: &Digest) -> Result<Vec<Digest>, ContentsError> {
        made::outside(digest, self.made(digest, None)?)
    }

    fn open_over(
        &self,
        digest: &Digest,
        base: &Digest,
        from: Box<dyn Read + Send>,
    ) -> Result<Box<dyn Read + Send>, ContentsError> {
        made::open_over(self, digest, self.made(digest, Some(base))?, from)
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError> {
        Ok(Box::new(Cursor::new(self.read(digest)?)))
    }

    fn has(&self, digest: &Digest) -> Result<bool, ContentsError> {
        Ok(self.lock().contains_key(digest) || self.changes().contains_key(digest))
    }
}

impl WriteContents for MemoryContents {
    fn stash(&self, _by: OperationId, from: &mut dyn Read) -> Result<(Digest, u64), ContentsError> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)
            .map_err(|error| ContentsError::Store(error.into()))?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let content = NewContent::of(bytes);
        let digest = content.digest;
        self.put(&[content]);
        Ok((digest, size))
    }

    fn may_be_over(
        &self,
        _older: &Digest,
        _newer: &Digest,
        _size: u64,
    ) -> Result<bool, ContentsError> {
        Ok(true)
    }
}

/// A depot and a staging directory below one directory, for targets on the same file system.
#[derive(Debug)]
pub struct DirDepots {
    home: TargetPath,
    has_depot: bool,
}

impl DirDepots {
    /// Makes the directories below `home`. Without a depot nothing can be kept whole.
    pub fn new(home: &Path, has_depot: bool) -> std::io::Result<Self> {
        std::fs::create_dir_all(home.join("depot"))?;
        std::fs::create_dir_all(home.join("staging"))?;
        let home = TargetPath::new(home).map_err(std::io::Error::other)?;
        Ok(Self { home, has_depot })
    }

    /// Gives the depot's path.
    pub fn depot(&self) -> TargetPath {
        self.home.join("depot".as_ref())
    }
}

impl Depots for DirDepots {
    fn depot_for(&self, directory: &TargetPath) -> Option<TargetPath> {
        use std::os::unix::fs::MetadataExt as _;
        let device = |path: &TargetPath| Some(std::fs::metadata(path.as_path()).ok()?.dev());
        let depot = self.depot();
        let is_same = device(directory) == device(&depot);
        (self.has_depot && is_same).then_some(depot)
    }

    fn staging(&self, _by: OperationId) -> std::io::Result<TargetPath> {
        Ok(self.home.join("staging".as_ref()))
    }

    fn is_ours(&self, path: &TargetPath) -> bool {
        *path == self.home || path.is_below(&self.home)
    }

    fn is_above_ours(&self, path: &TargetPath) -> bool {
        self.home.is_below(path)
    }
}

/// A journal that only remembers, and puts contents into the store.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    contents: Arc<MemoryContents>,
    events: Mutex<Vec<Event>>,
}

impl MemoryJournal {
    /// Makes an empty journal that stores contents in `contents`.
    pub const fn new(contents: Arc<MemoryContents>) -> Self {
        Self {
            contents,
            events: Mutex::new(Vec::new()),
        }
    }

    /// Arms what was prepared, as an engine would.
    pub fn arm<S>(&self, id: OperationId, verb: Verb, prepared: Prepared<S>) -> Armed<S> {
        let decision = Decision::new(Strategy::Snapshot, &[], "a test".to_owned());
        let intent = Intent {
            id,
            verb,
            summary: String::new(),
            agent: None,
            task: None,
            owner: Owner {
                pid: 1,
                started: 1,
                boot: String::new(),
                pid_namespace: 1,
                host: String::new(),
            },
            decision,
            targets: prepared.targets,
            depends_on: Vec::new(),
            undoes: None,
            with: None,
            group: None,
            asked: None,
            plan: None,
            trigger: None,
            notes: prepared.notes,
            command: None,
            call: None,
            approval: None,
            prompt: None,
            recipe: prepared.recipe,
        };
        backout_model::arm(self, intent, prepared.contents, prepared.staged)
            .expect("it only remembers")
    }
}

impl Append for MemoryJournal {
    fn append(&self, entry: &Entry, _durability: Durability) -> Result<Lsn, StorageError> {
        self.contents.put(&entry.contents);
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.extend(entry.events.iter().cloned());
        Ok(Lsn(u64::try_from(events.len()).unwrap_or(u64::MAX)))
    }
}
