//! Ways around a gate that are closed, and what happens to proposals when the world goes on.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::ruled::{code, ruled, waits};
use crate::trust::json;
use crate::world::World;

fn pending(world: &World) -> Vec<Value> {
    let reply = world.json(&["pending"]);
    reply["proposals"].as_array().unwrap().clone()
}

/// A way to change something in a tree.
type Change = fn(&Path);

#[test]
fn a_tree_that_changed_anywhere_below_is_not_what_was_proposed() {
    let changes: [(&str, Change); 8] = [
        ("content", |tree| {
            std::fs::write(tree.join("sub/run"), "evil\n").unwrap();
        }),
        ("content of the same size and time", |tree| {
            let file = tree.join("sub/run");
            let modified = file.metadata().unwrap().modified().unwrap();
            std::fs::write(&file, "GOOD\n").unwrap();
            let file = std::fs::File::options().write(true).open(file).unwrap();
            file.set_modified(modified).unwrap();
        }),
        ("mode", |tree| {
            let mode = std::fs::Permissions::from_mode(0o4777);
            std::fs::set_permissions(tree.join("sub/run"), mode).unwrap();
        }),
        ("a new name", |tree| {
            std::fs::write(tree.join("sub/new"), "x").unwrap();
        }),
        ("a name less", |tree| {
            std::fs::remove_file(tree.join("sub/other")).unwrap();
        }),
        ("another name", |tree| {
            std::fs::rename(tree.join("sub/other"), tree.join("sub/renamed")).unwrap();
        }),
        ("a link", |tree| {
            std::fs::remove_file(tree.join("sub/link")).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", tree.join("sub/link")).unwrap();
        }),
        ("a mode of a directory", |tree| {
            let mode = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(tree.join("sub"), mode).unwrap();
        }),
    ];
    for asked in [
        &["mv", "new", "dep/new"][..],
        &["rm", "-r", "dep/old"],
        &["mv", "dep/old", "out"],
    ] {
        for (what, change) in &changes {
            let world = ruled("[protect]\nask = ['dep']\n");
            for top in ["new", "dep/old"] {
                world.file(&format!("{top}/sub/run"), "good\n");
                world.file(&format!("{top}/sub/other"), "other\n");
                let link = world.path(top).join("sub/link");
                std::os::unix::fs::symlink("run", link).unwrap();
            }
            let id = waits(&world, asked);
            world.ok(&["pending", &id]);
            change(&world.path(if asked[1] == "new" { "new" } else { "dep/old" }));
            let before = world.tree();
            assert_eq!(code(&world, &["approve", &id]), "proposal-stale", "{what}");
            assert!(world.tree() == before, "{what}");
            assert_eq!(pending(&world).len(), 1);
        }
        // Untouched, and looked at by others, it is.
        let world = ruled("[protect]\nask = ['dep']\n");
        world.file("new/sub/run", "good\n");
        world.file("dep/old/sub/run", "good\n");
        let id = waits(&world, asked);
        let shown = world.ok(&["pending", &id]);
        assert!(shown.contains("with all that is in it:"), "{shown}");
        assert!(shown.contains("sub/run"), "{shown}");
        world.ok(&["write", "elsewhere", "--text", "1"]);
        world.ok(&["approve", &id]);
        world.ok(&["undo", &id]);
        assert_eq!(world.read("new/sub/run"), "good\n");
        assert_eq!(world.read("dep/old/sub/run"), "good\n");
        world.check_store();
    }
}

#[test]
fn a_single_file_that_moves_is_held_by_more_than_its_times() {
    let world = ruled("[protect]\nask = ['dep']\n");
    world.file("dep/x", "");
    world.file("f", "good\n");
    let id = waits(&world, &["mv", "f", "dep/f"]);
    let modified = world.path("f").metadata().unwrap().modified().unwrap();
    std::fs::write(world.path("f"), "evil\n").unwrap();
    let file = std::fs::File::options().write(true).open(world.path("f"));
    file.unwrap().set_modified(modified).unwrap();
    assert_eq!(code(&world, &["approve", &id]), "proposal-stale");
    assert!(!world.path("dep/f").exists());
}

