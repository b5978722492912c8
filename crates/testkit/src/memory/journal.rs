//! Questions to the journal.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backout_model::ports::{CANDIDATES_MAX, Filter, Journal, OperationRef, RefError, StorageError};
use backout_model::{
    Asked, Below, CallKey, Checkpoint, Dependency, DependencyReason, Effect, Event, Key, Lsn, Note,
    NoteFilter, Operation, OperationId, Prompt, Proposal, Reach, Record, RecordError, Status,
    Target, Task, Timestamp,
};

use super::MemoryStore;
use super::state::{Answer, Row, State};

impl Journal for MemoryStore {
    fn operation(&self, id: OperationId) -> Answer<Option<Operation>> {
        self.ask(|state| Ok(state.operations.get(&id).map(|row| row.told())))
    }

    fn operations(&self, filter: &Filter) -> Answer<Vec<Operation>> {
        self.ask(|state| {
            let found = state.newest_first(|row| is_meant(row, filter));
            let limit = filter.limit.unwrap_or(usize::MAX);
            Ok(found.take(limit).map(Row::told).collect())
        })
    }

    fn armed(&self) -> Answer<Vec<Operation>> {
        self.with_status(|status| status == Status::Armed)
    }

    fn stuck(&self) -> Answer<Vec<Operation>> {
        self.with_status(|status| {
            matches!(
                status,
                Status::InDoubt | Status::Failed | Status::Interrupted
            )
        })
    }

    fn failed(&self) -> Answer<Vec<Operation>> {
        self.ask(|state| {
            let found = state.newest_first(|row| row.undo_failed);
            Ok(found.map(Row::told).collect())
        })
    }

    fn connected(&self, ids: &[OperationId]) -> Answer<Vec<Operation>> {
        self.ask(|state| {
            let mut found: BTreeSet<OperationId> = ids.iter().copied().collect();
            let mut queue = ids.to_vec();
            while let Some(id) = queue.pop() {
                let next = state.neighbours(id);
                queue.extend(next.into_iter().filter(|next| found.insert(*next)));
            }
            let rows = found.iter().filter_map(|id| state.operations.get(id));
            Ok(rows.map(|row| row.told()).collect())
        })
    }

    fn proposals(&self) -> Answer<Vec<Proposal>> {
        let mut records = self.ask(|state| {
            let records = state.records_where(|_| true)?.into_iter();
            let waits = |id: OperationId| {
                let row = state.operations.get(&id);
                row.is_some_and(|row| row.operation.status == Status::Proposed)
            };
            let kept = records.filter(|record| record.event.operation().is_some_and(waits));
            Ok(kept.collect::<Vec<_>>())
        })?;
        let proposals = records.drain(..).filter_map(|record| {
            if let Event::Proposed(proposal) = record.event {
                Some(*proposal)
            } else {
                None
            }
        });
        Ok(proposals.collect())
    }

    fn rollouts(&self) -> Answer<Vec<OperationId>> {
        let records = self.ask(|state| state.records_where(|_| true))?;
        let begun = records.into_iter().rev();
        let begun = begun.filter_map(|record| {
            if let Event::RolloutBegun(plan) = record.event {
                Some(plan.id)
            } else {
                None
            }
        });
        Ok(begun.collect())
    }

    fn answer_to(&self, key: &CallKey) -> Answer<Option<(OperationId, Asked)>> {
        let found = self.ask(|state| Ok(state.calls.get(key).copied()))?;
        let Some(id) = found else {
            return Ok(None);
        };
        let mut records = self.records_of(id)?.into_iter();
        Ok(records.find_map(|record| {
            let (_, call) = record.event.answers()?;
            Some((id, call.clone()))
        }))
    }

