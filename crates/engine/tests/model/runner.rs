//! Tells a story on real files with a real engine, and asks the oracle after every step.

use std::path::{Path, PathBuf};

use backout_engine::{
    Command, Context, Engine, EngineError, Filter, RedoWhat, Reply, Settings, UndoOptions,
    UndoReport, UndoWhat,
};
use backout_model::ports::OnConflict;
use backout_model::{CheckpointName, OperationId, Status, TaskId};
use backout_testkit::world::memory;

use crate::death;
use crate::oracle::{Oracle, Way, is_near, shown};
use crate::request::Plan;
use crate::seen::{Snapshot, alike, look};
use crate::shelf;
use crate::story::{Manner, Step, Story, What};
use crate::tree::plant;
use crate::verdict::{Checked, judge, unlike};

/// What went wrong, at which step.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) step: usize,
    pub(crate) what: String,
}

/// What a story had in it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) writes: usize,
    pub(crate) refused: usize,
    pub(crate) exact: usize,
    pub(crate) kept: usize,
    pub(crate) conflicts: usize,
    /// Conflicts that only showed when their turn came.
    pub(crate) late: usize,
    pub(crate) deaths: usize,
}

/// A fault that a test puts in, to see that it is found.
pub(crate) type Sabotage = fn(&Path);

/// A story being told.
pub(crate) struct Run {
    home: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) engine: Engine,
    task: Option<(TaskId, Engine)>,
    checkpoint: Option<CheckpointName>,
    pub(crate) oracle: Oracle,
    pub(crate) tally: Tally,
    pub(crate) seed: u64,
    sabotage: Option<Sabotage>,
    /// Whether a process has died, or steps were put back: then nobody knows who changed the times of directories last.
    pub(crate) has_died: bool,
    /// What the journal held before the undo or redo.
    before: usize,
    names: usize,
}

/// Tells a story to its end, and takes everything back then.
pub(crate) fn tell(story: &Story, sabotage: Option<Sabotage>) -> Result<Tally, Failure> {
    let mut run = Run::new(story, sabotage);
    let first = run.oracle.world.clone();
    for (number, step) in &story.steps {
        run.step(*number, step)
            .and_then(|()| run.check_tidy())
            .map_err(|what| Failure {
                step: *number,
                what,
            })?;
    }
    let at_the_end = |what| Failure {
        step: usize::MAX,
        what,
    };
    run.end(story, &first).map_err(at_the_end)?;
    Ok(run.tally)
}

impl Run {
    fn new(story: &Story, sabotage: Option<Sabotage>) -> Self {
        let home = tempfile::tempdir_in(memory()).unwrap();
        let base = home.path().canonicalize().unwrap();
        let root = base.join("work");
        std::fs::create_dir(&root).unwrap();
        plant(&root, &story.tree);
        let engine = shelf::engine(Settings::new(base.join("state")));
        Self {
            oracle: Oracle::new(look(&root)),
            home,
            root,
            engine,
            task: None,
            checkpoint: None,
            tally: Tally::default(),
            seed: story.seed,
            sabotage,
            has_died: false,
            before: 0,
            names: 0,
        }
    }

    pub(crate) fn base(&self) -> &Path {
        self.home.path()
    }

    fn step(&mut self, number: usize, step: &Step) -> Result<(), String> {
        match step {
            Step::Do {
                plans,
                dies_at: Some(at),
                ..
            } => death::of_a_write(self, number, &plans[0], *at),
            Step::Do {
                plans,
                in_task,
                dies_at: None,
            } => {
                for plan in plans {
                    if self.write(plan, *in_task)? {
                        break;
                    }
                }
                Ok(())
            }
            Step::Undo {
                what,
                manner,
                committed,
                dies_at,
            } => {
                let Some(what) = self.what(*what) else {
                    return Ok(());
                };
                let options = options(*manner, *committed);
                if let (Some(at), UndoWhat::Operations(_)) = (dies_at, &what) {
                    return death::of_an_undo(self, number, &what, *manner, *at);
                }
                self.undo(&what, &options, *manner)
            }
            Step::Redo { back } => self.redo(*back),
            Step::Begin => {
                self.begin();
                Ok(())
            }
            Step::Commit => {
                if let Some((task, _)) = self.task.take() {
                    self.engine
                        .commit(&task)
                        .map_err(|error| error.to_string())?;
                }
                Ok(())
            }
            Step::Mark => {
                self.names += 1;
                let name: CheckpointName = format!("mark-{}", self.names).parse().unwrap();
                self.engine
                    .mark(Some(name.clone()), serde_json::Value::Null)
                    .map_err(|error| error.to_string())?;
                self.checkpoint = Some(name);
                Ok(())
            }
            Step::Foreign(foreign) => {
                foreign.act(&self.root);
                self.oracle.world = look(&self.root);
                Ok(())
            }
        }
    }

