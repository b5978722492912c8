//! Conflicts, merges, force, and recipes of every past version.

use backout_files::Files as _;
use backout_model::ports::{OnConflict, State};
use backout_model::wide::Wide;
use backout_model::{Completion, Digest, Effect, OutcomeKind, Recipe};

use super::world::World;
use crate::file::recipe::FileCompletion;
use crate::file::{FileError, FileRequest, Shown};

const BASE: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

fn edited() -> (World, Effect) {
    let world = World::new().file("f", BASE);
    let request = FileRequest::write(world.path("f"), BASE.replace("two", "2"));
    let effect = world.apply(&request).unwrap();
    (world, effect)
}

fn only(outcomes: &[backout_model::TargetOutcome]) -> String {
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    outcomes[0].kind.to_string()
}

#[test]
fn a_merge_takes_out_the_change_and_keeps_everybody_elses() {
    let (world, effect) = edited();
    let theirs = BASE.replace("two", "2").replace("six", "6");
    std::fs::write(world.path("f"), &theirs).unwrap();
    let (undo, outcomes) = world.undo(&effect, OnConflict::Merge);
    assert_eq!(outcomes[0].kind, OutcomeKind::Merged);
    assert_eq!(world.read("f"), BASE.replace("six", "6").as_bytes());
    world.undo(&undo, OnConflict::Refuse);
    assert_eq!(world.read("f"), theirs.as_bytes());
}

#[test]
fn what_cannot_be_merged_stays() {
    let (world, effect) = edited();
    std::fs::write(world.path("f"), BASE.replace("two", "zwei")).unwrap();
    let undo = world.plan_undo(&effect, OnConflict::Merge);
    assert!(undo.prepared.is_noop);
    assert!(
        only(&undo.outcomes).starts_with("conflict: content changed"),
        "{:?}",
        undo.outcomes
    );
}

#[test]
fn force_restores_and_can_itself_be_undone() {
    let (world, effect) = edited();
    std::fs::write(world.path("f"), "mine\n").unwrap();
    let (undo, outcomes) = world.undo(&effect, OnConflict::Force);
    assert!(
        matches!(outcomes[0].kind, OutcomeKind::Overwritten { .. }),
        "{outcomes:?}"
    );
    assert_eq!(world.read("f"), BASE.as_bytes());
    world.undo(&undo, OnConflict::Refuse);
    assert_eq!(world.read("f"), b"mine\n");
}

#[test]
fn force_takes_a_filled_directory_away_whole() {
    let world = World::new();
    let mkdir = FileRequest::Mkdir {
        path: world.path("d"),
        parents: false,
        mode: None,
    };
    let effect = world.apply(&mkdir).unwrap();
    for name in ["a", "b", "c", "d"] {
        std::fs::write(world.path("d").join(name), "theirs").unwrap();
    }
    let refused = world.plan_undo(&effect, OnConflict::Refuse);
    let why = "conflict: the directory is not empty: a, b, c and 1 more";
    assert_eq!(only(&refused.outcomes), why);
    drop(refused);
    let filled = world.see();
    let (undo, _) = world.undo(&effect, OnConflict::Force);
    assert!(!world.path("d").exists());
    world.undo(&undo, OnConflict::Refuse);
    assert_eq!(world.see(), filled);
}

#[test]
fn conflicts_are_told_in_words() {
    use std::os::unix::fs::PermissionsExt as _;
    let told = |change: &dyn Fn(&World)| {
        let world = World::new().file("f", "old").mode("f", 0o644);
        let effect = world
            .apply(&FileRequest::write(world.path("f"), "new"))
            .unwrap();
        change(&world);
        only(&world.plan_undo(&effect, OnConflict::Refuse).outcomes)
    };
    let grown = told(&|world| std::fs::write(world.path("f"), "newer").unwrap());
    assert_eq!(grown, "conflict: content changed since (3 -> 5 bytes)");
    let other = told(&|world| std::fs::write(world.path("f"), "neu").unwrap());
    assert_eq!(other, "conflict: content changed since (3 bytes)");
    let closed = told(&|world| {
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(world.path("f"), mode).unwrap();
    });
    assert_eq!(closed, "conflict: mode is 0600, was 0644");
    let gone = told(&|world| std::fs::remove_file(world.path("f")).unwrap());
    assert_eq!(gone, "conflict: it is gone");
    let turned = told(&|world| {
        std::fs::remove_file(world.path("f")).unwrap();
        std::fs::create_dir(world.path("f")).unwrap();
    });
    assert_eq!(turned, "conflict: it is a directory now, was a file");
}

