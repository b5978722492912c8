//! A copy of the project that holds every change behind a switch, compiled once.
//!
//! What the compiler refuses leaves the copy, and the rest is compiled again: `cargo-mutants` calls such a change
//! unviable.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::list::Mutant;
use super::place::SWITCH as SWITCH_DIRECTORY;
use super::splice::{plain, splice};
use crate::run::{cargo, root, say};

/// So often the compiler is asked. It finds mistakes of types first, then those of lifetimes.
const ROUNDS_MAX: usize = 12;

/// The switch, and where it is put.
const SWITCH: &str = include_str!("switch.rs.txt");
const SWITCHED: [&str; 2] = ["crates/model/src/lib.rs", "crates/engine/src/lib.rs"];

/// The copy, and what came of the changes in it.
pub(crate) struct Tree {
    pub(crate) folder: PathBuf,
    /// Those that can be switched on.
    pub(crate) ready: Vec<Mutant>,
    /// Those that do not compile.
    pub(crate) unviable: Vec<Mutant>,
    /// Those that compile only by themselves: the values of constants.
    pub(crate) alone: Vec<Mutant>,
}

impl Tree {
    /// Copies the project, puts the changes in and makes it compile.
    pub(crate) fn grow(all: BTreeMap<String, Vec<Mutant>>) -> Result<Self, String> {
        let mut tree = Self {
            folder: root().join("target/mutants"),
            ready: Vec::new(),
            unviable: Vec::new(),
            alone: Vec::new(),
        };
        tree.copy(&all)?;
        let count = all.values().map(Vec::len).sum::<usize>() + 1;
        tree.plant_switch(count)?;
        // What did not compile the last time is not tried again, so that nothing is compiled twice.
        let refused = fs::read_to_string(tree.folder.join("refused")).unwrap_or_default();
        let refused: BTreeSet<&str> = refused.lines().collect();
        let mut fertile = BTreeMap::new();
        for (file, mutants) in all {
            let (alone, mutants): (Vec<_>, Vec<_>) =
                mutants.into_iter().partition(|it| it.is_constant);
            tree.alone.extend(alone);
            let is_refused = |it: &Mutant| refused.contains(it.name.as_str());
            let (bad, good) = mutants.into_iter().partition::<Vec<_>, _>(is_refused);
            tree.unviable.extend(bad);
            fertile.insert(file, good);
        }
        for package in ["backout-model", "backout-engine"] {
            tree.prune(package, &mut fertile)?;
        }
        let refused: Vec<&str> = tree.unviable.iter().map(|it| it.name.as_str()).collect();
        write_changed(&tree.folder.join("refused"), refused.join("\n").as_bytes())?;
        tree.ready = fertile.into_values().flatten().collect();
        Ok(tree)
    }

    /// The number that stands for no change at all but for noting which changes a test comes by.
    pub(crate) fn recording(&self) -> usize {
        1 + self.ready.len() + self.unviable.len() + self.alone.len()
    }

