//! What only moves elements.

use super::elementwise::recoding;
use crate::graph::{self, Node, Value};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use half::f16;
use nnhal_kernels::elementwise::quantized::TableMap;
use nnhal_kernels::movement::{Axis, Copies, StridedCopy, UpdateSlice};
use nnhal_ops::operations::mirror_pad::{MirrorPad, Mode};
use nnhal_ops::operations::{Fill, Pad, Slice, Split, Transpose};

/// A single copy.
pub(super) fn one(node: &Node, copy: StridedCopy, element_size: usize, fill: Vec<u8>) -> Draft {
    let kernel = Copies { pieces: vec![(0, copy)], element_size, fill, ..Copies::default() };
    Draft::new(node, kernel, [node.inputs[0]])
}

pub(super) fn transpose(builder: &Builder<'_, '_>, node: &Node, transpose: &Transpose) -> Draft {
    let input = builder.graph.input(node, 0);
    let copy = StridedCopy::transpose(&input.lengths(), &transpose.permutation);
    one(node, copy, input.element_size(), Vec::new())
}

/// See [`crate::graph::Work::Copy`].
pub(super) fn strided(builder: &Builder<'_, '_>, node: &Node, copy: &graph::Copy) -> Draft {
    let mut output_stride = builder.graph.values[node.outputs[0]].elements();
    let axes = copy.axes.iter().map(|(length, stride)| {
        output_stride /= length;
        Axis { length: *length, input_stride: stride.cast_signed(), output_stride }
    });
    let axes: Vec<Axis> = axes.collect();
    let element_size = builder.graph.values[node.outputs[0]].element_size();
    one(node, StridedCopy::prepare(&axes, copy.offset, 0), element_size, Vec::new())
}

/// A step for each part, so that there may be any number.
pub(super) fn split(builder: &Builder<'_, '_>, node: &Node, split: &Split) -> Vec<Draft> {
    let input = builder.graph.input(node, 0);
    let (whole, element_size) = (input.lengths(), input.element_size());
    let mut begin = vec![0; whole.len()];
    let mut drafts = Vec::new();
    for output in &node.outputs {
        let part = builder.graph.values[*output].lengths();
        let copy = StridedCopy::slice(&whole, &begin, &vec![1; whole.len()], &part);
        begin[split.axis] += part[split.axis];
        drafts.push(Draft { outputs: vec![*output], ..one(node, copy, element_size, Vec::new()) });
    }
    drafts
}

pub(super) fn slice(builder: &Builder<'_, '_>, node: &Node, slice: &Slice) -> Draft {
    let (input, output) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let begin: Vec<usize> = slice.begins.iter().map(|begin| *begin as usize).collect();
    let steps = vec![1; begin.len()];
    let copy = StridedCopy::slice(&input.lengths(), &begin, &steps, &output.lengths());
    one(node, copy, input.element_size(), Vec::new())
}

/// A CONCATENATION whose parts are not where they are to be, or not stored as they are to be.
pub(super) fn concatenation(
    builder: &Builder<'_, '_>,
    node: &Node,
    axis: usize,
    parts: &[usize],
) -> Result<Draft, Why> {
    let values = &builder.graph.values;
    let output = builder.graph.output(node, 0);
    let whole = output.lengths();
    if builder.row_stride(node.outputs[0]).is_some() {
        return Err(Why::Form {
            what: "output",
            found: "with a row stride".to_owned(),
            expected: "contiguous",
        });
    }
    let mut at = vec![0; whole.len()];
    let mut pieces = Vec::with_capacity(parts.len());
    let mut tables = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let value = &values[*part];
        let mut table = None;
        if !value.is_float() && value.operand.quantized_as() != output.operand.quantized_as() {
            output.is_signed("floats or 8-bit integers, where parts are stored in another way")?;
            table = recoding(value, &output);
        }
        let set = builder.settings.instruction_set;
        tables.push(table.map(|table| TableMap::prepare(set, table)));
        let part = value.lengths();
        pieces.push((index, StridedCopy::piece(&part, &whole, &at)));
        at[axis] += part[axis];
    }
    if tables.iter().all(Option::is_none) {
        tables.clear();
    }
    let kernel = Copies { pieces, tables, element_size: output.element_size(), fill: Vec::new() };
    Ok(Draft::new(node, kernel, parts.iter().copied()))
}

