//! [`TopK`]: the greatest elements of rows.

use crate::prepared::{ElementType, Operands, PreparedKernel, WrongValue};
use crate::team::{Pace, Team};
use bytemuck::Pod;
use std::ops::Range;

/// The most elements that are selected; of more, all are sorted.
const MOST_SELECTED: usize = BLOCK;

/// Elements that are compared with each other between two questions.
const BLOCK: usize = 1 << 16;

/// What comparing an element takes, in multiplications: enough to be asked in every block.
const WORK: usize = crate::team::WORK_BETWEEN / BLOCK;

/// Prepared TOPK_V2: of each row the greatest elements in falling order, and where they stand. NaN is
/// greater than anything.
#[derive(Debug, Clone, Copy)]
pub struct TopK {
    length: usize,
    count: usize,
    elements: ElementType,
    first_before_last: bool,
}

impl TopK {
    /// The `count` greatest of rows of `length` elements. Whether of equal ones those that stand further in
    /// front come first.
    ///
    /// # Panics
    /// If `count` is 0 or more than `length`, or [elements of this type are not taken](Self::takes).
    pub fn prepare(
        elements: ElementType,
        length: usize,
        count: usize,
        first_before_last: bool,
    ) -> Self {
        assert!((1..=length).contains(&count), "{count} of {length} elements");
        assert!(Self::takes(elements), "elements of {}", elements.name());
        Self { length, count, elements, first_before_last }
    }

    /// Whether it is of elements of this type: numbers of at most 32 bits.
    pub fn takes(elements: ElementType) -> bool {
        elements != ElementType::Bool && elements.size() <= 4
    }

    /// `key` gives a number that is the greater the greater an element is.
    fn choose<T: Pod>(
        &self,
        mut pace: Pace<'_>,
        input: &[T],
        (values, indexes): (&mut [T], &mut [u32]),
        places: &mut [u64],
        key: impl Fn(T) -> u32,
    ) {
        // Of equal elements the one that stands further in front has the lesser number, or the greater one.
        let flip = if self.first_before_last { 0 } else { u32::MAX };
        let rows = input.chunks_exact(self.length);
        let values = values.chunks_exact_mut(self.count);
        let indexes = indexes.chunks_exact_mut(self.count);
        for ((row, values), indexes) in rows.zip(values).zip(indexes) {
            let number = |range: Range<usize>, places: &mut [u64]| {
                let all = numbers(range.clone()).zip(&row[range]);
                for (place, (index, element)) in places.iter_mut().zip(all) {
                    *place = u64::from(!key(*element)) << 32 | u64::from(index ^ flip);
                }
            };
            let chosen = if self.count <= MOST_SELECTED {
                self.select(&mut pace, places, &number)
            } else {
                sort_in_pieces(&mut pace, places, self.length, &number)
            };
            let Some(chosen) = chosen else { return };
            for block in blocks(self.count) {
                if pace.is_over(block.len() * WORK) {
                    return;
                }
                let all = values[block.clone()].iter_mut().zip(&mut indexes[block.clone()]);
                for ((value, index), chosen) in all.zip(&chosen[block]) {
                    #[allow(clippy::cast_possible_truncation)] // The lower half.
                    let place = *chosen as u32 ^ flip;
                    *index = place;
                    *value = row[place as usize];
                }
            }
        }
    }

    /// The least numbers, which are few; `None` if they are no longer wanted.
    fn select<'a>(
        &self,
        pace: &mut Pace<'_>,
        places: &'a mut [u64],
        number: &dyn Fn(Range<usize>, &mut [u64]),
    ) -> Option<&'a [u64]> {
        // Those that come first so far, and behind them the next ones.
        let mut kept = 0;
        for block in blocks(self.length) {
            if pace.is_over(block.len() * WORK) {
                return None;
            }
            let end = kept + block.len();
            number(block, &mut places[kept..end]);
            if end > self.count {
                places[..end].select_nth_unstable(self.count - 1);
            }
            kept = end.min(self.count);
        }
        places[..kept].sort_unstable();
        Some(&places[..kept])
    }

    /// Places for numbers of elements.
    fn places(&self) -> usize {
        if self.count <= MOST_SELECTED {
            self.length.min(self.count + BLOCK)
        } else {
            2 * self.length
        }
    }
}

