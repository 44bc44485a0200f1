//! From the file's tables to a model.
//!
//! [`GraphImporter`] keeps, for each tensor, the operand that holds it; the other modules translate
//! a family of operators each.

/// The options of an operator that is nothing without them.
macro_rules! options {
    ($operator:ident, BuiltinOptions2::$Kind:ident) => {
        match $operator.table.builtin_options_2()? {
            Some($crate::schema::BuiltinOptions2Ref::$Kind(options)) => options,
            _ => Err(Reason::new("it has no options"))?,
        }
    };
    ($operator:ident, $Kind:ident) => {
        match $operator.table.builtin_options()? {
            Some($crate::schema::BuiltinOptionsRef::$Kind(options)) => options,
            _ => Err(Reason::new("it has no options"))?,
        }
    };
}

mod array;
mod bfloat16;
mod blocks;
mod blockwise;
mod builder;
mod channels;
mod control_flow;
mod convolution;
mod custom;
mod elementwise;
mod embedding;
mod extended;
mod flex;
mod fold;
mod infer;
mod inline;
mod mediapipe;
mod movement;
mod normalization;
mod operand;
mod pooling;
mod quantization;
mod quantized_lstm;
mod random;
mod recurrent;
mod reduction;
mod resize;
mod slicing;
mod sound;
mod sparse;
mod stablehlo;
mod tensor;
mod variables;
mod window;

use crate::description;
use crate::error::{ImportError, NEWER, NO_OPERATION, Reason, UnsupportedOperator, is_own_reason};
use crate::file::{File, Graph, Operator, OperatorKind, known_lengths, type_name};
use crate::graph::Stored;
use crate::schema::{BuiltinOperator as B, TensorType, greatest_version};
use crate::{Import, OperatorOrigin, State, TensorDescription};
use array::Array;
use builder::Builder;
use nnhal_hal::builder::PoolId;
use nnhal_hal::builder::SubgraphId;
use nnhal_hal::{
    ExtensionNameAndPrefix, HalVersion, Model, ModelBuilder, OperandId, OperandSpec, OperandType,
    Operation, OperationType, SubgraphBuilder,
};
use nnhal_ops::extension::{self, TENSOR_UINT16};
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use tensor::{Element, List};
use variables::{FollowedVariables, Passed, Variables, is_handle};

/// Subgraphs within subgraphs; deeper files are refused rather than followed.
const MOST_NESTED: usize = 32;

/// What is wrong with state that no execution hands to the next.
const STATE_ELSEWHERE: &str = "variable tensors in a subgraph other than the main one";

/// Open lengths that are tried where those of the file's example do not do. Networks halve them again and again.
const EXAMPLE_LENGTHS: [u32; 4] = [8, 32, 128, 512];

/// Operators without a counterpart that an error lists; the others are counted.
const MOST_LISTED: usize = 1000;
/// Tensors of one operator that an error names.
const MOST_SHOWN_TENSORS: usize = 16;

/// What moves numbers of 2 and 4 bits: those of constants, which have 8 bits here.
const PACKED_IS_MOVED_BY: [B; 7] =
    [B::Gather, B::Reshape, B::ExpandDims, B::Squeeze, B::Transpose, B::Slice, B::Concatenation];

/// What the import of a subgraph takes of what it may make, for each tensor and operator.
const BYTES_OF_A_PART: usize = 512;

/// What the import of one operator gives.
type Imported<T = ()> = Result<T, Reason>;

/// Imports the main subgraph and what it refers to: with the lengths left open that the file leaves
/// open.
///
/// Some operators have a counterpart for known lengths only. If that is the trouble, the lengths of
/// inputs are fixed to those of the example that every file has, and everything follows from them.
/// Whatever is wrong then is what is reported: with open lengths more is. Before that the open lengths
/// are given others than the example's, which is 1 for most of them: a window is wider than that.
pub(crate) fn import(file: &mut File<'_>, stored: &Stored) -> Result<Import, ImportError> {
    let outcome = import_as_declared(file, stored);
    // Whoever prepares the model validates it; here that only matters where there is a choice.
    if !file.leaves_lengths_open() {
        return outcome;
    }
    let is_usable = match &outcome {
        Ok(import) => nnhal_ops::validate(&import.model, HalVersion::LATEST).is_ok(),
        Err(ImportError::Unsupported { .. }) => false,
        Err(_) => true,
    };
    if is_usable {
        return outcome;
    }
    let open = file.open_lengths();
    file.close_lengths_of_inputs();
    let error = match import_as_declared(file, stored) {
        Ok(import) => return Ok(Import { has_example_shapes: true, ..import }),
        Err(_) if outcome.is_ok() => return outcome,
        Err(error) => error,
    };
    if matches!(error, ImportError::Unsupported { .. }) && !open.is_empty() {
        for length in EXAMPLE_LENGTHS {
            file.set_lengths(&open, length);
            if let Ok(import) = import_as_declared(file, stored) {
                return Ok(Import { has_example_shapes: true, ..import });
            }
        }
    }
    Err(error)
}

