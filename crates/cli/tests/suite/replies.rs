//! Every reply and many errors of the real program, held against `docs/schema/backout.json`.
//!
//! - With `--json` stdout is one document on one line, stderr at most one error; `run` leaves stdout to the command.
//! - No whole number is wider than JavaScript can read.
//! - Every command and every reply of the schema comes up: a story that is missing is found.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a field that is not there fails the test"
)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

use backout_engine::{ErrorCode, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::replies_checking::checking;
use crate::replies_elsewhere::{
    asking_servers, calling, in_a_sandbox, in_databases, keeping_directories,
};
use crate::replies_serving::serving;
use crate::replies_state::{going_on, in_the_graph};
use crate::schema::Schema;
use crate::world::{Ran, World};

/// The widest whole number that JavaScript tells from its neighbours.
const WIDEST: u64 = (1 << 53) - 1;

/// What prints no reply: text for a shell, what an agent reads, and pages.
const WITHOUT: [&str; 5] = ["completions", "hook", "man", "mcp", "notice"];

/// What the program answers by itself, without the engine.
const OWN: [&str; 17] = [
    "acted",
    "agent",
    "called",
    "classified",
    "config-checked",
    "config-shown",
    "database",
    "databases",
    "page",
    "redis",
    "rows",
    "serving",
    "synced",
    "token",
    "token-revoked",
    "tokens",
    "unenrolled",
];

/// Holds replies against the schema, and remembers which came up.
pub(crate) struct Judge {
    pub(crate) schema: Schema,
    commands: BTreeSet<String>,
    replies: BTreeSet<String>,
    codes: BTreeSet<String>,
}

/// Another program reads a reply as what it is, and would say the same.
#[track_caller]
fn is_read_back(value: &Value) {
    // The world's own path stands for itself.
    let text = value.to_string().replace("$WORLD", "/world");
    let mut told: Value = serde_json::from_str(&text).unwrap();
    let is_status = told["reply"] == "status";
    let fields = told.as_object_mut().unwrap();
    fields.retain(|name, _| {
        let is_beside = name == "recovered" || name == "acts_left" && !is_status;
        !is_beside
    });
    let read: Result<Reply, _> = serde_json::from_value(told.clone());
    match read {
        Ok(reply) => assert_eq!(serde_json::to_value(reply).unwrap(), told),
        // What only the program itself answers is no reply of the engine.
        Err(error) if error.to_string().contains("unknown variant") => {
            assert!(OWN.contains(&told["reply"].as_str().unwrap()), "{error}");
        }
        Err(error) => panic!("{error}\nin {told:#}"),
    }
}

impl Judge {
    fn new() -> Self {
        Self {
            schema: Schema::read(),
            commands: BTreeSet::new(),
            replies: BTreeSet::new(),
            codes: BTreeSet::new(),
        }
    }

    /// Runs a command that answers.
    #[track_caller]
    pub(crate) fn replies(&mut self, world: &World, line: &str, kind: &str) -> Value {
        let ran = self.run(world, line);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line}: {ran}");
        self.reply(&ran.out, kind)
    }

    /// Runs a command whose reply is that something would not be done.
    #[track_caller]
    pub(crate) fn refuses(&mut self, world: &World, line: &str, kind: &str) -> Value {
        let ran = self.run(world, line);
        assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{line}: {ran}");
        self.reply(&ran.out, kind)
    }

    /// Runs a command that fails and says nothing but that.
    #[track_caller]
    pub(crate) fn fails(&mut self, world: &World, line: &str, code: &str) {
        let ran = self.run(world, line);
        assert_eq!(ran.out, "", "{line}");
        self.error(&ran, code);
    }

    pub(crate) fn run(&mut self, world: &World, line: &str) -> Ran {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut names = words.iter().filter(|word| !word.starts_with('-'));
        self.commands
            .extend(names.next().map(|name| (*name).to_owned()));
        let mut command = world.command(&["--json"]);
        world.run(command.args(words).stdin(Stdio::null()))
    }

    #[track_caller]
    pub(crate) fn reply(&mut self, line: &str, kind: &str) -> Value {
        let value = one_document(line);
        assert_eq!(value["reply"], kind, "{line}");
        // The one definition first: what it says is to the point.
        self.schema.check(&format!("reply-{kind}"), &value);
        self.schema.check("reply", &value);
        is_read_back(&value);
        self.replies.insert(kind.to_owned());
        value
    }

    #[track_caller]
    pub(crate) fn error(&mut self, ran: &Ran, code: &str) {
        let value = one_document(&ran.err);
        self.schema.check("error", &value);
        assert_eq!(value["code"], code, "{ran}");
        let severity = value["severity"].as_str().unwrap();
        let exit = match (code, severity) {
            ("interrupted", _) => 130,
            ("not-started", _) => 127,
            (_, "refused") => 1,
            (_, "usage") => 2,
            _ => 3,
        };
        assert_eq!(ran.code, exit, "{ran}");
        self.codes.insert(code.to_owned());
    }
}

