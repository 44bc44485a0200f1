//! PAD with zeros around height and width, read by nothing but a convolution, becomes the
//! convolution's own padding.

use super::Readers;
use crate::graph::{Graph, Value, Work};
use nnhal_ops::AnyOperation;

pub(crate) fn run(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for index in 0..graph.nodes.len() {
        let Some([top, left]) = zeros_before(graph, index) else { continue };
        let input = graph.nodes[index].inputs[0];
        let Some(next) = readers.only_reader(graph.nodes[index].outputs[0]) else { continue };
        if graph.nodes[next].inputs[0] != graph.nodes[index].outputs[0] {
            continue;
        }
        let Work::Convolution(mut convolution) = graph.nodes[next].work else { continue };
        let shape = &mut convolution.shape;
        let padded = &graph.values[graph.nodes[index].outputs[0]].dimensions;
        let image = [shape.batch, shape.input[0], shape.input[1], shape.input_channels];
        // To FULLY_CONNECTED it is no image.
        if !image.iter().zip(padded).all(|(one, other)| *one == *other as usize) {
            continue;
        }
        shape.padding_before[0] += top;
        shape.padding_before[1] += left;
        let dimensions = &graph.values[input].dimensions;
        shape.input = [dimensions[1] as usize, dimensions[2] as usize];
        if shape.is_valid() && !shape.is_mostly_padding() {
            graph.nodes[next].work = Work::Convolution(convolution);
            graph.nodes[next].inputs[0] = input;
            graph.nodes[index].outputs.clear();
        }
    }
    super::remove_absorbed(graph);
}

/// Rows above and columns left of an image that a PAD adds, if it adds nothing but zeros in height
/// and width.
fn zeros_before(graph: &Graph<'_>, index: usize) -> Option<[usize; 2]> {
    let node = &graph.nodes[index];
    let Work::Operation(AnyOperation::Pad(pad)) = &node.work else { return None };
    let [batch, height, width, channels] = &pad.borders[..] else { return None };
    let is_still =
        |border: &nnhal_ops::rules::border::Border| border.before == 0 && border.after == 0;
    let input = &graph.values[node.inputs[0]];
    let ok = is_still(batch) && is_still(channels) && is_zero(input, &pad.element);
    ok.then_some([height.before as usize, width.before as usize])
}

/// Whether an element stands for zero.
fn is_zero(value: &Value<'_>, element: &[u8]) -> bool {
    if value.is_float() {
        // Negative zero is not added by a convolution either, but a sum cannot tell.
        return element.iter().all(|byte| *byte == 0);
    }
    match element {
        [byte] => {
            let stored = match value.operand_type() {
                nnhal_hal::OperandType::TensorQuant8AsymmSigned => i32::from(byte.cast_signed()),
                _ => i32::from(*byte),
            };
            stored == value.operand.zero_point
        }
        _ => false,
    }
}
