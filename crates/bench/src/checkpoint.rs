//! What a checkpoint of a megabyte of an agent's own state costs beyond the sync that it cannot do without.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use backout_engine::{Engine, MarkRequest, Settings};
use serde_json::{Value, json};

use crate::Failure;
use crate::durable::median;
use crate::report::Row;

const ROUNDS: usize = 40;
const STATE_BYTES: usize = 1_000_000;

/// How much more than its sync a checkpoint may cost.
const BEYOND: Duration = Duration::from_millis(2);

/// Takes checkpoints with a large and with a small state, and appends the same bytes to a file and syncs it, in turns.
pub(crate) fn measure(directory: &Path) -> Result<Vec<Row>, Failure> {
    let settings = Settings::new(directory.join("state"));
    let engine = Engine::open(settings, backout_drivers::local)?;
    let mut bare = File::create(directory.join("bare"))?;
    let request = MarkRequest::default();
    let (mut large, mut small, mut synced) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let state = state(round);
        let bytes = serde_json::to_vec(&state)?;
        let begun = Instant::now();
        bare.write_all(&bytes)?;
        bare.sync_data()?;
        synced.push(begun.elapsed());
        let begun = Instant::now();
        engine.mark_state(Some(format!("large-{round}").parse()?), state, &request)?;
        large.push(begun.elapsed());
        let begun = Instant::now();
        engine.mark_state(Some(format!("small-{round}").parse()?), json!({}), &request)?;
        small.push(begun.elapsed());
    }
    let [large, small, synced] = [large, small, synced].map(|mut times| median(&mut times));
    let beyond = large.saturating_sub(synced);
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    Ok(vec![Row {
        work: "a checkpoint of 1 MB of an agent's state".to_owned(),
        measured: format!(
            "{:.2} ms beyond its sync ({:.2} ms; the same bytes appended and synced: {:.2} ms; an empty state: {:.2} ms)",
            millis(beyond),
            millis(large),
            millis(synced),
            millis(small)
        ),
        promise: "<= 2 ms beyond its sync".to_owned(),
        kept: Some(beyond <= BEYOND),
    }])
}

/// A state such as an agent might have: many small things, another one each time.
fn state(round: usize) -> Value {
    let (mut things, mut bytes) = (Vec::new(), 0);
    while bytes < STATE_BYTES {
        let number = things.len();
        let text = format!("what was learned in round {round} about file {number}");
        let thing = json!({"path": format!("src/part_{number}.rs"), "seen": number, "notes": text});
        bytes += thing.to_string().len() + 1;
        things.push(thing);
    }
    Value::Array(things)
}
