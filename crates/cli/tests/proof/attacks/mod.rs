//! Attacks on `run`: every call that can change a file, by every way to name one, as everybody.
//!
//! The attacker is a program of ours (`attacker.c`, with its calls in `calls.h` and the ways that turn while they are used in
//! `flips.h`). A *round* is one way as somebody, with every call, each in a directory of its own. It is made twice: bare, and
//! under `run`. What a call answers must be the same, but for what is listed here; after an undo every bit must be as before.
//!
//! `cargo xtask test` makes each way once with a quarter of the calls, each time as somebody else and with other calls; `cargo
//! xtask attack` makes every round.

mod races;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::world::{World, said};
use table::{Difference, Round, explained, reason};

const USER: u32 = 12345;

/// In a sample each round makes one call of so many.
const PARTS: usize = 4;

/// So many lines of what went wrong are shown.
const LINES_MAX: usize = 12;

/// Compiles the attacker; none where there is no compiler.
pub(crate) fn attacker(world: &World, source: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/proof/attacks")
        .join(source);
    let program = world.scratch("attacker");
    let compiler = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-pthread", "-o"])
        .args([&program, &source])
        .output();
    match compiler {
        Ok(output) => {
            assert!(output.status.success(), "{}", said(&output));
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            Some(program)
        }
        Err(error) => {
            eprintln!("no compiler ({error}): there are no attacks");
            None
        }
    }
}

/// What the attacker can do: its calls with the system call of each, its ways, and who it can be.
struct Arsenal {
    calls: Vec<(String, String)>,
    ways: Vec<String>,
    everybody: Vec<String>,
}

impl Arsenal {
    fn of(program: &Path) -> Self {
        let listed = Command::new(program).arg("list").output().unwrap();
        let text = String::from_utf8(listed.stdout).unwrap();
        let mut all = Self {
            calls: Vec::new(),
            ways: Vec::new(),
            everybody: Vec::new(),
        };
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["call", name, system] => all.calls.push((name.to_owned(), system.to_owned())),
                ["way", name] => all.ways.push(name.to_owned()),
                ["who", name] => all.everybody.push(name.to_owned()),
                _ => panic!("{line}"),
            }
        }
        all
    }
}

/// Every call that changes a file, by its name or by a descriptor, has an attack.
#[test]
fn every_call_that_changes_a_file_is_tried() {
    let world = World::in_memory();
    let Some(program) = attacker(&world, "attacker.c") else {
        return;
    };
    let listed = include_str!("../../../../capture/src/live/filter/calls.txt");
    let tried: BTreeSet<String> = Arsenal::of(&program)
        .calls
        .into_iter()
        .map(|(_, system)| system)
        .collect();
    let lines = listed.lines().filter(|line| !line.starts_with('#'));
    let missing: Vec<&str> = lines
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let is_attack = matches!(words[2], "changes" | "writes");
            (is_attack && !tried.contains(words[1])).then_some(words[1])
        })
        .collect();
    assert!(missing.is_empty(), "no attack by {missing:?}");
}

/// `BACKOUT_EVERY_ATTACK=1` makes every round, `BACKOUT_ATTACK=WAY` those of one way.
#[test]
fn whatever_names_a_file_an_undo_brings_it_back() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let helper = World::in_memory();
    let Some(program) = attacker(&helper, "attacker.c") else {
        return;
    };
    fs::set_permissions(helper.scratch(""), fs::Permissions::from_mode(0o755)).unwrap();
    let arsenal = Arsenal::of(&program);
    let mut rounds = table::rounds(&arsenal.ways, &arsenal.everybody);
    let one = std::env::var("BACKOUT_ATTACK").ok();
    let is_whole = one.is_some() || std::env::var_os("BACKOUT_EVERY_ATTACK").is_some();
    if let Some(way) = &one {
        rounds.retain(|round| round.way == *way);
    }
    if !is_whole {
        rounds = table::sample(&rounds, &arsenal.ways);
    }
    let (mut tried, mut changed, mut wrong) = (0, 0, Vec::new());
    for (number, round) in rounds.iter().enumerate() {
        let calls = arsenal.calls.iter().enumerate();
        let calls = calls.filter(|(index, _)| is_whole || index % PARTS == number % PARTS);
        let calls: Vec<(&str, &str)> = calls
            .map(|(_, (name, system))| (name.as_str(), system.as_str()))
            .collect();
        match attack(&program, &calls, round) {
            Ok(done) => (tried, changed) = (tried + done.tried, changed + done.changed),
            Err(why) => wrong.push(format!("{} as {}: {why}", round.way, round.who)),
        }
    }
    let count = rounds.len();
    eprintln!("{count} rounds, {tried} calls, {changed} changed something");
    assert!(
        wrong.is_empty(),
        "{} of {} rounds:\n{}",
        wrong.len(),
        rounds.len(),
        wrong.join("\n----\n")
    );
}

/// What came of a round.
struct Done {
    tried: usize,
    changed: usize,
}

