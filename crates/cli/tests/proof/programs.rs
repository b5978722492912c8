//! `backout act`: effects that Backout cannot see, made and answered by programs.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

use serde_json::Value;

use crate::world::{World, said};

/// A list of users in a file, which no driver records. Twice is once.
const UNDO: &str = r#"grep -vx "$BACKOUT_ANSWER" users > rest; mv rest users"#;
const LOOK: &str = "grep -x ann users";
pub(crate) const ADD: &str = "grep -qx ann users || echo ann >> users; echo ann";

pub(crate) fn with_users() -> World {
    let world = World::new();
    world.file("users", "eve\n");
    world
}

/// Adds a user, with more words for `act`.
fn add(world: &World, more: &[&str], program: &str) -> std::process::Output {
    let mut words = vec!["--json", "act", "--undo", UNDO, "--name", "add ann"];
    words.extend(more);
    words.extend(["--", "sh", "-c", program]);
    world.run(&words)
}

pub(crate) fn json(output: &std::process::Output) -> Value {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    serde_json::from_slice(&text).unwrap_or_else(|_| panic!("{}", said(output)))
}

fn newest(world: &World) -> String {
    world.operations().swap_remove(0).1
}

#[test]
fn what_a_program_did_is_taken_back_by_another_and_done_again() {
    let world = with_users();
    let acted = json(&add(&world, &["--look", LOOK], ADD));
    assert_eq!(acted["answer"], "ann");
    assert!(world.ok(&["show", "@"]).contains("program, by its handler"));
    assert_eq!(world.read("users"), "eve\nann\n");
    for _ in 0..2 {
        world.ok(&["undo", "--everywhere"]);
        assert_eq!(world.read("users"), "eve\n");
        world.ok(&["redo", "--everywhere"]);
        assert_eq!(world.read("users"), "eve\nann\n");
    }
    // Somebody else removed it: there is nothing left to take back, and that is said.
    world.file("users", "eve\n");
    let undone = said(&world.run(&["undo", "--everywhere"]));
    assert!(undone.contains("already as before"), "{undone}");
    assert_eq!(world.read("users"), "eve\n");
}

#[test]
fn a_task_takes_it_back_with_its_files() {
    let world = with_users();
    world.ok(&["task", "begin", "hire"]);
    world.ok(&["--task", "hire", "write", "ann.txt", "--text", "new"]);
    world.ok(&[
        "--task", "hire", "act", "--undo", UNDO, "--", "sh", "-c", ADD,
    ]);
    assert_eq!(world.read("users"), "eve\nann\n");
    world.ok(&["rollback", "hire"]);
    assert_eq!(world.read("users"), "eve\n");
    assert!(!world.path("ann.txt").exists());
}

