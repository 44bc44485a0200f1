//! [`Subgraph`]: a graph that LiteRT shows, read at once, as nodes for the choice and as a graph for the importer.

use crate::context::{Context, Object, PerChannel, PerTensor, Weights, place};
use crate::options::{Options, options};
use nnhal::graph::{
    BuiltinOperator as B, Constant, Graph, Operator, QuantizationParameters, Tensor as Table,
};
use nnhal::hal::memory::Loan;
use nnhal_litert_common::compiled::{Failure, Outcome, RankedTensorType, Status};
use nnhal_litert_common::{Nodes, TensorState, copy_of, type_code};
use std::collections::{HashMap, HashSet};

/// Constants of at least this many bytes are read where they are.
const LARGE: usize = 128;

/// A graph that LiteRT shows, while its call lasts.
pub(crate) struct Subgraph {
    nodes: Vec<Node>,
    tensors: Vec<Tensor>,
    /// Whether an input or output has no name.
    has_nameless_ends: bool,
    /// Whether constants are copied, and not used where they are: for a device in another process.
    pub(crate) copies: bool,
}

struct Node {
    object: Object,
    code: i32,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    options: Options,
}

struct Tensor {
    element_type: i32,
    /// `None`: its rank is not known.
    shape: Option<Vec<i32>>,
    quantization: Quantization,
    weights: Option<Weights>,
    /// Whether an operator computes it.
    is_computed: bool,
    /// Whether it is an input of the graph.
    is_given: bool,
    /// Whether its value follows from constants and shapes.
    is_settled: bool,
    /// Whether it is an output of the graph.
    is_result: bool,
}

enum Quantization {
    None,
    Affine { scales: Vec<f32>, zero_points: Vec<i64>, dimension: i32 },
    Other(i32),
}

impl Subgraph {
    pub(crate) fn read(context: &Context, subgraph: Object) -> Outcome<Self> {
        let mut reading = Reading { context, known: HashMap::new(), tensors: Vec::new() };
        let mut has_nameless_ends = false;
        for input in context.all(place::NUM_SUBGRAPH_INPUTS, place::SUBGRAPH_INPUT, subgraph)? {
            let index = reading.tensor(input)?;
            reading.known_tensor(index).is_given = true;
            has_nameless_ends |= context.text(place::TENSOR_NAME, input)?.is_empty();
        }
        for output in context.all(place::NUM_SUBGRAPH_OUTPUTS, place::SUBGRAPH_OUTPUT, subgraph)? {
            let index = reading.tensor(output)?;
            reading.known_tensor(index).is_result = true;
            has_nameless_ends |= context.text(place::TENSOR_NAME, output)?.is_empty();
        }
        let mut nodes = Vec::new();
        for object in context.all(place::NUM_SUBGRAPH_OPS, place::SUBGRAPH_OP, subgraph)? {
            nodes.push(reading.node(object)?);
        }
        Ok(Self { nodes, tensors: reading.tensors, has_nameless_ends, copies: false })
    }

