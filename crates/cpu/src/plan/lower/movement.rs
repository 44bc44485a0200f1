//! What only moves elements.

use super::elementwise::{is_signed, recoding};
use crate::graph::{Node, Value};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use half::f16;
use nnhal_driver::EngineError;
use nnhal_kernels::movement::StridedCopy;
use nnhal_kernels::quantized_elementwise::TableMap;
use nnhal_ops::operations::mirror_pad::{MirrorPad, Mode};
use nnhal_ops::operations::{Fill, Pad, Slice, Split, Transpose};

/// Copies of inputs to places in the output.
#[derive(Debug)]
pub(super) struct Copies {
    /// Of which input, and which elements.
    pub(super) pieces: Vec<(usize, StridedCopy)>,
    pub(super) element_size: usize,
    /// What the output is filled with first, where pieces do not cover it.
    pub(super) fill: Vec<u8>,
}

/// Each axis may be cut into three spans.
const MOST_MIRRORED_AXES: usize = 6;

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

/// A CONCATENATION whose parts are not where they are to be, or not stored as they are to be.
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
    // Bytes of the greatest part that is looked up in a table.
    let mut recoded = 0;
    let mut tables = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let value = &values[*part];
        let mut table = None;
        if !value.is_float() && value.operand.quantized_as() != output.operand.quantized_as() {
            is_signed(output)?;
            table = recoding(value, output);
        }
        if table.is_some() {
            recoded = recoded.max(value.elements());
        }
        let set = builder.settings.instruction_set;
        tables.push(table.map(|table| TableMap::prepare(set, table)));
        let part = lengths(value);
        pieces.push((index, StridedCopy::piece(&part, &whole, &at)));
        at[axis] += part[axis];
    }
    let element_size = output.element_size();
    if !is_copied(element_size) || builder.row_stride(node.outputs[0]).is_some() {
        return None;
    }
    if recoded > 0 {
        let pieces = pieces.into_iter().map(|(_, copy)| copy).zip(tables).collect();
        return Some(Draft {
            place: node.place,
            kernel: Box::new(RecodedParts { pieces, recoded }),
            inputs: parts.iter().map(|id| Operand::Value(*id)).collect(),
            outputs: node.outputs.clone(),
        });
    }
    let kernel = Copies { pieces, element_size, fill: Vec::new() };
    Some(draft(node, parts, node.outputs[0], kernel))
}

/// Parts of 8-bit numbers, each of which may be stored in another way than the whole.
#[derive(Debug)]
struct RecodedParts {
    pieces: Vec<(StridedCopy, Option<TableMap>)>,
    /// Bytes of the greatest part that has a table.
    recoded: usize,
}

impl Kernel for RecodedParts {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], scratch) = operands.split();
        for (index, (copy, table)) in self.pieces.iter().enumerate() {
            let mut part = inputs.bytes(index);
            if let Some(table) = table {
                let room = &mut scratch[..part.len()];
                table.run(run.team, part, room);
                part = room;
            }
            copy.run(run.team, part, output);
        }
        Ok(())
    }

    fn name(&self) -> String {
        "requantizing copy".to_owned()
    }

    fn scratch_bytes(&self) -> usize {
        self.recoded
    }
}

pub(super) fn pad(builder: &Builder<'_, '_>, node: &Node, pad: &Pad) -> Option<Draft> {
    let values = &builder.graph.values;
    let (input, output) = (&values[node.inputs[0]], &values[node.outputs[0]]);
    let at: Vec<usize> = pad.borders.iter().map(|border| border.before as usize).collect();
    let copy = StridedCopy::piece(&lengths(input), &lengths(output), &at);
    let element_size = output.element_size();
    let fill = kept_element(output, &pad.element);
    if fill.len() != element_size {
        return None;
    }
    let kernel = Copies { pieces: vec![(0, copy)], element_size, fill };
    is_copied(element_size).then(|| draft(node, &node.inputs[..1], node.outputs[0], kernel))
}

/// An element of the model's type as it is kept while a plan runs.
fn kept_element(value: &Value<'_>, element: &[u8]) -> Vec<u8> {
    match *element {
        [a, b] if value.is_float16() => f16::from_le_bytes([a, b]).to_f32().to_ne_bytes().to_vec(),
        _ => element.to_vec(),
    }
}

pub(super) fn mirror_pad(builder: &Builder<'_, '_>, node: &Node, pad: &MirrorPad) -> Option<Draft> {
    let input = &builder.graph.values[node.inputs[0]];
    let element_size = input.element_size();
    if pad.borders.len() > MOST_MIRRORED_AXES || !is_copied(element_size) {
        return None;
    }
    let borders = pad.borders.iter().map(|it| [it.before, it.after].map(|it| it as usize));
    let skipped = match pad.mode {
        Mode::Reflect => 1,
        Mode::Symmetric => 0,
    };
    let copies = StridedCopy::mirror_pad(&lengths(input), &borders.collect::<Vec<_>>(), skipped);
    let pieces = copies.into_iter().map(|copy| (0, copy)).collect();
    let kernel = Copies { pieces, element_size, fill: Vec::new() };
    Some(draft(node, &node.inputs[..1], node.outputs[0], kernel))
}

/// A tensor of one element, again and again, that is too large to be a constant.
pub(super) fn fill(builder: &Builder<'_, '_>, node: &Node, fill: &Fill) -> Option<Draft> {
    let output = &builder.graph.values[node.outputs[0]];
    let element_size = output.element_size();
    let fill = kept_element(output, &fill.element);
    let kernel = Copies { pieces: Vec::new(), element_size, fill };
    Some(draft(node, &[], node.outputs[0], kernel))
}

/// How many axes a value has, which is known before it is.
pub(super) fn rank(builder: &Builder<'_, '_>, node: &Node) -> Option<Draft> {
    let rank = builder.graph.values[node.inputs[0]].dimensions.len();
    let fill = i32::try_from(rank).ok()?.to_ne_bytes().to_vec();
    let kernel = Copies { pieces: Vec::new(), element_size: fill.len(), fill };
    Some(draft(node, &[], node.outputs[0], kernel))
}

impl Kernel for Copies {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let (inputs, [output], _) = operands.split();
        match *self.fill {
            [] => {}
            [byte] => run.fill(byte, output),
            [a, b] => run.fill([a, b], output.as_chunks_mut().0),
            // Whole words, so that the loop becomes vector instructions.
            [a, b, c, d] => run.fill([a, b, c, d], output.as_chunks_mut().0),
            _ => {
                for block in run.budget.blocks(output.len() / self.fill.len()) {
                    for element in block? {
                        let place = element * self.fill.len();
                        output[place..place + self.fill.len()].copy_from_slice(&self.fill);
                    }
                }
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
