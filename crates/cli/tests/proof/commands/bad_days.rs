//! What goes wrong with commands, and what is left then.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::behaviour::wait_for;
use crate::disk::Disk;
use crate::world::{Tree, World, said};

fn run(world: &World, options: &[&str], line: &str) -> (Option<i32>, String) {
    let mut arguments = vec!["run"];
    arguments.extend(options);
    arguments.extend(["--", "bash", "-c", line]);
    let output = world.run(&arguments);
    (output.status.code(), said(&output))
}

#[test]
fn a_command_that_is_not_there() {
    let world = World::new();
    let told = world.fails(127, &["run", "--", "nosuchcommand"]);
    assert!(
        told.contains("`nosuchcommand` was not run") && told.contains("PATH"),
        "{told}"
    );
    world.file("text", "no program\n");
    let told = world.fails(126, &["run", "--", "./text"]);
    assert!(told.contains("it is not executable"), "{told}");
    let operations = world.operations();
    assert!(
        operations.iter().all(|(_, status)| status == "aborted"),
        "{operations:?}"
    );
    world.check_store();
}

/// The process that watches: a child of the one that was started.
pub(super) fn supervisor_of(front: u32) -> i32 {
    let children = fs::read_to_string(format!("/proc/{front}/task/{front}/children")).unwrap();
    children.split_whitespace().next().unwrap().parse().unwrap()
}

/// Kills the process in front and the one that watches, and waits until nobody is left of them.
pub(crate) fn kill_both(front: &mut std::process::Child) {
    let watcher = supervisor_of(front.id());
    for process in [front.id().cast_signed(), watcher] {
        kill(Pid::from_raw(process), Signal::SIGKILL).unwrap();
    }
    front.wait().unwrap();
    let stat = || fs::read_to_string(format!("/proc/{watcher}/stat")).unwrap_or_default();
    wait_for(|| stat().is_empty() || stat().contains(") Z "));
}

