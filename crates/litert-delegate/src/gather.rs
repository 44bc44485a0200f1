//! From nodes of a running interpreter to a graph as the importer takes it.

use crate::error::{Error, Result};
use crate::host::{Host, NodeFacts, TensorFacts, TensorScale};
use crate::params::{self, Missing, Tables};
use crate::subgraph::{self, Body, MOST_NESTED};
use nnhal::graph::{
    BuiltinOperator, BuiltinOptions2, Constant, DimensionMetadata, DimensionType, Graph,
    Int32Vector, Operator, QuantizationParameters, SparseIndexVector, SparsityParameters, Tensor,
};
use nnhal::hal::memory::{Loan, Protection};
use nnhal_litert_common::copy_of;
use std::collections::HashMap;

/// Constants of at least this many bytes stay in the interpreter's memory.
const LARGE: usize = 128;

/// Subgraphs that the nodes of one graph may run.
const MOST_SUBGRAPHS: usize = 1024;

/// Nodes as a graph.
pub(crate) struct Gathered {
    pub(crate) graph: Graph,
    /// Of the constants that stayed where they are: as long as these are there, they can be read.
    pub(crate) loans: Vec<Loan>,
    /// By tensor of the main graph: the interpreter's.
    pub(crate) tensors: Vec<i32>,
    /// Addresses of the contexts of subgraphs that nodes run.
    pub(crate) subgraphs: Vec<usize>,
}

/// A node that the importer may know: an operator of the format, or a custom one.
///
/// # Errors
/// [`Error::Node`]: it is the interpreter's own, of another delegate, or newer than this program.
pub(crate) fn candidate(node: &NodeFacts<'_>) -> Result<BuiltinOperator> {
    use BuiltinOperator as B;
    let refused = |why: &str| Err(Error::Node(why.to_owned()));
    if node.is_delegated {
        return refused("it belongs to a delegate already");
    }
    let Ok(operator) = B::try_from(node.builtin_code) else {
        return Err(Error::Node(format!(
            "operator {} is newer than this program",
            node.builtin_code
        )));
    };
    match operator {
        B::If | B::While | B::CallOnce | B::StablehloWhile | B::StablehloCase => {
            refused("its subgraphs are run by the interpreter")
        }
        // Whoever has a part of the state must have all of it.
        B::VarHandle | B::ReadVariable | B::AssignVariable => {
            refused("resource variables are kept by the interpreter")
        }
        B::Delegate | B::PlaceholderForGreaterOpCodes => refused("it is no operator"),
        _ => Ok(operator),
    }
}

/// These nodes, in their order, as a graph with these inputs and outputs.
pub(crate) fn gather(
    host: &Host<'_>,
    nodes: &[i32],
    inputs: &[i32],
    outputs: &[i32],
) -> Result<Gathered> {
    let gathered = Gathered {
        graph: Graph::new(),
        loans: Vec::new(),
        tensors: Vec::new(),
        subgraphs: Vec::new(),
    };
    let (described, around) = (HashMap::new(), vec![host.address()]);
    let mut known = Known { gathered, described, around, copies: host.copies() };
    Gathering { host, known: &mut known, tensors: HashMap::new() }.all(nodes, inputs, outputs)?;
    Ok(known.gathered)
}

/// What is known of all subgraphs.
struct Known {
    gathered: Gathered,
    /// By subgraph of the interpreter and its inputs: its index in the graph.
    described: HashMap<(i32, Vec<i32>), i32>,
    /// The subgraphs that are being described, by the addresses of their contexts.
    around: Vec<usize>,
    /// Whether constants are copied.
    copies: bool,
}

/// A subgraph of the interpreter that is described.
struct Gathering<'h, 'c> {
    host: &'h Host<'c>,
    known: &'h mut Known,
    /// By tensor of the interpreter: its index in the graph.
    tensors: HashMap<i32, i32>,
}

impl Gathering<'_, '_> {
    fn all(&mut self, nodes: &[i32], inputs: &[i32], outputs: &[i32]) -> Result<()> {
        let inputs = inputs.iter().map(|it| self.tensor_as(*it, true)).collect::<Result<_>>()?;
        for index in nodes {
            self.node(*index)?;
        }
        let outputs = self.tensors(outputs)?;
        self.known.gathered.graph.ends(inputs, outputs);
        Ok(())
    }

