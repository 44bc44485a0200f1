//! [`Tasks`]: into which tasks a convolution is cut.

use crate::convolution::Shape;
use crate::parts::even_tasks;

/// Operations that are worth a task of their own, and those that are worth sharing at all: a
/// microsecond, of which sharing takes a quarter.
pub(super) const OPERATIONS_PER_TASK: u64 = 1_000_000;
const OPERATIONS_TO_SHARE: u64 = 700_000;

/// Tasks for each thread, so that all end at about the same time.
pub(super) const TASKS_PER_THREAD: usize = 4;

/// The number `index` of `pieces` nearly equal parts of `total`, from and to.
pub(super) fn part(total: usize, pieces: usize, index: usize) -> (usize, usize) {
    // Sizes of images are below 2^63, and there are few pieces; the products are of two factors.
    let (whole, rest) = (total / pieces, total % pieces);
    let begin = |index: usize| whole * index + rest.min(index);
    (begin(index), begin(index + 1))
}

/// Each task has a part of the rows, which are pixels or lines of the output, and one of the blocks of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tasks {
    /// Of the rows.
    pub(super) pieces: usize,
    /// Of the blocks.
    pub(super) block_pieces: usize,
    /// Whether tasks of the same blocks follow each other, and not those of the same rows: a thread, whose tasks follow
    /// each other, then reads only a part of the weights.
    pub(super) is_by_block: bool,
}

impl Tasks {
    /// For this number of threads; rows are cut into at most this number of pieces. `is_by_block` is whether weights are so much more than inputs that each thread should
    /// read only a part of them.
    pub(super) fn new(
        shape: &Shape,
        [most_pieces, blocks]: [usize; 2],
        is_by_block: bool,
        threads: usize,
    ) -> Self {
        if threads <= 1 || most_pieces == 0 {
            let pieces = usize::from(most_pieces > 0);
            return Self { pieces, block_pieces: 1, is_by_block: false };
        }
        let tasks = worthwhile_tasks(shape, threads);
        if is_by_block && blocks >= threads {
            let block_pieces = tasks.min(blocks);
            // The same number of tasks for each thread.
            let is_even = |pieces: &usize| (block_pieces * pieces).is_multiple_of(threads);
            let mut pieces = (1..threads).find(is_even).unwrap_or(threads);
            while 2 * pieces * block_pieces <= tasks {
                pieces *= 2;
            }
            let pieces = if tasks < threads { 1 } else { pieces.min(most_pieces) };
            Self { pieces, block_pieces, is_by_block: true }
        } else {
            let pieces = tasks.min(even_tasks(most_pieces, threads, most_pieces));
            let block_pieces = tasks.div_ceil(pieces).min(blocks);
            Self { pieces, block_pieces, is_by_block: false }
        }
    }

    /// How many there are.
    pub(super) fn count(self) -> usize {
        self.pieces * self.block_pieces
    }

    /// Which piece of the rows and which of the blocks a task has.
    pub(super) fn of(self, task: usize) -> (usize, usize) {
        if self.is_by_block {
            (task % self.pieces, task / self.pieces)
        } else {
            (task / self.block_pieces, task % self.block_pieces)
        }
    }
}

/// How many tasks are worth it.
fn worthwhile_tasks(shape: &Shape, threads: usize) -> usize {
    let worth = shape.operations() / OPERATIONS_PER_TASK;
    let worth = usize::try_from(worth).unwrap_or(usize::MAX);
    let least = if shape.operations() < OPERATIONS_TO_SHARE { 1 } else { threads };
    even_tasks(worth.max(least), threads, TASKS_PER_THREAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a 1x1 filter over a square image.
    fn shape(side: usize, input_channels: usize, output_channels: usize) -> Shape {
        Shape {
            batch: 1,
            input: [side; 2],
            input_channels,
            output: [side; 2],
            output_channels,
            filter: [1; 2],
            stride: [1; 2],
            dilation: [1; 2],
            padding_before: [0; 2],
            groups: 1,
        }
    }

    #[test]
    fn every_piece_is_one_task_s() {
        for (threads, blocks, side) in [(1, 7, 8), (2, 1, 8), (2, 7, 8), (3, 20, 9), (4, 5, 28)] {
            let shape = shape(side, 512, 64 * blocks);
            let all = Tasks::new(&shape, [side * side / 16, blocks], true, threads);
            let mut pieces: Vec<_> = (0..all.count()).map(|task| all.of(task)).collect();
            pieces.sort_unstable();
            let expected: Vec<_> = (0..all.pieces)
                .flat_map(|piece| (0..all.block_pieces).map(move |block| (piece, block)))
                .collect();
            assert_eq!(pieces, expected, "{threads} threads, {blocks} blocks, {all:?}");
        }
    }

    #[test]
    fn of_few_rows_each_thread_reads_its_part_of_the_weights() {
        // Inception's and ResNet's last images; blocks that the number of threads does not divide, and few of them.
        for (side, blocks, threads, most) in
            [(8, 6, 2, 3), (8, 7, 2, 4), (8, 5, 2, 3), (7, 8, 2, 4), (7, 2, 2, 1), (7, 32, 4, 8)]
        {
            let shape = shape(side, 2048, 64 * blocks);
            let all = Tasks::new(&shape, [side * side / 16, blocks], true, threads);
            assert!(all.is_by_block && all.count().is_multiple_of(threads), "{all:?}");
            for thread in 0..threads {
                let tasks = crate::team::part(all.count(), threads, thread);
                let read: std::collections::BTreeSet<_> = tasks
                    .flat_map(|task| {
                        let (first, end) = part(blocks, all.block_pieces, all.of(task).1);
                        first..end
                    })
                    .collect();
                assert!(read.len() <= most, "{blocks} blocks, thread {thread}: {read:?}");
            }
        }
        let many_rows = Tasks::new(&shape(14, 1024, 256), [12, 4], false, 2);
        assert!(!many_rows.is_by_block && many_rows.block_pieces == 1, "{many_rows:?}");
    }
}
