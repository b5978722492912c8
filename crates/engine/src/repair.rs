//! Repair: saving what can be saved of a damaged store, and saying what cannot.
//!
//! The journal is put together again only if it is hurt itself; then images that are gone are noted at the operations
//! that need them, and at last what dead processes left is settled. Each step finds its own work, so doing it all
//! again, or going on after a crash, does nothing twice.

use backout_model::ports::{Durability, Entry};
use backout_model::{Event, OperationId};
use backout_storage::{
    ChangedSince, NotUndoable, OutOfReach, PackSalvage, Salvage, StorageError, VerifyFinding,
    VerifyReport, hurt_images, repair_journal,
};
use serde::{Deserialize, Serialize};

use crate::sources::sources;
use crate::{Engine, EngineError, MakeDrivers, RecoverReport, Settings};

/// What a repair did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RepairReport {
    /// What was saved and lost of the journal, if it was hurt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<Salvage>,
    /// What was found of large images in packs.
    pub packs: PackSalvage,
    /// Operations that can no longer be undone, found out now.
    pub not_undoable: Vec<NotUndoable>,
    /// What is kept out of reach: nothing was given up, and it comes back into reach by what is said.
    pub out_of_reach: Vec<OutOfReach>,
    /// What was changed after it was kept: nothing was given up, and with force it comes back as it is.
    pub changed: Vec<ChangedSince>,
    /// Operations in effect that can be undone.
    pub undoable: usize,
    /// What dead processes had left.
    pub recovered: RecoverReport,
}

impl Engine {
    /// Opens the store, damaged or not, and repairs it.
    pub fn repair(
        settings: Settings,
        drivers: MakeDrivers,
    ) -> Result<(Self, RepairReport), EngineError> {
        let journal = match Self::open(settings.clone(), drivers) {
            Ok(engine) => {
                let report = engine.verify()?;
                if report.is_journal_hurt() {
                    drop(engine);
                    Some(salvage(&settings)?)
                } else {
                    None
                }
            }
            Err(EngineError::Storage(error)) if is_repairable(&error) => Some(salvage(&settings)?),
            Err(error) => return Err(error),
        };
        let engine = Self::open(settings, drivers)?;
        let mut report = engine.repair_images()?;
        report.journal = journal;
        Ok((engine, report))
    }

    /// Finds what can be found of images, notes what is gone, and settles what dead processes left.
    pub(crate) fn repair_images(&self) -> Result<RepairReport, EngineError> {
        let mut verified = self.verify()?;
        let is_content = |finding: &VerifyFinding| matches!(finding, VerifyFinding::Content { .. });
        let mut packs = PackSalvage::default();
        if verified.findings.iter().any(is_content) {
            packs = self.store.adopt_packs()?;
            verified = self.verify()?;
        }
        let not_undoable = self.note_lost(&verified)?;
        let recovered = self.recover(None)?;
        let now = self.verify()?;
        Ok(RepairReport {
            journal: None,
            packs,
            not_undoable,
            undoable: now.undoable.len(),
            out_of_reach: now.out_of_reach,
            changed: now.changed,
            recovered,
        })
    }

    /// Records of each operation whose images are gone that it cannot be undone, and why.
    fn note_lost(&self, report: &VerifyReport) -> Result<Vec<NotUndoable>, EngineError> {
        let lost = hurt_images(&report.findings);
        if lost.is_empty() {
            return Ok(Vec::new());
        }
        let event = |(id, why): (&OperationId, &String)| Event::Lost {
            ids: vec![*id],
            why: why.clone(),
        };
        let entry = Entry::of(lost.iter().map(event).collect());
        self.store.append(&entry, Durability::Power)?;
        let each = |(id, why)| NotUndoable { id, why };
        Ok(lost.into_iter().map(each).collect())
    }
}

fn salvage(settings: &Settings) -> Result<Salvage, EngineError> {
    let (clock, _) = sources();
    Ok(repair_journal(&settings.state_dir, &clock)?)
}

/// Tells whether an error means that the journal is damaged, and not that it is somebody else's, newer or out of reach.
fn is_repairable(error: &StorageError) -> bool {
    matches!(
        error,
        StorageError::Damaged { .. }
            | StorageError::NotWhole { .. }
            | StorageError::LostRecords { .. }
            | StorageError::Record(_)
            | StorageError::Inconsistent { .. }
    )
}
