//! Prompts as people see them: what each one did, and by which number it can be taken back.

use backout_model::{Key, Operation, Prompt, PromptId, Target, TargetPath};
use serde::{Deserialize, Serialize};

use crate::{Engine, EngineError, Filter};

/// A prompt, and what answered it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PromptView {
    /// What somebody asked, and whom.
    #[serde(flatten)]
    pub prompt: Prompt,
    /// How many operations answered it.
    pub operations: usize,
    /// How many of them are in effect.
    pub in_effect: usize,
    /// By which number it is taken back: -1 is the last one that is in effect. None if nothing of it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
}

/// Which prompts to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptFilter {
    /// Only those whose work wrote at or below this directory.
    pub below: Option<TargetPath>,
    /// At most this many.
    pub limit: Option<usize>,
}

impl Engine {
    /// Lists prompts, newest first, each with what it did.
    pub fn prompts(&self, filter: &PromptFilter) -> Result<Vec<PromptView>, EngineError> {
        let at = filter
            .below
            .clone()
            .map(|below| Target::node(below).key().clone());
        let mut views = Vec::new();
        let mut number = 0;
        for prompt in self.store.prompts()? {
            if prompt.continues.is_some() {
                continue;
            }
            if filter.limit.is_some_and(|limit| views.len() >= limit) {
                break;
            }
            let operations = self.operations_of(&prompt.id)?;
            let mut is_below = wrote_below(&operations, at.as_ref());
            let mut in_effect = 0;
            for operation in &operations {
                // What is not over counts as well: what the last prompt does is not what the one before did.
                let so_far = self.written_so_far(operation)?;
                is_below |= so_far.as_ref().is_some_and(|keys| meets(keys, at.as_ref()));
                in_effect += usize::from(so_far.is_some() || is_to_go(operation));
            }
            if !operations.is_empty() && !is_below {
                continue;
            }
            if in_effect > 0 {
                number -= 1;
            }
            views.push(PromptView {
                operations: operations.len(),
                in_effect,
                number: (in_effect > 0).then_some(number),
                prompt,
            });
        }
        Ok(views)
    }

    /// Lists what answered a prompt, newest first; undos aside.
    pub(crate) fn operations_of(&self, prompt: &PromptId) -> Result<Vec<Operation>, EngineError> {
        let filter = Filter {
            prompt: Some(prompt.clone()),
            ..Filter::default()
        };
        let mut operations = self.store.operations(&filter)?;
        operations.retain(|operation| operation.undoes.is_none());
        Ok(operations)
    }
}

/// Tells whether an operation would be taken back with its prompt.
pub(crate) fn is_to_go(operation: &Operation) -> bool {
    operation.status.is_in_effect() && operation.in_effect().next().is_some()
}

/// Tells whether one of these is at or below a place, or above it.
fn meets(keys: &[Key], at: Option<&Key>) -> bool {
    at.is_none_or(|at| {
        let mut keys = keys.iter();
        keys.any(|key| key.is_at_or_below(at) || at.is_at_or_below(key))
    })
}

fn wrote_below(operations: &[Operation], at: Option<&Key>) -> bool {
    at.is_none_or(|at| {
        let mut targets = operations.iter().flat_map(|it| &it.targets);
        targets.any(|standing| standing.target.key().is_at_or_below(at))
    })
}
