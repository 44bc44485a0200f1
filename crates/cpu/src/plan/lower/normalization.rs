//! Normalizations of floats.

use super::softmax::around;
use crate::graph::{Node, Normalization};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Run, name};
use crate::why::Why;
use nnhal_driver::{Budget, EngineError};
use nnhal_kernels::movement::StridedCopy;
use nnhal_kernels::reduction::{
    self, RowNormalization, instance_normalization, local_response_normalization,
};
use nnhal_kernels::{Multiplier, Team};
use nnhal_ops::operations::{InstanceNormalization, L2Normalization, LocalResponseNormalization};
use nnhal_ops::rules::inverse_square_root::inverse_square_root;
use nnhal_ops::rules::layout;
use std::ops::Range;

/// Layer normalization. Inputs: the rows, and a factor and an offset, as far as there are any.
#[derive(Debug)]
struct Layer {
    kernel: RowNormalization,
    has_scale: bool,
    has_offset: bool,
}

pub(super) fn lower(builder: &Builder<'_, '_>, node: &Node, normalization: Normalization) -> Draft {
    let Normalization { epsilon, has_scale, has_offset } = normalization;
    let input = &builder.graph.values[node.inputs[0]];
    let length = input.dimensions.last().map_or(1, |length| *length as usize);
    let rows = input.elements().checked_div(length).unwrap_or(0);
    let set = builder.settings.instruction_set;
    let kind = reduction::Normalization::Layer { epsilon };
    let kernel = RowNormalization::prepare(set, kind, rows, length);
    Draft::new(node, Layer { kernel, has_scale, has_offset }, node.inputs.iter().copied())
}

pub(super) fn l2(
    builder: &Builder<'_, '_>,
    node: &Node,
    normalization: &L2Normalization,
) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    if !input.is_float() {
        return quantized_l2(builder, node, normalization.axis);
    }
    let sizes = around(&input, normalization.axis);
    let [outer, length, inner] = sizes;
    // As the operation has it.
    let kind = reduction::Normalization::L2 { least: 1e-6 };
    let set = builder.settings.instruction_set;
    let kernel = RowNormalization::prepare(set, kind, outer * inner, length);
    Ok(draft(node, Along::new(sizes, OfRows::L2(kernel))))
}

/// INSTANCE_NORMALIZATION of NHWC images of floats.
pub(super) fn instance(
    builder: &Builder<'_, '_>,
    node: &Node,
    normalization: &InstanceNormalization,
) -> Result<Draft, Why> {
    let [batch, height, width, channels] = builder.graph.input(node, 0).image()?;
    if normalization.layout != layout::Layout::Nhwc {
        return Err(Why::ChannelsFirst);
    }
    let pixels = height * width;
    let InstanceNormalization { gamma, beta, epsilon, .. } = *normalization;
    let (sizes, numbers) = ([batch, pixels, channels], [gamma, beta, epsilon]);
    Ok(draft(node, Instance { sizes, numbers }))
}

pub(super) fn local_response(
    builder: &Builder<'_, '_>,
    node: &Node,
    normalization: &LocalResponseNormalization,
) -> Draft {
    let sizes = around(&builder.graph.values[node.inputs[0]], normalization.axis);
    let LocalResponseNormalization { radius, bias, alpha, beta, .. } = *normalization;
    let numbers = [bias, alpha, beta];
    let kernel = OfRows::LocalResponse { length: sizes[1], radius: radius as usize, numbers };
    draft(node, Along::new(sizes, kernel))
}

fn draft(node: &Node, kernel: impl Kernel + 'static) -> Draft {
    Draft::new(node, kernel, [node.inputs[0]])
}

/// INSTANCE_NORMALIZATION: batch, pixels and channels; gamma, beta and epsilon.
#[derive(Debug)]
struct Instance {
    sizes: [usize; 3],
    numbers: [f32; 3],
}

impl Kernel for Instance {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let output = bytemuck::cast_slice_mut(output);
        instance_normalization(run.team, self.sizes, self.numbers, inputs.floats(0), output);
        Ok(())
    }

    fn name(&self) -> String {
        "instance normalization f32".to_owned()
    }
}

/// What is done with rows.
#[derive(Debug)]
enum OfRows {
    L2(RowNormalization),
    /// Bias, alpha and beta.
    LocalResponse {
        length: usize,
        radius: usize,
        numbers: [f32; 3],
    },
}

impl OfRows {
    fn run(&self, team: &mut Team, input: &[f32], output: &mut [f32]) {
        match self {
            Self::L2(kernel) => kernel.run(team, input, None, None, output),
            Self::LocalResponse { length, radius, numbers } => {
                local_response_normalization(team, *length, *radius, *numbers, input, output);
            }
        }
    }
}

