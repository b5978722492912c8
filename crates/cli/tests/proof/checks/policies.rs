//! Policies that are built in: secrets, permissions, rights without a limit, and how much one operation may touch.

use super::{denied, ruled, waits};
use crate::world::{World, said};

/// Made of two parts, so that nobody finds a secret in this file.
fn token() -> String {
    format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
}

#[test]
fn new_secrets_are_found_and_never_told_whole() {
    let world = ruled("[policy]\nsecrets = 'deny'\n");
    let token = token();
    let text = format!("url = 'x'\ntoken = '{token}'\n");
    let output = world.run(&["write", "app.toml", "--text", &text]);
    let printed = said(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("policy.secrets in"), "{printed}");
    assert!(!printed.contains(&token), "{printed}");
    let found = denied(&world, &["write", "app.toml", "--text", &text]);
    assert_eq!(found[0]["place"]["line"], 2, "{found:?}");
    for arguments in [
        &["log", "-n", "9"][..],
        &["show", "@"],
        &["--json", "log"],
        &["--json", "show", "@"],
    ] {
        let printed = said(&world.run(arguments));
        assert!(!printed.contains(&token), "{arguments:?}: {printed}");
    }
    // The journal has no word of it either.
    for entry in std::fs::read_dir(world.state()).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap_or_default();
        let is_in = bytes
            .windows(token.len())
            .any(|part| part == token.as_bytes());
        assert!(!is_in, "{}", entry.path().display());
    }
    // One that was there before is nobody's news.
    world.file("old.toml", &text);
    world.ok(&["write", "--append", "old.toml", "--text", "more = 1\n"]);
    world.ok(&["set", "old.toml", "url", "y"]);
    // By a command as well.
    let output = world.run(&["run", "--", "sh", "-c", &format!("echo '{token}' > leaked")]);
    let printed = said(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(!world.path("leaked").exists());
    let why = printed.lines().filter(|line| line.contains("why:"));
    assert!(why.clone().count() > 0, "{printed}");
    assert!(
        why.into_iter().all(|line| !line.contains(&token)),
        "{printed}"
    );
}

#[test]
fn open_permissions_are_found() {
    let world = ruled("[policy]\npermissions = 'deny'\n");
    world.file("a", "x\n");
    for arguments in [
        &["chmod", "0666", "a"][..],
        &["chmod", "4755", "a"],
        &["chmod", "2755", "a"],
        &["write", "b", "--text", "x", "--mode", "0777"],
        &["mkdir", "d", "--mode", "0777"],
    ] {
        let found = denied(&world, arguments);
        assert!(
            found[0]["found"].as_str().unwrap().contains("its mode "),
            "{found:?}"
        );
        assert!(
            found[0]["rule"]
                .as_str()
                .unwrap()
                .starts_with("policy.permissions in")
        );
    }
    world.ok(&["chmod", "0600", "a"]);
    world.ok(&["chmod", "0755", "a"]);
    let output = world.run(&["run", "--", "chmod", "0666", "a"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(world.path("a")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o755);
}

#[test]
fn rights_without_a_limit_are_found() {
    let world = ruled("[policy]\nwildcard-iam = 'deny'\n");
    let policy = |action: &str| {
        format!(
            r#"{{"Version": "2012-10-17", "Statement": [{{"Effect": "Allow", "Action": "{action}", "Resource": "*"}}]}}"#
        )
    };
    world.ok(&["write", "p.json", "--text", &policy("s3:GetObject")]);
    denied(&world, &["write", "p.json", "--text", &policy("*")]);
    denied(
        &world,
        &[
            "write",
            "p.yaml",
            "--text",
            "Version: '2012-10-17'\nStatement:\n- Effect: Allow\n  Action: '*'\n  Resource: '*'\n",
        ],
    );
}

fn many(world: &World, directory: &str, count: usize) {
    for number in 0..count {
        world.file(&format!("{directory}/{number}"), "0123456789");
    }
}

#[test]
fn the_blast_radius_is_limited() {
    let world = ruled("[policy]\nfiles-max = 5\nbytes-max = 1000\n");
    many(&world, "src", 6);
    many(&world, "few", 5);
    let id = waits(&world, &["cp", "-r", "src", "copy"]);
    let shown = world.ok(&["pending", &id]);
    assert!(shown.contains("policy.files-max in"), "{shown}");
    waits(&world, &["rm", "-r", "src"]);
    world.ok(&["rm", "-r", "few"]);
    world.ok(&["undo"]);
    waits(&world, &["write", "large", "--text", &"x".repeat(1001)]);
    world.ok(&["write", "large", "--text", &"x".repeat(1000)]);
    // A move brings everything to another name, however much it is.
    world.ok(&["mv", "few", "elsewhere"]);
    let before = world.tree();
    for line in [
        "for i in 1 2 3 4 5 6; do echo > n$i; done",
        "rm -r src",
        "head -c 1001 /dev/zero > big",
    ] {
        let output = world.run(&["run", "--", "sh", "-c", line]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {text}");
        assert!(text.contains("-max in"), "{line}: {text}");
        assert!(
            world.tree().without_times() == before.clone().without_times(),
            "{line}"
        );
    }
    world.ok(&[
        "run",
        "--",
        "sh",
        "-c",
        "for i in 1 2 3 4 5; do echo > n$i; done",
    ]);
    world.check_store();
}

#[test]
fn half_of_a_project_does_not_go_unasked() {
    let world = ruled("[policy]\nremoved-percent-max = 50\n");
    many(&world, "a", 30);
    many(&world, "b", 20);
    let id = waits(&world, &["rm", "-r", "a"]);
    let shown = world.ok(&["pending", &id]);
    assert!(shown.contains("policy.removed-percent-max in"), "{shown}");
    assert!(shown.contains("% of the files in"), "{shown}");
    world.ok(&["rm", "-r", "b"]);
    world.ok(&["undo"]);
    for line in ["rm -r a", "rm a/*", "find . -name '1*' -delete; rm -r a"] {
        let before = world.tree();
        let output = world.run(&["run", "--", "sh", "-c", line]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {text}");
        assert!(
            text.contains("policy.removed-percent-max in"),
            "{line}: {text}"
        );
        assert!(
            world.tree().without_times() == before.clone().without_times(),
            "{line}"
        );
    }
    world.ok(&["run", "--", "rm", "-r", "b"]);
    world.check_store();
}
