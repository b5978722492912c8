//! What went wrong when people were to hear that something waits: told by whoever told them, after whoever asked had gone.
//!
//! Not part of the journal: it says nothing of any target, and goes when the proposal is decided.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use backout_model::OperationId;

use crate::{StateDir, StorageError};

const NOTICES: &str = "notices";

/// How the name of a mark ends that stands as long as people are being told.
const TELLING: &str = "telling";

/// What is said where a mark stands and nobody holds it.
const DIED: &str = "who was to tell people died, and nobody knows whether they were told";

fn file_of(directory: &Path, id: OperationId) -> PathBuf {
    directory.join(NOTICES).join(id.to_string())
}

/// Somebody tells people at this moment. The mark is locked as long as he lives: who finds one that is not knows that he died.
#[derive(Debug)]
#[must_use = "people are being told as long as it is there"]
pub struct Telling {
    path: PathBuf,
    _locked: File,
}

impl Telling {
    /// Sets the mark. None if there is no state directory to set it in.
    pub fn begin(directory: &Path, id: OperationId) -> Result<Option<Self>, StorageError> {
        if !directory.is_dir() {
            return Ok(None);
        }
        let path = file_of(directory, id).with_extension(TELLING);
        let set = || {
            fs::create_dir_all(directory.join(NOTICES))?;
            // Nobody sees it before it is locked.
            let waiting = path.with_extension("begins");
            let locked = File::create(&waiting)?;
            locked.lock()?;
            fs::rename(&waiting, &path)?;
            Ok(locked)
        };
        let failed = |source| StorageError::StateDir {
            path: path.clone(),
            action: "write",
            source,
        };
        let locked = set().map_err(failed)?;
        Ok(Some(Self {
            path,
            _locked: locked,
        }))
    }

    /// Takes the mark away: what came of it is written down.
    pub fn end(self) {
        // One that stays says that he died, once he is gone.
        let _gone = fs::remove_file(&self.path);
    }
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
        let file = file_of(directory, known);
        let _gone = fs::remove_file(file.with_extension(TELLING));
        let _gone = fs::remove_file(file);
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
    let mut found: BTreeMap<OperationId, Vec<String>> = BTreeMap::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let stem = path.file_stem().and_then(|name| name.to_str());
        let Some(id) = stem.and_then(|name| name.parse().ok()) else {
            continue;
        };
        let said = match path.extension().and_then(|it| it.to_str()) {
            None => {
                serde_json::from_slice(&fs::read(&path).unwrap_or_default()).unwrap_or_default()
            }
            Some(TELLING) if is_left(&path) => vec![DIED.to_owned()],
            // What is being written is not there yet.
            Some(_) => Vec::new(),
        };
        if !said.is_empty() {
            found.entry(id).or_default().extend(said);
        }
    }
    Ok(found)
}

/// Tells whether who set a mark is gone, and did not take it away.
fn is_left(mark: &Path) -> bool {
    File::open(mark).is_ok_and(|file| file.try_lock_shared().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_dies_while_he_tells_people_leaves_a_mark() {
        let world = tempfile::tempdir().unwrap();
        let directory = world.path().join("state");
        let id: OperationId = format!("{:016x}", 1).parse().unwrap();
        assert!(Telling::begin(&directory, id).unwrap().is_none());
        drop(StateDir::open(&directory).unwrap());
        let telling = Telling::begin(&directory, id).unwrap().unwrap();
        assert!(untold(&directory).unwrap().is_empty());
        telling.end();
        assert!(untold(&directory).unwrap().is_empty());
        // The lock goes with the process; the mark does not.
        drop(Telling::begin(&directory, id).unwrap());
        assert_eq!(untold(&directory).unwrap()[&id], [DIED]);
        note_untold(&directory, id, &[], &|_| false).unwrap();
        assert!(untold(&directory).unwrap().is_empty());
    }

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
