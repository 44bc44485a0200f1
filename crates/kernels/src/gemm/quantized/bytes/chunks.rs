//! Cutting the products of a channel into chunks whose sums fit in 16 bits, whatever the inputs are.
//!
//! A step multiplies four inputs, from 0 to 255, by the channel's weights; the sums of the first two products
//! and of the others are each in a lane of 16 bits. Lanes hold sums of several steps as long as neither the
//! positive nor the negative weights that meet in one exceed [`CAPACITY`]. Which steps meet is free, so that
//! there is nearly always room; a step whose weights exceed it alone becomes several with parts of them.
//!
//! Looking for steps that fit takes most of the time until such a convolution is prepared. So the four sums of a step are one
//! number of 32 bits, of which many are compared at a time, and a bit tells of each step whether it is in a chunk yet.

// Tests call functions that need AVX2.
#![allow(unsafe_code)]

use super::super::DEPTH;
use super::{PACKED_STEP, STEP_BYTES};
use bytemuck::cast;
use std::arch::x86_64::*;
use std::collections::TryReserveError;

/// Sums of weights of one sign in a lane, at most: `255 * 127` is below 2^15.
const CAPACITY: i16 = 127;

/// [`CAPACITY`] for each of the sums of a step.
const CAPACITIES: i32 = 0x7F7F_7F7F;

/// Steps of a chunk, at most: the sums of more, unrolled, do not stay in the registers.
pub(super) const MOST_STEPS: usize = 3;

/// Numbers of 32 bits in a vector.
const LANES: usize = 8;

/// Steps that are looked at together, a bit for each.
const SEARCHED: usize = u32::BITS as usize;

/// Classes by which steps are ordered that do something, 0 for those that fill most.
const CLASSES: u8 = 32;

/// The sums of four lanes of as many as this power of 2 are a class.
const CLASS_BITS: i32 = (4 * 128 / CLASSES as i32).trailing_zeros().cast_signed();

/// As it is packed: four weights, and where their inputs are in the piece of a panel, in bytes; zeros behind.
type Step = [u8; 8];

/// Of weights that fit in a step, so that their lower bytes are all of them. No place has more than two bytes.
fn step(place: usize, weights: [i16; DEPTH]) -> Step {
    let [a, b, c, d] = weights.map(|weight| weight.to_le_bytes()[0]);
    let [low, high, ..] = (place * STEP_BYTES).to_le_bytes();
    [a, b, c, d, low, high, 0, 0]
}

/// The sums of a step's weights of one sign in a lane, one in each byte: positive and negative ones of the
/// first lane and of the second. None exceeds the capacity.
fn load([a, b, c, d]: [i16; DEPTH]) -> u32 {
    let positive = |a: i16, b: i16| (a.max(0) + b.max(0)).to_le_bytes()[0];
    let negative = |a: i16, b: i16| positive(-a, -b);
    u32::from_le_bytes([positive(a, b), negative(a, b), positive(c, d), negative(c, d)])
}

/// The class of a load, [`CLASSES`] for one of nothing.
fn class(load: u32) -> u8 {
    let total: u16 = load.to_le_bytes().into_iter().map(u16::from).sum();
    let [class, _] = (total >> CLASS_BITS).to_le_bytes();
    if load == 0 { CLASSES } else { CLASSES - 1 - class }
}

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

/// Takes from four weights what fits in a step.
fn part(four: &mut [i16; DEPTH]) -> [i16; DEPTH] {
    let (first, second) = four.split_at_mut(DEPTH / 2);
    let [[a, b], [c, d]] = [take(first), take(second)];
    [a, b, c, d]
}

/// Steps of a vector of weights.
struct Vector {
    steps: [Step; LANES],
    loads: [u32; LANES],
    classes: [u8; LANES],
    /// A bit for each: whether its weights exceed the capacity. Then what is said of it means nothing.
    exceeding: u8,
}

