//! Several threads with one store, and several openings of it.

use std::sync::Arc;

use backout_model::Lsn;
use backout_model::ports::{Durability, Entry, Lease, Store};
use backout_model::{Event, Status};
use backout_storage::this_process;

use super::{World, applied, id, intent, node};

const THREADS: u64 = 8;
const ENTRIES: u64 = 10;

/// Half of them share one store, half open it anew.
fn stores(world: &World) -> Vec<Arc<dyn Store>> {
    let of = |number: u64| match number % 2 {
        0 => Arc::clone(&world.store),
        _ => world.again(),
    };
    (0..THREADS).map(of).collect()
}

/// Nothing of two entries is mixed.
pub fn entries_of_many_threads_are_each_whole_and_in_one_chain(world: &World) {
    std::thread::scope(|scope| {
        for (thread, store) in (0..).zip(stores(world)) {
            scope.spawn(move || {
                for number in 0..ENTRIES {
                    let number = 1 + thread * ENTRIES + number;
                    let (id, target) = (id(number), node(&format!("/{thread}")));
                    let entry = Entry::of(vec![
                        Event::Intent(Box::new(intent(number, &[target]))),
                        applied(id),
                        Event::Commit { id },
                    ]);
                    store.append(&entry, Durability::Process).expect("it fits");
                    let found = store.operation(id).expect("asked").expect("there");
                    assert_eq!(found.status, Status::Committed);
                }
            });
        }
    });
    let count = THREADS * ENTRIES;
    let limit = usize::MAX;
    let records = world.store.records_after(Lsn(0), limit).expect("read");
    assert_eq!(records.len() as u64, 3 * count);
    for (record, place) in records.iter().zip(1..) {
        assert_eq!(record.lsn, Lsn(place));
    }
    for entry in records.chunks(3) {
        let of: Vec<_> = entry.iter().map(|it| it.event.operation()).collect();
        assert!(
            of.windows(2).all(|pair| pair.first() == pair.last()),
            "{of:?}"
        );
    }
    let checked = world.store.verify_with(&|_, _| Vec::new(), &mut |_, _| {});
    assert_eq!(checked.expect("checked").findings, []);
}

/// And the others are told who has it.
pub fn one_of_many_threads_gets_a_target(world: &World) {
    let ask = |(number, store): (u64, Arc<dyn Store>)| {
        move || {
            let taken = store.lease(id(number), &[node("/a")], &this_process(), &[]);
            (number, taken.expect("asked"))
        }
    };
    let answers: Vec<(u64, Lease)> = std::thread::scope(|scope| {
        let asked = (1..).zip(stores(world)).map(|it| scope.spawn(ask(it)));
        let asked: Vec<_> = asked.collect();
        let joined = asked.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|answer| answer.expect("it ends")).collect()
    });
    let taken: Vec<u64> = answers
        .iter()
        .filter(|(_, lease)| *lease == Lease::Taken)
        .map(|(number, _)| *number)
        .collect();
    let [winner] = taken.as_slice() else {
        panic!("{answers:?}")
    };
    let told = |lease: &Lease| matches!(lease, Lease::Held { by, .. } if *by == id(*winner));
    let others = answers.iter().filter(|(number, _)| number != winner);
    assert!(
        others.into_iter().all(|(_, lease)| told(lease)),
        "{answers:?}"
    );
}
