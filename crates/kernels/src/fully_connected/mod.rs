//! Fully connected layers of float32.
//!
//! Those of quantized values are [convolutions](crate::convolution::quantized) in which each row is a pixel, see
//! [`matrix_product`](crate::convolution::Shape::matrix_product); those of floats with 8-bit weights are in
//! [`dynamic`](crate::dynamic).
#![allow(unsafe_code)]

mod stream;
#[cfg(test)]
mod tests;

use crate::disjoint::DisjointOutput;
use crate::gemm::float::{
    Arguments, Blocking, Epilogue, Layer, PackedProduct, Panels, PlainRows, RowsPlan,
};
use crate::preparation::PackedValues;
use crate::prepared::{Operands, PreparedKernel, WrongValue, multiply_adds};
use crate::team::Pace;
use crate::vector::Isa;
use crate::{Image, ImageMut, InstructionSet, LINE_BYTES, Line, Preparation, Team, TooLarge};
use stream::{MOST_VECTORS, Stream, Weights};

/// How weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Storage {
    /// As float32.
    Full,
    /// As float16, which halves what a layer of one row has to read. Weights are rounded to it; sums
    /// are float32. Layers of several rows keep float32.
    Half,
}

/// A fully connected layer with its weights packed and its work cut into tasks.
#[derive(Debug)]
pub struct FullyConnected {
    sizes: Sizes,
    set: InstructionSet,
    method: Method,
}

/// The sizes of a fully connected layer: `output[rows][units] = input[rows][inputs] * weights`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// How many rows, the batch.
    pub rows: usize,
    /// Values of a row of the input.
    pub inputs: usize,
    /// Values of a row of the output.
    pub units: usize,
}

#[derive(Debug)]
enum Method {
    Gemm(PackedProduct),
    Stream(Row),
}

/// The layer of one row.
#[derive(Debug)]
struct Row {
    isa: Isa,
    /// Not packed if there are halves.
    panels: Panels,
    halves: Option<Halves>,
    epilogue: Epilogue,
}

/// What panels have, with weights of float16.
#[derive(Debug)]
struct Halves {
    weights: PackedValues<u16>,
    /// Of whole vectors.
    bias: Vec<f32>,
}

/// Inputs: the rows, and the residual operand if there is one.
impl PreparedKernel for FullyConnected {
    fn name(&self) -> String {
        format!("fully connected {}", self.kernel())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let (output, scratch) =
            (bytemuck::cast_slice_mut(output), bytemuck::cast_slice_mut(scratch));
        self.run(team, inputs.of(0), inputs.optional(1), output, scratch);
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        match &self.method {
            Method::Gemm(product) => product.scratch_bytes(),
            Method::Stream(_) => 0,
        }
    }

    fn arithmetic(&self) -> u64 {
        let Sizes { rows, inputs, units } = self.sizes;
        multiply_adds(&[rows, inputs, units])
    }
}

impl FullyConnected {
    /// Packs the weights, `[units, inputs]`, and the bias, one for each unit, and cuts the work.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the weights or the bias are not as large as the sizes say.
    pub fn prepare(
        sizes: Sizes,
        weights: &[f32],
        bias: &[f32],
        storage: Storage,
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let Sizes { rows, inputs, units } = sizes;
        let too_large = TooLarge::beyond_addresses("weights");
        let values = units.checked_mul(inputs).ok_or(too_large)?;
        preparation.check_count(weights.len(), values, "values of the weights");
        assert_eq!(bias.len(), units, "values of the bias");
        let (set, threads) = (preparation.set(), preparation.threads());
        let (columns, bias_of) = ([1, units], |n: usize| bias[n]);
        let blocking = Blocking::of(set);
        let method = if rows == 1 {
            let vectors = units.div_ceil(blocking.lanes);
            // A few panels for each thread, but not so narrow that there are few sums in flight.
            let wide = if blocking.lanes == 16 { MOST_VECTORS } else { MOST_VECTORS / 2 };
            let vectors = vectors.div_ceil(2 * threads).clamp(2, wide);
            let blocking = Blocking { vectors, ..blocking };
            let (panels, halves) = match storage {
                Storage::Full => {
                    let pack = Panels::pack_columns;
                    (pack(preparation, blocking, inputs, columns, bias_of, weights)?, None)
                }
                Storage::Half => {
                    let panels = Panels::at_run_time(blocking, inputs, columns)?;
                    let weights = panels.pack_halves(preparation, weights)?;
                    let padded = units.next_multiple_of(blocking.lanes);
                    let mut padded = preparation.filled(0.0, padded, "a bias")?;
                    padded[..units].copy_from_slice(bias);
                    (panels, Some(Halves { weights, bias: padded }))
                }
            };
            Method::Stream(Row { isa: Isa::of(set), panels, halves, epilogue })
        } else {
            let row_bytes = inputs.saturating_mul(size_of::<f32>());
            let bytes = rows.saturating_mul(row_bytes);
            let plan = RowsPlan { count: rows, line: rows, bytes, row_bytes, scratch_values: 0 };
            let (plan, sizes) = ((plan, rows), (inputs, columns));
            let layer = Layer { filter: weights, bias, epilogue };
            Method::Gemm(PackedProduct::new(plan, blocking, sizes, layer, preparation)?)
        };
        Ok(Self { sizes, set, method })
    }

