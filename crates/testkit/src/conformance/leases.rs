//! Leases, claims, owners.

use backout_model::ports::Lease;
use backout_model::{Event, Intent, Owner, Target};
use backout_storage::this_process;

use super::{World, applied, dead, id, intent, node, tree};

fn lease(world: &World, number: u64, target: Target, owner: &Owner) -> Lease {
    let taken = world.store.lease(id(number), &[target], owner, &[]);
    taken.expect("asked")
}

/// A process that lives and is not this one.
fn other(world: &World) -> Owner {
    let first = world.store.process(1).expect("there is a first process");
    assert!(world.store.is_alive(&first));
    first
}

/// All or none of what is asked for, and nothing of a tree that somebody has.
pub fn a_lease_keeps_others_off_overlapping_targets_only(world: &World) {
    let (ours, other) = (this_process(), other(world));
    assert_eq!(lease(world, 1, tree("/d"), &other), Lease::Taken);
    let held = Lease::Held {
        target: node("/d/f"),
        by: id(1),
        owner: other.clone(),
    };
    let both = [node("/free"), node("/d/f")];
    let taken = world.again().lease(id(2), &both, &ours, &[]);
    assert_eq!(taken.expect("asked"), held);
    assert_eq!(
        lease(world, 3, node("/free"), &ours),
        Lease::Taken,
        "it took none"
    );
    assert!(matches!(
        lease(world, 2, node("/d"), &ours),
        Lease::Held { .. }
    ));
    assert_eq!(lease(world, 2, node("/dd"), &ours), Lease::Taken);
    assert_eq!(
        lease(world, 2, node("/dd"), &ours),
        Lease::Taken,
        "it is its own already"
    );
    world.store.release(id(1)).expect("released");
    assert_eq!(lease(world, 4, node("/d/f"), &ours), Lease::Taken);
}

/// What was armed must be recovered first.
pub fn a_dead_owners_lease_is_taken_over_unless_something_is_armed(world: &World) {
    let ours = this_process();
    lease(world, 1, node("/a"), &dead());
    assert_eq!(lease(world, 2, node("/a"), &ours), Lease::Taken);
    assert!(matches!(lease(world, 1, node("/a"), &ours), Lease::Held { by, .. } if by == id(2)));
    lease(world, 3, node("/b"), &dead());
    world.arm_as(Intent {
        owner: dead(),
        ..intent(3, &[node("/b")])
    });
    assert_eq!(
        lease(world, 4, node("/b"), &ours),
        Lease::Abandoned { by: id(3) }
    );
}

/// Who recovers takes what the other had.
pub fn what_others_hold_is_not_in_the_way_of_who_works_in_their_place(world: &World) {
    let ours = this_process();
    lease(world, 1, node("/a"), &other(world));
    let instead = world.store.lease(id(2), &[node("/a")], &ours, &[id(1)]);
    assert_eq!(instead.expect("asked"), Lease::Taken);
}

/// With the record that ends it.
pub fn a_lease_ends_with_its_operation(world: &World) {
    let ours = this_process();
    lease(world, 1, node("/a"), &ours);
    world.arm(1, &[node("/a")]);
    assert!(matches!(
        lease(world, 2, node("/a"), &ours),
        Lease::Held { .. }
    ));
    world.append(vec![applied(id(1))]);
    assert_eq!(lease(world, 2, node("/a"), &ours), Lease::Taken);
    world.arm(2, &[node("/a")]);
    world.append(vec![Event::Abort {
        id: id(2),
        why: "no".to_owned(),
        outcomes: Vec::new(),
        trigger: None,
    }]);
    assert_eq!(lease(world, 3, node("/a"), &ours), Lease::Taken);
}

/// By what both saw; the first owner stays known.
pub fn only_one_of_two_recoveries_claims_an_operation(world: &World) {
    lease(world, 1, node("/a"), &dead());
    world.arm_as(Intent {
        owner: dead(),
        ..intent(1, &[node("/a")])
    });
    let seen_by_both = world.operation(id(1));
    let (ours, other) = (this_process(), other(world));
    assert!(world.store.claim(&seen_by_both, &ours).expect("asked"));
    assert!(!world.again().claim(&seen_by_both, &other).expect("asked"));
    assert_eq!(world.operation(id(1)).owner, ours);
    assert_eq!(world.store.first_owner(id(1)).expect("known"), dead());
    let held = lease(world, 2, node("/a"), &ours);
    assert!(
        matches!(held, Lease::Held { owner, .. } if owner == ours),
        "the lease is theirs too"
    );
    // Somebody may have settled it since it was looked at.
    let seen = world.operation(id(1));
    world.finish(id(1));
    assert!(!world.store.claim(&seen, &other).expect("asked"));
}

/// But for what was armed.
pub fn leases_of_the_dead_are_given_back(world: &World) {
    lease(world, 1, node("/a"), &dead());
    lease(world, 2, node("/b"), &this_process());
    lease(world, 3, node("/c"), &dead());
    world.arm_as(Intent {
        owner: dead(),
        ..intent(3, &[node("/c")])
    });
    assert_eq!(world.store.release_dead().expect("asked"), 1);
    assert_eq!(world.store.release_dead().expect("asked"), 0);
    assert_eq!(world.store.summary().expect("numbers").leases, 2);
}

/// A number that is given again is another process.
pub fn this_process_lives_and_another_life_of_its_id_does_not(world: &World) {
    let this = world.store.this_process();
    assert!(world.store.is_alive(&this));
    assert!(!world.store.is_alive(&dead()));
    assert!(!world.store.is_from_another_boot(&this));
    let before = Owner {
        boot: "another".to_owned(),
        ..this
    };
    assert!(
        !world.store.is_alive(&before),
        "this machine was started anew"
    );
    assert!(world.store.is_from_another_boot(&before));
    assert_eq!(world.store.process(u32::MAX), None);
}