impl Vector {
    /// `first` is where the inputs of the first step are.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(first: usize, weights: [[i16; DEPTH]; LANES]) -> Self {
        let (zero, ones) = (_mm256_setzero_si256(), _mm256_set1_epi16(1));
        // The weights of four steps each.
        let [a, b]: [__m256i; 2] = cast(weights);
        // Packing gives four steps of each half in turn.
        let in_order = |of_steps| _mm256_permute4x64_epi64::<0b11_01_10_00>(of_steps);
        // A number of 16 bits for each lane of a step.
        let sums = |a, b| {
            let of_lanes = |weights| _mm256_madd_epi16(_mm256_max_epi16(weights, zero), ones);
            in_order(_mm256_packs_epi32(of_lanes(a), of_lanes(b)))
        };
        let positive = sums(a, b);
        let negative = sums(_mm256_sub_epi16(zero, a), _mm256_sub_epi16(zero, b));
        let capacities = _mm256_set1_epi16(CAPACITY);
        let of_lanes = _mm256_cmpgt_epi16(_mm256_max_epi16(positive, negative), capacities);
        let fits = _mm256_castsi256_ps(_mm256_cmpeq_epi32(of_lanes, zero));
        let loads = _mm256_or_si256(positive, _mm256_slli_epi16::<8>(negative));
        let totals = _mm256_madd_epi16(_mm256_add_epi16(positive, negative), ones);
        let classes = _mm256_sub_epi32(
            _mm256_set1_epi32(i32::from(CLASSES) - 1),
            _mm256_srli_epi32::<CLASS_BITS>(totals),
        );
        let is_nothing = _mm256_cmpeq_epi32(totals, zero);
        let of_nothing = _mm256_set1_epi32(CLASSES.into());
        let classes: [[u8; 4]; LANES] = cast(_mm256_blendv_epi8(classes, of_nothing, is_nothing));
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // 16 bits.
        let places = {
            let index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let index = _mm256_add_epi32(index, _mm256_set1_epi32(first as i32));
            _mm256_mullo_epi16(index, _mm256_set1_epi16(STEP_BYTES as i16))
        };
        let fours = in_order(_mm256_packs_epi16(a, b));
        let [even, odd] =
            [_mm256_unpacklo_epi32(fours, places), _mm256_unpackhi_epi32(fours, places)];
        let steps = [
            _mm256_permute2x128_si256::<0x20>(even, odd),
            _mm256_permute2x128_si256::<0x31>(even, odd),
        ];
        Self {
            steps: cast(steps),
            loads: cast(loads),
            classes: classes.map(|[class, ..]| class),
            exceeding: !_mm256_movemask_ps(fits).to_le_bytes()[0],
        }
    }
}

/// Fours of weights that are read at a time, at most.
pub(super) const MOST_READ: usize = 128;

/// Steps that there is room for: a power of 2, so that numbers below it are seen from their bits. Four weights of 9 bits are five
/// steps at most.
const ROOM: usize = 1024;
const _: () =
    assert!(ROOM.is_power_of_two() && ROOM >= 5 * MOST_READ && MOST_READ.is_multiple_of(LANES));

/// Places of classes, likewise.
const CLASS_ROOM: usize = 64;
const _: () = assert!(CLASS_ROOM.is_power_of_two() && CLASS_ROOM > CLASSES as usize);

/// Cuts the steps of one channel after another.
#[derive(Debug)]
pub(super) struct Chunks {
    /// In the order of their inputs, up to a whole vector, then parts of those whose weights exceed the capacity.
    steps: [Step; ROOM],
    /// What each of these fills, see [`load`].
    loads: [u32; ROOM],
    classes: [u8; ROOM],
    /// How many these are.
    count: usize,
    /// Those that do something, those that fill most first; about, which is as good. Behind them are others.
    sorted: [Step; ROOM],
    /// What each of these fills.
    sorted_loads: [u32; ROOM],
    /// How many do something.
    sorted_count: usize,
}

impl Default for Chunks {
    fn default() -> Self {
        Self {
            steps: [[0; size_of::<Step>()]; ROOM],
            loads: [0; ROOM],
            classes: [0; ROOM],
            count: 0,
            sorted: [[0; size_of::<Step>()]; ROOM],
            sorted_loads: [0; ROOM],
            sorted_count: 0,
        }
    }
}

impl Chunks {
    /// Makes steps of the products of a channel, whose weights from -255 to 255 are given by four, and says how many
    /// these are.
    ///
    /// # Panics
    /// If there are more than [`MOST_READ`] fours.
    #[target_feature(enable = "avx2")]
    pub(super) fn read(&mut self, weights: &[[i16; DEPTH]]) -> usize {
        assert!(weights.len() <= MOST_READ, "{} fours of weights", weights.len());
        self.count = weights.len().next_multiple_of(LANES);
        let vectors = self.steps[..self.count].as_chunks_mut::<LANES>().0.iter_mut();
        let vectors = vectors.zip(self.loads.as_chunks_mut::<LANES>().0);
        let vectors = vectors.zip(self.classes.as_chunks_mut::<LANES>().0).enumerate();
        let mut exceeding = [0; MOST_READ / LANES];
        for (index, ((steps, loads), classes)) in vectors {
            let first = index * LANES;
            let mut fours = [[0; DEPTH]; LANES];
            match weights[first..].first_chunk() {
                Some(whole) => fours = *whole,
                None => fours[..weights.len() - first].copy_from_slice(&weights[first..]),
            }
            let made = Vector::new(first, fours);
            *steps = made.steps;
            *loads = made.loads;
            *classes = made.classes;
            exceeding[index] = made.exceeding;
        }
        for (index, mut bits) in exceeding.into_iter().enumerate() {
            while bits != 0 {
                let place = index * LANES + bits.trailing_zeros() as usize;
                self.split(place, weights[place]);
                bits &= bits - 1;
            }
        }
        self.sort();
        self.sorted_count
    }

