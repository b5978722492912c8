//! What a command wrote is looked at when it is over. What the gates do not let be is taken back as a whole.

use serde_json::Value;

use super::{fails_watch, lines, reasons, ruled, script};
use crate::trust::newest;
use crate::world::{World, said};

/// Runs a command under watch. Gives its exit code and its reply, if it gave one.
fn run(world: &World, line: &str) -> (i32, Value) {
    let output = world.run(&["--json", "run", "--", "sh", "-c", line]);
    let code = output.status.code().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let replies = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ran = replies.into_iter().find(|it| it["reply"] == "ran");
    (code, ran.unwrap_or_else(|| panic!("{code}: {text}")))
}

const SYNTAX: &str = "[syntax]\n";

#[test]
fn what_is_denied_is_taken_back_whole_and_redo_has_it_again() {
    for outcome in ["deny", "ask"] {
        let world = ruled(&format!("{SYNTAX}on-failure = '{outcome}'\n"));
        world.file("a.json", "{}\n");
        world.file("gone", "1\n");
        let before = world.tree();
        let (code, ran) = run(
            &world,
            "echo '{' > a.json; rm gone; mkdir -p new/deep; echo 1 > new/deep/file",
        );
        assert_eq!(code, 1, "{ran}");
        assert_eq!(ran["status"], "undone", "{ran}");
        assert!(
            ran["reasons"][0]["rule"]
                .as_str()
                .unwrap()
                .starts_with("syntax in"),
            "{ran}"
        );
        assert!(ran["reasons"][0]["place"]["line"].is_u64(), "{ran}");
        assert!(world.tree().without_times() == before.clone().without_times());
        // Nothing waits: a command's work cannot.
        assert_eq!(world.json(&["pending"])["proposals"], serde_json::json!([]));
        let undo = ran["undone"]["act"].as_str().unwrap();
        world.ok(&["redo", &undo[..8]]);
        assert_eq!(world.read("a.json"), "{\n");
        assert_eq!(world.read("new/deep/file"), "1\n");
        assert!(!world.path("gone").exists());
        world.ok(&["undo"]);
        assert!(world.tree().without_times() == before.clone().without_times());
        world.check_store();
    }
}

