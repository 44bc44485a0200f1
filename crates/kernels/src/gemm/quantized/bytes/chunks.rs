//! Cutting the products of a channel into chunks whose sums fit in 16 bits, whatever the inputs are.
//!
//! A step multiplies four inputs, from 0 to 255, by the channel's weights; the sums of the first two products
//! and of the others are each in a lane of 16 bits. Lanes hold sums of several steps as long as neither the
//! positive nor the negative weights that meet in one exceed [`CAPACITY`]. Which steps meet is free, so that
//! there is nearly always room; a step whose weights exceed it alone becomes several with parts of them.

use super::super::DEPTH;

/// Sums of weights of one sign in a lane, at most: `255 * 127` is below 2^15.
const CAPACITY: i16 = 127;

/// Steps of a chunk, at most: the sums of more, unrolled, do not stay in the registers.
pub(super) const MOST_STEPS: usize = 3;

/// Weights of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Which four inputs they are multiplied by.
    pub place: u16,
    pub weights: [i8; DEPTH],
}

/// The sums of a step's weights of one sign in a lane, one in each byte: positive and negative ones of the
/// first lane and of the second. None if one exceeds the capacity.
fn load([a, b, c, d]: [i16; DEPTH]) -> Option<u32> {
    // Of numbers with 9 bits: nothing wraps.
    let sums = |a: i16, b: i16| {
        [a.max(0).wrapping_add(b.max(0)), a.min(0).wrapping_add(b.min(0)).wrapping_neg()]
    };
    let ([first, second], [third, fourth]) = (sums(a, b), sums(c, d));
    #[allow(clippy::cast_sign_loss)] // Magnitudes.
    let load = [first, second, third, fourth].map(|sum| sum as u32);
    let fits = first.max(second).max(third).max(fourth) <= CAPACITY;
    fits.then_some(load[0] | load[1] << 8 | load[2] << 16 | load[3] << 24)
}

/// Bits that are set where a sum exceeds the capacity, if both terms are within it.
const EXCEEDED: u32 = 0x8080_8080;

/// Takes from two weights what fits in a lane.
fn take(pair: &mut [i16]) -> [i16; 2] {
    let first = pair[0].clamp(-CAPACITY, CAPACITY);
    let is_same_sign = first.signum() == pair[1].signum();
    let room = if is_same_sign { CAPACITY - first.abs() } else { CAPACITY };
    let second = pair[1].clamp(-room, room);
    pair[0] -= first;
    pair[1] -= second;
    [first, second]
}

/// The first chunk that has room for a load.
fn first_that_fits(held: &[u32], load: u32) -> Option<usize> {
    // It does not wrap; a check of that would be one for each.
    let fits = |held: &u32| held.wrapping_add(load) & EXCEEDED == 0;
    // Many side by side, without a branch for each.
    let (eights, rest) = held.as_chunks::<8>();
    for (index, eight) in eights.iter().enumerate() {
        let any = eight.iter().fold(false, |any, held| any | fits(held));
        if any {
            return eight.iter().position(fits).map(|at| 8 * index + at);
        }
    }
    rest.iter().position(fits).map(|at| 8 * eights.len() + at)
}

/// Classes by which steps are ordered.
const CLASSES: u8 = 32;

/// The class of a load: 0 for those that fill most.
fn class(load: u32) -> u8 {
    // Four sums of 7 bits, added two by two: nothing wraps.
    let pairs = (load & 0x00FF_00FF).wrapping_add(load >> 8 & 0x00FF_00FF);
    let total = pairs.wrapping_add(pairs >> 16) & 0x03FF;
    #[allow(clippy::cast_possible_truncation)] // Below 4 * 128.
    let class = (total / (4 * 128 / u32::from(CLASSES))) as u8;
    CLASSES - 1 - class
}

/// Fills chunks, one channel after the other.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// Those that fill most first.
    order: Vec<(u32, Step)>,
    unordered: Vec<(u32, Step)>,
    classes: Vec<u8>,
    /// Of each chunk what its lanes hold; [`EXCEEDED`] if it has no room for a step.
    loads: Vec<u32>,
    filled: Vec<u8>,
    /// All chunks' steps.
    steps: Vec<Step>,
}