    /// Whether a model with this subgraph can be compiled at all. LiteRT writes it anew, and some things it does not write
    /// as they were; and where shapes are known only later it gives partitions buffers of other sizes. Such models are left
    /// to it as the file has them.
    pub(crate) fn check_compilable(&self) -> Outcome {
        let left = |why: String| Err(Failure::quiet(Status::Unsupported, why));
        if self.has_nameless_ends {
            return left("inputs or outputs have no names, which LiteRT expects".into());
        }
        for (index, tensor) in self.tensors.iter().enumerate() {
            let is_known = |shape: &Vec<i32>| shape.iter().all(|length| *length >= 0);
            if !tensor.shape.as_ref().is_some_and(is_known) {
                return left(format!("the shape of tensor {index} is known only later"));
            }
            if tensor.weights.is_some_and(|it| tensor.size().is_some_and(|size| size != it.size)) {
                return left(format!(
                    "constant {index} is stored in a way that LiteRT does not write as it was"
                ));
            }
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let Ok(operator) = B::try_from(node.code) else { continue };
            if matches!(
                operator,
                B::CallOnce
                    | B::VarHandle
                    | B::ReadVariable
                    | B::AssignVariable
                    | B::Densify
                    | B::StablehloReduceWindow
                    | B::StablehloWhile
                    | B::StablehloCase
                    | B::StablehloScatter
                    | B::StablehloSort
                    | B::StablehloReduce
            ) {
                return left(format!(
                    "operator {index} is {operator:?}, which LiteRT does not write as it was"
                ));
            }
            for at in shaping_inputs(operator) {
                if let Some(input) = node.inputs.get(*at)
                    && !self.tensor(*input)?.is_settled
                {
                    return left(format!(
                        "the shape of what operator {index} gives, a {operator:?}, follows from values"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The nodes in their order.
    pub(crate) fn plan(&self) -> Vec<i32> {
        (0..self.nodes.len()).map(number).collect()
    }

    /// Splits nodes that are taken into those that stay so, and those that take what LiteRT has computed before all runs, as it does
    /// shapes, and gives as a result of the model too: the buffer of such a result is not written before partitions run.
    pub(crate) fn readable(&self, taken: Vec<i32>) -> Outcome<(Vec<i32>, Vec<i32>)> {
        let mut kept: HashSet<i32> = taken.iter().copied().collect();
        let mut unwritten = HashSet::new();
        for (index, node) in (0..).zip(&self.nodes) {
            if node.inputs.iter().any(|input| unwritten.contains(input)) {
                kept.remove(&index);
            }
            if kept.contains(&index) {
                continue;
            }
            for output in &node.outputs {
                let tensor = self.tensor(*output)?;
                if tensor.is_settled && tensor.is_result {
                    unwritten.insert(*output);
                }
            }
        }
        Ok(taken.into_iter().partition(|node| kept.contains(node)))
    }

    pub(crate) fn object(&self, node: i32) -> Outcome<Object> {
        Ok(self.node(node)?.object)
    }

    fn node(&self, index: i32) -> Outcome<&Node> {
        usize::try_from(index)
            .ok()
            .and_then(|at| self.nodes.get(at))
            .ok_or_else(|| no("node", index))
    }

    fn tensor(&self, index: i32) -> Outcome<&Tensor> {
        let found = usize::try_from(index).ok().and_then(|at| self.tensors.get(at));
        found.ok_or_else(|| no("tensor", index))
    }
}

/// Which inputs of an operator have values that the shape of its output follows from.
fn shaping_inputs(operator: B) -> &'static [usize] {
    match operator {
        B::Reshape
        | B::BroadcastTo
        | B::ExpandDims
        | B::Tile
        | B::Pad
        | B::Padv2
        | B::MirrorPad
        | B::ResizeBilinear
        | B::ResizeNearestNeighbor
        | B::OneHot
        | B::TopkV2
        | B::ArgMax
        | B::ArgMin
        | B::Transpose
        | B::Sum
        | B::Mean
        | B::ReduceProd
        | B::ReduceMax
        | B::ReduceMin
        | B::ReduceAny
        | B::ReduceAll
        | B::Rfft2d => &[1],
        B::Slice | B::SpaceToBatchNd | B::BatchToSpaceNd | B::SplitV => &[1, 2],
        B::StridedSlice | B::Dilate => &[1, 2, 3],
        B::Range => &[0, 1, 2],
        B::Fill | B::Split | B::TransposeConv | B::Conv3dTranspose => &[0],
        B::SparseToDense | B::SegmentSum | B::UnsortedSegmentSum => &[1, 2],
        B::UnsortedSegmentMax | B::UnsortedSegmentMin | B::UnsortedSegmentProd => &[2],
        B::ScatterNd => &[2],
        // As many as there are: no value that is known before tells.
        B::Where | B::Unique => &[0],
        _ => &[],
    }
}

fn no(what: &str, index: i32) -> Failure {
    Failure::new(Status::IndexOutOfBounds, format!("there is no {what} {index}"))
}

fn number(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

struct Reading<'c> {
    context: &'c Context,
    known: HashMap<Object, i32>,
    tensors: Vec<Tensor>,
}

impl Reading<'_> {
    fn node(&mut self, object: Object) -> Outcome<Node> {
        let context = self.context;
        let code: i32 = context.get(place::OP_CODE, object)?;
        let tensors = |reading: &mut Self, count, at| -> Outcome<Vec<i32>> {
            let all = context.all(count, at, object)?;
            all.into_iter().map(|tensor| reading.tensor(tensor)).collect()
        };
        let inputs = tensors(self, place::NUM_OP_INPUTS, place::OP_INPUT)?;
        let outputs = tensors(self, place::NUM_OP_OUTPUTS, place::OP_OUTPUT)?;
        let tells_shapes = [B::Shape as i32, B::Rank as i32].contains(&code);
        let is_settled =
            tells_shapes || inputs.iter().all(|input| self.known_tensor(*input).is_settled);
        for output in &outputs {
            let output = self.known_tensor(*output);
            (output.is_computed, output.is_settled) = (true, is_settled);
        }
        let rank = |tensor: Option<&i32>| {
            let tensor = usize::try_from(*tensor?).ok().and_then(|at| self.tensors.get(at))?;
            Some(tensor.shape.as_ref()?.len())
        };
        let keeps_rank = rank(inputs.first()) == rank(outputs.first());
        let options = options(context, object, code, inputs.len(), keeps_rank)?;
        Ok(Node { object, code, inputs, outputs, options })
    }

    fn known_tensor(&mut self, index: i32) -> &mut Tensor {
        // Indices come from `tensor`.
        &mut self.tensors[usize::try_from(index).unwrap_or(0)]
    }

    fn tensor(&mut self, object: Object) -> Outcome<i32> {
        if object.is_null() {
            return Err(Failure::null("a tensor of LiteRT's graph"));
        }
        if let Some(known) = self.known.get(&object) {
            return Ok(*known);
        }
        let context = self.context;
        let (element_type, shape) = if context.get::<i32>(place::TENSOR_TYPE_ID, object)? == 0 {
            let ranked: RankedTensorType = context.get(place::RANKED_TENSOR_TYPE, object)?;
            (ranked.element_type, ranked.shape().map(<[i32]>::to_vec))
        } else {
            (context.get(place::UNRANKED_TENSOR_TYPE, object)?, None)
        };
        let quantization = match context.get(place::QUANTIZATION_TYPE_ID, object)? {
            0 => Quantization::None,
            1 => {
                let of: PerTensor = context.get(place::PER_TENSOR_QUANTIZATION, object)?;
                let (scales, zero_points) = (vec![of.scale], vec![of.zero_point]);
                Quantization::Affine { scales, zero_points, dimension: 0 }
            }
            2 => {
                let of: PerChannel = context.get(place::PER_CHANNEL_QUANTIZATION, object)?;
                let (scales, zero_points) = context.channels(&of);
                Quantization::Affine { scales, zero_points, dimension: of.dimension }
            }
            other => Quantization::Other(other),
        };
        let weights = context.weights(object)?;
        let is_settled = weights.is_some();
        let (is_computed, is_given, is_result) = (false, false, false);
        let tensor = Tensor {
            element_type,
            shape,
            quantization,
            weights,
            is_computed,
            is_given,
            is_settled,
            is_result,
        };
        self.tensors.push(tensor);
        let index = number(self.tensors.len() - 1);
        self.known.insert(object, index);
        Ok(index)
    }
}

impl Nodes for Subgraph {
    type Error = Failure;

    fn judge_alone(&self, index: i32) -> Outcome {
        let node = self.node(index)?;
        let refused = |why: &str| Err(Failure::new(Status::Unsupported, why));
        let Ok(operator) = B::try_from(node.code) else {
            return refused("it is newer than this program");
        };
        match operator {
            B::If | B::While | B::CallOnce | B::StablehloWhile | B::StablehloCase => {
                return refused("its subgraphs are run by LiteRT");
            }
            B::VarHandle | B::ReadVariable | B::AssignVariable => {
                return refused("resource variables are kept by LiteRT");
            }
            B::StablehloComposite => return refused("LiteRT puts its operators in its place"),
            B::Delegate | B::PlaceholderForGreaterOpCodes => return refused("it is no operator"),
            B::Lstm
            | B::Svdf
            | B::Rnn
            | B::UnidirectionalSequenceLstm
            | B::UnidirectionalSequenceRnn
            | B::BidirectionalSequenceLstm
            | B::BidirectionalSequenceRnn => {
                return refused(
                    "LiteRT does not say which of its inputs are there, and where its state is",
                );
            }
            _ => {}
        }
        // The importer takes the number, and no longer knows that it is a scalar.
        if matches!(operator, B::Rank | B::Shape) && node.inputs.len() == 1 {
            let input = self.tensor(node.inputs[0])?;
            if input.shape.as_ref().is_some_and(Vec::is_empty) {
                return refused("the rank or shape of a scalar");
            }
        }
        if let Options::NotShown = node.options {
            return refused("LiteRT does not say what its options are");
        }
        for input in &node.inputs {
            let tensor = self.tensor(*input)?;
            if tensor.weights.is_none() && !tensor.is_computed && !tensor.is_given {
                return refused("an input has no value");
            }
        }
        self.graph(&[index], &[], &[]).map(drop)
    }

    fn has_subgraphs(&self, _node: i32) -> Outcome<bool> {
        // Models with such operators are left as a whole.
        Ok(false)
    }

    fn ends_of(&self, node: i32) -> Outcome<(Vec<i32>, Vec<i32>)> {
        let node = self.node(node)?;
        Ok((node.inputs.clone(), node.outputs.clone()))
    }

    fn state(&self, tensor: i32) -> Outcome<TensorState> {
        let tensor = self.tensor(tensor)?;
        let is_known = |shape: &Vec<i32>| shape.iter().all(|length| *length > 0);
        Ok(if tensor.weights.is_some() {
            TensorState::Held
        } else if tensor.shape.as_ref().is_some_and(is_known) {
            TensorState::Shaped
        } else {
            TensorState::Open
        })
    }

    fn name(&self, tensor: i32) -> Outcome<String> {
        self.tensor(tensor)?;
        Ok(format!("tensor {tensor}"))
    }

    fn graph(&self, nodes: &[i32], inputs: &[i32], outputs: &[i32]) -> Outcome<(Graph, Vec<Loan>)> {
        let given: HashSet<i32> = inputs.iter().copied().collect();
        let mut graph = Gathering {
            subgraph: self,
            given,
            graph: Graph::new(),
            loans: Vec::new(),
            known: HashMap::new(),
        };
        let inputs = graph.tensors(inputs)?;
        for index in nodes {
            graph.node(*index)?;
        }
        let outputs = graph.tensors(outputs)?;
        graph.graph.ends(inputs, outputs);
        Ok((graph.graph, graph.loans))
    }
}

struct Gathering<'s> {
    subgraph: &'s Subgraph,
    /// What the graph is given.
    given: HashSet<i32>,
    graph: Graph,
    loans: Vec<Loan>,
    /// By tensor of LiteRT's graph: its index in the other.
    known: HashMap<i32, i32>,
}

impl Gathering<'_> {
    fn node(&mut self, index: i32) -> Outcome {
        let node = self.subgraph.node(index)?;
        let (builtin_options, custom) = match &node.options {
            Options::NotShown | Options::None => (None, None),
            Options::Table(table) => (Some(table.clone()), None),
            Options::Custom(name, bytes) => (None, Some((name.clone(), bytes.clone()))),
        };
        let (name, custom_options) = custom.unzip();
        let operator = Operator {
            inputs: Some(self.tensors(&node.inputs)?),
            outputs: Some(self.tensors(&node.outputs)?),
            builtin_options,
            custom_options,
            ..Operator::default()
        };
        self.graph.operator(node.code, name, 1, operator);
        Ok(())
    }

    fn tensors(&mut self, all: &[i32]) -> Outcome<Vec<i32>> {
        all.iter().map(|tensor| self.tensor(*tensor)).collect()
    }

    fn tensor(&mut self, index: i32) -> Outcome<i32> {
        if let Some(known) = self.known.get(&index) {
            return Ok(*known);
        }
        let tensor = self.subgraph.tensor(index)?;
        let table = tensor.table(index, self.given.contains(&index))?;
        let added = match &tensor.weights {
            None => self.graph.tensor(table),
            Some(weights) => {
                let (loan, memory) = weights.lend()?;
                if weights.size >= LARGE && self.subgraph.copies {
                    self.graph.constant(table, Constant::Outside(copy_of(&memory)?))
                } else if weights.size >= LARGE {
                    self.loans.push(loan);
                    self.graph.constant(table, Constant::Outside(memory))
                } else {
                    let bytes = memory.view()?.read_to_vec(0, memory.size())?;
                    self.graph.constant(table, Constant::Bytes(bytes))
                }
            }
        };
        self.known.insert(index, added);
        Ok(added)
    }
}

impl Tensor {
    /// Bytes of its value; `None`: LiteRT's API does not say how it is stored.
    fn size(&self) -> Option<usize> {
        let half_bytes = match self.element_type {
            18 | 21 => 1,
            3 | 6 | 9 => 2,
            7 | 10 | 17 | 19 => 4,
            1 | 2 | 16 => 8,
            4 | 8 | 11 | 13 => 16,
            _ => return None,
        };
        let count =
            self.shape.as_ref()?.iter().try_fold(1_usize, |count, length| {
                count.checked_mul(usize::try_from(*length).ok()?)
            })?;
        Some(count.checked_mul(half_bytes)?.div_ceil(2))
    }

    /// As the file's schema describes it.
    fn table(&self, index: i32, is_input: bool) -> Outcome<Table> {
        let unsupported = |what| Failure::new(Status::Unsupported, what);
        let type_ = type_code(self.element_type).ok_or_else(|| {
            let element = self.element_type;
            unsupported(format!("tensor {index} has type {element}, newer than this program"))
        })?;
        // What is computed without any lengths may be a scalar, or not known yet.
        let is_held = is_input || self.weights.is_some();
        let shape = self.shape.as_ref().filter(|shape| is_held || !shape.is_empty());
        let quantization = match &self.quantization {
            Quantization::None => None,
            Quantization::Affine { scales, zero_points, dimension } => {
                Some(Box::new(QuantizationParameters {
                    scale: Some(scales.clone()),
                    zero_point: Some(zero_points.clone()),
                    quantized_dimension: *dimension,
                    ..QuantizationParameters::default()
                }))
            }
            Quantization::Other(kind) => {
                return Err(unsupported(format!(
                    "tensor {index} is quantized in a way (kind {kind}) that LiteRT does not describe"
                )));
            }
        };
        Ok(Table {
            has_rank: shape.is_some(),
            shape: shape.map(|shape| {
                shape.iter().map(|length| if *length < 0 { 1 } else { *length }).collect()
            }),
            shape_signature: shape.filter(|shape| shape.iter().any(|it| *it < 0)).cloned(),
            type_,
            name: Some(format!("tensor {index}")),
            quantization,
            ..Table::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tensor of floats that is computed, with this shape.
    fn tensor(shape: Option<&[i32]>) -> Tensor {
        Tensor {
            element_type: 1,
            shape: shape.map(<[i32]>::to_vec),
            quantization: Quantization::None,
            weights: None,
            is_computed: true,
            is_given: false,
            is_settled: false,
            is_result: false,
        }
    }

    fn given(shape: &[i32]) -> Tensor {
        Tensor { is_computed: false, is_given: true, ..tensor(Some(shape)) }
    }

    fn settled(shape: &[i32]) -> Tensor {
        Tensor { is_settled: true, ..tensor(Some(shape)) }
    }

    fn node_of(operator: B) -> Node {
        Node {
            object: Object::new(std::ptr::null()),
            code: operator as i32,
            inputs: Vec::new(),
            outputs: Vec::new(),
            options: Options::None,
        }
    }

    /// One operator, which computes the last tensor from the others.
    fn subgraph(operator: B, tensors: Vec<Tensor>) -> Subgraph {
        let last = number(tensors.len() - 1);
        let node = Node { inputs: (0..last).collect(), outputs: vec![last], ..node_of(operator) };
        Subgraph { nodes: vec![node], tensors, has_nameless_ends: false, copies: false }
    }

    fn reason<T>(outcome: Outcome<T>) -> String {
        outcome.err().map(|failure| failure.sentence).unwrap_or_default()
    }

    #[test]
    fn models_that_litert_writes_otherwise_are_left_as_a_whole() {
        let floats = |operator| subgraph(operator, vec![given(&[2, 3]), tensor(Some(&[2, 3]))]);
        assert_eq!(reason(floats(B::Relu).check_compilable()), "");
        for operator in [B::CallOnce, B::ReadVariable, B::StablehloScatter, B::StablehloCase] {
            assert!(reason(floats(operator).check_compilable()).contains(&format!("{operator:?}")));
        }
        for shape in [None, Some(&[2, -1][..])] {
            let open = subgraph(B::Relu, vec![given(&[2, 3]), tensor(shape)]);
            assert!(reason(open.check_compilable()).contains("the shape of tensor 1"));
        }
        let nameless = Subgraph { has_nameless_ends: true, ..floats(B::Relu) };
        assert!(reason(nameless.check_compilable()).contains("no names"));
    }

    #[test]
    fn shapes_that_follow_from_values_are_left_and_from_constants_taken() {
        let to = || tensor(Some(&[3, 2]));
        let open = subgraph(B::Reshape, vec![given(&[2, 3]), given(&[2]), to()]);
        assert!(reason(open.check_compilable()).contains("a Reshape, follows from values"));
        let constant = subgraph(B::Reshape, vec![given(&[2, 3]), settled(&[2]), to()]);
        assert_eq!(reason(constant.check_compilable()), "");
        // The first input of an addition says nothing about shapes.
        let sum = subgraph(B::Add, vec![given(&[2]), given(&[2]), tensor(Some(&[2]))]);
        assert_eq!(reason(sum.check_compilable()), "");
    }

    #[test]
    fn a_node_alone_says_why_it_is_left() {
        let judged = |operator| {
            let floats = vec![given(&[2, 3]), tensor(Some(&[2, 3]))];
            reason(subgraph(operator, floats).judge_alone(0))
        };
        assert_eq!(judged(B::Relu), "");
        assert!(judged(B::If).contains("subgraphs are run by LiteRT"));
        assert!(judged(B::AssignVariable).contains("resource variables"));
        assert!(judged(B::Lstm).contains("which of its inputs are there"));
        let scalar = subgraph(B::Rank, vec![given(&[]), tensor(Some(&[]))]);
        assert!(reason(scalar.judge_alone(0)).contains("shape of a scalar"));
        let nothing = subgraph(B::Shape, vec![given(&[]), tensor(Some(&[0]))]);
        assert!(reason(nothing.judge_alone(0)).contains("shape of a scalar"));
        let missing = Tensor { is_given: false, ..given(&[2]) };
        let without = subgraph(B::Relu, vec![missing, tensor(Some(&[2]))]);
        assert!(reason(without.judge_alone(0)).contains("no value"));
        let newer = Tensor { element_type: 99, ..given(&[2]) };
        let newer = subgraph(B::Relu, vec![newer, tensor(Some(&[2]))]);
        assert!(reason(newer.judge_alone(0)).contains("type 99"));
        let by_blocks = Tensor { quantization: Quantization::Other(3), ..given(&[2]) };
        let by_blocks = subgraph(B::Relu, vec![by_blocks, tensor(Some(&[2]))]);
        assert!(reason(by_blocks.judge_alone(0)).contains("kind 3"));
        assert!(reason(scalar.judge_alone(1)).contains("no node 1"));
    }

    #[test]
    fn a_result_that_litert_computes_before_runs_is_not_read() {
        // 0 gives 1, which 1 reads, and 1 gives 2, which 2 reads.
        let chain = |is_result, is_settled| {
            let mut chain = subgraph(B::Rank, vec![given(&[]), tensor(Some(&[]))]);
            for (from, to) in [(1, 2), (2, 3)] {
                chain.tensors.push(Tensor { is_settled, ..tensor(Some(&[])) });
                let (inputs, outputs) = (vec![from], vec![to]);
                chain.nodes.push(Node { inputs, outputs, ..node_of(B::Neg) });
            }
            chain.tensors[1] = Tensor { is_settled, is_result, ..tensor(Some(&[])) };
            chain
        };
        let kept = |chain: Subgraph, taken| chain.readable(taken).unwrap();
        assert_eq!(kept(chain(true, true), vec![1, 2]), (vec![2], vec![1]));
        assert_eq!(kept(chain(true, true), vec![0, 1, 2]), (vec![0, 1, 2], vec![]));
        assert_eq!(kept(chain(false, true), vec![1, 2]), (vec![1, 2], vec![]));
        assert_eq!(kept(chain(true, false), vec![1, 2]), (vec![1, 2], vec![]));
        let mut both = chain(true, true);
        both.tensors[2].is_result = true;
        assert_eq!(kept(both, vec![1, 2]), (vec![], vec![1, 2]));
    }

    #[test]
    fn bytes_of_a_value_follow_from_its_type_and_shape() {
        let bytes = |element_type, shape: &[i32]| Tensor { element_type, ..given(shape) }.size();
        assert_eq!(bytes(1, &[2, 3]), Some(24), "float32");
        assert_eq!(bytes(9, &[2, 3]), Some(6), "int8");
        assert_eq!(bytes(18, &[3]), Some(2), "int4, two in a byte");
        assert_eq!(bytes(4, &[]), Some(8), "a scalar of int64");
        assert_eq!(bytes(5, &[3]), None, "texts");
        assert_eq!(bytes(1, &[-1]), None);
        assert_eq!(bytes(1, &[i32::MAX, i32::MAX, i32::MAX]), None, "beyond any memory");
    }
}
