//! What the MPLP v1.0.0 schemas ask of a runtime, in our words: objects, invariants, the project's state graph, and events that are made
//! from the journal's own records (`docs/design/graph.md`).
//!
//! - Nothing is read, fetched or asked: schemas and rules are embedded as they were published (`data/`), and a clock is somebody else's.
//! - What third parties define stops here. The engine keeps versions of objects in notes and knows no schema.
//! - A rule that cannot be read, a path that leads nowhere and a scope that nobody knows are failures. Nothing passes because it was not understood.

mod data;
mod evidence;

mod graph;
mod invariant;
mod kind;
mod moment;
mod schema;
mod trace;

mod uuid;
mod yaml;

pub use evidence::{
    EvidenceFlaw, EvidenceParts, Integrity, MANIFEST, Pack, PackFile, SUMS, check_pack,
    first_of_pack,
};

pub use graph::{
    Change, Document, Drawn, Edge, EdgeKind, Expect, Graph, GraphNote, Node, Refusal, Restored,
    Update, Violated, ViolationStanding, Written, refused_notes,
};
pub use invariant::{
    Invariant, Rule, RuleSet, Scope, Surroundings, Violation, invariants, read_rules,
};
pub use kind::{Kind, NodeKind};
pub use moment::{is_moment, moment};
pub use schema::{Flaw, check};
pub use trace::{About, Line, Story, tell};
pub use uuid::{is_uuid, uuid_of};
