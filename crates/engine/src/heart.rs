//! The heart: says again and again that this process is at work, where a store serves several machines.
//!
//! A process of another machine cannot be looked at. As long as the engine is open its heart beats, also while a command runs
//! for hours.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use backout_model::ports::{BEAT_MS, Store};

use crate::EngineError;

/// A thread that beats until it is dropped.
#[derive(Debug)]
pub(crate) struct Heart {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heart {
    /// Begins to beat, if somebody has to hear it.
    pub(crate) fn begin(store: &Arc<dyn Store>) -> Result<Option<Self>, EngineError> {
        if !store.serves_many_hosts() {
            return Ok(None);
        }
        store.beat()?;
        let (stop, stopped) = mpsc::sync_channel(1);
        let store = Arc::clone(store);
        let thread = thread::spawn(move || {
            let pause = Duration::from_millis(BEAT_MS);
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                // One that is missed is made good by the next.
                let _beaten = store.beat();
            }
        });
        Ok(Some(Self {
            stop: Some(stop),
            thread: Some(thread),
        }))
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends by itself; if it panicked, that was said.
            let _ended = thread.join();
        }
    }
}
