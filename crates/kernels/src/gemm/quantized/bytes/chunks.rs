//! Cutting the products of a channel into chunks whose sums fit in 16 bits, whatever the inputs are.
//!
//! A step multiplies four inputs, from 0 to 255, by the channel's weights; the sums of the first two products
//! and of the others are each in a lane of 16 bits. Lanes hold sums of several steps as long as neither the
//! positive nor the negative weights that meet in one exceed [`CAPACITY`]. Which steps meet is free, so that
//! there is nearly always room; a step whose weights exceed it alone becomes several with parts of them.

use super::super::DEPTH;
use crate::vector::{Isa, Kernel, Simd};

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
/// first lane and of the second. [`EXCEEDED`] if one exceeds the capacity.
#[inline(always)]
fn load([a, b, c, d]: [i16; DEPTH]) -> u32 {
    // Of numbers with 9 bits: nothing wraps. Checks of that would keep this from being computed in vectors.
    let positive = |a: i16, b: i16| i32::from(a).max(0).wrapping_add(i32::from(b).max(0));
    let negative =
        |a: i16, b: i16| 0_i32.wrapping_sub(i32::from(a).min(0).wrapping_add(i32::from(b).min(0)));
    let (first, second) = (positive(a, b), negative(a, b));
    let (third, fourth) = (positive(c, d), negative(c, d));
    let fits = first.max(second).max(third).max(fourth) <= i32::from(CAPACITY);
    let sums = first | second << 8 | third << 16 | fourth << 24;
    if fits { sums.cast_unsigned() } else { EXCEEDED }
}

/// Bits that are set where a sum exceeds the capacity, if both terms are within it. Also what a full chunk
/// is said to hold: no step fits then.
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

/// Classes by which steps are ordered that do something.
const CLASSES: u8 = 32;

/// The class of a load: 0 for those that fill most, [`CLASSES`] for one of nothing.
#[inline(always)]
fn class(load: u32) -> u8 {
    // Four sums of 7 bits, added two by two: nothing wraps.
    let pairs = (load & 0x00FF_00FF).wrapping_add(load >> 8 & 0x00FF_00FF);
    let total = pairs.wrapping_add(pairs >> 16) & 0x03FF;
    #[allow(clippy::cast_possible_truncation)] // It is below 4 * 128.
    let class = (CLASSES - 1).wrapping_sub((total / (4 * 128 / u32::from(CLASSES))) as u8);
    if load == 0 { CLASSES } else { class }
}

/// Cuts the steps of one channel after another.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    /// Of steps in the order of their inputs, then of parts of those whose weights exceed the capacity, then of one that
    /// does nothing.
    weights: Vec<[i8; DEPTH]>,
    /// Of each step, as all of these, [`Step::place`].
    places: Vec<u16>,
    /// What it fills, see [`load`].
    loads: Vec<u32>,
    classes: Vec<u8>,
    /// Where steps are that do something, those that fill most first; about, which is as good.
    order: Vec<u16>,
    /// What each of these fills that is in no chunk yet, [`EXCEEDED`] otherwise.
    left: Vec<u32>,
    /// Where the steps of all chunks are.
    chunks: Vec<u16>,
}

impl Chunks {
    /// Makes steps of the products of a channel, whose weights from -255 to 255 are given by four, and says how many
    /// these are.
    pub(super) fn read(&mut self, weights: &[[i16; DEPTH]], isa: Isa) -> usize {
        let exceeds = isa.run(Reading { from: weights, chunks: self });
        if exceeds {
            for (place, four) in (0_u16..).zip(weights) {
                let at = usize::from(place);
                if self.loads[at] == EXCEEDED {
                    let mut parts = split(*four).into_iter();
                    // The first one instead of the whole.
                    if let Some(part) = parts.next() {
                        (self.weights[at], self.loads[at]) = part;
                        self.classes[at] = class(part.1);
                    }
                    for (weights, load) in parts {
                        self.push(place, weights, load);
                    }
                }
            }
        }
        sort(&self.classes, &mut self.order);
        self.push(0, [0; DEPTH], 0);
        self.order.len()
    }

    fn push(&mut self, place: u16, weights: [i8; DEPTH], load: u32) {
        self.places.push(place);
        self.weights.push(weights);
        self.loads.push(load);
        self.classes.push(class(load));
    }

    /// Cuts the steps that were read last into chunks of `size`, of which some may do nothing.
    pub(super) fn fill(&mut self, size: usize, isa: Isa) {
        isa.run(Filling { size, chunks: self });
    }

    /// The steps of all chunks.
    pub(super) fn steps(&self) -> impl ExactSizeIterator<Item = Step> {
        self.chunks.iter().map(|at| {
            let at = usize::from(*at);
            Step { place: self.places[at], weights: self.weights[at] }
        })
    }
}