fn import_as_declared(file: &File<'_>, stored: &Stored) -> Result<Import, ImportError> {
    file.renew_allowance();
    let mut model = ModelBuilder::new();
    let memories = std::iter::once(&stored.tables).chain(&stored.outside);
    let pools: Rc<[PoolId]> = memories.map(|memory| model.pool(memory.clone())).collect();
    let mut graphs = Graphs {
        file,
        model,
        variables: Variables::of(file, &pools)?,
        pools,
        imported: HashMap::new(),
        is_running: vec![false; file.graphs.len()],
        refused: HashSet::new(),
        problems: Vec::new(),
        other_problems: 0,
    };
    graphs.is_running[file.main] = true;
    let finished = graphs.import(file.main, &[], &Passed::default(), 0)?;
    if !graphs.problems.is_empty() {
        return Err(ImportError::Unsupported {
            operators: graphs.problems,
            others: graphs.other_problems,
        });
    }
    let main = &file.graphs[file.main];
    let tensors = description::describe(file, &finished.shapes)?;
    let described = |tensor: &usize| {
        let description: &TensorDescription = &tensors[*tensor];
        // A tensor may be an output any number of times.
        file.allow(description.byte_size()).map_err(|Reason(what)| ImportError::Format(what))?;
        Ok(description.clone())
    };
    let all = |tensors: &[usize]| -> Result<Vec<_>, ImportError> {
        tensors.iter().map(described).collect()
    };
    let (mut inputs, mut outputs) = (all(&main.inputs)?, all(&main.outputs)?);
    let own_outputs = outputs.len();
    outputs.extend(all(&finished.further_outputs)?);
    let mut states = Vec::new();
    for kept in &finished.states {
        let state = State::new(inputs.len(), outputs.len());
        let (description, initial) = match kept {
            Kept::Tensor(tensor) => (described(tensor)?, None),
            Kept::Generator(it) => (description::of_generator(&it.name), Some(it.state.clone())),
        };
        states.push(State { initial, ..state });
        inputs.push(description.clone());
        outputs.push(description);
    }
    for variable in &finished.kept_variables {
        let state = State::new(inputs.len(), outputs.len());
        let (description, state) = graphs.variables.state(file, *variable, state)?;
        states.push(state);
        inputs.push(description.clone());
        outputs.push(description);
    }
    Ok(Import {
        model: named(graphs.model.build(finished.builder)?),
        inputs,
        outputs,
        own_outputs,
        states,
        metadata: description::metadata(file),
        signatures: description::signatures(file),
        operators: description::operators(file)?,
        operands: finished.operands,
        subgraph_count: file.graphs.len(),
        operator_origin: finished.origins,
        has_example_shapes: false,
        description: file.description.clone(),
        tensors,
    })
}

/// The model, which says what the prefix of our extension stands for if it uses it.
fn named(mut model: Model) -> Model {
    let uses_extension = model.subgraphs().any(|(_, graph)| {
        let is_extended = |it: &Operation| matches!(it.operation_type, OperationType::Extension(_));
        graph.operations.iter().any(is_extended)
            || graph.operands.iter().any(|it| matches!(it.operand_type, OperandType::Extension(_)))
    });
    if uses_extension {
        let row =
            ExtensionNameAndPrefix { name: extension::NAME.into(), prefix: extension::PREFIX };
        model.extension_name_to_prefix.push(row);
    }
    model
}

/// All subgraphs, imported as they are needed.
struct Graphs<'f, 'a> {
    file: &'f File<'a>,
    model: ModelBuilder,
    /// The file's memory, and those of constants outside of it.
    pools: Rc<[PoolId]>,
    variables: Variables,
    /// By subgraph, what is known of its arguments, and the variables that it gets.
    imported: HashMap<(usize, Vec<Option<Array>>, Passed), Referenced>,
    is_running: Vec<bool>,
    /// Subgraph and index of the operators that are refused. One that is imported several times is reported once.
    refused: HashSet<(usize, usize)>,
    /// The first of them; messages about a hostile file must not outgrow it.
    problems: Vec<UnsupportedOperator>,
    /// How many more there are.
    other_problems: usize,
}

