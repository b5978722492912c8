//! `backout sandbox` on the real thing: a failing command leaves no trace, at the end the tree is what the successful
//! commands alone would have made, and the real files are touched by nothing but `apply`, whoever dies when.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::world::{Tree, World, said};

/// An ordinary user.
const USER: u32 = 12_345;

/// Says everything about a tree, in the sandbox and outside.
const LISTING: &str =
    "find . -mindepth 1 -printf '%P %y %m %l\\n' | sort; find . -type f -exec md5sum {} + | sort";

/// What a command may do to the project. Those that end in `false` fail.
const DEEDS: [&str; 16] = [
    "echo more >> app.toml",
    "echo x > src/lib.rs; rm -f app.toml; false",
    "rm -rf src",
    "mkdir -p src/deep/er; echo n > src/deep/er/n",
    "rm -rf src; mkdir src; echo again > src/again; false",
    "rm -rf src; mkdir src; echo anew > src/anew",
    "ln -sf app.toml pointer; chmod 700 pointer 2>/dev/null || true; chmod 640 app.toml 2>/dev/null || true",
    "for i in 1 2 3 4 5; do echo $i > f$i; done; false",
    "for i in 1 2 3; do echo $i > f$i; done",
    "rm -f f1 f2; mv f3 f4 2>/dev/null || true",
    "rm -rf *; false",
    "echo a > both; ln -f both twin",
    "rm -rf deep2; mkdir -p deep2/x; echo z > deep2/x/z",
    "rm -rf deep2/x; echo file > deep2; false",
    "rm -rf deep2; echo file > deep2",
    "kill -9 $$",
];

fn is_failing(deed: &str) -> bool {
    deed.ends_with("false") || deed.starts_with("kill")
}

/// Runs a line in the sandbox and gives its exit code.
fn exec(world: &World, line: &str) -> i32 {
    let output = world.run(&["sandbox", "exec", "-c", line]);
    let code = output.status.code().unwrap();
    assert!(
        !said(&output).contains("error:"),
        "{line}: {}",
        said(&output)
    );
    code
}

/// Says what the sandbox shows.
fn inside(world: &World) -> String {
    world.ok(&["sandbox", "exec", "-c", LISTING])
}

