//! Looking for drift in the background: hints say where, stamps say whether, drivers say what.
//!
//! - A *round* looks at everything and costs a stat for each recorded name, and bytes only of what has other stamps than when it was last
//!   found to be right. Between rounds only names are looked at of which something was heard.
//! - After a look the next one waits, however much happens: at most a fifth of one processor is used.
//! - Keys, rows and calls are looked at on the interval, since nobody tells of them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use backout_capture::witness::Witness;
use backout_model::drift::{DriftNote, News, Seen};
use backout_model::{Digest, Key, Lsn, OperationId, TargetPath};

use super::hints::Hints;
use super::index::StatIndex;
use super::{Extent, Swept};
use crate::{Engine, EngineError};

/// How long to wait for more after something was heard: most changes come in heaps.
const GATHER: Duration = Duration::from_millis(200);

/// How often it is asked whether to stop, and whether the journal has grown.
const TICK: Duration = Duration::from_millis(500);

/// A look may take one of so many parts of the time.
const SHARE: u32 = 5;

/// More places than these are looked at with everything else.
const PLACES_MAX: usize = 256;

/// The bytes of larger files are not kept only because somebody may change them.
const KEPT_BYTES_MAX: u64 = 64 * 1024;

/// How many files are kept between two ticks: each is a sync.
const KEPT_AT_ONCE: usize = 16;

/// How many files one watch keeps: the store is not a second copy of the workspace.
const TO_KEEP_MAX: usize = 1_000;

/// How many records are read to find out what was written meanwhile.
const RECORDS_MAX: usize = 1_000;

/// What a look of the watch did.
#[derive(Debug, Clone)]
pub struct Round {
    /// It is in the journal already.
    pub news: Vec<DriftNote>,
    /// How many targets were compared with their record, by stamps or by bytes.
    pub targets: usize,
    /// How many differ, and may be the work of a command under way.
    pub deferred: usize,
    /// How many operations could not be looked at.
    pub unanswered: usize,
    /// How many directories are listened to.
    pub directories: usize,
    /// Whether it looked at everything.
    pub is_whole: bool,
    /// Why it has to look at everything on its interval to see all.
    pub blind: Option<String>,
    /// Whether the kernel tells which process writes in the directories that are listened to.
    pub sees_processes: bool,
    /// How long it took.
    pub took: Duration,
}

/// What a wait ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// Look at everything.
    All,
    /// Look at these places.
    Places(Vec<Key>),
    /// Somebody wants it to end.
    Stop,
}

/// Looks for drift until somebody ends it.
#[derive(Debug)]
pub struct Watcher<'e> {
    engine: &'e Engine,
    below: Vec<Key>,
    interval: Duration,
    index: RefCell<StatIndex>,
    hints: Hints,
    /// Who sees which process writes, where the kernel tells.
    witness: Option<Witness>,
    /// How far the journal was read.
    read: Lsn,
    /// Small files that are as recorded, and whose bytes are to be kept while they are.
    to_keep: VecDeque<(TargetPath, OperationId)>,
    /// How many were taken on for that.
    kept: usize,
    last_round: Instant,
    rest_until: Instant,
}

impl<'e> Watcher<'e> {
    /// Makes one that looks at or below these places, or at everything, at least once in each interval.
    pub fn new(engine: &'e Engine, below: Vec<Key>, interval: Duration) -> Self {
        let now = Instant::now();
        Self {
            engine,
            below,
            interval,
            index: RefCell::default(),
            hints: Hints::new(),
            witness: Witness::new(),
            read: Lsn::default(),
            to_keep: VecDeque::new(),
            kept: 0,
            last_round: now,
            rest_until: now,
        }
    }

    /// Looks at everything, and begins to listen.
    pub fn round(&mut self) -> Result<Round, EngineError> {
        let below = self.below.clone();
        self.read = self.engine.store.summary()?.last_lsn;
        let round = self.look(&below, true)?;
        self.last_round = Instant::now();
        Ok(round)
    }

    /// Looks where something was heard.
    pub fn look_at(&mut self, places: &[Key]) -> Result<Round, EngineError> {
        self.look(places, false)
    }

