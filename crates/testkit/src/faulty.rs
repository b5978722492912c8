//! A store that fails once: the n-th time that somebody wants to write something down.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backout_model::ports::{
    Append, CheckSlots, CompactBudget, CompactReport, ContentsError, Depots, Durability, Entry,
    Filter, GcReport, GcRequest, Journal, Lease, Leases, Maintenance, OpenAct, OperationRef,
    Owners, PackSalvage, ReadContents, RefError, StorageError, Store, StoreSummary, StoredBy,
    StoredBytes, Tell, VerifyReport, Workspace, WriteContents,
};
use backout_model::{
    Asked, CallKey, Checkpoint, Dependency, Digest, DriverName, Effect, Key, Lsn, Note, NoteFilter,
    Operation, OperationId, Owner, Prompt, Proposal, Record, Retention, Slot, Target, TargetPath,
    Task, Timestamp,
};

type Answer<T> = Result<T, StorageError>;

/// Another store, with a fault.
#[derive(Debug)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    /// How many writes work before the one that does not.
    left: AtomicUsize,
}

impl FaultyStore {
    /// Lets so many writes through and fails the next one; those after it work again.
    pub fn new(inner: Arc<dyn Store>, works: usize) -> Self {
        Self {
            inner,
            left: AtomicUsize::new(works + 1),
        }
    }

    /// Tells whether it has failed.
    pub fn has_failed(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    fn try_to_write(&self) -> Answer<()> {
        let one_less = |left: usize| left.checked_sub(1);
        let before = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        match before {
            Ok(1) => Err(StorageError::DiskFull {
                path: self.inner.directory().to_path_buf(),
            }),
            _ => Ok(()),
        }
    }
}

/// Passes questions on.
macro_rules! asked {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        $(fn $name(&self $(, $argument: $type)*) -> $answer {
            self.inner.$name($($argument),*)
        })*
    };
}

/// Passes on what is written, if it is not the one that fails.
macro_rules! written {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        $(fn $name(&self $(, $argument: $type)*) -> $answer {
            self.try_to_write()?;
            self.inner.$name($($argument),*)
        })*
    };
}

impl Append for FaultyStore {
    written! {
        fn append(&self, entry: &Entry, durability: Durability) -> Answer<Lsn>;
    }
}

impl Journal for FaultyStore {
    asked! {
        fn operation(&self, id: OperationId) -> Answer<Option<Operation>>;
        fn operations(&self, filter: &Filter) -> Answer<Vec<Operation>>;
        fn armed(&self) -> Answer<Vec<Operation>>;
        fn stuck(&self) -> Answer<Vec<Operation>>;
        fn failed(&self) -> Answer<Vec<Operation>>;
        fn connected(&self, ids: &[OperationId]) -> Answer<Vec<Operation>>;
        fn effect(&self, id: OperationId) -> Answer<Effect>;
        fn records_of(&self, id: OperationId) -> Answer<Vec<Record>>;
        fn records_after(&self, lsn: Lsn, limit: usize) -> Answer<Vec<Record>>;
        fn resolve(&self, reference: &OperationRef) -> Result<OperationId, RefError>;
        fn dependencies(&self, targets: &[Target]) -> Answer<Vec<Dependency>>;
        fn done_since(&self, key: &Key, place: Lsn, except: OperationId) -> Answer<Option<OperationId>>;
        fn moment_of(&self, lsn: Lsn) -> Answer<Timestamp>;
        fn place_at(&self, moment: Timestamp) -> Answer<Lsn>;
        fn writes_since(&self, targets: &[Target], since: Timestamp, limit: u32) -> Answer<u32>;
        fn has_gap_after(&self, lsn: Lsn) -> Answer<bool>;
        fn proposals(&self) -> Answer<Vec<Proposal>>;
        fn rollouts(&self) -> Answer<Vec<OperationId>>;
        fn answer_to(&self, key: &CallKey) -> Answer<Option<(OperationId, Asked)>>;
        fn tasks(&self) -> Answer<Vec<Task>>;
        fn checkpoints(&self) -> Answer<Vec<Checkpoint>>;
        fn prompts(&self) -> Answer<Vec<Prompt>>;
        fn notes(&self, filter: &NoteFilter) -> Answer<Vec<Note>>;
    }
}

