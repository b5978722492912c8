//! A watch finds what others change while it runs, whatever becomes of its hints.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::meddler::{meddle, record, rusqlite_free};
use crate::world::World;

#[test]
fn a_watch_tells_what_others_do_and_ends_when_it_is_asked_to() {
    let world = World::new();
    record(&world);
    let mut watching = world.watch(&["--interval", "1"], &[]);
    let expected = meddle(&world, 3);
    let files: BTreeSet<PathBuf> = expected
        .keys()
        .map(|it| {
            let text = it.split_once(':').map_or(it.as_str(), |(file, _)| file);
            PathBuf::from(text)
        })
        .collect();
    assert_eq!(watching.until_all(&files), files);
    assert_eq!(watching.end(Signal::SIGTERM), Some(0));
    let found = world.open();
    let found: BTreeSet<&str> = found.iter().map(|it| it.subject.as_str()).collect();
    let expected: BTreeSet<&str> = expected.keys().map(String::as_str).collect();
    assert_eq!(found, expected);
}

#[test]
fn rows_and_keys_are_seen_on_the_interval() {
    let world = World::new();
    record(&world);
    let mut watching = world.watch(&["--interval", "1"], &[]);
    assert!(rusqlite_free(&world, "UPDATE t SET v = 'x' WHERE id = 1"));
    let line = watching.next();
    assert_eq!(line["drift"], "detected", "{line}");
    assert_eq!(
        line["target"]["path"],
        world.path("shop.db").to_str().unwrap()
    );
    assert!(
        !line.to_string().contains("'x'"),
        "no value is noted: {line}"
    );
}

#[test]
fn a_queue_that_overflows_and_watches_that_run_out_cost_time_and_nothing_else() {
    for env in [
        ("BACKOUT_TEST_EVENTS_MAX", "1"),
        ("BACKOUT_TEST_WATCHES_MAX", "0"),
    ] {
        let world = World::new();
        for number in 0..6 {
            world.write(&format!("d{number}/f"), "mine\n");
        }
        let mut watching = world.watch(&["--interval", "1"], &[env]);
        let mut expected = BTreeSet::new();
        for number in 0..6 {
            world.put(&format!("d{number}/f"), "theirs\n");
            expected.insert(world.path(&format!("d{number}/f")));
        }
        assert_eq!(watching.until_all(&expected), expected, "{env:?}");
    }
}

#[test]
fn a_root_that_is_replaced_by_a_link_or_goes_away_is_drift_and_comes_back() {
    let world = World::new();
    world.write("d/a", "1");
    world.write("d/b", "2");
    let mut watching = world.watch(&["--interval", "1"], &[]);
    fs::rename(world.path("d"), world.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", world.path("d")).unwrap();
    let expected = BTreeSet::from([world.path("d")]);
    assert_eq!(watching.until_all(&expected), expected);
    fs::remove_file(world.path("d")).unwrap();
    fs::rename(world.path("elsewhere"), world.path("d")).unwrap();
    loop {
        let line = watching.next();
        if line["drift"] == "resolved" {
            assert_eq!(line["how"], "went-away", "{line}");
            break;
        }
    }
    assert_eq!(world.open(), []);
}

#[test]
fn a_watch_does_not_watch_its_own_store() {
    let world = World::with_store_inside();
    world.does(&["mkdir", "d"]);
    world.write("d/a", "1");
    let mut watching = world.watch(&["--interval", "1", "."], &[]);
    world.put("d/a", "2");
    let line = watching.next();
    assert_eq!(line["drift"], "detected", "{line}");
    assert_eq!(
        watching.more(Duration::from_secs(3)),
        None,
        "it heard itself"
    );
    let notes = world.notes();
    assert_eq!(notes, 1);
}

#[test]
fn a_watch_keeps_small_files_so_that_the_record_can_be_made_true_again() {
    let world = World::new();
    world.put("a", "one\ntwo\nthree\nfour\n");
    world.write("a", "one\ntwo\nthree\nFOUR\n");
    world.write("b", "mine\n");
    let mut watching = world.watch(&["--interval", "1"], &[]);
    world.wait_until_stored(&["one\ntwo\nthree\nFOUR\n", "mine\n"]);
    world.put("a", "ONE\ntwo\nthree\nfour\n");
    world.put("b", "theirs\n");
    let expected = BTreeSet::from([world.path("a"), world.path("b")]);
    assert_eq!(watching.until_all(&expected), expected);
    assert_eq!(watching.end(Signal::SIGINT), Some(0));
    let said = world.does(&["drift", "merge", "a"]);
    assert!(said.contains("merged with what was recorded"), "{said}");
    let merged = fs::read_to_string(world.path("a")).unwrap();
    assert_eq!(merged, "ONE\ntwo\nthree\nFOUR\n");
    world.does(&["drift", "restore", "b"]);
    assert_eq!(fs::read_to_string(world.path("b")).unwrap(), "mine\n");
    assert_eq!(world.sweep(), []);
    world.does(&["undo"]);
    assert_eq!(fs::read_to_string(world.path("b")).unwrap(), "theirs\n");
}

#[test]
fn a_watch_names_the_process_that_changed_a_file_where_the_kernel_tells() {
    let world = World::new();
    world.write("f", "mine\n");
    world.write("g", "mine\n");
    let mut watching = world.watch(&["--interval", "600"], &[]);
    // It stays until its change was told, so that it has a name.
    let mut child = std::process::Command::new("sh")
        .args(["-c", "echo theirs > f; rm g; read end"])
        .current_dir(&world.root)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (first, second) = (watching.next(), watching.next());
    let pid = child.id();
    drop(child.stdin.take());
    child.wait().unwrap();
    let is_told = rustix::process::geteuid().is_root() && watching.sees_processes;
    for line in [&first, &second] {
        assert_eq!(line["drift"], "detected", "{line}");
        let who = &line["who"];
        let is_gone = line["kind"] == "gone";
        match (is_told, is_gone) {
            (false, _) => assert_eq!(who["who"], "unknown", "{line}"),
            // `rm` is a process of its own, which has ended.
            (true, true) => assert_eq!(who["who"], "process", "{line}"),
            (true, false) => {
                assert_eq!(
                    (&who["pid"], &who["name"]),
                    (&pid.into(), &"sh".into()),
                    "{line}"
                );
            }
        }
    }
    let listed = world.does(&["drift"]);
    assert_eq!(
        listed.contains(&format!("by sh (process {pid})")),
        is_told,
        "{listed}"
    );
    // The other may have ended before anybody asked for its name.
    let gone = if first["kind"] == "gone" {
        first
    } else {
        second
    };
    let (pid, name) = (&gone["who"]["pid"], gone["who"]["name"].as_str());
    let said = match name {
        None | Some("") => format!(", by process {pid}, which has ended"),
        Some(name) => format!(", by {name} (process {pid})"),
    };
    assert_eq!(listed.contains(&said), is_told, "{listed}");
    watching.end(Signal::SIGTERM);
}

#[test]
fn who_changed_a_file_is_unknown_to_a_single_look() {
    let world = World::new();
    world.write("f", "mine\n");
    world.put("f", "theirs\n");
    let report = world.json(&["watch", "--once"]);
    assert_eq!(report["open"][0]["who"]["who"], "unknown", "{report}");
}
