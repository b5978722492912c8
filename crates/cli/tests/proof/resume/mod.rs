//! An agent that dies and goes on: wherever it is killed, it ends where it would have ended.
//!
//! The agent is a shell script with a plan of seven steps (`agent.sh`), which asks the real program for every write. It is aborted at crash points of the calls that it makes, and
//! killed with all its children at random moments; then it is started again. `BACKOUT_RESUME_KILLS` says how many random kills there are,
//! `BACKOUT_EVERY_PAIR` has every crash point tried.

mod bad;
mod looked;
mod said;
mod stages;

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::random::Random;
use crate::world::{Tree, World, said};

const AGENT: &str = include_str!("agent.sh");

/// How many kills there are at random moments.
const KILLS: usize = 20;

/// How many crash points are tried, spread over all that there are.
const POINTS: usize = 24;

/// SIGKILL.
const KILLED: i32 = 9;

fn world() -> World {
    let world = World::in_memory();
    world.file("app.toml", "# mine\nport = 8080\ncount = 0\n");
    world.file("old", "old\n");
    world.file("other", "other\n");
    world.file("notes", "zero\n");
    let rows = "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT); INSERT INTO t (word) VALUES ('first');";
    database(&world).execute_batch(rows).unwrap();
    world
}

fn database(world: &World) -> rusqlite::Connection {
    rusqlite::Connection::open(world.path("app.db")).unwrap()
}

/// All that the agent has to leave: files, and rows as they are read.
fn outcome(world: &World) -> (Tree, Vec<(i64, String)>) {
    for own in ["answer", "complaint", "app.db-wal", "app.db-shm"] {
        let _gone = std::fs::remove_file(world.path(own));
    }
    let rows = {
        let database = database(world);
        let mut statement = database
            .prepare("SELECT id, word FROM t ORDER BY id")
            .unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    };
    let kept = std::fs::read(world.path("app.db")).unwrap();
    // Its bytes are SQLite's own matter.
    std::fs::remove_file(world.path("app.db")).unwrap();
    let tree = world.tree().without_times();
    std::fs::write(world.path("app.db"), kept).unwrap();
    (tree, rows)
}

fn agent(world: &World) -> Command {
    let model = world.command(&[]);
    let mut agent = Command::new("sh");
    agent.arg("-c").arg(AGENT).current_dir(world.path("."));
    agent.env_clear();
    for (name, value) in model.get_envs() {
        if let Some(value) = value {
            agent.env(name, value);
        }
    }
    agent.env("BACKOUT", env!("CARGO_BIN_EXE_backout"));
    agent
}

fn ends(world: &World) {
    let output = agent(world).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

/// What an unbroken run leaves.
fn unbroken() -> (Tree, Vec<(i64, String)>) {
    let world = world();
    ends(&world);
    assert_eq!(world.read("app.toml"), "# mine\nport = 8082\ncount = 2\n");
    outcome(&world)
}

fn compare(world: &World, expected: &(Tree, Vec<(i64, String)>), at: &str) {
    let found = outcome(world);
    assert_eq!(found.1, expected.1, "rows, {at}");
    let unlike = found.0.difference(&expected.0);
    assert_eq!(found.0, expected.0, "{at}:\n{unlike}");
    world.check_store();
}

fn is_killed(output: &Output) -> bool {
    output.status.signal() == Some(KILLED)
}

#[test]
fn an_agent_that_dies_at_a_crash_point_ends_where_it_would_have_ended() {
    let expected = unbroken();
    let first = world();
    let points = first.scratch("points");
    std::fs::create_dir(&points).unwrap();
    let output = agent(&first).env("POINTS", &points).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let mut all = Vec::new();
    for call in 1.. {
        let Ok(passed) = std::fs::read_to_string(points.join(call.to_string())) else {
            if call > 1 {
                break;
            }
            continue;
        };
        all.extend((1..=passed.lines().count()).map(|point| (call, point)));
    }
    let every = std::env::var_os("BACKOUT_EVERY_PAIR").is_some();
    let stride = if every { 1 } else { all.len().div_ceil(POINTS) };
    for &(call, point) in all.iter().step_by(stride) {
        let world = world();
        let at = format!("call {call}, point {point}");
        let output = agent(&world)
            .env("KILL_CALL", call.to_string())
            .env("KILL_POINT", point.to_string())
            .output()
            .unwrap();
        assert!(is_killed(&output), "{at}: {}", said(&output));
        // And once more while it goes on: the first call is the one that resumes.
        let output = agent(&world)
            .env("KILL_CALL", "1")
            .env("KILL_POINT", (1 + point % 8).to_string())
            .output()
            .unwrap();
        assert!(is_killed(&output), "{at}: {}", said(&output));
        ends(&world);
        compare(&world, &expected, &at);
    }
}

#[test]
fn an_agent_that_is_killed_at_random_moments_ends_where_it_would_have_ended() {
    let number = std::env::var("BACKOUT_RESUME_KILLS").map_or(KILLS, |it| it.parse().unwrap());
    let began = Instant::now();
    let expected = unbroken();
    let usual = began.elapsed();
    let mut random = Random::new(15);
    let mut kills = 0;
    while kills < number {
        let world = world();
        let mut of_this = 0;
        // One that was killed three times is left to end.
        while of_this < 3 {
            let mut child = agent(&world).process_group(0).spawn().unwrap();
            let share = u32::try_from(random.below(1000)).unwrap();
            std::thread::sleep(Duration::from_micros(50) + usual * share / 1000);
            kill_group(child.id());
            let ended = child.wait().unwrap();
            if ended.success() {
                break;
            }
            assert_eq!(ended.signal(), Some(KILLED));
            of_this += 1;
        }
        kills += of_this;
        ends(&world);
        compare(&world, &expected, &format!("after {of_this} kills"));
    }
    eprintln!("{kills} kills");
}

/// Ends an agent and all that it started.
fn kill_group(pid: u32) {
    let group = format!("-{pid}");
    let _gone = Command::new("kill").args(["-9", "--", &group]).status();
}
