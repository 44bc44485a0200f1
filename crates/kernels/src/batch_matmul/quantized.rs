//! [`BatchMatmul`] of quantized values.
#![allow(unsafe_code)]

use crate::convolution::quantized::table::Table;
use crate::disjoint::DisjointOutput;
use crate::gemm::quantized::{Matrix, TILE_ROWS, Tile, Variant};
use crate::prepared::{Operands, PreparedKernel, WrongValue, multiply_adds};
use crate::quantization::{Activations, Signedness};
use crate::requantize::{ChannelLanes, Requantization};
use crate::sharing::{TASKS_BY_THREAD, affordable_tasks, for_each_task};
use crate::team::{Pace, part};
use crate::{LINE_BYTES, Line, Preparation, Team, TooLarge};
use std::ops::Range;

/// Finding out which matrices are multiplied takes as long as this many products.
const WORK_OF_PAIR: usize = 8;

/// Multiplications of a product that is not worth packing a matrix for.
const SMALL_PRODUCT: usize = 64;

/// Products `output[M][N] = x[M][K] * y[K][N]`, to whose sums a bias `[N]` may be added, of matrices that are one behind the
/// other.
#[derive(Debug)]
pub struct BatchMatmul {
    /// Of each product the numbers of its x and its y.
    products: Vec<[usize; 2]>,
    /// How many x and y there are.
    operands: [usize; 2],
    /// M, K and N.
    sizes: [usize; 3],
    /// Whether x is stored as `[K][M]`, and y as `[N][K]`.
    transposed: [bool; 2],
    signedness: Signedness,
    zero_points: [i32; 2],
    requantization: Requantization,
    has_bias: bool,
    /// How many parts the rows of each product are cut into, which different tasks may compute.
    parts: usize,
    tasks: usize,
    packed: Option<Packed>,
}

/// For a fast kernel.
#[derive(Debug)]
struct Packed {
    /// How y is packed; without weights of its own.
    matrix: Matrix,
    /// Scratch memory of a task, in lines.
    lines: Parts,
}

/// Lines of a task's scratch memory, in this order.
#[derive(Debug, Clone, Copy)]
struct Parts {
    /// The packed y.
    weights: usize,
    /// The constants of y's columns.
    lanes: usize,
    /// Rows of x whose length is a multiple of four, if x is not so already.
    rows: usize,
    /// Widened rows of x, if the kernel wants them.
    wide: usize,
}

/// What some rows of a product are made of.
struct Factors<'a> {
    x: &'a [u8],
    y: &'a [u8],
    bias: Option<&'a [i32]>,
    rows: Range<usize>,
}

/// Rows of x that are multiplied together.
const ROWS: usize = 12 * TILE_ROWS;

impl Parts {
    fn sum(self) -> usize {
        self.weights + self.lanes + self.rows + self.wide
    }
}

