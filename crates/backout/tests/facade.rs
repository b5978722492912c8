//! The facade as a program would use it: the article's context manager, in Rust.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod handlers;
mod resumable;

use std::fs;
use std::path::PathBuf;

use backout::Backout;

struct World {
    directory: tempfile::TempDir,
    backout: Backout,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let backout = Backout::open(directory.path().join("state")).unwrap();
        fs::write(
            directory.path().join("nginx.conf"),
            "server { listen 80; }\n",
        )
        .unwrap();
        Self { directory, backout }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("nginx.conf")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }
}

#[test]
fn a_write_that_its_validator_accepts_happens_and_can_be_undone() {
    let world = World::new();
    let staged = world
        .backout
        .stage(world.path(), "server { listen 443 ssl; }\n")
        .unwrap();
    assert!(world.text().contains("80"), "staging changes nothing");
    let written = staged
        .validate(|file| file.text().contains("listen"))
        .unwrap()
        .apply()
        .unwrap();
    assert!(world.text().contains("443"));
    let report = written.undo().unwrap().expect("something was undone");
    assert!(report.is_complete());
    assert!(world.text().contains("80"));
}

#[test]
fn a_write_that_its_validator_rejects_never_touches_the_target() {
    let world = World::new();
    let staged = world.backout.stage(world.path(), "bad config\n").unwrap();
    let error = staged
        .validate(|file| file.text().contains("server"))
        .unwrap_err();
    assert!(error.to_string().contains("rejected"), "{error}");
    assert!(!error.is_half_done());
    error.undo().unwrap(); // nothing to do, and that is no error
    assert!(world.text().contains("80"));
}

#[test]
fn a_check_after_the_write_takes_it_back() {
    let world = World::new();
    let staged = world
        .backout
        .stage(world.path(), "server { listen 81; }\n")
        .unwrap();
    let error = staged
        .apply_and_verify(|| Err("nginx is down".to_owned()))
        .unwrap_err();
    assert!(error.to_string().contains("nginx is down"), "{error}");
    assert!(world.text().contains("80"));
}

#[test]
fn a_task_that_is_dropped_is_rolled_back_and_one_that_is_committed_stays() {
    let world = World::new();
    let task = world.backout.task("careless").unwrap();
    task.backout().write(world.path(), "broken").unwrap();
    task.backout()
        .write(world.directory.path().join("new"), "new")
        .unwrap();
    assert_eq!(world.text(), "broken");
    drop(task);
    assert!(world.text().contains("80"));
    assert!(!world.directory.path().join("new").exists());
    let task = world.backout.task("careful").unwrap();
    task.backout().write(world.path(), "good").unwrap();
    assert_eq!(task.commit().unwrap().len(), 1);
    assert_eq!(world.text(), "good");
}

#[test]
fn an_error_says_what_why_and_what_next() {
    let world = World::new();
    let error = world
        .backout
        .write(world.directory.path().join("no/such/file"), "x")
        .unwrap_err();
    assert!(error.report.what.contains("does not exist"), "{error}");
    assert!(!error.report.next.is_empty());
}