/// A subgraph that IF and WHILE can refer to.
#[derive(Debug, Clone)]
struct Referenced {
    id: SubgraphId,
    /// By output: its shape, if it is known.
    outputs: Vec<Option<Vec<u32>>>,
    /// By output: what it is, if it is a list of tensors.
    lists: Vec<Option<List>>,
}

/// What goes from one execution to the next, beside resource variables.
#[derive(Debug, Clone)]
enum Kept {
    /// A variable tensor.
    Tensor(usize),
    /// What an operator draws random numbers from.
    Generator(random::Generator),
}

/// An imported subgraph.
struct Finished {
    builder: SubgraphBuilder,
    origins: Vec<OperatorOrigin>,
    /// By tensor: the operand that holds it.
    operands: Vec<Option<u32>>,
    /// By tensor: its shape, if it is known.
    shapes: Vec<Option<Vec<u32>>>,
    /// By tensor: what it is, if it is a list of tensors.
    lists: Vec<Option<List>>,
    /// Tensors that become outputs behind those of the subgraph, see [`Import::own_outputs`].
    further_outputs: Vec<usize>,
    /// What goes from one execution to the next, in the order of its inputs and outputs.
    states: Vec<Kept>,
    /// The resource variables behind them, see [`variables`].
    kept_variables: Vec<usize>,
}

impl<'f, 'a> Graphs<'f, 'a> {
    /// Imports a subgraph with what is known of its arguments: nothing beyond what the file says, if
    /// there are none.
    fn import(
        &mut self,
        index: usize,
        arguments: &[Option<Array>],
        passed: &Passed,
        depth: usize,
    ) -> Result<Finished, ImportError> {
        let malformed = |what: &str| ImportError::Malformed {
            place: format!("subgraph {index}"),
            what: what.into(),
        };
        let file = self.file;
        let graph = &file.graphs[index];
        let mut importer = self.importer_of(index, depth)?;
        importer.know_arguments(arguments);
        for (input, list) in graph.inputs.iter().zip(&passed.lists) {
            importer.lists[*input] = *list;
        }
        if passed.are_indexed {
            importer.builder.input("index", OperandSpec::tensor_int32([1]));
        }
        let unknown = importer.declare_inputs().map_err(|Reason(what)| malformed(&what))?;
        for (tensor, Reason(reason)) in unknown {
            self.problem(|| UnsupportedOperator {
                subgraph: index,
                index: 0,
                operator: "input of the graph".into(),
                version: 1,
                tensors: vec![shown(graph, tensor)],
                reason,
                is_consequence: false,
            });
        }
        for variable in &passed.variables {
            let taken = importer.take_variable(*variable, &self.variables);
            taken.map_err(|Reason(what)| malformed(&what))?;
        }
        self.translate(&mut importer, index, depth)?;
        let declared = importer.declare_outputs(passed);
        let further_outputs = declared.map_err(|Reason(what)| malformed(&what))?;
        if index != file.main && !importer.states.is_empty() {
            return Err(malformed(STATE_ELSEWHERE));
        }
        let (builder, origins) = (importer.builder.into_inner(), importer.origins);
        let kept_variables = importer.kept_variables;
        // What is kept in another shape is nothing to look at.
        let operands = importer.operands.iter().zip(&importer.is_flat);
        let operands = operands.map(|(it, flat)| it.filter(|_| !flat).map(OperandId::index));
        let operands = operands.collect();
        let states = importer.states.into_iter().map(|(kept, _)| kept).collect();
        let (shapes, lists) = (importer.shapes, importer.lists);
        Ok(Finished {
            builder,
            origins,
            operands,
            shapes,
            lists,
            further_outputs,
            states,
            kept_variables,
        })
    }

