//! The store behind the ports of the model. Each method is where its matter is; here they are only put together.

use std::io::Write;
use std::path::{Path, PathBuf};

use backout_model::ports::{
    AppendTimes, CheckSlots, CompactBudget, CompactReport, Filter, GcReport, GcRequest, Journal,
    Lease, Leases, Maintenance, OpenAct, OperationRef, Owners, PackSalvage, RefError, StoreSummary,
    StoredBy, StoredBytes, Tell, VerifyReport, Workspace,
};
use backout_model::{
    ActPlan, AgentId, Asked, CallKey, Checkpoint, CheckpointName, Dependency, DriverName, Effect,
    Key, Lsn, Note, NoteFilter, OnFailure, Operation, OperationId, Owner, Prompt, PromptId,
    Proposal, Record, Retention, Target, TargetOutcome, Task, TaskId, Timestamp,
};

use crate::schema::FORMAT;
use crate::{StorageError, Store, owner};

type Answer<T> = Result<T, StorageError>;

/// Writes methods that a type has under the same name.
macro_rules! as_they_are {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;)*) => {
        $(fn $name(&self $(, $argument: $type)*) -> $answer {
            Self::$name(self $(, $argument)*)
        })*
    };
}

impl Journal for Store {
    as_they_are! {
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
        fn proposal(&self, id: OperationId) -> Answer<Option<Proposal>>;
        fn answer_to(&self, key: &CallKey) -> Answer<Option<(OperationId, Asked)>>;
        fn plan_of(&self, act: OperationId) -> Answer<Option<ActPlan>>;
        fn tasks(&self) -> Answer<Vec<Task>>;
        fn checkpoints(&self) -> Answer<Vec<Checkpoint>>;
        fn prompts(&self) -> Answer<Vec<Prompt>>;
        fn notes(&self, filter: &NoteFilter) -> Answer<Vec<Note>>;
        fn prompt(&self, id: &PromptId) -> Answer<Option<Prompt>>;
        fn newest_prompt(&self, agent: &AgentId, session: &str) -> Answer<Option<Prompt>>;
        fn task(&self, id: &TaskId) -> Answer<Option<Task>>;
        fn checkpoint(&self, name: &CheckpointName) -> Answer<Option<Checkpoint>>;
        fn first_owner(&self, id: OperationId) -> Answer<Owner>;
        fn on_failure(&self, id: OperationId) -> Answer<OnFailure>;
        fn undone_with(&self, undo: OperationId) -> Answer<Option<OperationId>>;
        fn outcomes_of(&self, id: OperationId, undo: OperationId) -> Answer<Vec<TargetOutcome>>;
    }
}

impl Leases for Store {
    as_they_are! {
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
        fn open_acts(&self) -> Answer<Vec<OpenAct>>;
        fn tell_act(&self, act: OperationId) -> Answer<bool>;
        fn end_act(&self, act: OperationId) -> Answer<()>;
    }
}

impl Workspace for Store {
    as_they_are! {
        fn directory(&self) -> &Path;
        fn capture_log(&self, id: OperationId) -> PathBuf;
        fn capture_desk(&self, id: OperationId) -> PathBuf;
        fn scan_index(&self) -> PathBuf;
        fn own_directories(&self) -> Vec<PathBuf>;
        fn links_to_it(&self) -> &[PathBuf];
        fn trial_directory(&self, id: OperationId) -> PathBuf;
        fn write_trial(&self, id: OperationId, manifest: &[u8]) -> Answer<()>;
        fn read_trial(&self, id: OperationId) -> Answer<Option<Vec<u8>>>;
        fn trials(&self) -> Answer<Vec<OperationId>>;
    }
}

impl Maintenance for Store {
    fn form(&self) -> String {
        format!("format {FORMAT}")
    }

    fn know_driver(&self, name: DriverName) {
        Self::know_driver(self, name);
    }

    as_they_are! {
        fn check_end(&self) -> Answer<()>;
        fn check_room(&self) -> Answer<()>;
        fn make_room(&self, retention: &Retention, now: Timestamp, adding: u64) -> Answer<()>;
        fn measure_new_slots(&self) -> Answer<()>;
        fn gc(&self, request: &GcRequest, progress: &mut Tell<'_>) -> Answer<GcReport>;
        fn verify_with(&self, check_slots: &CheckSlots<'_>, progress: &mut Tell<'_>) -> Answer<VerifyReport>;
        fn compact(&self, budget: CompactBudget, progress: &mut Tell<'_>) -> Answer<CompactReport>;
        fn export(&self, from: Lsn, out: &mut dyn Write) -> Answer<u64>;
        fn cut_audit(&self, retention: &Retention) -> Answer<Option<PathBuf>>;
        fn summary(&self) -> Answer<StoreSummary>;
        fn stored_bytes(&self) -> Answer<StoredBytes>;
        fn stored_by(&self) -> Answer<StoredBy>;
        fn journal_bytes(&self) -> u64;
        fn append_times(&self) -> AppendTimes;
        fn adopt_packs(&self) -> Answer<PackSalvage>;
    }
}

impl Owners for Store {
    fn this_process(&self) -> Owner {
        owner::this_process()
    }

    fn process(&self, pid: u32) -> Option<Owner> {
        owner::process(pid)
    }

    fn is_alive(&self, owner: &Owner) -> bool {
        owner::is_alive(owner)
    }

    fn is_from_another_boot(&self, owner: &Owner) -> bool {
        owner::is_from_another_boot(owner)
    }

    fn is_paused(&self, owner: &Owner) -> bool {
        owner::is_paused(owner)
    }
}