    fn begin(&mut self) {
        if self.task.is_some() {
            return;
        }
        self.names += 1;
        let id: TaskId = format!("task-{}", self.names).parse().unwrap();
        self.engine.begin(Some(id.clone()), None).unwrap();
        let context = Context {
            task: Some(id.clone()),
            ..Context::default()
        };
        self.task = Some((id, self.engine.for_caller(context)));
    }

    /// Writes, and tells whether that was not refused.
    fn write(&mut self, plan: &Plan, in_task: bool) -> Result<bool, String> {
        let engine = match &self.task {
            Some((_, engine)) if in_task => engine,
            Some(_) | None => &self.engine,
        };
        let written = engine.write(&plan.request(&self.root));
        let now = look(&self.root);
        match written {
            Ok(finished) => {
                self.tally.writes += 1;
                match finished.id {
                    Some(id) => self.oracle.learn(id, plan, now),
                    None => self.unchanged(&now, "a write that had nothing to do")?,
                }
                Ok(true)
            }
            Err(error @ EngineError::HalfDone { .. }) => {
                Err(format!("a write was left half done: {error:?}"))
            }
            Err(error) => {
                self.tally.refused += 1;
                let error = format!("a refused write ({error})");
                self.unchanged(&now, &error)?;
                Ok(false)
            }
        }
    }

    /// Checks that nothing at all changed, inode numbers and times of directories included.
    fn unchanged(&self, now: &Snapshot, by: &str) -> Result<(), String> {
        if *now == self.oracle.world {
            return Ok(());
        }
        let why = unlike(&self.oracle.world, now, true);
        Err(format!(
            "{by} changed something: {}",
            why.unwrap_or_default()
        ))
    }

    /// Checks that all is as it was. Where steps were taken and put back, a file may have been made anew.
    fn put_back(&mut self, now: Snapshot, by: &str) -> Result<(), String> {
        if self.recorded() > self.before {
            self.tally.late += 1;
            self.has_died = true;
        } else {
            return self.unchanged(&now, by);
        }
        let wanted = self.oracle.world.clone();
        if let Some(why) = unlike(&wanted, &now, true) {
            return Err(format!("{by} changed something: {why}"));
        }
        self.oracle
            .check_links(&wanted, &now)
            .map_err(|why| format!("{by} changed something: {why}"))?;
        self.oracle.world = now;
        Ok(())
    }

    /// Counts what the journal holds.
    fn recorded(&self) -> usize {
        let all = self.engine.store().operations(&Filter::default());
        all.unwrap().len()
    }

    fn what(&self, what: What) -> Option<UndoWhat> {
        match what {
            What::Newest => Some(UndoWhat::Newest { below: None }),
            What::Back(back) => {
                let standing: Vec<OperationId> = self
                    .oracle
                    .ops
                    .iter()
                    .filter(|op| op.is_in_effect)
                    .map(|op| op.id)
                    .collect();
                let id = standing.iter().rev().cycle().nth(back)?;
                Some(named(*id))
            }
            What::Task => self.task.as_ref().map(|(id, _)| UndoWhat::Task(id.clone())),
            What::Checkpoint => self.checkpoint.clone().map(UndoWhat::ToCheckpoint),
        }
    }

    fn undo(
        &mut self,
        what: &UndoWhat,
        options: &UndoOptions,
        manner: Manner,
    ) -> Result<(), String> {
        let roots = self.roots(what);
        self.before = self.recorded();
        let result = self.engine.rollback(what, options, "the story says so");
        if result.is_ok() && matches!(what, UndoWhat::Task(_)) {
            self.task = None;
        }
        self.follow(result, &roots, Way::Back, manner)
    }

    fn roots(&self, what: &UndoWhat) -> Vec<usize> {
        let standing = |(index, op): (usize, &crate::oracle::Op)| op.is_in_effect.then_some(index);
        match what {
            UndoWhat::Operations(references) => references
                .iter()
                .filter_map(|reference| self.engine.store().resolve(reference).ok())
                .filter_map(|id| self.oracle.index_of(id))
                .collect(),
            UndoWhat::Newest { .. } => self.oracle.newest(),
            UndoWhat::Task(_)
            | UndoWhat::Prompt(_)
            | UndoWhat::ToCheckpoint(_)
            | UndoWhat::ToPlace { .. }
            | UndoWhat::Paths { .. } => self
                .oracle
                .ops
                .iter()
                .enumerate()
                .filter_map(standing)
                .collect(),
        }
    }

