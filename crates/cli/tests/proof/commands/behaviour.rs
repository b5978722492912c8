//! A command under `run` is the same command: exit code, output, signals, terminal, input.

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::world::{World, said};

/// Runs a shell line bare and under `run`, each in a world like the other, and compares what came out.
pub(super) fn same(line: &str, input: &str) -> (Output, Output) {
    let feed = |mut command: Command| {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // It may end without reading.
        let _unread = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    };
    let (one, other) = (World::new().with_project(), World::new().with_project());
    let mut bare = Command::new("bash");
    bare.args(["-c", line])
        .current_dir(one.path(""))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut watched = other.command(&["run", "--", "bash", "-c", line]);
    watched.env("HOME", "/nonexistent");
    let (bare, watched) = (feed(bare), feed(watched));
    assert_eq!(
        bare.status.code(),
        watched.status.code(),
        "{line}: {}",
        said(&watched)
    );
    assert_eq!(
        bare.status.signal(),
        watched.status.signal(),
        "{line}: {}",
        said(&watched)
    );
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&bare.stdout), text(&watched.stdout), "{line}");
    assert_eq!(text(&bare.stderr), text(&watched.stderr), "{line}");
    let (one, other) = (one.tree().without_times(), other.tree().without_times());
    assert!(one == other, "{line}\n{}", one.difference(&other));
    (bare, watched)
}

#[test]
fn results_are_the_same_with_and_without_us() {
    for line in [
        "exit 0",
        "exit 7",
        "kill -TERM $$",
        "kill -KILL $$",
        "nosuchcommand; exit $?",
        "echo out; echo err >&2",
        "cat; echo done",
        "read a; read b; echo $b $a",
        "rm -v app.toml nosuch; mkdir src; ls -A; mv app.toml x; rmdir src",
        "umask 077; touch private; mkdir closed; umask",
        "> a; umask 077; > b; umask 002; > c; (umask 027; > d; mkdir e); > f; umask 777; > g",
        "ulimit -n; basename $PWD; cd src; basename $PWD; echo x > ../y",
        "for i in 1 2 3; do echo $i; done | sort -r | tee sorted | wc -l",
        "(echo a; exit 3) | cat; echo ${PIPESTATUS[0]}",
        "trap 'echo trapped; exit 9' USR1; kill -USR1 $$; sleep 5",
        "set -m; sleep 0.01 & wait %1; jobs; echo ok",
        "ln app.toml hard; stat -c %h app.toml hard; cat hard",
        "mv -n app.toml run.sh; mv -T src/empty src/other; stat -c %F src/other",
        "exec 3<> app.toml; echo x >&3; cat app.toml",
        "echo a > f; echo b >> f; : > g; cat f; cp f h; cmp f h && echo same",
        "test -w app.toml && echo w; [ -t 0 ] || echo no terminal",
        "mkdir -p a/b/c && cd a/b/c && rm -rf ../../../a; ls 2>&1 | head -1",
        "chmod 000 app.toml; chmod 644 app.toml; stat -c %a app.toml",
        "ln -s loop loop; cat loop; echo x > loop; rm loop",
        "python3 -c 'import os; os.rename(\"app.toml\", \"nosuch/x\")' 2>&1 | tail -1",
    ] {
        same(line, "one\ntwo\n");
    }
}

/// A mask belongs to all threads of a process: who makes a file need not be who changed it.
#[test]
fn a_mask_that_another_thread_set_counts_for_the_next_file() {
    let script = "\
import os, threading
def make(name):
    thread = threading.Thread(target=lambda: os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o666)))
    thread.start()
    thread.join()
go, done = threading.Semaphore(0), threading.Semaphore(0)
def always():
    for index in range(20):
        go.acquire()
        os.close(os.open(f'f{index}', os.O_CREAT | os.O_WRONLY, 0o666))
        done.release()
threading.Thread(target=always).start()
for index in range(20):
    os.umask(0o077 if index % 2 else 0o002)
    go.release()
    done.acquire()
    make(f'g{index}')
";
    same(&format!("python3 - <<'E'\n{script}E"), "");
}

