//! Crash points in pairs along what gates do: a rollout, a proposal, the ladder. Whoever goes on after a death dies as well, at
//! every one of his points; who comes third ends where nobody died.
//!
//! Not here: pairs along single writes, undos and commands (`crash`), which recovery alone puts right.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Output;

use crate::gates::{guarded, pending, status_of};
use crate::rollout::{config, servers, start, state, words, writes};
use crate::ruled::waits;
use crate::world::{World, said};

/// SIGABRT.
const ABORTED: i32 = 6;

/// More points nothing passes here.
const POINTS_MAX: usize = 2000;

fn every_pair() -> bool {
    std::env::var_os("BACKOUT_EVERY_PAIR").is_some()
}

/// Lists the points that a command passes.
fn passed(world: &World, line: &[&str]) -> Vec<String> {
    let log = world.scratch("points");
    let mut command = world.command(line);
    command.env("BACKOUT_CRASH_LOG", &log).output().unwrap();
    let points = std::fs::read_to_string(log).unwrap();
    points.lines().map(str::to_owned).collect()
}

fn dying(world: &World, line: &[&str], point: usize) -> Output {
    let mut command = world.command(line);
    command.env("BACKOUT_CRASH_AT", point.to_string());
    command.output().unwrap()
}

fn is_dead(output: &Output) -> bool {
    output.status.signal() == Some(ABORTED)
}

/// Chooses the first deaths: the first at each name of `ours`, or all of them for `cargo xtask crash`.
fn firsts(points: &[String], ours: &[&str]) -> Vec<usize> {
    let mut seen: Vec<&str> = Vec::new();
    let mut chosen = Vec::new();
    for (name, point) in points.iter().zip(1..) {
        let is_new = ours.contains(&name.as_str()) && !seen.contains(&name.as_str());
        if every_pair() || is_new {
            seen.push(name);
            chosen.push(point);
        }
    }
    chosen
}

/// Tells whether the second death is tried at a point. What happens inside of a write is tried for single writes.
fn is_tried(name: &str) -> bool {
    let within = ["engine.armed", "engine.applied", "engine.undone"];
    every_pair() || name.starts_with("rollout.") || within.contains(&name)
}

/// What goes on with a rollout that may not have begun.
fn going_on<'l>(world: &World, line: &[&'l str]) -> Vec<&'l str> {
    let rollouts = world.json(&["rollout", "list"]);
    match rollouts["rollouts"].as_array().unwrap().first() {
        None => line.to_vec(),
        Some(_) => vec!["rollout", "resume", "r"],
    }
}

/// Lets a rollout of three targets die, and who goes on with it, and goes on.
fn rollout_in_pairs(options: &[&str], ours: &[&str]) {
    let line = start(3, options);
    let line = words(&line);
    let unbroken = servers(3);
    let points = passed(&unbroken, &line);
    let (expected, kept) = (unbroken.tree().without_times(), writes(&unbroken).0);
    for first in firsts(&points, ours) {
        let begun = || {
            let world = servers(3);
            assert!(is_dead(&dying(&world, &line, first)), "point {first}");
            world
        };
        let counted = begun();
        let seconds = passed(&counted, &going_on(&counted, &line));
        let tried = seconds.iter().zip(1..).filter(|(name, _)| is_tried(name));
        for (name, second) in tried {
            let at = format!(
                "points {first} ({}) and {second} ({name})",
                points[first - 1]
            );
            let world = begun();
            let output = dying(&world, &going_on(&world, &line), second);
            assert!(is_dead(&output), "{at}: {}", said(&output));
            let ended = world.run(&going_on(&world, &line));
            let (now, told) = (world.tree().without_times(), said(&ended));
            assert!(
                now == expected,
                "{at}: {told}\n{}",
                now.difference(&expected)
            );
            // Nothing is in effect twice.
            assert_eq!(writes(&world).0, kept, "{at}: {told}");
            world.check_store();
        }
    }
}

#[test]
fn a_rollout_that_dies_twice_ends_as_one_that_did_not() {
    let ours = ["rollout.written"];
    rollout_in_pairs(&["--wave", "2", "--check", "true"], &ours);
}

#[test]
fn a_wave_whose_undo_dies_twice_is_undone() {
    let ours = ["rollout.step-undone"];
    rollout_in_pairs(&["--wave", "2", "--check", "test {wave} -lt 2"], &ours);
}

