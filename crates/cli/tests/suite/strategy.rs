//! Which strategy was asked for, which was used, what it cost, and that each of them brings everything back.

use std::fs;

use crate::world::{Ran, World};

/// A text of which one line says which version it is.
fn text(version: &str) -> String {
    let lines = (0..200).map(|at| match at {
        100 => format!("version {version}\n"),
        at => format!("line {at}\n"),
    });
    lines.collect()
}

/// The same, larger than what rides with a record.
fn large(version: &str) -> String {
    format!("{}{version}\n", "0123456789\n".repeat(12_000))
}

fn write(world: &World, name: &str, text: &str, options: &[&str]) -> Ran {
    let new = world.place("new");
    fs::write(&new, text).unwrap();
    let mut words = vec!["write", name, "--from", new.to_str().unwrap()];
    words.extend(options);
    world.run(&mut world.command(&words))
}

#[test]
fn a_hot_file_is_logged_and_shown_so() {
    let world = World::new().file("f", &text("0"));
    for version in 1..=7 {
        assert_eq!(write(&world, "f", &text(&version.to_string()), &[]).code, 0);
    }
    insta::assert_snapshot!(world.cli(["show"]), @"
    53845412  write f
      id        538454127b096493
      status    committed
      when      2027-01-15 08:00:00 UTC (just now)
      target    f  as this operation left it
      built on  b54cda58  writes the same target
      strategy  transaction  6 writes in a minute to one file
      cost      1.6 KiB stored
      journal   19 intent, 20 applied, 21 commit
    hint: see what it changed with `backout diff 53845412`
    hint: see what an undo would do with `backout undo 53845412 --dry-run`
    ");
    world.did(["undo"]);
    assert_eq!(world.text("f"), text("6"));
    world.did(["redo"]);
    assert_eq!(world.text("f"), text("7"));
    world.did(["gc"]);
    world.did(["verify"]);
    insta::assert_snapshot!(world.cli(["diff", "b54cda58"]), @"
    changed f
    --- a/f
    +++ b/f
    @@ -98,7 +98,7 @@
     line 97
     line 98
     line 99
    -version 5
    +version 6
     line 101
     line 102
     line 103
    ");
}

#[test]
fn a_file_that_the_store_has_no_room_for_is_logged_with_the_reason() {
    let world = World::new().file("big", &large("one"));
    insta::assert_snapshot!(write(&world, "big", &large("two"), &["--cap", "64KiB"]), @"
    wrote big  (9e3779b9, undo with `backout undo 9e3779b9`)
    note: undoing needs `big` as this leaves it: only what changes is kept
    note: the way back is a transaction, not a snapshot: the store holds 0 bytes and would get 135168 more; its cap is 65536
    ");
    insta::assert_snapshot!(world.cli(["show"]), @"
    9e3779b9  write big
      id            9e3779b97f4a7c15
      status        committed
      when          2027-01-15 08:00:00 UTC (just now)
      target        big  as this operation left it
      asked for     snapshot  kept whole without a copy (size 132004)
      not possible  snapshot  the store holds 0 bytes and would get 135168 more; its cap is 65536
      strategy      transaction
      cost          11 B stored
      journal       1 intent, 2 applied, 3 commit
      note          undoing needs `big` as this leaves it: only what changes is kept
      note          the way back is a transaction, not a snapshot: the store holds 0 bytes and would get 135168 more; its cap is 65536
    hint: see what it changed with `backout diff 9e3779b9`
    hint: see what an undo would do with `backout undo 9e3779b9 --dry-run`
    ");
    insta::assert_snapshot!(world.cli(["diff"]), @"
    changed big
    --- a/big
    +++ b/big
    @@ -11998,4 +11998,4 @@
     0123456789
     0123456789
     0123456789
    -one
    +two
    ");
    world.did(["verify"]);
    world.did(["undo"]);
    assert_eq!(world.text("big"), large("one"));
    insta::assert_snapshot!(world.cli(["show", "3c6ef372"]), @"
    3c6ef372  undo of write big
      id          3c6ef372fe94f82a
      status      committed
      when        2027-01-15 08:00:00 UTC (just now)
      takes back  9e3779b9
      set off     user-request by a person, medium
      target      big  as this operation left it
      strategy    snapshot  what it replaces is kept, so that it can be taken back as well
      cost        0 B stored, 132.0 KiB kept as they are
      journal     4 intent, 5 applied, 6 commit
    hint: see what it changed with `backout diff 3c6ef372`
    hint: see what an undo would do with `backout undo 3c6ef372 --dry-run`
    ");
    world.did(["redo"]);
    assert_eq!(world.text("big"), large("two"));
    world.did(["restore", "big", "--from", "9e3779b9"]);
    assert_eq!(world.text("big"), large("one"));
    world.did(["undo"]);
    assert_eq!(world.text("big"), large("two"));
}

#[test]
fn what_was_logged_is_lost_with_the_file_that_it_is_a_change_of() {
    let world = World::new().file("big", &large("one"));
    assert_eq!(
        write(&world, "big", &large("two"), &["--cap", "64KiB"]).code,
        0
    );
    fs::remove_file(world.path("big")).unwrap();
    insta::assert_snapshot!(world.cli(["undo", "--force"]), @"
    error: nothing was undone
      why: `big`: only what changed was kept, and `big` is gone
      next: see what the journal still knows with `backout show 9e3779b9`
    [exit code 1]
    ");
    world.put("big", "mine");
    insta::assert_snapshot!(world.cli(["show"]), @"
    9e3779b9  write big
      id            9e3779b97f4a7c15
      status        committed
      when          2027-01-15 08:00:00 UTC (just now)
      undo failed   big  failed: only what changed was kept, and `big` is gone
      target        big  cannot be brought back: only what changed was kept, and `big` is not what was written then
      asked for     snapshot  kept whole without a copy (size 132004)
      not possible  snapshot  the store holds 0 bytes and would get 135168 more; its cap is 65536
      strategy      transaction
      cost          11 B stored
      journal       1 intent, 2 applied, 3 commit, 4 escalated, 5 escalated, 6 escalated, 7 escalated
      note          undoing needs `big` as this leaves it: only what changes is kept
      note          the way back is a transaction, not a snapshot: the store holds 0 bytes and would get 135168 more; its cap is 65536
    hint: see what it changed with `backout diff 9e3779b9`
    hint: see what an undo would do with `backout undo 9e3779b9 --dry-run`
    ");
    insta::assert_snapshot!(world.cli(["diff"]), @"
    changed big
      content 128.9 KiB -> 128.9 KiB, not shown: only what changed was kept, and `big` is not what was written then
    ");
    insta::assert_snapshot!(world.cli(["verify"]), @"
    checked 9 records, 1 content and 0 kept inodes
    0 operations can still be undone
    1 operation cannot be undone any more
      9e3779b9  only what changed was kept, and `$WORLD/work/big` is not what was written then
    ");
    world.put("big", &large("two"));
    world.did(["verify"]);
    world.did(["undo", "--force"]);
    assert_eq!(world.text("big"), large("one"));
}

#[test]
fn what_you_insist_on_is_done_so_or_not_at_all() {
    let world = World::new()
        .file("f", &text("0"))
        .file("app.json", "{\"a\": 1}\n");
    let logged = ["--strategy", "transaction"];
    assert_eq!(write(&world, "f", &text("1"), &logged).code, 0);
    insta::assert_snapshot!(write(&world, "f", &text("0"), &logged), @"
    error: what `f` is cannot be kept by transaction: what it becomes is told as a change of it, or of too many others
      why: nothing was changed
      next: leave `--strategy` out: then the other one is tried
    [exit code 1]
    ");
    insta::assert_snapshot!(write(&world, "f", "another text\n", &logged), @"
    error: what `f` is cannot be kept by transaction: more than 845 bytes of it change
      why: nothing was changed
      next: leave `--strategy` out: then the other one is tried
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["--strategy", "transaction", "restore", "f", "--from", "9e3779b9"]), @"
    error: what `f` is cannot be kept by transaction: its new bytes are not at hand yet
      why: nothing was changed
      next: leave `--strategy` out: then the other one is tried
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["--strategy", "snapshot", "set", "app.json", "a", "2"]), @"
    error: what `app.json` is cannot be kept by snapshot: keys are logged one by one
      why: nothing was changed
      next: leave `--strategy` out: then the other one is tried
    [exit code 1]
    ");
    assert_eq!(world.text("f"), text("1"));
    insta::assert_snapshot!(write(&world, "f", &text("1"), &["--mode", "640", "--strategy", "transaction"]), @"
    error: what `f` is cannot be kept by transaction: its bytes do not change
      why: nothing was changed
      next: leave `--strategy` out: then the other one is tried
    [exit code 1]
    ");
    world.did(["undo", "9e3779b9", "--force"]);
    assert_eq!(world.text("f"), text("0"));
}

#[test]
fn what_cannot_be_logged_from_a_pipe_is_kept_whole() {
    let world = World::new().file("f", &text("0"));
    for version in 1..=6 {
        assert_eq!(write(&world, "f", &text(&version.to_string()), &[]).code, 0);
    }
    insta::assert_snapshot!(world.piped("x".repeat(5000).as_bytes(), ["write", "f"]), @"wrote f  (53845412, undo with `backout undo 53845412`)");
    assert_eq!(world.text("f").len(), 5000);
    insta::assert_snapshot!(world.cli(["show"]), @"
    53845412  write f
      id            538454127b096493
      status        committed
      when          2027-01-15 08:00:00 UTC (just now)
      target        f  as this operation left it
      built on      b54cda58  writes the same target
      asked for     transaction  6 writes in a minute to one file
      not possible  transaction  `f`: more than 845 bytes of it change
      strategy      snapshot
      cost          6.5 KiB stored
      journal       19 intent, 20 applied, 21 commit
    hint: see what it changed with `backout diff 53845412`
    hint: see what an undo would do with `backout undo 53845412 --dry-run`
    ");
    world.did(["undo"]);
    assert_eq!(world.text("f"), text("6"));
}

/// A file that is too large to ride with a record, with one line that differs.
fn tall(line: usize) -> String {
    let lines = (0..30_000).map(|at| {
        if at == line {
            "another\n".to_owned()
        } else {
            format!("{at}\n")
        }
    });
    lines.collect()
}

#[test]
fn what_an_older_logged_write_changed_is_shown_while_the_newer_one_stands() {
    let world = World::new().file("f", &tall(usize::MAX));
    for line in [10, 20] {
        let wrote = world.piped(
            tall(line).as_bytes(),
            ["--strategy", "transaction", "write", "f", "-q"],
        );
        assert_eq!(wrote.code, 0, "{wrote}");
    }
    let shown = world.cli(["diff", "@-1"]);
    assert_eq!(shown.code, 0, "{shown}");
    assert!(shown.out.contains("-10\n+another"), "{shown}");
    assert_eq!(world.cli(["verify"]).code, 0);
    world.did(["undo", "@-1"]);
    assert_eq!(world.text("f"), tall(usize::MAX));
}

#[test]
fn a_check_says_what_cannot_be_undone_since_its_base_is_gone() {
    let world = World::new().file("f", &tall(usize::MAX));
    let wrote = world.piped(
        tall(10).as_bytes(),
        ["--strategy", "transaction", "write", "f", "-q"],
    );
    assert_eq!(wrote.code, 0, "{wrote}");
    assert_eq!(world.cli(["verify"]).code, 0);
    world.put("f", "somebody else's\n");
    let checked = world.cli(["verify"]);
    assert!(
        checked
            .out
            .contains("1 operation cannot be undone any more"),
        "{checked}"
    );
    assert!(!checked.out.contains("all as they must be"), "{checked}");
}

#[test]
fn a_strategy_is_refused_where_nothing_heeds_it() {
    let world = World::new().file("f", "1");
    insta::assert_snapshot!(world.cli(["--strategy", "transaction", "run", "--", "rm", "f"]), @"
    error: `--strategy` does not go with this command
      why: it says how one write is kept, and this command has its own way
      next: it goes with write, edit, set, unset, merge, rm, mv, cp, mkdir, ln, chmod, chown, batch, sql, redis, http, act, restore
    [exit code 2]
    ");
    assert!(world.has("f"));
}

#[test]
fn a_logged_write_is_shown_and_restored_by_what_a_later_write_keeps() {
    let world = World::new().file("f", &tall(usize::MAX));
    for (line, strategy) in [
        (10, "transaction"),
        (20, "transaction"),
        (30, "snapshot"),
        (40, "snapshot"),
    ] {
        let wrote = world.piped(
            tall(line).as_bytes(),
            ["--strategy", strategy, "write", "f", "-q"],
        );
        assert_eq!(wrote.code, 0, "{wrote}");
    }
    for (back, was) in [("@-3", usize::MAX), ("@-3", 10)] {
        let shown = world.cli(["show", back]);
        assert!(!shown.out.contains("cannot be brought back"), "{shown}");
        assert!(shown.out.contains("content changed"), "{shown}");
        let shown = world.cli(["diff", back]);
        assert!(shown.out.contains("+another"), "{shown}");
        world.did(["restore", "f", "--from", back]);
        assert!(world.text("f") == tall(was), "{back}");
        world.did(["undo"]);
        assert!(world.text("f") == tall(40), "{back}");
    }
    world.did(["undo", "@-5"]);
    assert!(world.text("f") == tall(usize::MAX));
}

#[test]
fn a_plan_of_two_logged_writes_foresees_that_neither_can_come_back() {
    let world = World::new().file("f", &tall(usize::MAX));
    for line in [10, 20] {
        let wrote = world.piped(
            tall(line).as_bytes(),
            ["--strategy", "transaction", "write", "f", "-q"],
        );
        assert_eq!(wrote.code, 0, "{wrote}");
    }
    world.put("f", "somebody else's\n");
    insta::assert_snapshot!(world.cli(["undo", "-n", "@-1"]), @"
    would not undo 2 operations, newest first:
      3c6ef372  write f  depends on 9e3779b9: writes the same target
                f  cannot be brought back: only what changed was kept, and `f` is not what was written then
      9e3779b9  write f
                f  cannot be brought back: only what changed was kept, and `f` is not what was written then
    [exit code 1]
    ");
}