#[test]
fn what_is_left_of_a_command_that_nobody_watches_is_ended_by_whoever_recovers_it() {
    let world = World::new();
    let script = "exec 3>>f; echo a >&3; touch ready
                  while [ ! -e ../go ]; do sleep 0.02; done
                  echo late >&3; touch ../end";
    let mut child = world.spawn(&["run", "--", "bash", "-c", script]);
    wait_for(|| world.path("ready").exists());
    let watcher = supervisor_of(child.id());
    let children = fs::read_to_string(format!("/proc/{watcher}/task/{watcher}/children"));
    let command = children.unwrap();
    let command = command.split_whitespace().next().unwrap();
    kill_both(&mut child);
    let told = said(&world.run(&["write", "other", "--text", "1\n"]));
    let ended = "ended what was left of it, since nobody watched it any more: ";
    assert!(told.contains(ended), "{told}");
    assert!(told.contains(&format!("bash ({command})")), "{told}");
    fs::write(world.scratch("go"), "").unwrap();
    let stat = fs::read_to_string(format!("/proc/{command}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    assert_eq!(world.read("f"), "a\n");
}

#[test]
fn what_a_command_did_whose_supervisor_was_killed_is_kept_and_can_be_taken_back() {
    let world = World::new().with_project();
    let before = world.tree();
    let script = "rm -rf src; echo x > app.toml; mv run.sh moved; touch ready
                  while [ ! -e ../go ]; do sleep 0.02; done
                  echo late > late; echo $? > ../said; echo done > ../end";
    fs::write(world.scratch("said"), "").unwrap();
    let mut child = world.spawn(&["run", "--", "bash", "-c", script]);
    wait_for(|| world.path("ready").exists());
    kill(Pid::from_raw(supervisor_of(child.id())), Signal::SIGKILL).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    // What is left of the command does not hang, and cannot write.
    fs::write(world.scratch("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    // The process in front recovers it at once, and says so.
    let told = said(&output);
    assert!(told.contains("backout recover --keep"), "{told}");
    assert!(!world.path("late").exists());
    assert_eq!(fs::read_to_string(world.scratch("said")).unwrap(), "");
    let after = world.tree();
    let told = world.ok(&["recover"]);
    assert!(told.contains("now interrupted"), "{told}");
    assert!(world.tree() == after, "nothing vanishes by itself");
    world.ok(&["undo"]);
    let now = world.tree();
    let (now, before) = (
        now.without_directory_times(),
        before.without_directory_times(),
    );
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}

/// Of what comes to be in a directory that the command made, the log says no word: it is found there.
#[test]
fn a_new_tree_whose_watcher_was_killed_is_taken_back_whole() {
    for (line, theirs) in [
        (
            "mkdir -p new/a/b; echo x > new/a/b/f; echo y > new/g; ln -s g new/link; ln new/g new/h",
            None,
        ),
        (
            "mkdir new; mkdir new/d; echo x > new/d/f; mv new/d/f out; mv new/d new/e; echo y > new/e/z",
            None,
        ),
        (
            "mkdir -p new/d; echo x > new/d/f; mv new moved; mkdir new; echo z > new/z; mv src/lib.rs moved/d",
            None,
        ),
        (
            "mkdir -p new/d; cp app.toml new/d/f; mv new/d/f app.toml; rm new/d/g 2> /dev/null; mv src new/d/src; echo more >> new/d/src/lib.rs",
            None,
        ),
        (
            "mkdir -p new/d; echo x > new/d/f; touch new/wait; while [ ! -e new/d/theirs ]; do sleep 0.02; done",
            Some("new/d/theirs"),
        ),
    ] {
        let world = World::new().with_project();
        let before = world.tree();
        let script = format!("{line}; touch ready; sleep 60");
        let mut child = world.spawn(&["run", "--", "bash", "-c", &script]);
        if let Some(theirs) = theirs {
            wait_for(|| world.path("new/wait").exists());
            fs::write(world.path(theirs), "theirs\n").unwrap();
        }
        wait_for(|| world.path("ready").exists());
        // What came after the last heartbeat could be anybody's.
        let made = fs::metadata(world.path("ready")).unwrap().modified();
        let made = made.unwrap();
        let has_beaten = |entry: fs::DirEntry| entry.metadata().unwrap().modified().unwrap() > made;
        wait_for(|| {
            let mut logs = fs::read_dir(world.state().join("captures")).unwrap();
            logs.any(|log| log.is_ok_and(has_beaten))
        });
        kill_both(&mut child);
        world.run(&["recover"]);
        match theirs {
            None => {
                world.ok(&["undo"]);
                let after = world.tree();
                assert!(after == before, "{line}\n{}", before.difference(&after));
            }
            Some(theirs) => {
                world.run(&["undo", "--partial"]);
                assert_eq!(world.read(theirs), "theirs\n", "{line}");
                assert!(!world.path("new/d/f").exists(), "{line}");
            }
        }
        world.check_store();
    }
}

#[test]
fn our_own_state_is_nobodys_to_write() {
    let world = World::new().with_project();
    world.ok(&["write", "app.toml", "--text", "1\n"]);
    let state = world.state().display().to_string();
    let before = fs::read(world.state().join("journal.sqlite")).unwrap();
    for line in [
        format!("echo x > {state}/journal.sqlite"),
        format!("rm -rf {state}"),
        format!("mv {state} elsewhere"),
        format!("chmod 777 {state}/depot"),
        format!("ln -s {state} s; touch s/new"),
        format!("cd {state} && touch new"),
        format!("python3 -c 'open(\"{state}/head\", \"w\")'"),
        format!("truncate -s 0 {state}/journal.sqlite"),
        format!("ln {state}/journal.sqlite stolen && echo x > stolen"),
        format!("mv $(dirname {state}) $(dirname {state})2"),
    ] {
        let (code, told) = run(&world, &[], &line);
        assert!(code != Some(0), "{line}: {told}");
        assert!(told.contains("our own state"), "{line}: {told}");
        assert!(
            fs::read(world.state().join("journal.sqlite"))
                .unwrap()
                .len()
                >= before.len()
        );
    }
    world.check_store();
}

#[test]
fn backout_inside_of_a_command_works_outside_of_it() {
    let world = World::new().with_project();
    let program = env!("CARGO_BIN_EXE_backout");
    let line = format!(
        "{program} write nested --text inside && echo piped | {program} write piped && {program} run -- touch inner \
         && {program} --quiet undo && {program} log -n 1 | grep -q undo && echo more >> nested"
    );
    let (code, told) = run(&world, &[], &line);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(world.read("piped"), "piped\n");
    assert!(!world.path("inner").exists());
    // What was done inside are operations of their own, and go with the command that did them.
    world.ok(&["undo", "@"]);
    assert!(!world.path("nested").exists() && !world.path("piped").exists());
    world.ok(&["redo"]);
    assert_eq!(world.read("nested"), "insidemore\n");
    world.check_store();
}

#[test]
fn a_full_disk_refuses_the_write_and_keeps_the_rest() {
    let disk = Disk::of_kind("ext4", 48);
    let world = World::at(&disk.path(), None);
    world.file("large", &"x".repeat(4 << 20));
    world.file("gone", &"y".repeat(1 << 20));
    // A place to keep things is made when it is first needed.
    let (code, told) = run(&world, &[], "touch first && rm first");
    assert_eq!(code, Some(0), "{told}");
    let before = world.tree();
    disk.fill();
    let line = "echo more >> large || echo refused; rm gone && echo removed";
    let (code, told) = run(&world, &[], line);
    disk.empty();
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("refused\nremoved"),
        "what needs no room works: {told}"
    );
    assert!(told.contains("No space left"), "{told}");
    world.ok(&["undo"]);
    let (now, before) = (
        world.tree().without_directory_times(),
        before.without_directory_times(),
    );
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}

#[test]
fn a_file_above_the_limit_is_never_silently_lost() {
    let world = World::new();
    world.file("large", &"0123456789".repeat(20_000));
    let before = world.tree();
    let (code, told) = run(&world, &["--limit", "100kB"], "echo x >> large");
    if crate::world::memory().exists() && told.is_empty() {
        return; // a file system that clones needs no copy
    }
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("File too large") && told.contains("refused"),
        "{told}"
    );
    assert!(world.tree() == before);
    // Nobody sees what is written by an open file, so it counts when it is opened.
    let (code, told) = run(&world, &["--limit", "100kB"], "exec 5<> large");
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("File too large"), "{told}");
    let (code, told) = run(
        &world,
        &["--limit", "100kB", "--over-limit", "mark"],
        "echo x >> large; echo y > other",
    );
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("cannot be brought back"), "{told}");
    // The undo says it as well, and does the rest when told to.
    for (code, arguments) in [(1, &["undo", "@", "--dry-run"][..]), (0, &["show", "@"])] {
        let output = world.run(arguments);
        assert_eq!(output.status.code(), Some(code));
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.contains("cannot be brought back"), "{told}");
    }
    let told = world.fails(1, &["undo", "@"]);
    assert!(
        told.contains("was not kept") && world.path("other").exists(),
        "{told}"
    );
    let told = world.fails(1, &["undo", "@", "--partial"]);
    assert!(told.contains("was not kept"), "{told}");
    assert!(!world.path("other").exists());
    assert!(world.read("large").ends_with("x\n"), "said, and so it is");
    assert!(world.ok(&["log"]).contains("in part undone"));
    // Without a terminal nobody can be asked.
    let (code, _) = run(
        &world,
        &["--limit", "100kB", "--over-limit", "ask"],
        "echo x >> large",
    );
    assert_eq!(code, Some(1));
    // Removing or replacing it needs no copy, whatever its size.
    let before = world.tree();
    let (code, told) = run(&world, &["--limit", "100kB"], "rm large");
    assert_eq!(code, Some(0), "{told}");
    world.ok(&["undo", "@"]);
    assert!(world.tree() == before);
}

