//! [`Worker`]: what one thread does of an attention, block by block.
#![allow(unsafe_code)]

use super::mask::attended;
use super::powers::{Powers, Scaled};
use super::{Attention, Sizes};
use crate::batch_matmul::float::Layout;
use crate::disjoint::DisjointOutput;
use crate::gemm::float::matrix::Matrix;
use crate::gemm::float::{Blocking, Epilogue, Target, Tile, pack, run_tile};
use crate::softmax::Adjustment;
use crate::team::{Pace, part};
use std::ops::Range;

/// A thread that computes blocks of an attention.
pub(super) struct Worker<'a> {
    attention: &'a Attention,
    /// Queries, keys, values and the mask.
    operands: [&'a [f32]; 4],
    memory: Memory<'a>,
    packed: Packed,
    /// Where the mask of the block that was looked at last begins, how many queries it has, and how many keys these attend to.
    looked_at: Option<([usize; 2], usize)>,
    pace: Pace<'a>,
}

/// Whose keys and values are packed.
struct Packed {
    group: usize,
    /// The first key.
    first: usize,
    /// How many.
    count: usize,
}

/// See [`Attention::memory`].
struct Memory<'a> {
    /// By panel of keys: biases, and a row for each value of their depth.
    keys: &'a mut [f32],
    /// By panel of columns: biases, and a row for each key.
    values: &'a mut [f32],
    queries: &'a mut [f32],
    scores: &'a mut [f32],
    results: &'a mut [f32],
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        attention: &'a Attention,
        operands: [&'a [f32]; 4],
        memory: &'a mut [f32],
        pace: Pace<'a>,
    ) -> Self {
        let mut rest = memory;
        let parts = attention.memory().map(|values| {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(values);
            rest = behind;
            part
        });
        let [keys, values, queries, scores, results] = parts;
        Self {
            attention,
            operands,
            memory: Memory { keys, values, queries, scores, results },
            packed: Packed { group: usize::MAX, first: 0, count: 0 },
            looked_at: None,
            pace,
        }
    }

    /// Whether to stop.
    pub(super) fn is_over(&mut self) -> bool {
        self.pace.is_over(1)
    }

    /// The results of the block that was computed last.
    pub(super) fn results(&self) -> &[f32] {
        self.memory.results
    }

    /// Computes the results of a block of a group with a part of the keys, in the memory that is given, or in that of the worker.
    pub(super) fn compute(
        &mut self,
        [group, block, key_part]: [usize; 3],
        results: Option<&mut [f32]>,
    ) {
        let rows = self.attention.block(block);
        let keys = part(self.attended(group, rows.clone()), self.attention.key_parts, key_part);
        let mut own = std::mem::take(&mut self.memory.results);
        let results = results.unwrap_or(&mut own);
        let values = rows.len() * self.attention.padded_width();
        let (values, rest) = results.split_at_mut(values);
        if keys.is_empty() {
            // Of fewer keys than parts.
            values.fill(0.0);
        }
        self.copy_queries(group, rows.clone());
        if self.attention.blocks == 1 {
            // Each panel is used once, as long as it is in the first cache.
            for (columns, padded) in self.attention.blocking.panels(0..keys.len()) {
                let column = columns.start;
                self.pack_keys(group, keys.start, (columns, padded), 0);
                self.multiply_keys(rows.len(), (0, column), [1, padded]);
            }
            self.pack_values(group, keys.start, 0..keys.len());
        } else {
            self.pack(group, keys.clone());
            self.multiply_packed_keys(rows.len(), keys.len());
        }
        for (index, row) in rows.clone().enumerate() {
            if self.is_over() {
                break;
            }
            let (greatest, sum) = self.powers([group, index, row], keys.clone());
            rest[2 * index..2 * index + 2].copy_from_slice(&[greatest, sum]);
        }
        if !keys.is_empty() {
            self.multiply_values(rows.len(), keys.len(), values);
        }
        self.memory.results = own;
    }

    /// The row of the mask of a query of a group, and where it begins.
    fn mask(&self, group: usize, row: usize) -> Option<(&'a [f32], usize)> {
        let Attention { sizes, shared, adjustment, .. } = self.attention;
        let axes = adjustment.mask.as_ref()?;
        let start = Adjustment::start_of(axes, group * shared * sizes.queries + row);
        Some((&self.operands[3][start..][..sizes.keys], start))
    }

    /// How many of the first keys a block needs.
    fn attended(&mut self, group: usize, rows: Range<usize>) -> usize {
        let keys = self.attention.sizes.keys;
        let first = match self.mask(group, rows.start) {
            Some((_, start)) if self.attention.may_leave_out() => start,
            _ => return keys,
        };
        // Mostly all attentions have one mask.
        let place = [first, rows.len()];
        match self.looked_at {
            Some((before, wanted)) if before == place && self.attention.shared == 1 => wanted,
            _ => {
                let masks = rows.filter_map(|row| Some(self.mask(group, row)?.0));
                let wanted = attended(masks, keys);
                self.looked_at.insert((place, wanted)).1
            }
        }
    }

    /// An operand's matrix of a group, and whether it is transposed.
    fn matrix(&self, operand: usize, group: usize) -> (Matrix<'a>, bool) {
        let Layout { starts, row_stride, transposed } = &self.attention.layouts[operand];
        let (start, stride) = (starts[group * self.attention.shared], *row_stride);
        (Matrix { values: self.operands[operand], start, stride }, *transposed)
    }

    /// Packs some keys and values of a group, if they are not there.
    fn pack(&mut self, group: usize, wanted: Range<usize>) {
        let Attention { blocking, sizes, .. } = self.attention;
        let Packed { group: before, first, count } = self.packed;
        let done = if before == group && first == wanted.start { count } else { 0 };
        if done >= wanted.len() {
            return;
        }
        for (columns, padded) in blocking.panels(0..wanted.len()).skip(done / blocking.columns()) {
            let at = columns.start * (1 + sizes.depth);
            self.pack_keys(group, wanted.start, (columns, padded), at);
        }
        self.pack_values(group, wanted.start, done..wanted.len());
        self.packed = Packed { group, first: wanted.start, count: wanted.len() };
    }

    /// Packs a panel of keys of a group, counted from this one on, to this place.
    fn pack_keys(
        &mut self,
        group: usize,
        first: usize,
        (columns, padded): (Range<usize>, usize),
        at: usize,
    ) {
        let Attention { isa, sizes: Sizes { depth, .. }, .. } = *self.attention;
        let (keys, transposed) = self.matrix(1, group);
        let panel = &mut self.memory.keys[at..][..padded * (1 + depth)];
        let (biases, rows) = panel.split_at_mut(padded);
        biases.fill(0.0);
        let columns = first + columns.start..first + columns.end;
        pack::panel_until(&mut self.pace, isa, (&keys, transposed), depth, (columns, padded), rows);
    }

    /// Packs values of a group, counted from that of this key on.
    fn pack_values(&mut self, group: usize, first: usize, wanted: Range<usize>) {
        let Attention { isa, blocking, sizes: Sizes { width, .. }, .. } = *self.attention;
        let (all, transposed) = self.matrix(2, group);
        let before = (first + wanted.start) * if transposed { 1 } else { all.stride };
        let values = (&Matrix { start: all.start + before, ..all }, transposed);
        let of_panel = 1 + self.attention.most_keys();
        for (columns, padded) in blocking.panels(0..width) {
            let panel = &mut self.memory.values[columns.start * of_panel..][..of_panel * padded];
            panel[..padded].fill(0.0);
            let to = &mut panel[(1 + wanted.start) * padded..];
            pack::panel_until(&mut self.pace, isa, values, wanted.len(), (columns, padded), to);
        }
    }

    /// Copies some queries of a group, so that they are at short distances from each other.
    fn copy_queries(&mut self, group: usize, rows: Range<usize>) {
        let Attention { layouts, shared, sizes: Sizes { queries, depth, .. }, .. } = self.attention;
        let Layout { starts, row_stride, .. } = &layouts[0];
        for (row, copy) in rows.zip(self.memory.queries.chunks_mut((*depth).max(1))) {
            if self.pace.is_over(*depth) {
                return;
            }
            let start = starts[group * shared + row / queries] + row % queries * row_stride;
            copy[..*depth].copy_from_slice(&self.operands[0][start..start + depth]);
        }
    }

    /// Computes the scores of the first queries that are copied with the first keys that are packed.
    fn multiply_packed_keys(&mut self, rows: usize, keys: usize) {
        let Attention { blocking, sizes: Sizes { depth, .. }, .. } = *self.attention;
        // There may be more keys in the last panel: their scores are computed, and not looked at.
        let wanted = keys.div_ceil(blocking.columns());
        let panels = blocking.panels(0..self.packed.count).take(wanted);
        let whole = panels.clone().filter(|it| it.1 == blocking.columns()).count();
        if whole > 0 {
            self.multiply_keys(rows, (0, 0), [whole, blocking.columns()]);
        }
        if let Some((columns, padded)) = panels.clone().nth(whole) {
            self.multiply_keys(rows, (columns.start * (1 + depth), columns.start), [1, padded]);
        }
    }

    /// Computes the scores of the first queries that are copied with the keys of panels of this width, from a place of the
    /// packed ones on; the scores with the first key go into this column.
    fn multiply_keys(
        &mut self,
        rows: usize,
        (at, column): (usize, usize),
        [count, padded]: [usize; 2],
    ) {
        let Sizes { depth, .. } = self.attention.sizes;
        let left = Left { values: self.memory.queries, rows, depth, stride: depth };
        let panels = &self.memory.keys[at..][..count * padded * (1 + depth)];
        let to = (&mut self.memory.scores[column..], self.attention.score_stride());
        multiply(self.attention, left, (panels, [count, padded]), to, &mut self.pace);
    }

    /// Puts the exponentials of a query's scores with some keys in their place: of this group, and of this index in its
    /// block and row in the group. Gives the greatest score and the sum of the exponentials.
    fn powers(&mut self, [group, index, row]: [usize; 3], keys: Range<usize>) -> (f32, f32) {
        let Attention { adjustment, beta, isa, .. } = self.attention;
        let stride = self.attention.score_stride();
        let mask = self.mask(group, row).map(|(mask, _)| &mask[keys.clone()]);
        isa.run(Powers {
            scores: &mut self.memory.scores[index * stride..][..keys.len()],
            factor: adjustment.factor,
            mask,
            beta: *beta,
            pace: &mut self.pace,
        })
    }

    /// Computes the sums of the packed values of the first keys, each times what is in the place of a query's score.
    fn multiply_values(&mut self, rows: usize, keys: usize, results: &mut [f32]) {
        let Attention { blocking, sizes, .. } = *self.attention;
        let (stride, of_panel) = (self.attention.score_stride(), 1 + self.attention.most_keys());
        for (columns, padded) in blocking.panels(0..sizes.width) {
            let left = Left { values: self.memory.scores, rows, depth: keys, stride };
            let panel = &self.memory.values[columns.start * of_panel..][..(1 + keys) * padded];
            let to = (&mut results[columns.start..], self.attention.padded_width());
            multiply(self.attention, left, (panel, [1, padded]), to, &mut self.pace);
        }
    }
}

