//! Calls of file tools, told before and after, or not.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::world::{World, passed, refused, text};

#[test]
fn what_a_tool_writes_is_recorded_told_to_the_model_and_undone() {
    let world = World::new();
    world.write("a.txt", "before\n");
    let before = world.tree();
    let told = world.tool_writes("p1", "c1", "a.txt", "after\n");
    let operations = world.operations();
    let short = &operations[0]["id"].as_str().unwrap()[..8];
    assert_eq!(
        told,
        format!("Backout: operation {short}; `backout undo {short}` takes it back")
    );
    assert_eq!(operations[0]["status"], "committed");
    assert_eq!(operations[0]["agent"], "claude-code");
    world.backout(&["undo", short]);
    assert_eq!(world.tree(), before);
    world.backout(&["redo"]);
    assert_eq!(world.read("a.txt"), "after\n");
}

#[test]
fn a_new_file_in_new_directories_goes_with_them() {
    let world = World::new();
    let before = world.tree();
    let event = |name| world.write_event(name, "c1", "deep/er/new.txt");
    passed(&world.hook("claude-code", &event("PreToolUse")));
    std::fs::create_dir_all(world.path("deep/er")).unwrap();
    world.write("deep/er/new.txt", "x");
    passed(&world.hook("claude-code", &event("PostToolUse")));
    world.backout(&["undo"]);
    assert_eq!(world.tree(), before);
}

#[test]
fn a_write_through_a_link_is_kept_where_it_leads() {
    let world = World::new();
    world.write("real.txt", "before");
    std::os::unix::fs::symlink("real.txt", world.path("link.txt")).unwrap();
    let before = world.tree();
    world.tool_writes("p1", "c1", "link.txt", "after");
    assert_eq!(world.read("real.txt"), "after");
    world.backout(&["undo"]);
    assert_eq!(world.tree(), before);
}

#[test]
fn the_same_call_twice_is_one_operation() {
    let world = World::new();
    let before = world.write_event("PreToolUse", "c1", "a.txt");
    passed(&world.hook("claude-code", &before));
    passed(&world.hook("claude-code", &before));
    world.write("a.txt", "x");
    let after = world.write_event("PostToolUse", "c1", "a.txt");
    passed(&world.hook("claude-code", &after));
    assert_eq!(
        passed(&world.hook("claude-code", &after)),
        "",
        "nothing more to tell"
    );
    passed(&world.hook("claude-code", &before));
    assert_eq!(world.operations().len(), 1);
    world.backout(&["undo"]);
    assert!(!world.path("a.txt").exists());
}

#[test]
fn two_calls_at_once_are_two_operations_whoever_ends_first() {
    let world = World::new();
    let event = |name, call, file| world.write_event(name, call, file);
    passed(&world.hook("claude-code", &event("PreToolUse", "c1", "a.txt")));
    passed(&world.hook("claude-code", &event("PreToolUse", "c2", "b.txt")));
    world.write("b.txt", "b");
    passed(&world.hook("claude-code", &event("PostToolUse", "c2", "b.txt")));
    world.write("a.txt", "a");
    passed(&world.hook("claude-code", &event("PostToolUse", "c1", "a.txt")));
    assert_eq!(world.operations().len(), 2);
    world.backout(&["undo", "b.txt"]);
    assert!(!world.path("b.txt").exists() && world.path("a.txt").exists());
}

#[test]
fn calls_without_names_are_joined_by_tool_and_input() {
    let world = World::new();
    let event = |name: &str, file: &str| {
        let input = json!({"file_path": world.path(file), "content": "x"});
        json!({"session_id": "s", "cwd": world.work(), "hook_event_name": name, "timestamp": "t",
            "tool_name": "write_file", "tool_input": input})
    };
    for file in ["a.txt", "b.txt"] {
        passed(&world.hook("gemini", &event("BeforeTool", file)));
    }
    for file in ["b.txt", "a.txt"] {
        world.write(file, file);
        let told = passed(&world.hook("gemini", &event("AfterTool", file)));
        assert!(told.starts_with("Backout: operation"), "{told}");
    }
    let operations = world.operations();
    let summaries: Vec<&str> = operations
        .iter()
        .map(|it| it["summary"].as_str().unwrap())
        .collect();
    let names = ["a.txt", "b.txt"].map(|file| format!("write {}", world.path(file).display()));
    assert_eq!(summaries, names);
}

