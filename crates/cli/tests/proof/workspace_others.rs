//! `rollback --to` a checkpoint that keeps directories, beside others: whose work would go is known before it does, and what
//! would be refused is foretold.

use std::fs;
use std::process::Command;

use crate::trust::Running;
use crate::trust::recovery::end;
use crate::world::{World, said};

const BACK: [&str; 5] = ["--agent", "ann", "rollback", "--to", "good"];

fn kept() -> World {
    let world = World::new();
    world.file("src/a", "1\n");
    world.file("src/b", "1\n");
    world.ok(&["--agent", "ann", "checkpoint", "good", "--roots", "src"]);
    world
}

/// The way back is refused with a word about others, and `-n` says so; with the word it goes, and comes again.
#[track_caller]
fn needs_a_word(world: &World) {
    let plan = world.run(&[&BACK[..], &["-n"]].concat());
    assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
    assert!(said(&plan).contains("--others"), "{}", said(&plan));
    let why = " has not ended, and may have written what no operation did";
    assert!(said(&plan).contains(why), "{}", said(&plan));
    let before = world.tree().without_times();
    let told = world.fails(1, &BACK);
    assert!(told.contains("other agents wrote there"), "{told}");
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    let told = world.ok(&[&BACK[..], &["--others"]].concat());
    assert!(
        told.contains("brought src back to checkpoint good"),
        "{told}"
    );
    assert_eq!(world.read("src/a"), "1\n");
    let log = world.json(&["log", "-n", "1"]);
    let back = log["operations"][0]["id"].as_str().unwrap().to_owned();
    world.ok(&["undo", &back]);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
}

#[test]
fn the_work_of_a_command_at_work_does_not_go_without_a_word() {
    let world = kept();
    let running = Running::start(&world, &["--agent", "bob"], "echo bob > src/a", "true");
    needs_a_word(&world);
    let output = running.go_on(&world);
    assert!(output.status.success(), "{}", said(&output));
    world.check_store();
}

#[test]
fn the_work_of_a_command_that_died_does_not_go_without_a_word() {
    let world = kept();
    let running = Running::start(&world, &["--agent", "bob"], "echo bob > src/a", "true");
    let (watcher, front) = (running.watcher(), running.front());
    end(front);
    end(watcher);
    fs::write(world.scratch("go"), "").unwrap();
    needs_a_word(&world);
}

#[test]
fn who_wrote_nothing_is_not_named() {
    let world = kept();
    fs::write(world.path("backout.toml"), "[protect]\ndeny = ['src/b']\n").unwrap();
    world.fails(1, &["--agent", "bob", "write", "src/b", "--text", "x"]);
    world.file("src/b", "person\n");
    fs::remove_file(world.path("backout.toml")).unwrap();
    let plan = world.ok(&[&BACK[..], &["-n"]].concat());
    assert!(plan.contains("1 name would become what it was"), "{plan}");
    assert!(plan.contains("not by an operation"), "{plan}");
    world.ok(&BACK);
    // What a person does after an earlier way back is not the doing of that.
    world.file("src/b", "again\n");
    let plan = world.ok(&[&BACK[..], &["-n"]].concat());
    assert!(plan.contains("not by an operation"), "{plan}");
    // What another agent wrote is, also where somebody changed it after that.
    world.ok(&["--agent", "bob", "write", "src/b", "--text", "bob\n"]);
    world.file("src/b", "person\n");
    let plan = said(&world.run(&[&BACK[..], &["-n"]].concat()));
    assert!(
        plan.contains("of bob, and by somebody else after it"),
        "{plan}"
    );
    assert!(plan.contains("--others"), "{plan}");
}

#[test]
fn what_would_be_refused_is_foretold() {
    let world = kept();
    world.file("src/a", "2\n");
    let is_foretold = |why: &str| {
        let before = world.tree();
        let plan = world.run(&[&BACK[..], &["-n"]].concat());
        assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
        let told = said(&plan);
        assert!(
            told.contains("as things stand it would be refused: "),
            "{told}"
        );
        assert!(told.contains(why), "{told}");
        let output = world.run(&BACK);
        assert_ne!(output.status.code(), Some(0), "{}", said(&output));
        assert!(
            world.tree() == before,
            "{}",
            world.tree().difference(&before)
        );
    };
    fs::write(world.path("backout.toml"), "[protect]\ndeny = ['src/a']\n").unwrap();
    is_foretold("src/a");
    fs::write(world.path("backout.toml"), "[protect]\nask = ['src/a']\n").unwrap();
    let plan = said(&world.run(&[&BACK[..], &["-n"]].concat()));
    assert!(
        plan.contains("somebody has to approve it first: "),
        "{plan}"
    );
    assert_eq!(world.json(&["pending"])["proposals"], serde_json::json!([]));
    fs::remove_file(world.path("backout.toml")).unwrap();
    let path = world.path("src/a").display().to_string();
    let chattr = |flag: &str| Command::new("chattr").args([flag, &path]).status();
    if chattr("+i").is_ok_and(|status| status.success()) {
        is_foretold("immutable");
        assert!(chattr("-i").unwrap().success());
    }
    world.ok(&[&BACK[..], &["-n"]].concat());
    world.ok(&BACK);
    assert_eq!(world.read("src/a"), "1\n");
    world.check_store();
}

