//! What is noted of a command while it is watched: what is refused, what is not undone, what nobody could see.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use crate::claims::is_root;
use crate::world::{Ran, World};

/// A line that asks the kernel for flags of the file `F`, as `chattr +i` does.
const FLAGS: &str = r#"my $d = pack("L", 0x10); ioctl(F, 0x40086602, $d) and exit 3"#;

fn run(world: &World, line: &str) -> Ran {
    world.cli(["run", "--", "sh", "-c", line])
}

#[test]
fn flags_of_files_are_not_changed() {
    let world = World::new().file("a", "0");
    let line = format!("perl -e 'open F, \"<\", \"a\"; {FLAGS}'");
    insta::assert_snapshot!(world.idle(&line), @"note: changing the flags of `a` (as `chattr` does) was refused: they could not be brought back; do it without `backout run`");
    // The same of one whose name is gone.
    let open = fs::File::open(world.path("a")).unwrap();
    fs::remove_file(world.path("a")).unwrap();
    let words = format!("*F = *STDIN; {FLAGS}");
    let mut command = world.command(&["run", "--", "perl", "-e", &words]);
    insta::assert_snapshot!(world.run(command.stdin(open)), @"[exit code 3]");
}

#[test]
fn notes_of_a_kind_are_not_told_without_end() {
    let world = World::new();
    for number in 0..200 {
        world.put(&format!("f{number}"), "0");
    }
    let line = format!("perl -e 'for (0..199) {{ open F, \"<\", \"f$_\"; {FLAGS} }}'");
    let ran = world.idle(&line);
    insta::assert_snapshot!(ran.err.lines().last().unwrap(), @"note: and 180 more of the kind");
    let told = ran.err.lines().count();
    assert!(told < 200, "{told}");
}

#[test]
fn a_mode_that_is_changed_where_the_name_was_gone_before_stays() {
    let world = World::new().file("a", "0");
    fs::hard_link(world.path("a"), world.path("b")).unwrap();
    fs::set_permissions(world.path("b"), fs::Permissions::from_mode(0o644)).unwrap();
    let open = fs::File::open(world.path("a")).unwrap();
    fs::remove_file(world.path("a")).unwrap();
    let mut command = world.command(&["run", "--", "perl", "-e", "chmod 0600, *STDIN"]);
    insta::assert_snapshot!(world.run(command.stdin(open)), @"note: it changed a file by a descriptor whose name is gone; what its other names show is not undone");
    let mode = || fs::metadata(world.path("b")).unwrap().mode() & 0o777;
    assert_eq!((world.has("a"), mode()), (false, 0o600));
    assert_eq!(world.unmoved(["undo"]).code, 1);
}

#[test]
fn what_belongs_to_the_kernel_is_not_undone() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let line = "read x < /proc/sys/vm/swappiness; echo $x > /proc/sys/vm/swappiness";
    insta::assert_snapshot!(world.idle(line), @"note: `/proc/sys/vm/swappiness` belongs to the kernel; it is not undone");
    // 0x800001 asks only that what the kernel holds is written.
    let line = "perl -e 'syscall(179, 0x80000100, 0, 0, 0)'";
    insta::assert_snapshot!(world.idle(line), @"note: it asked for quotas or changed them; that is not undone");
}

#[test]
fn what_a_command_writes_where_only_it_can_see_is_not_undone() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let line = "unshare -m sh -c 'mount -t tmpfs none ../home && echo 1 > ../home/f'";
    insta::assert_snapshot!(world.idle(line), @"note: it wrote where only it can see; that is not undone");
    assert!(!world.place("home/f").exists());
}

#[test]
fn a_program_that_would_gain_rights_gains_none() {
    let world = World::new();
    let su = "/usr/bin/su";
    let is_there = fs::metadata(su).is_ok_and(|found| found.mode() & 0o4000 != 0);
    let asked = world.as_nobody(&["run", "--", su, "--version"]);
    let Some(mut asked) = asked.filter(|_| is_there) else {
        return;
    };
    let tree = world.tree();
    let ran = world.run(&mut asked);
    assert_eq!(world.tree(), tree);
    insta::assert_snapshot!(ran.err, @"note: `/usr/bin/su` gained no rights here: a watched command keeps those it has; run `backout run` itself with them");
}

