//! [`Attention`]: `softmax(queries * keys^T * factor + mask) * values` of float32.
#![allow(unsafe_code)]

mod block;
mod mask;
mod powers;
#[cfg(test)]
mod tests;

use crate::batch_matmul::float::{Layout, check_disjoint};
use crate::disjoint::DisjointOutput;
use crate::gemm::float::Blocking;
use crate::prepared::{Operands, PreparedKernel, WrongValue, multiply_adds};
use crate::sharing::{affordable_tasks, for_each_task, shared_tasks};
use crate::softmax::Adjustment;
use crate::team::{Pace, Stop, part};
use crate::vector::Isa;
use crate::{InstructionSet, LINE_BYTES, Line, Team};
use block::{Worker, combine};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of scores that are computed before they are used: they stay in the second cache, beside the values.
const SCORE_BYTES: usize = 256 << 10;

/// Of more attentions than have this many bytes of scores, each is computed for itself.
const FEW_BYTES: usize = 512 << 10;

/// With a lower beta, exponentials of scores that are masked would not be 0.
const LEAST_BETA: f32 = 1e-20;

/// With more keys none are left out: looking at a row of a mask asks for no deadline.
const MOST_KEYS: usize = 1 << 20;

/// Keys of a part of them: with fewer, putting parts together takes long beside them.
const LEAST_KEYS: usize = 128;

/// A thread should have a few microseconds of work at least.
const LEAST_PRODUCTS: usize = 500_000;

/// Bytes of operands beside which no one minds scratch memory of a few megabytes.
const SMALL_OPERANDS: usize = 1 << 20;

/// Values of a cache line.
const LINE: usize = LINE_BYTES / size_of::<f32>();

/// Values of a row that begins where the row before it does in the first cache.
const PAGE: usize = 4096 / size_of::<f32>();

/// Prepared attentions. Blocks of queries are computed one after the other, each by one thread, so that their scores do not leave
/// its caches, with the keys and values packed once for all blocks; where there are not as many blocks as threads, the keys are
/// shared out too. The last keys are left out if they are masked for all queries of a block: the caches of a language model are
/// longer than what it has read.
///
/// Scores beyond `1e29` do not count where they are masked.
#[derive(Debug)]
pub struct Attention {
    sizes: Sizes,
    /// Of queries, keys, values and results.
    layouts: [Layout; 4],
    beta: f32,
    adjustment: Adjustment,
    set: InstructionSet,
    isa: Isa,
    blocking: Blocking,
    /// Attentions that follow each other and have the same keys and values: a group, whose queries are computed together.
    shared: usize,
    /// Into which the queries of a group are cut.
    blocks: usize,
    /// Into which the keys that a block attends to are cut.
    key_parts: usize,
    /// Threads that compute, each with memory of its own.
    workers: usize,
}

/// Of an attention.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    queries: usize,
    keys: usize,
    /// Of a query and a key.
    depth: usize,
    /// Of a value.
    width: usize,
}

/// How many attentions that follow each other have the same matrices, as long as all of them come in such groups.
fn shared(layouts: [&Layout; 2]) -> usize {
    let of = |layout: &Layout| {
        let first = layout.starts.first();
        layout.starts.iter().take_while(|start| Some(*start) == first).count()
    };
    let shared = of(layouts[0]).min(of(layouts[1])).max(1);
    let are_all = layouts.iter().all(|layout| {
        layout.starts.len().is_multiple_of(shared)
            && layout.starts.chunks(shared).all(|it| it.iter().all(|start| *start == it[0]))
    });
    if are_all { shared } else { 1 }
}