#[test]
fn one_conflict_keeps_the_whole_operation_from_being_undone() {
    let world = World::new().file("a", "1").file("b", "1");
    let both = FileRequest::Batch(vec![
        FileRequest::write(world.path("a"), "2"),
        FileRequest::write(world.path("b"), "2"),
    ]);
    let effect = world.apply(&both).unwrap();
    std::fs::write(world.path("b"), "theirs").unwrap();
    let undo = world.plan_undo(&effect, OnConflict::Refuse);
    assert!(undo.prepared.is_noop);
    assert!(matches!(undo.outcomes[0].kind, OutcomeKind::Skipped { .. }));
    assert!(matches!(
        undo.outcomes[1].kind,
        OutcomeKind::Conflict { .. }
    ));
    drop(undo);
    let states: Vec<_> = world.driver.examine(&effect).unwrap();
    assert_eq!(states[0].state, State::After);
    assert!(matches!(states[1].state, State::Other { .. }));
    world.undo(&effect, OnConflict::Force);
    assert_eq!(
        (world.read("a"), world.read("b")),
        (b"1".to_vec(), b"1".to_vec())
    );
}

#[test]
fn an_undo_through_a_swapped_link_is_a_conflict() {
    let world = World::new().file("d/f", "old").file("other/f", "new");
    let effect = world
        .apply(&FileRequest::write(world.path("d/f"), "new"))
        .unwrap();
    std::fs::rename(world.path("d"), world.path("was-d")).unwrap();
    std::os::unix::fs::symlink("other", world.path("d")).unwrap();
    for on_conflict in [OnConflict::Refuse, OnConflict::Force] {
        let undo = world.plan_undo(&effect, on_conflict);
        assert!(undo.prepared.is_noop);
        assert!(
            only(&undo.outcomes).contains("symbolic link"),
            "{:?}",
            undo.outcomes
        );
    }
    assert_eq!(world.read("other/f"), b"new");
}

#[test]
fn an_edited_file_that_was_moved_goes_back_by_merge() {
    let world = World::new().file("a", "x");
    let request = FileRequest::Move {
        from: world.path("a"),
        to: world.path("b"),
        replace: false,
    };
    let effect = world.apply(&request).unwrap();
    std::fs::write(world.path("b"), "edited").unwrap();
    assert!(
        world
            .plan_undo(&effect, OnConflict::Refuse)
            .prepared
            .is_noop
    );
    let (_, outcomes) = world.undo(&effect, OnConflict::Merge);
    assert_eq!(outcomes[0].kind, OutcomeKind::Merged);
    assert_eq!(world.read("a"), b"edited");
    assert!(!world.path("b").exists());
}

#[test]
fn a_lost_content_is_a_failure_and_touches_nothing() {
    let world = World::new().file("f", "old");
    let effect = world
        .apply(&FileRequest::write(world.path("f"), "new"))
        .unwrap();
    world.contents.lose(&Digest::of(b"old"));
    let undo = world.plan_undo(&effect, OnConflict::Refuse);
    assert!(matches!(undo.outcomes[0].kind, OutcomeKind::Failed { .. }));
    assert!(undo.prepared.is_noop);
    assert_eq!(world.read("f"), b"new");
}

#[test]
fn a_kept_file_that_a_process_still_writes_to_is_not_called_restored() {
    use std::io::Write as _;
    let world = World::new().file("log", vec![b'x'; 100_000]);
    let mut writer = std::fs::File::options()
        .append(true)
        .open(world.path("log"))
        .unwrap();
    let effect = world
        .apply(&FileRequest::write(world.path("log"), "new"))
        .unwrap();
    writer.write_all(b"late").unwrap();
    let undo = world.plan_undo(&effect, OnConflict::Refuse);
    assert!(
        !undo.outcomes[0].kind.is_taken_back(),
        "{:?}",
        undo.outcomes
    );
    drop(undo);
    world.undo(&effect, OnConflict::Force);
    assert_eq!(world.read("log").len(), 100_004);
}

