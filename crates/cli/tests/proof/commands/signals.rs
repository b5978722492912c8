//! A command is born as it would be without us: signals, limits, directory; and what it leaves behind stays watched.

use std::process::{Command, Stdio};

use super::behaviour::{same, wait_for};
use crate::world::{World, said};

#[test]
fn programs_with_groups_and_sessions_of_their_own_end() {
    for line in [
        "timeout 5 true",
        "setsid true",
        "setsid -w sh -c 'echo x > f'",
        "timeout 60 sh -c 'echo x > g; exit 3'",
    ] {
        same(line, "");
    }
    let world = World::new();
    for words in [
        ["run", "--", "timeout", "5", "true"].as_slice(),
        &["run", "--", "setsid", "true"],
        &["run", "--", "bash", "-c", "timeout 60 true"],
    ] {
        let mut command = Command::new("timeout");
        command.arg("20").arg(env!("CARGO_BIN_EXE_backout"));
        command
            .args(words)
            .current_dir(world.path(""))
            .env("BACKOUT_STATE_DIR", world.state())
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
    }
}

/// Runs the same under a shell that set something first, bare and watched.
fn born(before: &str, line: &str) -> (String, String) {
    let world = World::new();
    let run = |words: &str| {
        let mut command = Command::new("bash");
        command
            .args(["-c", &format!("{before}; {words}")])
            .current_dir(world.path(""))
            .env("BACKOUT_STATE_DIR", world.state());
        said(&command.output().unwrap())
    };
    let bare = run(&format!("bash -c '{line}'"));
    let watched = run(&format!(
        "{} --quiet run -- bash -c '{line}'",
        env!("CARGO_BIN_EXE_backout")
    ));
    (bare, watched)
}

#[test]
fn signals_and_limits_are_inherited() {
    // The last 28 signals; those far above are the library's own.
    let line = "grep -E \"^Sig(Blk|Ign)\" /proc/self/status | sed -E \"s/[0-9a-f]{9}(.{7})$/\\1/\"; ulimit -a | grep -v pending";
    for before in [
        "true",
        "trap \"\" HUP",
        "trap \"\" PIPE INT",
        "trap \"\" XFSZ",
        "ulimit -f 100000; ulimit -t 1000; ulimit -n 100",
        "ulimit -S -f 100000; ulimit -S -v 8000000",
    ] {
        let (bare, watched) = born(before, line);
        assert_eq!(bare, watched, "{before}");
    }
    // Blocked ones too.
    let line = "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM]); os.execvp(sys.argv[1], sys.argv[1:])";
    let world = World::new();
    let blocked = |words: &[&str]| {
        let mut command = Command::new("python3");
        command
            .args(["-c", line])
            .args(words)
            .args(["grep", "SigBlk", "/proc/self/status"])
            .current_dir(world.path(""))
            .env("BACKOUT_STATE_DIR", world.state());
        said(&command.output().unwrap())
    };
    let program = env!("CARGO_BIN_EXE_backout");
    assert_eq!(blocked(&[]), blocked(&[program, "--quiet", "run", "--"]));
}

/// Runs a line below a limit of file size; what keeps the command's writes must not end by it.
fn limited(world: &World, limit: &str) -> (Option<i32>, String) {
    let line = format!(
        "ulimit {limit} 40; {} run -- bash -c 'echo y > f; head -c 100000 /dev/zero > g; echo $?'",
        env!("CARGO_BIN_EXE_backout")
    );
    let output = Command::new("python3")
        .args(["-c", "import signal, subprocess, sys; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); sys.exit(subprocess.call(['bash', '-c', sys.argv[1]]))"])
        .arg(line)
        .current_dir(world.path(""))
        .env("BACKOUT_STATE_DIR", world.state())
        .output()
        .unwrap();
    (output.status.code(), said(&output))
}

#[test]
fn a_limit_of_file_size_is_the_commands_alone() {
    let world = World::new();
    world.file("f", &"x".repeat(200_000));
    let (code, told) = limited(&world, "-S -f");
    assert!(code == Some(0) && told.contains("153"), "{told}");
    world.ok(&["undo"]);
    assert_eq!(world.read("f").len(), 200_000);
    assert!(!world.path("g").exists());
    // One that cannot be lifted is an error that is said, and not an end without a word.
    let world = World::new();
    world.file("f", &"x".repeat(200_000));
    let (code, told) = limited(&world, "-f");
    if code != Some(0) {
        assert!(code == Some(1) && told.contains("error:"), "{told}");
        assert_eq!(world.read("f").len(), 200_000);
    }
}

