//! `[[watch]]`: after a write, reload what uses it and see whether it still works.
//!
//! Whatever takes the write back (a failed watch, an undo, a recovery) has the same things reload again.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use backout_model::ports::{AppliedChange, Gate, Reason, Ruling, StagedChange};
use backout_model::{Target, Verb};

use crate::http;
use crate::paths::Paths;
use crate::program::{Rest, run};
use crate::rules::Rules;
use crate::rules::kinds::{Probe, Program, Watch};

/// Watches writes as every `backout.toml` wants it.
#[derive(Debug)]
pub struct Watches {
    paths: Arc<Paths>,
}

/// The variable that tells how many watches this process is within.
const DEPTH: &str = "BACKOUT_WATCH_DEPTH";

/// Within so many watches nothing is written that is watched: it would wait for itself.
const DEPTH_MAX: u32 = 1;

/// How long nobody asks whether somebody wants to stop.
const SLICE: Duration = Duration::from_millis(50);

fn depth() -> u32 {
    let text = std::env::var(DEPTH).unwrap_or_default();
    text.parse().unwrap_or(0)
}

/// A watch, and the rules that it stands in.
type Meant = (Arc<Rules>, usize);

impl Watches {
    /// Takes the gate that reads the rules.
    pub const fn new(paths: Arc<Paths>) -> Self {
        Self { paths }
    }

    /// Lists the watches that are for a write of these targets, each once.
    fn meant(&self, verb: Option<Verb>, targets: &[Target]) -> Vec<Meant> {
        let mut meant: Vec<Meant> = Vec::new();
        for path in targets.iter().filter_map(Target::file) {
            for rules in self.paths.rules_for(path.as_path()) {
                for (number, watch) in rules.watches.iter().enumerate() {
                    let is_verb = verb.is_none_or(|verb| watch.scope.fits_verb(verb));
                    let is_known = meant
                        .iter()
                        .any(|(known, at)| known.file == rules.file && *at == number);
                    if is_verb && !is_known && watch.scope.fits_path(path.as_path()) {
                        meant.push((Arc::clone(&rules), number));
                    }
                }
            }
        }
        meant
    }
}

impl Gate for Watches {
    fn look(&self, change: &StagedChange<'_>) -> Ruling {
        if depth() < DEPTH_MAX || !self.watches(change.verb, change.targets) {
            return Ruling::Allow;
        }
        let found = "a watch writes what is watched, and would go on for ever";
        let reason = Reason::new("watches within watches", found)
            .mended_by("let the reload write only what no watch is for");
        Ruling::Deny {
            reasons: vec![reason],
        }
    }

    fn watches(&self, verb: Verb, targets: &[Target]) -> bool {
        !self.meant(Some(verb), targets).is_empty()
    }

    fn watch(&self, change: &AppliedChange<'_>, is_stopped: &dyn Fn() -> bool) -> Vec<Reason> {
        let variables = [
            ("BACKOUT_OPERATION", change.id.to_string()),
            (DEPTH, (depth() + 1).to_string()),
        ];
        let meant = self.meant(Some(change.verb), change.targets);
        let found = meant.iter().filter_map(|(rules, number)| {
            let watch = rules.watches.get(*number)?;
            let found = watched(watch, &variables, is_stopped)?;
            let name = format!("watch `{}` in {}", watch.name, rules.file.display());
            Some(Reason::new(name, found).mended_by("mend what was written, and write it again"))
        });
        found.collect()
    }

    fn taken_back(&self, targets: &[Target]) -> Vec<String> {
        let variables = [(DEPTH, (depth() + 1).to_string())];
        let meant = self.meant(None, targets);
        let said = meant.iter().filter_map(|(rules, number)| {
            let watch = rules.watches.get(*number)?;
            let said = reloaded(watch.reload.as_ref()?, &variables)?;
            Some(format!(
                "`{}` did not reload what is there again: {said}",
                watch.name
            ))
        });
        said.collect()
    }
}

fn reloaded(program: &Program, variables: &[(&str, String)]) -> Option<String> {
    run(program, variables, "", Rest::Stays).told()
}

/// Reloads and looks, as often as it takes. Gives what is wrong.
fn watched(
    watch: &Watch,
    variables: &[(&str, String)],
    is_stopped: &dyn Fn() -> bool,
) -> Option<String> {
    if let Some(program) = &watch.reload
        && let Some(said) = reloaded(program, variables)
    {
        return Some(format!("it did not reload: {said}"));
    }
    // It has to be well when the window ends, and may stumble on the way as often as it may be tried.
    let end = Instant::now() + watch.window;
    let mut failures = 0;
    loop {
        match looked(watch, variables) {
            None if Instant::now() >= end => return None,
            None => failures = 0,
            Some(found) => {
                failures += 1;
                if failures >= watch.tries {
                    return Some(match failures {
                        1 => found,
                        tries => format!("{found} in {tries} tries"),
                    });
                }
            }
        }
        // Whoever asked for the look knows that it was stopped.
        if !rested(watch.pause, is_stopped) {
            return None;
        }
    }
}

/// Waits, and tells whether nobody wants to stop.
fn rested(pause: Duration, is_stopped: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + pause;
    while Instant::now() < end && !is_stopped() {
        let left = end.saturating_duration_since(Instant::now());
        thread::sleep(left.min(SLICE));
    }
    !is_stopped()
}

/// Looks once. Gives what is wrong.
fn looked(watch: &Watch, variables: &[(&str, String)]) -> Option<String> {
    match &watch.probe {
        Probe::Reload => None,
        Probe::Command(program) => run(program, variables, "", Rest::Ends).told(),
        Probe::Http {
            url,
            status,
            contains,
        } => {
            let at = format!("http://{}{}", url.authority, url.path);
            let answer = match http::get(url, watch.time_max) {
                Ok(answer) => answer,
                Err(error) => return Some(format!("{at} does not answer: {error}")),
            };
            if answer.status != *status {
                let found = answer.status;
                return Some(format!("{at} answers {found}, and {status} is wanted"));
            }
            let wanted = contains
                .as_ref()
                .filter(|text| !answer.body.contains(*text));
            wanted.map(|text| format!("the answer of {at} does not contain \"{text}\""))
        }
    }
}