impl Leases for FaultyStore {
    written! {
        fn lease(
            &self,
            operation: OperationId,
            targets: &[Target],
            owner: &Owner,
            instead_of: &[OperationId]
        ) -> Answer<Lease>;
        fn release(&self, operation: OperationId) -> Answer<()>;
        fn release_dead(&self) -> Answer<usize>;
        fn claim(&self, operation: &Operation, owner: &Owner) -> Answer<bool>;
        fn tell_act(&self, act: OperationId) -> Answer<bool>;
        fn end_act(&self, act: OperationId) -> Answer<()>;
    }
    asked! {
        fn open_acts(&self) -> Answer<Vec<OpenAct>>;
    }
}

impl Workspace for FaultyStore {
    asked! {
        fn directory(&self) -> &Path;
        fn capture_log(&self, id: OperationId) -> PathBuf;
        fn capture_desk(&self, id: OperationId) -> PathBuf;
        fn scan_index(&self) -> PathBuf;
        fn own_directories(&self) -> Vec<PathBuf>;
        fn links_to_it(&self) -> &[PathBuf];
        fn trial_directory(&self, id: OperationId) -> PathBuf;
        fn read_trial(&self, id: OperationId) -> Answer<Option<Vec<u8>>>;
        fn trials(&self) -> Answer<Vec<OperationId>>;
    }
    written! {
        fn write_trial(&self, id: OperationId, manifest: &[u8]) -> Answer<()>;
    }
}

impl Maintenance for FaultyStore {
    fn know_driver(&self, name: DriverName) {
        self.inner.know_driver(name);
    }
    asked! {
        fn form(&self) -> String;
        fn check_end(&self) -> Answer<()>;
        fn check_room(&self) -> Answer<()>;
        fn verify_with(&self, check_slots: &CheckSlots<'_>, progress: &mut Tell<'_>) -> Answer<VerifyReport>;
        fn export(&self, from: Lsn, out: &mut dyn Write) -> Answer<u64>;
        fn summary(&self) -> Answer<StoreSummary>;
        fn stored_bytes(&self) -> Answer<StoredBytes>;
        fn stored_by(&self) -> Answer<StoredBy>;
        fn journal_bytes(&self) -> u64;
    }
    written! {
        fn make_room(&self, retention: &Retention, now: Timestamp, adding: u64) -> Answer<()>;
        fn measure_new_slots(&self) -> Answer<()>;
        fn gc(&self, request: &GcRequest, progress: &mut Tell<'_>) -> Answer<GcReport>;
        fn compact(&self, budget: CompactBudget, progress: &mut Tell<'_>) -> Answer<CompactReport>;
        fn cut_audit(&self, retention: &Retention) -> Answer<Option<PathBuf>>;
        fn adopt_packs(&self) -> Answer<PackSalvage>;
    }
}

impl Owners for FaultyStore {
    asked! {
        fn this_process(&self) -> Owner;
        fn process(&self, pid: u32) -> Option<Owner>;
        fn is_alive(&self, owner: &Owner) -> bool;
        fn is_from_another_boot(&self, owner: &Owner) -> bool;
    }
}

impl ReadContents for FaultyStore {
    asked! {
        fn read(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError>;
        fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError>;
        fn has(&self, digest: &Digest) -> Result<bool, ContentsError>;
        fn outside(&self, digest: &Digest) -> Result<Vec<Digest>, ContentsError>;
        fn open_over(
            &self,
            digest: &Digest,
            base: &Digest,
            from: Box<dyn Read + Send>
        ) -> Result<Box<dyn Read + Send>, ContentsError>;
    }
}

impl WriteContents for FaultyStore {
    fn stash(&self, by: OperationId, from: &mut dyn Read) -> Result<(Digest, u64), ContentsError> {
        let tried = self.try_to_write();
        tried.map_err(|error| ContentsError::Store(Box::new(error)))?;
        self.inner.stash(by, from)
    }

    fn may_be_over(
        &self,
        older: &Digest,
        newer: &Digest,
        size: u64,
    ) -> Result<bool, ContentsError> {
        self.inner.may_be_over(older, newer, size)
    }
}

impl Depots for FaultyStore {
    asked! {
        fn depot_for(&self, directory: &TargetPath) -> Option<TargetPath>;
        fn staging(&self, by: OperationId) -> io::Result<TargetPath>;
        fn slots_of(&self, by: OperationId) -> Vec<Slot>;
        fn out_of_reach(&self, slot: &Slot) -> Option<String>;
        fn is_ours(&self, path: &TargetPath) -> bool;
        fn is_above_ours(&self, path: &TargetPath) -> bool;
    }
}
