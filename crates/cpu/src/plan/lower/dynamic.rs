//! Layers of floats that are multiplied as integers of 8 bits.

use super::convolution::float_epilogue;
use crate::graph::{Epilogue, Node};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Run};
use crate::why::Why;
use nnhal_driver::EngineError;
use nnhal_hal::ExtraParams;
use nnhal_kernels::Preparation;
use nnhal_kernels::fully_connected::Sizes;
use nnhal_kernels::quantized::dynamic::FullyConnected;
use nnhal_ops::operations::DynamicFullyConnected;

#[derive(Debug)]
struct Layer(FullyConnected);

/// DYNAMIC_FULLY_CONNECTED with constant weights and a constant bias.
pub(super) fn fully_connected(
    builder: &Builder<'_, '_>,
    node: &Node,
    layer: &DynamicFullyConnected,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let [weights, bias] = [1, 2].map(|position| builder.graph.input(node, position));
    let output = builder.graph.output(node, 0);
    let [units, inputs] = weights.dimensions[..] else { return Err(weights.of_other_rank("2")) };
    let [rows, _] = output.dimensions[..] else { return Err(output.of_other_rank("2")) };
    if rows == 0 {
        return Err(output.empty());
    }
    // Before weights are packed in vain.
    let bias = bias.floats()?;
    let sizes = Sizes { rows: rows as usize, inputs: inputs as usize, units: units as usize };
    let numbers = weights.weights(preparation, &builder.scratch)?;
    let of_all = [weights.operand.scale];
    let scales = match &weights.operand.extra_params {
        ExtraParams::ChannelQuant(quant) => &quant.scales[..],
        _ => &of_all[..],
    };
    let epilogue = float_epilogue(Epilogue::Clamp(layer.activation));
    let kernel = FullyConnected::prepare(sizes, &numbers, scales, &bias, epilogue, preparation)?;
    Ok(Draft::new(node, Layer(kernel), [node.inputs[0]]))
}

impl Kernel for Layer {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let scratch = bytemuck::cast_slice_mut(scratch);
        let output = bytemuck::cast_slice_mut(output);
        self.0.run(run.team, inputs.floats(0), output, scratch);
        Ok(())
    }

    fn name(&self) -> String {
        format!("dynamic fully connected gemm i8 {}", self.0.kernel())
    }

    fn scratch_bytes(&self) -> usize {
        self.0.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.0.operations()
    }

    fn is_8_bit(&self) -> bool {
        true
    }
}
