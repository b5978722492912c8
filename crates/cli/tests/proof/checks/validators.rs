//! Validators that misbehave. Each runs where it can change nothing, is ended with all that it started, and counts as a pass only
//! if it ended well.

use std::process::{Command, Output};

use super::{denied_once, script};
use crate::world::{World, said};

const USER: u32 = 4242;

/// A world in which a validator of these words looks at `app.conf`.
fn validated(world: World, validator: &str, more: &str) -> World {
    world.file("app.conf", "old\n");
    world.file("other", "theirs\n");
    let program = script(&world, "validator", validator);
    let check = format!(
        "[[check]]\nname = 'own'\npaths = ['app.conf']\ncommand = ['{program}', '{{staged}}', '{{target}}']\n{more}\n"
    );
    world.file("backout.toml", &check);
    world
}

/// Runs a test as root and as an ordinary user.
fn both(mut test: impl FnMut(&dyn Fn() -> World)) {
    test(&World::in_memory);
    if rustix::process::getuid().is_root() {
        test(&|| World::in_memory().of_user(USER));
    }
}

const WRITE: [&str; 4] = ["write", "app.conf", "--text", "new\n"];

/// Tells whether a process with this word in its arguments runs.
fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|it| std::fs::read(it.path().join("cmdline")).ok())
        .any(|line| line.windows(word.len()).any(|part| part == word.as_bytes()))
}

/// A number for `sleep` that nobody else waits for.
fn odd_time(world: &World) -> String {
    let name = world.scratch("").display().to_string();
    let digits: String = name.bytes().map(|byte| (byte % 10).to_string()).collect();
    format!("1000.{digits}")
}

#[test]
fn one_that_hangs_is_ended_with_its_children() {
    both(|world| {
        let world = world();
        let time = odd_time(&world);
        let world = validated(
            world,
            &format!("sleep {time} & setsid sleep {time} & (sleep {time} &); sleep {time}"),
            "timeout = '300ms'",
        );
        let before = world.tree();
        let found = denied_once(&world, &WRITE);
        assert!(found.contains("` took longer than 300ms"), "{found}");
        assert!(!runs(&time), "something is left");
        assert!(world.tree() == before);
    });
}

#[test]
fn one_that_dies_has_not_passed() {
    both(|world| {
        let world = validated(world(), "kill -SEGV $$", "");
        let found = denied_once(&world, &WRITE);
        assert!(found.contains("` was ended by signal 11"), "{found}");
        assert_eq!(world.read("app.conf"), "old\n");
    });
}

#[test]
fn one_that_leaves_a_daemon_passes_and_the_daemon_is_ended() {
    both(|world| {
        let world = world();
        let time = odd_time(&world);
        let world = validated(world, &format!("setsid sleep {time} & exit 0"), "");
        world.ok(&WRITE);
        assert!(!runs(&time), "the daemon is left");
        assert_eq!(world.read("app.conf"), "new\n");
    });
}

