//! What is said about rules.

use std::path::Path;

use backout_gates::{CheckedFile, Holds};

use crate::session::Session;
use crate::ui::{BAD, BOLD, Cell, DIM, GOOD, paint, printable, table};

/// Shows every mistake, as compilers do: file, line, column, what.
pub(crate) fn checked(session: &mut Session, files: &[CheckedFile]) {
    if files.is_empty() {
        session
            .ui
            .print("no backout.toml counts here; write a first one with `backout config init`\n");
        return;
    }
    let mut lines = Vec::new();
    for file in files {
        let name = printable(&session.here.show(&file.file));
        if !file.is_there {
            lines.push(format!("{name}: {}", paint(BAD, "there is no such file")));
        } else if file.mistakes.is_empty() {
            lines.push(format!("{name}: {}", paint(GOOD, "can be read")));
        }
        for mistake in &file.mistakes {
            let place = mistake
                .place
                .map(|at| format!(":{}:{}", at.line, at.column));
            let what = printable(&mistake.what);
            lines.push(format!("{name}{}: {what}", place.unwrap_or_default()));
        }
    }
    session.ui.print(&(lines.join("\n") + "\n"));
}

/// Shows what holds for a path.
pub(crate) fn holds(session: &mut Session, path: &Path, files: &[CheckedFile], holds: &[Holds]) {
    let name = |path: &Path, session: &Session| printable(&session.here.show(path));
    let mut text = String::new();
    let shown = name(path, session);
    if files.is_empty() {
        text = format!("no backout.toml counts for {shown}: every write passes\n");
    }
    for file in files {
        let title = name(&file.file, session);
        text.push_str(&paint(BOLD, &title));
        text.push('\n');
        if !file.mistakes.is_empty() {
            let said = "  it has mistakes, so every write that it might be about is refused";
            text.push_str(&paint(BAD, said));
            text.push('\n');
        }
        let mine = holds.iter().filter(|it| it.file == file.file);
        let rows: Vec<Vec<Cell>> = mine
            .map(|it| {
                let rule = format!("  {}", printable(&it.rule));
                vec![Cell::new(DIM, rule), Cell::plain(printable(&it.says))]
            })
            .collect();
        if rows.is_empty() && file.mistakes.is_empty() {
            text.push_str(&paint(DIM, "  says nothing about it"));
            text.push('\n');
        }
        text.push_str(&table(rows, session.ui.width()));
    }
    session.ui.print(&text);
}
