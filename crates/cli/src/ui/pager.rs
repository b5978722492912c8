//! Long replies on a terminal go through a pager, as those of other tools do.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::env_vars;

/// What is used when nobody says.
const USUAL: &str = "less";

/// How `less` behaves unless somebody says otherwise: it ends by itself if all fits, keeps colours, and leaves the text on
/// the screen.
const LESS: &str = "FRX";

/// Gives the command line of the pager; none if none is wanted.
pub(super) fn command() -> Option<String> {
    let set = |name: &str| std::env::var(name).ok();
    let chosen = set(env_vars::PAGER).or_else(|| set("PAGER"));
    let chosen = chosen.unwrap_or_else(|| USUAL.to_owned());
    let is_none = chosen.trim().is_empty() || chosen.trim() == "cat";
    (!is_none).then_some(chosen)
}

/// Shows a text in the pager. Tells whether that worked; else it still has to be printed.
pub(super) fn show(command: &str, text: &str) -> bool {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::piped())
        .env("LESSCHARSET", "utf-8");
    if std::env::var_os("LESS").is_none() {
        shell.env("LESS", LESS);
    }
    let Ok(mut child) = shell.spawn() else {
        return false;
    };
    if let Some(mut stdin) = child.stdin.take() {
        // Who has seen enough closes it.
        let _written = stdin.write_all(text.as_bytes());
    }
    // The shell says so if there is no such program.
    child
        .wait()
        .is_ok_and(|status| !matches!(status.code(), Some(126 | 127)))
}