/// Rows of numbers, from one to the next at this distance.
#[derive(Clone, Copy)]
struct Left<'a> {
    values: &'a [f32],
    rows: usize,
    depth: usize,
    stride: usize,
}

/// Computes the products of rows with panels, of which there are this many of this width, one behind the other: into rows at a
/// distance.
fn multiply(
    attention: &Attention,
    left: Left<'_>,
    (panels, [count, padded]): (&[f32], [usize; 2]),
    (to, stride): (&mut [f32], usize),
    pace: &mut Pace<'_>,
) {
    let Attention { isa, blocking, .. } = *attention;
    let is_width =
        padded.is_multiple_of(blocking.lanes) && (1..=blocking.columns()).contains(&padded);
    assert!(is_width && (count == 1 || padded == blocking.columns()), "no panels of {padded}");
    assert!(panels.len() >= count * padded * (1 + left.depth), "fewer values of panels");
    let tiles = left.rows.div_ceil(blocking.rows);
    for tile in 0..tiles {
        let of_tile = part(left.rows, tiles, tile);
        if pace.is_over(of_tile.len() * count * padded * left.depth) {
            return;
        }
        let mut segments = [std::ptr::null(); Blocking::MOST_ROWS];
        let segments = &mut segments[..of_tile.len()];
        for (row, segment) in of_tile.clone().zip(&mut *segments) {
            *segment = left.values[row * left.stride..][..left.depth].as_ptr();
        }
        let to = &mut to[of_tile.start * stride..];
        let needed = (of_tile.len() - 1) * stride + count * padded;
        assert!(to.len() >= needed, "more products than there is room for");
        let tile = Tile {
            segments,
            offset: 0,
            tiles: 1,
            tile_distance: 0,
            segment_depth: left.depth,
            panel: panels.as_ptr(),
            panels: count,
            ahead: [0; 2],
            target: Target {
                output: to.as_mut_ptr(),
                output_stride: stride,
                residual: None,
                residual_stride: 0,
                columns: padded,
            },
            epilogue: &Epilogue::NONE,
        };
        let (vectors, stop) = (padded / blocking.lanes, Some(pace.stop()));
        // SAFETY: each segment is a slice of `depth` values; `panels` has the biases and rows of all of them, which
        // are whole if there are several; the assertion has seen that there is room for all columns of all rows.
        unsafe { run_tile(isa, of_tile.len(), vectors, &tile, stop) };
    }
}

