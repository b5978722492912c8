//! The page in a real browser, against the real server over a real store.
//!
//! Chromium comes from Debian's package, its driver and axe-core from npm, in the versions that `package.json` names; the first test that runs installs them into
//! `target/page`. The tests themselves are the `*.test.mjs` beside this file: each runs as one test here, and its output is shown if it fails.
//! The target is declared by `backout-cli`, since only a crate's own tests are given its program.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

/// Where the tests are.
fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../daemon/tests/page")
}

/// The files of the page.
fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../daemon/web")
}

/// Gives a directory with the tests and the packages that they need.
fn installed() -> PathBuf {
    // One at a time in this process, and one process at a time.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let root = target.join("page");
    std::fs::create_dir_all(&root).unwrap();
    let lock = std::fs::File::create(root.join("lock")).unwrap();
    lock.lock().unwrap();
    let wanted = std::fs::read(here().join("package.json")).unwrap();
    let has = std::fs::read(root.join("package.json")).unwrap_or_default();
    if has != wanted || !root.join("node_modules/axe-core").exists() {
        std::fs::write(root.join("package.json"), &wanted).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
        let output = npm.current_dir(&root).output().unwrap();
        assert!(output.status.success(), "npm: {}", text(&output));
    }
    for entry in std::fs::read_dir(here()).unwrap().map(Result::unwrap) {
        if entry.path().extension().is_some_and(|it| it == "mjs") {
            let (from, to) = (entry.path(), root.join(entry.file_name()));
            let content = std::fs::read(from).unwrap();
            // Only what differs: another test may be reading it.
            if std::fs::read(&to).ok().as_ref() != Some(&content) {
                std::fs::write(to, content).unwrap();
            }
        }
    }
    root
}

fn text(output: &Output) -> String {
    let [out, errors] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{}\n{out}\n{errors}", output.status)
}

/// Runs one file of tests.
fn passes(name: &str) {
    let root = installed();
    let mut node = Command::new("timeout");
    node.args(["--kill-after=5", "400", "node", "--test"])
        .arg(format!("{name}.test.mjs"))
        .env("BACKOUT", env!("CARGO_BIN_EXE_backout"))
        .env("WEB", web())
        .current_dir(&root);
    let output = node.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn the_timeline_lives_and_keeps_its_place() {
    passes("timeline");
}

#[test]
fn changes_are_shown_as_what_they_are() {
    passes("changes");
}

#[test]
fn an_undo_goes_from_the_preview_to_the_proof() {
    passes("undo");
}

#[test]
fn a_person_decides_about_what_waits() {
    passes("approvals");
}

#[test]
fn the_state_of_a_project_is_drawn_and_drift_decided_about() {
    passes("state");
}

#[test]
fn names_are_text_and_a_browser_may_keep_nothing() {
    passes("safety");
}

#[test]
fn a_hundred_thousand_operations_are_a_list_like_any_other() {
    passes("many");
}

#[test]
fn every_view_is_within_reach_of_everybody() {
    passes("looks");
}

#[test]
fn no_file_of_tests_is_forgotten() {
    let source = include_str!("run.rs");
    for entry in std::fs::read_dir(here()).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if let Some(name) = name.strip_suffix(".test.mjs") {
            assert!(source.contains(&format!("passes(\"{name}\")")), "{name}");
        }
    }
}

#[test]
fn no_script_of_the_page_reads_markup() {
    for entry in std::fs::read_dir(web()).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let script = std::fs::read_to_string(&path).unwrap();
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "DOMParser",
        ] {
            assert!(!script.contains(word), "{}: {word}", path.display());
        }
    }
}
