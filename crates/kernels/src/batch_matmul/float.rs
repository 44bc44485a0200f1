//! [`BatchMatmul`] of float32.
#![allow(unsafe_code)]

use crate::disjoint::DisjointOutput;
use crate::gemm::float::matrix::Matrix;
use crate::gemm::float::{Blocking, Epilogue, Target, Tile, pack, run_tile};
use crate::image::values_needed;
use crate::prepared::{Operands, PreparedKernel, WrongValue, multiply_adds};
use crate::sharing::{affordable_tasks, even_tasks, for_each_task};
use crate::team::{Pace, part};
use crate::vector::Isa;
use crate::{InstructionSet, Line, Team};
use std::ops::Range;

/// Where the matrices of an operand are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// For each product, where its matrix begins. Several products may use one matrix, but not as
    /// their output.
    pub starts: Vec<usize>,
    /// From a row to the next one, in values.
    pub row_stride: usize,
    /// Whether the matrix is stored with its rows and columns exchanged. (An output never is.)
    pub transposed: bool,
}

impl Layout {
    /// Matrices of `rows` by `columns` as they are stored, one behind the other.
    pub fn contiguous(count: usize, [rows, columns]: [usize; 2], transposed: bool) -> Self {
        let starts = (0..count).map(|index| index * rows * columns).collect();
        Self { starts, row_stride: columns, transposed }
    }

    /// How many values hold all matrices, which are `rows` by `columns` as they are stored.
    pub(super) fn values_needed(&self, [rows, columns]: [usize; 2]) -> usize {
        let each = values_needed(rows, columns, self.row_stride);
        let last = self.starts.iter().max().map_or(Some(0), |&last| last.checked_add(each));
        last.expect("matrices larger than memory")
    }
}

/// Products `output[M][N] = epilogue(left[M][K] * right[K][N])`, their work cut into tasks.
#[derive(Debug)]
pub struct BatchMatmul {
    sizes: [usize; 3],
    left: Layout,
    right: Layout,
    /// Whether these are products of a single column, computed as those of a single row with the factors exchanged and turned: so
    /// vectors are along what is long. The layout of the output is still that of a column.
    is_exchanged: bool,
    output: Layout,
    epilogue: Epilogue,
    set: InstructionSet,
    isa: Isa,
    blocking: Blocking,
    /// Panels of columns that are packed together.
    together: usize,
    /// The tasks are parts of this: products, times groups of panels, times parts of the rows.
    groups: usize,
    row_parts: usize,
    tasks: usize,
}

/// Values of the panels that are packed together: they stay in the second cache while rows are multiplied by all of them.
const VALUES_TOGETHER: usize = 24 << 10;

/// A panel is packed anew for each part of the rows; with that many rows it hardly matters.
const ROWS_OF_PART: usize = 112;

/// A task should take a few microseconds at least.
const LEAST_PRODUCTS: usize = 500_000;

impl BatchMatmul {
    /// Cuts the work for this number of threads. The sizes are M, N and K.
    ///
    /// # Panics
    /// If the operands have different numbers of matrices, or rows of the output overlap.
    pub fn prepare(
        sizes: [usize; 3],
        [left, right, output]: [Layout; 3],
        epilogue: Epilogue,
        set: InstructionSet,
        threads: usize,
    ) -> Self {
        let count = output.starts.len();
        assert_eq!(left.starts.len(), count, "left matrices");
        assert_eq!(right.starts.len(), count, "right matrices");
        assert!(!output.transposed, "an output cannot be transposed");
        check_disjoint(&output, sizes);
        let (mut sizes, [mut left, mut right, output]) =
            with_shared_factors(sizes, [left, right, output]);
        let is_exchanged = sizes[1] == 1;
        if is_exchanged {
            sizes = [sizes[1], sizes[0], sizes[2]];
            let turned = |layout: Layout| Layout { transposed: !layout.transposed, ..layout };
            (left, right) = (turned(right), turned(left));
        }
        let ([rows, columns, depth], count) = (sizes, output.starts.len());
        let blocking = Blocking::of(set);
        let panels = columns.div_ceil(blocking.columns());
        let panel_values = depth.saturating_add(1).saturating_mul(blocking.columns());
        let fewest = panels.div_ceil((VALUES_TOGETHER / panel_values).max(1));
        // Enough for all threads, if there are.
        let groups =
            if threads == 1 { fewest } else { fewest.max((4 * threads).div_ceil(count.max(1))) };
        let together = panels.div_ceil(groups.max(1)).max(1);
        let groups = panels.div_ceil(together);
        let row_parts = if groups * count >= 2 * threads { 1 } else { rows.div_ceil(ROWS_OF_PART) };
        let products = [rows, columns, depth, count].into_iter().fold(1, usize::saturating_mul);
        let parts = even_tasks((products / LEAST_PRODUCTS).max(threads), threads, 4);
        Self {
            sizes,
            left,
            right,
            is_exchanged,
            output,
            epilogue,
            set,
            isa: Isa::of(set),
            blocking,
            together,
            groups,
            row_parts: row_parts.max(1),
            tasks: parts.min((groups * count * row_parts).max(1)),
        }
        .with_affordable_scratch()
    }