fn attack(program: &Path, calls: &[(&str, &str)], round: &Round) -> Result<Done, String> {
    let names: Vec<&str> = calls.iter().map(|(name, _)| *name).collect();
    let (twin, world) = (prepared(round, &names), prepared(round, &names));
    let before = world.tree();
    let bare = fed(bare(program, round, &twin), round, &names);
    let mount = world.scratch("mnt");
    let line = [
        "run",
        "--",
        program.to_str().unwrap(),
        round.becomes(),
        mount.to_str().unwrap(),
    ];
    let watched = fed(world.command(&line), round, &names);
    let after = world.tree();
    let (plain, seen) = (results(&bare), results(&watched));
    if seen.len() != names.len() {
        return Err(format!("it did not come to an end: {}", said(&watched)));
    }
    let mut reasons = BTreeSet::new();
    for (call, system) in calls {
        let (Some(plain), Some(seen)) = (plain.get(*call), seen.get(*call)) else {
            continue;
        };
        let difference = Difference {
            round,
            call,
            system,
            plain,
            seen,
        };
        if plain != seen && !explained(&difference) {
            return Err(format!(
                "{call}: {plain}, under run {seen}\n{}",
                short(&said(&watched))
            ));
        }
        reasons.extend(reason(&difference));
    }
    if let Some(reason) = reasons
        .iter()
        .find(|reason| !said(&watched).contains(**reason))
    {
        return Err(format!("it is not said: {reason}"));
    }
    let undo = world.run(&["undo", "--everywhere"]);
    let now = world.tree();
    // A command that changed nothing but the time of a directory is not on the stack.
    let is_nothing = said(&undo).contains("there is nothing to undo");
    let is_before = if is_nothing {
        now.clone().without_directory_times() == before.clone().without_directory_times()
    } else {
        undo.status.success() && now == before
    };
    if !is_before {
        let how = [now.difference(&before), said(&undo)].map(|text| short(&text));
        return Err(how.join("\n"));
    }
    let tried = seen.values().filter(|result| *result != "-").count();
    let is_changed = |name: &&&str| before.clone().with_those_of(&after, &[name]) != before;
    let changed = names.iter().filter(is_changed).count();
    world.check()?;
    Ok(Done { tried, changed })
}

/// The attacker by itself.
fn bare(program: &Path, round: &Round, world: &World) -> Command {
    let mut command = if round.is_users() {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={USER}"), &format!("--regid={USER}")]);
        command.args(["--clear-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command
        .arg(round.becomes())
        .arg(world.scratch("mnt"))
        .current_dir(world.path(""));
    command
}

fn short(text: &str) -> String {
    text.lines().take(LINES_MAX).collect::<Vec<_>>().join("\n")
}

/// Runs the attacker with one line for each call.
fn fed(mut command: Command, round: &Round, names: &[&str]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = child.stdin.take().unwrap();
    for name in names {
        writeln!(lines, "{name} {name} {}", round.way).unwrap();
    }
    drop(lines);
    child.wait_with_output().unwrap()
}

/// What each call answered.
fn results(output: &Output) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let lines = lines.filter(|words| words.len() == 4);
    lines
        .map(|words| (words[1].to_owned(), words[3].to_owned()))
        .collect()
}

/// A world with a directory for each call.
fn prepared(round: &Round, names: &[&str]) -> World {
    let world = World::in_memory();
    fs::create_dir(world.scratch("mnt")).unwrap();
    for name in names {
        furnish(&world.path(name));
    }
    fs::set_permissions(world.scratch(""), fs::Permissions::from_mode(0o755)).unwrap();
    if !round.is_of_user() {
        return world;
    }
    own(&world.path(""));
    if round.is_users() {
        world.of_user(USER)
    } else {
        world
    }
}

fn own(path: &Path) {
    lchown(path, Some(USER), Some(USER)).unwrap();
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path());
        }
    }
}

/// Everything that the ways lead to, by every name that they have for it.
fn furnish(dir: &Path) {
    fs::create_dir(dir).unwrap();
    things(dir);
    for name in ["d", "o"] {
        fs::create_dir(dir.join(name)).unwrap();
        things(&dir.join(name));
    }
    fs::create_dir(dir.join("h")).unwrap();
    for name in ["f", "g"] {
        fs::hard_link(dir.join(name), dir.join("h").join(name)).unwrap();
        fs::write(dir.join(format!("{name} (deleted)")), "not deleted\n").unwrap();
    }
    fs::create_dir(dir.join("e (deleted)")).unwrap();
    for name in ["f", "g", "e", "l", "n"] {
        symlink(name, dir.join(format!("s_{name}"))).unwrap();
        symlink(format!("s_{name}"), dir.join(format!("b_{name}"))).unwrap();
        symlink(format!("b_{name}"), dir.join(format!("c_{name}"))).unwrap();
        symlink(dir.join(name), dir.join(format!("a_{name}"))).unwrap();
        symlink(
            format!("/proc/self/cwd/{name}"),
            dir.join(format!("p_{name}")),
        )
        .unwrap();
        symlink(format!("/{name}"), dir.join(format!("root_{name}"))).unwrap();
    }
    symlink(".", dir.join("to_here")).unwrap();
    symlink("d", dir.join("flip")).unwrap();
}

/// Two files with an attribute, two empty directories, two links.
fn things(dir: &Path) {
    for (name, text) in [("f", "first\n"), ("g", "second, and longer\n")] {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        // Not every file system has them.
        let _none = rustix::fs::setxattr(&path, "user.old", b"o", rustix::fs::XattrFlags::empty());
    }
    for name in ["e", "k"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    symlink("f", dir.join("l")).unwrap();
    symlink("g", dir.join("j")).unwrap();
}
