//! Random shell lines on a small world, so that everything meets everything: each is undone bit for bit.

use crate::random::Random;
use crate::world::{World, said};

const NAMES: [&str; 14] = [
    "a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f", "g", "g/a", "g/h", "g/h/a", "l",
];

/// One step of a story. Most fail now and then: that is what happens to commands.
fn step(random: &mut Random) -> String {
    let (one, two) = (*random.pick(&NAMES), *random.pick(&NAMES));
    let number = random.below(1000);
    match random.below(28) {
        0 | 1 => format!("echo {number} > {one}"),
        2 | 3 => format!("echo {number} >> {one}"),
        4 => format!("rm -f {one}"),
        5 => format!("rm -rf {one}"),
        6..=9 => format!("mv -T {one} {two}"),
        10 => format!("mv {one} {two}"),
        11 => format!("cp -r {one} {two}"),
        12 => format!("cp -a {one} {two}"),
        13 => format!("mkdir -p {one}"),
        14 => format!("rmdir {one}"),
        15 => format!("ln {one} {two}"),
        16 => format!("ln -s {one} {two}"),
        17 => format!("chmod {:03o} {one}", 0o700 + random.below(64)),
        18 => format!("touch -d '2020-01-{:02}' {one}", 1 + random.below(28)),
        19 => format!("truncate -s {number} {one}"),
        20 => format!("sed -i s/1/x/ {one}"),
        21 => {
            format!("dd if=/dev/zero of={one} bs=1 count=3 seek={number} conv=notrunc status=none")
        }
        22 => format!("setfattr -n user.n -v {number} {one}"),
        23 => format!("tar cf - {one} | tar xf - -C {two}"),
        24 => format!("mknod {one} c 1 3"),
        25 => format!("head -c {} /dev/zero > {one}", number * 200),
        26 => format!("chown {number}:{number} {one}"),
        _ => format!("touch {one}"),
    }
}

/// Gives whether the redo was refused, which it may be, but then nothing happens.
fn story(seed: u64) -> Result<bool, String> {
    let mut random = Random::new(seed);
    let world = World::in_memory();
    let line = |random: &mut Random, steps: usize| {
        let steps: Vec<String> = (0..steps).map(|_| step(random)).collect();
        steps.join("\n")
    };
    let setting = line(&mut random, 25);
    let prepared = std::process::Command::new("bash")
        .args(["-c", &format!("mkdir -p d/e g/h; {setting}")])
        .current_dir(world.path(""))
        .output()
        .unwrap();
    drop(prepared);
    let before = world.tree();
    let steps = 1 + random.below(12);
    let script = line(&mut random, steps);
    let output = world.run(&["run", "--", "bash", "-c", &format!("{script}\ntrue")]);
    if !output.status.success() {
        return Err(format!("run: {}\n{script}", said(&output)));
    }
    let after = world.tree();
    let output = world.run(&["undo"]);
    // A command that changed nothing, or only the time of a directory, is not on the stack.
    let is_nothing = said(&output).contains("there is nothing to undo");
    if is_nothing
        && after.clone().without_directory_times() == before.clone().without_directory_times()
    {
        return Ok(false);
    }
    if !output.status.success() {
        return Err(format!("undo: {}\n{script}", said(&output)));
    }
    let now = world.tree();
    if now != before {
        return Err(format!(
            "undo differs:\n{}\n{script}",
            now.difference(&before)
        ));
    }
    let output = world.run(&["redo"]);
    if !output.status.success() {
        let is_harmless = world.tree() == before;
        return if is_harmless {
            Ok(true)
        } else {
            Err(format!("redo: {}\n{script}", said(&output)))
        };
    }
    let (now, after) = (
        world.tree().without_directory_times(),
        after.without_directory_times(),
    );
    if now != after {
        return Err(format!(
            "redo differs:\n{}\n{script}",
            now.difference(&after)
        ));
    }
    world.check().map(|()| false)
}

/// `BACKOUT_COMMAND_STORIES=N` runs more, `BACKOUT_COMMAND_SEED=S` begins elsewhere.
#[test]
fn random_commands_are_undone_bit_for_bit() {
    let number = |name: &str, default: u64| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (first, count) = (
        number("BACKOUT_COMMAND_SEED", 1),
        number("BACKOUT_COMMAND_STORIES", 60),
    );
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for seed in first..first + count {
        match story(seed) {
            Ok(is_refused) => refused += u64::from(is_refused),
            Err(why) => wrong.push(format!("seed {seed}: {why}")),
        }
    }
    eprintln!("{refused} of {count} redos were refused");
    assert!(
        refused * 20 <= count,
        "{refused} of {count} redos were refused"
    );
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n----\n")
    );
}