/// Reads what must be one document on one line, and nothing else.
#[track_caller]
pub(crate) fn one_document(text: &str) -> Value {
    let line = text.strip_suffix('\n').expect("a whole line");
    assert!(!line.contains('\n'), "one line: {text}");
    let value: Value = serde_json::from_str(line).unwrap();
    assert!(is_narrow(&value), "a number is too wide: {text}");
    value
}

fn is_narrow(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.as_u64().is_some_and(|number| number <= WIDEST)
                || number
                    .as_i64()
                    .is_some_and(|number| number.unsigned_abs() <= WIDEST)
        }
        Value::Array(items) => items.iter().all(is_narrow),
        Value::Object(fields) => fields.values().all(is_narrow),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

#[test]
fn every_reply_is_as_the_schema_says() {
    let mut judge = Judge::new();
    writing(&mut judge);
    looking(&mut judge);
    taking_back(&mut judge);
    grouping(&mut judge);
    looking_after(&mut judge);
    recovering(&mut judge);
    trying(&mut judge);
    in_a_sandbox(&mut judge);
    keeping_directories(&mut judge);
    running(&mut judge);
    deciding(&mut judge);
    checking(&mut judge);
    failing(&mut judge);
    drifting(&mut judge);
    going_on(&mut judge);
    in_the_graph(&mut judge);
    rolling_out(&mut judge);
    asking_servers(&mut judge);
    in_databases(&mut judge);
    calling(&mut judge);
    serving(&mut judge);
    let commands = backout_cli::command();
    for command in commands.get_subcommands() {
        let name = command.get_name();
        let is_seen = judge.commands.contains(name) || WITHOUT.contains(&name);
        assert!(is_seen, "{name} was not run");
    }
    for name in judge.schema.names() {
        let kind = name.strip_prefix("reply-");
        let is_seen = kind.is_none_or(|kind| judge.replies.contains(kind));
        assert!(is_seen, "{name} did not come up");
    }
}

