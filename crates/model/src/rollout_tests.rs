//! Rollouts: waves, what is next and where one stands, as tables.

use super::*;
use crate::{DriverName, Timestamp};

fn plan(targets: usize, first: u32, wave: u32) -> RolloutPlan {
    let step = |number: usize| RolloutStep {
        target: TargetPath::new(format!("/s/{number}")).unwrap(),
        request: KeptRequest {
            driver: DriverName::FILE,
            body: Digest::of(b"body"),
            contents: vec![
                Digest::of(b"body"),
                Digest::of(number.to_string().as_bytes()),
            ],
            umask: None,
        },
        staged: Digest::of(b"staged"),
        at: Vec::new(),
    };
    RolloutPlan {
        id: OperationId::from_bits(7),
        task: "rollout-7".parse().unwrap(),
        agent: None,
        steps: (0..targets).map(step).collect(),
        first,
        wave,
        pause_ms: 0,
        check: None,
        on_failure: OnWaveFailure::Wave,
    }
}

fn owner(pid: u32) -> Owner {
    Owner {
        pid,
        started: 1,
        boot: "b".to_owned(),
        pid_namespace: 1,
        host: String::new(),
    }
}

fn past(marks: Vec<RolloutMark>, end: Option<RolloutEnd>) -> RolloutPast {
    RolloutPast {
        plan: plan(5, 1, 2),
        marks: marks.into_iter().map(|mark| (owner(1), mark)).collect(),
        end,
    }
}

const WAVE_1: RolloutMark = RolloutMark::Wave { wave: 1 };
const PASSED_1: RolloutMark = RolloutMark::Passed { wave: 1 };
const WAVE_2: RolloutMark = RolloutMark::Wave { wave: 2 };

fn failed() -> RolloutMark {
    let why = "no".to_owned();
    RolloutMark::Failed { wave: 2, why }
}

#[test]
fn waves_cover_every_step_once_and_in_order() {
    for (targets, first, wave, lengths) in [
        (14, 1, 5, &[1, 5, 5, 3][..]),
        (1, 1, 1, &[1]),
        (3, 5, 1, &[3]),
        (4, 2, 2, &[2, 2]),
        (3, 0, 0, &[1, 1, 1]),
        (3, 1, u32::MAX, &[1, 2]),
        (0, 1, 1, &[]),
    ] {
        let plan = plan(targets, first, wave);
        let found: Vec<usize> = plan.waves().iter().map(ExactSizeIterator::len).collect();
        assert_eq!(found, lengths);
        let all = (1..=plan.wave_count()).flat_map(|wave| plan.wave_steps(wave));
        let numbers: Vec<usize> = all.map(|(number, _)| number).collect();
        assert_eq!(numbers, (0..targets).collect::<Vec<_>>());
        assert_eq!(plan.wave_steps(0).count(), 0);
        assert_eq!(plan.wave_steps(plan.wave_count() + 1).count(), 0);
    }
}

#[test]
fn what_is_next_follows_from_the_marks() {
    let why = || "no".to_owned();
    let back = GoOn::TakeBack {
        wave: 2,
        why: why(),
    };
    let held = RolloutMark::Held {
        wave: 2,
        why: why(),
    };
    let left = RolloutMark::Left { why: why() };
    for (marks, next) in [
        (vec![], GoOn::Wave(1)),
        (vec![WAVE_1], GoOn::Wave(1)),
        (vec![WAVE_1, PASSED_1], GoOn::Wave(2)),
        (vec![WAVE_1, PASSED_1, WAVE_2], GoOn::Wave(2)),
        (vec![WAVE_1, PASSED_1, WAVE_2, held], GoOn::Wave(2)),
        (vec![WAVE_1, PASSED_1, WAVE_2, failed()], back.clone()),
        (vec![WAVE_2, failed(), left.clone()], back.clone()),
        // What failed once is not written again, whatever is said later.
        (vec![WAVE_2, failed(), WAVE_2], back),
        (vec![WAVE_1, RolloutMark::Aborting], GoOn::Abort),
        (
            vec![WAVE_2, failed(), RolloutMark::Aborting, left],
            GoOn::Abort,
        ),
    ] {
        assert_eq!(past(marks.clone(), None).goes_on(), next, "{marks:?}");
    }
}

