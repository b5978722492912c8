//! What is refused, what is left alone, and what it costs.

use backout_files::Files as _;
use backout_model::Strategy;
use std::os::unix::fs::MetadataExt as _;

use backout_model::ports::{Driver as _, FileBytes, OnConflict, Staged as _};
use backout_model::{Effect, Verb};

use super::world::World;
use crate::file::{Expect, FileError, FileRequest, Source};

fn write_expecting(world: &World, name: &str, expect: Expect) -> FileRequest {
    FileRequest::Write {
        path: world.path(name),
        source: Source::Bytes(b"new".to_vec()),
        expect,
        parents: false,
        mode: None,
    }
}

fn refused(world: &World, request: &FileRequest) -> FileError {
    let before = world.see();
    let error = world.apply(request).unwrap_err();
    assert_eq!(world.see(), before, "{error}");
    error
}

#[test]
fn writing_what_is_there_already_does_nothing() {
    let world = World::new().file("f", "same");
    let prepared = world
        .prepare(&FileRequest::write(world.path("f"), "same"))
        .unwrap();
    assert!(prepared.is_noop);
    assert!(prepared.targets.is_empty() && prepared.contents.is_empty());
    let again = FileRequest::Mkdir {
        path: world.root.clone(),
        parents: true,
        mode: None,
    };
    assert!(world.prepare(&again).unwrap().is_noop);
}

#[test]
fn a_write_is_refused_where_it_does_not_fit() {
    let world = World::new().file("f", "x").dir("d");
    let create = write_expecting(&world, "f", Expect::New);
    assert!(matches!(
        refused(&world, &create),
        FileError::AlreadyExists { .. }
    ));
    let change = write_expecting(&world, "none", Expect::Existing);
    assert!(matches!(
        refused(&world, &change),
        FileError::NotFound { .. }
    ));
    let directory = FileRequest::write(world.path("d"), "x");
    assert!(matches!(
        refused(&world, &directory),
        FileError::IsADirectory { .. }
    ));
    let orphan = FileRequest::write(world.path("no/such"), "x");
    let missing = world.path("no").display().to_string();
    assert!(matches!(refused(&world, &orphan), FileError::NotFound { path } if path == missing));
    let below = FileRequest::write(world.path("f/below"), "x");
    assert!(matches!(
        refused(&world, &below),
        FileError::NotADirectory { .. }
    ));
    let full = FileRequest::Remove {
        path: world.root.clone(),
        recursive: false,
    };
    assert!(matches!(refused(&world, &full), FileError::NotEmpty { .. }));
}

#[test]
fn moves_and_copies_are_refused_where_they_do_not_fit() {
    let world = World::new().file("f", "x").file("g", "y").dir("d/e");
    let go = |from: &str, to: &str| FileRequest::Move {
        from: world.path(from),
        to: world.path(to),
        replace: false,
    };
    assert!(matches!(
        refused(&world, &go("f", "g")),
        FileError::AlreadyExists { .. }
    ));
    assert!(matches!(
        refused(&world, &go("d", "d/e/d")),
        FileError::IntoItself { .. }
    ));
    assert!(matches!(
        refused(&world, &go("none", "h")),
        FileError::NotFound { .. }
    ));
    let over = FileRequest::Move {
        from: world.path("f"),
        to: world.path("d"),
        replace: true,
    };
    assert!(matches!(
        refused(&world, &over),
        FileError::AlreadyExists { .. }
    ));
    let flat = FileRequest::Copy {
        from: world.path("d"),
        to: world.path("h"),
        recursive: false,
        replace: false,
    };
    assert!(matches!(
        refused(&world, &flat),
        FileError::IsADirectory { .. }
    ));
}

#[test]
fn our_own_state_is_never_written() {
    let world = World::new();
    let depot = world.depots.depot();
    let inside = FileRequest::write(depot.as_path().join("x"), "x");
    assert!(matches!(refused(&world, &inside), FileError::Ours { .. }));
    let above = depot.parent().unwrap().parent().unwrap();
    let whole = FileRequest::Remove {
        path: above.as_path().to_owned(),
        recursive: true,
    };
    assert!(matches!(refused(&world, &whole), FileError::Ours { .. }));
}

#[test]
fn paths_that_lead_out_are_refused() {
    let world = World::new().dir("base");
    std::os::unix::fs::symlink("/tmp", world.path("base/out")).unwrap();
    for name in ["base/../x", "base/out/backout-escaped", "x"] {
        let batch = FileRequest::Within {
            base: world.path("base"),
            requests: vec![FileRequest::write(world.path(name), "x")],
        };
        let error = refused(&world, &batch);
        assert!(matches!(error, FileError::Escapes { .. }), "{name}");
    }
    let inside = FileRequest::Within {
        base: world.path("base"),
        requests: vec![FileRequest::write(world.path("base/x"), "x")],
    };
    world.apply(&inside).unwrap();
    for name in ["../x", "out/backout-escaped"] {
        let text = format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n");
        let patch = FileRequest::Patch {
            base: world.path("base"),
            patch: text.into_bytes(),
        };
        assert!(
            matches!(refused(&world, &patch), FileError::Escapes { .. }),
            "{name}"
        );
    }
}

