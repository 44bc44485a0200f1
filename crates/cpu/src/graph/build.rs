//! From a subgraph and the shapes of its inputs to a [`Graph`].

use super::row_update::{Role, RowUpdate, RowUpdates};
use super::{
    Constant, ConstantOrigin, ControlFlow, ControlFlowKind, Graph, Node, Origin, Source, Sources,
    Value, ValueId, Work, is_copy,
};
use nnhal_driver::{Budget, EngineError, Interruption, Ledger, MemoryUse, OperationPlace};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{OperandLifeTime, OperandType, Operation, OperationType, Subgraph};
use nnhal_interpreter::call_within;
use nnhal_ops::{AnyOperation, ArgumentSource, Call, Fault, Output, Shape};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

/// Why there is no graph.
#[derive(Debug)]
pub(crate) enum NoGraph {
    /// Data or control flow decide about shapes; an interpreter can run it.
    NotStatic,
    /// It breaks a rule that only shows with these shapes, or takes too much memory.
    Error(EngineError),
}

impl From<EngineError> for NoGraph {
    fn from(error: EngineError) -> Self {
        Self::Error(error)
    }
}

impl From<Interruption> for NoGraph {
    fn from(interruption: Interruption) -> Self {
        Self::Error(interruption.into())
    }
}

/// A graph of some operations of a subgraph that follow each other.
#[derive(Debug)]
pub(crate) struct StaticSubgraph<'source> {
    pub(crate) graph: Graph<'source>,
    /// By input of the graph: the operand and its dimensions.
    pub(crate) inputs: Vec<(u32, Vec<u32>)>,
    /// By output of the graph: the operand.
    pub(crate) outputs: Vec<u32>,
    pub(crate) operations: usize,
}

/// A folded constant may be this many times as large as what it is computed from, and
/// [`FREE_TO_FOLD`] bytes more.
const FOLDING_GROWTH: u64 = 8;
const FREE_TO_FOLD: u64 = 1 << 16;

/// Multiplications and additions, or elements that are moved, that all foldings of a graph may take:
/// reference kernels are slow. What would exceed it is computed by every execution.
const MOST_FOLDING: u64 = 1 << 28;

/// IFs and WHILEs within each other that a graph may have, and in all: their graphs are built on the stack.
const MOST_NESTED: usize = 4;
const MOST_CONTROL_FLOW: usize = 64;

impl<'source> Graph<'source> {
    /// A graph of the main subgraph for inputs of these dimensions, by input. Operations whose inputs are
    /// all constant are computed here.
    pub(crate) fn build(
        sources: &'source Sources,
        inputs: &[Vec<u32>],
        ledger: &Ledger,
        budget: &'source Budget,
    ) -> Result<Self, NoGraph> {
        let referring = Referring { sources, nested: 0, control_flow: &Cell::new(0) };
        let inputs: Vec<_> = inputs.iter().map(|dimensions| Argument::given(dimensions)).collect();
        Self::of_subgraph(&referring, 0, &inputs, ledger, budget)
    }

    /// The same of the subgraph with this index. Constants are no inputs of it.
    fn of_subgraph(
        referring: &Referring<'source, '_>,
        index: usize,
        arguments: &[Argument<'_, 'source>],
        ledger: &Ledger,
        budget: &'source Budget,
    ) -> Result<Self, NoGraph> {
        let mut building = Building::new(referring, index, ledger, budget)?;
        let source = building.source;
        let subgraph = &source.subgraph;
        building.ids = None;
        let operands = 0..u32::try_from(subgraph.operands.len()).unwrap_or(u32::MAX);
        building.graph.values = operands.map(|operand| value(source, operand, budget)).collect();
        let graph = &mut building.graph;
        graph.outputs = subgraph.outputs.iter().map(|operand| *operand as usize).collect();
        let mut inputs = 0..;
        for (operand, Argument { dimensions, constant }) in subgraph.inputs.iter().zip(arguments) {
            match constant {
                Some(value) => building.feed_constant(*operand, value)?,
                None => building.feed(*operand, inputs.next().unwrap_or_default(), dimensions),
            }
        }
        let updates = RowUpdates::of(source);
        for (index, operation) in subgraph.operations.iter().enumerate() {
            match updates.role(index) {
                Some(Role::Piece) => {}
                Some(Role::Result(update)) => building.add_row_update(index, operation, update)?,
                None => building.add(index, operation)?,
            }
        }
        Ok(building.graph)
    }

