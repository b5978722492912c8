//! What went wrong when people were to hear that something waits: told by whoever told them, after whoever asked had gone.
//!
//! Not part of the journal: it says nothing of any target, and goes when the proposal is decided.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use backout_model::OperationId;

use crate::{StateDir, StorageError};

const NOTICES: &str = "notices";

fn file_of(directory: &Path, id: OperationId) -> PathBuf {
    directory.join(NOTICES).join(id.to_string())
}

/// Writes down what went wrong with a notice, and forgets those of proposals that do not wait any more.
pub fn note_untold(
    directory: &Path,
    id: OperationId,
    said: &[String],
    waits: &dyn Fn(OperationId) -> bool,
) -> Result<(), StorageError> {
    // Whoever let it go does not get it back by this.
    if !directory.is_dir() {
        return Ok(());
    }
    let directory = StateDir::open(directory)?;
    let directory = directory.path();
    let path = file_of(directory, id);
    let failed = |source| StorageError::StateDir {
        path: path.clone(),
        action: "write",
        source,
    };
    let write = || {
        fs::create_dir_all(directory.join(NOTICES))?;
        if said.is_empty() {
            return Ok(());
        }
        let waiting = path.with_extension("new");
        fs::write(&waiting, serde_json::to_vec(said)?)?;
        fs::rename(&waiting, &path)
    };
    write().map_err(failed)?;
    for known in untold(directory)?
        .into_keys()
        .filter(|known| !waits(*known))
    {
        let _gone = fs::remove_file(file_of(directory, known));
    }
    Ok(())
}

/// Lists what went wrong with notices, by what waits.
pub fn untold(directory: &Path) -> Result<BTreeMap<OperationId, Vec<String>>, StorageError> {
    let failed = |source| StorageError::StateDir {
        path: directory.join(NOTICES),
        action: "read",
        source,
    };
    let entries = match fs::read_dir(directory.join(NOTICES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = BTreeMap::new();
    for entry in entries.flatten() {
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let text = fs::read(entry.path()).unwrap_or_default();
        // What is being written is not there yet.
        if let (Some(id), Ok(said)) = (id, serde_json::from_slice(&text)) {
            found.insert(id, said);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_known_until_nobody_waits_any_more() {
        let world = tempfile::tempdir().unwrap();
        let directory = world.path().join("state");
        let [one, other] = [1, 2].map(|number| format!("{number:016x}").parse().unwrap());
        assert!(untold(&directory).unwrap().is_empty());
        note_untold(&directory, one, &[String::new()], &|_| true).unwrap();
        assert!(!directory.exists());
        drop(StateDir::open(&directory).unwrap());
        let said = vec!["it ended with 3".to_owned()];
        note_untold(&directory, one, &said, &|_| true).unwrap();
        assert_eq!(untold(&directory).unwrap()[&one], said);
        note_untold(&directory, other, &[], &|id| id == one).unwrap();
        assert_eq!(untold(&directory).unwrap().len(), 1);
        note_untold(&directory, other, &said, &|id| id == other).unwrap();
        let left: Vec<_> = untold(&directory).unwrap().into_keys().collect();
        assert_eq!(left, [other]);
    }
}
