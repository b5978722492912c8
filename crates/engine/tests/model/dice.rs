//! A small generator of numbers: the same seed gives the same story on every machine.

use crate::names::{COUNT, Name};

/// A linear congruential generator; good enough to choose, not to hide.
#[derive(Debug, Clone)]
pub(crate) struct Dice {
    state: u64,
    /// The names that this story is mostly about, so that its steps meet.
    favourites: Vec<Name>,
}

/// How many names a story is mostly about.
const FAVOURITES: usize = 7;

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not begin alike.
        let mut dice = Self {
            state: seed ^ 0x9e37_79b9_7f4a_7c15,
            favourites: Vec::new(),
        };
        for _ in 0..4 {
            dice.next();
        }
        dice.favourites = (0..FAVOURITES).map(|_| Name(dice.roll(COUNT))).collect();
        dice
    }

    fn next(&mut self) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state ^ (self.state >> 29)) >> 24
    }

    /// Gives a number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        let sides = u64::try_from(sides).unwrap_or(1).max(1);
        usize::try_from(self.next() % sides).unwrap_or(0)
    }

    /// Gives true in so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.roll(100) < percent
    }

    /// Chooses a name.
    pub(crate) fn name(&mut self) -> Name {
        let favourite = self.roll(FAVOURITES);
        match self.favourites.get(favourite).copied() {
            Some(name) if self.chance(80) => name,
            Some(_) | None => Name(self.roll(COUNT)),
        }
    }

    /// Tells whether the story is mostly about a name.
    pub(crate) fn likes(&self, name: Name) -> bool {
        self.favourites.contains(&name)
    }

    /// Chooses one of a list.
    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.roll(list.len())]
    }
}