    fn effect(&self, id: OperationId) -> Answer<Effect> {
        let wrong = |detail: &str| StorageError::inconsistent(format!("operation {id}"), &detail);
        self.ask(|state| {
            let row = state.operations.get(&id);
            let row = row.ok_or_else(|| wrong("it is not in the journal"))?;
            let record = state.records_where(|lsn| lsn == row.operation.lsn)?.pop();
            let recipe = match record.map(|record| record.event) {
                Some(Event::Intent(intent)) if intent.id == id => intent.recipe,
                Some(Event::Captured(captured)) if captured.id == id => captured.recipe,
                Some(_) => return Err(wrong("its record is not an intent")),
                None => return Err(wrong("its record is gone")),
            };
            let completion = row.completion.clone();
            Ok(Effect {
                recipe,
                completion: completion.filter(|completion| !completion.0.is_null()),
            })
        })
    }

    fn records_of(&self, id: OperationId) -> Answer<Vec<Record>> {
        let mut records = self.ask(|state| state.records_where(|_| true))?;
        records.retain(|record| record.event.operation() == Some(id));
        Ok(records)
    }

    fn records_after(&self, lsn: Lsn, limit: usize) -> Answer<Vec<Record>> {
        let mut records = self.ask(|state| state.records_where(|place| place > lsn))?;
        records.truncate(limit);
        Ok(records)
    }

    fn resolve(&self, reference: &OperationRef) -> Result<OperationId, RefError> {
        match reference {
            OperationRef::Newest { back } => self.newest(*back),
            OperationRef::Prefix(prefix) => self.by_prefix(prefix),
        }
    }

    fn dependencies(&self, targets: &[Target]) -> Answer<Vec<Dependency>> {
        self.ask(|state| {
            let newest = state.newest_on_each_key();
            let mut found = BTreeSet::new();
            for target in targets {
                for earlier in near(&newest, target.key()) {
                    let reason = DependencyReason::between(target, &earlier.target);
                    found.extend(reason.map(|reason| (earlier.by, reason)));
                }
            }
            let edge = |(on, reason)| Dependency { on, reason };
            Ok(found.into_iter().map(edge).collect())
        })
    }

    fn done_since(
        &self,
        key: &Key,
        place: Lsn,
        except: OperationId,
    ) -> Answer<Option<OperationId>> {
        self.ask(|state| {
            for above in std::iter::once(key.clone()).chain(key.ancestors()) {
                let is_whole = above == *key || key.below(&above) == Some(Below::Part);
                let did = |row: &&Row| {
                    let operation = &row.operation;
                    operation.id != except
                        && operation.undoes.is_none()
                        && operation.place > place
                        && operation.status.has_happened()
                        && row.targets.iter().any(|placed| {
                            let target = &placed.standing.target;
                            placed.standing.is_in_effect()
                                && *target.key() == above
                                && (is_whole || target.reach() == Reach::Tree)
                        })
                };
                let rows = state.operations.values().map(|row| &**row).filter(did);
                if let Some(row) = rows.max_by_key(|row| row.operation.place) {
                    return Ok(Some(row.operation.id));
                }
            }
            Ok(None)
        })
    }

    fn moment_of(&self, lsn: Lsn) -> Answer<Timestamp> {
        self.ask(|state| {
            let record = state.records.iter().find(|record| record.lsn == lsn);
            Ok(record.map_or(Timestamp(i64::MIN), |record| record.at))
        })
    }

    fn place_at(&self, moment: Timestamp) -> Answer<Lsn> {
        self.ask(|state| {
            let mut newest_first = state.records.iter().rev();
            let last = newest_first.find(|record| record.at <= moment);
            Ok(last.map_or(Lsn(0), |record| record.lsn))
        })
    }

    fn writes_since(&self, targets: &[Target], since: Timestamp, limit: u32) -> Answer<u32> {
        self.ask(|state| {
            let count = |target: &Target| {
                let wrote = |row: &Row| {
                    let mut targets = row.targets.iter();
                    targets.any(|placed| placed.standing.target.key() == target.key())
                };
                let newest = state.newest_first(wrote).take(limit as usize);
                newest.filter(|row| row.operation.at >= since).count()
            };
            let most = targets.iter().map(count).max().unwrap_or(0);
            Ok(u32::try_from(most).unwrap_or(limit))
        })
    }

