//! Settings of people, with ours in and out again.

use super::*;

fn places() -> Places {
    Places {
        home: PathBuf::from("/h"),
        project: None,
        program: PathBuf::from("/opt/my tools/backout"),
        own: PathBuf::from("/h/.local/state/backout/agents/x"),
        state_dir: None,
        config: None,
    }
}

fn keys(agent: Agent, file: &str) -> Keys {
    let own = PathBuf::from(format!("/h/.local/state/backout/agents/{agent}"));
    let setup = setup(agent, &Places { own, ..places() });
    let mut keys = setup.keys.into_iter();
    keys.find(|keys| keys.file.ends_with(file)).unwrap()
}

const CLAUDE: &str = r#"{
  // mine
  "permissions": {"deny": ["Bash(rm:*)"]},
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}
    ]
  }
}
"#;

#[test]
fn what_is_there_stays_byte_for_byte_and_comes_back() {
    let keys = keys(Agent::ClaudeCode, "settings.json");
    let added = keys.added(CLAUDE).unwrap();
    assert!(added.contains("// mine") && added.contains(r#""command": "lint""#));
    assert_eq!(keys.standing(CLAUDE).unwrap(), Standing::Absent);
    assert_eq!(keys.standing(&added).unwrap(), Standing::Whole);
    assert_eq!(
        keys.added(&added).unwrap(),
        added,
        "the second time changes nothing"
    );
    assert_eq!(keys.removed(&added).unwrap(), CLAUDE);
}

#[test]
fn a_program_that_moved_is_found_and_brought_up_to_date() {
    let keys = keys(Agent::ClaudeCode, "settings.json");
    let old = keys
        .added(CLAUDE)
        .unwrap()
        .replace("/opt/my tools/backout", "/old/backout");
    assert_eq!(keys.standing(&old).unwrap(), Standing::Part);
    let new = keys.added(&old).unwrap();
    assert_eq!(new, keys.added(CLAUDE).unwrap());
    assert_eq!(keys.removed(&old).unwrap(), CLAUDE);
}

#[test]
fn somebody_elses_prefix_stands_in_the_way() {
    let keys = keys(Agent::ClaudeCode, "settings.json");
    let text = r#"{"env": {"CLAUDE_CODE_SHELL_PREFIX": "/usr/bin/time"}}"#;
    let said = keys.added(text).unwrap_err().to_string();
    assert_eq!(
        said,
        "`env.CLAUDE_CODE_SHELL_PREFIX` is set to something else: /usr/bin/time"
    );
    assert_eq!(keys.removed(text).unwrap(), text);
}

#[test]
fn settings_that_cannot_be_read_are_not_touched() {
    let keys = keys(Agent::ClaudeCode, "settings.json");
    assert!(keys.added("{\"hooks\": ").is_err());
    assert!(keys.removed("not json").is_err());
    assert!(keys.added(r#"{"hooks": {"PreToolUse": "x"}}"#).is_err());
}

#[test]
fn a_file_that_was_not_there_is_laid_out_for_people() {
    let keys = keys(Agent::ClaudeCode, "settings.json");
    let added = keys.added("").unwrap();
    assert!(added.starts_with("{\n  \"env\""), "{added}");
    assert_eq!(keys.removed(&added).unwrap().trim(), "{}");
}

#[test]
fn codex_keeps_comments_and_gets_the_seam_and_room_for_the_state() {
    let keys = keys(Agent::Codex, "config.toml");
    let text =
        "model = \"gpt-5.5\" # mine\n\n[sandbox_workspace_write]\nwritable_roots = [\"/data\"]\n";
    let added = keys.added(text).unwrap();
    assert!(added.contains("model = \"gpt-5.5\" # mine"));
    assert!(
        added.contains("\"/data\", \"/h/.local/state/backout\""),
        "{added}"
    );
    assert!(added.contains("BASH_ENV"), "{added}");
    assert_eq!(keys.standing(&added).unwrap(), Standing::Whole);
    let removed = keys.removed(&added).unwrap();
    assert!(
        removed.contains("writable_roots = [\"/data\"]"),
        "{removed}"
    );
    assert!(!removed.contains("BASH_ENV"), "{removed}");
}

#[test]
fn the_trust_of_codex_is_the_digest_of_the_hook_with_its_defaults() {
    let text = r#"{"hooks": {"PreToolUse": [{"matcher": "^Bash$", "hooks": [{"type": "command", "command": "/b/backout hook codex"}]}]}}"#;
    let found = trust(&PathBuf::from("/h/.codex/hooks.json"), text).unwrap();
    let [trust] = found.as_slice() else {
        panic!("{found:?}")
    };
    let key = r#"hooks.state."/h/.codex/hooks.json:pre_tool_use:0:0".trusted_hash"#;
    assert_eq!(trust.key.to_string(), key);
    assert!(trust.hash.starts_with("sha256:") && trust.hash.len() == 71);
}

#[test]
fn every_agent_has_something_that_protects_it() {
    for agent in Agent::ALL {
        let setup = setup(agent, &places());
        assert!(!setup.keys.is_empty() || !setup.files.is_empty(), "{agent}");
        for keys in &setup.keys {
            let added = keys.added("").unwrap();
            assert_eq!(keys.standing(&added).unwrap(), Standing::Whole, "{agent}");
            let removed = keys.removed(&added).unwrap();
            assert_eq!(
                keys.standing(&removed).unwrap(),
                Standing::Absent,
                "{agent}: {removed}"
            );
        }
    }
}

#[test]
fn a_hook_of_somebody_else_in_the_same_group_stays() {
    let keys = keys(Agent::ClaudeCode, "settings.json");
    let mine = "{\"type\":\"command\",\"command\":\"/bin/mine\"}";
    let added = keys.added("{\"a\": 1}").unwrap();
    let mixed = added.replacen("\"hooks\":[{", &format!("\"hooks\":[{mine}, {{"), 1);
    let mixed = mixed.replacen("\"hooks\": [{", &format!("\"hooks\": [{mine}, {{"), 1);
    assert_ne!(mixed, added, "{added}");
    assert_eq!(keys.standing(&mixed).unwrap(), Standing::Whole);
    assert_eq!(keys.added(&mixed).unwrap(), mixed);
    let moved = mixed.replace("/opt/my tools/backout", "/old/backout");
    let brought = keys.added(&moved).unwrap();
    assert!(
        brought.contains("/bin/mine") && !brought.contains("/old/"),
        "{brought}"
    );
    assert_eq!(keys.standing(&brought).unwrap(), Standing::Whole);
    for text in [mixed, brought] {
        let removed = keys.removed(&text).unwrap();
        assert!(
            removed.contains("/bin/mine") && !removed.contains("backout"),
            "{removed}"
        );
        assert_eq!(keys.standing(&removed).unwrap(), Standing::Absent);
    }
}
