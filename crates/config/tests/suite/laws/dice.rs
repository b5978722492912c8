//! Decisions read from random bytes, so that a failing case shrinks to a small one.

/// A row of decisions. When it is used up, every answer is the first one.
#[derive(Debug)]
pub(crate) struct Dice<'b> {
    bytes: std::slice::Iter<'b, u8>,
}

impl<'b> Dice<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self {
            bytes: bytes.iter(),
        }
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % sides.max(1)
    }

    /// True once in `sides` rolls; never when the dice are used up.
    pub(crate) fn once_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == sides - 1
    }

    pub(crate) fn pick<'p, T: ?Sized>(&mut self, from: &[&'p T]) -> &'p T {
        from[self.roll(from.len())]
    }

    pub(crate) fn is_out(&self) -> bool {
        self.bytes.len() == 0
    }
}
