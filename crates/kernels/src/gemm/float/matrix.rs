//! [`Matrix`]: a matrix in memory, to be packed.

use std::ops::Range;

/// A matrix among others: element `(row, column)` is at `start + row * stride + column`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub(crate) values: &'a [f32],
    pub(crate) start: usize,
    pub(crate) stride: usize,
}

impl<'a> Matrix<'a> {
    pub(super) fn row(&self, row: usize, columns: Range<usize>) -> &'a [f32] {
        let start = self.start + row * self.stride;
        &self.values[start + columns.start..start + columns.end]
    }
}
