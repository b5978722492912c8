//! Keeping a store in order: how much it holds, letting go, checking, exporting.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{CheckSlots, OfOtherDriver, StorageError, VerifyReport};
use crate::{DriverName, ExpiryReason, Lsn, OperationId, Retention, Status, Timestamp, any_path};

/// Told how many of how many steps are done.
pub type Tell<'t> = dyn FnMut(u64, u64) + 't;

/// What keeps a store in order.
pub trait Maintenance {
    /// Says what kind of store it is, for people.
    fn form(&self) -> String;

    /// Says that there is somebody who understands the recipes of a driver. A store that was never told knows all.
    fn know_driver(&self, name: DriverName);

    /// Says so if there is no room to work with the store together with others, as a command under way does.
    fn check_room(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Says so if the journal has lost its newest records: what it tells is not all that happened.
    fn check_end(&self) -> Result<(), StorageError>;

    /// Makes sure that the store is under its cap also when the next write has added so many bytes to it. If images that
    /// may not go fill it, the write must not happen: [`StorageError::OverCap`].
    fn make_room(
        &self,
        retention: &Retention,
        now: Timestamp,
        adding: u64,
    ) -> Result<(), StorageError>;

    /// Learns the size of kept inodes that nobody looked at yet.
    fn measure_new_slots(&self) -> Result<(), StorageError>;

    /// Tells how appends went that survive a loss of power, since the store was opened by this process.
    fn append_times(&self) -> AppendTimes {
        AppendTimes::default()
    }

    /// Lets go of what is past its retention and removes what nobody needs.
    fn gc(&self, request: &GcRequest, progress: &mut Tell<'_>) -> Result<GcReport, StorageError>;

    /// Checks everything, with an eye of the caller's for kept inodes.
    fn verify_with(
        &self,
        check_slots: &CheckSlots<'_>,
        progress: &mut Tell<'_>,
    ) -> Result<VerifyReport, StorageError>;

    /// Stores contents in less space, where it can. May be stopped at any time; what is done stays done.
    fn compact(
        &self,
        budget: CompactBudget,
        progress: &mut Tell<'_>,
    ) -> Result<CompactReport, StorageError>;

    /// Writes every record after `from` as one JSON object a line, and returns how many there were.
    fn export(&self, from: Lsn, out: &mut dyn Write) -> Result<u64, StorageError>;

    /// Moves records that are past their retention out of the journal into a file, and returns that file.
    fn cut_audit(&self, retention: &Retention) -> Result<Option<PathBuf>, StorageError>;

    /// Gives the store in numbers.
    fn summary(&self) -> Result<StoreSummary, StorageError>;

    /// Tells how much the store holds, without counting.
    fn stored_bytes(&self) -> Result<StoredBytes, StorageError>;

    /// Counts who holds how much of it. Visits every content: for somebody who asks, not for every write.
    fn stored_by(&self) -> Result<StoredBy, StorageError>;

    /// Tells how large the journal is.
    fn journal_bytes(&self) -> u64;

    /// Finds large images again that the journal does not know any more.
    fn adopt_packs(&self) -> Result<PackSalvage, StorageError>;
}

/// A store in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSummary {
    /// The last record.
    pub last_lsn: Lsn,
    /// How many there are of each.
    pub operations: BTreeMap<Status, u64>,
    /// Records still in the journal.
    pub records: u64,
    /// Targets being written right now.
    pub leases: u64,
}

/// Up to how many microseconds an append took, by bucket of [`AppendTimes`].
pub const APPEND_BOUNDS_US: [u64; 10] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000,
];

/// How appends went that survive a loss of power.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppendTimes {
    /// How many there were, whatever became of them.
    pub entries: u64,
    /// How many transactions they shared: each is one sync.
    pub commits: u64,
    /// How long all of them took together, from the call to the answer.
    pub total_us: u64,
    /// How many took at most [`APPEND_BOUNDS_US`] and more than the bound before.
    pub buckets: [u64; APPEND_BOUNDS_US.len()],
}

/// How many bytes the store holds. Records and the database's own overhead are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoredBytes {
    /// Contents in the database.
    pub inline: u64,
    /// Packs of chunks.
    pub packs: u64,
    /// Whole inodes kept in depots, by the space they take. One that was just parked counts from the next write on,
    /// a large tree with all of it only once `gc` has looked.
    pub slots: u64,
    /// The sum.
    pub total: u64,
}

