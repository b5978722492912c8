//! The successful commands, one after the other, each where it ran and with the variables that it had.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

use backout_model::TargetPath;

use super::secrets::{Told, lossy};
use crate::quoted;
use crate::sandbox::carry::Variables;
use crate::sandbox::manifest::Manifest;

/// A command that is part of the present state.
pub(super) struct Step {
    pub(super) command: Vec<String>,
    pub(super) is_line: bool,
    /// Whether it failed and what it did was kept all the same.
    pub(super) has_failed: bool,
    /// When its time was up.
    pub(super) time_max_ms: Option<u64>,
    pub(super) directory: TargetPath,
    /// What it had beyond its caller's variables.
    pub(super) environment: Variables,
}

/// The state of the variables on the way.
#[derive(Default)]
struct Set {
    set: BTreeMap<OsString, OsString>,
    unset: Vec<OsString>,
}

impl Set {
    /// Moves on to the variables of the next command; gives what is set anew and what is unset anew.
    fn next(&mut self, to: &Variables) -> (Vec<(OsString, OsString)>, Vec<OsString>) {
        let set: BTreeMap<OsString, OsString> = to
            .set()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let unset: Vec<OsString> = to.unset().cloned().collect();
        let is_new = |(name, value): &(&OsString, &OsString)| self.set.get(*name) != Some(*value);
        let new = set
            .iter()
            .filter(is_new)
            .map(|(name, value)| (name.clone(), value.clone()));
        let new: Vec<_> = new.collect();
        // What was set and is not any more is not the caller's, and what was unset stays so until it is set.
        let mut gone: Vec<OsString> = self
            .set
            .keys()
            .filter(|name| !set.contains_key(*name))
            .cloned()
            .collect();
        gone.extend(
            unset
                .iter()
                .filter(|name| !self.unset.contains(name))
                .cloned(),
        );
        (self.set, self.unset) = (set, unset);
        (new, gone)
    }
}

/// Writes a shell script.
pub(super) fn shell(manifest: &Manifest, steps: &[Step], told: &mut Told) -> String {
    let mut text = format!(
        "#!/usr/bin/env bash\n# The commands that made checkpoint {} of the sandbox {}.\nset -eu\n",
        manifest.head, manifest.name
    );
    let mut variables = Set::default();
    let mut at: Option<&TargetPath> = None;
    for step in steps {
        if at != Some(&step.directory) {
            add(
                &mut text,
                &format!("cd {}", word(step.directory.as_path().as_os_str())),
            );
            at = Some(&step.directory);
        }
        let (new, gone) = variables.next(&step.environment);
        for name in gone {
            add(&mut text, &format!("unset {}", lossy(&name)));
        }
        for (name, value) in new {
            let (name, value) = (lossy(&name), lossy(&value));
            if told.lets(&name, &value) {
                add(
                    &mut text,
                    &format!("export {name}={}", word(value.as_ref())),
                );
            } else {
                add(
                    &mut text,
                    &format!("export {name}=\"${{{name}:?set it first}}\""),
                );
            }
        }
        let words = words(step, told);
        let words: Vec<String> = words.iter().map(|it| word(it.as_ref())).collect();
        let line = words.join(" ");
        // What failed and was kept did what it did.
        add(
            &mut text,
            &if step.has_failed {
                format!("{line} || true")
            } else {
                line
            },
        );
    }
    text
}

/// Writes a Dockerfile.
pub(super) fn dockerfile(manifest: &Manifest, steps: &[Step], told: &mut Told) -> String {
    let home = manifest.home.as_path();
    let mut text = format!(
        "# The commands that made checkpoint {} of the sandbox {}.\n# They began with the files of this machine: build it with the directory {} as the context.\nFROM {}\n",
        manifest.head,
        manifest.name,
        home.display(),
        base()
    );
    let home = serde_json::Value::from(home.display().to_string());
    add(&mut text, &format!("COPY [\".\", {home}]"));
    let mut variables = Set::default();
    let mut unset: Vec<String> = Vec::new();
    // An instruction is one line: values of several are given to each command.
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    let mut at: Option<&TargetPath> = None;
    for step in steps {
        if at != Some(&step.directory) {
            let directory = step.directory.as_path().display().to_string();
            add(&mut text, &format!("WORKDIR {}", in_docker(&directory)));
            at = Some(&step.directory);
        }
        let (new, gone) = variables.next(&step.environment);
        for name in gone.iter().map(lossy) {
            given.remove(&name);
            unset.push(name);
        }
        for (name, value) in new {
            let (name, value) = (lossy(&name), lossy(&value));
            unset.retain(|it| *it != name);
            if !told.lets(&name, &value) {
                continue;
            }
            if value.contains('\n') {
                given.insert(name, value);
            } else {
                given.remove(&name);
                add(&mut text, &format!("ENV {name}={}", in_docker(&value)));
            }
        }
        let mut words = words(step, told);
        for name in told.newly_left_out() {
            let why = "looks like a secret and was left out: give it with --build-arg";
            add(&mut text, &format!("# {name} {why}\nARG {name}"));
        }
        if !unset.is_empty() || !given.is_empty() {
            let gone = unset
                .iter()
                .flat_map(|name| ["-u".to_owned(), name.clone()]);
            let given = given.iter().map(|(name, value)| format!("{name}={value}"));
            let env = std::iter::once("env".to_owned()).chain(gone).chain(given);
            words = env.chain(words).collect();
        }
        if step.has_failed {
            words = ["bash", "-c", "\"$@\" || true", "--"]
                .map(str::to_owned)
                .into_iter()
                .chain(words)
                .collect();
        }
        add(&mut text, &format!("RUN {}", json(&words)));
    }
    text
}

fn add(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _written = writeln!(text, "{line}");
}

/// Gives a command as words; a line is run by a shell of its own, as it was.
fn words(step: &Step, told: &mut Told) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(time_ms) = step.time_max_ms {
        let seconds = format!("{}.{:03}", time_ms / 1000, time_ms % 1000);
        words.extend(["timeout", "-s", "KILL", &seconds].map(str::to_owned));
    }
    if step.is_line {
        let line = told.redacted(&step.command.concat());
        words.extend(["bash".to_owned(), "-c".to_owned(), line]);
    } else {
        words.extend(step.command.iter().map(|word| told.redacted(word)));
    }
    words
}

fn word(text: &OsStr) -> String {
    quoted(text)
}

fn json(words: &[String]) -> String {
    serde_json::to_string(words).unwrap_or_default()
}

/// Quotes a value of `ENV` or `WORKDIR`: there `$` stands for a variable.
fn in_docker(value: &str) -> String {
    let mut quoted = String::from("\"");
    for it in value.chars() {
        match it {
            '"' | '\\' | '$' => quoted.extend(['\\', it]),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Names an image like this machine.
fn base() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |wanted: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(wanted));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    match (field("ID="), field("VERSION_ID=")) {
        (Some(id), Some(version)) => format!("{id}:{version}"),
        (Some(id), None) => id,
        (None, _) => "scratch".to_owned(),
    }
}
