//! Gates and proposals, by the real program: what is denied is not touched, what waits happens exactly as it was proposed or
//! not at all, and the way back is never closed.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;

use serde_json::Value;

use crate::ruled::{code, waits};
use crate::trust::json;
use crate::world::{World, said};

/// A world in which `d/` waits for approval and `s/` is nobody's to write.
pub(crate) fn guarded() -> World {
    let world = World::in_memory();
    world.file("d/a", "one\n");
    world.file("s/key", "secret\n");
    world.file("free", "1\n");
    world.file("backout.toml", "[protect]\nask = ['d']\ndeny = ['s']\n");
    world
}

pub(crate) fn status_of(world: &World, id: &str) -> String {
    let shown = world.json(&["show", id]);
    shown["operation"]["status"].as_str().unwrap().to_owned()
}

pub(crate) fn pending(world: &World) -> Vec<Value> {
    let reply = world.json(&["pending"]);
    reply["proposals"].as_array().unwrap().clone()
}

#[test]
fn what_is_denied_is_not_touched_and_the_journal_has_it() {
    let world = guarded();
    let look = || {
        let found = std::fs::symlink_metadata(world.path("s/key")).unwrap();
        (found.ino(), found.mtime_nsec(), found.ctime_nsec())
    };
    let before = (look(), world.tree());
    for arguments in [
        &["write", "s/key", "--text", "x"][..],
        &["rm", "s/key"],
        &["chmod", "0600", "s/key"],
        &["rm", "-r", "s"],
        &["mv", "s", "t"],
        &["mv", "free", "s/free"],
        &["write", "-p", "s/new/file", "--text", "x"],
        &["cp", "free", "s/copy"],
    ] {
        let report = json(&world, 1, arguments);
        assert_eq!(report["code"], "gate", "{arguments:?}: {report}");
        let why = report["why"].to_string();
        assert!(why.contains("deny `s` in"), "{arguments:?}: {why}");
        let id = report["operation"].as_str().unwrap();
        assert_eq!(status_of(&world, id), "refused");
        assert!((look(), world.tree()) == before, "{arguments:?}");
    }
    assert!(pending(&world).is_empty());
    world.check_store();
}

#[test]
fn a_tree_that_holds_something_protected_is_protected_too() {
    let world = World::in_memory();
    world.file("a/b/keep", "1\n");
    world.file("a/c", "2\n");
    world.file("backout.toml", "[protect]\ndeny = ['**/keep']\n");
    let before = world.tree();
    assert_eq!(code(&world, &["rm", "-r", "a"]), "gate");
    assert_eq!(code(&world, &["mv", "a", "z"]), "gate");
    assert!(world.tree() == before);
    world.ok(&["rm", "a/c"]);
    // A file of rules in the tree itself counts as well.
    world.file("t/x", "1\n");
    world.file("t/backout.toml", "[protect]\ndeny = ['x']\n");
    let before = world.tree();
    assert_eq!(code(&world, &["rm", "-r", "t"]), "gate");
    assert!(world.tree() == before);
}

