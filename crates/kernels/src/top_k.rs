//! [`TopK`]: the greatest elements of rows.

use crate::prepared::{ElementType, Operands, PreparedKernel, WrongValue};
use crate::team::{Pace, Team};
use bytemuck::Pod;
use std::cmp::Ordering;
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
    /// If `count` is 0 or more than `length`, or elements are truth values.
    pub fn prepare(
        elements: ElementType,
        length: usize,
        count: usize,
        first_before_last: bool,
    ) -> Self {
        assert!((1..=length).contains(&count), "{count} of {length} elements");
        assert_ne!(elements, ElementType::Bool, "truth values are in no order");
        Self { length, count, elements, first_before_last }
    }

    fn choose<T: Pod>(
        &self,
        mut pace: Pace<'_>,
        input: &[T],
        (values, indexes): (&mut [T], &mut [u32]),
        order: &mut [u32],
        compare: impl Fn(&T, &T) -> Ordering,
    ) {
        let rows = input.chunks_exact(self.length);
        let values = values.chunks_exact_mut(self.count);
        let indexes = indexes.chunks_exact_mut(self.count);
        for ((row, values), indexes) in rows.zip(values).zip(indexes) {
            let falling = |a: &u32, b: &u32| {
                let by_place = if self.first_before_last { a.cmp(b) } else { b.cmp(a) };
                compare(&row[*b as usize], &row[*a as usize]).then(by_place)
            };
            let chosen = if self.count <= MOST_SELECTED {
                self.select(&mut pace, order, falling)
            } else {
                sort_in_pieces(&mut pace, order, self.length, falling)
            };
            let Some(chosen) = chosen else { return };
            for block in blocks(self.count) {
                if pace.is_over(block.len() * WORK) {
                    return;
                }
                indexes[block.clone()].copy_from_slice(&chosen[block.clone()]);
                for (value, index) in values[block.clone()].iter_mut().zip(&chosen[block]) {
                    *value = row[*index as usize];
                }
            }
        }
    }

    /// The first of all in this order, which are few; `None` if they are no longer wanted.
    fn select<'a>(
        &self,
        pace: &mut Pace<'_>,
        order: &'a mut [u32],
        falling: impl Fn(&u32, &u32) -> Ordering + Copy,
    ) -> Option<&'a [u32]> {
        // Those that come first so far, and behind them the next ones.
        let mut kept = 0;
        for block in blocks(self.length) {
            if pace.is_over(block.len() * WORK) {
                return None;
            }
            let end = kept + block.len();
            for (place, index) in order[kept..end].iter_mut().zip(numbers(block)) {
                *place = index;
            }
            if end > self.count {
                order[..end].select_nth_unstable_by(self.count - 1, falling);
            }
            kept = end.min(self.count);
        }
        order[..kept].sort_unstable_by(falling);
        Some(&order[..kept])
    }

    /// Places for the numbers of elements.
    fn places(&self) -> usize {
        if self.count <= MOST_SELECTED {
            self.length.min(self.count + BLOCK)
        } else {
            2 * self.length
        }
    }
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

/// The numbers below `length` in this order, merged from sorted pieces; `None` if they are no longer wanted.
fn sort_in_pieces<'a>(
    pace: &mut Pace<'_>,
    places: &'a mut [u32],
    length: usize,
    order: impl Fn(&u32, &u32) -> Ordering + Copy,
) -> Option<&'a [u32]> {
    let (from, to) = places.split_at_mut(length);
    let (mut from, mut to) = (from, &mut to[..length]);
    for piece in blocks(length) {
        if pace.is_over(piece.len() * WORK) {
            return None;
        }
        for (place, index) in from[piece.clone()].iter_mut().zip(numbers(piece.clone())) {
            *place = index;
        }
        from[piece].sort_unstable_by(order);
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
                    let is_left = left < middle
                        && (right == end || order(&from[left], &from[right]) != Ordering::Greater);
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
        let order = &mut bytemuck::cast_slice_mut(scratch)[..self.places()];
        let indexes = bytemuck::cast_slice_mut(indexes);
        let pace = team.pace();
        /// Elements of some type, in some order.
        macro_rules! chosen {
            ($T:ty, $compare:expr) => {{
                let values = bytemuck::cast_slice_mut(values);
                self.choose::<$T>(pace, inputs.of(0), (values, indexes), order, $compare)
            }};
        }
        match self.elements {
            ElementType::F32 => chosen!(f32, |a, b| {
                a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }),
            ElementType::I32 => chosen!(i32, Ord::cmp),
            ElementType::U8 | ElementType::Bool => chosen!(u8, Ord::cmp),
            ElementType::I8 => chosen!(i8, Ord::cmp),
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.places() * size_of::<u32>()
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
    fn nan_is_greater_than_anything() {
        let input = [1.0, f32::NAN, f32::INFINITY];
        let kernel = TopK::prepare(ElementType::F32, 3, 2, true);
        let [_, indexes] = outputs(&kernel, &[bytemuck::cast_slice(&input)], [8, 8]);
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, u32>(&indexes), [1, 2]);
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
            let mut order = vec![0; kernel.places()];
            Team::alone().until(&ask, |team| {
                let outputs = (&mut values[..], &mut indexes[..]);
                kernel.choose(team.pace(), &input, outputs, &mut order, u8::cmp);
                assert!(team.is_stopped(), "{count}");
            });
            assert_eq!(questions.into_inner(), 12, "{count}");
        }
    }
}
