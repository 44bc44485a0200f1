//! [`Packed`]: weights in the order in which vectors multiply them.

use crate::Preparation;
use crate::packing::PackedValues;
use crate::vector::Simd;

/// Vectors of a panel.
pub(super) const VECTORS: usize = 8;

/// A matrix of weights, cut into panels of [`VECTORS`] vectors of output columns. A panel holds for
/// each input its weights to all columns.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    weights: PackedValues<f32>,
    inputs: usize,
    /// Weights of a panel.
    panel: usize,
}

impl Packed {
    /// Packs for vectors of `lanes` lanes. `weight` tells the weight of a column, by panel and place
    /// within it, for an input.
    pub(super) fn new(
        preparation: &mut Preparation,
        lanes: usize,
        panels: usize,
        inputs: usize,
        weight: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let width = VECTORS * lanes;
        let size = width.checked_mul(inputs).and_then(|it| it.checked_mul(panels));
        let weights = preparation.pack(size.expect("weights beyond memory"), |places| {
            let mut places = places.iter_mut();
            for panel in 0..panels {
                for input in 0..inputs {
                    for column in 0..width {
                        if let Some(place) = places.next() {
                            *place = weight(panel, column, input);
                        }
                    }
                }
            }
        });
        Self { weights, inputs, panel: width * inputs }
    }

    /// How many inputs each column has.
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Adds the products of rows of inputs and a panel to sums, which are a panel's width for each
    /// row.
    #[inline(always)]
    pub(super) fn add_products<S: Simd, const ROWS: usize>(
        &self,
        simd: S,
        panel: usize,
        rows: [&[f32]; ROWS],
        sums: &mut [[S::F; VECTORS]; ROWS],
    ) {
        let rows = rows.map(|row| &row[..self.inputs]);
        let weights = &self.weights.values()[panel * self.panel..(panel + 1) * self.panel];
        // As many sums at a time as there are registers for.
        if S::LANES == 16 {
            add_part::<S, ROWS, 8>(simd, weights, 0, rows, sums);
        } else {
            add_part::<S, ROWS, 4>(simd, weights, 0, rows, sums);
            add_part::<S, ROWS, 4>(simd, weights, 4, rows, sums);
        }
    }
}

/// [`Packed::add_products`] for `PART` vectors of the panel.
#[inline(always)]
fn add_part<S: Simd, const ROWS: usize, const PART: usize>(
    simd: S,
    weights: &[f32],
    first: usize,
    rows: [&[f32]; ROWS],
    sums: &mut [[S::F; VECTORS]; ROWS],
) {
    let zero = simd.splat(0.0);
    let mut parts = [[zero; PART]; ROWS];
    for (part, sums) in parts.iter_mut().zip(&*sums) {
        part.copy_from_slice(&sums[first..first + PART]);
    }
    for (input, weights) in weights.chunks_exact(VECTORS * S::LANES).enumerate() {
        let mut vectors = [zero; PART];
        for (index, vector) in vectors.iter_mut().enumerate() {
            *vector = simd.load(&weights[(first + index) * S::LANES..]);
        }
        for (part, row) in parts.iter_mut().zip(rows) {
            let x = simd.splat(row[input]);
            for (sum, vector) in part.iter_mut().zip(vectors) {
                *sum = simd.fma(x, vector, *sum);
            }
        }
    }
    for (part, sums) in parts.iter().zip(sums) {
        sums[first..first + PART].copy_from_slice(part);
    }
}
