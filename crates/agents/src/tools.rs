//! What each agent's tools do, by their names and inputs.
//!
//! A name that is not here is none that writes, as far as we know: reading, searching, planning, and tools of MCP servers,
//! which nobody but the server understands.

use std::path::PathBuf;

use backout_model::Verb;
use serde_json::Value;

use crate::Agent;
use crate::event::Does;
use crate::patch;

/// Says what a tool does.
pub(crate) fn does(agent: Agent, tool: &str, input: &Value) -> Does {
    match (agent, tool) {
        (_, "Write" | "write_file" | "write" | "create") => writes(Verb::Write, input),
        (
            _,
            "Edit" | "MultiEdit" | "NotebookEdit" | "replace" | "edit" | "multiedit" | "editor"
            | "str_replace_editor" | "StrReplace" | "EditNotebook",
        ) => writes(Verb::Edit, input),
        (_, "Delete" | "delete_file" | "delete") => writes(Verb::Remove, input),
        (_, "apply_patch" | "ApplyPatch" | "patch") => patched(input),
        (
            _,
            "Bash" | "Monitor" | "PowerShell" | "run_shell_command" | "bash" | "Shell" | "shell"
            | "run_commands" | "powershell" | "execute_command" | "monitor",
        ) => shell(input),
        _ => Does::Nothing,
    }
}

/// The names under which agents give the path of a file.
const PATHS: [&str; 8] = [
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "absolute_path",
    "target_file",
    "target_notebook",
    "filepath",
];

fn writes(verb: Verb, input: &Value) -> Does {
    let named = PATHS.iter().filter_map(|name| input.get(name)?.as_str());
    let paths: Vec<PathBuf> = named.map(PathBuf::from).collect();
    if paths.is_empty() {
        return Does::Unclear;
    }
    Does::Writes { verb, paths }
}

fn patched(input: &Value) -> Does {
    let names = ["command", "patchText", "patch_text", "input", "patch"];
    let text = match input {
        Value::String(text) => Some(text.as_str()),
        _ => names.iter().find_map(|name| input.get(name)?.as_str()),
    };
    match text.and_then(patch::files) {
        Some((verb, paths)) if !paths.is_empty() => Does::Writes { verb, paths },
        Some(_) | None => Does::Unclear,
    }
}

fn shell(input: &Value) -> Does {
    let one = input.get("command").and_then(Value::as_str);
    let several = input.get("commands").and_then(Value::as_array);
    let several = several.into_iter().flatten().filter_map(|command| {
        let nested = command.get("command").and_then(Value::as_str);
        command.as_str().or(nested)
    });
    let commands = one.into_iter().chain(several).map(ToOwned::to_owned);
    Does::Shell {
        commands: commands.collect(),
    }
}
