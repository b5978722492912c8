//! The first page of the help: the commands in groups, by what they are for.
//!
//! The parser knows one list of commands. This page is a template over it: what a command does is said in its own help, once, and
//! a command without a group does not pass the tests.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;

use crate::args::STYLES;

/// What the commands are for, and which they are.
const GROUPS: [(&str, &[&str]); 10] = [
    ("Run commands", &["run", "try", "sandbox", "classify"]),
    (
        "Write files and keys",
        &[
            "write", "edit", "set", "unset", "merge", "rm", "mv", "cp", "mkdir", "ln", "chmod",
            "chown", "batch",
        ],
    ),
    ("Write elsewhere", &["sql", "db", "redis", "http", "act"]),
    ("Look", &["log", "show", "diff", "status"]),
    (
        "Take back",
        &[
            "undo",
            "redo",
            "restore",
            "rollback",
            "checkpoint",
            "failed",
        ],
    ),
    (
        "Work that belongs together",
        &["task", "commit", "resume", "stage", "graph"],
    ),
    (
        "Rules and decisions",
        &[
            "config", "pending", "approve", "reject", "rollout", "drift", "watch",
        ],
    ),
    (
        "Agents and servers",
        &["init", "hook", "mcp", "serve", "ui"],
    ),
    (
        "Look after the store",
        &["recover", "verify", "gc", "doctor", "export"],
    ),
    ("This program", &["completions", "man", "help"]),
];

/// Gives the command line its first page.
pub(crate) fn grouped(command: Command) -> Command {
    let page = page(&command);
    command.help_template(page)
}

/// Everything in braces is filled in by the parser.
fn page(command: &Command) -> StyledStr {
    let mut page = StyledStr::new();
    write!(
        page,
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n"
    )
    .expect("infallible");
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    for (heading, names) in GROUPS {
        write!(page, "\n{header}{heading}:{header:#}\n").expect("infallible");
        for name in names {
            let about = about(command, name);
            writeln!(page, "  {literal}{name:11}{literal:#}  {about}").expect("infallible");
        }
    }
    write!(
        page,
        "\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    )
    .expect("infallible");
    page
}

/// What a command says of itself. The parser makes the one called `help` later.
fn about(command: &Command, name: &str) -> StyledStr {
    let found = command.find_subcommand(name).and_then(Command::get_about);
    found
        .cloned()
        .unwrap_or_else(|| "Print this page, or the help of a command".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_is_in_one_group() {
        let command = crate::command();
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).chain(["help"]).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }

    #[test]
    fn every_command_fits_a_line_of_a_narrow_terminal() {
        let page = page(&crate::command()).to_string();
        let wide = page.lines().filter(|line| line.chars().count() > 80);
        assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
