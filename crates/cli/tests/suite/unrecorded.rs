//! What happened and could not be recorded, since the disk of the state was full by then.

use crate::claims::Disk;
use crate::world::World;

/// Lets a command go as far as a step, fills the disk of the state, and lets it go on.
fn full_before(step: &str, done: &[&[&str]], arguments: &[&str]) -> Option<(World, Disk, String)> {
    let prepared = || {
        let world = World::new().file("a", "0");
        let state = Disk::at(world.place("state"), 2048)?;
        for arguments in done {
            let ran = world.run(&mut world.command(arguments));
            assert_eq!(ran.code, 0, "{ran}");
        }
        Some((world, state))
    };
    let (twin, _state) = prepared()?;
    let passed = twin.steps(arguments);
    let before = passed.iter().map(String::as_str);
    let before: Vec<&str> = before.take_while(|passed| *passed != step).collect();
    assert!(before.len() < passed.len(), "it does not come to {step}");
    let (world, state) = prepared()?;
    let waiting = world.after_steps(&before, arguments);
    state.fill();
    let said = world.go_on(waiting).to_string();
    std::fs::remove_file(world.place("state/filler")).unwrap();
    let ran = world.cli(["recover"]);
    assert_eq!(ran.code, 0, "{ran}");
    Some((world, state, said))
}

#[test]
fn a_write_that_could_not_be_recorded_says_that_it_happened() {
    let write = ["write", "a", "--text", "1"];
    let Some((world, _state, said)) = full_before("engine.before-commit", &[], &write) else {
        return;
    };
    insta::assert_snapshot!(said, @"
    error: operation 9e3779b9 happened, but could not be recorded
      why: no space left for the journal in `$WORLD/state`
      next: make room on that disk; then `backout gc` can let old images go
      next: then run `backout recover`: it takes the operation back
    [exit code 3]
    ");
    assert_eq!(world.text("a"), "0");
}

#[test]
fn an_undo_that_could_not_be_recorded_says_that_it_happened() {
    let write: &[&str] = &["write", "a", "--text", "1"];
    let Some((world, _state, said)) = full_before("engine.undo-applied", &[write], &["undo"])
    else {
        return;
    };
    insta::assert_snapshot!(said, @"
    error: operation 3c6ef372 happened, but could not be recorded
      why: no space left for the journal in `$WORLD/state`
      next: make room on that disk; then `backout gc` can let old images go
      next: then run `backout recover`: it takes the operation back
    [exit code 3]
    ");
    assert_eq!(world.text("a"), "1");
}

#[test]
fn a_rollout_that_could_not_be_recorded_says_where_to_look() {
    let start = ["rollout", "start", "--name", "r", "--content", "new", "a"];
    let write: &[&str] = &["write", "new", "--text", "1"];
    let Some((world, _state, said)) = full_before("rollout.settled", &[write], &start) else {
        return;
    };
    insta::assert_snapshot!(said, @"
    error: the rollout `r` stopped on its way
      why: no space left for the journal in `$WORLD/state`
      next: see what it wrote with `backout rollout status r`
      next: go on with `backout rollout resume r`, or take all of it back with `backout rollout abort r`
    [exit code 3]
    ");
    assert_eq!(world.text("a"), "1");
    let ran = world.cli(["rollout", "resume"]);
    assert_eq!(ran.code, 0, "{ran}");
}
