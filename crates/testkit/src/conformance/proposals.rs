//! What waits for a decision, calls that are made once, and acts of several steps.

use backout_model::ports::{Durability, Entry, NewContent};
use backout_model::{
    ActPlan, Asked, Decided, Digest, DriverName, Event, Intent, KeptRequest, Proposal, Refusal,
    Retention, Status,
};
use backout_storage::this_process;

use super::{World, dead, id, intent, node};

fn call(request: &[u8]) -> Asked {
    Asked::new("call-1".parse().expect("a key"), Digest::of(request))
}

/// Proposes a write that needs one content.
fn propose(world: &World, number: u64) -> Proposal {
    let body = NewContent::of(format!("request {number}").into_bytes());
    let wanted = intent(number, &[node("/a")]);
    let proposal = Proposal {
        id: wanted.id,
        verb: wanted.verb,
        summary: wanted.summary,
        agent: None,
        task: None,
        owner: dead(),
        targets: wanted.targets,
        depends_on: Vec::new(),
        call: Some(call(b"asked")),
        decision: wanted.decision,
        request: KeptRequest {
            driver: DriverName::FILE,
            body: body.digest,
            contents: vec![body.digest],
            umask: None,
        },
        staged: Digest::of(b"staged"),
        reasons: Vec::new(),
        expires: None,
    };
    let entry = Entry {
        events: vec![Event::Proposed(Box::new(proposal.clone()))],
        contents: vec![body],
    };
    let appended = world.store.append(&entry, Durability::Power);
    appended.expect("it fits");
    proposal
}

fn refuse(proposal: &Proposal) -> Event {
    Event::Refused(Box::new(Refusal {
        id: proposal.id,
        verb: proposal.verb,
        summary: proposal.summary.clone(),
        agent: None,
        targets: proposal.targets.clone(),
        owner: this_process(),
        why: "no".to_owned(),
        call: proposal.call.clone(),
        trigger: None,
        decided: None,
    }))
}

/// Nothing is built on it, nothing lets its request go, and it is found by another process.
pub fn a_proposal_waits_with_all_that_it_needs(world: &World) {
    let proposal = propose(world, 1);
    assert_eq!(world.status(id(1)), Status::Proposed);
    let found = world.again().proposals().expect("listed");
    assert_eq!(found.first(), Some(&proposal));
    assert_eq!(found.len(), 1);
    assert_eq!(world.store.dependencies(&[node("/a")]).expect("asked"), []);
    world.gc(
        &Retention {
            committed_ms_min: 0,
            committed_ms_max: 0,
            ..Retention::standard()
        },
        false,
    );
    let body = world.store.read(&proposal.request.body);
    assert_eq!(body.expect("kept"), b"request 1");
}

/// The first to claim it decides; an approval is the operation itself, under the same id.
pub fn a_proposal_is_claimed_once_and_becomes_the_operation(world: &World) {
    let proposal = propose(world, 1);
    let seen = world.operation(id(1));
    let us = this_process();
    assert!(world.store.claim(&seen, &us).expect("asked"));
    assert!(!world.again().claim(&seen, &us).expect("asked"));
    world.arm_as(Intent {
        call: proposal.call.clone(),
        approval: Some(Decided {
            by: "a person".to_owned(),
            why: None,
        }),
        ..intent(1, &[node("/a")])
    });
    world.finish(id(1));
    assert_eq!(world.status(id(1)), Status::Committed);
    assert_eq!(world.store.proposals().expect("listed"), []);
    assert_eq!(world.store.proposal(id(1)).expect("found"), Some(proposal));
    assert_eq!(
        world
            .store
            .dependencies(&[node("/a")])
            .expect("asked")
            .len(),
        1
    );
}

/// A refusal ends it, and what it needed may go.
pub fn a_proposal_that_is_refused_is_over(world: &World) {
    let proposal = propose(world, 1);
    world.append(vec![refuse(&proposal)]);
    assert_eq!(world.status(id(1)), Status::Refused);
    assert_eq!(world.again().proposals().expect("listed"), []);
    world.gc(&Retention::standard(), false);
    assert!(!world.store.has(&proposal.request.body).expect("asked"));
}

/// Whatever became of it, the key leads to the operation that answered.
pub fn a_call_is_found_by_its_key(world: &World) {
    let key = call(b"").key;
    assert_eq!(world.store.answer_to(&key).expect("asked"), None);
    let proposal = propose(world, 1);
    let answer = Some((id(1), call(b"asked")));
    assert_eq!(world.store.answer_to(&key).expect("asked"), answer);
    world.append(vec![refuse(&proposal)]);
    assert_eq!(world.again().answer_to(&key).expect("asked"), answer);
    let second = Event::Intent(Box::new(Intent {
        call: Some(call(b"other")),
        ..intent(2, &[node("/b")])
    }));
    let taken = world
        .store
        .append(&Entry::of(vec![second]), Durability::Process);
    assert!(taken.is_err(), "a key stands for one call");
}

/// From an operation that did not come to pass, the key moves on to the next one.
pub fn a_key_moves_on_from_what_did_not_happen(world: &World) {
    let asking = |number| Intent {
        call: Some(call(b"asked")),
        ..intent(number, &[node("/a")])
    };
    world.arm_as(asking(1));
    let second = Entry::of(vec![Event::Intent(Box::new(asking(2)))]);
    let taken = world.store.append(&second, Durability::Process);
    assert!(taken.is_err(), "the first may still happen");
    world.append(vec![Event::Abort {
        id: id(1),
        why: "somebody stopped it".to_owned(),
        outcomes: Vec::new(),
        trigger: None,
    }]);
    world.arm_as(asking(2));
    world.finish(id(2));
    let answer = Some((id(2), call(b"asked")));
    let found = world.again().answer_to(&call(b"").key);
    assert_eq!(found.expect("asked"), answer);
}

/// It is known from its first step on until somebody says that it is over.
pub fn an_act_of_several_steps_is_known_until_it_ends(world: &World) {
    let plan = ActPlan {
        steps: vec![id(8), id(9)],
        task: None,
        is_part: false,
    };
    world.arm_as(Intent {
        plan: Some(plan.clone()),
        ..intent(1, &[node("/a")])
    });
    let open = world.again().open_acts().expect("listed");
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].id, open[0].is_told), (id(1), false));
    assert_eq!(world.store.plan_of(id(1)).expect("asked"), Some(plan));
    assert!(world.store.tell_act(id(1)).expect("told"));
    assert!(!world.again().tell_act(id(1)).expect("told"), "once");
    world.store.end_act(id(1)).expect("ended");
    assert_eq!(world.store.open_acts().expect("listed"), []);
}
