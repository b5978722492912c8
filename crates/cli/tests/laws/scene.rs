//! A directory, a store, three agents, and the oracle that watches them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use backout_drivers::file::FileRequest;
use backout_engine::{
    Context, Engine, EngineError, Filter, Glob, OperationRef, RedoWhat, Selection, Settings,
    UndoOptions, UndoReport, UndoWhat,
};
use backout_model::ports::{OnConflict, Progress, Request};
use backout_model::{Operation, OperationId, Status, TargetPath};
use backout_testkit::world::memory;

use crate::Sabotage;
use crate::act::text;
use crate::oracle::{May, Oracle};
use crate::running;
use crate::snapshot::{Tree, differing, look, unlike};
use crate::story::{How, Step, What};

/// What stories had in them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) writes: usize,
    pub(crate) undos: usize,
    pub(crate) redos: usize,
    pub(crate) refused: usize,
    pub(crate) stopped: usize,
    pub(crate) restores: usize,
    pub(crate) runs: usize,
    pub(crate) trials: usize,
    pub(crate) kills: usize,
    pub(crate) deaths: usize,
    pub(crate) edits: usize,
    pub(crate) keys: usize,
    pub(crate) taken_back: usize,
}

impl Tally {
    pub(crate) const fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.undos += other.undos;
        self.redos += other.redos;
        self.refused += other.refused;
        self.stopped += other.stopped;
        self.restores += other.restores;
        self.runs += other.runs;
        self.trials += other.trials;
        self.kills += other.kills;
        self.deaths += other.deaths;
        self.edits += other.edits;
        self.keys += other.keys;
        self.taken_back += other.taken_back;
    }
}

/// Somebody who wants the work to stop after so many items.
#[derive(Debug, Default)]
struct Impatience(AtomicI64);

impl Progress for Impatience {
    fn total(&self, _items: u64) {}

    fn advance(&self, _items: u64) {}

