//! [`Random`]: what is left to chance in a test, all drawn from one seed.

/// Draws numbers from a seed (SplitMix64).
pub struct Random(u64);

impl Random {
    /// The same seed draws the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From `least` to `most`, both included.
    pub fn int(&mut self, least: i32, most: i32) -> i32 {
        let count = u64::from(most.abs_diff(least)) + 1;
        least + i32::try_from(self.next() % count).unwrap()
    }

    /// From `least` to `most`, both included.
    pub fn length(&mut self, least: u32, most: u32) -> u32 {
        least + u32::try_from(self.next() % u64::from(most - least + 1)).unwrap()
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.length(0, u32::try_from(values.len() - 1).unwrap()) as usize].clone()
    }

    /// True once in this many times.
    pub fn one_in(&mut self, count: u32) -> bool {
        self.length(1, count) == 1
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.one_in(2)
    }

    /// From `least` to `most`.
    pub fn real(&mut self, least: f64, most: f64) -> f64 {
        #[allow(clippy::cast_precision_loss)] // 53 bits are kept.
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        least + (most - least) * unit
    }

    /// As many numbers as a tensor has elements.
    pub fn reals(&mut self, dimensions: &[u32], least: f64, most: f64) -> Vec<f64> {
        (0..dimensions.iter().product()).map(|_| self.real(least, most)).collect()
    }

    /// A shape of up to `most_rank` axes of up to `most` each.
    pub fn shape(&mut self, most_rank: u32, most: u32) -> Vec<u32> {
        (0..self.length(1, most_rank)).map(|_| self.length(1, most)).collect()
    }

    /// The numbers from 0 in any order.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut left: Vec<usize> = (0..count).collect();
        let mut drawn = Vec::with_capacity(count);
        while !left.is_empty() {
            let at = self.length(0, u32::try_from(left.len() - 1).unwrap());
            drawn.push(left.swap_remove(at as usize));
        }
        drawn
    }
}