fn bare(world: &World, line: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(world.path(""))
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn assert_same(now: &Tree, wanted: &Tree, what: &str) {
    assert!(now == wanted, "{what}:\n{}", now.difference(wanted));
}

/// Plays a history in a sandbox, and its successful part in a twin.
fn history(world: &World, twin: &World, mut seed: u64, length: usize) {
    let before = world.tree();
    world.ok(&["sandbox", "start"]);
    for step in 0..length {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let deed = DEEDS[usize::try_from(seed >> 33).unwrap() % DEEDS.len()];
        let code = exec(world, deed);
        if is_failing(deed) {
            assert_ne!(code, 0, "{deed}");
        } else {
            assert_eq!(code, 0, "{deed}");
            bare(twin, deed);
        }
        assert_eq!(inside(world), bare(twin, LISTING), "step {step}: {deed}");
    }
    assert_same(&world.tree(), &before, "while it waits");
    let changed = world.run(&["sandbox", "apply"]);
    if changed.status.success() {
        let wanted = twin.tree().without_times();
        assert_same(&world.tree().without_times(), &wanted, "applied");
        let after = world.tree();
        world.ok(&["undo"]);
        assert_same(&world.tree(), &before, "undone");
        world.ok(&["redo"]);
        assert_same(&world.tree(), &after, "redone");
        world.ok(&["undo"]);
    } else {
        assert!(
            said(&changed).contains("changes nothing"),
            "{}",
            said(&changed)
        );
    }
    world.ok(&["sandbox", "end", "--discard"]);
    assert_same(&world.tree(), &before, "ended");
    world.check_store();
    let left = fs::read_dir(world.state().join("layers")).unwrap().count();
    assert_eq!(left, 0, "layers are left");
}

#[test]
fn after_each_failure_the_tree_is_as_before_and_at_the_end_only_successes_count() {
    let (world, twin) = (World::new(), World::new());
    history(&world.with_project(), &twin.with_project(), 7, 14);
}

#[test]
fn another_history() {
    let (world, twin) = (World::new(), World::new());
    history(&world.with_project(), &twin.with_project(), 20_261_117, 14);
}

#[test]
fn a_history_in_memory_where_the_layers_lie_on_the_same_tmpfs() {
    let (world, twin) = (World::in_memory(), World::in_memory());
    history(&world.with_project(), &twin.with_project(), 99, 8);
}

#[test]
fn a_history_of_an_ordinary_user() {
    let (world, twin) = (World::new().of_user(USER), World::new().of_user(USER));
    for world in [&world, &twin] {
        for name in ["app.toml", "src/lib.rs"] {
            world.file(name, "port = 8080\n");
        }
        for name in ["", "src", "app.toml", "src/lib.rs"] {
            std::os::unix::fs::chown(world.path(name), Some(USER), Some(USER)).unwrap();
        }
    }
    world.ok(&["sandbox", "start"]);
    for deed in [
        "echo more >> app.toml",
        "rm -rf src",
        "mkdir src; echo x > src/x",
    ] {
        assert_eq!(exec(&world, deed), 0, "{deed}");
        bare(&twin, deed);
        assert_ne!(exec(&world, "rm -rf src; echo no > no; false"), 0);
        assert_eq!(inside(&world), bare(&twin, LISTING), "{deed}");
    }
    let before = world.tree();
    world.ok(&["sandbox", "apply"]);
    assert_eq!(bare(&world, LISTING), bare(&twin, LISTING));
    world.ok(&["undo"]);
    assert_same(&world.tree(), &before, "undone");
    world.ok(&["sandbox", "end", "--discard"]);
}

#[test]
fn directory_and_variables_are_carried_on_and_come_back_with_a_checkpoint() {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start"]);
    let said = |line: &str| world.ok(&["sandbox", "exec", "-c", line]);
    world.file("secret", "two\nlines = \"x\"");
    said("export SECRET=\"$(cat secret)\" GONE=1; cd src");
    assert_eq!(
        said("pwd; printf %s \"$SECRET\""),
        format!("{}\ntwo\nlines = \"x\"", world.path("src").display())
    );
    said("unset GONE HOME; cd ..");
    assert_eq!(
        said("echo \"${GONE-none} ${HOME-none}\"; pwd | sed s,.*/,,"),
        "none none\nwork\n"
    );
    // A program that is no shell has them, and a failing line changes neither.
    assert_eq!(
        world.ok(&["sandbox", "exec", "--", "sh", "-c", "printf %s \"$SECRET\""]),
        "two\nlines = \"x\""
    );
    world.fails(
        1,
        &["sandbox", "exec", "-c", "cd /; export SECRET=other; false"],
    );
    assert_eq!(
        said("echo \"$SECRET\" | wc -l; pwd | sed s,.*/,,"),
        "2\nwork\n"
    );
    world.ok(&["sandbox", "rollback", "1"]);
    assert_eq!(said("echo $GONE; pwd | sed s,.*/,,"), "1\nsrc\n");
    let shown = world.ok(&["--json", "sandbox", "checkpoints"]);
    assert!(!shown.contains("lines = "), "{shown}");
    let file = world.state().join("sandboxes/sandbox/variables-1.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn many_checkpoints_stay_low_and_each_can_be_gone_back_to() {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start"]);
    for number in 1..=45 {
        let line = format!(
            "echo {number} > n; echo {number} > f{number}; rm -f f{}; rm -rf d; mkdir d; echo {number} > d/{number}",
            number - 3
        );
        assert_eq!(exec(&world, &line), 0);
    }
    let list = world.json(&["sandbox", "list"]);
    let depth = list["sandboxes"][0]["depth"].as_u64().unwrap();
    assert!(depth <= 25, "{depth} layers");
    for number in [45, 10, 33, 20, 21, 45] {
        world.ok(&["sandbox", "rollback", &number.to_string()]);
        let seen = world.ok(&["sandbox", "exec", "-c", "cat n; ls d; ls -v f*"]);
        let first = number - 2;
        assert_eq!(
            seen,
            format!("{number}\n{number}\nf{first}\nf{}\nf{number}\n", number - 1)
        );
    }
    world.ok(&["sandbox", "apply"]);
    assert_eq!(world.read("n"), "45\n");
    assert!(!world.path("f42").exists());
    world.ok(&["undo"]);
    world.ok(&["sandbox", "end", "--discard"]);
}