#[test]
fn programs_are_told_the_key_the_answer_and_what_it_is_about() {
    let world = World::new();
    let undo =
        r#"["sh", "-c", "cat > told; echo $BACKOUT_KEY > key; echo $BACKOUT_ANSWER > answer"]"#;
    let about = ["--about", r#"{"zone": 1}"#];
    let act = [
        &["act", "--undo", undo][..],
        &about,
        &["--", "echo", r#"{"id": 7}"#],
    ]
    .concat();
    world.ok(&act);
    world.ok(&["undo", "--everywhere"]);
    let told: Value = serde_json::from_str(&world.read("told")).unwrap();
    assert_eq!(told["answer"], r#"{"id": 7}"#);
    assert_eq!(told["about"]["zone"], 1);
    assert_eq!(world.read("key").trim(), told["key"].as_str().unwrap());
    assert_eq!(world.read("answer"), "{\"id\": 7}\n");
}

#[test]
fn a_program_that_fails_leaves_nothing_or_a_doubt() {
    // It failed after it had done it: that is taken back at once.
    let world = with_users();
    let refused = add(&world, &["--look", LOOK], &format!("{ADD}; exit 3"));
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(world.read("users"), "eve\n");
    assert_eq!(newest(&world), "aborted");
    // It failed before.
    let world = with_users();
    let refused = add(&world, &["--look", LOOK], "echo no room >&2; exit 3");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused).contains("`sh` ended with 3: no room"),
        "{}",
        said(&refused)
    );
    assert_eq!(newest(&world), "aborted");
    // Nobody can tell.
    let world = with_users();
    let unknown = add(&world, &[], "exit 3");
    assert!(
        said(&unknown).contains("it is not known whether it happened: `sh` ended with 3"),
        "{}",
        said(&unknown)
    );
    assert_eq!(newest(&world), "in-doubt");
    // It was never there to begin with.
    let missing = world.run(&["act", "--undo", "true", "--", "./missing"]);
    assert!(
        said(&missing).contains("could not be started"),
        "{}",
        said(&missing)
    );
}

#[test]
fn an_undo_that_fails_or_does_not_help_is_not_called_done() {
    let act = |undo: &str| {
        let world = with_users();
        let more = [
            "act",
            "--undo",
            undo,
            "--look",
            LOOK,
            "--timeout",
            "1",
            "--",
        ];
        let words = [&more[..], &["sh", "-c", ADD]].concat();
        world.ok(&words);
        world
    };
    let world = act("echo the server is away >&2; exit 1");
    let failed = world.run(&["undo", "--everywhere"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        said(&failed).contains("the server is away"),
        "{}",
        said(&failed)
    );
    let world = act("true");
    let failed = world.run(&["undo", "--everywhere"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        said(&failed).contains("it was answered, and is still there"),
        "{}",
        said(&failed)
    );
    assert_eq!(world.read("users"), "eve\nann\n");
    let world = act("sleep 600");
    let failed = world.run(&["undo", "--everywhere"]);
    assert!(
        said(&failed).contains("took longer than 1s"),
        "{}",
        said(&failed)
    );
}

#[test]
fn whoever_asks_can_do_it_and_says_what_came_of_it() {
    let told = |world: &World, answer: &str| {
        let mut act =
            world.command(&["--json", "act", "--ask", "--name", "x", "--undo", "rm made"]);
        let mut child = act.stdin(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(line.contains("armed"), "{line}");
        // The way back is kept by now, so whatever happens next can be taken back.
        assert_eq!(newest(world), "armed");
        world.file("made", "");
        let mut to = child.stdin.take().unwrap();
        to.write_all(answer.as_bytes()).unwrap();
        drop(to);
        let output = child.wait_with_output().unwrap();
        (output.status.code(), said(&output))
    };
    let world = World::new();
    assert_eq!(told(&world, "{\"answer\": {\"id\": 7}}\n").0, Some(0));
    world.ok(&["undo", "--everywhere"]);
    assert!(!world.path("made").exists());
    let plan = world.run(&["redo", "--everywhere", "-n"]);
    assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
    let again = world.run(&["redo", "--everywhere"]);
    assert!(
        said(&again).contains("only the program that did it can do it again"),
        "{}",
        said(&again)
    );

    let world = World::new();
    let (code, said) = told(&world, "{\"nothing\": \"the name is taken\"}\n");
    assert_eq!(code, Some(1));
    assert!(said.contains("the name is taken"), "{said}");
    let (_, said) = told(&world, "");
    assert!(
        said.contains("whoever asked ended without a word"),
        "{said}"
    );
    let mut deaf = world.command(&["act", "--ask", "--name", "x", "--undo", "true"]);
    let (from, to) = std::io::pipe().unwrap();
    drop(from);
    let deaf = deaf.stdout(to).output().unwrap();
    let why = String::from_utf8_lossy(&deaf.stderr);
    assert!(
        why.contains("whoever asked does not listen any more"),
        "{why}"
    );
    let (_, said) = told(&world, "what?\n");
    assert!(
        said.contains("what whoever asked said of it is no answer"),
        "{said}"
    );
}

#[test]
fn a_death_while_it_is_done_is_settled_by_a_look() {
    let world = with_users();
    for (program, left) in [(ADD, "eve\n"), ("true", "eve\n")] {
        let die = format!("{program}; kill -9 $PPID");
        let died = add(&world, &["--look", LOOK], &die);
        assert_eq!(died.status.code(), None);
        world.ok(&["recover"]);
        assert_eq!(world.read("users"), left, "{program}");
        world.check_store();
    }
}

#[test]
fn what_cannot_be_kept_or_run_is_refused_before_anything_happens() {
    let world = World::new();
    for (words, why) in [
        (
            &["--undo", " ", "--", "touch", "made"][..],
            "a program is empty\n  next: give a line for `sh`, or a JSON list of words",
        ),
        (
            &["--undo", "[1]", "--", "touch", "made"],
            "`[1]` is no program
  why: what begins with `[` is a JSON list of words, and this is none
  next: give it like `[\"userdel\", \"ann\"]`",
        ),
        (
            &["--undo", "true", "--about", "[", "--", "touch", "made"],
            "what the programs are to be told is not JSON: EOF while parsing a list at line 1 column 1
  next: give it like `--about '{\"id\": 7}'`",
        ),
    ] {
        let refused = world.run(&[&["act"][..], words].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains(why), "{}", said(&refused));
    }
    let no_text = OsStr::from_bytes(b"\xff");
    let refused = world
        .command(&["act", "--undo", "true", "--", "touch"])
        .arg(no_text)
        .output()
        .unwrap();
    let why = "is not UTF-8
  why: a program is kept as text, so that it can be run again
  next: put it into a script, and give the name of that";
    assert!(said(&refused).contains(why), "{}", said(&refused));
    let program = env!("CARGO_BIN_EXE_backout");
    let inside = world.run(&[
        "run", "--", program, "act", "--undo", "true", "--", "touch", "made",
    ]);
    let why = "what its programs did outside would not be watched";
    assert!(said(&inside).contains(why), "{}", said(&inside));
    assert!(!world.path("made").exists());
}

#[test]
fn what_is_there_already_is_nobodys_to_take_back() {
    let world = with_users();
    world.file("users", "eve\nann\n");
    for program in [ADD, "echo ann exists >&2; exit 9", "./missing"] {
        let refused = add(&world, &["--look", LOOK], program);
        let why =
            "what it would make is there already: an undo would take away what somebody else made";
        assert_eq!(refused.status.code(), Some(1));
        assert!(said(&refused).contains(why), "{}", said(&refused));
        assert_eq!(world.read("users"), "eve\nann\n");
    }
    // Nor is it a redo's.
    let world = with_users();
    add(&world, &["--look", LOOK], ADD);
    world.ok(&["undo", "--everywhere"]);
    world.file("users", "ann\n");
    let plan = world.run(&["redo", "--everywhere", "-n"]);
    let redone = world.run(&["redo", "--everywhere"]);
    assert_eq!(
        plan.status.code(),
        redone.status.code(),
        "{}{}",
        said(&plan),
        said(&redone)
    );
    assert!(
        said(&redone).contains("is there already"),
        "{}",
        said(&redone)
    );
    world.run(&["undo", "--everywhere"]);
    assert_eq!(world.read("users"), "ann\n");
}

#[test]
fn what_somebody_made_of_it_is_not_taken_along_by_any_force() {
    let world = World::new();
    let look = "cat x 2> /dev/null";
    let act = [
        "act",
        "--undo",
        "rm x",
        "--look",
        look,
        "--",
        "sh",
        "-c",
        "echo 1 > x; echo 1",
    ];
    world.ok(&act);
    world.file("x", "2\n");
    let plan = world.run(&["undo", "--everywhere", "-n"]);
    assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
    for undo in [
        &["undo", "--everywhere"][..],
        &["undo", "--everywhere", "--force"],
    ] {
        let refused = world.run(undo);
        assert_eq!(refused.status.code(), Some(1));
        let why =
            "somebody changed it since, and nobody could bring that back: take it back by hand";
        assert!(said(&refused).contains(why), "{}", said(&refused));
        assert_eq!(world.read("x"), "2\n");
    }
    world.file("x", "1\n");
    world.ok(&["undo", "--everywhere"]);
    assert!(!world.path("x").exists());
}

#[test]
fn a_doubt_has_a_way_out_in_both_directions() {
    let in_doubt = || {
        let world = World::new();
        world.run(&[
            "act",
            "--undo",
            "rm made",
            "--",
            "sh",
            "-c",
            "touch made; exit 7",
        ]);
        assert_eq!(newest(&world), "in-doubt");
        let id = world.json(&["log"])["operations"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        (world, id)
    };
    let (world, id) = in_doubt();
    let refused = world.run(&["recover", "--rollback", &id]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(world.path("made").exists());
    world.ok(&["recover", "--rollback", &id, "--force"]);
    assert!(!world.path("made").exists());
    let (world, id) = in_doubt();
    world.ok(&["recover", "--keep", &id]);
    assert!(world.path("made").exists());
    world.ok(&["undo", "--everywhere", "-n"]);
    world.ok(&["undo", "--everywhere"]);
    assert!(!world.path("made").exists());
}

#[test]
fn a_program_that_outlives_a_killed_backout_is_waited_for() {
    let world = World::new();
    let program = "while ! test -e go; do sleep 0.01; done; touch made; echo made";
    let look = "test -e made && echo made";
    let act = [
        "act", "--undo", "rm made", "--look", look, "--", "sh", "-c", program,
    ];
    let mut child = world.spawn(&act);
    while world.operations().is_empty() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let early = world.run(&["recover"]);
    assert!(
        said(&early)
            .contains(", a program of it, is still at work: wait until it has ended, or end it"),
        "{}",
        said(&early)
    );
    world.file("go", "");
    while !world.path("made").exists() {
        std::thread::yield_now();
    }
    while said(&world.run(&["recover"])).contains("still at work") {}
    assert!(!world.path("made").exists());
    world.check_store();
}

#[test]
fn an_interrupt_ends_the_program_and_leaves_nothing_of_it() {
    let world = World::new();
    let program = "touch made; sleep 600; echo made";
    let look = "test -e made && echo made";
    let act = [
        "act", "--undo", "rm made", "--look", look, "--", "sh", "-c", program,
    ];
    let child = world.spawn(&act);
    while !world.path("made").exists() {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(!world.path("made").exists());
    // And who waits for the caller.
    let mut asking = world.command(&[
        "act", "--ask", "--name", "x", "--look", "false", "--undo", "true",
    ]);
    let mut asking = asking.stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(asking.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(asking.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let held = asking.stdin.take();
    let output = asking.wait_with_output().unwrap();
    drop(held);
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
}

#[test]
fn a_look_that_cannot_tell_and_a_directory_that_is_gone_are_said() {
    let world = World::new();
    let act = |look: &str| {
        world.run(&[
            "act", "--undo", "rm made", "--look", look, "--", "touch", "made",
        ])
    };
    let refused = act("exit 3");
    assert!(
        said(&refused).contains("its look cannot tell: `sh` ended with 3"),
        "{}",
        said(&refused)
    );
    assert!(!world.path("made").exists());
    let denied = act("exit 1");
    let why = "it ended well, and a look does not find what it made";
    assert!(said(&denied).contains(why), "{}", said(&denied));
    let world = World::new();
    std::fs::create_dir(world.path("d")).unwrap();
    let mut acting = world.command(&["act", "--undo", "rm made", "--", "touch", "made"]);
    assert!(
        acting
            .current_dir(world.path("d"))
            .status()
            .unwrap()
            .success()
    );
    std::fs::rename(world.path("d"), world.path("e")).unwrap();
    let why = "its programs run in `d`, and that is no directory now";
    for undo in [
        &["undo", "--everywhere", "-n"][..],
        &["undo", "--everywhere"],
    ] {
        let refused = world.run(undo);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(said(&refused).contains(why), "{}", said(&refused));
    }
    let long = world.run(&[
        "act",
        "--undo",
        "true",
        "--",
        "head",
        "-c",
        "70000",
        "/dev/zero",
    ]);
    let why = "its answer is longer than 64 KiB, and could not be given to what takes it back";
    assert!(said(&long).contains(why), "{}", said(&long));
    let nameless = world.run(&["act", "--undo", "true", "--name", " ", "--", "true"]);
    assert!(said(&nameless).contains("its name is empty\n  next: give it like `--name 'add ann'`"));
}

#[test]
fn an_undo_that_died_is_in_doubt_where_nobody_looks() {
    let world = World::new();
    let undo = "while ! test -e go; do sleep 0.01; done; rm made";
    world.ok(&[
        "act",
        "--undo",
        undo,
        "--",
        "sh",
        "-c",
        "touch made; echo made",
    ]);
    let mut child = world.spawn(&["undo", "--everywhere"]);
    while world.operations().len() < 2 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    world.file("go", "");
    while world.path("made").exists() {
        std::thread::yield_now();
    }
    let told = said(&world.run(&["recover"]));
    assert!(
        told.contains("it is not known whether it was taken back"),
        "{told}"
    );
    assert_eq!(newest(&world), "in-doubt");
}

#[test]
fn an_answer_is_kept_as_it_was_printed() {
    let look = "cat x 2> /dev/null";
    for number in ["12345678901234567890123", "1.10", "1e3"] {
        let world = World::new();
        let undo = "echo $BACKOUT_ANSWER > got; rm x";
        let program = format!("echo {number} > x; cat x");
        world.ok(&[
            "act", "--undo", undo, "--look", look, "--", "sh", "-c", &program,
        ]);
        world.file("x", &format!("{number}9\n"));
        let refused = world.run(&["undo", "--everywhere"]);
        assert!(
            said(&refused).contains("somebody changed it since"),
            "{}",
            said(&refused)
        );
        world.file("x", &format!("{number}\n"));
        world.ok(&["undo", "--everywhere"]);
        assert_eq!(world.read("got"), format!("{number}\n"));
    }
    let world = World::new();
    for (program, why) in [
        (
            "printf '\\377' > x; cat x",
            "its answer is no text, and could not be given to what takes it back",
        ),
        (
            "printf 'a\\0b'; echo 1 > x",
            "its answer is no text, and could not be given to what takes it back",
        ),
        (
            "echo 1 > x; echo other",
            "a look finds another answer than it gave",
        ),
    ] {
        let look = "cat x 2> /dev/null";
        let refused = world.run(&[
            "act", "--undo", "rm x", "--look", look, "--", "sh", "-c", program,
        ]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(said(&refused).contains(why), "{}", said(&refused));
        if world.path("x").exists() {
            std::fs::remove_file(world.path("x")).unwrap();
        }
    }
}
