//! Sessions of the page, in memory: a one-time code opens one, its cookie is a secret, and all end with the server.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use backout_engine::Report;

use crate::tokens::random;

/// How long a code can be used.
pub(crate) const CODE_LIFE: Duration = Duration::from_mins(2);

/// How long a session lasts.
pub(crate) const SESSION_LIFE: Duration = Duration::from_hours(12);

/// More codes or sessions at a time push the oldest out.
const KEPT_MAX: usize = 64;

/// Codes that nobody used yet, and open sessions, by their digests.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    codes: Mutex<Vec<Kept>>,
    open: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    digest: blake3::Hash,
    until: Instant,
}

impl Sessions {
    /// Makes a code that opens one session.
    pub(crate) fn new_code(&self) -> Result<String, Report> {
        keep(&self.codes, CODE_LIFE)
    }

    /// Opens a session with a code, which is used up by that. None if it is not, or not any more, good.
    pub(crate) fn enter(&self, code: &str) -> Result<Option<String>, Report> {
        if !take(&self.codes, code) {
            return Ok(None);
        }
        keep(&self.open, SESSION_LIFE).map(Some)
    }

    /// Tells whether a cookie belongs to an open session.
    pub(crate) fn is_open(&self, secret: &str) -> bool {
        let digest = blake3::hash(secret.as_bytes());
        let open = living(&self.open);
        open.iter().any(|kept| kept.digest == digest)
    }

    /// Ends a session.
    pub(crate) fn leave(&self, secret: &str) {
        let _was_open = take(&self.open, secret);
    }
}

fn keep(list: &Mutex<Vec<Kept>>, life: Duration) -> Result<String, Report> {
    let secret = random()?;
    let mut list = living(list);
    if list.len() >= KEPT_MAX {
        list.remove(0);
    }
    list.push(Kept {
        digest: blake3::hash(secret.as_bytes()),
        until: Instant::now() + life,
    });
    Ok(secret)
}

fn take(list: &Mutex<Vec<Kept>>, secret: &str) -> bool {
    let digest = blake3::hash(secret.as_bytes());
    let mut list = living(list);
    let before = list.len();
    list.retain(|kept| kept.digest != digest);
    list.len() < before
}

/// Gives those whose time is not up.
fn living(list: &Mutex<Vec<Kept>>) -> MutexGuard<'_, Vec<Kept>> {
    let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    list.retain(|kept| kept.until > now);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_opens_one_session_and_no_second() {
        let sessions = Sessions::default();
        let code = sessions.new_code().unwrap();
        let secret = sessions.enter(&code).unwrap().unwrap();
        assert!(sessions.is_open(&secret));
        assert_eq!(sessions.enter(&code).unwrap(), None);
        assert!(!sessions.is_open(&code), "a code is no session");
        sessions.leave(&secret);
        assert!(!sessions.is_open(&secret));
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many() {
        let sessions = Sessions::default();
        let first = sessions.new_code().unwrap();
        for _ in 0..KEPT_MAX {
            sessions.new_code().unwrap();
        }
        assert_eq!(sessions.enter(&first).unwrap(), None);
    }
}
