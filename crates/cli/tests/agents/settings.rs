//! `backout init`: the agent's own settings, with ours in and out again.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::world::{World, text};

const MINE: &str = "{\n  // mine\n  \"permissions\": {\"deny\": [\"Bash(rm:*)\"]}\n}\n";

fn claude(world: &World) -> PathBuf {
    let directory = world.home().join(".claude");
    std::fs::create_dir_all(&directory).unwrap();
    directory.join("settings.json")
}

fn fails(world: &World, words: &[&str]) -> String {
    let output = world.program().args(words).output().unwrap();
    assert!(!output.status.success(), "{}", text(&output));
    text(&output)
}

#[test]
fn what_is_there_stays_and_comes_back_byte_for_byte() {
    let world = World::new();
    let file = claude(&world);
    std::fs::write(&file, MINE).unwrap();
    assert!(
        fails(&world, &["init", "claude-code", "--check"]).contains("Claude Code is not protected")
    );
    let shown = world.backout(&["init", "claude-code", "-n"]);
    assert!(
        shown.contains('+') && shown.contains("CLAUDE_CODE_SHELL_PREFIX"),
        "{shown}"
    );
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        MINE,
        "a preview writes nothing"
    );
    let said = world.backout(&["init", "claude-code"]);
    assert!(said.starts_with("Claude Code is protected"), "{said}");
    let now = std::fs::read_to_string(&file).unwrap();
    assert!(
        now.contains("// mine") && now.contains("PreToolUse"),
        "{now}"
    );
    world.backout(&["init", "claude-code", "--check"]);
    assert_eq!(
        world.backout(&["init", "claude-code"]),
        "Claude Code was protected already\n"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), now);
    assert_eq!(
        world.backout(&["init", "claude-code", "--remove"]),
        "Claude Code is no longer protected\n"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), MINE);
    assert_eq!(
        world.backout(&["init", "claude-code", "--remove"]),
        "Claude Code was not protected\n"
    );
}

#[test]
fn a_file_that_init_made_goes_with_it_and_the_undo_is_the_same() {
    let world = World::new();
    for agent in [
        "claude-code",
        "codex",
        "gemini",
        "qwen",
        "opencode",
        "copilot",
        "cline",
        "cursor",
    ] {
        world.backout(&["init", agent]);
        world.backout(&["init", agent, "--check"]);
        world.backout(&["init", agent, "--remove"]);
    }
    let mut left = Vec::new();
    for entry in walk(&world.home()) {
        if !entry.starts_with(world.home().join(".local")) {
            left.push(entry);
        }
    }
    assert_eq!(left, Vec::<PathBuf>::new());
    world.backout(&["init", "gemini", "--project"]);
    assert!(world.path(".gemini/settings.json").exists());
    world.backout(&["undo"]);
    assert!(!world.path(".gemini").exists());
}

fn walk(directory: &std::path::Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}

#[test]
fn what_others_wrote_since_stays_when_ours_is_taken_out() {
    let world = World::new();
    let file = claude(&world);
    std::fs::write(&file, MINE).unwrap();
    world.backout(&["init", "claude-code"]);
    let since = std::fs::read_to_string(&file)
        .unwrap()
        .replace("// mine", "// still mine");
    std::fs::write(&file, since).unwrap();
    world.backout(&["init", "claude-code", "--remove"]);
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        MINE.replace("// mine", "// still mine")
    );
}

