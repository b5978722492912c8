//! What is said where nothing can be kept as the inode it is: an ordinary user on a file system whose root is not theirs. What
//! comes back is compared with what the notes say.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::process::Command;

use crate::claims::Disk;
use crate::world::{Ran, World};

const NOBODY: u32 = 65_534;

/// A directory of an ordinary user on a file system of root's.
struct Foreign {
    world: World,
    _disk: Disk,
}

impl Foreign {
    fn new() -> Option<Self> {
        let world = World::new();
        let disk = Disk::at(world.path("disk"), 4096)?;
        let foreign = Self { world, _disk: disk };
        fs::create_dir(foreign.world.path("disk/d")).unwrap();
        foreign.give("", 0o755);
        Some(foreign)
    }

    /// Gives something in the directory to the user, in the group of root.
    fn give(&self, name: &str, mode: u32) {
        let path = self.world.path("disk/d").join(name);
        chown(&path, Some(NOBODY), Some(0)).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn put(&self, name: &str, text: &str) {
        self.world.put(&format!("disk/d/{name}"), text);
        self.give(name, 0o644);
        chown(self.world.path("disk/d").join(name), None, Some(NOBODY)).unwrap();
    }

    fn asks(&self, words: &[&str]) -> Ran {
        let mut command = self.world.as_nobody(words).unwrap();
        self.world
            .run(command.current_dir(self.world.path("disk/d")))
    }

    fn group(&self, name: &str) -> u32 {
        fs::metadata(self.world.path("disk/d").join(name))
            .unwrap()
            .gid()
    }
}

#[test]
fn a_file_is_kept_by_its_bytes() {
    let Some(foreign) = Foreign::new() else {
        return;
    };
    foreign.put("f", "1");
    fs::hard_link(
        foreign.world.path("disk/d/f"),
        foreign.world.path("disk/d/g"),
    )
    .unwrap();
    insta::assert_snapshot!(foreign.asks(&["write", "f", "--text", "2"]), @r"
    wrote f  (9e3779b9, undo with `backout undo 9e3779b9`)
    note: `f` has other names; undoing gives back its content, not the shared inode
    ");
    foreign.asks(&["undo"]);
    assert_eq!(foreign.world.text("disk/d/f"), "1");
    let links = fs::metadata(foreign.world.path("disk/d/f"))
        .unwrap()
        .nlink();
    assert_eq!(links, 1, "not the shared inode");
    let large = "x".repeat(100_000);
    foreign.put("large", &large);
    insta::assert_snapshot!(foreign.asks(&["write", "large", "--text", "2"]), @r"
    wrote large  (daa66d2c, undo with `backout undo daa66d2c`)
    note: `large` was copied before the change
    ");
    foreign.asks(&["undo"]);
    assert_eq!(foreign.world.text("disk/d/large"), large);
    let pipe = foreign.world.path("disk/d/p");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    foreign.give("p", 0o600);
    chown(&pipe, None, Some(NOBODY)).unwrap();
    fs::hard_link(&pipe, foreign.world.path("disk/d/q")).unwrap();
    insta::assert_snapshot!(foreign.asks(&["rm", "p"]), @r"
    removed p  (1715609f, undo with `backout undo 1715609f`)
    note: `p` is kept by value, not as the same inode
    ");
    foreign.asks(&["undo"]);
    assert_eq!(fs::metadata(pipe).unwrap().nlink(), 1);
}

#[test]
fn what_only_root_could_give_back_is_said_before() {
    let Some(foreign) = Foreign::new() else {
        return;
    };
    foreign.put("f", "1");
    foreign.give("f", 0o644);
    insta::assert_snapshot!(foreign.asks(&["write", "f", "--text", "2"]), @r"
    wrote f  (9e3779b9, undo with `backout undo 9e3779b9`)
    note: `f` now has the group 65534, not 0: only root can keep that
    note: undoing gives back the content of `f`, but not its owner 65534:0
    ");
    insta::assert_snapshot!(foreign.asks(&["undo"]), @r"
    error: nothing was undone
      why: `f`: owner 65534:0 can only be restored by root; `--force` restores the rest
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    insta::assert_snapshot!(foreign.asks(&["undo", "--force"]), @r"
    undid 9e3779b9  write f  (the newest below .)
      f  restored but for one thing: owner 65534:0 can only be restored by root
    error: not all of it is as it was
      why: 9e3779b9 `f`: restored but for one thing: owner 65534:0 can only be restored by root
      next: take back what was done with `backout redo b54cda58`
    [exit code 1]
    ");
    assert_eq!(foreign.world.text("disk/d/f"), "1");
    assert_eq!(foreign.group("f"), NOBODY);
    fs::create_dir(foreign.world.path("disk/d/e")).unwrap();
    foreign.give("e", 0o755);
    insta::assert_snapshot!(foreign.asks(&["rm", "-r", "e"]), @r"
    removed e  (53845412, undo with `backout undo 53845412`)
    note: undoing makes `e` anew, without its owner 65534:0
    ");
    foreign.asks(&["undo", "--force"]);
    assert_eq!(foreign.group("e"), NOBODY);
}

#[test]
fn a_directory_that_somebody_wrote_into_is_not_taken_away() {
    let Some(foreign) = Foreign::new() else {
        return;
    };
    foreign.asks(&["mkdir", "e"]);
    foreign.put("e/mine", "1");
    let ran = foreign.asks(&["undo", "--force"]);
    insta::assert_snapshot!(ran, @r"
    error: nothing was undone
      why: `e`: the directory is not empty, and nothing on its file system can keep it
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --force --dry-run --diff`
      next: put right what stands in the way, then `backout undo 9e3779b9 --force` again
    [exit code 1]
    ");
    assert_eq!(foreign.world.text("disk/d/e/mine"), "1");
}

#[test]
fn times_of_a_directory_that_is_not_ones_own_stay() {
    let Some(foreign) = Foreign::new() else {
        return;
    };
    foreign.put("f", "1");
    let directory = foreign.world.path("disk/d");
    chown(&directory, Some(0), Some(0)).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    foreign.asks(&["write", "f", "--text", "2"]);
    let ran = foreign.asks(&["undo"]);
    let note = "stay as they are: only its owner may set them";
    assert!(ran.out.contains(note), "{ran}");
    assert_eq!(foreign.world.text("disk/d/f"), "1");
}

#[test]
fn what_bytes_do_not_tell_is_not_logged() {
    let Some(foreign) = Foreign::new() else {
        return;
    };
    foreign.put("f", "1");
    foreign.give("f", 0o644);
    insta::assert_snapshot!(foreign.asks(&["--strategy", "transaction", "write", "f", "--text", "12"]), @"
    error: what `f` is cannot be kept by transaction: its bytes do not tell its owner 65534:0
      why: nothing was changed
      next: leave `--strategy` out: then the other one is tried
    [exit code 1]
    ");
}