#[test]
fn what_is_approved_is_exactly_what_was_proposed_and_is_undone_by_the_same_id() {
    let world = guarded();
    let before = world.tree();
    let id = waits(
        &world,
        &["--agent", "bob", "write", "d/a", "--text", "two\n"],
    );
    assert!(world.tree() == before);
    assert_eq!(status_of(&world, &id), "proposed");
    let shown = world.ok(&["pending", &id]);
    for part in ["-one", "+two", "asked by bob", "ask `d` in"] {
        assert!(shown.contains(part), "{shown}");
    }
    let told = world.ok(&["approve", &id, "--why", "it is fine"]);
    assert!(told.contains("approved: write"), "{told}");
    assert_eq!(world.read("d/a"), "two\n");
    let shown = world.json(&["show", &id]);
    assert_eq!(shown["operation"]["agent"], "bob");
    let records = shown["records"].as_array().unwrap();
    let approval = records.iter().find(|it| it["event"] == "intent").unwrap();
    assert_eq!(approval["approval"]["why"], "it is fine");
    assert!(pending(&world).is_empty());
    world.ok(&["undo", &id]);
    assert_eq!(world.read("d/a"), "one\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("d/a"), "two\n");
    world.check_store();
}

#[test]
fn every_kind_of_write_waits_and_happens_as_asked() {
    for (arguments, input) in [
        (&["write", "d/a"][..], Some("from a pipe\n".to_owned())),
        (&["write", "d/large"], Some("0123456789\n".repeat(20_000))),
        (&["write", "d/b", "--from", "free"], None),
        (&["edit", "d/a", "--search", "one", "--replace", "1"], None),
        (&["set", "d/c.toml", "k", "2"], None),
        (&["rm", "d/a"], None),
        (&["rm", "-r", "d"], None),
        (&["mv", "free", "d/free"], None),
        (&["mv", "d/a", "out"], None),
        (&["cp", "-r", "d", "d/../copy"], None),
        (&["cp", "free", "d/copy"], None),
        (&["mkdir", "-p", "d/x/y"], None),
        (&["ln", "-s", "free", "d/link"], None),
        (&["chmod", "0600", "d/a"], None),
        (&["batch"], Some(r#"{"changes": [{"write": {"path": "d/n", "text": "n"}}, {"remove": {"path": "d/a"}}]}"#.to_owned())),
    ] {
        let twins = [true, false].map(|is_guarded| {
            let world = guarded();
            world.file("d/c.toml", "# kept\nk = 1\n");
            if !is_guarded {
                std::fs::remove_file(world.path("backout.toml")).unwrap();
            }
            world
        });
        let run = |world: &World| {
            let mut child = world
                .command(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let _unread = stdin.write_all(input.as_deref().unwrap_or_default().as_bytes());
            drop(stdin);
            child.wait_with_output().unwrap()
        };
        let [guarded, free] = &twins;
        let (asked, done) = (run(guarded), run(free));
        assert!(done.status.success(), "{arguments:?}: {}", said(&done));
        let waiting = pending(guarded);
        // A copy out of it writes nothing in it.
        if arguments == ["cp", "-r", "d", "d/../copy"] {
            assert!(asked.status.success(), "{}", said(&asked));
        } else {
            assert_eq!(waiting.len(), 1, "{arguments:?}: {}", said(&asked));
            let id = &waiting[0]["id"].as_str().unwrap()[..8];
            // From another directory, and after other work.
            guarded.ok(&["write", "elsewhere", "--text", "1"]);
            free.ok(&["write", "elsewhere", "--text", "1"]);
            let mut approve = guarded.command(&["approve", id]);
            let output = approve.current_dir("/").output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        }
        std::fs::remove_file(guarded.path("backout.toml")).unwrap();
        let (one, other) = (guarded.tree().without_times(), free.tree().without_times());
        assert!(one == other, "{arguments:?}: {}", one.difference(&other));
        guarded.check_store();
    }
}

#[test]
fn what_changed_since_cannot_be_approved_and_stays_as_it_is() {
    let world = guarded();
    let id = waits(&world, &["write", "d/a", "--text", "two\n"]);
    world.file("d/a", "a person's\n");
    assert_eq!(code(&world, &["approve", &id]), "proposal-stale");
    assert_eq!(world.read("d/a"), "a person's\n");
    assert_eq!(status_of(&world, &id), "proposed");
    let shown = world.ok(&["pending", &id]);
    assert!(shown.contains("it cannot be approved any more"), "{shown}");
    // Put back as it was, it is what was proposed; only the time of the file tells, and that does not count.
    std::fs::remove_dir_all(world.path("d")).unwrap();
    assert_eq!(code(&world, &["approve", &id]), "proposal-stale");
    world.ok(&["reject", &id, "--why", "too late"]);
    assert_eq!(status_of(&world, &id), "refused");
    assert!(!world.path("d").exists());
    let shown = said(&world.run(&["show", &id]));
    assert!(shown.contains("rejected by"), "{shown}");
    assert!(shown.contains("too late"), "{shown}");
    for word in ["approve", "reject", "pending"] {
        assert_eq!(code(&world, &[word, &id]), "nothing-to-decide");
    }
    world.check_store();
}

#[test]
fn of_many_who_decide_at_once_one_does() {
    for _ in 0..5 {
        let world = guarded();
        let id = waits(&world, &["write", "d/a", "--text", "two\n"]);
        let decide = |number: usize| {
            let how = if number.is_multiple_of(2) {
                "approve"
            } else {
                "reject"
            };
            let mut command = world.command(&["--json", how, &id]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            (how, command.spawn().unwrap())
        };
        let deciding: Vec<_> = (0..8).map(decide).collect();
        let mut done = Vec::new();
        for (how, child) in deciding {
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                done.push(how);
                continue;
            }
            let report: Value = serde_json::from_slice(&output.stderr).unwrap();
            let code = report["code"].as_str().unwrap();
            let known = ["nothing-to-decide", "being-decided", "busy"];
            assert!(known.contains(&code), "{report}");
        }
        let [only] = done.as_slice() else {
            panic!("{done:?}");
        };
        let (text, status) = match *only {
            "approve" => ("two\n", "committed"),
            _ => ("one\n", "refused"),
        };
        assert_eq!(world.read("d/a"), text);
        assert_eq!(status_of(&world, &id), status);
        world.check_store();
    }
}

#[test]
fn who_proposed_it_does_not_approve_it() {
    let world = guarded();
    let id = waits(
        &world,
        &["--agent", "bob", "write", "d/a", "--text", "two\n"],
    );
    assert_eq!(
        code(&world, &["--agent", "bob", "approve", &id]),
        "own-proposal"
    );
    let program = env!("CARGO_BIN_EXE_backout");
    let inside = world.run(&["run", "--", program, "approve", &id]);
    assert!(
        said(&inside).contains("decided outside"),
        "{}",
        said(&inside)
    );
    assert_eq!(world.read("d/a"), "one\n");
    // Withdrawing it is another matter.
    world.ok(&["--agent", "bob", "reject", &id]);
    let id = waits(
        &world,
        &["--agent", "bob", "write", "d/a", "--text", "two\n"],
    );
    world.ok(&["--agent", "eve", "approve", &id]);
    assert_eq!(world.read("d/a"), "two\n");
}

#[test]
fn a_proposal_dies_at_any_point_and_is_whole_or_was_never_made() {
    let ask = ["write", "d/a", "--text", "two\n"];
    let passed = |world: &World, arguments: &[&str]| {
        let log = world.scratch("points");
        let mut command = world.command(arguments);
        command.env("BACKOUT_CRASH_LOG", &log).output().unwrap();
        std::fs::read_to_string(log).unwrap().lines().count()
    };
    let abort = |world: &World, arguments: &[&str], point: usize| {
        let mut command = world.command(arguments);
        let output = command.env("BACKOUT_CRASH_AT", point.to_string()).output();
        assert!(output.unwrap().status.code().is_none(), "point {point}");
    };
    let points = passed(&guarded(), &ask);
    assert!(points >= 4, "{points}");
    for point in 1..=points {
        let world = guarded();
        world.ok(&["status"]);
        let before = world.tree();
        abort(&world, &ask, point);
        assert!(world.tree() == before, "point {point}");
        let id = match pending(&world).as_slice() {
            [] => waits(&world, &ask),
            [one] => one["id"].as_str().unwrap().to_owned(),
            many => panic!("{many:?}"),
        };
        world.ok(&["approve", &id]);
        assert_eq!(world.read("d/a"), "two\n");
        world.check_store();
    }
    let world = guarded();
    let id = waits(&world, &ask);
    let points = passed(&world, &["approve", &id]);
    assert!(points >= 8, "{points}");
    for point in 1..=points {
        let world = guarded();
        let id = waits(&world, &ask);
        abort(&world, &["approve", &id], point);
        // Of some the recovery dies as well, at each of its points in turn.
        for second in (1..).take_while(|_| point % 4 == 0) {
            let mut command = world.command(&["recover"]);
            let output = command.env("BACKOUT_CRASH_AT", second.to_string()).output();
            if output.unwrap().status.code().is_some() {
                break;
            }
        }
        world.run(&["recover"]);
        let (now, status) = (world.read("d/a"), status_of(&world, &id));
        match status.as_str() {
            "proposed" => {
                assert_eq!(now, "one\n", "point {point}");
                world.ok(&["approve", &id]);
                assert_eq!(world.read("d/a"), "two\n");
            }
            "committed" => assert_eq!(now, "two\n", "point {point}"),
            "undone" | "aborted" => assert_eq!(now, "one\n", "point {point}"),
            other => panic!("point {point}: {other}"),
        }
        world.check_store();
    }
}

#[test]
fn rules_that_cannot_be_read_refuse_and_say_where() {
    let world = guarded();
    for (text, words) in [
        (
            "[protect]\ndny = []\n",
            "line 2, column 1: `protect.dny` is not known",
        ),
        ("[protect]\nask = ['a['\n", "line 2"),
        (
            "[protect]\nexpires = 'soon'\n",
            "`protect.expires` must be a time",
        ),
        ("[surprise]\n", "`surprise` is not known"),
    ] {
        world.file("backout.toml", text);
        let report = json(&world, 1, &["write", "free", "--text", "2"]);
        assert_eq!(report["code"], "gate");
        assert!(report["why"].to_string().contains(words), "{report}");
        assert_eq!(world.read("free"), "1\n");
    }
    std::fs::remove_file(world.path("backout.toml")).unwrap();
    std::fs::create_dir(world.path("backout.toml")).unwrap();
    assert_eq!(code(&world, &["write", "free", "--text", "2"]), "gate");
    std::fs::remove_dir(world.path("backout.toml")).unwrap();
    world.ok(&["write", "free", "--text", "2"]);
}

#[test]
fn an_agent_does_not_change_the_rules_without_consent() {
    let world = guarded();
    let id = waits(&world, &["--agent", "bob", "rm", "backout.toml"]);
    assert!(world.path("backout.toml").exists());
    world.ok(&["reject", &id]);
    world.ok(&["write", "backout.toml", "--text", ""]);
    world.ok(&["--agent", "bob", "write", "d/a", "--text", "two\n"]);
}

#[test]
fn the_way_back_is_never_closed() {
    let world = guarded();
    std::fs::remove_file(world.path("backout.toml")).unwrap();
    world.ok(&["write", "s/key", "--text", "changed\n"]);
    world.ok(&["write", "d/a", "--text", "changed\n"]);
    let id = world.json(&["log", "-n", "1"])["operations"][0]["id"].clone();
    world.file("backout.toml", "[protect]\nask = ['d']\ndeny = ['s']\n");
    world.ok(&["undo", "@-1"]);
    world.ok(&["undo", "@"]);
    assert_eq!(world.read("s/key"), "secret\n");
    assert_eq!(world.read("d/a"), "one\n");
    world.ok(&["redo"]);
    world.ok(&["undo"]);
    // A restore is a write like any other.
    let id = &id.as_str().unwrap()[..8];
    world.file("d/a", "theirs\n");
    let waits = waits(&world, &["restore", "d/a", "--from", id]);
    world.ok(&["approve", &waits]);
    assert_eq!(world.read("d/a"), "one\n");
    world.ok(&["undo", &waits]);
    assert_eq!(world.read("d/a"), "theirs\n");
    world.check_store();
}

#[test]
fn what_waits_is_kept_whatever_gc_is_told() {
    let world = guarded();
    let large = "0123456789\n".repeat(20_000);
    world.file("free", &large);
    let id = waits(&world, &["write", "d/a", "--from", "free"]);
    world.file("free", "gone\n");
    for _ in 0..2 {
        let nothing = ["--keep", "0s", "--keep-at-least", "0s", "--audit", "0s"];
        world.ok(&[&["gc"][..], &nothing].concat());
    }
    world.ok(&["approve", &id]);
    assert_eq!(world.read("d/a"), large);
    world.ok(&["undo", &id]);
    assert_eq!(world.read("d/a"), "one\n");
    // What was rejected keeps nothing.
    let id = waits(&world, &["write", "d/a", "--text", "two\n"]);
    world.ok(&["reject", &id]);
    world.ok(&["gc"]);
    world.check_store();
}

#[test]
fn the_same_call_is_answered_again_and_writes_nothing_twice() {
    let world = guarded();
    let call = ["--once", "call-1", "write", "free", "--text", "2\n"];
    let first = world.json(&call);
    world.file("free", "a person's\n");
    let again = world.json(&call);
    assert_eq!(first["id"], again["id"]);
    assert!(again["notes"].to_string().contains("answered before"));
    assert_eq!(world.read("free"), "a person's\n");
    let other = ["--once", "call-1", "write", "free", "--text", "3\n"];
    assert_eq!(code(&world, &other), "key-taken");
    assert_eq!(world.read("free"), "a person's\n");
    // What waits, waits; what was refused, was refused.
    let call = ["--once", "call-2", "write", "d/a", "--text", "two\n"];
    let id = waits(&world, &call);
    assert_eq!(waits(&world, &call), id);
    assert_eq!(pending(&world).len(), 1);
    world.ok(&["approve", &id]);
    assert_eq!(world.json(&call)["status"], "committed");
    let denied = ["--once", "call-3", "write", "s/key", "--text", "x"];
    let first = json(&world, 1, &denied)["operation"].clone();
    assert_eq!(json(&world, 1, &denied)["operation"], first);
    world.check_store();
}
