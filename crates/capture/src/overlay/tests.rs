//! Commands that run in layers of this machine. They need the right to make namespaces.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::{
    Ended, Finished, Invocation, OverlayError, Streams, Survivors, What, remove, run, walk,
};

/// A directory to work in and one for the layers.
struct World {
    root: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("work")).unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.root.path().join("work"))
            .unwrap()
            .join(name)
    }

    fn layers(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn invocation(&self, words: &[&str]) -> Invocation {
        let mut words = words.iter().map(OsString::from);
        Invocation {
            program: words.next().unwrap(),
            arguments: words.collect(),
            directory: self.path(""),
            environment: None,
            has_no_network: false,
            streams: Streams::Ours,
            time_max: None,
            survivors: Survivors::End,
        }
    }

    fn run(&self, invocation: &Invocation) -> Result<Finished, OverlayError> {
        let masks = [self.layers()];
        fs::create_dir_all(self.layers()).unwrap();
        run(invocation, &[self.layers().join("1")], &masks)
    }

    fn shell(&self, script: &str) -> Finished {
        self.run(&self.invocation(&["sh", "-c", script])).unwrap()
    }

    fn changes(&self, finished: &Finished) -> Vec<(String, What)> {
        let work = self.path("");
        let mut changes = walk(&finished.plan).unwrap();
        changes.retain(|change| change.path.starts_with(&work));
        let name = |path: &Path| path.strip_prefix(&work).unwrap().display().to_string();
        changes
            .iter()
            .map(|change| (name(&change.path), change.what))
            .collect()
    }
}

#[test]
fn a_command_changes_its_layer_and_nothing_else() {
    let world = World::new();
    fs::write(world.path("edited"), "old").unwrap();
    fs::write(world.path("removed"), "old").unwrap();
    fs::write(world.path("read"), "old").unwrap();
    let finished = world.shell(
        "cat read && echo new > edited && echo new > created && rm removed && chmod 700 read; exit 7",
    );
    assert_eq!(finished.ended, Ended::Code(7));
    assert_eq!(fs::read_to_string(world.path("edited")).unwrap(), "old");
    assert!(world.path("removed").exists());
    assert!(!world.path("created").exists());
    let wanted = [
        ("created", What::Created),
        ("edited", What::Changed),
        ("read", What::Metadata),
        ("removed", What::Deleted),
    ];
    let wanted = wanted.map(|(name, what)| (name.to_owned(), what));
    assert_eq!(world.changes(&finished), wanted);
    remove(&world.layers()).unwrap();
}

#[test]
fn a_file_that_was_copied_up_and_is_equal_is_no_change() {
    let world = World::new();
    fs::write(world.path("same"), "old").unwrap();
    let finished = world.shell("printf old > same; touch same");
    assert_eq!(world.changes(&finished), []);
}

#[test]
fn a_directory_made_anew_replaces_the_old_one_entry_by_entry() {
    let world = World::new();
    fs::create_dir_all(world.path("d/sub")).unwrap();
    fs::write(world.path("d/old"), "old").unwrap();
    fs::write(world.path("d/both"), "old").unwrap();
    let finished = world.shell("rm -r d; mkdir d; echo new > d/both; echo new > d/new");
    let wanted = [
        ("d/both", What::Changed),
        ("d/new", What::Created),
        ("d/old", What::Deleted),
        ("d/sub", What::Deleted),
    ];
    let wanted = wanted.map(|(name, what)| (name.to_owned(), what));
    assert_eq!(world.changes(&finished), wanted);
}

#[test]
fn a_renamed_directory_moves_in_one_piece() {
    let world = World::new();
    fs::create_dir(world.path("tree")).unwrap();
    fs::write(world.path("tree/leaf"), "old").unwrap();
    let finished = world.shell("mv tree moved");
    let mut wanted = vec![("moved".to_owned(), What::Moved)];
    if !rustix::process::geteuid().is_root() {
        // An ordinary user's overlay cannot; `mv` copies.
        wanted = vec![
            ("moved".to_owned(), What::Created),
            ("moved/leaf".to_owned(), What::Created),
            ("tree".to_owned(), What::Deleted),
        ];
    }
    assert_eq!(world.changes(&finished), wanted);
}

#[test]
fn a_renamed_directory_with_changes_is_told_file_by_file() {
    let world = World::new();
    fs::create_dir_all(world.path("d/sub")).unwrap();
    fs::write(world.path("d/sub/kept"), "old").unwrap();
    fs::write(world.path("d/gone"), "old").unwrap();
    let finished = world.shell("mv d e; rm e/gone; echo new > e/new");
    let wanted = [
        ("d", What::Deleted),
        ("e", What::Created),
        ("e/new", What::Created),
        ("e/sub", What::Created),
        ("e/sub/kept", What::Created),
    ];
    let wanted = wanted.map(|(name, what)| (name.to_owned(), what));
    assert_eq!(world.changes(&finished), wanted);
}

#[test]
fn processes_that_outlive_the_command_are_named_and_ended() {
    let world = World::new();
    let finished = world.shell("(trap '' TERM; echo x > alive; sleep 600) & echo done");
    assert_eq!(finished.ended, Ended::Code(0));
    assert!(!finished.survivors.is_empty());
    let is_gone = |pid: i32| !Path::new(&format!("/proc/{pid}")).exists();
    assert!(
        finished
            .survivors
            .iter()
            .all(|survivor| is_gone(survivor.pid))
    );
}

#[test]
fn processes_that_outlive_the_command_can_be_waited_for() {
    let world = World::new();
    let invocation = Invocation {
        survivors: Survivors::Wait,
        ..world.invocation(&["sh", "-c", "(sleep 0.2; echo late > late) &"])
    };
    let finished = world.run(&invocation).unwrap();
    assert_eq!(
        world.changes(&finished),
        [("late".to_owned(), What::Created)]
    );
    assert_eq!(finished.survivors.len(), 2);
}

#[test]
fn a_signal_is_told() {
    let world = World::new();
    let finished = world.shell("kill -9 $$");
    assert_eq!(finished.ended, Ended::Signal(9));
    assert_eq!(finished.ended.code(), 137);
}

#[test]
fn a_command_that_is_not_there_is_not_started() {
    let world = World::new();
    let error = world
        .run(&world.invocation(&["no-such-command"]))
        .unwrap_err();
    assert!(matches!(error, OverlayError::NotStarted { .. }), "{error}");
}

#[test]
fn without_network_only_the_loopback_is_there() {
    let world = World::new();
    let invocation = Invocation {
        has_no_network: true,
        ..world.invocation(&["sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1 > links"])
    };
    let finished = world.run(&invocation).unwrap();
    let changes = walk(&finished.plan).unwrap();
    let Some(super::Becomes::Like(links)) = changes
        .iter()
        .find(|change| change.path == world.path("links"))
        .map(|change| change.becomes.clone())
    else {
        panic!("{changes:?}");
    };
    assert_eq!(fs::read_to_string(links).unwrap().trim(), "lo");
}

#[test]
fn the_masked_directory_is_empty_and_closed_inside() {
    let world = World::new();
    fs::create_dir_all(world.layers()).unwrap();
    fs::write(world.layers().join("secret"), "x").unwrap();
    let state = world.layers().display().to_string();
    let script = format!("ls {state} > seen; touch {state}/x || echo closed >> seen");
    let finished = world.shell(&script);
    let changes = walk(&finished.plan).unwrap();
    assert!(
        changes
            .iter()
            .all(|change| !change.path.starts_with(world.layers()))
    );
    assert_eq!(world.changes(&finished).len(), 1);
}
