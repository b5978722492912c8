//! Draws which operation was built on which, as a gutter to the left of a list: one row per operation,
//! newest first, never a row in between.
//!
//! ```text
//! ╭●     built on the next
//! ├●     built on the last
//! │   ●  unrelated
//! ├──●   built on the last as well
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
        if lanes.waiting.len() > LANES_MAX {
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

/// The lanes that run past a row: who waits in which column.
#[derive(Debug, Default)]
struct Lanes {
    waiting: Vec<Option<usize>>,
}

impl Lanes {
    /// Ends the lane of a row, and joins or opens the lanes of what it was built on.
    fn step(&mut self, row: usize, targets: &[usize]) -> Row {
        let above = self.waiting.clone();
        let own = self.column_of(row).unwrap_or_else(|| self.free(None));
        self.put(own, None);
        let mut touched = Vec::new();
        for &target in targets {
            let is_own_free = self.waiting.get(own).is_some_and(Option::is_none);
            let column = match self.column_of(target) {
                Some(column) => column,
                None if is_own_free => own,
                None => self.free(Some(own)),
            };
            self.put(column, Some(target));
            touched.push(column);
        }
        let has =
            |lanes: &[Option<usize>], column: usize| lanes.get(column).is_some_and(Option::is_some);
        let lanes = (0..self.waiting.len()).map(|column| Lane {
            from_above: has(&above, column),
            goes_on: has(&self.waiting, column),
            is_touched: touched.contains(&column),
        });
        let row = Row {
            own,
            lanes: lanes.collect(),
        };
        while self.waiting.last() == Some(&None) {
            self.waiting.pop();
        }
        row
    }

    fn column_of(&self, row: usize) -> Option<usize> {
        self.waiting
            .iter()
            .position(|waiting| *waiting == Some(row))
    }

    fn free(&self, besides: Option<usize>) -> usize {
        let mut columns = self.waiting.iter().enumerate();
        let free = columns.find(|(column, waiting)| waiting.is_none() && Some(*column) != besides);
        free.map_or(self.waiting.len(), |(column, _)| column)
    }

    fn put(&mut self, column: usize, target: Option<usize>) {
        if self.waiting.len() <= column {
            self.waiting.resize(column + 1, None);
        }
        if let Some(lane) = self.waiting.get_mut(column) {
            *lane = target;
        }
    }
}

/// One column of a row.
#[derive(Debug, Clone, Copy)]
struct Lane {
    from_above: bool,
    goes_on: bool,
    is_touched: bool,
}

/// One row: the column of its node, and what happens in each column.
#[derive(Debug)]
struct Row {
    own: usize,
    lanes: Vec<Lane>,
}

impl Row {
    /// A column is three characters wide: its lane, its node, and a gap.
    fn render(&self) -> Gutter {
        let touched = self
            .lanes
            .iter()
            .enumerate()
            .filter(|(_, lane)| lane.is_touched);
        let touched: Vec<usize> = touched.map(|(column, _)| column).collect();
        let first = touched
            .first()
            .map_or(self.own, |&column| column.min(self.own));
        let last = touched
            .last()
            .map_or(self.own, |&column| column.max(self.own));
        let mut gutter = Gutter {
            before: String::new(),
            after: String::new(),
        };
        for (column, lane) in self.lanes.iter().enumerate() {
            let side = if column <= self.own {
                &mut gutter.before
            } else {
                &mut gutter.after
            };
            let (from_left, to_right) = (first < column && column <= last, column < last);
            let rail = if column == self.own {
                lane.of_node(from_left)
            } else {
                lane.beside(from_left, to_right && first <= column)
            };
            side.push(rail);
            let is_line = first <= column && column < last;
            let filler = if is_line { '─' } else { ' ' };
            if column == self.own {
                gutter.after.push(filler);
            } else {
                side.extend([filler, filler]);
            }
        }
        gutter
    }
}

impl Lane {
    /// The lane that the node stands on.
    const fn of_node(self, from_left: bool) -> char {
        match (self.from_above, self.goes_on, from_left) {
            (true, true, false) => '├',
            (true, true, true) => '┼',
            (false, true, false) => '╭',
            (false, true, true) => '┬',
            (true, false, false) => '╰',
            (true, false, true) => '┴',
            (false, false, false) => ' ',
            (false, false, true) => '─',
        }
    }

    /// A lane elsewhere, which the node's line may reach, cross, or not come near.
    const fn beside(self, from_left: bool, to_right: bool) -> char {
        match (self.is_touched, self.from_above, from_left, to_right) {
            (true, true, false, _) => '├',
            (true, true, true, false) => '┤',
            (true, true, true, true) => '┼',
            (true, false, false, _) => '╭',
            (true, false, true, false) => '╮',
            (true, false, true, true) => '┬',
            (false, true, _, _) => '│',
            (false, false, true, true) => '─',
            (false, false, _, _) => ' ',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(edges: &[&[usize]]) -> String {
        let edges: Vec<Vec<usize>> = edges.iter().map(|targets| targets.to_vec()).collect();
        let line = |row: &Gutter| {
            format!("{}●{}", row.before, row.after)
                .trim_end()
                .to_owned()
        };
        let lines: Vec<String> = draw(&edges).iter().map(line).collect();
        lines.join("\n")
    }

    #[test]
    fn nothing_is_drawn_for_nothing() {
        assert_eq!(drawn(&[]), "");
    }

    #[test]
    fn unrelated_operations_have_no_lanes() {
        insta::assert_snapshot!(drawn(&[&[], &[], &[]]), @"");
    }

    #[test]
    fn a_chain_is_one_lane() {
        insta::assert_snapshot!(drawn(&[&[1], &[2], &[]]), @"");
    }

    #[test]
    fn an_unrelated_operation_stands_beside_the_lane() {
        insta::assert_snapshot!(drawn(&[&[2], &[], &[]]), @"");
    }

    #[test]
    fn an_operation_that_closes_its_lane_may_join_another() {
        insta::assert_snapshot!(drawn(&[&[2], &[4], &[4], &[4], &[]]), @"");
    }

    #[test]
    fn two_that_were_built_on_one_join_its_lane() {
        insta::assert_snapshot!(drawn(&[&[2], &[2], &[]]), @"");
    }

    #[test]
    fn one_that_was_built_on_two_opens_a_lane() {
        insta::assert_snapshot!(drawn(&[&[1, 2], &[], &[]]), @"");
    }

    #[test]
    fn a_line_that_only_crosses_a_lane_passes_behind_it() {
        insta::assert_snapshot!(drawn(&[&[3], &[4], &[3], &[], &[]]), @"");
    }

    #[test]
    fn a_lane_between_two_others_is_joined_with_a_cross() {
        insta::assert_snapshot!(drawn(&[&[3], &[4], &[3, 4], &[], &[]]), @"");
    }

    #[test]
    fn an_edge_that_follows_from_others_is_left_out() {
        assert_eq!(drawn(&[&[1, 2], &[2], &[]]), drawn(&[&[1], &[2], &[]]));
    }

    #[test]
    fn edges_that_lead_up_or_out_of_the_list_are_ignored() {
        assert_eq!(drawn(&[&[0, 7], &[0], &[9]]), drawn(&[&[], &[], &[]]));
    }

    #[test]
    fn a_column_is_used_again_when_its_lane_has_ended() {
        insta::assert_snapshot!(drawn(&[&[4], &[2], &[], &[5], &[], &[]]), @"");
    }

    #[test]
    fn twenty_operations_stay_readable() {
        let edges: &[&[usize]] = &[
            &[3],
            &[5],
            &[],
            &[6, 7],
            &[9],
            &[8],
            &[10],
            &[10],
            &[11, 12],
            &[14],
            &[13],
            &[15],
            &[],
            &[16],
            &[],
            &[18],
            &[17],
            &[19],
            &[],
            &[],
            &[],
        ];
        insta::assert_snapshot!(drawn(edges), @"");
    }

    #[test]
    fn too_many_lanes_fall_back_to_a_plain_list() {
        let edges: Vec<Vec<usize>> = (0..18)
            .map(|row| if row < 9 { vec![row + 9] } else { vec![] })
            .collect();
        assert!(
            draw(&edges)
                .iter()
                .all(|row| row.before.is_empty() && row.after.is_empty())
        );
        let edges: Vec<Vec<usize>> = (0..16)
            .map(|row| if row < 8 { vec![row + 8] } else { vec![] })
            .collect();
        assert!(draw(&edges).iter().any(|row| !row.before.is_empty()));
    }
}
