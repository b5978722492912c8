//! Checking the whole store: the chain link by link, what follows from it, every content, every kept inode.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backout_model::ports::{
    ChangedSince, CheckSlots, ContentsError, MadeOutside, NotUndoable, OutOfReach, Tell,
    VerifyFinding, VerifyReport, hurt_images,
};
use backout_model::{Flaw, OperationId, Record, Slot, Status, Verb};

use super::MemoryStore;
use super::state::{Answer, At, Mode, Row, State};

impl MemoryStore {
    pub(super) fn check(
        &self,
        check_slots: &CheckSlots<'_>,
        progress: &mut Tell<'_>,
    ) -> Answer<VerifyReport> {
        let mut report = VerifyReport::default();
        // Whoever looks at inodes asks the store again, so nothing is locked meanwhile.
        let state = self.ask(|state| Ok(state.clone()))?;
        let replay = self.replay(&state, &mut report);
        progress(report.records, report.records);
        compare(&state, &replay, &mut report);
        let mut looked_at: BTreeSet<Slot> = BTreeSet::new();
        for (id, slots) in replay.needed_slots() {
            for (slot, flaw) in check_slots(id, &slots) {
                look(self, &slot, id, flaw, &mut report);
                report.slots += u64::from(looked_at.insert(slot));
            }
        }
        let mut needed: BTreeMap<_, Vec<OperationId>> = BTreeMap::new();
        for (by, digest) in &replay.references {
            if replay
                .operations
                .get(by)
                .is_some_and(|row| row.operation.retained)
            {
                needed.entry(*digest).or_default().push(*by);
            }
        }
        for (digest, needed_by) in needed {
            report.contents += 1;
            let checked = state.content(&digest);
            if let Err(ContentsError::Outside { .. }) = checked {
                report.outside.push(MadeOutside { digest, needed_by });
                continue;
            }
            if let Err(error) = checked {
                report.findings.push(VerifyFinding::Content {
                    digest,
                    detail: error.to_string(),
                    needed_by,
                });
            }
        }
        tell_undoable(&replay, &mut report);
        Ok(report)
    }

    /// Makes of the records again what follows from them.
    fn replay(&self, state: &State, report: &mut VerifyReport) -> State {
        let mut replay = State {
            anchor: state.anchor,
            ..State::default()
        };
        let mut previous = state.anchor.1;
        for stored in &state.records {
            let lsn = stored.lsn;
            let read = Record::read(&previous, lsn, stored.at, &stored.body, stored.hash);
            let mode = Mode::Replay;
            let taken = read.map_err(|error| error.to_string()).and_then(|record| {
                report.others.extend(self.of_other_driver(&record.event));
                let now = stored.at;
                let taken = replay.take(At { lsn, now, mode }, &record.event);
                taken.map_err(|error| error.to_string())
            });
            if let Err(detail) = taken {
                report.findings.push(VerifyFinding::Record { lsn, detail });
            }
            previous = stored.hash;
            report.records += 1;
        }
        replay
    }
}

/// Compares what the store says of each operation with what its records give.
fn compare(state: &State, replay: &State, report: &mut VerifyReport) {
    let ids: BTreeSet<&OperationId> = state
        .operations
        .keys()
        .chain(replay.operations.keys())
        .collect();
    for id in ids {
        let (now, then) = (state.operations.get(id), replay.operations.get(id));
        // Who answers for it now is no matter of the records.
        let without_owner = |row: &Row| Row {
            operation: backout_model::Operation {
                owner: backout_storage::this_process(),
                ..row.operation.clone()
            },
            ..row.clone()
        };
        let is_same = match (now, then) {
            (Some(now), Some(then)) => without_owner(now) == without_owner(then),
            _ => false,
        };
        if !is_same {
            report.findings.push(VerifyFinding::Operation {
                id: *id,
                detail: "its records give something else".to_owned(),
            });
        }
    }
}