impl BatchMatmul {
    /// Cuts `count` products of the sizes `[M, K, N]` into tasks; `products` are, in the order of the
    /// outputs, the numbers of x and y. Inputs and outputs are of one signedness; `transposed` says
    /// whether x is stored as `[K][M]` and y as `[N][K]`. If there is a bias, `greatest_bias` is what no magnitude of it is
    /// beyond.
    ///
    /// # Errors
    /// If it takes more memory than it may, or the matrices are larger than memory.
    ///
    /// # Panics
    /// If a number is out of its type's range, there is more than one multiplier, or there are not
    /// `count` products.
    #[allow(clippy::too_many_arguments)] // Sizes, types, and what all kernels take.
    pub fn prepare(
        count: usize,
        products: impl IntoIterator<Item = [usize; 2]>,
        sizes: [usize; 3],
        transposed: [bool; 2],
        signedness: Signedness,
        zero_points: [i32; 2],
        requantization: Requantization,
        greatest_bias: Option<u32>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let (set, threads) = (preparation.set(), preparation.threads());
        let [rows, inner, columns] = sizes;
        let mut numbers = products.into_iter();
        let mut products = preparation.zeros(count, "pairs of matrices")?;
        // How many matrices each operand has.
        let mut operands = [0; 2];
        for block in preparation.pace().blocks(count, WORK_OF_PAIR) {
            for pair in &mut products[block] {
                *pair = numbers.next().expect("as many pairs of matrices as products");
                let [left, right] = *pair;
                operands = [operands[0].max(left + 1), operands[1].max(right + 1)];
            }
        }
        let batch = count;
        let matrices =
            [[operands[0], rows, inner], [operands[1], inner, columns], [batch, rows, columns]];
        for [count, a, b] in matrices {
            // Counted as lines: what follows rounds sizes up, and adds some.
            preparation.check_size::<Line>(&[a, b, count.max(1)], "matrices")?;
        }
        for zero_point in zero_points {
            Activations { signedness, zero_point }.check();
        }
        assert_eq!(requantization.multipliers.len(), 1, "one multiplier");
        requantization.check(1, signedness);
        // None of the sizes is zero, then.
        let is_large = [rows, inner, columns].into_iter().fold(batch.min(1), usize::saturating_mul)
            > SMALL_PRODUCT;
        let variant = Variant::of(set, inner).filter(|_| is_large);
        let wanted = if threads > 1 { threads * TASKS_BY_THREAD } else { 1 };
        // Each part packs y.
        let parts = wanted.div_ceil(batch.max(1)).clamp(1, rows.div_ceil(ROWS).max(1));
        let tasks = batch.saturating_mul(parts).min(wanted);
        let packed = |variant| -> Result<_, TooLarge> {
            let [x, y] = zero_points.map(|zero_point| Activations { signedness, zero_point });
            let matrix = Matrix::at_run_time(
                variant,
                [inner, columns],
                [x, y],
                &requantization,
                greatest_bias.unwrap_or(0),
                preparation,
            )?;
            let of_part = rows.div_ceil(parts);
            let is_copied = transposed[0] || !inner.is_multiple_of(4);
            let lines = Parts {
                weights: matrix.weight_bytes().div_ceil(LINE_BYTES),
                lanes: matrix.lane_bytes().div_ceil(LINE_BYTES),
                rows: if is_copied {
                    (of_part * inner.next_multiple_of(4)).div_ceil(LINE_BYTES)
                } else {
                    0
                },
                wide: matrix
                    .copied_row_bytes()
                    .map_or(0, |bytes| (of_part.min(ROWS) * bytes).div_ceil(LINE_BYTES)),
            };
            let operands = (rows + columns).saturating_mul(inner).saturating_mul(batch);
            let of_task = lines.sum().saturating_mul(LINE_BYTES);
            let tasks = affordable_tasks(tasks, of_task, operands);
            preparation.check_scratch::<Line>(&[tasks, lines.sum()])?;
            Ok((tasks, Packed { matrix, lines }))
        };
        let (tasks, packed) = match variant.map(packed).transpose()? {
            Some((tasks, packed)) => (tasks, Some(packed)),
            None => (tasks, None),
        };
        Ok(Self {
            products,
            operands,
            sizes,
            transposed,
            signedness,
            zero_points,
            requantization,
            has_bias: greatest_bias.is_some(),
            parts,
            tasks,
            packed,
        })
    }

