//! [`Attention`]: `softmax(queries * keys^T * factor + mask) * values` of float32.

use crate::batch_matmul::float::{BatchMatmul, Layout};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::softmax::{Adjustment, Softmax};
use crate::{Epilogue, InstructionSet, Line, Team};
use std::ops::Range;

/// Bytes of scores that are computed before they are used: they stay in the second cache.
const SCORE_BYTES: usize = 512 << 10;

/// What a mask adds to a score that is to become nothing is at most this: such scores are lower than all others by so much that
/// their exponentials are 0, whatever they were.
const MASKED: f32 = -1e30;

/// With a lower beta they would not be.
const LEAST_BETA: f32 = 1e-20;

/// Parts of the keys: of the last ones, as many are left out as are masked for all queries.
const PARTS: usize = 16;

/// With more keys none are left out: looking at a row of a mask asks for no deadline.
const MOST_KEYS: usize = 1 << 20;

/// Prepared attentions. Some queries of one are computed at a time, so that their scores need not come from memory, or all queries of
/// all, if they are few; and without the last keys, if they are masked for all of these: the caches of a language model are longer
/// than what it has read.
///
/// Scores beyond `1e29` do not count where they are masked.
#[derive(Debug)]
pub struct Attention {
    /// Queries, and keys for each.
    sizes: [usize; 2],
    /// Of queries, keys, values and results.
    layouts: [Layout; 4],
    /// Where the mask of each query of each attention begins, as [`Adjustment`] has it.
    mask: Option<Vec<(usize, usize)>>,
    /// Attentions that are computed at a time: one, or all.
    together: usize,
    /// Some queries, and those that are left, if these are fewer.
    blocks: Vec<Block>,
}

/// Some queries of the attentions that are computed at a time.
#[derive(Debug)]
struct Block {
    /// Queries of each.
    rows: usize,
    /// With more and more keys; the last one with all.
    by_keys: Vec<Prefix>,
}

/// The attention to the first keys.
#[derive(Debug)]
struct Prefix {
    keys: usize,
    scores: BatchMatmul,
    softmax: Softmax,
    results: BatchMatmul,
}

/// How many of the first keys some queries attend to, whose rows of the mask are this far from each other; all keys, if one of
/// them attends to none.
fn attended(mask: &[f32], [rows, stride, keys]: [usize; 3]) -> usize {
    let is_attended = |added: &f32| *added > MASKED || added.is_nan();
    let mut most = 0;
    for row in 0..rows {
        let row = &mask[row * stride..][..keys];
        if let Some(last) = row[most..].iter().rposition(is_attended) {
            most += last + 1;
        } else if !row[..most].iter().any(is_attended) {
            return keys;
        }
    }
    most
}

