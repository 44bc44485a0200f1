//! Products of two matrices that are known only when the plan runs.

use super::convolution::float_epilogue;
use crate::graph::{Argument, Attention, Matmul, Node};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_hal::FusedActivation;
use nnhal_kernels::Preparation;
use nnhal_kernels::Requantization;
use nnhal_kernels::batch_matmul::float::Layout;
use nnhal_kernels::batch_matmul::{float, quantized};
use nnhal_kernels::softmax::Adjustment;
use nnhal_ops::operations::BatchMatmul;
use nnhal_ops::rules::broadcast;

pub(super) fn lower(builder: &Builder<'_, '_>, node: &Node, matmul: &Matmul) -> Draft {
    let Matmul { sizes, left, right, output, epilogue } = matmul.clone();
    let output = output.unwrap_or_else(|| {
        let [rows, columns, _] = sizes;
        let row_stride = builder.pixel_stride(node.outputs[0], columns);
        let starts = (0..left.starts.len()).map(|index| index * rows * row_stride).collect();
        Layout { starts, row_stride, transposed: false }
    });
    let settings = builder.settings;
    let (set, threads) = (settings.instruction_set, settings.threads.get());
    let layouts = [left, right, output];
    let product =
        float::BatchMatmul::prepare(sizes, layouts, float_epilogue(epilogue), set, threads);
    Draft::new(node, product, node.inputs.iter().copied())
}

pub(super) fn attention(builder: &Builder<'_, '_>, node: &Node, attention: &Attention) -> Draft {
    let Attention { scores, softmax, outer, results } = attention.clone();
    let [rows, keys, depth] = scores.sizes;
    let [_, width, _] = results.sizes;
    let count = scores.left.starts.len();
    let output = results.output.unwrap_or_else(|| Layout::contiguous(count, [rows, width], false));
    let mask = node
        .inputs
        .get(3)
        .map(|mask| super::softmax::mask_axes(&outer, &builder.graph.values[*mask].dimensions));
    let settings = builder.settings;
    let kernel = nnhal_kernels::attention::Attention::prepare(
        [rows, keys, depth, width],
        [scores.left, scores.right, results.right, output],
        softmax.beta,
        Adjustment { factor: softmax.factor, mask },
        settings.instruction_set,
        settings.threads.get(),
    );
    Draft::new(node, kernel, node.inputs.iter().copied())
}

/// BATCH_MATMUL of 8-bit numbers.
pub(super) fn quantized(
    builder: &Builder<'_, '_>,
    node: &Node,
    matmul: &BatchMatmul,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let expected = "floats or 8-bit integers";
    let [x, y] = [0, 1].map(|position| builder.graph.input(node, position));
    let output = builder.graph.output(node, 0);
    /// The axes before a matrix, and its rows and columns.
    fn matrices(argument: Argument<'_>) -> Result<(Vec<u32>, [u32; 2]), Why> {
        let parts = argument.dimensions.split_last_chunk::<2>();
        let (batch, matrix) = parts.ok_or_else(|| argument.of_other_rank("2 or more"))?;
        Ok((batch.to_vec(), *matrix))
    }
    let (batch, [rows, columns]) = matrices(output)?;
    let (of_x, [upper, lower]) = matrices(x)?;
    let (of_y, _) = matrices(y)?;
    let inner = if matmul.transpose_x { upper } else { lower };
    let signedness = output.activations().ok_or_else(|| output.of_other_type(expected))?.signedness;
    for input in [x, y] {
        if input.operand_type() != output.operand_type() {
            return Err(input.of_other_type("that of the output"));
        }
    }
    if output.elements() == 0 {
        return Err(output.empty());
    }
    let (min, max) = output.stored_range(FusedActivation::None, expected)?;
    let requantization = Requantization {
        multipliers: super::quantized::multipliers([&x, &y, &output], preparation)?,
        zero_point: output.operand.zero_point,
        min,
        max,
    };
    let lengths =
        |lengths: &[u32]| -> Vec<usize> { lengths.iter().map(|it| *it as usize).collect() };
    let batch = lengths(&batch);
    let x_of_product = broadcast::positions(&lengths(&of_x), &batch);
    let y_of_product = broadcast::positions(&lengths(&of_y), &batch);
    let product = quantized::BatchMatmul::prepare(
        // Of an output that has a place in memory.
        batch.iter().fold(1, |count: usize, length| count.saturating_mul(*length)),
        x_of_product.zip(y_of_product).map(|(x, y)| [x, y]),
        [rows, inner, columns].map(|length| length as usize),
        [matmul.transpose_x, matmul.transpose_y],
        signedness,
        [x, y].map(|input| input.operand.zero_point),
        requantization,
        None,
        preparation,
    )?;
    Ok(Draft::new(node, product, node.inputs[..2].iter().copied()))
}
