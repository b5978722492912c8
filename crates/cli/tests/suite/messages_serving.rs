//! What is said by those who serve: `serve`, `ui`, `mcp`, and `init --mcp`.

use crate::world::{Ran, World};

/// Sees that everything is in what was said.
#[track_caller]
fn says(ran: &Ran, sentences: &[&str]) {
    let said = ran.to_string();
    for sentence in sentences {
        assert!(said.contains(sentence), "{sentence}\nis not in\n{said}");
    }
}

#[test]
fn a_token_without_the_name_it_needs_is_not_made() {
    let world = World::new();
    says(
        &world.cli(["serve", "token", "add", "--role", "agent"]),
        &[
            "no token was made",
            "a token for an agent needs its name",
            "name it with `--agent NAME`",
        ],
    );
    says(
        &world.cli(["--agent", "x", "serve", "token", "add", "--role", "viewer"]),
        &[
            "only a token for an agent has a name",
            "leave the name out, or take `--role agent`",
        ],
    );
    world.did(["serve", "token", "add", "--role", "viewer"]);
    let listed = world.cli(["serve", "token", "list"]).to_string();
    let id = listed.split_whitespace().next().unwrap().to_owned();
    says(
        &world.cli(["serve", "token", "revoke", &id]),
        &["took back token "],
    );
}

#[test]
fn a_root_that_is_no_directory_is_refused() {
    let world = World::new().file("f", "1");
    says(
        &world.cli(["mcp", "--root", "f"]),
        &["`f` cannot be used as a root", "it is no directory"],
    );
    says(
        &world.cli(["serve", "--mcp-root", "nowhere"]),
        &["cannot be used as a root"],
    );
}

#[test]
fn what_serves_is_not_started_inside_of_a_command() {
    let world = World::new();
    for (line, why) in [
        ("serve", "a server would do outside what is decided outside"),
        ("mcp", "who is served writes outside of the command"),
        ("log -i", "who does it outside does not have your terminal"),
    ] {
        let line = format!("\"$0\" {line}");
        let program = env!("CARGO_BIN_EXE_backout");
        says(
            &world.cli(["run", "--", "sh", "-c", &line, program]),
            &[why],
        );
    }
}

#[test]
fn a_log_to_walk_through_needs_a_terminal() {
    let world = World::new();
    says(
        &world.cli(["log", "-i"]),
        &[
            "there is no terminal to show the log on",
            "list it with `backout log`",
        ],
    );
}

#[test]
fn an_agent_gets_our_tools_once_and_loses_them_once() {
    let world = World::new();
    says(
        &world.cli(["init", "copilot", "--mcp"]),
        &[
            "it is not known how Copilot CLI is told of an MCP server",
            "name `backout mcp` in its settings yourself; see docs/mcp.md",
        ],
    );
    says(
        &world.cli(["init", "gemini", "--mcp", "--check"]),
        &[
            " does not have Backout's tools",
            "give them to it with `backout init gemini --mcp`",
        ],
    );
    says(
        &world.cli(["init", "gemini", "--mcp"]),
        &[" has Backout's tools"],
    );
    says(
        &world.cli(["init", "gemini", "--mcp"]),
        &["had Backout's tools already"],
    );
    says(
        &world.cli(["init", "gemini", "--mcp", "--remove"]),
        &["no longer has Backout's tools"],
    );
    says(
        &world.cli(["init", "gemini", "--mcp", "--remove"]),
        &["did not have Backout's tools"],
    );
}

#[test]
fn who_is_kept_in_directories_is_told_which() {
    let world = World::new();
    let mut write = world.command(&["write", "/elsewhere", "--text", "1"]);
    write.env("BACKOUT_WITHIN", world.path("."));
    says(
        &world.run(&mut write),
        &[
            " is outside of the directories that you may write in: ",
            "write inside of them, or ask a person to do it",
        ],
    );
}
