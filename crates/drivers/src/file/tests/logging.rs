//! Files whose reverse change is logged: the conformance suite, and what can and what cannot be made from it.

use std::path::Path;

use backout_files::Files as _;
use backout_model::OutcomeKind;
use backout_model::ports::{Fault as _, OnConflict};

use super::world::World;
use crate::file::{FileError, FileRequest, Occurrence, Shown, Source};
use backout_testkit::driver::conforms;

const LARGE: usize = 300 * 1024;

fn small() -> World {
    let world = World::new().file("a.txt", "one\ntwo\nthree\n");
    world.mode("a.txt", 0o640).logging()
}

fn content(last: u8) -> Vec<u8> {
    let mut content: Vec<u8> = (0..=250).cycle().take(LARGE).collect();
    content.push(last);
    content
}

fn large() -> World {
    World::without_depot().file("big", content(1)).logging()
}

fn edit(root: &Path) -> FileRequest {
    FileRequest::Edit {
        path: root.join("a.txt"),
        search: b"two".to_vec(),
        replacement: b"2".to_vec(),
        occurrence: Occurrence::Unique,
    }
}

fn last(root: &Path, last: u8) -> FileRequest {
    FileRequest::Write {
        path: root.join("big"),
        source: Source::Bytes(content(last)),
        expect: crate::file::Expect::Existing,
        parents: false,
        mode: None,
    }
}

#[test]
fn a_small_file_that_is_logged_is_taken_back_like_any_other() {
    conforms("logged", || {
        let mut world = small();
        world.request = Some(edit);
        world.drift = Some(|root| std::fs::write(root.join("a.txt"), "mine").unwrap());
        world
    });
}

#[test]
fn a_large_file_that_is_logged_is_taken_back_like_any_other() {
    conforms("logged, large", || {
        let mut world = large();
        world.request = Some(|root| last(root, 2));
        world
    });
}

#[test]
fn only_what_changes_is_stored() {
    let world = large();
    let prepared = world.prepare(&last(&world.root, 2)).unwrap();
    let stored: usize = prepared.contents.iter().map(|it| it.bytes.len()).sum();
    assert!(stored < 64, "{stored}");
    assert_eq!(prepared.notes.len(), 1, "{:?}", prepared.notes);
    assert!(
        prepared.notes[0].contains("undoing needs"),
        "{:?}",
        prepared.notes
    );
}

#[test]
fn what_cannot_be_logged_is_said_with_the_reason() {
    let world = small().file("twice", "x").file("other", "y");
    std::fs::hard_link(world.path("twice"), world.path("again")).unwrap();
    let all = FileRequest::write(world.path("a.txt"), "nothing of it stays");
    let twice = FileRequest::write(world.path("twice"), "xx");
    let gone = FileRequest::Batch(vec![
        FileRequest::write(world.path("other"), "yy"),
        FileRequest::Remove {
            path: world.path("other"),
            recursive: false,
        },
    ]);
    for (request, said) in [
        (all, "more than 7 bytes of it change"),
        (twice, "it has other names"),
        (gone, "it does not stay a file"),
    ] {
        let before = world.see();
        let error = world.prepare(&request).unwrap_err();
        let why = error.not_prepared().unwrap_or_else(|| panic!("{error}"));
        assert!(why.ends_with(said), "{why}");
        assert_eq!(world.see(), before);
    }
    let error: FileError = world
        .driver
        .prepare(
            world.id(),
            &edit(&world.root),
            backout_model::Strategy::Compensation,
        )
        .unwrap_err();
    assert!(
        error
            .not_prepared()
            .is_some_and(|why| why.ends_with("files are kept whole, or by what changes"))
    );
}

/// The article's reverse diffs are lost in silence there.
#[test]
fn what_somebody_else_wrote_into_is_said_to_be_lost() {
    let world = large();
    let effect = world.apply(&last(&world.root, 2)).unwrap();
    std::fs::write(world.path("big"), content(9)).unwrap();
    for on_conflict in [OnConflict::Refuse, OnConflict::Force, OnConflict::Merge] {
        let (_, outcomes) = world.undo(&effect, on_conflict);
        let kinds: Vec<_> = outcomes.iter().map(|outcome| &outcome.kind).collect();
        assert!(
            matches!(
                kinds[..],
                [OutcomeKind::Conflict { .. } | OutcomeKind::Failed { .. }]
            ),
            "{kinds:?}"
        );
        assert_eq!(std::fs::read(world.path("big")).unwrap(), content(9));
    }
    let examined = world.driver.examine(&effect).unwrap();
    let lost = examined[0].lost.as_deref().unwrap();
    assert!(lost.contains("is not what was written then"), "{lost}");
    // It is not lost for good: who puts the bytes back can undo.
    std::fs::write(world.path("big"), content(2)).unwrap();
    let (_, outcomes) = world.undo(&effect, OnConflict::Refuse);
    assert_eq!(outcomes[0].kind, OutcomeKind::Restored);
    assert_eq!(std::fs::read(world.path("big")).unwrap(), content(1));
}

#[test]
fn a_change_of_a_change_is_read_through_all_of_them() {
    let world = large();
    let effects: Vec<_> = (2..6)
        .map(|byte| world.apply(&last(&world.root, byte)).unwrap())
        .collect();
    for (effect, byte) in effects.iter().zip(1..) {
        let sides = world.driver.sides(effect).unwrap();
        let was = sides[0].before.as_ref().unwrap();
        let shown = world.driver.read(was, u64::MAX).unwrap();
        assert!(shown == Shown::Bytes(content(byte)), "{byte}: {shown:?}");
    }
    for (effect, byte) in effects.iter().zip(1..5).rev() {
        let (_, outcomes) = world.undo(effect, OnConflict::Refuse);
        assert_eq!(outcomes[0].kind, OutcomeKind::Restored);
        assert_eq!(std::fs::read(world.path("big")).unwrap(), content(byte));
    }
}
