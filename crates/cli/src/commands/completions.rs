//! `backout completions`

use clap::Args;
use clap_complete::Shell;

use crate::failure::Failure;
use crate::session::Session;

/// Print a script that completes commands in your shell.
///
/// For bash: `backout completions bash > ~/.local/share/bash-completion/completions/backout`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints completions.
#[expect(clippy::unnecessary_wraps, reason = "every command has this shape")]
pub(crate) fn cmd_completions(
    session: &mut Session,
    args: &CompletionsArgs,
) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "backout", &mut script);
    session.ui.print(&String::from_utf8_lossy(&script));
    Ok(())
}