    /// A graph of the operations from `first` on, as many as have shapes that are known by those of
    /// operands that `dimensions` tells, of the subgraph with this index. It holds no other operands than theirs, so that it takes as
    /// much time as it has operations. `last_reads` tells by operand behind which operation no one
    /// reads it any more.
    pub(crate) fn static_subgraph<'a>(
        sources: &'source Sources,
        index: usize,
        first: usize,
        dimensions: impl Fn(u32) -> Option<&'a [u32]>,
        last_reads: &[usize],
        ledger: &Ledger,
        budget: &'source Budget,
    ) -> Result<StaticSubgraph<'source>, NoGraph> {
        let referring = Referring { sources, nested: 0, control_flow: &Cell::new(0) };
        let mut building = Building::new(&referring, index, ledger, budget)?;
        let operations = &building.source.subgraph.operations;
        let mut is_there = BTreeSet::new();
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let mut end = first;
        let mut reason = None;
        for operation in &operations[first..] {
            let mut wanted = BTreeSet::new();
            for operand in &operation.inputs {
                let id = building.id(*operand);
                let is_computed = matches!(building.graph.values[id].origin, Origin::Computed);
                if is_computed && !is_there.contains(operand) {
                    wanted.insert(*operand);
                }
            }
            let fed: Option<Vec<_>> = wanted
                .iter()
                .map(|operand| Some((*operand, dimensions(*operand)?.to_vec())))
                .collect();
            let Some(fed) = fed else { break };
            for (input, (operand, dimensions)) in (inputs.len()..).zip(&fed) {
                building.feed(*operand, input, dimensions);
            }
            if let Err(error) = building.add(end, operation) {
                for (operand, _) in &fed {
                    let id = building.id(*operand);
                    building.graph.values[id].origin = Origin::Computed;
                }
                reason = Some(error);
                break;
            }
            inputs.extend(fed);
            for output in &operation.outputs {
                is_there.insert(*output);
                outputs.push(*output);
            }
            end += 1;
        }
        if end == first {
            return Err(reason.unwrap_or(NoGraph::NotStatic));
        }
        if let Some(NoGraph::Error(EngineError::Interrupted(interruption))) = reason {
            return Err(interruption.into());
        }
        outputs.retain(|output| last_reads[*output as usize] >= end);
        building.graph.outputs = outputs.iter().map(|output| building.id(*output)).collect();
        Ok(StaticSubgraph { graph: building.graph, inputs, outputs, operations: end - first })
    }
}

/// All but those for which this is true, by position.
fn left<T: Copy>(all: &[T], leave_out: &[bool]) -> Vec<T> {
    let is_left = |position: &usize| leave_out.get(*position) != Some(&true);
    (0..all.len()).filter(is_left).map(|position| all[position]).collect()
}

/// Whether what is declared of a shape allows these lengths.
fn is_possible(declared: &Shape, lengths: &[u32]) -> bool {
    declared.merge(&Shape::known(lengths.iter().copied())).is_some()
}

/// By operand of a subgraph the index of the last operation that reads it; a number beyond all of them
/// for what the subgraph gives out, and 0 for what no one reads.
pub(crate) fn last_reads(subgraph: &Subgraph) -> Vec<usize> {
    let mut last_reads = vec![0; subgraph.operands.len()];
    for (index, operation) in subgraph.operations.iter().enumerate() {
        for input in &operation.inputs {
            last_reads[*input as usize] = index;
        }
    }
    for output in &subgraph.outputs {
        last_reads[*output as usize] = usize::MAX;
    }
    last_reads
}

/// An operand of a subgraph, as far as it is known without any input.
fn value<'source>(source: &'source Source, index: u32, budget: &'source Budget) -> Value<'source> {
    let operand = &source.subgraph.operands[index as usize];
    let (origin, dimensions) = match (source.constant(index), operand.lifetime) {
        (Some((constant, dimensions)), _) => {
            (Origin::Constant(constant.within(budget)), dimensions)
        }
        (None, OperandLifeTime::NoValue | OperandLifeTime::Subgraph) => (Origin::Omitted, &[][..]),
        (None, _) => (Origin::Computed, &[][..]),
    };
    Value {
        operand: Cow::Borrowed(operand),
        dimensions: dimensions.to_vec(),
        origin,
        is_widened: false,
        index: Some(index),
    }
}

