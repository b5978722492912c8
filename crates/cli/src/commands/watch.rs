//! `backout watch`

use std::path::PathBuf;
use std::time::Duration;

use backout_engine::{Command, DriftCommand, Engine, EngineError, Round, Watched, Watcher};
use backout_model::CallKey;
use clap::Args;

use super::drift::named;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::drift::news;

/// How often everything is looked at beside something else.
const ASIDE: Duration = Duration::from_mins(1);

/// Look for drift in the background, until Ctrl-C or SIGTERM.
///
/// Only what was recorded is looked at. Changes of files are heard of and told within a second or two; keys, rows and calls, and whatever
/// could not be heard of, are looked at on the interval. What is found is noted once and listed by `backout drift`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Only at or below these.
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,

    /// Look once at everything, tell what has drifted, and end: with 1 if anything has. For cron and CI.
    // It has the name of the option that names a call, and with it its type.
    #[arg(long, num_args = 0, default_missing_value = "look", help_heading = None)]
    once: Option<CallKey>,

    /// Look at everything at least so often.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "once")]
    interval: u64,
}

impl WatchArgs {
    /// Tells whether it looks once and ends.
    pub(crate) const fn is_once(&self) -> bool {
        self.once.is_some()
    }
}

/// Looks for drift.
pub(crate) fn cmd_watch(session: &mut Session, args: &WatchArgs) -> Result<(), Failure> {
    let engine = session.engine()?;
    let below = named(&engine, &args.targets)?;
    if args.is_once() {
        let command = Command::Drift(DriftCommand::Look { below });
        let reply = session.execute(&engine, command)?;
        session.show(&engine, &reply)?;
        return match &reply {
            backout_engine::Reply::Drift(report) if !report.open.is_empty() => {
                Err(Failure::Shown(1))
            }
            _ => Ok(()),
        };
    }
    let interval = Duration::from_secs(args.interval);
    match watch(session, &engine, Watcher::new(&engine, below, interval)) {
        // It was asked to end, and it has.
        Err(error) if error.is_stop() => Ok(()),
        ended => Ok(ended?),
    }
}

fn watch(
    session: &mut Session,
    engine: &Engine,
    mut watcher: Watcher<'_>,
) -> Result<(), EngineError> {
    let mut round = watcher.round()?;
    let mut blind = None;
    tell_began(session, &round);
    loop {
        news(session, &round, engine.now());
        if blind != round.blind {
            blind.clone_from(&round.blind);
            if let Some(why) = &blind {
                session.ui.note(&format!(
                    "some changes are only seen once in an interval: {why}"
                ));
            }
        }
        let bar = session.bar();
        let is_stopped = || backout_model::ports::Progress::is_stopped(bar);
        round = match watcher.wait(&is_stopped)? {
            Watched::Stop => return Ok(()),
            Watched::All => watcher.round()?,
            Watched::Places(places) => watcher.look_at(&places)?,
        };
    }
}

/// Looks for drift beside something else, for as long as the process lives.
pub(super) fn watch_aside(engine: Engine) {
    std::thread::spawn(move || {
        let mut watcher = Watcher::new(&engine, Vec::new(), ASIDE);
        let mut looked = watcher.round();
        loop {
            // Nobody is there to be told; the next look may work.
            if looked.is_err() {
                std::thread::sleep(ASIDE);
            }
            looked = match watcher.wait(&|| false) {
                Ok(Watched::Stop) => return,
                Ok(Watched::All) => watcher.round(),
                Ok(Watched::Places(places)) => watcher.look_at(&places),
                Err(error) => Err(error),
            };
        }
    });
}

fn tell_began(session: &mut Session, round: &Round) {
    if session.ui.is_json() {
        let began = serde_json::json!({
            "watch": "began",
            "targets": round.targets,
            "directories": round.directories,
            "processes": round.sees_processes,
        });
        session.ui.print_line(&began.to_string());
        return;
    }
    session.ui.note(&format!(
        "watching {} recorded targets in {} directories",
        round.targets, round.directories
    ));
}