impl Attention {
    /// Sizes are those of an attention: queries, keys, the depth of both, and the width of a value. The layouts are of
    /// queries `[queries, depth]`, keys `[depth, keys]`, values `[keys, width]` and results `[queries, width]`, in each an
    /// attention's matrix. The mask of an adjustment has a row for each query of each attention.
    ///
    /// # Panics
    /// If queries or results are transposed, numbers of matrices differ, results overlap, or the last axis of the mask is not
    /// the queries.
    pub fn prepare(
        [rows, keys, depth, width]: [usize; 4],
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
        let Adjustment { factor, mask } = adjustment;
        let of_rows = mask.as_ref().map(|axes| match axes.last() {
            Some((length, stride)) if *length == rows => *stride,
            _ => panic!("the mask has other rows"),
        });
        let most = (SCORE_BYTES / size_of::<f32>() / keys.max(1)).max(1);
        let (together, block) = match Self::are_few([count, rows, keys]) {
            true => (count.max(1), rows.max(1)),
            false => (1, rows.div_ceil(rows.div_ceil(most).max(1)).max(1)),
        };
        // One begins where it is run.
        let of_block = |layout: &Layout| match together {
            1 => Layout { starts: vec![0], ..layout.clone() },
            _ => layout.clone(),
        };
        let [of_queries, of_keys, of_values, of_results] =
            [0, 1, 2, 3].map(|it| of_block(&layouts[it]));
        let prefix = |rows, keys| {
            let mask = match together {
                1 => of_rows.map(|stride| vec![(rows, stride)]),
                _ => mask.clone(),
            };
            let softmax = Softmax::prepare(set, [together * rows, keys, 1], beta, false);
            let product =
                |sizes, layouts| BatchMatmul::prepare(sizes, layouts, Epilogue::NONE, set, threads);
            let of_scores = Layout::contiguous(together, [rows, keys], false);
            let of_product = [of_queries.clone(), of_keys.clone(), of_scores.clone()];
            Prefix {
                keys,
                scores: product([rows, keys, depth], of_product),
                softmax: softmax.adjusted(Adjustment { factor, mask }),
                results: product(
                    [rows, width, keys],
                    [of_scores, of_values.clone(), of_results.clone()],
                ),
            }
        };
        let part = keys.div_ceil(PARTS).next_multiple_of(64);
        let may_leave_out = mask.is_some() && beta >= LEAST_BETA && keys <= MOST_KEYS;
        let of_parts = (1..PARTS).map(|it| it * part).filter(|it| *it < keys && may_leave_out);
        let all: Vec<usize> = of_parts.chain([keys]).collect();
        let prepared = |rows| {
            let by_keys = all.iter().map(|keys| prefix(rows, *keys)).collect();
            Block { rows, by_keys }
        };
        let rest = rows % block;
        let blocks = [block, rest].into_iter().filter(|rows| *rows > 0).map(prepared).collect();
        Self { sizes: [rows, keys], layouts, mask, together, blocks }
    }

    /// Whether this many attentions have so few queries and keys that they are computed together.
    pub fn are_few([count, queries, keys]: [usize; 3]) -> bool {
        let values = count.checked_mul(queries).and_then(|it| it.checked_mul(keys));
        values.is_some_and(|values| values <= SCORE_BYTES / size_of::<f32>())
    }

    /// Values of a block's scores, which follow each other by lines.
    fn score_values(&self) -> usize {
        let rows = self.blocks.first().map_or(0, |it| it.rows);
        (self.together * rows * self.sizes[1]).next_multiple_of(16)
    }

    /// How many of the first keys a block needs, of these attentions, whose first query is this one.
    fn wanted(
        &self,
        block: &Block,
        products: Range<usize>,
        done: usize,
        (mask, looked_at): (&[f32], &mut Option<(usize, usize)>),
    ) -> usize {
        let [rows, columns] = self.sizes;
        if block.by_keys.len() < 2 {
            return columns;
        }
        let axes = self.mask.as_deref().unwrap_or_default();
        let stride = axes.last().map_or(0, |axis| axis.1);
        let of_product = |product: usize| {
            let start = Adjustment::start_of(axes, product * rows + done);
            // Mostly all attentions have one mask.
            match *looked_at {
                Some((before, wanted)) if before == start => wanted,
                _ => {
                    let wanted = attended(&mask[start..], [block.rows, stride, columns]);
                    looked_at.insert((start, wanted)).1
                }
            }
        };
        products.map(of_product).max().unwrap_or(columns)
    }

