//! `backout redo`

use backout_engine::{Command, RedoWhat};
use clap::Args;

use super::undo::{HowArgs, PartArgs, below_here};
use crate::failure::Failure;
use crate::session::{Session, references};
use crate::show::undo::{Asked, Words};

/// Bring back what was undone.
///
/// Without a name, this brings back everything that the newest undo of this agent at or below this directory took.
/// Afterwards everything is as it was before that undo, including what others had written by then.
#[derive(Debug, Args)]
pub(crate) struct RedoArgs {
    /// Operations that were undone, or undos.
    #[arg(value_name = "REF")]
    operations: Vec<String>,

    /// Without a name: the newest undo wherever it was.
    #[arg(long, conflicts_with = "operations")]
    everywhere: bool,

    #[command(flatten)]
    part: PartArgs,

    #[command(flatten)]
    pub(crate) how: HowArgs,
}

impl RedoArgs {
    /// Tells whether others' work is to come along.
    pub(crate) const fn takes_others(&self) -> bool {
        self.how.takes_others()
    }
}

/// Brings back.
pub(crate) fn cmd_redo(session: &mut Session, args: &RedoArgs) -> Result<(), Failure> {
    let engine = session.engine()?;
    let what = match references(&args.operations)? {
        none if none.is_empty() => RedoWhat::Newest {
            below: below_here(args.everywhere)?,
        },
        operations => RedoWhat::Operations(operations),
    };
    let chosen = match &what {
        RedoWhat::Newest { below: Some(below) } => Some(format!(
            "by the newest undo below {}",
            session.here.show(below.as_path())
        )),
        RedoWhat::Newest { below: None } => Some("by the newest undo".to_owned()),
        RedoWhat::Operations(_) => None,
    };
    let asked = Asked {
        words: Words::Redo,
        chosen,
        brought: None,
        part: args.part.typed()?,
        flags: args.how.typed(),
        name: None,
        command: None,
    };
    let command = Command::Redo {
        what,
        options: args.how.options(&args.part, session.agent.as_ref())?,
        is_dry_run: args.how.dry_run,
    };
    session.take_back(&engine, command, &asked)
}
