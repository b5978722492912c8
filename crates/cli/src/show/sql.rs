//! What statements read, as a table for people.

use serde_json::Value;

use super::counted;
use crate::commands::sql::Table;
use crate::ui::printable;

/// How many rows are shown.
const SHOWN_MAX: usize = 100;

/// How many characters of a value are shown.
const WIDTH_MAX: usize = 60;

/// Shows rows below the names of their columns.
pub(crate) fn table(found: &Table) -> String {
    let rows = found.rows.as_slice();
    let head: Vec<String> = found.columns.iter().map(|name| cut(name)).collect();
    let cells = rows.iter().take(SHOWN_MAX);
    let cells = cells.map(|row| row.iter().map(cell).collect::<Vec<_>>());
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(cells).collect();
    let widths: Vec<usize> = (0..found.columns.len())
        .map(|at| {
            let column = lines.iter().filter_map(|line| line.get(at));
            column.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for line in &lines {
        let cells = std::iter::zip(line, &widths).map(|(cell, width)| format!("{cell:width$}"));
        let cells: Vec<String> = cells.collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    let hidden = rows.len().saturating_sub(SHOWN_MAX);
    if hidden > 0 || found.has_more {
        let more = if found.has_more { "at least " } else { "" };
        let hidden = counted(hidden.max(1) as u64, "more row");
        let more = format!("({more}{hidden}; `--json` has up to 1000)\n");
        text.push_str(&more);
    }
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => cut(text),
        value => value.to_string(),
    }
}

fn cut(text: &str) -> String {
    let text = printable(text);
    if text.chars().count() <= WIDTH_MAX {
        return text;
    }
    let start: String = text.chars().take(WIDTH_MAX - 1).collect();
    format!("{start}…")
}