#[test]
fn a_descriptor_that_was_open_before() {
    let world = World::new();
    world.file("log", "one\n");
    let program = env!("CARGO_BIN_EXE_backout");
    let line = format!("exec 3>> log; {program} run -- bash -c 'echo two >&3'");
    let done = Command::new("bash")
        .args(["-c", &line])
        .current_dir(world.path(""))
        .env("BACKOUT_STATE_DIR", world.state())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(world.read("log"), "one\ntwo\n");
    world.ok(&["undo"]);
    assert_eq!(world.read("log"), "one\n");
}

/// Gives an open file to whoever asks, and waits until it was used.
const GIVER: &str = "
import array, os, socket
s = socket.socket(socket.AF_UNIX); s.bind('new'); s.listen(1); os.rename('new', 'door')
f = os.open('theirs', os.O_WRONLY | os.O_APPEND)
c, _ = s.accept()
c.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [f]))])
c.recv(1)
";

const TAKER: &str = "
import array, os, socket
c = socket.socket(socket.AF_UNIX); c.connect('door')
f = array.array('i', c.recvmsg(1, 100)[1][0][2][:4])[0]
os.write(f, b'more\\n'); c.send(b'x')
open('own', 'w').write('own')
";

/// Who opens a file for others answers for it: no call of the command tells what it is.
#[test]
fn what_somebody_outside_opened_and_handed_over_is_theirs() {
    let world = World::new();
    world.file("theirs", "one\n");
    let mut giver = Command::new("python3")
        .args(["-c", GIVER])
        .current_dir(world.path(""))
        .spawn()
        .unwrap();
    wait_for(|| world.path("door").exists());
    let output = world.run(&["run", "--", "python3", "-c", TAKER]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(giver.wait().unwrap().success());
    let targets = world.json(&["show", "@"]).to_string();
    assert!(
        targets.contains("own") && !targets.contains("theirs"),
        "{targets}"
    );
    world.ok(&["undo"]);
    assert!(!world.path("own").exists());
    assert_eq!(world.read("theirs"), "one\nmore\n");
    world.check_store();
}

#[test]
fn another_user_another_root_other_mounts() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new().with_project();
    fs::set_permissions(world.scratch(""), fs::Permissions::from_mode(0o755)).unwrap();
    for line in [
        "chown -R 12345 src; setpriv --reuid=12345 --clear-groups bash -c 'cd src; mv main.rs moved; rm lib.rs; echo x > new; touch ../no' ; true",
        "mkdir root; cp -a src root/; chroot . /bin/true 2> /dev/null; python3 -c \"
import os
os.chroot('root'); os.chdir('/')
open('/src/main.rs', 'w').write('chrooted')
os.remove('/src/lib.rs')
os.rename('/src/link', '/link')\"",
        "unshare -m bash -c 'echo x > app.toml; rm run.sh'",
        "mkdir mnt; mount -t tmpfs none mnt; echo x > mnt/file; umount mnt; echo y > after",
        "cp /bin/sleep ./prog; ./prog 0.2 & sleep 0.05; rm prog; cp /bin/true prog; ./prog; wait",
    ] {
        super::there_and_back(&world, line);
    }
}

