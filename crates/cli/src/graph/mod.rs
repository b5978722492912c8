//! Draws which operation was built on which, as a gutter to the left of a list: one row per operation,
//! newest first, never a row in between.
//!
//! ```text
//! ╭●     built on the next
//! ├●     built on the last
//! │   ●  unrelated
//! ├───●  built on the last as well
//! ╰●     what both were built on
//! ```
//!
//! - There is one lane per operation that somebody above waits for. A node stands to the right of its own
//!   lane, which begins (`╭`), ends (`╰`) or does both (`├`) there; without a lane it stands alone. So
//!   neighbours look related only if they are.
//! - Lanes of others are reached by a line: `├ ┤ ┼` join one, `╭ ╮ ┬` open one, and a line that merely
//!   crosses a lane passes behind it: `─│─`.
//! - An edge that follows from others is not drawn: what matters is the chain.
//!
//! Pure: rows are numbers, edges lead to higher numbers. What a node looks like is the caller's business.

mod lanes;
#[cfg(test)]
mod tests;

use lanes::{Lanes, Row};

/// More lanes than this at one time are not readable any more.
const LANES_MAX: usize = 8;

/// More rows than this are drawn without lanes, since what follows from what costs the square of it.
const ROWS_MAX: usize = 4096;

/// What stands before and after the node of one row. All rows of a drawing are equally wide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gutter {
    /// Left of the node.
    pub(crate) before: String,
    /// Right of the node.
    pub(crate) after: String,
}

/// Draws the lanes of a list; `edges[row]` are the rows that `row` was built on. Edges that do not lead
/// downwards are ignored. When there would be too many lanes, there are none.
pub(crate) fn draw(edges: &[Vec<usize>]) -> Vec<Gutter> {
    lanes(edges).unwrap_or_else(|| {
        vec![
            Gutter {
                before: String::new(),
                after: String::new()
            };
            edges.len()
        ]
    })
}

fn lanes(edges: &[Vec<usize>]) -> Option<Vec<Gutter>> {
    if edges.len() > ROWS_MAX {
        return None;
    }
    let mut lanes = Lanes::default();
    let mut rows = Vec::with_capacity(edges.len());
    for (row, targets) in reduce(edges).iter().enumerate() {
        rows.push(lanes.step(row, targets));
        if lanes.count() > LANES_MAX {
            return None;
        }
    }
    let mut gutters: Vec<Gutter> = rows.iter().map(Row::render).collect();
    let width = |gutter: &Gutter| gutter.before.chars().count() + gutter.after.chars().count();
    let widest = gutters.iter().map(width).max().unwrap_or(0);
    for gutter in &mut gutters {
        let missing = widest - width(gutter);
        gutter.after.extend(std::iter::repeat_n(' ', missing));
    }
    Some(gutters)
}

/// Leaves out every edge that follows from a longer way.
fn reduce(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let words = edges.len().div_ceil(64);
    let mut reach: Vec<Vec<u64>> = vec![Vec::new(); edges.len()];
    let mut reduced = vec![Vec::new(); edges.len()];
    for (row, targets) in edges.iter().enumerate().rev() {
        let mut targets: Vec<usize> = targets
            .iter()
            .copied()
            .filter(|&to| to > row && to < edges.len())
            .collect();
        targets.sort_unstable();
        targets.dedup();
        let mut beyond = vec![0_u64; words];
        for reached in targets.iter().filter_map(|&to| reach.get(to)) {
            for (word, more) in beyond.iter_mut().zip(reached) {
                *word |= more;
            }
        }
        let is_beyond = |to: usize| {
            beyond
                .get(to / 64)
                .is_some_and(|word| word >> (to % 64) & 1 == 1)
        };
        let direct: Vec<usize> = targets
            .iter()
            .copied()
            .filter(|&to| !is_beyond(to))
            .collect();
        for &to in &direct {
            if let Some(word) = beyond.get_mut(to / 64) {
                *word |= 1 << (to % 64);
            }
        }
        if let (Some(of_row), Some(reach_of_row)) = (reduced.get_mut(row), reach.get_mut(row)) {
            *of_row = direct;
            *reach_of_row = beyond;
        }
    }
    reduced
}
