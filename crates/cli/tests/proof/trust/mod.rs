//! Trust: nothing is ever lost, and nothing is said that is not so. One test per story that once went wrong.

mod above;
mod accepted;
mod advice;
mod batches;
mod beside;
mod built_upon;
mod carried;
mod concurrent;
mod depot;
mod dressed;
mod forcing;
mod foreseen;
mod foreseen_values;
mod inside;
mod inverse;
mod kept;
mod later;
mod left_out;
mod look_alikes;
mod merging;
mod over;
mod own_state;
mod parts;
mod promised;
pub(crate) mod recovery;
mod redone;
mod returning;
mod returning_parts;
mod saved;
mod seeing;
mod standing;
mod stopping;
mod telling;
mod trees;
mod working;

use std::process::{Child, Output};

use serde_json::Value;

use crate::commands::wait_for;
use crate::world::{Tree, World, said};

/// A command that writes, says that it is ready, and waits for a word.
pub(crate) struct Running {
    child: Child,
}

impl Running {
    /// Starts a command under `run`; `first` happens at once, `then` after [`Running::go_on`].
    pub(crate) fn start(world: &World, options: &[&str], first: &str, then: &str) -> Self {
        let (ready, go) = (world.scratch("ready"), world.scratch("go"));
        let _gone = (std::fs::remove_file(&ready), std::fs::remove_file(&go));
        let line = format!(
            "{first}; touch {}; while [ ! -e {} ]; do sleep 0.02; done; {then}",
            ready.display(),
            go.display()
        );
        let mut arguments = vec!["run"];
        arguments.extend(options);
        arguments.extend(["--", "sh", "-c", &line]);
        let child = world.spawn(&arguments);
        wait_for(|| ready.exists());
        Self { child }
    }

    /// The process that watches: a child of the one that was started.
    pub(crate) fn watcher(&self) -> i32 {
        let front = self.child.id();
        let children = format!("/proc/{front}/task/{front}/children");
        let children = std::fs::read_to_string(children).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }

    pub(crate) fn front(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    pub(crate) fn go_on(self, world: &World) -> Output {
        std::fs::write(world.scratch("go"), "").unwrap();
        self.end()
    }

    pub(crate) fn end(self) -> Output {
        self.child.wait_with_output().unwrap()
    }
}

/// The newest operation with this word, by the beginning of its id.
pub(crate) fn newest(world: &World, verb: &str) -> String {
    let log = world.json(&["log", "-n", "100"]);
    let operations = log["operations"].as_array().unwrap();
    let found = operations.iter().find(|op| op["verb"] == verb);
    found.unwrap()["id"].as_str().unwrap()[..8].to_owned()
}

/// Takes the newest act back and does it again, twice. All that is there now and was `before` comes each time.
pub(crate) fn to_and_fro(world: &World, before: &Tree) {
    let after = world.tree().without_times();
    for (word, wanted) in [("undo", before), ("redo", &after)]
        .into_iter()
        .cycle()
        .take(4)
    {
        world.ok(&[word]);
        let now = world.tree().without_times();
        assert!(now == *wanted, "{word}: {}", now.difference(wanted));
    }
    world.check_store();
}

/// What `show` says of a target.
pub(crate) fn state_of(world: &World, id: &str, name: &str) -> String {
    let shown = world.json(&["show", id]);
    let path = world.path(name).display().to_string();
    let targets = shown["targets"].as_array().unwrap();
    let found = targets.iter().find(|it| it["target"]["path"] == *path);
    found.map_or_else(String::new, |it| it["state"].as_str().unwrap().to_owned())
}

/// Runs a command that must end with `code` and answer with JSON, on whichever stream.
pub(crate) fn json(world: &World, code: i32, arguments: &[&str]) -> Value {
    let mut all = vec!["--json"];
    all.extend(arguments);
    let output = world.run(&all);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{all:?}: {}",
        said(&output)
    );
    let text = if output.stdout.is_empty() {
        output.stderr
    } else {
        output.stdout
    };
    serde_json::from_slice(&text).unwrap()
}

/// What became of each target, by name, newest word last.
pub(crate) fn outcomes(world: &World, report: &Value) -> Vec<(String, String)> {
    let work = world.path("").display().to_string();
    let steps = report["steps"].as_array().unwrap().iter();
    let outcomes = steps.flat_map(|step| step["outcomes"].as_array().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    outcomes
        .map(|outcome| {
            let path = text(&outcome["target"]["path"]);
            let name = path.strip_prefix(&work).unwrap_or(&path);
            (
                name.trim_start_matches('/').to_owned(),
                text(&outcome["outcome"]),
            )
        })
        .collect()
}
