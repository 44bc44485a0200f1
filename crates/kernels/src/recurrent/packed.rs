//! [`Packed`]: weights in the order in which vectors multiply them.

use crate::gemm::float::matrix::Matrix;
use crate::gemm::float::pack::turned_until;
use crate::preparation::PackedValues;
use crate::vector::{Isa, Simd};
use crate::{Preparation, TooLarge};

/// Rows of inputs that are multiplied together.
pub(super) const ROWS: usize = 3;

/// A matrix of weights, cut into panels of a few vectors of output columns. A panel holds for each
/// input its weights to all columns.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    weights: PackedValues<f32>,
    inputs: usize,
    panels: usize,
    /// Weights of a panel.
    panel: usize,
}

impl Packed {
    /// Packs the rows of matrices, `[rows, inputs]` each, into panels of this many vectors. The columns
    /// of a panel are the same number of rows of each matrix, one matrix after the other; those of a matrix that
    /// is not there are 0.
    ///
    /// # Errors
    /// If they are more than may be taken.
    pub(super) fn new(
        preparation: &mut Preparation,
        vectors: usize,
        matrices: &[Option<&[f32]>],
        [rows, inputs]: [usize; 2],
    ) -> Result<Self, TooLarge> {
        let isa = Isa::of(preparation.set());
        let width = vectors * isa.lanes();
        let block = width / matrices.len();
        let panels = rows.div_ceil(block);
        let too_large = TooLarge::beyond_addresses("packed weights");
        let panel = width.checked_mul(inputs).ok_or(too_large)?;
        let size = panels.checked_mul(panel).ok_or(too_large)?;
        let weights = preparation.pack(size, |places, pace| {
            for (index, places) in places.chunks_exact_mut(panel.max(1)).enumerate() {
                let rows = index * block..rows.min((index + 1) * block);
                for (place, values) in matrices.iter().enumerate() {
                    let Some(values) = *values else { continue };
                    let matrix = Matrix { values, start: 0, stride: inputs };
                    let places = &mut places[place * block..];
                    turned_until(pace, isa, &matrix, rows.clone(), inputs, [block, width], places);
                }
            }
        })?;
        Ok(Self { weights, inputs, panels, panel })
    }

    pub(super) fn panels(&self) -> usize {
        self.panels
    }

    /// Multiplications for each row of inputs.
    pub(super) fn products(&self) -> usize {
        self.panels * self.panel
    }

    /// Multiplications of a panel for each row of inputs.
    pub(super) fn panel_products(&self) -> usize {
        self.panel
    }

    /// Adds the products of rows of inputs and a panel of `VECTORS` vectors to sums.
    #[inline(always)]
    pub(super) fn add_products<S: Simd, const ROWS: usize, const VECTORS: usize>(
        &self,
        simd: S,
        panel: usize,
        rows: [&[f32]; ROWS],
        sums: &mut [[S::F; VECTORS]; ROWS],
    ) {
        let mut rows = rows;
        for row in &mut rows {
            *row = &row[..self.inputs];
        }
        let weights = &self.weights.values()[panel * self.panel..(panel + 1) * self.panel];
        // As many sums at a time as there are registers for.
        if S::LANES == 16 || ROWS == 1 || VECTORS != 8 {
            add_part::<S, ROWS, VECTORS, VECTORS>(simd, weights, 0, rows, sums);
        } else {
            add_part::<S, ROWS, VECTORS, 4>(simd, weights, 0, rows, sums);
            add_part::<S, ROWS, VECTORS, 4>(simd, weights, 4, rows, sums);
        }
    }
}

/// [`Packed::add_products`] for `PART` vectors of the panel.
#[allow(clippy::needless_range_loop)] // See `crate::unrolled`.
#[inline(always)]
fn add_part<S: Simd, const ROWS: usize, const VECTORS: usize, const PART: usize>(
    simd: S,
    weights: &[f32],
    first: usize,
    rows: [&[f32]; ROWS],
    sums: &mut [[S::F; VECTORS]; ROWS],
) {
    let zero = simd.splat(0.0);
    let mut parts = [[zero; PART]; ROWS];
    for row in 0..ROWS {
        parts[row].copy_from_slice(&sums[row][first..first + PART]);
    }
    for (input, weights) in weights.chunks_exact(VECTORS * S::LANES).enumerate() {
        let mut vectors = [zero; PART];
        for index in 0..PART {
            vectors[index] = simd.load(&weights[(first + index) * S::LANES..]);
        }
        for row in 0..ROWS {
            let x = simd.splat(rows[row][input]);
            for index in 0..PART {
                parts[row][index] = simd.fma(x, vectors[index], parts[row][index]);
            }
        }
    }
    for row in 0..ROWS {
        sums[row][first..first + PART].copy_from_slice(&parts[row]);
    }
}