    fn redo(&mut self, back: Option<usize>) -> Result<(), String> {
        let undone: Vec<usize> = (0..self.oracle.ops.len())
            .filter(|i| !self.oracle.ops[*i].is_in_effect)
            .collect();
        let chosen = match back {
            Some(back) => match undone.iter().rev().cycle().nth(back) {
                Some(index) => Some(*index),
                None => return Ok(()),
            },
            None => None,
        };
        let what = match chosen {
            Some(index) => {
                let id = self.oracle.ops[index].id.to_string();
                RedoWhat::Operations(vec![id.parse().unwrap()])
            }
            None => RedoWhat::Newest { below: None },
        };
        self.before = self.recorded();
        let result = self.engine.redo(&what, &options(Manner::Refuse, true));
        let roots = chosen.map_or(undone, |index| vec![index]);
        self.follow(result, &roots, Way::Again, Manner::Refuse)
    }

    /// Finds out what an undo or a redo did, and whether it should have.
    fn follow(
        &mut self,
        result: Result<UndoReport, EngineError>,
        roots: &[usize],
        way: Way,
        manner: Manner,
    ) -> Result<(), String> {
        if let (Ok(_), Some(sabotage)) = (&result, self.sabotage) {
            sabotage(&self.root);
        }
        let now = look(&self.root);
        let taken = self.taken();
        match result {
            Ok(report) => {
                self.check_independent(&taken, roots)?;
                let checked = judge(&mut self.oracle, &taken, &now, manner, self.has_died)
                    .map_err(|why| format!("{why}\n  {}", told(&report)))?;
                match checked {
                    Checked::Exactly => self.tally.exact += 1,
                    Checked::Kept => self.tally.kept += 1,
                }
                self.oracle
                    .follow(way, &taken, now, checked == Checked::Exactly);
                Ok(())
            }
            Err(error @ (EngineError::Conflicts { .. } | EngineError::Partial(_))) => {
                self.tally.conflicts += 1;
                if self.must_work(roots, way) {
                    return Err(format!("a conflict where nobody else wrote: {error:?}"));
                }
                let checked = judge(&mut self.oracle, &taken, &now, manner, self.has_died)?;
                if taken.is_empty() {
                    let error = format!("an undo with a conflict ({error:?})");
                    return self.put_back(now, &error);
                }
                self.oracle
                    .follow(way, &taken, now, checked == Checked::Exactly);
                Ok(())
            }
            Err(
                EngineError::Plan(_)
                | EngineError::NeedsWord(_)
                | EngineError::NothingToRedo { .. }
                | EngineError::TakenBackBefore { .. }
                | EngineError::UndoneSince { .. }
                | EngineError::NoUndo { .. }
                | EngineError::TaskEnded { .. },
            ) => self.unchanged(&now, "an undo that was not possible"),
            Err(error) => Err(format!("an undo failed: {error:?}")),
        }
    }

    /// Tells which operations the journal now says are undone or back, in the order in which that happens.
    pub(crate) fn taken(&self) -> Vec<(usize, Way)> {
        let mut taken = Vec::new();
        for (index, op) in self.oracle.ops.iter().enumerate() {
            let status = self
                .engine
                .store()
                .operation(op.id)
                .unwrap()
                .unwrap()
                .status;
            match (op.is_in_effect, status.is_in_effect()) {
                (true, false) => taken.insert(0, (index, Way::Back)),
                (false, true) => taken.push((index, Way::Again)),
                (true, true) | (false, false) => {}
            }
        }
        taken
    }

    /// Later work that has nothing to do with what was asked must stay.
    fn check_independent(&self, taken: &[(usize, Way)], roots: &[usize]) -> Result<(), String> {
        let closure = self.oracle.closure(roots);
        match taken.iter().find(|(index, _)| !closure.contains(index)) {
            Some((index, way)) => {
                let id = self.oracle.ops[*index].id;
                Err(format!(
                    "operation {id} was taken {way:?} and has nothing to do with it"
                ))
            }
            None => Ok(()),
        }
    }