#[test]
fn all_waves_whose_undo_dies_twice_are_undone() {
    let check = "test {wave} -lt 2";
    let options = ["--wave", "2", "--on-failure", "all", "--check", check];
    rollout_in_pairs(&options, &["rollout.step-undone"]);
}

#[test]
fn a_rollout_whose_abort_dies_twice_is_aborted() {
    let abort = ["rollout", "abort", "r"];
    let held = || {
        let world = servers(3);
        let line = start(3, &["--wave", "2"]);
        let line = words(&line);
        let points = passed(&servers(3), &line);
        let settled = points.iter().rposition(|name| name == "rollout.settled");
        assert!(is_dead(&dying(&world, &line, settled.unwrap() + 1)));
        assert_eq!(world.read(&config(3)), "new\n");
        world
    };
    let before = servers(3).tree().without_times();
    let points = passed(&held(), &abort);
    for name in ["rollout.step-undone", "rollout.rolled-back"] {
        assert!(points.iter().any(|it| it == name), "{name}: {points:?}");
    }
    for first in firsts(&points, &["rollout.step-undone"]) {
        let counted = held();
        assert!(is_dead(&dying(&counted, &abort, first)), "point {first}");
        let seconds = passed(&counted, &abort);
        let tried = seconds.iter().zip(1..).filter(|(name, _)| is_tried(name));
        for (_, second) in tried {
            let world = held();
            assert!(is_dead(&dying(&world, &abort, first)), "point {first}");
            let output = dying(&world, &abort, second);
            assert!(is_dead(&output), "{}", said(&output));
            let at = format!("points {first} and {second}: {}", said(&output));
            world.run(&abort);
            assert_eq!(state(&world), "aborted", "{at}");
            assert!(world.tree().without_times() == before, "{at}");
            world.check_store();
        }
    }
}

/// What a proposal has come to is the whole of it, or nothing.
fn judged(world: &World, id: &str, at: &str) {
    let (now, status) = (world.read("d/a"), status_of(world, id));
    match status.as_str() {
        "proposed" => {
            assert_eq!(now, "one\n", "{at}");
            world.ok(&["approve", id]);
            assert_eq!(world.read("d/a"), "two\n", "{at}");
        }
        "committed" => assert_eq!(now, "two\n", "{at}"),
        "undone" | "aborted" => assert_eq!(now, "one\n", "{at}"),
        other => panic!("{at}: {other}"),
    }
    world.check_store();
}

#[test]
fn an_approval_and_its_recovery_die_and_the_proposal_is_whole() {
    let ask = ["write", "d/a", "--text", "two\n"];
    let proposed = || {
        let world = guarded();
        let id = waits(&world, &ask);
        (world, id)
    };
    let (world, id) = proposed();
    let points = passed(&world, &["approve", &id]);
    let ours = ["engine.applied"];
    for first in firsts(&points, &ours) {
        for second in 1..POINTS_MAX {
            let at = format!("points {first} ({}) and {second}", points[first - 1]);
            let (world, id) = proposed();
            assert!(is_dead(&dying(&world, &["approve", &id], first)), "{at}");
            let is_over = !is_dead(&dying(&world, &["recover"], second));
            world.run(&["recover"]);
            judged(&world, &id, &at);
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn a_rejection_dies_at_any_point_and_is_made_or_was_not() {
    let ask = ["write", "d/a", "--text", "two\n"];
    let world = guarded();
    let id = waits(&world, &ask);
    let points = passed(&world, &["reject", &id, "--why", "no"]).len();
    assert!(points >= 2, "{points}");
    for point in 1..=points {
        let world = guarded();
        let id = waits(&world, &ask);
        let output = dying(&world, &["reject", &id, "--why", "no"], point);
        assert!(is_dead(&output), "point {point}: {}", said(&output));
        world.run(&["recover"]);
        let status = status_of(&world, &id);
        assert_eq!(world.read("d/a"), "one\n", "point {point}");
        match status.as_str() {
            "proposed" => {
                assert_eq!(pending(&world).len(), 1, "point {point}");
                world.ok(&["approve", &id]);
                assert_eq!(world.read("d/a"), "two\n", "point {point}");
            }
            "refused" => {
                world.fails(1, &["approve", &id]);
                assert!(pending(&world).is_empty(), "point {point}");
            }
            other => panic!("point {point}: {other}"),
        }
        world.check_store();
    }
}