    fn is_stopped(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

pub(crate) struct Scene {
    _home: tempfile::TempDir,
    pub(crate) root: PathBuf,
    state: PathBuf,
    engines: Vec<Engine>,
    patience: Arc<Impatience>,
    pub(crate) oracle: Oracle,
    pub(crate) tally: Tally,
    sabotage: Option<Sabotage>,
}

impl Scene {
    pub(crate) fn new(sabotage: Option<Sabotage>) -> Self {
        let home = tempfile::tempdir_in(memory()).unwrap();
        let base = home.path().canonicalize().unwrap();
        let (root, state) = (base.join("work"), base.join("state"));
        std::fs::create_dir_all(root.join("d")).unwrap();
        for (tag, name) in ["a", "b", "d/x", "d/y"].into_iter().enumerate() {
            std::fs::write(root.join(name), text(tag + 9000)).unwrap();
        }
        crate::keys::begin(&root);
        let patience = Arc::new(Impatience::default());
        patience.0.store(-1, Ordering::Relaxed);
        let open = |agent: usize| {
            let mut settings = Settings::new(&state);
            settings.progress = Some(Arc::clone(&patience) as Arc<dyn Progress>);
            Engine::open(settings, backout_drivers::local)
                .unwrap()
                .for_caller(Context {
                    agent: Self::agent(agent).map(|name| name.parse().unwrap()),
                    ..Context::default()
                })
        };
        Self {
            engines: (0..3).map(open).collect(),
            _home: home,
            root,
            state,
            patience,
            oracle: Oracle::default(),
            tally: Tally::default(),
            sabotage,
        }
    }

    pub(crate) const fn agent(number: usize) -> Option<&'static str> {
        match number {
            1 => Some("alice"),
            2 => Some("bob"),
            _ => None,
        }
    }

    pub(crate) fn engine(&self, agent: usize) -> &Engine {
        &self.engines[agent]
    }

    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    pub(crate) fn look(&self) -> Tree {
        look(&self.root)
    }

    /// Gives every operation of the journal.
    pub(crate) fn operations(&self) -> BTreeMap<OperationId, Operation> {
        let all = self.engines[0]
            .store()
            .operations(&Filter::default())
            .unwrap();
        all.into_iter()
            .map(|operation| (operation.id, operation))
            .collect()
    }

    /// Names the n-th operation in effect, from the newest.
    pub(crate) fn in_effect(&self, back: usize) -> Option<OperationId> {
        self.nth(back, |op| {
            op.status.is_in_effect() && op.in_effect().next().is_some()
        })
    }

    /// Names the n-th operation that was taken back, from the newest.
    pub(crate) fn undone(&self, back: usize) -> Option<OperationId> {
        self.nth(back, |op| !op.undos().is_empty())
    }

    fn nth(&self, back: usize, wanted: impl Fn(&Operation) -> bool) -> Option<OperationId> {
        let all = self.operations();
        let mut ids: Vec<_> = all
            .values()
            .filter(|op| !op.verb.is_reversal() && op.status != Status::Armed && wanted(op))
            .map(|op| (op.lsn, op.id))
            .collect();
        ids.sort();
        ids.iter().rev().cycle().nth(back).map(|(_, id)| *id)
    }

    pub(crate) fn play(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Write { agent, changes } => self.write(*agent, changes),
            Step::Foreign(change) => {
                self.tally.edits += 1;
                change.by_somebody(&self.root);
                Ok(())
            }
            Step::Key { agent, edit } => {
                self.tally.keys += 1;
                self.ask(*agent, &*edit.request(&self.root))
            }
            Step::ForeignKey(edit) => {
                self.tally.edits += 1;
                edit.by_somebody(&self.root);
                Ok(())
            }
            Step::Undo {
                agent,
                what,
                how,
                only,
                stops_at,
            } => {
                let Some(what) = self.meant(*what) else {
                    return Ok(());
                };
                self.tally.undos += 1;
                let options = self.options(*how, *only);
                self.act(Way::Undo, *how, *stops_at, |scene| {
                    scene.engine(*agent).undo(&what, &options)
                })
            }
            Step::Redo {
                agent,
                back,
                how,
                only,
                stops_at,
            } => {
                let what = match back.map(|back| self.undone(back)) {
                    None => RedoWhat::Newest { below: None },
                    Some(Some(id)) => RedoWhat::Operations(vec![named(id)]),
                    Some(None) => return Ok(()),
                };
                self.tally.redos += 1;
                let options = self.options(*how, *only);
                self.act(Way::Redo, *how, *stops_at, |scene| {
                    scene.engine(*agent).redo(&what, &options)
                })
            }
            Step::Restore {
                name,
                back,
                is_after,
            } => self.restore(name, *back, *is_after),
            Step::Run {
                agent,
                first,
                meanwhile,
                then,
            } => running::run(self, *agent, (first, then), meanwhile),
            Step::Try {
                changes,
                meanwhile,
                except,
            } => running::attempt(self, changes, *meanwhile, *except),
            Step::Death { of, at, meanwhile } => running::death(self, of, *at, *meanwhile),
            Step::Decide { keeps } => self.decide(*keeps),
        }
    }

    /// Says to the engine what is to be taken back; nothing if there is no such thing.
    fn meant(&self, what: What) -> Option<UndoWhat> {
        Some(match what {
            What::Newest => UndoWhat::Newest { below: None },
            What::Back(back) => UndoWhat::Operations(vec![named(self.in_effect(back)?)]),
            What::Path(name) => UndoWhat::Paths {
                paths: vec![TargetPath::new(self.root.join(name)).unwrap().into()],
                since: None,
            },
        })
    }

    fn write(&mut self, agent: usize, changes: &[crate::act::Change]) -> Result<(), String> {
        let mut requests: Vec<_> = changes.iter().map(|it| it.request(&self.root)).collect();
        let request = match requests.len() {
            1 => requests.remove(0),
            _ => FileRequest::Batch(requests),
        };
        self.tally.writes += 1;
        self.ask(agent, &request)
    }

