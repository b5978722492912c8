//! Ctrl-C is a decision: the step under way is put back, that is said and journalled, and nothing goes on later.

use std::io::Write as _;
use std::process::Child;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{json, newest};
use crate::commands::wait_for;
use crate::world::{World, said};

const FILES: usize = 6000;

/// Many files, all changed by one command.
fn many() -> World {
    let world = World::in_memory();
    for number in 0..FILES {
        world.file(&format!("d/{number:05}"), "old\n");
    }
    let line = "import os\nfor n in os.listdir('d'): open('d/' + n, 'w').write('new\\n')";
    world.ok(&["run", "--", "python3", "-c", line]);
    world
}

fn interrupt(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

/// Starts something long and interrupts it as soon as it has changed something.
fn interrupted(world: &World, arguments: &[&str], was: &str, signal: Signal) -> (i32, String) {
    let child = world.spawn(arguments);
    let is_changed = || {
        let names = (0..FILES)
            .step_by(97)
            .map(|number| format!("d/{number:05}"));
        names.into_iter().any(|name| world.read(&name) != was)
    };
    for _ in 0..4000 {
        if is_changed() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    interrupt(&child, signal);
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap_or(-1), said(&output))
}

fn all_are(world: &World, content: &str) {
    for number in 0..FILES {
        let name = format!("d/{number:05}");
        assert_eq!(world.read(&name), content, "{name}");
    }
}

#[test]
fn an_undo_and_a_redo_that_are_interrupted_are_put_back_and_told() {
    let world = many();
    let run = newest(&world, "run");
    for (verb, is, other) in [("undo", "new\n", "old\n"), ("redo", "old\n", "new\n")] {
        let (code, told) = interrupted(&world, &[verb, &run], is, Signal::SIGINT);
        if code == 0 {
            // It was faster: then all of it is done.
            all_are(&world, other);
            continue;
        }
        assert_eq!(code, 130, "{told}");
        assert!(told.contains("it was interrupted"), "{told}");
        assert!(told.contains("it was put back as it was"), "{told}");
        all_are(&world, is);
        let (kind, status) = world.operations().into_iter().next().unwrap();
        assert_eq!((kind.as_str(), status.as_str()), (verb, "aborted"));
        // Nothing goes on by itself.
        let next = said(&world.run(&["write", "other", "--text", "x"]));
        assert!(!next.contains("recovered"), "{next}");
        all_are(&world, is);
        world.ok(&["undo"]);
        world.ok(&[verb, &run]);
        all_are(&world, other);
    }
    world.check_store();
}

#[test]
fn a_write_that_is_interrupted_leaves_nothing() {
    let world = World::in_memory();
    for number in 0..FILES {
        world.file(&format!("from/{number:05}"), "old\n");
    }
    let child = world.spawn(&["cp", "-r", "from", "d"]);
    for _ in 0..4000 {
        if world.path("d").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    interrupt(&child, Signal::SIGTERM);
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        return;
    }
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(!world.path("d").exists());
    world.check_store();
}

#[test]
fn a_write_that_waits_for_its_input_ends_at_the_first_signal() {
    for arguments in [&["write", "f"][..], &["edit", "--patch", "-"], &["batch"]] {
        let world = World::new();
        let mut command = world.command(arguments);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // It has begun to read when the pipe is empty again.
        stdin.write_all(b"half of it").unwrap();
        wait_for(|| rustix::io::ioctl_fionread(&stdin).unwrap() == 0);
        interrupt(&child, Signal::SIGINT);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        assert!(said(&output).contains("it was interrupted"));
        assert!(!world.path("f").exists());
        drop(stdin);
    }
}

#[test]
fn a_second_signal_ends_it_at_once_and_the_next_command_takes_it_back_and_says_so() {
    let world = many();
    let run = newest(&world, "run");
    let child = world.spawn(&["undo", &run]);
    for _ in 0..4000 {
        if (0..FILES)
            .step_by(97)
            .any(|number| world.read(&format!("d/{number:05}")) == "old\n")
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    interrupt(&child, Signal::SIGINT);
    interrupt(&child, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        return;
    }
    let next = said(&world.run(&["write", "other", "--text", "x"]));
    all_are(&world, "new\n");
    let is_told = next.contains("recovered") || said(&output).contains("it was interrupted");
    assert!(is_told, "{next} {}", said(&output));
    assert_eq!(
        json(&world, 0, &["show", &run])["operation"]["status"],
        "committed"
    );
    world.check_store();
}

#[test]
fn what_somebody_wrote_into_a_restored_file_stays_when_the_undo_is_interrupted() {
    let world = many();
    let run = newest(&world, "run");
    let child = world.spawn(&["undo", &run]);
    let mut restored = None;
    for _ in 0..60_000 {
        let mut names = (0..FILES).step_by(97).map(|n| format!("d/{n:05}"));
        restored = names.find(|name| world.read(name) == "old\n");
        if restored.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    interrupt(&child, Signal::SIGSTOP);
    let name = restored.expect("the undo has begun");
    world.file(&name, "old\na person's line\n");
    interrupt(&child, Signal::SIGINT);
    interrupt(&child, Signal::SIGCONT);
    let output = child.wait_with_output().unwrap();
    let told = said(&output);
    assert_eq!(world.read(&name), "old\na person's line\n", "{told}");
    assert!(told.contains(&name), "{told}");
    if output.status.code() == Some(1) {
        // It was faster, and says that somebody was there.
        assert!(told.contains("in doubt"), "{told}");
        return;
    }
    assert_eq!(output.status.code(), Some(130), "{told}");
    let undo = newest(&world, "undo");
    world.fails(1, &["recover", "--rollback", &undo]);
    assert_eq!(world.read(&name), "old\na person's line\n");
    let told = said(&world.run(&["recover", "--rollback", &undo, "--force"]));
    all_are(&world, "new\n");
    let back = told.split("comes back with `backout ").nth(1);
    let back = back.and_then(|rest| rest.split('`').next());
    let back: Vec<&str> = back.expect(&told).split(' ').collect();
    world.ok(&back);
    assert_eq!(world.read(&name), "old\na person's line\n");
    world.check_store();
}

#[test]
fn a_trial_that_is_interrupted_while_it_is_applied_is_put_back_and_told() {
    let world = World::in_memory();
    for number in 0..FILES {
        world.file(&format!("d/{number:05}"), "old\n");
    }
    // Too large to be known by its bytes.
    world.file("a", &"x".repeat(200_000));
    let line = "import os\nfor n in os.listdir('d'): open('d/' + n, 'w').write('new\\n')\nopen('a', 'a').write('y')";
    world.ok(&["try", "--", "python3", "-c", line]);
    let (code, told) = interrupted(&world, &["try", "--apply"], "old\n", Signal::SIGINT);
    if code == 0 {
        // It was faster: then all of it is done.
        return all_are(&world, "new\n");
    }
    assert_eq!(code, 130, "{told}");
    assert!(told.contains("interrupted"), "{told}");
    all_are(&world, "old\n");
    // The trial is still there; what was put back has another change time, and nothing else that is new.
    assert_eq!(world.read("a").len(), 200_000);
    world.ok(&["try", "--apply"]);
    all_are(&world, "new\n");
    assert_eq!(world.read("a").len(), 200_001);
    world.ok(&["undo"]);
    all_are(&world, "old\n");
    world.check_store();
}

#[test]
fn a_sandbox_that_is_interrupted_while_it_is_applied_is_put_back_and_applied_again() {
    let world = World::in_memory();
    for number in 0..FILES {
        world.file(&format!("d/{number:05}"), "old\n");
    }
    // Too large to be known by its bytes.
    world.file("a", &"x".repeat(200_000));
    let line = "import os\nfor n in os.listdir('d'): open('d/' + n, 'w').write('new\\n')\nopen('a', 'a').write('y')";
    world.ok(&["sandbox", "start"]);
    world.ok(&["sandbox", "exec", "--", "python3", "-c", line]);
    for arguments in [
        &["sandbox", "apply"][..],
        &["sandbox", "apply", "--only", "d/**"],
    ] {
        let (code, told) = interrupted(&world, arguments, "old\n", Signal::SIGINT);
        if code == 0 {
            // It was faster: then all of it is done.
            all_are(&world, "new\n");
            world.ok(&["undo"]);
        } else {
            assert_eq!(code, 130, "{told}");
            assert!(told.contains("interrupted"), "{told}");
        }
        all_are(&world, "old\n");
        assert_eq!(world.read("a").len(), 200_000);
    }
    world.ok(&["sandbox", "apply"]);
    all_are(&world, "new\n");
    assert_eq!(world.read("a").len(), 200_001);
    world.ok(&["undo"]);
    all_are(&world, "old\n");
    world.check_store();
}