    /// The sizes.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Algorithm, type and instruction set, for profiles.
    pub fn kernel(&self) -> String {
        let algorithm = match &self.method {
            Method::Gemm(product) => product.name(),
            Method::Stream(row) if row.halves.is_some() => "gemv with f16 weights",
            Method::Stream(_) => "gemv",
        };
        format!("{algorithm} f32 {}", self.set)
    }

    /// How many floats [`run_within`](Self::run_within) wants.
    pub(crate) fn scratch_elements(&self) -> usize {
        match self.scratch_bytes() {
            0 => 0,
            // They may begin behind the beginning of a line.
            bytes => bytes.saturating_add(LINE_BYTES) / size_of::<f32>(),
        }
    }

    /// As [`run`](Self::run), with scratch memory within floats.
    pub(crate) fn run_within(
        &self,
        team: &mut Team,
        input: &[f32],
        residual: Option<&[f32]>,
        output: &mut [f32],
        scratch: &mut [f32],
    ) {
        let (_, lines, _) = bytemuck::pod_align_to_mut(scratch);
        self.run(team, input, residual, output, lines);
    }

    /// Computes the output. The residual operand, of the output's shape, is added before the
    /// epilogue.
    ///
    /// # Panics
    /// If the input, the residual operand, the output or the scratch memory is too small.
    pub fn run(
        &self,
        team: &mut Team,
        input: &[f32],
        residual: Option<&[f32]>,
        output: &mut [f32],
        scratch: &mut [Line],
    ) {
        let Sizes { rows, inputs, units } = self.sizes;
        match &self.method {
            Method::Gemm(product) => {
                let rows = PlainRows::new(input, [rows, 1, inputs], inputs);
                let residual = residual.map(|values| Image::contiguous(values, units));
                let output = ImageMut::contiguous(output, units);
                product.run(team, Arguments { rows: &rows, residual, output, scratch });
            }
            Method::Stream(row) => {
                assert!(input.len() >= inputs, "the input is too small");
                assert!(output.len() >= units, "the output is too small");
                let residual = residual.map(|residual| {
                    assert!(residual.len() >= units, "the residual operand is too small");
                    &residual[..units]
                });
                row.run(team, &input[..inputs], residual, &mut output[..units]);
            }
        }
    }
}

impl Row {
    fn run(&self, team: &mut Team, inputs: &[f32], residual: Option<&[f32]>, output: &mut [f32]) {
        let output = DisjointOutput::new(output);
        team.run_long(self.panels.count(), &|task, stop| {
            let panel = self.panels.panel(task);
            let (bias, weights) = match &self.halves {
                None => {
                    let (bias, weights) = self.panels.split(&panel);
                    (bias, Weights::Full(weights))
                }
                Some(Halves { weights, bias }) => {
                    let bias = &bias[panel.columns.start..][..self.panels.width(&panel)];
                    (bias, Weights::Half(&weights.values()[self.panels.weights(&panel)]))
                }
            };
            let stream = Stream {
                inputs,
                weights,
                bias,
                residual: residual.map(|residual| &residual[panel.columns.clone()]),
                // SAFETY: panels have different columns.
                output: unsafe { output.slice(panel.columns.start, panel.columns.len()) },
                epilogue: &self.epilogue,
                pace: Pace::new(stop),
            };
            stream::run(self.isa, panel.vectors, stream);
        });
    }
}
