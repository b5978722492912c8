//! Real files pass. Broken copies of them are refused, or another reader says that they are not broken.
//!
//! The other reader is `judge.py`: the parsers of Python, bash and rustfmt. Formats that it does not know are only read.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, and says what it saw"
)]

mod files;
mod mutate;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use backout_checks::syntax::{Format, check};

use files::File;

/// Fewer files would prove little. So many are config files whose broken copies are judged; the others come beside them.
const FILES_MIN: usize = 200;

/// Formats of config files that the judge knows.
const CONFIG: [Format; 5] = [
    Format::Json,
    Format::Yaml,
    Format::Toml,
    Format::Xml,
    Format::Ini,
];

/// Formats that the judge knows.
const JUDGED: [Format; 7] = [
    Format::Json,
    Format::Yaml,
    Format::Toml,
    Format::Xml,
    Format::Ini,
    Format::Shell,
    Format::Python,
];

/// A format that the judge also knows, too slowly for thousands of broken copies: it judges real files that are refused.
const JUDGED_ONCE: Format = Format::Rust;

const INSTALL: &str =
    "install python3 and python3-yaml, and bring the sources of all crates with `cargo fetch`";

/// Files that bear a name of a format and are not of it.
const MISNAMED: [(&str, &str); 3] = [
    ("krb5.ini", "Kerberos nests with braces"),
    ("Dockerfile.install_app", "a part to be put behind a `FROM`"),
    (
        "Dockerfile.requirements_txt",
        "a part to be put behind a `FROM`",
    ),
];

#[test]
fn real_files_pass_and_broken_copies_do_not() {
    let files = files::of_this_machine();
    let count = files.len();
    let mut counts: BTreeMap<Format, usize> = BTreeMap::new();
    for file in &files {
        *counts.entry(file.format).or_default() += 1;
    }
    println!("{count} files: {counts:?}");
    let config: usize = CONFIG.iter().filter_map(|format| counts.get(format)).sum();
    assert!(
        config >= FILES_MIN,
        "only {config} config files of {FILES_MIN} are here: {INSTALL}"
    );
    let mut wrong = Vec::new();
    let good = real_files(&files, &mut wrong);
    assert!(good.len() * 100 >= count * 95, "too many files are broken");
    let tally = broken_copies(&good, &mut wrong);
    for (format, (refused, harmless)) in tally {
        println!("{format}: {refused} broken copies refused, {harmless} harmless");
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// Reads every file. One that is refused must be broken in the eyes of the judge too.
fn real_files<'f>(files: &'f [File], wrong: &mut Vec<String>) -> Vec<&'f File> {
    let (mut good, mut refused) = (Vec::new(), Vec::new());
    for file in files {
        match check(file.format, file.text.as_bytes()).into_iter().next() {
            None => good.push(file),
            Some(finding) => refused.push((file, finding)),
        }
    }
    let is_judged = |format: Format| JUDGED.contains(&format) || format == JUDGED_ONCE;
    let asked = refused.iter().filter(|(file, _)| is_judged(file.format));
    let texts = asked
        .map(|(file, _)| (file.format, file.text.clone()))
        .collect::<Vec<_>>();
    let mut complaints = judged(&texts).into_iter();
    for (file, finding) in refused {
        let path = file.path.display();
        let complaint = if is_judged(file.format) {
            complaints.next().flatten()
        } else {
            None
        };
        match complaint {
            Some(complaint) => println!("{path} is broken: {complaint}"),
            None if MISNAMED.iter().any(|(name, _)| file.path.ends_with(name)) => {}
            None => wrong.push(format!("{path} does not pass: {finding:?}")),
        }
    }
    good
}

/// Breaks copies of files. What passes must be good in the eyes of the judge, and what is refused must not.
fn broken_copies(files: &[&File], wrong: &mut Vec<String>) -> BTreeMap<Format, (usize, usize)> {
    let mut tally: BTreeMap<Format, (usize, usize)> = BTreeMap::new();
    let mut mutants = Vec::new();
    for file in files.iter().filter(|file| JUDGED.contains(&file.format)) {
        for (what, mutant) in mutate::all(file.format, &file.text) {
            mutants.push((file, what, mutant));
        }
    }
    let texts = mutants
        .iter()
        .map(|(file, _, mutant)| (file.format, mutant.clone()));
    let complaints = judged(&texts.collect::<Vec<_>>());
    assert_eq!(complaints.len(), mutants.len());
    for ((file, what, mutant), complaint) in mutants.iter().zip(complaints) {
        let finding = check(file.format, mutant.as_bytes()).into_iter().next();
        let counts = tally.entry(file.format).or_default();
        if finding.is_some() {
            counts.0 += 1;
        } else {
            counts.1 += 1;
        }
        let path = file.path.display();
        match (finding, complaint) {
            (None, Some(complaint)) => {
                wrong.push(format!("{path}: {what}, and it passes: {complaint}"));
            }
            // To the judge any line is a key of an INI file.
            (Some(finding), None) if file.format != Format::Ini => {
                wrong.push(format!(
                    "{path}: {what}, and it is good, but refused: {finding:?}"
                ));
            }
            (Some(_), _) | (None, None) => {}
        }
    }
    tally
}

/// Asks the judge about all texts at once.
fn judged(texts: &[(Format, String)]) -> Vec<Option<String>> {
    let input = serde_json::to_vec(texts).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/judge.py");
    let mut child = Command::new(python())
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The judge reads everything before it writes.
    stdin.write_all(&input).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the judge failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A Python that has what the judge needs.
fn python() -> &'static str {
    let has = |python: &&str| {
        let look = Command::new(python)
            .args(["-c", "import tomllib, yaml"])
            .stderr(Stdio::null())
            .status();
        look.is_ok_and(|status| status.success())
    };
    ["/usr/bin/python3", "python3"]
        .into_iter()
        .find(has)
        .unwrap_or_else(|| panic!("{INSTALL}"))
}
