//! What people asked agents, one line each, with the number by which it is taken back.

use backout_engine::PromptView;
use backout_model::Timestamp;

use super::counted;
use super::time::ago;
use crate::session::Session;
use crate::ui::{ACCENT, Cell, DIM, GOOD, PLAIN, printable, table};

/// How much of a prompt a list shows.
const TEXT_CHARACTERS_MAX: usize = 80;

/// Lists prompts, newest first.
pub(super) fn list(session: &mut Session, prompts: &[PromptView], now: Timestamp) {
    if prompts.is_empty() {
        session.ui.done("no prompts\n");
        return;
    }
    let text = lines(prompts, now, session.ui.width());
    session.ui.print(&text);
}

/// Makes the lines of a list.
pub(crate) fn lines(prompts: &[PromptView], now: Timestamp, width: Option<usize>) -> String {
    let rows = prompts.iter().map(|view| {
        let number = view.number.map(|number| number.to_string());
        let is_past = view.in_effect == 0;
        vec![
            Cell::new(ACCENT, number.unwrap_or_default()).right(),
            Cell::new(DIM, view.prompt.id.as_str()),
            Cell::new(DIM, ago(now, view.prompt.at)).right(),
            Cell::plain(view.prompt.agent.as_str()),
            Cell::new(if is_past { DIM } else { GOOD }, did(view)),
            Cell::new(if is_past { DIM } else { PLAIN }, text(&view.prompt.text)),
        ]
    });
    table(rows.collect(), width)
}

fn did(view: &PromptView) -> String {
    let all = counted(view.operations as u64, "operation");
    match (view.operations, view.in_effect) {
        (0, _) => "nothing".to_owned(),
        (_, 0) => format!("{all}, none in effect"),
        (operations, in_effect) if operations == in_effect => all,
        (_, in_effect) => format!("{all}, {in_effect} in effect"),
    }
}

/// Gives the first line of a prompt.
pub(crate) fn text(prompt: &str) -> String {
    let line = printable(prompt.lines().next().unwrap_or_default());
    if line.is_empty() {
        return "(not told)".to_owned();
    }
    let mut cut: String = line.chars().take(TEXT_CHARACTERS_MAX).collect();
    if cut.len() < line.len() || prompt.lines().count() > 1 {
        cut.push('…');
    }
    cut
}