/// The subgraphs that control flow refers to.
struct Referring<'source, 'build> {
    sources: &'source Sources,
    /// IFs and WHILEs that this graph is within.
    nested: usize,
    /// IFs and WHILEs that there are.
    control_flow: &'build Cell<usize>,
}

/// What an input of a subgraph is.
#[derive(Debug)]
struct Argument<'build, 'source> {
    dimensions: &'build [u32],
    /// The value of the graph outside, if it is a constant that the subgraph may have as its own.
    constant: Option<&'build Value<'source>>,
}

impl<'build> Argument<'build, '_> {
    /// One that executions bring.
    fn given(dimensions: &'build [u32]) -> Self {
        Self { dimensions, constant: None }
    }
}

/// A graph on its way.
struct Building<'source, 'build> {
    referring: &'build Referring<'source, 'build>,
    source: &'source Source,
    graph: Graph<'source>,
    /// By operand its value, for operands that have been asked for; `None` if values are operands.
    ids: Option<HashMap<u32, ValueId>>,
    ledger: &'build Ledger,
    budget: &'source Budget,
    /// What is left of [`MOST_FOLDING`].
    folding: u64,
}

impl<'source, 'build> Building<'source, 'build> {
    fn new(
        referring: &'build Referring<'source, 'build>,
        index: usize,
        ledger: &'build Ledger,
        budget: &'source Budget,
    ) -> Result<Self, NoGraph> {
        let source = referring.sources.get(index).ok_or(NoGraph::NotStatic)?;
        let held = ledger.charge(0, MemoryUse::Constants)?;
        let (values, nodes, outputs) = (Vec::new(), Vec::new(), Vec::new());
        let graph = Graph { values, nodes, outputs, control_flow: Vec::new(), held };
        let ids = Some(HashMap::new());
        Ok(Self { referring, source, graph, ids, ledger, budget, folding: MOST_FOLDING })
    }

    /// The value of an operand.
    fn id(&mut self, operand: u32) -> ValueId {
        let Some(ids) = &mut self.ids else { return operand as usize };
        let values = &mut self.graph.values;
        *ids.entry(operand).or_insert_with(|| {
            values.push(value(self.source, operand, self.budget));
            values.len() - 1
        })
    }

    /// Makes an operand an input.
    fn feed(&mut self, operand: u32, input: usize, dimensions: &[u32]) {
        let id = self.id(operand);
        let value = &mut self.graph.values[id];
        value.dimensions = dimensions.to_vec();
        value.origin = Origin::Input(input);
    }

    /// Makes an operand the constant that a value of another graph is.
    fn feed_constant(&mut self, operand: u32, from: &Value<'source>) -> Result<(), EngineError> {
        let Origin::Constant(constant) = &from.origin else { return Ok(()) };
        let bytes = constant.bytes_of_its_own() as u64;
        self.graph.held.grow(bytes, MemoryUse::Constants)?;
        let id = self.id(operand);
        let value = &mut self.graph.values[id];
        value.dimensions.clone_from(&from.dimensions);
        value.is_widened = from.is_widened;
        value.origin = Origin::Constant(constant.for_another_graph());
        Ok(())
    }