#[test]
fn two_forks_share_what_is_below_and_nothing_else() {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start", "one"]);
    world.ok(&["sandbox", "exec", "one", "-c", "echo base > base"]);
    world.ok(&["sandbox", "exec", "one", "-c", "echo late > late"]);
    world.ok(&["sandbox", "fork", "one@1", "two"]);
    let run = |name: &str| {
        let line = format!("echo {name} > base; sleep 0.3; ls");
        world.spawn(&["sandbox", "exec", name, "-c", &line])
    };
    let (one, two) = (run("one"), run("two"));
    let said = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let (one, two) = (said(one), said(two));
    assert!(one.contains("late") && !two.contains("late"), "{one} {two}");
    world.ok(&["sandbox", "end", "one", "--discard"]);
    assert_eq!(
        world.ok(&["sandbox", "exec", "two", "-c", "cat base"]),
        "two\n"
    );
    world.ok(&["sandbox", "apply", "two"]);
    assert_eq!(world.read("base"), "two\n");
    world.ok(&["sandbox", "end", "two"]);
    assert_eq!(
        fs::read_dir(world.state().join("layers")).unwrap().count(),
        0
    );
}

#[test]
fn what_others_changed_meanwhile_is_a_conflict_and_nothing_is_half_applied() {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start"]);
    world.ok(&[
        "sandbox",
        "exec",
        "-c",
        "echo mine > app.toml; echo mine > src/lib.rs; echo new > new",
    ]);
    fs::write(world.path("app.toml"), "theirs\n").unwrap();
    fs::remove_file(world.path("src/lib.rs")).unwrap();
    let before = world.tree();
    let why = world.fails(1, &["sandbox", "apply"]);
    assert!(
        why.contains("app.toml") && why.contains("src/lib.rs"),
        "{why}"
    );
    assert_same(&world.tree(), &before, "refused");
    world.ok(&[
        "sandbox",
        "apply",
        "--exclude",
        "app.toml",
        "--exclude",
        "src/lib.rs",
    ]);
    assert_eq!(world.read("new"), "new\n");
    assert_eq!(world.read("app.toml"), "theirs\n");
    // What we applied ourselves is no conflict for what comes next, nor is it after an undo.
    world.ok(&["sandbox", "exec", "-c", "echo newer > new"]);
    world.ok(&["sandbox", "apply", "--only", "new"]);
    assert_eq!(world.read("new"), "newer\n");
    world.ok(&["undo"]);
    world.ok(&["sandbox", "apply", "--only", "new"]);
    assert_eq!(world.read("new"), "newer\n");
    world.check_store();
}

