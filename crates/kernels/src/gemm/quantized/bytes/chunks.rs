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

/// Classes by which steps are ordered.
const CLASSES: u8 = 32;

/// The class of a load: 0 for those that fill most.
fn class(load: u32) -> u8 {
    // Four sums of 7 bits, added two by two: nothing wraps.
    let pairs = (load & 0x00FF_00FF).wrapping_add(load >> 8 & 0x00FF_00FF);
    let total = pairs.wrapping_add(pairs >> 16) & 0x03FF;
    #[allow(clippy::cast_possible_truncation)] // Below 4 * 128.
    let class = (total / (4 * 128 / u32::from(CLASSES))) as u8;
    (CLASSES - 1).wrapping_sub(class) % CLASSES
}

/// Channels whose chunks are searched side by side.
pub(super) const SIDE_BY_SIDE: usize = 8;

/// A step, and what it fills.
type Load = (u32, Step);

/// Fills the chunks of some channels.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    channels: [Channel; SIDE_BY_SIDE],
    loads: Vec<u32>,
    unordered: Vec<Load>,
    /// Of each chunk of each channel what its lanes hold; [`EXCEEDED`] if it has no room for a step.
    held: Vec<[u32; SIDE_BY_SIDE]>,
}

/// What there is of a channel.
#[derive(Debug, Default)]
struct Channel {
    /// Those that fill most first.
    order: Vec<Load>,
    /// How many steps each chunk has.
    filled: Vec<u8>,
    /// All chunks' steps.
    steps: Vec<Step>,
    /// Chunks before this one have no room.
    full: usize,
    /// Chunks that have steps.
    used: usize,
}

impl Chunks {
    /// Makes steps of the products of a channel, whose weights from -255 to 255 are given by four, and says how many these
    /// are.
    pub(super) fn read(&mut self, channel: usize, weights: &[[i16; DEPTH]], isa: Isa) -> usize {
        let Self { channels, loads, unordered, .. } = self;
        isa.run(Loads { weights, loads });
        unordered.clear();
        for (place, (&load, &four)) in (0..).zip(loads.iter().zip(weights)) {
            if load == EXCEEDED {
                split(four, |load, weights| unordered.push((load, Step { place, weights })));
            } else if load != 0 {
                #[allow(clippy::cast_possible_truncation)] // What fits has no more bits.
                unordered.push((load, Step { place, weights: four.map(|weight| weight as i8) }));
            }
        }
        sort(unordered, &mut channels[channel].order);
        unordered.len()
    }

    /// Cuts the steps of the first channels, as they were read last, into chunks of `size`, the last of which may do
    /// nothing.
    pub(super) fn fill(&mut self, channels: usize, size: usize, isa: Isa) {
        for channel in &mut self.channels[channels..] {
            channel.order.clear();
        }
        isa.run(Filling { size, chunks: self });
    }

    /// The steps of all chunks of a channel.
    pub(super) fn steps(&self, channel: usize) -> &[Step] {
        &self.channels[channel].steps
    }
}

/// Makes steps of four weights of which some exceed the capacity.
fn split(mut four: [i16; DEPTH], mut step: impl FnMut(u32, [i8; DEPTH])) {
    while four != [0; DEPTH] {
        let (first, second) = four.split_at_mut(DEPTH / 2);
        let [[a, b], [c, d]] = [take(first), take(second)];
        let part = [a, b, c, d];
        #[allow(clippy::cast_possible_truncation)] // Within the capacity.
        step(load(part), part.map(|weight| weight as i8));
    }
}

/// Orders steps by what they fill, the most first; about, which is as good.
fn sort(steps: &[Load], ordered: &mut Vec<Load>) {
    let mut ends = [0_u32; CLASSES as usize];
    for &(load, _) in steps {
        ends[usize::from(class(load))] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        (*end, sum) = (sum, sum + *end);
    }
    ordered.clear();
    ordered.resize(steps.len(), Load::default());
    for &step in steps {
        let place = &mut ends[usize::from(class(step.0))];
        ordered[*place as usize] = step;
        *place += 1;
    }
}

