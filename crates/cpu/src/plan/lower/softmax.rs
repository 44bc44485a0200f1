//! SOFTMAX and LOG_SOFTMAX.

use super::of_byte;
use crate::graph::{MaskedSoftmax, Node};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::softmax::{Adjustment, QuantizedSoftmax, Softmax};

/// Of floats, or of 8 bits where no logarithm is wanted.
pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    beta: f32,
    axis: usize,
    is_logarithm: bool,
) -> Result<Draft, Why> {
    let input = builder.graph.input(node, 0);
    let sizes = input.around(axis);
    let set = builder.settings.instruction_set;
    let scale = input.operand.scale;
    let of = [node.inputs[0]];
    if input.is_float() {
        return Ok(Draft::new(node, Softmax::prepare(set, sizes, beta, is_logarithm), of));
    }
    if is_logarithm {
        return Err(input.of_other_type("floats"));
    }
    let is_signed = input.is_signed("floats or 8-bit integers")?;
    Ok(of_byte!(is_signed, T => {
        Draft::new(node, QuantizedSoftmax::<T>::prepare(set, sizes, scale, beta), of)
    }))
}

/// Along the last axis, of floats. Inputs: the scores, and a mask that broadcasts, if there is one.
pub(super) fn masked(
    builder: &Builder<'_, '_>,
    node: &Node,
    MaskedSoftmax { beta, factor }: MaskedSoftmax,
) -> Draft {
    let value = |id: &usize| &builder.graph.values[*id];
    let scores = value(&node.inputs[0]);
    let outer = scores.dimensions.split_last().map_or(&[][..], |(_, outer)| outer);
    let mask = node.inputs.get(1).map(|mask| mask_axes(outer, &value(mask).dimensions));
    let sizes = scores.around(outer.len());
    let softmax = Softmax::prepare(builder.settings.instruction_set, sizes, beta, false);
    let kernel = softmax.adjusted(Adjustment { factor, mask });
    Draft::new(node, kernel, node.inputs.iter().copied())
}

/// Where the rows of a mask are for scores that have these axes before the last one: lengths and strides.
pub(super) fn mask_axes(outer: &[u32], mask: &[u32]) -> Vec<(usize, usize)> {
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
}