    /// Puts parts in the place of a step whose weights exceed the capacity: the first one there, the others behind all steps.
    fn split(&mut self, place: usize, mut four: [i16; DEPTH]) {
        let mut at = place;
        while four != [0; DEPTH] {
            let part = part(&mut four);
            let load = load(part);
            self.steps[at] = step(place, part);
            self.loads[at] = load;
            self.classes[at] = class(load);
            self.count = self.count.max(at + 1);
            at = self.count;
        }
    }

    /// Orders steps by their classes, without those that do nothing.
    fn sort(&mut self) {
        let of_class = |class: u8| usize::from(class) % CLASS_ROOM;
        let mut ends = [0_u16; CLASS_ROOM];
        for class in &self.classes[..self.count] {
            let end = &mut ends[of_class(*class)];
            *end = end.wrapping_add(1);
        }
        let mut sum = 0;
        for end in &mut ends[..=usize::from(CLASSES)] {
            (*end, sum) = (sum, sum + *end);
        }
        self.sorted_count = ends[usize::from(CLASSES)].into();
        let steps = self.steps[..self.count].iter().zip(&self.loads).zip(&self.classes);
        for ((step, load), class) in steps {
            let end = &mut ends[of_class(*class)];
            let place = usize::from(*end) % ROOM;
            self.sorted[place] = *step;
            self.sorted_loads[place] = *load;
            *end = end.wrapping_add(1);
        }
    }

    /// Cuts the steps that were read last into chunks of `size`, of which some may do nothing, and appends them as they are
    /// packed. Says how many chunks there are.
    ///
    /// # Errors
    /// If there is no memory for them.
    #[target_feature(enable = "avx2")]
    pub(super) fn fill(&self, size: usize, to: &mut Vec<u8>) -> Result<usize, TryReserveError> {
        match size {
            1 => self.fill_by::<1>(to),
            2 => self.fill_by::<2>(to),
            3 => self.fill_by::<3>(to),
            _ => unreachable!("chunks of {size} steps"),
        }
    }

    #[target_feature(enable = "avx2")]
    fn fill_by<const SIZE: usize>(&self, to: &mut Vec<u8>) -> Result<usize, TryReserveError> {
        let blocks = self.sorted_count.div_ceil(SEARCHED);
        let (loads, _) = self.sorted_loads.as_chunks::<SEARCHED>();
        // A bit for each step that is in no chunk yet.
        let mut left = [0; ROOM / SEARCHED];
        for (block, left) in left[..blocks].iter_mut().enumerate() {
            let count = (self.sorted_count - block * SEARCHED).min(SEARCHED);
            *left = u32::MAX >> (SEARCHED - count);
        }
        let (start, most) = (to.len(), self.sorted_count * SIZE * PACKED_STEP);
        to.try_reserve(most)?;
        to.resize(start + most, 0);
        let mut places = to[start..].chunks_exact_mut(SIZE * PACKED_STEP);
        let mut chunks = 0;
        for first_block in 0..blocks {
            while left[first_block] != 0
                && let Some(chunk) = places.next()
            {
                chunks += 1;
                let mut block = first_block;
                let mut fitting = left[block];
                let mut room = _mm256_set1_epi32(CAPACITIES);
                for index in 0..SIZE {
                    // What did not fit before does not either, now that there is less room.
                    while index > 0 && block < blocks {
                        fitting = left[block] & fits(&loads[block], room);
                        if fitting != 0 {
                            break;
                        }
                        block += 1;
                    }
                    if fitting == 0 {
                        break;
                    }
                    let found = fitting.trailing_zeros() as usize % SEARCHED;
                    left[block] &= !(1 << found);
                    let load = _mm256_set1_epi32(loads[block][found].cast_signed());
                    room = _mm256_sub_epi32(room, load);
                    let step = &self.sorted[block * SEARCHED + found];
                    let (weights, place) = step[..PACKED_STEP].split_at(DEPTH);
                    chunk[DEPTH * index..][..DEPTH].copy_from_slice(weights);
                    chunk[DEPTH * SIZE + 2 * index..][..2].copy_from_slice(place);
                }
            }
        }
        to.truncate(start + chunks * SIZE * PACKED_STEP);
        Ok(chunks)
    }
}