    /// Tells whether there is no reason for a conflict: nobody else was near, and for a redo everything is as the
    /// undo left it.
    fn must_work(&self, roots: &[usize], way: Way) -> bool {
        let closure = self.oracle.closure(roots);
        let taken: Vec<(usize, Way)> = closure.iter().map(|index| (*index, way)).collect();
        let is_near_blurred = |index: usize| {
            let about = &self.oracle.ops[index].about;
            let blurred = self.oracle.ops.iter().filter(|op| op.is_blurred);
            let mut names = blurred.flat_map(|op| &op.about);
            names.any(|name| about.iter().any(|about| is_near(about, name)))
        };
        let has_others = |index: &usize| {
            self.oracle.is_touched(*index) || self.oracle.covers(*index) || is_near_blurred(*index)
        };
        let is_quiet = !closure.iter().any(has_others);
        let is_as_left = |index: &usize| {
            let op = &self.oracle.ops[*index];
            let Some(left) = &op.left else {
                return false;
            };
            let near = |name: &&crate::seen::Rel| op.about.iter().any(|about| is_near(about, name));
            let names = left.keys().chain(self.oracle.world.keys()).filter(near);
            names
                .into_iter()
                .all(|name| alike(left.get(name), self.oracle.world.get(name)))
        };
        let can = match way {
            // What gave way to a redo comes again, if it can.
            Way::Back => {
                let is_back = |index: &&usize| !self.oracle.ops[**index].is_in_effect;
                roots.iter().filter(is_back).all(is_as_left)
            }
            Way::Again => closure.len() == 1 && roots.iter().all(is_as_left),
        };
        is_quiet && can && !self.oracle.is_shared(&taken)
    }

    fn check_tidy(&self) -> Result<(), String> {
        let is_ours =
            |name: &&crate::seen::Rel| String::from_utf8_lossy(name).contains(".backout-");
        match self.oracle.world.keys().find(is_ours) {
            Some(name) => Err(format!("a temporary name stayed: {:?}", shown(name))),
            None => Ok(()),
        }
    }

    /// Takes everything back. A story with nobody else in it must end as it began.
    fn end(&mut self, story: &Story, first: &Snapshot) -> Result<(), String> {
        self.task = None;
        loop {
            self.before = self.recorded();
            let result = self.engine.undo(
                &UndoWhat::Newest { below: None },
                &options(Manner::Refuse, true),
            );
            if let Err(EngineError::Plan(_)) = result {
                break;
            }
            let before = self.oracle.ops.iter().filter(|op| op.is_in_effect).count();
            let roots = self.roots(&UndoWhat::Newest { below: None });
            self.follow(result, &roots, Way::Back, Manner::Refuse)?;
            if before == self.oracle.ops.iter().filter(|op| op.is_in_effect).count() {
                break; // a conflict stands in the way, and was found to be one
            }
        }
        let is_alone = !story
            .steps
            .iter()
            .any(|(_, step)| matches!(step, Step::Foreign(_)));
        let is_over = !self
            .oracle
            .ops
            .iter()
            .any(|op| op.is_in_effect || op.is_blurred);
        let is_plain = is_alone && is_over;
        if let (true, Some(why)) = (is_plain, unlike(first, &look(&self.root), false)) {
            return Err(format!("after all was taken back: {why}"));
        }
        self.check_store()
    }

    fn check_store(&self) -> Result<(), String> {
        let Ok(Reply::Verified(report)) = self.engine.execute(Command::Verify) else {
            return Err("the store cannot be checked".to_owned());
        };
        if !report.findings.is_empty() {
            return Err(format!("the store is not whole: {:?}", report.findings));
        }
        let stuck =
            |status: Status| matches!(status, Status::Armed | Status::InDoubt | Status::Failed);
        let operations = self.engine.store().operations(&Filter::default()).unwrap();
        match operations.iter().find(|op| stuck(op.status)) {
            Some(op) => Err(format!("{} is {:?} at the end", op.summary, op.status)),
            None => Ok(()),
        }
    }
}

pub(crate) fn options(manner: Manner, committed: bool) -> UndoOptions {
    let on_conflict = match manner {
        Manner::Refuse => OnConflict::Refuse,
        Manner::Merge => OnConflict::Merge,
    };
    UndoOptions {
        on_conflict,
        committed,
        ..UndoOptions::default()
    }
}

pub(crate) fn named(id: OperationId) -> UndoWhat {
    UndoWhat::Operations(vec![id.to_string().parse().unwrap()])
}

fn told(report: &UndoReport) -> String {
    let step = |step: &backout_engine::UndoneStep| format!("taken back: {}", step.summary);
    report
        .steps
        .iter()
        .map(step)
        .collect::<Vec<_>>()
        .join("\n  ")
}

impl Tally {
    pub(crate) const fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.refused += other.refused;
        self.exact += other.exact;
        self.kept += other.kept;
        self.conflicts += other.conflicts;
        self.late += other.late;
        self.deaths += other.deaths;
    }
}
