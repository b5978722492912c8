//! Two builds of the program side by side: `bench against PATH`, where PATH is the program of another build.
//!
//! Each round does the same work with both, the one that begins alternates, and each has a store and files of its own. What
//! is compared is the median of each; a figure that is more than 5 % worse is said to be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Failure;
use crate::durable::median;
use crate::process::{backout, run_well};
use crate::report::{Report, Row, say};

/// How often each work is done by each of the two, unless somebody says otherwise.
const ROUNDS: usize = 41;

/// A figure may be so much worse.
const WORSE_MAX: f64 = 1.05;

/// Files of this size are written.
const SMALL: usize = 4 * 1024;
const LARGE: usize = 1024 * 1024;

/// One kind of work: what is done before, untimed, and what is timed. `{}` stands for the number of the round.
struct Work {
    name: &'static str,
    before: &'static [&'static [&'static str]],
    timed: &'static [&'static str],
}

const WORKS: [Work; 14] = [
    work("write 4 KiB", &[], &["write", "f", "--from", "small-{}"]),
    work("write 1 MiB", &[], &["write", "g", "--from", "large-{}"]),
    work("write a new file", &[], &["write", "new-{}", "--text", "x"]),
    work(
        "append",
        &[],
        &["write", "log", "--append", "--text", "one line"],
    ),
    work("set a key", &[], &["set", "app.toml", "port", "{}"]),
    work(
        "remove a tree",
        &[&["write", "-p", "tree-{}/a/b", "--text", "x"]],
        &["rm", "-r", "tree-{}"],
    ),
    work(
        "undo a write",
        &[&["write", "f", "--from", "small-{}"]],
        &["undo"],
    ),
    work(
        "redo a write",
        &[&["write", "f", "--from", "small-{}"], &["undo"]],
        &["redo"],
    ),
    work(
        "undo a removed tree",
        &[
            &["write", "-p", "tree-{}/a/b", "--text", "x"],
            &["rm", "-r", "tree-{}"],
        ],
        &["undo"],
    ),
    work("log", &[], &["log"]),
    work("status", &[], &["status"]),
    work(
        "diff of the newest",
        &[&["write", "f", "--from", "small-{}"]],
        &["diff", "@"],
    ),
    work(
        "run a command that does nothing",
        &[],
        &["run", "--", "true"],
    ),
    work(
        "run a command that writes 100 files",
        &[],
        &[
            "run",
            "--",
            "sh",
            "-c",
            "mkdir -p many; for i in $(seq 100); do echo {} > many/$i; done",
        ],
    ),
];

const fn work(
    name: &'static str,
    before: &'static [&'static [&'static str]],
    timed: &'static [&'static str],
) -> Work {
    Work {
        name,
        before,
        timed,
    }
}

/// One of the two builds.
struct Build {
    program: PathBuf,
    /// Where its store and its files are.
    place: PathBuf,
}

impl Build {
    fn command(&self, words: &[&str], round: usize) -> Command {
        let words = words
            .iter()
            .map(|word| word.replace("{}", &round.to_string()));
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("BACKOUT_STATE_DIR", self.place.join("state"))
            .current_dir(self.place.join("files"));
        command
    }

    /// Does the work of one round, and tells how long it took.
    fn once(&self, work: &Work, round: usize) -> Result<Duration, Failure> {
        for words in work.before {
            run_well(&mut self.command(words, round))?;
        }
        Ok(run_well(&mut self.command(work.timed, round))?.time)
    }
}

/// Compares this build with another one. The first word is its program; a number after it says how many rounds, and other
/// words choose works by name.
pub(crate) fn measure(place: &Path, words: &[String]) -> Result<(), Failure> {
    let (other, rest) = words
        .split_first()
        .ok_or("say which: `bench against PATH [ROUNDS] [WORK...]`")?;
    let other = fs::canonicalize(other).map_err(|error| format!("`{other}`: {error}"))?;
    let (numbers, chosen): (Vec<&String>, Vec<&String>) =
        rest.iter().partition(|word| word.parse::<usize>().is_ok());
    let rounds = numbers.first().and_then(|word| word.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS);
    let programs = [backout()?, other];
    let mut report = Report::default();
    for (number, work) in WORKS.iter().enumerate() {
        if !chosen.is_empty() && !chosen.iter().any(|word| work.name.contains(word.as_str())) {
            continue;
        }
        say(&format!("comparing: {}", work.name));
        let place = place.join(number.to_string());
        report.rows.push(compared(work, &programs, &place, rounds)?);
    }
    say(&report.to_markdown());
    Ok(())
}

/// Does one work with both, by turns.
fn compared(
    work: &Work,
    programs: &[PathBuf; 2],
    place: &Path,
    rounds: usize,
) -> Result<Row, Failure> {
    let mut builds = Vec::new();
    for (name, program) in std::iter::zip(["this", "other"], programs) {
        let place = place.join(name);
        set_up(&place.join("files"), rounds)?;
        let program = program.clone();
        builds.push((Build { program, place }, Vec::new()));
    }
    for round in 0..rounds {
        if round % 2 == 1 {
            builds.reverse();
        }
        for (build, times) in &mut builds {
            times.push(build.once(work, round)?);
        }
        if round % 2 == 1 {
            builds.reverse();
        }
    }
    let mut medians = builds.into_iter().map(|(_, mut times)| median(&mut times));
    let (this, other) = medians.next().zip(medians.next()).unwrap_or_default();
    let ratio = this.as_secs_f64() / other.as_secs_f64();
    Ok(Row {
        work: work.name.to_owned(),
        measured: format!("{ratio:.3} times the other ({this:.2?} and {other:.2?})"),
        promise: format!("{WORSE_MAX:.2} at most"),
        kept: Some(ratio <= WORSE_MAX),
    })
}

/// Makes the files that the works read.
fn set_up(files: &Path, rounds: usize) -> Result<(), Failure> {
    fs::create_dir_all(files)?;
    fs::write(files.join("app.toml"), "port = 0\n")?;
    fs::write(files.join("log"), "")?;
    for round in 0..rounds {
        let text = format!("round {round}\n");
        for (name, size) in [("small", SMALL), ("large", LARGE)] {
            let content = text.repeat(size / text.len() + 1);
            fs::write(files.join(format!("{name}-{round}")), content)?;
        }
    }
    Ok(())
}
