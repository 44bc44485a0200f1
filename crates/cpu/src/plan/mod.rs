//! [`Plan`]: the steps of an execution, with their kernels and their places in one arena.

mod arena;
mod control_flow;
mod execution;
mod kernel;
mod layout;
mod lower;
mod lowering;
mod memory;
mod origins;
mod rounds;

pub(crate) use execution::{Endpoints, OutputBytes, Workspace};
pub(crate) use kernel::{ELEMENTS_BY_THREAD, Kernel, Run};
pub(crate) use origins::{KeptBytes, Origins};

use crate::graph::{self, ControlFlowKind, Graph, Node, Origin, Scratch, ValueId};
use crate::passes;
use crate::settings::Settings;
use bytes::Bytes;
use control_flow::ControlFlow;
use kernel::Prepared;
use layout::{BufferId, Layout};
use lowering::Lowered;
use nnhal_driver::{Budget, Charge, EngineError, Ledger, MemoryUse, OperationPlace};
use nnhal_driver::{PlannedStep, PlannedValue};
use nnhal_hal::OperandType;
use nnhal_kernels::{InstructionSet, Lines, PreparedKernel, Team};
use std::ops::Range;
use std::sync::Arc;

/// The steps of an execution with inputs of certain dimensions.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    pub(crate) constants: Vec<Lines>,
    arena_bytes: usize,
    /// Outputs that are not in the arena, and their ranges, which are behind it.
    beside: Vec<(usize, Range<usize>)>,
    /// Whether an execution takes no longer than waking a thread does, so far as is known.
    is_small: bool,
    /// For the floats of 16 bits of inputs and outputs.
    set: InstructionSet,
    /// Counts what executions take.
    ledger: Ledger,
    /// Count what the plan holds.
    _charges: Vec<Charge>,
}

/// The most bytes of values of a small plan, and its most additions and multiplications.
const SMALL_BYTES: usize = 512 << 10;
const SMALL_ARITHMETIC: u64 = 8_000_000;

/// A kernel with its operands.
#[derive(Debug)]
pub(crate) struct Step {
    /// The operation, or the last one of those that it computes.
    pub(crate) place: OperationPlace,
    pub(crate) kernel: Box<dyn Kernel>,
    pub(crate) inputs: Vec<Location>,
    pub(crate) outputs: Vec<Range<usize>>,
    pub(crate) scratch: Range<usize>,
    order: arena::Order,
    /// The lengths of the first output.
    pub(crate) dimensions: Vec<u32>,
    /// What observers are given of each output; nothing of one that is not contiguous.
    pub(crate) observed: Vec<Option<ObservedOutput>>,
    /// Of the weights that were packed for the kernel.
    weight_bytes: usize,
    /// By input, then by output; for people.
    held: Vec<Held>,
}

/// In which buffer an operand of a step is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    buffer: BufferId,
    operand: Option<u32>,
    /// Whether outputs of the plan are in it.
    is_kept: bool,
}

/// What observers are given of an output.
#[derive(Debug)]
pub(crate) struct ObservedOutput {
    pub(crate) operand: u32,
    pub(crate) operand_type: OperandType,
    pub(crate) dimensions: Vec<u32>,
}

/// Where a step finds an input.
#[derive(Debug, Clone)]
pub(crate) enum Location {
    /// It is left out.
    Nowhere,
    /// Bytes of the constant with this index.
    Constant(usize, usize),
    /// These bytes of the arena, or of an output behind it.
    Arena(Range<usize>),
}

#[derive(Debug)]
struct Input {
    /// Where it goes; `None` if no one reads it.
    range: Option<Range<usize>>,
    is_float16: bool,
}

impl Input {
    /// Where it goes; nowhere if no one reads it.
    fn range(&self) -> Range<usize> {
        self.range.clone().unwrap_or_default()
    }
}

#[derive(Debug)]
struct Output {
    location: Location,
    is_float16: bool,
    dimensions: Vec<u32>,
}

impl Plan {
    /// Whether a graph, or one within it, has constants enough for threads to share the work of lowering it, if none of its
    /// weights were saved: for others no thread needs to be there.
    pub(crate) fn shares_lowering(graph: &Graph<'_>) -> bool {
        graph.constant_bytes(true) >= lowering::MANY_BYTES
    }

