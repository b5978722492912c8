//! The kinds of objects and events that have a schema, and what follows from a kind: its id, its end, its node.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $word:literal $schema:literal,)*) => {
        /// What a JSON object is to be.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Kind {
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            /// All kinds, the ten modules first.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Names the kind as JSON and the command line know it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Gives the path of its schema.
            pub const fn schema(self) -> &'static str {
                match self { $(Self::$name => concat!("schemas/v2/", $schema, ".schema.json"),)* }
            }
        }
    };
}

kinds! {
    /// The world that work happens in.
    Context "context" "mplp-context",
    /// Steps that lead to an objective.
    Plan "plan" "mplp-plan",
    /// Somebody's decision about something.
    Confirm "confirm" "mplp-confirm",
    /// What happened.
    Trace "trace" "mplp-trace",
    /// Who may do what.
    Role "role" "mplp-role",
    /// Several who work together.
    Collab "collab" "mplp-collab",
    /// What was said.
    Dialog "dialog" "mplp-dialog",
    /// Something that adds an ability.
    Extension "extension" "mplp-extension",
    /// Machines and services.
    Network "network" "mplp-network",
    /// The protocol itself, with its modules.
    Core "core" "mplp-core",
    /// An event inside of a trace.
    BaseEvent "base-event" "common/events",
    /// An event on the observability stream.
    Event "event" "events/mplp-event-core",
    /// An event that tells of the state graph.
    GraphUpdateEvent "graph-update-event" "events/mplp-graph-update-event",
    /// An event that tells of a stage.
    PipelineStageEvent "pipeline-stage-event" "events/mplp-pipeline-stage-event",
    /// An event that tells of something carried out.
    RuntimeExecutionEvent "runtime-execution-event" "events/mplp-runtime-execution-event",
    /// An event of the single-agent profile.
    SaEvent "sa-event" "events/mplp-sa-event",
    /// An event of the multi-agent profile.
    MapEvent "map-event" "events/mplp-map-event",
    /// What a tool did.
    ToolEvent "tool-event" "integration/mplp-tool-event",
    /// What became of a file.
    FileUpdateEvent "file-update-event" "integration/mplp-file-update-event",
    /// What became of a repository.
    GitEvent "git-event" "integration/mplp-git-event",
    /// What a CI run did.
    CiEvent "ci-event" "integration/mplp-ci-event",
    /// What may be learned from.
    LearningSample "learning-sample" "learning/mplp-learning-sample-core",
}

impl Kind {
    /// Finds a kind by its name.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }

