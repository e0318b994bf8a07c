//! Random numbers that are the same for the same seed everywhere.

/// A stream of random numbers (SplitMix64).
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, or 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap()
    }

    /// Returns a number from `start` to `last`.
    pub(crate) fn between(&mut self, start: usize, last: usize) -> usize {
        start + self.below(last + 1 - start)
    }

    /// Returns true in so many of a hundred times.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the items.
    pub(crate) fn one<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }

    /// Returns `count` different positions below `end`, in order.
    pub(crate) fn some(&mut self, end: usize, count: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..end).collect();
        let mut taken: Vec<usize> = (0..count.min(end))
            .map(|_| left.swap_remove(self.below(left.len())))
            .collect();
        taken.sort_unstable();
        taken
    }
}
