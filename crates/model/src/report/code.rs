//! The fixed words by which programs know what happened. They are part of the JSON and do not change.

use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($name:ident = $word:literal: $doc:literal,)*) => {
        /// What kind of thing went wrong, for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorCode {
            $(#[doc = $doc] $name,)*
        }

        impl ErrorCode {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Gives the word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

codes! {
    Refused = "refused": "It was refused or failed, in no way that has a word of its own.",
    Usage = "usage": "It was asked wrongly.",
    Broken = "broken": "The store is hurt, in no way that has a word of its own.",
    NotRecorded = "not-recorded": "It happened, and could not be recorded.",
    Stays = "stays": "It was to be taken back, and stays.",
    HalfDone = "half-done": "It failed half-way and could not be put back.",
    Gate = "gate": "A gate said no.",
    Waits = "waits": "It waits for a decision.",
    NothingDone = "nothing-done": "The operation changed nothing: it waits, or was refused.",
    ProposalExpired = "proposal-expired": "Nobody decided about it in time.",
    ProposalStale = "proposal-stale": "What was proposed cannot be done any more as it was proposed.",
    BeingDecided = "being-decided": "Somebody else decides about it at this moment.",
    OwnProposal = "own-proposal": "Who proposed it cannot approve it.",
    NotFailed = "not-failed": "No undo of the operation waits for a person.",
    OwnFailure = "own-failure": "Whose work it is cannot accept what is left of it.",
    KeyTaken = "key-taken": "The key of the call stands for another call.",
    AnsweredBefore = "answered-before": "The call was answered before.",
    UndoneSince = "undone-since": "The call was answered before, and what was done has been undone since.",
    Unclear = "unclear": "The call was made before, and nobody can tell whether it happened.",
    NotVerified = "not-verified": "A check after the write said no.",
    Busy = "busy": "Somebody else is writing the same.",
    MalformedName = "malformed-name": "The text is no name of an operation.",
    UnknownOperation = "unknown-operation": "There is no such operation.",
    AmbiguousName = "ambiguous-name": "The name fits several operations.",
    NeedsWord = "needs-word": "Other operations would have to go, and need a word.",
    Conflict = "conflict": "A target changed since.",
    Partial = "partial": "Not all of it came back.",
    Interrupted = "interrupted": "Somebody stopped it.",
    Nothing = "nothing": "There is nothing to do.",
    PutBack = "put-back": "An undo or a redo that died was put back.",
    Inseparable = "inseparable": "A part cannot be taken back by itself.",
    NotTouched = "not-touched": "The operation did not touch the path.",
    NothingToDecide = "nothing-to-decide": "The operation waits for no decision.",
    AtWork = "at-work": "The operation is still being carried out.",
    UnknownTask = "unknown-task": "There is no such task.",
    TaskEnded = "task-ended": "The task has ended.",
    TaskOpen = "task-open": "The task is open already.",
    TaskWaits = "task-waits": "An operation of the task waits for a decision.",
    WhichTask = "which-task": "It is not clear which task is meant.",
    UnknownCheckpoint = "unknown-checkpoint": "There is no such checkpoint.",
    StateTooLarge = "state-too-large": "The state of an agent is larger than a checkpoint may be.",
    NothingToResume = "nothing-to-resume": "There is no checkpoint that an agent could go on from.",
    AgentAlive = "agent-alive": "The agent that took the checkpoint is still at work.",
    StageOpen = "stage-open": "The stage, or one that began in it, is still open.",
    NoOpenStage = "no-open-stage": "There is no open stage of that name.",
    CheckpointTaken = "checkpoint-taken": "A checkpoint of another agent or task has that name.",
    NoReply = "no-reply": "The reply could not be written. What it was about to tell happened all the same.",
    UnknownProcess = "unknown-process": "There is no such process.",
    NotFromInside = "not-from-inside": "It cannot be asked from inside of a command.",
    NotStarted = "not-started": "The program could not be executed.",
    NoCapture = "no-capture": "A command cannot be watched here.",
    Io = "io": "The system refused a call.",
    AlreadyUndone = "already-undone": "It was undone before.",
    NeverHappened = "never-happened": "It never happened.",
    Unfinished = "unfinished": "It is not finished.",
    Expired = "expired": "Its images are past their retention.",
    Irreversible = "irreversible": "Nothing takes it back.",
    NoLayers = "no-layers": "Layers do not work here.",
    WhichTrial = "which-trial": "It is not clear which trial is meant.",
    TrialLost = "trial-lost": "The trial cannot be used any more.",
    TrialUnfinished = "trial-unfinished": "The trial has not ended.",
    TrialUnreadable = "trial-unreadable": "The trial cannot be read.",
    WhichSandbox = "which-sandbox": "It is not clear which sandbox is meant.",
    SandboxExists = "sandbox-exists": "A sandbox of that name is there already.",
    SandboxBusy = "sandbox-busy": "Somebody else uses the sandbox.",
    SandboxLost = "sandbox-lost": "The sandbox cannot be used any more.",
    SandboxUnreadable = "sandbox-unreadable": "The sandbox cannot be read.",
    FilesLetGo = "files-let-go": "The files of the checkpoint are not kept any more.",
    SandboxNotApplied = "sandbox-not-applied": "The sandbox holds changes that were not applied.",
    NoDrift = "no-drift": "Nothing of that name has drifted.",
    DriftChanged = "drift-changed": "What had drifted changed again.",
    NotYourDrift = "not-your-drift": "An agent does not decide about drift.",
    UnknownRollout = "unknown-rollout": "There is no such rollout.",
    WhichRollout = "which-rollout": "It is not clear which rollout is meant.",
    RolloutEnded = "rollout-ended": "The rollout has ended.",
    RolloutAtWork = "rollout-at-work": "Another process carries the rollout out.",
    RolloutBroken = "rollout-broken": "The store failed while a rollout was carried out.",
    GraphConflict = "graph-conflict": "Somebody else updated a node of the graph meanwhile, or nobody said which version is followed.",
    GraphRefused = "graph-refused": "An update of the graph does not fit what is in it, or its objects do not follow their schemas.",
    InvariantViolated = "invariant-violated": "An update of the graph would break an invariant of severity high.",
    NoRecord = "no-record": "The journal has no such record, or not any more.",
    UnknownNode = "unknown-node": "There is no such node in the graph.",
    StateDirectory = "state-directory": "The state directory cannot be used.",
    NewerFormat = "newer-format": "A newer program made the store.",
    Damaged = "damaged": "The store, or something it holds, is damaged.",
    InUse = "in-use": "Another process holds the store.",
    AnotherHost = "another-host": "Another machine uses the store.",
    StateDirectoryGone = "state-directory-gone": "The state directory is gone.",
    DiskFull = "disk-full": "The disk of the store is full.",
    ReadOnly = "read-only": "The file system is mounted read-only.",
    Poisoned = "poisoned": "An earlier failure of the disk stopped all writes.",
    StoreFull = "store-full": "The store may hold no more.",
    DuplicateId = "duplicate-id": "The id is taken.",
    ContentGone = "content-gone": "A kept content is gone.",
    Database = "database": "The database failed.",
    NotFound = "not-found": "There is no such file.",
    Lost = "lost": "What the path was is not kept.",
    OutOfReach = "out-of-reach": "What was kept is out of reach for now.",
    IsADirectory = "is-a-directory": "It is a directory.",
    NotADirectory = "not-a-directory": "It is not a directory.",
    NotAFile = "not-a-file": "It is not a regular file.",
    AlreadyExists = "already-exists": "It is there already.",
    NotEmpty = "not-empty": "The directory is not empty.",
    IntoItself = "into-itself": "A directory cannot go into itself.",
    Permission = "permission": "The system does not permit it.",
    Locked = "locked": "A flag of the file forbids it.",
    NoSpace = "no-space": "The disk is full.",
    CannotBeKept = "cannot-be-kept": "What is there cannot be kept, so it is not changed.",
    ThroughSymlink = "through-symlink": "A symbolic link is in the way.",
    Escapes = "escapes": "The path leaves its directory.",
    UnusablePath = "unusable-path": "The path cannot be used.",
    OwnState = "own-state": "It is Backout's own.",
    CurrentDirectory = "current-directory": "It is the current directory, or above it.",
    Edit = "edit": "The edit does not fit the file.",
    Patch = "patch": "The patch does not fit.",
    Entangled = "entangled": "Two changes of one operation meddle with each other.",
    BaseChanged = "base-changed": "What a trial was made over changed.",
    ChangedMeanwhile = "changed-meanwhile": "Somebody changed it meanwhile.",
    NewerRecipe = "newer-recipe": "A newer program wrote the recipe.",
    NotSynced = "not-synced": "A sync failed.",
    NoDriver = "no-driver": "The program does not have the driver that a request or a recipe names.",
    ConfigFormat = "config-format": "The name of a file does not tell how it is written.",
    ConfigSyntax = "config-syntax": "A config file is not what its format allows.",
    ConfigKey = "config-key": "A key of a config file cannot be edited as asked.",
    ConfigValue = "config-value": "A value does not fit a key of a config file, or its type is not clear.",
    Unauthenticated = "unauthenticated": "The server does not know who asks.",
    Forbidden = "forbidden": "Who asks may not ask this of the server.",
    UnknownRoute = "unknown-route": "The server has no such route.",
    TooLarge = "too-large": "The request is larger than the server takes.",
    TooMany = "too-many": "The server has too much to do at this moment.",
    TimedOut = "timed-out": "The server did not wait any longer for the answer.",
    Stopping = "stopping": "The server is about to end.",
    Served = "served": "Another process serves the store.",
    NotListening = "not-listening": "The server cannot listen there.",
    NoServer = "no-server": "No server answers.",
    DriverFailed = "driver-failed": "A driver could not do it, in no way that has a word of its own.",
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