/// The parts of four weights of which some exceed the capacity, and their loads.
fn split(mut four: [i16; DEPTH]) -> Vec<([i8; DEPTH], u32)> {
    let mut parts = Vec::new();
    while four != [0; DEPTH] {
        let (first, second) = four.split_at_mut(DEPTH / 2);
        let [[a, b], [c, d]] = [take(first), take(second)];
        let part = [a, b, c, d];
        #[allow(clippy::cast_possible_truncation)] // Within the capacity.
        parts.push((part.map(|weight| weight as i8), load(part)));
    }
    parts
}

/// Orders steps by their classes, without those that do nothing.
fn sort(classes: &[u8], order: &mut Vec<u16>) {
    let mut ends = [0_usize; CLASSES as usize + 1];
    for class in classes {
        ends[usize::from(*class)] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        (*end, sum) = (sum, sum + *end);
    }
    order.clear();
    order.resize(classes.len(), 0);
    for (at, class) in (0..).zip(classes) {
        let place = &mut ends[usize::from(*class)];
        order[*place] = at;
        *place += 1;
    }
    order.truncate(ends[usize::from(CLASSES - 1)]);
}

/// Makes steps of weights by four, and says whether some exceed the capacity.
struct Reading<'a> {
    from: &'a [[i16; DEPTH]],
    chunks: &'a mut Chunks,
}

impl Kernel for Reading<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> bool {
        let Self { from, chunks: Chunks { weights, places, loads, classes, .. } } = self;
        weights.resize(from.len(), [0; DEPTH]);
        for (to, [a, b, c, d]) in weights.iter_mut().zip(from) {
            #[allow(clippy::cast_possible_truncation)] // What fits has no more bits.
            let four = [*a as i8, *b as i8, *c as i8, *d as i8];
            *to = four;
        }
        places.clear();
        places.extend((0_u16..).take(from.len()));
        loads.resize(from.len(), 0);
        for (to, four) in loads.iter_mut().zip(from) {
            *to = load(*four);
        }
        classes.resize(from.len(), 0);
        let mut exceeds = false;
        for (to, load) in classes.iter_mut().zip(&*loads) {
            *to = class(*load);
            exceeds |= *load == EXCEEDED;
        }
        exceeds
    }
}

/// Filling chunks of this many steps.
struct Filling<'a> {
    size: usize,
    chunks: &'a mut Chunks,
}

impl Kernel for Filling<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { size, chunks: Chunks { loads, order, left, chunks, .. } } = self;
        // The last one, which does nothing.
        let empty = u16::try_from(loads.len() - 1).unwrap_or(0);
        left.clear();
        left.resize(order.len() + SEARCHED, EXCEEDED);
        for (left, at) in left.iter_mut().zip(&*order) {
            *left = loads[usize::from(*at)];
        }
        chunks.clear();
        for first in 0..order.len() {
            let mut held = left[first];
            if held == EXCEEDED {
                continue;
            }
            chunks.push(order[first]);
            let mut from = first + 1;
            for _ in 1..size {
                let Some(next) = first_that_fits(left, from, held) else {
                    from = order.len();
                    chunks.push(empty);
                    continue;
                };
                chunks.push(order[next]);
                held = held.wrapping_add(left[next]);
                left[next] = EXCEEDED;
                from = next + 1;
            }
        }
    }
}

/// Steps that are looked at together.
const SEARCHED: usize = 16;

/// The first step from one on that fits into a chunk which holds something.
#[inline(always)]
fn first_that_fits(left: &[u32], mut from: usize, held: u32) -> Option<usize> {
    for loads in left[from..].as_chunks::<SEARCHED>().0 {
        let mut fits = 0_u32;
        for (lane, load) in loads.iter().enumerate() {
            // It does not wrap; a check of that would be one for each.
            let is_room = load.wrapping_add(held) & EXCEEDED == 0;
            fits |= u32::from(is_room) << lane;
        }
        if fits != 0 {
            return Some(from + fits.trailing_zeros() as usize);
        }
        from += SEARCHED;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstructionSet;
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
            set in prop::sample::select(InstructionSet::available().collect::<Vec<_>>()),
        ) {
            let isa = Isa::of(set);
            let mut chunks = Chunks::default();
            // What was there before does not matter.
            chunks.read(&[[9; DEPTH]; 95], isa);
            chunks.fill(2, isa);
            let count = chunks.read(&weights, isa);
            // Nor does another size.
            chunks.fill(MOST_STEPS + 1 - size, isa);
            chunks.fill(size, isa);
            let steps: Vec<Step> = chunks.steps().collect();
            prop_assert!(steps.len() >= count && (size != 1 || steps.len() == count));
            let mut found = vec![[0_i16; DEPTH]; weights.len().max(1)];
            for step in &steps {
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