    /// The shapes of a subgraph's outputs for these arguments, as far as they follow. Nothing else of its import is kept.
    fn shapes_of_outputs(
        &mut self,
        index: usize,
        arguments: &[Option<Array>],
        passed: &Passed,
        depth: usize,
    ) -> Result<Vec<Option<Vec<u32>>>, Stop> {
        if self.is_running[index] {
            return Err(Reason::new("subgraphs refer to each other").into());
        }
        let before = (self.refused.clone(), self.problems.clone(), self.other_problems);
        self.is_running[index] = true;
        let finished = self.import(index, arguments, passed, depth + 1);
        self.is_running[index] = false;
        (self.refused, self.problems, self.other_problems) = before;
        let mut shapes = finished.map_err(Stop::Import)?.shapes;
        let outputs = self.file.graphs[index].outputs.iter();
        Ok(outputs.map(|tensor| shapes[*tensor].take()).collect())
    }

    /// The importer of a subgraph, taken from what the import may make: operators may refer to a subgraph again and
    /// again, with other shapes each time.
    fn importer_of(
        &self,
        index: usize,
        depth: usize,
    ) -> Result<GraphImporter<'f, 'a>, ImportError> {
        let malformed = |what| ImportError::Malformed { place: format!("subgraph {index}"), what };
        if depth > MOST_NESTED {
            return Err(malformed("subgraphs are nested too deep".into()));
        }
        let graph = &self.file.graphs[index];
        let size = (graph.tensors.len() + graph.operators.len()).saturating_mul(BYTES_OF_A_PART);
        self.file.allow(size).map_err(|Reason(what)| malformed(what))?;
        Ok(GraphImporter::new(self.file, graph, &self.pools))
    }

    /// Imports the operators of a subgraph, one after the other.
    fn translate(
        &mut self,
        importer: &mut GraphImporter<'f, 'a>,
        index: usize,
        depth: usize,
    ) -> Result<(), ImportError> {
        let graph = importer.graph;
        for (position, operator) in graph.operators.iter().enumerate() {
            let before = importer.builder.operation_count();
            let outcome = importer.operator(operator, self, depth);
            let outcome = match outcome {
                Err(Stop::Import(error)) => return Err(error),
                Err(Stop::Reason(reason)) => Err(reason),
                Ok(()) => importer.conclude(operator, before),
            };
            let follows = operator.inputs.iter().flatten().any(|it| importer.is_assumed[*it]);
            let is_refused = outcome.is_err();
            if let Err(Reason(reason)) = outcome {
                let is_consequence = follows && !is_own_reason(&reason);
                if self.refused.insert((index, position)) {
                    self.problem(|| UnsupportedOperator {
                        is_consequence,
                        ..unsupported(graph, index, position, operator, reason)
                    });
                }
                importer.assume_outputs(operator);
            }
            if follows || is_refused {
                operator.outputs.iter().for_each(|output| importer.is_assumed[*output] = true);
            }
            if !importer.is_main() {
                continue;
            }
            let origin =
                OperatorOrigin { index: Some(position), operator: operator.code.kind.to_string() };
            let added = importer.builder.operation_count() - before;
            importer.origins.extend(std::iter::repeat_n(origin, added));
        }
        Ok(())
    }

    fn problem(&mut self, problem: impl FnOnce() -> UnsupportedOperator) {
        if self.problems.len() < MOST_LISTED {
            self.problems.push(problem());
        } else {
            self.other_problems += 1;
        }
    }

    /// The subgraph as something that IF and WHILE can refer to.
    fn reference(
        &mut self,
        index: usize,
        arguments: &[Option<Array>],
        passed: &Passed,
        depth: usize,
    ) -> Result<Referenced, Stop> {
        match self.is_running.get(index) {
            None => return Err(Reason::new(format!("there is no subgraph {index}")).into()),
            Some(true) => return Err(Reason::new("subgraphs refer to each other").into()),
            Some(false) => {}
        }
        let key = (index, arguments.to_vec(), passed.clone());
        if let Some(referenced) = self.imported.get(&key) {
            return Ok(referenced.clone());
        }
        self.is_running[index] = true;
        let finished = self.import(index, arguments, passed, depth + 1).map_err(Stop::Import)?;
        self.is_running[index] = false;
        let outputs = &self.file.graphs[index].outputs;
        let lists = outputs.iter().map(|tensor| finished.lists[*tensor]).collect();
        let outputs = outputs.iter().map(|tensor| finished.shapes[*tensor].clone()).collect();
        let referenced = Referenced { id: self.model.reference(finished.builder), outputs, lists };
        self.imported.insert(key, referenced.clone());
        Ok(referenced)
    }
}

/// Why an operator's import stopped: for a reason of its own, or for one that ends everything.
enum Stop {
    Reason(Reason),
    Import(ImportError),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Self::Reason(reason)
    }
}