/// A number that is the greater the greater a float is, the same for both zeros, from 1 to `u32::MAX - 1`; `None` for NaN.
pub(crate) fn rank(number: f32) -> Option<u32> {
    let bits = (number + 0.0).to_bits();
    // Of negative numbers, greater bits are lesser numbers.
    let rank = if bits >> 31 == 0 { bits ^ 1 << 31 } else { !bits };
    (!number.is_nan()).then_some(rank)
}

/// `0..length` in parts between which it is asked whether to go on.
fn blocks(length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length).step_by(BLOCK).map(move |first| first..length.min(first + BLOCK))
}

/// Elements' numbers, which fit: lengths do.
#[allow(clippy::cast_possible_truncation)]
fn numbers(range: Range<usize>) -> impl Iterator<Item = u32> {
    range.map(|index| index as u32)
}

/// The numbers of `length` elements in rising order, merged from sorted pieces; `None` if they are no longer wanted.
fn sort_in_pieces<'a>(
    pace: &mut Pace<'_>,
    places: &'a mut [u64],
    length: usize,
    number: &dyn Fn(Range<usize>, &mut [u64]),
) -> Option<&'a [u64]> {
    let (from, to) = places.split_at_mut(length);
    let (mut from, mut to) = (from, &mut to[..length]);
    for piece in blocks(length) {
        if pace.is_over(piece.len() * WORK) {
            return None;
        }
        number(piece.clone(), &mut from[piece.clone()]);
        from[piece].sort_unstable();
    }
    let mut sorted = BLOCK;
    while sorted < length {
        for start in (0..length).step_by(2 * sorted) {
            let (middle, end) = (length.min(start + sorted), length.min(start + 2 * sorted));
            let (mut left, mut right) = (start, middle);
            for block in blocks(end - start) {
                if pace.is_over(block.len() * WORK) {
                    return None;
                }
                for place in block {
                    let is_left = left < middle && (right == end || from[left] < from[right]);
                    let next = if is_left { &mut left } else { &mut right };
                    to[start + place] = from[*next];
                    *next += 1;
                }
            }
        }
        (from, to) = (to, from);
        sorted *= 2;
    }
    Some(from)
}