#[test]
fn rules_mean_what_they_say_however_they_are_written() {
    for pattern in [
        "s/",
        "./s",
        "s//k",
        "s/./k",
        "x/../s",
        "../work/s",
        "{s,t}/k",
    ] {
        let world = World::in_memory();
        let name = world.path(".").canonicalize().unwrap();
        let name = name.file_name().unwrap().to_str().unwrap().to_owned();
        let pattern = pattern.replace("work", &name);
        world.file(
            "backout.toml",
            &format!("[protect]\ndeny = ['{pattern}']\n"),
        );
        world.file("s/k", "secret\n");
        let before = world.tree();
        let write = ["write", "s/k", "--text", "x"];
        assert_eq!(code(&world, &write), "gate", "{pattern}");
        assert!(world.tree() == before, "{pattern}");
    }
    let world = ruled("[protect]\ndeny = ['../elsewhere/s']\n");
    let report = json(&world, 1, &["write", "f", "--text", "x"]);
    assert!(report.to_string().contains("can match nothing"), "{report}");
}

#[test]
fn a_link_that_a_rule_names_protects_what_it_leads_to() {
    let world = ruled("[protect]\ndeny = ['secrets']\n");
    world.file("shared/k", "secret\n");
    std::os::unix::fs::symlink("shared", world.path("secrets")).unwrap();
    let before = world.tree();
    for arguments in [
        &["write", "secrets/k", "--text", "x"][..],
        &["write", "shared/k", "--text", "x"],
        &["write", "secrets/new", "--text", "x"],
        &["rm", "secrets"],
        &["rm", "-r", "shared"],
    ] {
        assert_eq!(code(&world, arguments), "gate", "{arguments:?}");
        assert!(world.tree() == before, "{arguments:?}");
    }
}

#[test]
fn what_comes_with_a_tree_is_judged_by_the_place_it_comes_to() {
    let world = ruled("[protect]\ndeny = ['d/secrets']\n");
    world.file("e/secrets/k", "k\n");
    world.file("e/free", "1\n");
    let before = world.tree();
    assert_eq!(code(&world, &["mv", "e", "d"]), "gate");
    assert_eq!(code(&world, &["cp", "-r", "e", "d"]), "gate");
    assert!(world.tree() == before);
    world.ok(&["mv", "e", "elsewhere"]);
}

#[test]
fn another_name_of_a_protected_file_does_not_change_its_rights() {
    let world = ruled("[protect]\ndeny = ['key']\n");
    world.file("key", "k\n");
    std::fs::hard_link(world.path("key"), world.path("second")).unwrap();
    let before = world.tree();
    assert_eq!(code(&world, &["chmod", "666", "second"]), "gate");
    assert!(world.tree() == before);
    // A write by the other name leaves the protected one as it is.
    world.ok(&["write", "second", "--text", "x"]);
    assert_eq!(world.read("key"), "k\n");
}

#[test]
fn what_stands_for_rules_and_is_no_file_refuses_at_once() {
    let write = ["write", "f", "--text", "1"];
    let world = World::in_memory();
    std::os::unix::fs::symlink("no-such", world.path("backout.toml")).unwrap();
    let report = json(&world, 1, &write);
    assert!(
        report.to_string().contains("a link that leads nowhere"),
        "{report}"
    );
    std::fs::remove_file(world.path("backout.toml")).unwrap();
    let mut pipe = std::process::Command::new("mkfifo");
    assert!(
        pipe.arg(world.path("backout.toml"))
            .status()
            .unwrap()
            .success()
    );
    let report = json(&world, 1, &write);
    assert!(report.to_string().contains("it is not a file"), "{report}");
    std::fs::remove_file(world.path("backout.toml")).unwrap();
    world.ok(&write);
}

