//! `checkpoint --roots` and `rollback --to` on the real thing: whatever happens to a directory, it becomes what it was, bit
//! for bit; what that overwrote comes back; only what changed is read; and whoever dies when, nothing is lost.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::disk::Disk;
use crate::world::{Tree, World, said};

/// An ordinary user.
const USER: u32 = 12_345;

/// What a careless program does to a project.
const MESS: &str = "rm -rf src; echo file > src; rm one; echo own > other; mkdir -p new/deep; echo n > new/deep/n; \
                    echo more >> app.toml; chmod 600 run.sh; rm dangling; mkdir dangling; echo x > dangling/x; \
                    truncate -s 3 large.bin; rm -rf ignored; ln -sfn app.toml zoo; rm -rf .git/refs; echo bad > .git/HEAD";

fn project(world: World) -> World {
    let world = world.with_project();
    world.file(".gitignore", "ignored/\n");
    world.file("ignored/build.o", "object\n");
    world.file(".git/HEAD", "ref: refs/heads/main\n");
    world.file(".git/refs/heads/main", "0000\n");
    world.file("zoo", "not a link\n");
    fs::write(
        world.path("").join(OsStr::from_bytes(b"no\xfftext")),
        "odd\n",
    )
    .unwrap();
    sh(
        &world,
        "truncate -s 1M holes; printf end >> holes; mkfifo pipe",
    );
    world
}