#[test]
fn a_signal_for_us_reaches_the_command_once() {
    let world = World::new();
    let script = "n=0; trap 'n=$((n+1)); echo $n >> heard' TERM; touch ready; while [ ! -e stop ]; do sleep 0.05; done; exit 5";
    let mut child = world.spawn(&["run", "--", "bash", "-c", script]);
    let pid = Pid::from_raw(child.id().cast_signed());
    wait_for(|| world.path("ready").exists());
    kill(pid, Signal::SIGTERM).unwrap();
    wait_for(|| world.path("heard").exists());
    std::thread::sleep(Duration::from_millis(200));
    std::fs::write(world.path("stop"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(world.read("heard"), "1\n");
}

#[test]
fn a_signal_that_ends_the_command_ends_us_so() {
    let world = World::new();
    let mut child = world.spawn(&["run", "--", "sh", "-c", "echo x > made; exec sleep 60"]);
    wait_for(|| world.path("made").exists());
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::SIGINT as i32), "{status}");
    world.ok(&["undo"]);
    assert!(!world.path("made").exists());
}

#[test]
fn what_is_left_running_is_watched_on() {
    let world = World::new();
    world.file("kept", "before\n");
    let script = "echo front > front; (while [ ! -e go ]; do sleep 0.05; done; echo back > back; echo more >> kept; touch end) > /dev/null 2>&1 &";
    let output = world.run(&["run", "--", "bash", "-c", script]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("still running"), "{}", said(&output));
    // The command is over for whoever waited for it, and can be undone.
    world.ok(&["undo"]);
    assert!(!world.path("front").exists());
    std::fs::write(world.path("go"), "").unwrap();
    wait_for(|| world.path("end").exists());
    wait_for(|| {
        world
            .operations()
            .iter()
            .filter(|(verb, status)| verb == "run" && status == "committed")
            .count()
            == 1
    });
    world.ok(&["undo", "@"]);
    assert_eq!(world.read("kept"), "before\n");
    assert!(!world.path("back").exists());
    world.check_store();
}

#[test]
fn the_terminal_passes_through() {
    let world = World::new();
    let line = "stty size; [ -t 0 ] && [ -t 1 ] && echo terminal; tput cols 2>/dev/null; ps -o tty= -p $$ | grep -c pts";
    let in_terminal = |command: &str| {
        let mut script = Command::new("script");
        script
            .args([
                "-qec",
                &format!("stty cols 91 rows 33; {command}"),
                "/dev/null",
            ])
            .current_dir(world.path(""))
            .env("BACKOUT_STATE_DIR", world.state())
            .env("TERM", "dumb")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut text = String::new();
        let mut child = script.spawn().unwrap();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        (child.wait().unwrap().code(), text)
    };
    let bare = in_terminal(&format!("bash -c '{line}'"));
    let watched = in_terminal(&format!(
        "{} --quiet run -- bash -c '{line}'",
        env!("CARGO_BIN_EXE_backout")
    ));
    assert_eq!(bare, watched);
    assert!(bare.1.contains("33 91"), "{}", bare.1);
}

#[test]
fn a_policy_takes_back_what_failed() {
    let world = World::new().with_project();
    let before = world.tree();
    world.fails(
        3,
        &[
            "run",
            "--on-failure",
            "rollback",
            "--",
            "sh",
            "-c",
            "rm app.toml; exit 3",
        ],
    );
    assert!(world.tree() == before);
    world.fails(3, &["run", "--", "sh", "-c", "rm app.toml; exit 3"]);
    assert!(!world.path("app.toml").exists(), "kept by default");
    world.ok(&["undo"]);
    assert!(world.tree() == before);
}

#[test]
fn time_that_is_up_ends_the_whole_tree() {
    let world = World::new().with_project();
    let before = world.tree();
    let script = "echo x > made; (trap '' TERM; sleep 600) & sleep 600";
    let output = world.run(&[
        "run",
        "--timeout",
        "1s",
        "--on-failure",
        "rollback",
        "--",
        "bash",
        "-c",
        script,
    ]);
    assert!(!output.status.success());
    assert!(world.tree() == before);
    world.check_store();
}

/// What is called `ls` here is no `ls`.
#[test]
fn a_command_that_only_seems_to_read_is_told() {
    let world = World::new();
    world.file("bin/ls", "#!/bin/sh\necho x > changed\n");
    Command::new("chmod")
        .args(["+x"])
        .arg(world.path("bin/ls"))
        .status()
        .unwrap();
    let output = world
        .command(&["run", "--", "ls", "-l"])
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", world.path("bin").display()),
        )
        .output()
        .unwrap();
    assert!(said(&output).contains("drift"), "{}", said(&output));
    let output = world.run(&["run", "--", "ls", "-l"]);
    assert!(!said(&output).contains("drift"), "{}", said(&output));
}

pub(crate) fn wait_for(is_so: impl Fn() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it did not come to pass in half a minute");
}