#[test]
fn daemons_and_those_who_ignore_signals_end_with_their_layer() {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start"]);
    let output = world.run(&[
        "sandbox",
        "exec",
        "-c",
        "(trap '' TERM; while :; do sleep 0.05; date > tick; done) >/dev/null 2>&1 & echo $! > pid",
    ]);
    assert!(
        said(&output).contains("outlived the command and was ended:"),
        "{}",
        said(&output)
    );
    let one = world.ok(&["sandbox", "exec", "-c", "cat tick 2>/dev/null; ls"]);
    assert_eq!(
        one,
        world.ok(&["sandbox", "exec", "-c", "cat tick 2>/dev/null; ls"])
    );
    let ran = world.run(&[
        "--json",
        "sandbox",
        "exec",
        "--timeout",
        "1s",
        "-c",
        "trap '' TERM INT; echo x > lost; echo words; while :; do sleep 1; done",
    ]);
    let reply: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        (reply["verdict"].as_str(), reply["output"].as_str()),
        (Some("timed-out"), Some("words\n"))
    );
    assert_eq!(reply["is_rolled_back"], true);
    assert!(
        reply["text"].as_str().unwrap().contains("was reverted"),
        "{reply}"
    );
    assert!(!inside(&world).contains("lost"));
    let long = world.json(&["sandbox", "exec", "-c", "seq 100000"]);
    let output = long["output"].as_str().unwrap();
    assert!(output.ends_with("100000\n") && output.len() <= 64 * 1024);
    assert_eq!(
        long["output_left_out"].as_u64().unwrap() + output.len() as u64,
        588_895
    );
}

