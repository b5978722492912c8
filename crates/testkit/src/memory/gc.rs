//! Letting go: images past their retention, and everything that nobody needs any more.
//!
//! An operation, the undos that took its targets back and the redos that brought them again go together, when the youngest of
//! them is due. What is unfinished never goes, nor what a living process is about to write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use backout_model::ports::{
    ContentsError, GcReport, GcRequest, LeftBehind, Maintenance as _, OfOtherDriver, StoredBytes,
    Tell, Workspace as _,
};
use backout_model::{
    Candidate, Digest, DriverName, Event, ExpiryReason, KEY_MS_MIN, Key, OperationId, Retention,
    Status, Timestamp, select_expired,
};

use super::change::Change;
use super::maintenance::size_of;
use super::state::{Answer, Row, State};
use super::workspace::{CAPTURES, DEPOT, STAGING, names_in, operation_of};
use super::{MemoryStore, held};

/// What would expire now.
#[derive(Debug, Default)]
struct Plan {
    expired: Vec<(OperationId, ExpiryReason)>,
    others: Vec<OfOtherDriver>,
    bytes: u64,
}

impl MemoryStore {
    pub(super) fn collect(&self, request: &GcRequest, progress: &mut Tell<'_>) -> Answer<GcReport> {
        progress(0, 1);
        let before = self.stored_bytes()?;
        if request.is_dry_run {
            let (retention, now) = (&request.retention, request.now);
            let plan = self.ask(|state| Ok(self.plan(state, retention, now)))?;
            return Ok(GcReport {
                is_dry_run: true,
                after: StoredBytes {
                    total: before.total.saturating_sub(plan.bytes),
                    ..before
                },
                before,
                expired: plan.expired,
                others: plan.others,
                slots: self.strays(DEPOT)?.len() as u64,
                staging: self.strays(STAGING)?.len() as u64,
                audit_records: self.audit_records(request)?,
                ..GcReport::default()
            });
        }
        let mut report = GcReport {
            before,
            ..GcReport::default()
        };
        self.let_go(&request.retention, request.now, &mut report)?;
        for part in [STAGING, CAPTURES] {
            report.staging += self.remove_strays(part, &mut report.left)?;
        }
        self.change(|state| {
            let operations = self.dead(state, |id| !state.is_unfinished(id));
            Ok((Some(Change::Release { operations }), ()))
        })?;
        report.audit_records = self.audit_records(request)?;
        report.after = self.stored_bytes()?;
        progress(1, 1);
        Ok(report)
    }

    /// Lets images go, again and again while the store is over its cap and something can go.
    pub(super) fn let_go(
        &self,
        retention: &Retention,
        now: Timestamp,
        report: &mut GcReport,
    ) -> Answer<()> {
        loop {
            let at = self.shared.clock.now();
            let plan = self.change(|state| {
                let plan = self.plan(state, retention, now);
                let events = events(&plan.expired);
                let expire = Change::Append {
                    at,
                    events,
                    contents: Vec::new(),
                    changes: Vec::new(),
                };
                Ok(((!plan.expired.is_empty()).then_some(expire), plan))
            })?;
            self.sweep(report)?;
            let is_done = plan.expired.is_empty();
            report.others = plan.others;
            report.expired.extend(plan.expired);
            if is_done || self.stored_bytes()?.total <= retention.store_bytes_max {
                report.slots += self.remove_strays(DEPOT, &mut report.left)?;
                return Ok(());
            }
        }
    }

