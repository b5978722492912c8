//! What a store keeps for rollouts.

use backout_model::ports::{Durability, Entry, NewContent};
use backout_model::{
    DriverName, Event, KeptRequest, OnWaveFailure, Retention, RolloutEnd, RolloutMark, RolloutPast,
    RolloutPlan, RolloutStep, TargetPath,
};
use backout_storage::this_process;

use super::{World, id};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Everything may go at once.
fn hasty() -> Retention {
    Retention {
        audit_ms: 0,
        ..Retention::standard()
    }
}

fn begin(world: &World, number: u64, body: &[u8]) -> RolloutPlan {
    let body = NewContent::of(body.to_vec());
    let plan = RolloutPlan {
        id: id(number),
        task: format!("r{number}").parse().expect("a name"),
        agent: None,
        steps: vec![RolloutStep {
            target: TargetPath::new("/a").expect("a path"),
            request: KeptRequest {
                driver: DriverName::FILE,
                body: body.digest,
                contents: vec![body.digest],
                umask: None,
            },
            staged: body.digest,
            at: Vec::new(),
        }],
        first: 1,
        wave: 1,
        pause_ms: 0,
        check: None,
        on_failure: OnWaveFailure::Wave,
    };
    let entry = Entry {
        events: vec![Event::RolloutBegun(Box::new(plan.clone()))],
        contents: vec![body],
    };
    world.store.append(&entry, Durability::Power).expect("kept");
    plan
}

/// In the order of their beginning, by every handle, ended or not.
pub fn rollouts_are_listed_and_read_back(world: &World) {
    let first = begin(world, 1, b"one");
    begin(world, 2, b"two");
    let mark = RolloutMark::Passed { wave: 1 };
    world.append(vec![
        Event::RolloutAt {
            id: id(1),
            owner: this_process(),
            mark: mark.clone(),
        },
        Event::RolloutEnded {
            id: id(1),
            end: RolloutEnd::Done,
        },
    ]);
    let store = world.again();
    assert_eq!(store.rollouts().expect("listed"), [id(2), id(1)]);
    let past = RolloutPast::of(store.records_of(id(1)).expect("read")).expect("a plan");
    assert_eq!(past.plan, first);
    assert_eq!(past.marks, [(this_process(), mark)]);
    assert_eq!(past.end, Some(RolloutEnd::Done));
    // It is no operation.
    assert!(store.operation(id(1)).expect("asked").is_none());
}

/// The requests of an open rollout stay whatever its age, and so does its plan; with its end they may go.
pub fn what_an_open_rollout_needs_stays_until_it_ends(world: &World) {
    let plan = begin(world, 1, b"request");
    let has = || {
        let mut contents = plan.contents();
        contents.all(|digest| world.store.has(digest).expect("asked"))
    };
    world.clock.pass(999 * DAY_MS);
    world.gc(&hasty(), false);
    world.store.cut_audit(&hasty()).expect("cut");
    assert!(has());
    assert_eq!(world.store.rollouts().expect("listed"), [id(1)]);
    assert!(RolloutPast::of(world.store.records_of(id(1)).expect("read")).is_some());
    world.append(vec![Event::RolloutEnded {
        id: id(1),
        end: RolloutEnd::Aborted,
    }]);
    world.gc(&hasty(), false);
    assert!(!has());
    world.clock.pass(999 * DAY_MS);
    world.store.cut_audit(&hasty()).expect("cut");
    assert!(world.store.rollouts().expect("listed").is_empty());
}
