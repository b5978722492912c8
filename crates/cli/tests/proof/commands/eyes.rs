//! What the watcher cannot look at does not happen, or is said.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::behaviour::{same, wait_for};
use super::there_and_back;
use crate::disk::Disk;
use crate::world::{World, said};

fn python(world: &World, text: &str) -> String {
    let path = world.scratch("program.py");
    fs::write(&path, text).unwrap();
    format!("python3 {}", path.display())
}

/// Memory that a process may only write or execute can be read by the kernel.
const MEMORY: &str = r"
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
def put(path, protection):
    at = libc.mmap(None, 4096, 3, 0x22, -1, 0)
    ctypes.memmove(at, path + b'\0', len(path) + 1)
    assert libc.mprotect(ctypes.c_void_p(at), 4096, protection) == 0
    return ctypes.c_void_p(at)
def tell(result):
    print('done' if result == 0 else os.strerror(ctypes.get_errno()))
";

#[test]
fn a_path_in_memory_that_only_the_kernel_can_read() {
    for protection in [2, 4] {
        let world = World::new().with_project();
        let text = format!(
            "{MEMORY}\ntell(libc.unlink(put(b'app.toml', {protection})))\ntell(libc.rename(put(b'run.sh', {protection}), put(b'src/main.rs', {protection})))\n"
        );
        there_and_back(&world, &python(&world, &text));
    }
    let helper = World::new();
    let text = format!(
        "{MEMORY}\ntell(libc.unlink(put(b'app.toml', 0)))\ntell(libc.mkdir(None, 0o700))\ntell(libc.mkdir(ctypes.c_void_p(1), 0o700))\n"
    );
    same(&python(&helper, &text), "");
}

#[test]
fn calls_that_nobody_knows_do_not_exist() {
    let world = World::new();
    let text = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nassert libc.syscall(999, 0) == -1\nprint(os.strerror(ctypes.get_errno()))\n";
    let output = world.run(&["run", "--", "bash", "-c", &python(&world, text)]);
    let told = said(&output);
    assert!(told.contains("Function not implemented"), "{told}");
    assert!(told.contains("system call 999"), "{told}");
}

/// Numbers come again: what was learnt of a file that the command made says nothing of another with its number.
#[test]
fn somebody_elses_file_with_the_number_of_one_that_the_command_made_is_kept() {
    let world = World::new();
    let text = "import os, time\nopen('ready', 'w').close()\nopen('own', 'w').close()\nos.mkdir('go')\nwhile not os.path.exists('theirs'):\n    time.sleep(0.01)\nos.fchmod(os.open('theirs', os.O_RDONLY), 0o600)\n";
    let line = python(&world, text);
    let mut child = world.spawn(&["run", "--", "bash", "-c", &line]);
    wait_for(|| world.path("go").exists());
    fs::remove_file(world.path("own")).unwrap();
    // The first that is free again is the one that was freed last.
    fs::write(world.path("theirs.new"), "theirs\n").unwrap();
    fs::set_permissions(world.path("theirs.new"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::rename(world.path("theirs.new"), world.path("theirs")).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(world.tree().mode_of("theirs"), Some(0o600));
    world.ok(&["undo", "--force"]);
    assert_eq!(world.tree().mode_of("theirs"), Some(0o644));
}

#[test]
fn flags_that_lock_what_was_there_are_not_changed() {
    let world = World::new();
    world.file("f", "f\n");
    let is_able = Command::new("lsattr").arg(world.path("f")).output();
    if !is_able.is_ok_and(|output| output.status.success()) {
        return;
    }
    let before = world.tree();
    for flag in ["+i", "+a"] {
        let output = world.run(&["run", "--", "chattr", flag, "f"]);
        let told = said(&output);
        assert!(!output.status.success(), "{told}");
        assert!(
            told.contains("chattr") && told.contains("refused"),
            "{told}"
        );
        assert!(world.tree() == before);
    }
    there_and_back(
        &world,
        "touch new; chattr +d new; mkdir d; touch d/x; chattr +A d/x",
    );
}

#[test]
fn what_cannot_be_undone_is_said() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let mode = "import os; os.chmod('/', os.stat('/').st_mode & 0o7777)";
    for (line, expected) in [
        (
            format!("python3 -c \"{mode}\""),
            "of `/`; that is not undone",
        ),
        (
            "mknod disk b 7 250; exec 5<> disk; true".to_owned(),
            "it opened the device",
        ),
        (
            "python3 -c 'import ctypes; ctypes.CDLL(None).acct(b\"/nowhere\")'".to_owned(),
            "without `backout run`",
        ),
        (
            "echo > swap; python3 -c 'import ctypes; ctypes.CDLL(None).swapon(b\"swap\", 0)'"
                .to_owned(),
            "without `backout run`",
        ),
        (
            "echo > f; exec 5< f; ln f g; rm f; python3 -c 'import os; os.fchmod(5, 0o600)'"
                .to_owned(),
            "whose name is gone",
        ),
    ] {
        let told = said(&world.run(&["run", "--", "bash", "-c", &line]));
        assert!(told.contains(expected), "{line}: {told}");
    }
}

/// Who takes the command back is told as well what stays, each time.
#[test]
fn what_is_not_undone_is_said_by_the_undo_as_well() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mode = "import os; os.chmod('/', os.stat('/').st_mode & 0o7777)";
    for (line, expected) in [
        (
            format!("python3 -c \"{mode}\""),
            "times of `/`; that is not undone",
        ),
        (
            "exec 5<> disk".to_owned(),
            "it opened the device `disk` for writing; what it wrote to it is not undone",
        ),
    ] {
        let world = World::new();
        let device = Command::new("mknod")
            .arg(world.path("disk"))
            .args(["b", "7", "250"])
            .status()
            .unwrap();
        assert!(device.success());
        let line = format!("{line}; echo > new");
        let output = world.run(&["run", "--", "bash", "-c", &line]);
        assert!(
            said(&output).contains(expected),
            "{line}: {}",
            said(&output)
        );
        for _ in 0..2 {
            let told = said(&world.run(&["undo"]));
            assert_eq!(told.matches(expected).count(), 1, "{line}: {told}");
            let told = said(&world.run(&["redo"]));
            assert!(!told.contains(expected), "{line}: {told}");
        }
    }
}

