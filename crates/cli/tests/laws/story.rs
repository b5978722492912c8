//! The steps of a story, and how they are made up.

use crate::act::Change;
use crate::keys::{CONFIGS, KEYS, KeyEdit};
use crate::random::Random;

/// The names that stories are about: few, so that steps meet.
pub(crate) const NAMES: [&str; 7] = ["a", "b", "c", "d/x", "d/y", "d", "e"];

/// How conflicts are met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Refuse,
    Force,
    Merge,
    Partial,
}

/// What is to be taken back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    Newest,
    /// The n-th of those in effect, from the newest.
    Back(usize),
    Path(&'static str),
}

/// What happens while a command waits.
#[derive(Debug, Clone)]
pub(crate) enum Meanwhile {
    Nothing,
    Foreign(Change),
    Write { agent: usize, change: Change },
    KillWatcher,
    KillBoth(Option<Change>),
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Write {
        agent: usize,
        changes: Vec<Change>,
    },
    Run {
        agent: usize,
        first: Vec<Change>,
        meanwhile: Meanwhile,
        then: Vec<Change>,
    },
    Try {
        changes: Vec<Change>,
        meanwhile: Option<Change>,
        except: Option<&'static str>,
    },
    Undo {
        agent: usize,
        what: What,
        how: How,
        only: Option<&'static str>,
        stops_at: Option<u64>,
    },
    Redo {
        agent: usize,
        back: Option<usize>,
        how: How,
        only: Option<&'static str>,
        stops_at: Option<u64>,
    },
    Restore {
        name: &'static str,
        back: usize,
        is_after: bool,
    },
    /// A process dies in the middle of a write or an undo, and perhaps somebody edits before the recovery.
    Death {
        of: Dying,
        at: usize,
        meanwhile: Option<Change>,
    },
    /// Somebody decides about what waits for it.
    Decide {
        keeps: bool,
    },
    Foreign(Change),
    /// An agent changes a config file, or a key in it.
    Key {
        agent: usize,
        edit: KeyEdit,
    },
    ForeignKey(KeyEdit),
}

/// What a process was about that dies.
#[derive(Debug, Clone)]
pub(crate) enum Dying {
    Write(Change),
    Undo(usize),
    Redo(usize),
}

/// Makes up the story of a seed. One in three has processes in it, which take their time; one in four is about keys, too.
pub(crate) fn imagine(seed: u64) -> Vec<Step> {
    let mut random = Random::new(seed.wrapping_mul(0x9E37_79B9) + 1);
    let has_processes = seed.is_multiple_of(3);
    let is_alone = seed % 5 == 1;
    let has_keys = seed % 4 == 2;
    let length = 4 + random.below(10);
    let mut tag = 0;
    (0..length)
        .map(|_| {
            loop {
                let step = if has_keys && random.below(2) == 0 {
                    about_keys(&mut random, &mut tag)
                } else {
                    step(&mut random, &mut tag, has_processes)
                };
                let is_foreign = matches!(step, Step::Foreign(_) | Step::ForeignKey(_));
                if !(is_foreign && is_alone) {
                    break step;
                }
            }
        })
        .collect()
}

fn step(random: &mut Random, tag: &mut usize, has_processes: bool) -> Step {
    let agent = random.below(3);
    let changes = |random: &mut Random, tag: &mut usize, most: usize| {
        let count = 1 + random.below(most);
        (0..count).map(|_| change(random, tag)).collect::<Vec<_>>()
    };
    let maybe =
        |random: &mut Random, tag: &mut usize| (random.below(2) == 0).then(|| change(random, tag));
    let most = if has_processes { 130 } else { 96 };
    match random.below(most) {
        0..=29 => Step::Write {
            agent,
            changes: changes(random, tag, 3),
        },
        30..=56 => Step::Undo {
            agent,
            what: match random.below(5) {
                0 | 1 => What::Newest,
                2 | 3 => What::Back(random.below(6)),
                _ => What::Path(name(random)),
            },
            how: how(random),
            only: only(random),
            stops_at: stop(random),
        },
        57..=71 => Step::Redo {
            agent,
            back: (random.below(2) == 0).then(|| random.below(5)),
            how: how(random),
            only: only(random),
            stops_at: stop(random),
        },
        72..=75 => Step::Restore {
            name: name(random),
            back: random.below(6),
            is_after: random.below(2) == 0,
        },
        76..=95 => Step::Foreign(change(random, tag)),
        96..=108 => Step::Run {
            agent,
            first: changes(random, tag, 4),
            meanwhile: match random.below(8) {
                0 | 1 => Meanwhile::Nothing,
                2 | 3 => Meanwhile::Foreign(change(random, tag)),
                4 | 5 => Meanwhile::Write {
                    agent: random.below(3),
                    change: change(random, tag),
                },
                6 => Meanwhile::KillWatcher,
                _ => Meanwhile::KillBoth(maybe(random, tag)),
            },
            then: changes(random, tag, 2),
        },
        109..=114 => Step::Try {
            changes: changes(random, tag, 4),
            meanwhile: maybe(random, tag),
            except: (random.below(2) == 0).then(|| name(random)),
        },
        115..=126 => Step::Death {
            of: match random.below(4) {
                0 | 1 => Dying::Write(change(random, tag)),
                2 => Dying::Undo(random.below(4)),
                _ => Dying::Redo(random.below(3)),
            },
            at: 1 + random.below(40),
            meanwhile: maybe(random, tag),
        },
        _ => Step::Decide {
            keeps: random.below(2) == 0,
        },
    }
}

/// Makes up a step about config files.
fn about_keys(random: &mut Random, tag: &mut usize) -> Step {
    *tag += 1;
    let agent = random.below(3);
    let at = *random.pick(&CONFIGS);
    let key = *random.pick(&KEYS);
    let tag = *tag;
    let edit = match random.below(9) {
        0..=3 => KeyEdit::Set { at, key, tag },
        4 | 5 => KeyEdit::Unset { at, key },
        6 | 7 => KeyEdit::Whole { at, tag },
        _ => KeyEdit::Gone { at },
    };
    match random.below(10) {
        0..=5 => Step::Key { agent, edit },
        6 | 7 => Step::ForeignKey(edit),
        8 => Step::Undo {
            agent,
            what: What::Path(at),
            how: how(random),
            only: None,
            stops_at: None,
        },
        _ => Step::Restore {
            name: at,
            back: random.below(6),
            is_after: random.below(2) == 0,
        },
    }
}

fn how(random: &mut Random) -> How {
    match random.below(10) {
        0 | 1 => How::Force,
        2 => How::Merge,
        3 | 4 => How::Partial,
        _ => How::Refuse,
    }
}

fn only(random: &mut Random) -> Option<&'static str> {
    (random.below(6) == 0).then(|| name(random))
}

fn stop(random: &mut Random) -> Option<u64> {
    (random.below(8) == 0).then(|| u64::try_from(random.below(4)).unwrap_or(0))
}

fn change(random: &mut Random, tag: &mut usize) -> Change {
    *tag += 1;
    let at = name(random);
    let tag = *tag;
    match random.below(12) {
        0..=3 => Change::Write { at, tag },
        4 => Change::Append { at, tag },
        5 | 6 => Change::Edit {
            at,
            line: 1 + random.below(8),
            tag,
        },
        7 | 8 => Change::Remove { at },
        9 => Change::Move {
            from: at,
            to: name(random),
        },
        10 => Change::Chmod {
            at,
            is_open: random.below(2) == 0,
        },
        _ => Change::Mkdir { at },
    }
}

fn name(random: &mut Random) -> &'static str {
    NAMES[random.below(NAMES.len())]
}
