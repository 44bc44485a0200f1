//! Rewriting a graph into one that computes the same with less work.

mod activations;
mod attention;
mod chains;
mod convolutions;
mod counters;
mod factors;
mod gates;
mod grouped;
mod layout;
mod list;
mod matmul;
mod maxima;
mod means;
mod normalization;
mod padding;
mod parts;
mod residuals;
mod separable;
mod softmax;
mod strided;
mod tables;
mod transposes;
mod views;

pub use list::{NoSuchPass, Passes, passes_table};

use crate::graph::{Constant, ConstantOrigin, Graph, Node, Value, ValueId, Work};
use crate::why::Why;
use list::{PASSES, Pass, Run};
use nnhal_driver::{Budget, EngineError};
use nnhal_kernels::InstructionSet;
use nnhal_ops::AnyOperation;
use nnhal_ops::facts::Movement;
use std::borrow::Cow;
use std::num::NonZero;

/// Runs those that shall, in the order of the table, and gives the graph that each leaves to `after`, with
/// its number from 1 on. It is enough to ask the budget between them. `threads` are to share the
/// steps, and use this instruction set. The graphs of control flow are rewritten with the one that they are in.
pub(crate) fn run(
    graph: &mut Graph<'_>,
    passes: Passes,
    (set, threads): (InstructionSet, NonZero<usize>),
    budget: &Budget,
    mut after: impl FnMut(usize, &Pass, &Graph<'_>),
) -> Result<(), EngineError> {
    for (number, pass) in (1..).zip(&PASSES) {
        if !passes.contains(pass.name) {
            continue;
        }
        budget.check()?;
        let _span =
            tracing::debug_span!("pass", name = pass.name, nodes = graph.nodes.len()).entered();
        apply(pass, graph, (set, threads), budget)?;
        after(number, pass, graph);
    }
    Ok(())
}

fn apply(
    pass: &Pass,
    graph: &mut Graph<'_>,
    (set, threads): (InstructionSet, NonZero<usize>),
    budget: &Budget,
) -> Result<(), EngineError> {
    match pass.run {
        Run::Short(run) => run(graph),
        Run::Long(run) => run(graph, budget)?,
        Run::ByProcessor(run) => run(graph, set, threads),
    }
    for graph in graph.control_flow.iter_mut().flat_map(|it| &mut it.graphs) {
        apply(pass, graph, (set, threads), budget)?;
    }
    Ok(())
}

/// Why an operation is left whose kernels compute what passes make of it, or that has none.
pub(crate) fn why_left(graph: &Graph<'_>, node: &Node, operation: &AnyOperation) -> Why {
    let off = |pass: &'static str| Why::SwitchedOff { pass };
    match operation {
        AnyOperation::Conv2d(_)
        | AnyOperation::DepthwiseConv2d(_)
        | AnyOperation::FullyConnected(_)
        | AnyOperation::GroupedConv2d(_)
        | AnyOperation::TransposeConv2d(_) => {
            convolutions::rewritten(graph, node).err().unwrap_or(off("convolutions"))
        }
        AnyOperation::BatchMatmul(_) => matmul::why_left(graph, node).unwrap_or(off("matmul")),
        _ if operation.movement() == Some(Movement::InOrder) => off("views"),
        _ if operation.by_element().is_none() => Why::Operation,
        _ if graph.output(node, 0).is_float() => {
            chains::chain(graph, node).err().unwrap_or(off("chains"))
        }
        _ => tables::table(graph, node).err().unwrap_or(off("tables")),
    }
}

/// Who reads values.
struct Readers {
    /// The nodes that read, by value, in order, once for each read.
    nodes: Vec<usize>,
    /// By value, where its readers begin in `nodes`; and the end of the last one's.
    starts: Vec<usize>,
    /// By value, how often the graph gives it out.
    given_out: Vec<usize>,
}

impl Readers {
    fn of(graph: &Graph<'_>) -> Self {
        let mut starts = vec![0; graph.values.len() + 1];
        for input in graph.nodes.iter().flat_map(|node| &node.inputs) {
            starts[*input + 1] += 1;
        }
        for value in 0..graph.values.len() {
            starts[value + 1] += starts[value];
        }
        let mut ends = starts.clone();
        let mut nodes = vec![0; starts[graph.values.len()]];
        for (index, node) in graph.nodes.iter().enumerate() {
            for input in &node.inputs {
                nodes[ends[*input]] = index;
                ends[*input] += 1;
            }
        }
        let mut given_out = vec![0; graph.values.len()];
        for output in &graph.outputs {
            given_out[*output] += 1;
        }
        Self { nodes, starts, given_out }
    }

    /// The nodes that read a value, in order.
    fn all(&self, value: ValueId) -> &[usize] {
        &self.nodes[self.starts[value]..self.starts[value + 1]]
    }

    /// The node that reads a value, if there is exactly one read.
    fn only_reader(&self, value: ValueId) -> Option<usize> {
        match self.all(value) {
            [reader] if self.given_out[value] == 0 => Some(*reader),
            _ => None,
        }
    }
}

/// The node `index` computes what `absorbed` did; gives its outputs. The nodes between must not
/// depend on them, which holds if `absorbed` alone reads what the node computed.
fn absorb(graph: &mut Graph<'_>, index: usize, absorbed: usize) -> Vec<ValueId> {
    let outputs = std::mem::take(&mut graph.nodes[absorbed].outputs);
    graph.nodes[index].outputs.clone_from(&outputs);
    graph.nodes[index].place = graph.nodes[absorbed].place;
    outputs
}

/// Puts one node in the place of several, of which the last computes the result.
fn replace(graph: &mut Graph<'_>, nodes: &[usize], work: Work, inputs: Vec<ValueId>) {
    let Some((last, before)) = nodes.split_last() else { return };
    for node in before {
        graph.nodes[*node].outputs.clear();
    }
    graph.nodes[*last].work = work;
    graph.nodes[*last].inputs = inputs;
}

/// Removes nodes that compute nothing any more.
fn remove_absorbed(graph: &mut Graph<'_>) {
    graph.nodes.retain(|node| !node.outputs.is_empty());
}

/// A constant of images, channels and pixels, in this order, as images, pixels and channels. There are this many channels, and pixels
/// of an image. `None` if it is no constant, or its bytes cannot be had.
fn channels_last<'source>(
    value: &Value<'_>,
    [channels, pixels]: [usize; 2],
) -> Option<Constant<'source>> {
    let constant = value.as_constant()?;
    let bytes = constant.bytes()?;
    let size = bytes.len().checked_div(value.elements())?;
    let mut transposed = Vec::new();
    transposed.try_reserve_exact(bytes.len()).ok()?;
    let mut unasked = 0;
    for image in bytes.chunks_exact((pixels * channels * size).max(1)) {
        for pixel in 0..pixels {
            for channels in (0..channels)
                .step_by(Budget::BLOCK)
                .map(|first| first..channels.min(first + Budget::BLOCK))
            {
                unasked += channels.len();
                if unasked >= Budget::BLOCK {
                    unasked = 0;
                    // Whoever made the pass says so.
                    constant.check().ok()?;
                }
                for channel in channels {
                    let at = (channel * pixels + pixel) * size;
                    transposed.extend_from_slice(&image[at..at + size]);
                }
            }
        }
    }
    let length = transposed.len();
    Some(Constant::new(ConstantOrigin::Here(Cow::Owned(transposed)), length))
}

/// Removes what only moves elements that no one reads there any more.
fn remove_unread_moves(graph: &mut Graph<'_>) {
    let mut reads = graph.reads();
    let mut is_kept = vec![true; graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate().rev() {
        let is_move = match &node.work {
            Work::View | Work::Part(_) | Work::Copy(_) => true,
            Work::Operation(operation) => operation.movement().is_some(),
            _ => false,
        };
        if is_move && node.outputs.iter().all(|output| reads[*output] == 0) {
            is_kept[index] = false;
            for input in &node.inputs {
                reads[*input] -= 1;
            }
        }
    }
    let mut is_kept = is_kept.into_iter();
    graph.nodes.retain(|_| is_kept.next().unwrap_or(true));
}
