//! The project's own chores: `cargo xtask ci | test | lint | crash | damage | attack | laws | links | transparent | agents | rego | fuzz | mutants | bench | python | docs | demo`.
//!
//! `ci` is the one entry: what it does is what CI does. Nothing here is needed to use the product.

mod apt;
mod crash;
mod demo;
mod docs;
mod fuzz;
mod links;
mod mutants;
mod proved;
mod python;
mod run;
mod tidy;
mod transparent;

use std::process::ExitCode;

use run::{Step, cargo, run_all};

const USAGE: &str = "usage: cargo xtask COMMAND

  ci       lint and test: what CI runs
  lint     format, clippy, docs and tidiness
  test     every test; installs the Debian packages the tests need (as root)
  crash    every pair of crash points, power cuts, errors, kills: `crash --help` (minutes)
  damage   every page of a store truncated, flipped, zeroed, spliced, deleted; and repaired (minutes)
  attack   every attack on `run`, and [ROUNDS] of each race for a name (2000) (half an hour)
  laws     random stories of agents, people and accidents, [STORIES] of them from [SEED] on (20000 from 0; an hour)
  links    random lines on files with several names, on five file systems: [STORIES] on each (2000) from [SEED] on
  transparent  every call, and the tests of others (pjdfstest, Python, coreutils, git), bare and under `run`; [SUITE...]
           (half an hour)
  agents   the real coding agents that `ci` leaves out (Qwen Code, Cline, Copilot CLI), from npm, with scripted models
  rego     the tests of policies in Rego, a feature that all other builds leave out (minutes: it builds anew what it needs)
  fuzz     every fuzz target, [SECONDS] each (30); needs the nightly compiler
  mutants  change the code of undo, redo and recovery on purpose, and see that a test notices; [PART/OF] (hours)
  bench    measure against what a user would do instead, write docs/benchmarks.md
           bench against PATH: two builds side by side, where PATH is the program of the other one; a number says how many rounds
           bench commands: what `run` and `try` cost (minutes); with words, only the works that have one in their name
           bench data: what rows cost on SQLite, PostgreSQL and MariaDB, which it starts (minutes)
           bench --peers: the race against other tools, which it installs into target/peers (half an hour)
           bench long: a store with a million records (a quarter of an hour)
           bench serve: 64 agents at one server, 10 000 writes, against a process each (minutes)
  python   build the wheel, and run the tests of the Python package with it and with the agent frameworks (minutes)
  docs     build the documents as a site into target/book/html, and check its links (builds mdbook first)
  demo     show the main job in a temporary directory; --picture FILE draws it";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    let result = match command.as_deref() {
        Some("ci") => lint().and_then(|()| test(&rest)),
        Some("lint") => lint(),
        Some("test") => test(&rest),
        Some("crash") => crash::crash(&rest),
        Some("damage") => damage(),
        Some("attack") => attack(&rest),
        Some("laws") => laws(&rest),
        Some("links") => links::links(&rest),
        Some("transparent") => transparent::transparent(&rest),
        Some("agents") => agents(),
        Some("rego") => rego(),
        Some("mutants") => mutants::mutants(&rest),
        Some("fuzz") => fuzz::fuzz(&rest),
        Some("bench") => bench(&rest),
        Some("python") => python::wheel(),
        Some("docs") => docs::docs(),
        Some("demo") => demo::demo(&rest),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            run::say(&why);
            ExitCode::FAILURE
        }
    }
}

/// How many stories one process tells.
const STORIES_AT_ONCE: usize = 1_000;

