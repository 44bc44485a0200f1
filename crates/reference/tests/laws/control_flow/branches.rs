//! IF equals its taken branch: trees of IFs, with calls of any operation as leaves.

use crate::random::Random;
use crate::run::{Constants, ROOM, Shapes, Tensor, declared, execute, run};
use crate::sample::{Call, Typed};
use crate::samples;
use nnhal_hal::builder::SubgraphId;
use nnhal_hal::{
    ModelBuilder, OperandId, OperandSpec, OperationType, RequestBuilder, SubgraphBuilder,
};
use nnhal_ops::Row;
use nnhal_ops::extension;
use proptest::prelude::*;

/// A choice of calls.
enum Tree {
    /// By its index in the list of all.
    Leaf(usize),
    /// The condition, by its index; then; else.
    Choice(usize, Box<Tree>, Box<Tree>),
}

impl Tree {
    /// A tree with these leaves, each choice with a condition of its own.
    fn grow(leaves: &[usize], conditions: &mut usize, random: &mut Random) -> Self {
        if let [leaf] = leaves {
            return Self::Leaf(*leaf);
        }
        let condition = *conditions;
        *conditions += 1;
        let most = u32::try_from(leaves.len() - 1).unwrap();
        let (then, otherwise) = leaves.split_at(random.length(1, most) as usize);
        let mut grow = |leaves| Box::new(Self::grow(leaves, conditions, random));
        Self::Choice(condition, grow(then), grow(otherwise))
    }

    /// The leaf that conditions lead to.
    fn taken(&self, conditions: &[u8]) -> usize {
        match self {
            Self::Leaf(leaf) => *leaf,
            Self::Choice(at, then, _) if conditions[*at] != 0 => then.taken(conditions),
            Self::Choice(_, _, otherwise) => otherwise.taken(conditions),
        }
    }
}

/// Calls that can stand for each other: results of the same types, none quantized, since scales
/// would have to be the same too.
fn exchangeable_calls(count: usize, random: &mut Random) -> Vec<Call> {
    let is_plain =
        |row: &&Row| row.types.iter().all(|operand_type| operand_type.quantized_range().is_none());
    let operations: Vec<OperationType> = samples::operations().collect();
    let mut calls: Vec<Call> = Vec::new();
    while calls.len() < count {
        let sample = samples::draw(random.pick(&operations), random).unwrap();
        let rows: Vec<&Row> = sample.rows().iter().filter(is_plain).collect();
        if rows.is_empty() {
            continue;
        }
        let call = sample.typed(random.pick(&rows));
        let has_channels = call.inputs.iter().any(|input| {
            input.spec.operand_type == nnhal_hal::OperandType::TensorQuant8SymmPerChannel
        });
        if !has_channels && calls.first().is_none_or(|first| first.outputs == call.outputs) {
            calls.push(call);
        }
    }
    calls
}

/// Builds a tree. Every subgraph gets all conditions and the inputs of all leaves.
struct Forest<'a> {
    calls: &'a [Call],
    conditions: usize,
    shapes: Shapes<'a>,
    builder: ModelBuilder,
}

fn truth() -> OperandSpec {
    OperandSpec::tensor_bool8([1])
}

/// The inputs of a call that a request gives.
fn given(call: &Call) -> impl Iterator<Item = &Typed> {
    call.inputs.iter().filter(|input| is_given(input))
}

/// Scalars are constants of the subgraphs.
fn is_given(input: &Typed) -> bool {
    !input.is_omitted && !input.spec.operand_type.is_scalar()
}

