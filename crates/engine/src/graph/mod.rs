//! The project's state graph in the journal: reading it, updating it, bringing it back, and the evidence that follows from all of it.
//!
//! - A version of a node is a note. All notes of one update are one entry: they are there together, or none is.
//! - Whoever updates holds a lease on the graph from the look to the append, so that two never follow the same version.
//! - An update that breaks a rule of severity high is refused, and the refusal is noted.
//!
//! What an update comes to is decided by `backout_mplp`, which does no I/O. Design: `docs/design/graph.md`.

mod error;
mod evidence;
mod view;

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry};
use backout_model::{
    CheckpointName, Event, Key, Lsn, Note, NoteFilter, Reach, Target, Timestamp, Topic,
};
use backout_mplp::{
    Change, Document, Expect, Graph, GraphNote, Kind, NodeKind, Refusal, Scope, Surroundings,
    Update, check, invariants, refused_notes, uuid_of,
};
use backout_storage::StorageError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Engine, EngineError, Reply};

pub use error::GraphError;
pub use view::{EvidenceView, GraphChecked, GraphFlaw, GraphUpdated, GraphView};

/// The space of the name that is leased.
const SPACE: &str = "graph";

/// What to do with the graph.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphCommand {
    /// Tell which nodes and edges there are.
    Show {
        /// As it was there; none as it is.
        #[serde(default)]
        at: Option<GraphPlace>,
    },
    /// Give it as one document.
    Export {
        /// As it was there; none as it is.
        #[serde(default)]
        at: Option<GraphPlace>,
    },
    /// Take objects into it: a document, an object or a list of objects.
    Import {
        /// The JSON.
        document: Value,
        /// Which versions they follow; a document says so itself.
        #[serde(default)]
        expect: Expect,
        /// Only say what would come of it.
        #[serde(default)]
        is_dry_run: bool,
    },
    /// Take nodes out of it. Their versions stay in the journal.
    Remove {
        /// As they stand in the graph.
        ids: Vec<String>,
    },
    /// Look at it, or at objects that are not in it: schemas and rules.
    Check {
        /// The objects; none looks at the graph.
        #[serde(default)]
        objects: Option<Vec<Value>>,
    },
    /// Make it what it was, as new versions.
    Restore {
        /// Where.
        to: GraphPlace,
        /// Only say what would come of it.
        #[serde(default)]
        is_dry_run: bool,
    },
}

/// A place that the graph had a state at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphPlace {
    /// After this record.
    Lsn(Lsn),
    /// When that was taken.
    Checkpoint(CheckpointName),
}

impl Engine {
    pub(crate) fn look_after_graph(&self, command: GraphCommand) -> Result<Reply, EngineError> {
        match command {
            GraphCommand::Show { at } => {
                let graph = self.graph(at.as_ref())?;
                Ok(Reply::Graph(Box::new(GraphView::of(&graph))))
            }
            GraphCommand::Export { at } => {
                let graph = self.graph(at.as_ref())?;
                Ok(Reply::GraphDocument(Box::new(graph.document())))
            }
            GraphCommand::Import {
                document,
                expect,
                is_dry_run,
            } => self.import_graph(document, expect, is_dry_run),
            GraphCommand::Remove { ids } => {
                let remove = |graph: &Graph, id: &String| Change::Remove {
                    id: graph.meant(id).to_owned(),
                    expect: Expect::Any,
                };
                let all = |graph: &Graph| Ok(ids.iter().map(|id| remove(graph, id)).collect());
                self.update_graph(all, false)
            }
            GraphCommand::Check { objects: None } => {
                let graph = self.graph(None)?;
                Ok(Reply::GraphChecked(Box::new(GraphChecked::of(&graph))))
            }
            GraphCommand::Check {
                objects: Some(objects),
            } => Ok(Reply::GraphChecked(Box::new(checked(&objects)))),
            GraphCommand::Restore { to, is_dry_run } => {
                let updated = self.graph_back_to(&to, is_dry_run)?;
                Ok(Reply::GraphUpdated(Box::new(updated)))
            }
        }
    }

