//! Letting go: images past their retention, and everything on the disk that nobody needs any more.
//!
//! In this order, each step in short transactions, each repeatable, so that a killed `gc` leaves only what the
//! next one removes:
//!
//! 1. *expire*: finished operations that `model::select_expired` chooses lose their images. Recorded, durably.
//! 2. *sweep*: contents that no operation refers to; chunks that no content needs; packs without chunks, and
//!    packs that are mostly dead are written anew.
//! 3. *tidy*: kept inodes that no row knows, staging directories and leases of processes that died.
//!
//! What an uncommitted operation needs is never touched, nor what a living process has put aside for an operation
//! that is not armed yet: its lease says so. A candidate that shares a target with a living lease waits.
//!
//! Not here: which operations go (`model::retention`), cutting off audit records (`journal`).

mod audit;
mod expire;
mod outside;
mod packs;
mod protect;
mod remove;
mod sweep;
mod tidy;
mod weigh;

pub(crate) use tidy::operation_of;

use std::fs::File;
use std::io;
use std::time::Duration;

use backout_model::ports::Durability;
use backout_model::{Retention, Timestamp};

use crate::contents::pack;
use crate::state_dir::DEPOT;
use crate::{GcReport, GcRequest, StorageError, Store, StoredBytes, reserve};

/// A pack is written anew when less than this part of it is needed,
const LIVE_PERCENT_MIN: u64 = 50;
/// or less than this when the store is over its cap.
const LIVE_PERCENT_MIN_OVER_CAP: u64 = 90;

/// When room must be made, it is made down to this part of the cap, so that not every write has to.
const ROOM_PERCENT: u64 = 90;

/// So many times the cap may turn out to need more than was estimated.
const ROUNDS_MAX: usize = 16;

/// How long one `gc` waits for another.
const TURN_WAIT: Duration = Duration::from_mins(10);

/// So many pages are given back to the file system in one transaction.
const VACUUM_PAGES: u32 = 1000;

/// What progress is told: the steps, and how many there are.
const STEPS: u64 = 6;

impl Store {
    /// Lets go of what is past its retention and removes what nobody needs. `progress` is told how many of how
    /// many steps are done. One process at a time does this; another one waits.
    pub fn gc(
        &self,
        request: &GcRequest,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<GcReport, StorageError> {
        if request.is_dry_run {
            return self.gc_dry_run(request);
        }
        let _turn = self.gc_turn()?;
        reserve::give_up(self.directory());
        let mut report = GcReport {
            before: self.stored_bytes()?,
            ..GcReport::default()
        };
        progress(0, STEPS);
        self.measure_all_slots()?;
        progress(1, STEPS);
        self.let_go(
            &request.retention,
            request.now,
            LIVE_PERCENT_MIN,
            &mut report,
            &mut |step| {
                progress(1 + step, STEPS);
            },
        )?;
        self.tidy_slots(&mut report)?;
        self.tidy_staging(&mut report)?;
        // Last: until here a dead lease tells whose leftovers these are.
        self.drop_dead_leases()?;
        progress(5, STEPS);
        // The records of this very collection may be past a short window, too.
        let now = request.now.max(self.clock.now());
        report.audit_records = self.audit_records(&request.retention, now)?;
        report.after = self.write(Durability::Process, |tx| self.recount_stored(tx))?;
        self.vacuum(0)?;
        reserve::keep(self.directory());
        progress(STEPS, STEPS);
        Ok(report)
    }

    /// Makes sure that the store is under its cap also when the next write has added so many bytes to it. Costs next to
    /// nothing if it is. If images that may not go fill it, the write must not happen: [`StorageError::OverCap`].
    pub fn make_room(
        &self,
        retention: &Retention,
        now: Timestamp,
        adding: u64,
    ) -> Result<(), StorageError> {
        let cap = retention.store_bytes_max;
        let most = cap.saturating_sub(adding);
        let fits = |stored: u64| adding <= cap && stored <= most;
        self.measure_new_slots()?;
        if fits(self.stored_bytes()?.total) {
            return Ok(());
        }
        let _turn = self.gc_turn()?;
        // Whoever had the turn before may have made room already.
        if !fits(self.stored_bytes()?.total) {
            let room = Retention {
                store_bytes_max: most.min(cap / 100 * ROOM_PERCENT),
                ..retention.clone()
            };
            let mut report = GcReport::default();
            self.let_go(
                &room,
                now,
                LIVE_PERCENT_MIN_OVER_CAP,
                &mut report,
                &mut |_| {},
            )?;
            // The rows of kept inodes are gone; without this the disk would still be full.
            self.tidy_slots(&mut report)?;
        }
        let stored = self.stored_bytes()?.total;
        if fits(stored) {
            Ok(())
        } else {
            Err(StorageError::OverCap {
                stored,
                adding,
                cap,
            })
        }
    }

    /// Expires and sweeps. What an operation takes is only an estimate where versions depend on each other, so
    /// this is done again while the store is over its cap and something can go.
    fn let_go(
        &self,
        retention: &Retention,
        now: Timestamp,
        live_percent_min: u64,
        report: &mut GcReport,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), StorageError> {
        for _ in 0..ROUNDS_MAX {
            let before = report.expired.len();
            self.expire(retention, now, report)?;
            progress(1);
            self.sweep_contents(report)?;
            progress(2);
            self.sweep_packs(live_percent_min, report)?;
            progress(3);
            let is_over = self.stored_bytes()?.total > retention.store_bytes_max;
            if !is_over || report.expired.len() == before {
                break;
            }
        }
        Ok(())
    }

    fn gc_dry_run(&self, request: &GcRequest) -> Result<GcReport, StorageError> {
        // What was kept since the last write is weighed now.
        self.measure_new_slots()?;
        let before = self.stored_bytes()?;
        let plan = self.read(|tx| self.plan_expiry(tx, &request.retention, request.now))?;
        let (slots, staging) = self.strays()?;
        Ok(GcReport {
            is_dry_run: true,
            after: StoredBytes {
                total: before.total.saturating_sub(plan.bytes()),
                ..before
            },
            before,
            expired: plan.expired(),
            others: plan.others,
            contents: self.read(|transaction| self.count_dead_contents(transaction))?,
            slots: slots.len() as u64,
            staging: staging.len() as u64,
            audit_records: self.audit_records(&request.retention, request.now)?,
            ..GcReport::default()
        })
    }

    /// Waits until no other process collects. Dropping the file ends the turn.
    fn gc_turn(&self) -> Result<File, StorageError> {
        let path = self.directory.path().join(DEPOT);
        let turn = pack::lock_within(&path, TURN_WAIT)?;
        turn.ok_or_else(|| pack::failed(&path, "lock", io::ErrorKind::TimedOut.into()))
    }

    /// Gives free pages of the database back if there are more than `pages_min`, a few at a time.
    pub(crate) fn vacuum(&self, pages_min: i64) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        let free = |transaction: &rusqlite::Transaction<'_>| {
            transaction
                .query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0))
                .map_err(named)
        };
        let mut left = self.read(free)?;
        while left > pages_min {
            let now = self.write(Durability::Process, |transaction| {
                let sql = format!("PRAGMA incremental_vacuum({VACUUM_PAGES})");
                let mut vacuum = transaction.prepare(&sql).map_err(named)?;
                let mut pages = vacuum.query([]).map_err(named)?;
                while pages.next().map_err(named)?.is_some() {}
                free(transaction)
            })?;
            if now >= left {
                break;
            }
            left = now;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