fn sh(world: &World, line: &str) {
    let output = Command::new("bash")
        .args(["-ec", line])
        .current_dir(world.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", said(&output));
}

/// The times of directories speak of what was done in them.
fn tree(world: &World) -> Tree {
    world.tree().without_directory_times()
}

#[track_caller]
fn assert_same(now: &Tree, wanted: &Tree, what: &str) {
    assert!(now == wanted, "{what}:\n{}", now.difference(wanted));
}

fn there_and_back(world: &World) {
    let before = tree(world);
    world.ok(&["checkpoint", "good", "--roots", "."]);
    assert_same(&tree(world), &before, "kept");
    sh(world, MESS);
    let after = tree(world);
    let plan = world.ok(&["rollback", "--to", "good", "-n"]);
    assert!(
        plan.contains("app.toml") && plan.contains("not by an operation"),
        "{plan}"
    );
    assert_same(&tree(world), &after, "only looked");
    world.ok(&["rollback", "--to", "good"]);
    assert_same(&tree(world), &before, "back");
    let again = world.ok(&["rollback", "--to", "good", "-n"]);
    assert!(
        again.contains("nothing has changed since checkpoint good"),
        "{again}"
    );
    world.ok(&["undo"]);
    assert_same(&tree(world), &after, "what was overwritten");
    world.ok(&["redo"]);
    assert_same(&tree(world), &before, "back again");
    world.check_store();
}

#[test]
fn whatever_is_done_to_a_directory_it_becomes_what_it_was() {
    there_and_back(&project(World::new()));
}

/// Keeps a directory, does something to it, and goes back and forth.
fn kept_over(world: &World, line: &str, told: &str) {
    let before = tree(world);
    world.ok(&["checkpoint", "good", "--roots", "."]);
    sh(world, line);
    let after = tree(world);
    let plan = world.ok(&["rollback", "--to", "good", "-n"]);
    assert!(plan.contains(told), "{line}: {plan}");
    let said = world.ok(&["rollback", "--to", "good"]);
    assert!(!said.contains("is not as it was"), "{line}: {said}");
    assert_same(&tree(world), &before, line);
    world.ok(&["undo"]);
    assert_same(&tree(world), &after, line);
    world.ok(&["redo"]);
    assert_same(&tree(world), &before, line);
    world.ok(&["rollback", "--to", "good"]);
    assert_same(&tree(world), &before, line);
    world.check_store();
}

#[test]
fn of_several_names_of_one_file_each_comes_back_as_a_name_of_it() {
    for line in [
        "rm a",
        "rm b",
        "rm a b",
        "rm a b c",
        "cp -p a x; mv x a",
        "cp -p c x; mv x c",
        "cp -p a x; ln -f x a; ln -f x b; rm x",
        "echo own > x; mv x a; rm b",
    ] {
        let world = World::new();
        world.file("a", "one file\n");
        sh(&world, "ln a b; ln a c");
        kept_over(&world, line, if line.contains('a') { "a" } else { "b" });
    }
}

#[test]
fn names_that_are_not_of_the_same_file_any_more_are_told() {
    let world = World::new();
    for name in ["in/a", "in/b"] {
        world.file(name, "same\n");
    }
    sh(
        &world,
        "touch -r in/a in/b; ln in/a out; mkdir other; echo x > in/x",
    );
    world.ok(&["checkpoint", "good", "--roots", "in"]);
    sh(&world, "echo changed > in/a");
    let told = said(&world.run(&["rollback", "--to", "good"]));
    let parted = "`in/a` is no longer the file that has another name outside of the directories";
    assert!(told.contains(parted), "{told}");
    assert_eq!(
        (world.read("in/a"), world.read("out")),
        ("same\n".to_owned(), "changed\n".to_owned())
    );
    // What brings both back is the undo.
    world.ok(&["undo"]);
    sh(&world, "echo more >> in/a; tail -n 1 out | grep more");
    sh(
        &world,
        "printf 'same\\n' > in/a; touch -r in/b in/a; ln -f in/a in/b",
    );
    let told = said(&world.run(&["rollback", "--to", "good"]));
    let joined = "`in/b` is a second name of another file now, and was none at the checkpoint";
    assert!(told.contains(joined), "{told}");
    world.check_store();
}

#[test]
fn a_time_that_alone_changed_comes_back() {
    for line in [
        "touch -d 2001-02-03 f",
        "touch -h -d 2001-02-03 link",
        "touch -d 2001-02-03 pipe",
        "touch -d 2001-02-03 large; chmod 600 large",
    ] {
        let world = World::new();
        world.file("f", "as it is\n");
        sh(
            &world,
            "ln f g; ln -s f link; mkfifo pipe; head -c 300000 /dev/urandom > large",
        );
        let name = ["link", "pipe", "large", "f"];
        let name = name.iter().find(|name| line.contains(*name)).unwrap();
        kept_over(&world, line, name);
    }
}

#[test]
fn the_same_in_memory_and_on_other_file_systems() {
    there_and_back(&project(World::in_memory()));
    for (kind, mib) in [("xfs", 320), ("btrfs", 128)] {
        let disk = Disk::of_kind(kind, mib);
        there_and_back(&project(World::on(&disk)));
    }
}

#[test]
fn the_same_for_an_ordinary_user_and_what_is_closed_to_him_is_said_and_stays() {
    let world = World::new().of_user(USER);
    for name in ["app.toml", "src/main.rs", "closed/secret", "secret"] {
        world.file(name, "text\n");
    }
    sh(
        &world,
        &format!(
            "chown -R {USER}:{USER} .; chown 0:0 secret closed; chmod 600 secret; chmod 700 closed"
        ),
    );
    let kept = world.run(&["checkpoint", "good", "--roots", "."]);
    let told = said(&kept);
    assert!(kept.status.success(), "{told}");
    assert!(
        told.contains("`secret` is not part of the checkpoint: not permitted to read it"),
        "{told}"
    );
    assert!(
        told.contains("`closed` is not part of the checkpoint"),
        "{told}"
    );
    let before = tree(&world);
    sh(
        &world,
        &format!("echo x > app.toml; rm -r src; mkdir n; chown -R {USER}:{USER} ."),
    );
    sh(&world, "chown 0:0 secret closed; echo other > secret");
    let back = world.run(&["rollback", "--to", "good"]);
    assert!(back.status.success(), "{}", said(&back));
    assert!(
        said(&back).contains("is not part of the checkpoint and stays as it is"),
        "{}",
        said(&back)
    );
    assert_eq!(world.read("secret"), "other\n");
    sh(&world, "echo text > secret");
    let now = tree(&world).without_times();
    assert_same(&now, &before.without_times(), "back");
}

#[test]
fn only_what_changed_is_read_and_stored() {
    let world = project(World::new());
    let first = world.json(&["checkpoint", "one", "--roots", "."]);
    assert!(first["read"].as_u64().unwrap() >= 9, "{first}");
    // What was written within a tick of the clock is read once more.
    world.json(&["checkpoint", "two", "--roots", "."]);
    sh(&world, "sleep 0.1");
    world.json(&["checkpoint", "two", "--roots", "."]);
    let same = world.json(&["checkpoint", "three", "--roots", "."]);
    assert_eq!(same["read"], 0, "{same}");
    assert_eq!(same["names"], first["names"]);
    sh(&world, "echo more >> app.toml; sleep 0.1");
    let next = world.json(&["checkpoint", "four", "--roots", "."]);
    assert_eq!(next["read"], 1, "{next}");
    assert!(next["stored_bytes"].as_u64().unwrap() < 8 * 1024, "{next}");
    // A file that went, one that came and a directory that became a file change the index, not what is read.
    sh(&world, "rm run.sh; rm -r src; echo f > src; echo n > aaa");
    let next = world.json(&["checkpoint", "five", "--roots", "."]);
    assert_eq!(next["read"], 2, "{next}");
    for name in ["four", "five", "one"] {
        world.ok(&["rollback", "--to", name]);
        let plan = world.ok(&["rollback", "--to", name, "-n"]);
        assert!(plan.contains("nothing has changed"), "{name}: {plan}");
    }
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    assert_eq!(world.read("src/lib.rs"), "pub fn f() {}\n");
}

#[test]
fn a_change_within_the_tick_of_a_checkpoint_is_not_missed() {
    let world = World::in_memory();
    for turn in 0..12 {
        fs::write(world.path("racy"), format!("one {turn:04}")).unwrap();
        world.ok(&["checkpoint", "one", "--roots", "."]);
        // The same length, as soon as can be, and with the time that the file had.
        let line = "t=$(stat -c %Y racy); printf 'two 0000' > racy; touch -d @$t racy";
        sh(&world, line);
        world.ok(&["checkpoint", "two", "--roots", "."]);
        world.ok(&["rollback", "--to", "one"]);
        assert_eq!(world.read("racy"), format!("one {turn:04}"));
        world.ok(&["rollback", "--to", "two"]);
        assert_eq!(world.read("racy"), "two 0000");
    }
}

#[test]
fn links_are_not_followed_and_mounts_are_not_entered() {
    let world = World::new();
    fs::create_dir(world.scratch("outside")).unwrap();
    fs::write(world.scratch("outside/f"), "mine\n").unwrap();
    symlink(world.scratch("outside"), world.path("out")).unwrap();
    world.file("in/f", "1\n");
    let disk = Disk::memory(256);
    fs::create_dir(world.path("mounted")).unwrap();
    let mounted = world.path("mounted").display().to_string();
    let bind = Command::new("mount")
        .args(["--bind", disk.root().to_str().unwrap(), &mounted])
        .status();
    assert!(bind.unwrap().success());
    fs::write(world.path("mounted/theirs"), "1\n").unwrap();
    let kept = said(&world.run(&["checkpoint", "good", "--roots", "."]));
    assert!(
        kept.contains(
            "`mounted` is not part of the checkpoint: another file system is mounted there"
        ),
        "{kept}"
    );
    fs::write(world.path("mounted/theirs"), "2\n").unwrap();
    fs::write(world.path("in/f"), "2\n").unwrap();
    fs::write(world.path("out/f"), "changed\n").unwrap();
    let back = world.run(&["rollback", "--to", "good"]);
    assert!(back.status.success(), "{}", said(&back));
    assert_eq!(world.read("in/f"), "1\n");
    assert_eq!(world.read("mounted/theirs"), "2\n");
    assert_eq!(world.read("out/f"), "changed\n");
    assert!(
        Command::new("umount")
            .arg(&mounted)
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_part_comes_back_and_what_others_wrote_needs_a_word() {
    let world = project(World::new());
    world.ok(&["--agent", "a", "checkpoint", "good", "--roots", "."]);
    sh(
        &world,
        "rm -r src; mkdir new; echo 1 > new/one; echo 2 > new/two; echo x > ignored/build.o",
    );
    world.ok(&[
        "rollback",
        "--to",
        "good",
        "--only",
        "src/lib.rs",
        "--only",
        "new/one",
    ]);
    assert_eq!(world.read("src/lib.rs"), "pub fn f() {}\n");
    assert!(!world.path("src/main.rs").exists() && !world.path("new/one").exists());
    assert_eq!(world.read("new/two"), "2\n");
    assert_eq!(world.read("ignored/build.o"), "x\n");
    let nothing = world.fails(1, &["rollback", "--to", "good", "--only", "run.sh"]);
    assert!(
        nothing.contains("nothing of what was chosen has changed since the checkpoint `good`"),
        "{nothing}"
    );
    world.ok(&["--agent", "b", "write", "app.toml", "--text", "theirs"]);
    world.ok(&[
        "--agent",
        "b",
        "write",
        &world.scratch("elsewhere").display().to_string(),
        "--text",
        "x",
    ]);
    let before = tree(&world);
    let refused = world.fails(1, &["--agent", "a", "rollback", "--to", "good"]);
    assert!(
        refused.contains("other agents wrote there since the checkpoint"),
        "{refused}"
    );
    assert_same(&tree(&world), &before, "refused");
    let plan = world.run(&["--agent", "a", "rollback", "--to", "good", "-n"]);
    assert!(
        said(&plan).contains(" of b") && said(&plan).contains("that needs `--others`"),
        "{}",
        said(&plan)
    );
    assert!(
        said(&plan).contains("1 operation since then wrote elsewhere: not a part of this"),
        "{}",
        said(&plan)
    );
    world.ok(&["--agent", "a", "rollback", "--to", "good", "--others"]);
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    // Only what was recorded goes, if that is what is asked for.
    world.ok(&["--agent", "a", "write", "app.toml", "--text", "mine"]);
    sh(&world, "echo by hand > by-hand");
    world.ok(&["--agent", "a", "rollback", "--to", "good", "--operations"]);
    assert_eq!(world.read("by-hand"), "by hand\n");
}

#[test]
fn files_are_let_go_with_their_checkpoint_and_that_is_said() {
    let world = World::new();
    let noise = |seed: u32| {
        format!(
            "head -c 3000000 <(openssl enc -aes-128-ctr -nosalt -k {seed} -in /dev/zero 2>/dev/null) > noise"
        )
    };
    sh(&world, &noise(1));
    world.ok(&["checkpoint", "good", "--roots", "."]);
    sh(&world, &noise(2));
    world.ok(&["checkpoint", "good", "--roots", "."]);
    let size = || {
        Command::new("du")
            .args(["-s", "-B1"])
            .arg(world.state().join("workspaces"))
            .output()
            .unwrap()
            .stdout
    };
    let size = || {
        String::from_utf8(size())
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let before = size();
    let told = world.ok(&["gc"]);
    assert!(
        told.contains("let the files of checkpoint good go: a later checkpoint took its name over"),
        "{told}"
    );
    assert!(size() + 2_500_000 < before, "{before} is {} now", size());
    sh(&world, "echo x > noise");
    world.ok(&["rollback", "--to", "good"]);
    assert_eq!(fs::metadata(world.path("noise")).unwrap().len(), 3_000_000);
    let dropped = world.ok(&["checkpoint", "good", "--drop"]);
    assert!(
        dropped.contains("let the files of checkpoint good go: "),
        "{dropped}"
    );
    assert!(size() + 5_000_000 < before, "{before} is {} now", size());
    let gone = world.fails(1, &["rollback", "--to", "good"]);
    assert!(
        gone.contains("the checkpoint `good` keeps no files"),
        "{gone}"
    );
    // The next one begins anew.
    let next = world.json(&["checkpoint", "better", "--roots", "."]);
    assert_eq!(next["read"], 1, "{next}");
    sh(&world, "rm noise");
    world.ok(&["rollback", "--to", "better"]);
    world.check_store();
}

/// Dies at every crash point of a command, each time in a world of its own.
fn at_every_point(prepare: impl Fn(&World), command: &[&str], check: impl Fn(&World, &str)) {
    let mut points = 0;
    for point in 1..400 {
        let world = World::in_memory();
        for name in ["a", "d/b", "d/c", "e/f"] {
            world.file(name, "text\n");
        }
        prepare(&world);
        let mut command = world.command(command);
        let output = command.env("BACKOUT_CRASH_AT", point.to_string()).output();
        let output = output.unwrap();
        check(&world, &format!("{command:?} at point {point}"));
        if output.status.code().is_some() {
            assert!(points > 5, "{}", said(&output));
            return;
        }
        points = point;
    }
    panic!("it never ended");
}

#[test]
fn death_in_a_checkpoint_leaves_the_files_alone_and_the_next_one_is_whole() {
    let prepare = |world: &World| {
        world.ok(&["checkpoint", "zero", "--roots", "."]);
        sh(world, "echo 2 > a; rm -r e");
    };
    at_every_point(
        prepare,
        &["checkpoint", "good", "--roots", "."],
        |world, what| {
            let before = tree(world);
            world.ok(&["checkpoint", "good", "--roots", "."]);
            assert_same(&tree(world), &before, what);
            sh(world, "rm -r d; echo 3 > a");
            world.ok(&["rollback", "--to", "good"]);
            assert_same(&tree(world), &before, what);
            world.ok(&["rollback", "--to", "zero"]);
            assert_eq!(
                (world.read("a"), world.read("e/f")),
                ("text\n".into(), "text\n".into()),
                "{what}"
            );
            world.ok(&["gc"]);
            world.check_store();
        },
    );
}

#[test]
fn death_in_a_way_back_is_recovered_and_it_can_be_gone_again() {
    let prepare = |world: &World| {
        world.ok(&["checkpoint", "good", "--roots", "."]);
        sh(
            world,
            "echo other > a; rm -r d; echo d > d; mkdir -p g/h; echo i > g/h/i; rm e/f",
        );
    };
    at_every_point(prepare, &["rollback", "--to", "good"], |world, what| {
        world.ok(&["recover"]);
        let a = world.read("a");
        let is_before = a == "other\n" && world.read("g/h/i") == "i\n" && world.read("d") == "d\n";
        let is_after = a == "text\n" && world.read("d/b") == "text\n" && !world.path("g").exists();
        assert!(is_before || is_after, "{what}: {:?}", world.tree().names());
        world.ok(&["rollback", "--to", "good"]);
        let plan = world.ok(&["rollback", "--to", "good", "-n"]);
        assert!(plan.contains("nothing has changed"), "{what}: {plan}");
        world.check_store();
        world.ok(&["checkpoint", "later", "--roots", "."]);
        assert_eq!(
            fs::read_dir(world.state().join("workspaces/back"))
                .unwrap()
                .count(),
            0,
            "{what}"
        );
    });
}

#[test]
fn a_write_that_waits_for_a_decision_keeps_what_it_needs() {
    let world = World::new();
    world.file("a", "text\n");
    world.ok(&["checkpoint", "good", "--roots", "."]);
    world.file("a", "other\n");
    world.file("backout.toml", "[protect]\nask = [\"a\"]\n");
    let waits = world.fails(1, &["rollback", "--to", "good", "--only", "a"]);
    assert!(waits.contains("approve"), "{waits}");
    assert_eq!(world.read("a"), "other\n");
    // Whoever comes by meanwhile leaves what it needs alone.
    world.ok(&["checkpoint", "later", "--roots", "."]);
    let pending = world.json(&["pending"]);
    let id = pending["proposals"][0]["id"].as_str().unwrap();
    world.ok(&["approve", id]);
    assert_eq!(world.read("a"), "text\n");
    world.ok(&["checkpoint", "later", "--roots", "."]);
    let left = fs::read_dir(world.state().join("workspaces/back")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn a_file_comes_back_wherever_its_holes_are() {
    let lines = [
        "printf end | dd of=s bs=1 seek=8192 status=none",
        "printf x > s; truncate -s 1M s",
        "seq 100000 > s; truncate -s 2M s; seq 100000 >> s",
        "truncate -s 1M s",
    ];
    let losses = [
        "rm s",
        "echo other > s",
        "echo more >> s",
        "truncate -s 0 s",
    ];
    for (line, loss) in lines
        .iter()
        .flat_map(|line| losses.map(|loss| (line, loss)))
    {
        let world = World::new();
        sh(&world, line);
        let before = tree(&world);
        world.ok(&["checkpoint", "c", "--roots", "."]);
        sh(&world, loss);
        let changed = tree(&world);
        world.ok(&["rollback", "--to", "c"]);
        assert_same(&tree(&world), &before, &format!("{line}; {loss}"));
        world.ok(&["undo"]);
        assert_same(&tree(&world), &changed, &format!("{line}; {loss}; undo"));
    }
}