/// Who holds how much of what is stored. Contents that several operations need are counted for the first of them: the parts and the
/// rest are the total of [`StoredBytes`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoredBy {
    /// By agent; what has none is under the empty name.
    pub by_agent: BTreeMap<String, u64>,
    /// By task; what has none is under the empty name.
    pub by_task: BTreeMap<String, u64>,
    /// The operations that hold most, those first.
    pub largest: Vec<Holding>,
    /// What belongs to no operation: bases of other versions, checkpoints of directories, and what `gc` has not let go yet.
    pub rest: u64,
}

/// How much one operation holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// Whose images they are.
    pub id: OperationId,
    /// One line for people.
    pub summary: String,
    /// What several need is counted for the first of them.
    pub bytes: u64,
}

impl StoredBy {
    /// Counts what an operation holds, and takes it out of the rest.
    pub fn add(&mut self, agent: Option<&str>, task: Option<&str>, held: Holding) {
        let bytes = held.bytes;
        for (sums, name) in [(&mut self.by_agent, agent), (&mut self.by_task, task)] {
            *sums.entry(name.unwrap_or_default().to_owned()).or_default() += bytes;
        }
        self.rest = self.rest.saturating_sub(bytes);
        self.largest.push(held);
    }

    /// Forgets all but the operations that hold most.
    pub fn keep_largest(&mut self, count: usize) {
        self.largest
            .sort_unstable_by_key(|held| (std::cmp::Reverse(held.bytes), held.id));
        self.largest.truncate(count);
    }
}

/// What `gc` is asked to do.
#[derive(Debug, Clone)]
pub struct GcRequest {
    /// How long images are kept.
    pub retention: Retention,
    /// Whether to say only what would be done.
    pub is_dry_run: bool,
    /// The present moment.
    pub now: Timestamp,
}

/// Something that should be gone and is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// Where it is.
    #[serde(with = "any_path")]
    pub path: PathBuf,
    /// Why it is still there.
    pub why: String,
}

/// What `gc` did, or in a dry run would do as far as can be told without doing it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GcReport {
    /// Whether nothing was done.
    pub is_dry_run: bool,
    /// Operations whose images were let go, and which rule did it.
    #[serde(with = "expired")]
    pub expired: Vec<(OperationId, ExpiryReason)>,
    /// Operations whose images are due and stay: the program does not have their driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OfOtherDriver>,
    /// Contents removed.
    pub contents: u64,
    /// Contents stored in another way because the version they were stored against went.
    pub rewritten: u64,
    /// Chunks removed.
    pub chunks: u64,
    /// Packs removed, leftovers of dead processes among them.
    pub packs: u64,
    /// Packs written anew without their dead chunks.
    pub repacked: u64,
    /// Kept inodes removed.
    pub slots: u64,
    /// Staging directories removed.
    pub staging: u64,
    /// What the store held before.
    pub before: StoredBytes,
    /// What it holds now; in a dry run an estimate of the total.
    pub after: StoredBytes,
    /// Audit records that are past their retention and could be exported and cut off.
    pub audit_records: u64,
    /// Whether packs were left as they are because somebody reads or writes them without end.
    pub is_busy: bool,
    /// What could not be removed.
    pub left: Vec<LeftBehind>,
}

/// Which operations' images were let go, and which rule did it: in JSON a list of objects.
mod expired {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::{ExpiryReason, OperationId};

    #[derive(Serialize, Deserialize)]
    struct Expired {
        id: OperationId,
        why: ExpiryReason,
    }

    pub(super) fn serialize<S: Serializer>(
        expired: &[(OperationId, ExpiryReason)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(expired.iter().map(|&(id, why)| Expired { id, why }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(OperationId, ExpiryReason)>, D::Error> {
        let expired = Vec::<Expired>::deserialize(deserializer)?;
        Ok(expired.into_iter().map(|it| (it.id, it.why)).collect())
    }
}

/// How much one run of compaction may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactBudget {
    /// So many operations are looked at.
    pub operations_max: u64,
    /// So many bytes of contents are compressed.
    pub bytes_max: u64,
}

impl CompactBudget {
    /// Everything there is to do.
    pub const fn unlimited() -> Self {
        Self {
            operations_max: u64::MAX,
            bytes_max: u64::MAX,
        }
    }
}

/// What one run of compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CompactReport {
    /// Operations looked at.
    pub operations: u64,
    /// Contents that are stored smaller now.
    pub rewritten: u64,
    /// What they took before.
    pub bytes_before: u64,
    /// What they take now.
    pub bytes_after: u64,
    /// Contents that could not be read and were left alone. `verify` names them.
    pub damaged: u64,
    /// Whether nothing is left to do.
    pub is_complete: bool,
}

/// What became of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PackSalvage {
    /// Chunks that the database did not know, or knew at a wrong place, and that were found.
    pub found: u64,
    /// Chunks that are gone.
    pub lost: u64,
}
