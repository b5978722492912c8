//! `backout failed`

use backout_engine::{Command, FailedCommand};
use clap::Args;

use super::approve::WhyArg;
use crate::failure::Failure;
use crate::session::{Session, reference, references};
use crate::show::undo::Asked;

/// List undos that failed and wait for a person.
///
/// Each is listed with what was tried and what to do next.
///
/// An undo that fails climbs: it is tried again, with the same bytes from elsewhere, by your hook that restores the
/// environment, and then a person is told. What is listed here is what nothing of that helped with. It is gone from the
/// list when it is undone, when everything is as before, or when somebody accepts it as it is.
#[derive(Debug, Args)]
pub(crate) struct FailedArgs {
    /// With `--retry`: only these.
    #[arg(value_name = "REF", requires = "retry")]
    operations: Vec<String>,

    /// Try again, from the lowest rung on.
    #[arg(long)]
    retry: bool,

    /// Leave what could not be taken back of this operation as it is, for good. Whose work it is cannot do that.
    #[arg(long, value_name = "REF", conflicts_with = "retry")]
    accept: Option<String>,

    #[command(flatten)]
    why: WhyArg,
}

impl FailedArgs {
    /// Tells whether it only lists.
    pub(crate) const fn only_looks(&self) -> bool {
        !self.retry && self.accept.is_none()
    }
}

/// Looks after undos that failed.
pub(crate) fn cmd_failed(session: &mut Session, args: FailedArgs) -> Result<(), Failure> {
    if let Some(name) = &args.accept {
        let operation = reference(name)?;
        let decided = args.why.decided(session);
        return session.run(Command::Failed(FailedCommand::Accept {
            operation,
            decided,
        }));
    }
    if args.retry {
        let operations = references(&args.operations)?;
        let engine = session.engine()?;
        let command = Command::Failed(FailedCommand::Retry { operations });
        return session.take_back(&engine, command, &Asked::undo());
    }
    session.ui.page();
    session.run(Command::Failed(FailedCommand::List))
}