#[test]
fn settings_that_are_not_ours_to_edit_are_refused_with_the_way_out() {
    let world = World::new();
    let file = claude(&world);
    std::fs::write(&file, "{\"hooks\": ").unwrap();
    let said = fails(&world, &["init", "claude-code"]);
    assert!(
        said.contains("was not touched")
            && said.contains("put it right first, or see the lines with"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"hooks\": ");
    std::fs::write(&file, "{}").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    let said = fails(&world, &["init", "claude-code"]);
    assert!(
        said.contains("it is read-only: somebody wants it to stay as it is")
            && said.contains("make it writable with `chmod u+w "),
        "{said}"
    );
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dotfiles/claude.json", &file).unwrap();
    let said = fails(&world, &["init", "claude-code"]);
    assert!(
        said.contains("it is a symbolic link to `/dotfiles/claude.json`")
            && said.contains("and put them where you keep your settings"),
        "{said}"
    );
    std::fs::remove_file(&file).unwrap();
    std::fs::write(
        &file,
        "{\"env\": {\"CLAUDE_CODE_SHELL_PREFIX\": \"/usr/bin/time\"}}",
    )
    .unwrap();
    let said = fails(&world, &["init", "claude-code"]);
    assert!(
        said.contains("is set to something else: /usr/bin/time"),
        "{said}"
    );
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    assert!(fails(&world, &["init", "claude-code"]).contains("it is no UTF-8 text"));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(fails(&world, &["init", "claude-code"]).contains("it is no file"));
}

#[test]
fn codex_is_trusted_only_if_somebody_says_so() {
    let world = World::new();
    world.backout(&["init", "codex"]);
    let config = world.home().join(".codex/config.toml");
    let before = std::fs::read_to_string(&config).unwrap();
    assert!(!before.contains("trusted_hash"), "{before}");
    world.backout(&["init", "codex", "--trust"]);
    let after = std::fs::read_to_string(&config).unwrap();
    assert_eq!(after.matches("trusted_hash").count(), 6, "{after}");
    let said = fails(&world, &["init", "gemini", "--trust"]);
    assert!(said.contains("Gemini CLI asks for no trust"), "{said}");
}

#[test]
fn an_agent_that_is_not_known_is_told_with_those_that_are() {
    let world = World::new();
    let said = fails(&world, &["init", "emacs"]);
    assert!(
        said.contains("`emacs` is no agent that is known here: claude-code, codex"),
        "{said}"
    );
}

#[test]
fn the_seam_runs_what_was_meant_and_says_why_if_it_cannot() {
    let world = World::new();
    world.backout(&["init", "codex"]);
    let seam = world
        .home()
        .join(".local/state/backout/agents/codex/bash-env");
    let bash = |command: &str| {
        let mut shell = std::process::Command::new("bash");
        shell
            .args(["-c", command])
            .current_dir(world.work())
            .env_clear();
        shell
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", world.home())
            .env("BASH_ENV", &seam);
        shell.output().unwrap()
    };
    let output = bash("echo hi > made.txt; bash -c 'echo in > inner.txt'; exit 7");
    assert_eq!(output.status.code(), Some(7), "{}", text(&output));
    let mut operations = world.operations();
    operations.retain(|it| it["verb"] == "run");
    assert_eq!(operations.len(), 1, "{operations:?}");
    assert_eq!(
        operations[0]["summary"],
        "run echo hi > made.txt; bash -c 'echo in > inner.txt'; exit 7"
    );
    assert_eq!(operations[0]["agent"], "codex");
    world.backout(&["undo"]);
    assert!(!world.path("made.txt").exists() && !world.path("inner.txt").exists());
    let script = std::fs::read_to_string(&seam).unwrap();
    std::fs::write(
        &seam,
        script.replace(env!("CARGO_BIN_EXE_backout"), "/gone/backout"),
    )
    .unwrap();
    let output = bash("echo hi > made.txt");
    assert_eq!(output.status.code(), Some(127));
    assert!(
        text(&output).contains("/gone/backout is gone, so nothing can be run"),
        "{}",
        text(&output)
    );
    assert!(!world.path("made.txt").exists());
}

#[test]
fn the_doctor_runs_what_is_set_up_and_tells_what_a_repository_switches_off() {
    let world = World::new();
    let file = claude(&world);
    let doctor = || text(&world.program().arg("doctor").output().unwrap());
    assert!(doctor().contains("not protected"), "{}", doctor());
    assert!(doctor().contains("protect it with `backout init claude-code`"));
    world.backout(&["init", "claude-code"]);
    assert!(
        doctor().contains("protected; its hook answers"),
        "{}",
        doctor()
    );
    let half = std::fs::read_to_string(&file)
        .unwrap()
        .replace("PostToolBatch", "Elsewhere");
    std::fs::write(&file, half).unwrap();
    assert!(
        doctor().contains("a part of what protects it is missing, or is of another version"),
        "{}",
        doctor()
    );
    assert!(
        fails(&world, &["init", "claude-code", "--check"])
            .contains("is not protected as it should be")
    );
    world.backout(&["init", "claude-code"]);
    std::fs::create_dir(world.path(".claude")).unwrap();
    world.write(
        ".claude/settings.json",
        "{\"disableAllHooks\": true, \"env\": {\"CLAUDE_CODE_SHELL_PREFIX\": \"\"}}",
    );
    let said = doctor();
    assert!(
        said.contains("disableAllHooks switches every hook off"),
        "{said}"
    );
    assert!(
        said.contains("CLAUDE_CODE_SHELL_PREFIX takes the shell away from Backout"),
        "{said}"
    );
    assert!(said.contains("take it out, or do not use the agent in this directory"));
    world.backout(&["init", "codex"]);
    assert!(doctor().contains("Codex does not trust the hooks, and skips them in silence"));
    world.backout(&["init", "codex", "--trust"]);
    std::fs::remove_dir_all(world.path(".claude")).unwrap();
    let output = world.program().arg("doctor").output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn without_a_home_nobody_knows_where_the_settings_are() {
    let world = World::new();
    let mut command = world.program();
    command
        .env_remove("HOME")
        .args(["--state-dir", "/nowhere", "init", "codex"]);
    let said = text(&command.output().unwrap());
    assert!(
        said.contains("it is not clear where your settings are"),
        "{said}"
    );
    assert!(said.contains("set it to your home directory"), "{said}");
}

#[test]
fn what_is_advised_for_a_project_means_that_project() {
    let world = World::new();
    let said = fails(&world, &["init", "claude-code", "--project", "--check"]);
    assert!(
        said.contains("protect it with `backout init claude-code --project`"),
        "{said}"
    );
    let mut init = world.program();
    let output = init.args(["init", "claude-code", "--project"]).output();
    let said = text(&output.unwrap());
    assert!(
        said.contains("with `backout init claude-code --project --check`"),
        "{said}"
    );
    world.backout(&["init", "claude-code", "--project", "--check"]);
    assert!(fails(&world, &["init", "claude-code", "--check"]).contains("is not protected"));
}

#[test]
fn what_would_change_is_shown_and_nothing_is_told_twice() {
    let world = World::new();
    world.backout(&["init", "gemini"]);
    assert_eq!(
        world.backout(&["init", "gemini", "-n"]),
        "nothing would change\n"
    );
    let output = world.program().args(["init", "gemini"]).output().unwrap();
    let said = text(&output);
    assert!(said.contains("reads the nearest `.env`"), "{said}");
    assert!(said.contains("see whether it works with `backout init gemini --check`; start the agent anew if it runs"), "{said}");
    let odd = world
        .program()
        .args(["--quiet", "hook", "codex", "PreToolUse"])
        .output()
        .unwrap();
    let said = text(&odd);
    assert!(
        said.contains("`hook` takes no other options than `--state-dir`, before it"),
        "{said}"
    );
    assert!(
        said.contains("call it as `backout hook codex PreToolUse`"),
        "{said}"
    );
}

#[test]
fn the_doctor_tells_of_a_hook_that_does_not_work() {
    let world = World::new();
    let file = claude(&world);
    std::fs::write(&file, "{").unwrap();
    let doctor = |how: &str| {
        let mut command = world.program();
        text(
            &command
                .arg("doctor")
                .env("BACKOUT_TEST_HOOK", how)
                .output()
                .unwrap(),
        )
    };
    assert!(
        doctor("").contains("put it right, then `backout init claude-code`"),
        "{}",
        doctor("")
    );
    std::fs::remove_file(&file).unwrap();
    world.backout(&["init", "claude-code"]);
    let said = doctor("panic");
    assert!(
        said.contains("its hook does not work: backout: nothing can be recorded"),
        "{said}"
    );
    assert!(doctor("late").contains("it did not answer in time"));
    for (name, text) in [
        (".codex/config.toml", "[features]\nhooks = false\n"),
        (
            ".gemini/settings.json",
            "{\"hooksConfig\": {\"enabled\": false}}",
        ),
    ] {
        std::fs::create_dir_all(world.path(name).parent().unwrap()).unwrap();
        world.write(name, text);
    }
    let said = doctor("");
    assert!(
        said.contains("features.hooks switches every hook off"),
        "{said}"
    );
    assert!(
        said.contains("hooksConfig.enabled switches every hook off"),
        "{said}"
    );
    let part = std::fs::read_to_string(&file)
        .unwrap()
        .replace("SubagentStop", "Elsewhere");
    std::fs::write(&file, part).unwrap();
    assert!(doctor("").contains("bring it up to date with `backout init claude-code`"));
}

#[test]
fn a_seam_that_is_called_wrongly_runs_nothing() {
    let world = World::new();
    for words in [
        &["seam", "emacs", "", "touch x"][..],
        &["seam", "codex", ""],
    ] {
        let output = world.program().args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(126));
        let said = text(&output);
        assert!(
            said.contains("backout: the command was not run: "),
            "{said}"
        );
    }
    assert!(!world.path("x").exists());
}

#[test]
fn a_hook_of_my_own_beside_ours_stays_when_ours_is_taken_out() {
    let world = World::new();
    let file = claude(&world);
    std::fs::write(&file, "{\"a\": 1}").unwrap();
    world.backout(&["init", "claude-code"]);
    let now = std::fs::read_to_string(&file).unwrap();
    let group = ["\"hooks\": [{", "\"hooks\":[{"];
    let at = group
        .iter()
        .find_map(|group| Some(now.find(group)? + group.len() - 1));
    let at = at.unwrap();
    let mine = "{\"type\": \"command\", \"command\": \"/bin/mine\"}, ";
    let mixed = format!("{}{mine}{}", &now[..at], &now[at..]);
    std::fs::write(&file, &mixed).unwrap();
    world.backout(&["init", "claude-code", "--check"]);
    world.backout(&["init", "claude-code", "--remove"]);
    let left = std::fs::read_to_string(&file).unwrap();
    assert!(
        left.contains("/bin/mine") && !left.contains("backout"),
        "{left}"
    );
    fails(&world, &["init", "claude-code", "--check"]);
}

#[test]
fn an_agent_whose_hooks_are_switched_off_is_not_called_protected() {
    let world = World::new();
    for (agent, name, text, key) in [
        (
            "claude-code",
            ".claude/settings.json",
            "{\"disableAllHooks\": true}\n",
            "disableAllHooks",
        ),
        (
            "codex",
            ".codex/config.toml",
            "[features]\nhooks = false\n",
            "features.hooks",
        ),
        (
            "gemini",
            ".gemini/settings.json",
            "{\"hooksConfig\": {\"enabled\": false}}\n",
            "hooksConfig.enabled",
        ),
    ] {
        for directory in [world.home(), world.work()] {
            let file = directory.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, text).unwrap();
            let more: &[&str] = if directory == world.home() {
                &[]
            } else {
                &["--project"]
            };
            for how in [&[][..], &["--check"]] {
                let said = fails(&world, &[&["init", agent], more, how].concat());
                assert!(said.contains("is not protected as it should be"), "{said}");
                assert!(
                    said.contains(&format!("{key} switches every hook off, in `")),
                    "{said}"
                );
                assert!(
                    said.contains("take it out, or do not use the agent in this directory"),
                    "{said}"
                );
                assert_eq!(said.contains("has its hooks"), how.is_empty(), "{said}");
            }
            std::fs::remove_file(&file).unwrap();
        }
    }
}

#[test]
fn a_file_that_cannot_be_written_shows_its_lines_all_the_same() {
    let world = World::new();
    let file = claude(&world);
    let kept = world.home().join("kept.json");
    std::fs::write(&kept, "{\"a\": 1}\n").unwrap();
    std::os::unix::fs::symlink(&kept, &file).unwrap();
    let refused = fails(&world, &["init", "claude-code"]);
    assert!(refused.contains("see the lines with `-n`"), "{refused}");
    for is_link in [true, false] {
        let said = fails(&world, &["init", "claude-code", "-n"]);
        assert!(
            said.contains('+') && said.contains("CLAUDE_CODE_SHELL_PREFIX"),
            "{said}"
        );
        assert!(
            said.contains("put the lines above where you keep your settings"),
            "{said}"
        );
        assert!(!said.contains("see the lines with"), "{said}");
        if is_link {
            std::fs::remove_file(&file).unwrap();
            std::fs::write(&file, "{\"a\": 1}\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
        }
    }
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "{\"a\": 1}\n");
}