    fn node(&mut self, index: i32) -> Result<()> {
        let node = self.host.node(index)?;
        let operator = candidate(&node)?;
        let refused = |why: &str| Error::Node(format!("node {index}: {why}"));
        let (custom, mut tables) = if operator == BuiltinOperator::Custom {
            (Some(node.custom_name.clone().unwrap_or_default()), Tables::default())
        } else {
            let first = node.inputs.first().filter(|it| **it != crate::abi::OPTIONAL_TENSOR);
            let rank = first.map(|it| self.host.shape(*it)).transpose()?.map_or(0, |it| it.len());
            let table = params::options(operator, &node.params, rank);
            let table = table.map_err(|missing| {
                refused(match missing {
                    Missing::Structure => "it has no options",
                    Missing::Value => "its options have a value that this program does not know",
                })
            })?;
            (None, table)
        };
        match &mut tables.second {
            Some(BuiltinOptions2::StablehloReduceWindowOptions(options)) => {
                // All its functions give the same for two arguments in any order.
                options.body_subgraph_index = self
                    .subgraph(options.body_subgraph_index, |body| {
                        Ok((body.inputs.clone(), body.outputs.clone()))
                    })?;
            }
            Some(BuiltinOptions2::StablehloScatterOptions(options)) => {
                options.update_computation_subgraph_index = self
                    .subgraph(options.update_computation_subgraph_index, |body| {
                        Ok((body.inputs.clone(), body.outputs.clone()))
                    })?;
            }
            Some(BuiltinOptions2::StableHloCompositeOptions(options)) => {
                let host = self.host;
                options.decomposition_subgraph_index =
                    self.subgraph(options.decomposition_subgraph_index, |body| {
                        let inputs = subgraph::in_order(host, &node.inputs, body, &body.inputs)?;
                        let outputs = subgraph::in_order(host, &node.outputs, body, &body.outputs)?;
                        Ok((inputs, outputs))
                    })?;
            }
            _ => {}
        }
        let operator = Operator {
            inputs: Some(self.tensors(&node.inputs)?),
            outputs: Some(self.tensors(&node.outputs)?),
            intermediates: Some(self.tensors(&node.intermediates)?),
            builtin_options: tables.first,
            builtin_options_2: tables.second,
            custom_options: custom.is_some().then_some(node.custom_options),
            ..Operator::default()
        };
        self.known.gathered.graph.operator(node.builtin_code, custom, node.version, operator);
        Ok(())
    }

