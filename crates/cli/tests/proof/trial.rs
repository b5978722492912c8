//! `backout try` on the real thing: whatever a command does in a layer, discarding it leaves every bit as it was, applying
//! it gives what the command alone would have given, and undoing that gives every bit back.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::disk::Disk;
use crate::world::{Tree, World, said};

/// An ordinary user.
const USER: u32 = 12_345;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs a script in a layer and keeps the trial.
fn tried(world: &World, script: &str) {
    world.ok(&["try", "--", "sh", "-ec", script]);
}

/// Runs a script for real, in a world of its own, and gives what it left.
fn bare(script: &str) -> Tree {
    let twin = World::new().with_project();
    let output = Command::new("sh")
        .args(["-ec", script])
        .current_dir(twin.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {}", said(&output));
    twin.tree().without_times()
}

fn assert_same(now: &Tree, wanted: &Tree, what: &str) {
    assert!(now == wanted, "{what}:\n{}", now.difference(wanted));
}

/// Discard, apply, undo, redo, undo: each as promised.
fn there_and_back(world: &World, script: &str) {
    let before = world.tree();
    tried(world, script);
    assert_same(&world.tree(), &before, "while it waits");
    world.ok(&["try", "--discard"]);
    assert_same(&world.tree(), &before, "discarded");
    tried(world, script);
    world.ok(&["try", "--apply"]);
    let after = world.tree();
    assert_same(&after.clone().without_times(), &bare(script), "applied");
    world.ok(&["undo"]);
    assert_same(&world.tree(), &before, "undone");
    world.ok(&["redo"]);
    assert_same(&world.tree(), &after, "redone");
    world.ok(&["undo"]);
    assert_same(&world.tree(), &before, "undone again");
    world.check_store();
    let trials = world.state().join("trials");
    assert_eq!(fs::read_dir(trials).unwrap().count(), 0, "a trial is left");
}

/// One test per script, so that they run side by side.
macro_rules! scripts {
    ($($name:ident: $script:expr;)*) => {
        $(
            #[test]
            fn $name() {
                there_and_back(&World::new().with_project(), $script);
            }
        )*
    };
}

scripts! {
    editing: "echo more >> app.toml; echo new > src/lib.rs";
    editing_by_replacing: "sed -i s/8080/1/ app.toml; sed -i s/fn/FN/ src/main.rs";
    creating: "mkdir -p a/b; echo x > a/b/c; echo y > a/d; : > empty";
    removing: "rm run.sh dangling; rmdir src/empty";
    removing_a_tree: "rm -r src";
    renaming: "mv app.toml app.ini; mv src/link src/moved; mv large.bin src/";
    renaming_a_directory: "mv src source";
    renaming_a_directory_and_working_in_it: "mv src source; rm source/lib.rs; echo x > source/x; mv source/main.rs source/m.rs";
    renaming_a_directory_twice_and_making_it_anew: "mv src one-more; mv one-more source; mkdir src; echo x > src/x";
    a_directory_made_anew: "rm -r src; mkdir src; echo x > src/main.rs; mkdir src/sub";
    a_file_for_a_directory: "rm -r src; echo x > src";
    a_directory_for_a_file: "rm app.toml; mkdir app.toml; echo x > app.toml/x";
    swapping_two_files: "mv app.toml t; mv run.sh app.toml; mv t run.sh";
    links: "ln -s app.toml new; ln -sf nowhere src/link; rm dangling; ln -s / dangling";
    a_second_name: "ln app.toml second; ln src/lib.rs lib";
    a_second_name_of_a_file_in_a_new_directory: "mkdir n; echo x > n/a; ln n/a b; ln n/a src/c";
    several_new_names: "echo x > a; ln a b; ln a src/c";
    modes: "chmod 600 app.toml; chmod 700 src; chmod u-s run.sh; chmod 1777 src/empty";
    owners: "chown 12:34 app.toml; chown 56 src; chown -h 7:8 src/link";
    attributes: "setfattr -n user.note -v hello app.toml; setfattr -n user.note -v dir src; setfattr -n trusted.note -v root run.sh";
    times: "touch -d '2001-02-03 04:05:06' new; mkdir d; touch -d 2002-01-01 d";
    pipes: "mkfifo pipe; mkfifo src/pipe";
    large_and_holey: "head -c 3000000 /dev/zero | tr '\\0' x > big; truncate -s 5000000 sparse; echo tail >> large.bin";
    many_files: "mkdir many; for i in $(seq 300); do echo $i > many/$i; done; rm -r src";
    tar: "tar cf all.tar src app.toml; mkdir out; tar xf all.tar -C out; rm all.tar";
    touched_and_written_back: "echo x >> app.toml; printf 'port = 8080\\n' > app.toml; echo y > new";
    odd_names: "touch 'a b' '\\' '*' '[' \"$(printf 'new\\nline')\" \"$(printf '\\377')\"";
}

#[test]
fn a_file_that_was_only_touched_is_no_change() {
    let world = World::new().with_project();
    let view = world.json(&[
        "try",
        "--",
        "sh",
        "-c",
        "touch app.toml; cat src/*.rs > /dev/null",
    ]);
    assert_eq!(view["standing"], "empty");
}

#[test]
fn a_file_of_several_names_changes_under_one_of_them_and_that_is_said() {
    let world = World::new().with_project();
    let before = world.tree();
    let output = world.run(&["try", "--apply", "--", "sh", "-c", "echo more >> one"]);
    let note = "`one` has other names, and they keep the old content";
    assert!(said(&output).contains(note), "{}", said(&output));
    assert_eq!(world.read("one"), "two names\nmore\n");
    assert_eq!(world.read("other"), "two names\n");
    world.ok(&["undo"]);
    assert_same(&world.tree(), &before, "undone");
}

#[test]
fn git_works_in_a_layer_and_what_it_made_works_afterwards() {
    let world = World::new().with_project();
    let before = world.tree();
    let script = "export HOME=$PWD GIT_CONFIG_NOSYSTEM=1
        git init -q . && git add src app.toml && git -c user.name=a -c user.email=a@b commit -qm one
        git mv src source && git -c user.name=a -c user.email=a@b commit -qam two";
    tried(&world, script);
    assert_same(&world.tree(), &before, "while it waits");
    world.ok(&["try", "--apply"]);
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(world.path(""));
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", world.path(""));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["fsck", "--strict"]);
    assert_eq!(git(&["log", "--format=%s"]), "two\none\n");
    assert_eq!(git(&["diff", "--stat", "HEAD"]), "");
    world.ok(&["undo"]);
    assert_same(&world.tree(), &before, "undone");
}

#[test]
fn everything_odd_survives_on_every_file_system() {
    for (kind, mib) in [("ext4", 64), ("xfs", 320), ("btrfs", 320)] {
        let disk = Disk::of_kind(kind, mib);
        let world = World::at(&disk.path(), None).with_zoo(USER);
        let before = world.tree();
        tried(
            &world,
            "cp -a zoo copied; rm -r zoo/inner; echo x > zoo/acl; rm three; mv zoo away",
        );
        assert_same(&world.tree(), &before, kind);
        world.ok(&["try", "--apply"]);
        assert!(world.path("copied/sparse").exists() && !world.path("zoo").exists());
        world.ok(&["undo"]);
        assert_same(&world.tree(), &before, kind);
        world.check_store();
    }
}

#[test]
fn an_ordinary_user_tries_in_a_user_namespace() {
    let world = World::new().with_project().of_user(USER);
    let own = Command::new("chown")
        .args(["-R", "12345:12345"])
        .arg(world.path(""))
        .status();
    assert!(own.unwrap().success());
    let before = world.tree();
    let script = "id -u > who; echo more >> app.toml; rm run.sh; mv src source; mkdir d; ln -s x l; chmod 700 source";
    tried(&world, script);
    assert_same(&world.tree(), &before, "while it waits");
    world.ok(&["try", "--apply"]);
    assert_eq!(world.read("who"), "12345\n");
    assert_eq!(world.read("app.toml"), "port = 8080\nmore\n");
    assert_eq!(world.read("source/main.rs"), "fn main() {}\n");
    assert!(!world.path("src").exists() && !world.path("run.sh").exists());
    assert_eq!(world.path("who").metadata().unwrap().uid(), USER);
    world.ok(&["undo"]);
    assert_same(&world.tree(), &before, "undone");
    world.check_store();
}

/// An overlay cannot make somebody else's directory anew in a user namespace: nothing could be written below one.
#[test]
fn an_ordinary_user_tries_below_directories_of_others() {
    let world = World::new().of_user(USER);
    fs::create_dir_all(world.path("theirs/shared/mine")).unwrap();
    world.file("theirs/shared/mine/old", "old\n");
    world.file("theirs/kept", "kept\n");
    for name in ["mine", "mine/old"] {
        let path = world.path("theirs/shared").join(name);
        std::os::unix::fs::chown(path, Some(USER), Some(USER)).unwrap();
    }
    let open = fs::Permissions::from_mode(0o1777);
    fs::set_permissions(world.path("theirs/shared"), open).unwrap();
    let before = world.tree();
    let script = "echo more >> old; mkdir d; echo x > d/new; echo y > ../beside; touch ../../no && exit 3; rm ../../kept && exit 4; true";
    let run = |arguments: &[&str]| {
        let directory = world.path("theirs/shared/mine");
        let mut command = world.command(arguments);
        let output = command.current_dir(directory).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    };
    run(&["try", "--", "sh", "-c", script]);
    assert_same(&world.tree(), &before, "while it waits");
    run(&["try", "--apply"]);
    assert_eq!(world.read("theirs/shared/mine/old"), "old\nmore\n");
    assert_eq!(world.read("theirs/shared/mine/d/new"), "x\n");
    assert_eq!(world.read("theirs/shared/beside"), "y\n");
    run(&["undo"]);
    let (now, before) = (world.tree(), before.without_directory_times());
    assert_same(&now.without_directory_times(), &before, "undone");
    world.check_store();
}

#[test]
fn an_ordinary_user_cannot_write_more_than_outside() {
    let world = World::new().of_user(USER);
    let script = "for p in /x /usr/x /etc/x; do touch $p && echo $p >> written; done; true";
    let view = world.json(&["try", "--", "sh", "-c", script]);
    assert_eq!(view["changes"], serde_json::json!([]));
}

#[test]
fn a_real_file_that_changes_meanwhile_is_a_conflict() {
    let world = World::new().with_project();
    tried(
        &world,
        "echo tried >> app.toml; echo tried > src/new; rm run.sh",
    );
    world.file("app.toml", "somebody else\n");
    let before = world.tree();
    let error = world.fails(1, &["try", "--apply"]);
    assert!(error.contains("`app.toml` changed since"), "{error}");
    assert_same(&world.tree(), &before, "refused");
    // The rest can still be had.
    world.ok(&["try", "--apply", "--exclude", "app.toml"]);
    assert_eq!(world.read("src/new"), "tried\n");
    assert_eq!(world.read("app.toml"), "somebody else\n");
    assert!(!world.path("run.sh").exists());
    world.check_store();
}

#[test]
fn a_name_that_is_taken_meanwhile_and_a_tree_that_grew_are_conflicts() {
    let world = World::new().with_project();
    tried(&world, "echo tried > new; rm -r src");
    world.file("new", "somebody else\n");
    world.file("src/grown", "somebody else\n");
    let error = world.fails(1, &["try", "--apply"]);
    assert!(
        error.contains("`new`") && error.contains("`src`"),
        "{error}"
    );
    assert_eq!(world.read("src/grown"), "somebody else\n");
    world.ok(&["try", "--discard"]);
}

/// Begins a trial whose script says `up` and then waits for a line.
fn begun(world: &World, arguments: &[&str], script: &str) -> Child {
    let mut command = world.command(arguments);
    command
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut up = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    assert_eq!(&up, b"up\n");
    child
}

#[test]
fn a_change_by_somebody_else_while_the_command_runs_is_a_conflict() {
    let world = World::new().with_project();
    let script = "echo tried >> app.toml; echo up; read line";
    let mut child = begun(&world, &["try"], script);
    world.file("app.toml", "somebody else\n");
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("somebody else changed it meanwhile"));
    world.fails(1, &["try", "--apply"]);
    assert_eq!(world.read("app.toml"), "somebody else\n");
}

