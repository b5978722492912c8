//! Keeping the store in order: verify, collect, export.

use backout_model::ports::{MadeOutside, NotUndoable};
use backout_model::{Flaw, Key, Lsn, OperationId, Reach, Slot, Standing, Target};
use backout_storage::{GcRequest, VerifyReport, slot_is_gone};

use crate::undo::Told;
use crate::{Engine, EngineError, ExportTarget, GcOutcome, Reply};

impl Engine {
    /// Checks the whole store.
    pub fn verify(&self) -> Result<VerifyReport, EngineError> {
        let check = |id, slots: &[Slot]| {
            // What was taken back has its inodes elsewhere, and what a redo holds is the redo's. Of a tree that goes in parts
            // each name stands for itself.
            let holds = |standing: &Standing| standing.is_in_effect() && standing.held_by.is_none();
            let operation = self.store.operation(id).ok().flatten();
            let targets = operation.map_or_else(Vec::new, |operation| operation.targets);
            let told = Told::new(targets.iter().map(|standing| (&standing.target, standing)));
            let is_needed = |key: &Key| {
                let target = Target::new(key.clone(), Reach::Node);
                targets.is_empty() || told.of(&target).is_some_and(holds)
            };
            let each = |look: &dyn Fn(&Slot) -> Option<Flaw>| {
                let looked = slots.iter().map(|slot| (slot.clone(), look(slot)));
                looked.collect::<Vec<_>>()
            };
            // If it cannot be read its record is hurt, which is a finding of its own.
            let Ok(effect) = self.store.effect(id) else {
                return each(&slot_is_gone);
            };
            let found = self.driver_of(&effect).and_then(|driver| {
                let found = driver.check_kept(&effect, &is_needed);
                found.map_err(EngineError::from)
            });
            found.unwrap_or_else(|error| {
                // Only its driver knows more than whether it is there.
                if let EngineError::NoDriver { .. } = error {
                    return each(&slot_is_gone);
                }
                let flaw = Flaw::Lost(format!("cannot be looked at: {error}"));
                each(&|_| Some(flaw.clone()))
            })
        };
        let mut report = self.store.verify_with(&check, &mut self.tell())?;
        for made in std::mem::take(&mut report.outside) {
            self.check_made(made, &mut report)?;
        }
        Ok(report)
    }

    /// Asks the drivers whether what a content is told as a change of is where it was left. If not, the store is none the worse.
    fn check_made(&self, made: MadeOutside, report: &mut VerifyReport) -> Result<(), EngineError> {
        for id in made.needed_by {
            if let Some(why) = self.lost_of(id)? {
                report.undoable.retain(|undoable| *undoable != id);
                report.not_undoable.push(NotUndoable { id, why });
            }
        }
        Ok(())
    }

    /// Says why what an operation replaced cannot be brought back, if it is the last that was done there: of others, those since
    /// have to be taken back first.
    fn lost_of(&self, id: OperationId) -> Result<Option<String>, EngineError> {
        let Some(operation) = self.store.operation(id)? else {
            return Ok(None);
        };
        let effect = self.store.effect(id)?;
        let examined = self.driver_of(&effect)?.examine(&effect, false)?;
        for it in examined {
            let key = it.target.key();
            let standing = operation.targets.iter().find(|at| at.target.key() == key);
            let is_in_effect = standing.is_some_and(Standing::is_in_effect);
            if is_in_effect
                && it.lost.is_some()
                && self.store.done_since(key, operation.place, id)?.is_none()
            {
                return Ok(it.lost);
            }
        }
        Ok(None)
    }

    /// Lets old images go, packs the rest, and moves old audit records out of the journal.
    pub fn gc(&self, is_dry_run: bool, compact: bool) -> Result<GcOutcome, EngineError> {
        self.recover_the_dead()?;
        let request = GcRequest {
            retention: self.settings.retention.clone(),
            is_dry_run,
            now: self.now(),
        };
        let mut collected = self.store.gc(&request, &mut self.tell())?;
        let workspaces = self.collect_workspaces(is_dry_run)?;
        if is_dry_run {
            return Ok(GcOutcome {
                collected,
                compacted: None,
                workspaces,
                audit_file: None,
            });
        }
        let compacted = if compact {
            Some(self.store.compact(
                backout_storage::CompactBudget::unlimited(),
                &mut self.tell(),
            )?)
        } else {
            None
        };
        let audit_file = self.store.cut_audit(&self.settings.retention)?;
        // What was packed since is not held any more either.
        collected.after = self.store.stored_bytes()?;
        Ok(GcOutcome {
            collected,
            compacted,
            workspaces,
            audit_file,
        })
    }

    pub(crate) fn export(&self, to: ExportTarget, from: Lsn) -> Result<Reply, EngineError> {
        let mut out = match to {
            ExportTarget::Stream(out) => out,
            ExportTarget::Evidence(directory) => return self.write_evidence(&directory, from),
        };
        let records = self.store.export(from, &mut *out)?;
        out.flush().map_err(|source| EngineError::Io {
            action: "write the export",
            source,
        })?;
        Ok(Reply::Exported { records })
    }

    /// Passes on how far long work is, to whoever wants to know.
    fn tell(&self) -> impl FnMut(u64, u64) + '_ {
        let mut last = 0;
        move |done, total| {
            if let Some(progress) = &self.settings.progress {
                progress.total(total);
                progress.advance(done.saturating_sub(last));
                last = done;
            }
        }
    }
}