    /// Lowers a graph. `saved` are the weights that were packed by another plan for it.
    pub(crate) fn new(
        mut graph: Graph<'_>,
        settings: &Settings,
        ledger: &Ledger,
        team: &mut Team,
        budget: &Budget,
        saved: Option<&[Bytes]>,
    ) -> Result<(Self, Origins), EngineError> {
        let operands = graph.values.len();
        let processor = (settings.instruction_set, settings.threads);
        passes::run(&mut graph, settings.passes, processor, budget, |_, _, _| ())?;
        Self::of_rewritten(graph, operands, settings, ledger, team, budget, saved, Caller::Request)
    }

    /// Lowers a graph that passes have rewritten, of which this many values are operands.
    #[allow(
        clippy::too_many_arguments,
        reason = "plans of subgraphs are made of what theirs is made of"
    )]
    fn of_rewritten(
        mut graph: Graph<'_>,
        operands: usize,
        settings: &Settings,
        ledger: &Ledger,
        team: &mut Team,
        budget: &Budget,
        saved: Option<&[Bytes]>,
        caller: Caller,
    ) -> Result<(Self, Origins), EngineError> {
        let mut control_flow = Vec::with_capacity(graph.control_flow.len());
        for graph::ControlFlow { kind, graphs, counted } in std::mem::take(&mut graph.control_flow)
        {
            let plan = |(graph, caller)| {
                let plan =
                    Self::of_rewritten(graph, 0, settings, ledger, team, budget, None, caller)?;
                Ok::<_, EngineError>(plan.0)
            };
            let callers = match kind {
                ControlFlowKind::If => [Caller::Branch; 2],
                ControlFlowKind::While => [Caller::Branch, Caller::Body],
            };
            let plans: Result<_, _> = graphs.into_iter().zip(callers).map(plan).collect();
            control_flow.push(Arc::new(ControlFlow::new(kind, plans?, counted)));
        }
        budget.check()?;
        let layout = Layout::new(&graph, caller);
        let builder = Builder {
            graph: &graph,
            settings,
            ledger,
            held: ledger.charge(0, MemoryUse::Constants)?,
            scratch: Scratch::new(graph.largest_unread_constant()),
            layout,
            constants: Vec::new(),
            constant_of: vec![[None; 2]; graph.values.len()],
            control_flow,
        };
        let Lowered { drafts, weight_bytes, packed, charges } =
            lowering::lower_all(&builder, ledger, team, budget, saved)?;
        let (plan, places) = builder.finish(drafts, weight_bytes, charges, budget, caller)?;
        let (constants, charge) = origins::of_constants(graph, operands, &places, ledger)?;
        Ok((plan, Origins { constants, packed, _charge: charge }))
    }

    /// The steps, for people, those of subgraphs behind them. `number` is that of this plan, and becomes one that no plan has.
    pub(crate) fn describe(&self, number: &mut usize) -> Vec<PlannedStep> {
        let own = *number;
        *number += 1;
        let mut steps: Vec<_> = self.steps.iter().map(|step| step.describe(own)).collect();
        for plan in self.steps.iter().flat_map(|step| step.kernel.plans()) {
            steps.extend(plan.describe(number));
        }
        steps
    }

    /// Whether an execution takes no longer than waking a thread does, so far as is known.
    pub(crate) fn is_small(&self) -> bool {
        self.is_small
    }

    /// Counts what its executions take.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether it has an IF or a WHILE. Such a plan cannot be saved.
    pub(crate) fn has_control_flow(&self) -> bool {
        self.steps.iter().any(|step| !step.kernel.plans().is_empty())
    }
}

