//! Advice that helps: what is named can be done, and does what it is named for.

use super::{Running, json, newest};
use crate::disk::Disk;
use crate::trust::recovery::end;
use crate::world::{World, said};

#[test]
fn what_has_expired_is_not_offered_for_a_redo() {
    let world = World::new();
    world.file("f", "one\n");
    world.ok(&["write", "f", "--text", "two\n"]);
    let write = newest(&world, "write");
    world.ok(&["undo"]);
    let told = world.fails(1, &["undo", &write]);
    assert!(told.contains(&format!("redo {write}")), "{told}");
    world.ok(&["gc", "--keep", "0s", "--keep-at-least", "0s"]);
    let told = world.fails(1, &["undo", &write]);
    assert!(told.contains("is already undone"), "{told}");
    assert!(
        told.contains("it cannot be redone: the images of"),
        "{told}"
    );
    assert!(!told.contains("backout redo"), "{told}");
    assert_eq!(json(&world, 1, &["redo", &write])["code"], "expired");
}

#[test]
fn a_redo_that_died_while_it_made_room_is_done_again_by_its_own_name() {
    let world = World::new();
    world.ok(&["write", "-p", "d/a", "--text", "A"]);
    let first = newest(&world, "write");
    world.ok(&["undo"]);
    world.ok(&["write", "-p", "d/b", "--text", "B"]);
    let mut redo = world.command(&["redo", &first]);
    let died = redo.env("BACKOUT_CRASH_AT", "file.applied").output();
    assert!(!died.unwrap().status.success());
    let told = said(&world.run(&["recover"]));
    let again = format!("do it again with `backout redo {first}`");
    assert!(told.contains(&again), "{told}");
    // The step that was put back is no name for it either.
    let step = newest(&world, "recover");
    let told = world.fails(1, &["redo", &step]);
    assert!(told.contains(&again), "{told}");
    assert_eq!(world.read("d/b"), "B");
    world.ok(&["redo", &first]);
    assert_eq!(world.tree().names(), ["", "d", "d/a"]);
    world.check_store();
}

#[test]
fn what_is_chosen_of_a_directory_since_a_time_need_not_be_the_newest_in_it() {
    let world = World::new();
    for name in ["d/a", "d/c", "d/b"] {
        world.ok(&["write", "-p", name, "--text", name]);
    }
    let undo = ["undo", "d", "--at", "1h", "--only", "d/c"];
    world.ok(&[&undo[..], &["-n"]].concat());
    world.ok(&undo);
    assert_eq!(world.tree().names(), ["", "d", "d/a", "d/b"]);
    let told = world.fails(1, &["undo", "d", "--at", "1h", "--only", "d/x"]);
    assert!(told.contains("nothing was undone"), "{told}");
}

#[test]
fn a_key_whose_file_is_gone_or_not_what_it_was_names_what_helps() {
    let world = World::new();
    world.file("a.toml", "[s]\nport = 1\n");
    world.ok(&["set", "a.toml", "s.port", "2"]);
    let set = newest(&world, "edit");
    std::fs::remove_file(world.path("a.toml")).unwrap();
    let restore = ["restore", "a.toml:s.port", "--from", &set];
    let told = world.fails(1, &restore);
    assert!(!told.contains("--parents"), "{told}");
    let whole = format!("bring the whole file back with `backout restore a.toml --from {set}");
    assert!(told.contains(&whole), "{told}");
    world.ok(&["restore", "a.toml", "--from", &set]);
    assert_eq!(world.read("a.toml"), "[s]\nport = 1\n");
    world.file("a.toml", "[[[\n");
    let told = world.fails(1, &restore);
    assert!(!told.contains("--format"), "{told}");
    assert!(
        told.contains("put the file right, then restore it again"),
        "{told}"
    );
    world.file("a.toml", "[t]\n");
    world.ok(&restore);
    assert!(world.read("a.toml").contains("port = 1"));
}

