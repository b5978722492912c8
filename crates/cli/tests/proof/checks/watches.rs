//! After a write: what uses it reloads and is asked whether it is well. If it is not, the write is taken back, by whomever.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::Ordering;

use super::{Service, fails_watch, lines, ruled, script};
use crate::world::{World, said};

const WRITE: [&str; 4] = ["write", "app.conf", "--text", "new\n"];

/// A world whose `app.conf` is watched, with a reload that leaves a line.
fn watched(more: &str) -> World {
    let world = ruled("");
    world.file("app.conf", "old\n");
    let log = world.scratch("reloads").display().to_string();
    let reload = script(&world, "reload", &format!("cat app.conf >> {log}"));
    world.file(
        "backout.toml",
        &format!("[[watch]]\nname = 'app'\npaths = ['app.conf']\nreload = ['{reload}']\npause = '10ms'\n{more}\n"),
    );
    world
}

fn reloads(world: &World) -> String {
    std::fs::read_to_string(world.scratch("reloads")).unwrap_or_default()
}

/// A write that is taken back: the reason says why, and the old content was loaded again.
fn is_taken_back(world: &World, words: &str) {
    let report = fails_watch(world, &WRITE);
    let why = report["why"].to_string();
    assert!(why.contains(words), "{words}: {why}");
    assert!(why.contains("watch `app` in"), "{why}");
    assert_eq!(world.read("app.conf"), "old\n");
    assert_eq!(reloads(world), "new\nold\n");
    let found = world.operations();
    let expected = [("undo", "committed"), ("write", "undone")];
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(verb, status)| (&**verb, &**status))
        .collect();
    assert_eq!(found, expected);
    let id = report["operation"].as_str().unwrap();
    assert_eq!(world.json(&["show", id])["operation"]["verb"], "write");
    world.check_store();
}

#[test]
fn a_service_that_answers_keeps_the_write_and_an_undo_reloads_it() {
    let service = Service::new("all ok here");
    let world = watched(&format!(
        "http = '{}'\ncontains = 'ok'",
        service.url("/health?a=1")
    ));
    world.ok(&WRITE);
    assert_eq!(world.read("app.conf"), "new\n");
    assert_eq!(reloads(&world), "new\n");
    assert!(service.asked()[0].starts_with("GET /health?a=1 HTTP/1."));
    world.ok(&["undo"]);
    assert_eq!(reloads(&world), "new\nold\n");
    world.ok(&["redo"]);
    assert_eq!(reloads(&world), "new\nold\nnew\n");
    // What is not watched reloads nothing.
    world.ok(&["write", "other", "--text", "x"]);
    world.ok(&["undo"]);
    assert_eq!(lines(&world, "reloads"), 3);
}

#[test]
fn a_wrong_status_a_missing_text_silence_and_a_closed_door_take_the_write_back() {
    let service = Service::new("all ok here");
    service.status.store(503, Ordering::SeqCst);
    let url = service.url("/");
    let world = watched(&format!("http = '{url}'\ntries = 3"));
    is_taken_back(&world, "answers 503, and 200 is wanted");
    assert_eq!(service.asked().len(), 3);
    service.status.store(200, Ordering::SeqCst);
    let world = watched(&format!("http = '{url}'\ntries = 1\ncontains = 'fine'"));
    let found = fails_watch(&world, &WRITE)["reasons"][0]["found"].clone();
    let found = found.as_str().unwrap().to_owned();
    assert!(found.contains("the answer of http://127.0.0.1:"), "{found}");
    assert!(found.ends_with("does not contain \"fine\""), "{found}");
    assert_eq!(world.read("app.conf"), "old\n");
    // Somebody listens and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let world = watched(&format!(
        "http = 'http://127.0.0.1:{port}/'\ntries = 1\ntimeout = '200ms'"
    ));
    is_taken_back(&world, "does not answer: ");
    drop(silent);
    let world = watched(&format!("http = 'http://127.0.0.1:{port}/'\ntries = 2"));
    is_taken_back(&world, "does not answer: ");
}

#[test]
fn a_reload_that_fails_takes_the_write_back() {
    let world = watched("tries = 1");
    let log = world.scratch("reloads").display().to_string();
    script(
        &world,
        "reload",
        &format!("cat app.conf >> {log}; ! grep new app.conf"),
    );
    is_taken_back(&world, "` ended with 1");
    // If it does not even reload what was there, that is told too.
    let world = watched("tries = 1");
    script(&world, "reload", "echo not today; exit 3");
    let report = fails_watch(&world, &WRITE);
    let all = report.to_string();
    assert!(all.contains("` ended with 3: not today"), "{all}");
    let again = "`app` did not reload what is there again: `";
    assert!(all.contains(again), "{all}");
    assert_eq!(world.read("app.conf"), "old\n");
}