    fn add(&mut self, index: usize, operation: &'source Operation) -> Result<(), NoGraph> {
        self.budget.check()?;
        let operation_type = operation.operation_type;
        if let Some(kind) = ControlFlowKind::of(operation_type) {
            return self.add_control_flow(index, operation, kind);
        }
        let inputs: Vec<ValueId> = operation.inputs.iter().map(|it| self.id(*it)).collect();
        let outputs: Vec<ValueId> = operation.outputs.iter().map(|it| self.id(*it)).collect();
        let values = &mut self.graph.values;
        if let ([input], [output]) = (&*inputs, &*outputs) {
            let widens = matches!(operation_type, OperationType::Dequantize | OperationType::Cast)
                && values[*input].is_float16()
                && values[*output].operand_type() == OperandType::TensorFloat32;
            values[*output].is_widened = widens;
        }
        // It was, when the program was saved.
        if outputs.iter().all(|output| values[*output].is_constant()) {
            return Ok(());
        }
        let place = OperationPlace { subgraph: self.source.name, index, operation_type };
        let failed = |fault| match fault {
            Fault::NotKnown { .. } => NoGraph::NotStatic,
            fault => NoGraph::Error(EngineError::operation(place, fault)),
        };
        let understood = |all_known| self.understood(operation, &inputs, all_known);
        let (decoded, shapes) = understood(false)
            .or_else(|fault| match fault {
                Fault::NotKnown { .. } => understood(true),
                fault => Err(fault),
            })
            .map_err(failed)?;
        let mut dimensions = Vec::with_capacity(shapes.len());
        let mut size = 0_u64;
        for (operand, found) in operation.outputs.iter().zip(shapes) {
            let expected = self.source.declared(*operand);
            let Some(shape) = expected.merge(&found) else {
                let operand = *operand;
                return Err(EngineError::Shape { place, operand, found, expected }.into());
            };
            dimensions.push(shape.to_known().ok_or(NoGraph::NotStatic)?);
            let elements = shape.element_count().unwrap_or(u64::MAX);
            size = size.saturating_add(elements.saturating_mul(4));
        }
        self.ledger.expect_room(size, MemoryUse::Operation(place))?;
        let folded = self.fold(place, operation, [&inputs, &outputs], &decoded, size)?;
        for (output, dimensions) in outputs.iter().zip(dimensions) {
            self.graph.values[*output].dimensions = dimensions;
        }
        if let Some(constants) = folded {
            for (output, constant) in outputs.iter().zip(constants) {
                let user = MemoryUse::Operation(place);
                self.graph.held.grow(constant.length() as u64, user)?;
                self.graph.values[*output].origin = Origin::Constant(constant);
            }
            return Ok(());
        }
        self.graph.nodes.push(Node { place, work: Work::Operation(decoded), inputs, outputs });
        Ok(())
    }

