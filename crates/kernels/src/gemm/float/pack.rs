//! Copies of parts of the operands, in the order in which tiles read them.

use super::matrix::Matrix;
#[cfg(target_arch = "x86_64")]
use super::{turn_avx2, turn_avx512};
use crate::team::Pace;
use crate::vector::{Isa, Kernel, Simd};
use std::ops::Range;

/// Copies some columns of all rows, until the pace is over: `to[row * width + column]`. Beyond the columns there are zeros.
fn columns_until(
    pace: &mut Pace<'_>,
    matrix: &Matrix<'_>,
    rows: usize,
    columns: Range<usize>,
    width: usize,
    to: &mut [f32],
) {
    for block in pace.blocks(rows, width) {
        let to = to[block.start * width..].chunks_exact_mut(width.max(1));
        for (row, to) in block.zip(to) {
            let (values, rest) = to.split_at_mut(columns.len());
            values.copy_from_slice(matrix.row(row, columns.clone()));
            rest.fill(0.0);
        }
    }
}

/// Copies the first `depth` values of some rows, turned, until the pace is over: `to[column * stride + row]`. Beyond the
/// rows there are zeros, up to `width` of them.
pub(crate) fn turned_until(
    pace: &mut Pace<'_>,
    isa: Isa,
    matrix: &Matrix<'_>,
    rows: Range<usize>,
    depth: usize,
    [width, stride]: [usize; 2],
    to: &mut [f32],
) {
    for block in pace.blocks(depth, width) {
        let matrix = &Matrix { start: matrix.start + block.start, ..*matrix };
        let (rows, depth) = (rows.clone(), block.len());
        let to = &mut to[block.start * stride..];
        let done = match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) => turn_avx512::squares(matrix, rows.clone(), depth, stride, to),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => turn_avx2::blocks(matrix, rows.clone(), depth, stride, to),
            _ => [0, 0],
        };
        isa.run(Turned { matrix, rows, depth, width, stride, done, to });
    }
}

/// Copies the columns of a panel, which are those of a matrix, or its rows if it is `transposed`.
pub(crate) fn panel_until(
    pace: &mut Pace<'_>,
    isa: Isa,
    (matrix, transposed): (&Matrix<'_>, bool),
    depth: usize,
    (columns, width): (Range<usize>, usize),
    to: &mut [f32],
) {
    if transposed {
        turned_until(pace, isa, matrix, columns, depth, [width; 2], to);
    } else {
        columns_until(pace, matrix, depth, columns, width, to);
    }
}

struct Turned<'a, 'm> {
    matrix: &'a Matrix<'m>,
    rows: Range<usize>,
    depth: usize,
    width: usize,
    stride: usize,
    /// This many rows of this many values are there already.
    done: [usize; 2],
    to: &'a mut [f32],
}

/// Rows and columns of a block that is turned in registers.
const BLOCK: usize = 8;

impl Kernel for Turned<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { matrix, rows, depth, width, stride, done, to } = self;
        let mut lane = 0;
        while lane < width {
            let count = BLOCK.min(width - lane);
            let there = rows.len().saturating_sub(lane).min(count);
            let mut column = if lane < done[0] { done[1] } else { 0 };
            if there == BLOCK {
                while column + BLOCK <= depth {
                    let mut block = [[0.0; BLOCK]; BLOCK];
                    for (index, to) in block.iter_mut().enumerate() {
                        let row = rows.start + lane + index;
                        to.copy_from_slice(matrix.row(row, column..column + BLOCK));
                    }
                    for index in 0..BLOCK {
                        let mut turned = [0.0; BLOCK];
                        for (to, row) in turned.iter_mut().zip(&block) {
                            *to = row[index];
                        }
                        let at = (column + index) * stride + lane;
                        to[at..at + BLOCK].copy_from_slice(&turned);
                    }
                    column += BLOCK;
                }
            }
            for column in column..depth {
                let at = column * stride + lane;
                for (index, to) in to[at..at + count].iter_mut().enumerate() {
                    *to = if index < there {
                        matrix.row(rows.start + lane + index, column..column + 1)[0]
                    } else {
                        0.0
                    };
                }
            }
            lane += count;
        }
    }
}
