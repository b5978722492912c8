//! Rollouts: where they stand, wave by wave.

use backout_engine::{ProposalNow, RolloutView, StepNow, StepView, WaveStanding, WaveView};
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
    text.push_str(&also(session, view));
    session.ui.print(&text);
    for note in &view.notes {
        let note = session.here.shorten(&printable(note));
        session.ui.note(&note);
    }
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
    session.ui.print(&rows("", rollouts, now));
}

/// Says of each rollout where it stands, after some space.
pub(super) fn rows(indent: &str, rollouts: &[RolloutView], now: Timestamp) -> String {
    let rows = rollouts.iter().map(|view| {
        vec![
            Cell::plain(indent).and(ACCENT, view.task.as_str()),
            Cell::new(style(&view.state), told(view).0),
            Cell::new(DIM, ago(now, view.began)).right(),
        ]
    });
    table(rows.collect(), None)
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
            let waited = |what: &str| format!("{} waited for {id}, which {what}", of(wave));
            let told = match view.decided {
                None | Some(ProposalNow::Waits) => {
                    format!("{} waits for a decision about {id}", of(wave))
                }
                Some(ProposalNow::Approved) => waited("was approved"),
                Some(ProposalNow::Rejected) => waited("was rejected"),
                Some(ProposalNow::Expired) => waited("expired"),
                Some(ProposalNow::Undone) => waited("was approved, and is undone"),
            };
            (told, None)
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
        RolloutState::Stopped { wave, why, back } => (stopped(view, *wave, *back), Some(why)),
        RolloutState::Done => {
            let targets: usize = view.waves.iter().map(|wave| wave.targets.len()).sum();
            let targets = counted(targets as u64, "target");
            (
                format!("done, {targets} in {}", counted(waves as u64, "wave")),
                None,
            )
        }
        RolloutState::RolledBack => ("done, and rolled back since".to_owned(), None),
        RolloutState::Aborted if is_any_there(view) => (
            "aborted, and some of it is in effect again".to_owned(),
            None,
        ),
        RolloutState::Aborted => ("aborted, and all of it is undone".to_owned(), None),
        RolloutState::ByHand => ("its task was ended by hand".to_owned(), None),
    }
}

fn stopped(view: &RolloutView, wave: u32, back: OnWaveFailure) -> String {
    let waves = view.waves.len();
    let failed = view.waves.get((wave as usize).saturating_sub(1));
    let is_again = match back {
        OnWaveFailure::All => is_any_there(view),
        OnWaveFailure::Wave => failed.is_some_and(|it| it.standing == WaveStanding::Failed),
    };
    let is_untouched = failed.is_some_and(|it| it.standing == WaveStanding::Untouched);
    let undone = match back {
        _ if is_again => "some of it is in effect again",
        OnWaveFailure::All if wave > 1 => "it and all before it are undone",
        OnWaveFailure::Wave | OnWaveFailure::All if is_untouched => "nothing of it was written",
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

/// Tells whether something that a rollout took back is there.
fn is_any_there(view: &RolloutView) -> bool {
    let mut targets = view.waves.iter().flat_map(|wave| &wave.targets);
    targets.any(|step| step.now == StepNow::Written)
}

/// Says what others had built on the writes of a rollout, and went with them.
fn also(session: &Session, view: &RolloutView) -> String {
    let mut lines = Vec::new();
    for (number, gone) in view.also.iter().enumerate() {
        let summary = session.here.shorten(&printable(&gone.summary));
        let (id, on) = (gone.id.short(), gone.on.short());
        lines.push(format!(
            "  also undone: {id} ({summary}), which was built on {on}\n"
        ));
        let of_it = view.also.iter().filter(|it| it.on == gone.on);
        let rest = view.also.iter().skip(number + 1);
        // Said once for all that was built on one write.
        if rest.filter(|it| it.on == gone.on).count() == 0 {
            let ids: Vec<String> = of_it.map(|it| it.id.short()).collect();
            let redo = typed(&format!("redo {on} {}", ids.join(" ")));
            lines.push(format!("  {redo} brings that back\n"));
        }
    }
    lines.concat()
}

/// Says what is to be known of a target, if its wave does not say it.
const fn remark(standing: WaveStanding, now: StepNow) -> Option<&'static str> {
    match (standing, now) {
        (WaveStanding::Passed | WaveStanding::UnderWay, StepNow::Written | StepNow::Same)
        | (WaveStanding::Undone, StepNow::Undone)
        | (WaveStanding::Untouched, StepNow::Untouched)
        | (WaveStanding::Pending, StepNow::Pending) => None,
        (_, StepNow::Written) => Some("in effect"),
        (_, StepNow::Same) => Some("as asked already"),
        (_, StepNow::Undone) => Some("undone"),
        (_, StepNow::Untouched) => Some("untouched"),
        (_, StepNow::Pending) => Some("pending"),
        (_, StepNow::Changed) => Some("changed since"),
        (WaveStanding::Pending, StepNow::Unknown) => Some("not looked at"),
        (_, StepNow::Unknown) => Some("cannot be looked at"),
    }
}

fn targets(session: &Session, wave: &WaveView, listed: usize) -> String {
    let remark = |step: &StepView| remark(wave.standing, step.now);
    // What is to be known of a target is said of each.
    let told = wave.targets.iter().enumerate();
    let told = told.filter(|(at, step)| *at < listed || remark(step).is_some());
    let mut names: Vec<String> = told
        .map(|(_, step)| {
            let name = session.here.show(step.target.as_path());
            match remark(step) {
                Some(remark) => format!("{name} ({remark})"),
                None => name,
            }
        })
        .collect();
    let more = wave.targets.len().saturating_sub(names.len());
    names.extend((more > 0).then(|| format!("and {more} more")));
    names.join(", ")
}

/// Says what to do next.
pub(super) fn hint(view: &RolloutView) -> Option<String> {
    let call = |word: &str| typed(&format!("{word} {}", view.task));
    let (resume, abort) = (call("rollout resume"), call("rollout abort"));
    Some(match &view.state {
        RolloutState::Died { .. } | RolloutState::Interrupted { .. } => {
            format!("go on with {resume}, or take all of it back with {abort}")
        }
        RolloutState::Waits { .. } if view.decided != Some(ProposalNow::Waits) => {
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
        RolloutState::Left { wave, .. } => {
            let (word, again) = match wave {
                Some(_) => ("rollout resume", resume),
                None => ("rollout abort", abort),
            };
            let force = typed(&format!("{word} {} --force", view.task));
            format!("see to it, then go on with {again}; {force} also undoes what others did there")
        }
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