    /// The instruction set of its kernel.
    pub fn kernel(&self) -> &'static str {
        self.packed.as_ref().map_or("portable", |packed| packed.matrix.variant.name())
    }

    /// Computes all products; the bias is not read if there is none.
    ///
    /// # Panics
    /// If an operand, the bias, the output or the scratch memory is too small.
    pub fn run(
        &self,
        team: &mut Team,
        x: &[u8],
        y: &[u8],
        bias: &[i32],
        output: &mut [u8],
        scratch: &mut [Line],
    ) {
        let [rows, inner, columns] = self.sizes;
        assert!(!self.has_bias || bias.len() == columns, "the bias has another length");
        let ([x_count, y_count], batch) = (self.operands, self.products.len());
        assert!(x.len() >= x_count * rows * inner, "x is too small");
        assert!(y.len() >= y_count * inner * columns, "y is too small");
        assert!(output.len() >= batch * rows * columns, "the output is too small");
        if batch * rows * columns == 0 {
            return;
        }
        let output = DisjointOutput::new(output);
        let (items, tasks) = (batch * self.parts, self.tasks);
        let lines = self.packed.as_ref().map_or(0, |packed| packed.lines.sum());
        for_each_task(team, tasks, (scratch, lines), |task, scratch, stop| {
            let mut pace = Pace::new(stop);
            // The y that the scratch memory has.
            let mut packed_y = None;
            for item in part(items, tasks, task) {
                let (index, some) = (item / self.parts, item % self.parts);
                let [of_x, of_y] = self.products[index];
                let some = part(rows, self.parts, some);
                let operands = Factors {
                    x: &x[of_x * rows * inner..][..rows * inner],
                    y: &y[of_y * inner * columns..][..inner * columns],
                    bias: if self.has_bias { Some(bias) } else { None },
                    rows: some.clone(),
                };
                let start = (index * rows + some.start) * columns;
                // SAFETY: every row of every product has its own output, and is one task's.
                let to = unsafe { output.slice(start, some.len() * columns) };
                match &self.packed {
                    None => self.portable(operands, to, &mut pace),
                    Some(packed) => {
                        let is_packed = packed_y == Some(of_y);
                        self.multiply(packed, operands, is_packed, to, scratch, &mut pace);
                        packed_y = Some(of_y);
                    }
                }
            }
        });
    }

    /// By the definition.
    fn portable(
        &self,
        Factors { x, y, bias, rows }: Factors<'_>,
        output: &mut [u8],
        pace: &mut Pace<'_>,
    ) {
        let [all_rows, inner, columns] = self.sizes;
        let [of_x, of_y] = self.zero_points;
        let signedness = self.signedness;
        // From one row of x to the next and from one of its columns to the next; of y the other way round.
        let [row_step, x_step] = if self.transposed[0] { [1, all_rows] } else { [inner, 1] };
        let [column_step, y_step] = if self.transposed[1] { [inner, 1] } else { [1, columns] };
        for (row, output) in rows.zip(output.chunks_exact_mut(columns)) {
            for (column, output) in output.iter_mut().enumerate() {
                if pace.is_over(1) {
                    return;
                }
                let mut sum = bias.map_or(0, |bias| bias[column]);
                for block in pace.blocks(inner, 1) {
                    let x = x[row * row_step + block.start * x_step..].iter().step_by(x_step);
                    let y = y[column * column_step + block.start * y_step..].iter().step_by(y_step);
                    for (x, y) in x.zip(y).take(block.len()) {
                        let x = i32::from(signedness.centred(of_x, *x));
                        let y = i32::from(signedness.centred(of_y, *y));
                        sum = sum.wrapping_add(x * y);
                    }
                }
                *output = signedness.byte(self.requantization.apply(sum, 0));
            }
        }
    }

    /// Some rows of a product; y may be packed already.
    fn multiply(
        &self,
        Packed { matrix, lines, .. }: &Packed,
        Factors { x, y, bias, rows }: Factors<'_>,
        is_packed: bool,
        output: &mut [u8],
        scratch: &mut [Line],
        pace: &mut Pace<'_>,
    ) {
        let [all_rows, inner, columns] = self.sizes;
        let (weights, scratch) = scratch.split_at_mut(lines.weights);
        let (lanes, scratch) = scratch.split_at_mut(lines.lanes);
        let (copy, wide) = scratch.split_at_mut(lines.rows);
        let weights = bytemuck::cast_slice_mut::<_, u8>(weights);
        let lanes = &mut bytemuck::cast_slice_mut::<_, ChannelLanes>(lanes)[..];
        if !is_packed {
            matrix.pack_at_run_time(y, self.transposed[1], bias, weights, lanes, pace);
        }
        let (x, row_bytes) = if lines.rows == 0 {
            (&x[rows.start * inner..], inner)
        } else {
            let row_bytes = inner.next_multiple_of(4);
            let copy = bytemuck::cast_slice_mut::<_, u8>(copy);
            for block in pace.blocks(inner, rows.len()) {
                if self.transposed[0] {
                    for k in block {
                        let column = &x[k * all_rows..][rows.clone()];
                        for (copy, x) in copy.chunks_exact_mut(row_bytes).zip(column) {
                            copy[k] = *x;
                        }
                    }
                } else {
                    for (row, copy) in rows.clone().zip(copy.chunks_exact_mut(row_bytes)) {
                        copy[block.clone()].copy_from_slice(&x[row * inner..][block.clone()]);
                    }
                }
            }
            (&*copy, row_bytes)
        };
        let output = DisjointOutput::new(output);
        let _tiles = matrix.set_up_tiles();
        let (mut row, rows) = (0, rows.len());
        while row < rows {
            let mut addresses = [std::ptr::null(); ROWS];
            let count = addresses.len().min(Table::pixels(1, inner)).min(rows - row);
            for (index, address) in addresses.iter_mut().enumerate().take(count) {
                *address = x[(row + index) * row_bytes..].as_ptr();
            }
            let mut terms = [0_i32; ROWS];
            let terms = &mut terms[..count];
            // SAFETY: the addresses of rows of `inner` bytes.
            let row_terms = unsafe { matrix.row_terms(addresses.as_ptr(), count, terms) };
            let mut table_step = count;
            if matrix.copied_row_bytes().is_some() {
                let mut wide_rows = [std::ptr::null(); ROWS];
                let wide = bytemuck::cast_slice_mut(wide);
                // SAFETY: the addresses of rows of `inner` bytes, rounded up to a multiple of four.
                unsafe {
                    matrix.copy_rows(addresses.as_ptr(), count, wide, &mut wide_rows[..count]);
                }
                (addresses, table_step) = (wide_rows, 0);
            }
            for block in matrix.blocks() {
                // Vectors multiply many at a time.
                if pace.is_over(count * block.channels * inner / 4) {
                    return;
                }
                let tile = Tile {
                    table: addresses.as_ptr(),
                    table_step,
                    rows: count,
                    row_terms,
                    weights: weights[block.weights..].as_ptr(),
                    lanes: &lanes[block.lanes..][..block.vectors],
                    output: output.pointer(row * columns + block.channel),
                    output_step: columns,
                };
                // SAFETY: the rows have a multiple of four bytes, in x itself or in its copy; the
                // output has the block's columns of these rows.
                unsafe { matrix.compute_rows(block, &tile, std::ptr::null()) };
            }
            row += count;
        }
    }
}

