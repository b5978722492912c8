//! What a hook of a coding agent does when it fails itself: `[agents]` of the user's own file.
//!
//! A project's file does not count: a repository must not be able to switch the protection off.

use std::path::Path;

use toml_edit::Document;

/// What follows when a hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnHookFailure {
    /// The tool is not used.
    #[default]
    Refuse,
    /// The tool is used, and everybody is told that nothing is recorded.
    Pass,
}

impl OnHookFailure {
    /// Reads what the user's own file says. A file that is not there or not understood says nothing.
    pub fn of(file: Option<&Path>) -> Self {
        let text = file.and_then(|file| std::fs::read_to_string(file).ok());
        let document: Option<Document<String>> = text.and_then(|text| text.parse().ok());
        let said = document.as_ref().and_then(|document| {
            let table = document.get("agents")?.as_table_like()?;
            table.get("on-failure")?.as_str()
        });
        match said {
            Some("pass") => Self::Pass,
            Some(_) | None => Self::Refuse,
        }
    }
}