    fn has_gap_after(&self, _lsn: Lsn) -> Answer<bool> {
        Ok(false)
    }

    fn tasks(&self) -> Answer<Vec<Task>> {
        self.ask(|state| {
            let tasks = state.tasks.values().map(|row| row.task.clone());
            let mut tasks: Vec<Task> = tasks.collect();
            tasks.sort_by(|a, b| b.began.cmp(&a.began).then_with(|| a.id.cmp(&b.id)));
            Ok(tasks)
        })
    }

    fn prompts(&self) -> Answer<Vec<Prompt>> {
        self.ask(|state| {
            let mut all: Vec<Prompt> = state.prompts.values().cloned().collect();
            all.sort_by_key(|prompt| std::cmp::Reverse(prompt.lsn));
            Ok(all)
        })
    }

    fn notes(&self, filter: &NoteFilter) -> Answer<Vec<Note>> {
        self.ask(|state| {
            let mut seen = HashSet::new();
            let newest_first = state.notes.iter().rev().filter(|note| filter.fits(note));
            let meant =
                newest_first.filter(|note| !filter.is_newest || seen.insert(note.subject.clone()));
            let limit = filter.limit.unwrap_or(usize::MAX);
            Ok(meant.take(limit).map(|note| Note::clone(note)).collect())
        })
    }

    fn checkpoints(&self) -> Answer<Vec<Checkpoint>> {
        self.ask(|state| {
            let mut all: Vec<Checkpoint> = state.checkpoints.values().cloned().collect();
            all.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.lsn));
            Ok(all)
        })
    }
}

impl MemoryStore {
    fn with_status(&self, is_meant: impl Fn(Status) -> bool) -> Answer<Vec<Operation>> {
        self.ask(|state| {
            let found = state.newest_first(|row| is_meant(row.operation.status));
            Ok(found.map(Row::told).collect())
        })
    }

    fn newest(&self, back: u32) -> Result<OperationId, RefError> {
        let found = self.ask(|state| {
            let counts = |row: &Row| {
                let is_nothing = matches!(
                    row.operation.status,
                    Status::Proposed | Status::Refused | Status::Aborted
                );
                row.operation.undoes.is_none() && !is_nothing && !row.targets.is_empty()
            };
            let mut newest = state.newest_first(counts);
            Ok(newest.nth(back as usize).map(|row| row.operation.id))
        })?;
        let text = match back {
            0 => "@".to_owned(),
            _ => format!("@-{back}"),
        };
        found.ok_or(RefError::Unknown { text })
    }

    fn by_prefix(&self, prefix: &str) -> Result<OperationId, RefError> {
        let found: Vec<OperationId> = self.ask(|state| {
            let begins = |row: &Row| row.operation.id.to_string().starts_with(prefix);
            let found = state.newest_first(begins).take(CANDIDATES_MAX);
            Ok(found.map(|row| row.operation.id).collect())
        })?;
        let text = prefix.to_owned();
        match found.as_slice() {
            [] => Err(RefError::Unknown { text }),
            [one] => Ok(*one),
            _ => Err(RefError::Ambiguous {
                text,
                candidates: found,
            }),
        }
    }
}

/// Tells whether a filter lets an operation through.
fn is_meant(row: &Row, filter: &Filter) -> bool {
    let operation = &row.operation;
    let wrote_at = |key: &Key| {
        let mut targets = row.targets.iter();
        targets.any(|placed| placed.standing.target.key().is_at_or_below(key))
    };
    filter
        .agent
        .as_ref()
        .is_none_or(|it| operation.agent.as_ref() == Some(it))
        && filter
            .task
            .as_ref()
            .is_none_or(|it| operation.task.as_ref() == Some(it))
        && filter
            .prompt
            .as_ref()
            .is_none_or(|it| operation.prompt.as_ref() == Some(it))
        && filter.group.is_none_or(|it| operation.group == Some(it))
        && filter.after.is_none_or(|after| operation.lsn > after)
        && filter.before.is_none_or(|before| operation.lsn < before)
        && filter
            .placed_after
            .is_none_or(|after| operation.place > after)
        && filter.at.as_ref().is_none_or(wrote_at)
}

