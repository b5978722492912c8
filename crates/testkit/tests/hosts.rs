//! A store that serves several machines: another one's process lives as long as it says so.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use backout_model::ports::{
    Append as _, Durability, Entry, Journal as _, Lease, Leases as _, Owners as _, SILENT_MS_MAX,
};
use backout_model::{
    Decision, DriverName, Event, Intent, JsonText, OperationId, Owner, Recipe, Strategy, Target,
    TargetPath, Verb,
};
use backout_testkit::{MemoryStore, TestClock};

struct Hosts {
    alpha: MemoryStore,
    beta: MemoryStore,
    clock: Arc<TestClock>,
    _directory: tempfile::TempDir,
}

fn hosts() -> Hosts {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(TestClock::default());
    let store = MemoryStore::new(directory.path(), clock.clone()).unwrap();
    Hosts {
        alpha: store.again_on("alpha"),
        beta: store.again_on("beta"),
        clock,
        _directory: directory,
    }
}

fn target() -> Target {
    Target::node(TargetPath::new("/a").unwrap())
}

fn lease(store: &MemoryStore, number: u64) -> Lease {
    let id = OperationId::from_bits(number);
    let owner = store.this_process();
    store.lease(id, &[target()], &owner, &[]).unwrap()
}

fn arm(store: &MemoryStore, number: u64) {
    let intent = Intent {
        id: OperationId::from_bits(number),
        verb: Verb::Write,
        summary: String::new(),
        agent: None,
        task: None,
        owner: store.this_process(),
        decision: Decision::new(Strategy::Snapshot, &[], String::new()),
        targets: vec![target()],
        depends_on: Vec::new(),
        undoes: None,
        with: None,
        group: None,
        asked: None,
        notes: Vec::new(),
        command: None,
        plan: None,
        trigger: None,
        call: None,
        approval: None,
        prompt: None,
        recipe: Recipe {
            driver: DriverName::FILE,
            version: 1,
            contents: Vec::new(),
            slots: Vec::new(),
            body: JsonText::default(),
        },
    };
    let entry = Entry::of(vec![Event::Intent(Box::new(intent))]);
    store.append(&entry, Durability::Power).unwrap();
}

#[test]
fn a_process_on_another_host_is_not_dead_because_its_boot_differs() {
    let hosts = hosts();
    let there = hosts.alpha.this_process();
    assert_ne!(there.boot, hosts.beta.this_process().boot);
    hosts.alpha.beat().unwrap();
    assert!(hosts.beta.is_alive(&there));
    assert!(
        !hosts.beta.is_from_another_boot(&there),
        "no boot of this machine"
    );
    hosts.clock.pass(SILENT_MS_MAX - 1);
    assert!(hosts.beta.is_alive(&there), "it may only be slow");
    hosts.alpha.beat().unwrap();
    hosts.clock.pass(SILENT_MS_MAX - 1);
    assert!(hosts.beta.is_alive(&there));
    hosts.clock.pass(1);
    assert!(!hosts.beta.is_alive(&there), "it said nothing for too long");
    assert!(hosts.alpha.is_alive(&there), "whoever is there can look");
    let before = Owner {
        boot: "the boot before".to_owned(),
        ..there
    };
    assert!(!hosts.alpha.is_alive(&before));
    assert!(hosts.alpha.is_from_another_boot(&before));
}

#[test]
fn what_a_silent_host_left_is_taken_over_and_not_before() {
    let hosts = hosts();
    hosts.alpha.beat().unwrap();
    assert_eq!(lease(&hosts.alpha, 1), Lease::Taken);
    let held = lease(&hosts.beta, 2);
    assert!(
        matches!(&held, Lease::Held { owner, .. } if owner.host == "alpha"),
        "{held:?}"
    );
    hosts.clock.pass(SILENT_MS_MAX);
    assert_eq!(lease(&hosts.beta, 2), Lease::Taken, "nothing was armed");
    hosts.beta.release(OperationId::from_bits(2)).unwrap();
    // What was armed has to be recovered first.
    hosts.alpha.beat().unwrap();
    assert_eq!(lease(&hosts.alpha, 3), Lease::Taken);
    arm(&hosts.alpha, 3);
    assert!(matches!(lease(&hosts.beta, 4), Lease::Held { .. }));
    hosts.clock.pass(SILENT_MS_MAX);
    let by = OperationId::from_bits(3);
    assert_eq!(lease(&hosts.beta, 4), Lease::Abandoned { by });
    let left = hosts.beta.operation(by).unwrap().unwrap();
    let owner = hosts.beta.this_process();
    assert!(hosts.beta.claim(&left, &owner).unwrap());
    assert!(
        !hosts
            .alpha
            .claim(&left, &hosts.alpha.this_process())
            .unwrap()
    );
}