/// What each four of weights fills.
struct Loads<'a> {
    weights: &'a [[i16; DEPTH]],
    loads: &'a mut Vec<u32>,
}

impl Kernel for Loads<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { weights, loads } = self;
        loads.clear();
        loads.resize(weights.len(), 0);
        for (to, four) in loads.iter_mut().zip(weights) {
            *to = load(*four);
        }
    }
}

/// Filling chunks of this many steps.
struct Filling<'a> {
    size: usize,
    chunks: &'a mut Chunks,
}

/// Chunks of each channel that are looked at before it is asked whether all were found.
const ROWS: usize = 4;

impl Kernel for Filling<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { size, chunks: Chunks { channels, held, .. } } = self;
        for channel in channels.iter_mut() {
            channel.begin(size);
        }
        let most = channels.iter().map(|it| it.order.len()).max().unwrap_or(0);
        // Empty ones, of which no more are filled than there are steps.
        held.clear();
        held.resize(most + ROWS, [0; SIDE_BY_SIDE]);
        for index in 0..most {
            let steps: [Load; SIDE_BY_SIDE] = std::array::from_fn(|lane| {
                channels[lane].order.get(index).copied().unwrap_or_default()
            });
            let loads = steps.map(|(load, _)| load);
            // One has steps left.
            let first = channels.iter().map(|it| it.full).min().unwrap_or(0);
            let found = first_that_fit(held, first, &loads);
            for (lane, (load, step)) in steps.into_iter().enumerate() {
                let channel = &mut channels[lane];
                if index >= channel.order.len() {
                    // Keeps no one waiting.
                    channel.full = usize::MAX;
                    continue;
                }
                let chunk = found[lane] as usize;
                let before = usize::from(channel.filled[chunk]);
                channel.steps[chunk * size + before] = step;
                channel.filled[chunk] += 1;
                channel.used = channel.used.max(chunk + 1);
                held[chunk][lane] += load;
                if before + 1 == size {
                    held[chunk][lane] = EXCEEDED;
                    while held[channel.full][lane] == EXCEEDED {
                        channel.full += 1;
                    }
                }
            }
        }
        for channel in channels {
            channel.steps.truncate(channel.used * size);
        }
    }
}

impl Channel {
    fn begin(&mut self, size: usize) {
        let count = self.order.len();
        self.filled.clear();
        self.filled.resize(count, 0);
        self.steps.clear();
        self.steps.resize(count * size, Step::default());
        (self.full, self.used) = (0, 0);
    }
}

/// The first chunk of each channel, from a number on, that has room for a load.
#[inline(always)]
fn first_that_fit(
    held: &[[u32; SIDE_BY_SIDE]],
    first: usize,
    loads: &[u32; SIDE_BY_SIDE],
) -> [u32; SIDE_BY_SIDE] {
    let mut found = [u32::MAX; SIDE_BY_SIDE];
    #[allow(clippy::cast_possible_truncation)] // No more than there are steps in a piece.
    let mut number = first as u32;
    for rows in held[first..].as_chunks::<ROWS>().0 {
        for row in rows {
            for lane in 0..SIDE_BY_SIDE {
                // It does not wrap; a check of that would be one for each.
                let fits = row[lane].wrapping_add(loads[lane]) & EXCEEDED == 0;
                found[lane] = found[lane].min(if fits { number } else { u32::MAX });
            }
            number = number.wrapping_add(1);
        }
        if found.iter().fold(true, |all, &it| all & (it != u32::MAX)) {
            break;
        }
    }
    found
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
            for channel in 0..SIDE_BY_SIDE {
                chunks.read(channel, &[[9; DEPTH]; 95], isa);
            }
            chunks.fill(SIDE_BY_SIDE, 2, isa);
            // Channels of other lengths on both sides.
            chunks.read(0, &[[3; DEPTH]; 20], isa);
            let count = chunks.read(1, &weights, isa);
            chunks.read(2, &[[-3; DEPTH]; 40], isa);
            chunks.fill(3, size, isa);
            let steps = chunks.steps(1);
            prop_assert!(chunks.steps(3).is_empty());
            prop_assert!(steps.len() >= count && (size != 1 || steps.len() == count));
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
