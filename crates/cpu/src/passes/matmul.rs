//! Products of two matrices that are known only when the plan runs become [`Work::Matmul`], which
//! reads and writes through what only moves elements: transpositions, views, splits, slices.

use super::strided::{
    MOST_MOVES, Sources, Strided, contiguous, length, offsets, part_starts, reshaped, single,
};
use super::{Readers, remove_unread_moves};
use crate::graph::{Epilogue, Graph, Matmul, Node, ValueId, Work, producers};
use crate::why::Why;
use nnhal_hal::FusedActivation;
use nnhal_kernels::batch_matmul::float::Layout;
use nnhal_ops::AnyOperation;

/// Products of matrices that the nodes of a graph compute at most together: each has a place of its
/// own in the plan. Other nodes are left to the reference kernel.
const MOST_PRODUCTS: usize = 1 << 17;

pub(crate) fn run(graph: &mut Graph<'_>) {
    // What a node computes is read by later nodes only, so that what becomes of a product changes
    // no readers that are still asked for.
    let readers = Readers::of(graph);
    let mut producers = producers(graph);
    let splits = part_starts(graph);
    let mut products_left = MOST_PRODUCTS;
    for index in 0..graph.nodes.len() {
        let sources = Sources { graph, producers: &producers, splits: &splits };
        if let Some((matmul, inputs)) = matmul(&sources, &mut products_left, index) {
            graph.nodes[index].work = Work::Matmul(Box::new(matmul));
            graph.nodes[index].inputs = inputs.to_vec();
            write_moved(graph, &readers, index);
            for output in &graph.nodes[index].outputs {
                producers[*output] = Some(index);
            }
        }
    }
    super::remove_absorbed(graph);
    remove_unread_moves(graph);
}

/// Why a BATCH_MATMUL of floats stays one, if something but the pass itself is the reason.
pub(super) fn why_left(graph: &Graph<'_>, node: &Node) -> Option<Why> {
    let [x, output] = [graph.input(node, 0), graph.output(node, 0)];
    for argument in [output, x] {
        if argument.elements() == 0 {
            return Some(argument.empty());
        }
    }
    let products = |node: &Node| match &node.work {
        Work::Matmul(matmul) => matmul.left.starts.len(),
        Work::Operation(AnyOperation::BatchMatmul(_)) => {
            let lengths = graph.values[node.outputs[0]].lengths();
            lengths.iter().rev().skip(2).fold(1, |product: usize, it| product.saturating_mul(*it))
        }
        _ => 0,
    };
    let found = graph.nodes.iter().map(products).fold(0, usize::saturating_add);
    (found > MOST_PRODUCTS).then_some(Why::Limit {
        what: "products of matrices in the model",
        found: found as u64,
        most: MOST_PRODUCTS as u64,
    })
}

impl Strided {
    /// The matrices that the last two axes are, for all indexes of the axes before them.
    fn layout(&self, batch: &[usize], is_transposed: bool) -> Option<Layout> {
        let (outer, [rows, columns]) = self.axes.split_last_chunk::<2>()?;
        let (rows, columns) = (single(rows)?, single(columns)?);
        let (row_stride, transposed) = if columns.1 == 1 || columns.0 == 1 {
            (row_stride(rows, columns.0), is_transposed)
        } else if rows.1 == 1 || rows.0 == 1 {
            (row_stride(columns, rows.0), !is_transposed)
        } else {
            return None;
        };
        let mut starts = vec![self.offset];
        for (from_last, count) in (0..batch.len()).rev().zip(batch) {
            let own = outer.len().checked_sub(from_last + 1).map(|axis| &outer[axis]);
            let own = match own {
                Some(own) if length(own) == *count => offsets(own),
                Some(own) if !own.is_empty() => return None,
                _ => vec![0; *count],
            };
            let next =
                |start: &usize| own.iter().map(move |offset| start + offset).collect::<Vec<_>>();
            starts = starts.iter().flat_map(next).collect();
        }
        Some(Layout { starts, row_stride, transposed })
    }
}

/// From a row of this many elements to the next one; a single row has no next one.
fn row_stride((rows, stride): (usize, usize), columns: usize) -> usize {
    if rows == 1 { columns } else { stride }
}