/// Tells many random stories, with an optimized build.
fn laws(arguments: &[String]) -> Result<(), String> {
    let [stories, first] = match arguments {
        [] => ["20000", "0"],
        [stories] => [stories.as_str(), "0"],
        [stories, first] => [stories.as_str(), first.as_str()],
        _ => return Err("usage: cargo xtask laws [STORIES] [SEED]".to_owned()),
    };
    let number = |text: &str| {
        text.parse::<u64>()
            .map_err(|error| format!("{text}: {error}"))
    };
    let (stories, first) = (number(stories)?, number(first)?);
    // The crash points remember what they met, so a process that goes on for long gets slow.
    let starts = (first..first + stories).step_by(STORIES_AT_ONCE);
    let failed = starts.filter(|&start| {
        let count = (first + stories - start).min(STORIES_AT_ONCE as u64);
        tell(start, count).is_err()
    });
    let failed: Vec<String> = failed.map(|start| start.to_string()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let failed = failed.join(", ");
    Err(format!(
        "stories that do not hold are named above, in the runs from seed {failed}"
    ))
}

/// Tells stories to the last one, also past those that do not hold.
fn tell(first: u64, count: u64) -> Result<(), String> {
    let mut tell = cargo();
    tell.args(["test", "--release", "-p", "backout-cli"])
        .args(["--features", "testing", "--test", "laws"])
        .args(["--", "both_laws", "--nocapture"])
        .env("BACKOUT_LAWS_STORIES", count.to_string())
        .env("BACKOUT_LAWS_FROM", first.to_string());
    run_all(vec![Step::new("laws", &mut tell)])
}

fn lint() -> Result<(), String> {
    tidy::check()?;
    docs::links::check()?;
    proved::check()?;
    run_all(vec![
        Step::new("format", cargo().args(["fmt", "--all", "--check"])),
        Step::new(
            "clippy",
            cargo()
                .args([
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    "--features",
                    "backout-cli/testing",
                ])
                .args(["--", "-D", "warnings"]),
        ),
        Step::new(
            "docs",
            cargo()
                .args([
                    "doc",
                    "--workspace",
                    "--no-deps",
                    "--document-private-items",
                ])
                .env("RUSTDOCFLAGS", "-D warnings"),
        ),
    ])
}

/// Runs every test. Crash points and the hermetic clock are compiled in by the feature `testing`.
fn test(filters: &[String]) -> Result<(), String> {
    apt::install_what_tests_need()?;
    let has_nextest = cargo()
        .args(["nextest", "--version"])
        .output()
        .is_ok_and(|o| o.status.success());
    let mut tests = cargo();
    if has_nextest {
        // Storms, races and kills meet the load of the machine. What fails is tried once more; if it holds then, the summary
        // calls it flaky, which is a defect to look into.
        tests.args(["nextest", "run", "--no-fail-fast", "--retries", "1"]);
    } else {
        tests.arg("test");
    }
    tests.args(["--workspace", "--features", "backout-cli/testing"]);
    if has_nextest && filters.is_empty() {
        tests.args(["-E", &format!("not {MORE_AGENTS}")]);
    }
    tests.args(filters);
    run_all(vec![Step::new("tests", &mut tests)])?;
    if !filters.is_empty() || !has_nextest {
        return Ok(());
    }
    // The other runner has no doc tests.
    run_all(vec![Step::new(
        "doc tests",
        cargo().args([
            "test",
            "--workspace",
            "--doc",
            "--features",
            "backout-cli/testing",
        ]),
    )])?;
    python::test()
}

/// The tests of coding agents that take minutes and show little more than those of the four that `ci` runs.
const MORE_AGENTS: &str = "test(/^real::others::/)";

fn agents() -> Result<(), String> {
    apt::install_what_tests_need()?;
    let mut tests = cargo();
    tests.args(["nextest", "run", "-p", "backout-cli"]).args([
        "--features",
        "testing",
        "-E",
        MORE_AGENTS,
    ]);
    run_all(vec![Step::new("agents", &mut tests)])
}

/// Runs the tests of the feature `rego`, which is off in all other builds. The program is named beside them so that its
/// dependencies are those that are built already.
fn rego() -> Result<(), String> {
    let mut tests = cargo();
    tests.args([
        "test",
        "--lib",
        "--features",
        "backout-cli/testing,backout-gates/rego",
    ]);
    for package in ["backout-cli", "backout-gates", "backout-checks"] {
        tests.args(["--package", package]);
    }
    tests.arg("rego");
    run_all(vec![Step::new("rego", &mut tests)])
}

fn damage() -> Result<(), String> {
    let mut tests = cargo();
    tests.args(["test", "--package", "backout-cli", "--features", "testing"]);
    tests.args(["--test", "proof", "damage::"]);
    tests.env("BACKOUT_EVERY_DAMAGE", "1");
    run_all(vec![Step::new("every damage", &mut tests)])
}

fn attack(arguments: &[String]) -> Result<(), String> {
    let rounds = match arguments {
        [] => "2000",
        [rounds] if rounds.parse::<usize>().is_ok() => rounds.as_str(),
        _ => return Err("usage: cargo xtask attack [ROUNDS]".to_owned()),
    };
    apt::install_what_tests_need()?;
    let mut tests = cargo();
    tests
        .args(["test", "--package", "backout-cli", "--features", "testing"])
        .args(["--test", "proof", "attacks::", "--", "--nocapture"])
        .env("BACKOUT_EVERY_ATTACK", "1")
        .env("BACKOUT_RACES", rounds);
    run_all(vec![Step::new("attacks", &mut tests)])
}

fn bench(rest: &[String]) -> Result<(), String> {
    let mut bench = cargo();
    bench
        .args(["run", "--release", "--package", "backout-bench", "--"])
        .args(rest);
    run_all(vec![Step::new("bench", &mut bench)])
}
