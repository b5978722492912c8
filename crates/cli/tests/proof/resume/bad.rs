//! Bad checkpoints are skipped and told, and the one before is used; bad days of an agent that goes on.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::World;

/// An agent that did three things, with a checkpoint after each of the first two.
fn two_steps() -> World {
    let world = World::new();
    world.ok(&["--agent", "robin", "task", "begin", "plan"]);
    for step in ["1", "2", "3"] {
        mine(&world, &["write", step, "--text", step]);
        if step != "3" {
            let (state, at) = (format!("{{\"did\": {step}}}"), format!("{step}/7"));
            mine(
                &world,
                &[
                    "checkpoint",
                    &format!("c{step}"),
                    "--step",
                    &at,
                    "--state",
                    &state,
                ],
            );
        }
    }
    world
}

fn mine(world: &World, words: &[&str]) -> String {
    world.ok(&[&["--agent", "robin", "--task", "plan"], words].concat())
}

/// Changes the record of a checkpoint behind the program's back.
fn damage(world: &World, name: &str, change: impl Fn(&str) -> String) {
    let journal = rusqlite::Connection::open(world.state().join("journal.sqlite")).unwrap();
    let guards: Vec<String> = {
        let sql = "SELECT name FROM sqlite_master WHERE type = 'trigger'";
        let mut statement = journal.prepare(sql).unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.map(Result::unwrap).collect()
    };
    for guard in guards {
        journal
            .execute_batch(&format!("DROP TRIGGER {guard}"))
            .unwrap();
    }
    let like = format!("%\"event\":\"checkpoint\"%\"name\":\"{name}\"%");
    let (lsn, body): (i64, Vec<u8>) = journal
        .query_row(
            "SELECT lsn, body FROM record WHERE CAST(body AS TEXT) LIKE ?1 ORDER BY lsn DESC",
            [&like],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let text = change(std::str::from_utf8(&body).unwrap());
    let sql = "UPDATE record SET body = ?1 WHERE lsn = ?2";
    journal.execute(sql, (text.as_bytes(), lsn)).unwrap();
}

fn resumed(world: &World) -> Value {
    world.json(&["--agent", "robin", "resume", "plan"])
}

#[test]
fn what_came_after_the_checkpoint_is_taken_back_and_can_be_brought_back() {
    let world = two_steps();
    let plan = world.json(&["--agent", "robin", "resume", "plan", "-n"]);
    assert_eq!(plan["reverted"].as_array().unwrap().len(), 1, "{plan}");
    assert!(world.path("3").exists());
    let told = resumed(&world);
    assert_eq!(told["next_step"], 3);
    assert_eq!(told["checkpoint"]["state"], json!({"did": 2}));
    assert_eq!(told["reverted"][0]["why"], "after-checkpoint");
    assert!(!world.path("3").exists());
    let undo = world.json(&["show", told["act"].as_str().unwrap()]);
    assert_eq!(undo["operation"]["trigger"]["kind"], "transaction-abort");
    // Asked again there is nothing left to do.
    assert_eq!(resumed(&world)["reverted"], json!([]));
    world.ok(&["redo", told["act"].as_str().unwrap()]);
    assert_eq!(world.read("3"), "3");
    world.check_store();
}

#[test]
fn a_checkpoint_that_was_cut_short_is_skipped() {
    let world = two_steps();
    damage(&world, "c2", |body| body[..body.len() / 2].to_owned());
    let told = resumed(&world);
    assert_eq!(told["skipped"][0]["bad"], "unreadable", "{told}");
    assert_eq!(told["checkpoint"]["name"], "c1");
    assert_eq!(told["next_step"], 2);
    assert!(!world.path("2").exists() && world.path("1").exists());
}

#[test]
fn a_checkpoint_that_says_something_else_is_skipped() {
    let world = two_steps();
    damage(&world, "c2", |body| body.replace("\"did\":2", "\"did\":9"));
    let told = resumed(&world);
    let why = told["skipped"][0]["why"].as_str().unwrap();
    assert!(why.contains("does not match its hash"), "{told}");
    assert_eq!(told["checkpoint"]["state"], json!({"did": 1}));
}

#[test]
fn a_checkpoint_of_another_task_is_none_to_go_on_from() {
    let world = two_steps();
    world.ok(&["--agent", "robin", "task", "begin", "other"]);
    world.ok(&[
        "--agent",
        "robin",
        "--task",
        "other",
        "checkpoint",
        "theirs",
    ]);
    let told = world.fails(
        1,
        &["--agent", "robin", "resume", "plan", "--from", "theirs"],
    );
    assert!(
        told.contains("theirs: it belongs to the task other"),
        "{told}"
    );
    assert!(world.path("3").exists());
    // With both open it has to be said which is meant.
    world.fails(2, &["--agent", "robin", "resume"]);
}

#[test]
fn a_state_that_is_too_large_is_refused_and_one_that_is_large_is_kept() {
    let world = two_steps();
    let ask = |bytes: usize| {
        let words = [
            "--json",
            "--agent",
            "robin",
            "--task",
            "plan",
            "checkpoint",
            "big",
            "--state",
            "@-",
        ];
        let mut child = world.command(&words).stdin(Stdio::piped()).spawn().unwrap();
        let state = serde_json::to_vec(&json!({"text": "x".repeat(bytes)})).unwrap();
        child.stdin.take().unwrap().write_all(&state).unwrap();
        child.wait_with_output().unwrap()
    };
    let refused = ask(4 << 20);
    assert_eq!(refused.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&refused.stderr).unwrap();
    assert_eq!(told["code"], "state-too-large", "{told}");
    assert!(ask(1 << 20).status.success());
    let told = resumed(&world);
    assert_eq!(told["checkpoint"]["name"], "big");
    let state = told["checkpoint"]["state"]["text"].as_str().unwrap();
    assert_eq!(state.len(), 1 << 20);
}

#[test]
fn a_conflict_is_told_and_nothing_is_touched() {
    let world = two_steps();
    std::fs::write(world.path("3"), "a person's").unwrap();
    let told = world.fails(1, &["--agent", "robin", "resume", "plan"]);
    assert!(told.contains('3'), "{told}");
    assert_eq!(world.read("3"), "a person's");
    world.ok(&["--agent", "robin", "resume", "plan", "--keep"]);
    assert_eq!(world.read("3"), "a person's");
    let told = world.json(&["--agent", "robin", "resume", "plan", "--force"]);
    assert!(!world.path("3").exists());
    world.ok(&["redo", told["act"].as_str().unwrap()]);
    assert_eq!(world.read("3"), "a person's");
}

#[test]
fn an_operation_that_was_under_way_is_not_known_to_the_state() {
    let world = two_steps();
    let running = [
        "--agent",
        "robin",
        "--task",
        "plan",
        "run",
        "--",
        "sh",
        "-c",
        "read go; echo x >slow",
    ];
    let mut child = world
        .command(&running)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = || {
        let status = world.json(&["status"]);
        status["at_work"]
            .as_array()
            .is_some_and(|it| !it.is_empty())
    };
    while !begun() {
        std::thread::yield_now();
    }
    mine(&world, &["write", "meanwhile", "--text", "known"]);
    mine(&world, &["checkpoint", "under-way", "--step", "3/7"]);
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert!(world.path("slow").exists());
    let told = resumed(&world);
    assert_eq!(told["reverted"][0]["why"], "under-way", "{told}");
    assert!(!world.path("slow").exists());
    assert_eq!(world.read("meanwhile"), "known");
    assert!(world.path("3").exists());
}

#[test]
fn an_agent_that_is_alive_is_not_replaced() {
    let world = two_steps();
    let pid = std::process::id().to_string();
    mine(&world, &["checkpoint", "alive", "--pid", &pid]);
    // This process is the agent, and asks itself.
    world.ok(&["--agent", "robin", "resume", "plan"]);
    let mut other = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    mine(
        &world,
        &["checkpoint", "alive", "--pid", &other.id().to_string()],
    );
    let told = world.fails(1, &["--agent", "robin", "resume", "plan"]);
    assert!(told.contains("the agent is still at work"), "{told}");
    world.ok(&["--agent", "robin", "resume", "plan", "--takeover"]);
    other.kill().unwrap();
    other.wait().unwrap();
    world.ok(&["--agent", "robin", "resume", "plan"]);
}

#[test]
fn two_agents_go_on_with_their_own_work_only() {
    let world = World::new();
    for (agent, task) in [("robin", "a"), ("wren", "b")] {
        world.ok(&["--agent", agent, "task", "begin", task]);
        world.ok(&[
            "--agent",
            agent,
            "--task",
            task,
            "checkpoint",
            &format!("{task}0"),
            "--step",
            "0/1",
        ]);
        world.ok(&[
            "--agent", agent, "--task", task, "write", task, "--text", agent,
        ]);
    }
    let told = world.json(&["--agent", "robin", "resume"]);
    assert_eq!(told["task"], "a");
    assert!(!world.path("a").exists());
    assert_eq!(world.read("b"), "wren");
    // What one built on the other's work stands in the way, and is named.
    world.ok(&[
        "--agent",
        "robin",
        "--task",
        "a",
        "write",
        "b",
        "--text",
        "robin on top",
    ]);
    let told = world.fails(1, &["--agent", "wren", "resume", "b"]);
    assert!(told.contains("--others"), "{told}");
    assert_eq!(world.read("b"), "robin on top");
}

#[test]
fn an_agent_outside_of_a_task_keeps_what_it_finished() {
    let world = World::new();
    let robin = |words: &[&str]| world.json(&[&["--agent", "robin"], words].concat());
    robin(&["checkpoint", "c", "--step", "1"]);
    robin(&["write", "a", "--text", "a"]);
    let told = robin(&["resume"]);
    assert_eq!(told["stays"][0]["why"], "committed", "{told}");
    assert_eq!(told["next_step"], 2);
    assert_eq!(world.read("a"), "a");
}

#[test]
fn a_clock_that_jumps_back_changes_nothing() {
    let world = World::new();
    let seed = world.scratch("seed");
    std::fs::create_dir_all(&seed).unwrap();
    let ask = |now: i64, words: &[&str]| {
        std::fs::write(seed.join("now"), now.to_string()).unwrap();
        let all = [&["--json", "--agent", "robin"], words].concat();
        let output = world
            .command(&all)
            .env("BACKOUT_TEST_SEED", &seed)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", crate::world::said(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    ask(2_000_000, &["task", "begin", "plan"]);
    ask(
        2_000_000,
        &["--task", "plan", "checkpoint", "first", "--step", "1/3"],
    );
    ask(
        1_000_000,
        &["--task", "plan", "checkpoint", "second", "--step", "2/3"],
    );
    ask(1_500_000, &["--task", "plan", "write", "a", "--text", "a"]);
    let told = ask(500_000, &["resume", "plan"]);
    assert_eq!(told["checkpoint"]["name"], "second", "{told}");
    assert!(!world.path("a").exists());
}

#[test]
fn a_checkpoint_is_due_after_so_many_operations() {
    let world = World::new();
    world.file("backout.toml", "[checkpoints]\nevery = 3\n");
    world.ok(&["--agent", "robin", "task", "begin", "plan"]);
    let due = |words: &[&str]| {
        let all = [
            &["--json", "--agent", "robin", "--task", "plan", "checkpoint"],
            words,
        ]
        .concat();
        let told: Value = serde_json::from_str(&world.ok(&all)).unwrap();
        told["reply"].as_str().unwrap().to_owned()
    };
    for (number, reply) in [
        (1, "checkpoint-not-due"),
        (2, "checkpoint-not-due"),
        (3, "checkpoint"),
        (4, "checkpoint-not-due"),
    ] {
        mine(&world, &["write", &number.to_string(), "--text", "x"]);
        assert_eq!(due(&["--if-due"]), reply, "operation {number}");
    }
    assert_eq!(due(&["--every", "1"]), "checkpoint");
    let told = mine(&world, &["checkpoint", "--if-due"]);
    assert_eq!(
        told,
        "no checkpoint is due: 0 of 3 operations since the last one\n"
    );
}

#[test]
fn secrets_of_a_state_are_kept_and_not_shown() {
    let world = two_steps();
    let state = r#"{"api_key": "sk-1234567890", "n": 1}"#;
    mine(
        &world,
        &[
            "checkpoint",
            "s",
            "--state",
            state,
            "--env",
            "GITHUB_TOKEN=ghp_abcdef",
            "--env",
            "MODE=fast",
            "--env",
            "-GONE",
        ],
    );
    let list = world.ok(&["checkpoint", "--list"]) + &world.ok(&["--json", "checkpoint", "--list"]);
    let told = world.ok(&["--agent", "robin", "resume", "plan"]);
    for shown in [&list, &told] {
        assert!(
            !shown.contains("sk-1234567890") && !shown.contains("ghp_abcdef"),
            "{shown}"
        );
    }
    assert!(
        told.contains("variable: MODE=fast") && told.contains("variable: GONE was taken away"),
        "{told}"
    );
    let told = resumed(&world);
    assert_eq!(told["checkpoint"]["state"]["api_key"], "sk-1234567890");
}

#[test]
fn a_checkpoint_is_found_by_its_name_whatever_others_hold() {
    let world = World::new();
    world.ok(&["checkpoint", "one"]);
    world.ok(&["checkpoint", "two"]);
    let journal = rusqlite::Connection::open(world.state().join("journal.sqlite")).unwrap();
    let torn = "UPDATE checkpoint SET body = '{' WHERE name = 'one'";
    assert_eq!(journal.execute(torn, []).unwrap(), 1);
    drop(journal);
    world.ok(&["checkpoint", "three"]);
}
