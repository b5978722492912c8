//! `backout recover`

use backout_engine::{Command, Decide, RecoverWhat, Recovered, RecoveredAs, Reply};
use backout_model::Lsn;
use backout_model::ports::OnConflict;
use clap::Args;

use crate::failure::Failure;
use crate::session::{Session, references};

/// Settle what dead processes left, or decide about it by hand.
///
/// A write, an undo or a redo whose process died half-way is taken back, guarded like an undo. `backout redo ID` brings
/// a write back; an undo or a redo is done again. If the process that watched a `run` died, what the command did stays
/// and is called interrupted, until you keep it or roll it back. Every command that writes recovers first and says so.
/// Use this one to see what was left, and to decide.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Look only at operations after this record of the journal.
    #[arg(long, value_name = "LSN", conflicts_with_all = ["keep", "rollback"])]
    from: Option<u64>,

    /// Accept what is there: these operations count as done, and can be undone.
    #[arg(long, value_name = "REF", num_args = 1.., conflicts_with = "rollback")]
    keep: Vec<String>,

    /// Take these operations back.
    #[arg(long, value_name = "REF", num_args = 1..)]
    rollback: Vec<String>,

    /// With `--rollback`: also where somebody else wrote since, and along with what was built on it since, whoever did that.
    /// What is there now is kept, so this too can be undone.
    #[arg(long, requires = "rollback")]
    force: bool,
}

impl RecoverArgs {
    /// Tells whether somebody decides by hand.
    pub(crate) const fn decides(&self) -> bool {
        !self.keep.is_empty() || !self.rollback.is_empty()
    }
}

pub(crate) fn cmd_recover(session: &mut Session, args: &RecoverArgs) -> Result<(), Failure> {
    let what = match (references(&args.keep)?, references(&args.rollback)?) {
        (keep, _) if !keep.is_empty() => RecoverWhat::ByHand {
            operations: keep,
            decide: Decide::Keep,
        },
        (_, rollback) if !rollback.is_empty() => RecoverWhat::ByHand {
            operations: rollback,
            decide: Decide::Rollback {
                on_conflict: if args.force {
                    OnConflict::Force
                } else {
                    OnConflict::Refuse
                },
            },
        },
        _ => RecoverWhat::All {
            from: args.from.map(Lsn),
        },
    };
    let is_rollback = matches!(
        &what,
        RecoverWhat::ByHand {
            decide: Decide::Rollback { .. },
            ..
        }
    );
    let engine = session.engine()?;
    let reply = session.execute(&engine, Command::Recover(what))?;
    session.show(&engine, &reply)?;
    // What was to be taken back and stays is bad news, however well that is told.
    let is_left = |recovered: &Recovered| {
        use RecoveredAs::{InDoubt, Interrupted, Kept};
        matches!(recovered.became, InDoubt | Interrupted | Kept)
    };
    match &reply {
        Reply::Recovered(report) if is_rollback && report.operations.iter().any(is_left) => {
            Err(Failure::Shown(1))
        }
        _ => Ok(()),
    }
}