#[test]
fn a_call_that_nobody_ends_is_settled_by_looking() {
    let world = World::new();
    world.write("written.txt", "before");
    for (call, file) in [("c1", "written.txt"), ("c2", "denied.txt")] {
        passed(&world.hook("claude-code", &world.write_event("PreToolUse", call, file)));
    }
    world.write("written.txt", "after");
    let statuses = |world: &World| {
        let operations = world.operations().into_iter();
        let mut all: Vec<String> = operations
            .map(|it| it["status"].as_str().unwrap().to_owned())
            .collect();
        all.sort();
        all
    };
    // Whoever is asked meanwhile leaves them alone: the agent, which is this process, lives.
    world.backout(&["recover"]);
    assert_eq!(statuses(&world), ["armed", "armed"]);
    passed(&world.hook("claude-code", &world.event("Stop", &json!({}))));
    assert_eq!(statuses(&world), ["aborted", "committed"]);
    world.backout(&["undo"]);
    assert_eq!(world.read("written.txt"), "before");
}

#[test]
fn what_a_call_that_has_not_ended_wrote_does_not_go_with_the_way_back_of_another_agent() {
    let world = World::new();
    world.write("a.txt", "before");
    world.backout(&["--agent", "ann", "checkpoint", "good", "--roots", "."]);
    passed(&world.hook(
        "claude-code",
        &world.write_event("PreToolUse", "c1", "a.txt"),
    ));
    world.write("a.txt", "theirs");
    for dry in [&["-n"][..], &[]] {
        let back = [&["--agent", "ann", "rollback", "--to", "good"], dry].concat();
        let output = world.program().args(&back).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains("--others"), "{}", text(&output));
        assert_eq!(world.read("a.txt"), "theirs");
    }
    world.backout(&["--agent", "ann", "rollback", "--to", "good", "--others"]);
    assert_eq!(world.read("a.txt"), "before");
}

#[test]
fn a_call_that_was_given_up_and_writes_after_all_is_recorded() {
    let world = World::new();
    world.write("a.txt", "before");
    passed(&world.hook(
        "claude-code",
        &world.write_event("PreToolUse", "c1", "a.txt"),
    ));
    passed(&world.hook("claude-code", &world.event("Stop", &json!({}))));
    assert_eq!(world.operations()[0]["status"], "aborted");
    world.write("a.txt", "late");
    let told = passed(&world.hook(
        "claude-code",
        &world.write_event("PostToolUse", "c1", "a.txt"),
    ));
    assert!(told.starts_with("Backout: operation "), "{told}");
    world.backout(&["undo"]);
    assert_eq!(world.read("a.txt"), "before");
}

#[test]
fn a_call_of_an_agent_that_died_is_settled_by_the_next_command() {
    let world = World::new();
    world.write("a.txt", "before");
    let event = world.write_event("PreToolUse", "c1", "a.txt");
    // An agent that tells of a call and dies: the hook's parent is a shell, and above it this one.
    let script = format!("{} hook claude-code; exit 0", env!("CARGO_BIN_EXE_backout"));
    let mut agent = Command::new("python3");
    agent.args([
        "-c",
        "import subprocess,sys; subprocess.run(['sh','-c',sys.argv[1]], stdin=sys.stdin)",
        &script,
    ]);
    agent
        .env("HOME", world.home())
        .env_remove("BACKOUT_STATE_DIR");
    let mut child = agent.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(
        &mut child.stdin.take().unwrap(),
        event.to_string().as_bytes(),
    )
    .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(world.operations()[0]["status"], "armed");
    world.write("a.txt", "after");
    world.backout(&["recover"]);
    assert_eq!(world.operations()[0]["status"], "committed");
    world.backout(&["undo"]);
    assert_eq!(world.read("a.txt"), "before");
}

#[test]
fn what_a_rule_protects_is_refused_before_it_is_written() {
    let world = World::new();
    world.write("backout.toml", "[protect]\ndeny = [\"secrets/**\"]\n");
    let event = world.write_event("PreToolUse", "c1", "secrets/key");
    let line = refused(&world.hook("claude-code", &event));
    assert!(line.starts_with("backout: not allowed: "), "{line}");
    assert!(line.contains("secrets/**"), "{line}");
    assert_eq!(world.operations()[0]["status"], "refused");
}

#[test]
fn what_a_check_denies_is_taken_back_and_the_model_is_told() {
    let world = World::new();
    world.write("backout.toml", "[syntax]\n");
    world.write("app.json", "{\"port\": 1}\n");
    let told = world.tool_writes("p1", "c1", "app.json", "{\"port\": \n");
    assert!(
        told.starts_with("Backout took this write back, and the files are as they were before: "),
        "{told}"
    );
    assert_eq!(world.read("app.json"), "{\"port\": 1}\n");
    assert_eq!(world.operations().last().unwrap()["status"], "undone");
}

