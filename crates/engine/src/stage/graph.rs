//! The project's graph when a stage fails: it becomes what it was when the stage began, as new versions.
//!
//! - The snapshot is the state that the journal tells at the stage's first note; its digest was noted then, and is compared before and after.
//! - What others changed in the graph since is not taken back unless force was asked for: the graph stays as it is, and that is told.
//! - Nothing is lost: the versions stay in the journal, and `graph restore --at` brings the state before the rollback back.

use backout_model::ports::OnConflict;
use backout_model::{Digest, Note, NoteFilter, Topic};
use backout_mplp::GraphNote;

use super::{GraphLeft, StageView};
use crate::{Engine, EngineError, GraphError, GraphPlace};

impl Engine {
    /// Gives the digest of the project's graph as it stands, without versions and without what happened; none if there is no graph.
    pub(super) fn graph_digest(&self) -> Result<Option<Digest>, EngineError> {
        self.digest_at(None)
    }

    fn digest_at(&self, at: Option<&GraphPlace>) -> Result<Option<Digest>, EngineError> {
        let graph = self.graph(at)?;
        let is_empty = graph.objects().next().is_none();
        Ok((!is_empty).then(|| graph.digest_of_state()))
    }

    /// Makes the graph what it was when a stage began, and looks whether it is.
    pub(super) fn bring_graph_back(
        &self,
        view: &mut StageView,
        on_conflict: OnConflict,
    ) -> Result<(), EngineError> {
        let now = self.graph_digest()?;
        if now != view.graph {
            self.bring_changed_graph_back(view, on_conflict)?;
        }
        if now.is_some() || view.graph.is_some() {
            view.is_graph_restored = Some(self.graph_digest()? == view.graph);
        }
        Ok(())
    }

    fn bring_changed_graph_back(
        &self,
        view: &mut StageView,
        on_conflict: OnConflict,
    ) -> Result<(), EngineError> {
        let place = GraphPlace::Lsn(view.lsn);
        match self.digest_at(Some(&place)) {
            Ok(then) if then == view.graph => {}
            Ok(_) => {
                let how = format!(
                    "at record {} it has another digest than was noted",
                    view.lsn
                );
                view.graph_left = Some(GraphLeft::Unknown { how });
                return Ok(());
            }
            Err(EngineError::Graph(error @ GraphError::Cut { .. })) => {
                let how = error.to_string();
                view.graph_left = Some(GraphLeft::Unknown { how });
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        if let Some(node) = self.changed_by_others(view)?
            && on_conflict != OnConflict::Force
        {
            view.graph_left = Some(GraphLeft::Others { node });
            return Ok(());
        }
        let updated = self.graph_back_to(&place, false)?;
        view.graph_before = updated.before;
        if !updated.kept.is_empty() {
            let nodes = updated.kept;
            view.graph_left = Some(GraphLeft::Told { nodes });
        }
        Ok(())
    }

    /// Names a node of the graph that somebody else changed since a stage began.
    fn changed_by_others(&self, view: &StageView) -> Result<Option<String>, EngineError> {
        let notes = self.store.notes(&NoteFilter {
            after: Some(view.lsn),
            ..NoteFilter::all(Topic::Graph)
        })?;
        let is_others = |note: &Note| match &view.task {
            Some(task) => note.task.as_ref() != Some(task),
            None => note.agent != view.agent,
        };
        // That a rule is broken changes nothing.
        let is_change = |note: &Note| {
            let read: Result<GraphNote, _> = serde_json::from_value(note.body.clone());
            !matches!(read, Ok(GraphNote::Violated(_)))
        };
        let mut notes = notes.into_iter();
        let other = notes.find(|note| is_others(note) && is_change(note));
        Ok(other.map(|note| note.subject))
    }
}