#[test]
fn where_it_stands_follows_from_the_last_mark_and_from_who_is_alive() {
    let why = || "no".to_owned();
    let proposal = OperationId::from_bits(9);
    for (marks, alive, dead) in [
        (
            vec![WAVE_1],
            RolloutState::Running { wave: 1 },
            RolloutState::Died { wave: 1 },
        ),
        (
            vec![WAVE_1, PASSED_1, WAVE_2],
            RolloutState::Running { wave: 2 },
            RolloutState::Died { wave: 2 },
        ),
        (
            vec![WAVE_2, failed()],
            RolloutState::Running { wave: 2 },
            RolloutState::Died { wave: 2 },
        ),
    ] {
        let past = past(marks, None);
        assert_eq!(past.state(Some(TaskStatus::Open), |_| true), alive);
        assert_eq!(past.state(Some(TaskStatus::Open), |_| false), dead);
    }
    for (mark, state) in [
        (
            RolloutMark::Waits { wave: 2, proposal },
            RolloutState::Waits { wave: 2, proposal },
        ),
        (
            RolloutMark::Held {
                wave: 2,
                why: why(),
            },
            RolloutState::Held {
                wave: 2,
                why: why(),
            },
        ),
        (
            RolloutMark::Interrupted { wave: 2 },
            RolloutState::Interrupted { wave: 2 },
        ),
    ] {
        let past = past(vec![WAVE_1, PASSED_1, WAVE_2, mark], None);
        // Nobody is needed for these.
        assert_eq!(past.state(Some(TaskStatus::Open), |_| false), state);
        let by_hand = past.state(Some(TaskStatus::RolledBack), |_| false);
        assert_eq!(by_hand, RolloutState::ByHand);
    }
}

#[test]
fn what_did_not_come_back_says_whether_a_wave_or_all_was_meant() {
    let left = || RolloutMark::Left {
        why: "no".to_owned(),
    };
    let state = |marks| past(marks, None).state(Some(TaskStatus::Open), |_| false);
    let told = |wave| RolloutState::Left {
        wave,
        why: "no".to_owned(),
    };
    assert_eq!(state(vec![WAVE_2, failed(), left()]), told(Some(2)));
    assert_eq!(
        state(vec![WAVE_2, RolloutMark::Aborting, left()]),
        told(None)
    );
}

#[test]
fn an_end_is_the_last_word() {
    let (why, back) = ("no".to_owned(), OnWaveFailure::All);
    let (stopped, told) = (
        RolloutEnd::Stopped {
            wave: 2,
            why: why.clone(),
            back,
        },
        RolloutState::Stopped { wave: 2, why, back },
    );
    for (end, state) in [
        (RolloutEnd::Done, RolloutState::Done),
        (RolloutEnd::Aborted, RolloutState::Aborted),
        (RolloutEnd::ByHand, RolloutState::ByHand),
        (stopped, told),
    ] {
        let past = past(vec![WAVE_1], Some(end));
        assert_eq!(past.state(None, |_| true), state);
    }
    let done = past(vec![WAVE_1], Some(RolloutEnd::Done));
    let since = done.state(Some(TaskStatus::RolledBack), |_| false);
    assert_eq!(since, RolloutState::RolledBack);
}

#[test]
fn records_are_read_back_as_they_were_written() {
    let events = [
        Event::RolloutBegun(Box::new(plan(3, 1, 1))),
        Event::RolloutAt {
            id: OperationId::from_bits(7),
            owner: owner(1),
            mark: failed(),
        },
        Event::RolloutEnded {
            id: OperationId::from_bits(7),
            end: RolloutEnd::Done,
        },
    ];
    let mut previous = crate::GENESIS;
    let mut records = Vec::new();
    for (event, place) in events.iter().zip(1..) {
        let (lsn, at) = (crate::Lsn(place), Timestamp(5));
        let body = serde_json::to_vec(event).unwrap();
        let hash = Record::chain(&previous, lsn, at, &body);
        let record = Record::read(&previous, lsn, at, &body, hash).unwrap();
        assert_eq!(record.event, *event);
        assert_eq!(record.event.operation(), Some(OperationId::from_bits(7)));
        // A record is also told as JSON, with its place beside the event.
        let told: Record = serde_json::from_value(serde_json::to_value(&record).unwrap()).unwrap();
        assert_eq!(told, record);
        previous = hash;
        records.push(record);
    }
    let past = RolloutPast::of(records.clone()).unwrap();
    assert_eq!(past.plan, plan(3, 1, 1));
    assert_eq!(past.marks, [(owner(1), failed())]);
    assert_eq!(past.end, Some(RolloutEnd::Done));
    records.remove(0);
    assert_eq!(RolloutPast::of(records), None);
}
