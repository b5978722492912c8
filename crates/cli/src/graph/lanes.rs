//! Lanes: which columns are taken from row to row, and the characters that show it.

use super::Gutter;

/// The lanes that run past a row: who waits in which column.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    waiting: Vec<Option<usize>>,
}

impl Lanes {
    /// Ends the lane of a row, and joins or opens the lanes of what it was built on.
    pub(super) fn step(&mut self, row: usize, targets: &[usize]) -> Row {
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

    /// Tells how many columns are in use.
    pub(super) const fn count(&self) -> usize {
        self.waiting.len()
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
pub(super) struct Row {
    own: usize,
    lanes: Vec<Lane>,
}

impl Row {
    /// A column is three characters wide: its lane, its node, and a gap.
    pub(super) fn render(&self) -> Gutter {
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
