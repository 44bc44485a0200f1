//! Convolutions of 8-bit numbers.

use super::convolution::{Strides, transposed_strides};
use crate::graph::{self, Epilogue, Node, Value};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run, name};
use nnhal_driver::EngineError;
use nnhal_hal::{ExtraParams, OperandType};
use nnhal_kernels::convolution::Shape;
use nnhal_kernels::quantized::convolution::{Convolution, UnpackedConvolution};
use nnhal_kernels::quantized::depthwise::Depthwise;
use nnhal_kernels::quantized::transposed_convolution::TransposedConvolution;
use nnhal_kernels::quantized::{Activations, Requantization, Signedness, Weights};
use nnhal_kernels::{Image, ImageMut, Multiplier, Preparation};
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

/// Whether numbers of this type are signed; `None` if they have not 8 bits.
pub(super) fn signedness(value: &Value<'_>) -> Option<Signedness> {
    match value.operand_type() {
        OperandType::TensorQuant8Asymm => Some(Signedness::Unsigned),
        OperandType::TensorQuant8AsymmSigned
        | OperandType::TensorQuant8Symm
        | OperandType::TensorQuant8SymmPerChannel => Some(Signedness::Signed),
        _ => None,
    }
}

/// The type of elements, in names.
pub(super) fn element(signedness: Signedness) -> &'static str {
    name::quantized(signedness == Signedness::Signed)
}

/// What `kernels` wants to know beside the sizes.
struct Parts<'a> {
    weights: Weights<'a>,
    bias: Vec<i32>,
    activations: Activations,
    requantization: Requantization,
}

/// The parts of a node whose inputs are input, weights with these numbers, and bias.
fn parts<'a>(
    builder: &Builder<'_, '_>,
    node: &Node,
    epilogue: Epilogue,
    numbers: &'a [u8],
    preparation: &mut Preparation,
) -> Option<Parts<'a>> {
    let values = &builder.graph.values;
    let [input, weights, bias] = [0, 1, 2].map(|position| &values[node.inputs[position]]);
    let (bias, _) = bias.constant()?.as_chunks();
    Some(Parts {
        weights: Weights {
            values: numbers,
            signedness: signedness(weights)?,
            zero_point: weights.operand.zero_point,
        },
        bias: preparation
            .collected(bias.iter().map(|bias| i32::from_le_bytes(*bias)), "a bias")
            .ok()?,
        activations: activations(input)?,
        requantization: requantization(builder, node, epilogue, preparation)?,
    })
}

/// What numbers stand for.
fn activations(value: &Value<'_>) -> Option<Activations> {
    Some(Activations { signedness: signedness(value)?, zero_point: value.operand.zero_point })
}

/// How sums of products of a node's first two inputs become its output.
fn requantization(
    builder: &Builder<'_, '_>,
    node: &Node,
    epilogue: Epilogue,
    preparation: &mut Preparation,
) -> Option<Requantization> {
    let Epilogue::Clamp(activation) = epilogue else { return None };
    let values = &builder.graph.values;
    let [input, weights] = [0, 1].map(|position| &values[node.inputs[position]]);
    let output = &values[node.outputs[0]];
    let (min, max) = super::stored_range(output, activation)?;
    Some(Requantization {
        multipliers: multipliers([input, weights, output], preparation)?,
        zero_point: output.operand.zero_point,
        min,
        max,
    })
}