    /// Reads the graph as it is, or was.
    pub fn graph(&self, at: Option<&GraphPlace>) -> Result<Graph, EngineError> {
        let up_to = at.map(|place| self.lsn_of(place)).transpose()?;
        self.graph_up_to(up_to)
    }

    fn graph_up_to(&self, up_to: Option<Lsn>) -> Result<Graph, EngineError> {
        let filter = NoteFilter {
            up_to,
            ..NoteFilter::newest(Topic::Graph)
        };
        let mut notes = self.store.notes(&filter)?;
        notes.sort_by_key(|note| note.lsn);
        let read = notes.into_iter().map(|note| {
            let lsn = note.lsn;
            let read: Result<GraphNote, _> = serde_json::from_value(note.body);
            let read = read.map_err(|error| {
                StorageError::inconsistent(format!("the graph's note {lsn}"), &error)
            })?;
            Ok((lsn, read))
        });
        let read: Vec<(Lsn, GraphNote)> = read.collect::<Result<_, EngineError>>()?;
        Ok(Graph::of(read))
    }

    fn lsn_of(&self, place: &GraphPlace) -> Result<Lsn, EngineError> {
        let lsn = match place {
            GraphPlace::Lsn(lsn) => *lsn,
            GraphPlace::Checkpoint(name) => match self.store.checkpoint(name)? {
                Some(checkpoint) => checkpoint.lsn,
                None => return Err(EngineError::NoCheckpoint { name: name.clone() }),
            },
        };
        self.check_place(lsn)?;
        Ok(lsn)
    }

    /// Makes sure that the journal can tell how things stood after a record: it has that record, or was cut right behind it.
    fn check_place(&self, place: Lsn) -> Result<(), EngineError> {
        let before = Lsn(place.0.saturating_sub(1));
        let found = self.store.records_after(before, 1)?;
        match found.first() {
            None if place == Lsn(0) => Ok(()),
            None => Err(GraphError::NoRecord { place }.into()),
            Some(record) if record.lsn.0 <= place.0.saturating_add(1) => Ok(()),
            Some(record) => Err(GraphError::Cut {
                place,
                first: record.lsn,
            }
            .into()),
        }
    }

    fn import_graph(
        &self,
        document: Value,
        expect: Expect,
        is_dry_run: bool,
    ) -> Result<Reply, EngineError> {
        let document = Document::read(document).map_err(GraphError::Unreadable)?;
        let changes = |graph: &Graph| document.changes(graph, expect);
        self.update_graph(changes, is_dry_run)
    }

    /// Updates the graph under its lease.
    fn update_graph(
        &self,
        changes: impl FnOnce(&Graph) -> Result<Vec<Change>, Refusal>,
        is_dry_run: bool,
    ) -> Result<Reply, EngineError> {
        let lease = self.lease_graph()?;
        let graph = self.graph_up_to(None)?;
        let name = uuid_of("graph", &self.next_id().to_string());
        let decided = changes(&graph).and_then(|changes| graph.update(&name, changes));
        let update = match decided {
            Ok(update) => update,
            Err(refusal) => {
                if let Refusal::Violated(written) = &refusal
                    && !is_dry_run
                {
                    self.note_graph(&refused_notes(written))?;
                    drop(lease);
                    let followed = self.after_broken_rule(written)?;
                    let followed = followed.map(Box::new);
                    let refusal = Box::new(refusal);
                    return Err(GraphError::Refused { refusal, followed }.into());
                }
                return Err(GraphError::refused(refusal).into());
            }
        };
        let updated = self.append_update(update, Vec::new(), None, is_dry_run)?;
        Ok(Reply::GraphUpdated(Box::new(updated)))
    }

    /// Makes the graph what it was at a place, as new versions.
    pub(crate) fn graph_back_to(
        &self,
        to: &GraphPlace,
        is_dry_run: bool,
    ) -> Result<GraphUpdated, EngineError> {
        let place = self.lsn_of(to)?;
        let _lease = self.lease_graph()?;
        let (now, then) = (self.graph_up_to(None)?, self.graph_up_to(Some(place))?);
        let restored = now.restored_to(&then, place).map_err(GraphError::refused)?;
        let (kept, wanted) = (restored.kept, then.digest_of_state());
        let updated = self.append_update(restored.update, kept, Some(place), is_dry_run)?;
        if !is_dry_run && updated.kept.is_empty() {
            // A second look: what is in the journal is what was there.
            let found = self.graph_up_to(None)?.digest_of_state();
            if found != wanted {
                return Err(GraphError::NotAsThen {
                    place,
                    found,
                    wanted,
                }
                .into());
            }
        }
        Ok(updated)
    }

