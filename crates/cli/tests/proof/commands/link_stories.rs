//! Random shell lines on files with several names: each is undone, redone and undone again, and every time the names, the
//! bytes, and which names are one file must be what they were.

use crate::disk::Disk;
use crate::random::Random;
use crate::world::{Tree, World, said};

const NAMES: [&str; 12] = [
    "a", "b", "c", "d/a", "d/b", "d/c", "e/a", "e/b", "e/f/a", "e/f/b", "x", "d/x",
];
const DIRECTORIES: [&str; 5] = ["d", "e", "e/f", "t", "d/t"];

/// One step of a story. Many fail: a call that fails must leave nothing behind.
fn step(random: &mut Random) -> String {
    let (one, two) = (*random.pick(&NAMES), *random.pick(&NAMES));
    let (here, there) = (*random.pick(&DIRECTORIES), *random.pick(&DIRECTORIES));
    let number = random.below(1000);
    match random.below(36) {
        0..=4 => format!("ln {one} {two}"),
        5 | 6 => format!("ln -f {one} {two}"),
        7 => format!("cp -al {here} {there}"),
        8 => format!("cp -alT {here} {there}"),
        9 => format!("ln {one} {two}.new; mv -T {two}.new {two}"),
        10 | 11 => format!("echo {number} > {one}"),
        12..=14 => format!("echo {number} >> {one}"),
        15 => format!("echo {number} > {one}.new; mv {one}.new {one}"),
        16 => format!("truncate -s {number} {one}"),
        17 => format!("truncate -s {} {one}", number * 100),
        18 => format!("printf {number} | dd of={one} bs=1 seek=1 conv=notrunc status=none"),
        19 | 20 => format!("rm -f {one}"),
        21 => format!("rm -rf {here}"),
        22..=24 => format!("mv -T {one} {two}"),
        25 => format!("mv -T {here} {there}"),
        26 => format!("mv {one} {here}"),
        27 => format!("mv -T {here} swap; mv -T {there} {here}; mv -T swap {there}"),
        28 => format!("mv -T {one} swap; mv -T {two} {one}; mv -T swap {two}"),
        29 => format!("chmod {:03o} {one}", 0o600 + random.below(64)),
        30 => format!("touch -d '2020-01-{:02}' {one}", 1 + random.below(28)),
        31 => format!("setfattr -n user.n -v {number} {one}"),
        32 => format!("sed -i s/1/x/ {one}"),
        33 => format!("mkdir -p {here}"),
        // Told to delete what it copies, it waits for ever.
        34 => format!(
            "timeout 5 rsync -aHAXS --delete {}/ {}/",
            &here[..1],
            &there[..1]
        ),
        _ => format!("ln -s {one} {two}; ln {two} {two}.too"),
    }
}

fn script(random: &mut Random, steps: usize) -> String {
    let steps: Vec<String> = (0..steps).map(|_| step(random)).collect();
    steps.join("\n")
}

/// How a story went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Nothing,
    /// The redo was refused, and nothing happened.
    RedoRefused,
}

fn story(seed: u64, disk: Option<&Disk>) -> Result<End, String> {
    let mut random = Random::new(seed);
    let world = match disk {
        None => World::in_memory(),
        Some(disk) => World::on(disk),
    };
    let setting = format!("mkdir -p d e/f\n{}", script(&mut random, 20));
    let prepared = std::process::Command::new("bash")
        .args(["-c", &setting])
        .current_dir(world.path(""))
        .output()
        .unwrap();
    drop(prepared);
    let before = world.tree();
    let steps = 1 + random.below(10);
    let line = script(&mut random, steps);
    let told = |what: &str, text: &str| format!("{what}: {text}\n{setting}\n==\n{line}");
    let output = world.run(&["run", "--", "bash", "-c", &format!("{line}\ntrue")]);
    if !output.status.success() {
        return Err(told("run", &said(&output)));
    }
    let after = world.tree();
    let is_same = |one: &Tree, other: &Tree| {
        one.clone().without_directory_times() == other.clone().without_directory_times()
    };
    let undo = |what: &str| {
        let output = world.run(&["undo"]);
        // A command that changed nothing, or only the time of a directory, is not on the stack.
        if said(&output).contains("there is nothing to undo") && is_same(&after, &before) {
            return Ok(End::Nothing);
        }
        if !output.status.success() {
            return Err(told(what, &said(&output)));
        }
        let now = world.tree();
        if now == before {
            Ok(End::Whole)
        } else {
            let how = now.difference(&before);
            Err(told(what, &format!("{how}\n{}", said(&output))))
        }
    };
    if undo("undo")? == End::Nothing {
        return Ok(End::Nothing);
    }
    let output = world.run(&["redo"]);
    if !output.status.success() {
        return if world.tree() == before {
            eprintln!("seed {seed}: {}", told("redo refused", &said(&output)));
            Ok(End::RedoRefused)
        } else {
            Err(told("redo", &said(&output)))
        };
    }
    let now = world.tree();
    if !is_same(&now, &after) {
        let how = now
            .without_directory_times()
            .difference(&after.clone().without_directory_times());
        return Err(told("redo", &how));
    }
    undo("second undo")?;
    world.check().map_err(|why| told("check", &why))?;
    Ok(End::Whole)
}

/// `BACKOUT_LINK_STORIES=N` tells more, `BACKOUT_LINK_SEED=S` begins elsewhere, `BACKOUT_LINK_DISK=ext4` tells them on a
/// file system of that kind.
#[test]
fn random_commands_on_linked_files_are_undone_bit_for_bit() {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (first, count) = (
        number("BACKOUT_LINK_SEED", 1),
        number("BACKOUT_LINK_STORIES", 60),
    );
    let disk = std::env::var("BACKOUT_LINK_DISK").ok();
    let disk = disk.map(|kind| Disk::of_kind(&kind, 320));
    let (mut wrong, mut refused, mut nothing) = (Vec::new(), 0, 0);
    for seed in first..first + count {
        match story(seed, disk.as_ref()) {
            Ok(End::Whole) => {}
            Ok(End::Nothing) => nothing += 1,
            Ok(End::RedoRefused) => refused += 1,
            Err(why) => wrong.push(format!("seed {seed}: {why}")),
        }
    }
    eprintln!("{count} stories: {nothing} changed nothing, {refused} redos were refused");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n----\n")
    );
    assert_eq!(refused, 0, "redos were refused");
}
