//! Checks of the whole store.

use backout_model::ports::{VerifyFinding, VerifyReport};
use backout_model::{Digest, Slot, TargetPath};
use backout_storage::slot_is_gone;

use super::{World, id, intent, node};

pub(super) fn check(world: &World) -> VerifyReport {
    let look = |_, slots: &[Slot]| {
        let each = slots.iter().map(|slot| (slot.clone(), slot_is_gone(slot)));
        each.collect()
    };
    let checked = world.again().verify_with(&look, &mut |_, _| {});
    checked.expect("it is checked")
}

/// It tells what can be undone.
pub fn a_sound_store_has_no_findings(world: &World) {
    world.finish(world.arm_with(1, &[node("/a")], &[b"before"]));
    world.finish(world.arm_with(2, &[node("/b")], &[b"before", b"more"]));
    let undo = world.undo(3, id(1), &[node("/a")]);
    world.redo(4, undo, id(1), &[node("/a")]);
    let report = check(world);
    assert_eq!(report.findings, []);
    assert_eq!(report.undoable, [id(2), id(1)]);
    assert_eq!(report.not_undoable, []);
    assert_eq!((report.records, report.contents), (15, 2));
}

/// Missing or damaged, it is one finding, and those who need it cannot be undone.
pub fn a_hurt_content_is_found_and_so_is_who_needs_it(world: &World) {
    let (hurt, lost) = (b"hurt".repeat(20), b"lost".repeat(20));
    world.finish(world.arm_with(1, &[node("/a")], &[&hurt]));
    world.finish(world.arm_with(2, &[node("/b")], &[&lost]));
    world.finish(world.arm_with(3, &[node("/c")], &[b"sound"]));
    world.kit.hurt(Digest::of(&hurt));
    world.kit.lose(Digest::of(&lost));
    let report = check(world);
    let mut found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| match finding {
            VerifyFinding::Content {
                digest, needed_by, ..
            } => (needed_by.clone(), *digest),
            other @ (VerifyFinding::Database { .. }
            | VerifyFinding::Record { .. }
            | VerifyFinding::Operation { .. }
            | VerifyFinding::Slot { .. }) => panic!("{other:?}"),
        })
        .collect();
    found.sort();
    let expected = [
        (vec![id(1)], Digest::of(&hurt)),
        (vec![id(2)], Digest::of(&lost)),
    ];
    assert_eq!(found, expected);
    assert!(!report.is_journal_hurt());
    assert_eq!(report.undoable, [id(3)]);
    let not: Vec<_> = report.not_undoable.iter().map(|it| it.id).collect();
    assert_eq!(not, [id(2), id(1)]);
}

/// While its operation stands.
pub fn a_kept_inode_that_is_gone_is_found(world: &World) {
    let here = TargetPath::new(world.store.directory()).expect("a path");
    let depot = world.store.depot_for(&here).expect("there is one");
    let slot = Slot {
        depot,
        name: format!("{}-1", id(1)),
    };
    let mut keeps = intent(1, &[node("/a")]);
    keeps.recipe.slots = vec![slot.clone()];
    std::fs::write(slot.path().as_path(), "kept").expect("a file");
    world.finish(world.arm_as(keeps));
    assert_eq!(world.store.slots_of(id(1)), std::slice::from_ref(&slot));
    let report = check(world);
    assert_eq!((report.slots, report.findings), (1, Vec::new()));
    std::fs::remove_file(slot.path().as_path()).expect("it is removed");
    let report = check(world);
    assert!(
        matches!(report.findings.as_slice(), [VerifyFinding::Slot { needed_by, .. }] if *needed_by == id(1)),
        "{report:?}"
    );
    assert_eq!(report.undoable, []);
}
