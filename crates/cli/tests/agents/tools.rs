//! `backout init AGENT --mcp`: our tools in an agent's list of servers, and nothing else touched.

use std::path::PathBuf;

use crate::world::World;

/// Where an agent lists its servers, and what is there already.
const AGENTS: [(&str, &str, &str); 6] = [
    (
        "claude-code",
        ".claude.json",
        "{\"numStartups\": 7,\n  \"mcpServers\" : {\"other\": {\"command\": \"x\"}} }",
    ),
    (
        "codex",
        ".codex/config.toml",
        "# mine\nmodel = \"m\" # here\n\n[mcp_servers.other]\ncommand = \"x\"\n",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{\n  // mine\n  \"theme\": \"dark\",\n}\n",
    ),
    ("qwen", ".qwen/settings.json", "{}\n"),
    (
        "opencode",
        ".config/opencode/opencode.json",
        "{\"$schema\": \"https://opencode.ai/config.json\"}",
    ),
    ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {}}\n"),
];

fn settings(world: &World, file: &str, text: &str) -> PathBuf {
    let path = world.home().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn read(path: &PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn an_agent_gets_our_tools_and_loses_them_again() {
    for (agent, file, before) in AGENTS {
        let world = World::new();
        let path = settings(&world, file, before);
        assert!(
            !world
                .program()
                .args(["init", agent, "--mcp", "--check"])
                .output()
                .unwrap()
                .status
                .success()
        );
        let said = world.json(&["init", agent, "--mcp"]);
        assert_eq!(
            (&said["has_tools"], &said["is_protected"]),
            (&true.into(), &false.into()),
            "{said}"
        );
        let after = read(&path);
        for word in [env!("CARGO_BIN_EXE_backout"), "mcp", "--agent", agent] {
            assert!(after.contains(word), "{agent}: {after}");
        }
        world.backout(&["init", agent, "--mcp", "--check"]);
        assert!(world.backout(&["init", agent, "--mcp"]).contains("already"));
        world.backout(&["init", agent, "--mcp", "--remove"]);
        assert_eq!(read(&path), before, "{agent}");
        assert!(
            world
                .backout(&["init", agent, "--mcp", "--remove"])
                .contains("did not have")
        );
    }
}

#[test]
fn what_others_wrote_since_stays() {
    for (agent, file, before) in AGENTS {
        let world = World::new();
        let path = settings(&world, file, before);
        world.backout(&["init", agent, "--mcp"]);
        let added = match path.extension().and_then(|it| it.to_str()) {
            Some("toml") => read(&path) + "\n[features]\nx = true\n",
            _ => read(&path).replacen('{', "{\"since\": 1, ", 1),
        };
        std::fs::write(&path, &added).unwrap();
        world.backout(&["init", agent, "--mcp", "--remove"]);
        let after = read(&path);
        assert!(
            after.contains("since") || after.contains("features"),
            "{agent}: {after}"
        );
        assert!(
            !after.contains(env!("CARGO_BIN_EXE_backout")),
            "{agent}: {after}"
        );
    }
}

#[test]
fn hooks_and_tools_come_and_go_by_themselves() {
    let world = World::new();
    let path = settings(&world, ".gemini/settings.json", "{\"theme\": \"dark\"}\n");
    world.backout(&["init", "gemini"]);
    world.backout(&["init", "gemini", "--mcp"]);
    world.backout(&["init", "gemini", "--check"]);
    world.backout(&["init", "gemini", "--remove"]);
    world.backout(&["init", "gemini", "--mcp", "--check"]);
    assert!(!read(&path).contains("hook"), "{}", read(&path));
    world.backout(&["init", "gemini", "--mcp", "--remove"]);
    assert!(!read(&path).contains("backout"), "{}", read(&path));
}

#[test]
fn an_entry_of_somebody_else_is_in_the_way() {
    let world = World::new();
    let text = "{\"mcpServers\": {\"backout\": {\"command\": \"/opt/another\"}}}";
    let path = settings(&world, ".cursor/mcp.json", text);
    let output = world
        .program()
        .args(["init", "cursor", "--mcp"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert_eq!(read(&path), text);
    let output = world
        .program()
        .args(["init", "cline", "--mcp"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("not known how"));
}
