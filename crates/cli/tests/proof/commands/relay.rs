//! The relay: what `backout` inside of a command can have done outside, and what it cannot.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::wait_for;
use crate::world::{World, said};

const PROGRAM: &str = env!("CARGO_BIN_EXE_backout");

/// An ordinary user.
const USER: u32 = 1_234;

/// A Python line that goes to the relay; `s` is its socket.
const TO_THE_DOOR: &str = "import os,socket,time,sys,array; s=socket.socket(socket.AF_UNIX); \
    s.connect(chr(0)+os.environ['BACKOUT_RELAY'].split(':')[0])";

/// Runs a shell line under `run` and gives the exit code and all that was said.
fn inside(world: &World, line: &str) -> (Option<i32>, String) {
    let output = world.run(&["run", "--", "bash", "-c", line]);
    (output.status.code(), said(&output))
}

fn is_write(operation: &serde_json::Value, name: &str) -> bool {
    let summary = operation["summary"].as_str().unwrap();
    summary.starts_with("write ") && summary.ends_with(name)
}

#[test]
fn a_command_that_did_all_through_the_door_is_taken_back_with_what_was_done_there() {
    let inner = [
        format!("{PROGRAM} write k --text 2"),
        format!("{PROGRAM} run -- bash -c 'echo 1 > k'"),
        format!("echo a >> f; {PROGRAM} write f --append --text b"),
    ];
    for line in inner {
        let world = World::new();
        world.file("f", "0\n");
        let before = world.tree().without_directory_times();
        let failing = format!("{line}; exit 1");
        let rollback = [
            "run",
            "--on-failure",
            "rollback",
            "--",
            "bash",
            "-c",
            &failing,
        ];
        let told = world.fails(1, &rollback);
        assert!(told.contains("what it did was undone"), "{told}");
        let now = world.tree().without_directory_times();
        assert!(now == before, "{line}: {}", now.difference(&before));
        // The same by its name, there and back.
        let (code, told) = inside(&world, &line);
        assert_eq!(code, Some(0), "{told}");
        let after = world.tree().without_directory_times();
        let id = super::newest_command(&world);
        world.ok(&["undo", &id]);
        assert!(world.tree().without_directory_times() == before, "{line}");
        let told = world.fails(1, &["undo", &id]);
        assert!(told.contains("already"), "{told}");
        world.ok(&["redo"]);
        assert!(world.tree().without_directory_times() == after, "{line}");
        world.check_store();
    }
}