    /// Computes the results.
    ///
    /// # Panics
    /// If an operand, the output or the scratch memory is too small.
    pub fn run(
        &self,
        team: &mut Team,
        [queries, keys, values, mask]: [&[f32]; 4],
        output: &mut [f32],
        scratch: &mut [Line],
    ) {
        let rows = self.sizes[0];
        let [of_queries, of_keys, of_values, of_results] = &self.layouts;
        let lines = self.score_values() * size_of::<f32>() / size_of::<Line>();
        let (scores, scratch) = scratch.split_at_mut(lines);
        let (shares, scratch) = scratch.split_at_mut(lines);
        let scores: &mut [f32] = bytemuck::cast_slice_mut(scores);
        let shares: &mut [f32] = bytemuck::cast_slice_mut(shares);
        let axes = self.mask.as_deref().unwrap_or_default();
        let (count, together) = (of_results.starts.len(), self.together);
        let start = |layout: &Layout, product: usize| match together {
            1 => layout.starts[product],
            _ => 0,
        };
        let mut done = 0;
        while done < rows {
            let block = &self.blocks[usize::from(rows - done < self.blocks[0].rows)];
            let mut looked_at = None;
            for product in (0..count).step_by(together) {
                let products = product..product + together;
                let wanted = self.wanted(block, products, done, (mask, &mut looked_at));
                // The last one has all keys.
                let few = block.by_keys.partition_point(|it| it.keys < wanted);
                let prefix = &block.by_keys[few];
                let values_of_scores = together * block.rows * prefix.keys;
                let [scores, shares] =
                    [&mut *scores, &mut *shares].map(|it| &mut it[..values_of_scores]);
                let queries = &queries[start(of_queries, product) + done * of_queries.row_stride..];
                let keys = &keys[start(of_keys, product)..];
                prefix.scores.run(team, queries, keys, scores, scratch);
                let of_rows = Adjustment::start_of(axes, product * rows + done);
                prefix.softmax.run(team, scores, &mask[of_rows..], shares);
                let results = start(of_results, product) + done * of_results.row_stride;
                let values = &values[start(of_values, product)..];
                prefix.results.run(team, shares, values, &mut output[results..], scratch);
                if team.is_stopped() {
                    return;
                }
            }
            done += block.rows;
        }
    }
}

