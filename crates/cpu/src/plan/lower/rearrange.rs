//! What only moves elements, in ways of its own.

use crate::graph::{Argument, Node, Value};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::movement::{Axis, Copies, StridedCopy};
use nnhal_ops::operations::{
    BatchSpace, ChannelShuffle, DepthSpace, Pack, Reverse, StridedSlice, Tile, batch_space,
    depth_space,
};
use nnhal_ops::rules::blocks::{Blocks, Stacking};

/// Elements of a run from which on runs are faster than the elements one by one: of 6 they take about half the time, of 2 twice as
/// much.
const LEAST_RUN: usize = 6;

/// Copies for the elements of a block at most; larger blocks are rare.
const MOST_PLACES: usize = 256;

fn one_input(
    builder: &Builder<'_, '_>,
    node: &Node,
    copies: Vec<StridedCopy>,
    fill: Vec<u8>,
) -> Draft {
    let element_size = builder.graph.values[node.outputs[0]].element_size();
    let pieces = copies.into_iter().map(|copy| (0, copy)).collect();
    let kernel = Copies { pieces, element_size, fill, ..Copies::default() };
    Draft::new(node, kernel, [node.inputs[0]])
}

/// Lengths and strides of a contiguous value, from the first axis to the last.
fn axes(value: &Value<'_>) -> Vec<(usize, usize)> {
    let lengths = value.lengths();
    let after = |axis: usize| lengths[axis + 1..].iter().product();
    (0..lengths.len()).map(|axis| (lengths[axis], after(axis))).collect()
}