    /// The same with so few tasks that their scratch memory is not much more than the operands.
    fn with_affordable_scratch(mut self) -> Self {
        let [rows, columns, depth] = self.sizes;
        let (panel, tile) = self.task_scratch();
        let operands = rows.saturating_add(columns).saturating_mul(depth);
        let operands = operands.saturating_mul(self.output.starts.len());
        let bytes = |values: usize| values.saturating_mul(size_of::<f32>());
        let of_task = bytes(panel.saturating_add(tile));
        self.tasks = affordable_tasks(self.tasks, of_task, bytes(operands));
        self
    }

    /// Algorithm, type and instruction set, for profiles.
    pub fn kernel(&self) -> String {
        format!("gemm f32 {}", self.set)
    }

    /// Values of scratch memory of a task: panels, and a tile's rows if they have to be turned.
    fn task_scratch(&self) -> (usize, usize) {
        let [_, columns, depth] = self.sizes;
        let width = columns.next_multiple_of(self.blocking.lanes);
        let width = width.min(self.together.saturating_mul(self.blocking.columns()));
        let panels = (1 + depth) * width.max(1);
        let tile = if self.left.transposed { depth * self.blocking.rows } else { 0 };
        let tile = tile.saturating_add(if self.is_spread() { width } else { 0 });
        (panels.next_multiple_of(16), tile.next_multiple_of(16))
    }

    /// Whether the values of a row that is computed go to places at a distance from each other.
    fn is_spread(&self) -> bool {
        self.is_exchanged && self.output.row_stride != 1
    }

    /// Computes the products.
    ///
    /// # Panics
    /// If an operand, the output or the scratch memory is too small.
    pub fn run(
        &self,
        team: &mut Team,
        left: &[f32],
        right: &[f32],
        output: &mut [f32],
        scratch: &mut [Line],
    ) {
        let [rows, columns, depth] = self.sizes;
        let [left, right] = if self.is_exchanged { [right, left] } else { [left, right] };
        let stored = |layout: &Layout, [rows, columns]: [usize; 2]| {
            layout.values_needed(if layout.transposed { [columns, rows] } else { [rows, columns] })
        };
        assert!(left.len() >= stored(&self.left, [rows, depth]), "the left operand is too small");
        assert!(
            right.len() >= stored(&self.right, [depth, columns]),
            "the right operand is too small"
        );
        let of_output = if self.is_exchanged { [columns, rows] } else { [rows, columns] };
        assert!(output.len() >= stored(&self.output, of_output), "the output is too small");
        if rows == 0 || columns == 0 {
            return;
        }
        let scratch: &mut [f32] = bytemuck::cast_slice_mut(scratch);
        assert!(size_of_val(scratch) >= self.scratch_bytes(), "too little scratch memory");
        let output = DisjointOutput::new(output);
        let (panel, tile) = self.task_scratch();
        let of_product = self.groups * self.row_parts;
        let pieces = self.output.starts.len() * of_product;
        for_each_task(team, self.tasks, (scratch, panel + tile), |task, scratch, stop| {
            let mut pace = Pace::new(stop);
            let (panel, tile) = scratch.split_at_mut(panel);
            for piece in part(pieces, self.tasks, task) {
                let (product, piece) = (piece / of_product, piece % of_product);
                let width = self.together * self.blocking.columns();
                let first = piece / self.row_parts * width;
                let rows = part(rows, self.row_parts, piece % self.row_parts);
                let columns = first..columns.min(first + width);
                let operands = [left, right];
                self.piece(product, [rows, columns], operands, &output, [panel, tile], &mut pace);
            }
        });
    }

