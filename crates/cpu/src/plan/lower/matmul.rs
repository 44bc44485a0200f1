//! Products of two matrices that are known only when the plan runs, of floats.

use super::convolution::epilogue;
use crate::graph::{Finish, Node, Value};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use driver::EngineError;
use kernels::Epilogue;
use kernels::batch_matmul::{self, Layout};
use ops::operations::{BatchMatmul, FullyConnected};

#[derive(Debug)]
struct Product(batch_matmul::BatchMatmul);

/// BATCH_MATMUL without broadcasting.
pub(super) fn batch_matmul(
    builder: &Builder<'_, '_>,
    node: &Node,
    matmul: &BatchMatmul,
) -> Option<Draft> {
    let values = &builder.graph.values;
    let (x, y) = (&values[node.inputs[0]], &values[node.inputs[1]]);
    let output = &values[node.outputs[0]];
    let (x_batch, x_stored) = matrices(x)?;
    let (y_batch, y_stored) = matrices(y)?;
    let (out_batch, [rows, columns]) = matrices(output)?;
    if !output.is_float() || x_batch != out_batch || y_batch != out_batch {
        return None;
    }
    let depth = if matmul.transpose_x { x_stored[0] } else { x_stored[1] };
    let count: usize = out_batch.iter().map(|length| *length as usize).product();
    let layouts = [
        Layout::dense(count, x_stored, matmul.transpose_x),
        Layout::dense(count, y_stored, matmul.transpose_y),
        Layout::dense(count, [rows, columns], false),
    ];
    draft(builder, node, [rows, columns, depth], layouts, Epilogue::NONE)
}

/// FULLY_CONNECTED with weights that are not constant, and a bias that is zero.
pub(super) fn fully_connected(
    builder: &Builder<'_, '_>,
    node: &Node,
    connected: &FullyConnected,
) -> Option<Draft> {
    let values = &builder.graph.values;
    let (input, weights, bias) =
        (&values[node.inputs[0]], &values[node.inputs[1]], &values[node.inputs[2]]);
    let is_zero = bias.constant_floats()?.iter().all(|bias| *bias == 0.0);
    let [units, inputs] = weights.dimensions[..] else { return None };
    let (units, inputs) = (units as usize, inputs as usize);
    if !is_zero || !values[node.outputs[0]].is_float() {
        return None;
    }
    let rows = input.elements().checked_div(inputs)?;
    let layouts = [
        Layout::dense(1, [rows, inputs], false),
        Layout::dense(1, [units, inputs], true),
        Layout::dense(1, [rows, units], false),
    ];
    let epilogue = epilogue(Finish::Clamp(connected.activation));
    draft(builder, node, [rows, units, inputs], layouts, epilogue)
}

fn draft(
    builder: &Builder<'_, '_>,
    node: &Node,
    sizes: [usize; 3],
    layouts: [Layout; 3],
    epilogue: Epilogue,
) -> Option<Draft> {
    let settings = builder.settings;
    let (set, threads) = (settings.instruction_set, settings.threads.get());
    let product = batch_matmul::BatchMatmul::prepare(sizes, layouts, epilogue, set, threads);
    Some(Draft {
        place: node.place,
        kernel: Box::new(Product(product)),
        inputs: node.inputs[..2].iter().map(|id| Operand::Value(*id)).collect(),
        outputs: node.outputs.clone(),
    })
}

/// The axes before the last two, and the last two.
fn matrices<'value>(value: &'value Value<'_>) -> Option<(&'value [u32], [usize; 2])> {
    let (batch, last) = value.dimensions.split_last_chunk::<2>()?;
    Some((batch, last.map(|length| length as usize)))
}

impl Kernel for Product {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        let scratch = bytemuck::cast_slice_mut(scratch);
        let output = bytemuck::cast_slice_mut(output);
        self.0.run(run.team, inputs.floats(0), inputs.floats(1), output, scratch);
        Ok(())
    }

    fn name(&self) -> String {
        self.0.kernel()
    }

    fn scratch_bytes(&self) -> usize {
        self.0.scratch_bytes()
    }

    fn arithmetic(&self) -> u64 {
        self.0.operations()
    }
}
