//! Nothing that Backout does walks into its own state, moves it, or calls done what was not.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Stdio;

use crate::disk::Disk;
use crate::world::{World, said};

#[test]
fn a_directory_above_the_state_is_not_moved() {
    let base = tempfile::tempdir_in(crate::world::memory()).unwrap();
    let state = base.path().join("p/st");
    fs::create_dir_all(&state).unwrap();
    let world = World::at(base.path(), Some(&state));
    world.file("f", "0");
    world.ok(&["write", "f", "--text", "1"]);
    let refused = world.fails(1, &["mv", "p", "q"]);
    assert!(
        refused.contains("our own state") || refused.contains("nobody writes there"),
        "{refused}"
    );
    assert!(state.join("journal.sqlite").exists());
    // A walk over the tree leaves the state out, and says so.
    let mode = |path: &str| fs::metadata(base.path().join(path)).unwrap().mode() & 0o777;
    fs::set_permissions(base.path().join("p"), fs::Permissions::from_mode(0o755)).unwrap();
    let before = mode("p/st/journal.sqlite");
    let told = said(&world.run(&["chmod", "-R", "711", "p"]));
    assert!(told.contains("was left out"), "{told}");
    assert_eq!((mode("p"), mode("p/st/journal.sqlite")), (0o711, before));
    world.ok(&["cp", "-r", "p", "c"]);
    assert!(!base.path().join("c/st").exists());
    world.ok(&["undo"]);
    world.ok(&["undo"]);
    assert_eq!(mode("p"), 0o755);
}

#[test]
fn a_walk_over_a_whole_file_system_leaves_its_depot_out() {
    let disk = Disk::memory(4096);
    let outside = tempfile::tempdir_in(crate::world::memory()).unwrap();
    let world = World::at(disk.root(), Some(&outside.path().join("state")));
    world.file("d/x", "secret");
    let mode = |path: &str| fs::metadata(disk.root().join(path)).unwrap().mode() & 0o777;
    let before = (mode("d"), mode("d/x"));
    world.ok(&["rm", "-r", "d"]);
    world.file("code", "c");
    world.ok(&["chmod", "-R", "700", "code", "."]);
    world.ok(&["mkdir", "copy"]);
    let depot = format!(".backout-{}", rustix::process::geteuid().as_raw());
    assert_eq!(
        fs::read_to_string(disk.root().join(&depot).join(".gitignore")).unwrap(),
        "*\n"
    );
    world.ok(&["undo"]);
    world.ok(&["undo"]);
    world.ok(&["undo"]);
    assert_eq!((mode("d"), mode("d/x")), before);
    assert_eq!(world.read("d/x"), "secret");
}

#[test]
fn what_was_done_is_not_called_refused_because_its_reply_could_not_be_written() {
    let world = World::in_memory();
    for with in [&["--json"][..], &[]] {
        let mut arguments = with.to_vec();
        arguments.extend(["write", "f", "--text", with.first().unwrap_or(&"plain")]);
        let mut command = world.command(&arguments);
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let done = command
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{told}");
        assert!(
            told.contains("it was done: see it with `backout log -n 1`"),
            "{told}"
        );
        assert_eq!(world.read("f"), *with.first().unwrap_or(&"plain"));
    }
}

#[test]
fn a_run_that_was_rolled_back_names_the_way_back() {
    let world = World::in_memory();
    world.file("f", "0\n");
    let line = "echo 5 > f; echo n > n; false";
    let told = said(&world.run(&["run", "--on-failure", "rollback", "--", "sh", "-c", line]));
    let id = told.split("`backout redo ").nth(1).expect(&told);
    let id = id.split('`').next().unwrap();
    world.ok(&["redo", id]);
    assert_eq!(
        (world.read("f"), world.read("n")),
        ("5\n".into(), "n\n".into())
    );
}

#[test]
fn a_directory_that_a_user_opens_for_a_moment_is_opened_again_to_take_it_back() {
    let world = World::in_memory().of_user(65_534);
    world.ok(&["mkdir", "d"]);
    world.ok(&["write", "d/x", "--text", "1\n"]);
    let mode = |bits| fs::set_permissions(world.path("d"), fs::Permissions::from_mode(bits));
    mode(0o500).unwrap();
    let before = world.tree();
    let line = "chmod 700 d; rm d/x; echo 3 > d/z; chmod 500 d";
    world.ok(&["run", "--", "sh", "-c", line]);
    let after = world.tree().without_times();
    world.ok(&["undo"]);
    assert_eq!(world.tree().difference(&before), "");
    world.ok(&["redo"]);
    assert_eq!(world.tree().without_times().difference(&after), "");
    world.ok(&["undo"]);
    assert_eq!(world.tree().difference(&before), "");
}