    /// A cargo that works in the copy.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(self.folder.join("tree"));
        command.env("CARGO_TARGET_DIR", self.folder.join("build"));
        command
    }

    /// Copies what is not changed: what holds its old content keeps its time, so that it is not compiled again.
    fn copy(&self, changed: &BTreeMap<String, Vec<Mutant>>) -> Result<(), String> {
        let mut git = Command::new("git");
        git.args(["ls-files", "-co", "--exclude-standard"]);
        let output = git.current_dir(root()).output();
        let output = output.map_err(|error| format!("git: {error}"))?;
        let names = String::from_utf8_lossy(&output.stdout);
        for name in names.lines().filter(|name| root().join(name).is_file()) {
            if changed.contains_key(name) || SWITCHED.contains(&name) {
                continue;
            }
            let mut content = fs::read(root().join(name)).map_err(|e| format!("{name}: {e}"))?;
            if name == "Cargo.toml" {
                // A change may leave a value unused.
                let text = String::from_utf8_lossy(&content);
                content = text.replace("\"deny\"", "\"allow\"").into_bytes();
            }
            write_changed(&self.folder.join("tree").join(name), &content)?;
        }
        Ok(())
    }

    fn plant_switch(&self, count: usize) -> Result<(), String> {
        let switch = SWITCH
            .replace("COUNT", &count.to_string())
            .replace(
                "WHICH_FILE",
                &quoted(&self.folder.join(SWITCH_DIRECTORY).join("which")),
            )
            .replace(
                "SEEN_FILE",
                &quoted(&self.folder.join(SWITCH_DIRECTORY).join("seen")),
            );
        let path = self.folder.join("switch.rs");
        write_changed(&path, switch.as_bytes())?;
        for name in SWITCHED {
            let text = fs::read_to_string(root().join(name)).map_err(|e| e.to_string())?;
            let text = format!("{text}\n#[path = {}]\nmod mutant_switch;\n", quoted(&path));
            write_changed(&self.folder.join("tree").join(name), text.as_bytes())?;
        }
        Ok(())
    }

    /// Asks the compiler until it has no complaint about a package.
    fn prune(
        &mut self,
        package: &str,
        fertile: &mut BTreeMap<String, Vec<Mutant>>,
    ) -> Result<(), String> {
        let prefix = package.replace("backout-", "crates/");
        for _ in 0..ROUNDS_MAX {
            let mut written = BTreeMap::new();
            for (file, mutants) in fertile.iter_mut().filter(|it| it.0.starts_with(&prefix)) {
                let source = fs::read_to_string(root().join(file)).map_err(|e| e.to_string())?;
                let (marked, without) = splice(&source, mutants)?;
                mutants.retain(|it| {
                    let stays = !without.contains(&it.id);
                    self.unviable.extend((!stays).then(|| it.clone()));
                    stays
                });
                let (text, ranges) = plain(&marked);
                write_changed(&self.folder.join("tree").join(file), text.as_bytes())?;
                written.insert(file.clone(), ranges);
            }
            let wrong = self.complaints(package, &written)?;
            if wrong.is_empty() {
                return Ok(());
            }
            say(&format!(
                "{package}: {} changes do not compile",
                wrong.len()
            ));
            for mutants in fertile.values_mut() {
                let (bad, good) = mutants.drain(..).partition(|it| wrong.contains(&it.id));
                *mutants = good;
                self.unviable.extend::<Vec<Mutant>>(bad);
            }
        }
        Err(format!("{package} still does not compile"))
    }

    /// The changes that the compiler complains about.
    fn complaints(
        &self,
        package: &str,
        written: &BTreeMap<String, Vec<(usize, Range<usize>)>>,
    ) -> Result<BTreeSet<usize>, String> {
        let mut check = self.cargo();
        check.args(["check", "--message-format=json", "-p", package]);
        if package == "backout-engine" {
            check.args(["--features", "testing"]);
        }
        let output = check.output().map_err(|error| error.to_string())?;
        let mut wrong = BTreeSet::new();
        let mut other = String::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let Some(message) = line.get("message").filter(|it| is_error(it)) else {
                continue;
            };
            let spans = message.get("spans").and_then(Value::as_array);
            let found = spans
                .into_iter()
                .flatten()
                .filter_map(|it| changed_at(it, written));
            let before = wrong.len();
            wrong.extend(found);
            if before == wrong.len() {
                let text = message.get("rendered").and_then(Value::as_str);
                other.push_str(text.unwrap_or_default());
            }
        }
        if wrong.is_empty() && !output.status.success() {
            return Err(format!("{package} does not compile:\n{other}"));
        }
        Ok(wrong)
    }
}

fn is_error(message: &Value) -> bool {
    message.get("level").and_then(Value::as_str) == Some("error")
}

/// The innermost change that wrote the place that a complaint is about.
fn changed_at(
    span: &Value,
    written: &BTreeMap<String, Vec<(usize, Range<usize>)>>,
) -> Option<usize> {
    let ranges = written.get(span.get("file_name")?.as_str()?)?;
    let start = usize::try_from(span.get("byte_start")?.as_u64()?).ok()?;
    let around = ranges.iter().filter(|(_, range)| range.contains(&start));
    around.min_by_key(|(_, range)| range.len()).map(|it| it.0)
}

fn quoted(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}

/// Writes a file unless it holds that already: the compiler looks at times.
fn write_changed(path: &Path, content: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(path, content));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
