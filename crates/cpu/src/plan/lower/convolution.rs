//! Convolutions.

use crate::graph::{self, Convolution, Node, ValueId};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Run, name};
use nnhal_driver::EngineError;
use nnhal_hal::FusedActivation;
use nnhal_kernels::convolution::{Filter, Shape, UnpackedConvolution};
use nnhal_kernels::depthwise::DepthwiseConvolution;
use nnhal_kernels::fully_connected::{FullyConnected, Sizes, Storage};
use nnhal_kernels::transposed_convolution::{self, TransposedConvolution};
use nnhal_kernels::{Epilogue, Image, ImageMut, Preparation, TooLarge};
use nnhal_ops::rules::activation_range;

/// The epilogue of a kernel for floats.
pub(super) fn float_epilogue(epilogue: graph::Epilogue) -> Epilogue {
    match epilogue {
        graph::Epilogue::HardSwish => Epilogue::HARD_SWISH,
        graph::Epilogue::Clamp(FusedActivation::None) => Epilogue::NONE,
        graph::Epilogue::Clamp(activation) => {
            let (min, max) = activation_range::real(activation);
            Epilogue { min, max, ..Epilogue::NONE }
        }
    }
}

/// A convolution of floats.
#[derive(Debug)]
struct FloatConvolution {
    kernel: Float,
    shape: Shape,
    strides: Strides,
}

/// The kernels there are.
#[derive(Debug)]
enum Float {
    Full(nnhal_kernels::convolution::Convolution),
    Depthwise(DepthwiseConvolution),
    /// Of a single pixel that is all of the image.
    Row(FullyConnected),
}

/// Elements from one pixel to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strides {
    pub(super) input: usize,
    residual: usize,
    pub(super) output: usize,
}

impl Strides {
    /// Of a node whose first input is the image and whose fourth one is the residual, if there is
    /// one. What is contiguous has the channels of the shape, whatever its last length is.
    pub(super) fn of(builder: &Builder<'_, '_>, node: &Node, shape: &Shape) -> Self {
        let stride = |value: ValueId, channels| builder.row_stride(value).unwrap_or(channels);
        Self {
            input: stride(node.inputs[0], shape.input_channels),
            residual: node.inputs.get(3).map_or(0, |it| stride(*it, shape.output_channels)),
            output: stride(node.outputs[0], shape.output_channels),
        }
    }
}

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &Convolution,
    epilogue: graph::Epilogue,
    preparation: &mut Preparation,
) -> Result<Draft, TooLarge> {
    let Convolution { shape, is_depthwise, .. } = convolution;
    let graph = builder.graph;
    let value = |position: usize| &graph.values[node.inputs[position]];
    let strides = Strides::of(builder, node, shape);
    let epilogue = float_epilogue(epilogue);
    if !value(1).is_constant() || !value(2).is_constant() {
        let kernel = UnpackedConvolution::prepare(
            shape,
            strides.input,
            *is_depthwise,
            epilogue,
            preparation,
        )?;
        let kernel = FloatUnpacked { kernel, is_depthwise: *is_depthwise, strides };
        return Ok(Draft::new(node, kernel, node.inputs.iter().copied()));
    }
    let weights = value(1).weight_floats(preparation, &builder.scratch);
    let filter = weights.ok_or_else(|| value(1).unreadable())?;
    let bias = value(2).constant_floats().ok_or_else(|| value(2).unreadable())?;
    let is_row = shape.output_pixels() == 1 && shape.is_matrix_product() && shape.groups == 1;
    let kernel = if *is_depthwise {
        Float::Depthwise(DepthwiseConvolution::prepare(
            shape,
            strides.input,
            &filter,
            &bias,
            epilogue,
            preparation,
        )?)
    } else if is_row {
        let sizes = Sizes { rows: 1, inputs: shape.input_channels, units: shape.output_channels };
        let storage = if value(1).fits_float16() { Storage::Half } else { Storage::Full };
        Float::Row(FullyConnected::prepare(sizes, &filter, &bias, storage, epilogue, preparation)?)
    } else {
        Float::Full(nnhal_kernels::convolution::Convolution::prepare(
            shape,
            strides.input,
            &filter,
            &bias,
            epilogue,
            preparation,
        )?)
    };
    let inputs = [node.inputs[0]].into_iter().chain(node.inputs.get(3).copied());
    Ok(Draft::new(node, FloatConvolution { kernel, shape: *shape, strides }, inputs))
}

/// A convolution of floats whose filter or bias is no constant.
#[derive(Debug)]
struct FloatUnpacked {
    kernel: UnpackedConvolution,
    is_depthwise: bool,
    strides: Strides,
}

