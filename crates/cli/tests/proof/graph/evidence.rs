//! Evidence: what a rollback leaves, told in the shapes of the schemas, and checked by others; whoever touches it is found.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{accepted, asked, context, import, plan, schemas, validated};
use crate::world::World;

/// A project in which something went wrong: writes, a command, a task that is rolled back, work that goes on.
pub(super) fn story() -> World {
    let world = World::in_memory();
    world.file("app.toml", "port = 8080\n");
    world.file("note.txt", "hello\n");
    let steps = [(11, "in_progress"), (12, "pending")];
    let objects = json!([context("active"), plan(2, "in_progress", &steps)]);
    import(&world, "objects.json", &objects, &[]).unwrap();
    world.ok(&["task", "begin", "release"]);
    world.ok(&[
        "--task", "release", "--agent", "robin", "set", "app.toml", "port", "9090",
    ]);
    world.ok(&["--task", "release", "--agent", "robin", "rm", "note.txt"]);
    world.ok(&[
        "--task",
        "release",
        "--agent",
        "robin",
        "run",
        "--",
        "sh",
        "-c",
        "echo made > made.txt",
    ]);
    import(
        &world,
        "failed.json",
        &plan(2, "failed", &[(11, "failed"), (12, "skipped")]),
        &["--force"],
    )
    .unwrap();
    world
}

pub(super) fn rolled_back() -> World {
    let world = story();
    world.ok(&["rollback", "release", "--trigger", "plan-failure"]);
    world.file("after.txt", "");
    world.ok(&["--agent", "robin", "rm", "after.txt"]);
    world
}

/// Writes evidence and gives its directory.
pub(super) fn exported(world: &World, name: &str) -> PathBuf {
    let directory = world.scratch(name);
    let path = directory.to_str().unwrap().to_owned();
    world.ok(&["export", "--format", "mplp", &path]);
    directory
}

