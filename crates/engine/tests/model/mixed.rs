//! Random tasks over three drivers: files, keys of a config file, and rows of a table that is no file to us.
//!
//! Every value is unique, so the world says which operations are in it. After each step the world is held against the journal
//! (what is in effect, replayed), and where nobody died against a list of writes that knows nothing of engines. Processes die at
//! random crash points, those of the table among them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use backout_crashpoint::crash_point;
use backout_driver_example::{PutRows, Rows, Table};
use backout_drivers::config::{ConfigEdit, ConfigRequest, NewValue};
use backout_drivers::file::FileRequest;
use backout_engine::{
    Context, Engine, EngineError, RedoWhat, Selection, Settings, UndoOptions, UndoWhat,
};
use backout_model::ports::Request;
use backout_model::{Glob, OperationId, Target, TaskId};

use crate::dice::Dice;
use crate::shelf;

/// Says to a child where the world is, and what it is to do there.
const CHILD: &str = "BACKOUT_MIXED_CHILD";
const STEP: &str = "BACKOUT_MIXED_STEP";

const STORIES: u64 = 12;
const STEPS: usize = 12;
const ITEMS: [&str; 7] = ["f0", "f1", "ka", "kb", "r0", "r1", "r2"];

/// What every item is; none if it is not there.
type State = BTreeMap<String, Option<String>>;

/// A write: items of one driver, with what they become.
type Write = BTreeMap<&'static str, String>;

struct Story {
    seed: u64,
    _directory: tempfile::TempDir,
    base: PathBuf,
    engine: Engine,
    first: State,
    /// The writes that became operations, oldest first, with the items of each that are in effect.
    done: Vec<(OperationId, Write, BTreeSet<&'static str>)>,
}

fn table(base: &Path) -> Table {
    Table::new(base.join("table")).with_steps(|| {
        crash_point("rows.step");
        Ok(())
    })
}

fn task() -> TaskId {
    "mixed".parse().unwrap()
}

/// An engine with all three drivers, within the task.
fn engine(base: &Path) -> Engine {
    let mut engine = shelf::engine(Settings::new(base.join("state")));
    engine.register(Arc::new(Rows::new(table(base)))).unwrap();
    engine
}

fn inside(engine: &Engine) -> Engine {
    engine.for_caller(Context {
        task: Some(task()),
        ..Context::default()
    })
}

/// Makes up a write: rows go several at once.
fn made_up(dice: &mut Dice, step: usize) -> Write {
    let item = ITEMS[dice.roll(ITEMS.len())];
    let mut items = vec![item];
    if item.starts_with('r') && dice.chance(60) {
        items.push(ITEMS[4 + dice.roll(3)]);
    }
    let value = |item| (item, format!("{item}-{step}"));
    items.into_iter().map(value).collect()
}

fn request(base: &Path, write: &Write) -> Box<dyn Request> {
    let (item, value) = write.iter().next().unwrap();
    match item.as_bytes()[0] {
        b'f' => Box::new(FileRequest::write(
            base.join("work").join(item),
            value.as_str(),
        )),
        b'k' => Box::new(ConfigRequest {
            path: base.join("work/app.json"),
            format: None,
            edit: ConfigEdit::Set {
                key: item.parse().unwrap(),
                value: NewValue::Text(value.clone()),
            },
        }),
        _ => {
            let rows = write.iter();
            Box::new(PutRows(
                rows.map(|(row, value)| ((*row).to_owned(), Some(value.clone())))
                    .collect(),
            ))
        }
    }
}

fn look(base: &Path) -> State {
    let text = std::fs::read_to_string(base.join("work/app.json")).unwrap();
    let config: BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
    let mut rows = table(base).rows().unwrap();
    let now = ITEMS.iter().map(|item| {
        let value = match item.as_bytes()[0] {
            b'f' => std::fs::read_to_string(base.join("work").join(item)).ok(),
            b'k' => config.get(*item).cloned(),
            _ => rows.remove(*item),
        };
        ((*item).to_owned(), value)
    });
    now.collect()
}

fn item_of(target: &Target) -> Option<&'static str> {
    let key = target.key();
    let name = match (key.file(), key.parts(), key.names()) {
        (Some(_), [part], _) => part.clone(),
        (Some(path), [], _) => path.as_path().file_name()?.to_str()?.to_owned(),
        (None, _, [name]) => name.clone(),
        _ => return None,
    };
    ITEMS.iter().find(|item| **item == name).copied()
}

