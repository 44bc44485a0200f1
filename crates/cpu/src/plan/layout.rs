//! [`Layout`]: which values share a buffer, so that nothing needs to be copied from one to another.

use super::{Caller, Draft};
use crate::graph::{Graph, Node, Origin, ValueId, Work, parts, producers};
use nnhal_ops::AnyOperation;
use nnhal_ops::rules::layout as images;

/// Index of a buffer: a piece of the arena that belongs to values, or to a step's scratch memory.
pub(crate) type BufferId = usize;

/// Which buffer each value is in, and how.
#[derive(Debug)]
pub(crate) struct Layout {
    /// By value.
    pub(crate) places: Vec<Place>,
}

/// How a value is in its buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) buffer: BufferId,
    /// Bytes from the buffer's beginning.
    pub(crate) offset: usize,
    /// Elements from one row along the last axis to the next, where they are not contiguous.
    pub(crate) stride: Option<usize>,
}

impl Layout {
    /// Every value has a buffer of its own, except for
    ///
    /// - views and parts, which are where what they show is;
    /// - tensors with a part replaced, which are where the tensor is, if no one else reads that;
    /// - what is concatenated and read by no one else, which is where it is to be, if what
    ///   computes it can write it there. Such a CONCATENATION has nothing left to do.
    pub(crate) fn new(graph: &Graph<'_>, caller: Caller) -> Self {
        let own = |buffer| Place { buffer, offset: 0, stride: None };
        let mut layout = Self { places: (0..graph.values.len()).map(own).collect() };
        let reads = graph.reads();
        let producers = producers(graph).into_iter().map(|it| Some(&graph.nodes[it?]));
        let producers: Vec<Option<&Node>> = producers.collect();
        // From the last one to the first: where the output goes is settled before its parts are.
        for node in graph.nodes.iter().rev() {
            match &node.work {
                Work::View => layout.see_through(graph, node, &reads),
                Work::Operation(AnyOperation::Concatenation(concatenation)) => {
                    layout.join(graph, node, concatenation.axis, &reads, &producers);
                }
                _ => {}
            }
        }
        // What is shown may have got its place after the view was looked at.
        for node in &graph.nodes {
            let first = match node.work {
                Work::View => 0,
                Work::Part(first) => first,
                Work::RowUpdate | Work::Operation(AnyOperation::DynamicUpdateSlice(_))
                    if layout.may_change(graph, node, caller, &reads, &producers) =>
                {
                    0
                }
                _ => continue,
            };
            let mut place = layout.places[node.inputs[0]].clone();
            place.offset += first * graph.values[node.outputs[0]].element_size();
            layout.places[node.outputs[0]] = place;
        }
        layout
    }

    /// Whether a value is within another one's buffer.
    pub(crate) fn is_placed_in(&self, value: ValueId, other: ValueId) -> bool {
        value != other && self.places[value].buffer == self.places[other].buffer
    }

    /// Outputs of at least `least` bytes that have a buffer of their own, with that buffer: they can be in the caller's memory
    /// instead of the arena. No step writes two of them.
    pub(crate) fn outputs_beside(
        &self,
        graph: &Graph<'_>,
        drafts: &[Draft],
        least: usize,
    ) -> Vec<(usize, BufferId)> {
        let mut found = Vec::new();
        let mut outputs = vec![0; self.buffers()];
        for (output, id) in graph.outputs.iter().enumerate() {
            let (value, place) = (&graph.values[*id], &self.places[*id]);
            let is_there = matches!(value.origin, Origin::Input(_) | Origin::Computed);
            let is_whole = place.offset == 0
                && place.stride.is_none()
                && graph.values[place.buffer].bytes() == value.bytes();
            let is_wanted = is_there && is_whole && !value.is_float16();
            if is_wanted && value.bytes() >= least.max(1) {
                found.push((output, place.buffer));
            }
            outputs[place.buffer] += 1;
        }
        found.retain(|(_, buffer)| outputs[*buffer] == 1);
        let mut is_beside = vec![false; self.buffers()];
        found.iter().for_each(|(_, buffer)| is_beside[*buffer] = true);
        for draft in drafts {
            let mut first = None;
            for output in &draft.outputs {
                let buffer = self.places[*output].buffer;
                if is_beside[buffer] && *first.get_or_insert(buffer) != buffer {
                    is_beside[buffer] = false;
                }
            }
        }
        found.retain(|(_, buffer)| is_beside[*buffer]);
        found
    }

