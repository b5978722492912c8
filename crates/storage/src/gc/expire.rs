//! Choosing the operations whose images go, and letting them go with a record of it.
//!
//! An operation, the undos that took its targets back and the redos that brought them again are one: a redo takes the undos'
//! recipes, and what takes the redo back speaks of the operation. They go together, when the youngest of them is due.
//!
//! The clock may have gone back. An operation is at least as young as everything that was armed before it, whatever the
//! clock said.

use std::collections::{HashMap, HashSet};

use backout_crashpoint::crash_point;
use backout_model::ports::{Durability, Entry};
use backout_model::{
    Candidate, Event, ExpiryReason, Key, OperationId, Reach, Retention, Status, Target, Timestamp,
    select_expired,
};
use rusqlite::{OptionalExtension as _, Transaction};

use super::protect::Leases;
use crate::journal::{id_from_sql, key_from_sql};
use crate::{GcReport, OfOtherDriver, StorageError, Store};

/// So many operations expire in one transaction, so that others get their turn.
const EXPIRED_AT_ONCE_MAX: usize = 500;

/// A finished operation, as it was when the plan was made.
#[derive(Debug, Clone, Copy)]
struct Finished {
    id: i64,
    status: Status,
    /// When it was finished, as the clock said.
    clock_at: i64,
    /// The same, but never before what was armed earlier.
    at: i64,
    lsn: i64,
    /// Whether taking it back failed, and somebody still has to look at that.
    waits: bool,
}

/// Operations that go together.
#[derive(Debug)]
pub(super) struct Group {
    members: Vec<Finished>,
    /// The place of its last operation in the journal.
    lsn: i64,
    /// Its id stands for that place: the operations of a task finish at the same moment, and of those the one
    /// that was armed first must go first.
    pub(super) candidate: Candidate,
    reason: Option<ExpiryReason>,
}

impl Group {
    /// Lists its operations.
    pub(super) fn ids(&self) -> impl Iterator<Item = i64> {
        self.members.iter().map(|member| member.id)
    }

    /// Lists its operations with their places in the journal.
    pub(super) fn places(&self) -> Vec<(i64, i64)> {
        let places = self.members.iter().map(|member| (member.id, member.lsn));
        places.collect()
    }

    /// Tells whether it is chosen to go.
    pub(super) const fn goes(&self) -> bool {
        self.reason.is_some()
    }

    /// Lets it stay.
    pub(super) const fn stays(&mut self) {
        self.reason = None;
    }

    /// Orders groups as they go: the least goes first.
    pub(super) fn place(&self) -> (Timestamp, i64) {
        (self.candidate.at, self.lsn)
    }
}

/// What would expire now.
#[derive(Debug)]
pub(super) struct Plan {
    groups: Vec<Group>,
    /// What stays although it is due: nobody here understands what it keeps.
    pub(super) others: Vec<OfOtherDriver>,
}

impl Plan {
    /// Lists the operations that go, oldest first.
    pub(super) fn expired(&self) -> Vec<(OperationId, ExpiryReason)> {
        let each = |group: &Group| {
            let reason = group.reason?;
            Some(
                group
                    .members
                    .iter()
                    .map(move |member| (id_from_sql(member.id), reason))
                    .collect(),
            )
        };
        self.groups
            .iter()
            .filter_map(each)
            .flat_map(|members: Vec<_>| members)
            .collect()
    }

    /// Estimates how many bytes go with them.
    pub(super) fn bytes(&self) -> u64 {
        let chosen = self.groups.iter().filter(|group| group.reason.is_some());
        chosen.map(|group| group.candidate.bytes).sum()
    }
}