#[test]
fn what_was_open_before_and_is_too_large_cannot_come_back() {
    let world = World::new().file("big", &"x".repeat(200_000));
    let line = format!(
        "exec {} run --limit 1000 -- sh -c 'echo 1 >&3' 3>> big",
        env!("CARGO_BIN_EXE_backout")
    );
    let mut command = world.program(Path::new("/bin/sh"), &["-c", &line]);
    insta::assert_snapshot!(world.run(&mut command), @"
    note: `big` was open before, and cannot be brought back: it is 200000 bytes, and would have to be copied
    note: drift: by its words it only reads, but it changed 1 names; see `backout classify`
    ");
    assert_eq!(world.text("big").len(), 200_002);
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: nothing was undone
      why: `big`: it was not kept: it is 200000 bytes, and would have to be copied
      next: see what the journal still knows with `backout show 9e3779b9`
    [exit code 1]
    ");
}

#[test]
fn what_somebody_changes_while_a_command_runs_is_told_by_its_undo() {
    let world = World::new().file("f", "0");
    // With its next call the watcher has seen the one before: what comes then is somebody else's.
    let line = "echo 1 >> f; : > g; echo ready; read x";
    let waiting = world.waiting(["run", "--", "sh", "-c", line]);
    world.put("f", "theirs");
    insta::assert_snapshot!(world.go_on(waiting), @"[exit code 1]");
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: nothing was undone
      why: `f`: somebody else changed it while the command ran
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do the rest with `backout undo 9e3779b9 --partial`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    assert_eq!(world.text("f"), "theirs");
}

#[test]
fn what_is_lost_while_a_command_runs_is_told_by_its_undo() {
    let world = World::new().file("big", &"x".repeat(200_000));
    let line = "rm big; echo ready; read x";
    let waiting = world.waiting(["run", "--", "sh", "-c", line]);
    let depot = world.place("state/depot");
    let _gone = fs::remove_dir_all(&depot);
    fs::create_dir_all(&depot).unwrap();
    insta::assert_snapshot!(world.go_on(waiting), @"[exit code 1]");
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: nothing was undone
      why: `big`: it was not kept: what was kept is not in its depot any more
      next: see what the journal still knows with `backout show 9e3779b9`
    [exit code 1]
    ");
    assert!(!world.has("big"));
}

/// Runs a command where one of the kernel's limits is zero.
fn limited(world: &World, limit: &str) -> Ran {
    let line = format!(
        "echo 0 > /proc/sys/user/{limit}; exec {} run -- sh -c 'echo 1 > f'",
        env!("CARGO_BIN_EXE_backout")
    );
    let words = ["-r", "sh", "-c", &line];
    world.run(&mut world.program(Path::new("/usr/bin/unshare"), &words))
}

#[test]
fn where_others_cannot_be_watched_it_is_said() {
    if !is_root() {
        return;
    }
    let world = World::new().file("f", "0");
    insta::assert_snapshot!(limited(&world, "max_inotify_instances"), @"note: what others changed while it ran may have gone unseen: inotify cannot be used: Too many open files (os error 24)");
    assert_eq!(world.text("f"), "1\n");
    world.did(["undo"]);
    insta::assert_snapshot!(limited(&world, "max_inotify_watches"), @"note: what others changed while it ran may have gone unseen: there are too many directories to watch");
    assert_eq!(world.text("f"), "1\n");
    world.did(["undo"]);
    assert_eq!(world.text("f"), "0");
}

/// An overlay that goes away with the test.
struct Overlay<'w>(&'w World);

impl Overlay<'_> {
    fn mount(world: &World) -> Overlay<'_> {
        for name in ["upper", "workdir", "work/o"] {
            fs::create_dir_all(world.place(name)).unwrap();
        }
        let place = |name: &str| world.place(name).display().to_string();
        let layers = format!(
            "lowerdir={},upperdir={},workdir={}",
            place("lower"),
            place("upper"),
            place("workdir")
        );
        let words = ["-t", "overlay", "overlay", "-o", &layers];
        let mut mount = Command::new("mount");
        let status = mount.args(words).arg(world.path("o")).status();
        assert!(status.unwrap().success());
        Overlay(world)
    }
}

