//! A story of commands on a recorded disk, and what must hold of every image that a power cut leaves of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use super::fuse::{Served, unmount};
use super::log::{History, Pages, Recorder};
use crate::random::Random;
use crate::world::{Tree, World, memory, said};

/// A file system to try, and the size of its disk in MiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind(pub(crate) &'static str, pub(crate) u64);

pub(crate) const EXT4: Kind = Kind("ext4", 64);
pub(crate) const XFS: Kind = Kind("xfs", 300);
pub(crate) const BTRFS: Kind = Kind("btrfs", 128);

const BATCH: &str = r#"{"changes": [
    {"write": {"path": "batch/one", "text": "1", "parents": true}},
    {"write": {"path": "app.toml", "text": "port = 5 # and more of the same\n"}},
    {"remove": {"path": "run.sh"}},
    {"move": {"from": "large.bin", "to": "batch/large"}}]}"#;

/// Every way to write and to take back, each building on what was before.
const STEPS: &[&[&str]] = &[
    &["write", "app.toml", "--text", "port = 0\n"],
    &["undo"],
    &["write", "-p", "src/deep/first", "--text", "first"],
    &["write", "pair", "--text", "one of two large names"],
    &[FOREIGN, "fresh"],
    &["write", "fresh", "--text", "over what was never synced"],
    &[
        "write",
        "app.toml",
        "--text",
        "port = 1 # and more of the same\n",
    ],
    &["write", "large.bin", "--text", "small now"],
    &["write", "-p", "a/b/new", "--text", "new"],
    &[
        "edit",
        "src/main.rs",
        "--search",
        "main",
        "--replace",
        "start",
    ],
    &["rm", "-r", "src"],
    &["undo"],
    &["mv", "src", "moved"],
    &["cp", "-r", "moved", "copied"],
    &["write", "one", "--text", "one name of two"],
    &["batch"],
    &["undo"],
    &["redo"],
    &[
        "write",
        "app.toml",
        "--text",
        "port = 2 # and more of the same\n",
    ],
    &[
        "write",
        "app.toml",
        "--text",
        "port = 3 # and more of the same\n",
    ],
    &["gc"],
    &["rm", "-r", "copied"],
    &["chmod", "0600", "app.toml"],
    &["cp", "-r", "many", "more"],
    &["rm", "-r", "many"],
    &["undo"],
    &["task", "begin", "t"],
    &["--task", "t", "write", "a/b/new", "--text", "newer"],
    &["rollback", "t"],
    &["undo"],
    &[FOREIGN, "small"],
    &[
        "write",
        "small",
        "--text",
        "over a small file that was never synced",
    ],
    &["write", "last", "--text", "last"],
];

/// Not a command of ours: somebody makes one of these files and does not sync it.
const FOREIGN: &str = "somebody else makes";
const FRESH: [(&str, usize); 2] = [("fresh", 200_000), ("small", 2_000)];

/// What was acknowledged, when, and how the world stood then.
struct Moment {
    position: usize,
    world: Tree,
}

/// A story that was told to its end, with all that reached the disk.
pub(crate) struct Story {
    kind: Kind,
    /// Where the disk is mounted, before and after.
    place: tempfile::TempDir,
    moments: Vec<Moment>,
    pub(crate) history: History,
}

impl Story {
    /// Runs the commands on a fresh file system, without the syncs named `skipped`.
    pub(crate) fn recorded(kind: Kind, skipped: Option<&str>) -> Self {
        let recorder = Arc::new(Recorder::new(kind.1 * 1024 * 1024));
        let served = Served::new(recorder.clone());
        run(Command::new(format!("/sbin/mkfs.{}", kind.0))
            .arg("-q")
            .arg(served.file()));
        let place = tempfile::tempdir().unwrap();
        let mounted = Mounted::new(&served.file(), kind, place.path());
        let world = mounted.world();
        fs::create_dir(mounted.work()).unwrap();
        let world = world.with_project();
        for number in 0..40 {
            world.file(&format!("many/{number}"), &format!("number {number}"));
        }
        world.file("pair", &noise(100_000));
        fs::hard_link(world.path("pair"), world.path("pair too")).unwrap();
        rustix::fs::syncfs(fs::File::open(mounted.work()).unwrap()).unwrap();
        let moment = || Moment {
            position: recorder.position(),
            world: world.tree().without_directory_times(),
        };
        let mut moments = vec![moment()];
        for step in STEPS {
            if let [FOREIGN, name] = step {
                world.file(name, &fresh(name));
            } else {
                let output = tell(&world, step, skipped);
                assert!(output.status.success(), "{step:?}: {}", said(&output));
            }
            moments.push(moment());
        }
        let history = recorder.to_history();
        drop(mounted);
        Self {
            kind,
            place,
            moments,
            history,
        }
    }

    /// The positions at which the first and the last command were acknowledged.
    pub(crate) fn span(&self) -> (usize, usize) {
        let position = |moment: Option<&Moment>| moment.unwrap().position;
        (
            position(self.moments.first()),
            position(self.moments.last()),
        )
    }

    pub(crate) fn acknowledgements(&self) -> Vec<usize> {
        self.moments.iter().map(|moment| moment.position).collect()
    }

    /// Mounts the image of a power cut at `position`, recovers, and says what does not hold.
    pub(crate) fn judge(&self, image: &Pages, position: usize) -> Result<(), String> {
        let file = tempfile::NamedTempFile::new_in(memory()).unwrap();
        image.save(file.path(), self.history.size());
        let mounted = Mounted::new(file.path(), self.kind, self.place.path());
        let world = mounted.world();
        let acknowledged = self
            .moments
            .iter()
            .rposition(|moment| moment.position <= position)
            .unwrap();
        let in_flight = STEPS.get(acknowledged);
        self.judge_world(&world, acknowledged)
            .map_err(|why| format!("after step {acknowledged}, in {in_flight:?}: {why}"))
    }

