//! Non-maximum suppression of candidates that wait in a heap: only as many are put in order as are
//! looked at.

use super::boxes::{Edges, overlap};
use crate::team::Pace;

/// A candidate as a number that is the greater the sooner its turn is: by its score, which is above 0,
/// and among equals by its number.
pub(super) fn candidate(score: f32, number: usize) -> u64 {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    u64::from(score.to_bits()) << 32 | u64::from(!number)
}

/// Score and number of a candidate.
#[allow(clippy::cast_possible_truncation)] // Halves.
pub(super) fn parts(candidate: u64) -> (f32, usize) {
    (f32::from_bits((candidate >> 32) as u32), !(candidate as u32) as usize)
}

/// Multiplications that take about as long as a step down a heap, or as comparing two boxes.
const OF_STEP: usize = 8;

/// Numbers of which the greatest comes first.
pub(super) struct Heap<'a>(&'a mut [u64]);

impl<'a> Heap<'a> {
    /// In order as far as it is wanted.
    pub(super) fn new(numbers: &'a mut [u64], pace: &mut Pace<'_>) -> Self {
        let mut heap = Self(numbers);
        for at in (0..heap.0.len() / 2).rev() {
            if pace.is_over(OF_STEP) {
                break;
            }
            heap.sink(at);
        }
        heap
    }

    /// Brings the number at a place below all that are greater.
    fn sink(&mut self, mut at: usize) {
        loop {
            let mut greatest = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.0.len() && self.0[child] > self.0[greatest] {
                    greatest = child;
                }
            }
            if greatest == at {
                return;
            }
            self.0.swap(at, greatest);
            at = greatest;
        }
    }

    /// Takes out the greatest.
    pub(super) fn pop(&mut self) -> Option<u64> {
        let last = self.0.len().checked_sub(1)?;
        self.0.swap(0, last);
        let numbers = std::mem::take(&mut self.0);
        let (rest, greatest) = numbers.split_at_mut(last);
        self.0 = rest;
        self.sink(0);
        Some(greatest[0])
    }
}

/// Candidates that were kept, with their boxes.
pub(super) struct Kept<'a> {
    pub(super) candidates: &'a mut [u64],
    pub(super) boxes: &'a mut [Edges],
}

/// Keeps candidates, highest scores first, whose overlap with every one that was kept before is below
/// the threshold, as many as there is room for. Gives their number.
pub(super) fn suppress(
    candidates: &mut [u64],
    threshold: f32,
    box_of: impl Fn(usize) -> Edges,
    kept: &mut Kept<'_>,
    pace: &mut Pace<'_>,
) -> usize {
    let mut heap = Heap::new(candidates, pace);
    let mut count = 0;
    while count < kept.candidates.len() && !pace.is_over(OF_STEP * (count + 1)) {
        let Some(candidate) = heap.pop() else { break };
        let edges = box_of(parts(candidate).1);
        if kept.boxes[..count].iter().all(|other| overlap(edges, *other) < threshold) {
            kept.candidates[count] = candidate;
            kept.boxes[count] = edges;
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::Team;

    #[test]
    fn the_greatest_comes_first() {
        let mut random = fastrand::Rng::with_seed(3);
        for count in 0..40 {
            let mut numbers: Vec<u64> = (0..count).map(|_| random.u64(..20)).collect();
            let mut expected = numbers.clone();
            expected.sort_unstable_by(|a, b| b.cmp(a));
            let team = Team::alone();
            let mut heap = Heap::new(&mut numbers, &mut team.pace());
            assert_eq!(std::iter::from_fn(|| heap.pop()).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn equal_scores_are_in_their_order() {
        let mut candidates: Vec<u64> =
            [(0.5, 7), (0.5, 2), (0.75, 9), (0.25, 0)].map(|(s, n)| candidate(s, n)).to_vec();
        let mut heap = Heap::new(&mut candidates, &mut Team::alone().pace());
        let found: Vec<_> = std::iter::from_fn(|| heap.pop()).map(parts).collect();
        assert_eq!(found, [(0.75, 9), (0.5, 2), (0.5, 7), (0.25, 0)]);
    }

    #[test]
    fn what_overlaps_too_much_is_dropped() {
        let boxes = [[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.0], [5.0, 5.0, 6.0, 6.0]];
        for (threshold, expected) in [(0.5, [0, 2].as_slice()), (0.51, &[0, 1, 2])] {
            let mut candidates = [0, 1, 2]
                .map(|number: u16| candidate(1.0 - f32::from(number) / 8.0, number.into()));
            let mut kept = Kept { candidates: &mut [0; 3], boxes: &mut [[0.0; 4]; 3] };
            let count = {
                let box_of = |it: usize| boxes[it];
                let team = Team::alone();
                suppress(&mut candidates, threshold, box_of, &mut kept, &mut team.pace())
            };
            let found: Vec<_> = kept.candidates[..count].iter().map(|it| parts(*it).1).collect();
            assert_eq!(found, expected);
        }
    }
}