    /// Adds what several operations are together. What is wrong with one of them is the interpreter's to say.
    fn add_row_update(
        &mut self,
        index: usize,
        operation: &'source Operation,
        update: RowUpdate,
    ) -> Result<(), NoGraph> {
        self.budget.check()?;
        let RowUpdate { tensor, row, index: which, axes } = update;
        let inputs = [tensor, row, which].map(|operand| self.id(operand));
        let (Some(result), [tensor, row, which]) =
            (operation.outputs.first(), inputs.map(|id| &self.graph.values[id]))
        else {
            return Err(NoGraph::NotStatic);
        };
        let id = *result as usize;
        let output = &self.graph.values[id];
        let is_there = |value: &Value<'_>| !matches!(value.origin, Origin::Omitted);
        let is_alike = |value: &Value<'_>| {
            is_there(value) && value.operand.quantized_as() == output.operand.quantized_as()
        };
        let (Some((rows, of_row)), Some((1, of_new))) =
            (tensor.dimensions.split_first(), row.dimensions.split_first())
        else {
            return Err(NoGraph::NotStatic);
        };
        if !is_alike(tensor)
            || !is_alike(row)
            || *rows == 0
            || of_row.contains(&0)
            || tensor.dimensions.len() != axes
            || of_row != of_new
            || !is_there(which)
            || which.operand_type() != OperandType::TensorInt32
            || which.elements() != 1
            || !is_possible(&self.source.declared(*result), &tensor.dimensions)
        {
            return Err(NoGraph::NotStatic);
        }
        self.graph.values[id].dimensions = tensor.dimensions.clone();
        let operation_type = operation.operation_type;
        let place = OperationPlace { subgraph: self.source.name, index, operation_type };
        let (inputs, outputs) = (inputs.to_vec(), vec![id]);
        self.graph.nodes.push(Node { place, work: Work::RowUpdate, inputs, outputs });
        Ok(())
    }

    /// Adds an IF whose branches give results of the same lengths, or a WHILE whose variables keep their lengths, and are no
    /// floats of 16 bits, which a plan would keep as floats of 32 bits from round to round. What is wrong with one is the
    /// interpreter's to say.
    fn add_control_flow(
        &mut self,
        index: usize,
        operation: &'source Operation,
        kind: ControlFlowKind,
    ) -> Result<(), NoGraph> {
        let Referring { sources, nested, control_flow } = *self.referring;
        let first = kind.first_reference();
        let Some(arguments) = operation.inputs.get(first + 2..) else {
            return Err(NoGraph::NotStatic);
        };
        if nested == MOST_NESTED || control_flow.get() == MOST_CONTROL_FLOW {
            return Err(NoGraph::NotStatic);
        }
        control_flow.set(control_flow.get() + 1);
        let own = operation.inputs[..first].iter().chain(arguments);
        let inputs: Vec<ValueId> = own.map(|operand| self.id(*operand)).collect();
        let mut outputs: Vec<(u32, ValueId)> =
            operation.outputs.iter().map(|it| (*it, self.id(*it))).collect();
        let values = &self.graph.values;
        let is_loop = kind == ControlFlowKind::While;
        let is_plain = |value: &Value<'_>| {
            let is_there = !matches!(value.origin, Origin::Omitted);
            is_there && !(is_loop && value.is_float16())
        };
        if !inputs.iter().all(|input| is_plain(&values[*input])) {
            return Err(NoGraph::NotStatic);
        }
        let (own, arguments) = inputs.split_at(first);
        let mut subgraphs =
            [first, first + 1].map(|input| self.referred(operation, input)).to_vec();
        if let [condition] = own {
            let condition = &values[*condition];
            if !condition.is_decision() {
                return Err(NoGraph::NotStatic);
            }
            match condition.as_constant().and_then(Constant::parameter) {
                // The other branch never runs.
                Some([0]) => drop(subgraphs.remove(0)),
                Some(_) => subgraphs.truncate(1),
                None => subgraphs.dedup(),
            }
        }
        let subgraphs: Option<Vec<(usize, &Source)>> =
            subgraphs.into_iter().map(|index| Some((index, sources.get(index)?))).collect();
        let subgraphs = subgraphs.ok_or(NoGraph::NotStatic)?;
        let is_constant = |position: usize| {
            let value = &values[arguments[position]];
            let of_this_type = |source: &Source| {
                let operand = source.subgraph.inputs.get(position);
                let operand = operand.map(|it| &source.subgraph.operands[*it as usize]);
                operand.is_some_and(|it| it.operand_type == value.operand_type())
            };
            value.is_constant()
                && subgraphs.iter().all(|(_, source)| of_this_type(source))
                && (!is_loop || self.never_changes(operation, subgraphs[1].1, position))
        };
        let is_constant: Vec<bool> = (0..arguments.len()).map(is_constant).collect();
        let given: Vec<Argument<'_, 'source>> = arguments
            .iter()
            .zip(&is_constant)
            .map(|(argument, is_constant)| {
                let value = &values[*argument];
                let constant = is_constant.then_some(value);
                Argument { dimensions: &value.dimensions, constant }
            })
            .collect();
        let inner = Referring { sources, nested: nested + 1, control_flow };
        let graph = |(subgraph, source): (usize, &'source Source)| {
            let operands = &source.subgraph.inputs;
            let fits = |(operand, argument): (&u32, &Argument<'_, '_>)| {
                is_possible(&source.declared(*operand), argument.dimensions)
            };
            if operands.len() != given.len() || !operands.iter().zip(&given).all(fits) {
                return Err(NoGraph::NotStatic);
            }
            let graph = Graph::of_subgraph(&inner, subgraph, &given, self.ledger, self.budget);
            graph.map_err(|error| match error {
                NoGraph::Error(EngineError::Interrupted(_)) => error,
                NoGraph::NotStatic | NoGraph::Error(_) => NoGraph::NotStatic,
            })
        };
        let mut graphs: Vec<Graph<'_>> =
            subgraphs.iter().copied().map(graph).collect::<Result<_, _>>()?;
        // What is a constant inside is no input, and no variable of a loop.
        let mut inputs = own.to_vec();
        inputs.extend(left(arguments, &is_constant));
        if let (true, [_, body]) = (is_loop, &mut *graphs) {
            body.outputs = left(&body.outputs, &is_constant);
            outputs = left(&outputs, &is_constant);
        }
        let arguments = &inputs[own.len()..];
        let is_alike = |one: &Value<'_>, other: &Value<'_>| {
            is_plain(one)
                && one.dimensions == other.dimensions
                && one.element_size() == other.element_size()
        };
        let results: Vec<Vec<u32>> = match (kind, &*graphs) {
            (ControlFlowKind::If, [first, ..]) => {
                let results = |graph: &Graph<'_>| {
                    let results = graph.outputs.iter().zip(&first.outputs);
                    graph.outputs.len() == outputs.len()
                        && results
                            .map(|(one, other)| (&graph.values[*one], &first.values[*other]))
                            .all(|(one, other)| is_alike(one, other))
                };
                if !graphs.iter().all(results) {
                    return Err(NoGraph::NotStatic);
                }
                let results = first.outputs.iter().map(|id| &first.values[*id].dimensions);
                results.cloned().collect()
            }
            (ControlFlowKind::While, [condition, body]) => {
                let is_kept = |(output, variable): (&ValueId, &ValueId)| {
                    is_alike(&body.values[*output], &values[*variable])
                };
                let is_decided = match &*condition.outputs {
                    [output] => condition.values[*output].is_decision(),
                    _ => false,
                };
                if !is_decided
                    || body.outputs.len() > arguments.len()
                    || !body.outputs.iter().zip(arguments).all(is_kept)
                {
                    return Err(NoGraph::NotStatic);
                }
                arguments.iter().map(|input| values[*input].dimensions.clone()).collect()
            }
            _ => return Err(NoGraph::NotStatic),
        };
        if outputs.len() > results.len() {
            return Err(NoGraph::NotStatic);
        }
        for ((operand, output), lengths) in outputs.iter().zip(results) {
            if !is_possible(&self.source.declared(*operand), &lengths) {
                return Err(NoGraph::NotStatic);
            }
            self.graph.values[*output].dimensions = lengths;
        }
        let operation_type = operation.operation_type;
        let place = OperationPlace { subgraph: self.source.name, index, operation_type };
        let work = Work::ControlFlow(self.graph.control_flow.len());
        self.graph.control_flow.push(ControlFlow { kind, graphs, counted: None });
        let outputs = outputs.into_iter().map(|(_, id)| id).collect();
        self.graph.nodes.push(Node { place, work, inputs, outputs });
        Ok(())
    }

    /// Whether no round of a WHILE changes the variable at this position, and its last value is not read.
    fn never_changes(&self, operation: &Operation, body: &Source, position: usize) -> bool {
        let Subgraph { operations, outputs, .. } = &self.source.subgraph;
        let is_read = |operand: &u32| {
            outputs.contains(operand) || operations.iter().any(|it| it.inputs.contains(operand))
        };
        if operation.outputs.get(position).is_some_and(is_read) {
            return false;
        }
        let Subgraph { operations, inputs, outputs, .. } = &body.subgraph;
        let Some(after) = outputs.get(position) else { return true };
        let Some(before) = inputs.get(position) else { return false };
        // An output is the result of an operation: of one that copies.
        operations.iter().any(|it| {
            it.inputs == [*before] && it.outputs == [*after] && is_copy(&body.subgraph, it)
        })
    }

    /// The index of the subgraph that an input of an operation refers to.
    fn referred(&self, operation: &Operation, input: usize) -> usize {
        let operand = operation.inputs.get(input).copied().unwrap_or_default();
        let location = &self.source.subgraph.operands[operand as usize].location;
        SubgraphName::Referenced(location.offset as usize).position()
    }

    /// What an operation does, and the shapes of its outputs, by the values of parameters or by those
    /// of all constants.
    fn understood(
        &self,
        operation: &Operation,
        inputs: &[ValueId],
        all_known: bool,
    ) -> Result<(AnyOperation, Vec<Shape>), Fault> {
        let call = self.call(operation, inputs, |_, constant| {
            let bytes = if all_known { constant.bytes() } else { constant.parameter() };
            bytes.map_or(nnhal_ops::Value::Given, nnhal_ops::Value::Known)
        });
        nnhal_ops::operations::validate(&call)?;
        let decoded = AnyOperation::decode(&call)?;
        let shapes = decoded.output_shapes(&call)?;
        Ok((decoded, shapes))
    }

    /// The operation with what is known of its arguments; `value` gives those of constants, by input.
    fn call<'call>(
        &'call self,
        operation: &'call Operation,
        inputs: &[ValueId],
        value: impl Fn(usize, &'call Constant<'source>) -> nnhal_ops::Value<'call>,
    ) -> Call<'call> {
        let argument = |position: usize, id: ValueId| {
            let operand = &self.graph.values[id];
            ArgumentSource {
                operand: &operand.operand,
                shape: match operand.origin {
                    Origin::Omitted => Shape::of_model(&operand.operand.dimensions),
                    _ => Shape::known(operand.dimensions.iter().copied()),
                },
                value: match &operand.origin {
                    Origin::Omitted => nnhal_ops::Value::Omitted,
                    Origin::Constant(constant) => value(position, constant),
                    // A request that leaves an input out is the interpreter's.
                    Origin::Input(_) | Origin::Computed => nnhal_ops::Value::Given,
                },
            }
        };
        let output = |operand: &u32| ArgumentSource {
            operand: &self.source.subgraph.operands[*operand as usize],
            shape: self.source.declared(*operand),
            value: nnhal_ops::Value::NotKnown,
        };
        Call::new(
            operation.operation_type,
            inputs.iter().enumerate().map(|(position, id)| argument(position, *id)),
            operation.outputs.iter().map(output),
        )
    }

    /// The results of an operation on constants, unless they are much larger than those, or too much
    /// work. A restored program has been folded: what was not is computed by its executions, and the
    /// bytes that it was computed from may not have been saved.
    fn fold(
        &mut self,
        place: OperationPlace,
        operation: &'source Operation,
        [inputs, outputs]: [&[ValueId]; 2],
        decoded: &AnyOperation,
        size: u64,
    ) -> Result<Option<Vec<Constant<'source>>>, NoGraph> {
        if self.source.is_restored() {
            return Ok(None);
        }
        let values = inputs.iter().map(|input| &self.graph.values[*input]);
        let (mut known, mut elements) = (0, 0_u64);
        for input in values.clone() {
            match &input.origin {
                Origin::Constant(constant) => {
                    known += constant.length() as u64;
                    elements = elements.saturating_add(input.elements() as u64);
                }
                Origin::Omitted => {}
                Origin::Input(_) | Origin::Computed => return Ok(None),
            }
        }
        if size > known * FOLDING_GROWTH + FREE_TO_FOLD {
            return Ok(None);
        }
        if let ([half], [output]) = (inputs, outputs)
            && self.graph.values[*output].is_widened
        {
            let Some(halves) = bytes_once(&self.graph.values[*half]) else { return Ok(None) };
            let halves = halves.into_owned();
            let length = 2 * halves.len();
            let widened = Constant::new(ConstantOrigin::Widened(halves), length);
            return Ok(Some(vec![widened.within(self.budget)]));
        }
        let work = arithmetic(decoded, elements, size / 4);
        let Some(left) = self.folding.checked_sub(work) else { return Ok(None) };
        let bytes: Option<Vec<_>> = values.map(bytes_once).collect();
        let Some(bytes) = bytes else { return Ok(None) };
        let value = |position: usize, _: &_| nnhal_ops::Value::Known(&bytes[position]);
        let call = self.call(operation, inputs, value);
        let outputs = call_within(place, call, self.ledger, self.budget, |call, failed| {
            decoded.reference(call).map_err(failed)
        });
        self.budget.check()?;
        // What fails here fails when the model runs, and is reported then.
        let Ok(outputs) = outputs else { return Ok(None) };
        let constant = |output: Output| {
            let length = output.bytes.len();
            Constant::new(ConstantOrigin::Here(Cow::Owned(output.bytes)), length)
                .within(self.budget)
        };
        let outputs = outputs.into_iter().map(constant).collect();
        self.folding = left;
        Ok(Some(outputs))
    }
}

