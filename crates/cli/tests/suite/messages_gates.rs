//! What is said of gates and proposals, and what the world is afterwards.

use crate::world::World;

/// Where `d/` waits for approval and `s/` is nobody's to write.
fn guarded() -> World {
    World::new()
        .file("d/a", "one\n")
        .file("s/key", "secret\n")
        .file(
            "backout.toml",
            "[protect]\nask = ['d']\ndeny = ['s']\nexpires = '3h'\n",
        )
}

/// One that waits, as the first operation.
fn waiting() -> World {
    let world = guarded();
    let ran = world.cli(["--agent", "bob", "write", "d/a", "--text", "two\n"]);
    assert_eq!(ran.code, 1, "{ran}");
    world
}

const ID: &str = "9e3779b9";

#[test]
fn a_protected_path_is_named_with_its_rule() {
    let world = guarded();
    insta::assert_snapshot!(world.unmoved(["write", "s/key", "--text", "x"]), @"
    error: nothing was written
      why: `s/key` is protected (deny `s` in backout.toml)
      next: leave it as it is, or ask a person to change the rule
      next: the journal has it as 9e3779b9
    [exit code 1]
    ");
}

#[test]
fn a_write_that_waits_says_so_and_what_to_do_meanwhile() {
    let world = guarded();
    insta::assert_snapshot!(world.cli(["--agent", "bob", "write", "d/a", "--text", "two\n"]), @"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: a write of `d/a` has to be approved (ask `d` in backout.toml)
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["pending"]), @"
    proposals:
      9e3779b9  write d/a  bob  3 h left
    hint: look at it with `backout pending 9e3779b9`, then decide with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    ");
    insta::assert_snapshot!(world.unmoved(["pending", ID]), @"
    9e3779b9  write d/a
      asked by bob
      a write of `d/a` has to be approved (ask `d` in backout.toml)
      until 2027-01-15 11:00:00 UTC (3 h left)
    changed d/a
    --- a/d/a
    +++ b/d/a
    @@ -1 +1 @@
    -one
    +two
    hint: decide with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    ");
    world.minutes(179);
    let status = world.unmoved(["status"]).to_string();
    for part in [
        "proposals that wait for a decision:",
        "1 min left",
        "hint: look at it with",
    ] {
        assert!(status.contains(part), "{status}");
    }
}

#[test]
fn nothing_waits() {
    insta::assert_snapshot!(World::new().unmoved(["pending"]), @"
    nothing waits for a decision
    ");
}

#[test]
fn what_was_approved_is_told_with_who_and_why() {
    let world = waiting();
    let ran = world.cli(["approve", ID, "--why", "it is fine"]);
    insta::assert_snapshot!(ran, @"
    approved: write d/a  (9e3779b9, undo with `backout undo 9e3779b9`)
    ");
    assert_eq!(world.text("d/a"), "two\n");
    let shown = world.cli(["show", ID]).to_string();
    assert!(shown.contains("approved by"), "{shown}");
    assert!(shown.contains(": it is fine"), "{shown}");
    insta::assert_snapshot!(world.unmoved(["reject", ID]), @"
    error: there is nothing to decide about operation 9e3779b9
      why: it is committed
      next: see what waits for a decision with `backout pending`
    [exit code 1]
    ");
}

#[test]
fn what_was_rejected_is_told_with_who_and_why() {
    let world = waiting();
    insta::assert_snapshot!(world.cli(["reject", ID, "--why", "not now"]), @"
    rejected 9e3779b9; nothing was written
    ");
    assert_eq!(world.text("d/a"), "one\n");
    let shown = world.cli(["show", ID]).to_string();
    assert!(shown.contains("rejected by"), "{shown}");
    assert!(shown.contains("not now"), "{shown}");
}

#[test]
fn who_proposed_it_cannot_approve_it() {
    let world = waiting();
    insta::assert_snapshot!(world.unmoved(["--agent", "bob", "approve", ID]), @"
    error: 9e3779b9 was not approved, and nothing was written
      why: who proposed a change cannot approve it, nor can a command under `run`
      next: ask a person, or another agent, to decide
    [exit code 1]
    ");
}

#[test]
fn what_changed_since_cannot_be_approved() {
    let world = waiting();
    world.put("d/a", "theirs\n");
    insta::assert_snapshot!(world.unmoved(["approve", ID]), @"
    error: 9e3779b9 was not approved, and nothing was written
      why: a target, or what it would become, is not what it was when the change was proposed
      next: see what it would do now with `backout pending 9e3779b9`
      next: reject it with `backout reject 9e3779b9`; whoever proposed it has to ask again
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["pending", ID]), @"
    9e3779b9  write d/a
      asked by bob
      a write of `d/a` has to be approved (ask `d` in backout.toml)
      until 2027-01-15 11:00:00 UTC (3 h left)
      it cannot be approved any more: a target, or what it would become, is not what it was when the change was proposed
    changed d/a
    --- a/d/a
    +++ b/d/a
    @@ -1 +1 @@
    -theirs
    +two
    hint: refuse it with `backout reject 9e3779b9`
    ");
    world.put("d/a", "two\n");
    insta::assert_snapshot!(world.unmoved(["approve", ID]), @"
    error: 9e3779b9 was not approved, and nothing was written
      why: the targets are already as proposed
      next: see what it would do now with `backout pending 9e3779b9`
      next: reject it with `backout reject 9e3779b9`; whoever proposed it has to ask again
    [exit code 1]
    ");
}

#[test]
fn a_proposal_that_nobody_decided_about_is_refused() {
    let world = waiting();
    world.minutes(179);
    assert!(world.cli(["pending"]).to_string().contains("1 min left"));
    world.minutes(181);
    insta::assert_snapshot!(world.cli(["approve", ID]), @"
    error: 9e3779b9 was not approved, and nothing was written
      why: nobody decided in time, so it is refused
      next: whoever proposed it has to ask again
    [exit code 1]
    ");
    assert_eq!(world.text("d/a"), "one\n");
    let shown = world.cli(["show", ID]).to_string();
    assert!(shown.contains("nobody decided in time"), "{shown}");
    assert!(world.cli(["pending"]).to_string().contains("nothing waits"));
}

#[test]
fn what_waits_for_ever_and_what_waits_no_longer_say_so() {
    let world = guarded();
    world.put(
        "backout.toml",
        "[protect]\nask = ['d/a']\nexpires = 'never'\n",
    );
    world.put(
        "d/backout.toml",
        "[protect]\nask = ['b']\nexpires = '30s'\n",
    );
    for name in ["d/a", "d/b"] {
        assert_eq!(world.cli(["write", name, "--text", "two"]).code, 1);
    }
    insta::assert_snapshot!(world.unmoved(["pending"]), @"
    proposals:
      9e3779b9  write d/a  waits for ever
      3c6ef372  write d/b  less than a minute left
    hint: look at it with `backout pending 9e3779b9`, then decide with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    ");
}

#[test]
fn a_key_that_stands_for_another_call() {
    let world = World::new();
    world.did(["--once", "k", "write", "f", "--text", "1"]);
    insta::assert_snapshot!(world.unmoved(["--once", "k", "write", "f", "--text", "2"]), @"
    error: nothing was written
      why: the key `k` was given to another request, which is operation 9e3779b9
      next: give each request a key of its own
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["--once", "k", "write", "f", "--text", "1"]), @"
    wrote f  (9e3779b9, undo with `backout undo 9e3779b9`)
    note: this call was answered before, so nothing was written again
    ");
}

#[test]
fn a_command_does_not_decide_about_its_own_proposals() {
    let world = waiting();
    let program = env!("CARGO_BIN_EXE_backout");
    let ran = world.cli(["run", "--", program, "approve", ID]).to_string();
    assert!(
        ran.contains("what waits for a decision is decided outside"),
        "{ran}"
    );
    assert_eq!(world.text("d/a"), "one\n");
}
