//! Arms of many threads share a sync, and each gets its own answer.

use std::time::Duration;

use backout_model::ports::{Append as _, Durability, Entry};
use backout_model::{Event, Lsn};

use super::tests::{World, id, intent, node};
use crate::StorageError;

/// Many times what a machine under load needs.
const PATIENCE: u32 = 6000;

/// Holds the database until `count` threads wait for it behind a leader, then lets them go.
fn all_at_once(
    world: &World,
    count: u64,
    name: impl Fn(u64) -> u64 + Sync,
) -> Vec<Result<Lsn, StorageError>> {
    let other = world.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = |number: u64| {
        let place = node(&format!("/d/{number}"));
        let armed = Event::Intent(Box::new(intent(name(number), &[place])));
        world
            .store
            .append(&Entry::of(vec![armed]), Durability::Power)
    };
    std::thread::scope(|scope| {
        let append = &append;
        let threads: Vec<_> = (0..count)
            .map(|number| scope.spawn(move || append(number)))
            .collect();
        let most = usize::try_from(count - 1).unwrap();
        for _ in 0..PATIENCE {
            if world.store.waiting_appends() == most {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(world.store.waiting_appends(), most);
        other.execute_batch("COMMIT").unwrap();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    })
}

#[test]
fn arms_that_wait_at_the_same_time_share_one_sync() {
    let world = World::new();
    let mut places: Vec<u64> = all_at_once(&world, 16, |number| number + 1)
        .into_iter()
        .map(|answer| answer.unwrap().0)
        .collect();
    places.sort_unstable();
    assert_eq!(places, (1..=16).collect::<Vec<_>>());
    let times = world.store.append_times();
    assert_eq!((times.entries, times.commits), (16, 1));
    for number in 1..=16 {
        assert!(world.store.operation(id(number)).unwrap().is_some());
    }
}

#[test]
fn an_arm_that_does_not_fit_is_refused_alone() {
    let world = World::new();
    // The last two have the same id: one of them must go, whichever comes first.
    let answers = all_at_once(&world, 8, |number| number.min(6) + 1);
    let refused = answers.iter().filter(|it| it.is_err()).count();
    assert_eq!(refused, 1, "{answers:?}");
    assert!(
        answers
            .iter()
            .any(|it| matches!(it, Err(StorageError::DuplicateId { .. })))
    );
    let mut places: Vec<u64> = answers.into_iter().flatten().map(|lsn| lsn.0).collect();
    places.sort_unstable();
    assert_eq!(places, (1..=7).collect::<Vec<_>>(), "no place is left out");
    assert_eq!(world.store.append_times().commits, 1);
}

#[test]
fn arms_one_after_the_other_are_synced_one_by_one() {
    let world = World::new();
    for number in 1..=3 {
        let armed = Event::Intent(Box::new(intent(number, &[node("/d/f")])));
        let entry = Entry::of(vec![armed]);
        world.store.append(&entry, Durability::Power).unwrap();
    }
    let times = world.store.append_times();
    assert_eq!((times.entries, times.commits), (3, 3));
}