fn as_offsets(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

impl Held {
    fn at(self, range: &Range<usize>) -> PlannedValue {
        let Self { buffer, operand, is_kept } = self;
        PlannedValue { buffer, bytes: as_offsets(range), operand, is_kept }
    }
}

impl Step {
    fn describe(&self, plan: usize) -> PlannedStep {
        PlannedStep {
            place: self.place,
            kernel: self.kernel.name(),
            dimensions: self.dimensions.clone(),
            arithmetic: self.kernel.arithmetic(),
            is_8_bit: self.kernel.is_8_bit(),
            bytes: self.bytes(),
            weight_bytes: self.weight_bytes as u64,
            reads: self.reads(),
            writes: self.writes(),
            scratch: as_offsets(&self.scratch),
            plan,
            why_reference: self.kernel.why().map(ToString::to_string),
        }
    }

    fn reads(&self) -> Vec<PlannedValue> {
        let read = |(input, held): (&Location, &Held)| match input {
            Location::Arena(range) => Some(held.at(range)),
            Location::Nowhere | Location::Constant(..) => None,
        };
        self.inputs.iter().zip(&self.held).filter_map(read).collect()
    }

    fn writes(&self) -> Vec<PlannedValue> {
        let held = self.held.get(self.inputs.len()..).unwrap_or_default();
        self.outputs.iter().zip(held).map(|(range, held)| held.at(range)).collect()
    }

    /// Bytes read and written.
    fn bytes(&self) -> u64 {
        let read = self.inputs.iter().map(|input| match input {
            Location::Nowhere => 0,
            Location::Constant(_, length) => *length,
            Location::Arena(range) => range.len(),
        });
        let written = self.outputs.iter().map(Range::len);
        read.chain(written).sum::<usize>() as u64 + self.weight_bytes as u64
    }
}

/// Bytes that steps take, about: not their weights, and of kernels what most of them are.
fn size_of_steps(drafts: &[Draft]) -> u64 {
    const KERNEL: usize = 256;
    let bytes = |draft: &Draft| {
        let operands = draft.inputs.len()
            * (size_of::<Location>() + size_of::<arena::Source>() + size_of::<Held>())
            + draft.outputs.len()
                * (size_of::<Range<usize>>()
                    + size_of::<Option<ObservedOutput>>()
                    + size_of::<Held>());
        (size_of::<Step>() + KERNEL + operands) as u64
    };
    drafts.iter().map(bytes).sum()
}

/// A step whose operands have no places in the arena yet.
pub(crate) struct Draft {
    pub(crate) place: OperationPlace,
    pub(crate) kernel: Box<dyn Kernel>,
    pub(crate) inputs: Vec<Operand>,
    pub(crate) outputs: Vec<ValueId>,
}

impl Draft {
    /// A step that computes all outputs of a node of these values with a prepared kernel.
    pub(crate) fn new(
        node: &Node,
        kernel: impl PreparedKernel + 'static,
        inputs: impl IntoIterator<Item = ValueId>,
    ) -> Self {
        Self {
            place: node.place,
            kernel: Box::new(Prepared { kernel, subjects: Vec::new() }),
            inputs: inputs.into_iter().map(Operand::Value).collect(),
            outputs: node.outputs.clone(),
        }
    }

    /// As [`Self::new`], of the first two arguments; `prepare` gives the kernel for their shapes.
    pub(crate) fn of_pair<K: PreparedKernel + 'static>(
        graph: &Graph<'_>,
        node: &Node,
        prepare: impl FnOnce([&[usize]; 2]) -> K,
    ) -> Self {
        let inputs = [node.inputs[0], node.inputs[1]];
        let shapes = inputs.map(|id| graph.values[id].lengths());
        Self::new(node, prepare(shapes.each_ref().map(Vec::as_slice)), inputs)
    }

    /// As [`Self::new`], of these arguments of the operation, which have values that the kernel may
    /// refuse.
    pub(crate) fn of_arguments(
        graph: &Graph<'_>,
        node: &Node,
        kernel: impl PreparedKernel + 'static,
        positions: &[usize],
    ) -> Self {
        let subjects = positions.iter().map(|at| graph.input(node, *at).subject()).collect();
        let inputs = positions.iter().map(|at| Operand::Value(node.inputs[*at])).collect();
        let kernel = Box::new(Prepared { kernel, subjects });
        Self { place: node.place, kernel, inputs, outputs: node.outputs.clone() }
    }
}

/// An input of a step to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A value, in the form in which plans keep it.
    Value(ValueId),
    /// A constant in the form in which the model has it.
    Raw(ValueId),
}

/// By value where the plan has its constant, in the form of models and in that of plans.
type ConstantPlaces = Vec<[Option<usize>; 2]>;

