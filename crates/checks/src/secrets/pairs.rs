//! Sets of pairs of bytes, a bit for each: where something of interest may begin is found in one look at each byte.

/// A set of pairs.
#[derive(Debug)]
pub(super) struct Pairs([u64; 1024]);

impl Pairs {
    pub(super) const fn none() -> Self {
        Self([0; 1024])
    }

    /// Adds a pair.
    #[expect(
        clippy::indexing_slicing,
        reason = "a constant with a wrong index does not compile"
    )]
    pub(super) const fn with(mut self, pair: [u8; 2]) -> Self {
        let at = u16::from_be_bytes(pair) as usize;
        self.0[at >> 6] |= 1 << (at & 63);
        self
    }

    /// Adds a pair of small letters, and the same in capitals.
    pub(super) const fn with_any_case(self, [first, second]: [u8; 2]) -> Self {
        let (large, also) = (first.to_ascii_uppercase(), second.to_ascii_uppercase());
        let set = self.with([first, second]).with([first, also]);
        set.with([large, second]).with([large, also])
    }

    /// Adds the pairs of another set.
    #[expect(
        clippy::indexing_slicing,
        reason = "a constant with a wrong index does not compile"
    )]
    pub(super) const fn with_all(mut self, other: &Self) -> Self {
        let mut at = 0;
        while at < self.0.len() {
            self.0[at] |= other.0[at];
            at += 1;
        }
        self
    }

    fn has(&self, pair: u16) -> bool {
        let word = self.0.get(usize::from(pair >> 6)).copied().unwrap_or(0);
        word >> (pair & 63) & 1 == 1
    }

    /// Tells whether one of the pairs stands at a place.
    pub(super) fn stands_at(&self, content: &[u8], at: usize) -> bool {
        let pair = content.get(at..).and_then(<[u8]>::first_chunk);
        pair.is_some_and(|pair| self.has(u16::from_be_bytes(*pair)))
    }

    /// Finds the next place where one of the pairs stands.
    pub(super) fn next(&self, content: &[u8], from: usize) -> Option<usize> {
        let mut bytes = content.get(from..)?.iter();
        let mut pair = u16::from(*bytes.next()?);
        let found = bytes.position(|byte| {
            pair = pair << 8 | u16::from(*byte);
            self.has(pair)
        });
        found.map(|offset| from + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_where_they_stand_and_nowhere_else() {
        let set = Pairs::none().with(*b"AB").with_any_case(*b"xy");
        let all = |content: &[u8]| {
            let mut found = Vec::new();
            while let Some(at) = set.next(content, found.last().map_or(0, |at| at + 1)) {
                found.push(at);
            }
            found
        };
        assert_eq!(all(b"AB.ab.xyXYxYXy.AAB"), [0, 6, 8, 10, 12, 16]);
        assert_eq!(all(b"AxAyBA"), [0_usize; 0]);
        for short in [&b""[..], b"A"] {
            assert_eq!(all(short), [0_usize; 0]);
        }
        assert_eq!(set.next(b"AB", 7), None);
    }
}
