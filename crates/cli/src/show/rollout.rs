//! Rollouts: where they stand, wave by wave.

use backout_engine::{RolloutView, WaveStanding, WaveView};
use backout_model::{OnWaveFailure, RolloutState, Timestamp};

use super::time::ago;
use super::{counted, typed};
use crate::session::Session;
use crate::ui::{ACCENT, BAD, Cell, DIM, GOOD, PLAIN, WARN, paint, printable, table};

/// How many targets of a wave are named.
const TARGETS_MAX: usize = 3;

/// Shows a rollout.
pub(super) fn shown(session: &mut Session, view: &RolloutView) {
    let (standing, why) = told(view);
    let name = paint(ACCENT, view.task.as_str());
    let mut text = format!("rollout {name}: {}\n", paint(style(&view.state), &standing));
    if let Some(why) = why {
        let why = session.here.shorten(&printable(why));
        text.extend(["  why: ", &why, "\n"]);
    }
    let listed = session.listed(TARGETS_MAX);
    let rows = view.waves.iter().zip(1..).map(|(wave, number)| {
        let (word, style) = word(wave.standing);
        vec![
            Cell::plain(format!("  wave {number}")),
            Cell::new(style, word),
            Cell::plain(targets(session, wave, listed)),
        ]
    });
    text.push_str(&table(rows.collect(), None));
    session.ui.print(&text);
    if let Some(hint) = hint(view) {
        session.ui.hint(&hint);
    }
}

/// Lists rollouts.
pub(super) fn list(session: &mut Session, rollouts: &[RolloutView], now: Timestamp) {
    if rollouts.is_empty() {
        session.ui.done("no rollouts\n");
        return;
    }
    let rows = rollouts.iter().map(|view| {
        vec![
            Cell::new(ACCENT, view.task.as_str()),
            Cell::new(style(&view.state), told(view).0),
            Cell::new(DIM, ago(now, view.began)).right(),
        ]
    });
    let text = table(rows.collect(), None);
    session.ui.print(&text);
}

/// Says where a rollout stands, and why.
fn told(view: &RolloutView) -> (String, Option<&str>) {
    let waves = view.waves.len();
    let of = |wave: &u32| format!("wave {wave} of {waves}");
    match &view.state {
        RolloutState::Running { wave } => (format!("{} is under way", of(wave)), None),
        RolloutState::Died { wave } => (format!("its process died in {}", of(wave)), None),
        RolloutState::Waits { wave, proposal } => {
            let id = proposal.short();
            (
                format!("{} waits for a decision about {id}", of(wave)),
                None,
            )
        }
        RolloutState::Held { wave, why } => (format!("{} is held up", of(wave)), Some(why)),
        RolloutState::Interrupted { wave } => (format!("interrupted in {}", of(wave)), None),
        RolloutState::Left {
            wave: Some(wave),
            why,
        } => (
            format!("{} failed, and not all of it came back", of(wave)),
            Some(why),
        ),
        RolloutState::Left { wave: None, why } => ("not all of it came back".to_owned(), Some(why)),
        RolloutState::Stopped { wave, why, back } => (stopped(*wave, waves, *back), Some(why)),
        RolloutState::Done => {
            let targets: usize = view.waves.iter().map(|wave| wave.targets.len()).sum();
            let targets = counted(targets as u64, "target");
            (
                format!("done, {targets} in {}", counted(waves as u64, "wave")),
                None,
            )
        }
        RolloutState::RolledBack => ("done, and rolled back since".to_owned(), None),
        RolloutState::Aborted => ("aborted, and all of it is undone".to_owned(), None),
        RolloutState::ByHand => ("its task was ended by hand".to_owned(), None),
    }
}

fn stopped(wave: u32, waves: usize, back: OnWaveFailure) -> String {
    let undone = match back {
        OnWaveFailure::All if wave > 1 => "it and all before it are undone",
        OnWaveFailure::Wave | OnWaveFailure::All => "it is undone",
    };
    let first = wave.saturating_add(1);
    let rest = match waves.saturating_sub(wave as usize) {
        0 => String::new(),
        1 => format!("; wave {first} was never touched"),
        _ => format!("; waves {first} to {waves} were never touched"),
    };
    format!("stopped, wave {wave} failed and {undone}{rest}")
}

const fn style(state: &RolloutState) -> anstyle::Style {
    match state {
        RolloutState::Running { .. } => PLAIN,
        RolloutState::Done => GOOD,
        RolloutState::RolledBack | RolloutState::Aborted | RolloutState::ByHand => DIM,
        RolloutState::Died { .. }
        | RolloutState::Waits { .. }
        | RolloutState::Held { .. }
        | RolloutState::Interrupted { .. } => WARN,
        RolloutState::Left { .. } | RolloutState::Stopped { .. } => BAD,
    }
}

const fn word(standing: WaveStanding) -> (&'static str, anstyle::Style) {
    match standing {
        WaveStanding::Pending => ("pending", DIM),
        WaveStanding::UnderWay => ("under way", WARN),
        WaveStanding::Passed => ("passed", GOOD),
        WaveStanding::Failed => ("failed", BAD),
        WaveStanding::Undone => ("undone", WARN),
        WaveStanding::Untouched => ("untouched", DIM),
    }
}

fn targets(session: &Session, wave: &WaveView, listed: usize) -> String {
    let first = wave.targets.iter().take(listed);
    let mut names: Vec<String> = first
        .map(|step| session.here.show(step.target.as_path()))
        .collect();
    let more = wave.targets.len().saturating_sub(listed);
    names.extend((more > 0).then(|| format!("and {more} more")));
    names.join(", ")
}

/// Says what to do next.
fn hint(view: &RolloutView) -> Option<String> {
    let call = |word: &str| typed(&format!("{word} {}", view.task));
    let (resume, abort) = (call("rollout resume"), call("rollout abort"));
    Some(match &view.state {
        RolloutState::Died { .. } | RolloutState::Interrupted { .. } => {
            format!("go on with {resume}, or take all of it back with {abort}")
        }
        RolloutState::Waits { proposal, .. } => {
            let id = proposal.short();
            let (approve, reject) = (
                typed(&format!("approve {id}")),
                typed(&format!("reject {id}")),
            );
            format!("decide with {approve} or {reject}, then go on with {resume}")
        }
        RolloutState::Held { .. } => format!(
            "see to it and go on with {resume}; with `--force` it also writes targets that changed"
        ),
        RolloutState::Left { .. } => format!("see to it, then go on with {resume}"),
        RolloutState::Stopped { wave, back, .. } if *wave > 1 && *back == OnWaveFailure::Wave => {
            let back = call("rollback");
            format!(
                "take back the waves that stay with {back}; mend the change and begin a new rollout"
            )
        }
        RolloutState::Stopped { .. } => "mend the change and begin a new rollout".to_owned(),
        RolloutState::Done => format!("take all of it back with {}", call("rollback")),
        RolloutState::Running { .. }
        | RolloutState::RolledBack
        | RolloutState::Aborted
        | RolloutState::ByHand => return None,
    })
}
