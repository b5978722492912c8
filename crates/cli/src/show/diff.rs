//! What an operation changed, as a unified diff.

use anstyle::Style;
use backout_engine::DiffFile;

use crate::session::Session;
use crate::ui::{ACCENT, BAD, BOLD, GOOD, PLAIN, paint, printable_lines};

/// Shows the differences. A pipe gets them exactly as they are, so that `patch` can read them.
pub(super) fn files(session: &mut Session, files: &[DiffFile]) {
    if files.iter().all(|file| file.text.is_empty()) {
        session.ui.done("no difference in content\n");
        return;
    }
    let is_seen = session.ui.is_terminal();
    for file in files {
        let shown = if is_seen {
            printable_lines(&file.text)
        } else {
            file.text.clone()
        };
        session.ui.print(&coloured(&shown));
    }
}

fn coloured(diff: &str) -> String {
    let mut is_header = true;
    let lines = diff.split_inclusive('\n').map(|line| {
        is_header = is_header && !line.starts_with("@@");
        let body = line.strip_suffix('\n').unwrap_or(line);
        let end = if body.len() < line.len() { "\n" } else { "" };
        paint(style(body, is_header), body) + end
    });
    lines.collect()
}

fn style(line: &str, is_header: bool) -> Style {
    match line.bytes().next() {
        Some(b'+' | b'-') if is_header => BOLD,
        Some(b'@') => ACCENT,
        Some(b'+') => GOOD,
        Some(b'-') => BAD,
        _ => PLAIN,
    }
}
