//! Elements that follow each other in memory are parts of the value that they are taken of.

use crate::graph::{Graph, Node, Origin, Work};
use nnhal_ops::AnyOperation;

/// Behind all other passes, which know operations and not their parts.
pub(crate) fn run(graph: &mut Graph<'_>) {
    let nodes = std::mem::take(&mut graph.nodes);
    for node in nodes {
        let Some(firsts) = firsts(graph, &node) else {
            graph.nodes.push(node);
            continue;
        };
        let Node { place, inputs, outputs, .. } = node;
        let whole = inputs[0];
        for (first, output) in firsts.into_iter().zip(outputs) {
            let is_whole = graph.values[output].elements() == graph.values[whole].elements();
            let work = if is_whole { Work::View } else { Work::Part(first) };
            graph.nodes.push(Node { place, work, inputs: vec![whole], outputs: vec![output] });
        }
    }
}

/// By output which element of the input it begins with; `None` if not all outputs are contiguous parts of it.
fn firsts(graph: &Graph<'_>, node: &Node) -> Option<Vec<usize>> {
    let Work::Operation(operation) = &node.work else { return None };
    let input = &graph.values[*node.inputs.first()?];
    if !matches!(input.origin, Origin::Input(_) | Origin::Computed) {
        return None;
    }
    let whole = input.lengths();
    let first_of = |begins: &[usize], counts: &[usize]| first(&whole, begins, counts);
    match operation {
        AnyOperation::Split(split) => {
            let mut begins = vec![0; whole.len()];
            node.outputs
                .iter()
                .map(|output| {
                    let part = graph.values[*output].lengths();
                    let first = first_of(&begins, &part);
                    begins[split.axis] += part[split.axis];
                    first
                })
                .collect()
        }
        AnyOperation::Slice(slice) => {
            let begins: Vec<usize> = slice.begins.iter().map(|begin| *begin as usize).collect();
            let counts = graph.values[node.outputs[0]].lengths();
            Some(vec![first_of(&begins, &counts)?])
        }
        AnyOperation::StridedSlice(slice) => {
            let (mut begins, mut counts) = (Vec::new(), Vec::new());
            for (span, length) in slice.axes.iter().zip(&input.dimensions) {
                let (begin, count) = span.on(*length);
                if count > 1 && span.stride != 1 {
                    return None;
                }
                begins.push(usize::try_from(begin).ok()?);
                counts.push(count as usize);
            }
            Some(vec![first_of(&begins, &counts)?])
        }
        // Of a value to its own type.
        AnyOperation::Cast(_) => {
            let output = &graph.values[node.outputs[0]];
            let is_same = input.operand_type() == output.operand_type();
            is_same.then(|| vec![0])
        }
        _ => None,
    }
}

/// The first of the elements that are taken of a value with these lengths, if they follow each other, row by row.
fn first(whole: &[usize], begins: &[usize], counts: &[usize]) -> Option<usize> {
    if begins.len() != whole.len() || counts.len() != whole.len() || counts.contains(&0) {
        return None;
    }
    // Of axes in front of the first one along which several are taken there is one element; those behind it are whole.
    let inner = counts.iter().position(|count| *count > 1).map_or(whole.len(), |axis| axis + 1);
    if counts[inner..] != whole[inner..] {
        return None;
    }
    let along = whole.iter().zip(begins).fold(0, |first, (length, begin)| first * length + begin);
    Some(along)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_follow_each_other_are_a_part() {
        assert_eq!(first(&[1, 192], &[0, 64], &[1, 64]), Some(64));
        assert_eq!(first(&[4, 5, 6], &[2, 0, 0], &[2, 5, 6]), Some(60));
        assert_eq!(first(&[4, 5, 6], &[2, 1, 0], &[1, 3, 6]), Some(66));
        assert_eq!(first(&[4, 5, 6], &[3, 4, 1], &[1, 1, 5]), Some(115));
        assert_eq!(first(&[4, 5, 6], &[3, 4, 5], &[1, 1, 1]), Some(119));
        assert_eq!(first(&[4, 5, 6], &[0, 0, 0], &[4, 5, 6]), Some(0));
        // There is something between the rows.
        assert_eq!(first(&[4, 5, 6], &[0, 0, 0], &[2, 5, 5]), None);
        assert_eq!(first(&[4, 5, 6], &[0, 1, 0], &[2, 4, 6]), None);
        assert_eq!(first(&[4, 1, 6], &[0, 0, 0], &[2, 1, 5]), None);
        assert_eq!(first(&[4, 5], &[0, 0], &[0, 5]), None);
    }
}