    /// Removes what no operation refers to.
    fn sweep(&self, report: &mut GcReport) -> Answer<()> {
        self.change(|state| {
            let alive = self.alive(state);
            let is_dead = |id: &OperationId| {
                let row = state.operations.get(id);
                let is_known = row.is_some_and(|row| row.operation.status != Status::Refused);
                let is_rollout = matches!(state.rollouts.get(id), Some(Some(_)));
                !is_known && !is_rollout && !alive.contains(id)
            };
            let referring = state.references.iter().map(|(by, _)| *by);
            let operations = referring.filter(is_dead).collect();
            Ok((Some(Change::Forget { operations }), ()))
        })?;
        report.contents += self.change(|state| {
            let mut needed: BTreeSet<_> =
                state.references.iter().map(|(_, digest)| digest).collect();
            // What something is made from is needed as well.
            let mut made: Vec<&Digest> = needed.iter().copied().collect();
            while let Some(digest) = made.pop() {
                if let Some((base, ..)) = state.changes.get(digest)
                    && needed.insert(base)
                {
                    made.push(base);
                }
            }
            let contents = state.contents.keys().chain(state.changes.keys());
            let dead: Vec<_> = contents
                .filter(|it| !needed.contains(it))
                .copied()
                .collect();
            let count = dead.len() as u64;
            Ok((Some(Change::Drop { contents: dead }), count))
        })?;
        Ok(())
    }

    /// Lists the operations of living processes.
    fn alive(&self, state: &State) -> BTreeSet<OperationId> {
        let leased = state.leased();
        let alive = leased.filter(|(_, _, owner)| self.lives(state, owner));
        alive.map(|(id, _, _)| id).collect()
    }

    /// Chooses what goes.
    fn plan(&self, state: &State, retention: &Retention, now: Timestamp) -> Plan {
        let groups: Vec<Vec<&Row>> = state
            .groups()
            .into_iter()
            .filter(|group| !group.iter().any(|row| self.is_protected(state, row)))
            .collect();
        let mut latest = BTreeMap::new();
        let mut moment = Timestamp(i64::MIN);
        for row in state
            .newest_first(|_| true)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
        {
            moment = moment.max(row.operation.at);
            latest.insert(row.operation.id, moment);
        }
        // The clock may have gone back: nothing is older than what was armed before it.
        let at = |row: &Row| {
            row.finished
                .max(latest.get(&row.operation.id).copied().unwrap_or_default())
        };
        let mut candidates = BTreeMap::new();
        for group in groups {
            let keys = group.iter().flat_map(|row| &row.targets);
            let keys: BTreeSet<Key> = keys.map(|it| it.standing.target.key().clone()).collect();
            let Some(last) = group.iter().max_by_key(|row| (at(row), row.operation.lsn)) else {
                continue;
            };
            // Of those that finished at one moment the one that was armed first goes first.
            let id = OperationId::from_bits(u64::MAX - last.operation.lsn.0);
            let candidate = Candidate {
                id,
                at: at(last),
                keys: keys.into_iter().collect(),
                bytes: state.weight(&group),
            };
            candidates.insert(id, (candidate, group));
        }
        let all: Vec<Candidate> = candidates.values().map(|(it, _)| it.clone()).collect();
        let stored = state
            .contents
            .values()
            .map(|bytes| bytes.len() as u64)
            .sum::<u64>();
        let slots = state
            .slots
            .keys()
            .map(|slot| size_of(slot.path().as_path()));
        let stored = stored + slots.sum::<u64>();
        let mut plan = Plan::default();
        let chosen = select_expired(retention, &all, stored, now);
        let chosen = state.without_needed(chosen, &candidates);
        for (id, reason) in chosen {
            let Some((candidate, group)) = candidates.get(&id) else {
                continue;
            };
            let others = group.iter().filter_map(|row| self.other_driver(state, row));
            let others: Vec<_> = others.collect();
            if others.is_empty() {
                plan.bytes += candidate.bytes;
                let ids = group.iter().map(|row| (row.operation.id, reason));
                plan.expired.extend(ids);
            } else {
                plan.others.extend(others);
            }
        }
        plan
    }

    fn is_protected(&self, state: &State, row: &Row) -> bool {
        let is_finished = !row.operation.status.is_uncommitted() && !row.undo_failed;
        let is_leased = || {
            let mut leased = state
                .leased()
                .filter(|(_, _, owner)| self.lives(state, owner));
            leased.any(|(by, held, _)| {
                let mut targets = row.targets.iter();
                by == row.operation.id
                    || targets.any(|it| it.standing.target.overlap(held).is_some())
            })
        };
        !is_finished || is_leased()
    }

    /// Names the driver of an operation, if nobody here understands it.
    fn other_driver(&self, state: &State, row: &Row) -> Option<OfOtherDriver> {
        let records = state.records_where(|lsn| lsn == row.operation.lsn).ok()?;
        self.of_other_driver(&records.into_iter().next()?.event)
    }