#[test]
fn both_sides_of_a_change_can_be_shown() {
    let (world, effect) = edited();
    let shown = world.driver.changes(&effect).unwrap();
    assert_eq!(shown[0].path, world.target("f"));
    assert_eq!(world.bytes(shown[0].before.as_ref()), BASE.as_bytes());
    assert_eq!(
        world.bytes(shown[0].after.as_ref()),
        BASE.replace("two", "2").into_bytes()
    );
    let world = World::new().file("f", vec![1; 100_000]);
    let effect = world
        .apply(&FileRequest::write(world.path("f"), vec![2; 100_000]))
        .unwrap();
    let shown = world.driver.changes(&effect).unwrap();
    assert_eq!(world.bytes(shown[0].before.as_ref()), vec![1; 100_000]);
    assert_eq!(world.bytes(shown[0].after.as_ref()), vec![2; 100_000]);
    // A kept file that is back at its path is shown as well.
    let (undo, _) = world.undo(&effect, OnConflict::Refuse);
    let shown = world.driver.changes(&effect).unwrap();
    assert_eq!(world.bytes(shown[0].before.as_ref()), vec![1; 100_000]);
    let lost = world
        .driver
        .read(shown[0].after.as_ref().unwrap(), u64::MAX)
        .unwrap();
    assert!(matches!(lost, Shown::Lost(_)), "{lost:?}");
    let shown = world.driver.changes(&undo).unwrap();
    assert_eq!(world.bytes(shown[0].before.as_ref()), vec![2; 100_000]);
}

#[test]
fn a_removed_tree_is_shown_with_all_that_was_in_it() {
    let world = World::new()
        .file("d/a", "one\n")
        .file("d/e/b", vec![7; 100_000])
        .link("d/l", "a");
    let remove = FileRequest::Remove {
        path: world.path("d"),
        recursive: true,
    };
    let effect = world.apply(&remove).unwrap();
    let shown = world.driver.changes(&effect).unwrap();
    let names: Vec<_> = shown.iter().map(|change| change.path.clone()).collect();
    let expected = ["d", "d/a", "d/e", "d/e/b", "d/l"].map(|name| world.target(name));
    assert_eq!(names, expected);
    assert!(shown.iter().all(|change| change.after.is_none()));
    assert_eq!(world.bytes(shown[1].before.as_ref()), b"one\n");
    assert_eq!(world.bytes(shown[3].before.as_ref()), vec![7; 100_000]);
    let link = shown[4].before.as_ref().unwrap();
    assert_eq!(link.points_to().unwrap(), "a");
}

#[test]
fn a_recipe_of_a_later_version_is_refused() {
    let (world, mut effect) = edited();
    effect.recipe.version = 4;
    let error = world.driver.is_in_place(&effect).unwrap_err();
    assert!(
        matches!(error, FileError::Recipe { found: 4, known: 3 }),
        "{error}"
    );
}

#[test]
fn a_recipe_of_version_1_still_undoes() {
    still_undoes(include_str!("../golden/v1.json"), |number| number);
}

#[test]
fn a_recipe_of_version_3_undoes() {
    let text = |number| format!("\"{number}\"");
    still_undoes(include_str!("../golden/v3.json"), text);
}