#[test]
fn a_watch_looks_at_what_a_file_tool_wrote_and_takes_it_back() {
    let world = World::new();
    let rules = |command: &str| {
        let watch = "[[watch]]\nname = \"w\"\npaths = [\"app.conf\"]\noperations = [\"write\"]\ntries = 1\n";
        let reload = "reload = [\"sh\", \"-c\", \"cat app.conf >> seen\"]\n";
        format!("{watch}{reload}command = [\"grep\", \"-q\", \"{command}\", \"app.conf\"]\n")
    };
    world.write("backout.toml", &rules("good"));
    world.write("app.conf", "good old\n");
    let told = world.tool_writes("p1", "c1", "app.conf", "good new\n");
    assert!(!told.contains("took this write back"), "{told}");
    assert_eq!(world.read("app.conf"), "good new\n");
    assert_eq!(world.operations().last().unwrap()["status"], "committed");
    let told = world.tool_writes("p1", "c2", "app.conf", "bad\n");
    assert!(
        told.starts_with("Backout took this write back, and the files are as they were before: "),
        "{told}"
    );
    assert!(told.contains("watch `w` in "), "{told}");
    assert_eq!(world.read("app.conf"), "good new\n");
    let statuses = world.operations();
    assert!(
        statuses.iter().any(|it| it["status"] == "undone"),
        "{statuses:?}"
    );
    // What uses it has what is there again.
    assert_eq!(world.read("seen"), "good new\nbad\ngood new\n");
}

#[test]
fn a_check_for_writes_looks_at_what_a_file_tool_wrote() {
    let world = World::new();
    let check = "[[check]]\nname = \"c\"\npaths = [\"*.json\"]\noperations = [\"write\"]\n";
    world.write(
        "backout.toml",
        &format!("{check}values = [{{ key = \"port\", max = 9 }}]\n"),
    );
    let told = world.tool_writes("p1", "c1", "app.json", "{\"port\": 10}\n");
    assert!(told.starts_with("Backout took this write back"), "{told}");
    let rule = "[[rule]]\nname = \"r\"\nwhen = 'operation.verb == \"write\"'\n";
    world.write("backout.toml", rule);
    let told = world.tool_writes("p1", "c2", "b.json", "{}\n");
    assert!(told.starts_with("Backout took this write back"), "{told}");
}