#[test]
fn a_directory_swapped_for_a_link_is_not_followed() {
    let world = World::new().file("d/f", "x").dir("elsewhere");
    let id = world.id();
    let request = FileRequest::write(world.path("d/f"), "new");
    let prepared = world
        .driver
        .prepare(id, &request, Strategy::Snapshot)
        .unwrap();
    let armed = world.journal.arm(id, request.verb(), prepared);
    std::fs::rename(world.path("d"), world.path("was-d")).unwrap();
    std::os::unix::fs::symlink("elsewhere", world.path("d")).unwrap();
    let error = world.driver.apply(armed).unwrap_err();
    assert!(matches!(error, FileError::ThroughSymlink { .. }), "{error}");
    assert!(world.path("elsewhere").read_dir().unwrap().next().is_none());
    assert_eq!(world.read("was-d/f"), b"x");
}

#[test]
fn somebody_elses_write_between_preparing_and_applying_is_kept() {
    for name in ["there", "new"] {
        let world = World::new().file("there", "x");
        let id = world.id();
        let request = FileRequest::write(world.path(name), "ours");
        let prepared = world
            .driver
            .prepare(id, &request, Strategy::Snapshot)
            .unwrap();
        let armed = world.journal.arm(id, request.verb(), prepared);
        std::fs::write(world.path(name), "theirs").unwrap();
        let before = world.see();
        let error = world.driver.apply(armed).unwrap_err();
        assert!(matches!(error, FileError::Changed { .. }), "{error}");
        assert_eq!(world.see(), before, "no temporary name stays");
        assert_eq!(world.read(name), b"theirs");
    }
}

#[test]
fn a_batch_with_one_bad_entry_does_nothing() {
    let world = World::new().file("f", "x");
    let batch = FileRequest::Batch(vec![
        FileRequest::write(world.path("f"), "new"),
        FileRequest::Remove {
            path: world.path("none"),
            recursive: false,
        },
    ]);
    assert!(matches!(
        refused(&world, &batch),
        FileError::NotFound { .. }
    ));
}

#[test]
fn a_batch_may_write_to_what_it_moved() {
    let world = World::new().file("f", "x").file("g", "old");
    let before = world.see();
    let batch = FileRequest::Batch(vec![
        FileRequest::Move {
            from: world.path("f"),
            to: world.path("g"),
            replace: true,
        },
        FileRequest::Append {
            path: world.path("g"),
            source: Source::Bytes(b"y".to_vec()),
        },
    ]);
    let effect = world.apply(&batch).unwrap();
    assert_eq!(world.read("g"), b"xy");
    assert!(!world.path("f").exists());
    world.undo(&effect, OnConflict::Refuse);
    assert_eq!(world.see(), before);
}

#[test]
fn a_batch_may_write_both_names_of_what_it_moved() {
    let world = World::new().file("f", "x");
    let before = world.see();
    let batch = FileRequest::Batch(vec![
        FileRequest::Move {
            from: world.path("f"),
            to: world.path("g"),
            replace: false,
        },
        FileRequest::write(world.path("f"), "new"),
        FileRequest::Append {
            path: world.path("g"),
            source: Source::Bytes(b"y".to_vec()),
        },
    ]);
    let effect = world.apply(&batch).unwrap();
    assert_eq!(world.read("g"), b"xy");
    assert_eq!(world.read("f"), b"new");
    world.undo(&effect, OnConflict::Refuse);
    assert_eq!(world.see(), before);
}

#[test]
fn a_batch_says_when_it_is_too_tangled() {
    let world = World::new().file("f/inner", "x");
    let batch = FileRequest::Batch(vec![
        FileRequest::Move {
            from: world.path("f"),
            to: world.path("g"),
            replace: false,
        },
        FileRequest::write(world.path("g/inner"), "y"),
    ]);
    assert!(matches!(
        refused(&world, &batch),
        FileError::Entangled { .. }
    ));
}

#[test]
fn validators_see_what_is_staged() {
    let world = World::new().file("f", "old");
    let request = FileRequest::write(world.path("f"), "new");
    let prepared = world.prepare(&request).unwrap();
    let files = prepared.staged.changed();
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].path, world.target("f"));
    let bytes = |side: &Option<Box<dyn FileBytes + '_>>| side.as_ref().unwrap().read().unwrap();
    assert_eq!(bytes(&files[0].new), b"new");
    assert_eq!(bytes(&files[0].old), b"old");
    assert_eq!(
        world.driver.scope(&request).unwrap().targets,
        prepared.targets
    );
}