    /// Some rows of some columns, those of panels that are packed together, of one product.
    fn piece(
        &self,
        product: usize,
        [rows, columns]: [Range<usize>; 2],
        [left, right]: [&[f32]; 2],
        output: &DisjointOutput<'_, f32>,
        [packed, scratch]: [&mut [f32]; 2],
        pace: &mut Pace<'_>,
    ) {
        let depth = self.sizes[2];
        let Blocking { rows: most_rows, lanes, .. } = self.blocking;
        let of = |layout: &Layout, values| Matrix {
            values,
            start: layout.starts[product],
            stride: layout.row_stride,
        };
        let (left, right) = (of(&self.left, left), of(&self.right, right));
        let (spread, scratch) =
            scratch.split_at_mut(if self.is_spread() { columns.len() } else { 0 });
        let mut to = &mut *packed;
        for (columns, width) in self.blocking.panels(columns.clone()) {
            let (panel, rest) = to.split_at_mut((1 + depth) * width);
            let (bias, weights) = panel.split_at_mut(width);
            bias.fill(0.0);
            let right = (&right, self.right.transposed);
            pack::panel_until(pace, self.isa, right, depth, (columns, width), weights);
            to = rest;
        }
        // Those that are whole are multiplied together.
        let whole = columns.len() / self.blocking.columns();
        let (panels, last) = packed.split_at(whole * (1 + depth) * self.blocking.columns());
        let last_columns = columns.start + whole * self.blocking.columns()..columns.end;
        let last_vectors = last_columns.len().div_ceil(lanes);
        let last = &last[..(1 + depth) * last_vectors * lanes];
        let tiles = rows.len().div_ceil(most_rows);
        for tile in 0..tiles {
            let of_tile = part(rows.len(), tiles, tile);
            if pace.is_over(of_tile.len() * columns.len() * depth) {
                return;
            }
            let rows = rows.start + of_tile.start..rows.start + of_tile.end;
            let mut segments = [std::ptr::null(); Blocking::MOST_ROWS];
            let segments = &mut segments[..rows.len()];
            if self.left.transposed {
                // Row by row of the tile: the stored columns.
                for (row, segment) in rows.clone().zip(segments.iter_mut()) {
                    let copy = &mut scratch[(row - rows.start) * depth..][..depth];
                    for block in pace.blocks(depth, 4) {
                        for (k, to) in block.clone().zip(&mut copy[block]) {
                            *to = left.values[left.start + k * left.stride + row];
                        }
                    }
                    *segment = copy.as_ptr();
                }
            } else {
                for (row, segment) in rows.clone().zip(segments.iter_mut()) {
                    let start = left.start + row * left.stride;
                    *segment = left.values[start..start + depth].as_ptr();
                }
            }
            let Layout { starts, row_stride, .. } = &self.output;
            let first = match self.is_spread() {
                true => spread.as_mut_ptr(),
                false => output.pointer(starts[product] + rows.start * row_stride + columns.start),
            };
            let of_panels = |panels: &[f32], count, column, columns| Tile {
                segments: &*segments,
                offset: 0,
                tiles: 1,
                tile_distance: 0,
                segment_depth: depth,
                panel: panels.as_ptr(),
                panels: count,
                ahead: [0; 2],
                target: Target {
                    output: first.wrapping_add(column),
                    output_stride: *row_stride,
                    residual: None,
                    residual_stride: 0,
                    columns,
                },
                epilogue: &self.epilogue,
            };
            let stop = Some(pace.stop());
            // SAFETY: each segment was taken from a slice of `depth` values; the panels are slices of a bias and this many rows for
            // each of them, whole ones if there are several; `run` has seen that the output has all rows and columns of all
            // matrices, which `prepare` has seen to be disjoint, unless there is one row, which is spread from scratch memory for
            // these columns; each tile is computed once.
            unsafe {
                if whole > 0 {
                    let tile = of_panels(panels, whole, 0, self.blocking.columns());
                    run_tile(self.isa, rows.len(), self.blocking.vectors, &tile, stop);
                }
                if last_vectors > 0 {
                    let before = last_columns.start - columns.start;
                    let tile = of_panels(last, 1, before, last_columns.len());
                    run_tile(self.isa, rows.len(), last_vectors, &tile, stop);
                }
            }
        }
        for (column, value) in columns.zip(spread) {
            let place = self.output.starts[product] + column * self.output.row_stride;
            // SAFETY: as above; each column is one piece's.
            unsafe { output.slice(place, 1)[0] = *value };
        }
    }
}

