//! Values that changed, outside of files: a row per target, before, after and now.

use backout_engine::{DiffFile, DiffValue};

use crate::ui::{BAD, Cell, DIM, GOOD, PLAIN, paint, printable, table};

/// How much of a value is shown, in characters.
const VALUE_MAX: usize = 40;

/// What a difference is between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Between {
    /// What an operation found and what it made.
    BeforeAndAfter,
    /// What is there and what an undo would make of it.
    NowAndThen,
    /// What an operation left and what somebody made of it.
    LeftAndNow,
}

/// Tells whether a difference fits into a row.
pub(super) fn is_row(file: &DiffFile) -> bool {
    let lines = |value: &DiffValue| {
        let mut all = [&value.before, &value.after, &value.now].into_iter();
        all.any(|value| value.as_ref().is_some_and(|value| value.contains('\n')))
    };
    file.value.as_ref().is_some_and(|value| !lines(value))
}

/// Shows a table of values. Long ones are cut, unless everything is wanted.
pub(super) fn values(rows: &[&DiffFile], between: Between, is_all: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heads = match between {
        Between::BeforeAndAfter => ["before", "after", "now"],
        Between::NowAndThen => ["now", "then", ""],
        Between::LeftAndNow => ["left there", "now", ""],
    };
    let most = if is_all { usize::MAX } else { VALUE_MAX };
    let mut is_cut = false;
    let mut cell = |style: anstyle::Style, value: Option<&str>| {
        let Some(value) = value else {
            return Cell::new(DIM, "not there");
        };
        let shown = printable(value);
        match shown.char_indices().nth(most) {
            Some((end, _)) => {
                is_cut = true;
                let cut = shown.get(..end).unwrap_or_default();
                Cell::new(style, format!("{cut}…"))
            }
            None => Cell::new(style, shown),
        }
    };
    let head = std::iter::once("  target").chain(heads);
    let mut lines = vec![head.map(|head| Cell::new(DIM, head)).collect()];
    for file in rows {
        let Some(value) = &file.value else { continue };
        let path = file.path.as_ref().map(ToString::to_string);
        let name: Vec<String> = path.into_iter().chain(file.key.clone()).collect();
        let mut line = vec![
            Cell::plain(format!("  {}", printable(&name.join(":")))),
            cell(BAD, value.before.as_deref()),
            cell(GOOD, value.after.as_deref()),
        ];
        if between == Between::BeforeAndAfter {
            line.push(match &value.unread {
                Some(why) => Cell::new(DIM, printable(why)),
                None if value.now == value.after => Cell::new(DIM, "as after"),
                None if value.now == value.before => Cell::new(DIM, "as before"),
                None => cell(PLAIN, value.now.as_deref()),
            });
        }
        lines.push(line);
    }
    let mut text = table(lines, None);
    if is_cut {
        let said = "  longer values are cut: see all of them with `-v`, or with `--json`\n";
        text.push_str(&paint(DIM, said));
    }
    text
}
