//! [`Body`]: a subgraph that a node runs; and which ones the interpreter looks into instead.
//!
//! A context does not say what the inputs and outputs of its subgraph are. As sets they follow from the nodes, and from
//! the partition that the host would make of all of them, which counts the subgraph's outputs. Their order is what a
//! composite has to know: it is taken where there is one way only, see [`in_order`].

use crate::abi::OPTIONAL_TENSOR;
use crate::error::{Error, Result};
use crate::host::{Host, Partition, Subgraph, TensorFacts};
use crate::params::{Named, named_subgraphs};
use nnhal::graph::BuiltinOperator;
use std::collections::HashSet;

/// Subgraphs that are searched for one.
const MOST_SEARCHED: usize = 1024;

/// Subgraphs within each other.
pub(crate) const MOST_NESTED: usize = 32;

/// A subgraph that a node runs.
pub(crate) struct Body<'h> {
    pub(crate) host: Subgraph<'h>,
    pub(crate) plan: Vec<i32>,
    /// What its nodes take from outside, without constants, in the interpreter's numbers.
    pub(crate) inputs: Vec<i32>,
    /// What its nodes give to the outside.
    pub(crate) outputs: Vec<i32>,
}

impl<'h> Body<'h> {
    pub(crate) fn new(host: Subgraph<'h>) -> Result<Self> {
        let plan = host.execution_plan()?;
        if plan.is_empty() {
            // Nothing is computed; the functions of operators may be so.
            return Ok(Self { host, plan, inputs: Vec::new(), outputs: Vec::new() });
        }
        let mut partitions = host.partitions(&plan)?;
        let (Some(all), true) = (partitions.pop(), partitions.is_empty()) else {
            return Err(Error::Node("a subgraph that it runs is not of one piece".into()));
        };
        let Partition { inputs: taken, outputs, .. } = all;
        let mut inputs = Vec::new();
        for tensor in taken {
            if tensor != OPTIONAL_TENSOR && !host.tensor(tensor)?.is_constant {
                inputs.push(tensor);
            }
        }
        Ok(Self { host, plan, inputs, outputs })
    }
}

/// Addresses of the subgraphs that the interpreter looks into, as nodes of this one and of those that it runs name
/// them.
pub(crate) fn bodies_looked_at(host: &Host<'_>) -> Result<Vec<usize>> {
    let mut search =
        Search { seen: HashSet::new(), around: vec![host.address()], found: Vec::new() };
    search.of(host)?;
    Ok(search.found)
}

struct Search {
    /// Numbers of subgraphs that have been shown.
    seen: HashSet<i32>,
    /// The subgraphs that are being searched, by the addresses of their contexts.
    around: Vec<usize>,
    found: Vec<usize>,
}

impl Search {
    fn of(&mut self, host: &Host<'_>) -> Result<()> {
        for index in host.execution_plan()? {
            let node = host.node(index)?;
            let Ok(operator) = BuiltinOperator::try_from(node.builtin_code) else { continue };
            if node.is_delegated {
                continue;
            }
            let (named, is_run) = match named_subgraphs(operator, &node.params) {
                Named::Run(all) => (all, true),
                Named::Read(body) => (body.into_iter().collect(), false),
            };
            for index in named {
                if self.seen.len() == MOST_SEARCHED || !self.seen.insert(index) {
                    continue;
                }
                // One that is not there is the interpreter's to complain about.
                let Ok(subgraph) = host.subgraph(index) else { continue };
                let address = subgraph.address();
                if !is_run {
                    self.found.push(address);
                } else if self.around.len() < MOST_NESTED && !self.around.contains(&address) {
                    self.around.push(address);
                    self.of(&subgraph)?;
                    self.around.pop();
                }
            }
        }
        Ok(())
    }
}