pub(super) fn timeline(pack: &Path) -> Vec<Value> {
    let text = fs::read_to_string(pack.join("timeline.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(super) fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|it| it["event_type"].as_str().unwrap())
        .collect()
}

/// Gives each event with the schema of its shape.
pub(super) fn shapes<'e>(events: &'e [Value], trace: &'e Value) -> Vec<(&'static str, &'e Value)> {
    let mut pairs = Vec::new();
    for event in events {
        pairs.push(("events/mplp-event-core.schema.json", event));
        let family = match event["event_family"].as_str().unwrap() {
            "graph_update" => "events/mplp-graph-update-event.schema.json",
            "pipeline_stage" => "events/mplp-pipeline-stage-event.schema.json",
            "runtime_execution" => "events/mplp-runtime-execution-event.schema.json",
            _ => "events/mplp-event-core.schema.json",
        };
        pairs.push((family, event));
        match event["event_type"].as_str().unwrap() {
            "file.updated" => pairs.push((
                "integration/mplp-file-update-event.schema.json",
                &event["payload"],
            )),
            "tool.result" => {
                pairs.push(("integration/mplp-tool-event.schema.json", &event["payload"]));
            }
            _ => {}
        }
    }
    for event in trace["events"].as_array().unwrap() {
        pairs.push(("common/events.schema.json", event));
    }
    pairs.push(("mplp-trace.schema.json", trace));
    pairs
}

#[test]
fn every_line_of_the_story_follows_the_schemas() {
    let world = rolled_back();
    let pack = exported(&world, "pack");
    let events = timeline(&pack);
    let trace: Value =
        serde_json::from_slice(&fs::read(pack.join("artifacts/trace.json")).unwrap()).unwrap();
    let pairs = shapes(&events, &trace);
    assert_eq!(validated(&pairs), Ok(pairs.len()));
    // The validator says no, too.
    let mut wrong = events[0].clone();
    wrong["event_family"] = json!("gossip");
    assert!(validated(&[("events/mplp-event-core.schema.json", &wrong)]).is_err());
    let told = names(&events);
    for name in [
        "graph.updated",
        "task.begun",
        "operation.started",
        "file.updated",
        "tool.result",
        "rollback.initiated",
        "rollback.action",
        "rollback.completed",
        "task.rolledback",
        "span.started",
    ] {
        assert!(told.contains(&name), "{name} {told:?}");
    }
    assert!(Path::new(&schemas()).is_dir());
}

#[test]
fn a_checker_of_others_accepts_it_and_so_does_the_program() {
    let world = rolled_back();
    let pack = exported(&world, "pack");
    let counted = accepted(&pack).unwrap();
    assert_eq!(counted["rollbacks"], 1, "{counted}");
    let path = pack.to_str().unwrap();
    let checked = asked(&world, &["--json", "verify", "--evidence", path]).unwrap();
    assert_eq!(checked["records"], counted["records"]);
    assert!(
        world
            .ok(&["verify", "--evidence", path])
            .starts_with("evidence of ")
    );
    // The same journal gives the same files, but for the moment in the manifest.
    let again = exported(&world, "again");
    for name in ["journal.jsonl", "timeline.jsonl", "artifacts/trace.json"] {
        assert_eq!(
            fs::read(pack.join(name)).unwrap(),
            fs::read(again.join(name)).unwrap()
        );
    }
    let there = world.fails(1, &["export", "--format", "mplp", path]);
    assert!(
        there.contains("name a directory that is not there yet"),
        "{there}"
    );
    world.fails(2, &["export", "--format", "mplp"]);
    let both = world.fails(2, &["export", path]);
    assert!(
        both.contains("a directory goes with `--format mplp` only"),
        "{both}"
    );
    // An ordinary checker of sums likes it.
    let sums = std::process::Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(&pack)
        .status()
        .unwrap();
    assert!(sums.success());
}

#[test]
fn a_rollback_deletes_nothing() {
    let world = story();
    let before = exported(&world, "before");
    world.ok(&["rollback", "release", "--trigger", "plan-failure"]);
    let path = before.to_str().unwrap();
    // What was evidence before the rollback is so after it: every record is still there.
    let checked = asked(&world, &["--json", "verify", "--evidence", path]).unwrap();
    assert_eq!(checked["flaws"], Value::Null, "{checked:#}");
    let after = exported(&world, "after");
    let (old, new) = (timeline(&before), timeline(&after));
    assert!(new.starts_with(&old) && new.len() > old.len());
    // A journal from which somebody took a record has none of it.
    let database = world.state().join("journal.sqlite");
    let connection = rusqlite::Connection::open(database).unwrap();
    let taken = "DROP TRIGGER record_is_cut_at_the_anchor; DELETE FROM record WHERE lsn = 3;";
    connection.execute_batch(taken).unwrap();
    drop(connection);
    let output = world.run(&["verify", "--evidence", path]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn whoever_touches_it_is_found_by_both() {
    let world = rolled_back();
    let pack = exported(&world, "pack");
    let refused = |name: &str, change: &dyn Fn(&Path)| {
        let copy = world.scratch(name);
        let copied = std::process::Command::new("cp")
            .arg("-r")
            .arg(&pack)
            .arg(&copy)
            .status();
        assert!(copied.unwrap().success());
        change(&copy);
        assert!(accepted(&copy).is_err(), "{name}");
        let output = world.run(&["verify", "--evidence", copy.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{name} {output:?}");
    };
    let replaced = |path: &Path, from: &str, to: &str| {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{from} in {text}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    };
    refused("a-record", &|copy| {
        replaced(&copy.join("journal.jsonl"), "plan-failure", "user-request");
    });
    refused("an-event", &|copy| {
        replaced(
            &copy.join("timeline.jsonl"),
            "rollback.completed",
            "rollback.forgotten",
        );
    });
    refused("the-trace", &|copy| {
        replaced(
            &copy.join("artifacts/trace.json"),
            "rollback.initiated",
            "nothing.initiated",
        );
    });
    refused("a-sum", &|copy| {
        replaced(&copy.join("SHA256SUMS"), "journal.jsonl", "journal.json");
    });
    refused("gone", &|copy| {
        fs::remove_file(copy.join("artifacts/graph.json")).unwrap();
    });
    refused("more", &|copy| {
        fs::write(copy.join("more.txt"), "x").unwrap();
    });
    refused("no-manifest", &|copy| {
        fs::remove_file(copy.join("manifest.json")).unwrap();
    });
    // Somebody who takes a record out and puts every sum right again.
    refused("resummed", &|copy| {
        let path = copy.join("journal.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let kept: Vec<&str> = text
            .lines()
            .filter(|line| !line.contains("\"task-rollback\""))
            .collect();
        fs::write(&path, kept.join("\n") + "\n").unwrap();
        resum(copy);
    });
    refused("retold", &|copy| {
        replaced(
            &copy.join("timeline.jsonl"),
            "\"completed\":3",
            "\"completed\":2",
        );
        resum(copy);
    });
}

/// Puts all sums of a pack right, with other programs.
fn resum(pack: &Path) {
    let script = r"
import hashlib, json, pathlib, sys
root = pathlib.Path(sys.argv[1])
manifest = json.loads((root / 'manifest.json').read_text())
for it in manifest['files']:
    data = (root / it['path']).read_bytes()
    it['sha256'], it['bytes'] = hashlib.sha256(data).hexdigest(), len(data)
(root / 'manifest.json').write_text(json.dumps(manifest, indent=2) + '\n')
names = [it['path'] for it in manifest['files']] + ['manifest.json']
lines = [hashlib.sha256((root / name).read_bytes()).hexdigest() + '  ' + name + '\n' for name in names]
(root / 'SHA256SUMS').write_text(''.join(lines))
";
    let done = std::process::Command::new(super::PYTHON)
        .args(["-c", script])
        .arg(pack)
        .status();
    assert!(done.unwrap().success());
}