impl Attention {
    /// Sizes are those of an attention: queries, keys, the depth of both, and the width of a value. The layouts are of
    /// queries `[queries, depth]`, keys `[depth, keys]`, values `[keys, width]` and results `[queries, width]`, in each an
    /// attention's matrix. The mask of an adjustment has a row for each query of each attention.
    ///
    /// # Panics
    /// If queries or results are transposed, numbers of matrices differ, results overlap, the last axis of the mask is not
    /// the queries, or there is no key.
    pub fn prepare(
        [queries, keys, depth, width]: [usize; 4],
        layouts: [Layout; 4],
        beta: f32,
        adjustment: Adjustment,
        set: InstructionSet,
        threads: usize,
    ) -> Self {
        let count = layouts[3].starts.len();
        for layout in &layouts {
            assert_eq!(layout.starts.len(), count, "matrices of an operand");
        }
        assert!(!layouts[0].transposed && !layouts[3].transposed, "transposed queries or results");
        check_disjoint(&layouts[3], [queries, width, depth]);
        if let Some(axes) = &adjustment.mask {
            assert!(axes.last().is_some_and(|it| it.0 == queries), "the mask has other rows");
        }
        assert!(keys > 0, "no keys");
        let blocking = Blocking::of(set);
        let shared = shared([&layouts[1], &layouts[2]]);
        let (groups, rows) = (count / shared, shared.saturating_mul(queries));
        let products = [count, queries, keys, depth.saturating_add(width)];
        let products = products.into_iter().fold(1, usize::saturating_mul);
        let workers = shared_tasks(products, LEAST_PRODUCTS, threads).min(threads).max(1);
        let most = SCORE_BYTES / size_of::<f32>() / keys;
        // Whole tiles of rows, if they are not fewer than that.
        let most = if most < blocking.rows { most.max(1) } else { most - most % blocking.rows };
        let least = rows.div_ceil(most).max(1);
        let is_even =
            |items: usize| items.is_multiple_of(workers) || items >= workers.saturating_mul(4);
        let of_blocks = |blocks: usize| groups.saturating_mul(blocks);
        let even = (least..=(rows / blocking.rows).max(least)).take(workers);
        let blocks = even.clone().find(|blocks| is_even(of_blocks(*blocks))).unwrap_or(least);
        let parts = (1..=keys.div_ceil(LEAST_KEYS)).take(4 * workers);
        let key_parts = parts.clone().find(|it| is_even(of_blocks(blocks).saturating_mul(*it)));
        let sizes = Sizes { queries, keys, depth, width };
        Self {
            sizes,
            layouts,
            beta,
            adjustment,
            set,
            isa: Isa::of(set),
            blocking,
            shared,
            blocks,
            key_parts: key_parts.unwrap_or(1),
            workers,
        }
        .with_affordable_scratch()
    }

    /// The same by so few threads that their scratch memory is not much more than the operands.
    fn with_affordable_scratch(mut self) -> Self {
        let bytes = |values: usize| values.saturating_mul(size_of::<f32>());
        let Sizes { queries, keys, depth, width } = self.sizes;
        let of_group = self.shared.saturating_mul(queries).saturating_add(keys);
        let operands = of_group.saturating_mul(depth.saturating_add(width));
        let operands = bytes(operands.saturating_mul(self.groups())).max(SMALL_OPERANDS);
        self.workers = affordable_tasks(self.workers, bytes(self.worker_values()), operands);
        self
    }

    /// Whether this many attentions have so few queries and keys that all of their scores stay in the caches.
    pub fn are_few([count, queries, keys]: [usize; 3]) -> bool {
        let values = count.checked_mul(queries).and_then(|it| it.checked_mul(keys));
        values.is_some_and(|values| values <= FEW_BYTES / size_of::<f32>())
    }

    /// Whether keys that are masked for all queries of a block are not looked at.
    fn may_leave_out(&self) -> bool {
        self.beta >= LEAST_BETA && self.sizes.keys <= MOST_KEYS
    }

    fn groups(&self) -> usize {
        self.layouts[3].starts.len() / self.shared
    }

    /// Queries of a group.
    fn rows(&self) -> usize {
        self.shared * self.sizes.queries
    }

    /// The queries of a block, counted through its group.
    fn block(&self, block: usize) -> Range<usize> {
        part(self.rows(), self.blocks, block)
    }

    /// Most queries of a block.
    fn most_rows(&self) -> usize {
        self.rows().div_ceil(self.blocks)
    }

    /// Most keys of a part.
    fn most_keys(&self) -> usize {
        self.sizes.keys.div_ceil(self.key_parts)
    }

    /// From the scores of a query to those of the next one.
    fn score_stride(&self) -> usize {
        let stride = self.most_keys().next_multiple_of(LINE);
        if stride.is_multiple_of(PAGE) { stride + LINE } else { stride }
    }

    /// Width of a value in whole vectors.
    fn padded_width(&self) -> usize {
        self.sizes.width.next_multiple_of(self.blocking.lanes)
    }

