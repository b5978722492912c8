//! A story: a tree and what happens to it. Plain data, made up from a seed, so that it can be told again and shortened.

use crate::dice::Dice;
use crate::foreign::{self, Foreign};
use crate::names::Name;
use crate::request::{self, Plan};
use crate::tree::{self, Item};

/// How many steps a story has at most.
const STEPS_MAX: usize = 28;

/// How an undo treats what somebody else changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Refuse,
    Merge,
}

/// What is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Newest,
    /// One of the operations, counted from the newest.
    Back(usize),
    Task,
    Checkpoint,
}

/// One thing that happens.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// The agent writes, trying one thing after the other until one is not refused; with a number, its process dies
    /// at that crash point of the first.
    Do {
        plans: Vec<Plan>,
        in_task: bool,
        dies_at: Option<usize>,
    },
    /// Somebody takes work back; with a number, the process dies at that crash point.
    Undo {
        what: What,
        manner: Manner,
        /// Whether committed work that was built on it may go as well.
        committed: bool,
        dies_at: Option<usize>,
    },
    /// Somebody takes an undo back: the newest, or that of one operation.
    Redo { back: Option<usize> },
    /// A task begins.
    Begin,
    /// The task is kept.
    Commit,
    /// A point to return to.
    Mark,
    /// Another program writes, without asking anybody.
    Foreign(Foreign),
}

/// A tree and what happens to it.
#[derive(Debug, Clone)]
pub(crate) struct Story {
    pub(crate) seed: u64,
    pub(crate) tree: Vec<Item>,
    /// The steps with their numbers in the whole story, by which a child process finds its own.
    pub(crate) steps: Vec<(usize, Step)>,
}

impl Story {
    /// Makes up the story of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let tree = tree::imagine(&mut dice);
        // Every third story has nobody else in it: there every undo must be exact.
        let is_alone = seed.is_multiple_of(3);
        let dies = seed % 4 == 1;
        let count = 4 + dice.roll(STEPS_MAX - 4);
        let mut steps: Vec<(usize, Step)> = Vec::new();
        for number in 0..count {
            let recent = steps.iter().rev().find_map(|(_, step)| match step {
                Step::Do { plans, .. } => plans.first()?.names().last().copied(),
                Step::Undo { .. }
                | Step::Redo { .. }
                | Step::Begin
                | Step::Commit
                | Step::Mark
                | Step::Foreign(_) => None,
            });
            steps.push((number, step(&mut dice, number, (is_alone, dies), recent)));
        }
        Self { seed, tree, steps }
    }

    /// Tells it to a person.
    pub(crate) fn told(&self) -> String {
        let tree = self.tree.iter().map(|item| format!("  {item:?}\n"));
        let steps = self
            .steps
            .iter()
            .map(|(number, step)| format!("  {number}: {step:?}\n"));
        format!(
            "tree:\n{}steps:\n{}",
            tree.collect::<String>(),
            steps.collect::<String>()
        )
    }
}

/// How many writes a step tries.
const TRIES: usize = 3;

fn step(
    dice: &mut Dice,
    number: usize,
    (is_alone, dies): (bool, bool),
    recent: Option<Name>,
) -> Step {
    let dies_at = |dice: &mut Dice| (dies && dice.chance(20)).then(|| 1 + dice.roll(60));
    let plans = |dice: &mut Dice| {
        let tries = 0..TRIES;
        tries
            .map(|part| request::imagine(dice, number * 10 + part, true))
            .collect()
    };
    match dice.roll(100) {
        0..=45 => Step::Do {
            plans: plans(dice),
            in_task: dice.chance(25),
            dies_at: dies_at(dice),
        },
        46..=64 => Step::Undo {
            what: match dice.roll(10) {
                0..=3 => What::Newest,
                4..=7 => What::Back(dice.roll(8)),
                8 => What::Task,
                _ => What::Checkpoint,
            },
            manner: if dice.chance(20) {
                Manner::Merge
            } else {
                Manner::Refuse
            },
            committed: dice.chance(80),
            dies_at: dies_at(dice),
        },
        65..=74 => Step::Redo {
            back: dice.chance(40).then(|| dice.roll(8)),
        },
        75..=77 => Step::Begin,
        78 | 79 => Step::Commit,
        80 | 81 => Step::Mark,
        _ if is_alone => Step::Do {
            plans: plans(dice),
            in_task: false,
            dies_at: None,
        },
        _ => Step::Foreign(foreign::imagine(dice, number, recent)),
    }
}
