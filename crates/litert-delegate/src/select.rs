//! Which nodes are taken: those that the importer and the device know, in partitions that are worth it.

use crate::error::Result;
use crate::gather::{candidate, gather};
use crate::host::{Host, Partition};
use nnhal::hal::{Device, HalVersion, Support};
use nnhal::tflite::{ImportError, ImportOptions, import_stored};
use std::collections::{BTreeMap, HashSet};

/// Attempts to import all nodes that are left together. Each leaves out what the one before has refused, and what
/// was refused only in consequence is judged anew.
const MOST_ROUNDS: usize = 32;

/// Nodes that are not taken, and why.
pub(crate) type Refused = BTreeMap<i32, String>;

/// The nodes of an execution plan that can be taken, in its order, and why the others cannot.
pub(crate) fn select(
    host: &Host<'_>,
    plan: &[i32],
    device: &dyn Device,
) -> Result<(Vec<i32>, Refused)> {
    let mut refused = Refused::new();
    let mut left = Vec::new();
    for index in plan {
        let node = host.node(*index)?;
        // Judged alone first: what cannot even be described would spoil the attempt with all.
        let described = candidate(&node).and_then(|_| gather(host, &[*index], &[], &[]));
        match described {
            Ok(_) => left.push(*index),
            Err(error) => _ = refused.insert(*index, error.to_string()),
        }
    }
    for round in 0..MOST_ROUNDS {
        if left.is_empty() {
            break;
        }
        let found = match refusals(host, &left, device) {
            Ok(found) if found.is_empty() => break,
            Ok(found) => found,
            // Something is wrong with the whole, so each is asked alone; partitions are tried out anyway.
            Err(error) => {
                tracing::warn!("the nodes cannot be judged together: {error}");
                left.iter()
                    .filter_map(|node| match refusals(host, &[*node], device) {
                        Ok(found) => found.into_iter().next(),
                        Err(error) => Some((*node, error.to_string())),
                    })
                    .collect()
            }
        };
        if found.is_empty() || round + 1 == MOST_ROUNDS {
            break;
        }
        left.retain(|node| !found.contains_key(node));
        refused.extend(found);
    }
    Ok((left, refused))
}

/// Tensors that nodes take from elsewhere, and those that none of them uses up.
fn ends(host: &Host<'_>, nodes: &[i32]) -> Result<(Vec<i32>, Vec<i32>)> {
    let (mut taken, mut given) = (Vec::new(), Vec::new());
    for index in nodes {
        let node = host.node(*index)?;
        taken.extend(node.inputs.into_iter().filter(|it| *it != crate::abi::OPTIONAL_TENSOR));
        given.extend(node.outputs);
    }
    let (used, made): (HashSet<i32>, HashSet<i32>) =
        (taken.iter().copied().collect(), given.iter().copied().collect());
    let mut seen = HashSet::new();
    taken.retain(|it| !made.contains(it) && seen.insert(*it));
    given.retain(|it| !used.contains(it) && seen.insert(*it));
    Ok((from_elsewhere(host, &taken)?, given))
}

/// Without constants and variables, which are no inputs of a graph.
pub(crate) fn from_elsewhere(host: &Host<'_>, tensors: &[i32]) -> Result<Vec<i32>> {
    let mut all = Vec::new();
    for index in tensors {
        if *index == crate::abi::OPTIONAL_TENSOR {
            continue;
        }
        let tensor = host.tensor(*index)?;
        if !tensor.is_constant && !tensor.is_variable {
            all.push(*index);
        }
    }
    Ok(all)
}

/// Those of some nodes that the importer or the device refuses; of the ones that are refused only in consequence
/// of others, none.
fn refusals(host: &Host<'_>, nodes: &[i32], device: &dyn Device) -> Result<Refused> {
    let (inputs, outputs) = ends(host, nodes)?;
    // What is not computed here and has no shape yet, or no elements, may have any later.
    let mut open = HashSet::new();
    for input in &inputs {
        let tensor = host.tensor(*input)?;
        if tensor.is_dynamic || tensor.shape.contains(&0) {
            open.insert(*input);
        }
    }
    let mut waiting = Refused::new();
    for index in nodes {
        if host.node(*index)?.inputs.iter().any(|input| open.contains(input)) {
            waiting
                .insert(*index, "the shape of an input is known only when it is computed".into());
        }
    }
    if !waiting.is_empty() {
        return Ok(waiting);
    }
    let gathered = gather(host, nodes, &inputs, &outputs)?;
    let as_error = |source: ImportError| nnhal::Error::Import { path: None, source };
    let stored = gathered.graph.store().map_err(as_error)?;
    match import_stored(&stored, &ImportOptions::default()) {
        Ok(import) => {
            let answers = device.supported_operations(&import.model, HalVersion::LATEST);
            // An error is of the model as a whole, and comes again when it is prepared.
            let answers = answers.unwrap_or_default();
            let unknown =
                answers.into_iter().zip(&import.operator_origin).filter_map(|(answer, origin)| {
                    match (answer, origin.index) {
                        (Support::No(reason), Some(at)) => {
                            Some((*nodes.get(at)?, format!("{origin}: {reason}")))
                        }
                        _ => None,
                    }
                });
            Ok(unknown.collect())
        }
        Err(ImportError::Unsupported { operators, others }) => {
            let is_own = operators.iter().any(|it| !it.is_consequence);
            let meant = operators.iter().filter(|it| !is_own || !it.is_consequence);
            // What is refused as an input of the graph has index 0, and is named by its tensor only.
            let named = meant.filter_map(|it| {
                let node = if it.operator == "input of the graph" {
                    user_of(host, nodes, &it.tensors, &inputs)?
                } else {
                    *nodes.get(it.index)?
                };
                Some((node, format!("{} {}: {}", it.operator, it.version, it.reason)))
            });
            let named: Refused = named.collect();
            if named.is_empty() {
                return Err(as_error(ImportError::Unsupported { operators, others }).into());
            }
            Ok(named)
        }
        Err(error) => Err(as_error(error).into()),
    }
}

/// The first node that uses an input which the importer has no type for.
fn user_of(host: &Host<'_>, nodes: &[i32], shown: &[String], inputs: &[i32]) -> Option<i32> {
    let shown = shown.first()?;
    let is_it = |input: &&i32| {
        let name = host.tensor(**input).map(|facts| format!("\"{}\" ", facts.name));
        name.is_ok_and(|name| shown.starts_with(&name))
    };
    let tensor = inputs.iter().find(is_it)?;
    nodes.iter().copied().find(|node| host.node(*node).is_ok_and(|it| it.inputs.contains(tensor)))
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
