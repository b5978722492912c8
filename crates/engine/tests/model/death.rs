//! A process that dies in the middle of a step: a real child that aborts, and recovery by the living.

use std::path::Path;
use std::process::{Command, Stdio};

use backout_engine::{Filter, Settings, UndoWhat};
use backout_model::Status;

use crate::oracle::Way;
use crate::request::Plan;
use crate::runner::{Run, named, options};
use crate::seen::look;
use crate::shelf;
use crate::story::{Manner, Step, Story};
use crate::verdict::{Checked, judge, unlike};

/// Tells the child where the world is, and which step of which story is its own.
const CHILD: &str = "BACKOUT_MODEL_CHILD";

/// A write whose process dies.
pub(crate) fn of_a_write(
    run: &mut Run,
    number: usize,
    plan: &Plan,
    at: usize,
) -> Result<(), String> {
    let lsn = run
        .engine
        .store()
        .operations(&newest())
        .unwrap()
        .first()
        .map(|op| op.lsn);
    child(run, &format!("{} {number} -", run.seed), at);
    run.engine
        .recover(None)
        .map_err(|error| format!("recovery failed: {error:?}"))?;
    let now = look(&run.root);
    let found = run.engine.store().operations(&newest()).unwrap();
    let written = found.iter().find(|op| !op.verb.is_reversal());
    match written.filter(|op| Some(op.lsn) > lsn) {
        Some(op) if op.status.is_in_effect() && op.status != Status::InDoubt => {
            run.oracle.learn(op.id, plan, now);
            Ok(())
        }
        Some(op) if op.status == Status::InDoubt => {
            Err("recovery left a write in doubt".to_owned())
        }
        Some(_) | None => match unlike(&run.oracle.world, &now, false) {
            None => {
                let before = run.oracle.world.clone();
                run.oracle.check_links(&before, &now)?;
                run.oracle.world = now;
                Ok(())
            }
            Some(why) => Err(format!("recovery did not put a write back: {why}")),
        },
    }
}

/// An undo whose process dies.
pub(crate) fn of_an_undo(
    run: &mut Run,
    number: usize,
    what: &UndoWhat,
    manner: Manner,
    at: usize,
) -> Result<(), String> {
    let UndoWhat::Operations(references) = what else {
        return Ok(());
    };
    let Some(id) = references
        .first()
        .and_then(|reference| run.engine.store().resolve(reference).ok())
    else {
        return Ok(());
    };
    child(run, &format!("{} {number} {id}", run.seed), at);
    run.engine
        .recover(None)
        .map_err(|error| format!("recovery failed: {error:?}"))?;
    let taken = run.taken();
    let now = look(&run.root);
    let checked = judge(&mut run.oracle, &taken, &now, manner, true)?;
    run.oracle
        .follow(Way::Back, &taken, now, checked == Checked::Exactly);
    Ok(())
}

fn newest() -> Filter {
    Filter {
        limit: Some(4),
        ..Filter::default()
    }
}

fn child(run: &mut Run, which: &str, at: usize) {
    run.tally.deaths += 1;
    run.has_died = true;
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child_of_a_story", "--nocapture"])
        .env(CHILD, run.base())
        .env("BACKOUT_MODEL_STEP", which)
        .env("BACKOUT_CRASH_AT", at.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap();
}

/// Does the one step that the parent asked for, if this is a child.
pub(crate) fn be_a_child() {
    let (Some(base), Ok(which)) = (std::env::var_os(CHILD), std::env::var("BACKOUT_MODEL_STEP"))
    else {
        return;
    };
    let base = Path::new(&base).canonicalize().unwrap();
    let mut words = which.split(' ');
    let seed = words.next().unwrap().parse().unwrap();
    let number: usize = words.next().unwrap().parse().unwrap();
    let story = Story::of(seed);
    let (_, step) = &story.steps[number];
    let engine = shelf::engine(Settings::new(base.join("state")));
    match step {
        Step::Do { plans, .. } => drop(engine.write(&plans[0].request(&base.join("work")))),
        Step::Undo {
            manner, committed, ..
        } => {
            let id = u64::from_str_radix(words.next().unwrap(), 16).unwrap();
            let what = named(backout_model::OperationId::from_bits(id));
            drop(engine.undo(&what, &options(*manner, *committed)));
        }
        Step::Redo { .. } | Step::Begin | Step::Commit | Step::Mark | Step::Foreign(_) => {}
    }
}