fn matmul(
    sources: &Sources<'_, '_>,
    products_left: &mut usize,
    index: usize,
) -> Option<(Matmul, [ValueId; 2])> {
    let graph = sources.graph;
    let node = &graph.nodes[index];
    let Work::Operation(
        operation @ (AnyOperation::BatchMatmul(_) | AnyOperation::FullyConnected(_)),
    ) = &node.work
    else {
        return None;
    };
    let (x, y, output) = (node.inputs[0], node.inputs[1], node.outputs[0]);
    if !graph.values[output].is_float() || graph.values[output].elements() == 0 {
        return None;
    }
    // The axes before the matrices, their rows and columns as they are stored, and whether they are
    // transposed.
    let (batch, [x_matrix, y_matrix], transposed, activation) = match operation {
        AnyOperation::BatchMatmul(it) => {
            let (x, y) = (graph.values[x].lengths(), graph.values[y].lengths());
            let output = graph.values[output].lengths();
            let (batch, _) = output.split_last_chunk::<2>()?;
            let transposed = [it.transpose_x, it.transpose_y];
            (batch.to_vec(), [x, y], transposed, FusedActivation::None)
        }
        AnyOperation::FullyConnected(it) => {
            let bias = graph.values[*node.inputs.get(2)?].constant_floats()?;
            let weights = graph.values[y].lengths();
            let [_, inputs] = weights[..] else { return None };
            let rows = graph.values[x].elements().checked_div(inputs)?;
            if bias.iter().any(|bias| *bias != 0.0) {
                return None;
            }
            (Vec::new(), [vec![rows, inputs], weights], [false, true], it.activation)
        }
        _ => return None,
    };
    let (_, [x_rows, x_columns]) = x_matrix.split_last_chunk::<2>()?;
    let (_, [y_rows, y_columns]) = y_matrix.split_last_chunk::<2>()?;
    let [rows, depth] = if transposed[0] { [*x_columns, *x_rows] } else { [*x_rows, *x_columns] };
    let columns = if transposed[1] { *y_rows } else { *y_columns };
    if depth == 0 {
        return None;
    }
    let products = batch.iter().try_fold(1_usize, |product, length| product.checked_mul(*length));
    *products_left = products_left.checked_sub(products?)?;
    let operand = |value: ValueId, lengths: &[usize], is_transposed: bool, may_turn: bool| {
        (0..=MOST_MOVES).rev().find_map(|most_moves| {
            let strided = Strided::of(sources, value, most_moves);
            let base = strided.base;
            let axes = reshaped(&strided.axes, lengths)?;
            let layout = Strided { axes, ..strided }.layout(&batch, is_transposed)?;
            let is_welcome = may_turn || !layout.transposed || most_moves == 0;
            is_welcome.then_some((base, layout))
        })
    };
    let (x, left) = operand(x, &x_matrix, transposed[0], false)?;
    let (y, right) = operand(y, &y_matrix, transposed[1], true)?;
    let epilogue = Epilogue::Clamp(activation);
    let matmul = Matmul { sizes: [rows, columns, depth], left, right, output: None, epilogue };
    Some((matmul, [x, y]))
}

/// Where a TRANSPOSE alone reads the products, they are written where it would put them.
fn write_moved(graph: &mut Graph<'_>, readers: &Readers, index: usize) {
    let product = graph.nodes[index].outputs[0];
    let Some(mut next) = readers.only_reader(product) else { return };
    let mut view = None;
    if matches!(graph.nodes[next].work, Work::View) {
        let Some(reader) = readers.only_reader(graph.nodes[next].outputs[0]) else { return };
        view = Some(std::mem::replace(&mut next, reader));
    }
    let Work::Operation(AnyOperation::Transpose(transpose)) = &graph.nodes[next].work else {
        return;
    };
    let Work::Matmul(matmul) = &graph.nodes[index].work else { return };
    let moved = graph.nodes[next].outputs[0];
    let axes_of_moved = contiguous(&graph.values[moved].lengths());
    let mut axes = axes_of_moved.clone();
    for (axis, from) in axes_of_moved.into_iter().zip(&transpose.permutation) {
        axes[*from] = axis;
    }
    let lengths = graph.values[product].lengths();
    let Some((batch, _)) = lengths.split_last_chunk::<2>() else { return };
    let Some(axes) = reshaped(&axes, &lengths) else { return };
    let strided = Strided { base: moved, offset: 0, axes };
    let Some(layout) = strided.layout(batch, false).filter(|it| !it.transposed) else { return };
    let matmul = Matmul { output: Some(layout), ..(**matmul).clone() };
    graph.nodes[index].work = Work::Matmul(Box::new(matmul));
    super::absorb(graph, index, next);
    if let Some(view) = view {
        graph.nodes[view].outputs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_heads_are_one() {
        // Two heads of keys, each for three of queries.
        let heads = [vec![(2, 64)], vec![(3, 0)], vec![(10, 128)], vec![(64, 1)]];
        let axes = reshaped(&heads, &[1, 6, 10, 64]).unwrap();
        let layout = Strided { base: 0, offset: 5, axes }.layout(&[1, 6], false).unwrap();
        assert_eq!(layout.starts, [5, 5, 5, 69, 69, 69]);
        assert_eq!((layout.row_stride, layout.transposed), (128, false));
        // Whole matrices, one behind the other, are not rows of one matrix.
        let axes = reshaped(&heads, &[1, 60, 64]).unwrap();
        assert_eq!(Strided { base: 0, offset: 0, axes }.layout(&[1], false), None);
    }
}