    /// Writes, and takes the write back and brings it again.
    fn ask(&mut self, agent: usize, request: &dyn Request) -> Result<(), String> {
        let before = self.look();
        let written = self.engine(agent).write(request);
        let now = self.look();
        match written {
            Ok(finished) => {
                self.learn_new((&before, &now))?;
                finished
                    .id
                    .map_or(Ok(()), |id| self.take_back(id, Way::Undo, How::Refuse))
            }
            Err(EngineError::HalfDone { cause, .. }) => Err(format!("left half done: {cause}")),
            Err(error) => {
                self.tally.refused += 1;
                unchanged(&before, &now, &format!("a refused write ({error})"))
            }
        }
    }

    fn restore(&mut self, name: &str, back: usize, is_after: bool) -> Result<(), String> {
        let Some(id) = self.in_effect(back) else {
            return Ok(());
        };
        self.tally.restores += 1;
        let path = TargetPath::new(self.root.join(name)).unwrap();
        let before = self.look();
        let restored = self.engine(0).restore(&[path], &named(id), is_after);
        let now = self.look();
        match restored {
            Ok(finished) => {
                self.learn_new((&before, &now))?;
                finished
                    .id
                    .map_or(Ok(()), |id| self.take_back(id, Way::Undo, How::Refuse))
            }
            Err(error) => unchanged(&before, &now, &format!("a refused restore ({error})")),
        }
    }

