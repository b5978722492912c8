//! Immutable and append-only files: the flag is named as the reason, and nothing is touched.

use std::process::Command;

use crate::disk::Disk;
use crate::world::World;
use crate::zoo::run;

/// A world whose flags are taken off at the end, so that it can be cleared away.
struct Locked {
    world: World,
    _disk: Disk,
}

impl Locked {
    fn new() -> Self {
        let disk = Disk::of_kind("ext4", 32);
        let world = World::at(&disk.path(), None).with_project();
        Self { world, _disk: disk }
    }

    /// Checks that a command is refused for this flag, and that the journal knows of no attempt.
    fn refuses(&self, arguments: &[&str], flag: &str) {
        let (before, log) = (self.world.tree(), self.world.operations());
        let told = self.world.fails(1, arguments);
        assert!(
            told.contains(&format!("is {flag}")),
            "{arguments:?}: {told}"
        );
        assert!(told.contains("chattr"), "{arguments:?}: {told}");
        assert_eq!(self.world.tree(), before, "{arguments:?}");
        assert_eq!(self.world.operations(), log, "{arguments:?}");
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let root = self.world.path("");
        let _taken_off = Command::new("chattr")
            .args(["-R", "-i", "-a"])
            .arg(root)
            .status();
    }
}

#[test]
fn a_locked_file_is_refused_before_anything_is_changed() {
    let locked = Locked::new();
    for (flag, name) in [("+i", "immutable"), ("+a", "append-only")] {
        run("chattr", &[flag], &locked.world.path("app.toml"));
        locked.refuses(&["write", "app.toml", "--text", "new"], name);
        locked.refuses(&["write", "--append", "app.toml", "--text", "more"], name);
        locked.refuses(&["rm", "app.toml"], name);
        locked.refuses(&["mv", "app.toml", "elsewhere"], name);
        locked.refuses(&["mv", "--force", "run.sh", "app.toml"], name);
        locked.refuses(&["chmod", "0600", "app.toml"], name);
        run("chattr", &["-i", "-a"], &locked.world.path("app.toml"));
    }
    locked.world.ok(&["write", "app.toml", "--text", "new"]);
    locked.world.check_store();
}

#[test]
fn a_locked_directory_is_refused_before_anything_is_changed() {
    let locked = Locked::new();
    for (flag, name) in [("+i", "immutable"), ("+a", "append-only")] {
        run("chattr", &[flag], &locked.world.path("src"));
        locked.refuses(&["write", "src/new.rs", "--text", "new"], name);
        locked.refuses(&["write", "src/lib.rs", "--text", "new"], name);
        locked.refuses(&["rm", "src/lib.rs"], name);
        locked.refuses(&["rm", "-r", "src"], name);
        locked.refuses(&["mv", "src/lib.rs", "lib.rs"], name);
        run("chattr", &["-i", "-a"], &locked.world.path("src"));
    }
}

#[test]
fn an_undo_names_the_flag_that_stands_in_its_way() {
    let locked = Locked::new();
    let world = &locked.world;
    let before = world.tree();
    world.ok(&["write", "app.toml", "--text", "new"]);
    run("chattr", &["+i"], &world.path("app.toml"));
    let changed = world.tree();
    let shown = world.run(&["undo", "--dry-run"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("is immutable"), "{shown}");
    for arguments in [["undo"].as_slice(), &["undo", "--force"]] {
        let told = world.fails(1, arguments);
        assert!(told.contains("is immutable"), "{told}");
        assert_eq!(world.tree(), changed);
    }
    run("chattr", &["-i"], &world.path("app.toml"));
    world.ok(&["undo"]);
    let now = world.tree();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}