    /// A view that has got its place gives it to what it shows, if no one else looks at that.
    fn see_through(&mut self, graph: &Graph<'_>, node: &Node, reads: &[usize]) {
        let (shown, view) = (node.inputs[0], node.outputs[0]);
        let is_computed = matches!(graph.values[shown].origin, Origin::Computed);
        if is_computed && reads[shown] == 1 && self.places[view].buffer != view {
            self.places[shown] = self.places[view].clone();
        }
    }

    /// Whether the first input of a node can become its output where it is: no one else reads it.
    fn may_change(
        &self,
        graph: &Graph<'_>,
        node: &Node,
        caller: Caller,
        reads: &[usize],
        producers: &[Option<&Node>],
    ) -> bool {
        let (before, after) = (node.inputs[0], node.outputs[0]);
        let has_no_place = self.places[after].buffer == after;
        if !has_no_place || reads[before] != 1 || self.places[before].stride.is_some() {
            return false;
        }
        let Some(shown) = read_once(before, reads, producers) else { return false };
        match graph.values[shown].origin {
            Origin::Computed => !is_part(shown, producers),
            // What comes out of a loop's body takes the place of what went in, if something does.
            Origin::Input(input) => caller != Caller::Body || input < graph.outputs.len(),
            Origin::Constant(_) | Origin::Omitted => false,
        }
    }

    /// Places the parts of a CONCATENATION, all or none.
    fn join(
        &mut self,
        graph: &Graph<'_>,
        node: &Node,
        axis: usize,
        reads: &[usize],
        producers: &[Option<&Node>],
    ) {
        let output = &graph.values[node.outputs[0]];
        let Some(lengths) = output.dimensions.get(axis..) else { return };
        let is_contiguous = output.dimensions[..axis].iter().all(|length| *length == 1);
        let is_along_last = lengths.len() == 1;
        let place = self.places[node.outputs[0]].clone();
        if !is_along_last && (!is_contiguous || place.stride.is_some()) {
            return;
        }
        let row = lengths[0] as usize;
        let stride = place.stride.or_else(|| (!is_contiguous).then_some(row));
        let parts = parts(graph, node);
        for part in parts {
            let value = &graph.values[*part];
            // One that is joined twice is read twice.
            let is_free = reads[*part] == 1
                && matches!(value.origin, Origin::Computed)
                && value.operand.quantized_as() == output.operand.quantized_as();
            if !is_free || self.places[*part].buffer != *part {
                return;
            }
            let can_be_written = match producers[*part] {
                // A view's rows are not those of what it shows.
                Some(producer) if stride.is_some() => writes_strided(&producer.work),
                Some(_) => read_once(*part, reads, producers).is_some_and(|shown| {
                    let is_computed = matches!(graph.values[shown].origin, Origin::Computed);
                    is_computed && !is_part(shown, producers)
                }),
                None => false,
            };
            if !can_be_written {
                return;
            }
        }
        let after: usize = lengths[1..].iter().map(|length| *length as usize).product();
        let mut offset = place.offset;
        for part in parts {
            let value = &graph.values[*part];
            self.places[*part] = Place { buffer: place.buffer, offset, stride };
            offset += value.dimensions[axis] as usize * after * value.element_size();
        }
    }
}

/// What a value is a view of, or itself, if no one else than the views that lead to it reads that.
fn read_once(mut value: ValueId, reads: &[usize], producers: &[Option<&Node>]) -> Option<ValueId> {
    while let Some(Node { work: Work::View, inputs, .. }) = producers[value] {
        value = inputs[0];
        if reads[value] != 1 {
            return None;
        }
    }
    Some(value)
}

/// Whether a value is where the rest is of what it is a part of.
fn is_part(value: ValueId, producers: &[Option<&Node>]) -> bool {
    producers[value].is_some_and(|it| matches!(it.work, Work::Part(_)))
}

/// Whether a node's kernel can leave gaps between the rows of its output.
fn writes_strided(work: &Work) -> bool {
    match work {
        Work::Convolution(_) | Work::SeparableConvolution(_) | Work::TransposedConvolution(_) => {
            true
        }
        Work::Matmul(matmul) => matmul.output.is_none(),
        Work::Operation(AnyOperation::Pooling(pooling)) => pooling.layout == images::Layout::Nhwc,
        _ => false,
    }
}
