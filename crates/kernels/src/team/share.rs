//! [`Share`]: the tasks of a round that are one thread's, as long as no one takes them from it.

use super::sync::{AtomicU64, Ordering};
use std::ops::Range;

/// The range that is one of this many even parts of `0..length`.
pub(crate) fn part(length: usize, parts: usize, index: usize) -> Range<usize> {
    if parts == 1 && index == 0 {
        // The five divisions below take longer than some kernels.
        return 0..length;
    }
    // Without a product of the length, which may be any. That of two numbers of parts is small: nothing
    // is cut into 2^32.
    let (quotient, remainder) = (length / parts, length % parts);
    let start = |index: usize| quotient * index + remainder * index / parts;
    start(index)..start(index + 1)
}

/// Most tasks of a round; they are numbered by 16 bits.
pub(super) const MOST_TASKS: usize = 0xFFFF;

/// The number of a round with how many tasks it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    pub(super) number: u32,
    /// At most [`MOST_TASKS`].
    pub(super) tasks: usize,
}

/// Which of a share's tasks no one has begun yet: the number of a round, the first task, and the one
/// behind the last. A word of an older round means: all of them. So no one has to write what each
/// thread's share is before a round begins.
#[derive(Debug)]
pub(super) struct Share(AtomicU64);

/// From which end of a share a task is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

impl Share {
    /// Of no round yet; they are counted from 1 on.
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes a task of the share that is number `index` of `shares`; `None` if there is none left,
    /// or the round is over. A task that was taken keeps its round from ending: whoever has it sees
    /// what was written before the round was announced, and is seen by whoever finds it gone.
    pub(super) fn take(
        &self,
        round: Round,
        (index, shares): (usize, usize),
        end: End,
    ) -> Option<usize> {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let (number, first, behind) = unpack(word);
            if number > round.number {
                return None;
            }
            let left = if number == round.number {
                first..behind
            } else {
                part(round.tasks, shares, index)
            };
            if left.is_empty() {
                return None;
            }
            let (task, first, behind) = match end {
                End::First => (left.start, left.start + 1, left.end),
                End::Last => (left.end - 1, left.start, left.end - 1),
            };
            let taken = pack(round.number, first, behind);
            // Release, so that whoever finds the task gone may write what only its round's tasks
            // read.
            let exchanged =
                self.0.compare_exchange_weak(word, taken, Ordering::AcqRel, Ordering::Acquire);
            match exchanged {
                Ok(_) => return Some(task),
                Err(now) => word = now,
            }
        }
    }
}

fn pack(number: u32, first: usize, behind: usize) -> u64 {
    u64::from(number) << 32 | (first as u64) << 16 | behind as u64
}

#[allow(clippy::cast_possible_truncation)] // Parts of the word.
fn unpack(word: u64) -> (u32, usize, usize) {
    ((word >> 32) as u32, (word >> 16) as usize & MOST_TASKS, word as usize & MOST_TASKS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn both_ends_meet_and_older_rounds_are_over() {
        let share = Share::new();
        let round = |number| Round { number, tasks: 10 };
        let take = |number, end| share.take(round(number), (1, 2), end);
        assert_eq!(take(1, End::First), Some(5));
        assert_eq!(take(1, End::Last), Some(9));
        // No one came for what was left; a new round has all tasks again.
        assert_eq!(take(3, End::Last), Some(9));
        assert_eq!(take(2, End::First), None);
        assert_eq!([(); 4].map(|()| take(3, End::First)), [Some(5), Some(6), Some(7), Some(8)]);
        assert_eq!((take(3, End::First), take(3, End::Last)), (None, None));
    }

    #[test]
    fn the_largest_numbers_fit() {
        let share = Share::new();
        let round = Round { number: u32::MAX, tasks: MOST_TASKS };
        assert_eq!(share.take(round, (0, 1), End::Last), Some(MOST_TASKS - 1));
        assert_eq!(share.take(round, (0, 1), End::First), Some(0));
        assert_eq!(share.take(round, (0, 1), End::First), Some(1));
    }
}
