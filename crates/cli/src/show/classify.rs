//! What is said about a command before it runs.

use anstyle::Style;
use backout_shell::{Class, CommandVerdict, Verdict};

use crate::session::Session;
use crate::ui::{BOLD, Cell, DIM, GOOD, WARN, paint, printable, table};

/// A command in the table is cut at this width; the whole of it is in the JSON.
const COMMAND_WIDTH_MAX: usize = 48;

/// Shows a verdict: the class and the reason, the words that decided, and every command that was found.
pub(crate) fn verdict(session: &mut Session, verdict: &Verdict) {
    let class = paint(style(verdict.class), &verdict.class.to_string());
    let mut text = format!("{class}: {}\n", printable(&verdict.because));
    let words: Vec<String> = verdict.words.iter().map(|word| printable(word)).collect();
    if !words.is_empty() {
        text.push_str("  ");
        text.push_str(&paint(DIM, "decided by:"));
        text.push(' ');
        text.push_str(&words.join("  "));
        text.push('\n');
    }
    if verdict.commands.len() > 1 {
        text.push_str(&paint(BOLD, "commands:"));
        text.push('\n');
        let rows = verdict.commands.iter().map(row).collect();
        text.push_str(&table(rows, session.ui.width()));
    }
    session.ui.print(&text);
}

fn row(command: &CommandVerdict) -> Vec<Cell> {
    let mut shown = Cell::plain(printable(&command.command));
    shown.truncate(COMMAND_WIDTH_MAX);
    vec![
        Cell::new(style(command.class), format!("  {}", command.class)),
        shown,
        Cell::new(DIM, printable(&command.because)),
    ]
}

const fn style(class: Class) -> Style {
    match class {
        Class::ReadOnly => GOOD,
        Class::Unknown | Class::Writes => WARN,
    }
}