impl Store {
    /// Lets the images of operations go that are past their retention.
    pub(super) fn expire(
        &self,
        retention: &Retention,
        now: Timestamp,
        report: &mut GcReport,
    ) -> Result<(), StorageError> {
        let plan = self.read(|transaction| self.plan_expiry(transaction, retention, now))?;
        let chosen: Vec<&Group> = plan.groups.iter().filter(|g| g.reason.is_some()).collect();
        for groups in chosen.chunks(EXPIRED_AT_ONCE_MAX) {
            let expired = self.write(Durability::Power, |transaction| {
                let leases = self.live_leases(transaction)?;
                let mut expired = Vec::new();
                for group in groups {
                    if let Some(reason) = group.reason
                        && self.is_as_planned(transaction, group, &leases)?
                    {
                        expired.extend(group.members.iter().map(|m| (id_from_sql(m.id), reason)));
                    }
                }
                if !expired.is_empty() {
                    let entry = Entry::of(events(&expired));
                    self.append_in(transaction, &entry, self.clock.now())?;
                }
                Ok(expired)
            })?;
            report.expired.extend(expired);
            crash_point("gc.expired");
        }
        report.others = plan.others;
        Ok(())
    }

    /// Chooses what goes, in the moment that the transaction sees.
    pub(super) fn plan_expiry(
        &self,
        transaction: &Transaction<'_>,
        retention: &Retention,
        now: Timestamp,
    ) -> Result<Plan, StorageError> {
        let leases = self.live_leases(transaction)?;
        let mut groups = self.groups(transaction, &leases)?;
        self.weigh(transaction, &mut groups)?;
        let candidates: Vec<Candidate> = groups.iter().map(|g| g.candidate.clone()).collect();
        let stored: i64 = transaction
            .query_row(
                "SELECT coalesce(sum(value), 0) FROM meta WHERE key LIKE 'stored-bytes-%'",
                [],
                |row| row.get(0),
            )
            .map_err(|error| self.named(error))?;
        let stored = u64::try_from(stored).unwrap_or(0);
        let chosen: HashMap<OperationId, ExpiryReason> =
            select_expired(retention, &candidates, stored, now)
                .into_iter()
                .collect();
        let mut others = Vec::new();
        for group in &mut groups {
            group.reason = chosen.get(&group.candidate.id).copied();
            if group.reason.is_some() {
                let known = others.len();
                for member in &group.members {
                    others.extend(self.other_driver_of(transaction, id_from_sql(member.id))?);
                }
                if others.len() > known {
                    group.reason = None;
                }
            }
        }
        groups.sort_by_key(Group::place);
        self.keep_what_older_need(transaction, &mut groups)?;
        Ok(Plan { groups, others })
    }

    /// Puts the finished operations together that go together. Those that may not go are not among them.
    fn groups(
        &self,
        transaction: &Transaction<'_>,
        leases: &Leases,
    ) -> Result<Vec<Group>, StorageError> {
        let all = self.retained(transaction)?;
        let ids: HashSet<i64> = all.iter().map(|operation| operation.id).collect();
        let mut sets = Sets::default();
        for (operation, holder) in self.holders(transaction)? {
            if ids.contains(&operation) && ids.contains(&holder) {
                sets.join(operation, holder);
            }
        }
        let mut grouped: HashMap<i64, Vec<Finished>> = HashMap::new();
        for operation in all {
            grouped
                .entry(sets.root(operation.id))
                .or_default()
                .push(operation);
        }
        let mut groups = Vec::new();
        for mut members in grouped.into_values() {
            members.sort_by_key(|member| (member.at, member.lsn));
            if self.is_protected(transaction, &members, leases)? {
                continue;
            }
            let Some(last) = members.last() else { continue };
            let mut keys: Vec<Key> = Vec::new();
            for member in &members {
                let targets = self.gc_targets(transaction, member.id)?;
                keys.extend(targets.iter().map(|target| target.key().clone()));
            }
            keys.sort();
            keys.dedup();
            let (lsn, at) = (last.lsn, Timestamp(last.at));
            let candidate = Candidate {
                id: OperationId::from_bits(u64::MAX - lsn.cast_unsigned()),
                at,
                keys,
                bytes: 0,
            };
            groups.push(Group {
                members,
                lsn,
                candidate,
                reason: None,
            });
        }
        Ok(groups)
    }