/// Allows all that a plan may need.
fn options() -> UndoOptions {
    UndoOptions {
        committed: true,
        others: true,
        ..UndoOptions::default()
    }
}

fn named(id: OperationId) -> UndoWhat {
    UndoWhat::Operations(vec![id.to_string().parse().unwrap()])
}

const NEWEST: RedoWhat = RedoWhat::Newest { below: None };

impl Story {
    fn begin(seed: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("work")).unwrap();
        std::fs::write(base.join("work/f0"), "f0-first").unwrap();
        let config = "{\n  \"ka\": \"first\",\n  \"z\": \"stays\"\n}\n";
        std::fs::write(base.join("work/app.json"), config).unwrap();
        table(&base).put("r0", None, Some("r0-first")).unwrap();
        let engine = engine(&base);
        engine.begin(Some(task()), None).unwrap();
        Self {
            seed,
            first: look(&base),
            base,
            _directory: directory,
            engine,
            done: Vec::new(),
        }
    }

    /// What the writes that are in effect make of the first state.
    fn replayed(&self) -> State {
        let mut state = self.first.clone();
        for (_, write, items) in &self.done {
            let stands = write.iter().filter(|(item, _)| items.contains(*item));
            state.extend(stands.map(|(item, value)| ((*item).to_owned(), Some(value.clone()))));
        }
        state
    }

    /// Takes over what the journal says is in effect.
    fn learn(&mut self) {
        for (id, _, items) in &mut self.done {
            let operation = self.engine.store().operation(*id).unwrap().unwrap();
            let is_done = operation.status.is_in_effect();
            let there = operation.in_effect().filter(|_| is_done);
            *items = there.filter_map(|it| item_of(&it.target)).collect();
        }
    }

    /// Holds the world against the list of writes, and that against the journal.
    fn check(&mut self, after: &str) {
        let expected = self.replayed();
        assert_eq!(look(&self.base), expected, "seed {}, {after}", self.seed);
        self.learn();
        let told = self.replayed();
        assert_eq!(told, expected, "seed {}, the journal, {after}", self.seed);
    }

    /// Takes a write back in the list, with all that was built on it: whole operations, or only one item.
    fn forget(&mut self, number: usize, only: Option<&'static str>) {
        let meant = |items: &BTreeSet<&'static str>| match only {
            Some(only) => items.iter().copied().filter(|it| *it == only).collect(),
            None => items.clone(),
        };
        let mut gone: BTreeSet<&'static str> = BTreeSet::new();
        for (index, (_, _, items)) in self.done.iter_mut().enumerate().skip(number) {
            if index == number || !items.is_disjoint(&gone) {
                let taken = meant(items);
                items.retain(|it| !taken.contains(it));
                gone.extend(taken);
            }
        }
    }

    fn standing(&self, dice: &mut Dice) -> Option<usize> {
        let standing = self.done.iter().enumerate();
        let standing: Vec<usize> = standing
            .filter(|(_, (_, _, items))| !items.is_empty())
            .map(|(number, _)| number)
            .collect();
        (!standing.is_empty()).then(|| standing[dice.roll(standing.len())])
    }

    fn write(&mut self, write: Write) {
        let request = request(&self.base, &write);
        let id = inside(&self.engine).write(&*request).unwrap().id.unwrap();
        let items = write.keys().copied().collect();
        self.done.push((id, write, items));
        self.check("a write");
    }

    fn undo(&mut self, dice: &mut Dice, number: usize) {
        let (id, _, items) = &self.done[number];
        let id = *id;
        let only = items.iter().next().copied();
        let only = only.filter(|it| it.starts_with('r') && items.len() > 1 && dice.chance(60));
        let mut options = options();
        if let Some(row) = only {
            let glob = Glob::elsewhere(format!("rows:table/{row}")).unwrap();
            options.selection = Selection {
                only: vec![glob],
                exclude: Vec::new(),
            };
        }
        let before = self.replayed();
        self.engine.undo(&named(id), &options).unwrap();
        self.forget(number, only);
        self.check("an undo");
        if dice.chance(40) {
            self.engine.redo(&NEWEST, &options).unwrap();
            self.learn();
            assert_eq!(look(&self.base), before, "seed {}, a redo", self.seed);
            self.check("a redo");
        }
    }

    /// Has another process do a step and die in it, recovers, and holds what is there against the journal.
    fn death(&mut self, dice: &mut Dice, step: usize) {
        let stands = self.standing(dice).filter(|_| dice.chance(60));
        let write = made_up(dice, step);
        let what = match stands {
            Some(number) => format!("undo {}", self.done[number].0),
            None => format!("write {}", serde_json::to_string(&write).unwrap()),
        };
        let newest = |story: &Self| {
            let all = story
                .engine
                .store()
                .operations(&backout_engine::Filter::default());
            let all = all.unwrap().into_iter();
            all.map(|op| op.id).collect::<BTreeSet<_>>()
        };
        let known = newest(self);
        let status = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "mixed::the_child_of_a_mixed_story",
                "--nocapture",
            ])
            .env(CHILD, &self.base)
            .env(STEP, &what)
            .env("BACKOUT_CRASH_AT", (1 + dice.roll(28)).to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.unwrap();
        self.engine.recover(None).unwrap();
        let new = newest(self);
        for id in new.difference(&known) {
            let operation = self.engine.store().operation(*id).unwrap().unwrap();
            if !operation.verb.is_reversal() {
                self.done.push((*id, write.clone(), BTreeSet::new()));
            }
        }
        self.learn();
        self.check(&format!("death in: {what}"));
    }

    /// Rolls the task back, brings it again, and rolls it back for good.
    fn end(mut self) {
        let program = shelf::engine(Settings::new(self.base.join("state")));
        let is_row =
            |(_, _, items): &&(_, _, BTreeSet<&str>)| items.iter().any(|it| it.starts_with('r'));
        if let Some((id, ..)) = self.done.iter().find(is_row) {
            let refused = program.undo(&named(*id), &options());
            assert!(matches!(refused, Err(EngineError::NoDriver { .. })));
            self.check("an undo by a program without the driver");
        }
        let (before, what) = (self.replayed(), UndoWhat::Task(task()));
        let is_empty = before == self.first && self.done.iter().all(|(.., items)| items.is_empty());
        let plan = self.engine.preview_undo(&what, &options());
        let report = self
            .engine
            .rollback(&what, &options(), "the story ends")
            .unwrap();
        assert_eq!(
            look(&self.base),
            self.first,
            "seed {}, the rollback",
            self.seed
        );
        if is_empty {
            return;
        }
        let plan: Vec<_> = plan.unwrap().steps.iter().map(|step| step.id).collect();
        let steps: Vec<_> = report.steps.iter().map(|step| step.id).collect();
        assert_eq!(plan, steps, "seed {}: what was planned was done", self.seed);
        self.engine.redo(&NEWEST, &options()).unwrap();
        assert_eq!(look(&self.base), before, "seed {}, the redo", self.seed);
        self.learn();
        self.check("the redo of the rollback");
    }
}