fn still_undoes(golden: &str, wide: fn(String) -> String) {
    use std::os::unix::fs::MetadataExt as _;
    let world = World::new().file("written", "after").mode("written", 0o644);
    let world = world
        .file("made", "x")
        .mode("made", 0o644)
        .dir("dir")
        .mode("dir", 0o755);
    let world = world
        .file("touched", "x")
        .mode("touched", 0o600)
        .file("moved", "m");
    world
        .contents
        .put(&[backout_model::ports::NewContent::of(b"before".to_vec())]);
    let depot = world.depots.depot();
    std::fs::write(depot.as_path().join("00000000000000a1-0"), "kept").unwrap();
    let kept = depot
        .as_path()
        .join("00000000000000a1-0")
        .metadata()
        .unwrap();
    let moved = world.path("moved").metadata().unwrap();
    let stamp = |found: &std::fs::Metadata| found.mtime() * 1_000_000_000 + found.mtime_nsec();
    let golden = golden
        .replace("@ROOT@", world.root.to_str().unwrap())
        .replace("@DEPOT@", depot.as_path().to_str().unwrap())
        .replace("\"@KEPT_INO@\"", &wide(kept.ino().to_string()))
        .replace("\"@KEPT_MTIME@\"", &wide(stamp(&kept).to_string()))
        .replace("\"@MOVED_INO@\"", &wide(moved.ino().to_string()))
        .replace("\"@MOVED_MTIME@\"", &wide(stamp(&moved).to_string()))
        .replace("\"@UID@\"", &kept.uid().to_string())
        .replace("\"@GID@\"", &kept.gid().to_string());
    let recipe: Recipe = serde_json::from_str(&golden).unwrap();
    let effect = Effect {
        recipe,
        completion: None,
    };
    assert!(
        world.driver.is_in_place(&effect).unwrap(),
        "{:?}",
        world.driver.examine(&effect)
    );
    let (_, outcomes) = world.undo(&effect, OnConflict::Refuse);
    assert!(
        outcomes.iter().all(|outcome| outcome.kind.is_taken_back()),
        "{outcomes:?}"
    );
    assert_eq!(world.read("written"), b"before");
    assert_eq!(world.read("gone"), b"kept");
    assert_eq!(world.read("was"), b"m");
    assert!(!world.path("made").exists() && !world.path("dir").exists());
    assert_eq!(
        world.path("touched").metadata().unwrap().mode() & 0o7777,
        0o644
    );
    assert_eq!(
        std::fs::read_link(world.path("link")).unwrap().to_str(),
        Some("nowhere")
    );
}

#[test]
fn a_completion_of_an_older_program_is_read() {
    let identity =
        r#"{"dev":1,"ino":18446744073709551615,"size":4,"mtime":1700000000000000000,"ctime":-1}"#;
    let told =
        format!(r#"{{"identities":[{identity},null],"parents":[1700000000000000000,null]}}"#);
    let completion: Completion = serde_json::from_str(&told).unwrap();
    let (_world, mut effect) = edited();
    effect.completion = Some(completion);
    let read = FileCompletion::of(&effect).unwrap();
    assert_eq!(read.identity(0).unwrap().ino, u64::MAX);
    assert_eq!(read.parents, [Some(Wide(1_700_000_000_000_000_000)), None]);
    let written = serde_json::to_string(&read.encode().unwrap()).unwrap();
    assert!(
        written.contains(r#""ino":"18446744073709551615""#),
        "{written}"
    );
}

#[test]
fn a_second_name_that_an_undo_took_away_comes_back_also_if_the_first_is_gone() {
    use std::os::unix::fs::MetadataExt as _;
    let link = |world: &World| {
        let link = FileRequest::HardLink {
            path: world.path("h"),
            to: world.path("a"),
        };
        let effect = world.apply(&link).unwrap();
        world.undo(&effect, OnConflict::Refuse).0
    };
    let world = World::new().file("a", "0\n");
    let undo = link(&world);
    assert_eq!(std::fs::metadata(world.path("a")).unwrap().nlink(), 1);
    std::fs::remove_file(world.path("a")).unwrap();
    let foreseen = world.driver.examine(&undo).unwrap();
    assert_eq!(foreseen[0].lost, None);
    let (_, outcomes) = world.undo(&undo, OnConflict::Refuse);
    assert_eq!(only(&outcomes), "restored");
    assert_eq!(world.read("h"), b"0\n");
    // Another file at its name is another file, whatever its number.
    let world = World::new().file("a", "0\n");
    let undo = link(&world);
    std::fs::remove_file(world.path("a")).unwrap();
    std::fs::write(world.path("a"), "person\n").unwrap();
    world.undo(&undo, OnConflict::Refuse);
    assert_eq!(world.read("h"), b"0\n");
    // As long as the first is there, they are one file again, whatever was written into it since.
    let world = World::new().file("a", "0\n");
    let undo = link(&world);
    std::fs::write(world.path("a"), "1\n").unwrap();
    world.undo(&undo, OnConflict::Refuse);
    let inode = |name: &str| std::fs::metadata(world.path(name)).unwrap().ino();
    assert_eq!(inode("a"), inode("h"));
}
