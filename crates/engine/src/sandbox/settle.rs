//! All sandboxes at a time: to be listed, to be settled after deaths, to be checked.

use serde::{Deserialize, Serialize};

use super::view::{SandboxStanding, SandboxView};
use crate::{Engine, EngineError, Finding};

/// A sandbox that a dead process left.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxSettled {
    /// The sandbox.
    pub name: String,
    /// What became of it.
    pub what: String,
}

impl Engine {
    /// Lists all that can be read. What cannot is told by whoever asks for it by name, and by the doctor.
    pub(crate) fn all_sandboxes(&self) -> Result<Vec<SandboxView>, EngineError> {
        let mut sandboxes = Vec::new();
        for name in self.sandbox_names()? {
            if let Ok(manifest) = self.read_sandbox(&name) {
                let standing = self.standing(&manifest);
                sandboxes.push(SandboxView::of(&manifest, standing, false));
            }
        }
        Ok(sandboxes)
    }

    /// Settles what dead processes left: the layer of a command that ran, and an end that was begun.
    pub(crate) fn settle_sandboxes(&self) -> Result<Vec<SandboxSettled>, EngineError> {
        self.sweep_trials()?;
        let mut settled = Vec::new();
        for name in self.sandbox_names()? {
            let Ok(manifest) = self.read_sandbox(&name) else {
                continue;
            };
            let standing = self.standing(&manifest);
            let what = if manifest.is_ended && standing != SandboxStanding::Running {
                self.end_sandbox(Some(&name), true)?;
                "it was about to end, and is gone now".to_owned()
            } else if standing == SandboxStanding::Interrupted {
                self.open_sandbox(Some(&name))?.notes.join("; ")
            } else if standing == SandboxStanding::Lost {
                "it was lost when the machine was started anew".to_owned()
            } else {
                continue;
            };
            settled.push(SandboxSettled { name, what });
        }
        Ok(settled)
    }

    /// Says how the sandboxes stand; nothing if there are none.
    pub(crate) fn check_sandboxes(&self) -> Result<Option<Finding>, EngineError> {
        let (mut names, mut wrong) = (Vec::new(), Vec::new());
        for name in self.sandbox_names()? {
            let why = match self.read_sandbox(&name) {
                Err(_) => Some("cannot be read"),
                Ok(manifest) => match self.standing(&manifest) {
                    SandboxStanding::Ready | SandboxStanding::Running => None,
                    SandboxStanding::Interrupted => Some("was left by a dead process"),
                    SandboxStanding::Lost => Some("was lost when the machine was started anew"),
                },
            };
            wrong.extend(why.map(|why| format!("`{name}` {why}")));
            names.push(name);
        }
        let is_good = wrong.is_empty();
        let advice =
            "`backout recover` settles what the dead left, `backout sandbox end` lets one go";
        Ok((!names.is_empty()).then(|| Finding {
            check: "sandboxes".to_owned(),
            is_good,
            detail: if is_good {
                format!("there are {}", names.join(", "))
            } else {
                wrong.join(", ")
            },
            advice: (!is_good).then(|| advice.to_owned()),
        }))
    }
}
