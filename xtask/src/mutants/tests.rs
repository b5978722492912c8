//! The tests that judge, and which changes each of them comes by.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::notes::Notes;
use super::place::{self, Place};
use super::tree::Tree;
use crate::run::say;

/// Where tests come from: the binary, which of its tests, and what they are told. The cheap ones come first.
const SOURCES: [Source; 13] = [
    Source::all("backout-model", "backout_model"),
    Source::all("backout-model", "words"),
    Source::all("backout-engine", "backout_engine"),
    Source::all("backout-engine", "engine"),
    Source {
        part: "every_story",
        told: &[
            ("BACKOUT_MODEL_STORIES", "40"),
            ("BACKOUT_MODEL_TELLINGS", "0"),
        ],
        ..Source::all("backout-engine", "model")
    },
    Source::all("backout-cli", "main"),
    Source::proof("trust::"),
    Source::proof("reach::"),
    Source::proof("bad_days::"),
    Source::proof("processes::"),
    Source::proof("crash::an_acknowledged"),
    Source::proof("errno::told"),
    Source {
        part: "both_laws",
        told: &[("BACKOUT_LAWS_STORIES", "100")],
        ..Source::all("backout-cli", "laws")
    },
];

/// The tests of the model neither wait for others nor share anything: what fails once there fails for a reason.
pub(crate) const MODEL_SOURCES: usize = 2;

/// From here on tests start the program. The model has to do without them.
pub(crate) const PROGRAM_SOURCE: usize = 5;

/// A test that has not ended after so long, and three times as long as without a change, has been changed into a loop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

struct Source {
    package: &'static str,
    binary: &'static str,
    /// How the names of its tests begin.
    part: &'static str,
    told: &'static [(&'static str, &'static str)],
}

impl Source {
    const fn proof(part: &'static str) -> Self {
        Self {
            part,
            ..Self::all("backout-cli", "proof")
        }
    }

    const fn all(package: &'static str, binary: &'static str) -> Self {
        let (part, told) = ("", [].as_slice());
        Self {
            package,
            binary,
            part,
            told,
        }
    }
}

/// One test, and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    /// The number of its source.
    pub(crate) source: usize,
    binary: PathBuf,
    pub(crate) name: String,
    /// How long it took without a change.
    pub(crate) takes: Duration,
    /// The changes that it comes by.
    pub(crate) seen: BTreeSet<usize>,
}

/// What came of some tests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Passed,
    Failed(Vec<String>),
    Endless,
}

/// Compiles the tests, runs each once without a change and notes which changes it comes by. Those of a binary that is the
/// same as the last time are not run again.
pub(crate) fn survey(tree: &Tree, with_program: bool) -> Result<Vec<Test>, String> {
    let tests = listed(&compile(tree, with_program)?, with_program)?;
    say(&format!("{} tests", tests.len()));
    let mut stamps = Vec::new();
    for test in &tests {
        stamps.push(stamp(tree, test)?);
    }
    let notes = Notes::open(&tree.folder.join("survey"))?;
    let (mut surveyed, mut rest) = (Vec::new(), Vec::new());
    for (test, stamp) in tests.into_iter().zip(stamps) {
        match notes.of(stamp, &test.name) {
            Some((takes, seen)) => surveyed.push(Test {
                takes,
                seen,
                ..test
            }),
            None => rest.push((test, stamp)),
        }
    }
    let so_far = Mutex::new((surveyed, notes));
    place::each(&tree.folder, &rest, |place, _, (test, stamp)| {
        place.switch(tree.recording())?;
        place.take_seen()?;
        let begun = Instant::now();
        match run(tree, place, &[test], PATIENCE)? {
            Came::Passed => {
                let takes = begun.elapsed();
                let seen = place.take_seen()?;
                let test = Test {
                    takes,
                    seen,
                    ..test.clone()
                };
                let mut so_far = so_far.lock().map_err(|error| error.to_string())?;
                so_far.1.add(*stamp, &test)?;
                so_far.0.push(test);
            }
            came @ (Came::Failed(_) | Came::Endless) => {
                say(&format!("{} does not judge: {came:?}", test.name));
            }
        }
        Ok(())
    })?;
    let so_far = so_far.into_inner().map_err(|error| error.to_string())?;
    Ok(so_far.0)
}