#[test]
fn a_part_can_be_applied() {
    let world = World::new().with_project();
    let script = "mkdir -p a/b; echo 1 > a/b/one.txt; echo 2 > a/b/two.log; ln a/b/one.txt a/three; echo x >> app.toml";
    tried(&world, script);
    world.ok(&[
        "try",
        "--apply",
        "--only",
        "a/**",
        "--exclude",
        "**/one.txt",
    ]);
    assert_eq!(world.read("a/b/two.log"), "2\n");
    assert_eq!(world.read("a/three"), "1\n");
    assert!(!world.path("a/b/one.txt").exists());
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    world.check_store();
}

#[test]
fn what_is_on_a_mount_below_is_seen_too() {
    let world = World::new().with_project();
    let disk = Disk::memory(4096);
    fs::write(disk.path().join("file"), "old\n").unwrap();
    let script = format!(
        "cd {}; echo new > file; echo new > other; mkdir d; echo x > {}/both",
        disk.path().display(),
        world.path("").display()
    );
    let before = (Tree::of(&disk.path()), world.tree());
    tried(&world, &script);
    assert_eq!((Tree::of(&disk.path()), world.tree()), before);
    world.ok(&["try", "--apply"]);
    assert_eq!(
        fs::read_to_string(disk.path().join("file")).unwrap(),
        "new\n"
    );
    assert_eq!(world.read("both"), "x\n");
    world.ok(&["undo"]);
    assert_same(&Tree::of(&disk.path()), &before.0, "the mount");
    assert_same(&world.tree(), &before.1, "the world");
}