    /// Tells what an object is by the id that only its kind has; an event, by its family. None if nothing says so.
    pub fn of(object: &Value) -> Option<Self> {
        let has = |key: &str| object.get(key).is_some();
        if has("event_id") {
            return Some(match object.get("event_family").and_then(Value::as_str) {
                Some("graph_update") => Self::GraphUpdateEvent,
                Some("pipeline_stage") => Self::PipelineStageEvent,
                Some("runtime_execution") => Self::RuntimeExecutionEvent,
                Some(_) => Self::Event,
                None if has("sa_id") => Self::SaEvent,
                None if has("session_id") => Self::MapEvent,
                None => Self::BaseEvent,
            });
        }
        // A trace and a confirmation name what they tell of, too: the own id comes first.
        let by_id = [
            ("confirm_id", Self::Confirm),
            ("trace_id", Self::Trace),
            ("plan_id", Self::Plan),
            ("collab_id", Self::Collab),
            ("dialog_id", Self::Dialog),
            ("extension_id", Self::Extension),
            ("network_id", Self::Network),
            ("role_id", Self::Role),
            ("core_id", Self::Core),
            ("context_id", Self::Context),
            ("sample_id", Self::LearningSample),
            ("invocation_id", Self::ToolEvent),
            ("file_path", Self::FileUpdateEvent),
            ("repo_url", Self::GitEvent),
            ("ci_provider", Self::CiEvent),
        ];
        let found = by_id.into_iter().find(|(key, _)| has(key));
        found.map(|(_, kind)| kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a node of the state graph is. A step lies in its plan and has no object of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// The world that work happens in.
    Context,
    /// Steps that lead to an objective.
    Plan,
    /// One step of a plan.
    Step,
    /// What happened.
    Trace,
    /// Somebody's decision about something.
    Confirm,
    /// Who may do what.
    Role,
    /// Several who work together.
    Collab,
    /// What was said.
    Dialog,
    /// Something that adds an ability.
    Extension,
    /// Machines and services.
    Network,
}

impl NodeKind {
    /// All kinds of nodes.
    pub const ALL: [Self; 10] = [
        Self::Context,
        Self::Plan,
        Self::Step,
        Self::Trace,
        Self::Confirm,
        Self::Role,
        Self::Collab,
        Self::Dialog,
        Self::Extension,
        Self::Network,
    ];

    /// Gives the kind of an object's node; none if such objects are no nodes.
    pub const fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Context => Some(Self::Context),
            Kind::Plan => Some(Self::Plan),
            Kind::Confirm => Some(Self::Confirm),
            Kind::Trace => Some(Self::Trace),
            Kind::Role => Some(Self::Role),
            Kind::Collab => Some(Self::Collab),
            Kind::Dialog => Some(Self::Dialog),
            Kind::Extension => Some(Self::Extension),
            Kind::Network => Some(Self::Network),
            Kind::Core
            | Kind::BaseEvent
            | Kind::Event
            | Kind::GraphUpdateEvent
            | Kind::PipelineStageEvent
            | Kind::RuntimeExecutionEvent
            | Kind::SaEvent
            | Kind::MapEvent
            | Kind::ToolEvent
            | Kind::FileUpdateEvent
            | Kind::GitEvent
            | Kind::CiEvent
            | Kind::LearningSample => None,
        }
    }

    /// Gives the kind of object whose schema the node follows; a step follows its plan's.
    pub const fn object(self) -> Kind {
        match self {
            Self::Context => Kind::Context,
            Self::Plan | Self::Step => Kind::Plan,
            Self::Trace => Kind::Trace,
            Self::Confirm => Kind::Confirm,
            Self::Role => Kind::Role,
            Self::Collab => Kind::Collab,
            Self::Dialog => Kind::Dialog,
            Self::Extension => Kind::Extension,
            Self::Network => Kind::Network,
        }
    }

    /// Names the kind as JSON and people know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            other @ (Self::Context
            | Self::Plan
            | Self::Trace
            | Self::Confirm
            | Self::Role
            | Self::Collab
            | Self::Dialog
            | Self::Extension
            | Self::Network) => other.object().as_str(),
        }
    }

    /// Names the property that holds its id.
    pub const fn id_key(self) -> &'static str {
        match self {
            Self::Context => "context_id",
            Self::Plan => "plan_id",
            Self::Step => "step_id",
            Self::Trace => "trace_id",
            Self::Confirm => "confirm_id",
            Self::Role => "role_id",
            Self::Collab => "collab_id",
            Self::Dialog => "dialog_id",
            Self::Extension => "extension_id",
            Self::Network => "network_id",
        }
    }

    /// Tells whether a node with this status has come to its end: it does not change any more.
    pub fn is_terminal(self, status: &str) -> bool {
        let ends: &[&str] = match self {
            Self::Context => &["archived", "closed"],
            Self::Plan => &["completed", "cancelled", "failed"],
            Self::Step => &["completed", "skipped", "failed"],
            Self::Trace => &["completed", "failed", "cancelled"],
            Self::Confirm => &["approved", "rejected", "cancelled"],
            Self::Role => &[],
            Self::Collab | Self::Dialog => &["completed", "cancelled"],
            Self::Extension => &["deprecated"],
            Self::Network => &["retired"],
        };
        ends.contains(&status)
    }

    /// Tells whether a rollback of the graph leaves it as it is: what happened and what was decided and said stays.
    pub const fn is_history(self) -> bool {
        matches!(self, Self::Trace | Self::Confirm | Self::Dialog)
    }
}

impl fmt::Display for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
