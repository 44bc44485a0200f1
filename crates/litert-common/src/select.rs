//! [`select`]: which operators are taken: those that the importer and the device know.

use nnhal::graph::Graph;
use nnhal::hal::memory::Loan;
use nnhal::hal::{Device, HalVersion, Support};
use nnhal::tflite::{Import, ImportError, ImportOptions, import_stored, is_dynamic_range};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;

/// Attempts to import all nodes that are left together. Each leaves out what the one before has refused, and what
/// was refused only in consequence is judged anew.
const MOST_ROUNDS: usize = 32;

/// Nodes that are not taken, and why.
pub type Refused = BTreeMap<i32, String>;

/// What is known about a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorState {
    /// It has a value: a constant, or a variable, which keeps its own.
    Held,
    /// It is given or computed, with a shape that is known.
    Shaped,
    /// It is given or computed, and its shape is not known before.
    Open,
}

/// A graph that LiteRT shows: nodes and tensors with numbers. A tensor that is left out has none.
pub trait Nodes {
    /// Why something cannot be said about it.
    type Error: Display + From<nnhal::Error>;

    /// Judges a node by itself: what cannot even be described would spoil the attempt with all.
    ///
    /// # Errors
    /// It cannot be taken.
    fn judge_alone(&self, node: i32) -> Result<(), Self::Error>;

    /// The tensors that a node takes, and those that it computes.
    ///
    /// # Errors
    /// LiteRT does not say.
    fn ends_of(&self, node: i32) -> Result<(Vec<i32>, Vec<i32>), Self::Error>;

    /// Whether a node runs subgraphs, which are part of the graphs that [`Nodes::graph`] makes.
    ///
    /// # Errors
    /// LiteRT does not say.
    fn has_subgraphs(&self, node: i32) -> Result<bool, Self::Error>;

    /// What is known about a tensor.
    ///
    /// # Errors
    /// LiteRT does not say.
    fn state(&self, tensor: i32) -> Result<TensorState, Self::Error>;

    /// The name of a tensor in the graphs that [`Nodes::graph`] makes.
    ///
    /// # Errors
    /// LiteRT does not say.
    fn name(&self, tensor: i32) -> Result<String, Self::Error>;

    /// Nodes as a graph for the importer, and what its constants need to be there.
    ///
    /// # Errors
    /// LiteRT does not say, or a node cannot be described.
    fn graph(
        &self,
        nodes: &[i32],
        inputs: &[i32],
        outputs: &[i32],
    ) -> Result<(Graph, Vec<Loan>), Self::Error>;
}

