//! Random shell lines on files with several names: each is undone, redone and undone again, and every time the names, the
//! bytes, and which names are one file must be what they were.

use crate::disk::Disk;
use crate::random::Random;
use crate::world::{Tree, World, said};

const NAMES: [&str; 12] = [
    "a", "b", "c", "d/a", "d/b", "d/c", "e/a", "e/b", "e/f/a", "e/f/b", "x", "d/x",
];
/// How large the file system is that stories are told on.
const DISK_MIB: u32 = 320;

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
            "timeout 1 rsync -aHAXS --delete {}/ {}/",
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

/// Where stories are told.
enum Ground {
    /// A file system that all of them share, each in a directory of its own.
    Disk(Disk),
    /// An overlay for each. Most of its setting is in the lower layer.
    Overlay,
}

impl Ground {
    fn of_kind(kind: &str) -> Self {
        match kind {
            "overlay" => Self::Overlay,
            "tmpfs" => Self::Disk(Disk::memory(DISK_MIB * 1024)),
            _ => Self::Disk(Disk::of_kind(kind, DISK_MIB)),
        }
    }
}

/// What a story was told in. The world goes before the disk that it is on.
struct Told {
    world: World,
    setting: String,
    line: String,
    _disk: Option<Disk>,
}

impl Told {
    fn new(seed: u64, ground: &Ground) -> Self {
        let mut random = Random::new(seed);
        let first = format!("mkdir -p d e/f\n{}", script(&mut random, 14));
        let second = script(&mut random, 6);
        let steps = 1 + random.below(10);
        let line = script(&mut random, steps);
        let setting = format!("{first}\n{second}");
        let (world, disk) = match ground {
            Ground::Disk(disk) => (World::on(disk), None),
            Ground::Overlay => {
                let disk = Disk::overlay(&format!("set +e\n{first}\ntrue"));
                let state = disk.root().join("state");
                (World::at(&disk.path(), Some(&state)), Some(disk))
            }
        };
        let rest = if disk.is_some() { &second } else { &setting };
        let prepared = std::process::Command::new("bash")
            .args(["-c", rest])
            .current_dir(world.path(""))
            .output()
            .unwrap();
        drop(prepared);
        Self {
            world,
            setting,
            line,
            _disk: disk,
        }
    }

    fn error(&self, what: &str, text: &str) -> String {
        format!("{what}: {text}\n{}\n==\n{}", self.setting, self.line)
    }

    /// Takes the command back, and compares with what was there, or what was said that it would be.
    fn undo(&self, what: &str, expected: &Tree, after: &Tree) -> Result<End, String> {
        let output = self.world.run(&["undo"]);
        // A command that changed nothing, or only the time of a directory, is not on the stack.
        if said(&output).contains("there is nothing to undo") && is_same(after, expected) {
            return Ok(End::Nothing);
        }
        if !output.status.success() {
            return Err(self.error(what, &said(&output)));
        }
        let now = self.world.tree();
        if now == *expected {
            return Ok(End::Whole);
        }
        let how = now.difference(expected);
        Err(self.error(what, &format!("{how}\n{}", said(&output))))
    }
}

fn is_same(one: &Tree, other: &Tree) -> bool {
    one.clone().without_directory_times() == other.clone().without_directory_times()
}

/// Gives the names of which the command said that they have something in a lower layer of an overlay, and lose it.
fn said_to_lose(what: &str, output: &std::process::Output) -> Vec<String> {
    let said = said(output);
    let about = format!("has {what} in a lower layer");
    let lines = said.lines().filter(|line| line.contains(&about));
    let named = lines.filter_map(|line| line.split('`').nth(1));
    named.map(str::to_owned).collect()
}

fn story(seed: u64, ground: &Ground) -> Result<End, String> {
    let told = Told::new(seed, ground);
    let world = &told.world;
    let before = world.tree();
    let command = format!("{}\ntrue", told.line);
    let output = world.run(&["run", "--", "bash", "-c", &command]);
    if !output.status.success() {
        return Err(told.error("run", &said(&output)));
    }
    let after = world.tree();
    let before = before
        .taken_apart(&said_to_lose("other names", &output))
        .filled(&said_to_lose("holes", &output));
    if told.undo("undo", &before, &after)? == End::Nothing {
        return Ok(End::Nothing);
    }
    let output = world.run(&["redo"]);
    if !output.status.success() {
        return if world.tree() == before {
            eprintln!(
                "seed {seed}: {}",
                told.error("redo refused", &said(&output))
            );
            Ok(End::RedoRefused)
        } else {
            Err(told.error("redo", &said(&output)))
        };
    }
    let now = world.tree();
    if !is_same(&now, &after) {
        let how = now
            .without_directory_times()
            .difference(&after.without_directory_times());
        return Err(told.error("redo", &how));
    }
    told.undo("second undo", &before, &after)?;
    world.check().map_err(|why| told.error("check", &why))?;
    Ok(End::Whole)
}

/// `BACKOUT_LINK_STORIES=N` tells more, `BACKOUT_LINK_SEED=S` begins elsewhere, `BACKOUT_LINK_DISK` tells them on a file
/// system of that kind: ext4, xfs, btrfs, tmpfs, overlay. One that goes wrong does not end the others.
#[test]
fn random_commands_on_linked_files_are_undone_bit_for_bit() {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let kind = std::env::var("BACKOUT_LINK_DISK").unwrap_or_else(|_| "tmpfs".to_owned());
    tell(
        &kind,
        number("BACKOUT_LINK_SEED", 1),
        number("BACKOUT_LINK_STORIES", 60),
    );
}

#[test]
fn random_commands_in_an_overlay_are_undone_as_far_as_was_said() {
    tell("overlay", 1, 20);
}

fn tell(kind: &str, first: u64, count: u64) {
    let ground = Ground::of_kind(kind);
    let (mut wrong, mut refused, mut nothing) = (Vec::new(), 0, 0);
    for seed in first..first + count {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story(seed, &ground)));
        match ended.unwrap_or_else(|_| Err("the story could not be told".to_owned())) {
            Ok(End::Whole) => {}
            Ok(End::Nothing) => nothing += 1,
            Ok(End::RedoRefused) => refused += 1,
            Err(why) => {
                eprintln!("{kind}, seed {seed}: {why}\n----");
                wrong.push(seed);
            }
        }
    }
    let whole = count - nothing - refused - u64::try_from(wrong.len()).unwrap();
    eprintln!(
        "{kind}, {count} stories from seed {first}: {whole} undone, redone and undone, {nothing} changed nothing, \
         {refused} redos refused, wrong: {wrong:?}"
    );
    assert!(wrong.is_empty(), "{kind}, wrong: {wrong:?}");
    assert_eq!(refused, 0, "{kind}: redos were refused");
}
