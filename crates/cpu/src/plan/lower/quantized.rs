//! Convolutions of 8-bit numbers.

use super::convolution::strides;
use crate::graph::{self, Bytes, Node, Value};
use crate::plan::{Builder, Draft};
use nnhal_hal::ExtraParams;
use nnhal_kernels::batch_matmul::quantized::BatchMatmul;
use nnhal_kernels::convolution::quantized::{Convolution, Layer};
use nnhal_kernels::depthwise::quantized::Depthwise;
use nnhal_kernels::quantization::{Activations, Weights};
use nnhal_kernels::transposed_convolution::quantized::TransposedConvolution;
use nnhal_kernels::unpacked_convolution::quantized::UnpackedConvolution;
use nnhal_kernels::{Multiplier, OfImages, Preparation, Requantization, TooLarge};
use nnhal_ops::rules::requantize;

/// What a node with constant weights and a constant bias multiplies and adds.
fn layer<'a>(
    bytes: Bytes,
    values: &'a [u8],
    bias: &'a [i32],
    requantization: Requantization,
) -> Layer<'a> {
    let Activations { signedness, zero_point } = bytes.weights;
    let weights = Weights { values, signedness, zero_point };
    Layer { weights, bias, activations: bytes.input, requantization }
}

/// The constant bias of a node whose inputs are input, weights and bias.
fn bias(
    builder: &Builder<'_, '_>,
    node: &Node,
    preparation: &mut Preparation,
) -> Result<Vec<i32>, TooLarge> {
    let bias = &builder.graph.values[node.inputs[2]];
    let (bias, _) = bias.constant().ok_or_else(|| bias.unreadable())?.as_chunks();
    preparation.collected(bias.iter().map(|bias| i32::from_le_bytes(*bias)), "a bias")
}

/// How sums of products of a node's first two inputs become its output.
fn requantization(
    builder: &Builder<'_, '_>,
    node: &Node,
    bytes: Bytes,
    preparation: &mut Preparation,
) -> Result<Requantization, TooLarge> {
    let values = &builder.graph.values;
    let [input, weights] = [0, 1].map(|position| &values[node.inputs[position]]);
    let output = &values[node.outputs[0]];
    let (min, max) = bytes.range;
    Ok(Requantization {
        multipliers: multipliers([input, weights, output], preparation)?,
        zero_point: output.operand.zero_point,
        min,
        max,
    })
}

/// As [`nnhal_ops::rules::convolution::Requantizer::new`] has them.
pub(super) fn multipliers(
    [input, weights, output]: [&Value<'_>; 3],
    preparation: &mut Preparation,
) -> Result<Vec<Multiplier>, TooLarge> {
    let (input, output) = (input.operand.scale, f64::from(output.operand.scale));
    let multiplier = |product: f64| {
        let exact = requantize::Multiplier::from_real(product / output);
        Multiplier { mantissa: exact.mantissa, exponent: exact.exponent }
    };
    match &weights.operand.extra_params {
        ExtraParams::ChannelQuant(quant) => {
            let scales = quant.scales.iter();
            let each = scales.map(|scale| multiplier(f64::from(input) * f64::from(*scale)));
            preparation.collected(each, "multipliers of channels")
        }
        _ => Ok(vec![multiplier(f64::from(input * weights.operand.scale))]),
    }
}

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &graph::Convolution,
    bytes: Bytes,
    preparation: &mut Preparation,
) -> Result<Draft, TooLarge> {
    let graph::Convolution { shape, is_depthwise, .. } = convolution;
    let shape = &shape.along_rows();
    let filter = &builder.graph.values[node.inputs[1]];
    let strides = strides(builder, node, shape);
    if !filter.is_constant() || !builder.graph.values[node.inputs[2]].is_constant() {
        let requantization = requantization(builder, node, bytes, preparation)?;
        let Bytes { input, weights, .. } = bytes;
        let (inputs, outputs) = (shape.input_channels, shape.output_channels);
        let is_product = shape.is_matrix_product()
            && !is_depthwise
            && [shape.groups, requantization.multipliers.len()] == [1, 1]
            && weights.signedness == input.signedness
            && [strides.input, strides.output] == [inputs, outputs];
        if is_product {
            let greatest_bias = if builder.graph.values[node.inputs[2]].is_constant() {
                let bias = bias(builder, node, preparation)?;
                bias.iter().map(|bias| bias.unsigned_abs()).max().unwrap_or(0)
            } else {
                1 << 31
            };
            let kernel = BatchMatmul::prepare(
                1,
                [[0, 0]],
                [shape.output_pixels(), inputs, outputs],
                [false, true],
                input.signedness,
                [input.zero_point, weights.zero_point],
                requantization,
                Some(greatest_bias),
                preparation,
            )?;
            return Ok(Draft::new(node, kernel, node.inputs.iter().copied()));
        }
        let kernel = UnpackedConvolution::prepare(
            shape,
            *is_depthwise,
            weights,
            input,
            requantization,
            preparation,
        )?;
        let kernel = OfImages { kernel, strides };
        return Ok(Draft::new(node, kernel, node.inputs.iter().copied()));
    }
    let numbers = filter.weights(preparation, &builder.scratch)?;
    let bias = bias(builder, node, preparation)?;
    let requantization = requantization(builder, node, bytes, preparation)?;
    let layer = layer(bytes, &numbers, &bias, requantization);
    Ok(if *is_depthwise {
        let kernel = Depthwise::prepare(shape, layer, preparation)?;
        Draft::new(node, OfImages { kernel, strides }, [node.inputs[0]])
    } else {
        let kernel = Convolution::prepare(shape, layer, preparation)?;
        Draft::new(node, OfImages { kernel, strides }, [node.inputs[0]])
    })
}

pub(super) fn transposed(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &graph::TransposedConvolution,
    bytes: Bytes,
    preparation: &mut Preparation,
) -> Result<Draft, TooLarge> {
    let graph::TransposedConvolution { shape, .. } = convolution;
    let filter = &builder.graph.values[node.inputs[1]];
    let numbers = filter.weights(preparation, &builder.scratch)?;
    let bias = bias(builder, node, preparation)?;
    let requantization = requantization(builder, node, bytes, preparation)?;
    let strides = strides(builder, node, shape);
    let layer = layer(bytes, &numbers, &bias, requantization);
    let kernel = TransposedConvolution::prepare(shape, strides.output, &layer, preparation)?;
    Ok(Draft::new(node, OfImages { kernel, strides }, [node.inputs[0]]))
}