#[test]
fn a_part_that_an_undo_took_away_is_called_gone() {
    let world = World::new();
    let sql = |line: &str| {
        let output = std::process::Command::new("sqlite3")
            .args(["s.db", line])
            .current_dir(world.path(""))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    sql("create table o(id integer primary key, v text); insert into o values(1, 'a')");
    world.ok(&["sql", "--db", "s.db", "insert into o values(2, 'b')"]);
    let told = world.ok(&["undo"]);
    assert!(told.contains("s.db:o.2  gone, as before"), "{told}");
    assert_eq!(sql("select id from o"), "1\n");
    let told = world.ok(&["redo"]);
    assert!(told.contains("s.db:o.2  changed again"), "{told}");
    world.ok(&["sql", "--db", "s.db", "delete from o where id = 1"]);
    let told = world.ok(&["undo"]);
    assert!(told.contains("s.db:o.1  restored"), "{told}");
    let told = world.ok(&["redo"]);
    assert!(told.contains("s.db:o.1  gone again"), "{told}");
    assert_eq!(sql("select id from o"), "2\n");
    world.file("a.toml", "x = 1\n");
    world.ok(&["set", "a.toml", "y", "2"]);
    let told = world.ok(&["undo"]);
    assert!(told.contains("a.toml:y  gone, as before"), "{told}");
}

#[test]
fn on_a_full_disk_of_the_state_status_says_what_it_knows() {
    let disk = Disk::memory(8 * 1024);
    let world = World::at(&disk.root().join("work"), Some(&disk.root().join("state")));
    std::fs::create_dir_all(world.path("")).unwrap();
    world.file("d/f", "one\n");
    // What is kept since the last write has no weight yet.
    world.ok(&["rm", "-r", "d"]);
    disk.fill();
    world.ok(&["log"]);
    let told = world.ok(&["status"]);
    assert!(told.contains("remove d"), "{told}");
    assert_eq!(world.json(&["status"])["is_unweighed"], true);
}

#[test]
fn an_undo_by_path_names_who_wrote_before_a_directory_became_a_link() {
    let world = World::new();
    world.file("real/f", "R\n");
    world.file("d/f", "one\n");
    world.ok(&["write", "d/f", "--text", "2\n"]);
    let write = newest(&world, "write");
    std::fs::rename(world.path("d"), world.path("d.old")).unwrap();
    std::os::unix::fs::symlink("real", world.path("d")).unwrap();
    let told = world.fails(1, &["undo", "d/f"]);
    let why = format!(
        "operation {write} wrote `d/f` when no directory on the way to it was a link; now one is, and leads elsewhere"
    );
    assert!(told.contains(&why), "{told}");
    std::fs::remove_file(world.path("d")).unwrap();
    std::fs::rename(world.path("d.old"), world.path("d")).unwrap();
    let way = format!(
        "put the directory back in its place, then take it back with `backout undo {write}`"
    );
    assert!(told.contains(&way), "{told}");
    world.ok(&["undo", &write]);
    assert_eq!(world.read("d/f"), "one\n");
}

#[test]
fn a_command_beside_one_whose_watcher_died_waits_for_it_once() {
    let world = World::new();
    let dead = Running::start(&world, &[], "echo dead > x", "true");
    let (ready, go) = (world.scratch("ready"), world.scratch("go"));
    let (watcher, front) = (dead.watcher(), dead.front());
    std::fs::rename(&ready, world.scratch("was-ready")).unwrap();
    let line = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.02; done; for i in 1 2 3 4 5 6; do echo $i > n$i; done",
        ready.display(),
        world.scratch("go-on").display()
    );
    let beside = world.spawn(&["run", "--", "sh", "-c", &line]);
    crate::commands::wait_for(|| ready.exists());
    end(front);
    end(watcher);
    std::fs::write(&go, "").unwrap();
    std::fs::write(world.scratch("go-on"), "").unwrap();
    let output = beside.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let told = said(&output);
    let note =
        " died, and nobody has settled what it did: where both wrote the same, it is somebody else";
    let waited = told.matches(note).count();
    assert_eq!(waited, 1, "{told}");
    drop(dead);
    world.ok(&["recover"]);
    world.check_store();
}

#[test]
fn an_undo_since_a_moment_after_which_nothing_was_done_says_so() {
    let world = World::new();
    world.file("f", "1");
    world.ok(&["write", "f", "--text", "2"]);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let told = world.fails(1, &["undo", "f", "--at", "1s"]);
    assert!(told.contains("nothing was done to it since then"), "{told}");
    assert!(!told.contains("the same file"), "{told}");
    assert_eq!(world.read("f"), "2");
}