    fn append_update(
        &self,
        update: Update,
        kept: Vec<String>,
        restored: Option<Lsn>,
        is_dry_run: bool,
    ) -> Result<GraphUpdated, EngineError> {
        let lsn = if is_dry_run {
            None
        } else {
            self.note_graph(&update.notes)?
        };
        let notes = u64::try_from(update.notes.len()).unwrap_or(u64::MAX);
        Ok(GraphUpdated {
            graph_id: update.after.id().map(str::to_owned),
            lsn,
            before: lsn.map(|lsn| Lsn(lsn.0.saturating_sub(notes))),
            written: update.written,
            kept,
            restored,
            digest: update.after.digest(),
            is_dry_run,
        })
    }

    /// Appends notes in one entry, and gives the place of the last; none if there are none.
    fn note_graph(&self, notes: &[GraphNote]) -> Result<Option<Lsn>, EngineError> {
        if notes.is_empty() {
            return Ok(None);
        }
        let event = |note: &GraphNote| {
            let body = serde_json::to_value(note).map_err(|error| {
                StorageError::inconsistent(format!("the graph's {}", note.subject()), &error)
            })?;
            Ok(Event::Noted(Box::new(Note {
                topic: Topic::Graph,
                subject: note.subject(),
                lsn: Lsn(0),
                at: Timestamp(0),
                agent: self.context.agent.clone(),
                task: self.context.task.clone(),
                body,
            })))
        };
        let events: Vec<Event> = notes
            .iter()
            .map(event)
            .collect::<Result<_, StorageError>>()?;
        crash_point("graph.decided");
        let lsn = self.store.append(&Entry::of(events), Durability::Power)?;
        crash_point("graph.noted");
        Ok(Some(lsn))
    }

    fn lease_graph(&self) -> Result<crate::lease::HeldLease<'_>, EngineError> {
        let Ok(key) = Key::in_space(SPACE, &["project"]) else {
            unreachable!("the name is not empty");
        };
        self.lease(&[Target::new(key, Reach::Tree)], &[])
    }
}

/// Looks at objects by themselves: bindings are looked for among them.
fn checked(objects: &[Value]) -> GraphChecked {
    let around: Surroundings<'_> = objects
        .iter()
        .filter_map(|object| Some((scope_of(Kind::of(object)?)?, object)))
        .collect();
    let mut flaws = Vec::new();
    let mut rules = 0;
    for (number, object) in objects.iter().enumerate() {
        let Some(kind) = Kind::of(object) else {
            flaws.push(GraphFlaw::unknown(number));
            continue;
        };
        let id = NodeKind::of(kind).and_then(|kind| object.get(kind.id_key())?.as_str());
        let id = id.map_or_else(|| format!("object {}", number + 1), str::to_owned);
        let wrong = check(kind, object).into_iter();
        flaws.extend(wrong.map(|flaw| GraphFlaw::of_schema(&id, kind, flaw)));
        for rule in invariants() {
            if rule.scope.is_some() && rule.scope == scope_of(kind) {
                rules += 1;
                let broken = rule.check(object, &around).into_iter();
                flaws.extend(broken.map(|it| GraphFlaw::of_rule(&id, kind, it)));
            }
        }
    }
    GraphChecked {
        objects: u64::try_from(objects.len()).unwrap_or(u64::MAX),
        rules,
        flaws,
    }
}

/// Says which rules speak of objects of a kind.
fn scope_of(kind: Kind) -> Option<Scope> {
    if matches!(
        kind,
        Kind::GraphUpdateEvent | Kind::PipelineStageEvent | Kind::RuntimeExecutionEvent
    ) {
        Some(Scope::Event)
    } else {
        Scope::named(&kind.as_str().replace('-', "_"))
    }
}