impl From<planus::Error> for Stop {
    fn from(error: planus::Error) -> Self {
        Self::Reason(error.into())
    }
}

fn unsupported(
    graph: &Graph<'_>,
    subgraph: usize,
    index: usize,
    operator: &Operator<'_>,
    reason: String,
) -> UnsupportedOperator {
    let all = operator.inputs.iter().flatten().chain(&operator.outputs);
    let count = all.clone().count();
    let mut tensors: Vec<_> =
        all.take(MOST_SHOWN_TENSORS).map(|tensor| shown(graph, *tensor)).collect();
    if count > tensors.len() {
        tensors.push(format!("{} more", count - tensors.len()));
    }
    UnsupportedOperator {
        subgraph,
        index,
        operator: operator.code.kind.to_string(),
        version: operator.code.version,
        tensors,
        reason,
        is_consequence: false,
    }
}

/// Name, type and shape of a tensor.
fn shown(graph: &Graph<'_>, tensor: usize) -> String {
    let tensor = &graph.tensors[tensor];
    format!("{} {} {:?}", tensor.shown_name(), type_name(tensor.type_code), tensor.shape)
}

/// One subgraph on its way.
struct GraphImporter<'f, 'a> {
    file: &'f File<'a>,
    graph: &'f Graph<'a>,
    pools: Rc<[PoolId]>,
    builder: Builder,
    /// By tensor: the operand that holds it, once there is one.
    operands: Vec<Option<OperandId>>,
    /// By tensor: the elements that it is known to have without running the model.
    folded: Vec<Option<Array>>,
    /// By tensor: the shape that it has when the model runs, if that is known; empty for a scalar.
    shapes: Vec<Option<Vec<u32>>>,
    /// By tensor: what it is, if it is a list of tensors. Its shape is then that of all elements, one behind the other.
    lists: Vec<Option<List>>,
    /// By tensor: the file's buffer that has its value, for what is constant; that of an argument, where the operator
    /// around gives a constant.
    buffers: Vec<usize>,
    /// By tensor: whether its operand has the tensor's elements, but another shape.
    is_flat: Vec<bool>,
    /// By tensor: whether it would come from an operator that is refused.
    is_assumed: Vec<bool>,
    /// By tensor: whether the caller gives it.
    is_input: Vec<bool>,
    /// By tensor: whether it is an output of the graph.
    is_output: Vec<bool>,
    /// Whether any input has a dimension that is not known: then the shapes that the file gives
    /// for what is computed are those of one example only.
    is_dynamic: bool,
    /// Whether its operations go to the model's main subgraph, see [`GraphImporter::inline`].
    is_in_main: bool,
    /// Operations before this one have been checked, see [`GraphImporter::conclude`].
    concluded: usize,
    /// Variable tensors that an operator uses and generators, and the operand of their new value.
    states: Vec<(Kept, Option<OperandId>)>,
    /// Of the operators that are to come: index in `states`, and the operand of the state before.
    next_generators: VecDeque<(usize, OperandId)>,
    /// By tensor: its index in `states`.
    state_of: Vec<Option<usize>>,
    /// The resource variables that are used, see [`variables`].
    followed: FollowedVariables,
    /// Those among them that an execution takes from the one before.
    kept_variables: Vec<usize>,
    origins: Vec<OperatorOrigin>,
}

impl<'f, 'a> GraphImporter<'f, 'a> {
    fn new(file: &'f File<'a>, graph: &'f Graph<'a>, pools: &Rc<[PoolId]>) -> Self {
        let is_dynamic = file.is_reshaped
            || graph.inputs.iter().any(|input| {
                let signature = &graph.tensors[*input].signature;
                signature.as_ref().is_some_and(|lengths| lengths.contains(&None))
            });
        let is_one_of = |all: &[usize]| {
            let mut is_one = vec![false; graph.tensors.len()];
            all.iter().for_each(|tensor| is_one[*tensor] = true);
            is_one
        };
        let is_input = is_one_of(&graph.inputs);
        let is_output = is_one_of(&graph.outputs);
        Self {
            file,
            graph,
            pools: Rc::clone(pools),
            builder: Builder::new(),
            folded: vec![None; graph.tensors.len()],
            shapes: vec![None; graph.tensors.len()],
            lists: vec![None; graph.tensors.len()],
            is_assumed: vec![false; graph.tensors.len()],
            buffers: graph.tensors.iter().map(|tensor| tensor.buffer).collect(),
            is_flat: vec![false; graph.tensors.len()],
            is_input,
            is_output,
            operands: vec![None; graph.tensors.len()],
            is_dynamic,
            is_in_main: std::ptr::eq(graph, &file.graphs[file.main]),
            concluded: 0,
            states: Vec::new(),
            next_generators: VecDeque::new(),
            state_of: vec![None; graph.tensors.len()],
            followed: FollowedVariables::new(),
            kept_variables: Vec::new(),
            origins: Vec::new(),
        }
    }