#[test]
fn one_that_writes_everywhere_changes_nothing() {
    both(|world| {
        let world = world();
        let (state, home) = (world.state().join("mine"), world.scratch("mine"));
        let line = format!(
            "echo x > \"$1\"; echo x > \"$2\"; echo x > {work}/other; rm -f {work}/gone; mkdir {work}/more
echo x > {}; echo x > {}; echo x > /tmp/backout-$$-proof; test ! -e {work}/gone",
            state.display(),
            home.display(),
            work = world.path("").display()
        );
        let world = validated(world, &line, "");
        world.file("gone", "1\n");
        world.ok(&WRITE);
        assert_eq!(world.read("app.conf"), "new\n");
        assert_eq!(world.read("other"), "theirs\n");
        assert_eq!(world.read("gone"), "1\n");
        for path in [world.path("more"), home, state] {
            assert!(!path.exists(), "{}", path.display());
        }
        let left = std::fs::read_dir("/tmp").unwrap().flatten();
        let left: Vec<_> = left
            .filter(|it| it.file_name().to_string_lossy().ends_with("-proof"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        world.ok(&["undo"]);
        assert_eq!(world.read("app.conf"), "old\n");
        world.check_store();
    });
}

#[test]
fn one_sees_the_world_as_it_would_be() {
    both(|world| {
        let world = validated(
            world(),
            "test \"$(cat \"$1\")\" = new && test \"$(cat \"$2\")\" = new && test \"${1##*/}\" = app.conf && test \"$PWD\" = \"${2%/*}\"",
            "",
        );
        // Nobody may write into it, and yet it is replaced.
        let locked = std::os::unix::fs::PermissionsExt::from_mode(0o444);
        std::fs::set_permissions(world.path("app.conf"), locked).unwrap();
        world.ok(&WRITE);
        // In a batch it sees the other files as well.
        let world = validated(
            World::in_memory(),
            "grep -q two other && test ! -e gone",
            "",
        );
        world.file("gone", "1");
        world.file(
            "../batch.json",
            r#"{"changes": [{"write": {"path": "app.conf", "text": "one"}}, {"write": {"path": "other", "text": "two"}}, {"remove": {"path": "gone"}}]}"#,
        );
        world.ok(&["batch", "../batch.json"]);
        world.file("gone", "1");
        denied_once(&world, &["write", "app.conf", "--text", "x"]);
    });
}

#[test]
fn one_that_talks_for_megabytes_is_cut() {
    both(|world| {
        let world = validated(
            world(),
            "head -c 20000000 /dev/zero | tr '\\0' x; exit 3",
            "output-max = '1KiB'",
        );
        let found = denied_once(&world, &WRITE);
        assert!(found.contains("` ended with 3: xxx"), "{found}");
        assert!(found.len() < 3000, "{}", found.len());
        let said = world.fails(1, &WRITE);
        assert!(said.len() < 6000, "{}", said.len());
    });
}

#[test]
fn one_that_reads_finds_the_end_and_one_that_asks_the_network_finds_none() {
    both(|world| {
        let world = validated(world(), "cat; read line; exit 0", "timeout = '60s'");
        world.ok(&WRITE);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = format!(
            "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5)\""
        );
        let world = validated(World::in_memory(), &line, "");
        let found = denied_once(&world, &WRITE);
        assert!(
            found.contains("refused") || found.contains("unreachable"),
            "{found}"
        );
    });
}

#[test]
fn one_that_is_not_there_or_cannot_be_run_has_not_passed() {
    both(|world| {
        for (command, words) in [
            // Who may not look into a directory of PATH is told that.
            ("no-such-validator", "exec: no-such-validator: "),
            ("./app.conf", "ermission denied"),
            ("/", "ermission denied"),
        ] {
            let world = validated(world(), "", "");
            world.file(
                "backout.toml",
                &format!(
                    "[[check]]\nname = 'own'\npaths = ['app.conf']\ncommand = ['{command}']\n"
                ),
            );
            let found = denied_once(&world, &WRITE);
            assert!(found.contains(words), "{command}: {found}");
            assert!(
                found.contains(&format!("`{command}`")),
                "{command}: {found}"
            );
            assert_eq!(world.read("app.conf"), "old\n");
        }
    });
}

/// What it says names the target, not the copy that it was given.
#[test]
fn its_words_are_told_with_the_names_that_people_know() {
    let world = validated(
        World::in_memory(),
        "echo \"$1:3: bad thing\" >&2; exit 1",
        "",
    );
    let found = denied_once(&world, &WRITE);
    let target = world.path("app.conf").display().to_string();
    assert!(found.contains(&format!("{target}:3: bad thing")), "{found}");
    assert!(!found.contains("backout-check-"), "{found}");
}

/// Runs the program where no layers can be made.
fn without_layers(world: &World, arguments: &[&str]) -> Output {
    let line = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    let own = world.command(arguments);
    let mut command = Command::new("/usr/bin/unshare");
    command.args(["--user", "--map-root-user", "/bin/sh", "-c", line, "sh"]);
    command.arg(own.get_program()).args(own.get_args());
    command.current_dir(world.path("")).env_clear();
    let set = own
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    command.envs(set);
    command.stdin(std::process::Stdio::null()).output().unwrap()
}

#[test]
fn where_there_are_no_layers_it_gets_a_copy_and_is_ended_all_the_same() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    // It works on a copy: what it does to that counts as nothing.
    let world = validated(
        World::in_memory(),
        "grep -q new \"$1\" && echo broken > \"$1\"",
        "",
    );
    let output = without_layers(&world, &WRITE);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(world.read("app.conf"), "new\n");
    // It says no, dies, hangs: all of it as in layers.
    for (line, words) in [
        ("echo no; exit 1", "` ended with 1: no"),
        ("kill -SEGV $$", "` was ended by signal 11"),
        ("exec sleep 1000", "` took longer than 300ms"),
        ("cat; read line; exit 7", "` ended with 7"),
    ] {
        let world = validated(World::in_memory(), line, "timeout = '300ms'");
        let output = without_layers(&world, &WRITE);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(words), "{}", said(&output));
        assert_eq!(world.read("app.conf"), "old\n");
    }
    // What it starts ends with it, also what left its group and holds its streams.
    let world = World::in_memory();
    let time = odd_time(&world);
    let line = format!("setsid sleep {time} & sleep {time} & exit 0");
    let world = validated(world, &line, "");
    let output = without_layers(&world, &WRITE);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!runs(&time), "something is left");
}

#[test]
fn what_cannot_be_laid_out_or_is_too_much_has_not_passed() {
    let world = validated(World::in_memory(), "exit 0", "");
    let mut command = world.command(&WRITE);
    let output = command.env("TMPDIR", "/nowhere/at/all").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let words = "the new content could not be laid out for a check: ";
    assert!(said(&output).contains(words), "{}", said(&output));
    assert_eq!(world.read("app.conf"), "old\n");
    // Each file has a run of its own, and a hundred are enough.
    let rules = world
        .read("backout.toml")
        .replace("'app.conf'", "'many/**'");
    world.file("backout.toml", &rules);
    for number in 0..101 {
        world.file(&format!("source/{number}"), "x");
    }
    let found = denied_once(&world, &["cp", "-r", "source", "many"]);
    assert!(
        found.contains("101 files are too many to check one by one with a program"),
        "{found}"
    );
    let said = world.fails(1, &["cp", "-r", "source", "many"]);
    assert!(said.contains("write fewer at once"), "{said}");
    assert!(!world.path("many").exists());
}
