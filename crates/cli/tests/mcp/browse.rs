//! `backout log -i` under tmux: a real terminal, real keys, and what is on the screen.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::world::World;

/// How long the screen may take to show something.
const PATIENCE: Duration = Duration::from_mins(1);

struct Terminal<'w> {
    world: &'w World,
    socket: PathBuf,
}

impl<'w> Terminal<'w> {
    /// Starts a shell in a terminal of some size. It says so when our program has ended.
    fn start(world: &'w World, (width, height): (u16, u16), environment: &str) -> Self {
        let terminal = Self {
            world,
            // The path of a socket must be short.
            socket: std::env::temp_dir().join(format!("backout-{}.tmux", std::process::id())),
        };
        let (width, height) = (width.to_string(), height.to_string());
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &width,
            "-y",
            &height,
            "sh",
        ]);
        let program = env!("CARGO_BIN_EXE_backout");
        let state = world.state().display().to_string();
        terminal.line(&format!(
            "PS1='$ '; b() {{ {environment} {program} --state-dir {state} \"$@\"; }}; clear"
        ));
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = self.world.command("tmux");
        command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
        let output = command
            .arg("-S")
            .arg(&self.socket)
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn line(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen is so. Gives it.
    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(began.elapsed() < PATIENCE, "{what}:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn shows(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    /// The terminal is as a shell wants it.
    #[track_caller]
    fn is_sane(&self) {
        // What is typed before our program has left is for it.
        self.until("prompt", |screen| {
            let last = screen.lines().rev().find(|line| !line.trim().is_empty());
            last.is_some_and(|line| line.starts_with('$'))
        });
        self.line("stty -a | grep -o -e '[-]*icanon' -e '[-]*echo ' | tr '\\n' ' '; echo rea''dy");
        let screen = self.shows("ready\n");
        assert!(screen.contains("icanon echo"), "{screen}");
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let mut command = self.world.command("tmux");
        let _ended = command
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .output();
        let _gone = std::fs::remove_file(&self.socket);
    }
}

fn read(world: &World, name: &str) -> String {
    std::fs::read_to_string(world.work().join(name)).unwrap_or_default()
}

#[test]
fn one_walks_reads_undoes_and_redoes_with_keys() {
    let world = World::new();
    world.backout(&["write", "a.txt", "--text", "first\n"]);
    world.backout(&["write", "b.txt", "--text", "second\n"]);
    world.backout(&["write", "c.txt", "--text", "third\n"]);
    let terminal = Terminal::start(&world, (80, 24), "");
    terminal.line("b log -i");
    let screen = terminal.shows("operations: 1 of 3");
    assert!(
        screen.contains("> ") && screen.contains("c.txt"),
        "{screen}"
    );
    terminal.keys(&["j"]);
    terminal.shows("operations: 2 of 3");
    terminal.keys(&["Down", "k", "Enter"]);
    terminal.shows("+second");
    terminal.keys(&["q", "u"]);
    let screen = terminal.shows("do it? y / n");
    assert!(
        screen.contains("this would happen") && screen.contains("-second"),
        "{screen}"
    );
    assert_eq!(
        read(&world, "b.txt"),
        "second\n",
        "nothing before the answer"
    );
    terminal.keys(&["n"]);
    terminal.shows("operations: 2 of 3");
    terminal.keys(&["u"]);
    terminal.shows("do it? y / n");
    terminal.keys(&["y"]);
    let screen = terminal.shows(": done");
    assert!(!world.work().join("b.txt").exists(), "{screen}");
    assert_eq!(read(&world, "c.txt"), "third\n", "later work stays");
    terminal.keys(&["q"]);
    terminal.shows("undone");
    terminal.keys(&["/"]);
    terminal.keys(&["-l", "a.txt"]);
    terminal.shows("/a.txt");
    terminal.keys(&["Enter"]);
    terminal.shows("operations: 4 of 4");
    terminal.keys(&["/", "z", "z", "z", "Enter"]);
    terminal.shows("nothing further down has");
    terminal.keys(&["g"]);
    terminal.shows("operations: 1 of 4");
    terminal.keys(&["r"]);
    terminal.shows("do it? y / n");
    terminal.keys(&["y"]);
    terminal.shows(": done");
    assert_eq!(read(&world, "b.txt"), "second\n");
    terminal.keys(&["q", "q"]);
    terminal.is_sane();
}

#[test]
fn a_conflict_is_shown_and_nothing_is_undone() {
    let world = World::new();
    world.backout(&["write", "a.txt", "--text", "agent\n"]);
    std::fs::write(world.work().join("a.txt"), "mine\n").unwrap();
    let terminal = Terminal::start(&world, (80, 24), "");
    terminal.line("b log -i");
    terminal.shows("operations: 1 of 1");
    terminal.keys(&["u"]);
    terminal.shows("this would happen");
    terminal.keys(&["y"]);
    terminal.shows("q back");
    assert_eq!(read(&world, "a.txt"), "mine\n");
}

#[test]
fn what_others_do_appears_and_the_cursor_stays() {
    let world = World::new();
    for name in ["one", "two", "three"] {
        world.backout(&["write", name, "--text", "x"]);
    }
    let terminal = Terminal::start(&world, (80, 24), "");
    terminal.line("b log -i");
    terminal.shows("operations: 1 of 3");
    terminal.keys(&["j", "j"]);
    terminal.shows("operations: 3 of 3");
    world.backout(&["write", "fourth", "--text", "x"]);
    let screen = terminal.shows("operations: 4 of 4");
    let line = screen
        .lines()
        .find(|line| line.starts_with("> "))
        .unwrap_or_default();
    assert!(line.contains("one"), "{screen}");
}

#[test]
fn tasks_and_prompts_are_walked_too() {
    let world = World::new();
    world.backout(&["task", "begin", "job"]);
    world.backout(&["--task", "job", "write", "a.txt", "--text", "x"]);
    world.backout(&["--task", "job", "write", "b.txt", "--text", "x"]);
    let terminal = Terminal::start(&world, (80, 24), "");
    terminal.line("b log -i");
    terminal.shows("operations: 1 of 2");
    terminal.keys(&["t"]);
    terminal.shows("prompts: 0 of 0");
    terminal.keys(&["t"]);
    terminal.shows("tasks: 1 of 1");
    terminal.keys(&["Enter"]);
    terminal.shows("operations of task job: 1 of 2");
    terminal.keys(&["t", "t", "t"]);
    terminal.shows("tasks: 1 of 1");
    terminal.keys(&["u"]);
    terminal.shows("do it? y / n");
    terminal.keys(&["y"]);
    terminal.shows(": done");
    assert!(!world.work().join("a.txt").exists() && !world.work().join("b.txt").exists());
}

#[test]
fn narrow_and_resized_terminals_and_no_colour_show_it_too() {
    let world = World::new();
    let long = "a-rather-long-name-that-does-not-fit-into-a-narrow-terminal.txt";
    world.backout(&["write", long, "--text", "x"]);
    world.backout(&["write", "\u{65e5}\u{672c}.txt", "--text", "x"]);
    let terminal = Terminal::start(&world, (24, 6), "NO_COLOR=1");
    terminal.line("b log -i");
    let screen = terminal.until("narrow", |screen| {
        screen.contains("operations: 1 of 2") && screen.contains("> ")
    });
    assert!(screen.lines().count() <= 6, "{screen}");
    let coloured = terminal.tmux(&["capture-pane", "-p", "-e"]);
    assert!(!coloured.contains("\x1b[3"), "no colour: {coloured:?}");
    terminal.tmux(&["resize-window", "-x", "140", "-y", "30"]);
    terminal.until("wide", |screen| screen.contains(long));
    terminal.tmux(&["resize-window", "-x", "10", "-y", "2"]);
    terminal.until("tiny", |screen| screen.contains("operations"));
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    terminal.shows("q leave");
    terminal.keys(&["q"]);
    terminal.is_sane();
}

#[test]
fn ctrl_c_ctrl_z_and_signals_leave_the_terminal_sane() {
    let world = World::new();
    world.backout(&["write", "a.txt", "--text", "x"]);
    let terminal = Terminal::start(&world, (80, 24), "");
    terminal.line("set -m; b log -i");
    terminal.shows("operations: 1 of 1");
    terminal.keys(&["C-c"]);
    terminal.is_sane();
    terminal.line("clear; b log -i");
    terminal.shows("operations: 1 of 1");
    terminal.keys(&["C-z"]);
    terminal.until("stopped", |screen| {
        screen.to_lowercase().contains("stopped")
    });
    terminal.is_sane();
    terminal.line("fg");
    terminal.shows("operations: 1 of 1");
    terminal.keys(&["j", "Enter"]);
    terminal.shows("a.txt");
    terminal.keys(&["q", "q"]);
    terminal.is_sane();
    terminal.line("clear; b log -i");
    terminal.shows("operations: 1 of 1");
    let state = world.state().display().to_string();
    let ended = world
        .command("pkill")
        .args(["-TERM", "-f", &format!("{state} log -i")])
        .status()
        .unwrap();
    assert!(ended.success());
    terminal.is_sane();
}

#[test]
fn a_pipe_is_no_terminal() {
    let world = World::new();
    let output = world.program().args(["log", "-i"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("there is no terminal"), "{said}");
}
