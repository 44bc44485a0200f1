//! [`Execution`]: one execution.
//!
//! Subgraphs running are a list of [`Frame`]s, not calls of calls: a model may nest them deeper
//! than a stack is (contract: GEN-8).

use crate::accelerator::{Accelerator, ComputedOutput, Remaining};
use crate::layout::{Action, Graph, Layout, Step};
use crate::operation::{self, Input, Output};
use crate::value::{Tensor, Value, merge};
use nnhal_driver::{
    Bindings, Constants, EngineError, InRounds, Ledger, LoopClock, MemoryUse, ObservedOutput,
    Observer, OperationPlace, Round, RunContext,
};
use nnhal_hal::OperandLifeTime;
use nnhal_ops::{Fault, OperationError, Shape, Subject};
use std::rc::Rc;
use std::time::Instant;

/// One execution of a model.
pub(crate) struct Execution<'run> {
    layout: &'run Layout,
    constants: &'run Constants,
    ledger: &'run Ledger,
    accelerator: Option<&'run dyn Accelerator>,
    bindings: &'run Bindings,
    context: &'run RunContext<'run>,
    /// The control flow that led to the innermost frame.
    rounds: Vec<Round>,
}

/// A subgraph running.
struct Frame<'run> {
    graph: &'run Graph,
    /// By operand: what inputs hold and what operations have computed, while it is still wanted.
    values: Vec<Option<Value<'run>>>,
    /// Index of the step running.
    step: usize,
    purpose: Purpose<'run>,
}

/// Why a subgraph runs, that is, what is done with its results.
enum Purpose<'run> {
    /// It is the main one.
    Main,
    /// A branch of an IF: its results are the IF's.
    Branch,
    /// The condition of a WHILE.
    Condition(Loop<'run>),
    /// The body of a WHILE: its results are the next round's inputs.
    Body(Loop<'run>),
}

/// A WHILE running (contract: CF-9).
struct Loop<'run> {
    /// The inputs of condition and body: first those that the body computes anew, then those that
    /// never change.
    variables: Vec<Value<'run>>,
    clock: LoopClock,
    round: u64,
}

impl<'run> Execution<'run> {
    pub(crate) fn new(
        layout: &'run Layout,
        constants: &'run Constants,
        ledger: &'run Ledger,
        accelerator: Option<&'run dyn Accelerator>,
        bindings: &'run Bindings,
        context: &'run RunContext<'run>,
    ) -> Self {
        Self { layout, constants, ledger, accelerator, bindings, context, rounds: Vec::new() }
    }

    pub(crate) fn run(mut self) -> Result<(), EngineError> {
        let mut main = Frame::new(&self.layout.graphs[0], Purpose::Main);
        for (operand, input) in main.graph.inputs.iter().zip(self.read_inputs()?) {
            main.values[*operand as usize] = Some(input);
        }
        let mut frames = vec![main];
        while let Some(mut frame) = frames.pop() {
            let Some(step) = frame.graph.steps.get(frame.step) else {
                let results = self.results(&frame);
                match frames.last_mut() {
                    None => return self.deliver(&results),
                    Some(caller) => {
                        self.rounds.pop();
                        if let Some(next) = self.conclude(frame.purpose, results, caller)? {
                            frames.push(next);
                        }
                    }
                }
                continue;
            };
            self.context.budget.check()?;
            let accelerated = self.accelerate(&mut frame)?;
            if accelerated > 0 {
                frame.step += accelerated;
                frames.push(frame);
            } else if matches!(step.action, Action::Compute) {
                self.compute(&mut frame, step)?;
                frame.step += 1;
                frames.push(frame);
            } else {
                let inner = self.enter_control_flow(&mut frame, step)?;
                frames.extend([frame, inner]);
            }
        }
        Ok(())
    }