    /// Gives back the inputs that the HAL has no type for.
    fn declare_inputs(&mut self) -> Imported<Vec<(usize, Reason)>> {
        let (mut unknown, mut halves) = (Vec::new(), Vec::new());
        for input in &self.graph.inputs {
            if self.operands[*input].is_some() {
                return Err(Reason::new(format!("tensor {input} is an input twice")));
            }
            if !self.is_main() && is_handle(self.graph, *input) {
                continue;
            }
            let mut spec = self.spec_of_input(*input).unwrap_or_else(|reason| {
                unknown.push((*input, reason));
                OperandSpec::tensor_float32([])
            });
            let tensor = &self.graph.tensors[*input];
            if self.is_main() && tensor.is_left_out {
                // One element: the lengths beside 0 may be any.
                spec.dimensions.fill(1);
                self.builder.input(tensor.short_name(), spec);
                continue;
            }
            let lengths: Option<Vec<u32>> = known_lengths(tensor).into_iter().collect();
            if self.shapes[*input].is_none() && tensor.has_shape && self.lists[*input].is_none() {
                self.shapes[*input] = lengths.filter(|it| !it.contains(&0));
            }
            let name = tensor.short_name();
            if self.is_main() && tensor.type_code == TensorType::Bfloat16 as i8 {
                // Callers give the bits; they become floats behind all inputs.
                let bits = OperandSpec::new(TENSOR_UINT16, spec.dimensions);
                halves.push((*input, self.builder.input(name, bits)));
                self.operands[*input] = halves.last().map(|(_, bits)| *bits);
            } else {
                self.operands[*input] = Some(self.builder.input(name, spec));
            }
        }
        // State tensors become inputs behind those of the file.
        for tensor in self.state_tensors() {
            let description = self.tensor(tensor);
            if description.type_code == TensorType::Bfloat16 as i8 {
                return Err(Reason::new("BFLOAT16 is no type of variables here"));
            }
            // Whatever shapes the inputs have, it keeps that of the file.
            let spec = self.spec_of_input(tensor)?;
            self.shapes[tensor] = Some(description.shape.clone());
            let operand = self.builder.input(description.short_name(), spec);
            self.operands[tensor] = Some(operand);
            self.state_of[tensor] = Some(self.states.len());
            self.states.push((Kept::Tensor(tensor), None));
        }
        if self.is_main() {
            for generator in self.generators()? {
                let operand = self.builder.input(generator.name.clone(), random::spec_of_state());
                self.next_generators.push_back((self.states.len(), operand));
                self.states.push((Kept::Generator(generator), None));
            }
        }
        for (input, bits) in halves {
            self.operands[input] = Some(self.of_bfloat16(bits));
        }
        infer::operations(&mut self.builder, 0)?;
        let origin = OperatorOrigin { index: None, operator: "bits of an input".into() };
        self.origins.resize(self.builder.operation_count(), origin);
        Ok(unknown)
    }

    /// The variable tensors that last from one run to the next: operators take them, and they are no inputs.
    fn state_tensors(&self) -> Vec<usize> {
        let mut is_state = vec![false; self.graph.tensors.len()];
        for operator in &self.graph.operators {
            for tensor in operator.inputs.iter().flatten() {
                is_state[*tensor] = true;
            }
        }
        // What an operator sets anew in every run does not last from one to the next.
        for operator in &self.graph.operators {
            for tensor in &operator.outputs {
                is_state[*tensor] = false;
            }
        }
        let is_kept = |tensor: &usize| {
            self.tensor(*tensor).is_variable && is_state[*tensor] && !self.is_input[*tensor]
        };
        (0..self.graph.tensors.len()).filter(is_kept).collect()
    }