/// Collects what steps need.
pub(crate) struct Builder<'build, 'source> {
    pub(crate) graph: &'build Graph<'source>,
    pub(crate) settings: &'build Settings,
    ledger: &'build Ledger,
    /// Counts `constants`.
    held: Charge,
    /// For weights that are packed.
    pub(crate) scratch: Scratch,
    layout: Layout,
    constants: Vec<Lines>,
    constant_of: ConstantPlaces,
    /// By their index in the graph.
    pub(crate) control_flow: Vec<Arc<ControlFlow>>,
}

/// Who runs a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    /// An execution, which may have outputs written into the caller's memory.
    Request,
    /// An IF, or the condition of a WHILE.
    Branch,
    /// The body of a WHILE: inputs are the same afterwards.
    Body,
}

impl Builder<'_, '_> {
    /// Elements from one row along the last axis of a value to the next, if there are gaps between.
    pub(crate) fn row_stride(&self, value: ValueId) -> Option<usize> {
        self.layout.places[value].stride
    }

    /// The same, of a value whose rows have this many elements.
    pub(crate) fn pixel_stride(&self, value: ValueId, length: usize) -> usize {
        self.row_stride(value).unwrap_or(length)
    }

    fn location(
        &mut self,
        operand: Operand,
        memory: &[Range<usize>],
    ) -> Result<Location, EngineError> {
        let (id, is_raw) = match operand {
            Operand::Value(id) => (id, false),
            Operand::Raw(id) => (id, true),
        };
        let value = &self.graph.values[id];
        Ok(match &value.origin {
            Origin::Omitted => Location::Nowhere,
            Origin::Constant(constant) => {
                let is_converted = value.is_float16() && !is_raw;
                let length = if is_converted { value.bytes() } else { constant.length() };
                let known = &mut self.constant_of[id][usize::from(is_converted)];
                let index = match *known {
                    Some(index) => index,
                    None => {
                        let (user, wanted) = (MemoryUse::Constants, length as u64);
                        self.held.grow(wanted, user)?;
                        let lines = Lines::try_with_bytes(length);
                        let mut lines =
                            lines.map_err(|_| EngineError::Allocation { user, wanted })?;
                        if is_converted {
                            // Kept, for a program that is saved.
                            if let Some(halves) = constant.bytes() {
                                let floats = &mut lines.elements_mut()[..value.elements()];
                                constant.widen_to(halves, floats);
                            }
                        } else {
                            constant.read_to(&mut lines.elements_mut()[..length]);
                        }
                        self.constants.push(lines);
                        *known.insert(self.constants.len() - 1)
                    }
                };
                Location::Constant(index, length)
            }
            Origin::Input(_) | Origin::Computed => Location::Arena(self.range(id, memory)),
        })
    }

    /// The bytes of a value in the arena.
    fn range(&self, id: ValueId, memory: &[Range<usize>]) -> Range<usize> {
        let value = &self.graph.values[id];
        let place = &self.layout.places[id];
        let start = memory[place.buffer].start + place.offset;
        let length = match (place.stride, value.dimensions.last()) {
            (Some(stride), Some(last)) if *last > 0 => {
                let rows = value.elements() / *last as usize;
                let elements = rows.saturating_sub(1) * stride + *last as usize;
                if rows == 0 { 0 } else { elements * value.element_size() }
            }
            _ => value.bytes(),
        };
        start..start + length
    }

