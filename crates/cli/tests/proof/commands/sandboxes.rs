//! `run` inside of other sandboxes: it watches as ever, or says what is missing and compares directories.

use std::process::{Command, Output};

use crate::world::{World, said};

/// A Python program that forbids calls to itself and becomes another: numbers of calls, with `=` another error than
/// `EPERM`; `unix` for sockets of that kind, `namespaces` for new processes in those.
const FORBID: &str = r"
import ctypes, os, struct, sys
def op(code, k, jt=0, jf=0): return struct.pack('HBBI', code, jt, jf, k)
EPERM = op(0x06, 0x00050000 | 1)
words = sys.argv[1].split(',')
code = op(0x20, 0)
for word in words:
    if word == 'unix':
        code += op(0x15, 41, 0, 4) + op(0x20, 16) + op(0x15, 1, 0, 1) + EPERM + op(0x20, 0)
    elif word == 'namespaces':
        code += op(0x15, 56, 0, 4) + op(0x20, 16) + op(0x45, 0x7e020000, 0, 1) + EPERM + op(0x20, 0)
    else:
        number, _, error = word.partition('=')
        code += op(0x15, int(number), 0, 1) + op(0x06, 0x00050000 | int(error or 1))
code += op(0x06, 0x7fff0000)
room = ctypes.create_string_buffer(code)
program = struct.pack('HxxxxxxQ', len(code) // 8, ctypes.addressof(room))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execvp(sys.argv[2], sys.argv[2:])
";

const SOCKETPAIR: &str = "53";
const PROCESS_VM_READV: &str = "310";
const SECCOMP: &str = "317";
const PIDFD_GETFD: &str = "438";

/// What the usual profile of containers refuses to processes without further rights, as far as it could matter here: mounts by
/// old and new calls, namespaces, keys, handles, quotas, swap and accounts, the kernel's own tools and modules, descriptors and
/// memory advice of other processes, and calls that are newer than the profile. `clone3` does not exist there. It allows
/// `process_vm_readv`, `seccomp`, `pidfd_open`, `openat2` and sockets.
const CONTAINER: &str = "165,166,155,428,429,430,431,432,433,442,467,272,308,namespaces,435=38,248,249,250,304,\
                         179,443,163,167,168,169,103,153,298,300,321,323,425,426,427,246,320,175,176,313,312,438,440,\
                         452,463,466,469";

/// Runs the program within others.
fn within(world: &World, wrapper: &[&str], arguments: &[&str]) -> Output {
    let bare = world.command(arguments);
    let mut command = Command::new(wrapper[0]);
    command
        .args(&wrapper[1..])
        .arg(bare.get_program())
        .args(bare.get_args())
        .current_dir(world.path(""))
        .env_clear();
    for (name, value) in bare.get_envs() {
        command.env(name, value.unwrap());
    }
    command.output().unwrap()
}

fn forbidding(calls: &str) -> [&str; 4] {
    ["python3", "-c", FORBID, calls]
}

/// What a command did is one operation, seen call by call, and can be undone.
fn is_watched(world: &World, wrapper: &[&str]) {
    let output = within(world, wrapper, &["run", "--", "true"]);
    assert!(output.status.success(), "{wrapper:?}: {}", said(&output));
    let before = world.tree();
    let line = "echo x > f; mkdir d; mv f d/g; rm -f kept";
    let output = within(world, wrapper, &["--json", "run", "--", "sh", "-c", line]);
    assert!(output.status.success(), "{wrapper:?}: {}", said(&output));
    assert!(
        said(&output).contains("\"mode\":\"live\""),
        "{wrapper:?}: {}",
        said(&output)
    );
    assert_eq!(world.read("d/g"), "x\n");
    world.ok(&["undo", "@"]);
    let (now, before) = (world.tree(), before);
    assert!(now == before, "{wrapper:?}: {}", now.difference(&before));
    world.check_store();
}

/// Directories are compared instead, and it is said why.
fn is_compared(world: &World, wrapper: &[&str], missing: &str) {
    let before = world.tree();
    let line = "echo x > f; rm -f kept";
    let output = within(world, wrapper, &["run", "--", "sh", "-c", line]);
    assert!(output.status.success(), "{wrapper:?}: {}", said(&output));
    assert!(
        said(&output).contains(missing),
        "{wrapper:?}: {}",
        said(&output)
    );
    assert!(
        said(&output).contains("compared"),
        "{wrapper:?}: {}",
        said(&output)
    );
    world.ok(&["undo", "@"]);
    let (now, before) = (
        world.tree().without_directory_times(),
        before.without_directory_times(),
    );
    assert!(now == before, "{wrapper:?}: {}", now.difference(&before));
    // Whoever insists on being watched is told the same, and nothing is run.
    let output = within(
        world,
        wrapper,
        &["run", "--capture", "live", "--", "touch", "f"],
    );
    assert_eq!(
        output.status.code(),
        Some(1),
        "{wrapper:?}: {}",
        said(&output)
    );
    assert!(
        said(&output).contains(missing),
        "{wrapper:?}: {}",
        said(&output)
    );
    assert!(!world.path("f").exists());
    world.check_store();
}

fn world() -> World {
    let world = World::new();
    world.file("kept", "as it was\n");
    world
}

#[test]
fn in_a_bubblewrap() {
    let world = world();
    let root = world.scratch("").display().to_string();
    is_watched(&world, &["bwrap", "--dev-bind", "/", "/"]);
    let closed = [
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--bind",
        &root,
        &root,
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-all",
        "--new-session",
        "--die-with-parent",
    ];
    is_watched(&world, &closed);
}

#[test]
fn in_a_bubblewrap_of_an_ordinary_user() {
    let world = world().of_user(1_234);
    let root = world.scratch("").display().to_string();
    let bare = world.command(&[]);
    // The wrapper runs as the user too: what the world puts before the program comes first.
    assert_eq!(bare.get_program(), "setpriv");
    let user = [
        "setpriv",
        "--reuid=1234",
        "--regid=1234",
        "--clear-groups",
        "--",
    ];
    let wrapped = [
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--bind",
        &root,
        &root,
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
    ];
    let program = world.scratch("backout").display().to_string();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(user[0]);
        command
            .args(&user[1..])
            .args(wrapped)
            .arg(&program)
            .args(arguments);
        command
            .current_dir(world.path(""))
            .env("BACKOUT_STATE_DIR", world.state());
        command.output().unwrap()
    };
    let before = world.tree();
    let output = run(&["--json", "run", "--", "sh", "-c", "echo x > f; rm -f kept"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("\"mode\":\"live\""),
        "{}",
        said(&output)
    );
    let output = run(&["undo", "@"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        world.tree() == before,
        "{}",
        world.tree().difference(&before)
    );
}

#[test]
fn in_namespaces_of_its_own() {
    let world = world();
    for wrapper in [
        &["unshare", "-r"][..],
        &["unshare", "-rm"],
        &["unshare", "-rn"],
        &["unshare", "-m"],
        &["unshare", "-rmpf", "--mount-proc"],
    ] {
        is_watched(&world, wrapper);
    }
}

#[test]
fn without_capabilities_and_without_new_rights() {
    let world = world();
    for wrapper in [
        &["setpriv", "--bounding-set=-all", "--inh-caps=-all"][..],
        &["setpriv", "--no-new-privs"],
        &[
            "setpriv",
            "--no-new-privs",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ],
    ] {
        is_watched(&world, wrapper);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn without_sockets_and_without_reading_memory_by_call() {
    let world = world();
    for calls in [
        SOCKETPAIR.to_owned(),
        PROCESS_VM_READV.to_owned(),
        "unix".to_owned(),
        format!("unix,{SOCKETPAIR},{PROCESS_VM_READV}"),
    ] {
        is_watched(&world, &forbidding(&calls));
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn in_what_containers_allow() {
    is_watched(&world(), &forbidding(CONTAINER));
    is_watched(&world_of_user(), &forbidding(CONTAINER));
}

/// Without user namespaces nobody looks at what a command closed to its own user: that is said, and keeps nothing.
#[cfg(target_arch = "x86_64")]
#[test]
fn what_is_closed_where_there_are_no_user_namespaces() {
    let world = world_of_user();
    let line = "echo more >> kept; chmod 000 kept";
    let output = within(
        &world,
        &forbidding(CONTAINER),
        &["run", "--", "sh", "-c", line],
    );
    assert!(!output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("not permitted to read `kept`"),
        "{}",
        said(&output)
    );
    // Where there are some, the next command settles it.
    world.ok(&["recover"]);
    world.ok(&["undo"]);
    assert_eq!(world.read("kept"), "as it was\n");
    world.check_store();
}

fn world_of_user() -> World {
    let world = world().of_user(1_234);
    std::os::unix::fs::chown(world.path("kept"), Some(1_234), Some(1_234)).unwrap();
    world
}

#[cfg(target_arch = "x86_64")]
#[test]
fn where_no_listener_can_be_had_or_handed_over() {
    let world = world();
    is_compared(&world, &forbidding(SECCOMP), "seccomp");
    let calls = format!("{SOCKETPAIR},{PIDFD_GETFD}");
    is_compared(&world, &forbidding(&calls), "pidfd_getfd");
}

#[test]
fn inside_of_another_watch() {
    // It has no relay, since it is to use another store: the kernel gives no second listener.
    let world = world();
    let other = World::new();
    let line = format!(
        "unset BACKOUT_RELAY; BACKOUT_STATE_DIR={} {} run -- sh -c 'echo x > f'",
        other.state().display(),
        env!("CARGO_BIN_EXE_backout")
    );
    let output = world.run(&["run", "--", "bash", "-c", &line]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("compared"), "{}", said(&output));
    assert_eq!(world.read("f"), "x\n");
    // Whoever watches sees it all the same.
    world.ok(&["undo", "@"]);
    assert!(!world.path("f").exists());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn where_there_is_no_door_nothing_is_done_and_it_is_said() {
    let world = world();
    let line = format!("{} write made --text x", env!("CARGO_BIN_EXE_backout"));
    let output = within(
        &world,
        &forbidding("unix"),
        &["run", "--", "bash", "-c", &line],
    );
    assert_ne!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("no relay"), "{}", said(&output));
    assert!(!world.path("made").exists());
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_filter_inside_of_the_command_is_not_left_by_the_door() {
    let world = world();
    let line = format!(
        "python3 -c \"$FORBID\" 9999 {} --json write made --text x",
        env!("CARGO_BIN_EXE_backout")
    );
    let mut command = world.command(&["run", "--", "bash", "-c", &line]);
    let output = command.env("FORBID", FORBID).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("not-from-inside"),
        "{}",
        said(&output)
    );
    assert!(!world.path("made").exists());
}