#[test]
fn a_redo_that_was_taken_back_names_the_one_that_brought_the_same_again() {
    let world = World::new();
    world.file("f", "1");
    world.ok(&["write", "f", "--text", "2"]);
    world.ok(&["undo"]);
    world.ok(&["redo"]);
    let first = newest(&world, "redo");
    world.ok(&["undo", &first]);
    world.ok(&["redo"]);
    let second = newest(&world, "redo");
    let told = world.fails(1, &["undo", &first]);
    let why = format!("what it had brought back is there again, by {second}");
    assert!(told.contains(&why), "{told}");
    assert!(
        told.contains(&format!("take that back with `backout undo {second}`")),
        "{told}"
    );
    world.ok(&["undo", &second]);
    assert_eq!(world.read("f"), "1");
}

#[test]
fn what_is_excluded_by_a_name_of_something_that_moved_keeps_it_where_it_is() {
    let world = World::new();
    world.file("q", "q");
    world.ok(&["mv", "q", "b"]);
    std::fs::create_dir(world.path("d")).unwrap();
    world.file("d/a", "1");
    world.ok(&["run", "--", "mv", "d", "e"]);
    for (operation, excluded) in [
        ("@-1", "b"),
        ("@-1", "q"),
        ("@", "e"),
        ("@", "d/a"),
        ("@", "e/a"),
    ] {
        let told = world.fails(1, &["undo", operation, "--exclude", excluded]);
        assert!(told.contains("as one"), "{excluded}: {told}");
        assert!(world.path("b").exists() && world.path("e/a").exists());
    }
    world.ok(&["undo"]);
    world.ok(&["undo"]);
    assert!(world.path("q").exists() && world.path("d/a").exists());
}

#[test]
fn a_file_whose_directory_is_a_file_now_names_the_directory_to_restore() {
    let world = World::new();
    std::fs::create_dir(world.path("d")).unwrap();
    world.file("d/f", "1\n");
    world.ok(&["run", "--", "sh", "-c", "rm -rf d; echo file > d"]);
    let run = newest(&world, "run");
    let told = world.fails(1, &["restore", "d/f", "--from", &run]);
    let advised = format!("bring back the directory with `backout restore d --from {run}`");
    assert!(told.contains(&advised), "{told}");
    world.ok(&["restore", "d", "--from", &run]);
    assert_eq!(world.read("d/f"), "1\n");
    world.ok(&["undo"]);
    assert_eq!(world.read("d"), "file\n");
}

#[test]
fn what_took_the_place_of_a_directory_is_restored_whatever_was_in_that() {
    for line in ["rm -rf d; echo file > d", "mv d e; ln -s e d"] {
        let world = World::new();
        world.file("d/f", "1\n");
        world.ok(&["run", "--", "sh", "-c", line]);
        let run = newest(&world, "run");
        let now = world.tree().without_times();
        let restore = ["restore", "d", "--from", &run, "--after"];
        let told = world.ok(&restore);
        assert!(told.contains("nothing to do"), "{told}");
        world.ok(&["undo"]);
        world.file("d/f", "theirs\n");
        world.ok(&restore);
        let found = world.tree().without_times();
        let d = std::path::Path::new("d");
        assert_eq!(found.get(d), now.get(d), "{line}");
        world.ok(&["undo"]);
        assert_eq!(world.read("d/f"), "theirs\n");
        world.check_store();
    }
    // Where a directory was put, and a file is now, the advice says which side is meant.
    let world = World::new();
    world.ok(&["run", "--", "sh", "-c", "mkdir d; echo 1 > d/f"]);
    let run = newest(&world, "run");
    world.ok(&["undo"]);
    world.file("d", "file\n");
    let told = world.fails(1, &["restore", "d/f", "--from", &run, "--after"]);
    let advised = format!("`backout restore d --from {run} --after`");
    assert!(told.contains(&advised), "{told}");
    world.ok(&["restore", "d", "--from", &run, "--after"]);
    assert_eq!(world.read("d/f"), "1\n");
    world.check_store();
}