#[test]
fn the_exit_code_is_the_commands() {
    let world = World::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let output = world.run(&["try", "--discard", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    }
    let error = world.fails(127, &["try", "--", "no-such-command"]);
    assert!(error.contains("there is no such program"), "{error}");
    world.file("data", "no program");
    let error = world.fails(126, &["try", "--", "./data"]);
    assert!(error.contains("not executable"), "{error}");
    assert!(
        !world
            .state()
            .join("trials")
            .read_dir()
            .unwrap()
            .any(|_| true)
    );
}

#[test]
fn a_failed_command_is_not_applied_by_itself() {
    let world = World::new().with_project();
    let error = world.fails(
        3,
        &["try", "--apply", "--", "sh", "-c", "rm app.toml; exit 3"],
    );
    assert!(error.contains("nothing was applied"), "{error}");
    assert!(world.path("app.toml").exists());
    world.ok(&["try", "--apply"]);
    assert!(!world.path("app.toml").exists());
}

#[test]
fn output_input_and_directory_are_the_commands_own() {
    let world = World::new().with_project();
    let mut command =
        world.command(&["try", "--discard", "--", "sh", "-c", "cat; pwd; echo e >&2"]);
    command.stdin(fs::File::open(world.path("app.toml")).unwrap());
    let output = command.output().unwrap();
    let work = fs::canonicalize(world.path("")).unwrap();
    let wanted = format!("port = 8080\n{}\n", work.display());
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("e\n"));
}