pub(super) fn pad(builder: &Builder<'_, '_>, node: &Node, pad: &Pad) -> Result<Draft, Why> {
    let (input, output) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let element_size = output.element_size();
    let at: Vec<usize> = pad.borders.iter().map(|border| border.before as usize).collect();
    let copy = StridedCopy::piece(&input.lengths(), &output.lengths(), &at);
    let fill = kept_element(&output, &pad.element);
    if fill.len() != element_size {
        return Err(Why::Form {
            what: "bytes of the padding",
            found: fill.len().to_string(),
            expected: "those of an element",
        });
    }
    Ok(one(node, copy, element_size, fill))
}

/// An element of the model's type as it is kept while a plan runs.
fn kept_element(value: &Value<'_>, element: &[u8]) -> Vec<u8> {
    match *element {
        [a, b] if value.is_float16() => f16::from_le_bytes([a, b]).to_f32().to_ne_bytes().to_vec(),
        _ => element.to_vec(),
    }
}

pub(super) fn mirror_pad(
    builder: &Builder<'_, '_>,
    node: &Node,
    pad: &MirrorPad,
) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    let (axes, most) = (pad.borders.len(), StridedCopy::MOST_MIRRORED_AXES);
    if axes > most {
        let (found, most) = (axes as u64, most as u64);
        return Err(Why::Limit { what: "axes", found, most });
    }
    let borders = pad.borders.iter().map(|it| [it.before, it.after].map(|it| it as usize));
    let skipped = match pad.mode {
        Mode::Reflect => 1,
        Mode::Symmetric => 0,
    };
    let copies = StridedCopy::mirror_pad(&input.lengths(), &borders.collect::<Vec<_>>(), skipped);
    let pieces = copies.into_iter().map(|copy| (0, copy)).collect();
    let kernel = Copies { pieces, element_size: input.element_size(), ..Copies::default() };
    Ok(Draft::new(node, kernel, [node.inputs[0]]))
}

pub(super) fn update_slice(builder: &Builder<'_, '_>, node: &Node) -> Draft {
    let [tensor, block] = [0, 1].map(|position| builder.graph.input(node, position));
    let (whole, part) = (tensor.lengths(), block.lengths());
    updating(builder, node, UpdateSlice::prepare(&whole, &part, tensor.element_size()))
}

/// See [`crate::graph::Work::RowUpdate`].
pub(super) fn update_row(builder: &Builder<'_, '_>, node: &Node) -> Draft {
    let tensor = builder.graph.input(node, 0);
    updating(builder, node, UpdateSlice::of_row(&tensor.lengths(), tensor.element_size()))
}

/// The step of a kernel that copies the tensor only where the output has another place.
fn updating(builder: &Builder<'_, '_>, node: &Node, kernel: UpdateSlice) -> Draft {
    let is_in_place = builder.layout.is_placed_in(node.outputs[0], node.inputs[0]);
    let kernel = if is_in_place { kernel.in_place() } else { kernel };
    Draft::new(node, kernel, node.inputs[..3].iter().copied())
}

/// A tensor of one element, again and again, that is too large to be a constant.
pub(super) fn fill(builder: &Builder<'_, '_>, node: &Node, fill: &Fill) -> Draft {
    let output = &builder.graph.values[node.outputs[0]];
    let fill = kept_element(output, &fill.element);
    Draft::new(node, Copies { fill, ..Copies::default() }, [])
}

/// How many axes a value has, which is known before it is.
pub(super) fn rank(builder: &Builder<'_, '_>, node: &Node) -> Draft {
    let rank = builder.graph.values[node.inputs[0]].dimensions.len();
    let fill = i32::try_from(rank).unwrap_or(i32::MAX).to_ne_bytes().to_vec();
    Draft::new(node, Copies { fill, ..Copies::default() }, [])
}
