//! Which nodes are taken: those that the importer and the device know, in partitions that are worth it.

use crate::abi::OPTIONAL_TENSOR;
use crate::error::{Error, Result};
use crate::gather::{candidate, gather};
use crate::host::{Host, Partition};
use crate::params;
use nnhal::graph::Graph;
use nnhal::hal::memory::Loan;
use nnhal_litert_common::{Nodes, TensorState};
use std::collections::HashSet;

impl Nodes for Host<'_> {
    type Error = Error;

    fn judge_alone(&self, node: i32) -> Result<()> {
        candidate(&self.node(node)?)?;
        gather(self, &[node], &[], &[]).map(drop)
    }

    fn ends_of(&self, node: i32) -> Result<(Vec<i32>, Vec<i32>)> {
        let node = self.node(node)?;
        let inputs = node.inputs.into_iter().filter(|it| *it != OPTIONAL_TENSOR);
        Ok((inputs.collect(), node.outputs))
    }

    fn has_subgraphs(&self, node: i32) -> Result<bool> {
        Ok(params::has_subgraph(candidate(&self.node(node)?)?))
    }

    fn state(&self, tensor: i32) -> Result<TensorState> {
        let tensor = self.tensor(tensor)?;
        Ok(if tensor.is_constant || tensor.is_variable {
            TensorState::Held
        } else if tensor.is_dynamic || tensor.shape.contains(&0) {
            // What has no elements may have any later.
            TensorState::Open
        } else {
            TensorState::Shaped
        })
    }

    fn name(&self, tensor: i32) -> Result<String> {
        Ok(self.tensor(tensor)?.name)
    }

    fn graph(&self, nodes: &[i32], inputs: &[i32], outputs: &[i32]) -> Result<(Graph, Vec<Loan>)> {
        let gathered = gather(self, nodes, inputs, outputs)?;
        Ok((gathered.graph, gathered.loans))
    }
}

/// Those of the host's partitions that are worth it: with nodes enough, and not more than `most`, the largest
/// first; in the host's order.
pub(crate) fn worthwhile(
    mut partitions: Vec<Partition>,
    least_nodes: usize,
    most: usize,
) -> Vec<Partition> {
    partitions
        .retain(|partition| !partition.nodes.is_empty() && partition.nodes.len() >= least_nodes);
    if most > 0 && partitions.len() > most {
        let mut sizes: Vec<(usize, usize)> =
            partitions.iter().enumerate().map(|(at, it)| (it.nodes.len(), at)).collect();
        sizes.sort_by_key(|(size, at)| (std::cmp::Reverse(*size), *at));
        let kept: HashSet<usize> = sizes.into_iter().take(most).map(|(_, at)| at).collect();
        let mut at = 0;
        partitions.retain(|_| {
            at += 1;
            kept.contains(&(at - 1))
        });
    }
    partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(nodes: &[i32]) -> Partition {
        Partition { nodes: nodes.to_vec(), inputs: Vec::new(), outputs: Vec::new() }
    }

    #[test]
    fn small_partitions_are_left_out_and_the_largest_come_first() {
        let all = [partition(&[0]), partition(&[2, 3]), partition(&[5, 6, 7]), partition(&[9, 10])];
        let chosen = |least, most| -> Vec<i32> {
            worthwhile(all.to_vec(), least, most).iter().map(|it| it.nodes[0]).collect()
        };
        assert_eq!(chosen(1, 0), [0, 2, 5, 9]);
        assert_eq!(chosen(2, 0), [2, 5, 9]);
        assert_eq!(chosen(1, 1), [5]);
        assert_eq!(chosen(1, 2), [2, 5], "of equal ones the first");
        assert_eq!(chosen(4, 0), [0; 0]);
    }
}