/// Inputs: the left and the right factors, and the bias if there is one.
impl PreparedKernel for BatchMatmul {
    fn name(&self) -> String {
        let operation =
            if self.has_bias { "fully connected gemm with packing" } else { "batch matmul gemm" };
        format!("{operation} {} {}", self.signedness.name(), self.kernel())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let bias = if self.has_bias { inputs.of(2) } else { &[] };
        let scratch = bytemuck::cast_slice_mut(scratch);
        self.run(team, inputs.of(0), inputs.of(1), bias, output, scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.packed.as_ref().map_or(0, |packed| self.tasks * packed.lines.sum() * LINE_BYTES)
    }

    fn arithmetic(&self) -> u64 {
        let [rows, inner, columns] = self.sizes;
        multiply_adds(&[self.products.len(), rows, inner, columns])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InstructionSet, Lines, Multiplier};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_instruction_sets_agree(
            products in prop::collection::vec([0_usize..3, 0_usize..3], 0..4),
            rows in prop_oneof![9 => 0_usize..120, 1 => 380_usize..400], inner in 0_usize..40,
            columns in prop_oneof![0_usize..40, 0_usize..150], transposed: [bool; 2],
            is_signed: bool, zero_points: [u8; 2], ends: [u8; 2], zero_point: u8, has_bias: bool,
            mantissa in 1 << 30..=i32::MAX, exponent in prop_oneof![9 => -10..-5, 1 => -3..3],
        ) {
            let signedness = if is_signed { Signedness::Signed } else { Signedness::Unsigned };
            let value = |byte| signedness.value(byte);
            let (min, max) = (value(ends[0]).min(value(ends[1])), value(ends[0]).max(value(ends[1])));
            let requantization = Requantization {
                multipliers: vec![Multiplier { mantissa, exponent }],
                zero_point: value(zero_point),
                min,
                max,
            };
            let mut random = fastrand::Rng::with_seed(u64::from(zero_point));
            let mut bytes =
                |count: usize| -> Vec<u8> { (0..count).map(|_| random.u8(..)).collect() };
            let (x, y) = (bytes(3 * rows * inner), bytes(3 * inner * columns));
            let bias: Vec<i32> = (0..columns).map(|_| random.i32(-9999..=9999)).collect();
            let run = |set, threads| {
                let product = BatchMatmul::prepare(
                    products.len(), products.clone(), [rows, inner, columns], transposed, signedness,
                    zero_points.map(value), requantization.clone(), has_bias.then_some(9999),
                    &mut Preparation::new(set, threads),
                ).unwrap();
                let mut output = vec![0; products.len() * rows * columns];
                let mut scratch = Lines::with_bytes(product.scratch_bytes());
                product.run(&mut Team::new(threads), &x, &y, &bias, &mut output, scratch.lines_mut());
                output
            };
            let expected = run(InstructionSet::Portable, 1);
            for set in InstructionSet::available().skip(1) {
                for threads in [1, 2] {
                    prop_assert_eq!(&run(set, threads), &expected, "{}", set);
                }
            }
        }
    }