/// The tensors of a body in the order of those that a node passes to them, where types and the shapes of
/// constants leave one way only. Other shapes say nothing: the host may have changed those of one side.
pub(crate) fn in_order(
    host: &Host<'_>,
    passed: &[i32],
    body: &Body<'_>,
    inside: &[i32],
) -> Result<Vec<i32>> {
    let facts = |host: &Host<'_>, tensors: &[i32]| -> Result<Vec<TensorFacts>> {
        tensors.iter().map(|tensor| host.tensor(*tensor)).collect()
    };
    let (passed, facts_inside) = (facts(host, passed)?, facts(&body.host, inside)?);
    let as_key = |facts: Vec<TensorFacts>| -> Vec<Passed> {
        let key =
            |it: TensorFacts| Passed { kind: it.kind, shape: it.shape, is_fixed: it.is_constant };
        facts.into_iter().map(key).collect()
    };
    let places = places(&as_key(passed), &as_key(facts_inside));
    let places = places.ok_or_else(|| {
        Error::Node(
            "the interpreter does not say in which order its subgraph has its tensors".into(),
        )
    })?;
    Ok(places.into_iter().map(|place| inside[place]).collect())
}

/// What tells a tensor from others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Passed {
    kind: i32,
    shape: Vec<i32>,
    /// Whether it has the shape that it has in the file.
    is_fixed: bool,
}

/// For each tensor that is passed its place inside; `None` where it is not certain.
fn places(passed: &[Passed], inside: &[Passed]) -> Option<Vec<usize>> {
    if passed.len() != inside.len() {
        return None;
    }
    let mut places: Vec<Option<usize>> = vec![None; passed.len()];
    // What has a fixed shape first: of what is left a type has one only.
    for is_fixed in [true, false] {
        let free: Vec<usize> =
            (0..inside.len()).filter(|at| !places.contains(&Some(*at))).collect();
        for (tensor, place) in passed.iter().zip(&mut places).filter(|it| it.0.is_fixed == is_fixed)
        {
            let fits = |at: &&usize| {
                inside[**at].kind == tensor.kind
                    && (!is_fixed || inside[**at].shape == tensor.shape)
            };
            let mut fitting = free.iter().filter(fits);
            *place = fitting.next().copied();
            if place.is_none() || fitting.next().is_some() {
                return None;
            }
        }
    }
    let places: Vec<usize> = places.into_iter().collect::<Option<_>>()?;
    let mut sorted = places.clone();
    sorted.sort_unstable();
    sorted.dedup();
    (sorted.len() == places.len()).then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(kind: i32, shape: &[i32], is_fixed: bool) -> Passed {
        Passed { kind, shape: shape.to_vec(), is_fixed }
    }

    #[test]
    fn one_tensor_has_one_place() {
        let (outside, inside) = ([tensor(1, &[2, 3], false)], [tensor(1, &[4], false)]);
        assert_eq!(places(&outside, &inside), Some(vec![0]));
        assert_eq!(places(&[tensor(2, &[4], false)], &inside), None, "another type");
        let [one] = outside;
        assert_eq!(places(&[one.clone(), one], &inside), None, "one is not used");
    }

    #[test]
    fn types_and_the_shapes_of_constants_distinguish_tensors() {
        let inside = [tensor(1, &[3], false), tensor(1, &[2, 3], false), tensor(2, &[2, 3], false)];
        let (x, scale) = (tensor(1, &[8, 8], false), tensor(1, &[3], true));
        let index = tensor(2, &[2, 3], false);
        let passed = [x.clone(), index.clone(), scale.clone()];
        assert_eq!(places(&passed, &inside), Some(vec![1, 2, 0]));
        assert_eq!(places(&[x.clone(), x.clone(), index.clone()], &inside), None, "two of a type");
        let twice = [scale.clone(), scale, index];
        assert_eq!(places(&twice, &inside), None, "two constants for one place");
        let same = [tensor(1, &[3], false), tensor(1, &[3], false)];
        assert_eq!(places(&[x, tensor(1, &[3], true)], &same), None, "the same shape");
    }
}