#[test]
fn a_working_directory_that_is_gone() {
    let world = World::new();
    world.file("f", "f\n");
    let line = format!(
        "mkdir d; cd d; rmdir ../d; {} run -- bash -c 'cd {} && echo x > f'",
        env!("CARGO_BIN_EXE_backout"),
        world.path("").display()
    );
    let output = Command::new("bash")
        .args(["-c", &line])
        .current_dir(world.path(""))
        .env("BACKOUT_STATE_DIR", world.state())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(world.read("f"), "x\n");
    world.ok(&["undo"]);
    assert_eq!(world.read("f"), "f\n");
}

/// Forks twice, as daemons do, so that nobody knows its parent.
const DAEMON: &str = r"
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
null = os.open('/dev/null', os.O_RDWR)
for number in (0, 1, 2): os.dup2(null, number)
time.sleep(0.2)
open(sys.argv[1], 'w').write('still watched')
";

#[test]
fn a_daemon_keeps_its_watcher() {
    let world = World::in_memory();
    std::fs::write(world.scratch("daemon.py"), DAEMON).unwrap();
    let program = world.scratch("daemon.py");
    for round in 0..12 {
        let name = format!("made{round}");
        let output = world.run(&["run", "--", "python3", program.to_str().unwrap(), &name]);
        assert!(output.status.success(), "{}", said(&output));
        wait_for(|| world.read(&name) == "still watched");
    }
    wait_for(|| world.json(&["status"])["unfinished"] == serde_json::json!([]));
    let log = world.json(&["log", "-n", "100"]).to_string();
    assert_eq!(log.matches("\"left running by").count(), 12, "{log}");
}

/// Where nobody is asked, a process that closes all it was born with is still seen.
#[test]
fn a_daemon_is_named_where_directories_are_compared() {
    let world = World::new();
    let line = "(exec 3>&- 4>&- > /dev/null 2>&1 < /dev/null; python3 -c 'import os, time; os.closerange(3, 100); time.sleep(1)') & sleep 0.3";
    let output = world.run(&["run", "--capture", "scan", "--", "bash", "-c", line]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("still running"), "{}", said(&output));
    wait_for(|| world.json(&["status"])["unfinished"] == serde_json::json!([]));
}

/// A timer whose handler restarts calls is not noticed. One whose handler does not may interrupt a call in the moment
/// before it is taken up; such a call has not happened.
#[test]
fn a_timer_leaves_calls_whole() {
    let world = World::in_memory();
    let text = r"
import os, signal, sys
interrupts = sys.argv[1] == 'interrupts'
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, interrupts)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
broken = 0
for number in range(5000):
    for call in (lambda: os.mkdir('d'), lambda: os.rename('d', 'e'), lambda: os.chmod('e', 0o700), lambda: os.rmdir('e')):
        while True:
            try:
                call()
                break
            except InterruptedError:
                broken += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert interrupts or broken == 0, broken
print('all done')
";
    std::fs::write(world.scratch("timer.py"), text).unwrap();
    let program = world.scratch("timer.py");
    for how in ["restarts", "interrupts"] {
        let output = world.run(&["run", "--", "python3", program.to_str().unwrap(), how]);
        let told = said(&output);
        assert!(told.contains("all done\n"), "{told}");
    }
}

/// Calls of several processes are taken up before the first of them is worked on: the others cannot be interrupted while
/// they wait for their turn. Where each was taken up in its turn, every second one was.
#[test]
fn a_timer_seldom_interrupts_calls_that_wait_for_their_turn() {
    let world = World::in_memory();
    let text = r"
import os, signal, sys
def work(name):
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, True)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    broken = 0
    for number in range(500):
        for call in (lambda: os.mkdir(name), lambda: os.chmod(name, 0o700), lambda: os.rmdir(name)):
            while True:
                try:
                    call()
                    break
                except InterruptedError:
                    broken += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    return broken
pipes = []
for number in range(4):
    reads, writes = os.pipe()
    if os.fork() == 0:
        os.write(writes, str(work(f'd{number}')).encode())
        os._exit(0)
    os.close(writes)
    pipes.append(reads)
print('interrupted:', sum(int(os.read(reads, 100)) for reads in pipes))
";
    std::fs::write(world.scratch("timers.py"), text).unwrap();
    let program = world.scratch("timers.py");
    let told = said(&world.run(&["run", "--", "python3", program.to_str().unwrap()]));
    let line = told
        .lines()
        .find_map(|line| line.strip_prefix("interrupted: "));
    let interrupted: u32 = line.unwrap_or_else(|| panic!("{told}")).parse().unwrap();
    let calls = 4 * 500 * 3;
    // On a busy machine more of them are.
    assert!(interrupted < calls / 4, "{interrupted} of {calls}");
}