impl Forest<'_> {
    /// Conditions, and the given inputs of each call.
    fn inputs(&self, graph: &mut SubgraphBuilder) -> (Vec<OperandId>, Vec<Vec<OperandId>>) {
        let conditions = (0..self.conditions).map(|_| graph.input("", truth())).collect();
        let mut input = |typed: &Typed| graph.input("", declared(&typed.spec, self.shapes));
        let arguments = self.calls.iter().map(|call| given(call).map(&mut input).collect());
        (conditions, arguments.collect())
    }

    fn fill(&mut self, graph: &mut SubgraphBuilder, tree: &Tree) {
        let (conditions, arguments) = self.inputs(graph);
        let outputs = match tree {
            Tree::Leaf(leaf) => {
                let call = &self.calls[*leaf];
                let mut arguments = arguments[*leaf].iter().copied();
                let inputs: Vec<OperandId> = call
                    .inputs
                    .iter()
                    .map(|input| {
                        if input.is_omitted {
                            graph.omitted(input.spec.clone())
                        } else if is_given(input) {
                            arguments.next().expect("an input of the subgraph")
                        } else {
                            graph.constant_bytes(input.spec.clone(), &input.bytes)
                        }
                    })
                    .collect();
                let outputs = self.results(graph);
                graph.operation_into(call.operation, inputs, &outputs);
                outputs
            }
            Tree::Choice(condition, then, otherwise) => {
                let [then, otherwise] = [then, otherwise].map(|branch| self.subgraph(branch));
                let mut inputs =
                    vec![conditions[*condition], graph.subgraph(then), graph.subgraph(otherwise)];
                inputs.extend(conditions.iter().copied().chain(arguments.into_iter().flatten()));
                let outputs = self.results(graph);
                graph.operation_into(OperationType::If, inputs, &outputs);
                outputs
            }
        };
        for output in outputs {
            graph.output(output);
        }
    }

    fn results(&self, graph: &mut SubgraphBuilder) -> Vec<OperandId> {
        self.calls[0].outputs.iter().map(|output| graph.temporary(output.clone())).collect()
    }

    fn subgraph(&mut self, tree: &Tree) -> SubgraphId {
        let mut graph = SubgraphBuilder::new();
        self.fill(&mut graph, tree);
        self.builder.reference(graph)
    }
}

/// The results of a tree with these conditions.
fn run_tree(
    tree: &Tree,
    calls: &[Call],
    conditions: &[u8],
    shapes: Shapes<'_>,
) -> Result<Vec<Tensor>, String> {
    let mut forest =
        Forest { calls, conditions: conditions.len(), shapes, builder: ModelBuilder::new() };
    let mut main = SubgraphBuilder::new();
    forest.fill(&mut main, tree);
    forest.builder.extension(extension::NAME, extension::PREFIX);
    let model = forest.builder.build(main).map_err(|error| error.to_string())?;
    let mut request = RequestBuilder::new();
    for condition in conditions {
        request.input(&[*condition]);
    }
    for input in calls.iter().flat_map(given) {
        request.input_shaped(&input.bytes, &input.spec.dimensions);
    }
    for _ in &calls[0].outputs {
        request.output(ROOM);
    }
    execute(&model, &request.build().map_err(|error| error.to_string())?)
}

proptest! {
    #![proptest_config(crate::config(200))]

    #[test]
    fn cf_9_an_if_is_its_taken_branch(seed: u64, unknown: bool) {
        let random = &mut Random::new(seed);
        let count = random.length(2, 4) as usize;
        let calls = exchangeable_calls(count, random);
        let mut choices = 0;
        let leaves: Vec<usize> = (0..count).collect();
        let tree = Tree::grow(&leaves, &mut choices, random);
        let conditions: Vec<u8> = (0..choices).map(|_| random.pick(&[0, 1, 0x80])).collect();
        let taken = &calls[tree.taken(&conditions)];
        let shapes = if unknown { Shapes::Unknown } else { Shapes::OfInputs };
        let expected = run(taken, Shapes::OfInputs, Constants::Some, random).unwrap();
        let found = run_tree(&tree, &calls, &conditions, shapes);
        prop_assert_eq!(found, Ok(expected), "{}", taken.operation);
    }
}