/// A bit for each of these loads: whether there is room for it.
#[inline]
#[target_feature(enable = "avx2")]
fn fits(loads: &[u32; SEARCHED], room: __m256i) -> u32 {
    let (vectors, _) = loads.as_chunks::<LANES>();
    vectors.iter().rev().fold(0, |fitting, loads| {
        let beyond = _mm256_subs_epu8(cast(*loads), room);
        let fits = _mm256_cmpeq_epi32(beyond, _mm256_setzero_si256());
        fitting << LANES | _mm256_movemask_ps(_mm256_castsi256_ps(fits)).cast_unsigned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstructionSet;
    use proptest::prelude::*;

    /// Chunks as they are defined: each begins with the first step that is left, and takes the first ones behind it that fit.
    fn expected(weights: &[[i16; DEPTH]], size: usize) -> Vec<u8> {
        let mut steps = Vec::new();
        let mut behind = Vec::new();
        for (place, four) in weights.iter().enumerate() {
            let mut four = *four;
            let mut parts = Vec::new();
            while four != [0; DEPTH] {
                parts.push((place, part(&mut four)));
            }
            let mut parts = parts.into_iter();
            steps.extend(parts.next());
            behind.extend(parts);
        }
        steps.extend(behind);
        steps.sort_by_key(|(_, weights)| class(load(*weights)));
        let mut bytes = Vec::new();
        while !steps.is_empty() {
            let mut chunk: Vec<(usize, [i16; DEPTH])> = Vec::new();
            let mut at = 0;
            while at < steps.len() && chunk.len() < size {
                let all = || chunk.iter().chain([&steps[at]]).map(|(_, weights)| load(*weights));
                let sum = |byte: usize| {
                    all().map(|load| u32::from(load.to_le_bytes()[byte])).sum::<u32>()
                };
                if (0..DEPTH).all(|byte| sum(byte) <= 127) {
                    chunk.push(steps.remove(at));
                } else {
                    at += 1;
                }
            }
            chunk.resize(size, (0, [0; DEPTH]));
            let packed: Vec<Step> =
                chunk.iter().map(|(place, weights)| step(*place, *weights)).collect();
            bytes.extend(packed.iter().flat_map(|step| &step[..DEPTH]));
            bytes.extend(packed.iter().flat_map(|step| &step[DEPTH..PACKED_STEP]));
        }
        bytes
    }

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
            prop_assume!(InstructionSet::Avx2.is_available());
            let mut chunks = Chunks::default();
            let mut packed = vec![7];
            // SAFETY: the processor has AVX2.
            let (count, found) = unsafe {
                // What was there before does not matter.
                chunks.read(&[[9; DEPTH]; 95]);
                chunks.fill(2, &mut Vec::new()).unwrap();
                let count = chunks.read(&weights);
                // Nor does another size.
                chunks.fill(MOST_STEPS + 1 - size, &mut Vec::new()).unwrap();
                (count, chunks.fill(size, &mut packed).unwrap())
            };
            prop_assert_eq!(packed[0], 7);
            prop_assert_eq!(packed.len() - 1, found * size * PACKED_STEP);
            prop_assert_eq!(&packed[1..], expected(&weights, size));
            prop_assert!(found * size >= count && (size != 1 || found == count));
            let mut sums = vec![[0_i16; DEPTH]; weights.len().max(1)];
            for chunk in packed[1..].chunks_exact(size * PACKED_STEP) {
                let (fours, places) = chunk.split_at(size * DEPTH);
                let (fours, places) = (fours.as_chunks::<DEPTH>().0, places.as_chunks::<2>().0);
                for (four, place) in fours.iter().zip(places) {
                    let place = usize::from(u16::from_le_bytes(*place));
                    prop_assert!(place.is_multiple_of(STEP_BYTES));
                    for (sum, weight) in sums[place / STEP_BYTES].iter_mut().zip(four) {
                        *sum += i16::from(weight.cast_signed());
                    }
                }
                for lane in [0..2, 2..4] {
                    let all = || fours.iter().flat_map(|four| &four[lane.clone()]);
                    let all = || all().map(|weight| i32::from(weight.cast_signed()));
                    // Inputs that make the sum as great as it can be, and as small.
                    let most: i32 = all().map(|weight| 255 * weight.max(0)).sum();
                    let least: i32 = all().map(|weight| 255 * weight.min(0)).sum();
                    prop_assert!(most < 1 << 15 && least >= -(1 << 15), "{most} {least}");
                }
            }
            prop_assert_eq!(&sums[..weights.len()], &weights);
        }
    }
}