    /// Values of what a worker has in its memory: packed keys and values, copies of queries, scores, and results.
    fn memory(&self) -> [usize; 5] {
        let Sizes { depth, .. } = self.sizes;
        let (keys, panel) = (self.most_keys(), self.blocking.columns());
        let packed = if self.blocks == 1 { panel } else { keys.next_multiple_of(panel) };
        let of = |factors: [usize; 2]| {
            factors[0].saturating_mul(factors[1]).checked_next_multiple_of(LINE)
        };
        [
            of([packed, depth.saturating_add(1)]),
            of([keys.saturating_add(1), self.padded_width()]),
            of([self.most_rows(), depth]),
            of([self.most_rows(), self.score_stride()]),
            // With the greatest score and the sum of the exponentials.
            of([self.most_rows(), self.padded_width().saturating_add(2)]),
        ]
        .map(|values| values.unwrap_or(usize::MAX))
    }

    /// Values of scratch memory of a worker.
    fn worker_values(&self) -> usize {
        self.memory().into_iter().fold(0, usize::saturating_add)
    }

    /// Values of the results of a block with a part of the keys.
    fn result_values(&self) -> usize {
        self.memory()[4]
    }

    /// Blocks of all groups.
    fn all_blocks(&self) -> usize {
        self.groups() * self.blocks
    }

    /// Values of all results of parts of the keys, if there are several.
    fn partial_values(&self) -> usize {
        match self.key_parts {
            1 => 0,
            parts => self.all_blocks().saturating_mul(parts).saturating_mul(self.result_values()),
        }
    }

    /// Computes the results.
    ///
    /// # Panics
    /// If an operand, the output or the scratch memory is too small.
    pub fn run(
        &self,
        team: &mut Team,
        operands: [&[f32]; 4],
        output: &mut [f32],
        scratch: &mut [Line],
    ) {
        if self.rows() == 0 {
            return;
        }
        let each = self.worker_values();
        let scratch: &mut [f32] = bytemuck::cast_slice_mut(scratch);
        assert!(size_of_val(scratch) >= self.scratch_bytes(), "too little scratch memory");
        let (memory, partials) = scratch.split_at_mut(self.workers * each);
        let (partials, output) = (DisjointOutput::new(partials), DisjointOutput::new(output));
        let Self { blocks, key_parts, .. } = *self;
        let (items, values) = (self.all_blocks() * key_parts, self.result_values());
        let next = AtomicUsize::new(0);
        for_each_task(team, self.workers, (memory, each), |_, memory, stop: &Stop| {
            let mut worker = Worker::new(self, operands, memory, Pace::new(stop));
            loop {
                // The blocks of a group follow each other, for which its keys and values are packed.
                let item = next.fetch_add(1, Ordering::Relaxed);
                if item >= items {
                    return;
                }
                let (of_group, block) = (item / blocks, item % blocks);
                let (group, key_part) = (of_group / key_parts, of_group % key_parts);
                if key_parts == 1 {
                    worker.compute([group, block, key_part], None);
                    // SAFETY: no one else has this block.
                    unsafe { combine(self, [group, block], worker.results(), &output) };
                } else {
                    let at = (group * blocks + block) * key_parts + key_part;
                    // SAFETY: no one else has this block with this part of the keys.
                    let results = unsafe { partials.slice(at * values, values) };
                    worker.compute([group, block, key_part], Some(results));
                }
                if worker.is_over() {
                    return;
                }
            }
        });
        if key_parts == 1 {
            return;
        }
        team.run_long(self.all_blocks(), &|block, _| {
            let values = key_parts * values;
            // SAFETY: those who wrote it are done, and no one else has this block.
            unsafe {
                let partials = partials.slice(block * values, values);
                combine(self, [block / blocks, block % blocks], partials, &output);
            }
        });
    }
}

/// Inputs: what holds the queries, the keys and the values, and the mask, if there is one.
impl PreparedKernel for Attention {
    fn name(&self) -> String {
        format!("attention gemm f32 {}", self.set)
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let scratch = bytemuck::cast_slice_mut(scratch);
        let inputs = [0, 1, 2, 3].map(|index| inputs.of(index));
        self.run(team, inputs, bytemuck::cast_slice_mut(output), scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        let values = self.workers.saturating_mul(self.worker_values());
        values.saturating_add(self.partial_values()).saturating_mul(size_of::<f32>())
    }

    fn arithmetic(&self) -> u64 {
        let Sizes { queries, keys, depth, width } = self.sizes;
        multiply_adds(&[self.layouts[3].starts.len(), queries, keys, depth + width])
    }
}
