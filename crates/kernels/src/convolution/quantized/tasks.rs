//! [`Tasks`]: into which tasks a convolution is cut.

use crate::convolution::Shape;
use crate::sharing::{even_tasks, tasks_worth};
use crate::team::part;
use std::ops::Range;

/// Operations that are worth a task of their own, and those that are worth sharing at all: a
/// microsecond, of which sharing takes a quarter.
pub(super) const OPERATIONS_PER_TASK: usize = 1_000_000;
const OPERATIONS_TO_SHARE: usize = 700_000;

/// Rows, which are pixels or lines of the output, and blocks of channels, both of which are cut into tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tasks {
    /// Of the rows.
    pub(super) pieces: usize,
    blocks: usize,
    order: Order,
    count: usize,
}

/// Which tasks follow each other, and so are the same thread's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Those of the same rows; each has a piece of them and one of this number of parts of the blocks.
    ByRows(usize),
    /// Those of the same blocks, so that each thread reads only a part of the weights: all pairs of a block and a piece
    /// of the rows are in this order, and each task has the same number of them.
    ByBlocks,
}

impl Tasks {
    /// Each task has one of the pieces of the rows and one of the parts of the blocks.
    pub(super) fn by_rows(pieces: usize, blocks: usize, block_pieces: usize) -> Self {
        let order = Order::ByRows(block_pieces);
        Self { pieces, blocks, order, count: pieces * block_pieces }
    }

    /// For this number of threads; rows are cut into at most this number of pieces. If weights are so much more than inputs
    /// that each thread should read only a part of them, `by_blocks` is how many blocks are worth a task.
    pub(super) fn new(
        shape: &Shape,
        [most_pieces, blocks]: [usize; 2],
        by_blocks: Option<usize>,
        threads: usize,
    ) -> Self {
        if threads <= 1 || most_pieces == 0 {
            return Self::by_rows(usize::from(most_pieces > 0), blocks, 1);
        }
        let tasks = worthwhile_tasks(shape, threads);
        match by_blocks {
            Some(least) if blocks >= threads && tasks >= threads => {
                // With these pieces, and this number of tasks, all threads have the same number of pairs.
                let is_even = |pieces: &usize| (blocks * pieces).is_multiple_of(threads);
                let pieces = (1..threads).find(is_even).unwrap_or(threads).min(most_pieces);
                let by_thread = blocks * pieces / threads;
                let most = (blocks / threads / least).min(tasks / threads).max(1);
                let each = (1..=most).rev().find(|each| by_thread.is_multiple_of(*each));
                let count = threads * each.unwrap_or(1);
                Self { pieces, blocks, order: Order::ByBlocks, count }
            }
            _ => {
                let pieces = tasks.min(even_tasks(most_pieces, threads, most_pieces));
                Self::by_rows(pieces, blocks, tasks.div_ceil(pieces).min(blocks))
            }
        }
    }

    /// How many there are.
    pub(super) fn count(self) -> usize {
        self.count
    }

    /// What a task has: pieces of the rows, each with blocks from and to.
    pub(super) fn parts(self, task: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        let pieces = match self.order {
            Order::ByRows(parts) => task / parts..task / parts + 1,
            Order::ByBlocks => 0..self.pieces,
        };
        pieces
            .map(move |piece| (piece, self.blocks(task, piece)))
            .filter(|(_, blocks)| !blocks.is_empty())
    }

    /// The blocks of a task for a piece of the rows.
    fn blocks(self, task: usize, piece: usize) -> Range<usize> {
        match self.order {
            Order::ByRows(parts) => part(self.blocks, parts, task % parts),
            Order::ByBlocks => {
                let pairs = part(self.blocks * self.pieces, self.count, task);
                let block = |pair: usize| pair.saturating_sub(piece).div_ceil(self.pieces);
                block(pairs.start)..block(pairs.end)
            }
        }
    }
}

/// How many tasks are worth it.
fn worthwhile_tasks(shape: &Shape, threads: usize) -> usize {
    let work = usize::try_from(shape.operations()).unwrap_or(usize::MAX);
    tasks_worth(work, [OPERATIONS_PER_TASK, OPERATIONS_TO_SHARE], threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Of a 1x1 filter over a square image.
    fn shape(side: usize, input_channels: usize, output_channels: usize) -> Shape {
        Shape {
            input: [side; 2],
            output: [side; 2],
            ..Shape::matrix_product([1, input_channels, output_channels])
        }
    }

    #[test]
    fn every_pair_is_one_task_s() {
        for (threads, blocks, most_pieces, by_blocks) in [
            (1, 7, 4, None),
            (2, 1, 4, Some(1)),
            (2, 7, 4, Some(4)),
            (2, 7, 1, Some(1)),
            (3, 20, 5, Some(1)),
            (4, 5, 3, Some(1)),
            (4, 5, 49, None),
        ] {
            let all =
                Tasks::new(&shape(8, 512, 64 * blocks), [most_pieces, blocks], by_blocks, threads);
            let mut pairs: Vec<_> = (0..all.count())
                .flat_map(|task| all.parts(task))
                .flat_map(|(piece, blocks)| blocks.map(move |block| (piece, block)))
                .collect();
            pairs.sort_unstable();
            let expected: Vec<_> = (0..all.pieces)
                .flat_map(|piece| (0..blocks).map(move |block| (piece, block)))
                .collect();
            assert_eq!(pairs, expected, "{threads} threads, {all:?}");
        }
    }

    #[test]
    fn each_thread_reads_its_part_of_the_weights() {
        // Inception's and ResNet's last images; blocks that the number of threads does not divide, and few of them.
        for (side, blocks, threads, most, tasks) in [
            (8, 6, 2, 3, [2, 6]),
            (8, 7, 2, 4, [2, 2]),
            (8, 5, 2, 3, [2, 2]),
            (7, 8, 2, 4, [2, 8]),
            (7, 2, 2, 1, [2, 2]),
            (7, 32, 4, 8, [8, 16]),
        ] {
            let shape = shape(side, 2048, 64 * blocks);
            for (least, tasks) in [4, 1].into_iter().zip(tasks) {
                let all = Tasks::new(&shape, [side * side / 16, blocks], Some(least), threads);
                assert_eq!(all.count(), tasks, "{blocks} blocks, {all:?}");
                for thread in 0..threads {
                    let read: BTreeSet<_> = part(tasks, threads, thread)
                        .flat_map(|task| all.parts(task))
                        .flat_map(|(_, blocks)| blocks)
                        .collect();
                    assert!(read.len() <= most, "thread {thread} of {all:?}: {read:?}");
                }
            }
        }
        let by_rows = Tasks::new(&shape(14, 1024, 256), [12, 4], None, 2);
        assert_eq!((by_rows.pieces, by_rows.count()), (8, 8));
    }
}