pub(super) fn strided_slice(builder: &Builder<'_, '_>, node: &Node, slice: &StridedSlice) -> Draft {
    let input = &builder.graph.values[node.inputs[0]];
    let (mut begins, mut steps, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for (span, length) in slice.axes.iter().zip(&input.dimensions) {
        let (first, count) = span.on(*length);
        begins.push(usize::try_from(first).unwrap_or(0));
        // They have 32 bits.
        steps.push(isize::try_from(span.stride).unwrap_or(isize::MAX));
        counts.push(count as usize);
    }
    let copy = if counts.contains(&0) {
        Vec::new()
    } else {
        vec![StridedCopy::slice(&input.lengths(), &begins, &steps, &counts)]
    };
    one_input(builder, node, copy, Vec::new())
}

pub(super) fn tile(builder: &Builder<'_, '_>, node: &Node, tile: &Tile) -> Draft {
    let values = &builder.graph.values;
    let (input, output) = (&values[node.inputs[0]], &values[node.outputs[0]]);
    let both = axes(input).into_iter().zip(axes(output)).zip(&tile.multiples);
    let axes: Vec<Axis> = both
        .flat_map(|(((length, from), (_, to)), multiple)| {
            let repeated =
                Axis { length: *multiple as usize, input_stride: 0, output_stride: length * to };
            [repeated, Axis { length, input_stride: from.cast_signed(), output_stride: to }]
        })
        .collect();
    one_input(builder, node, vec![StridedCopy::prepare(&axes, 0, 0)], Vec::new())
}

pub(super) fn reverse(builder: &Builder<'_, '_>, node: &Node, reverse: &Reverse) -> Draft {
    let input = &builder.graph.values[node.inputs[0]];
    let lengths = input.lengths();
    let last = |axis: usize| if axis == reverse.axis { lengths[axis].saturating_sub(1) } else { 0 };
    let begins: Vec<usize> = (0..lengths.len()).map(last).collect();
    let step = |axis: usize| if axis == reverse.axis { -1 } else { 1 };
    let steps: Vec<isize> = (0..lengths.len()).map(step).collect();
    let copy = StridedCopy::slice(&lengths, &begins, &steps, &lengths);
    one_input(builder, node, vec![copy], Vec::new())
}

pub(super) fn channel_shuffle(
    builder: &Builder<'_, '_>,
    node: &Node,
    shuffle: &ChannelShuffle,
) -> Draft {
    let input = &builder.graph.values[node.inputs[0]];
    let groups = shuffle.groups as usize;
    let axes: Vec<Axis> = axes(input)
        .into_iter()
        .enumerate()
        .flat_map(|(axis, (length, stride))| {
            if axis != shuffle.axis {
                let input_stride = stride.cast_signed();
                return vec![Axis { length, input_stride, output_stride: stride }];
            }
            // From group by group to channel by channel.
            let size = length / groups;
            let (across, along) = ((size * stride).cast_signed(), stride.cast_signed());
            vec![
                Axis { length: size, input_stride: along, output_stride: groups * stride },
                Axis { length: groups, input_stride: across, output_stride: stride },
            ]
        })
        .collect();
    one_input(builder, node, vec![StridedCopy::prepare(&axes, 0, 0)], Vec::new())
}

pub(super) fn pack(builder: &Builder<'_, '_>, node: &Node, pack: &Pack) -> Draft {
    let output = builder.graph.output(node, 0);
    let whole = output.lengths();
    let parts = &node.inputs[1..];
    let mut part = whole.clone();
    part[pack.axis] = 1;
    let pieces = (0..parts.len())
        .map(|index| {
            let mut at = vec![0; whole.len()];
            at[pack.axis] = index;
            (index, StridedCopy::piece(&part, &whole, &at))
        })
        .collect();
    let kernel = Copies { pieces, element_size: output.element_size(), ..Copies::default() };
    Draft::new(node, kernel, parts.iter().copied())
}

pub(super) fn depth_space(
    builder: &Builder<'_, '_>,
    node: &Node,
    it: &DepthSpace,
) -> Result<Draft, Why> {
    let widens = it.direction == depth_space::Direction::DepthToSpace;
    blocks(builder, node, &it.blocks, widens, [0, 0])
}

pub(super) fn batch_space(
    builder: &Builder<'_, '_>,
    node: &Node,
    it: &BatchSpace,
) -> Result<Draft, Why> {
    let widens = it.direction == batch_space::Direction::BatchToSpace;
    blocks(builder, node, &it.blocks, widens, it.borders.map(|border| border.before as usize))
}

/// Cuts an image into blocks, or puts it together. The cut image begins with this many rows and columns of zeros that the wide
/// one does not have; if there are some, or some at its ends, with a copy for each element of a block.
fn blocks(
    builder: &Builder<'_, '_>,
    node: &Node,
    blocks: &Blocks,
    widens: bool,
    before: [usize; 2],
) -> Result<Draft, Why> {
    let (input, output) = (builder.graph.input(node, 0), builder.graph.output(node, 0));
    let (wide, stacked) = if widens { (output, input) } else { (input, output) };
    let image = |argument: Argument<'_>| -> Result<[(usize, usize); 4], Why> {
        let axes = axes(&argument).try_into();
        Ok(blocks.layout.to_nhwc(axes.map_err(|_| argument.of_other_rank("4"))?))
    };
    let (wide, stacked) = (image(wide)?, image(stacked)?);
    let size = blocks.size.map(|length| length as usize);
    let stacking = match blocks.stacking {
        Stacking::Batch => 0,
        Stacking::Channels => 3,
    };
    // Channels that follow each other, of a row of a block, are copied together.
    let run = if stacking == 3 && [wide[3].1, stacked[3].1] == [1, 1] {
        size[1].saturating_mul(wide[3].0)
    } else {
        0
    };
    if run >= LEAST_RUN
        && before == [0, 0]
        && [0, 1].iter().all(|it| stacked[it + 1].0 * size[*it] == wide[it + 1].0)
    {
        let copy = whole_blocks(widens, size, stacking, [wide, stacked]);
        return Ok(one_input(builder, node, vec![copy], Vec::new()));
    }
    if size[0] * size[1] > MOST_PLACES {
        let (found, most) = ((size[0] * size[1]) as u64, MOST_PLACES as u64);
        return Err(Why::Limit { what: "elements of a block", found, most });
    }
    let mut copies = Vec::new();
    for place in 0..size[0] * size[1] {
        let at = [place / size[1], place % size[1]];
        // Where the first of its elements are.
        let mut starts = [0, place * wide[stacking].0 * stacked[stacking].1];
        let mut lengths = wide.map(|axis| axis.0);
        let mut distances = wide.map(|axis| axis.1);
        for axis in 0..2 {
            let (size, at, before) = (size[axis], at[axis], before[axis]);
            let (wide, stacked) = (wide[axis + 1], stacked[axis + 1]);
            // The block's element of number n has the index n * size + at - before in the wide image.
            let first = before.saturating_sub(at).div_ceil(size);
            let end = (wide.0 + before).saturating_sub(at).div_ceil(size).min(stacked.0);
            lengths[axis + 1] = end.saturating_sub(first);
            distances[axis + 1] = size * wide.1;
            if first < end {
                starts[0] += (first * size + at - before) * wide.1;
                starts[1] += first * stacked.1;
            }
        }
        if lengths.contains(&0) {
            continue;
        }
        let axes: Vec<Axis> = (0..4)
            .map(|axis| {
                let (mut from, mut to) = (distances[axis], stacked[axis].1);
                if widens {
                    std::mem::swap(&mut from, &mut to);
                }
                Axis { length: lengths[axis], input_stride: from.cast_signed(), output_stride: to }
            })
            .collect();
        if widens {
            starts.swap(0, 1);
        }
        copies.push(StridedCopy::prepare(&axes, starts[0], starts[1]));
    }
    let is_whole =
        widens || stacked[1].0 * size[0] == wide[1].0 && stacked[2].0 * size[1] == wide[2].0;
    let fill = if is_whole { Vec::new() } else { zero(&output) };
    Ok(one_input(builder, node, copies, fill))
}

/// A single copy, of an image that consists of blocks: the lengths and strides of the wide image and of the stacked one.
fn whole_blocks(
    widens: bool,
    size: [usize; 2],
    stacking: usize,
    [wide, stacked]: [[(usize, usize); 4]; 2],
) -> StridedCopy {
    // From one element of a block to the next in its row.
    let place = wide[stacking].0 * stacked[stacking].1;
    let axes = [
        (wide[0].0, wide[0].1, stacked[0].1),
        (stacked[1].0, size[0] * wide[1].1, stacked[1].1),
        (size[0], wide[1].1, size[1] * place),
        (stacked[2].0, size[1] * wide[2].1, stacked[2].1),
        (size[1], wide[2].1, place),
        (wide[3].0, wide[3].1, stacked[3].1),
    ];
    let axes = axes.map(|(length, of_wide, of_stacked)| {
        let (from, to) = if widens { (of_stacked, of_wide) } else { (of_wide, of_stacked) };
        Axis { length, input_stride: from.cast_signed(), output_stride: to }
    });
    StridedCopy::prepare(&axes, 0, 0)
}

/// The element that stands for zero while a plan runs.
fn zero(value: &Value<'_>) -> Vec<u8> {
    let size = value.element_size();
    let number = if value.is_float() { 0 } else { value.operand.zero_point };
    number.to_le_bytes().into_iter().take(size).collect()
}
