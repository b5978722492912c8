//! What others built on a command while it ran, or after its watcher died, is theirs: no recovery takes it, and nothing that
//! is said hides it.

use super::recovery::end;
use super::{Running, newest};
use crate::world::{World, said};

/// A run that wrote `a` and `q`; another agent wrote `a` while it ran; then its watcher and its front were killed.
fn dead_under_others(world: &World, options: &[&str]) -> String {
    world.file("a", "1\n");
    let running = Running::start(world, options, "echo 2 > a; echo q > q", "true");
    world.ok(&["--agent", "b", "write", "a", "--text", "b's\n"]);
    let (watcher, front) = (running.watcher(), running.front());
    end(front);
    end(watcher);
    running.go_on(world);
    let log = world.json(&["log", "-n", "100"]);
    let operations = log["operations"].as_array().unwrap();
    let is_whole = |op: &&serde_json::Value| {
        op["verb"] == "run" && !op["summary"].as_str().unwrap().starts_with("part of")
    };
    let run = operations.iter().find(is_whole).unwrap();
    run["id"].as_str().unwrap()[..8].to_owned()
}

/// A run whose watcher and front were killed when it had done this, and that was settled.
fn dead(world: &World, line: &str) -> String {
    let running = Running::start(world, &[], line, "true");
    let (watcher, front) = (running.watcher(), running.front());
    end(front);
    end(watcher);
    running.go_on(world);
    world.ok(&["recover"]);
    newest(world, "run")
}

#[test]
fn a_dead_run_that_was_to_be_rolled_back_leaves_what_another_agent_wrote_meanwhile() {
    let world = World::new();
    let run = dead_under_others(&world, &["--on-failure", "rollback"]);
    let told = said(&world.run(&["--agent", "c", "write", "z", "--text", "z"]));
    assert_eq!(world.read("a"), "b's\n", "{told}");
    assert!(told.contains("it was not taken back"), "{told}");
    assert!(
        told.contains(&format!("recover --rollback {run} --force")),
        "{told}"
    );
    let status = said(&world.run(&["status"]));
    assert!(!status.contains("changed nothing"), "{status}");
    // By force all goes, what went along is named, and the named command brings all of it back.
    let forced = world.ok(&["recover", "--rollback", &run, "--force"]);
    assert!(forced.contains("with what was built on it"), "{forced}");
    assert!(forced.contains("write a"), "{forced}");
    assert_eq!(world.read("a"), "1\n");
    assert!(!world.path("q").exists());
    let back = forced.split("`backout redo ").nth(1).unwrap();
    let back = back.split('`').next().unwrap().to_owned();
    world.ok(&["redo", &back]);
    assert_eq!(world.read("a"), "b's\n");
    assert_eq!(world.read("q"), "q\n");
    world.check_store();
}

#[test]
fn a_rollback_by_hand_leaves_what_was_built_on_a_dead_run_since_and_says_what_that_is() {
    let world = World::new();
    world.file("a", "1\n");
    let run = dead(&world, "echo 2 > a; mkdir n");
    world.ok(&["task", "begin", "t"]);
    world.ok(&[
        "--agent", "b", "--task", "t", "write", "a", "--text", "b's\n",
    ]);
    world.ok(&[
        "--agent", "b", "--task", "t", "write", "n/f", "--text", "b's\n",
    ]);
    world.ok(&["commit", "t"]);
    let output = world.run(&["--agent", "c", "recover", "--rollback", &run]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("was done since: write"), "{told}");
    assert_eq!(world.read("a"), "b's\n");
    assert_eq!(world.read("n/f"), "b's\n");
    world.check_store();
}