    /// Tells whether an event arms something that nobody here understands.
    pub(super) fn of_other_driver(&self, event: &Event) -> Option<OfOtherDriver> {
        let (id, recipe) = event.armed()?;
        let driver = recipe.driver.clone();
        let known = held(&self.drivers);
        let is_known = known.is_empty() || driver == DriverName::COMMAND || known.contains(&driver);
        (!is_known).then_some(OfOtherDriver { id, driver })
    }

    fn audit_records(&self, request: &GcRequest) -> Answer<u64> {
        let now = request.now.max(self.shared.clock.now());
        let before = Timestamp(now.0.saturating_sub(request.retention.audit_ms));
        let keyed_before = Timestamp(now.0.saturating_sub(KEY_MS_MIN));
        let found = self.ask(|state| Ok(state.cuttable(before, keyed_before)))?;
        Ok(found.map_or(0, |(first, last, _)| last.0 + 1 - first.0))
    }

    /// Lists what lies in one of our directories under the name of an operation that does not need it.
    fn strays(&self, part: &str) -> Answer<Vec<String>> {
        let mut names = names_in(&self.directory().join(part)).unwrap_or_default();
        self.ask(|state| {
            let alive = self.alive(state);
            let kept: BTreeSet<&str> = state.slots.keys().map(|slot| slot.name.as_str()).collect();
            let is_needed = |id: OperationId| {
                let row = state.operations.get(&id);
                let is_retained = row.is_some_and(|row| row.operation.retained);
                let is_depot = part == DEPOT;
                alive.contains(&id) || state.is_unfinished(id) || (is_depot && is_retained)
            };
            let is_stray = |name: &String| {
                let id = operation_of(name);
                id.is_some_and(|id| !is_needed(id)) && !kept.contains(name.as_str())
            };
            names.retain(is_stray);
            Ok(names)
        })
    }

    fn remove_strays(&self, part: &str, left: &mut Vec<LeftBehind>) -> Answer<u64> {
        let mut count = 0;
        for name in self.strays(part)? {
            let path = self.directory().join(part).join(name);
            let is_tree = path.symlink_metadata().is_ok_and(|found| found.is_dir());
            let removed = if is_tree {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            match removed {
                Ok(()) => count += 1,
                Err(error) => left.push(LeftBehind {
                    path,
                    why: error.to_string(),
                }),
            }
        }
        Ok(count)
    }
}

impl State {
    pub(super) fn is_unfinished(&self, id: OperationId) -> bool {
        let row = self.operations.get(&id);
        row.is_some_and(|row| {
            let status = row.operation.status;
            status.is_in_effect() && status.is_uncommitted()
        })
    }

    /// Puts the retained operations together that go together.
    fn groups(&self) -> Vec<Vec<&Row>> {
        let mut group_of: BTreeMap<OperationId, OperationId> = BTreeMap::new();
        let retained = self
            .operations
            .values()
            .filter(|row| row.operation.retained);
        let retained: Vec<&Row> = retained.map(|row| &**row).collect();
        for row in &retained {
            group_of.insert(row.operation.id, row.operation.id);
        }
        for row in &retained {
            for placed in &row.targets {
                let holders = [placed.standing.held_by, placed.standing.undone_by];
                for holder in holders.into_iter().flatten() {
                    let (Some(a), Some(b)) = (
                        group_of.get(&row.operation.id).copied(),
                        group_of.get(&holder).copied(),
                    ) else {
                        continue;
                    };
                    for group in group_of.values_mut().filter(|group| **group == a) {
                        *group = b;
                    }
                }
            }
        }
        let mut groups: BTreeMap<OperationId, Vec<&Row>> = BTreeMap::new();
        for row in retained {
            if let Some(group) = group_of.get(&row.operation.id) {
                groups.entry(*group).or_default().push(row);
            }
        }
        groups.into_values().collect()
    }

