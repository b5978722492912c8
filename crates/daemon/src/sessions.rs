//! Sessions of the page, in memory: a one-time code opens one, which is known by a secret, and all end with the server.
//!
//! The secret is a cookie that no script can read. Where the browser keeps no cookies, the page has it in its own memory and sends it as a
//! bearer. One of these is never taken for the other.

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
    by: By,
}

/// How a page says which session it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// By a cookie, which the browser sends by itself.
    Cookie,
    /// By what it remembers, as a bearer.
    Memory,
}

impl Sessions {
    /// Makes a code that opens one session.
    pub(crate) fn new_code(&self) -> Result<String, Report> {
        keep(&self.codes, CODE_LIFE, By::Memory)
    }

    /// Opens a session with a code, which is used up by that. None if it is not, or not any more, good.
    pub(crate) fn enter(&self, code: &str, by: By) -> Result<Option<String>, Report> {
        if !take(&self.codes, code) {
            return Ok(None);
        }
        keep(&self.open, SESSION_LIFE, by).map(Some)
    }

    /// Tells whether a secret belongs to an open session, and came as it should.
    pub(crate) fn is_open(&self, secret: &str, by: By) -> bool {
        let digest = blake3::hash(secret.as_bytes());
        let open = living(&self.open);
        open.iter()
            .any(|kept| kept.digest == digest && kept.by == by)
    }

    /// Ends a session.
    pub(crate) fn leave(&self, secret: &str) {
        let _was_open = take(&self.open, secret);
    }
}

fn keep(list: &Mutex<Vec<Kept>>, life: Duration, by: By) -> Result<String, Report> {
    let secret = random()?;
    let mut list = living(list);
    if list.len() >= KEPT_MAX {
        list.remove(0);
    }
    list.push(Kept {
        digest: blake3::hash(secret.as_bytes()),
        until: Instant::now() + life,
        by,
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
        let secret = sessions.enter(&code, By::Cookie).unwrap().unwrap();
        assert!(sessions.is_open(&secret, By::Cookie));
        assert!(
            !sessions.is_open(&secret, By::Memory),
            "a cookie is no bearer"
        );
        assert_eq!(sessions.enter(&code, By::Cookie).unwrap(), None);
        assert_eq!(sessions.enter(&code, By::Memory).unwrap(), None);
        let is_open = |secret: &str| sessions.is_open(secret, By::Memory);
        assert!(!is_open(&code), "a code is no session");
        sessions.leave(&secret);
        assert!(!sessions.is_open(&secret, By::Cookie));
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many() {
        let sessions = Sessions::default();
        let first = sessions.new_code().unwrap();
        for _ in 0..KEPT_MAX {
            sessions.new_code().unwrap();
        }
        assert_eq!(sessions.enter(&first, By::Cookie).unwrap(), None);
    }
}
