//! Files with several names: what a command writes into one of them is undone in all, and they stay one file.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::there_and_back;
use crate::disk::Disk;
use crate::world::{World, said};

/// Two names of one file in different directories, with some bytes in it.
fn linked(bytes: usize) -> World {
    let world = World::in_memory();
    std::fs::create_dir_all(world.path("d/e")).unwrap();
    let content: Vec<u8> = (0..bytes)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect();
    std::fs::write(world.path("a"), content).unwrap();
    std::fs::hard_link(world.path("a"), world.path("d/b")).unwrap();
    std::fs::write(world.path("other"), "other\n").unwrap();
    world
}

fn number(world: &World, name: &str) -> u64 {
    world.path(name).metadata().unwrap().ino()
}

/// Does it there and back for small and large files; both names must be the same inode as before in the end.
fn both_ways(line: &str) {
    for bytes in [0, 10, 5_000, 300_000] {
        let world = linked(bytes);
        let before = number(&world, "a");
        there_and_back(&world, line);
        let after = (number(&world, "a"), number(&world, "d/b"));
        assert_eq!(after, (before, before), "{line}: {bytes} bytes");
    }
}

#[test]
fn writing_in_place() {
    both_ways("echo more >> a");
    both_ways("echo other > d/b");
    both_ways("truncate -s 3 a; echo >> a");
    both_ways("truncate -s 400000 d/b");
    both_ways("printf xyz | dd of=a bs=1 seek=2 conv=notrunc status=none");
    both_ways("printf xyz | dd of=a bs=1 seek=900000 conv=notrunc status=none");
    both_ways(
        "python3 -c 'f = open(\"d/b\", \"r+b\"); f.write(b\"new\"); f.seek(0, 2); f.write(b\"end\")'",
    );
}

#[test]
fn metadata_of_one_name() {
    both_ways("touch -d 2020-01-02 a");
    both_ways("chmod 600 d/b; touch a");
    both_ways("setfattr -n user.x -v 1 a; echo x >> d/b; chmod 640 d/b");
    both_ways("chmod 400 a; echo x >> d/b; touch -d 2001-01-01 a");
}

#[test]
fn several_names_at_once() {
    both_ways("echo one >> a; echo two >> d/b");
    both_ways("echo one >> a; ln a d/c; echo two >> d/c; rm d/c");
    both_ways("ln a 0; echo one >> a");
    both_ways("ln d/b z; echo one >> z; chmod 600 z");
    both_ways("echo one >> a; ln d/b d/e/new");
    both_ways("ln other new; chmod 600 other");
    both_ways("ln other d/new; setfattr -n user.n -v 1 d/new");
}

#[test]
fn names_that_go_away() {
    both_ways("echo one >> a; rm a");
    both_ways("echo one >> a; rm d/b");
    both_ways("rm a; echo one >> d/b");
    both_ways("echo one >> a; rm a d/b");
    both_ways("echo one >> a; mv other a");
    both_ways("echo one >> a; rm a; echo two > a");
    both_ways("echo one >> d/b; rm -r d");
    both_ways("sed -i 1iline a; echo two >> d/b");
}

#[test]
fn names_that_move() {
    both_ways("echo one >> a; mv a c");
    both_ways("mv a c; echo one >> c");
    both_ways("echo one >> a; mv a other");
    both_ways("echo one >> d/b; mv d f");
    both_ways("mv d f; echo one >> f/b");
    both_ways("echo one >> a; mv a d/e/a; echo two >> d/b; mv d/b b");
    both_ways("echo one >> a; mv a c; rm c");
    both_ways("echo one >> a; mv a c; mv other a");
    both_ways("mv a c; echo new > a");
    both_ways("rmdir a; mv a c");
    both_ways("ln other c; rm other");
    both_ways("ln other c; rm other; echo new > other; chmod 600 c");
    both_ways("ln other c; ln other z; chmod 600 other; rm other");
    both_ways("chmod 600 a; rm a");
    both_ways("touch d/b; mv other a; rm d/b");
    both_ways("rm a; touch d/b");
    both_ways("ln a c; rm a; ln c d/e/c; rm c; mv d/e/c c");
}

