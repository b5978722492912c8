//! `cargo xtask transparent`: the tests of others, bare and under `backout run`, give the same results.
//!
//! First every call of our own table (`crates/cli/tests/proof/fixtures/calls.py`), as three users; its tests compare by
//! themselves. Then the suites. A suite is fetched and built once, in `target/transparent`. It is run bare and watched;
//! what ends differently, test by test, is listed and fails the command. A test that ends differently in two bare runs
//! tells nothing, and counts as unsteady.

mod results;
mod source;
mod suites;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt;
use crate::run::{Step, cargo, root, run_all, say};
use suites::Suite;

const USAGE: &str = "usage: cargo xtask transparent [calls | posix | python | coreutils | git]...";

/// How each test of a suite ended, by its name.
type Results = BTreeMap<String, String>;

/// How a suite is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Bare,
    Watched,
    /// Bare a second time, to tell what is unsteady by itself.
    Again,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Watched => "watched",
            Self::Again => "again",
        }
    }
}

/// Where everything is.
#[derive(Debug)]
struct Ground {
    home: PathBuf,
    program: PathBuf,
}

impl Ground {
    /// Builds the program as the tests do, and keeps a copy that later builds do not replace.
    fn new() -> Result<Self, String> {
        let home = root().join("target/transparent");
        fs::create_dir_all(&home).map_err(told(&home))?;
        run_all(vec![Step::new(
            "build",
            cargo().args(["build", "--package", "backout-cli", "--features", "testing"]),
        )])?;
        let program = home.join("backout");
        let _old = fs::remove_file(&program);
        fs::copy(root().join("target/debug/backout"), &program).map_err(told(&program))?;
        Ok(Self { home, program })
    }

    /// Gives a command that runs a program bare or watched, in a directory.
    fn command(&self, way: Way, program: &str, at: &Path) -> Command {
        let mut command = match way {
            Way::Bare | Way::Again => Command::new(program),
            Way::Watched => {
                let mut command = Command::new(&self.program);
                command.arg("--quiet").arg("--state-dir");
                command.arg(self.home.join("state"));
                command.args(["run", "--", program]);
                command
            }
        };
        command.current_dir(at);
        command
    }
}

/// Runs what was asked for, or all.
pub(crate) fn transparent(arguments: &[String]) -> Result<(), String> {
    let mut wanted = Vec::new();
    for name in arguments.iter().filter(|name| *name != "calls") {
        wanted.push(Suite::named(name).ok_or_else(|| USAGE.to_owned())?);
    }
    if arguments.is_empty() {
        wanted = Suite::ALL.to_vec();
    }
    apt::install_what_tests_need()?;
    if arguments.is_empty() || arguments.iter().any(|name| name == "calls") {
        every_call()?;
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let ground = Ground::new()?;
    let mut wrong = 0;
    for suite in wanted {
        suite.prepare(&ground)?;
        wrong += compared(suite, &ground)?;
    }
    if wrong == 0 {
        Ok(())
    } else {
        Err(format!("{wrong} tests end differently under a watch"))
    }
}

fn every_call() -> Result<(), String> {
    let mut tests = cargo();
    tests
        .args(["test", "--package", "backout-cli", "--features", "testing"])
        .args(["--test", "proof", "every_call_of_", "--", "--nocapture"])
        .env("BACKOUT_EVERY_CALL", "1");
    run_all(vec![Step::new("every call", &mut tests)])
}

/// Runs a suite both ways and says what differs; gives how many tests do.
fn compared(suite: Suite, ground: &Ground) -> Result<usize, String> {
    let name = suite.name();
    let once = |way: Way| {
        say(&format!("== {name}, {}", way.name()));
        let results = suite.run(ground, way);
        let _gone = fs::remove_dir_all(ground.home.join("state"));
        results
    };
    let (bare, watched) = (once(Way::Bare)?, once(Way::Watched)?);
    let mut differing = differences(&bare, &watched);
    let mut unsteady = 0;
    if !differing.is_empty() {
        let again = once(Way::Again)?;
        let is_steady = |test: &String| bare.get(test) == again.get(test);
        let before = differing.len();
        differing.retain(|test| is_steady(test));
        unsteady = before - differing.len();
    }
    for test in &differing {
        let end = |results: &Results| {
            results
                .get(test)
                .map_or("not run", String::as_str)
                .to_owned()
        };
        say(&format!("{test}: {} -> {}", end(&bare), end(&watched)));
    }
    let passed = bare.values().filter(|end| results::is_pass(end)).count();
    say(&format!(
        "{name}: {} tests, {passed} pass bare, {} differ, {unsteady} unsteady",
        bare.len(),
        differing.len()
    ));
    Ok(differing.len())
}

fn differences(one: &Results, other: &Results) -> Vec<String> {
    let mut names: Vec<&String> = one.keys().chain(other.keys()).collect();
    names.sort();
    names.dedup();
    let names = names.into_iter();
    names
        .filter(|name| one.get(*name) != other.get(*name))
        .cloned()
        .collect()
}

/// Says at which path something failed.
fn told(path: &Path) -> impl FnOnce(std::io::Error) -> String + use<> {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}