#[test]
fn rules_that_break_while_somebody_approves_leave_the_proposal_waiting() {
    let world = ruled("[protect]\nask = ['f']\n");
    let id = waits(&world, &["write", "f", "--text", "1"]);
    for rules in ["[protect\n", "[protect]\ndeny = ['f']\n"] {
        world.file("backout.toml", rules);
        assert_eq!(code(&world, &["approve", &id]), "gate");
        assert!(!world.path("f").exists());
        assert_eq!(pending(&world).len(), 1);
    }
    world.file("backout.toml", "[protect]\nask = ['f']\n");
    world.ok(&["approve", &id]);
    assert_eq!(world.read("f"), "1");
}

#[test]
fn who_approves_gives_nothing_of_his_own_rights() {
    for (asked, made) in [
        (&["write", "d/f", "--text", "1"][..], "d/f"),
        (&["mkdir", "d/m"], "d/m"),
        (&["cp", "free", "d/c"], "d/c"),
    ] {
        let world = ruled("[protect]\nask = ['d']\n");
        world.file("d/x", "");
        world.file("free", "1");
        let id = waits(&world, asked);
        let approve = format!(
            "umask 077; exec {} approve {id}",
            env!("CARGO_BIN_EXE_backout")
        );
        let mut command = world.command(&[]);
        let backout = command.get_program().to_owned();
        assert_eq!(backout, env!("CARGO_BIN_EXE_backout"));
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &approve]).current_dir(world.path("."));
        for (name, value) in command.env("X", "").get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{}", crate::world::said(&output));
        let free = World::in_memory();
        free.file("d/x", "");
        free.file("free", "1");
        free.ok(asked);
        assert_eq!(world.tree().mode_of(made), free.tree().mode_of(made));
        world.ok(&["undo", &id]);
        assert!(!world.path(made).exists());
    }
}

#[test]
fn a_proposal_changed_nothing_and_is_not_the_newest_operation() {
    let world = ruled("[protect]\nask = ['d']\ndeny = ['s']\n");
    world.ok(&["write", "f", "--text", "1"]);
    let id = waits(&world, &["write", "-p", "d/a", "--text", "1"]);
    assert!(world.ok(&["diff", "@"]).contains('f'), "the write");
    let report = json(&world, 1, &["diff", &id]);
    assert_eq!(report["code"], "nothing-done", "{report}");
    assert!(report["next"].to_string().contains("backout pending"));
    assert_eq!(
        code(&world, &["restore", "d/a", "--from", &id]),
        "nothing-done"
    );
    let denied = json(&world, 1, &["write", "-p", "s/a", "--text", "1"]);
    let denied = denied["operation"].as_str().unwrap();
    assert_eq!(code(&world, &["diff", denied]), "nothing-done");
    world.ok(&["undo", "@"]);
    assert!(!world.path("f").exists());
    assert_eq!(pending(&world).len(), 1);
}

#[test]
fn a_task_does_not_end_over_its_proposals() {
    let world = ruled("[protect]\nask = ['f']\n");
    let proposed = |task: &str| {
        world.ok(&["task", "begin", task]);
        waits(&world, &["--task", task, "write", "f", "--text", "1"])
    };
    let id = proposed("t");
    let report = json(&world, 1, &["commit", "t"]);
    assert_eq!(report["code"], "task-waits", "{report}");
    assert!(
        report["next"].to_string().contains("backout approve"),
        "{report}"
    );
    world.ok(&["approve", &id]);
    world.ok(&["commit", "t"]);
    assert_eq!(world.read("f"), "1");
    world.ok(&["undo"]);
    let id = proposed("u");
    world.ok(&["rollback", "u"]);
    assert!(pending(&world).is_empty());
    assert!(
        world
            .ok(&["show", &id])
            .contains("its task was rolled back")
    );
    world.check_store();
}