    #[test]
    fn sizes_beyond_memory_and_beyond_the_limit_are_refused() {
        let requantization = Requantization::by(1.0, 0, Signedness::Unsigned);
        let try_it = |count, sizes, limit: usize| {
            let mut preparation = Preparation::new(InstructionSet::best(), 2).with_limit(limit);
            let refused = BatchMatmul::prepare(
                count,
                std::iter::repeat_n([0, 0], count),
                sizes,
                [false; 2],
                Signedness::Unsigned,
                [0, 0],
                requantization.clone(),
                None,
                &mut preparation,
            )
            .err();
            assert_eq!(refused, preparation.take_refusal());
            refused.map(|refused| refused.what)
        };
        let most = isize::MAX.unsigned_abs();
        for sizes in [[1 << 40, 1, 1 << 40], [1 << 62, 4, 0], [1, 1 << 60, 1 << 60]] {
            assert_eq!(try_it(2, sizes, most), Some("matrices"), "{sizes:?}");
        }
        assert_eq!(try_it(1000, [1, 1, 1], 15_999), Some("pairs of matrices"));
        assert_eq!(try_it(1000, [1, 1, 1], 100_000), None);
    }

    #[test]
    fn values_by_hand() {
        // [1 2] * [3; 4] with zero points 1 and 2: 0*1 + 1*2 = 2; twice that, plus 5; with a bias of 3 twice that more.
        let requantization = Requantization::by(2.0, 5, Signedness::Unsigned);
        for (set, (bias, expected)) in
            InstructionSet::available().flat_map(|set| [(set, (None, 9)), (set, (Some(3), 15))])
        {
            let product = BatchMatmul::prepare(
                1,
                [[0, 0]],
                [1, 2, 1],
                [false; 2],
                Signedness::Unsigned,
                [1, 2],
                requantization.clone(),
                bias,
                &mut Preparation::new(set, 1),
            )
            .unwrap();
            let mut output = [0];
            let mut scratch = Lines::with_bytes(product.scratch_bytes());
            let scratch = scratch.lines_mut();
            product.run(&mut Team::alone(), &[1, 2], &[3, 4], &[3], &mut output, scratch);
            assert_eq!(output, [expected], "{set}");
        }
    }
}
