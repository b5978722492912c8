//! Two chapters that the program writes itself: its commands, and what it answers over HTTP.

use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;

use crate::run::root;

/// Commands inside of commands go so deep, and no deeper.
const DEPTH_MAX: usize = 3;

/// Makes the reference of the commands out of their help.
pub(crate) fn commands() -> Result<String, String> {
    let mut text = "# Commands\n\nMade from the help of the program. `backout COMMAND --help` prints the same.\n".to_owned();
    let top = help(&[])?;
    let _written = writeln!(text, "\n```text\n{}\n```", top.trim_end());
    for name in subcommands(&top) {
        chapter(&mut text, &[name])?;
    }
    Ok(text)
}

fn chapter(text: &mut String, words: &[String]) -> Result<(), String> {
    let help = help(words)?;
    // The options that every command has stand once, at the top.
    let own = help.split("\nGlobal options:").next().unwrap_or(&help);
    let level = "#".repeat(words.len() + 1);
    let _written = writeln!(
        text,
        "\n{level} backout {}\n\n```text\n{}\n```",
        words.join(" "),
        own.trim_end()
    );
    if words.len() < DEPTH_MAX {
        for name in subcommands(&help) {
            let mut inner = words.to_vec();
            inner.push(name);
            chapter(text, &inner)?;
        }
    }
    Ok(())
}

fn help(words: &[String]) -> Result<String, String> {
    let output = Command::new(root().join("target/debug/backout"))
        .args(words)
        .arg("--help")
        .output()
        .map_err(|error| format!("the program cannot start: {error}"))?;
    if !output.status.success() {
        return Err(format!("`backout {} --help` failed", words.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Lists the commands that a help text names.
fn subcommands(help: &str) -> Vec<String> {
    let mut lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = lines.by_ref().take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| {
        let is_name = line.starts_with("  ") && !line.starts_with("   ");
        is_name.then(|| line.split_whitespace().next()).flatten()
    });
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Makes the reference of the server out of its OpenAPI document.
pub(crate) fn http() -> Result<String, String> {
    let document = std::fs::read_to_string(root().join("docs/schema/openapi.json"))
        .map_err(|error| format!("docs/schema/openapi.json: {error}"))?;
    let document: Value = serde_json::from_str(&document).map_err(|error| error.to_string())?;
    let paths = document.get("paths").and_then(Value::as_object);
    let paths = paths.ok_or("the OpenAPI document has no paths")?;
    let mut text = "# HTTP\n\nMade from the OpenAPI document, which a server also gives at `/openapi.json`. How to begin, tokens and \
                    roles: [The server](../serve.md).\n\n| | | parameters |\n| --- | --- | --- |\n"
        .to_owned();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let said = |name: &str| operation.get(name).and_then(Value::as_str);
            let parameters = operation.get("parameters").and_then(Value::as_array);
            let names = parameters.into_iter().flatten();
            let names = names.filter_map(|it| it.get("name").and_then(Value::as_str));
            let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            let _written = writeln!(
                text,
                "| `{} {path}` | {} | {} |",
                method.to_uppercase(),
                said("summary").unwrap_or_default(),
                names.join(", ")
            );
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::subcommands;

    #[test]
    fn commands_are_read_out_of_their_help() {
        let help = "What it is\n\nCommands:\n  write  Write\n         more of it\n  undo   Take back\n  help   Print\n\nOptions:\n  -h\n";
        assert_eq!(subcommands(help), ["write", "undo"]);
    }
}
