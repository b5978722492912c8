//! What answers one effect, and how far that is: the compensation action of the MPLP papers, by their names.

use serde::{Deserialize, Serialize};

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompensationStatus {
    /// The effect is in the world, and nobody has answered it.
    Pending,
    /// It was answered.
    Completed,
    /// It was to be answered, and that failed.
    Failed,
}

impl CompensationStatus {
    /// Gives it as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// An effect that another one answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompensationAction {
    /// What was done.
    pub original_action: String,
    /// What answers it.
    pub compensation_action: String,
    /// How far that is.
    pub status: CompensationStatus,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