impl Chunks {
    /// Cuts the products of a channel, whose weights from -255 to 255 are given by four, into chunks of `size`
    /// steps, the last of which may do nothing. Gives the steps of all chunks.
    pub(super) fn fill(&mut self, size: usize, weights: &[[i16; DEPTH]]) -> &[Step] {
        self.unordered.clear();
        for (place, &(mut four)) in (0..).zip(weights) {
            let mut push = |load: u32, weights: [i16; DEPTH]| {
                #[allow(clippy::cast_possible_truncation)] // Within the capacity.
                let weights = weights.map(|weight| weight as i8);
                self.unordered.push((load, Step { place, weights }));
            };
            // Mostly all of it fits.
            if let Some(load) = load(four) {
                if load != 0 {
                    push(load, four);
                }
                continue;
            }
            while four != [0; DEPTH] {
                let (first, second) = four.split_at_mut(DEPTH / 2);
                let [[a, b], [c, d]] = [take(first), take(second)];
                let load = load([a, b, c, d]).expect("what was taken fits");
                push(load, [a, b, c, d]);
            }
        }
        self.sort();
        self.loads.clear();
        self.filled.clear();
        self.steps.clear();
        let mut full = 0;
        for &(load, step) in &self.order {
            let found = first_that_fits(&self.loads[full..], load).map(|index| full + index);
            let chunk = found.unwrap_or(self.loads.len());
            if found.is_none() {
                self.loads.push(0);
                self.filled.push(0);
                self.steps.resize(self.steps.len() + size, Step::default());
            }
            let filled = usize::from(self.filled[chunk]);
            self.steps[chunk * size + filled] = step;
            self.filled[chunk] += 1;
            self.loads[chunk] += load;
            if filled + 1 == size {
                self.loads[chunk] = EXCEEDED;
                while self.loads.get(full) == Some(&EXCEEDED) {
                    full += 1;
                }
            }
        }
        &self.steps
    }

    /// By what steps fill, the most first; about, which is as good.
    fn sort(&mut self) {
        self.classes.clear();
        self.classes.extend(self.unordered.iter().map(|(load, _)| class(*load)));
        let mut ends = [0; CLASSES as usize];
        for &class in &self.classes {
            ends[usize::from(class)] += 1;
        }
        let mut sum = 0;
        for end in &mut ends {
            (*end, sum) = (sum, sum + *end);
        }
        self.order.clear();
        self.order.resize(self.unordered.len(), (0, Step::default()));
        for (&step, &class) in self.unordered.iter().zip(&self.classes) {
            let place = &mut ends[usize::from(class)];
            self.order[*place] = step;
            *place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunks_hold_all_weights_and_fit_in_16_bits(
            weights in prop::collection::vec(prop_oneof![
                4 => prop::array::uniform4(-60_i16..=60),
                1 => prop::array::uniform4(-255_i16..=255),
                1 => prop::array::uniform4(prop_oneof![Just(-255_i16), Just(255), Just(-128), Just(0)]),
            ], 0..90),
            size in 1..=MOST_STEPS,
        ) {
            let mut chunks = Chunks::default();
            // What was there before does not matter.
            chunks.fill(2, &[[9; DEPTH]; 7]);
            let steps = chunks.fill(size, &weights);
            prop_assert!(steps.len().is_multiple_of(size));
            let mut found = vec![[0_i16; DEPTH]; weights.len().max(1)];
            for step in steps {
                for (sum, weight) in found[usize::from(step.place)].iter_mut().zip(step.weights) {
                    *sum += i16::from(weight);
                }
            }
            prop_assert_eq!(&found[..weights.len()], &weights);
            for chunk in steps.chunks(size) {
                for lane in [0..2, 2..4] {
                    let all = || chunk.iter().flat_map(|step| &step.weights[lane.clone()]);
                    // Inputs that make the sum as great as it can be, and as small.
                    let most: i32 = all().map(|&weight| 255 * i32::from(weight).max(0)).sum();
                    let least: i32 = all().map(|&weight| 255 * i32::from(weight).min(0)).sum();
                    prop_assert!(most < 1 << 15 && least >= -(1 << 15), "{most} {least}");
                }
            }
        }
    }
}
