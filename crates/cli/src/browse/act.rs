//! What a key does: shows what an operation changed, takes it back, or brings it back.

use backout_engine::{Command, OperationRef, RedoWhat, Report, UndoOptions, UndoWhat};

use super::list::{Items, List};
use super::terminal::Terminal;
use super::view::Page;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::diff::Style;
use crate::show::undo::{Asked, Words};

/// Something that can be done to what the cursor is on.
#[derive(Debug, Clone)]
pub(super) struct Act {
    what: What,
    /// What it is done to.
    title: String,
}

#[derive(Debug, Clone)]
enum What {
    Undo(UndoWhat),
    Redo(RedoWhat),
}

impl Act {
    /// Takes back what the cursor is on; none if there is nothing.
    pub(super) fn undo(list: &List) -> Option<Self> {
        let (what, title) = match &list.items {
            Items::Operations(all) => {
                let it = all.get(list.cursor)?;
                let reference = OperationRef::Prefix(it.id.to_string());
                let what = UndoWhat::Operations(vec![reference]);
                (what, format!("undo {}", it.id.short()))
            }
            Items::Prompts(all) => {
                let it = all.get(list.cursor)?;
                let title = format!("undo all that answered {}", it.prompt.id);
                (UndoWhat::Prompt(it.prompt.id.clone()), title)
            }
            Items::Tasks(all) => {
                let it = all.get(list.cursor)?;
                (
                    UndoWhat::Task(it.id.clone()),
                    format!("undo task {}", it.id),
                )
            }
        };
        let what = What::Undo(what);
        Some(Self { what, title })
    }

    /// Brings back what the cursor is on; none if that is no operation.
    pub(super) fn redo(list: &List) -> Option<Self> {
        let operation = list.operation()?;
        let reference = OperationRef::Prefix(operation.id.to_string());
        Some(Self {
            what: What::Redo(RedoWhat::Operations(vec![reference])),
            title: format!("redo {}", operation.id.short()),
        })
    }

    /// Shows what it would do, and tells whether it can be done.
    pub(super) fn preview(&self, session: &mut Session, terminal: &Terminal) -> (Page, bool) {
        let (text, is_possible) = self.execute(session, terminal, true);
        let title = format!("{}: this would happen", self.title);
        (Page::new(&title, &text), is_possible)
    }

    /// Does it, and shows what was found afterwards.
    pub(super) fn carry_out(&self, session: &mut Session, terminal: &Terminal) -> Page {
        let (text, is_done) = self.execute(session, terminal, false);
        let title = if is_done {
            format!("{}: done", self.title)
        } else {
            format!("{}: not, or not wholly, done", self.title)
        };
        Page::new(&title, &text)
    }

    fn execute(
        &self,
        session: &mut Session,
        terminal: &Terminal,
        is_dry_run: bool,
    ) -> (String, bool) {
        let options = UndoOptions {
            diff: is_dry_run,
            ..UndoOptions::default()
        };
        let (command, words) = match self.what.clone() {
            What::Undo(what) => {
                let words = match &what {
                    UndoWhat::Task(_) | UndoWhat::Prompt(_) => Words::Rollback,
                    UndoWhat::Newest { .. }
                    | UndoWhat::Operations(_)
                    | UndoWhat::Paths { .. }
                    | UndoWhat::ToCheckpoint(_)
                    | UndoWhat::ToPlace { .. } => Words::Undo,
                };
                let command = Command::Undo {
                    what,
                    options,
                    is_dry_run,
                };
                (command, words)
            }
            What::Redo(what) => {
                let command = Command::Redo {
                    what,
                    options,
                    is_dry_run,
                };
                (command, Words::Redo)
            }
        };
        let asked = Asked {
            words,
            ..Asked::undo()
        };
        terminal.working(|progress| {
            said(session, |session| {
                let engine = session.engine_told_to(progress)?;
                session.take_back(&engine, command, &asked)
            })
        })
    }
}

/// Shows what the operation under the cursor changed.
pub(super) fn diff(session: &mut Session, list: &List) -> Option<Page> {
    let operation = list.operation()?;
    let title = format!("{}  {}", operation.id.short(), operation.summary);
    let command = Command::Diff {
        operation: OperationRef::Prefix(operation.id.to_string()),
        selection: backout_engine::Selection::default(),
        is_brief: false,
    };
    let (text, _) = said(session, |session| {
        let engine = session.engine()?;
        match session.execute(&engine, command)? {
            backout_engine::Reply::Diff(diff) => {
                crate::show::diff::files(session, &diff.files, Style::Full);
                Ok(())
            }
            reply => session.show(&engine, &reply),
        }
    });
    Some(Page::new(&title, &text))
}

/// Gives what is said while something is done, what went wrong too. Tells whether all went well.
fn said(
    session: &mut Session,
    work: impl FnOnce(&mut Session) -> Result<(), Failure>,
) -> (String, bool) {
    drop(session.ui.take_captured());
    let result = work(session);
    let is_good = result.is_ok();
    match result {
        Ok(()) | Err(Failure::Shown(_)) => {}
        Err(Failure::Engine(error)) => session.tell(&Report::from(error)),
        Err(Failure::Report(report)) => session.tell(&report),
    }
    (session.ui.take_captured(), is_good)
}
