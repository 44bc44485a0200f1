//! SOFTMAX and LOG_SOFTMAX.

use crate::graph::{MaskedSoftmax, Node, Value};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use nnhal_driver::EngineError;
use nnhal_hal::OperandType;
use nnhal_kernels::softmax::{Adjustment, QuantizedSoftmax, Softmax};

#[derive(Debug)]
enum SoftmaxKernel {
    Float(Softmax),
    Unsigned(QuantizedSoftmax<u8>),
    Signed(QuantizedSoftmax<i8>),
}

/// Of floats, or of 8 bits where no logarithm is wanted.
pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    beta: f32,
    axis: usize,
    is_logarithm: bool,
) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    let sizes = around(input, axis)?;
    let set = builder.settings.instruction_set;
    let scale = input.operand.scale;
    let kernel = match input.operand_type() {
        _ if input.is_float() => {
            SoftmaxKernel::Float(Softmax::prepare(set, sizes, beta, is_logarithm))
        }
        _ if is_logarithm => return None,
        OperandType::TensorQuant8Asymm => {
            SoftmaxKernel::Unsigned(QuantizedSoftmax::prepare(sizes, scale, beta))
        }
        OperandType::TensorQuant8AsymmSigned => {
            SoftmaxKernel::Signed(QuantizedSoftmax::prepare(sizes, scale, beta))
        }
        _ => return None,
    };
    Some(Draft {
        place: node.place,
        kernel: Box::new(kernel),
        inputs: vec![Operand::Value(node.inputs[0])],
        outputs: node.outputs.clone(),
    })
}

/// Along the last axis, of floats. Inputs: the scores, and a mask that broadcasts, if there is one.
pub(super) fn masked(
    builder: &Builder<'_, '_>,
    node: &Node,
    MaskedSoftmax { beta, factor }: MaskedSoftmax,
) -> Option<Draft> {
    let value = |id: &usize| &builder.graph.values[*id];
    let scores = value(&node.inputs[0]);
    let (_, outer) = scores.dimensions.split_last()?;
    let mask = node.inputs.get(1).map(|mask| {
        let mask = &value(mask).dimensions;
        // From the last axis to the first.
        let mut stride = mask.last().map_or(0, |length| *length as usize);
        let mut own = mask.iter().rev().skip(1);
        let mut axes: Vec<(usize, usize)> = outer
            .iter()
            .rev()
            .map(|length| match own.next() {
                Some(own) if *own != 1 => {
                    let axis = (*length as usize, stride);
                    stride *= *own as usize;
                    axis
                }
                _ => (*length as usize, 0),
            })
            .collect();
        axes.reverse();
        axes
    });
    let sizes = around(scores, outer.len())?;
    let softmax = Softmax::prepare(builder.settings.instruction_set, sizes, beta, false);
    Some(Draft {
        place: node.place,
        kernel: Box::new(SoftmaxKernel::Float(softmax.adjusted(Adjustment { factor, mask }))),
        inputs: node.inputs.iter().map(|id| Operand::Value(*id)).collect(),
        outputs: node.outputs.clone(),
    })
}

/// Elements before an axis, along it, and behind it.
pub(super) fn around(value: &Value<'_>, axis: usize) -> Option<[usize; 3]> {
    let lengths: Vec<usize> = value.dimensions.iter().map(|length| *length as usize).collect();
    let (before, rest) = lengths.split_at_checked(axis)?;
    let (along, behind) = rest.split_first()?;
    Some([before.iter().product(), *along, behind.iter().product()])
}

impl Kernel for SoftmaxKernel {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        match self {
            Self::Float(softmax) => {
                let mask = inputs.optional(1).map(bytemuck::cast_slice).unwrap_or_default();
                softmax.run(run.team, inputs.floats(0), mask, bytemuck::cast_slice_mut(output));
            }
            Self::Unsigned(softmax) => softmax.run(run.team, inputs.bytes(0), output),
            Self::Signed(softmax) => {
                let input = bytemuck::cast_slice(inputs.bytes(0));
                softmax.run(run.team, input, bytemuck::cast_slice_mut(output));
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self {
            Self::Float(_) => "softmax f32".to_owned(),
            Self::Unsigned(_) => "softmax u8".to_owned(),
            Self::Signed(_) => "softmax i8".to_owned(),
        }
    }
}