/// Does it there and back in a world that a shell line made.
fn in_a_world_of(setting: &str, line: &str) -> World {
    let world = World::in_memory();
    shell(&world, setting);
    there_and_back(&world, line);
    world
}

fn shell(world: &World, line: &str) {
    let done = std::process::Command::new("bash")
        .args(["-ec", line])
        .current_dir(world.path(""))
        .status()
        .unwrap();
    assert!(done.success(), "{line}");
}

#[test]
fn a_link_that_fails_leaves_nothing_known() {
    let setting = "echo B > b; ln b b2; echo PRECIOUS > c";
    let world = in_a_world_of(setting, "ln c b; echo more >> b");
    assert_eq!(world.read("c"), "PRECIOUS\n");
    in_a_world_of(
        setting,
        "ln c none/x; ln none x; ln c c; ln b d; echo more >> d",
    );
    in_a_world_of(
        setting,
        "ln c n; rm n; echo new > n; ln n m; echo more >> n",
    );
}

#[test]
fn what_is_kept_as_an_inode_is_not_written_by_another_name() {
    let setting =
        "echo A > a; echo N > n; mkdir s; echo S > s/a; ln s/a s/b; head -c 300000 /dev/zero > big";
    for line in [
        "ln a b; rm a; echo junk > b",
        "ln a b; rm a; echo junk >> b; chmod 600 b",
        "cp -al s t; rm -rf s; echo x >> t/a",
        "cp -al s t; rm -rf s; truncate -s 1 t/b; mv t s",
        "ln a a.bak; mv n a; echo x >> a.bak",
        "ln a a2; rm a; echo more >> a2; ln a2 a; rm a2",
        "ln big b; rm big; echo junk >> b; ln b c; rm b; truncate -s 7 c",
        "ln s/a x; rm -r s; echo 1 > x; mkdir s; ln x s/a; echo 2 > s/b",
        "ln a b; rm a; ln b c; rm b; mv c a; echo more >> a",
    ] {
        let world = in_a_world_of(setting, line);
        assert_eq!(world.read("a"), "A\n", "{line}");
    }
}

#[test]
fn linked_files_that_move_and_change() {
    let setting = "echo A > a; ln a c; mkdir d1 d2 b; echo 1 > b/1; ln b/1 b/2; \
        echo x > d1/x; ln d1/x d2/x; echo y > d2/y; ln d2/y d1/z";
    for line in [
        "mv a b/a; chmod 600 b/a",
        "mv a b/a; chmod 600 c; touch -d 2001-01-01 b/a",
        "mv d1 t; mv d2 d1; mv t d2",
        "mv d1 t; mv d2 d1; mv t d2; echo more >> d1/x; chmod 600 d2/z",
        "mkdir d; ln b/1 d/1; mkdir bk; mv b/1 bk/1",
        "mv a t; mv b/1 a; mv t b/1",
        "mv a t; mv b/1 a; mv t b/1; echo more >> c; chmod 640 b/2",
        "mkdir n; rsync -aHAXS --delete b/ n/; ln n/1 b/3; rsync -aHAXS --delete b/ n/",
        "rsync -aHAXS --delete d1/ d2/",
        "ln c n; mv n a; mv c b/1; ln b/1 c",
        "mv d1 b/d; ln b/d/x n; echo more >> n",
    ] {
        in_a_world_of(setting, line);
    }
}