impl Drop for Overlay<'_> {
    fn drop(&mut self) {
        let _gone = Command::new("umount")
            .arg("-l")
            .arg(self.0.path("o"))
            .status();
    }
}

#[test]
fn what_an_overlay_loses_when_it_is_written_is_said() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let lower = world.place("lower");
    fs::create_dir(&lower).unwrap();
    fs::write(lower.join("a"), "0").unwrap();
    fs::hard_link(lower.join("a"), lower.join("b")).unwrap();
    let _overlay = Overlay::mount(&world);
    insta::assert_snapshot!(run(&world, "echo 1 >> o/a"), @"note: `o/a` has other names in a lower layer of its overlay; from now on it is a file of its own, and an undo does not join them again");
    assert_eq!(world.text("o/a"), "01\n");
    world.did(["undo"]);
    assert_eq!(
        (world.text("o/a"), world.text("o/b")),
        ("0".into(), "0".into())
    );
}

#[test]
fn a_call_that_nobody_knows_is_refused() {
    let world = World::new();
    let line = "perl -e 'syscall(999) == -1 or exit 3'";
    insta::assert_snapshot!(world.idle(line), @"note: system call 999 was refused: nobody knows here what it does");
}

#[test]
fn what_was_let_go_and_is_removed_then_cannot_come_back_as_it_was() {
    let world = World::new().file("big", &"x".repeat(200_000));
    let limit = ["run", "--limit", "1000", "--over-limit", "mark", "--"];
    let words = [&limit[..], &["sh", "-c", "printf y >> big; rm big"]].concat();
    insta::assert_snapshot!(world.run(&mut world.command(&words)), @"note: `big` cannot be brought back: it was 200000 bytes, more than may be copied first");
    assert!(!world.has("big"));
    insta::assert_snapshot!(world.unmoved(["undo"]), @"
    error: nothing was undone
      why: `big`: what it was is not kept: it was 200000 bytes, more than may be copied first
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
}

#[test]
fn what_is_mounted_is_not_undone() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let line = "mount -t tmpfs none ../home && umount ../home";
    insta::assert_snapshot!(world.idle(line), @"note: it changed what is mounted; that is not undone");
    assert!(fs::read_dir(world.place("home")).unwrap().next().is_none());
}

#[test]
fn what_a_command_had_done_when_another_wrote_is_an_operation_of_its_own() {
    let world = World::new().file("f", "0\n");
    let line = "echo 1 >> f; echo ready; read x; echo 3 >> f";
    let waiting = world.waiting(["run", "--", "sh", "-c", line]);
    world.did(["write", "f", "--append", "--text", "2\n"]);
    world.go_on(waiting);
    assert_eq!(world.text("f"), "0\n1\n2\n3\n");
    insta::assert_snapshot!(world.unmoved(["log"]), @"
    ╭●   9e3779b9  just now  committed  run sh -c 'echo 1 >> f; echo ready; read x; echo 3 >> f'
    ├●   3c6ef372  just now  committed  append to f
    ╰●   daa66d2c  just now  committed  part of run sh -c 'echo 1 >> f; echo ready; read x; echo 3 >> f'
    ");
    insta::assert_snapshot!(world.unmoved(["show", "daa6"]), @"
    daa66d2c  part of run sh -c 'echo 1 >> f; echo ready; read x; echo 3 >> f'
      id        daa66d2c7ddf743f
      status    committed
      when      2027-01-15 08:00:00 UTC (just now)
      target    f  content changed since (4 -> 8 bytes)
      built on  9e3779b9  was done while it ran
      base of   3c6ef372
      strategy  snapshot  what a name is, is kept before the command first touches it
      journal   2 intent, 3 applied, 4 commit
    hint: see what it changed with `backout diff daa66d2c`
    hint: see what an undo would do with `backout undo daa66d2c --dry-run`
    ");
}