#[test]
fn a_shell_command_without_the_seam_is_refused_or_reported() {
    let world = World::new();
    let event = |name: &str| {
        let input = json!({"command": "rm x"});
        world.event(
            name,
            &json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": "c1"}),
        )
    };
    let line = refused(&world.hook("claude-code", &event("PreToolUse")));
    assert!(
        line.starts_with("backout: shell commands would run unrecorded, so they are refused: ")
            && line.contains("CLAUDE_CODE_SHELL_PREFIX is not set"),
        "{line}"
    );
    let said = event("PreToolUse").to_string();
    let other = [("CLAUDE_CODE_SHELL_PREFIX", "/usr/bin/time")];
    let line = refused(&world.hook_with("claude-code", said.as_bytes(), &other));
    assert!(line.contains("is `/usr/bin/time`"), "{line}");
    let output = world.hook("claude-code", &event("PostToolUse"));
    let told = passed(&output);
    assert!(
        told.starts_with("Backout did not see this command run: what it changed is not recorded and cannot be undone. See `backout doctor`: rm x"),
        "{told}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("systemMessage"));
}

#[test]
fn tools_that_write_nothing_cost_nothing() {
    let world = World::new();
    let event = world.event(
        "PreToolUse",
        &json!({"tool_name": "Read", "tool_input": {"file_path": "/x"}}),
    );
    passed(&world.hook("claude-code", &event));
    passed(&world.hook("claude-code", &world.event("SomethingNew", &json!({}))));
    assert!(
        !world.home().join(".local").exists(),
        "not even a store is made"
    );
}

#[test]
fn a_write_that_nobody_announced_is_reported() {
    let world = World::new();
    let told = passed(&world.hook(
        "claude-code",
        &world.write_event("PostToolUse", "c9", "a.txt"),
    ));
    assert!(
        told.starts_with("Backout was not told of this Write before it wrote"),
        "{told}"
    );
}

#[test]
fn a_patch_of_codex_is_one_operation_of_all_its_files() {
    let world = World::new();
    world.write("a.txt", "one\n");
    world.write("gone.txt", "gone\n");
    let before = world.tree();
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Delete File: gone.txt\n*** Add File: new.txt\n+n\n*** End Patch\n";
    let event = |name: &str| {
        json!({"session_id": "s", "turn_id": "t", "cwd": world.work(), "hook_event_name": name,
            "tool_name": "apply_patch", "tool_input": {"command": patch}, "tool_use_id": "c"})
    };
    passed(&world.hook("codex", &event("PreToolUse")));
    world.write("a.txt", "two\n");
    world.write("new.txt", "n\n");
    std::fs::remove_file(world.path("gone.txt")).unwrap();
    passed(&world.hook("codex", &event("PostToolUse")));
    assert_eq!(world.operations().len(), 1);
    world.backout(&["rollback", "--prompt", "-1"]);
    assert_eq!(world.tree(), before);
}

#[test]
fn a_tool_that_failed_and_touched_only_a_directory_is_no_operation() {
    let world = World::new();
    let event = |name| world.write_event(name, "c1", "a.txt");
    passed(&world.hook("claude-code", &event("PreToolUse")));
    world.write("a.txt.tmp", "x");
    std::fs::remove_file(world.path("a.txt.tmp")).unwrap();
    assert_eq!(
        passed(&world.hook("claude-code", &event("PostToolUseFailure"))),
        ""
    );
    assert_eq!(world.operations()[0]["status"], "aborted");
}

/// Counts what a hook has the disk keep.
fn syncs(world: &World, event: &serde_json::Value) -> usize {
    let log = world.root().join("syncs.log");
    let file = world.root().join("event.json");
    std::fs::write(&file, event.to_string()).unwrap();
    let mut command = Command::new("strace");
    command.args([
        "-f",
        "-e",
        "trace=fsync,fdatasync,sync_file_range,syncfs",
        "-o",
    ]);
    command
        .arg(&log)
        .args([env!("CARGO_BIN_EXE_backout"), "hook", "claude-code"]);
    command
        .env("HOME", world.home())
        .env_remove("BACKOUT_STATE_DIR");
    let status = command
        .stdin(std::fs::File::open(file).unwrap())
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
    let told = std::fs::read_to_string(&log).unwrap();
    told.lines()
        .filter(|line| line.contains("sync") && line.contains('('))
        .count()
}

#[test]
fn a_call_costs_one_sync_before_and_none_after() {
    let world = World::new();
    world.write("a.txt", "before");
    world.prompt("p1", "the store is made here");
    assert_eq!(
        syncs(&world, &world.write_event("PreToolUse", "c1", "a.txt")),
        1
    );
    world.write("a.txt", "after");
    assert_eq!(
        syncs(&world, &world.write_event("PostToolUse", "c1", "a.txt")),
        0
    );
    assert_eq!(world.operations()[0]["status"], "committed");
}

#[test]
fn what_a_check_only_warns_of_is_told_to_the_model() {
    let world = World::new();
    world.write("backout.toml", "[syntax]\non-failure = \"warn\"\n");
    let told = world.tool_writes("p1", "c1", "app.json", "{\"port\": \n");
    assert!(told.contains("takes it back. The checks say: "), "{told}");
    assert_eq!(world.operations()[0]["status"], "committed");
}

#[test]
fn an_agent_that_runs_under_our_watch_is_recorded_by_that() {
    let world = World::new();
    let event = world.root().join("event.json");
    let said = world.write_event("PreToolUse", "c1", "a.txt").to_string();
    std::fs::write(&event, said).unwrap();
    let program = env!("CARGO_BIN_EXE_backout");
    let script = format!(
        "{program} hook claude-code < {} && echo x > a.txt",
        event.display()
    );
    let output = world
        .program()
        .args(["run", "--", "/bin/sh", "-c", &script])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let operations = world.operations();
    assert_eq!(operations.len(), 1, "{operations:?}");
    assert_eq!(operations[0]["verb"], "run");
    for (words, why) in [
        ("init codex", "what protects an agent is decided outside"),
        (
            "--quiet hook codex",
            "what an agent does inside of a command is recorded already",
        ),
    ] {
        let script = format!("{program} {words}");
        let output = world
            .program()
            .args(["run", "--", "/bin/sh", "-c", &script])
            .output()
            .unwrap();
        assert!(text(&output).contains(why), "{}", text(&output));
    }
}

#[test]
fn an_operation_says_how_a_tools_write_is_kept() {
    let world = World::new();
    world.tool_writes("p1", "c1", "a.txt", "x");
    let shown = world.backout(&["show", "@"]);
    let why = "what the names are that the tool will write is kept before it does";
    assert!(shown.contains(why) && shown.contains("  prompt"), "{shown}");
}