/// What random stories found.
#[test]
fn trees_that_share_files() {
    let setting = "mkdir -p d e/f t q; echo b > d/b; echo x > d/x; echo I > x; ln x e/f/b; echo c > c; echo q > q/a; ln c q/c";
    for line in [
        "truncate -s 90000 q/a; cp -al q a",
        "truncate -s 90000 q/a; cp -al q a; mv q/a q/b; rm -r q",
        "mv -T t swap; mv -T d t; mv -T swap d; echo 17 >> d/x; echo k > d/b",
        "mv -T t swap; mv -T d t; mv -T swap d; cp -alT t d/t",
        "mv -T d swap; mv -T e/f d; mv -T swap e/f; mv x d/b; echo 3 > x",
        "cp -alT d t; ln -f c d/x; mv -T d swap; mv -T t d; mv -T swap t",
        "echo new > e/a; ln e/a d/n; cp -al d d; true",
        "mv e t/e; ln t/e/f/b d/n; mv d e; mv t d; echo more >> e/n",
        "setfattr -n user.n -v 1 x; rm e/f/b; rm x",
        "chmod 600 e/f/b; ln e/f/b n; rm -r e; rm x; touch n",
        "ln x n; python3 -c 'import os; os.fchmod(os.open(\"n\", os.O_RDONLY), 0o600)'",
        "touch -d 2020-01-02 e/f; mv e g",
        "rmdir t; mkdir t; echo 1 > t/1; rm -r d; mv q d; ln d/c q",
    ] {
        in_a_world_of(setting, line);
    }
}

#[test]
fn names_that_an_overlay_takes_apart() {
    let setting = "echo 0 > h1; ln h1 h2; ln h1 h3; chmod 640 h1";
    for line in [
        "echo 1 >> h1; echo 2 >> h2",
        "chmod 600 h1; touch h2",
        "rm h1; echo 2 > h2",
        "mv h1 h4; echo 2 >> h4; ln h2 h5; echo 5 >> h5",
        "ln h1 n; rm h1; echo more >> n",
        "ln h1 n; echo 1 >> n; ln n m; echo 2 >> m; ln -f m n; echo 3 > n",
    ] {
        let disk = Disk::overlay(setting);
        let world = World::at(&disk.path(), None);
        let before = world.tree().without_links();
        let output = world.run(&["run", "--", "bash", "-c", line]);
        assert!(output.status.success(), "{line}: {}", said(&output));
        assert!(
            said(&output).contains("a file of its own"),
            "{line}: {}",
            said(&output)
        );
        for _ in 0..2 {
            world.ok(&["undo"]);
            let now = world.tree().without_links();
            assert!(now == before, "{line}: {}", now.difference(&before));
            world.ok(&["redo"]);
        }
        world.check_store();
    }
}

#[test]
fn a_mode_of_a_file_that_two_directories_share_comes_back_when_they_are_swapped() {
    let world = World::in_memory();
    shell(
        &world,
        "mkdir -p d e; echo b > d/b; echo x > d/x; cp -al d e/f",
    );
    let swap = "mv -T d swap; mv -T e/f d; mv -T swap e/f";
    there_and_back(
        &world,
        &format!("{swap}; echo more >> d/x; chmod 600 e/f/b"),
    );
}

/// What is said of a file whose holes are in a lower layer.
const FILLED: &str = "`sparse` has holes in a lower layer of its overlay; they were filled, and an undo does not make them again";

#[test]
fn what_an_overlay_loses_is_said() {
    let setting = "ln -s x s1; ln s1 s2; echo A > sparse; truncate -s 30000 sparse; echo B > t; echo C > h1; ln h1 h2";
    for (line, lost) in [
        ("rm s1", "`s1` has other names"),
        ("touch -h s1", "`s1` has other names"),
        ("mv -T t s1", "`s1` has other names"),
        ("mv -T t h1", "`h1` has other names"),
        ("chmod 600 sparse", FILLED),
        ("mv sparse elsewhere", FILLED),
        ("mv -T t sparse", FILLED),
    ] {
        let disk = Disk::overlay(setting);
        let world = World::at(&disk.path(), Some(&disk.root().join("state")));
        let before = world.tree();
        let output = world.run(&["run", "--", "bash", "-c", line]);
        assert!(said(&output).contains(lost), "{line}: {}", said(&output));
        world.ok(&["undo"]);
        let name = vec![lost.split('`').nth(1).unwrap().to_owned()];
        let before = if lost.contains("holes") {
            before.filled(&name)
        } else {
            before.taken_apart(&name)
        };
        let now = world.tree();
        assert!(now == before, "{line}: {}", now.difference(&before));
    }
}