#[test]
fn a_small_write_costs_two_syncs_and_its_undo_two_more() {
    let world = World::new().file("f", "old");
    let effect = world
        .apply(&FileRequest::write(world.path("f"), "new"))
        .unwrap();
    assert_eq!(world.driver.sync_count(), 2);
    world.undo(&effect, OnConflict::Refuse);
    assert_eq!(world.driver.sync_count(), 4);
}

#[test]
fn many_files_cost_few_syncs() {
    let world = World::new();
    let writes = (0..300).map(|n| FileRequest::write(world.path(&format!("f{n}")), vec![1; 10]));
    let effect = world.apply(&FileRequest::Batch(writes.collect())).unwrap();
    assert!(
        world.driver.sync_count() <= 3,
        "{}",
        world.driver.sync_count()
    );
    let before = world.driver.sync_count();
    world.undo(&effect, OnConflict::Refuse);
    assert!(world.driver.sync_count() - before <= 3);
    assert_eq!(world.see().len(), 1);
}

/// Runs the rest of a test as an ordinary user, in a process of its own where that is needed.
fn as_ordinary_user(test: &str, prepare: impl Fn(&World), body: impl Fn(&World)) {
    const HOME: &str = "BACKOUT_TEST_HOME";
    const NOBODY: u32 = 65534;
    if let Some(home) = std::env::var_os(HOME) {
        body(&World::existing(home.as_ref()));
        return;
    }
    let world = World::on_disk();
    prepare(&world);
    if !rustix::process::geteuid().is_root() {
        body(&world);
        return;
    }
    let home = world.root.parent().unwrap();
    for path in [
        home,
        &world.root,
        &home.join("state"),
        &home.join("state/depot"),
    ] {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let staging = home.join("state/staging");
    std::os::unix::fs::chown(staging, Some(NOBODY), Some(NOBODY)).unwrap();
    // The binary may lie where others cannot reach it.
    let binary = home.join("test-binary");
    std::fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    let user = NOBODY.to_string();
    let output = std::process::Command::new("setpriv")
        .args(["--reuid", &user, "--regid", &user, "--clear-groups"])
        .arg(binary)
        .args(["--exact", test, "--nocapture"])
        .env(HOME, home)
        .current_dir("/")
        .output();
    let Ok(output) = output else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    let cried = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}\n{cried}"
    );
}

#[test]
fn an_ordinary_user_gets_back_what_belongs_to_others() {
    let prepare = |world: &World| {
        std::fs::write(world.path("theirs"), "root's").unwrap();
        std::fs::create_dir(world.path("closed")).unwrap();
    };
    let name = "file::tests::behaviour::an_ordinary_user_gets_back_what_belongs_to_others";
    as_ordinary_user(name, prepare, |world| {
        let before = world.see();
        let owner = world.path("theirs").metadata().unwrap().uid();
        let effect = world
            .apply(&FileRequest::write(world.path("theirs"), "mine"))
            .unwrap();
        assert_eq!(world.read("theirs"), b"mine");
        world.undo(&effect, OnConflict::Refuse);
        assert_eq!(world.path("theirs").metadata().unwrap().uid(), owner);
        assert_eq!(world.see(), before);
        if owner != rustix::process::geteuid().as_raw() {
            let closed = FileRequest::write(world.path("closed/x"), "x");
            assert!(matches!(
                refused(world, &closed),
                FileError::Permission { .. }
            ));
            let chmod = FileRequest::Chmod {
                path: world.path("theirs"),
                mode: "777".parse().unwrap(),
                recursive: false,
            };
            assert!(matches!(
                refused(world, &chmod),
                FileError::Permission { .. }
            ));
        }
    });
}

#[test]
fn what_was_cut_before_its_end_is_not_called_whole() {
    for at in 0.. {
        let world = World::new().file("a", "one").file("b", vec![2; 100_000]);
        let write = |name: &str| FileRequest::write(world.path(name), "new");
        let id = world.id();
        let both = FileRequest::Batch(vec![write("a"), write("b")]);
        let prepared = world.driver.prepare(id, &both, Strategy::Snapshot).unwrap();
        let recipe = prepared.recipe.clone();
        let armed = world.journal.arm(id, Verb::Write, prepared);
        world.driver.fail_at_step(Some(at), true);
        let is_over = world.driver.apply(armed).is_ok();
        world.driver.fail_at_step(None, false);
        let completion = None;
        let is_whole = world.driver.is_in_place(&Effect { recipe, completion });
        let names = world.see().names().into_iter();
        let left: Vec<_> = names.filter(|name| name.contains(".backout-")).collect();
        assert!(!is_whole.unwrap() || left.is_empty(), "{at}: {left:?}");
        if is_over {
            return;
        }
    }
}