impl Kernel for FloatUnpacked {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let image = |index, pixel_stride| Image { values: inputs.floats(index), pixel_stride };
        let filter = Filter { weights: inputs.floats(1), bias: inputs.floats(2) };
        let residual = inputs.optional(3).map(|_| image(3, self.strides.residual));
        let output = ImageMut {
            values: bytemuck::cast_slice_mut(output),
            pixel_stride: self.strides.output,
        };
        let scratch = bytemuck::cast_slice_mut(scratch);
        self.kernel.run(run.team, image(0, self.strides.input), filter, residual, output, scratch);
        Ok(())
    }

    fn name(&self) -> String {
        let operation = name::convolution(self.kernel.shape(), self.is_depthwise);
        format!("{operation} {}", self.kernel.kernel())
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.shape().operations()
    }
}

/// A transposed convolution of floats.
#[derive(Debug)]
struct FloatTransposed {
    kernel: TransposedConvolution,
    /// Of input and output.
    strides: [usize; 2],
}

pub(super) fn transposed(
    builder: &Builder<'_, '_>,
    node: &Node,
    convolution: &graph::TransposedConvolution,
    epilogue: graph::Epilogue,
    preparation: &mut Preparation,
) -> Result<Draft, TooLarge> {
    let graph::TransposedConvolution { shape, .. } = convolution;
    let value = |position: usize| &builder.graph.values[node.inputs[position]];
    let strides = transposed_strides(builder, node, shape);
    let weights = value(1).weight_floats(preparation, &builder.scratch);
    let filter = weights.ok_or_else(|| value(1).unreadable())?;
    let bias = value(2).constant_floats().ok_or_else(|| value(2).unreadable())?;
    let epilogue = float_epilogue(epilogue);
    let kernel =
        TransposedConvolution::prepare(shape, strides, &filter, &bias, epilogue, preparation)?;
    Ok(Draft::new(node, FloatTransposed { kernel, strides }, [node.inputs[0]]))
}

/// Elements from one pixel to the next, of input and output.
pub(super) fn transposed_strides(
    builder: &Builder<'_, '_>,
    node: &Node,
    shape: &transposed_convolution::Shape,
) -> [usize; 2] {
    let stride = |value: ValueId, channels| builder.row_stride(value).unwrap_or(channels);
    [stride(node.inputs[0], shape.input_channels), stride(node.outputs[0], shape.output_channels)]
}

impl Kernel for FloatTransposed {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let [input_stride, output_stride] = self.strides;
        let input = Image { values: inputs.floats(0), pixel_stride: input_stride };
        let output =
            ImageMut { values: bytemuck::cast_slice_mut(output), pixel_stride: output_stride };
        self.kernel.run(run.team, input, output, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn name(&self) -> String {
        let operation = name::transposed_convolution(self.kernel.shape().filter);
        format!("{operation} {}", self.kernel.kernel())
    }

    fn scratch_bytes(&self) -> usize {
        self.kernel.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.kernel.shape().operations()
    }
}

impl Kernel for FloatConvolution {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let image = |index, pixel_stride| Image { values: inputs.floats(index), pixel_stride };
        let residual = inputs.optional(1).map(|_| image(1, self.strides.residual));
        let output = ImageMut {
            values: bytemuck::cast_slice_mut(output),
            pixel_stride: self.strides.output,
        };
        let scratch = bytemuck::cast_slice_mut(scratch);
        let image = image(0, self.strides.input);
        match &self.kernel {
            Float::Full(kernel) => kernel.run(run.team, image, residual, output, scratch),
            Float::Depthwise(kernel) => kernel.run(run.team, image, residual, output, scratch),
            Float::Row(kernel) => {
                let residual = residual.map(|residual| residual.values);
                kernel.run(run.team, image.values, residual, output.values, scratch);
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        let is_depthwise = matches!(self.kernel, Float::Depthwise(_));
        let operation = name::convolution(&self.shape, is_depthwise);
        match &self.kernel {
            Float::Full(kernel) => format!("{operation} {}", kernel.kernel()),
            Float::Depthwise(kernel) => format!("{operation} {}", kernel.kernel()),
            Float::Row(kernel) => format!("fully connected {}", kernel.kernel()),
        }
    }

    fn scratch_bytes(&self) -> usize {
        match &self.kernel {
            Float::Full(kernel) => kernel.scratch_bytes(),
            Float::Depthwise(kernel) => kernel.scratch_bytes(),
            Float::Row(kernel) => kernel.scratch_bytes(),
        }
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}