    /// Gives back the tensors that are outputs behind those of the subgraph.
    fn declare_outputs(&mut self, passed: &Passed) -> Imported<Vec<usize>> {
        let before = self.builder.operation_count();
        let states: Vec<Imported<OperandId>> = self
            .states
            .iter()
            .map(|(kept, new)| {
                new.ok_or_else(|| Reason::new(format!("the state {kept:?} is never written")))
            })
            .collect();
        let mut given: Vec<OperandId> = Vec::new();
        for (place, output) in self.graph.outputs.iter().enumerate() {
            if self.is_main() || !is_handle(self.graph, *output) {
                let operand = self.operand(*output)?;
                if let Some(Some(lengths)) = passed.lengths.get(place)
                    && self.builder.spec(operand).dimensions.contains(&0)
                    && self.rank(*output) == lengths.len()
                {
                    // A run in which it has others fails.
                    self.builder.resolve(operand.index(), lengths.clone());
                    self.shapes[*output] = Some(lengths.clone());
                }
                given.push(self.as_output(*output, operand));
            }
        }
        let mut further = Vec::new();
        for tensor in self.tensors_of_signatures() {
            // What no operator computes, or has no type here, was no reason to refuse the file before a signature named it.
            if let Ok(operand) = self.operand(tensor) {
                given.push(self.as_output(tensor, operand));
                further.push(tensor);
            }
        }
        for state in states {
            given.push(state?);
        }
        given.extend(self.values_of(&self.kept_variables));
        if passed.are_given_back {
            given.extend(self.values_of(&passed.variables));
        }
        let mut already = HashSet::new();
        for operand in given {
            // What is an input, a constant, or an output already, needs a copy of its own.
            let operand = if !self.builder.is_result(operand) || !already.insert(operand) {
                let copy = self.copy(operand);
                already.insert(copy);
                copy
            } else {
                operand
            };
            self.builder.output(operand);
        }
        infer::operations(&mut self.builder, before)?;
        let origin = OperatorOrigin { index: None, operator: "copy of an output".into() };
        let added = self.builder.operation_count() - before;
        self.origins.extend(std::iter::repeat_n(origin, added));
        Ok(further)
    }

    /// The operand that callers get of a tensor: bits, if the tensor is of bfloat16.
    fn as_output(&mut self, tensor: usize, operand: OperandId) -> OperandId {
        let is_half = self.tensor(tensor).type_code == TensorType::Bfloat16 as i8;
        match is_half && self.is_main() {
            true => self.bits_of_bfloat16(operand),
            false => operand,
        }
    }

    /// The outputs of signatures that are none of the main subgraph, each once. Constants are in the file.
    fn tensors_of_signatures(&self) -> Vec<usize> {
        if !self.is_main() {
            return Vec::new();
        }
        let mut is_known = vec![false; self.graph.tensors.len()];
        self.graph.outputs.iter().for_each(|tensor| is_known[*tensor] = true);
        let own = self.file.signatures.iter().filter(|it| it.graph == self.file.main);
        let named = own.flat_map(|signature| &signature.outputs).map(|(_, tensor)| *tensor);
        named
            .filter(|tensor| !std::mem::replace(&mut is_known[*tensor], true))
            .filter(|tensor| !is_handle(self.graph, *tensor) && !self.is_constant(*tensor))
            .collect()
    }

    /// Another operand with the same value.
    fn copy(&mut self, operand: OperandId) -> OperandId {
        let spec = self.builder.spec(operand);
        self.builder.operation(OperationType::Cast, [operand], spec)
    }

    /// Takes over what is known of arguments.
    fn know_arguments(&mut self, arguments: &[Option<Array>]) {
        for (input, argument) in self.graph.inputs.iter().zip(arguments) {
            let Some(argument) = argument else { continue };
            self.shapes[*input] = Some(argument.shape.clone());
            if argument.values.is_some() {
                self.folded[*input] = Some(argument.clone());
            }
        }
    }

    /// Checks what an operator became, and finds the shapes of its outputs.
    fn conclude(&mut self, operator: &Operator<'_>, first: usize) -> Imported {
        infer::operations(&mut self.builder, first.max(self.concluded))?;
        for output in &operator.outputs {
            let Some(operand) = self.operands[*output].filter(|_| !self.is_flat[*output]) else {
                continue;
            };
            let found = self.builder.spec(operand).dimensions;
            if found.is_empty() || found.contains(&0) {
                continue;
            }
            let is_scalar = |shape: &[u32]| shape.is_empty() && found == [1];
            match &self.shapes[*output] {
                Some(shape) if *shape != found && !is_scalar(shape) => {
                    let what = format!("its result has shape {found:?}, expected {shape:?}");
                    return Err(Reason::new(what));
                }
                Some(_) => {}
                None if is_scalar(&self.tensor(*output).shape) && !self.gains_an_axis(operator) => {
                    self.shapes[*output] = Some(Vec::new());
                }
                None => self.shapes[*output] = Some(found),
            }
        }
        Ok(())
    }

