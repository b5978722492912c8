//! Hooks that fail: everything ends in refusal, or in a loud passage if the user wants that.

use crate::world::{World, passed, refused};

#[test]
fn what_is_no_event_is_refused() {
    let world = World::new();
    let huge = vec![b'['; 4 * 1024 * 1024];
    for (said, why) in [
        (&b""[..], "nothing was said on standard input"),
        (&b"{\"session_id\": \"s\""[..], "is no JSON"),
        (&b"[]"[..], "is no object"),
        (&huge[..], "is no JSON"),
        (&b"{\"session_id\": \"s\"}"[..], "the event has no name"),
        (
            &b"{\"hook_event_name\": \"PreToolUse\"}"[..],
            "names no session",
        ),
    ] {
        let line = refused(&world.hook_with("claude-code", said, &[]));
        assert!(line.contains(why), "{line}");
        assert!(line.contains("this was not allowed"), "{line}");
    }
}

#[test]
fn an_agent_that_is_not_known_is_refused() {
    let world = World::new();
    let line = refused(&world.hook_with("claude", b"{}", &[]));
    assert!(
        line.starts_with("backout: `claude` is no agent that is known here"),
        "{line}"
    );
}

#[test]
fn a_panic_is_a_refusal() {
    let world = World::new();
    let event = world.write_event("PreToolUse", "c1", "a.txt").to_string();
    let broken = [("BACKOUT_TEST_HOOK", "panic")];
    let line = refused(&world.hook_with("claude-code", event.as_bytes(), &broken));
    assert!(line.contains("it broke down at"), "{line}");
}

#[test]
fn a_hook_that_takes_too_long_ends_in_a_refusal_by_itself() {
    let world = World::new();
    let event = world.write_event("PreToolUse", "c1", "a.txt").to_string();
    let late = [("BACKOUT_TEST_HOOK", "late")];
    let line = refused(&world.hook_with("claude-code", event.as_bytes(), &late));
    assert!(line.contains("it took too long"), "{line}");
}

#[test]
fn a_store_that_cannot_be_opened_is_a_refusal_and_after_a_write_a_warning() {
    let world = World::new();
    let state = world.home().join(".local/state/backout");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(
        state.join("journal.sqlite"),
        b"this is no database at all, and long enough",
    )
    .unwrap();
    let line = refused(&world.hook(
        "claude-code",
        &world.write_event("PreToolUse", "c1", "a.txt"),
    ));
    assert!(
        line.starts_with("backout: nothing can be recorded, so this was not allowed: "),
        "{line}"
    );
    let told = passed(&world.hook(
        "claude-code",
        &world.write_event("PostToolUse", "c1", "a.txt"),
    ));
    assert!(
        told.starts_with("Backout failed after this (")
            && told.ends_with(
                "What was kept before is safe; see `backout doctor` and `backout status`"
            ),
        "{told}"
    );
}

#[test]
fn only_the_users_own_rules_let_something_pass_that_cannot_be_recorded() {
    let world = World::new();
    let pass = "[agents]\non-failure = \"pass\"\n";
    world.write("backout.toml", pass);
    refused(&world.hook_with("claude-code", b"", &[]));
    let own = world.home().join(".config/backout");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("backout.toml"), pass).unwrap();
    let output = world.hook_with("claude-code", b"", &[]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("systemMessage")
            && said.contains(
                "), and your rules let this pass: it is not recorded and cannot be undone"
            ),
        "{said}"
    );
}

#[test]
fn cline_is_refused_in_its_own_form() {
    let world = World::new();
    let output = world.hook_with("cline", b"", &[]);
    assert_eq!(output.status.code(), Some(0));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["cancel"], true);
}

#[test]
fn it_is_not_clear_what_a_tool_would_write() {
    let world = World::new();
    let more = serde_json::json!({"tool_name": "Write", "tool_input": {}, "tool_use_id": "c1"});
    let line = refused(&world.hook("claude-code", &world.event("PreToolUse", &more)));
    assert!(
        line.starts_with("backout: it is not clear which files `Write` would write"),
        "{line}"
    );
}
