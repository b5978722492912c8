//! A `backout.toml` that cannot be read, and how its author finds out.

use std::os::unix::fs::PermissionsExt as _;

use super::{denied, denied_once, ruled};
use crate::trust::json;
use crate::world::{World, said};

const WRITE: [&str; 4] = ["write", "a", "--text", "x"];

#[test]
fn none_and_an_empty_one_refuse_nothing() {
    let world = World::in_memory();
    world.ok(&WRITE);
    world.file("backout.toml", "");
    world.ok(&["write", "a", "--text", "y"]);
    world.file("backout.toml", "# nothing\n");
    world.ok(&["write", "a", "--text", "z"]);
}

#[test]
fn every_mistake_is_told_at_once_and_nothing_is_written() {
    let world = ruled(
        "version = 1
[policy]
secrts = 'deny'
files-max = -1
[[check]]
paths = ['a']
[[rule]]
name = 'r'
when = 'operation.'
[[watch]]
name = 'w'
paths = ['a']
http = 'https://x/'
",
    );
    let found = serde_json::to_string(&denied(&world, &WRITE)).unwrap();
    for part in [
        "line 3",
        "`secrets`",
        "line 4",
        "line 5",
        "line 9",
        "line 13",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let checked = world.run(&["config", "check"]);
    assert_eq!(checked.status.code(), Some(1));
    let text = said(&checked);
    for part in [
        "backout.toml:3:",
        "backout.toml:4:",
        "backout.toml:5:",
        "backout.toml:9:",
        "backout.toml:13:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!world.path("a").exists());
    let reply = json(&world, 1, &["config", "check"]);
    assert_eq!(reply["reply"], "config-checked");
    assert!(
        reply["files"][0]["mistakes"].as_array().unwrap().len() >= 5,
        "{reply:#}"
    );
}

#[test]
fn what_cannot_be_opened_or_is_of_another_time_refuses() {
    for (text, words) in [
        ("version = 2\n[surprise]\n", "the file is of version 2"),
        ("[", "line 1"),
        ("version = 'one'\n", "line 1"),
        ("\u{0}", "line 1"),
    ] {
        let world = ruled(text);
        let found = denied_once(&world, &WRITE);
        assert!(found.contains(words), "{text:?}: {found}");
    }
    let world = World::in_memory();
    std::fs::write(world.path("backout.toml"), [0xff, 0xfe]).unwrap();
    denied(&world, &WRITE);
    std::fs::remove_file(world.path("backout.toml")).unwrap();
    std::fs::create_dir(world.path("backout.toml")).unwrap();
    let found = denied_once(&world, &WRITE);
    assert!(found.contains("it is not a file"), "{found}");
    // Others' rules that a user may not read.
    if !rustix::process::getuid().is_root() {
        return;
    }
    let world = World::in_memory().of_user(4242);
    world.file("backout.toml", "[protect]\ndeny = ['a']\n");
    let closed = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(world.path("backout.toml"), closed).unwrap();
    let found = denied_once(&world, &WRITE);
    assert!(found.contains("ermission denied"), "{found}");
}

#[test]
fn a_rule_that_matches_everything_refuses_everything_but_the_way_back() {
    let world = World::in_memory();
    world.ok(&WRITE);
    world.file("backout.toml", "[[rule]]\nname = 'stop'\nwhen = 'true'\n");
    for arguments in [
        &["write", "a", "--text", "y"][..],
        &["rm", "a"],
        &["mv", "a", "b"],
        &["mkdir", "d"],
        &["chmod", "0600", "a"],
        &["ln", "-s", "a", "l"],
    ] {
        let found = denied_once(&world, arguments);
        assert!(found.contains("its condition holds: true"), "{found}");
    }
    world.ok(&["undo"]);
    assert!(!world.path("a").exists());
    world.ok(&["redo"]);
    assert_eq!(world.read("a"), "x");
}

#[test]
fn a_first_file_is_written_says_something_and_is_undone() {
    let world = World::in_memory();
    let said = world.ok(&["config", "check"]);
    assert!(said.contains("no backout.toml counts here"), "{said}");
    world.ok(&["config", "init"]);
    let said = world.ok(&["config", "check"]);
    assert!(said.contains("can be read"), "{said}");
    let shown = world.ok(&["config", "show", "app.json"]);
    assert!(shown.contains("it is parsed as json"), "{shown}");
    world.fails(1, &["config", "init"]);
    // What it begins with does what it says.
    denied(&world, &["write", "app.json", "--text", "{"]);
    world.ok(&["write", "app.json", "--text", "{}"]);
    world.ok(&["undo"]);
    world.ok(&["undo"]);
    assert!(!world.path("backout.toml").exists());
    world.check_store();
}

/// The JSON Schema that editors get knows every key that the program knows, and the example of the design passes both.
#[test]
fn the_example_of_the_design_can_be_read() {
    let design = include_str!("../../../../../docs/design/checks.md");
    let example = design
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let world = ruled(example);
    world.file("schemas/app.json", "{}");
    let key = world.scratch(".config/backout/hook.key");
    std::fs::create_dir_all(key.parent().unwrap()).unwrap();
    std::fs::write(key, "sesame\n").unwrap();
    let said = world.ok(&["config", "check"]);
    assert!(said.contains("can be read"), "{said}");
    let shown = world.ok(&["config", "show", "nginx.conf"]);
    for part in [
        "check `nginx`",
        "watch `nginx answers`",
        "policy.secrets",
        "risk",
        "rule `no mass removal by night`",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let schema = world.json(&["config", "schema"]);
    for name in [
        "protect",
        "syntax",
        "policy",
        "check",
        "rule",
        "watch",
        "risk",
        "notify",
        "ladder",
        "triggers",
        "checkpoints",
    ] {
        assert!(schema["properties"][name].is_object(), "{name}");
    }
}

#[test]
fn a_file_can_only_add() {
    let world = ruled("[policy]\nfiles-max = 0\n[protect]\ndeny = ['below/key']\n");
    world.file(
        "below/backout.toml",
        "[policy]\nfiles-max = 100\n[syntax]\non-failure = 'off'\n",
    );
    denied(&world, &["write", "below/key", "--text", "x"]);
    super::waits(&world, &["write", "below/free", "--text", "x"]);
    // And what the file below wants counts only below.
    world.file("backout.toml", "");
    world.file("below/backout.toml", "[syntax]\n");
    world.ok(&["write", "a.json", "--text", "{"]);
    denied(&world, &["write", "below/a.json", "--text", "{"]);
}