    /// The index in the graph of a subgraph of the interpreter, with its inputs and outputs in an order.
    fn subgraph(
        &mut self,
        index: i32,
        order: impl FnOnce(&Body<'_>) -> Result<(Vec<i32>, Vec<i32>)>,
    ) -> Result<i32> {
        let body = Body::new(self.host.subgraph(index)?)?;
        let address = body.host.address();
        if self.known.around.contains(&address) {
            return Err(Error::Node("subgraphs run each other".into()));
        }
        if self.known.around.len() > MOST_NESTED {
            let what = format!("it runs more than {MOST_NESTED} subgraphs within each other");
            return Err(Error::Node(what));
        }
        let (inputs, outputs) = order(&body)?;
        let key = (index, [&inputs[..], &outputs].concat());
        if let Some(described) = self.known.described.get(&key) {
            return Ok(*described);
        }
        if self.known.described.len() == MOST_SUBGRAPHS {
            return Err(Error::Node(format!("it runs more than {MOST_SUBGRAPHS} subgraphs")));
        }
        self.known.gathered.subgraphs.push(address);
        self.known.around.push(address);
        let described = self.known.gathered.graph.begin_subgraph();
        let (host, tensors) = (&*body.host, HashMap::new());
        Gathering { host, known: self.known, tensors }.all(&body.plan, &inputs, &outputs)?;
        self.known.gathered.graph.end_subgraph();
        self.known.around.pop();
        self.known.described.insert(key, described);
        Ok(described)
    }

    fn tensors(&mut self, all: &[i32]) -> Result<Vec<i32>> {
        all.iter().map(|tensor| self.tensor(*tensor)).collect()
    }

    /// The index of a tensor in the graph; -1 stays what it is.
    fn tensor(&mut self, index: i32) -> Result<i32> {
        self.tensor_as(index, false)
    }

    fn tensor_as(&mut self, index: i32, is_input: bool) -> Result<i32> {
        if index == crate::abi::OPTIONAL_TENSOR {
            return Ok(index);
        }
        if let Some(known) = self.tensors.get(&index) {
            return Ok(*known);
        }
        let is_main = self.known.around.len() == 1;
        let facts = self.host.tensor(index)?;
        if facts.is_variable && !is_main {
            return Err(Error::Node("a subgraph that it runs has variables".into()));
        }
        let table = table(&facts, is_input)?;
        let gathered = &mut self.known.gathered;
        let graph = &mut gathered.graph;
        let added = if !facts.is_constant {
            graph.tensor(table)
        } else if let Some((loan, memory)) = self.host.lend(index, Protection::READ)? {
            if self.known.copies && facts.bytes >= LARGE {
                graph.constant(table, Constant::Outside(copy_of(&memory)?))
            } else if facts.bytes >= LARGE {
                gathered.loans.push(loan);
                graph.constant(table, Constant::Outside(memory))
            } else {
                let bytes = memory.view()?.read_to_vec(0, memory.size())?;
                graph.constant(table, Constant::Bytes(bytes))
            }
        } else {
            graph.tensor(table)
        };
        if is_main {
            gathered.tensors.push(index);
        }
        self.tensors.insert(index, added);
        Ok(added)
    }
}

/// A tensor as the file's schema describes it.
fn table(facts: &TensorFacts, is_input: bool) -> Result<Tensor> {
    let type_ = nnhal_litert_common::type_code(facts.kind).ok_or_else(|| {
        Error::Node(format!(
            "{} has type {}, which is newer than this program",
            facts.name, facts.kind
        ))
    })?;
    // What is given has the shape that it has now. The lengths of what is computed may be those of an example
    // or of some earlier run; without any, it may be a scalar, or not known yet.
    let is_computed = !is_input && !facts.is_constant && !facts.is_variable;
    let is_known = !is_computed || !facts.is_dynamic && !facts.shape.is_empty();
    let signature = is_computed && is_known && facts.signature.len() == facts.shape.len();
    Ok(Tensor {
        has_rank: is_known,
        shape: is_known.then(|| facts.shape.clone()),
        shape_signature: signature.then(|| facts.signature.clone()),
        type_,
        name: Some(facts.name.clone()),
        quantization: quantization(facts)?.map(Box::new),
        is_variable: facts.is_variable,
        sparsity: facts.sparsity.as_ref().map(|sparsity| Box::new(sparsity.table())),
        ..Tensor::default()
    })
}

fn quantization(facts: &TensorFacts) -> Result<Option<QuantizationParameters>> {
    match &facts.quantization {
        TensorScale::None => Ok(None),
        TensorScale::Affine { scales, zero_points, dimension } => {
            Ok(Some(QuantizationParameters {
                scale: Some(scales.clone()),
                zero_point: Some(zero_points.iter().copied().map(i64::from).collect()),
                quantized_dimension: *dimension,
                ..QuantizationParameters::default()
            }))
        }
        TensorScale::Other(kind) => Err(Error::Node(format!(
            "{} is quantized in a way (kind {kind}) that this program does not know",
            facts.name
        ))),
    }
}

impl crate::host::Sparse {
    fn table(&self) -> SparsityParameters {
        let vector = |values: &[i32]| {
            let values = Some(values.to_vec());
            SparseIndexVector::Int32Vector(Box::new(Int32Vector { values }))
        };
        let dimension = |it: &crate::host::SparseDimension| DimensionMetadata {
            format: if it.is_dense { DimensionType::Dense } else { DimensionType::SparseCsr },
            dense_size: it.dense_size,
            array_segments: (!it.is_dense).then(|| vector(&it.segments)),
            array_indices: (!it.is_dense).then(|| vector(&it.indices)),
        };
        SparsityParameters {
            traversal_order: Some(self.traversal_order.clone()),
            block_map: Some(self.block_map.clone()),
            dim_metadata: Some(self.dimensions.iter().map(dimension).collect()),
        }
    }
}