/// Lists the tests of all sources.
fn listed(binaries: &[(String, String, PathBuf)], with_program: bool) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for (number, source) in SOURCES.iter().enumerate() {
        if number >= PROGRAM_SOURCE && !with_program {
            continue;
        }
        let wanted = (source.package, source.binary);
        let found = binaries
            .iter()
            .find(|it| (it.0.as_str(), it.1.as_str()) == wanted);
        let (_, _, binary) = found.ok_or_else(|| format!("{wanted:?} was not compiled"))?;
        let output = Command::new(binary)
            .args(["--list", "--format", "terse"])
            .output();
        let output = output.map_err(|error| error.to_string())?;
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = names.lines().filter_map(|line| line.strip_suffix(": test"));
        tests.extend(
            names
                .filter(|name| name.starts_with(source.part))
                .map(|name| Test {
                    source: number,
                    binary: binary.clone(),
                    name: name.to_owned(),
                    takes: Duration::from_mins(1),
                    seen: BTreeSet::new(),
                }),
        );
    }
    Ok(tests)
}

/// A number that is another one when the binary of a test is, or the program that the test starts.
fn stamp(tree: &Tree, test: &Test) -> Result<u64, String> {
    let program = tree.folder.join("build/debug/backout");
    let mut hasher = DefaultHasher::new();
    for path in [&test.binary, &program].into_iter().take(
        // Only the program's own tests start it.
        if test.source < PROGRAM_SOURCE { 1 } else { 2 },
    ) {
        let made = fs::metadata(path).and_then(|it| it.modified());
        let made = made.map_err(|error| format!("{}: {error}", path.display()))?;
        (path, made).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Runs tests of one binary, with so much patience beyond what they took without a change.
pub(crate) fn run(
    tree: &Tree,
    place: &Place,
    tests: &[&Test],
    patience: Duration,
) -> Result<Came, String> {
    let Some(first) = tests.first() else {
        return Ok(Came::Passed);
    };
    let source = SOURCES.get(first.source).ok_or("no such source")?;
    let folder = source.package.replace("backout-", "tree/crates/");
    let mut command = place.command(&first.binary);
    command.args(["--exact", "--test-threads", "2"]);
    command.args(tests.iter().map(|test| &test.name));
    command
        .current_dir(tree.folder.join(folder))
        .process_group(0);
    command.env("INSTA_UPDATE", "no");
    command.env("INSTA_WORKSPACE_ROOT", tree.folder.join("tree"));
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
    command.envs(source.told.iter().copied());
    command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let takes: Duration = tests.iter().map(|test| test.takes).sum();
    let said = wait(&mut child, patience + takes * 3)?;
    let Some((said, is_success)) = said else {
        return Ok(Came::Endless);
    };
    let failed = said.lines().filter_map(|line| {
        let line = line.strip_prefix("test ")?;
        line.strip_suffix(" ... FAILED").map(str::to_owned)
    });
    if is_success {
        return Ok(Came::Passed);
    }
    Ok(Came::Failed(failed.collect()))
}

/// Waits for a process to end. Nothing, if that took too long: then all of its group is ended.
fn wait(child: &mut Child, patience: Duration) -> Result<Option<(String, bool)>, String> {
    let mut out = child.stdout.take().ok_or("no output")?;
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _read = out.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    let until = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            end_group(child);
            let said = reader.join().unwrap_or_default();
            return Ok(Some((said, status.success())));
        }
        if Instant::now() > until {
            end_group(child);
            let _ended = child.wait();
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends whatever a test left behind.
fn end_group(child: &Child) {
    let group = format!("-{}", child.id());
    let mut kill = Command::new("kill");
    kill.args(["-9", "--", &group]).stderr(Stdio::null());
    let _ended = kill.status();
}

/// Compiles the test binaries: package, name and path of each.
fn compile(tree: &Tree, with_program: bool) -> Result<Vec<(String, String, PathBuf)>, String> {
    say("compiling the tests");
    let mut build = tree.cargo();
    build.args(["test", "--no-run", "--message-format=json"]);
    build.args(["-p", "backout-model", "-p", "backout-engine"]);
    if with_program {
        build.args(["-p", "backout-cli", "--features", "backout-cli/testing"]);
    } else {
        build.args(["--features", "backout-engine/testing"]);
    }
    let output = build.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err("the tests do not compile".to_owned());
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let binaries = lines.lines().filter_map(|line| {
        let value: Value = serde_json::from_str(line).ok()?;
        let is_test = value.pointer("/profile/test")?.as_bool()?;
        let path = value.get("executable")?.as_str().filter(|_| is_test)?;
        let folder = value.get("manifest_path")?.as_str()?;
        let folder = folder.trim_end_matches("/Cargo.toml").rsplit('/').next()?;
        let name = value.pointer("/target/name")?.as_str()?.to_owned();
        Some((format!("backout-{folder}"), name, PathBuf::from(path)))
    });
    Ok(binaries.collect())
}