#[test]
fn a_directory_that_nobody_may_write_is_foretold() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new().of_user(12_345);
    world.file("src/a", "1\n");
    let own = Command::new("chown")
        .args(["-R", "12345:12345", "."])
        .current_dir(world.path(""))
        .status();
    assert!(own.unwrap().success());
    world.ok(&["checkpoint", "good", "--roots", "src"]);
    world.file("src/a", "2\n");
    let closed = |mode| fs::set_permissions(world.path("src"), fs::Permissions::from_mode(mode));
    let taken = Command::new("chown")
        .args(["0:0", "src"])
        .current_dir(world.path(""))
        .status();
    assert!(taken.unwrap().success());
    closed(0o755).unwrap();
    let plan = world.run(&["rollback", "--to", "good", "-n", "--only", "src/a"]);
    assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
    assert!(
        said(&plan).contains("it would be refused"),
        "{}",
        said(&plan)
    );
    let output = world.run(&["rollback", "--to", "good", "--only", "src/a"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(world.read("src/a"), "2\n");
}

#[test]
fn a_root_that_became_something_else_comes_back() {
    for line in ["rm -r src; echo file > src", "mv src old; ln -s old src"] {
        let world = kept();
        let before = world.tree().without_times();
        let output = Command::new("sh")
            .args(["-ec", line])
            .current_dir(world.path(""))
            .status();
        assert!(output.unwrap().success());
        let after = world.tree().without_times();
        let plan = world.ok(&["rollback", "--to", "good", "-n"]);
        assert!(plan.contains("src"), "{line}: {plan}");
        world.ok(&["rollback", "--to", "good"]);
        assert_eq!(world.read("src/a"), "1\n", "{line}");
        assert!(world.path("src").symlink_metadata().unwrap().is_dir());
        let again = world.ok(&["rollback", "--to", "good", "-n"]);
        assert!(again.contains("nothing has changed"), "{line}: {again}");
        world.ok(&["undo"]);
        let now = world.tree().without_times();
        assert!(now == after, "{line}: {}", now.difference(&after));
        world.ok(&["redo"]);
        assert!(line.contains("old") || world.tree().without_times() == before);
        world.check_store();
    }
}

#[test]
fn options_that_mean_nothing_here_are_refused() {
    let world = kept();
    world.file("src/a", "2\n");
    for words in [
        &["-n", "--diff"][..],
        &["--merge"],
        &["--partial"],
        &["--why", "x"],
        &["--severity", "low"],
        &["--trigger", "manual-abort"],
    ] {
        let told = world.fails(2, &[&["rollback", "--to", "good"], words].concat());
        let flag = words.iter().find(|word| word.starts_with("--")).unwrap();
        let why = format!("`{flag}` has no meaning for a checkpoint that keeps directories");
        assert!(told.contains(&why), "{told}");
        let why = "they become what they were, whoever changed them";
        assert!(told.contains(why), "{told}");
        let way = "leave it out, or take back only the recorded operations with `--operations ";
        assert!(told.contains(way), "{told}");
        assert_eq!(world.read("src/a"), "2\n");
    }
}

#[test]
fn the_plan_of_a_part_of_which_nothing_changed_ends_as_the_way_back_does() {
    let world = kept();
    world.file("src/a", "2\n");
    for words in [&["-n"][..], &[]] {
        let back = ["rollback", "--to", "good", "--only", "src/b"];
        let told = world.fails(1, &[&back[..], words].concat());
        assert!(told.contains("nothing"), "{told}");
    }
    assert_eq!(world.read("src/a"), "2\n");
}

#[test]
fn who_wrote_a_file_by_another_name_or_before_it_moved_is_named() {
    let after = "and by somebody else after it";
    // By its other name.
    let world = kept();
    fs::hard_link(world.path("src/a"), world.path("src/z")).unwrap();
    world.ok(&["--agent", "ann", "checkpoint", "good", "--roots", "src"]);
    let script = "echo bob >> src/a";
    world.ok(&["--agent", "bob", "run", "--", "sh", "-c", script]);
    let part = [&BACK[..], &["--only", "src/z"]].concat();
    let plan = world.run(&[&part[..], &["-n"]].concat());
    assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
    assert!(said(&plan).contains(" of bob"), "{}", said(&plan));
    let told = world.fails(1, &part);
    assert!(told.contains("other agents wrote there"), "{told}");
    world.ok(&[&part[..], &["--others"]].concat());
    assert_eq!(world.read("src/z"), "1\n");
    // Its bytes are ours, the mode is somebody's.
    let world = kept();
    world.ok(&["--agent", "ann", "write", "src/a", "--text", "ann\n"]);
    mode(&world, "src/a");
    let plan = world.ok(&[&BACK[..], &["-n"]].concat());
    assert!(plan.contains("of ann") && plan.contains(after), "{plan}");
    // Its directory was moved.
    let world = World::new();
    world.file("src/d/a", "1\n");
    world.ok(&["--agent", "ann", "checkpoint", "good", "--roots", "src"]);
    world.ok(&["--agent", "ann", "write", "src/d/a", "--text", "ann\n"]);
    world.ok(&["--agent", "ann", "mv", "src/d", "src/e"]);
    let plan = world.ok(&[&BACK[..], &["-n"]].concat());
    assert!(!plan.contains("not by an operation"), "{plan}");
    // What another agent wrote in it needs a word, whoever moved it.
    let world = World::new();
    world.file("src/d/a", "1\n");
    world.ok(&["--agent", "ann", "checkpoint", "good", "--roots", "src"]);
    world.ok(&["--agent", "bob", "write", "src/d/new", "--text", "bob\n"]);
    world.ok(&["--agent", "ann", "mv", "src/d", "src/e"]);
    let plan = world.run(&[&BACK[..], &["-n"]].concat());
    assert_eq!(plan.status.code(), Some(1), "{}", said(&plan));
    world.fails(1, &BACK);
    world.ok(&[&BACK[..], &["--others"]].concat());
    assert_eq!(world.tree().names(), ["", "src", "src/d", "src/d/a"]);
    world.check_store();
}

fn mode(world: &World, name: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(world.path(name), fs::Permissions::from_mode(0o600)).unwrap();
}
