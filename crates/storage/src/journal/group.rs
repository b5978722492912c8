//! Appends of several threads in one transaction: one sync for all of them.
//!
//! - The first thread leads. Whoever comes while it waits for the database leaves a copy of its entry and waits. Once the leader has its
//!   transaction it takes what was left there, each entry in a savepoint of its own, and commits once. Then the next one that waits leads.
//! - Nobody goes on before the commit of its own entry is durable. What does not fit (a duplicate id) is taken out by itself and told to
//!   whose it was; the others stay.
//! - If the commit fails, nobody's entry is there: each of the others tries by itself and finds its own answer.
//! - A thread alone copies nothing and waits for nobody.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backout_model::ports::{APPEND_BOUNDS_US, AppendTimes, Durability, Entry};
use backout_model::{Lsn, Timestamp};
use rusqlite::Transaction;

use crate::{StorageError, Store};

/// More than this many entries do not share a transaction: the first of them waits for the last.
const GROUP_MAX: usize = 128;

/// Who appends durably at this moment, and how long that took so far.
#[derive(Debug, Default)]
pub(crate) struct Group {
    queue: Mutex<Queue>,
    times: Mutex<AppendTimes>,
}

#[derive(Debug, Default)]
struct Queue {
    is_led: bool,
    waiting: Vec<Arc<Waiting>>,
}

/// An entry that somebody else may append.
#[derive(Debug)]
struct Waiting {
    entry: Entry,
    now: Timestamp,
    said: Mutex<Option<Said>>,
    wakes: Condvar,
}

/// What became of an entry.
#[derive(Debug)]
enum Said {
    /// Its answer.
    Done(Result<Lsn, StorageError>),
    /// Nobody appended it, and whose it is leads now.
    Lead,
    /// Nobody appended it, since the transaction failed.
    Again,
}

impl Waiting {
    fn say(&self, said: Said) {
        *held(&self.said) = Some(said);
        self.wakes.notify_one();
    }

    fn wait(&self) -> Said {
        let mut said = held(&self.said);
        loop {
            if let Some(said) = said.take() {
                return said;
            }
            said = self
                .wakes
                .wait(said)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Hands the lead on when it goes, also if the leader panicked: then those whose entries it had taken try by themselves.
struct Lead<'s> {
    group: &'s Group,
    taken: Vec<Arc<Waiting>>,
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        for waiting in self.taken.drain(..) {
            waiting.say(Said::Again);
        }
        let mut queue = held(&self.group.queue);
        if queue.waiting.is_empty() {
            queue.is_led = false;
        } else {
            queue.waiting.remove(0).say(Said::Lead);
        }
    }
}

impl Store {
    /// Appends so that it survives a loss of power, together with what other threads append at the same time.
    pub(super) fn append_together(
        &self,
        entry: &Entry,
        now: Timestamp,
    ) -> Result<Lsn, StorageError> {
        let began = Instant::now();
        let said = self.append_or_lead(entry, now);
        self.group.note(began.elapsed());
        said
    }

    fn append_or_lead(&self, entry: &Entry, now: Timestamp) -> Result<Lsn, StorageError> {
        let waiting = {
            let mut queue = held(&self.group.queue);
            if queue.is_led {
                let waiting = Arc::new(Waiting {
                    entry: entry.clone(),
                    now,
                    said: Mutex::new(None),
                    wakes: Condvar::new(),
                });
                queue.waiting.push(Arc::clone(&waiting));
                Some(waiting)
            } else {
                queue.is_led = true;
                None
            }
        };
        match waiting.map(|waiting| waiting.wait()) {
            Some(Said::Done(answer)) => answer,
            Some(Said::Again) => self.append_alone(entry, now),
            Some(Said::Lead) | None => self.lead(entry, now),
        }
    }

    fn append_alone(&self, entry: &Entry, now: Timestamp) -> Result<Lsn, StorageError> {
        let answer = self.write(Durability::Power, |transaction| {
            self.append_in(transaction, entry, now)
        });
        self.group.note_commit(answer.is_ok());
        answer
    }

    fn lead(&self, entry: &Entry, now: Timestamp) -> Result<Lsn, StorageError> {
        let mut lead = Lead {
            group: &self.group,
            taken: Vec::new(),
        };
        let done = self.write(Durability::Power, |transaction| {
            lead.taken = self.group.take();
            if lead.taken.is_empty() {
                let answer = self.append_in(transaction, entry, now);
                return answer.map(|own| (Ok(own), Vec::new()));
            }
            let own = self.append_within(transaction, entry, now)?;
            let mut others = Vec::with_capacity(lead.taken.len());
            for waiting in &lead.taken {
                others.push(self.append_within(transaction, &waiting.entry, waiting.now)?);
            }
            Ok((own, others))
        });
        self.group.note_commit(done.is_ok());
        let (own, others) = done?;
        for (waiting, answer) in lead.taken.drain(..).zip(others) {
            waiting.say(Said::Done(answer));
        }
        own
    }

    /// Appends one of several: the inner error is its own, and leaves nothing of it.
    fn append_within(
        &self,
        transaction: &Transaction<'_>,
        entry: &Entry,
        now: Timestamp,
    ) -> Result<Result<Lsn, StorageError>, StorageError> {
        let execute = |sql: &str| {
            let done = transaction
                .prepare_cached(sql)
                .and_then(|mut it| it.execute([]));
            done.map(|_| ()).map_err(|error| self.named(error))
        };
        execute("SAVEPOINT one")?;
        let answer = self.append_in(transaction, entry, now);
        if answer.is_err() {
            execute("ROLLBACK TO one")?;
        }
        execute("RELEASE one")?;
        Ok(answer)
    }

    /// Tells how appends went that survive a loss of power.
    pub fn append_times(&self) -> AppendTimes {
        held(&self.group.times).clone()
    }

    #[cfg(test)]
    pub(super) fn waiting_appends(&self) -> usize {
        held(&self.group.queue).waiting.len()
    }
}

impl Group {
    /// Takes what waits, oldest first.
    fn take(&self) -> Vec<Arc<Waiting>> {
        let mut queue = held(&self.queue);
        let most = queue.waiting.len().min(GROUP_MAX);
        queue.waiting.drain(..most).collect()
    }

    fn note(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mut times = held(&self.times);
        times.entries += 1;
        times.total_us = times.total_us.saturating_add(micros);
        let bucket = APPEND_BOUNDS_US.iter().position(|bound| micros <= *bound);
        if let Some(count) = bucket.and_then(|at| times.buckets.get_mut(at)) {
            *count += 1;
        }
    }

    fn note_commit(&self, is_done: bool) {
        held(&self.times).commits += u64::from(is_done);
    }
}

/// Locks what is never left half-changed.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
