//! `backout undo`, and how to take things back, which `redo` and `rollback` share.

use backout_engine::{Command, UndoOptions, UndoWhat};
use backout_model::ports::OnConflict;
use clap::Args;

use crate::failure::Failure;
use crate::session::{Session, references};
use crate::show::undo::{Asked, Words};

/// Take operations back, with everything that was built on them.
///
/// Later work that does not depend on them stays. If a target changed since, nothing is undone, unless `--merge`,
/// `--force` or `--partial` says what to do about it. An undo can itself be taken back: see `backout redo`.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// The operations; by default the newest in effect.
    #[arg(value_name = "REF")]
    operations: Vec<String>,

    /// Take back the chain that they were built on as well.
    #[arg(long)]
    with_dependencies: bool,

    #[command(flatten)]
    how: HowArgs,
}

/// How to take things back.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one per flag of the command line"
)]
pub(crate) struct HowArgs {
    /// Show what would happen and change nothing.
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,

    /// Where a target changed since, take out only this change and keep the others.
    #[arg(long, conflicts_with = "force")]
    merge: bool,

    /// Where a target changed since, restore it anyway; what is overwritten is kept, so this too can be undone.
    #[arg(long)]
    force: bool,

    /// Also take back committed operations that depend on it and that nobody named.
    #[arg(long)]
    committed: bool,

    /// Take back what can be, even if other parts cannot.
    #[arg(long)]
    partial: bool,
}

impl HowArgs {
    /// Says it to the engine.
    pub(crate) const fn options(&self, with_dependencies: bool) -> UndoOptions {
        let on_conflict = match (self.merge, self.force) {
            (true, _) => OnConflict::Merge,
            (false, true) => OnConflict::Force,
            (false, false) => OnConflict::Refuse,
        };
        UndoOptions {
            on_conflict,
            with_dependencies,
            committed: self.committed,
            partial: self.partial,
        }
    }

    /// Says it as it was typed, without the dry run.
    pub(crate) fn typed(&self) -> String {
        let flags = [
            (self.merge, " --merge"),
            (self.force, " --force"),
            (self.committed, " --committed"),
            (self.partial, " --partial"),
        ];
        flags
            .into_iter()
            .filter(|(is_given, _)| *is_given)
            .map(|(_, flag)| flag)
            .collect()
    }
}

/// Takes operations back.
pub(crate) fn cmd_undo(session: &mut Session, args: &UndoArgs) -> Result<(), Failure> {
    let what = match references(&args.operations)? {
        none if none.is_empty() => UndoWhat::Newest,
        operations => UndoWhat::Operations(operations),
    };
    let mut typed = vec!["undo".to_owned()];
    typed.extend(args.operations.iter().cloned());
    if args.with_dependencies {
        typed.push("--with-dependencies".to_owned());
    }
    let asked = Asked {
        words: Words::Undo,
        typed: typed.join(" ") + &args.how.typed(),
    };
    let command = Command::Undo {
        what,
        options: args.how.options(args.with_dependencies),
        is_dry_run: args.how.dry_run,
    };
    session.take_back(command, &asked)
}
