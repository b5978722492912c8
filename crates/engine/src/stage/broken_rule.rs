//! A rule of the graph of severity high that an update breaks: the update is refused, and the stage that it was made in can fail for it.
//!
//! That happens only where a `backout.toml` says what `policy-violation` does with the stage's work: nobody loses work by an update that was
//! refused anyway, unless somebody wrote down that it is so grave.

use backout_model::ports::OnConflict;
use backout_model::{Source, TriggerAction, TriggerKind};
use backout_mplp::Written;

use super::{StageEnd, StageView};
use crate::resume::ResumeError;
use crate::{Engine, EngineError};

impl Engine {
    /// Lets the innermost open stage of the caller's work fail, if `backout.toml` says so. Gives how it stands then.
    pub(crate) fn after_broken_rule(
        &self,
        written: &[Written],
    ) -> Result<Option<StageView>, EngineError> {
        let scope = self.own_scope();
        let own = |it: &StageView| it.task == scope.task && it.agent == scope.agent;
        let mut stages = self.stages()?.into_iter();
        let Some(stage) = stages.find(|it| it.standing.is_open() && own(it)) else {
            return Ok(None);
        };
        let targets = self.stage_targets(&stage)?;
        let said = match &self.settings.triggers {
            Some(rules) => rules.action(TriggerKind::PolicyViolation, &targets),
            None => Ok(None),
        };
        let action = match said.map_err(ResumeError::Rules)? {
            Some(TriggerAction::Keep) | None => return Ok(None),
            Some(action) => action,
        };
        let broken = written.iter().flat_map(|it| &it.violations);
        let rule = broken.map(|it| it.invariant.clone()).next();
        let rule = rule.unwrap_or_default();
        let end = StageEnd {
            trigger: TriggerKind::PolicyViolation,
            why: Some(format!("an update of the graph broke {rule}")),
            action: Some(action),
            on_conflict: OnConflict::default(),
            own_only: false,
            others: false,
            is_dry_run: false,
        };
        let source = Source::Gate { rule };
        self.fail_stage_by(&stage.stage, &end, source).map(Some)
    }
}