#[test]
fn an_undo_without_a_name_takes_a_command_whole_that_is_told_by_its_parts() {
    let world = World::new();
    world.file("a", "1\n");
    world.file("b", "1\n");
    let running = Running::start(&world, &[], "echo 2 > a; echo 2 > b", "true");
    for name in ["a", "b"] {
        world.ok(&["--agent", "b", "write", name, "--text", "b's"]);
    }
    world.ok(&["--agent", "b", "undo"]);
    world.ok(&["--agent", "b", "undo"]);
    assert!(running.go_on(&world).status.success());
    let log = said(&world.run(&["log"]));
    assert!(!log.contains("changed nothing"), "{log}");
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("2\n".to_owned(), "2\n".to_owned())
    );
    // The hint means this command, whatever is done meanwhile.
    let plan = said(&world.run(&["undo", "-n"]));
    let run = newest(&world, "run");
    assert!(plan.contains(&format!("`backout undo {run}`")), "{plan}");
    world.ok(&["undo"]);
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("1\n".to_owned(), "1\n".to_owned())
    );
    world.check_store();
}

#[test]
fn a_number_that_is_used_again_is_not_taken_for_the_file_that_was_moved() {
    let world = World::new();
    world.ok(&["write", "g", "--text", "v1"]);
    world.ok(&["write", "f", "--text", "v3"]);
    world.ok(&["mv", "-f", "g", "f"]);
    for _ in 0..3 {
        world.ok(&["undo"]);
    }
    // The file system gives the number of the old `g` to whatever is made next: to `h`, and then to `f`.
    world.file("h", "");
    world.ok(&["redo"]);
    std::fs::remove_file(world.path("h")).unwrap();
    world.ok(&["redo"]);
    world.ok(&["redo"]);
    assert_eq!(world.read("f"), "v1");
    assert!(!world.path("g").exists());
    world.check_store();
}

#[test]
fn what_went_along_is_named_also_where_a_part_was_as_before_already() {
    let world = World::new();
    std::fs::create_dir(world.path("d")).unwrap();
    world.file("d/a", "1\n");
    let run = dead(&world, "rm -rf d; mkdir n; echo n > n/n");
    world.ok(&["--agent", "b", "write", "n/k", "--text", "k"]);
    std::fs::create_dir(world.path("d")).unwrap();
    world.file("d/a", "a person's\n");
    let told = said(&world.run(&["--agent", "c", "recover", "--rollback", &run, "--force"]));
    assert!(!world.path("n/k").exists(), "{told}");
    assert!(told.contains("with what was built on it"), "{told}");
    assert!(told.contains("write n/k"), "{told}");
}

#[test]
fn what_was_made_of_a_dead_run_is_named_and_goes_by_the_command_that_is_named() {
    let world = World::new();
    world.file("f", "1\n");
    let run = dead(&world, "echo 2 >> f");
    world.ok(&["--agent", "b", "cp", "f", "g"]);
    let copy = newest(&world, "copy");
    let output = world.run(&["--agent", "a", "recover", "--rollback", &run]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains(&format!("skipped: {copy} was built on it: copy f to g")),
        "{told}"
    );
    let force = format!("take all of it back with `backout recover --rollback {run} --force`");
    assert!(
        told.contains(&format!("since this was built on it: {copy} copy f to g"))
            && told.contains(&force),
        "{told}"
    );
    let reply = world.run(&["--json", "recover", "--rollback", &run]);
    let reply: serde_json::Value = serde_json::from_slice(&reply.stdout).unwrap();
    let built_on = &reply["operations"][0]["built_on"][0];
    assert!(
        built_on["id"].as_str().unwrap().starts_with(&copy),
        "{reply}"
    );
    // Nobody is sent to what has just failed without a word.
    let status = said(&world.run(&["status"]));
    assert!(
        status.contains(&format!(
            "`backout recover --rollback {run}`; that needs `--force` if something was built on it since"
        )),
        "{status}"
    );
    let forced = world.ok(&["--agent", "a", "recover", "--rollback", &run, "--force"]);
    assert!(
        forced.contains(&format!("with what was built on it: {copy} copy f to g")),
        "{forced}"
    );
    assert_eq!(world.read("f"), "1\n");
    assert!(!world.path("g").exists());
    world.check_store();
}