#[test]
fn a_second_command_is_refused_while_one_runs_and_a_kept_failure_can_be_taken_back() {
    let world = World::new().with_project();
    world.ok(&["sandbox", "start"]);
    let mut first = world
        .command(&["sandbox", "exec", "-c", "echo ready; read x; exit 5"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(first.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let why = world.fails(1, &["sandbox", "exec", "-c", "true"]);
    assert!(
        why.contains("the sandbox `sandbox` is in use") && why.contains("read x"),
        "{why}"
    );
    world.fails(1, &["sandbox", "end", "--discard"]);
    drop(first.stdin.take());
    assert_eq!(first.wait().unwrap().code(), Some(5));
    let kept = world.fails(
        3,
        &[
            "sandbox",
            "exec",
            "--on-failure",
            "ask",
            "-c",
            "echo half > half; exit 3",
        ],
    );
    assert!(kept.contains("take back what it did with"), "{kept}");
    assert!(inside(&world).contains("half"));
    world.ok(&["sandbox", "rollback", "sandbox", "0"]);
    assert!(!inside(&world).contains("half"));
    // Our own store is out of reach inside.
    let nested = world.fails(
        1,
        &[
            "sandbox",
            "exec",
            "-c",
            &format!("{} write x < /dev/null", env!("CARGO_BIN_EXE_backout")),
        ],
    );
    assert!(
        nested.contains("cannot be used inside of a trial"),
        "{nested}"
    );
}

#[test]
fn only_below_its_roots_anything_can_be_written() {
    let world = World::new().with_project();
    let root = world.path("src").display().to_string();
    world.ok(&["sandbox", "start", "--root", &root]);
    world.ok(&["sandbox", "exec", "-c", "echo x > src/x"]);
    world.ok(&["sandbox", "exec", "-c", "cat src/x; rm src/x; ! echo y > y"]);
    world.fails(1, &["sandbox", "exec", "-c", "echo y > y || exit 1"]);
}

/// Dies at every crash point of a command, one after the other, each time in a world of its own.
fn at_every_point(prepare: impl Fn(&World), command: &[&str], check: impl Fn(&World, &str)) {
    for point in 1..200 {
        let world = World::in_memory().with_project();
        prepare(&world);
        let before = world.tree();
        let output = world
            .command(command)
            .env("BACKOUT_CRASH_AT", point.to_string())
            .output()
            .unwrap();
        let is_over = output.status.code().is_some();
        let what = format!("{command:?} at point {point}");
        world.ok(&["sandbox", "list"]);
        if !command.contains(&"apply") {
            assert_same(&world.tree(), &before, &what);
        }
        check(&world, &what);
        if is_over {
            assert!(point > 1, "{what}: {}", said(&output));
            return;
        }
    }
    panic!("{command:?} never ended");
}

fn two_commands(world: &World) {
    world.ok(&["sandbox", "start"]);
    assert_eq!(exec(world, "echo 1 > n; cd src"), 0);
}

fn is_one_of(world: &World, wanted: &[&str], what: &str) {
    let seen = world.ok(&["sandbox", "exec", "-c", "cat ../n n 2>/dev/null; true"]);
    assert!(wanted.contains(&seen.as_str()), "{what}: {seen:?}");
}

#[test]
fn death_in_a_command_leaves_the_state_before_or_after_it() {
    let good = ["sandbox", "exec", "-c", "echo 2 > ../n"];
    at_every_point(two_commands, &good, |world, what| {
        is_one_of(world, &["1\n", "2\n"], what);
    });
    let bad = ["sandbox", "exec", "-c", "echo 2 > ../n; false"];
    at_every_point(two_commands, &bad, |world, what| {
        is_one_of(world, &["1\n"], what);
    });
}

#[test]
fn death_in_a_rollback_a_fork_and_a_start() {
    let back = ["sandbox", "rollback", "0"];
    at_every_point(two_commands, &back, |world, what| {
        is_one_of(world, &["", "1\n"], what);
    });
    let fork = ["sandbox", "fork", "sandbox", "other"];
    at_every_point(two_commands, &fork, |world, what| {
        world.ok(&["sandbox", "exec", "sandbox", "-c", "test -f ../n"]);
        assert!(!what.is_empty());
    });
    at_every_point(
        |_| {},
        &["sandbox", "start", "new"],
        |world, what| {
            let again = world.run(&["sandbox", "start", "new"]);
            let exists = said(&again).contains("there is a sandbox `new` already");
            assert!(again.status.success() || exists, "{what}: {}", said(&again));
            world.ok(&["sandbox", "end", "new"]);
        },
    );
}

#[test]
fn death_in_an_apply_leaves_all_or_nothing() {
    at_every_point(two_commands, &["sandbox", "apply"], |world, what| {
        world.ok(&["recover"]);
        let is_there = world.path("n").exists();
        if is_there {
            assert_eq!(world.read("n"), "1\n", "{what}");
        } else {
            world.ok(&["sandbox", "apply"]);
            assert_eq!(world.read("n"), "1\n", "{what}");
        }
        world.ok(&["sandbox", "end", "--discard"]);
        world.check_store();
    });
}

#[test]
fn death_in_an_end_is_finished_by_the_next() {
    at_every_point(
        two_commands,
        &["sandbox", "end", "--discard"],
        |world, what| {
            let again = world.run(&["sandbox", "end", "--discard"]);
            let is_gone = said(&again).contains("there is no sandbox");
            assert!(
                again.status.success() || is_gone,
                "{what}: {}",
                said(&again)
            );
            let layers = world.state().join("layers");
            assert_eq!(fs::read_dir(layers).unwrap().count(), 0, "{what}");
        },
    );
}

#[test]
fn death_while_layers_are_merged() {
    for point in ["sandbox.flattening", "sandbox.flattened"] {
        let world = World::in_memory().with_project();
        world.ok(&["sandbox", "start"]);
        for number in 1..20 {
            assert_eq!(
                exec(&world, &format!("echo {number} > n; echo x > f{number}")),
                0
            );
        }
        let output = world
            .command(&["sandbox", "exec", "-c", "echo 20 > n; rm f7"])
            .env("BACKOUT_CRASH_AT", point)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), None, "{point}");
        let seen = world.ok(&["sandbox", "exec", "-c", "cat n; ls f* | wc -l; echo 21 > n"]);
        assert_eq!(seen, "20\n18\n", "{point}");
        let list = world.json(&["sandbox", "list"]);
        assert!(
            list["sandboxes"][0]["depth"].as_u64().unwrap() < 20,
            "{list}"
        );
        world.ok(&["sandbox", "rollback", "7"]);
        assert_eq!(
            world.ok(&["sandbox", "exec", "-c", "cat n; ls f* | wc -l"]),
            "7\n7\n"
        );
    }
}
