//! DEQUANTIZE, MEAN, QUANTIZE become one node: that is how converters write means of 8-bit numbers whose
//! result has another scale.

use super::Readers;
use crate::graph::{Graph, Work};
use nnhal_kernels::reduction::MOST_ADDED;
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::reduce::Reduction;

pub(crate) fn run(graph: &mut Graph<'_>) {
    let readers = Readers::of(graph);
    for first in 0..graph.nodes.len() {
        let Some((mean, last, axes)) = means(graph, &readers, first) else { continue };
        graph.nodes[first].work = Work::RequantizedMean { axes };
        graph.nodes[mean].outputs.clear();
        super::absorb(graph, first, last);
    }
    super::remove_absorbed(graph);
}

/// The nodes of a MEAN and of a QUANTIZE behind a DEQUANTIZE, and the axes of the mean, if no one else reads what is
/// between.
fn means(graph: &Graph<'_>, readers: &Readers, first: usize) -> Option<(usize, usize, Vec<usize>)> {
    let next = |node: usize| readers.only_reader(*graph.nodes[node].outputs.first()?);
    let Work::Operation(AnyOperation::Dequantize(_)) = &graph.nodes[first].work else {
        return None;
    };
    let mean = next(first)?;
    let Work::Operation(AnyOperation::Reduce(reduce)) = &graph.nodes[mean].work else {
        return None;
    };
    let last = next(mean)?;
    let Work::Operation(AnyOperation::Quantize(_)) = &graph.nodes[last].work else { return None };
    let (from, to) = (graph.nodes[first].inputs[0], graph.nodes[last].outputs[0]);
    let lengths = &graph.values[from].dimensions;
    // Of nothing there is no mean.
    let count: usize = reduce.axes.iter().map(|axis| lengths[*axis] as usize).product();
    let can_be = graph.values[from].is_signed().is_some()
        && graph.values[from].operand_type() == graph.values[to].operand_type()
        && reduce.reduction == Reduction::Mean
        && (1..=MOST_ADDED).contains(&count);
    can_be.then(|| (mean, last, reduce.axes.clone()))
}