    /// Copies the request's inputs, each byte once (contract: SEC-1).
    fn read_inputs(&self) -> Result<Vec<Value<'run>>, EngineError> {
        let mut values = Vec::with_capacity(self.bindings.inputs().len());
        for input in self.bindings.inputs() {
            let Some(region) = input.value() else {
                values.push(Value::Omitted);
                continue;
            };
            let charge = self.ledger.charge(region.length(), MemoryUse::Inputs)?;
            let bytes = region.read_within(self.context.budget)?;
            // The driver has seen to it that the shape of what has a value is known.
            let dimensions = input.shape().to_known().unwrap_or_default();
            values.push(Value::Tensor(Rc::new(Tensor { dimensions, bytes, _charge: charge })));
        }
        Ok(values)
    }

    /// Lets an accelerator, if there is one, compute operations; gives how many it did.
    fn accelerate(&self, frame: &mut Frame<'run>) -> Result<usize, EngineError> {
        let Some(accelerator) = self.accelerator else { return Ok(0) };
        let observer =
            self.context.observer.map(|observer| InRounds { observer, rounds: &self.rounds });
        let observer = observer.as_ref().map(|observer| observer as &dyn Observer);
        let context = RunContext { observer, ..*self.context };
        let (subgraph, first) = (frame.graph.name, frame.step);
        let remaining = Remaining { subgraph, first, values: &frame.values };
        let Some(computed) = accelerator.compute(&remaining, &context)? else { return Ok(0) };
        let graph = frame.graph;
        let steps = &graph.steps[first..first + computed.operations];
        for step in steps {
            frame.forget(&step.last_reads);
        }
        let Some(last) = steps.last() else { return Ok(0) };
        for ComputedOutput { operand, dimensions, bytes } in computed.outputs {
            let found = Shape::known(dimensions.iter().copied());
            merge(last.place, operand, &found, &self.declared(frame, operand))?;
            let charge =
                self.ledger.charge(bytes.len() as u64, MemoryUse::Operation(last.place))?;
            let tensor = Tensor { dimensions, bytes, _charge: charge };
            frame.values[operand as usize] = Some(Value::Tensor(Rc::new(tensor)));
        }
        Ok(steps.len())
    }

    /// Runs an operation by its reference kernel.
    fn compute(&self, frame: &mut Frame<'run>, step: &Step) -> Result<(), EngineError> {
        let place = step.place;
        let _span = tracing::trace_span!("step", of = %place).entered();
        let started = self.context.observer.map(|_| Instant::now());
        let operands = &frame.graph.operands;
        let inputs = step.inputs.iter().map(|operand| {
            let value = self.value(frame, *operand);
            let shape = value.shape().unwrap_or_else(|| self.declared(frame, *operand));
            Input { operand: &operands[*operand as usize], shape, value }
        });
        let inputs: Vec<Input<'_>> = inputs.collect();
        let outputs = step.outputs.iter().map(|index| {
            let shape = self.declared(frame, *index);
            Output { index: *index, operand: &operands[*index as usize], shape }
        });
        let outputs: Vec<Output<'_>> = outputs.collect();
        let results = operation::compute(place, &inputs, &outputs, self.ledger, self.context)?;
        drop(inputs);
        if let (Some(observer), Some(started)) = (self.context.observer, started) {
            observer.duration(place, started.elapsed());
        }
        frame.forget(&step.last_reads);
        self.store(frame, step, results)
    }

    /// The frame that an IF or WHILE begins with.
    fn enter_control_flow(
        &mut self,
        frame: &mut Frame<'run>,
        step: &Step,
    ) -> Result<Frame<'run>, EngineError> {
        let mut inputs: Vec<Value<'run>> =
            step.inputs.iter().map(|operand| self.value(frame, *operand)).collect();
        frame.forget(&step.last_reads);
        match step.action {
            Action::Loop { condition, .. } => {
                let variables = inputs.split_off(2);
                let clock = self.context.budget.loop_clock();
                let state = Loop { variables: variables.clone(), clock, round: 0 };
                self.enter(step, condition, 0, variables, Purpose::Condition(state))
            }
            Action::Branch { then, otherwise } => {
                let arguments = inputs.split_off(3);
                let (graph, input) =
                    if is_true(step.place, 0, &inputs[0])? { (then, 1) } else { (otherwise, 2) };
                self.enter(step, graph, input, arguments, Purpose::Branch)
            }
            Action::Compute => {
                let operation = step.place.operation_type;
                Err(EngineError::operation(step.place, Fault::NotImplemented { operation }))
            }
        }
    }

    /// A frame for a subgraph that `caller` refers to with one of its inputs.
    fn enter(
        &mut self,
        caller: &Step,
        graph: usize,
        subgraph_input: usize,
        arguments: Vec<Value<'run>>,
        purpose: Purpose<'run>,
    ) -> Result<Frame<'run>, EngineError> {
        let round = match &purpose {
            Purpose::Condition(state) | Purpose::Body(state) => state.round,
            Purpose::Main | Purpose::Branch => 0,
        };
        self.rounds.push(Round { place: caller.place, subgraph_input, round });
        let mut frame = Frame::new(&self.layout.graphs[graph], purpose);
        for (operand, argument) in frame.graph.inputs.iter().zip(arguments) {
            if let Some(found) = argument.shape() {
                merge(caller.place, *operand, &found, &frame.graph.declared[*operand as usize])?;
            }
            frame.values[*operand as usize] = Some(argument);
        }
        Ok(frame)
    }

    /// Does with a subgraph's results what it was run for: gives them to the caller, or goes on
    /// with another subgraph.
    fn conclude(
        &mut self,
        purpose: Purpose<'run>,
        results: Vec<Value<'run>>,
        caller: &mut Frame<'run>,
    ) -> Result<Option<Frame<'run>>, EngineError> {
        let step = &caller.graph.steps[caller.step];
        let outputs = match (purpose, step.action) {
            (Purpose::Condition(mut state), Action::Loop { body, .. }) => {
                let condition = results.first().unwrap_or(&Value::Omitted);
                if is_true(step.place, 0, condition)? {
                    // Only now, so that a loop that ends is never late (contract: QOS-9).
                    state.clock.check()?;
                    let arguments = state.variables.clone();
                    // What the body computes anew is the body's to free.
                    let renewed = self.layout.graphs[body].outputs.len();
                    state.variables.iter_mut().take(renewed).for_each(|it| *it = Value::Omitted);
                    return self.enter(step, body, 1, arguments, Purpose::Body(state)).map(Some);
                }
                // The first of them, as many as the WHILE has results.
                state.variables
            }
            (Purpose::Body(mut state), Action::Loop { condition, .. }) => {
                for (variable, result) in state.variables.iter_mut().zip(results) {
                    *variable = result;
                }
                state.round += 1;
                let arguments = state.variables.clone();
                let purpose = Purpose::Condition(state);
                return self.enter(step, condition, 0, arguments, purpose).map(Some);
            }
            _ => results,
        };
        self.store(caller, step, outputs)?;
        caller.step += 1;
        Ok(None)
    }

    /// Keeps the results of a step for those who want them.
    fn store(
        &self,
        frame: &mut Frame<'run>,
        step: &Step,
        results: Vec<Value<'run>>,
    ) -> Result<(), EngineError> {
        for (output, (operand, result)) in step.outputs.iter().zip(results).enumerate() {
            let index = *operand as usize;
            let Some((dimensions, bytes)) = result.dimensions().zip(result.bytes()) else {
                // A WHILE can hand an argument that was left out on to its own result.
                return Err(left_out(step.place, Subject::Output(output, "")));
            };
            let found = Shape::known(dimensions.iter().copied());
            merge(step.place, *operand, &found, &self.declared(frame, *operand))?;
            if let Some(observer) = self.context.observer {
                observer.output(&ObservedOutput {
                    place: step.place,
                    output,
                    operand: *operand,
                    rounds: &self.rounds,
                    operand_type: frame.graph.operands[index].operand_type,
                    dimensions,
                    bytes,
                });
            }
            if frame.graph.wanted[index] {
                frame.values[index] = Some(result);
            }
        }
        Ok(())
    }

    /// What an operand holds.
    fn value(&self, frame: &Frame<'run>, operand: u32) -> Value<'run> {
        let graph = frame.graph;
        let described = &graph.operands[operand as usize];
        match described.lifetime {
            OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference => {
                match self.constants.bytes(graph.name, operand) {
                    Some(bytes) => Value::Constant { dimensions: &described.dimensions, bytes },
                    None => Value::Omitted,
                }
            }
            OperandLifeTime::NoValue | OperandLifeTime::Subgraph => Value::Omitted,
            OperandLifeTime::TemporaryVariable
            | OperandLifeTime::SubgraphInput
            | OperandLifeTime::SubgraphOutput => {
                frame.values[operand as usize].clone().unwrap_or(Value::Omitted)
            }
        }
    }

    /// What is said of an operand's shape, by the model and, of an output, by the request.
    fn declared(&self, frame: &Frame<'run>, operand: u32) -> Shape {
        let graph = frame.graph;
        if matches!(frame.purpose, Purpose::Main)
            && let Some(output) = graph.output_index[operand as usize]
        {
            return self.bindings.outputs()[output].shape().clone();
        }
        graph.declared[operand as usize].clone()
    }

    /// The results of a subgraph that has run.
    fn results(&self, frame: &Frame<'run>) -> Vec<Value<'run>> {
        frame.graph.outputs.iter().map(|operand| self.value(frame, *operand)).collect()
    }

    fn deliver(&self, results: &[Value<'run>]) -> Result<(), EngineError> {
        for (output, result) in self.bindings.outputs().iter().zip(results) {
            if let Some((dimensions, bytes)) = result.dimensions().zip(result.bytes()) {
                output.deliver_within(dimensions, bytes, self.context.budget)?;
            }
        }
        Ok(())
    }
}

impl<'run> Frame<'run> {
    fn new(graph: &'run Graph, purpose: Purpose<'run>) -> Self {
        Self { graph, values: vec![None; graph.operands.len()], step: 0, purpose }
    }

    /// Frees values that no one reads any more.
    fn forget(&mut self, operands: &[u32]) {
        for operand in operands {
            self.values[*operand as usize] = None;
        }
    }
}

/// The truth of a `TENSOR_BOOL8` of shape `[1]` (contract: CF-9).
fn is_true(place: OperationPlace, input: usize, value: &Value<'_>) -> Result<bool, EngineError> {
    match value.bytes() {
        Some([byte, ..]) => Ok(*byte != 0),
        _ => Err(left_out(place, Subject::Input(input, "condition"))),
    }
}

fn left_out(place: OperationPlace, subject: Subject) -> EngineError {
    let operation = place.operation_type;
    let (found, expected) = ("left out".to_owned(), "a value".to_owned());
    let error = OperationError { operation, subject, what: "value", found, expected };
    EngineError::operation(place, error.into())
}