#[test]
fn a_write_into_a_lower_layer_gives_its_holes_back() {
    let disk = Disk::overlay("echo A > sparse; truncate -s 30000 sparse");
    let world = World::at(&disk.path(), Some(&disk.root().join("state")));
    there_and_back(&world, "echo more >> sparse");
}

#[test]
fn inode_flags_stay() {
    for line in [
        "echo more >> a",
        "truncate -s 1 a; chmod 600 a",
        "echo more >> a; mv a b",
        "echo more >> a; rm a",
        "sed -i s/A/B/ a",
        "echo more >> a; mv b a",
    ] {
        let disk = Disk::of_kind("ext4", 64);
        let world = World::at(&disk.path(), None);
        world.file("a", "A\n");
        world.file("b", "B\n");
        shell(&world, "chattr +dAS a");
        there_and_back(&world, line);
    }
}

/// Flags that do not lock are noted before they change, and come back.
#[test]
fn inode_flags_that_a_command_changes() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let disk = Disk::of_kind(kind, if kind == "ext4" { 64 } else { 400 });
        for line in [
            "chattr +d a",
            "chattr -d b; chattr +A b",
            "chattr +dAS a d",
            "chattr +d a; chmod 600 a; touch -d 2020-01-01 a",
            "chattr +d a; echo more >> a",
            "echo more >> a; chattr +d a",
            "chattr -d b; echo more >> b",
            "chattr +d a; mv a d/a",
            "chattr +d a; rm a",
            "chattr -d b; rm b; echo new > b",
            "chattr +d a; ln a c; echo more >> c",
            "chattr +d c1; echo more >> c2",
            "chattr -R +d d; rm d/x",
        ] {
            let world = World::at(&disk.path(), None);
            world.file("a", "A\n");
            world.file("b", "B\n");
            world.file("d/x", "X\n");
            world.file("c1", "C\n");
            shell(&world, "chattr +d b; ln c1 c2");
            there_and_back(&world, line);
            shell(&world, "rm -r *");
        }
    }
}

/// Where blocks can be shared with a copy, a length that is set again would copy them, and fill the hole before them.
#[test]
fn holes_of_a_linked_file_that_grows_come_back_and_go_again() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let disk = Disk::of_kind(kind, if kind == "ext4" { 64 } else { 400 });
        let world = World::on(&disk);
        shell(
            &world,
            "truncate -s 6800 a; ln a b; truncate -s 90000 c; ln c d",
        );
        there_and_back(&world, "echo 201 >> a; echo 547 >> d");
    }
}

#[test]
fn times_far_ahead_come_back() {
    let disk = Disk::of_kind("ext4", 64);
    let world = World::at(&disk.path(), None);
    world.file("a", "A\n");
    world.file("d/b", "B\n");
    shell(
        &world,
        "touch -d '2400-01-02 03:04:05.678' a d/b d; touch -d '1905-01-02 03:04:05.678' d/b",
    );
    for line in [
        "echo more >> a",
        "rm -r d",
        "touch a d/b",
        "mv d e; echo more >> e/b",
    ] {
        there_and_back(&world, line);
    }
}

#[test]
fn holes_stay_holes() {
    let world = linked(0);
    let file = std::fs::File::create(world.path("a")).unwrap();
    file.set_len(4 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"middle", 2 << 20).unwrap();
    drop(file);
    there_and_back(
        &world,
        "echo end >> d/b; printf start | dd of=a conv=notrunc status=none",
    );
    there_and_back(&world, "echo nothing else > a");
}

#[test]
fn a_hole_that_nobody_can_read_to_its_end() {
    let world = World::in_memory();
    world.file("g", "hi\n");
    let before = world.tree();
    world.ok(&["run", "--", "sh", "-c", "truncate -s 6E f g; mv g k"]);
    for _ in 0..2 {
        assert_eq!(world.path("k").metadata().unwrap().len(), 6 << 60);
        world.ok(&["undo"]);
        let now = world.tree();
        assert!(now == before, "{}", now.difference(&before));
        world.ok(&["redo"]);
    }
}

