//! An undo that the system does not let happen is no conflict: it is tried again, it climbs, and it waits for a person.

use nix::errno::Errno;
use serde_json::Value;

use super::calls::{changes, syncs};
use super::tracer::{Fault, run};
use super::{SMALL, TREE, Workload, prepared};
use crate::world::World;

const UNDO: Workload = Workload {
    before: &[SMALL],
    cut_off: None,
    command: &["undo"],
};

/// Tells whether a call puts something in its place.
fn renames(name: &str) -> bool {
    name.starts_with("rename")
}

fn failed(world: &World) -> Vec<Value> {
    let failed = world.json(&["failed"]);
    failed["failed"].as_array().unwrap().clone()
}

/// What was tried, as a list of rungs.
fn tried(failed: &Value) -> Vec<&str> {
    let tried = failed["tried"].as_array().unwrap().iter();
    tried.map(|it| it["rung"].as_str().unwrap()).collect()
}

#[test]
fn an_error_that_passes_is_tried_again_and_nobody_is_asked() {
    for errno in [Errno::EIO, Errno::EAGAIN, Errno::EBUSY] {
        let world = prepared(&UNDO);
        let ran = run(
            &world.command(UNDO.command),
            renames,
            Some((1, Fault::Fails(errno))),
        );
        assert!(ran.hit.is_some(), "{errno}");
        assert_eq!(ran.code, Some(0), "{errno}: {}", ran.said);
        assert_eq!(world.read("app.toml"), "port = 8080\n", "{errno}");
        assert!(failed(&world).is_empty(), "{errno}");
        world.check_store();
    }
}

#[test]
fn an_error_that_stays_climbs_to_a_person_and_is_no_conflict() {
    for (workload, errno) in [
        (&UNDO, Errno::EIO),
        (&UNDO, Errno::ENOSPC),
        (&UNDO, Errno::EROFS),
        (&UNDO, Errno::EACCES),
        (
            &Workload {
                before: &[TREE],
                ..UNDO
            },
            Errno::EIO,
        ),
    ] {
        let world = prepared(workload);
        let before = world.tree().without_directory_times();
        let fault = Some((1, Fault::FailsFromHereOn(errno)));
        let ran = run(&world.command(workload.command), renames, fault);
        assert_eq!(ran.code, Some(1), "{errno}: {}", ran.said);
        assert!(!ran.said.contains("conflict"), "{errno}: {}", ran.said);
        assert!(
            world.tree().without_directory_times() == before,
            "{errno}: {}",
            ran.said
        );
        let waiting = failed(&world);
        let [waiting] = waiting.as_slice() else {
            panic!("{errno}: {waiting:?}: {}", ran.said);
        };
        let rungs = tried(waiting);
        assert_eq!(rungs[..2], ["retry", "fallback"], "{errno}: {waiting}");
        let times = &waiting["tried"][0]["times"];
        let passes = errno == Errno::EIO;
        assert_eq!(
            times.as_u64().unwrap_or(0) > 0,
            passes,
            "{errno}: {waiting}"
        );
        world.ok(&["failed", "--retry"]);
        assert!(failed(&world).is_empty(), "{errno}");
        world.check_store();
    }
}

#[test]
fn whichever_call_of_an_undo_fails_it_is_done_or_listed_and_never_a_conflict() {
    let counts = |name: &str| changes(name) && !syncs(name);
    let quiet = run(&prepared(&UNDO).command(UNDO.command), counts, None);
    assert_eq!(quiet.code, Some(0), "{}", quiet.said);
    for number in 1..=quiet.calls {
        let world = prepared(&UNDO);
        let fault = Some((number, Fault::Fails(Errno::EIO)));
        let ran = run(&world.command(UNDO.command), counts, fault);
        let what = format!("call {number}, {:?}: {}", ran.hit, ran.said);
        assert!(!ran.said.contains("conflict"), "{what}");
        world.ok(&["recover"]);
        let is_back = world.read("app.toml") == "port = 8080\n";
        if ran.code == Some(0) {
            assert!(is_back, "{what}");
        } else if !is_back {
            // It is listed, or it failed before anything was tried; in both cases it can be asked for again.
            world.ok(&["undo"]);
            assert_eq!(world.read("app.toml"), "port = 8080\n", "{what}");
        }
        world.check_store();
    }
}
