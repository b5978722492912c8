//! Text in a terminal: how wide it is, what of it may be shown, and how it lines up.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::style::{PLAIN, paint};

/// Between two columns of a table.
const GAP: &str = "  ";

/// What stands for the end of a text that was too long.
const ELLIPSIS: char = '…';

/// A column is never cut below this width, however narrow the terminal.
const LAST_WIDTH_MIN: usize = 16;

/// Shows one line of somebody else's text: control characters, which could move the cursor or colour the
/// screen, are shown as escapes.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Shows several lines of somebody else's text; ends of lines and tabs stay.
pub(crate) fn printable_lines(text: &str) -> String {
    let lines = text.split('\n').map(|line| {
        let cells: Vec<String> = line.split('\t').map(printable).collect();
        cells.join("\t")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// One cell of a table: pieces of text, each in a style.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pieces: Vec<(Style, String)>,
    is_right: bool,
}

impl Cell {
    /// Makes a cell of one piece.
    pub(crate) fn new(style: Style, text: impl Into<String>) -> Self {
        Self::default().and(style, text)
    }

    /// Makes a cell without a style.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(PLAIN, text)
    }

    /// Adds a piece.
    #[must_use]
    pub(crate) fn and(mut self, style: Style, text: impl Into<String>) -> Self {
        self.pieces.push((style, text.into()));
        self
    }

    /// Puts the cell at the right edge of its column.
    #[must_use]
    pub(crate) const fn right(mut self) -> Self {
        self.is_right = true;
        self
    }

    fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    fn render(&self, width: usize) -> String {
        let text: String = self
            .pieces
            .iter()
            .map(|(style, text)| paint(*style, text))
            .collect();
        let padding = " ".repeat(width.saturating_sub(self.width()));
        if self.is_right {
            padding + &text
        } else {
            text + &padding
        }
    }

    /// Cuts the cell down to a width.
    pub(crate) fn truncate(&mut self, width: usize) {
        if self.width() <= width {
            return;
        }
        let mut left = width.saturating_sub(1);
        for (_, text) in &mut self.pieces {
            let whole = text.width();
            if whole > left {
                *text = text_within(text, left);
                left = 0;
            } else {
                left -= whole;
            }
        }
        self.pieces.push((PLAIN, ELLIPSIS.to_string()));
    }
}

fn text_within(text: &str, width: usize) -> String {
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        if kept.width() > width {
            kept.pop();
            break;
        }
    }
    kept
}

/// Lines rows up. Columns that are empty everywhere are left out; the last one is cut if the row would be
/// wider than `width`.
pub(crate) fn table(mut rows: Vec<Vec<Cell>>, width: Option<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(Cell::width)
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let mut text = String::new();
    for row in &mut rows {
        let mut line = String::new();
        let mut used = 0;
        let last = row.iter().rposition(|cell| cell.width() > 0);
        for (column, cell) in row.iter_mut().enumerate() {
            let wide = widths.get(column).copied().unwrap_or(0);
            if wide == 0 || Some(column) > last {
                continue;
            }
            if used > 0 {
                line.push_str(GAP);
                used += GAP.len();
            }
            if Some(column) == last {
                if let Some(width) = width {
                    cell.truncate(width.saturating_sub(used).max(LAST_WIDTH_MIN));
                }
                let padded = if cell.is_right { wide } else { 0 };
                line.push_str(&cell.render(padded));
            } else {
                line.push_str(&cell.render(wide));
            }
            used += wide;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<Cell> {
        cells.iter().map(|text| Cell::plain(*text)).collect()
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        assert_eq!(
            printable("a\u{1b}[31mb\nc\td\u{7f}é"),
            "a\\u{1b}[31mb\\nc\\td\\u{7f}é"
        );
        assert_eq!(
            printable_lines("+a\tb\u{1b}[2J\n-c\n"),
            "+a\tb\\u{1b}[2J\n-c\n"
        );
    }

    #[test]
    fn columns_line_up_and_empty_ones_vanish() {
        let rows = vec![
            row(&["a", "", "long", "x"]),
            row(&["bcd", "", "s", "yy"]),
            row(&["e"]),
        ];
        assert_eq!(table(rows, None), "a    long  x\nbcd  s     yy\ne\n");
    }

    #[test]
    fn wide_characters_count_as_two() {
        let rows = vec![row(&["日本", "x"]), row(&["abc", "y"])];
        assert_eq!(table(rows, None), "日本  x\nabc   y\n");
    }

    #[test]
    fn only_the_last_column_is_cut() {
        let rows = vec![row(&["id", "write a-rather-long-name.txt"])];
        assert_eq!(table(rows.clone(), Some(24)), "id  write a-rather-long…\n");
        assert_eq!(table(rows.clone(), Some(3)), "id  write a-rather-…\n");
        assert_eq!(table(rows, Some(80)), "id  write a-rather-long-name.txt\n");
    }

    #[test]
    fn numbers_stand_at_the_right() {
        let rows = vec![
            vec![Cell::plain("7").right(), Cell::plain("a")],
            vec![Cell::plain("12").right(), Cell::plain("b")],
        ];
        assert_eq!(table(rows, None), " 7  a\n12  b\n");
    }
}
