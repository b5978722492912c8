//! A second look after a service said yes: did it do what it was told? It is given a short while for that.
//!
//! Only what is clearly as it was right before counts as not done. Who does not answer, or shows something else, says nothing.

use std::time::{Duration, Instant};

use backout_model::compensation::CallTemplate;

use super::client::pause;
use super::error::HttpError;
use super::look::{SETTLE_PAUSE_MS, is_as_sent, see, stopped};
use super::recipe::{Answered, Seen};
use super::send::Ready;

/// How long a service may take to show what it has said yes to.
pub(super) const SETTLE_MS_MAX: u64 = 2_000;

impl Ready {
    /// Tells whether what an inverse was to take away is still there as it was, after a short while too.
    pub(super) fn stays(
        &self,
        inverse: &CallTemplate,
        answered: &Answered,
    ) -> Result<bool, HttpError> {
        let was = self.found.as_ref().or_else(|| answered.made());
        // Of another call the thing may show nothing: a refund is a thing of its own.
        let is_shown = inverse.method == "DELETE" || self.is_at_look(inverse, answered);
        let Some(was) = was.filter(|was| was.is_there && is_shown) else {
            return Ok(false);
        };
        let is_as_it_was = |now: &Seen| now.is_like(was);
        let until = until();
        loop {
            let stays = match self.thing(answered) {
                Ok(Some((now, _))) if is_as_it_was(&now) => true,
                Ok(_) => return Ok(false),
                Err(error @ HttpError::Stopped { .. }) => return Err(error),
                Err(_) => false,
            };
            if Instant::now() >= until {
                return Ok(stays);
            }
            pause(SETTLE_PAUSE_MS, &self.watch).map_err(|_| stopped(self))?;
        }
    }

    /// Waits until a thing that is put back is not as it was before that.
    pub(super) fn wait_until_put(&self, answered: &mut Answered) -> Result<(), HttpError> {
        let before = self.call.before.as_ref().filter(|_| self.call.is_raw);
        let Some(before) = before else {
            return Ok(());
        };
        let until = until();
        loop {
            let stays = match &answered.after {
                Some(now) if is_as_sent(&self.call, self.body.as_deref(), now) => return Ok(()),
                Some(now) if !now.is_like(before) => return Ok(()),
                Some(_) => true,
                None => false,
            };
            if Instant::now() >= until {
                let (call, limit_ms) = (self.name(), SETTLE_MS_MAX);
                return if stays {
                    Err(HttpError::Unheeded { call, limit_ms })
                } else {
                    Ok(())
                };
            }
            pause(SETTLE_PAUSE_MS, &self.watch).map_err(|_| stopped(self))?;
            answered.after = see(self).ok().map(|(seen, _)| seen);
        }
    }
}

fn until() -> Instant {
    Instant::now() + Duration::from_millis(SETTLE_MS_MAX)
}
