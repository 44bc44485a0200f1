//! Convolutions of 8-bit numbers.

use super::convolution::{Strides, transposed_strides};
use crate::graph::{self, Bytes, Node, Value};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Run, name};
use nnhal_driver::EngineError;
use nnhal_hal::ExtraParams;
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::quantized::convolution::{Convolution, UnpackedConvolution};
use nnhal_kernels::quantized::depthwise::Depthwise;
use nnhal_kernels::quantized::transposed_convolution::TransposedConvolution;
use nnhal_kernels::quantized::{Activations, Requantization, Signedness, Weights};
use nnhal_kernels::{Image, ImageMut, Multiplier, Preparation, TooLarge};
use nnhal_ops::rules::requantize;

/// A convolution of 8-bit numbers.
#[derive(Debug)]
struct QuantizedConvolution {
    kernel: Quantized,
    element: &'static str,
    shape: Shape,
    strides: Strides,
}

/// The kernels there are.
#[derive(Debug)]
enum Quantized {
    Full(Box<Convolution>),
    Depthwise(Box<Depthwise>),
}

/// The type of elements, in names.
pub(super) fn element(signedness: Signedness) -> &'static str {
    name::quantized(signedness == Signedness::Signed)
}

/// Weights as kernels want them.
fn weights(bytes: Bytes, values: &[u8]) -> Weights<'_> {
    let Activations { signedness, zero_point } = bytes.weights;
    Weights { values, signedness, zero_point }
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
    let filter = &builder.graph.values[node.inputs[1]];
    let strides = Strides::of(builder, node, shape);
    let element = element(bytes.input.signedness);
    if !filter.is_constant() || !builder.graph.values[node.inputs[2]].is_constant() {
        let requantization = requantization(builder, node, bytes, preparation)?;
        let Bytes { input, weights, .. } = bytes;
        let kernel = UnpackedConvolution::prepare(
            shape,
            *is_depthwise,
            weights,
            input,
            requantization,
            preparation,
        )?;
        let kernel = QuantizedUnpacked { kernel, is_depthwise: *is_depthwise, element, strides };
        return Ok(Draft::new(node, kernel, node.inputs.iter().copied()));
    }
    let numbers = filter.weights(preparation, &builder.scratch);
    let numbers = numbers.ok_or_else(|| filter.unreadable())?;
    let bias = bias(builder, node, preparation)?;
    let requantization = requantization(builder, node, bytes, preparation)?;
    let weights = weights(bytes, &numbers);
    /// Both have the same arguments.
    macro_rules! prepared {
        ($Kernel:ident) => {
            $Kernel::prepare(shape, weights, &bias, bytes.input, requantization, preparation)?
        };
    }
    let kernel = if *is_depthwise {
        Quantized::Depthwise(Box::new(prepared!(Depthwise)))
    } else {
        Quantized::Full(Box::new(prepared!(Convolution)))
    };
    let kernel = QuantizedConvolution { kernel, element, shape: *shape, strides };
    Ok(Draft::new(node, kernel, [node.inputs[0]]))
}

/// A convolution of 8-bit numbers whose weights or biases are no constants.
#[derive(Debug)]
struct QuantizedUnpacked {
    kernel: UnpackedConvolution,
    is_depthwise: bool,
    element: &'static str,
    strides: Strides,
}

impl Kernel for QuantizedUnpacked {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let input = Image { values: inputs.bytes(0), pixel_stride: self.strides.input };
        let output = ImageMut { values: output, pixel_stride: self.strides.output };
        let bias = bytemuck::cast_slice(inputs.bytes(2));
        let scratch = bytemuck::cast_slice_mut(scratch);
        self.kernel.run(run.team, input, inputs.bytes(1), bias, output, scratch);
        Ok(())
    }

    fn name(&self) -> String {
        let operation = name::convolution(self.kernel.shape(), self.is_depthwise);
        format!("{operation} direct with packing {}", self.element)
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn is_8_bit(&self) -> bool {
        true
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.shape().operations()
    }
}

/// A transposed convolution of 8-bit numbers.
#[derive(Debug)]
struct QuantizedTransposed {
    kernel: TransposedConvolution,
    element: &'static str,
    /// Of input and output.
    strides: [usize; 2],
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
    let numbers = filter.weights(preparation, &builder.scratch);
    let numbers = numbers.ok_or_else(|| filter.unreadable())?;
    let bias = bias(builder, node, preparation)?;
    let requantization = requantization(builder, node, bytes, preparation)?;
    let strides = transposed_strides(builder, node, shape);
    let kernel = TransposedConvolution::prepare(
        shape,
        strides[1],
        weights(bytes, &numbers),
        &bias,
        bytes.input,
        &requantization,
        preparation,
    )?;
    let kernel = QuantizedTransposed { kernel, element: element(bytes.input.signedness), strides };
    Ok(Draft::new(node, kernel, [node.inputs[0]]))
}

impl Kernel for QuantizedTransposed {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let [input_stride, output_stride] = self.strides;
        let input = Image { values: inputs.bytes(0), pixel_stride: input_stride };
        let output = ImageMut { values: output, pixel_stride: output_stride };
        self.kernel.run(run.team, input, output, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn name(&self) -> String {
        let operation = name::transposed_convolution(self.kernel.shape().filter);
        format!("{operation} gemm by phases {} {}", self.element, self.kernel.kernel())
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn is_8_bit(&self) -> bool {
        true
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.shape().operations()
    }
}

impl Kernel for QuantizedConvolution {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let input = Image { values: inputs.bytes(0), pixel_stride: self.strides.input };
        let output = ImageMut { values: output, pixel_stride: self.strides.output };
        let scratch = bytemuck::cast_slice_mut(scratch);
        match &self.kernel {
            Quantized::Full(kernel) => kernel.run(run.team, input, output, scratch),
            Quantized::Depthwise(kernel) => kernel.run(run.team, input, output, scratch),
        }
        Ok(())
    }

    fn name(&self) -> String {
        let (is_depthwise, algorithm, set) = match &self.kernel {
            Quantized::Full(kernel) => (false, kernel.algorithm(), kernel.kernel()),
            Quantized::Depthwise(kernel) => (true, "direct", kernel.kernel()),
        };
        let operation = name::convolution(&self.shape, is_depthwise);
        format!("{operation} {algorithm} {} {set}", self.element)
    }

    fn scratch_bytes(&self) -> usize {
        match &self.kernel {
            Quantized::Full(kernel) => kernel.scratch_bytes(),
            Quantized::Depthwise(kernel) => kernel.scratch_bytes(),
        }
    }

    fn is_8_bit(&self) -> bool {
        true
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}