#[test]
fn an_ordinary_user_runs_commands_too() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new().with_project();
    let owned = Command::new("chown")
        .args(["-R", "12345:12345"])
        .arg(world.path(""))
        .status()
        .unwrap();
    assert!(owned.success());
    let world = world.of_user(12345);
    for line in [
        "rm -rf src; mv app.toml x; echo y >> run.sh; chmod 700 x",
        "sed -i s/8080/1/ app.toml; ln app.toml l; mkdir -p a/b",
    ] {
        super::there_and_back(&world, line);
    }
    // A program that would gain rights does not, and that is said.
    let (_, told) = run(&world, &[], "su -c true < /dev/null; true");
    assert!(told.contains("gained no rights"), "{told}");
}

#[test]
fn thousands_of_files() {
    let world = World::in_memory();
    let made =
        "for i in $(seq 40); do mkdir d$i; for j in $(seq 50); do echo $i $j > d$i/f$j; done; done";
    super::there_and_back(&world, made);
    let (code, told) = run(&world, &[], made);
    assert_eq!(code, Some(0), "{told}");
    let before = Tree::of(&world.path(""));
    let (code, told) = run(&world, &[], "rm -rf d*; touch end");
    assert_eq!(code, Some(0), "{told}");
    world.ok(&["undo"]);
    assert!(world.tree() == before);
}

/// A command that has the disk keep what it wrote into a file does not get ahead of what was in it: the log is kept first.
#[test]
fn what_was_in_a_file_is_on_the_disk_before_what_a_command_syncs() {
    let world = World::new();
    world.file("kept", "as it was\n");
    let line = "import os; f = open('kept', 'r+'); f.write('new'); f.flush(); os.fsync(f.fileno())";
    let bare = world.command(&["run", "--", "python3", "-c", line]);
    let calls = world.scratch("calls");
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-e", "trace=fsync,fdatasync", "-o"]);
    command.arg(&calls).arg(bare.get_program());
    command.args(bare.get_args()).current_dir(world.path(""));
    command.env("BACKOUT_STATE_DIR", world.state());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let told = std::fs::read_to_string(calls).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    let asked = lines
        .iter()
        .position(|line| line.contains("fsync(3 <unfinished"));
    let asked = asked.unwrap_or_else(|| panic!("{told}"));
    let command = lines[asked].split_whitespace().next().unwrap();
    let is_over = |line: &&str| line.starts_with(command) && line.contains("resumed");
    let between: Vec<&&str> = lines[asked + 1..]
        .iter()
        .take_while(|line| !is_over(line))
        .collect();
    let is_kept = |line: &&&str| line.contains("fdatasync") && line.contains("= 0");
    assert!(between.iter().any(is_kept), "{told}");
    world.ok(&["undo"]);
    assert_eq!(world.read("kept"), "as it was\n");
}