/// Takes the name of a relay, as anybody can when the front has ended.
fn taken(told: &str) -> UnixListener {
    let name = told.trim().split(':').next().unwrap();
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

#[test]
fn another_user_who_takes_the_name_of_the_relay_gets_nothing() {
    let world = World::new().of_user(USER);
    let program = world.scratch("backout");
    let script = format!(
        "echo $BACKOUT_RELAY > relay; (while [ ! -e go ]; do sleep 0.05; done; \
         SECRET=hidden {} write made --text x > told 2>&1; touch end) > /dev/null 2>&1 &",
        program.display()
    );
    let output = world.run(&["run", "--", "bash", "-c", &script]);
    assert!(output.status.success(), "{}", said(&output));
    // The front is gone, and what it left behind is not. This process is another user's.
    let listener = taken(&world.read("relay"));
    fs::write(world.path("go"), "").unwrap();
    nobody_speaks(&world, &listener);
}

/// Whoever comes to a relay that another runs says nothing, until all is over.
fn nobody_speaks(world: &World, listener: &UnixListener) {
    wait_for(|| {
        let is_over = world.path("end").exists();
        while let Ok((mut stream, _)) = listener.accept() {
            stream.set_nonblocking(false).unwrap();
            let mut bytes = Vec::new();
            let _read = stream.read_to_end(&mut bytes);
            assert!(bytes.is_empty(), "{}", String::from_utf8_lossy(&bytes));
        }
        is_over
    });
}

#[test]
fn another_process_of_the_same_user_that_takes_the_name_gets_nothing() {
    let world = World::new();
    let script = format!(
        "echo $BACKOUT_RELAY > relay; (while [ ! -e go ]; do sleep 0.05; done; \
         {PROGRAM} write made --text x > told 2>&1; touch end) > /dev/null 2>&1 &"
    );
    let output = world.run(&["run", "--", "bash", "-c", &script]);
    assert!(output.status.success(), "{}", said(&output));
    let listener = taken(&world.read("relay"));
    fs::write(world.path("go"), "").unwrap();
    nobody_speaks(&world, &listener);
    // Nobody did it outside, and inside it cannot be done.
    assert!(!world.path("made").exists(), "{}", world.read("told"));
    assert!(
        world.read("told").contains("no relay"),
        "{}",
        world.read("told")
    );
}

#[test]
fn a_process_beside_the_command_is_not_served() {
    let world = World::new();
    let script = "echo $BACKOUT_RELAY > relay.new; mv relay.new relay; while [ ! -e end ]; do sleep 0.05; done";
    let mut child = world.spawn(&["--agent", "a", "run", "--", "bash", "-c", script]);
    wait_for(|| world.path("relay").exists());
    let relay = world.read("relay").trim().to_owned();
    // It is not watched, so it does its work itself, as itself.
    let output = world
        .command(&["write", "beside", "--text", "x"])
        .env("BACKOUT_RELAY", &relay)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    fs::write(world.path("end"), "").unwrap();
    assert!(child.wait().unwrap().success());
    let log = world.json(&["log", "-n", "20"]);
    let operations = log["operations"].as_array().unwrap();
    let write = operations.iter().find(|op| is_write(op, "beside"));
    assert!(write.unwrap()["agent"].is_null(), "{log}");
}

#[test]
fn the_environment_of_a_caller_does_not_reach_what_is_done_outside() {
    let world = World::new();
    // The loader writes a file for every process that has these: one that is watched, and no other.
    let line = format!(
        "LD_DEBUG=files LD_DEBUG_OUTPUT=$PWD/trace {PROGRAM} write made --text x > /dev/null"
    );
    let (code, told) = inside(&world, &line);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(world.read("made"), "x");
    let traces = world.tree().names();
    let traces: Vec<_> = traces
        .iter()
        .filter(|name| name.starts_with("trace"))
        .collect();
    assert_eq!(traces.len(), 1, "{traces:?}");
    world.ok(&["undo", "@"]);
    assert_eq!(world.tree().names(), [""]);
}

#[test]
fn a_command_that_is_run_from_inside_gets_the_environment_of_its_caller() {
    let world = World::new();
    world.file("bin/tool", "#!/bin/sh\necho tool $WORD > made\n");
    let line = format!(
        "chmod +x bin/tool; export WORD='a b' PATH=$PWD/bin:$PATH; unset HOME; {PROGRAM} run -- tool; \
         {PROGRAM} run -- env > all"
    );
    let (code, told) = inside(&world, &line);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(world.read("made"), "tool a b\n");
    let all = world.read("all");
    assert!(
        all.contains("WORD=a b\n") && !all.contains("HOME="),
        "{all}"
    );
    assert!(!all.contains("BACKOUT_ASKED"), "{all}");
}

#[test]
fn the_store_the_agent_and_the_task_are_those_of_the_command() {
    let world = World::new();
    world.ok(&["task", "begin", "t"]);
    let elsewhere = world.scratch("elsewhere").display().to_string();
    let by_environment = format!(
        "BACKOUT_STATE_DIR={elsewhere} BACKOUT_AGENT=other BACKOUT_TASK=none BACKOUT_RUN=0000000000000000 \
         BACKOUT_CAP_BYTES=0 {PROGRAM} write made --text x"
    );
    let run = |line: &str| {
        let arguments = [
            "--agent", "a", "--task", "t", "run", "--", "bash", "-c", line,
        ];
        world.run(&arguments)
    };
    let output = run(&by_environment);
    assert!(output.status.success(), "{}", said(&output));
    let shown = world.json(&["log", "-n", "20"]);
    let operations = shown["operations"].as_array().unwrap();
    let write = operations.iter().find(|op| is_write(op, "made")).unwrap();
    assert_eq!(
        (&write["agent"], &write["task"]),
        (&"a".into(), &"t".into())
    );
    for option in [
        format!("--state-dir {elsewhere}"),
        "--agent other".to_owned(),
        "--task none".to_owned(),
        "--cap 0".to_owned(),
    ] {
        let output = run(&format!("{PROGRAM} --json {option} write again --text x"));
        assert_eq!(output.status.code(), Some(1), "{option}: {}", said(&output));
        assert!(
            said(&output).contains("not-from-inside"),
            "{}",
            said(&output)
        );
    }
    assert!(!world.scratch("elsewhere").exists());
    assert!(!world.path("again").exists());
    // What is said again as it is, is no other.
    let same = format!(
        "{PROGRAM} --agent a --task t --state-dir {} write again --text x",
        world.state().display()
    );
    let output = run(&same);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn what_is_for_those_outside_to_decide_is_refused_inside() {
    let world = World::new();
    world.ok(&["task", "begin", "t"]);
    world.ok(&["write", "kept", "--text", "1"]);
    world.ok(&["write", "kept", "--text", "2"]);
    for words in [
        "gc --keep 0s --keep-at-least 0s",
        "commit t",
        "task begin other",
        "task commit t",
        "task rollback t",
        "rollback t",
        "recover --keep @",
        "recover --rollback @",
        "doctor --repair",
        "export -o out",
        "man --dir .",
        "try -- touch made",
        "try --apply",
        "try --discard",
        "run --capture scan -- touch made",
        "run --over-limit mark -- touch made",
        "undo --others @",
    ] {
        let (code, told) = inside(&world, &format!("{PROGRAM} --json {words}"));
        assert_eq!(code, Some(1), "{words}: {told}");
        assert!(told.contains("\"not-from-inside\""), "{words}: {told}");
        assert!(told.contains("\"next\":[{\"text\""), "{words}: {told}");
    }
    assert_eq!(world.tree().names(), ["", "kept"]);
    world.ok(&["undo", "@"]);
    assert_eq!(world.read("kept"), "1");
    world.check_store();
}

#[test]
fn what_only_looks_works_inside() {
    let world = World::new();
    world.ok(&["write", "kept", "--text", "1\n"]);
    for words in [
        "log",
        "show @",
        "diff @",
        "status",
        "verify",
        "classify -- rm -rf x",
        "task list",
        "checkpoint --list",
        "try --list",
        "export",
        "gc --dry-run",
        "undo --dry-run @",
        "doctor",
        "completions bash",
        "man",
        "--version",
        "--help",
    ] {
        let (code, told) = inside(&world, &format!("{PROGRAM} {words} > /dev/null"));
        assert_eq!(code, Some(0), "{words}: {told}");
    }
}

#[test]
fn operations_of_others_cannot_be_taken_back_from_inside() {
    let world = World::new();
    world.ok(&["--agent", "b", "write", "theirs", "--text", "x"]);
    let theirs = world.json(&["log", "-n", "1"])["operations"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    world.ok(&["--agent", "a", "write", "own", "--text", "x"]);
    let own = world.json(&["log", "-n", "1"])["operations"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let run = |line: &str| world.run(&["--agent", "a", "run", "--", "bash", "-c", line]);
    for words in [
        format!("undo {theirs}"),
        format!("undo {theirs} {own}"),
        "undo ./theirs".to_owned(),
    ] {
        let output = run(&format!("{PROGRAM} --json {words}"));
        assert_eq!(output.status.code(), Some(1), "{words}: {}", said(&output));
        assert!(
            said(&output).contains("not-from-inside"),
            "{words}: {}",
            said(&output)
        );
    }
    assert!(world.path("theirs").exists() && world.path("own").exists());
    let output = run(&format!(
        "{PROGRAM} undo {own} && {PROGRAM} redo {own} && {PROGRAM} undo {own}"
    ));
    assert!(output.status.success(), "{}", said(&output));
    assert!(world.path("theirs").exists() && !world.path("own").exists());
    world.ok(&["undo", &theirs]);
    let output = run(&format!("{PROGRAM} --json redo {theirs}"));
    assert!(
        said(&output).contains("not-from-inside"),
        "{}",
        said(&output)
    );
    assert!(!world.path("theirs").exists());
    world.check_store();
}

#[test]
fn whose_work_it_is_that_stays_is_said() {
    let world = World::new();
    world.ok(&["task", "begin", "t"]);
    let whose: [(&[&str], &str); 4] = [
        (
            &["--agent", "b", "--task", "t"],
            "it is the work of agent `b` in task `t`",
        ),
        (&["--agent", "b"], "it is the work of agent `b`"),
        (&["--task", "t"], "it belongs to task `t`"),
        (&[], "it is the work of no agent and no task"),
    ];
    for (flags, said_of_it) in whose {
        world.ok(&[flags, &["write", "f", "--text", "x"]].concat());
        let id = world.json(&["log", "-n", "1"])["operations"][0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let line = format!("{PROGRAM} undo {id}");
        let output = world.run(&["--agent", "a", "run", "--", "bash", "-c", &line]);
        let told = said(&output);
        assert!(
            told.contains(said_of_it)
                && told.contains(
                    "from inside of a command only the work of its own agent and task is taken back"
                )
                && told.contains("have it done outside of the command, by whoever started it"),
            "{told}"
        );
        assert_eq!(world.read("f"), "x");
        world.ok(&["undo", &id]);
    }
    world.check_store();
}

#[test]
fn silent_connections_freeze_nothing() {
    let world = World::new();
    let line = format!(
        "for i in 1 2 3; do python3 -c \"{TO_THE_DOOR}; open('sits'+str($i),'w'); time.sleep(600)\" & done; \
         while [ ! -e sits1 -o ! -e sits2 -o ! -e sits3 ]; do sleep 0.05; done; {PROGRAM} write made --text x; code=$?; \
         kill %1 %2 %3; exit $code"
    );
    let began = Instant::now();
    let (code, told) = inside(&world, &line);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(world.read("made"), "x");
    assert!(began.elapsed() < Duration::from_secs(30), "{told}");
}

#[test]
fn more_than_may_ask_at_once_wait_and_are_served() {
    let world = World::new();
    // So many are silent that no other is let in before their time is up.
    let line = format!(
        "python3 -c \"import os,socket,time; n=chr(0)+os.environ['BACKOUT_RELAY'].split(':')[0]; \
         a=[socket.socket(socket.AF_UNIX) for _ in range(60)]; [s.connect(n) for s in a]; open('all','w'); time.sleep(600)\" & \
         while [ ! -e all ]; do sleep 0.05; done; {PROGRAM} write made --text x; code=$?; kill %1; exit $code"
    );
    let (code, told) = inside(&world, &line);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(world.read("made"), "x");
}

#[test]
fn what_is_no_request_is_refused_and_its_descriptors_are_closed() {
    let world = World::new();
    let script = format!(
        "{TO_THE_DOOR}\n\
         def ask(b, n):\n    \
             global s\n    \
             s.close(); s = socket.socket(socket.AF_UNIX); s.connect(chr(0)+os.environ['BACKOUT_RELAY'].split(':')[0])\n    \
             s.settimeout(10)\n    \
             r, w = os.pipe()\n    \
             s.sendmsg([b], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [w]*n))] if n else [])\n    \
             os.close(w)\n    \
             answer = s.recv(5)\n    \
             assert answer[:1] == b'r', answer\n    \
             assert os.read(r, 1) == b'', 'somebody has it still'\n    \
             os.close(r)\n\
         ask(b'\\xff'*8, 3)\n\
         ask((4).to_bytes(8, 'little') + b'abcd', 3)\n\
         ask((1).to_bytes(8, 'little') + b'\\0' * 2, 3)\n\
         ask((8).to_bytes(8, 'little') + b'/\\x001\\0log\\0', 1)\n\
         ask((8).to_bytes(8, 'little') + b'/\\x001\\0log\\0', 0)\n\
         ask((8).to_bytes(8, 'little') + b'/\\x001\\0log\\0', 40)\n\
         open('done', 'w')\n"
    );
    world.file("ask.py", &script);
    let (code, told) = inside(&world, "python3 ask.py");
    assert_eq!(code, Some(0), "{told}");
    assert!(world.path("done").exists());
}

#[test]
fn what_is_done_outside_ends_with_its_caller() {
    let world = World::new();
    // It waits for input that never ends.
    let line = format!(
        "mkfifo pipe; sleep 60 > pipe & {PROGRAM} write made < pipe & caller=$!; \
         while ! pgrep -f '^backout write made' > /dev/null; do sleep 0.05; done; kill -KILL $caller; \
         for i in $(seq 200); do pgrep -f '^backout write made' > /dev/null || break; sleep 0.1; done; \
         pgrep -f '^backout write made' && exit 9; kill %1; true"
    );
    let began = Instant::now();
    let (code, told) = inside(&world, &line.replace("made", "made-by-nobody-else"));
    assert_eq!(code, Some(0), "{told}");
    assert!(began.elapsed() < Duration::from_secs(30), "{told}");
    assert!(!world.path("made-by-nobody-else").exists());
    world.check_store();
}

#[test]
fn input_is_left_to_whoever_reads_it() {
    let world = World::new();
    let line = format!(
        "{PROGRAM} log > /dev/null; {PROGRAM} write a --text x > /dev/null; read one; echo $one > one; {PROGRAM} write rest"
    );
    let mut command = world.command(&["run", "--", "bash", "-c", &line]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"1\n2\n3\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(world.read("one"), "1\n");
    assert_eq!(world.read("rest"), "2\n3\n");
}

#[test]
fn a_sandbox_inside_of_the_command_is_not_left_by_the_door() {
    let world = World::new();
    for sandbox in [
        "unshare -m",
        "unshare -r",
        "setpriv --bounding-set=-all --inh-caps=-all",
        "setpriv --reuid=1234 --regid=1234 --clear-groups",
    ] {
        let line = format!("{sandbox} {PROGRAM} --json write made --text x");
        let (code, told) = inside(&world, &line);
        assert_ne!(code, Some(0), "{sandbox}: {told}");
        assert!(!world.path("made").exists(), "{sandbox}: {told}");
    }
    let (_, told) = inside(
        &world,
        &format!("unshare -m {PROGRAM} --json write made --text x"),
    );
    assert!(told.contains("not-from-inside"), "{told}");
}

#[test]
fn no_pager_is_started_for_those_inside() {
    let world = World::new();
    world.ok(&["write", "long", "--text", "x"]);
    for _ in 0..60 {
        world.ok(&["write", "long", "--append", "--text", "x"]);
    }
    let line = format!("script -qec '{PROGRAM} log -n 100' /dev/null > shown");
    let output = world
        .command(&["run", "--", "bash", "-c", &line])
        .env(
            "BACKOUT_PAGER",
            format!("cat; touch {}", world.scratch("paged").display()),
        )
        .env("TERM", "xterm")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        world.read("shown").contains("append"),
        "{}",
        world.read("shown")
    );
    assert!(!world.scratch("paged").exists());
}

#[test]
fn a_front_that_is_gone_is_not_asked_twice() {
    let world = World::new();
    // What takes long is at work when the command ends; its caller is one of those that stay.
    let line = format!(
        "mkfifo pipe; ({PROGRAM} write late < pipe > told 2>&1; touch end) > /dev/null 2>&1 & exec 3> pipe; sleep 0.5; \
         (while [ ! -e go ]; do sleep 0.05; done; echo x >&3; touch over) > /dev/null 2>&1 &"
    );
    let (code, told) = inside(&world, &line);
    assert_eq!(code, Some(0), "{told}");
    fs::write(world.path("go"), "").unwrap();
    wait_for(|| world.path("end").exists() && world.path("over").exists());
    assert!(
        world.read("told").contains("not known"),
        "{}",
        world.read("told")
    );
}

/// An end that came between looking and listening was never heard of, and its caller waited for ever.
#[test]
fn whoever_asks_often_is_answered_every_time() {
    let world = World::new();
    let line = format!(
        "for i in 1 2 3 4; do (for j in $(seq 40); do {PROGRAM} --version; done) & done | wc -l; wait"
    );
    let output = world
        .command(&["run", "--timeout", "60s", "--", "bash", "-c", &line])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(lines, "160", "{}", said(&output));
}

#[test]
fn where_nothing_is_watched_there_is_no_door_and_none_is_needed() {
    let world = World::new();
    let line = format!("echo \"relay $BACKOUT_RELAY\"; {PROGRAM} write made --text x");
    let output = world.run(&["run", "--capture", "scan", "--", "bash", "-c", &line]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("relay \n"), "{}", said(&output));
    assert_eq!(world.read("made"), "x");
}
