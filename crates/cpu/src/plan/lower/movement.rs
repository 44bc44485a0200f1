//! What only moves elements.

use crate::graph::{Node, Value};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use driver::EngineError;
use kernels::movement::StridedCopy;
use ops::operations::{Pad, Slice, Split, Transpose};

/// Copies of inputs to places in the output.
#[derive(Debug)]
pub(super) struct Copies {
    /// Of which input, and which elements.
    pub(super) pieces: Vec<(usize, StridedCopy)>,
    pub(super) element_size: usize,
    /// What the output is filled with first, where pieces do not cover it.
    pub(super) fill: Vec<u8>,
}

pub(super) fn lengths(value: &Value<'_>) -> Vec<usize> {
    value.dimensions.iter().map(|length| *length as usize).collect()
}

pub(super) fn draft(node: &Node, inputs: &[usize], output: usize, kernel: Copies) -> Draft {
    Draft {
        place: node.place,
        kernel: Box::new(kernel),
        inputs: inputs.iter().map(|id| Operand::Value(*id)).collect(),
        outputs: vec![output],
    }
}

/// Whether there is a copy for elements of this size.
pub(super) fn is_copied(size: usize) -> bool {
    matches!(size, 1 | 2 | 4)
}

pub(super) fn transpose(
    builder: &Builder<'_, '_>,
    node: &Node,
    transpose: &Transpose,
) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    let copy = StridedCopy::transpose(&lengths(input), &transpose.permutation);
    let element_size = input.element_size();
    let kernel = Copies { pieces: vec![(0, copy)], element_size, fill: Vec::new() };
    is_copied(element_size).then(|| draft(node, &node.inputs[..1], node.outputs[0], kernel))
}

/// A step for each part, so that there may be any number.
pub(super) fn split(builder: &Builder<'_, '_>, node: &Node, split: &Split) -> Option<Vec<Draft>> {
    let input = &builder.graph.values[node.inputs[0]];
    let whole = lengths(input);
    let element_size = input.element_size();
    let mut begin = vec![0; whole.len()];
    let mut drafts = Vec::new();
    for output in &node.outputs {
        let part = lengths(&builder.graph.values[*output]);
        let copy = StridedCopy::slice(&whole, &begin, &vec![1; whole.len()], &part);
        begin[split.axis] += part[split.axis];
        let kernel = Copies { pieces: vec![(0, copy)], element_size, fill: Vec::new() };
        drafts.push(draft(node, &node.inputs[..1], *output, kernel));
    }
    is_copied(element_size).then_some(drafts)
}

pub(super) fn slice(builder: &Builder<'_, '_>, node: &Node, slice: &Slice) -> Option<Draft> {
    let values = &builder.graph.values;
    let (input, output) = (&values[node.inputs[0]], &values[node.outputs[0]]);
    let begin: Vec<usize> = slice.begins.iter().map(|begin| *begin as usize).collect();
    let steps = vec![1; begin.len()];
    let copy = StridedCopy::slice(&lengths(input), &begin, &steps, &lengths(output));
    let element_size = input.element_size();
    let kernel = Copies { pieces: vec![(0, copy)], element_size, fill: Vec::new() };
    is_copied(element_size).then(|| draft(node, &node.inputs[..1], node.outputs[0], kernel))
}

/// A CONCATENATION whose parts are not where they are to be.
pub(super) fn concatenation(
    builder: &Builder<'_, '_>,
    node: &Node,
    axis: usize,
    parts: &[usize],
) -> Option<Draft> {
    let values = &builder.graph.values;
    let output = &values[node.outputs[0]];
    let whole = lengths(output);
    let mut at = vec![0; whole.len()];
    let mut pieces = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let value = &values[*part];
        if !value.is_float() && value.operand.quantized_as() != output.operand.quantized_as() {
            return None;
        }
        let part = lengths(value);
        pieces.push((index, StridedCopy::piece(&part, &whole, &at)));
        at[axis] += part[axis];
    }
    let element_size = output.element_size();
    let is_dense = builder.gapped(node.outputs[0]).is_none();
    let kernel = Copies { pieces, element_size, fill: Vec::new() };
    (is_copied(element_size) && is_dense).then(|| draft(node, parts, node.outputs[0], kernel))
}

pub(super) fn pad(builder: &Builder<'_, '_>, node: &Node, pad: &Pad) -> Option<Draft> {
    let values = &builder.graph.values;
    let (input, output) = (&values[node.inputs[0]], &values[node.outputs[0]]);
    let at: Vec<usize> = pad.borders.iter().map(|border| border.before as usize).collect();
    let copy = StridedCopy::piece(&lengths(input), &lengths(output), &at);
    let element_size = output.element_size();
    // The element has the type of the model.
    if output.is_float16() || pad.element.len() != element_size {
        return None;
    }
    let kernel = Copies { pieces: vec![(0, copy)], element_size, fill: pad.element.clone() };
    is_copied(element_size).then(|| draft(node, &node.inputs[..1], node.outputs[0], kernel))
}

impl Kernel for Copies {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        if !self.fill.is_empty() {
            for element in output.chunks_exact_mut(self.fill.len()) {
                element.copy_from_slice(&self.fill);
            }
        }
        for (index, copy) in &self.pieces {
            /// As elements of some type.
            macro_rules! copied {
                ($Element:ty) => {
                    copy.run::<$Element>(
                        run.team,
                        bytemuck::cast_slice(inputs.bytes(*index)),
                        bytemuck::cast_slice_mut(output),
                    )
                };
            }
            match self.element_size {
                1 => copied!(u8),
                2 => copied!(u16),
                _ => copied!(u32),
            }
        }
        Ok(())
    }

    fn name(&self) -> String {
        "copy".to_owned()
    }
}