    fn judge_world(&self, world: &World, acknowledged: usize) -> Result<(), String> {
        let step = acknowledged.checked_sub(1).map(|step| STEPS[step]);
        match step {
            Some([FOREIGN, name]) => recover_beside(world, name)?,
            _ => drop(asked(world, &["recover"])?),
        }
        // What somebody else wrote last and did not sync may be lost, in whole or in part.
        let seen = |tree: &Tree| match step {
            Some([FOREIGN, name]) => tree.clone().without(name),
            _ => tree.clone(),
        };
        let now = seen(&world.tree().without_directory_times());
        let before = seen(&self.moments[acknowledged].world);
        let after = self.moments.get(acknowledged + 1);
        if now != before && after.is_none_or(|after| now != seen(&after.world)) {
            let difference = now.difference(&before);
            return Err(format!("neither before nor after:\n{difference}"));
        }
        let verified = asked(world, &["verify"])?;
        if verified["findings"] != serde_json::json!([]) {
            return Err(format!("not whole: {}", verified["findings"]));
        }
        let left = now
            .names()
            .into_iter()
            .find(|name| name.contains(".backout-"));
        if let Some(name) = left {
            return Err(format!("left behind: {name}"));
        }
        self.judge_undo(world)?;
        let over = |name: &str| {
            STEPS[..acknowledged]
                .iter()
                .any(|step| step.starts_with(&["write", name]))
        };
        for (name, _) in FRESH {
            if over(name) && world.read(name) != fresh(name) {
                return Err(format!(
                    "what somebody else had written to {name} came back damaged"
                ));
            }
        }
        Ok(())
    }

    /// Whatever is in effect can be taken back to the very beginning.
    fn judge_undo(&self, world: &World) -> Result<(), String> {
        let log = asked(world, &["log", "-n", "1000"])?;
        let operations = log["operations"].as_array().unwrap();
        let in_effect = operations
            .iter()
            .filter(|operation| operation["status"] == "committed" && operation["undoes"].is_null())
            .map(|operation| operation["id"].as_str().unwrap());
        let mut undo = vec!["undo", "--committed"];
        undo.extend(in_effect);
        if undo.len() > 2 {
            asked(world, &undo)?;
        }
        let now = world.tree().without_directory_times();
        let now = FRESH.iter().fold(now, |tree, (name, _)| tree.without(name));
        let first = &self.moments[0].world;
        if now != *first {
            return Err(format!("undone, but:\n{}", now.difference(first)));
        }
        Ok(())
    }
}

/// Recovers where the power cut may have left `name` as nobody ever saw it, because nobody had synced it. That may be
/// reported as a conflict; then what had been there is in the journal, and can be had.
fn recover_beside(world: &World, name: &str) -> Result<(), String> {
    let output = world.run(&["--json", "recover"]);
    if output.status.success() {
        return Ok(());
    }
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|_| said(&output))?;
    let operation = &report["operations"][0];
    if operation["status"] != "in-doubt" || operation["outcomes"][0]["outcome"] != "conflict" {
        return Err(said(&output));
    }
    asked(
        world,
        &["undo", "--force", operation["id"].as_str().unwrap()],
    )?;
    if world.read(name) == fresh(name) {
        Ok(())
    } else {
        Err(format!("{name} did not come back from the journal"))
    }
}

/// What somebody else writes.
fn fresh(name: &str) -> String {
    let found = FRESH.iter().find(|(other, _)| *other == name);
    noise(found.unwrap().1)
}

/// A text that does not compress to nothing.
fn noise(length: usize) -> String {
    let mut random = Random::new(7);
    let letter = move || char::from(b'a' + u8::try_from(random.below(26)).unwrap());
    std::iter::repeat_with(letter).take(length).collect()
}

/// A mounted file system that goes away when dropped.
pub(crate) struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    pub(crate) fn new(disk: &Path, kind: Kind, at: &'a Path) -> Self {
        let options = if kind.0 == "xfs" {
            "loop,noatime,nouuid"
        } else {
            "loop,noatime"
        };
        run(Command::new("mount")
            .args(["-t", kind.0, "-o", options])
            .arg(disk)
            .arg(at));
        Self(at)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    pub(crate) fn world(&self) -> World {
        World::at(&self.work(), Some(&self.0.join("state")))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        unmount(self.0);
    }
}

/// Runs one step of the story as it ran before the power cut.
fn tell(world: &World, step: &[&str], skipped: Option<&str>) -> Output {
    let mut command = world.command(step);
    command
        .env("BACKOUT_TEST_BOOT", "before-the-power-cut")
        .env("BACKOUT_SKIP_SYNC", skipped.unwrap_or_default());
    if step != ["batch"] {
        return command.output().unwrap();
    }
    let file = world.scratch("batch.json");
    fs::write(&file, BATCH).unwrap();
    command
        .stdin(Stdio::from(fs::File::open(file).unwrap()))
        .output()
        .unwrap()
}

/// Runs a command after the power cut that must succeed.
fn asked(world: &World, arguments: &[&str]) -> Result<serde_json::Value, String> {
    let mut all = vec!["--json"];
    all.extend(arguments);
    let output = world.run(&all);
    if !output.status.success() {
        return Err(format!("{arguments:?}: {}", said(&output)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", said(&output));
}
