//! Every call that changes a file ends as it does without us, with the same error and the same world afterwards: for
//! root, for an ordinary user, and for an ordinary user's process in a command of root.
//!
//! The calls, their names and what they meet are in `fixtures/calls.py`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::disk::Disk;
use crate::world::{World, said};

/// One call in so many is made, unless `BACKOUT_EVERY_CALL` is set. Together the ordinary tests of three users make some
/// five hundred.
const PARTS: usize = 60;

/// The ordinary user that the fixture knows.
const USER: u32 = 1234;

/// Python as every user finds it.
const PYTHON: &str = "/usr/bin/python3";

/// Who makes the calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Root,
    User,
    /// A user's process in a command of root.
    Inner,
}

struct Table {
    program: PathBuf,
    part: String,
    parts: String,
}

impl Table {
    fn says(&self, mode: &str, at: &Path, words: &[&str]) -> String {
        let output = Command::new(PYTHON)
            .args(self.words(mode))
            .args(words)
            .current_dir(at)
            .output()
            .unwrap();
        assert!(output.status.success(), "{mode}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn words(&self, mode: &str) -> Vec<String> {
        let program = self.program.display().to_string();
        vec![
            program,
            mode.to_owned(),
            self.part.clone(),
            self.parts.clone(),
        ]
    }
}

/// The words that make a command an ordinary user's.
const AS_USER: [&str; 5] = [
    "setpriv",
    "--reuid=1234",
    "--regid=1234",
    "--clear-groups",
    "--",
];

fn compare(who: Who, part: usize) {
    let is_every = std::env::var_os("BACKOUT_EVERY_CALL").is_some();
    let disk = Disk::memory(512 * 1024);
    fs::create_dir(disk.path().join("d")).unwrap();
    fs::write(disk.path().join("f"), "f").unwrap();
    let still = disk.path().display().to_string();
    let (bare, watched) = (World::in_memory(), World::in_memory());
    let watched = if who == Who::User {
        watched.of_user(USER)
    } else {
        watched
    };
    let open = fs::Permissions::from_mode(0o755);
    let program = disk.path().join("calls.py");
    fs::write(&program, include_str!("../fixtures/calls.py")).unwrap();
    fs::set_permissions(disk.root(), open.clone()).unwrap();
    disk.remount("ro");
    let table = Table {
        program,
        part: if is_every { 0 } else { part }.to_string(),
        parts: if is_every { 1 } else { PARTS }.to_string(),
    };
    if who == Who::User {
        chown(bare.path(""), Some(USER), Some(USER)).unwrap();
    }
    for world in [&bare, &watched] {
        fs::set_permissions(world.scratch(""), open.clone()).unwrap();
        table.says("prepare", &world.path(""), &[&still]);
    }
    let before = table.says("look", &watched.path(""), &[]);

    let mut act = table.words("act");
    // A file that its user can neither read nor give another name cannot be kept, and is not replaced.
    act.push(if who == Who::User { "g" } else { "-" }.to_owned());
    let mut line: Vec<&str> = if who == Who::Root {
        vec![]
    } else {
        AS_USER.to_vec()
    };
    line.push(PYTHON);
    line.extend(act.iter().map(String::as_str));
    let alone = Command::new(line[0])
        .args(&line[1..])
        .current_dir(bare.path(""))
        .output()
        .unwrap();
    let start = line.iter().position(|word| *word == PYTHON).unwrap();
    let mut run = vec!["run", "--"];
    run.extend(&line[if who == Who::User { start } else { 0 }..]);
    let seen = watched.run(&run);
    assert!(alone.status.success(), "{}", said(&alone));
    assert!(seen.status.success(), "{}", said(&seen));
    same("calls", &text(&alone.stdout), &text(&seen.stdout));
    let look = |world: &World| table.says("look", &world.path(""), &[]);
    same("what is there", &look(&bare), &look(&watched));
    watched.ok(&["undo"]);
    // The times of a directory are its owner's business.
    let times = |text: String| match who {
        Who::User => text.replace(" touched", ""),
        Who::Root | Who::Inner => text,
    };
    same("undone", &times(before), &times(look(&watched)));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn same(what: &str, one: &str, other: &str) {
    let differing: Vec<String> = one
        .lines()
        .zip(other.lines())
        .filter(|(one, other)| one != other)
        .map(|(one, other)| format!("{one}\n  {other}"))
        .collect();
    let is_same = differing.is_empty() && one.lines().count() == other.lines().count();
    assert!(
        is_same,
        "{what}: {} differ\n{}",
        differing.len(),
        differing.join("\n")
    );
}

#[test]
fn every_call_of_root_ends_as_without_us() {
    compare(Who::Root, 0);
}

#[test]
fn every_call_of_an_ordinary_user_ends_as_without_us() {
    compare(Who::User, 20);
}

#[test]
fn every_call_of_a_user_in_a_command_of_root_ends_as_without_us() {
    compare(Who::Inner, 40);
}

#[test]
fn a_file_where_its_user_may_make_no_names_is_undone() {
    let world = World::in_memory().of_user(USER);
    fs::create_dir(world.path("closed")).unwrap();
    world.file("closed/mine", "before\n");
    chown(world.path("closed/mine"), Some(USER), Some(USER)).unwrap();
    for line in [
        "echo more >> closed/mine",
        ": > closed/mine",
        "truncate -s 100 closed/mine; chmod 600 closed/mine",
    ] {
        super::there_and_back(&world, line);
    }
}