#[test]
fn many_reasons_are_told_as_some_and_a_number() {
    let world = ruled("[protect]\ndeny = ['s']\nask = ['d']\n");
    for directory in ["s", "d"] {
        for number in 0..30 {
            world.file(&format!("{directory}/{number}"), "1");
        }
        let report = json(&world, 1, &["chmod", "-R", "600", directory]);
        let why = report["why"].as_array().unwrap();
        assert_eq!(why.len(), 11, "{report}");
        assert!(why[10].as_str().unwrap().starts_with("and 2"), "{report}");
        let id = report["operation"].as_str().unwrap();
        let shown = world.ok(&["show", id]);
        assert!(shown.contains("more like these"), "{shown}");
        assert!(shown.lines().count() < 80, "{shown}");
    }
}

#[test]
fn a_command_does_not_write_what_a_rule_protects() {
    for (script, is_held) in [
        ("echo X > s/key", true),
        ("echo X >> link", true),
        ("rm s/key", true),
        ("chmod 666 s/key", true),
        ("mv s t", true),
        ("mv free s/free", true),
        ("mkdir s/new", true),
        ("ln s/key other", true),
        ("mv up down", true),
        ("mv e sub/d", true),
        ("echo X > d/a", true),
        ("cat s/key > /dev/null; echo 2 > free", false),
        ("cp s/key copy", false),
    ] {
        let world = ruled("[protect]\ndeny = ['s', '**/keep', 'sub/d/x']\nask = ['d']\n");
        world.file("s/key", "secret\n");
        world.file("d/a", "one\n");
        world.file("free", "1\n");
        world.file("up/deep/keep", "1\n");
        world.file("e/x", "1\n");
        world.file("sub/y", "1\n");
        std::os::unix::fs::symlink("s/key", world.path("link")).unwrap();
        let before = world.tree();
        let output = world.run(&["run", "--", "sh", "-c", script]);
        let told = crate::world::said(&output);
        assert_eq!(output.status.success(), !is_held, "{script}: {told}");
        assert_eq!(
            told.contains("; the command was refused"),
            is_held,
            "{script}: {told}"
        );
        if is_held {
            let now = world.tree();
            assert!(now == before, "{script}: {}", now.difference(&before));
        }
        world.check_store();
    }
}

#[test]
fn an_agent_does_not_change_the_rules_by_a_command_either() {
    let world = ruled("[protect]\ndeny = ['s']\n");
    world.file("other", "");
    let before = world.tree();
    for script in [
        "rm backout.toml",
        "mv other backout.toml",
        "echo > backout.toml",
    ] {
        // Whoever gave no name may be an agent all the same.
        for who in [&["--agent", "bob"][..], &[]] {
            let line = [who, &["run", "--", "sh", "-c", script]].concat();
            let output = world.run(&line);
            assert!(!output.status.success(), "{who:?}: {script}");
            assert!(world.tree() == before, "{who:?}: {script}");
        }
    }
    world.ok(&["rm", "backout.toml"]);
}

#[test]
fn a_mode_that_was_approved_is_not_given_to_another_file() {
    let changes: [(&str, Change); 2] = [
        ("another file", |file| {
            std::fs::remove_file(file).unwrap();
            std::fs::write(file, "evil\n").unwrap();
        }),
        ("other bytes", |file| {
            std::fs::write(file, "evil\n").unwrap();
        }),
    ];
    for (what, change) in changes {
        let world = ruled("[protect]\nask = [\"dep\"]\n");
        world.file("dep/s", "good\n");
        let id = waits(&world, &["--agent", "bot", "chmod", "4755", "dep/s"]);
        change(&world.path("dep/s"));
        assert_eq!(code(&world, &["approve", &id]), "proposal-stale", "{what}");
        let mode = world.path("dep/s").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o644, "{what}");
    }
    let world = ruled("[protect]\nask = [\"dep\"]\n");
    world.file("dep/s", "good\n");
    let id = waits(&world, &["--agent", "bot", "chmod", "4755", "dep/s"]);
    world.ok(&["approve", &id]);
    let mode = world.path("dep/s").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o4755);
}