/// Who wrote what, among what is in effect.
struct Writer {
    by: OperationId,
    target: Target,
    lsn: Lsn,
    is_reversal: bool,
}

/// The newest writers of each key, by its bytes: so whatever is below another one stands behind it.
type Newest = BTreeMap<Vec<u8>, Vec<Writer>>;

/// Lists the writers of a key, of what holds it and of what it holds.
fn near<'n>(newest: &'n Newest, key: &Key) -> impl Iterator<Item = &'n Writer> {
    let mut exact = key.ancestors();
    exact.push(key.clone());
    let exact = exact
        .into_iter()
        .filter_map(|key| newest.get(&key.to_bytes()));
    let below = key.ranges_below().into_iter();
    let below = below.flat_map(|(first, last)| newest.range(first..last));
    exact.chain(below.map(|(_, writers)| writers)).flatten()
}

impl State {
    /// Lists operations, the last in the journal first.
    pub(super) fn newest_first(
        &self,
        is_meant: impl Fn(&Row) -> bool,
    ) -> impl Iterator<Item = &Row> {
        let rows = self.operations.values().map(|row| &**row);
        let mut found: Vec<&Row> = rows.filter(|row| is_meant(row)).collect();
        found.sort_by_key(|row| std::cmp::Reverse(row.operation.lsn));
        found.into_iter()
    }

    /// Reads records, each checked against the one before it.
    pub(super) fn records_where(&self, is_meant: impl Fn(Lsn) -> bool) -> Answer<Vec<Record>> {
        let mut previous = self.anchor.1;
        let mut records = Vec::new();
        for stored in &self.records {
            if is_meant(stored.lsn) {
                let read =
                    Record::read(&previous, stored.lsn, stored.at, &stored.body, stored.hash);
                records.push(read.map_err(|error: RecordError| StorageError::from(error))?);
            }
            previous = stored.hash;
        }
        Ok(records)
    }

    fn neighbours(&self, id: OperationId) -> BTreeSet<OperationId> {
        let row = self.operations.get(&id);
        let mut next: BTreeSet<OperationId> = row
            .iter()
            .flat_map(|row| &row.operation.depends_on)
            .map(|edge| edge.on)
            .collect();
        let targets = row.iter().flat_map(|row| &row.targets);
        next.extend(targets.filter_map(|placed| placed.standing.held_by));
        let dependents = self.operations.values().filter(|row| {
            let mut edges = row.operation.depends_on.iter();
            edges.any(|edge| edge.on == id)
        });
        next.extend(dependents.map(|row| row.operation.id));
        next
    }

    /// For every key only the newest operation counts, and the undos that are newer.
    fn newest_on_each_key(&self) -> Newest {
        let mut newest = Newest::new();
        let all = self.operations.values();
        let in_effect = all.filter(|row| row.operation.status.is_in_effect());
        for row in in_effect {
            for placed in &row.targets {
                if placed.standing.is_in_effect() {
                    let target = placed.standing.target.clone();
                    let writers = newest.entry(target.key().to_bytes()).or_default();
                    writers.push(Writer {
                        by: row.operation.id,
                        target,
                        lsn: placed.lsn,
                        is_reversal: row.operation.undoes.is_some(),
                    });
                }
            }
        }
        for writers in newest.values_mut() {
            writers.sort_by_key(|writer| std::cmp::Reverse(writer.lsn));
            let reversals = writers.iter().take_while(|writer| writer.is_reversal);
            let count = reversals.count() + 1;
            writers.truncate(count);
        }
        newest
    }
}