#[test]
fn the_words_name_the_rule_and_the_redo() {
    let world = ruled(SYNTAX);
    let output = world.run(&["run", "--", "sh", "-c", "echo '{' > a.json"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in [
        "what the command wrote was taken back",
        "syntax in",
        "a.json",
        "backout redo ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!world.path("a.json").exists());
    let id = newest(&world, "run");
    let shown = world.ok(&["show", &id]);
    assert!(shown.contains("syntax in"), "{shown}");
}

#[test]
fn a_warning_is_a_note_and_the_code_of_the_command_counts() {
    let world = ruled(&format!("{SYNTAX}on-failure = 'warn'\n"));
    let (code, ran) = run(&world, "echo '{' > a.json; exit 7");
    assert_eq!(code, 7);
    assert_eq!(ran["status"], "committed", "{ran}");
    assert!(ran["notes"].to_string().contains("syntax in"), "{ran}");
    assert_eq!(world.read("a.json"), "{\n");
    // A command that failed by itself keeps its own code also if it is taken back.
    let world = ruled(SYNTAX);
    let (code, ran) = run(&world, "echo '{' > a.json; exit 7");
    assert_eq!((code, ran["status"].as_str().unwrap()), (7, "undone"));
    assert!(!world.path("a.json").exists());
}

#[test]
fn a_check_of_ones_own_sees_what_the_command_wrote() {
    let world = ruled("");
    let program = script(&world, "validator", "grep -q good \"$1\"");
    world.file(
        "backout.toml",
        &format!(
            "[[check]]\nname = 'own'\npaths = ['conf/*']\ncommand = ['{program}', '{{staged}}']\n"
        ),
    );
    let (code, ran) = run(
        &world,
        "mkdir conf; echo good > conf/a; echo other > elsewhere",
    );
    assert_eq!(code, 0, "{ran}");
    let before = world.tree();
    let (code, ran) = run(&world, "echo good > conf/b; echo bad > conf/c");
    assert_eq!(code, 1, "{ran}");
    assert_eq!(reasons(&ran).len(), 1, "{ran}");
    assert!(world.tree().without_times() == before.clone().without_times());
    // By moving, linking, and in place.
    for line in [
        "echo bad > x; mv x conf/a",
        "echo bad > x; ln x conf/y; rm x",
        "echo bad >> conf/z; truncate -s 0 conf/a",
    ] {
        let before = world.tree();
        let (code, ran) = run(&world, line);
        assert_eq!(code, 1, "{line}: {ran}");
        assert!(
            world.tree().without_times() == before.clone().without_times(),
            "{line}"
        );
    }
    world.check_store();
}

#[test]
fn what_is_left_running_is_looked_at_when_it_ends() {
    let world = ruled(SYNTAX);
    world.file("a.json", "{}\n");
    let (code, _) = run(
        &world,
        "echo 1 > first; (while [ ! -e go ]; do sleep 0.01; done; echo '{' > a.json) >/dev/null 2>&1 &",
    );
    assert_eq!(code, 0);
    std::fs::write(world.path("go"), "").unwrap();
    // It is taken back when the watcher has seen the end of it.
    let is_back = || {
        let log = world.json(&["log", "-n", "10"]);
        let all = log["operations"].as_array().unwrap().clone();
        all.iter()
            .any(|it| it["verb"] == "undo" && it["status"] == "committed")
    };
    for _ in 0..1000 {
        if is_back() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(is_back(), "{}", world.ok(&["log"]));
    assert_eq!(world.read("a.json"), "{}\n");
    assert_eq!(world.read("first"), "1\n");
}

#[test]
fn a_watch_takes_a_command_back_and_reloads() {
    let world = ruled("");
    world.file("app.conf", "good\n");
    let reload = script(
        &world,
        "reload",
        &format!("echo x >> {}", world.scratch("reloads").display()),
    );
    world.file(
        "backout.toml",
        &format!("[[watch]]\nname = 'app'\npaths = ['app.conf']\nreload = ['{reload}']\ncommand = ['grep', '-q', 'good', 'app.conf']\ntries = 1\n"),
    );
    let (code, ran) = run(&world, "echo bad > app.conf");
    assert_eq!(
        (code, ran["status"].as_str().unwrap()),
        (1, "undone"),
        "{ran}"
    );
    assert!(
        ran["reasons"][0]["rule"]
            .as_str()
            .unwrap()
            .starts_with("watch `app` in"),
        "{ran}"
    );
    assert_eq!(world.read("app.conf"), "good\n");
    assert_eq!(lines(&world, "reloads"), 2);
    let (code, ran) = run(&world, "echo very good > app.conf");
    assert_eq!(
        (code, ran["status"].as_str().unwrap()),
        (0, "committed"),
        "{ran}"
    );
    assert_eq!(lines(&world, "reloads"), 3);
    world.ok(&["undo"]);
    assert_eq!(lines(&world, "reloads"), 4);
    world.check_store();
}

/// A command in a task waits for the task like any write, and a watch looks at once.
#[test]
fn a_task_and_a_watch() {
    let world = ruled(
        "[[watch]]\nname = 'app'\npaths = ['app.conf']\ncommand = ['grep', '-q', 'good', 'app.conf']\ntries = 1\n",
    );
    world.file("app.conf", "good\n");
    world.ok(&["task", "begin", "t"]);
    world.ok(&["--task", "t", "write", "other", "--text", "1"]);
    fails_watch(
        &world,
        &["--task", "t", "write", "app.conf", "--text", "bad\n"],
    );
    assert_eq!(world.read("app.conf"), "good\n");
    let output = world.run(&[
        "--task",
        "t",
        "run",
        "--",
        "sh",
        "-c",
        "echo bad > app.conf",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(world.read("app.conf"), "good\n");
    world.ok(&["--task", "t", "write", "app.conf", "--text", "still good\n"]);
    world.ok(&["task", "commit", "t"]);
    assert_eq!(world.read("app.conf"), "still good\n");
    world.check_store();
}