#[test]
fn a_program_that_looks_and_one_that_hangs() {
    let world = watched("command = ['grep', '-q', 'old', 'app.conf']\ntries = 2");
    is_taken_back(&world, "` ended with 1 in 2 tries");
    let world = watched("command = ['sleep', '1000']\ntimeout = '200ms'\ntries = 1");
    is_taken_back(&world, "`sleep` took longer than 200ms");
    let world = watched("command = ['no-such-program']\ntries = 1");
    is_taken_back(&world, "`no-such-program` could not be started: ");
}

/// Well at first, ill within the window.
#[test]
fn it_has_to_stay_well_as_long_as_the_window() {
    let world = watched("window = '60s'\ntries = 2");
    let probe = script(
        &world,
        "probe",
        &format!(
            "echo x >> {0}; test $(wc -l < {0}) -lt 4",
            world.scratch("looks").display()
        ),
    );
    let rules = world.read("backout.toml") + &format!("command = ['{probe}']\n");
    world.file("backout.toml", &rules);
    is_taken_back(&world, "` ended with 1 in 2 tries");
    assert_eq!(lines(&world, "looks"), 5);
    // One stumble is none.
    let world = watched("window = '3s'\ntries = 2");
    let probe = script(
        &world,
        "probe",
        &format!(
            "echo x >> {0}; test $(wc -l < {0}) -ne 2",
            world.scratch("looks").display()
        ),
    );
    let rules = world.read("backout.toml") + &format!("command = ['{probe}']\n");
    world.file("backout.toml", &rules);
    world.ok(&WRITE);
    assert!(lines(&world, "looks") >= 3);
}

/// A reload may start what stays: a service does. It must not keep us waiting, and is not ended.
#[test]
fn a_reload_that_starts_a_service_does_not_keep_us_waiting() {
    let world = watched("tries = 1");
    let pid = world.scratch("pid").display().to_string();
    script(
        &world,
        "reload",
        &format!(
            "setsid sh -c 'echo $$ > {pid}; exec sleep 1000' & while [ ! -s {pid} ]; do sleep 0.01; done"
        ),
    );
    world.ok(&WRITE);
    let pid: i32 = std::fs::read_to_string(pid)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    assert!(
        rustix::process::test_kill_process(pid).is_ok(),
        "the service was ended"
    );
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_death_while_watching_is_taken_back_and_reloaded_also_after_a_restart() {
    for point in ["engine.watching", "engine.watched", "engine.before-commit"] {
        for boot in [None, Some("the-boot-before")] {
            let world = watched("command = ['true']\ntries = 1");
            let mut command = world.command(&WRITE);
            command.env("BACKOUT_CRASH_AT", point);
            if let Some(boot) = boot {
                command.env("BACKOUT_TEST_BOOT", boot);
            }
            let output = command.output().unwrap();
            assert!(
                output.status.signal().is_some(),
                "{point}: {}",
                said(&output)
            );
            assert_eq!(world.read("app.conf"), "new\n", "{point}");
            let loaded = if point == "engine.watching" {
                ""
            } else {
                "new\n"
            };
            assert_eq!(reloads(&world), loaded);
            world.ok(&["recover"]);
            assert_eq!(world.read("app.conf"), "old\n", "{point} {boot:?}");
            assert_eq!(
                reloads(&world),
                format!("{loaded}old\n"),
                "{point} {boot:?}"
            );
            world.check_store();
        }
    }
}

/// A command of which nobody knows yet whether it is well: it is told, and the way back reloads.
#[test]
fn a_death_before_a_command_is_judged_is_told_and_can_be_taken_back() {
    let world = watched("command = ['true']\ntries = 1");
    let mut command = world.command(&["run", "--", "sh", "-c", "echo new > app.conf"]);
    let output = command
        .env("BACKOUT_CRASH_AT", "run.gated")
        .output()
        .unwrap();
    assert!(!output.status.success(), "{}", said(&output));
    let (verb, status) = world.operations().remove(0);
    assert_eq!((verb.as_str(), status.as_str()), ("run", "interrupted"));
    world.ok(&["recover", "--rollback", "@"]);
    assert_eq!(world.read("app.conf"), "old\n");
    assert_eq!(reloads(&world), "old\n");
    world.check_store();
}
