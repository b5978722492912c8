//! `backout redo`

use backout_engine::Command;
use clap::Args;

use super::undo::HowArgs;
use crate::failure::Failure;
use crate::session::{Session, reference};
use crate::show::undo::{Asked, Words};

/// Bring back what was undone.
///
/// Without a REF, everything that the newest undo took back.
#[derive(Debug, Args)]
pub(crate) struct RedoArgs {
    /// The operation that was undone, or the undo.
    #[arg(value_name = "REF")]
    operation: Option<String>,

    #[command(flatten)]
    how: HowArgs,
}

/// Brings back.
pub(crate) fn cmd_redo(session: &mut Session, args: &RedoArgs) -> Result<(), Failure> {
    let what = args.operation.as_deref().map(reference).transpose()?;
    let name = args
        .operation
        .as_ref()
        .map(|name| format!(" {name}"))
        .unwrap_or_default();
    let asked = Asked {
        words: Words::Redo,
        typed: format!("redo{name}{}", args.how.typed()),
    };
    let options = args.how.options(false);
    session.take_back(
        Command::Redo {
            what,
            options,
            is_dry_run: args.how.dry_run,
        },
        &asked,
    )
}