/// As [`nnhal_ops::rules::convolution::Requantizer::new`] has them.
///
/// `None` if they are more than may be taken, which the preparation remembers.
pub(super) fn multipliers(
    [input, weights, output]: [&Value<'_>; 3],
    preparation: &mut Preparation,
) -> Option<Vec<Multiplier>> {
    let (input, output) = (input.operand.scale, f64::from(output.operand.scale));
    let multiplier = |product: f64| {
        let exact = requantize::Multiplier::from_real(product / output);
        Multiplier { mantissa: exact.mantissa, exponent: exact.exponent }
    };
    match &weights.operand.extra_params {
        ExtraParams::ChannelQuant(quant) => {
            let scales = quant.scales.iter();
            let each = scales.map(|scale| multiplier(f64::from(input) * f64::from(*scale)));
            preparation.collected(each, "multipliers of channels").ok()
        }
        _ => Some(vec![multiplier(f64::from(input * weights.operand.scale))]),
    }
}

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &graph::Convolution,
    preparation: &mut Preparation,
) -> Option<Draft> {
    let graph::Convolution { shape, epilogue, .. } = convolution;
    let is_constant = |position: usize| builder.graph.values[node.inputs[position]].is_constant();
    if !is_constant(1) || !is_constant(2) {
        return unpacked(builder, node, convolution, preparation);
    }
    let numbers = builder.graph.values[node.inputs[1]].weights(preparation, &builder.scratch)?;
    let parts = parts(builder, node, *epilogue, &numbers, preparation)?;
    let Parts { weights, bias, activations, requantization } = parts;
    /// Both have the same arguments.
    macro_rules! prepared {
        ($Kernel:ident) => {
            $Kernel::prepare(shape, weights, &bias, activations, requantization, preparation)
                .ok()?
        };
    }
    let kernel = if convolution.is_depthwise {
        Quantized::Depthwise(Box::new(prepared!(Depthwise)))
    } else {
        Quantized::Full(Box::new(prepared!(Convolution)))
    };
    let strides = Strides::of(builder, node, shape);
    Some(Draft {
        place: node.place,
        kernel: Box::new(QuantizedConvolution {
            kernel,
            element: element(activations.signedness),
            shape: *shape,
            strides,
        }),
        inputs: vec![Operand::Value(node.inputs[0])],
        outputs: node.outputs.clone(),
    })
}

/// A convolution of 8-bit numbers whose weights or biases are no constants.
#[derive(Debug)]
struct QuantizedUnpacked {
    kernel: UnpackedConvolution,
    is_depthwise: bool,
    element: &'static str,
    strides: Strides,
}

fn unpacked(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &graph::Convolution,
    preparation: &mut Preparation,
) -> Option<Draft> {
    let graph::Convolution { shape, is_depthwise, epilogue, .. } = convolution;
    let value = |position: usize| &builder.graph.values[node.inputs[position]];
    let element = element(signedness(value(0))?);
    let kernel = UnpackedConvolution::prepare(
        shape,
        *is_depthwise,
        activations(value(1))?,
        activations(value(0))?,
        requantization(builder, node, *epilogue, preparation)?,
        preparation,
    )
    .ok()?;
    let strides = Strides::of(builder, node, shape);
    Some(Draft {
        place: node.place,
        kernel: Box::new(QuantizedUnpacked {
            kernel,
            is_depthwise: *is_depthwise,
            element,
            strides,
        }),
        inputs: node.inputs.iter().map(|input| Operand::Value(*input)).collect(),
        outputs: node.outputs.clone(),
    })
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
    preparation: &mut Preparation,
) -> Option<Draft> {
    let graph::TransposedConvolution { shape, epilogue } = convolution;
    let numbers = builder.graph.values[node.inputs[1]].weights(preparation, &builder.scratch)?;
    let parts = parts(builder, node, *epilogue, &numbers, preparation)?;
    let strides = transposed_strides(builder, node, shape);
    let kernel = TransposedConvolution::prepare(
        shape,
        strides[1],
        parts.weights,
        &parts.bias,
        parts.activations,
        &parts.requantization,
        preparation,
    )
    .ok()?;
    Some(Draft {
        place: node.place,
        kernel: Box::new(QuantizedTransposed {
            kernel,
            element: element(parts.activations.signedness),
            strides,
        }),
        inputs: vec![Operand::Value(node.inputs[0])],
        outputs: node.outputs.clone(),
    })
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
