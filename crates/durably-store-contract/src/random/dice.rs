//! Chance that a seed repeats.

/// A stream of numbers that its seed decides (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }

    /// From 1 to `most`.
    pub(super) fn upto(&mut self, most: usize) -> usize {
        self.below(most) + 1
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        match from.is_empty() {
            true => None,
            false => Some(&from[self.below(from.len())]),
        }
    }

    /// One of a list that is not empty.
    pub(super) fn one<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Each with that chance, in their order.
    pub(super) fn some<T: Clone>(&mut self, from: &[T], percent: usize) -> Vec<T> {
        from.iter().filter(|_| self.chance(percent)).cloned().collect()
    }
}