/// Inputs: what holds the queries, the keys and the values, and the mask, if there is one.
impl PreparedKernel for Attention {
    fn name(&self) -> String {
        let prefix = self.blocks.first().and_then(|it| it.by_keys.first());
        format!("attention {}", prefix.map_or("f32".to_owned(), |it| it.scores.kernel()))
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let scratch = bytemuck::cast_slice_mut(scratch);
        let inputs = [0, 1, 2, 3].map(|index| inputs.of(index));
        self.run(team, inputs, bytemuck::cast_slice_mut(output), scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        let prefixes = self.blocks.iter().flat_map(|it| &it.by_keys);
        let of_products = prefixes.flat_map(|it| [&it.scores, &it.results]);
        let of_products = of_products.map(PreparedKernel::scratch_bytes).max().unwrap_or_default();
        2 * self.score_values() * size_of::<f32>() + of_products.next_multiple_of(size_of::<Line>())
    }

    fn arithmetic(&self) -> u64 {
        let Some(block) = self.blocks.first() else { return 0 };
        let of_products =
            block.by_keys.last().map(|it| [it.scores.arithmetic(), it.results.arithmetic()]);
        let of_block = of_products.map_or(0, |[scores, results]| scores.saturating_add(results));
        let rows = (self.sizes[0] * self.layouts[3].starts.len()) as u64;
        of_block.saturating_mul(rows) / (self.together * block.rows) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lines;
    use crate::convolution::float::tests::numbers;

    /// Compares all instruction sets with the definition in 64 bits. Attentions have one mask or each its own.
    fn check([count, rows, keys, depth, width]: [usize; 5], mask: Option<f32>, threads: usize) {
        for masks in if mask.is_some() { vec![1, count] } else { vec![1] } {
            check_masks([count, rows, keys, depth, width], (mask, masks), threads);
        }
    }

    fn check_masks(
        [count, rows, keys, depth, width]: [usize; 5],
        (mask, masks): (Option<f32>, usize),
        threads: usize,
    ) {
        let (has_mask, masked) = (mask.is_some(), mask.unwrap_or_default());
        // Heads are beside each other, keys are stored as `[keys, heads, depth]`, and the first two heads share theirs.
        let heads = |row: usize, transposed, is_shared: bool| Layout {
            starts: (0..count)
                .map(|head| if is_shared { head / 2 * row } else { head * row })
                .collect(),
            row_stride: count * row,
            transposed,
        };
        let layouts = [
            heads(depth, false, false),
            heads(depth, true, true),
            heads(width, false, true),
            heads(width, false, false),
        ];
        let small = |seed, length| {
            numbers(seed, length).into_iter().map(|it| it / 8.0).collect::<Vec<f32>>()
        };
        let queries = small(1, rows * count * depth);
        let of_keys = small(2, keys * count * depth);
        let values = small(3, keys * count * width);
        let mut mask = if has_mask { small(4, masks * rows * keys) } else { Vec::new() };
        // Each query attends to one more, each attention to more, and the last query of the last one to all.
        for (row, of_row) in mask.chunks_mut(keys).enumerate().take(masks * rows - 1) {
            let of_attention = row / rows * (keys / 3 / masks);
            let first = row % rows + keys / 3 + of_attention;
            of_row.iter_mut().skip(first).for_each(|it| *it = masked);
        }
        let of_attention = if masks > 1 { rows * keys } else { 0 };
        let axes = has_mask.then(|| vec![(count, of_attention), (rows, keys)]);
        for set in InstructionSet::available() {
            let adjustment = Adjustment { factor: 0.5, mask: axes.clone() };
            let kernel = Attention::prepare(
                [rows, keys, depth, width],
                layouts.clone(),
                1.0,
                adjustment,
                set,
                threads,
            );
            let mut found = vec![-77.0; rows * count * width];
            let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
            let inputs = [&queries[..], &of_keys, &values, &mask];
            kernel.run(&mut Team::new(threads), inputs, &mut found, scratch.lines_mut());
            for (head, row) in (0..count).flat_map(|head| (0..rows).map(move |row| (head, row))) {
                let scores: Vec<f64> = (0..keys)
                    .map(|key| {
                        let sum: f64 = (0..depth)
                            .map(|at| {
                                let query =
                                    queries[layouts[0].starts[head] + row * count * depth + at];
                                let key =
                                    of_keys[layouts[1].starts[head] + key * count * depth + at];
                                f64::from(query) * f64::from(key)
                            })
                            .sum();
                        let at = head * of_attention + row * keys + key;
                        sum * 0.5 + mask.get(at).map_or(0.0, |it| f64::from(*it))
                    })
                    .collect();
                let greatest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let powers: Vec<f64> = scores.iter().map(|it| (it - greatest).exp()).collect();
                let sum: f64 = powers.iter().sum();
                for column in 0..width {
                    let value = |key: usize| {
                        f64::from(values[layouts[2].starts[head] + key * count * width + column])
                    };
                    let expected: f64 = powers
                        .iter()
                        .enumerate()
                        .map(|(key, power)| power / sum * value(key))
                        .sum();
                    let found =
                        f64::from(found[layouts[3].starts[head] + row * count * width + column]);
                    assert!(
                        (found - expected).abs() < 1e-4,
                        "{}: {found}, expected {expected}",
                        kernel.name()
                    );
                }
            }
        }
    }

    #[test]
    fn an_attention_is_its_definition() {
        for mask in [None, Some(0.5), Some(f32::MIN), Some(f32::NEG_INFINITY)] {
            check([4, 5, 7, 8, 3], mask, 2);
            check([1, 1, 1, 1, 1], mask, 1);
        }
    }

    #[test]
    fn one_attention_begins_where_its_operands_do() {
        let mut layouts =
            [[1, 1], [1, 3], [3, 1], [1, 1]].map(|it| Layout::contiguous(1, it, false));
        for (start, layout) in [1, 2, 1, 1].into_iter().zip(&mut layouts) {
            layout.starts = vec![start];
        }
        let (queries, keys) = ([f32::NAN, 0.0], [f32::NAN, f32::NAN, 1.0, 2.0, 3.0]);
        let values = [f32::NAN, 3.0, 6.0, 9.0];
        for set in InstructionSet::available() {
            let adjustment = Adjustment { factor: 1.0, mask: None };
            let kernel = Attention::prepare([1, 3, 1, 1], layouts.clone(), 1.0, adjustment, set, 1);
            let (mut found, mut scratch) = ([7.0; 2], Lines::with_bytes(kernel.scratch_bytes()));
            let inputs = [&queries[..], &keys, &values, &[]];
            kernel.run(&mut Team::new(1), inputs, &mut found, scratch.lines_mut());
            assert!(found[0] == 7.0 && (found[1] - 6.0).abs() < 1e-5, "{found:?} with {set}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too long")]
    fn attentions_are_computed_together_or_one_after_the_other() {
        for sizes in [[6, 1, 900, 4, 5], [4, 3, 700, 3, 2], [4, 40, 1000, 4, 3]] {
            assert_eq!(Attention::are_few([sizes[0], sizes[1], sizes[2]]), sizes[1] < 40);
            check(sizes, Some(f32::NEG_INFINITY), 2);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too long")]
    fn queries_of_several_blocks_and_of_a_last_one_are_all_there() {
        // 131 KB of keys for each query: three blocks of 3 and one of 2.
        check([2, 11, 32_768 + 5, 2, 2], Some(f32::NEG_INFINITY), 2);
    }

    #[test]
    fn keys_that_are_masked_for_all_queries_are_not_looked_at() {
        let masked = f32::NEG_INFINITY;
        assert_eq!(attended(&[0.0, masked, masked, 0.0, 0.0, f32::MIN], [2, 3, 3]), 2);
        assert_eq!(attended(&[0.0, f32::NAN, masked], [1, 3, 3]), 2);
        assert_eq!(attended(&[0.0, -1e9, masked], [1, 3, 3]), 2, "a score may be lower than that");
        assert_eq!(attended(&[0.0, masked, masked, masked], [2, 2, 2]), 2, "one attends to none");
        // What is behind them is not even read.
        let layouts =
            [[1, 2], [2, 256], [256, 2], [1, 2]].map(|it| Layout::contiguous(1, it, false));
        let mut mask = [0.0; 256];
        mask[3..].fill(masked);
        let mut keys = [1.0; 512];
        let mut values = [f32::NAN; 512];
        keys[256 - 100..256].fill(f32::NAN);
        values[..128].fill(7.0);
        for set in InstructionSet::available() {
            let adjustment = Adjustment { factor: 1.0, mask: Some(vec![(1, 256)]) };
            let kernel =
                Attention::prepare([1, 256, 2, 2], layouts.clone(), 1.0, adjustment, set, 1);
            let (mut found, mut scratch) = ([0.0; 2], Lines::with_bytes(kernel.scratch_bytes()));
            let inputs = [&[1.0, 2.0][..], &keys, &values, &mask];
            kernel.run(&mut Team::new(1), inputs, &mut found, scratch.lines_mut());
            assert!(found.iter().all(|it| (it - 7.0).abs() < 1e-5), "{found:?} with {set}");
        }
    }

    #[test]
    fn a_beta_with_which_masked_keys_count_has_them_looked_at() {
        // The first half of 256 keys is not masked, of the others the exponentials are e^-1.
        let mut mask = [0.0; 256];
        mask[128..].fill(-1e30);
        let mut values = [1.0; 256];
        values[128..].fill(2.0);
        let layouts =
            [[1, 1], [1, 256], [256, 1], [1, 1]].map(|it| Layout::contiguous(1, it, false));
        let expected = (1.0 + 2.0 * (-1.0_f32).exp()) / (1.0 + (-1.0_f32).exp());
        for set in InstructionSet::available() {
            let adjustment = Adjustment { factor: 1.0, mask: Some(vec![(1, 256)]) };
            let kernel =
                Attention::prepare([1, 256, 1, 1], layouts.clone(), 1e-30, adjustment, set, 1);
            let (mut found, mut scratch) = ([0.0], Lines::with_bytes(kernel.scratch_bytes()));
            let inputs = [&[0.0][..], &[0.0; 256], &values, &mask];
            kernel.run(&mut Team::new(1), inputs, &mut found, scratch.lines_mut());
            assert!(
                (found[0] - expected).abs() < 1e-5,
                "{found:?}, expected {expected} with {set}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "the mask has other rows")]
    fn a_mask_of_other_rows_is_refused() {
        let layouts = [(); 4].map(|()| Layout::contiguous(1, [2, 2], false));
        let adjustment = Adjustment { factor: 1.0, mask: Some(vec![(3, 2)]) };
        Attention::prepare([2; 4], layouts, 1.0, adjustment, InstructionSet::Portable, 1);
    }
}
