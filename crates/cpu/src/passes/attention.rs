//! Products of matrices, SOFTMAX of them, and products of that become one node where there are many scores, which are then
//! used before they leave the caches, and where few queries have many keys, of which the last may be masked.

use super::Readers;
use crate::graph::{
    Attention, Epilogue, Graph, MaskedSoftmax, Matmul, Node, ValueId, Work, producers,
};
use nnhal_kernels::batch_matmul::float::Layout;
use nnhal_ops::AnyOperation;

/// Scores of all attentions of a node from which on they are computed by blocks: fewer stay in the second cache.
const LEAST_SCORES: usize = 1 << 18;

/// Queries of an attention from which on it is worth preparing its keys anew for each.
const LEAST_QUERIES: usize = 16;

/// Views of scores that are looked through.
const MOST_VIEWS: usize = 4;

/// Keys of a masked attention from which on it is worth looking at which of them are masked.
const LEAST_KEYS: usize = 256;

pub(crate) fn run(graph: &mut Graph<'_>) {
    let (readers, producers) = (Readers::of(graph), producers(graph));
    for index in 0..graph.nodes.len() {
        let Some((attention, inputs, before, results)) =
            attention(graph, &readers, &producers, index)
        else {
            continue;
        };
        let nodes: Vec<usize> = before.into_iter().chain([index, results]).collect();
        super::replace(graph, &nodes, Work::Attention(Box::new(attention)), inputs);
    }
    super::remove_absorbed(graph);
}

/// The attention of which a node is the SOFTMAX, its inputs, the nodes before that, and the last products.
fn attention(
    graph: &Graph<'_>,
    readers: &Readers,
    producers: &[Option<usize>],
    index: usize,
) -> Option<(Attention, Vec<ValueId>, Vec<usize>, usize)> {
    let node = &graph.nodes[index];
    let (scores, shares) = (*node.inputs.first()?, *node.outputs.first()?);
    let (columns, outer) = graph.values[scores].dimensions.split_last()?;
    let (softmax, mask) = match &node.work {
        Work::Softmax(softmax) => (*softmax, node.inputs.get(1)),
        Work::Operation(AnyOperation::Softmax(softmax))
            if softmax.axis == outer.len() && graph.values[scores].is_float() =>
        {
            (MaskedSoftmax { beta: softmax.beta, factor: 1.0 }, None)
        }
        _ => return None,
    };
    let mut before = vec![producers[scores]?];
    // The products may have other lengths, which do not matter.
    while before.len() <= MOST_VIEWS
        && let Node { work: Work::View, inputs, .. } = &graph.nodes[*before.last()?]
    {
        before.push(producers[inputs[0]]?);
    }
    let (first, next) = (*before.last()?, readers.only_reader(shares)?);
    let are_read_here =
        || before.iter().all(|node| readers.only_reader(graph.nodes[*node].outputs[0]).is_some());
    let [Work::Matmul(of_scores), Work::Matmul(results)] =
        [first, next].map(|node| &graph.nodes[node].work)
    else {
        return None;
    };
    let [rows, keys, _] = of_scores.sizes;
    let [queries, of_keys] = *graph.nodes[first].inputs.as_slice() else { return None };
    let [left, values] = *graph.nodes[next].inputs.as_slice() else { return None };
    let count = of_scores.left.starts.len();
    let is_large = rows >= LEAST_QUERIES && graph.values[scores].elements() >= LEAST_SCORES;
    let is_long = mask.is_some()
        && keys >= LEAST_KEYS
        && nnhal_kernels::attention::Attention::are_few([count, rows, keys]);
    // Layouts, which may be large, are looked at last: many nodes may read one product.
    let fits = (is_large || is_long)
        && are_read_here()
        && left == shares
        && of_scores.output.is_none()
        && !of_scores.left.transposed
        && of_scores.epilogue == Epilogue::NONE
        && results.epilogue == Epilogue::NONE
        && keys == *columns as usize
        && outer.last().is_some_and(|length| *length as usize == rows)
        && [results.sizes[0], results.sizes[2]] == [rows, keys]
        && results.left == Layout::contiguous(count, [rows, keys], false);
    fits.then(|| {
        let inputs = [queries, of_keys, values].into_iter().chain(mask.copied()).collect();
        let (scores, results) = (Matmul::clone(of_scores), Matmul::clone(results));
        let attention = Attention { scores, softmax, outer: outer.to_vec(), results };
        (attention, inputs, before, next)
    })
}
