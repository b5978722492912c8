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

/// Where `d/` waits for approval, and somebody is told of it so.
fn telling(notify: &str) -> World {
    let rules = format!("[protect]\nask = ['d']\n[notify]\n{notify}\n");
    World::new()
        .file("d/a", "one\n")
        .file("backout.toml", &rules)
}

#[test]
fn a_notice_that_fails_is_told_with_what_waits() {
    let ask = ["--agent", "bob", "write", "d/a", "--text", "two\n"];
    let world = telling("command = ['/bin/sh', '-c', 'echo the line is dead; exit 3']");
    insta::assert_snapshot!(world.cli(ask), @"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: a write of `d/a` has to be approved (ask `d` in backout.toml)
      why: nobody may have heard that it waits: `/bin/sh` ended with 3: the line is dead
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    [exit code 1]
    ");
    let world = telling("command = ['/no/such/program']");
    insta::assert_snapshot!(world.cli(ask), @"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: a write of `d/a` has to be approved (ask `d` in backout.toml)
      why: nobody may have heard that it waits: `/no/such/program` could not be started: No such file or directory (os error 2)
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    [exit code 1]
    ");
    let world = telling("command = ['/bin/sh', '-c', 'kill -9 $$']");
    insta::assert_snapshot!(world.cli(ask), @"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: a write of `d/a` has to be approved (ask `d` in backout.toml)
      why: nobody may have heard that it waits: `/bin/sh` was ended by signal 9
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    [exit code 1]
    ");
    let world = telling("command = ['/bin/sleep', '5']\ntimeout = '50ms'");
    insta::assert_snapshot!(world.cli(ask), @"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: a write of `d/a` has to be approved (ask `d` in backout.toml)
      why: nobody may have heard that it waits: `/bin/sleep` took longer than 50ms
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    [exit code 1]
    ");
    let world = telling("webhook = 'http://127.0.0.1:9/'\nwebhook-secret-file = 'key'");
    insta::assert_snapshot!(world.cli(ask), @"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: a write of `d/a` has to be approved (ask `d` in backout.toml)
      why: nobody may have heard that it waits: the webhook was not told: No such file or directory (os error 2)
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    [exit code 1]
    ");
    assert!(world.cli(["pending"]).out.contains(ID));
}

#[test]
fn a_notice_that_takes_long_does_not_hold_the_answer_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let world = telling(&format!(
        "command = ['/bin/sh', '-c', 'cat > input; sleep 5; mv input told']\nwebhook = 'http://127.0.0.1:{port}/'\ntimeout = '20s'"
    ));
    let ran = world.cli(["--agent", "bob", "write", "d/a", "--text", "two\n"]);
    assert!(!world.has("told"), "nobody waited for it: {ran}");
    let told = ran.err.replace(&port.to_string(), "PORT");
    insta::assert_snapshot!(told, @"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: a write of `d/a` has to be approved (ask `d` in backout.toml)
      why: nobody may have heard that it waits: people are being told, and that takes longer: `backout pending` says if it goes wrong
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    ");
    // It goes on by itself, with all that it was told.
    for _ in 0..2000 {
        if world.has("told") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let told: serde_json::Value = serde_json::from_str(&world.text("told")).unwrap();
    assert_eq!(told["event"], "waits");
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
    done before: write f  (9e3779b9, undo with `backout undo 9e3779b9`)
    note: this call was answered before, so nothing was written again
    ");
}

#[test]
fn a_call_that_was_undone_or_refused_since_says_so() {
    let world = guarded();
    let call = ["--once", "k", "write", "f", "--text", "1"];
    world.did(call);
    world.did(["undo"]);
    insta::assert_snapshot!(world.unmoved(call), @"
    error: nothing was written
      why: this call was done before, as 9e3779b9, and undone since, by 3c6ef372
      next: bring it back with `backout redo 3c6ef372`
      next: to have it done anew, give it another key
    [exit code 1]
    ");
    world.did(["redo", "3c6ef372"]);
    assert_eq!(world.text("f"), "1");
    let call = ["--once", "n", "write", "s/key", "--text", "x"];
    assert_eq!(world.cli(call).code, 1);
    world.put("backout.toml", "");
    insta::assert_snapshot!(world.unmoved(call), @"
    error: nothing was written
      why: `s/key` is protected (deny `s` in backout.toml)
      why: this call was answered so before, as 78dde6e5
      next: if it is to be asked again, give it another key
    [exit code 1]
    ");
}

#[test]
fn a_call_of_which_a_part_was_undone_since_says_so() {
    let world = World::new().file("a", "1").file("b", "2");
    let call = ["--once", "k", "rm", "a", "b"];
    world.did(call);
    world.did(["undo", "@", "--only", "a"]);
    let ran = world.unmoved(call).to_string();
    assert!(ran.contains("note: a part of it was undone since"), "{ran}");
    world.did(["undo", "@"]);
    let ran = world.unmoved(call).to_string();
    let words = "this call was done before, as 9e3779b9, and undone since";
    assert!(ran.contains(words), "{ran}");
    world.did(["redo", ID]);
    assert!(!world.has("a") && !world.has("b"));
}

#[test]
fn a_call_that_nobody_can_tell_of_says_so() {
    let world = World::new().file("a", "0");
    let call = ["--once", "k", "write", "a", "--text", "1"];
    let mut crash = world.command(&call);
    world.run(crash.env("BACKOUT_CRASH_AT", "engine.applied"));
    world.put("a", "theirs");
    world.cli(["recover"]);
    insta::assert_snapshot!(world.unmoved(call), @"
    error: nothing was written
      why: this call was made before, as 9e3779b9, and nobody can tell whether that happened
      next: see what is known, and decide, with `backout recover`
    [exit code 1]
    ");
    assert_eq!(world.text("a"), "theirs");
}

#[test]
fn a_call_that_did_not_come_to_pass_is_carried_out_and_says_so() {
    let world = World::new().file("a", "0");
    let call = ["--once", "k", "write", "a", "--text", "1"];
    let mut crash = world.command(&call);
    world.run(crash.env("BACKOUT_CRASH_AT", "engine.applied"));
    let ran = world.cli(call).to_string();
    let words = "note: the same call was made before as 9e3779b9, which did not come to pass; so it is carried out now";
    assert!(ran.contains(words), "{ran}");
    assert!(ran.contains("wrote a "), "{ran}");
    assert_eq!(world.text("a"), "1");
}

#[test]
fn a_call_is_interrupted_at_any_step_and_is_carried_out_by_the_next_one() {
    let call = ["--once", "k", "write", "--append", "a", "--text", "1"];
    let steps = World::new().file("a", "0").steps(&call);
    for number in 0..steps.len() {
        let passed: Vec<&str> = steps.iter().map(String::as_str).take(number).collect();
        let world = World::new().file("a", "0");
        let waiting = world.after_steps(&passed, &call);
        waiting.signal(rustix::process::Signal::INT);
        let ran = world.go_on(waiting);
        // Before it heeds signals, one ends it.
        assert!([0, 130, 128].contains(&ran.code), "{number}: {ran}");
        let is_done = ran.code == 0;
        assert_eq!(world.text("a"), if is_done { "01" } else { "0" }, "{ran}");
        let ran = world.cli(call);
        assert_eq!(ran.code, 0, "{number}: {ran}");
        assert_eq!(ran.to_string().contains("done before"), is_done, "{ran}");
        assert_eq!(world.text("a"), "01", "{number}: {ran}");
    }
}

#[test]
fn a_key_goes_only_with_what_knows_its_calls_again() {
    let world = World::new();
    insta::assert_snapshot!(world.unmoved(["--once", "k", "undo"]), @"
    error: `--once` does not go with this command
      why: it would not keep the command from being carried out twice
      next: it goes with write, edit, set, unset, merge, rm, mv, cp, mkdir, ln, chmod, chown, batch, sql, redis, http, act, restore
    [exit code 2]
    ");
}

#[test]
fn a_proposal_has_changed_nothing_that_could_be_shown() {
    let world = waiting();
    insta::assert_snapshot!(world.unmoved(["diff", ID]), @"
    error: operation 9e3779b9 changed nothing
      why: it waits for a decision
      next: see what it would change with `backout pending 9e3779b9`
    [exit code 1]
    ");
    world.did(["reject", ID]);
    insta::assert_snapshot!(world.unmoved(["diff", ID]), @"
    error: operation 9e3779b9 changed nothing
      why: it was refused
      next: see why with `backout show 9e3779b9`
    [exit code 1]
    ");
}

#[test]
fn rules_that_say_no_by_now_leave_the_proposal_waiting() {
    let world = waiting();
    world.put("backout.toml", "[protect]\ndeny = ['d']\n");
    insta::assert_snapshot!(world.unmoved(["approve", ID]), @"
    error: 9e3779b9 was not approved, and nothing was written
      why: `d/a` is protected (deny `d` in backout.toml)
      next: leave it as it is, or ask a person to change the rule
      next: it still waits: then approve it with `backout approve 9e3779b9`, or refuse it with `backout reject 9e3779b9`
    [exit code 1]
    ");
}

#[test]
fn a_task_with_a_proposal_is_not_committed() {
    let world = guarded();
    world.did(["task", "begin", "t"]);
    let write = ["--task", "t", "write", "d/a", "--text", "two\n"];
    assert_eq!(world.cli(write).code, 1);
    insta::assert_snapshot!(world.unmoved(["commit", "t"]), @"
    error: the task `t` was not committed
      why: a write of it waits for a decision as 9e3779b9
      next: let it happen with `backout approve 9e3779b9`, or refuse it with `backout reject 9e3779b9`
    [exit code 1]
    ");
    world.did(["rollback", "t"]);
    let shown = world.cli(["show", ID]).to_string();
    assert!(shown.contains("its task was rolled back"), "{shown}");
}

#[test]
fn what_is_in_a_tree_that_moves_is_shown() {
    let world = guarded().file("new/sub/run", "good\n");
    assert_eq!(world.cli(["mv", "new", "d/new"]).code, 1);
    let shown = world.unmoved(["pending", ID]).to_string();
    for part in [
        "with all that is in it:\n",
        "  new/sub",
        "  new/sub/run  5 B\n",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    for number in 0..30 {
        world.put(&format!("d/many/{number}"), "1");
    }
    assert_eq!(world.cli(["rm", "-r", "d/many"]).code, 1);
    let listed = world.cli(["--json", "pending"]).out;
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let id = listed["proposals"][1]["id"].as_str().unwrap().to_owned();
    let shown = world.unmoved(["pending", &id]).to_string();
    assert!(shown.contains("  and 10 more\n"), "{shown}");
    let shown = world.unmoved(["-v", "pending", &id]).to_string();
    assert!(!shown.contains(" more\n"), "{shown}");
}

#[test]
fn an_approval_is_interrupted_at_any_step_and_the_proposal_waits_or_happened() {
    let steps = waiting().steps(&["approve", ID]);
    let mut again = 0;
    for number in 0..steps.len() {
        let passed: Vec<&str> = steps.iter().map(String::as_str).take(number).collect();
        let world = waiting();
        let stopped = world.after_steps(&passed, &["approve", ID]);
        stopped.signal(rustix::process::Signal::INT);
        let ran = world.go_on(stopped);
        if ran.code == 0 {
            assert_eq!(world.text("d/a"), "two\n", "{number}: {ran}");
            continue;
        }
        // Before it heeds signals, one ends it.
        assert!([130, 128].contains(&ran.code), "{number}: {ran}");
        assert_eq!(world.text("d/a"), "one\n", "{number}: {ran}");
        let ran = ran.to_string();
        assert!(!ran.contains("has to ask again"), "{number}: {ran}");
        let listed = world.cli(["--json", "pending"]).out;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let waits = listed["proposals"].as_array().unwrap();
        assert_eq!(waits.len(), 1, "{number}: {ran}");
        let id = &waits[0]["id"].as_str().unwrap()[..8];
        if id != ID {
            again += 1;
            let words = format!(
                "next: it waits for a decision again, as {id}: approve it with `backout approve {id}`"
            );
            assert!(ran.contains(&words), "{number}: {ran}");
        }
        let ran = world.cli(["approve", id]);
        assert_eq!(
            (ran.code, world.text("d/a").as_str()),
            (0, "two\n"),
            "{ran}"
        );
    }
    assert!(again > 0, "no step between arm and effect");
}

#[test]
fn a_trial_and_its_proposal_end_together() {
    let world = guarded();
    let tried = ["try", "--apply", "--", "sh", "-c", "echo two > d/a"];
    assert_eq!(world.cli(tried).code, 1);
    let pending = world.cli(["pending"]).to_string();
    assert!(pending.contains("proposals:"), "{pending}");
    let listed = |world: &World| -> Vec<String> {
        let listed = world.cli(["--json", "pending"]).out;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let ids = listed["proposals"].as_array().unwrap().iter();
        ids.map(|it| it["id"].as_str().unwrap()[..8].to_owned())
            .collect()
    };
    // Applied again, it is the same proposal.
    assert_eq!(world.cli(["try", "--apply"]).code, 1);
    let [id] = listed(&world).try_into().unwrap();
    world.did(["approve", &id]);
    assert_eq!(world.text("d/a"), "two\n");
    assert!(world.cli(["pending"]).to_string().contains("nothing waits"));
    // Let go, it is no proposal any more.
    let tried = ["try", "--apply", "--", "sh", "-c", "echo three > d/a"];
    assert_eq!(world.cli(tried).code, 1);
    let [id] = listed(&world).try_into().unwrap();
    world.did(["try", "--discard"]);
    assert!(world.cli(["pending"]).to_string().contains("nothing waits"));
    let shown = world.cli(["show", &id]).to_string();
    assert!(shown.contains("its trial was discarded"), "{shown}");
    assert_eq!(world.text("d/a"), "two\n");
    // Rejected, it is a trial that waits.
    assert_eq!(world.cli(tried).code, 1);
    let [id] = listed(&world).try_into().unwrap();
    world.did(["reject", &id]);
    assert_eq!(world.cli(["try", "--apply"]).code, 1);
    assert_eq!(listed(&world).len(), 1);
}

#[test]
fn rules_that_are_no_rules_say_why() {
    let world = World::new();
    for (rules, words) in [
        (
            "[protect]\ndeny = ['../x']\n",
            "can match nothing: this file counts for what is in",
        ),
        (
            "[protect]\ndeny = ['*/../x']\n",
            "`..` cannot follow a sign in `*/../x`",
        ),
    ] {
        world.put("backout.toml", rules);
        let ran = world.unmoved(["write", "f", "--text", "1"]).to_string();
        assert!(ran.contains(words), "{ran}");
    }
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
