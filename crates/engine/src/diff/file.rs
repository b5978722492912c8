//! Comparing what one name was with what it became.

use backout_files::{FileChange, Files, Shown, Was};
use backout_model::ports::DriverError;
use backout_model::text;
use backout_model::{TargetPath, Timestamp};

use crate::{DiffChange, DiffFile, DiffSide};

/// Lines of context around a change.
pub(super) const CONTEXT_LINES: usize = 3;

/// The largest content that is compared.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// How many bytes of contents one answer reads.
const TOTAL_BYTES_MAX: u64 = 64 * 1024 * 1024;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// Finds bytes that are not where they were left: what other operations keep of the same name.
pub(crate) type Elsewhere<'e> = &'e dyn Fn(&FileChange, &Was) -> Option<Was>;

/// Compares names, and remembers how much was read.
pub(crate) struct Comparison<'e> {
    files: &'e dyn Files,
    elsewhere: Elsewhere<'e>,
    /// Whether only names are wanted.
    is_brief: bool,
    bytes_left: u64,
}

impl<'e> Comparison<'e> {
    pub(crate) const fn new(
        files: &'e dyn Files,
        elsewhere: Elsewhere<'e>,
        is_brief: bool,
    ) -> Self {
        Self {
            files,
            elsewhere,
            is_brief,
            bytes_left: TOTAL_BYTES_MAX,
        }
    }

    /// Compares the two sides of a name; none if nothing differs.
    pub(crate) fn compare(&mut self, change: &FileChange) -> Result<Option<DiffFile>, DriverError> {
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        let what = match (before, after, &change.from) {
            (_, _, Some(_)) => DiffChange::Moved,
            (None, Some(_), _) => DiffChange::Created,
            (Some(_), None, _) => DiffChange::Removed,
            (Some(_), Some(_), _) => DiffChange::Changed,
            (None, None, _) => return Ok(None),
        };
        let mut file = DiffFile {
            path: Some(change.path.clone()),
            key: None,
            from: change.from.clone(),
            change: what,
            before: before.map(|was| side(was, &change.path)),
            after: after.map(|was| side(was, &change.path)),
            added: None,
            removed: None,
            text: String::new(),
            value: None,
            unshown: None,
        };
        let has_bytes = [before, after].into_iter().flatten().any(Was::is_file);
        if !self.is_brief && has_bytes && what != DiffChange::Moved && !is_retouched(change) {
            self.contents(change, &mut file)?;
        }
        let is_same = what == DiffChange::Changed
            && file.text.is_empty()
            && file.unshown.is_none()
            && file.before == file.after
            && attributes(before) == attributes(after);
        Ok((!is_same || self.is_brief).then_some(file))
    }

    /// Compares the bytes.
    fn contents(&mut self, change: &FileChange, file: &mut DiffFile) -> Result<(), DriverError> {
        let before = self.bytes(change, change.before.as_ref())?;
        let after = self.bytes(change, change.after.as_ref())?;
        let (before, after) = match (before, after) {
            (Ok(before), Ok(after)) => (before, after),
            (Err(why), _) | (_, Err(why)) => {
                file.unshown = Some(why);
                return Ok(());
            }
        };
        match text::stat(&before, &after) {
            Some(stat) => {
                (file.added, file.removed) = (Some(stat.added), Some(stat.removed));
                let name = |mark: &str, was: &Option<Was>| match was {
                    Some(_) => [mark.as_bytes(), change.path.as_bytes()].concat(),
                    None => b"/dev/null".to_vec(),
                };
                let old = name("a", &change.before);
                let new = name("b", &change.after);
                file.text = text::unified(&before, &after, &old, &new, CONTEXT_LINES);
            }
            None if before == after => {}
            None if text::is_text(&before) && text::is_text(&after) => {
                file.unshown = Some("too large to compare by line".to_owned());
            }
            None => file.unshown = Some("binary".to_owned()),
        }
        Ok(())
    }

    /// Reads one side; the inner error says why that cannot be.
    fn bytes(
        &mut self,
        change: &FileChange,
        was: Option<&Was>,
    ) -> Result<Result<Vec<u8>, String>, DriverError> {
        let Some(was) = was.filter(|was| was.is_file()) else {
            return Ok(Ok(Vec::new()));
        };
        let shown = match self.files.read(was, FILE_BYTES_MAX.min(self.bytes_left))? {
            Shown::Lost(why) => match (self.elsewhere)(change, was) {
                Some(found) => self.files.read(&found, FILE_BYTES_MAX)?,
                None => Shown::Lost(why),
            },
            shown @ (Shown::Bytes(_) | Shown::TooMany) => shown,
        };
        Ok(match shown {
            Shown::Bytes(bytes) => {
                let read = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                self.bytes_left = self.bytes_left.saturating_sub(read);
                Ok(bytes)
            }
            Shown::TooMany if was.size().is_none_or(|size| size <= FILE_BYTES_MAX) => {
                Err("there is too much to show all of it; name a part with `--only`".to_owned())
            }
            Shown::TooMany => Err("too large to show".to_owned()),
            Shown::Lost(why) => Err(why),
        })
    }
}

/// Tells whether only mode, owner, attributes or times were changed.
fn is_retouched(change: &FileChange) -> bool {
    let is_dress = |was: &Option<Was>| was.as_ref().is_some_and(Was::is_dress);
    is_dress(&change.before) && is_dress(&change.after)
}

fn attributes(was: Option<&Was>) -> Vec<(String, Vec<u8>)> {
    was.map(Was::attributes).unwrap_or_default()
}

/// Describes one side.
fn side(was: &Was, path: &TargetPath) -> DiffSide {
    let owner = was.owner();
    DiffSide {
        kind: was.word().into(),
        mode: was.mode().map(|mode| format!("{mode:04o}")),
        uid: owner.map(|(uid, _)| uid),
        gid: owner.map(|(_, gid)| gid),
        size: was.size(),
        modified: was.modified().map(|at| Timestamp(at / NANOS_PER_MILLI)),
        points_to: was.points_to().map(|to| to.to_string_lossy().into_owned()),
        same_as: was.same_as().filter(|first| *first != path).cloned(),
        attributes: was.attributes().into_iter().map(|(name, _)| name).collect(),
    }
}