#[test]
fn tasks_of_files_keys_and_rows_go_back_and_come_again_whoever_dies() {
    let mut deaths = 0;
    for seed in 0..STORIES {
        let (mut story, mut dice) = (Story::begin(seed), Dice::new(seed));
        for step in 0..STEPS {
            let stands = story.standing(&mut dice);
            match (dice.roll(10), stands) {
                (0..=1, _) => {
                    deaths += 1;
                    story.death(&mut dice, step);
                }
                (2..=4, Some(number)) => story.undo(&mut dice, number),
                _ => story.write(made_up(&mut dice, step)),
            }
        }
        story.end();
    }
    assert!(deaths > 5, "some die");
}

#[test]
fn the_child_of_a_mixed_story() {
    let (Some(base), Ok(step)) = (std::env::var_os(CHILD), std::env::var(STEP)) else {
        return;
    };
    let (base, (verb, what)) = (PathBuf::from(base), step.split_once(' ').unwrap());
    let engine = engine(&base);
    if verb == "undo" {
        let what = UndoWhat::Operations(vec![what.parse().unwrap()]);
        drop(engine.undo(&what, &options()));
        return;
    }
    let write: BTreeMap<String, String> = serde_json::from_str(what).unwrap();
    let item = |name: String| *ITEMS.iter().find(|item| **item == name).unwrap();
    let write = write.into_iter().map(|(name, value)| (item(name), value));
    drop(inside(&engine).write(&*request(&base, &write.collect())));
}
