//! Calls that no undo could answer for: they are refused inside of a command, and `run` says why. The world is as before.

use crate::world::World;

/// Runs a line of Perl that makes one call and prints what the kernel said, and gives the note of `run`.
#[track_caller]
fn note_of(world: &World, call: &str) -> String {
    let line = format!("{call}; print \"$!\\n\"");
    let tree = world.tree();
    let ran = world.cli(["run", "--", "perl", "-e", &line]);
    assert_eq!(world.tree(), tree, "{ran}");
    assert_eq!(ran.out, "Operation not permitted\n", "{ran}");
    let note = ran
        .err
        .lines()
        .find(|line| line.starts_with("note: a call of process "));
    let (_, why) = note
        .and_then(|note| note.split_once(" was refused: "))
        .unwrap();
    why.to_owned()
}

#[test]
fn a_call_that_no_undo_could_answer_for_is_refused_and_says_what_to_do_instead() {
    let world = World::new().file("f", "1");
    let number = |name: &str| match (name, cfg!(target_arch = "x86_64")) {
        ("acct", true) => 163,
        ("acct", false) => 89,
        (_, true) => 167,
        (_, false) => 224,
    };
    let asked = |request: u32| {
        format!("open(F, '<', 'f'); my $b = \"\\0\" x 4096; ioctl(F, {request}, $b)")
    };
    let rows = [
        (
            format!("my $p = 'f'; syscall({}, $p)", number("acct")),
            "the kernel would write its accounts into a file by itself, and none of that could be undone; switch them on without `backout run`",
        ),
        (
            format!("my $p = 'f'; syscall({}, $p, 0)", number("swapon")),
            "the kernel would write memory into it by itself, and none of that could be undone; run it without `backout run`",
        ),
        (
            asked(0x5000_940e),
            "what happens to a whole subvolume cannot be undone; make, copy or remove its directories and files instead (`rm -r`, `cp -a`), or run it without `backout run`",
        ),
        (
            asked(0x4080_6685),
            "it can never be undone; run it without `backout run`",
        ),
    ];
    for (call, why) in rows {
        assert_eq!(note_of(&world, &call), why, "{call}");
    }
}

#[test]
fn a_name_that_is_too_deep_to_be_told_is_refused() {
    let world = World::new();
    let tree = world.tree();
    let line = "for (1..50) { my $n = 'd' x 100; mkdir $n or die \"$!\\n\"; chdir $n or die }";
    let ran = world.cli(["run", "--", "perl", "-e", line]);
    assert!(ran.err.starts_with("File name too long\n"), "{ran}");
    let why = "it is so deep that its whole path has more than 4096 bytes: File name too long (os error 36)\n";
    assert!(ran.err.contains(why), "{ran}");
    world.did(["undo"]);
    assert_eq!(world.tree(), tree);
}