/// The bytes of a constant; none of what is left out. `None` if there is no memory for them.
fn bytes_once<'value>(value: &'value Value<'_>) -> Option<Cow<'value, [u8]>> {
    value.as_constant().map_or_else(|| Some(Cow::default()), Constant::bytes_once)
}

/// Multiplications and additions of an operation, or elements that it moves: not less than there are,
/// as far as that follows from how many elements go in and come out.
fn arithmetic(operation: &AnyOperation, inputs: u64, outputs: u64) -> u64 {
    match operation {
        AnyOperation::BatchSpace(_)
        | AnyOperation::Concatenation(_)
        | AnyOperation::DepthSpace(_)
        | AnyOperation::EmbeddingLookup(_)
        | AnyOperation::Fill(_)
        | AnyOperation::Gather(_)
        | AnyOperation::MirrorPad(_)
        | AnyOperation::Pack(_)
        | AnyOperation::Pad(_)
        | AnyOperation::Rank(_)
        | AnyOperation::Reduce(_) => inputs.saturating_add(outputs),
        _ if operation.by_element().is_some() || operation.movement().is_some() => {
            inputs.saturating_add(outputs)
        }
        // Each result may depend on everything, and every number may be looked at for every other.
        _ => inputs.saturating_add(1).saturating_mul(inputs.saturating_add(outputs)),
    }
}
