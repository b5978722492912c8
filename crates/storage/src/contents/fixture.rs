//! A store in a directory of its own, and operations in every status, for the tests of contents and `gc`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use backout_model::ports::{
    Append as _, Clock, Durability, Entry, NewContent, ReadContents, WriteContents as _,
};
use backout_model::{
    Completion, Decision, Digest, DriverName, Event, Intent, OperationId, OutcomeKind, Owner,
    Recipe, Retention, Slot, Status, Strategy, Target, TargetOutcome, TargetPath, Timestamp, Verb,
};

use crate::{CompactBudget, CompactReport, GcReport, GcRequest, Store, this_process};

pub(crate) const HOUR_MS: i64 = 60 * 60 * 1000;
pub(crate) const DAY_MS: i64 = 24 * HOUR_MS;

const BEGIN: i64 = 1_800_000_000_000;

/// A clock that stands still until it is told to move.
#[derive(Debug)]
pub(crate) struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

pub(crate) struct World {
    pub(crate) store: Store,
    clock: Arc<TestClock>,
    state: PathBuf,
    _directory: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let world = Self::at(&directory.path().join("state"));
        Self {
            _directory: Some(directory),
            ..world
        }
    }

    /// Opens the world that another process made.
    pub(crate) fn at(state: &Path) -> Self {
        let clock = Arc::new(TestClock(AtomicI64::new(BEGIN)));
        let store = Store::open(state, clock.clone()).unwrap();
        Self {
            store,
            clock,
            state: state.to_path_buf(),
            _directory: None,
        }
    }

    /// The same store, as another process sees it.
    pub(crate) fn again(&self) -> Store {
        Store::open(&self.state, self.clock.clone()).unwrap()
    }

    /// The database, for those who damage it.
    pub(crate) fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path("journal.sqlite")).unwrap()
    }

    pub(crate) fn count(&self, sql: &str) -> i64 {
        self.raw().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// How many rows a table has.
    pub(crate) fn rows(&self, table: &str) -> usize {
        usize::try_from(self.count(&format!("SELECT count(*) FROM {table}"))).unwrap()
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.state.join(below)
    }

    /// The names in a directory of the store, sorted.
    pub(crate) fn list(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(below)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn pass(&self, millis: i64) {
        self.clock.0.fetch_add(millis, Ordering::Relaxed);
    }

    pub(crate) fn append(&self, events: Vec<Event>) {
        self.store
            .append(&Entry::of(events), Durability::Process)
            .unwrap();
    }

    /// Arms an operation that needs these contents.
    pub(crate) fn arm(&self, number: u64, paths: &[&str], contents: &[&[u8]]) -> OperationId {
        self.arm_with(number, paths, contents, vec![])
    }

    pub(crate) fn arm_with(
        &self,
        number: u64,
        paths: &[&str],
        contents: &[&[u8]],
        slots: Vec<Slot>,
    ) -> OperationId {
        let contents: Vec<NewContent> = contents
            .iter()
            .map(|bytes| NewContent::of(bytes.to_vec()))
            .collect();
        let digests = contents.iter().map(|content| content.digest).collect();
        let intent = intent(number, paths, digests, slots);
        let entry = Entry {
            events: vec![Event::Intent(Box::new(intent))],
            contents,
        };
        self.store.append(&entry, Durability::Process).unwrap();
        id(number)
    }

    /// A write that happened and is kept.
    pub(crate) fn write(&self, number: u64, path: &str, contents: &[&[u8]]) -> OperationId {
        let id = self.arm(number, &[path], contents);
        self.bring(id, Status::Committed);
        id
    }

    /// Takes an armed operation to a status.
    pub(crate) fn bring(&self, id: OperationId, status: Status) {
        let applied = Event::Applied {
            id,
            completion: Completion::default(),
        };
        let commit = Event::Commit { id };
        let outcomes = |kind| vec![TargetOutcome::new(node("/any"), kind)];
        let doubt = OutcomeKind::InDoubt {
            why: "a test".to_owned(),
        };
        let failed = OutcomeKind::Failed {
            why: "a test".to_owned(),
        };
        let abort = |outcomes| Event::Abort {
            id,
            why: "a test".to_owned(),
            outcomes,
            trigger: None,
        };
        self.append(match status {
            Status::Armed => return,
            Status::Applied => vec![applied],
            Status::Committed => vec![applied, commit],
            Status::Interrupted => vec![Event::Interrupted {
                id,
                completion: Completion::default(),
            }],
            Status::Aborted => vec![abort(vec![])],
            Status::InDoubt => vec![abort(outcomes(doubt))],
            Status::Undone => vec![
                applied,
                commit,
                Event::Undone {
                    id,
                    by: id,
                    outcomes: vec![],
                    is_partial: false,
                },
            ],
            Status::Failed => vec![
                applied,
                Event::UndoFailed {
                    id,
                    outcomes: outcomes(failed),
                },
            ],
            Status::Proposed | Status::Refused => {
                panic!("an armed operation cannot become {status}")
            }
        });
    }

    /// Takes a lease as a process that lives, or that died.
    pub(crate) fn lease(&self, number: u64, path: &str, is_alive: bool) {
        let started = if is_alive { this_process().started } else { 1 };
        let owner = Owner {
            started,
            ..this_process()
        };
        self.store
            .lease(id(number), &[node(path)], &owner, &[])
            .unwrap();
    }

    pub(crate) fn stash(&self, number: u64, bytes: &[u8]) -> Digest {
        let (digest, size) = self.store.stash(id(number), &mut &*bytes).unwrap();
        assert_eq!((digest, size), (Digest::of(bytes), bytes.len() as u64));
        digest
    }

    pub(crate) fn read(&self, bytes: &[u8]) -> bool {
        ReadContents::read(&self.store, &Digest::of(bytes)).is_ok_and(|read| read == bytes)
    }

    pub(crate) fn has(&self, bytes: &[u8]) -> bool {
        self.store.has(&Digest::of(bytes)).unwrap()
    }

    pub(crate) fn compact(&self) -> CompactReport {
        self.store
            .compact(CompactBudget::unlimited(), &mut |_, _| {})
            .unwrap()
    }

    pub(crate) fn gc(&self, retention: &Retention) -> GcReport {
        let request = GcRequest {
            retention: retention.clone(),
            is_dry_run: false,
            now: self.now(),
        };
        let report = self.store.gc(&request, &mut |_, _| {}).unwrap();
        self.counts_are_right();
        report
    }

    /// Compares the running sums with what there is.
    pub(crate) fn counts_are_right(&self) {
        let stored = self.store.stored_bytes().unwrap();
        let counted = self
            .store
            .write(Durability::Process, |transaction| {
                self.store.recount_stored(transaction)
            })
            .unwrap();
        assert_eq!(stored, counted);
    }
}

pub(crate) fn id(number: u64) -> OperationId {
    OperationId::from_bits(number)
}

pub(crate) fn node(path: &str) -> Target {
    Target::node(TargetPath::new(path).unwrap())
}

fn intent(number: u64, paths: &[&str], contents: Vec<Digest>, slots: Vec<Slot>) -> Intent {
    Intent {
        id: id(number),
        verb: Verb::Write,
        summary: format!("write {number}"),
        agent: None,
        task: None,
        owner: this_process(),
        decision: Decision::new(Strategy::Snapshot, &[], String::new()),
        targets: paths.iter().map(|path| node(path)).collect(),
        depends_on: vec![],
        undoes: None,
        with: None,
        group: None,
        asked: None,
        plan: None,
        trigger: None,
        notes: vec![],
        command: None,
        call: None,
        approval: None,
        prompt: None,
        recipe: Recipe {
            driver: DriverName::FILE,
            version: 1,
            contents,
            slots,
            body: backout_model::JsonText::default(),
        },
    }
}

/// Bytes that do not compress, always the same for a seed.
pub(crate) fn noise(seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

/// Runs a test of this program in a process of its own, which dies at the crash point, and tells whether it did.
#[cfg(feature = "testing")]
pub(crate) fn dies_at(test: &str, state: &Path, point: &str) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    child
        .env("BACKOUT_TEST_STATE", state)
        .env("BACKOUT_CRASH_AT", point);
    let output = child.output().unwrap();
    let died = output.status.signal().is_some();
    assert!(
        died || output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    died
}

/// The state directory that a process started by [`dies_at`] works on.
#[cfg(feature = "testing")]
pub(crate) fn state_of_child() -> Option<PathBuf> {
    std::env::var_os("BACKOUT_TEST_STATE").map(PathBuf::from)
}