fn writing(judge: &mut Judge) {
    let world = World::new().file("app.json", r#"{"a": 1, "b": 2}"#);
    for line in [
        "set app.json a 2",
        "unset app.json b",
        r#"merge app.json {"c":3}"#,
    ] {
        judge.replies(&world, line, "finished");
    }
    judge.replies(&world, "diff @", "diff");
    judge.replies(&world, "write shop.db --text=", "finished");
    world.did(["sql", "--db", "shop.db", "CREATE TABLE t(a)"]);
    judge.replies(&world, "sql --db shop.db DELETE/**/FROM/**/t", "finished");
    judge.replies(&world, "sql --db shop.db SELECT/**/1", "rows");
    judge.fails(&world, "sql --db none.db SELECT/**/1", "not-found");
    judge.fails(&world, "sql --db shop.db ANALYZE", "cannot-be-kept");
    judge.fails(&world, "set app.json a x", "config-value");
    judge.fails(&world, "unset app.json z", "config-key");
    judge.fails(&world, "set app a 1", "config-format");
    let world = World::new().file("old", "a\nb\n").file("tree/leaf", "x");
    world.put(
        "batch",
        r#"{"changes": [{"write": {"path": "q", "text": "1"}}]}"#,
    );
    for line in [
        "write new --text 1",
        "write new --text 1",
        "edit old -s a -r c",
        "mkdir made",
        "cp -r tree copy",
        "mv copy moved",
        "ln -s old link",
        "chmod 600 old",
        "chown 0 old",
        "rm -r tree",
        "batch batch",
        "restore tree --from @-1",
    ] {
        judge.replies(&world, line, "finished");
    }
}

fn looking(judge: &mut Judge) {
    let world = World::new().file("f", "a\n").file("tree/leaf", "x");
    world.did(["--agent", "me", "write", "f", "--text", "b\n"]);
    world.did(["rm", "-r", "tree"]);
    world.did(["mv", "f", "g"]);
    world.did([
        "run",
        "--",
        "sh",
        "-c",
        "echo x > made; ln -s made link; mkfifo pipe",
    ]);
    world.did(["chmod", "600", "g"]);
    judge.replies(&world, "log", "log");
    judge.replies(&world, "status", "status");
    for name in ["@", "@-1", "@-2", "@-3", "@-4"] {
        judge.replies(&world, &format!("show {name}"), "shown");
        judge.replies(&world, &format!("diff {name}"), "diff");
    }
    judge.replies(&world, "classify ls", "classified");
    judge.replies(&world, "config check", "config-checked");
    judge.replies(&world, "config show a", "config-shown");
    judge.replies(&world, "classify --shell ls > x; frobnicate", "classified");
    let odd = world.place("state").join(OsStr::from_bytes(b"odd\xff"));
    let mut state = world.command(&["--json", "status"]);
    let ran = world.run(state.env("BACKOUT_STATE_DIR", &odd));
    judge.reply(&ran.out, "status");
    let mut run = world.command(&["--json", "run", "--", "touch", "z"]);
    let ran = world.run(run.env("BACKOUT_STATE_DIR", &odd));
    judge.reply(&ran.err, "ran");
}

fn taking_back(judge: &mut Judge) {
    let world = World::new().file("f", "a\nb\nc\nd\n");
    world.did(["edit", "f", "-s", "a", "-r", "1"]);
    world.did(["write", "f2", "--text", "1"]);
    world.did(["--depends-on", "@", "write", "f3", "--text", "1"]);
    judge.replies(&world, "undo @-1 --dry-run --diff --committed", "plan");
    judge.replies(&world, "undo @ --with-dependencies --dry-run", "plan");
    judge.replies(&world, "undo @-2", "undone");
    judge.replies(&world, "redo --dry-run", "plan");
    judge.replies(&world, "redo", "undone");
    world.put("f", "1\nb\nc\n4\n");
    let plan = judge.refuses(&world, "undo f --dry-run --diff", "plan");
    assert_eq!(plan["is_mergeable"], json!(true));
    assert_eq!(plan["force"], json!("all"));
    judge.fails(&world, "undo f", "conflict");
    judge.replies(&world, "undo f --merge --dry-run", "plan");
    judge.replies(&world, "undo f --force --dry-run", "plan");
    judge.replies(&world, "undo f --force", "undone");
    judge.fails(&world, "undo 7f3c", "unknown-operation");
    judge.fails(&world, "undo nosuch", "nothing");
    judge.fails(&world, "undo @x", "malformed-name");
    judge.fails(&world, "undo --dryrun", "usage");
    judge.fails(&world, "undo --at now", "usage");
    judge.fails(&world, "restore f4 --from @-1", "not-touched");
    judge.fails(&World::new(), "undo", "nothing");
    judge.fails(&World::new(), "redo", "nothing");
    world.put("f2", "theirs");
    let ran = judge.run(&world, "undo f2 f3 --partial");
    judge.reply(&ran.out, "undone");
    judge.error(&ran, "partial");
}

/// What others changed, and what is decided about it.
fn drifting(judge: &mut Judge) {
    let world = World::new();
    judge.replies(&world, "write a.txt --text one", "finished");
    world.put("a.txt", "two");
    judge.replies(&world, "drift", "drift");
    // It is found, so the exit code says that too.
    world.cli(["watch", "--once"]);
    judge.replies(&world, "drift --all", "drift");
    judge.replies(&world, "drift accept a.txt", "drift-decided");
    judge.replies(&world, "drift ignore *.log", "drift-decided");
    judge.replies(&world, "drift --all", "drift");
    judge.replies(&world, "watch --once", "drift");
}

fn failing(judge: &mut Judge) {
    let world = World::new().file("f", "0").file("g", "what it was\n");
    world.did(["write", "g", "--text", "1"]);
    world.did(["write", "f", "--text", "1"]);
    judge.replies(&world, "failed", "failed");
    judge.fails(&world, "failed --accept @", "not-failed");
    let journal = rusqlite::Connection::open(world.place("state/journal.sqlite")).unwrap();
    journal
        .execute_batch("DELETE FROM content WHERE size = 12")
        .unwrap();
    let ran = judge.run(&world, "undo @ @-1 --trigger policy-violation --why x");
    judge.reply(&ran.out, "undone");
    judge.error(&ran, "partial");
    let failed = judge.replies(&world, "failed", "failed");
    assert_eq!(
        failed["failed"][0]["trigger"]["severity"],
        json!("critical")
    );
    judge.replies(&world, "show @-1", "shown");
    judge.replies(&world, "status", "status");
    let log = judge.replies(&world, "log", "log");
    let undo = log["operations"][0]["id"].as_str().unwrap();
    judge.replies(&world, &format!("show {undo}"), "shown");
    judge.fails(&world, "failed --retry", "conflict");
    judge.replies(&world, "failed --accept @-1 --why x", "accepted");
    let world = World::new().file("g", "what it was\n");
    world.did(["--agent", "robin", "write", "g", "--text", "1"]);
    let journal = rusqlite::Connection::open(world.place("state/journal.sqlite")).unwrap();
    journal
        .execute_batch("DELETE FROM content WHERE size = 12")
        .unwrap();
    judge.fails(&world, "--agent robin undo @", "conflict");
    judge.fails(&world, "--agent robin failed --accept @", "own-failure");
}

fn grouping(judge: &mut Judge) {
    let world = World::new();
    judge.fails(&world, "commit", "which-task");
    judge.replies(&world, "task begin one", "task");
    judge.fails(&world, "task begin one", "task-open");
    judge.replies(&world, "--task one --agent me write a --text 1", "finished");
    judge.replies(&world, "task list", "tasks");
    judge.replies(&world, "status", "status");
    judge.replies(&world, "commit one", "committed");
    judge.fails(&world, "--task one write a --text 2", "task-ended");
    judge.fails(&world, "rollback nosuch", "unknown-task");
    judge.fails(&world, "rollback --to nosuch", "unknown-checkpoint");
    judge.replies(
        &world,
        r#"checkpoint here --state {"at":[1,2]}"#,
        "checkpoint",
    );
    judge.replies(&world, "checkpoint --list", "checkpoints");
    judge.replies(&world, "log --prompts", "prompts");
    judge.replies(&world, "init opencode --project", "agent");
    judge.replies(&world, "--agent other write a --text 3", "finished");
    judge.fails(&world, "--agent me undo", "needs-word");
    judge.replies(&world, "rollback --to here --dry-run", "plan");
    judge.replies(&world, "rollback --to here", "undone");
}

fn rolling_out(judge: &mut Judge) {
    let world = World::new().file("a", "1").file("b", "1").file("c", "1");
    world.put("new", "2");
    judge.fails(&world, "rollout resume", "unknown-rollout");
    judge.fails(&world, "rollout status nosuch", "unknown-rollout");
    judge.fails(&world, "rollout start --content new a ./a", "usage");
    judge.fails(
        &world,
        "rollout start --content new --check-http x a",
        "refused",
    );
    let line = "--agent me rollout start --name r --wave 1 --content new a b c";
    judge.replies(&world, line, "rollout");
    judge.replies(&world, "rollout status", "rollout");
    judge.fails(&world, "rollout abort r", "rollout-ended");
    world.put("new", "3");
    let line = "rollout start --name s --wave 1 --content new --check false a b";
    judge.refuses(&world, line, "rollout");
    world.put("backout.toml", "[protect]\nask = ['c']\n");
    let line = "rollout start --name t --content new --check true c";
    judge.refuses(&world, line, "rollout");
    let line = "rollout start --name u --content new --wave 1 a c";
    judge.refuses(&world, line, "rollout");
    judge.fails(&world, "rollout resume", "which-rollout");
    judge.replies(&world, "rollout abort u", "rollout");
    judge.replies(&world, "rollout list", "rollouts");
    let stream = judge.run(&world, "export");
    assert!(stream.out.contains("rollout-ended"), "{stream}");
    for line in stream.out.lines() {
        judge
            .schema
            .check("record", &one_document(&format!("{line}\n")));
    }
}

fn looking_after(judge: &mut Judge) {
    let world = World::new().file("f", "a").file("tree/leaf", "x");
    judge.fails(&world, "rm nosuch", "not-found");
    judge.fails(&world, "rm tree", "not-empty");
    judge.fails(&world, "write f --create --text 1", "already-exists");
    judge.fails(&world, "edit f -s z -r y", "edit");
    world.did(["rm", "-r", "tree"]);
    world.did(["checkpoint", "c"]);
    judge.replies(&world, "verify", "verified");
    judge.replies(&world, "doctor", "doctor");
    judge.replies(&world, "recover", "recovered");
    judge.replies(&world, "export --output all", "exported");
    let stream = judge.run(&world, "export");
    assert_eq!((stream.code, stream.err.as_str()), (0, ""));
    for line in stream.out.lines() {
        let record = one_document(&format!("{line}\n"));
        judge.schema.check("record", &record);
        assert!(record["lsn"].as_u64() > Some(0), "{line}");
    }
    // The tree that was just removed is weighed by nobody yet.
    judge.replies(&world, "gc --dry-run", "collected");
    for kept in fs::read_dir(world.place("state/depot")).unwrap() {
        fs::remove_dir_all(kept.unwrap().path()).unwrap();
    }
    let damaged = judge.run(&world, "verify");
    assert_eq!((damaged.code, damaged.err.as_str()), (3, ""));
    judge.reply(&damaged.out, "verified");
    let repaired = judge.run(&world, "doctor --repair");
    judge.reply(&repaired.out, "doctor");
    world.minutes(60 * 24 * 400);
    judge.replies(&world, "gc", "collected");
    fs::write(world.place("state/journal.sqlite"), "no database").unwrap();
    fs::write(world.place("state/journal.sqlite-wal"), "").unwrap();
    judge.fails(&world, "log", "damaged");
}

fn recovering(judge: &mut Judge) {
    let world = World::new().file("a", "before");
    for line in ["write b --text 1", "recover"] {
        let mut crash = world.command(&["write", "a", "--text", "half"]);
        world.run(crash.env("BACKOUT_CRASH_AT", "engine.applied"));
        let kind = if line == "recover" {
            "recovered"
        } else {
            "finished"
        };
        let reply = judge.replies(&world, line, kind);
        let told = reply.get("recovered").or(reply.get("operations"));
        assert_eq!(told.and_then(Value::as_array).map(Vec::len), Some(1));
    }
    judge.interrupted(&world);
}

impl Judge {
    /// Stops a write that waits for its content.
    fn interrupted(&mut self, world: &World) {
        let mut command = world.command(&["--json", "write", "c"]);
        command.stdin(Stdio::piped());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let pid = Pid::from_child(&child);
        while !heeds_interrupts(pid) {
            std::thread::yield_now();
        }
        kill_process(pid, Signal::INT).unwrap();
        drop(child.stdin.take());
        let ran = world.ran(&child.wait_with_output().unwrap());
        assert_eq!(ran.out, "");
        self.error(&ran, "interrupted");
    }
}

/// Tells whether a process catches Ctrl-C.
fn heeds_interrupts(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    caught & (1 << (Signal::INT.as_raw() - 1)) != 0
}

fn trying(judge: &mut Judge) {
    let world = World::new().file("a", "1").file("b", "1");
    judge.fails(&world, "try --apply", "which-trial");
    judge.fails(&world, "try -- nosuchprogram", "not-started");
    judge.replies(&world, "try -- rm a", "trial");
    judge.replies(&world, "try --list", "trials");
    judge.replies(&world, "status", "status");
    judge.replies(&world, "try --diff", "diff");
    judge.replies(&world, "try --apply", "finished");
    judge.replies(&world, "try --apply -- mv b c", "trial");
    judge.replies(&world, "try -- touch d", "trial");
    judge.replies(&world, "try --discard", "discarded");
    let failed = judge.run(&world, "try -- false");
    assert_eq!((failed.code, failed.err.as_str()), (1, ""));
    judge.reply(&failed.out, "trial");
    // What the command says is beside the reply.
    let loud = judge.run(&world, "try -- echo said");
    assert_eq!(loud.err, "said\n");
    judge.reply(&loud.out, "trial");
}

fn running(judge: &mut Judge) {
    let world = World::new();
    judge.fails(&world, "run -- nosuchprogram", "not-started");
    judge.fails(&world, "run", "usage");
    world.put("loud", "echo out; echo err >&2; touch made");
    let ran = judge.run(&world, "run -- sh loud");
    assert_eq!((ran.code, ran.out.as_str()), (0, "out\n"));
    judge.reply(ran.err.strip_prefix("err\n").unwrap(), "ran");
    world.put("bad", "touch bad-made; exit 7");
    let ran = judge.run(&world, "run --on-failure rollback -- sh bad");
    assert_eq!((ran.code, ran.out.as_str()), (7, ""));
    let reply = judge.reply(&ran.err, "ran");
    assert_eq!(reply["status"], "undone");
    assert!(!world.has("bad-made"));
}

fn deciding(judge: &mut Judge) {
    let world = World::new()
        .file("d/a", "1\n")
        .file("backout.toml", "[protect]\nask = ['d']\ndeny = ['s']\n");
    judge.fails(&world, "write -p s/x --text 1", "gate");
    judge.fails(&world, "--agent bob --once k write d/a --text 2", "waits");
    let pending = judge.replies(&world, "pending", "pending");
    judge.replies(&world, "status", "status");
    let id = pending["proposals"][0]["id"].as_str().unwrap();
    judge.replies(&world, &format!("show {id}"), "shown");
    judge.fails(&world, &format!("diff {id}"), "nothing-done");
    judge.replies(&world, &format!("pending {id}"), "proposal");
    let own = format!("--agent bob approve {id}");
    judge.fails(&world, &own, "own-proposal");
    judge.replies(&world, &format!("approve {id} --why fine"), "finished");
    judge.replies(&world, "show @", "shown");
    judge.fails(&world, &format!("reject {id}"), "nothing-to-decide");
    judge.fails(&world, "--once k write d/a --text 3", "key-taken");
    judge.replies(&world, "--once k write d/a --text 2", "finished");
    judge.replies(&world, &format!("undo {id}"), "undone");
    judge.fails(&world, "--once k write d/a --text 2", "undone-since");
    judge.fails(&world, "rm -r d", "waits");
    let pending = judge.replies(&world, "pending", "pending");
    let id = pending["proposals"][0]["id"].as_str().unwrap();
    judge.replies(&world, &format!("pending {id}"), "proposal");
    judge.replies(&world, &format!("reject {id} --why no"), "rejected");
    judge.replies(&world, &format!("show {id}"), "shown");
    judge.replies(&world, "export --output all", "exported");
}

#[test]
fn every_error_code_is_listed() {
    let schema = Schema::read();
    let listed = schema.definition("code")["enum"].as_array().unwrap();
    let codes: Vec<Value> = ErrorCode::ALL
        .iter()
        .map(|code| code.as_str().into())
        .collect();
    assert_eq!(*listed, codes);
}