impl PreparedKernel for TopK {
    fn name(&self) -> String {
        format!("top k {}", self.elements.name())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [values, indexes], scratch) = operands.split();
        let places = &mut bytemuck::cast_slice_mut(scratch)[..self.places()];
        let indexes = bytemuck::cast_slice_mut(indexes);
        let pace = team.pace();
        /// Elements of some type, in the order of their keys.
        macro_rules! chosen {
            ($T:ty, $key:expr) => {{
                let values = bytemuck::cast_slice_mut(values);
                self.choose::<$T>(pace, inputs.of(0), (values, indexes), places, $key)
            }};
        }
        match self.elements {
            ElementType::F32 => chosen!(f32, |it| rank(it).unwrap_or(u32::MAX)),
            ElementType::I32 => chosen!(i32, |it| it.cast_unsigned() ^ 1 << 31),
            ElementType::I16 => chosen!(i16, |it| u32::from(it.cast_unsigned() ^ 0x8000)),
            ElementType::I8 => chosen!(i8, |it| u32::from(it.cast_unsigned() ^ 0x80)),
            ElementType::U32 => chosen!(u32, |it| it),
            ElementType::U16 => chosen!(u16, u32::from),
            ElementType::U8 => chosen!(u8, u32::from),
            ElementType::F64 | ElementType::I64 | ElementType::U64 | ElementType::Bool => {
                unreachable!("refused when it was prepared")
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.places() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepared::tests::outputs;

    fn top_k(kernel: TopK, input: &[i32]) -> (Vec<i32>, Vec<u32>) {
        let bytes = input.len() / kernel.length * kernel.count * 4;
        let [values, indexes] = outputs(&kernel, &[bytemuck::cast_slice(input)], [bytes; 2]);
        (bytemuck::pod_collect_to_vec(&values), bytemuck::pod_collect_to_vec(&indexes))
    }

    #[test]
    fn rows_are_chosen_from_each_by_itself() {
        let input = [3, 9, 9, 1, 7, -2, -2, -5, 0, -1];
        let kernel = |first| TopK::prepare(ElementType::I32, 5, 3, first);
        assert_eq!(top_k(kernel(true), &input), (vec![9, 9, 7, 0, -1, -2], vec![1, 2, 4, 3, 4, 0]));
        assert_eq!(
            top_k(kernel(false), &input),
            (vec![9, 9, 7, 0, -1, -2], vec![2, 1, 4, 3, 4, 1])
        );
    }

    #[test]
    fn nan_is_greater_than_anything_and_zeros_are_equal() {
        let input =
            [-0.0, 1.0, f32::NEG_INFINITY, 0.0, -f32::NAN, -1e-45, f32::INFINITY, -0.0, f32::NAN];
        for (first_before_last, expected) in
            [(true, [4, 8, 6, 1, 0, 3, 7, 5, 2]), (false, [8, 4, 6, 1, 7, 3, 0, 5, 2])]
        {
            let kernel = TopK::prepare(ElementType::F32, 9, 9, first_before_last);
            let [values, indexes] = outputs(&kernel, &[bytemuck::cast_slice(&input)], [36, 36]);
            assert_eq!(bytemuck::pod_collect_to_vec::<u8, u32>(&indexes), expected);
            let values = bytemuck::pod_collect_to_vec::<u8, u32>(&values);
            assert_eq!(values, expected.map(|it| input[it as usize].to_bits()));
        }
    }

    #[test]
    fn bytes_are_in_the_order_of_what_they_are() {
        for (elements, expected) in
            [(ElementType::U8, [2, 0, 3, 1]), (ElementType::I8, [3, 1, 2, 0])]
        {
            let kernel = TopK::prepare(elements, 4, 4, true);
            let [_, indexes] = outputs(&kernel, &[&[0x80, 0, 0xFF, 0x7F]], [4, 16]);
            assert_eq!(bytemuck::pod_collect_to_vec::<u8, u32>(&indexes), expected);
        }
    }

    #[test]
    fn many_of_many_are_those_of_sorting_all() {
        let length = 3 * BLOCK + 17;
        let mut random = fastrand::Rng::with_seed(5);
        let input: Vec<i32> = (0..length).map(|_| random.i32(0..1000)).collect();
        let mut expected: Vec<u32> = numbers(0..length).collect();
        expected.sort_by_key(|it| (-input[*it as usize], *it));
        for count in [1, 1000, MOST_SELECTED, MOST_SELECTED + 1, length] {
            let kernel = TopK::prepare(ElementType::I32, length, count, true);
            let (values, indexes) = top_k(kernel, &input);
            assert!(indexes == expected[..count], "{count}");
            assert!(values.iter().zip(&indexes).all(|(it, at)| *it == input[*at as usize]));
        }
    }

    #[test]
    fn long_rows_ask_whether_to_go_on() {
        let length = 40 * BLOCK;
        let input = vec![7_u8; length];
        for count in [3, length] {
            let kernel = TopK::prepare(ElementType::U8, length, count, true);
            let questions = std::sync::atomic::AtomicUsize::new(0);
            let ask = || questions.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 10;
            let (mut values, mut indexes) = (vec![0; count], vec![0; count]);
            let mut places = vec![0; kernel.places()];
            Team::alone().until(&ask, |team| {
                let outputs = (&mut values[..], &mut indexes[..]);
                kernel.choose(team.pace(), &input, outputs, &mut places, u32::from);
                assert!(team.is_stopped(), "{count}");
            });
            assert_eq!(questions.into_inner(), 12, "{count}");
        }
    }
}