/// Inputs: the left and the right factors.
impl PreparedKernel for BatchMatmul {
    fn name(&self) -> String {
        format!("batch matmul {}", self.kernel())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let scratch = bytemuck::cast_slice_mut(scratch);
        self.run(team, inputs.of(0), inputs.of(1), bytemuck::cast_slice_mut(output), scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        let (panel, tile) = self.task_scratch();
        self.tasks * (panel + tile) * size_of::<f32>()
    }

    fn arithmetic(&self) -> u64 {
        let [rows, columns, depth] = self.sizes;
        multiply_adds(&[self.output.starts.len(), rows, columns, depth])
    }
}

/// Products that follow each other and have one right factor are one product of more rows, if these are where rows can be:
/// so are the queries of an attention that has fewer heads of keys.
fn with_shared_factors(
    [rows, columns, depth]: [usize; 3],
    [left, right, output]: [Layout; 3],
) -> ([usize; 3], [Layout; 3]) {
    let shared = right.starts.iter().take_while(|start| **start == right.starts[0]).count();
    let stride = |layout: &Layout| {
        let distance = |of: &[usize]| of[1].checked_sub(of[0]);
        let first = distance(layout.starts.get(..2)?)?;
        let groups = layout.starts.chunks(shared);
        let is_even = groups.flat_map(|it| it.windows(2)).all(|it| distance(it) == Some(first));
        let is_row = rows == 1 || first == rows * layout.row_stride;
        (is_even && is_row && !layout.transposed).then(|| first / rows)
    };
    let is_shared = shared > 1
        && right.starts.len().is_multiple_of(shared)
        && right.starts.chunks(shared).all(|it| it.iter().all(|start| *start == it[0]));
    let strides = if is_shared && rows > 0 { stride(&left).zip(stride(&output)) } else { None };
    let Some((of_left, of_output)) = strides else {
        return ([rows, columns, depth], [left, right, output]);
    };
    let grouped = |layout: Layout, row_stride: usize| Layout {
        starts: layout.starts.into_iter().step_by(shared).collect(),
        row_stride,
        ..layout
    };
    let right_stride = right.row_stride;
    let layouts =
        [grouped(left, of_left), grouped(right, right_stride), grouped(output, of_output)];
    ([rows * shared, columns, depth], layouts)
}

/// # Panics
/// If two elements of the output may be at the same place.
pub(crate) fn check_disjoint(output: &Layout, [rows, columns, _]: [usize; 3]) {
    if rows == 0 || columns == 0 {
        return;
    }
    let stride = output.row_stride;
    assert!(rows == 1 || stride >= columns, "rows of the output overlap");
    let mut starts = output.starts.clone();
    starts.sort_unstable();
    // Either they follow each other,
    let extent = values_needed(rows, columns, stride.max(columns));
    if starts.windows(2).all(|pair| pair[1] - pair[0] >= extent) {
        return;
    }
    // or they are beside each other, as the heads of an attention do: those that begin at the same
    // place of a row follow each other, and between different such places there is room.
    assert!(stride >= columns, "matrices of the output overlap");
    starts.sort_unstable_by_key(|&start| (start % stride, start));
    let disjoint = starts.iter().all(|start| start % stride + columns <= stride)
        && starts.windows(2).all(|pair| {
            let [place, next] = [pair[0] % stride, pair[1] % stride];
            if place == next {
                (pair[1] - pair[0]) / stride >= rows
            } else {
                next - place >= columns
            }
        });
    assert!(disjoint, "matrices of the output overlap");
}