/// An error of our own look is an error of the call.
#[test]
fn a_name_that_vanishes_while_it_is_looked_at() {
    let world = World::in_memory();
    let line = "for w in 1 2 3 4; do (for i in $(seq 60); do echo $w > f; rm -f f; echo x >> f; mv -f f g 2> /dev/null; done) & done; wait; rm -f f; echo end > g";
    let before = world.tree();
    let output = world.run(&["run", "--", "bash", "-c", line]);
    assert!(output.status.success(), "{}", said(&output));
    // Who did what is not always told apart, where four do the same at once.
    world.ok(&["undo", "--force"]);
    let now = world.tree();
    assert!(now == before, "{}", now.difference(&before));
}

/// What happens to a whole subvolume at once cannot be kept; its files can.
#[test]
fn subvolumes_are_removed_file_by_file_or_not_at_all() {
    let is_able = Command::new("btrfs").arg("version").output();
    if !rustix::process::geteuid().is_root() || !is_able.is_ok_and(|output| output.status.success())
    {
        return;
    }
    let disk = Disk::of_kind("btrfs", 256);
    let world = World::at(&disk.path(), None);
    let made = Command::new("btrfs")
        .args(["-q", "subvolume", "create"])
        .arg(world.path("sub"))
        .status()
        .unwrap();
    assert!(made.success());
    world.file("sub/f", "f\n");
    world.file("sub/large", &"x".repeat(200_000));
    world.file("sub/d/g", "g\n");
    for line in [
        "btrfs subvolume delete sub",
        "btrfs subvolume create other",
        "btrfs subvolume snapshot sub other",
        "btrfs property set sub ro true",
    ] {
        let before = world.tree();
        let told = said(&world.run(&["run", "--", "bash", "-c", line]));
        assert!(
            told.contains("a whole subvolume cannot be undone"),
            "{line}: {told}"
        );
        assert!(world.tree() == before, "{line}");
    }
    there_and_back(&world, "rm -r sub/d sub/large; echo x > sub/f");
    let before = world.tree();
    let output = world.run(&["run", "--", "rm", "-rf", "sub"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains(" was a subvolume; an undo brings it back as a directory"),
        "{}",
        said(&output)
    );
    assert!(!world.path("sub").exists());
    world.ok(&["undo"]);
    let (now, before) = (
        world.tree().without_directory_times(),
        before.without_directory_times(),
    );
    assert!(now == before, "{}", now.difference(&before));
}

/// What an ordinary user's program keeps from its own user cannot be watched: it does not write, and that is said.
#[test]
fn a_program_that_nobody_may_read_is_refused_with_a_reason() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = World::new().of_user(12345);
    fs::copy("/bin/touch", world.path("closed")).unwrap();
    let prepared = Command::new("sh")
        .args(["-c", "chown 12345 closed; chmod 111 closed"])
        .current_dir(world.path(""))
        .status();
    assert!(prepared.unwrap().success());
    for line in [
        "./closed made",
        "python3 -c 'import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); open(\"made\", \"w\")'",
    ] {
        let output = world.run(&["run", "--", "bash", "-c", line]);
        let told = said(&output);
        assert!(!output.status.success(), "{told}");
        assert!(
            told.contains("keeps its memory from its own user"),
            "{told}"
        );
        assert!(!world.path("made").exists());
    }
}

#[test]
fn a_core_dump_is_said() {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.starts_with('|') || pattern.trim() != "core" {
        return;
    }
    let world = World::new();
    world.file("core", "mine\n");
    let line = format!(
        "ulimit -c unlimited 2> /dev/null || exit 0; exec {} run -- bash -c 'kill -SEGV $$'",
        env!("CARGO_BIN_EXE_backout")
    );
    let output = Command::new("bash")
        .args(["-c", &line])
        .current_dir(world.path(""))
        .env("BACKOUT_STATE_DIR", world.state())
        .output()
        .unwrap();
    let is_dumped = world.read("core") != "mine\n";
    assert_eq!(
        is_dumped,
        said(&output).contains("core dump"),
        "{}",
        said(&output)
    );
}