/// The nodes of a plan that can be taken, in its order, and why the others cannot.
///
/// # Errors
/// LiteRT does not show its graph.
pub fn select<N: Nodes>(
    source: &N,
    plan: &[i32],
    device: &dyn Device,
) -> Result<(Vec<i32>, Refused), N::Error> {
    let mut refused = Refused::new();
    let mut left = Vec::new();
    for index in plan {
        // A node that is not there is an error of LiteRT, and none that could be left out.
        source.ends_of(*index)?;
        match source.judge_alone(*index) {
            Ok(()) => left.push(*index),
            Err(error) => _ = refused.insert(*index, error.to_string()),
        }
    }
    for round in 0..MOST_ROUNDS {
        if left.is_empty() {
            break;
        }
        let found = match refusals(source, &left, device) {
            Ok(found) if found.is_empty() => break,
            Ok(found) => found,
            // Something is wrong with the whole, so each is asked alone; partitions are tried out anyway.
            Err(error) => {
                tracing::warn!("the nodes cannot be judged together: {error}");
                left.iter()
                    .filter_map(|node| match refusals(source, &[*node], device) {
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
fn ends<N: Nodes>(source: &N, nodes: &[i32]) -> Result<(Vec<i32>, Vec<i32>), N::Error> {
    let (mut taken, mut given) = (Vec::new(), Vec::new());
    for index in nodes {
        let (inputs, outputs) = source.ends_of(*index)?;
        taken.extend(inputs);
        given.extend(outputs);
    }
    let (used, made): (HashSet<i32>, HashSet<i32>) =
        (taken.iter().copied().collect(), given.iter().copied().collect());
    let mut seen = HashSet::new();
    taken.retain(|it| !made.contains(it) && seen.insert(*it));
    given.retain(|it| !used.contains(it) && seen.insert(*it));
    Ok((from_elsewhere(source, &taken)?, given))
}

/// Without constants and variables, which are no inputs of a graph.
///
/// # Errors
/// LiteRT does not say what a tensor is.
pub fn from_elsewhere<N: Nodes>(source: &N, tensors: &[i32]) -> Result<Vec<i32>, N::Error> {
    let mut all = Vec::new();
    for index in tensors {
        if source.state(*index)? != TensorState::Held {
            all.push(*index);
        }
    }
    Ok(all)
}

/// Those of some nodes that the importer or the device refuses; of the ones that are refused only in consequence
/// of others, none.
fn refusals<N: Nodes>(source: &N, nodes: &[i32], device: &dyn Device) -> Result<Refused, N::Error> {
    let (inputs, outputs) = ends(source, nodes)?;
    // What is not computed here and has no shape yet may have any later.
    let mut open = HashSet::new();
    for input in &inputs {
        if source.state(*input)? == TensorState::Open {
            open.insert(*input);
        }
    }
    let mut waiting = Refused::new();
    for index in nodes {
        if source.ends_of(*index)?.0.iter().any(|input| open.contains(input)) {
            waiting
                .insert(*index, "the shape of an input is known only when it is computed".into());
        }
    }
    if !waiting.is_empty() {
        return Ok(waiting);
    }
    let (graph, _loans) = source.graph(nodes, &inputs, &outputs)?;
    let as_error =
        |source: ImportError| N::Error::from(nnhal::Error::Import { path: None, source });
    let stored = graph.store().map_err(as_error)?;
    let import = |dequantizes_weights| {
        let options = ImportOptions { dequantizes_weights, ..ImportOptions::default() };
        let import = import_stored(&stored, &options)?;
        let answers = device.supported_operations(&import.model, HalVersion::LATEST);
        // An error is of the model as a whole, and comes again when it is prepared.
        Ok((import, answers.unwrap_or_default()))
    };
    let lacks_dynamic_range = |(import, answers): &(Import, Vec<Support>)| {
        let operations = import.model.main.operations.iter();
        let refused = answers.iter().zip(operations).filter(|(answer, _)| **answer != Support::Yes);
        refused.map(|(_, it)| it.operation_type).any(is_dynamic_range)
    };
    let judged = match import(false) {
        Ok(judged) if lacks_dynamic_range(&judged) => import(true),
        judged => judged,
    };
    match judged {
        Ok((import, answers)) => {
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
            if let Some(within) = operators.iter().find(|it| it.subgraph != 0) {
                let reason =
                    format!("in a subgraph that it runs, {}: {}", within.operator, within.reason);
                return refused_within(source, nodes, device, &reason);
            }
            let is_own = operators.iter().any(|it| !it.is_consequence);
            let meant = operators.iter().filter(|it| !is_own || !it.is_consequence);
            // What is refused as an input of the graph has index 0, and is named by its tensor only.
            let named = meant.filter_map(|it| {
                let node = if it.operator == "input of the graph" {
                    user_of(source, nodes, &it.tensors, &inputs)?
                } else {
                    *nodes.get(it.index)?
                };
                Some((node, format!("{} {}: {}", it.operator, it.version, it.reason)))
            });
            let named: Refused = named.collect();
            if named.is_empty() {
                return Err(as_error(ImportError::Unsupported { operators, others }));
            }
            Ok(named)
        }
        Err(error) => Err(as_error(error)),
    }
}

/// Which of the nodes with subgraphs are refused for what is in those: each that is refused by itself, else all of them.
fn refused_within<N: Nodes>(
    source: &N,
    nodes: &[i32],
    device: &dyn Device,
    reason: &str,
) -> Result<Refused, N::Error> {
    let mut all = Vec::new();
    for node in nodes {
        if source.has_subgraphs(*node)? {
            all.push(*node);
        }
    }
    let refuse_all = || all.iter().map(|node| (*node, reason.to_owned())).collect::<Refused>();
    if nodes.len() == 1 {
        return Ok(refuse_all());
    }
    let mut alone = Refused::new();
    for node in &all {
        match refusals(source, &[*node], device) {
            Ok(found) => alone.extend(found),
            Err(error) => _ = alone.insert(*node, error.to_string()),
        }
    }
    Ok(if alone.is_empty() { refuse_all() } else { alone })
}

/// The first node that uses an input which the importer has no type for.
fn user_of<N: Nodes>(source: &N, nodes: &[i32], shown: &[String], inputs: &[i32]) -> Option<i32> {
    let shown = shown.first()?;
    let is_it = |input: &&i32| {
        source.name(**input).is_ok_and(|name| shown.starts_with(&format!("\"{name}\" ")))
    };
    let tensor = inputs.iter().find(is_it)?;
    let takes = |node: &i32| source.ends_of(*node).is_ok_and(|ends| ends.0.contains(tensor));
    nodes.iter().copied().find(takes)
}
