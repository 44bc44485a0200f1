//! Normalisations of floats.

use crate::graph::{Node, Normalization};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use driver::EngineError;
use kernels::reduction::{
    self, RowNormalization, instance_normalization, local_response_normalization,
};
use ops::operations::{InstanceNormalization, L2Normalization, LocalResponseNormalization};
use ops::rules::layout;

/// Layer normalisation. Inputs: the rows, and a factor and an offset, as far as there are any.
#[derive(Debug)]
struct Layer {
    kernel: RowNormalization,
    has_scale: bool,
    has_offset: bool,
}

pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    normalization: Normalization,
) -> Option<Draft> {
    let Normalization { epsilon, has_scale, has_offset } = normalization;
    let input = &builder.graph.values[node.inputs[0]];
    let length = *input.dimensions.last()? as usize;
    let rows = input.elements().checked_div(length).unwrap_or(0);
    let set = builder.settings.instruction_set;
    let kind = reduction::Normalization::Layer { epsilon };
    let kernel = RowNormalization::prepare(set, kind, rows, length);
    Some(Draft {
        place: node.place,
        kernel: Box::new(Layer { kernel, has_scale, has_offset }),
        inputs: node.inputs.iter().map(|id| Operand::Value(*id)).collect(),
        outputs: node.outputs.clone(),
    })
}

/// L2_NORMALIZATION along the last axis, of floats.
pub(super) fn l2(
    builder: &Builder<'_, '_>,
    node: &Node,
    normalization: &L2Normalization,
) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    let length = *input.dimensions.last()? as usize;
    if !input.is_float() || normalization.axis + 1 != input.dimensions.len() {
        return None;
    }
    let rows = input.elements().checked_div(length).unwrap_or(0);
    // As the operation has it.
    let kind = reduction::Normalization::L2 { least: 1e-6 };
    let kernel = RowNormalization::prepare(builder.settings.instruction_set, kind, rows, length);
    let (has_scale, has_offset) = (false, false);
    draft(node, Layer { kernel, has_scale, has_offset })
}

/// INSTANCE_NORMALIZATION of NHWC images of floats.
pub(super) fn instance(
    builder: &Builder<'_, '_>,
    node: &Node,
    normalization: &InstanceNormalization,
) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    let [batch, height, width, channels] = input.dimensions[..] else { return None };
    if normalization.layout != layout::Layout::Nhwc {
        return None;
    }
    let pixels = height as usize * width as usize;
    let InstanceNormalization { gamma, beta, epsilon, .. } = *normalization;
    draft(
        node,
        Instance {
            sizes: [batch as usize, pixels, channels as usize],
            numbers: [gamma, beta, epsilon],
        },
    )
}

/// LOCAL_RESPONSE_NORMALIZATION along the last axis.
pub(super) fn local_response(
    builder: &Builder<'_, '_>,
    node: &Node,
    normalization: &LocalResponseNormalization,
) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    let length = *input.dimensions.last()? as usize;
    if normalization.axis + 1 != input.dimensions.len() {
        return None;
    }
    let LocalResponseNormalization { radius, bias, alpha, beta, .. } = *normalization;
    draft(node, LocalResponse { length, radius: radius as usize, numbers: [bias, alpha, beta] })
}

fn draft(node: &Node, kernel: impl Kernel + 'static) -> Option<Draft> {
    Some(Draft {
        place: node.place,
        kernel: Box::new(kernel),
        inputs: vec![Operand::Value(node.inputs[0])],
        outputs: node.outputs.clone(),
    })
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
        "instance normalisation".to_owned()
    }
}

/// LOCAL_RESPONSE_NORMALIZATION: bias, alpha and beta.
#[derive(Debug)]
struct LocalResponse {
    length: usize,
    radius: usize,
    numbers: [f32; 3],
}

impl Kernel for LocalResponse {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        let (input, output) = (inputs.floats(0), bytemuck::cast_slice_mut(output));
        let Self { length, radius, numbers } = *self;
        local_response_normalization(run.team, length, radius, numbers, input, output);
        Ok(())
    }

    fn name(&self) -> String {
        "local response normalisation".to_owned()
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
        "layer normalisation".to_owned()
    }
}