fn look(
    store: &MemoryStore,
    slot: &Slot,
    needed_by: OperationId,
    flaw: Option<Flaw>,
    report: &mut VerifyReport,
) {
    use backout_model::ports::Depots as _;
    let path = slot.path();
    match (flaw, store.out_of_reach(slot)) {
        (None, _) => {}
        (Some(_), Some(why)) => report.out_of_reach.push(OutOfReach {
            path,
            needed_by,
            why,
        }),
        (Some(Flaw::Changed(why)), None) => report.changed.push(ChangedSince {
            path,
            needed_by,
            why,
        }),
        (Some(Flaw::Lost(detail)), None) => report.findings.push(VerifyFinding::Slot {
            path,
            needed_by,
            detail,
        }),
    }
}

/// Tells which operations in effect can still be undone.
fn tell_undoable(replay: &State, report: &mut VerifyReport) {
    let mut hurt = hurt_images(&report.findings);
    let away: HashSet<OperationId> = report.out_of_reach.iter().map(|it| it.needed_by).collect();
    let stands = |row: &Row| {
        row.operation.undoes.is_none()
            && row.operation.status.is_in_effect()
            && row.operation.status != Status::Armed
    };
    for row in replay.newest_first(stands) {
        let ids: Vec<OperationId> = std::iter::once(row.operation.id)
            .chain(row.redone_by)
            .collect();
        let id = row.operation.id;
        let is_retained = |id: &OperationId| {
            let row = replay.operations.get(id);
            row.is_none_or(|row| row.operation.retained)
        };
        let is_other = |id: &OperationId| report.others.iter().any(|other| other.id == *id);
        if let Some(why) = ids.iter().find_map(|id| hurt.remove(id)) {
            report.not_undoable.push(NotUndoable { id, why });
        } else if ids.iter().any(is_other) || ids.iter().any(|id| away.contains(id)) {
            // Another program can tell, or it comes within reach again.
        } else if ids.iter().all(is_retained) {
            report.undoable.push(id);
        } else {
            let why = row.operation.notes.last().cloned();
            let why = why.unwrap_or_else(|| "its images were let go".to_owned());
            report.not_undoable.push(NotUndoable { id, why });
        }
    }
}

impl State {
    /// Lists what the operations that are applied and still stand keep as inodes.
    fn needed_slots(&self) -> BTreeMap<OperationId, Vec<Slot>> {
        let rows = || self.operations.values();
        let targets = || {
            rows().flat_map(|row| {
                row.targets
                    .iter()
                    .map(|it| (row.operation.id, &it.standing))
            })
        };
        let half = [Status::Armed, Status::InDoubt, Status::Failed];
        let undone_half: HashSet<OperationId> = rows()
            .filter(|row| half.contains(&row.operation.status))
            .filter_map(|row| row.operation.undoes)
            .collect();
        let taken_back: HashSet<OperationId> = rows()
            .filter(|row| row.operation.status == Status::Committed)
            .filter_map(|row| row.operation.undoes)
            .chain(undone_half.iter().copied())
            .collect();
        let holding: HashSet<OperationId> = targets()
            .filter(|(_, standing)| standing.is_in_effect())
            .map(|(id, standing)| standing.held_by.unwrap_or(id))
            .collect();
        let held_half: HashSet<OperationId> = targets()
            .filter(|(id, _)| undone_half.contains(id))
            .filter_map(|(_, standing)| standing.held_by)
            .collect();
        let reverses = |row: &Row| {
            let subject = row.operation.undoes.and_then(|id| self.operations.get(&id));
            subject.is_some_and(|subject| subject.operation.verb.is_reversal())
        };
        let mut needed = BTreeMap::new();
        for row in rows() {
            let (id, operation) = (row.operation.id, &row.operation);
            let own = self.slots.iter().filter(|(_, by)| **by == id);
            let own: Vec<Slot> = own.map(|(slot, _)| slot.clone()).collect();
            let stands = operation.status.has_happened();
            let is_put_back = operation.verb == Verb::Recover && reverses(row);
            if stands
                && operation.retained
                && (!own.is_empty() || operation.undoes.is_some())
                && !is_put_back
                && holding.contains(&id)
                && !taken_back.contains(&id)
                && !held_half.contains(&id)
            {
                needed.insert(id, own);
            }
        }
        needed
    }
}