    /// Also tells by value where its constant is.
    fn finish(
        mut self,
        drafts: Vec<Draft>,
        weight_bytes: Vec<usize>,
        mut charges: Vec<Charge>,
        budget: &Budget,
        caller: Caller,
    ) -> Result<(Plan, ConstantPlaces), EngineError> {
        let scratch: Vec<usize> = drafts.iter().map(|draft| draft.kernel.scratch_bytes()).collect();
        let uses = drafts.iter().map(|draft| {
            let inputs = draft.inputs.iter().map(|operand| match operand {
                Operand::Value(id) | Operand::Raw(id) => *id,
            });
            inputs.chain(draft.outputs.iter().copied()).collect()
        });
        // Control flow copies what it begins with and gives within the arena.
        let has_control_flow = drafts.iter().any(|draft| !draft.kernel.plans().is_empty());
        let beside = match caller {
            Caller::Request if !has_control_flow => {
                self.layout.outputs_beside(self.graph, &drafts, self.settings.least_in_place)
            }
            _ => Vec::new(),
        };
        let buffers_beside: Vec<BufferId> = beside.iter().map(|(_, buffer)| *buffer).collect();
        let memory =
            self.layout.assign(self.graph, uses.collect(), &scratch, caller, &buffers_beside);
        budget.check()?;
        // The first execution shall not be the one to find out.
        let wanted = memory.as_ref().map_or(u64::MAX, |memory| memory.all_bytes as u64);
        self.ledger.expect_room(wanted, MemoryUse::Values)?;
        let memory = memory.unwrap_or_default();
        let range = |buffer: &BufferId| memory.ranges[*buffer].clone();
        let ranges_beside: Vec<_> = buffers_beside.iter().map(range).collect();
        charges.push(self.ledger.charge(size_of_steps(&drafts), MemoryUse::Plan)?);
        let buffers = self.layout.buffers();
        let mut is_kept = vec![false; buffers];
        for id in &self.graph.outputs {
            is_kept[self.layout.places[*id].buffer] = true;
        }
        let mut steps = Vec::with_capacity(drafts.len());
        for (index, (draft, weight_bytes)) in drafts.into_iter().zip(weight_bytes).enumerate() {
            budget.check_inside()?;
            let inputs: Result<Vec<_>, EngineError> =
                draft.inputs.iter().map(|it| self.location(*it, &memory.ranges)).collect();
            let scratch_buffer: BufferId = buffers + index;
            let observed = draft.outputs.iter().map(|id| self.observed(*id)).collect();
            let held = |id: ValueId| {
                let buffer = self.layout.places[id].buffer;
                let operand = self.graph.values[id].index;
                Held { buffer, operand, is_kept: is_kept[buffer] }
            };
            let read = draft.inputs.iter().map(|operand| match operand {
                Operand::Value(id) | Operand::Raw(id) => *id,
            });
            let held = read.chain(draft.outputs.iter().copied()).map(held).collect();
            let outputs = draft.outputs.iter().map(|id| self.range(*id, &memory.ranges));
            let outputs: Vec<_> = outputs.collect();
            let scratch = memory.ranges[scratch_buffer].clone();
            let inputs = inputs?;
            steps.push(Step {
                place: draft.place,
                dimensions: self.graph.values[draft.outputs[0]].dimensions.clone(),
                order: arena::Order::new(&inputs, &outputs, &scratch, &ranges_beside),
                inputs,
                outputs,
                scratch,
                kernel: draft.kernel,
                weight_bytes,
                observed,
                held,
            });
        }
        let mut inputs = Vec::new();
        for (id, value) in self.graph.values.iter().enumerate() {
            if let Origin::Input(input) = value.origin {
                inputs.resize_with(inputs.len().max(input + 1), || Input {
                    range: None,
                    is_float16: false,
                });
                let is_float16 = value.is_float16();
                inputs[input] = Input { range: Some(self.range(id, &memory.ranges)), is_float16 };
            }
        }
        let graph = self.graph;
        let mut outputs = Vec::with_capacity(graph.outputs.len());
        for id in &graph.outputs {
            outputs.push(Output {
                location: self.location(Operand::Value(*id), &memory.ranges)?,
                is_float16: graph.values[*id].is_float16(),
                dimensions: graph.values[*id].dimensions.clone(),
            });
        }
        charges.push(self.held);
        let arithmetic: u64 = steps.iter().map(|step: &Step| step.kernel.arithmetic()).sum();
        let is_small = memory.all_bytes <= SMALL_BYTES && arithmetic <= SMALL_ARITHMETIC;
        let plan = Plan {
            steps,
            inputs,
            outputs,
            constants: self.constants,
            arena_bytes: memory.bytes,
            beside: beside.into_iter().map(|(output, _)| output).zip(ranges_beside).collect(),
            is_small,
            set: self.settings.instruction_set,
            ledger: self.ledger.clone(),
            _charges: charges,
        };
        Ok((plan, self.constant_of))
    }

    fn observed(&self, id: ValueId) -> Option<ObservedOutput> {
        let value = &self.graph.values[id];
        Some(ObservedOutput {
            operand: value.index.filter(|_| self.layout.places[id].stride.is_none())?,
            operand_type: value.operand_type(),
            dimensions: value.dimensions.clone(),
        })
    }
}