/// A normalization along any axis: of rows, to which slices along other axes than the last are brought.
#[derive(Debug)]
struct Along {
    kernel: OfRows,
    /// To rows and back.
    turns: Option<[StridedCopy; 2]>,
    elements: usize,
}

impl Along {
    /// Of a tensor with these lengths before the axis, along it and behind it.
    fn new([outer, length, inner]: [usize; 3], kernel: OfRows) -> Self {
        let turned = |lengths: [usize; 3]| StridedCopy::transpose(&lengths, &[0, 2, 1]);
        let turns =
            (inner > 1).then(|| [turned([outer, length, inner]), turned([outer, inner, length])]);
        Self { kernel, turns, elements: outer * length * inner }
    }
}

impl Kernel for Along {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let (input, output) = (inputs.floats(0), bytemuck::cast_slice_mut(output));
        let Some([to_rows, back]) = &self.turns else {
            self.kernel.run(run.team, input, output);
            return Ok(());
        };
        let scratch = bytemuck::cast_slice_mut(scratch);
        let (rows, results) = scratch.split_at_mut(self.elements);
        to_rows.run(run.team, input, rows);
        let results = &mut results[..self.elements];
        self.kernel.run(run.team, rows, results);
        back.run(run.team, results, output);
        Ok(())
    }

    fn name(&self) -> String {
        match &self.kernel {
            OfRows::L2(_) => "l2 normalization f32".to_owned(),
            OfRows::LocalResponse { .. } => "local response normalization f32".to_owned(),
        }
    }

    fn scratch_bytes(&self) -> usize {
        self.turns.as_ref().map_or(0, |_| 2 * self.elements * size_of::<f32>())
    }
}

/// L2_NORMALIZATION of 8-bit numbers, whose output is in steps of 1/128.
#[derive(Debug)]
struct QuantizedL2 {
    /// Lengths before the axis, along it and behind it.
    sizes: [usize; 3],
    zero_points: [i32; 2],
    is_signed: bool,
}

fn quantized_l2(builder: &Builder<'_, '_>, node: &Node, axis: usize) -> Result<Draft, Why> {
    let (input, output) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let zero_points = [input.operand.zero_point, output.operand.zero_point];
    let is_signed = input.is_signed("floats or 8-bit integers")?;
    Ok(draft(node, QuantizedL2 { sizes: around(&input, axis), zero_points, is_signed }))
}

impl QuantizedL2 {
    /// One slice, whose elements have the inner size as their stride.
    fn slice(&self, input: &[u8], output: &mut [u8], budget: &Budget) -> Result<(), EngineError> {
        let [_, length, inner] = self.sizes;
        let [zero_of_input, zero_of_output] = self.zero_points;
        let offset = |byte: u8| {
            let stored = if self.is_signed { byte.cast_signed().into() } else { i32::from(byte) };
            stored - zero_of_input
        };
        let offsets = |of: Range<usize>| {
            let elements = input[of.start * inner..].iter().step_by(inner).take(of.len());
            elements.map(|byte| offset(*byte))
        };
        let mut squares = 0;
        for block in budget.blocks(length) {
            squares += offsets(block?).map(|it| i64::from(it).pow(2)).sum::<i64>();
        }
        let factor = inverse_square_root(squares);
        let factor = Multiplier { mantissa: factor.mantissa, exponent: factor.exponent };
        let range = if self.is_signed { (-128, 127) } else { (0, 255) };
        for block in budget.blocks(length) {
            let block = block?;
            let outputs = output[block.start * inner..].iter_mut().step_by(inner);
            for (offset, output) in offsets(block).zip(outputs) {
                let stored = factor.apply(offset * 128).saturating_add(zero_of_output);
                *output = stored.clamp(range.0, range.1).to_le_bytes()[0];
            }
        }
        Ok(())
    }
}

impl Kernel for QuantizedL2 {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let [_, length, inner] = self.sizes;
        let image = length * inner;
        if output.is_empty() {
            return Ok(());
        }
        let input = inputs.bytes(0);
        // Elements since the last question.
        let mut since = 0;
        for (input, output) in input.chunks_exact(image).zip(output.chunks_exact_mut(image)) {
            for column in 0..inner {
                since += length;
                if since >= Budget::BLOCK {
                    run.budget.check_inside()?;
                    since = 0;
                }
                self.slice(&input[column..], &mut output[column..], run.budget)?;
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        format!("l2 normalization {}", name::quantized(self.is_signed))
    }
}

impl Kernel for Layer {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let scale = self.has_scale.then(|| inputs.floats(1));
        let offset = self.has_offset.then(|| inputs.floats(1 + usize::from(self.has_scale)));
        let output = bytemuck::cast_slice_mut(output);
        self.kernel.run(run.team, inputs.floats(0), scale, offset, output);
        Ok(())
    }

    fn name(&self) -> String {
        "layer normalization f32".to_owned()
    }
}