    /// Learns the operations that an act made, and checks that they answer for all that it changed.
    pub(crate) fn learn_new(&mut self, (before, now): (&Tree, &Tree)) -> Result<(), String> {
        let changed = differing(before, now);
        let mut missed = changed.clone();
        for operation in self.operations().values() {
            if operation.verb.is_reversal() || self.oracle.knows(operation.id) {
                continue;
            }
            let answered = self
                .oracle
                .learn(&self.root, operation, (before, now), &changed);
            missed.retain(|name| !answered.contains(name));
        }
        if missed.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "{missed:?} changed, and no operation answers for it"
            ))
        }
    }

    fn options(&self, how: How, only: Option<&str>) -> UndoOptions {
        let only = only.map(|name| Glob::new(name, &self.root));
        UndoOptions {
            on_conflict: match how {
                How::Refuse | How::Partial => OnConflict::Refuse,
                How::Force => OnConflict::Force,
                How::Merge => OnConflict::Merge,
            },
            committed: true,
            others: true,
            partial: how == How::Partial,
            selection: Selection {
                only: only.into_iter().collect(),
                exclude: Vec::new(),
            },
            ..UndoOptions::default()
        }
    }

    /// Undoes or redoes, and holds what came of it against the world.
    fn act(
        &mut self,
        way: Way,
        how: How,
        stops_at: Option<u64>,
        what: impl Fn(&Self) -> Result<UndoReport, EngineError>,
    ) -> Result<(), String> {
        let before = self.look();
        let patience = stops_at.map_or(-1, |at| i64::try_from(at).unwrap());
        self.patience.0.store(patience, Ordering::Relaxed);
        let result = what(self);
        self.patience.0.store(-1, Ordering::Relaxed);
        if let (Ok(_), Some(sabotage)) = (&result, self.sabotage) {
            sabotage(self);
        }
        let now = self.look();
        let may = May {
            overwrite: how == How::Force,
            merge: how == How::Merge,
            ..May::default()
        };
        let flips = self.follow((&before, &now), may)?;
        let report = match result {
            Ok(report) => report,
            Err(EngineError::Stopped(report)) => {
                self.tally.stopped += 1;
                *report
            }
            Err(EngineError::Partial(report)) => *report,
            Err(error) => {
                self.tally.refused += 1;
                let by = format!("what was refused ({error})");
                return unchanged(&before, &now, &by);
            }
        };
        self.check_report(&report, &flips)?;
        match report.act {
            // What found everything so already overwrote nothing.
            Some(act) if before != now => self.take_back(act, way.other(), how),
            _ => Ok(()),
        }
    }

    /// What is reported as done changed sides, and nothing else did.
    fn check_report(
        &self,
        report: &UndoReport,
        flips: &[(OperationId, String)],
    ) -> Result<(), String> {
        let outcomes = report.steps.iter().flat_map(|step| &step.outcomes);
        let mut settled = Vec::new();
        for outcome in outcomes {
            if let Some((name, _)) = crate::oracle::name_of(&self.root, &outcome.target) {
                settled.push((name, outcome.kind.is_taken_back(), &outcome.kind));
            }
        }
        for (id, name) in flips {
            let is_told = |(told, is_taken_back, _): &&(String, bool, _)| {
                *is_taken_back && running::is_near(told, name)
            };
            if !settled.iter().any(|told| is_told(&told)) {
                let said: Vec<_> = settled
                    .iter()
                    .map(|(name, _, kind)| format!("{name}: {kind}"))
                    .collect();
                return Err(format!(
                    "`{name}` of {} changed sides, and was reported as {said:?}",
                    id.short()
                ));
            }
        }
        Ok(())
    }

    /// Holds the journal against the world.
    pub(crate) fn follow(
        &mut self,
        looks: (&Tree, &Tree),
        may: May,
    ) -> Result<Vec<(OperationId, String)>, String> {
        let operations = self.operations();
        self.oracle.follow(&self.root, &operations, looks, may)
    }

    /// Takes an act back and brings it again: whatever it overwrote must come, and go.
    /// What was done by force needs force to be done again: somebody's work is there again.
    fn take_back(&mut self, act: OperationId, way: Way, how: How) -> Result<(), String> {
        self.tally.taken_back += 1;
        let again = if how == How::Force {
            How::Force
        } else {
            How::Refuse
        };
        let mut at = act;
        for (way, how) in [(way, How::Refuse), (way.other(), again)] {
            let options = self.options(how, None);
            let may = May {
                overwrite: how == How::Force,
                merge: false,
                reverse: true,
            };
            let before = self.look();
            let what = vec![named(at)];
            let engine = self.engine(0);
            let result = match way {
                Way::Undo => engine.undo(&UndoWhat::Operations(what), &options),
                Way::Redo => engine.redo(&RedoWhat::Operations(what), &options),
            };
            let now = self.look();
            self.follow((&before, &now), may)
                .map_err(|why| format!("taking {} back: {why}", at.short()))?;
            match result {
                Ok(report) => at = report.act.ok_or("an act without a name")?,
                // What was as before already cannot come again, and it is said.
                Err(EngineError::Partial(report)) if is_all_taken_back(&report) => {
                    at = report.act.ok_or("an act without a name")?;
                }
                Err(_) if self.is_blurred() => return Ok(()),
                Err(error) => {
                    return Err(format!(
                        "{} cannot be taken back at once: {error:?}",
                        at.short()
                    ));
                }
            }
        }
        Ok(())
    }

    fn is_blurred(&self) -> bool {
        self.oracle
            .known
            .iter()
            .any(|known| self.oracle.is_vague(known.id))
    }
}

/// Which way an act is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Undo,
    Redo,
}

impl Way {
    const fn other(self) -> Self {
        match self {
            Self::Undo => Self::Redo,
            Self::Redo => Self::Undo,
        }
    }
}

pub(crate) fn named(id: OperationId) -> OperationRef {
    id.to_string().parse().unwrap()
}

fn is_all_taken_back(report: &UndoReport) -> bool {
    let mut outcomes = report.steps.iter().flat_map(|step| &step.outcomes);
    report.act.is_some() && outcomes.all(|outcome| outcome.kind.is_taken_back())
}

pub(crate) fn unchanged(before: &Tree, now: &Tree, by: &str) -> Result<(), String> {
    match unlike(before, now) {
        None => Ok(()),
        Some(why) => Err(format!("{by} changed something: {why}")),
    }
}
