//! A `gc` that dies: at every step, in a process of its own.

use std::fs;

use backout_model::{Retention, Status};

use super::{MIB, slot};
use crate::GcReport;
use crate::contents::fixture::{DAY_MS, World, dies_at, id, noise, state_of_child};

const POINTS: [&str; 14] = [
    "journal.before-commit",
    "gc.expired",
    "gc.references-dropped",
    "gc.contents-removed",
    "gc.chunks-removed",
    "gc.packs-forgotten",
    "gc.pack-removed",
    "pack.created",
    "pack.written",
    "pack.dir-synced",
    "gc.repacked",
    "gc.pack-removed#2",
    "gc.slot-removed",
    "gc.staging-removed",
];

/// A world with something to do for every step; one image of each kind must survive.
fn littered() -> (World, Vec<Vec<u8>>) {
    let world = World::new();
    let text = noise(1, 2000);
    let versions: Vec<Vec<u8>> = (0..5_u8)
        .map(|n| [text.as_slice(), &[n; 30]].concat())
        .collect();
    for n in 0..4 {
        let operation = world.arm(n as u64, &["/f"], &[&versions[n], &versions[n + 1]]);
        let status = if n == 1 {
            Status::Applied
        } else {
            Status::Committed
        };
        world.bring(operation, status);
    }
    world.compact();
    // A pack that is mostly dead, one that is dead, one that nobody knows.
    world.lease(10, "/10", true);
    let small = noise(2, MIB);
    let doomed = noise(4, MIB);
    world.stash(11, &[small.as_slice(), &noise(3, 3 * MIB)].concat());
    world.stash(10, &small);
    world.stash(12, &doomed);
    fs::write(world.path("contents/99.pack"), b"half written").unwrap();
    let dead = slot(&world, 20, 0);
    fs::create_dir_all(dead.path().as_path().join("a/b/c")).unwrap();
    fs::create_dir_all(world.path("staging").join(id(21).to_string()).join("x")).unwrap();
    (world, vec![versions[1].clone(), versions[2].clone(), small])
}

fn collect(world: &World) -> GcReport {
    world.pass(40 * DAY_MS);
    world.gc(&Retention::standard())
}

#[test]
fn child_that_collects() {
    let Some(state) = state_of_child() else {
        return;
    };
    collect(&World::at(&state));
}

#[test]
fn a_gc_that_dies_anywhere_is_finished_by_the_next() {
    for point in POINTS {
        let (world, needed) = littered();
        let test = "gc::tests::crashes::child_that_collects";
        // The lease belongs to this process, which the child sees alive.
        assert!(dies_at(test, &world.path(""), point), "{point}");
        for bytes in &needed {
            assert!(world.read(bytes), "{point}");
        }
        collect(&world);
        for bytes in &needed {
            assert!(world.read(bytes), "{point}");
        }
        let packs = world.list("contents");
        assert_eq!(packs.len(), world.rows("pack"), "{point}");
        assert!(
            packs.len() == 2 && !packs.contains(&"99.pack".to_owned()),
            "{point}: {packs:?}"
        );
        assert_eq!(world.list("depot"), [""; 0], "{point}");
        assert_eq!(world.list("staging"), [""; 0], "{point}");
        assert_eq!(world.rows("content"), 3, "{point}");
        assert_eq!(
            world.count("SELECT sum(retained) FROM operation"),
            1,
            "{point}"
        );
        assert_eq!(
            world.store.verify(&mut |_, _| {}).unwrap().findings,
            [],
            "{point}"
        );
    }
}