    /// Whether what the file has as a scalar has an axis, since what it is computed from was given one. The HAL's shapes do
    /// not tell.
    fn gains_an_axis(&self, operator: &Operator<'_>) -> bool {
        let has_axis = |tensor: &usize| {
            self.tensor(*tensor).is_scalar && self.shapes[*tensor].as_deref() == Some(&[1])
        };
        let is_shape_its_own =
            matches!(operator.code.kind, OperatorKind::Builtin(B::Reshape | B::Squeeze));
        self.file.has_other_ranks
            && !is_shape_its_own
            && operator.inputs.iter().flatten().any(has_axis)
    }

    /// After a failure: makes operands for the outputs, so that what follows can be judged too. The
    /// model is not used.
    fn assume_outputs(&mut self, operator: &Operator<'_>) {
        for output in &operator.outputs {
            if self.operands[*output].is_none() {
                let spec = self.spec(*output);
                let spec = spec.unwrap_or_else(|_| OperandSpec::tensor_float32([]));
                self.operands[*output] = Some(self.builder.temporary(spec));
            }
        }
        for tensor in operator.inputs.iter().flatten() {
            if let Some(state) = self.state_of[*tensor] {
                self.states[state].1 = self.operands[*tensor];
            }
        }
    }

    fn operator(
        &mut self,
        operator: &'f Operator<'a>,
        graphs: &mut Graphs<'f, 'a>,
        depth: usize,
    ) -> Result<(), Stop> {
        for output in &operator.outputs {
            let is_known = self.folded[*output].is_some()
                || self.is_input[*output]
                || self.buffers[*output] != self.tensor(*output).buffer;
            if is_known || self.operands[*output].is_some() {
                return Err(Reason::new(format!("tensor {output} is written twice")).into());
            }
        }
        let builtin = match &operator.code.kind {
            OperatorKind::Builtin(builtin) => {
                let (version, greatest) = (operator.code.version, greatest_version(*builtin));
                if version > greatest {
                    let what = format!("{NEWER}, which knows versions up to {greatest}");
                    return Err(Reason::new(what).into());
                }
                *builtin
            }
            OperatorKind::Custom(name) if name.starts_with(flex::PREFIX) => {
                return Ok(self.flex(operator)?);
            }
            OperatorKind::Custom(name) => return Ok(self.custom(operator, name)?),
            OperatorKind::Unknown(_) => {
                return Err(Reason::new(NEWER).into());
            }
        };
        self.check_channels(builtin, operator)?;
        if let Some(outcome) = self.variable_operator(builtin, operator, graphs) {
            return outcome;
        }
        match builtin {
            B::If => self.if_operator(operator, graphs, depth),
            B::While => self.while_operator(operator, graphs, depth),
            B::StablehloComposite => self.composite(operator, graphs, depth),
            B::StablehloCase => self.case(operator, graphs, depth),
            _ => Ok(self.computed(builtin, operator)?),
        }
    }

    /// An operator of the format that refers to nothing but tensors.
    fn builtin(&mut self, builtin: B, operator: &Operator<'_>) -> Imported {
        self.check_channels(builtin, operator)?;
        self.computed(builtin, operator)
    }

    fn computed(&mut self, builtin: B, operator: &Operator<'_>) -> Imported {
        for output in &operator.outputs {
            let is_packed = |it: &Element| it.is_unpacked() && !it.becomes_float32();
            if let Some(element) = Element::of(self.tensor(*output)).filter(is_packed)
                && !PACKED_IS_MOVED_BY.contains(&builtin)
            {
                return Err(Reason::new(format!("{element:?} is computed by nothing here")));
            }
        }
        if self.evaluate(builtin, operator)? {
            return Ok(());
        }
        let handled = [
            Self::convolution,
            Self::pooling,
            Self::elementwise,
            Self::movement,
            Self::normalization,
            Self::reduction,
            Self::resize,
            Self::quantization,
            Self::recurrent,
            Self::window,
            Self::random,
            Self::extended,
        ]
        .iter()
        .find_map(|family| family(self, builtin, operator));
        handled.unwrap_or_else(|| Err(Reason::new(NO_OPERATION)))
    }
}