#[test]
fn directories_that_move_onto_each_other() {
    let world = World::in_memory();
    for name in ["d/e/f", "g/a", "l/a"] {
        std::fs::create_dir_all(world.path(name)).unwrap();
    }
    for line in [
        "mv -T d/e g/a; echo 1 > d/e",
        "mv -T l m; rmdir m; true",
        "mkdir x; mv -T l m; mv -T x m; true",
        "ln -s d s; mv -T l d/l; mv -T g s/l/a; true",
        "rmdir d; mv d k",
        "rmdir d; touch d/new; chmod 700 d; mv d l/k; mv -T l g; true",
        "setfattr -n user.n -v 1 g; touch g; chmod 700 g/a",
        "mkdir -p n/m; mv -T n/m g/a; mv -T d g; mv -T d d/e/f; rm -r d; true",
    ] {
        there_and_back(&world, line);
    }
}

/// Holes are part of what is in a file, also where the bytes are the same with and without them.
#[test]
fn holes_of_files_with_several_names() {
    for (setting, line) in HOLES {
        in_a_world_of(&format!("{setting}; ln a b"), line);
    }
}

/// Where nothing can be kept beside a file, its bytes are in the store, and its holes are told with them.
#[test]
fn holes_where_there_is_no_depot() {
    const USER: u32 = 12345;
    for names in ["", "; ln a b"] {
        for (setting, line) in HOLES {
            let disk = Disk::memory(16 * 1024);
            let closed = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(disk.root(), closed).unwrap();
            let world = World::at(&disk.path(), None).of_user(USER);
            shell(&world, &format!("{setting}{names}; chown {USER}:{USER} a"));
            there_and_back(&world, line);
        }
    }
}

const HOLES: [(&str, &str); 6] = [
    (
        "truncate -s 1M a",
        "printf '\\0' | dd of=a bs=1 seek=100000 conv=notrunc status=none",
    ),
    ("truncate -s 1M a", "cp a c; cp --sparse=never c a; rm c"),
    (
        "truncate -s 1M a; echo x >> a",
        "printf y | dd of=a bs=1 seek=100000 conv=notrunc status=none",
    ),
    (
        "echo x > a; truncate -s 1M a",
        "echo y >> a; truncate -s 2M a",
    ),
    ("truncate -s 20000 a", "echo y > a"),
    ("head -c 1000000 /dev/zero > a", "fallocate -d a; touch a"),
];

/// Names that went and came are paired anew where directories moved in a circle, and what the file was dressed as is not lost.
#[test]
fn a_linked_file_that_lost_a_name_beside_a_circle_is_dressed_as_before() {
    let setting = "mkdir -p d/t t; echo 1 > d/b; ln d/b d/t/b; echo z > t/b";
    let swap = "mv -T d/t swap; mv -T t d/t; mv -T swap t";
    for dress in ["setfattr -n user.n -v 1 d/b", "chmod 600 d/b"] {
        for line in [
            format!("{swap}; {dress}; ln d/b d/a; sed -i s/1/x/ d/b"),
            format!("{swap}; ln d/b d/a; {dress}; rm d/b"),
        ] {
            in_a_world_of(setting, &line);
        }
    }
}

/// What the command put in the place of another file, out of a directory that it removed, goes there and back.
#[test]
fn what_came_out_of_a_directory_that_went_goes_back_and_forth() {
    let setting = "mkdir p q; echo old > a; echo new > p/a; mkdir -p q/d; echo 1 > q/d/f; mkdir e";
    for line in [
        "mv p/a a; rmdir p",
        "mv -T q/d e; rmdir q",
        "mv p/a a; rmdir p; mv -T q/d p; mv p/f q/a",
    ] {
        in_a_world_of(setting, line);
    }
}