    fn is_protected(
        &self,
        transaction: &Transaction<'_>,
        members: &[Finished],
        leases: &Leases,
    ) -> Result<bool, StorageError> {
        for member in members {
            if member.status.is_uncommitted()
                || member.waits
                || leases.operations.contains(&member.id)
                || (!leases.is_empty() && leases.touch(&self.gc_targets(transaction, member.id)?))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Tells whether nothing happened to a group since the plan was made. Whatever happens to an operation changes the
    /// moment it finished.
    fn is_as_planned(
        &self,
        transaction: &Transaction<'_>,
        group: &Group,
        leases: &Leases,
    ) -> Result<bool, StorageError> {
        let mut statement = transaction
            .prepare_cached("SELECT status, finished FROM operation WHERE id = ?1 AND retained = 1")
            .map_err(|error| self.named(error))?;
        for member in &group.members {
            let now = statement
                .query_row([member.id], |row| {
                    Ok((row.get::<_, String>(0)?, row.get(1)?))
                })
                .optional()
                .map_err(|error| self.named(error))?;
            if now != Some((member.status.as_str().to_owned(), member.clock_at)) {
                return Ok(false);
            }
        }
        Ok(!self.is_protected(transaction, &group.members, leases)?)
    }

    fn retained(&self, transaction: &Transaction<'_>) -> Result<Vec<Finished>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare(
                "SELECT id, status, finished, lsn, at, retained, undo_failed IS NOT NULL
                 FROM operation ORDER BY lsn",
            )
            .map_err(named)?;
        let mut rows = statement.query([]).map_err(named)?;
        let mut latest = i64::MIN;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(named)? {
            let status: String = row.get(1).map_err(named)?;
            // A word that nobody knows is not finished: it stays.
            let known = Status::ALL
                .into_iter()
                .find(|known| known.as_str() == status);
            let finished: i64 = row.get(2).map_err(named)?;
            latest = latest.max(row.get(4).map_err(named)?);
            // What a person still has to look at is kept whatever its age.
            let waits: bool = row.get(6).map_err(named)?;
            if row.get(5).map_err(named)? {
                all.push(Finished {
                    id: row.get(0).map_err(named)?,
                    status: known.unwrap_or(Status::InDoubt),
                    waits,
                    clock_at: finished,
                    at: finished.max(latest),
                    lsn: row.get(3).map_err(named)?,
                });
            }
        }
        Ok(all)
    }

    /// Lists which operation's targets are taken back by which redo's recipe, or were by which undo.
    fn holders(&self, transaction: &Transaction<'_>) -> Result<Vec<(i64, i64)>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare(
                "SELECT operation, held_by FROM target WHERE held_by IS NOT NULL
                 UNION SELECT operation, undone_by FROM target WHERE undone_by IS NOT NULL",
            )
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(named)?;
        rows.map(|row| row.map_err(named)).collect()
    }

    pub(super) fn gc_targets(
        &self,
        transaction: &Transaction<'_>,
        operation: i64,
    ) -> Result<Vec<Target>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare_cached("SELECT path, reach FROM target WHERE operation = ?1")
            .map_err(named)?;
        let rows = statement
            .query_map([operation], |row| {
                Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, String>(1)?))
            })
            .map_err(named)?;
        let mut targets = Vec::new();
        for row in rows {
            let (key, reach) = row.map_err(named)?;
            let at = format!("a target of operation {}", id_from_sql(operation));
            let key = key_from_sql(&at, &key)?;
            let reach = if reach == "tree" {
                Reach::Tree
            } else {
                Reach::Node
            };
            targets.push(Target::new(key, reach));
        }
        Ok(targets)
    }
}

/// Makes one event for each rule that let operations go.
fn events(expired: &[(OperationId, ExpiryReason)]) -> Vec<Event> {
    [
        ExpiryReason::TooOld,
        ExpiryReason::TooManyVersions,
        ExpiryReason::OverCap,
    ]
    .into_iter()
    .filter_map(|reason| {
        let ids: Vec<OperationId> = expired
            .iter()
            .filter(|(_, v)| *v == reason)
            .map(|(id, _)| *id)
            .collect();
        (!ids.is_empty()).then(|| Event::Expired {
            ids,
            why: reason.as_str().to_owned(),
        })
    })
    .collect()
}

/// Sets of operations that belong together.
#[derive(Debug, Default)]
struct Sets {
    parent: HashMap<i64, i64>,
}

impl Sets {
    fn root(&self, mut of: i64) -> i64 {
        while let Some(parent) = self.parent.get(&of) {
            of = *parent;
        }
        of
    }

    fn join(&mut self, a: i64, b: i64) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.parent.insert(a, b);
        }
    }
}