    /// Waits until there is something to look at, or somebody ends it.
    pub fn wait(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<Watched, EngineError> {
        let mut places: BTreeSet<Key> = BTreeSet::new();
        let mut heard_at: Option<Instant> = None;
        let mut is_all = false;
        loop {
            if is_stopped() {
                return Ok(Watched::Stop);
            }
            self.keep_some();
            let heard = self
                .hints
                .wait(if heard_at.is_some() { GATHER } else { TICK });
            is_all |= heard.is_overflown;
            places.extend(heard.touched.into_iter().filter_map(|it| self.place(it)));
            places.extend(self.written()?);
            is_all |= places.len() > PLACES_MAX;
            if heard_at.is_none() && (is_all || !places.is_empty()) {
                heard_at = Some(Instant::now());
                continue;
            }
            if Instant::now() < self.rest_until {
                continue;
            }
            if is_all || self.last_round.elapsed() >= self.interval {
                return Ok(Watched::All);
            }
            if heard_at.is_some() {
                return Ok(Watched::Places(places.into_iter().collect()));
            }
        }
    }

    /// Gives the place to look at for something that was heard of; none if it is our own or of no concern.
    fn place(&self, path: PathBuf) -> Option<Key> {
        let path = TargetPath::new(path).ok()?;
        let store = &self.engine.store;
        if store.is_ours(&path) {
            return None;
        }
        let key = Key::from(path.clone());
        let is_meant = self.below.is_empty()
            || (self.below.iter()).any(|it| key.is_at_or_below(it) || it.is_at_or_below(&key));
        // A name that is new is seen by a look at its directory.
        let is_gone = path.as_path().symlink_metadata().is_err();
        let directory = path.parent().filter(|_| !is_gone).map(Key::from);
        is_meant.then(|| directory.unwrap_or(key))
    }

    /// Lists what was written through us since the journal was last read: there is more to listen to, and drift may be over.
    fn written(&mut self) -> Result<Vec<Key>, EngineError> {
        let mut written = Vec::new();
        for record in self.engine.store.records_after(self.read, RECORDS_MAX)? {
            self.read = record.lsn;
            let Some(id) = record.event.operation() else {
                continue;
            };
            if let Some(operation) = self.engine.store.operation(id)? {
                let targets = operation.targets.iter().take(PLACES_MAX + 1);
                written.extend(targets.map(|it| it.target.key().clone()));
            }
        }
        Ok(written)
    }

    fn look(&mut self, below: &[Key], is_whole: bool) -> Result<Round, EngineError> {
        let began = Instant::now();
        let extent = Extent {
            below,
            index: Some(&self.index),
            with_directories: true,
            witness: self.witness.as_ref(),
        };
        let looked = self.engine.look_for_drift(&extent, Seen::Active);
        let (mut swept, news) = looked.inspect_err(|_| self.index.borrow_mut().forget())?;
        let directories = std::mem::take(&mut swept.directories);
        self.settle(&swept);
        let directories = own_left_out(self.engine, directories);
        if let Some(witness) = &mut self.witness {
            witness.listen(&directories, is_whole);
        }
        self.hints.listen(directories, is_whole);
        let took = began.elapsed();
        self.rest_until = Instant::now() + took.saturating_mul(SHARE - 1);
        Ok(Round {
            news: news.into_iter().map(|it: News| it.note).collect(),
            targets: swept.targets,
            deferred: swept.deferred.len(),
            unanswered: swept.unanswered.len(),
            directories: self.hints.len(),
            is_whole,
            blind: self.hints.blind().map(ToOwned::to_owned),
            sees_processes: self.witness.as_ref().is_some_and(|it| it.directories() > 0),
            took,
        })
    }

    /// Believes the stamps of what was found to be right.
    fn settle(&mut self, swept: &Swept) {
        let differing = swept.candidates.iter();
        let differing = differing.filter_map(|it| it.differing.target.file());
        let deferred = swept.deferred.iter().filter_map(Key::file);
        self.index.borrow_mut().settle(differing.chain(deferred));
        let room = TO_KEEP_MAX.saturating_sub(self.kept);
        let right = self.index.borrow_mut().take_right();
        let right = right.into_iter().take(room);
        self.kept += right.len();
        self.to_keep.extend(right);
        if !swept.unanswered.is_empty() {
            self.index.borrow_mut().forget();
        }
    }
}

impl Watcher<'_> {
    /// Keeps the bytes of a few small files that are as recorded: when somebody else changes them, the record can be made true again.
    fn keep_some(&mut self) {
        for _ in 0..KEPT_AT_ONCE {
            let Some((path, by)) = self.to_keep.pop_front() else {
                return;
            };
            // What cannot be kept can be accepted and not restored; nothing else depends on it.
            let _kept = self.keep(&path, by);
        }
    }

    fn keep(&self, path: &TargetPath, by: OperationId) -> Option<()> {
        let mut options = std::fs::OpenOptions::new();
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.read(true).custom_flags(flags.bits().cast_signed());
        let file = options.open(path.as_path()).ok()?;
        let found = file.metadata().ok()?;
        if !found.is_file() || found.len() > KEPT_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(KEPT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let store = &self.engine.store;
        if store.has(&Digest::of(&bytes)).ok()? {
            return None;
        }
        store.stash(by, &mut bytes.as_slice()).ok().map(|_| ())
    }
}

fn own_left_out(engine: &Engine, mut directories: HashSet<PathBuf>) -> HashSet<PathBuf> {
    directories.retain(|it| match TargetPath::new(it) {
        Ok(path) => !engine.store.is_ours(&path),
        Err(_) => false,
    });
    directories
}
