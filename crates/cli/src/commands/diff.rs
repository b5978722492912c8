//! `backout diff`

use backout_engine::{Command, Diff, Reply};
use clap::Args;

use crate::commands::undo::PartArgs;
use crate::failure::Failure;
use crate::session::{Session, reference};
use crate::show::diff::Style;

/// Show what one operation changed.
///
/// Contents are shown as a unified diff that `patch` can read, everything else in words: modes, owners, links, times, what a
/// removed tree held.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The operation.
    #[arg(value_name = "REF", default_value = "@")]
    operation: String,

    #[command(flatten)]
    style: StyleArgs,

    #[command(flatten)]
    part: PartArgs,
}

/// How much of a difference is shown.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct StyleArgs {
    /// Only count changed lines.
    #[arg(long, conflicts_with = "name_only")]
    stat: bool,

    /// Only names, one per line.
    #[arg(long)]
    name_only: bool,
}

impl StyleArgs {
    /// Tells whether a style was asked for.
    pub(crate) const fn is_given(self) -> bool {
        self.stat || self.name_only
    }

    /// Says it to the renderer.
    pub(crate) const fn style(self) -> Style {
        match (self.stat, self.name_only) {
            (_, true) => Style::Names,
            (true, false) => Style::Counts,
            (false, false) => Style::Full,
        }
    }
}

/// Shows a difference.
pub(crate) fn cmd_diff(session: &mut Session, args: &DiffArgs) -> Result<(), Failure> {
    let style = args.style.style();
    let command = Command::Diff {
        operation: reference(&args.operation)?,
        selection: args.part.selection()?,
        is_brief: style == Style::Names,
    };
    let engine = session.engine()?;
    match session.execute(&engine, command)? {
        Reply::Diff(Diff { files, .. }) if !session.ui.is_json() => {
            session.ui.page();
            crate::show::diff::files(session, &files, style);
            Ok(())
        }
        reply => session.show(&engine, &reply),
    }
}