    /// Tells how many bytes go with a group: what nobody else needs.
    fn weight(&self, group: &[&Row]) -> u64 {
        let is_in = |id: &OperationId| group.iter().any(|row| row.operation.id == *id);
        let needed_by = |digest| {
            let references = self.references.iter();
            references
                .filter(move |(_, it)| it == digest)
                .map(|(by, _)| by)
        };
        let contents = self.contents.iter().filter(|(digest, _)| {
            let mut needed_by = needed_by(*digest).peekable();
            needed_by.peek().is_some() && needed_by.all(is_in)
        });
        let contents: u64 = contents.map(|(_, bytes)| bytes.len() as u64).sum();
        let slots = self.slots.iter().filter(|(_, by)| is_in(by));
        let slots = slots.map(|(slot, _)| size_of(slot.path().as_path()));
        contents + slots.sum::<u64>()
    }
}

/// Tells whether an operation is one of a group.
fn has(group: &[&Row], row: &Row) -> bool {
    let mut ids = group.iter().map(|it| it.operation.id);
    ids.any(|id| id == row.operation.id)
}

/// Tells whether a group keeps what an older operation on the same target is told as a change of.
fn is_kept_for(older: &Row, group: &[&Row]) -> bool {
    let newer = group
        .iter()
        .filter(|row| row.operation.lsn > older.operation.lsn);
    let mut targets = newer.flat_map(|row| &row.targets);
    targets.any(|newer| {
        let mut older = older.targets.iter();
        older.any(|it| it.standing.target.overlap(&newer.standing.target).is_some())
    })
}

/// What may go, by the id of its group.
type Candidates<'s> = BTreeMap<OperationId, (Candidate, Vec<&'s Row>)>;

impl State {
    /// Leaves out of what is chosen to go what an older operation that stays may need.
    fn without_needed(
        &self,
        mut chosen: Vec<(OperationId, ExpiryReason)>,
        candidates: &Candidates<'_>,
    ) -> Vec<(OperationId, ExpiryReason)> {
        let mut staying: Vec<&Row> = self.needing();
        staying.retain(|it| {
            let mut groups = chosen.iter().filter_map(|(id, _)| candidates.get(id));
            !groups.any(|(_, group)| has(group, it))
        });
        // What stays for the sake of an older one may need something itself.
        loop {
            let is_kept = |(id, _): &(OperationId, ExpiryReason)| {
                let group = candidates.get(id).map(|(_, group)| group);
                group.is_some_and(|group| staying.iter().any(|it| is_kept_for(it, group)))
            };
            let (kept, rest): (Vec<_>, Vec<_>) = chosen.into_iter().partition(is_kept);
            chosen = rest;
            if kept.is_empty() {
                break;
            }
            let groups: Vec<&Vec<&Row>> = kept
                .iter()
                .filter_map(|(id, _)| candidates.get(id).map(|(_, group)| group))
                .collect();
            let needing = self.needing().into_iter();
            staying.extend(needing.filter(|it| groups.iter().any(|group| has(group, it))));
        }
        chosen
    }

    /// Finds the operations that have something told as a change of what is not in the store.
    fn needing(&self) -> Vec<&Row> {
        let is_outside =
            |digest: &Digest| matches!(self.content(digest), Err(ContentsError::Outside { .. }));
        let needing = self.references.iter().filter(|(_, it)| is_outside(it));
        let ids: BTreeSet<OperationId> = needing.map(|(by, _)| *by).collect();
        let rows = ids.iter().filter_map(|id| self.operations.get(id));
        let rows = rows.map(|row| &**row);
        rows.filter(|row| row.operation.retained).collect()
    }
}

/// Makes one event for each rule that let operations go.
fn events(expired: &[(OperationId, ExpiryReason)]) -> Vec<Event> {
    let rules = [
        ExpiryReason::TooOld,
        ExpiryReason::TooManyVersions,
        ExpiryReason::OverCap,
    ];
    let event = |rule: ExpiryReason| {
        let ids = expired.iter().filter(|(_, reason)| *reason == rule);
        let ids: Vec<OperationId> = ids.map(|(id, _)| *id).collect();
        let why = rule.as_str().to_owned();
        (!ids.is_empty()).then_some(Event::Expired { ids, why })
    };
    rules.into_iter().filter_map(event).collect()
}