#[test]
fn signals_reach_the_command() {
    let world = World::new();
    let script = "trap 'echo caught > caught; exit 5' TERM; echo up; while :; do sleep 0.05; done";
    let child = begun(&world, &["try"], script);
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    world.ok(&["try", "--apply"]);
    assert_eq!(world.read("caught"), "caught\n");
}

#[test]
fn processes_that_outlive_the_command_are_told_and_ended() {
    let world = World::new();
    let began = Instant::now();
    let script = "(trap 'echo ended > ended; exit' TERM; echo > up; while :; do sleep 0.05; done) & while [ ! -e up ]; do sleep 0.01; done";
    let output = world.run(&["try", "--", "sh", "-c", script]);
    assert!(output.status.success());
    assert!(
        said(&output).contains("outlived the command"),
        "{}",
        said(&output)
    );
    assert!(began.elapsed() < PATIENCE);
    // What they wrote on their way out counts.
    world.ok(&["try", "--apply"]);
    assert_eq!(world.read("ended"), "ended\n");
    let output = world.run(&[
        "try",
        "--survivors",
        "wait",
        "--apply",
        "--",
        "sh",
        "-c",
        "(sleep 0.2; echo x > late) &",
    ]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(world.read("late"), "x\n");
}

#[test]
fn a_trial_that_is_killed_takes_its_processes_along_and_leaves_nothing() {
    let world = World::new();
    let mut child = begun(&world, &["try"], "echo up; sleep 600");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    // The pipe ends when the last who could write to it has died.
    let mut rest = Vec::new();
    child.stdout.unwrap().read_to_end(&mut rest).unwrap();
    assert!(world.ok(&["try", "--list"]).contains("interrupted"));
    world.ok(&["try", "--", "true"]);
    assert!(world.ok(&["try", "--list"]).contains("no trial"));
}

#[test]
fn without_network_nobody_can_be_reached_but_oneself() {
    let world = World::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    world.ok(&["try", "--", "bash", "-c", &script]);
    let output = world.run(&["try", "--no-network", "--", "bash", "-c", &script]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let links = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '";
    assert_eq!(
        world.ok(&["try", "--no-network", "--", "sh", "-c", links]),
        "lo\n"
    );
}

#[test]
fn our_own_state_is_out_of_reach() {
    let world = World::new().with_project();
    world.ok(&["write", "app.toml", "--text", "x"]);
    let state = world.state().display().to_string();
    let script =
        format!("ls -A {state}; touch {state}/x 2>&1; rm -rf {state}/* {state} 2>/dev/null; true");
    let listed = world.ok(&["try", "--discard", "--", "sh", "-c", &script]);
    assert!(
        listed.contains("Read-only") && !listed.contains("journal"),
        "{listed}"
    );
    world.ok(&["undo"]);
    world.check_store();
}

#[test]
fn a_restart_of_the_machine_loses_a_trial_and_says_so() {
    let world = World::new().with_project();
    let output = world
        .command(&["try", "--", "sh", "-c", "rm app.toml"])
        .env("BACKOUT_TEST_BOOT", "the-boot-before")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let error = world.fails(1, &["try", "--apply"]);
    assert!(error.contains("started anew"), "{error}");
    assert!(world.ok(&["try", "--list"]).contains("lost"));
    world.ok(&["try", "--discard"]);
    assert!(world.path("app.toml").exists());
}

#[test]
fn a_trial_in_a_task_goes_with_the_task() {
    let world = World::new().with_project();
    let before = world.tree();
    world.ok(&["task", "begin", "t"]);
    world.ok(&[
        "--task",
        "t",
        "try",
        "--apply",
        "--",
        "sh",
        "-c",
        "rm -r src; echo x > new",
    ]);
    assert!(!world.path("src").exists());
    world.ok(&["rollback", "t"]);
    assert_same(&world.tree(), &before, "rolled back");
}

#[test]
fn modes_that_nobody_may_read_are_no_obstacle_for_discarding() {
    let world = World::new().of_user(USER);
    tried(
        &world,
        "mkdir closed; echo x > closed/x; chmod 0 closed/x; chmod 500 closed",
    );
    world.ok(&["try", "--discard"]);
    assert_eq!(
        fs::read_dir(world.state().join("trials")).unwrap().count(),
        0
    );
    let mode = world.state().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

/// Names in `/dev` are real ones: they stay, and devices work.
#[test]
fn devices_keep_their_names() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let name = format!("/dev/backout-test-{}", std::process::id());
    fs::write(&name, "device\n").unwrap();
    let world = World::new();
    let script =
        format!("echo x > /dev/null; echo y >> /dev/null; head -c 4 /dev/urandom > r; rm {name}");
    let output = world.run(&["try", "--discard", "--", "sh", "-c", &script]);
    let is_there = fs::read_to_string(&name);
    let _gone = fs::remove_file(&name);
    assert_eq!(is_there.unwrap(), "device\n", "{}", said(&output));
    assert!(said(&output).contains("Read-only"), "{}", said(&output));
}

#[test]
fn a_time_that_was_set_with_a_mode_is_applied_with_it() {
    let world = World::new().with_project();
    let before = world.tree();
    tried(&world, "chmod 600 app.toml; touch -d @1000000000 app.toml");
    world.ok(&["try", "--apply"]);
    let found = fs::metadata(world.path("app.toml")).unwrap();
    assert_eq!(
        (found.mode() & 0o777, found.mtime()),
        (0o600, 1_000_000_000)
    );
    world.ok(&["undo"]);
    assert_same(&world.tree(), &before, "undone");
}