/// Writes the results of a block of a group, of which those with each part of the keys follow each other.
///
/// # Panics
/// If the output is too small.
///
/// # Safety
/// No one else writes what the block's queries result in.
pub(super) unsafe fn combine(
    attention: &Attention,
    [group, block]: [usize; 2],
    parts: &[f32],
    output: &DisjointOutput<'_, f32>,
) {
    let Attention { layouts, shared, isa, beta, key_parts, .. } = attention;
    let Sizes { queries, width, .. } = attention.sizes;
    let Layout { starts, row_stride, .. } = &layouts[3];
    let (padded, each) = (attention.padded_width(), attention.result_values());
    let rows = attention.block(block);
    // Of a query with a part of the keys: the results, the greatest score, and the sum of the exponentials.
    let of_row = |index: usize, part: usize| {
        let (values, rest) = parts[part * each..][..each].split_at(rows.len() * padded);
        (&values[index * padded..][..width], rest[2 * index], rest[2 * index + 1])
    };
    for (index, row) in rows.clone().enumerate() {
        let of_parts = || (0..*key_parts).map(|part| of_row(index, part));
        let greatest = of_parts().fold(f32::NEG_INFINITY, |most, (_, it, _)| most.max(it));
        let weight = |of_part: f32| match *key_parts {
            1 => 1.0,
            _ => (beta * (of_part - greatest)).exp(),
        };
        let sum: f32 = of_parts().map(|(_, of_part, sum)| weight(of_part) * sum).sum();
        let start = starts[group * shared + row / queries] + row % queries * row_stride;
        // SAFETY: as the caller promises; results of different queries do not overlap, as was seen when this was prepared.
        let to = unsafe { output.slice(start, width) };
        for (part, (values, of_part, _)) in of_parts().enumerate() {
            isa.run(Scaled { values, factor: weight(of_part) / sum, to, is_added: part > 0 });
        }
    }
}
